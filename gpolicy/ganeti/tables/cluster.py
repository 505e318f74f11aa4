"""Parameters that only the cluster has."""

from __future__ import annotations

from typing import Any, Final

from gpolicy.ganeti.parameter import CLUSTER, Parameter, Reach, TakesEffect, Type, Value
from gpolicy.ganeti.vocabulary import DATA_COLLECTORS, DISK_TEMPLATES, HYPERVISORS

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


def _own(name: str, kind: Type, default: Value, effect: TakesEffect, **more: Any) -> Parameter:
    """Return the row of a parameter whose option, unless it is given, is `--` and its name."""
    return Parameter(
        path=(name,),
        type=kind,
        default=default,
        takes_effect=effect,
        description=_MEANINGS[name],
        levels=CLUSTER,
        **{"option": f"--{name.replace('_', '-')}", **more},
    )


def cluster() -> list[Parameter]:
    """Return the rows of the parameters that have an option of their own."""
    now, new = TakesEffect.AT_ONCE, TakesEffect.NEW_INSTANCES
    job, disks = TakesEffect.NEXT_JOB, TakesEffect.NEW_DISKS
    text, yes_no, number, words = Type.STRING, Type.BOOL, Type.INT, Type.LIST
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


def nicparams() -> list[Parameter]:
    """Return the rows of the network interface defaults."""
    table: tuple[tuple[str, Value, tuple[str, ...], str], ...] = (
        ("mode", "bridged", ("bridged", "routed", "openvswitch", "ext"), "Mode of network interfaces."),
        ("link", "xen-br0", (), "Bridge, routing table or switch of network interfaces."),
        ("vlan", "", (), "VLAN of network interfaces (Open vSwitch)."),
    )
    return [
        Parameter(
            path=("nicparams", name),
            type=Type.CHOICE if choices else Type.STRING,
            choices=choices,
            default=default,
            levels=CLUSTER,
            takes_effect=TakesEffect.INSTANCE_START,
            example="100" if name == "vlan" else None,
            description=text,
        )
        for name, default, choices, text in table
    ]


def data_collectors() -> list[Parameter]:
    """Return the rows of the monitoring daemon's collectors."""
    about_all: dict[str, Any] = {"levels": CLUSTER, "takes_effect": TakesEffect.AT_ONCE}
    switch: dict[str, Any] = {"type": Type.BOOL, "default": True, **about_all}
    interval: dict[str, Any] = {"type": Type.INT, "unit": "µs", "default": 5_000_000, "minimum": 1, **about_all}
    run = "Run the monitoring daemon's collector {}."
    every = "Interval of the collector {}. Ganeti 3.0 and later can set it through RAPI only."
    return [
        Parameter(path=(family, name), description=text.format(name), **more)
        for family, text, more in (
            ("enabled_data_collectors", run, switch),
            ("data_collector_interval", every, interval),
        )
        for name in DATA_COLLECTORS
    ]
