"""Disk parameters per template (resource model, "Disk parameters")."""

from __future__ import annotations

from typing import Final

from gpolicy.ganeti.parameter import CLUSTER_GROUP, Parameter, Reach, TakesEffect, Type, Value
from gpolicy.ganeti.vocabulary import ACCESS_MODES

_Row = tuple[Type, Value, str, TakesEffect, str]
_INT, _TEXT, _YES_NO = Type.INT, Type.STRING, Type.BOOL
_ACTIVATION, _NEW_DISKS = TakesEffect.DISK_ACTIVATION, TakesEffect.NEW_DISKS
_REDIRECTS = TakesEffect.EXISTING_DISKS_AT_ONCE


def _access(what: str) -> _Row:
    return Type.CHOICE, "kernelspace", "", TakesEffect.INSTANCE_START, f"How instances reach the {what}."


_DISK_PARAMETERS: Final[dict[str, dict[str, _Row]]] = {
    "drbd": {
        "resync-rate": (_INT, 61440, "KiB/s", _ACTIVATION, "Static resync rate."),
        "data-stripes": (_INT, 1, "", _NEW_DISKS, "LVM stripes of the data volumes."),
        "meta-stripes": (_INT, 1, "", _NEW_DISKS, "LVM stripes of the metadata volumes."),
        "disk-barriers": (
            *(_TEXT, "n", "", _ACTIVATION),
            "What to disable: n for nothing, or a combination of b (barriers), f (flushes), d (drain).",
        ),
        "meta-barriers": (_YES_NO, False, "", _ACTIVATION, "True disables flushes of the metadata."),
        "metavg": (_TEXT, "xenvg", "", _NEW_DISKS, "Volume group of the metadata volumes."),
        "disk-custom": (_TEXT, "", "", _ACTIVATION, "More arguments for drbdsetup, disk section."),
        "net-custom": (_TEXT, "", "", _ACTIVATION, "More arguments for drbdsetup, net section."),
        "protocol": (_TEXT, "C", "", _ACTIVATION, "Replication protocol: A, B or C."),
        "dynamic-resync": (_YES_NO, False, "", _ACTIVATION, "Use the c-* resync controller, not resync-rate."),
        "c-plan-ahead": (_INT, 20, "0.1 s", _ACTIVATION, "Agility of the resync controller; 0 turns it off."),
        "c-fill-target": (_INT, 0, "sectors", _ACTIVATION, "Most resync data in flight."),
        "c-delay-target": (_INT, 1, "0.1 s", _ACTIVATION, "Longest estimated delay of the peer's answers."),
        "c-min-rate": (_INT, 4096, "KiB/s", _ACTIVATION, "Lower bound of the dynamic resync rate."),
        "c-max-rate": (_INT, 61440, "KiB/s", _ACTIVATION, "Upper bound of the dynamic resync rate."),
    },
    "plain": {"stripes": (_INT, 1, "", _NEW_DISKS, "LVM stripes of new volumes.")},
    "rbd": {
        "pool": (_TEXT, "rbd", "", _REDIRECTS, "RADOS pool of the images."),
        "access": _access("image"),
        "user-id": (_TEXT, "", "", _REDIRECTS, "RADOS user."),
    },
    "ext": {"access": _access("disk")},
    "gluster": {
        "host": (_TEXT, "127.0.0.1", "", _REDIRECTS, "Gluster server."),
        "volume": (_TEXT, "gv0", "", _REDIRECTS, "Gluster volume."),
        "port": (_INT, 24007, "", _REDIRECTS, "Gluster port."),
        "access": _access("disk"),
    },
}
_SINCE: Final = {("rbd", "user-id"): "3.2"}
"""The first release that has a parameter, of those that not all have: no release up to 3.1 has this one."""

_EXAMPLES: Final = {"disk-custom": "--on-io-error=detach", "net-custom": "--max-buffers=8000", "user-id": "ganeti"}


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
            since=_SINCE.get((template, name), ""),
            reach=Reach.ARGUMENTS if name.endswith("-custom") else None,
            example=_EXAMPLES.get(name),
            description=text,
        )
        for template, parameters in _DISK_PARAMETERS.items()
        for name, (kind, default, unit, effect, text) in parameters.items()
    ]
