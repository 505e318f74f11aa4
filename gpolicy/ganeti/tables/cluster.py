"""Parameters that only the cluster has."""

from __future__ import annotations

from gpolicy.ganeti.hypervisor_parameters import ADDED_IN, HYPERVISOR_PARAMETERS, NEW_DEFAULTS, REMOVED_IN
from gpolicy.ganeti.hypervisor_values import BOUNDS, CHOICES, FORMS_OF, NUMBERS
from gpolicy.ganeti.parameter import CLUSTER, Parameter, TakesEffect, Type, Value
from gpolicy.ganeti.vocabulary import DATA_COLLECTORS, DISK_TEMPLATES, HYPERVISORS


def _single(
    name: str,
    kind: Type,
    default: Value,
    description: str,
    *,
    option: str,
    effect: TakesEffect,
    **more: object,
) -> Parameter:
    return Parameter(
        path=(name,),
        type=kind,
        default=default,
        description=description,
        option=option,
        levels=CLUSTER,
        takes_effect=effect,
        **more,  # type: ignore[arg-type]
    )


def cluster() -> list[Parameter]:
    """Return the rows of parameters that have an option of their own."""
    at_once, new, job = TakesEffect.AT_ONCE, TakesEffect.NEW_INSTANCES, TakesEffect.NEXT_JOB
    text, yes_no, number = Type.STRING, Type.BOOL, Type.INT
    return [
        _single(
            "enabled_disk_templates",
            Type.LIST,
            ["drbd", "plain"],
            "Disk templates in use on this cluster; the first is the default of new instances.",
            option="--enabled-disk-templates",
            effect=new,
            choices=DISK_TEMPLATES,
            can_be_empty=False,
        ),
        _single(
            "enabled_hypervisors",
            Type.LIST,
            ["xen-pvm"],
            "Hypervisors in use; the first is the default of new instances.",
            option="--enabled-hypervisors",
            effect=new,
            choices=HYPERVISORS,
            can_be_empty=False,
        ),
        _single(
            "volume_group_name",
            text,
            "xenvg",
            "Volume group for plain and drbd disks, at least 20 GiB on every node; empty for none.",
            option="--vg-name",
            opcode="vg_name",
            effect=TakesEffect.NEW_DISKS,
        ),
        _single(
            "drbd_usermode_helper",
            text,
            "/bin/true",
            "Helper program of DRBD; must be what the kernel module uses on every node. Empty for none.",
            option="--drbd-usermode-helper",
            opcode="drbd_helper",
            effect=at_once,
        ),
        _single(
            "reserved_lvs",
            Type.LIST,
            [],
            "Regular expressions (whole name, vg/lv) of volumes that cluster verify is to ignore.",
            option="--reserved-lvs",
            effect=at_once,
        ),
        _single(
            "prealloc_wipe_disks",
            yes_no,
            False,
            "Wipe new disks.",
            option="--prealloc-wipe-disks",
            effect=new,
        ),
        _single(
            "candidate_pool_size",
            number,
            10,
            "Master candidates wanted. Raising it promotes nodes, lowering it demotes none.",
            option="--candidate-pool-size",
            effect=at_once,
            minimum=1,
        ),
        _single(
            "max_running_jobs",
            number,
            20,
            "Jobs run at once.",
            option="--max-running-jobs",
            effect=job,
            minimum=1,
        ),
        _single(
            "max_tracked_jobs",
            number,
            25,
            "Jobs watched at once.",
            option="--max-tracked-jobs",
            effect=job,
            minimum=1,
        ),
        _single(
            "use_external_mip_script",
            yes_no,
            False,
            "Use an external script to set up the master address.",
            option="--use-external-mip-script",
            effect=at_once,
        ),
        _single(
            "master_netdev",
            text,
            None,
            "Network device of the master address. A change takes the address down and up.",
            option="--master-netdev",
            effect=at_once,
            can_be_empty=False,
        ),
        _single(
            "master_netmask",
            number,
            None,
            "Netmask (prefix length) of the master address. A change takes the address down and up.",
            option="--master-netmask",
            effect=at_once,
            minimum=0,
        ),
        _single(
            "maintain_node_health",
            yes_no,
            False,
            "Let the watcher shut down instances and DRBD on nodes marked offline.",
            option="--maintain-node-health",
            effect=at_once,
        ),
        _single(
            "default_iallocator",
            text,
            "hail",
            "Allocator that places instances when none is named; empty for none.",
            option="--default-iallocator",
            effect=new,
        ),
        _single(
            "default_iallocator_params",
            Type.DICT,
            {},
            "Parameters of the default allocator; replaced as a whole.",
            option="--default-iallocator-params",
            effect=new,
        ),
        _single(
            "install_image",
            text,
            "",
            "Image for OS installs with untrusted scripts: absolute path or URL. Cannot be emptied again.",
            option="--install-image",
            effect=new,
        ),
        _single(
            "zeroing_image",
            text,
            "",
            "Image used to zero disks: absolute path or URL. Cannot be emptied again.",
            option="--zeroing-image",
            effect=at_once,
        ),
        _single(
            "file_storage_dir",
            text,
            None,
            "Directory of file disks; must be whitelisted on the nodes.",
            option="--file-storage-dir",
            effect=TakesEffect.NEW_DISKS,
        ),
        _single(
            "shared_file_storage_dir",
            text,
            None,
            "Directory of sharedfile disks; must be whitelisted on the nodes.",
            option="--shared-file-storage-dir",
            effect=TakesEffect.NEW_DISKS,
        ),
        _single(
            "compression_tools",
            Type.SET,
            ["gzip", "gzip-fast", "gzip-slow"],
            "Compression tools for instance moves; gzip is mandatory. Not settable through RAPI.",
            option="--compression-tools",
            effect=at_once,
            can_be_empty=False,
        ),
        _single(
            "enabled_user_shutdown",
            yes_no,
            False,
            "Tell a shutdown from inside the instance from a crash.",
            option="--user-shutdown",
            effect=at_once,
        ),
        _single(
            "mac_prefix",
            text,
            "aa:00:00",
            "First half of new MAC addresses.",
            option="--mac-prefix",
            effect=new,
        ),
        _single(
            "uid_pool",
            Type.UID_RANGES,
            [],
            "User ids for instance processes.",
            option="--uid-pool",
            effect=new,
        ),
        _single(
            "modify_etc_hosts",
            yes_no,
            True,
            "Let Ganeti edit /etc/hosts.",
            option="--modify-etc-hosts",
            effect=at_once,
        ),
        _single(
            "instance_communication_network",
            text,
            "",
            "Network for communication with instances; empty for none.",
            option="--instance-communication-network",
            effect=new,
        ),
    ]


def hvparams() -> list[Parameter]:
    """Return the rows of the cluster-wide hypervisor parameters."""
    return [
        Parameter(
            path=("hvparams", hypervisor, name),
            type=_hypervisor_type(hypervisor, name, kind),
            choices=CHOICES.get((hypervisor, name), ()),
            numbers=NUMBERS.get((hypervisor, name), ()),
            minimum=BOUNDS.get((hypervisor, name), (None, None))[0],
            maximum=BOUNDS.get((hypervisor, name), (None, None))[1],
            form=FORMS_OF.get((hypervisor, name), ""),
            default=default,
            levels=CLUSTER,
            takes_effect=TakesEffect.INSTANCE_START,
            since=ADDED_IN.get(name, ""),
            until=REMOVED_IN.get(name, ""),
            new_default=NEW_DEFAULTS.get((hypervisor, name)),
            description=f"Hypervisor parameter {name} of {hypervisor}: default of instances that do not set it.",
        )
        for hypervisor, parameters in HYPERVISOR_PARAMETERS.items()
        for name, (kind, default) in parameters.items()
    ]


def _hypervisor_type(hypervisor: str, name: str, kind: str) -> Type:
    if (hypervisor, name) in CHOICES:
        return Type.CHOICE
    return Type.STRING if kind == "maybe-string" else Type(kind)


def nicparams() -> list[Parameter]:
    """Return the rows of the network interface defaults."""
    table: tuple[tuple[str, Value, tuple[str, ...], str], ...] = (
        ("mode", "bridged", ("bridged", "routed", "openvswitch"), "Mode of network interfaces."),
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
            description=f"{text} Default of instances that do not say otherwise.",
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
