"""Parameters of the cluster, its groups and nodes, but those of hypervisors.

Sources: partitioned Ganeti ("Constrained instance sizes"), resource model ("Policies", "Disk parameters", "Node
parameters"; hv_state and disk_state are its static resources).
"""

from __future__ import annotations

from typing import Any, Final

from gpolicy.ganeti.amounts import BOUNDS
from gpolicy.ganeti.parameter import (
    ALL_LEVELS,
    CLUSTER,
    CLUSTER_GROUP,
    Level,
    Parameter,
    Path,
    Reach,
    TakesEffect,
    Type,
    Value,
)
from gpolicy.ganeti.vocabulary import (
    ACCESS_MODES,
    ALLOC_POLICIES,
    DATA_COLLECTORS,
    DEFAULT_MAX,
    DEFAULT_MIN,
    DISK_STATE,
    DISK_TEMPLATES,
    HV_STATE,
    HYPERVISORS,
    SPEC_PARAMETERS,
    SPEC_SIZES,
)

_MEANINGS: Final = {
    "enabled_disk_templates": "Disk templates in use on this cluster; the first is the default of new instances.",
    "enabled_hypervisors": "Hypervisors in use; the first is the default of new instances.",
    "volume_group_name": "Volume group for plain and drbd disks, at least 20 GiB on every node; empty for none.",
    "drbd_usermode_helper": "Helper program of DRBD; must be what the kernel module uses on every node. Empty"
    " for none.",
    "reserved_lvs": "Regular expressions (whole name, vg/lv) of volumes that gnt-cluster verify ignores.",
    "prealloc_wipe_disks": "Wipe new disks.",
    "candidate_pool_size": "Wanted number of master candidates. Raising it promotes nodes, lowering it demotes none.",
    "max_running_jobs": "Most jobs that run at once.",
    "max_tracked_jobs": "Most jobs that Ganeti watches at once.",
    "use_external_mip_script": "Use an external script to set up the master address.",
    "master_netdev": "Network device of the master address. A change takes the address down and up.",
    "master_netmask": "Netmask (prefix length) of the master address. A change takes the address down and up.",
    "maintain_node_health": "Let the watcher shut down instances and DRBD on nodes marked offline.",
    "default_iallocator": "Allocator that places instances when none is named; empty for none.",
    "default_iallocator_params": "Options of the allocator, whichever runs; null for one without a value. Replaced"
    " as a whole.",
    "install_image": "Image for OS installs with untrusted scripts: absolute path or URL. Cannot be emptied again.",
    "zeroing_image": "Image used to zero disks: absolute path or URL. Cannot be emptied again.",
    "file_storage_dir": "Directory of file disks; must be whitelisted on the nodes.",
    "shared_file_storage_dir": "Directory of sharedfile disks; must be whitelisted on the nodes.",
    "compression_tools": "Compression tools for instance moves; gzip is mandatory. Not settable through RAPI.",
    "enabled_user_shutdown": "Distinguish a shutdown from inside the instance from a crash.",
    "mac_prefix": "First half of new MAC addresses.",
    "uid_pool": "User IDs for instance processes.",
    "modify_etc_hosts": "Let Ganeti edit /etc/hosts.",
    "instance_communication_network": "Network for communication with instances; empty for none.",
}
"""What each parameter means that has an option of its own."""


def _row(path: Path, kind: Type, default: Value, effect: TakesEffect, text: str, **more: Any) -> Parameter:
    """Return the row of a parameter; unless it is said, only the cluster has it."""
    unit, bound = "MiB" if kind in (Type.SIZE, Type.MIB) else "", BOUNDS.get(path[-1])
    more = {"levels": CLUSTER, "unit": unit, "maximum": bound.most if bound else None, **more}
    return Parameter(path=path, type=kind, default=default, takes_effect=effect, description=text, **more)


def _own(name: str, kind: Type, default: Value, effect: TakesEffect, **more: Any) -> Parameter:
    """Return the row of a parameter whose option, unless it is given, is `--` and its name."""
    option = f"--{name.replace('_', '-')}"
    return _row((name,), kind, default, effect, _MEANINGS[name], **{"option": option, **more})


_INT, _TEXT, _YES_NO = Type.INT, Type.STRING, Type.BOOL
_AT_ONCE, _START, _CAPACITY = TakesEffect.AT_ONCE, TakesEffect.INSTANCE_START, TakesEffect.CAPACITY_ONLY
_ACTIVATION, _NEW_DISKS = TakesEffect.DISK_ACTIVATION, TakesEffect.NEW_DISKS
_NEW_INSTANCES, _REDIRECTS = TakesEffect.NEW_INSTANCES, TakesEffect.EXISTING_DISKS_AT_ONCE


def cluster() -> list[Parameter]:
    """Return the rows of the parameters that have an option of their own."""
    now, new, job, disks = _AT_ONCE, _NEW_INSTANCES, TakesEffect.NEXT_JOB, _NEW_DISKS
    text, yes_no, number, words = _TEXT, _YES_NO, _INT, Type.LIST
    program, file = Reach.PROGRAM, Reach.FILE
    options: Value = {"no-capacity-checks": None, "static-kvm-node-memory": "4096"}
    tools: Value = ["gzip", "gzip-fast", "gzip-slow"]
    return [
        _own("enabled_disk_templates", words, ["drbd", "plain"], new, choices=DISK_TEMPLATES, can_be_empty=False),
        _own("enabled_hypervisors", words, ["xen-pvm"], new, choices=HYPERVISORS, can_be_empty=False),
        _own("volume_group_name", text, "xenvg", disks, option="--vg-name", opcode="vg_name"),
        _own("drbd_usermode_helper", text, "/bin/true", now, opcode="drbd_helper", reach=program),
        _own("reserved_lvs", words, [], now, example=["xenvg/root", "xenvg/swap"]),
        _own("prealloc_wipe_disks", yes_no, False, new),
        _own("candidate_pool_size", number, 10, now, minimum=1),
        _own("max_running_jobs", number, 20, job, minimum=1),
        _own("max_tracked_jobs", number, 25, job, minimum=1),
        _own("use_external_mip_script", yes_no, False, now, reach=program),
        _own("master_netdev", text, None, now, can_be_empty=False, example="eth0"),
        _own("master_netmask", number, None, now, minimum=0, example=32),
        _own("maintain_node_health", yes_no, False, now),
        _own("default_iallocator", text, "hail", new, reach=program),
        _own("default_iallocator_params", Type.DICT, {}, new, reach=Reach.ARGUMENTS, example=options),
        _own("install_image", text, "", new, reach=file, example="/srv/images/install.img"),
        _own("zeroing_image", text, "", now, reach=file, example="/srv/images/zero.img"),
        _own("file_storage_dir", text, None, disks, reach=file, example="/srv/ganeti/file-storage"),
        _own("shared_file_storage_dir", text, None, disks, reach=file, example="/srv/ganeti/shared-file-storage"),
        _own("compression_tools", Type.SET, tools, now, can_be_empty=False, reach=program),
        _own("enabled_user_shutdown", yes_no, False, now, option="--user-shutdown"),
        _own("mac_prefix", text, "aa:00:00", new),
        _own("uid_pool", Type.UID_RANGES, [], new, example=["20000-20099"]),
        _own("modify_etc_hosts", yes_no, True, now),
        _own("instance_communication_network", text, "", new, example="gnt-com"),
    ]


_MODES: Final = ("bridged", "routed", "openvswitch", "ext")
_RUN: Final = "Run the monitoring daemon's collector {}."
_EVERY: Final = "Interval of the collector {}. Ganeti 3.0 and later can set it through RAPI only."

NICPARAMS: Final = (
    _row(("nicparams", "mode"), Type.CHOICE, "bridged", _START, "Mode of network interfaces.", choices=_MODES),
    _row(("nicparams", "link"), _TEXT, "xen-br0", _START, "Bridge, routing table or switch of network interfaces."),
    _row(("nicparams", "vlan"), _TEXT, "", _START, "VLAN of network interfaces (Open vSwitch).", example="100"),
)
DATA_COLLECTOR_PARAMETERS: Final = (
    *(_row(("enabled_data_collectors", name), _YES_NO, True, _AT_ONCE, _RUN.format(name)) for name in DATA_COLLECTORS),
    *(
        _row(("data_collector_interval", name), _INT, 5_000_000, _AT_ONCE, _EVERY.format(name), unit="µs", minimum=1)
        for name in DATA_COLLECTORS
    ),
)

_Row = tuple[Type, Value, str, TakesEffect, str]


def _access(what: str) -> _Row:
    return Type.CHOICE, "kernelspace", "", _START, f"How instances reach the {what}."


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


DISKPARAMS: Final = tuple(
    _row(
        *(("diskparams", template, name), kind, default, effect, text),
        unit=unit,
        choices=ACCESS_MODES if name == "access" else (),
        levels=CLUSTER_GROUP,
        since=_SINCE.get((template, name), ""),
        reach=Reach.ARGUMENTS if name.endswith("-custom") else None,
        example=_EXAMPLES.get(name),
    )
    for template, parameters in _DISK_PARAMETERS.items()
    for name, (kind, default, unit, effect, text) in parameters.items()
)


def _of_nodes(name: str, kind: Type, default: Value, effect: TakesEffect, text: str, **more: Any) -> Parameter:
    return _row(("ndparams", name), kind, default, effect, text, **{"levels": ALL_LEVELS, **more})


_OOB: Final = {"reach": Reach.PROGRAM, "example": "/usr/local/sbin/oob"}
NDPARAMS: Final = (
    _of_nodes("oob_program", _TEXT, "", _AT_ONCE, "Out-of-band helper program; empty for none.", **_OOB),
    _of_nodes(
        *("spindle_count", _INT, 1, _CAPACITY),
        "Spindles of the node, for spindle-ratio; ignored under exclusive storage.",
    ),
    _of_nodes(
        *("exclusive_storage", _YES_NO, False, _NEW_DISKS),
        "Give each disk physical volumes of its own. One value per group; existing disks stay as they are.",
        levels=CLUSTER_GROUP,
    ),
    _of_nodes("ovs", _YES_NO, False, TakesEffect.NODE_ADD, "Use Open vSwitch."),
    _of_nodes("ovs_name", _TEXT, "switch1", TakesEffect.NODE_ADD, "Name of the Open vSwitch bridge."),
    _of_nodes(
        *("ovs_link", _TEXT, "", TakesEffect.NODE_ADD, "Network interface that the Open vSwitch bridge uses."),
        example="eth1",
    ),
    _of_nodes("ssh_port", _INT, 22, _AT_ONCE, "Port of the node's ssh daemon."),
    _of_nodes("cpu_speed", Type.FLOAT, 1.0, _CAPACITY, "Relative CPU speed, for placement."),
)
_STATES: Final[dict[Path, tuple[int, str, str]]] = {
    **{("hv_state", kind, name): row for kind in HYPERVISORS for name, row in HV_STATE.items()},
    **{("disk_state", "plain", "*", name): row for name, row in DISK_STATE.items()},
}
STATES: Final = tuple(
    _row(
        *(path, Type.MIB if unit == "MiB" else _INT, default, TakesEffect.NOTHING),
        f"{text} gpolicy's own capacity model uses it.",
        unit=unit,
        levels=ALL_LEVELS,
        minimum=0,
    )
    for path, (default, unit, text) in _STATES.items()
)


_DEFAULT_MINMAX: Final[Value] = [{"min": {**DEFAULT_MIN}, "max": {**DEFAULT_MAX}}]


def ipolicy() -> list[Parameter]:
    """Return the rows of the instance policy."""
    new, capacity = _NEW_INSTANCES, _CAPACITY
    pairs = (
        "The sizes that instances may have, biggest first, each with min and max. An instance is legal when it fits"
        " entirely inside at least one. The list is always replaced as a whole."
    )
    allowed = (
        "Disk templates that instances may use; each must be enabled on the cluster. hspace counts instances of the"
        " first."
    )
    vcpus = "Most virtual CPUs per physical CPU of a node."
    spindles = "Most instance spindle use per node spindle (spindle_count); ignored under exclusive storage."
    more = {"levels": CLUSTER_GROUP, "can_be_empty": False}
    kinds = {name: Type.SIZE if name in SPEC_SIZES else Type.INT for name in SPEC_PARAMETERS}
    std = "Standard instance for capacity estimates (hspace): {}."
    return [
        _row(("ipolicy", "minmax"), Type.MINMAX, _DEFAULT_MINMAX, new, pairs, **more),
        _row(("ipolicy", "disk-templates"), Type.LIST, [*DISK_TEMPLATES], new, allowed, **more, choices=DISK_TEMPLATES),
        _row(("ipolicy", "vcpu-ratio"), Type.FLOAT, 4.0, capacity, vcpus, **more),
        _row(("ipolicy", "spindle-ratio"), Type.FLOAT, 32.0, capacity, spindles, **more),
        *(
            _row(
                *(("ipolicy", "std", name), kinds[name], DEFAULT_MIN[name], capacity, std.format(text)),
                minimum=0,
                can_be_empty=False,
            )
            for name, text in SPEC_PARAMETERS.items()
        ),
    ]


_BACKEND: Final[dict[str, tuple[Type, Value, str]]] = {
    "minmem": (Type.SIZE, 128, "Memory that an instance always has."),
    "maxmem": (Type.SIZE, 128, "Memory that an instance may grow to."),
    "vcpus": (_INT, 1, "Virtual CPUs."),
    "auto_balance": (_YES_NO, True, "Let the allocator count the instance for redundancy."),
    "always_failover": (_YES_NO, False, "Fail over instead of migrating."),
    "spindle_use": (_INT, 1, "Number of spindles that the instance counts as."),
}
BEPARAMS: Final = tuple(
    _row(("beparams", name), kind, default, _NEW_INSTANCES, text, minimum=0 if name in BOUNDS else None)
    for name, (kind, default, text) in _BACKEND.items()
)
ALLOC_POLICY: Final = _row(
    *(("alloc_policy",), Type.CHOICE, "preferred", _CAPACITY),
    "How willingly the allocator places instances in this group; not inherited.",
    levels=frozenset({Level.GROUP}),
    choices=ALLOC_POLICIES,
    can_be_empty=False,
)
