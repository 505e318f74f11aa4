"""Disk parameters per template (resource model, "Disk parameters")."""

from __future__ import annotations

from typing import Final

from gpolicy.ganeti.parameter import CLUSTER_GROUP, Parameter, TakesEffect, Type, Value
from gpolicy.ganeti.vocabulary import ACCESS_MODES

_DISK_ACTIVATION, _NEW_DISKS = TakesEffect.DISK_ACTIVATION, TakesEffect.NEW_DISKS
_REDIRECTS = TakesEffect.EXISTING_DISKS_AT_ONCE
_DISK_PARAMETERS: Final[dict[str, dict[str, tuple[Type, Value, str, TakesEffect, str]]]] = {
    "drbd": {
        "resync-rate": (Type.INT, 61440, "KiB/s", _DISK_ACTIVATION, "Static resync rate."),
        "data-stripes": (Type.INT, 1, "", _NEW_DISKS, "LVM stripes of the data volumes."),
        "meta-stripes": (Type.INT, 1, "", _NEW_DISKS, "LVM stripes of the metadata volumes."),
        "disk-barriers": (
            Type.STRING,
            "n",
            "",
            _DISK_ACTIVATION,
            "What to disable: n for nothing, or a combination of b (barriers), f (flushes), d (drain).",
        ),
        "meta-barriers": (Type.BOOL, False, "", _DISK_ACTIVATION, "True disables flushes of the metadata."),
        "metavg": (Type.STRING, "xenvg", "", _NEW_DISKS, "Volume group of the metadata volumes."),
        "disk-custom": (Type.STRING, "", "", _DISK_ACTIVATION, "More arguments for drbdsetup, disk section."),
        "net-custom": (Type.STRING, "", "", _DISK_ACTIVATION, "More arguments for drbdsetup, net section."),
        "protocol": (Type.STRING, "C", "", _DISK_ACTIVATION, "Replication protocol: A, B or C."),
        "dynamic-resync": (
            Type.BOOL,
            False,
            "",
            _DISK_ACTIVATION,
            "Use the c-* resync controller, not resync-rate.",
        ),
        "c-plan-ahead": (
            Type.INT,
            20,
            "0.1 s",
            _DISK_ACTIVATION,
            "Agility of the resync controller; 0 turns it off.",
        ),
        "c-fill-target": (Type.INT, 0, "sectors", _DISK_ACTIVATION, "Most resync data in flight."),
        "c-delay-target": (
            Type.INT,
            1,
            "0.1 s",
            _DISK_ACTIVATION,
            "Most estimated delay of the peer's answers.",
        ),
        "c-min-rate": (Type.INT, 4096, "KiB/s", _DISK_ACTIVATION, "Lower bound of the dynamic resync rate."),
        "c-max-rate": (Type.INT, 61440, "KiB/s", _DISK_ACTIVATION, "Upper bound of the dynamic resync rate."),
    },
    "plain": {"stripes": (Type.INT, 1, "", _NEW_DISKS, "LVM stripes of new volumes.")},
    "rbd": {
        "pool": (Type.STRING, "rbd", "", _REDIRECTS, "RADOS pool of the images."),
        "access": (
            Type.CHOICE,
            "kernelspace",
            "",
            TakesEffect.INSTANCE_START,
            "How instances reach the image.",
        ),
        "user-id": (Type.STRING, "", "", _REDIRECTS, "RADOS user."),
    },
    "ext": {
        "access": (
            Type.CHOICE,
            "kernelspace",
            "",
            TakesEffect.INSTANCE_START,
            "How instances reach the disk.",
        )
    },
    "gluster": {
        "host": (Type.STRING, "127.0.0.1", "", _REDIRECTS, "Gluster server."),
        "volume": (Type.STRING, "gv0", "", _REDIRECTS, "Gluster volume."),
        "port": (Type.INT, 24007, "", _REDIRECTS, "Gluster port."),
        "access": (
            Type.CHOICE,
            "kernelspace",
            "",
            TakesEffect.INSTANCE_START,
            "How instances reach the disk.",
        ),
    },
}
_NOT_RELEASED: Final = "3.2"  # rbd user-id is in Ganeti's development tree only, in no release up to 3.1


def diskparams() -> list[Parameter]:
    """Return the rows of the disk parameters."""
    return [
        Parameter(
            path=("diskparams", template, name),
            type=kind,
            unit=unit,
            default=default,
            choices=ACCESS_MODES if name == "access" else (),
            levels=CLUSTER_GROUP,
            takes_effect=effect,
            since=_NOT_RELEASED if (template, name) == ("rbd", "user-id") else "",
            description=f"{text} (template {template})",
        )
        for template, parameters in _DISK_PARAMETERS.items()
        for name, (kind, default, unit, effect, text) in parameters.items()
    ]
