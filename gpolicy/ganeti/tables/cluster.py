"""Parameters that only the cluster has."""

from __future__ import annotations

from typing import Any

from gpolicy.ganeti.parameter import CLUSTER, Parameter, Reach, TakesEffect, Type, Value
from gpolicy.ganeti.vocabulary import DATA_COLLECTORS, DISK_TEMPLATES, HYPERVISORS


def _own(name: str, kind: Type, default: Value, effect: TakesEffect, description: str, **more: Any) -> Parameter:
    """Return the row of a parameter whose option, unless it is given, is `--` and its name."""
    return Parameter(
        path=(name,),
        type=kind,
        default=default,
        takes_effect=effect,
        description=description,
        levels=CLUSTER,
        **{"option": f"--{name.replace('_', '-')}", **more},
    )


def cluster() -> list[Parameter]:
    """Return the rows of the parameters that have an option of their own."""
    at_once, new, job, disks = (
        TakesEffect.AT_ONCE,
        TakesEffect.NEW_INSTANCES,
        TakesEffect.NEXT_JOB,
        TakesEffect.NEW_DISKS,
    )
    text, yes_no, number = Type.STRING, Type.BOOL, Type.INT
    return [
        _own(
            "enabled_disk_templates",
            Type.LIST,
            ["drbd", "plain"],
            new,
            "Disk templates in use on this cluster; the first is the default of new instances.",
            choices=DISK_TEMPLATES,
            can_be_empty=False,
        ),
        _own(
            "enabled_hypervisors",
            Type.LIST,
            ["xen-pvm"],
            new,
            "Hypervisors in use; the first is the default of new instances.",
            choices=HYPERVISORS,
            can_be_empty=False,
        ),
        _own(
            "volume_group_name",
            text,
            "xenvg",
            disks,
            "Volume group for plain and drbd disks, at least 20 GiB on every node; empty for none.",
            option="--vg-name",
            opcode="vg_name",
        ),
        _own(
            "drbd_usermode_helper",
            text,
            "/bin/true",
            at_once,
            "Helper program of DRBD; must be what the kernel module uses on every node. Empty for none.",
            opcode="drbd_helper",
            reach=Reach.PROGRAM,
        ),
        _own(
            "reserved_lvs",
            Type.LIST,
            [],
            at_once,
            "Regular expressions (whole name, vg/lv) of volumes that gnt-cluster verify ignores.",
            example=["xenvg/root", "xenvg/swap"],
        ),
        _own("prealloc_wipe_disks", yes_no, False, new, "Wipe new disks."),
        _own(
            "candidate_pool_size",
            number,
            10,
            at_once,
            "Wanted number of master candidates. Raising it promotes nodes, lowering it demotes none.",
            minimum=1,
        ),
        _own("max_running_jobs", number, 20, job, "Most jobs that run at once.", minimum=1),
        _own("max_tracked_jobs", number, 25, job, "Most jobs that Ganeti watches at once.", minimum=1),
        _own(
            "use_external_mip_script",
            yes_no,
            False,
            at_once,
            "Use an external script to set up the master address.",
            reach=Reach.PROGRAM,
        ),
        _own(
            "master_netdev",
            text,
            None,
            at_once,
            "Network device of the master address. A change takes the address down and up.",
            can_be_empty=False,
            example="eth0",
        ),
        _own(
            "master_netmask",
            number,
            None,
            at_once,
            "Netmask (prefix length) of the master address. A change takes the address down and up.",
            minimum=0,
            example=32,
        ),
        _own(
            "maintain_node_health",
            yes_no,
            False,
            at_once,
            "Let the watcher shut down instances and DRBD on nodes marked offline.",
        ),
        _own(
            "default_iallocator",
            text,
            "hail",
            new,
            "Allocator that places instances when none is named; empty for none.",
            reach=Reach.PROGRAM,
        ),
        _own(
            "default_iallocator_params",
            Type.DICT,
            {},
            new,
            "Options of the allocator, whichever runs; null for one without a value. Replaced as a whole.",
            reach=Reach.ARGUMENTS,
            example={"no-capacity-checks": None, "static-kvm-node-memory": "4096"},
        ),
        _own(
            "install_image",
            text,
            "",
            new,
            "Image for OS installs with untrusted scripts: absolute path or URL. Cannot be emptied again.",
            reach=Reach.FILE,
            example="/srv/images/install.img",
        ),
        _own(
            "zeroing_image",
            text,
            "",
            at_once,
            "Image used to zero disks: absolute path or URL. Cannot be emptied again.",
            reach=Reach.FILE,
            example="/srv/images/zero.img",
        ),
        _own(
            "file_storage_dir",
            text,
            None,
            disks,
            "Directory of file disks; must be whitelisted on the nodes.",
            reach=Reach.FILE,
            example="/srv/ganeti/file-storage",
        ),
        _own(
            "shared_file_storage_dir",
            text,
            None,
            disks,
            "Directory of sharedfile disks; must be whitelisted on the nodes.",
            reach=Reach.FILE,
            example="/srv/ganeti/shared-file-storage",
        ),
        _own(
            "compression_tools",
            Type.SET,
            ["gzip", "gzip-fast", "gzip-slow"],
            at_once,
            "Compression tools for instance moves; gzip is mandatory. Not settable through RAPI.",
            can_be_empty=False,
            reach=Reach.PROGRAM,
        ),
        _own(
            "enabled_user_shutdown",
            yes_no,
            False,
            at_once,
            "Distinguish a shutdown from inside the instance from a crash.",
            option="--user-shutdown",
        ),
        _own("mac_prefix", text, "aa:00:00", new, "First half of new MAC addresses."),
        _own("uid_pool", Type.UID_RANGES, [], new, "User IDs for instance processes.", example=["20000-20099"]),
        _own("modify_etc_hosts", yes_no, True, at_once, "Let Ganeti edit /etc/hosts."),
        _own(
            "instance_communication_network",
            text,
            "",
            new,
            "Network for communication with instances; empty for none.",
            example="gnt-com",
        ),
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
    return [
        Parameter(
            path=("enabled_data_collectors", name),
            type=Type.BOOL,
            default=True,
            levels=CLUSTER,
            takes_effect=TakesEffect.AT_ONCE,
            description=f"Run the monitoring daemon's collector {name}.",
        )
        for name in DATA_COLLECTORS
    ] + [
        Parameter(
            path=("data_collector_interval", name),
            type=Type.INT,
            unit="µs",
            default=5_000_000,
            minimum=1,
            levels=CLUSTER,
            takes_effect=TakesEffect.AT_ONCE,
            description=f"Interval of the collector {name}. Ganeti 3.0 and later can set it through RAPI only.",
        )
        for name in DATA_COLLECTORS
    ]
