"""Parameters of the cluster, its groups and nodes, but those of hypervisors.

Sources: partitioned Ganeti ("Constrained instance sizes"), resource model ("Policies", "Disk parameters", "Node
parameters"; hv_state and disk_state are its static resources).
"""

from __future__ import annotations

from typing import Any, Final

from gpolicy.ganeti import vocabulary as names
from gpolicy.ganeti.amounts import BOUNDS
from gpolicy.ganeti.vocabulary import CLUSTER, CLUSTER_GROUP, Level, Parameter, Path, Reach, TakesEffect, Type, Value


def _row(path: Path, kind: Type, default: Value, effect: TakesEffect, **more: Any) -> Parameter:
    """Return the row of a parameter; unless it is said, only the cluster has it."""
    unit, bound = "MiB" if kind in (Type.SIZE, Type.MIB) else "", BOUNDS.get(path[-1])
    more = {"levels": CLUSTER, "unit": unit, "maximum": bound.most if bound else None, **more}
    return Parameter(path=path, type=kind, default=default, takes_effect=effect, **more)


def _own(name: str, kind: Type, default: Value, effect: TakesEffect, **more: Any) -> Parameter:
    """Return the row of a parameter whose option, unless it is given, is `--` and its name."""
    option = f"--{name.replace('_', '-')}"
    return _row((name,), kind, default, effect, **{"option": option, **more})


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
        _own("enabled_disk_templates", words, ["drbd", "plain"], new, choices=names.DISK_TEMPLATES, can_be_empty=False),
        _own("enabled_hypervisors", words, ["xen-pvm"], new, choices=names.HYPERVISORS, can_be_empty=False),
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

NICPARAMS: Final = (
    _row(("nicparams", "mode"), Type.CHOICE, "bridged", _START, choices=_MODES),
    _row(("nicparams", "link"), _TEXT, "xen-br0", _START),
    _row(("nicparams", "vlan"), _TEXT, "", _START, example="100"),
)
DATA_COLLECTOR_PARAMETERS: Final = (
    *(_row(("enabled_data_collectors", name), _YES_NO, True, _AT_ONCE) for name in names.DATA_COLLECTORS),
    *(
        _row(("data_collector_interval", name), _INT, 5_000_000, _AT_ONCE, unit="µs", minimum=1)
        for name in names.DATA_COLLECTORS
    ),
)

_Row = tuple[Type, Value, str, TakesEffect]


_ACCESS: Final[_Row] = (Type.CHOICE, "kernelspace", "", _START)

_DISK_PARAMETERS: Final[dict[str, dict[str, _Row]]] = {
    "drbd": {
        "resync-rate": (_INT, 61440, "KiB/s", _ACTIVATION),
        "data-stripes": (_INT, 1, "", _NEW_DISKS),
        "meta-stripes": (_INT, 1, "", _NEW_DISKS),
        "disk-barriers": (_TEXT, "n", "", _ACTIVATION),
        "meta-barriers": (_YES_NO, False, "", _ACTIVATION),
        "metavg": (_TEXT, "xenvg", "", _NEW_DISKS),
        "disk-custom": (_TEXT, "", "", _ACTIVATION),
        "net-custom": (_TEXT, "", "", _ACTIVATION),
        "protocol": (_TEXT, "C", "", _ACTIVATION),
        "dynamic-resync": (_YES_NO, False, "", _ACTIVATION),
        "c-plan-ahead": (_INT, 20, "0.1 s", _ACTIVATION),
        "c-fill-target": (_INT, 0, "sectors", _ACTIVATION),
        "c-delay-target": (_INT, 1, "0.1 s", _ACTIVATION),
        "c-min-rate": (_INT, 4096, "KiB/s", _ACTIVATION),
        "c-max-rate": (_INT, 61440, "KiB/s", _ACTIVATION),
    },
    "plain": {"stripes": (_INT, 1, "", _NEW_DISKS)},
    "rbd": {
        "pool": (_TEXT, "rbd", "", _REDIRECTS),
        "access": _ACCESS,
        "user-id": (_TEXT, "", "", _REDIRECTS),
    },
    "ext": {"access": _ACCESS},
    "gluster": {
        "host": (_TEXT, "127.0.0.1", "", _REDIRECTS),
        "volume": (_TEXT, "gv0", "", _REDIRECTS),
        "port": (_INT, 24007, "", _REDIRECTS),
        "access": _ACCESS,
    },
}
_SINCE: Final = {("rbd", "user-id"): "3.2"}
"""The first release that has a parameter, of those that not all have: no release up to 3.1 has this one."""

_EXAMPLES: Final = {"disk-custom": "--on-io-error=detach", "net-custom": "--max-buffers=8000", "user-id": "ganeti"}


DISKPARAMS: Final = tuple(
    _row(
        *(("diskparams", template, name), kind, default, effect),
        unit=unit,
        choices=names.ACCESS_MODES if name == "access" else (),
        levels=CLUSTER_GROUP,
        since=_SINCE.get((template, name), ""),
        reach=Reach.ARGUMENTS if name.endswith("-custom") else None,
        example=_EXAMPLES.get(name),
    )
    for template, parameters in _DISK_PARAMETERS.items()
    for name, (kind, default, unit, effect) in parameters.items()
)


def _of_nodes(name: str, kind: Type, default: Value, effect: TakesEffect, **more: Any) -> Parameter:
    return _row(("ndparams", name), kind, default, effect, **{"levels": names.ALL_LEVELS, **more})


_OOB: Final = {"reach": Reach.PROGRAM, "example": "/usr/local/sbin/oob"}
NDPARAMS: Final = (
    _of_nodes("oob_program", _TEXT, "", _AT_ONCE, **_OOB),
    _of_nodes("spindle_count", _INT, 1, _CAPACITY),
    _of_nodes("exclusive_storage", _YES_NO, False, _NEW_DISKS, levels=CLUSTER_GROUP),
    _of_nodes("ovs", _YES_NO, False, TakesEffect.NODE_ADD),
    _of_nodes("ovs_name", _TEXT, "switch1", TakesEffect.NODE_ADD),
    _of_nodes("ovs_link", _TEXT, "", TakesEffect.NODE_ADD, example="eth1"),
    _of_nodes("ssh_port", _INT, 22, _AT_ONCE),
    _of_nodes("cpu_speed", Type.FLOAT, 1.0, _CAPACITY),
)
_STATES: Final[dict[Path, tuple[int, str]]] = {
    **{("hv_state", kind, name): row for kind in names.HYPERVISORS for name, row in names.HV_STATE.items()},
    **{("disk_state", "plain", "*", name): row for name, row in names.DISK_STATE.items()},
}
STATES: Final = tuple(
    _row(
        *(path, Type.MIB if unit == "MiB" else _INT, default, TakesEffect.NOTHING),
        unit=unit,
        levels=names.ALL_LEVELS,
        minimum=0,
    )
    for path, (default, unit) in _STATES.items()
)


_DEFAULT_MINMAX: Final[Value] = [{"min": {**names.DEFAULT_MIN}, "max": {**names.DEFAULT_MAX}}]


def ipolicy() -> list[Parameter]:
    """Return the rows of the instance policy."""
    new, capacity = _NEW_INSTANCES, _CAPACITY
    more = {"levels": CLUSTER_GROUP, "can_be_empty": False}
    kinds = {name: Type.SIZE if name in names.SPEC_SIZES else Type.INT for name in names.SPEC_PARAMETERS}
    return [
        _row(("ipolicy", "minmax"), Type.MINMAX, _DEFAULT_MINMAX, new, **more),
        _row(
            ("ipolicy", "disk-templates"), Type.LIST, [*names.DISK_TEMPLATES], new, **more, choices=names.DISK_TEMPLATES
        ),
        _row(("ipolicy", "vcpu-ratio"), Type.FLOAT, 4.0, capacity, **more),
        _row(("ipolicy", "spindle-ratio"), Type.FLOAT, 32.0, capacity, **more),
        *(
            _row(
                ("ipolicy", "std", name), kinds[name], names.DEFAULT_MIN[name], capacity, minimum=0, can_be_empty=False
            )
            for name in names.SPEC_PARAMETERS
        ),
    ]


_BACKEND: Final[dict[str, tuple[Type, Value]]] = {
    "minmem": (Type.SIZE, 128),
    "maxmem": (Type.SIZE, 128),
    "vcpus": (_INT, 1),
    "auto_balance": (_YES_NO, True),
    "always_failover": (_YES_NO, False),
    "spindle_use": (_INT, 1),
}
BEPARAMS: Final = tuple(
    _row(("beparams", name), kind, default, _NEW_INSTANCES, minimum=0 if name in BOUNDS else None)
    for name, (kind, default) in _BACKEND.items()
)
ALLOC_POLICY: Final = _row(
    *(("alloc_policy",), Type.CHOICE, "preferred", _CAPACITY),
    levels=frozenset({Level.GROUP}),
    choices=names.ALLOC_POLICIES,
    can_be_empty=False,
)
