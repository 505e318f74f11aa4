"""The rows of the table of parameters: of the cluster, its groups and nodes; of hypervisors, in Ganeti 3.0.

Sources: partitioned Ganeti ("Constrained instance sizes"), resource model ("Policies", "Disk parameters", "Node
parameters"; hv_state and disk_state are its static resources). For hypervisors, names and defaults are those of the
constants of the released 3.0.2 modules. What Ganeti takes was seen by giving the hypervisors' own checks of 3.0.2
every word of its constants and many others (`tests/data/hypervisors/` keeps the answers); gnt-instance(8) and the
release notes for 3.1. Where nothing is said, a parameter takes any value of the type of its default. What depends on
several parameters is for rules.
"""

from typing import Any, Final

from gpolicy.ganeti import vocabulary as forms
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
        _own("enabled_disk_templates", words, ["drbd", "plain"], new, choices=forms.DISK_TEMPLATES, can_be_empty=False),
        _own("enabled_hypervisors", words, ["xen-pvm"], new, choices=forms.HYPERVISORS, can_be_empty=False),
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


NICPARAMS: Final = (
    _row(("nicparams", "mode"), Type.CHOICE, "bridged", _START, choices=("bridged", "routed", "openvswitch", "ext")),
    _row(("nicparams", "link"), _TEXT, "xen-br0", _START),
    _row(("nicparams", "vlan"), _TEXT, "", _START, example="100"),
)
DATA_COLLECTOR_PARAMETERS: Final = (
    *(_row(("enabled_data_collectors", name), _YES_NO, True, _AT_ONCE) for name in forms.DATA_COLLECTORS),
    *(
        _row(("data_collector_interval", name), _INT, 5_000_000, _AT_ONCE, unit="µs", minimum=1)
        for name in forms.DATA_COLLECTORS
    ),
)

_ParameterRow = tuple[Type, Value, str, TakesEffect]


_ACCESS: Final[_ParameterRow] = (Type.CHOICE, "kernelspace", "", _START)

_DISK_PARAMETERS: Final[dict[str, dict[str, _ParameterRow]]] = {
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
    "rbd": {"pool": (_TEXT, "rbd", "", _REDIRECTS), "access": _ACCESS, "user-id": (_TEXT, "", "", _REDIRECTS)},
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
        choices=forms.ACCESS_MODES if name == "access" else (),
        levels=CLUSTER_GROUP,
        since=_SINCE.get((template, name), ""),
        reach=Reach.ARGUMENTS if name.endswith("-custom") else None,
        example=_EXAMPLES.get(name),
    )
    for template, parameters in _DISK_PARAMETERS.items()
    for name, (kind, default, unit, effect) in parameters.items()
)


def _of_nodes(name: str, kind: Type, default: Value, effect: TakesEffect, **more: Any) -> Parameter:
    return _row(("ndparams", name), kind, default, effect, **{"levels": forms.ALL_LEVELS, **more})


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
    **{("hv_state", kind, name): row for kind in forms.HYPERVISORS for name, row in forms.HV_STATE.items()},
    **{("disk_state", "plain", "*", name): row for name, row in forms.DISK_STATE.items()},
}
STATES: Final = tuple(
    _row(
        *(path, Type.MIB if unit == "MiB" else _INT, default, TakesEffect.NOTHING),
        unit=unit,
        levels=forms.ALL_LEVELS,
        minimum=0,
    )
    for path, (default, unit) in _STATES.items()
)

_DEFAULT_MINMAX: Final[Value] = [{"min": {**forms.DEFAULT_MIN}, "max": {**forms.DEFAULT_MAX}}]


def ipolicy() -> list[Parameter]:
    """Return the rows of the instance policy."""
    new, capacity = _NEW_INSTANCES, _CAPACITY
    more = {"levels": CLUSTER_GROUP, "can_be_empty": False}
    kinds = {name: Type.SIZE if name in forms.SPEC_SIZES else Type.INT for name in forms.SPEC_PARAMETERS}
    return [
        _row(("ipolicy", "minmax"), Type.MINMAX, _DEFAULT_MINMAX, new, **more),
        _row(
            ("ipolicy", "disk-templates"), Type.LIST, [*forms.DISK_TEMPLATES], new, **more, choices=forms.DISK_TEMPLATES
        ),
        _row(("ipolicy", "vcpu-ratio"), Type.FLOAT, 4.0, capacity, **more),
        _row(("ipolicy", "spindle-ratio"), Type.FLOAT, 32.0, capacity, **more),
        *(
            _row(
                ("ipolicy", "std", name), kinds[name], forms.DEFAULT_MIN[name], capacity, minimum=0, can_be_empty=False
            )
            for name in forms.SPEC_PARAMETERS
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
    choices=forms.ALLOC_POLICIES,
    can_be_empty=False,
)

Default = bool | int | str


def _hv(default: Default, **more: Any) -> dict[str, Any]:
    """Return a parameter of a hypervisor of which there is more to say than its default: fields of `Parameter`."""
    return {"default": default, **more}


_KVM_DISKS: Final = (
    *("paravirtual", "ide", "scsi", "scsi-hd", "scsi-block", "scsi-generic", "scsi-cd", "sd", "mtd", "pflash"),
)
_LOSSY: Final = ("auto", "always", "never")
_MIGRATION: Final = ("live", "non-live")
_REBOOT: Final = ("reboot", "exit")
_XEN_COMMANDS: Final = ("xl", "xm")
_KVM_NICS: Final = (
    *("paravirtual", "e1000", "rtl8139", "pcnet", "i82551", "i82557b", "i82559er", "ne2k_isa", "ne2k_pci"),
)
_LAST_PORT: Final = 65534  # Ganeti leaves 65535 out

_ROWS: Final[dict[str, dict[str, Default | dict[str, Any]]]] = {
    "chroot": {"init_script": _hv("/ganeti-chroot", form=forms.PATH, reach=Reach.PROGRAM)},
    "fake": {"migration_mode": _hv("live", choices=_MIGRATION)},
    "kvm": {
        "acpi": True,
        "boot_order": _hv("disk", choices=("disk", "cdrom", "floppy", "network")),
        "cdrom2_image_path": _hv("", form=forms.PATH_URL_OR_NOTHING, reach=Reach.FILE, example="/srv/iso/drivers.iso"),
        "cdrom_disk_type": _hv("", choices=("", *_KVM_DISKS)),
        "cdrom_image_path": _hv("", form=forms.PATH_URL_OR_NOTHING, reach=Reach.FILE, example="/srv/iso/debian.iso"),
        "cpu_cores": _hv(0, minimum=0),
        "cpu_mask": _hv("all", form=forms.CPUS_PER_VCPU, example="0-3"),
        "cpu_sockets": _hv(0, minimum=0),
        "cpu_threads": _hv(0, minimum=0),
        "cpu_type": _hv("", example="host"),
        "disk_aio": _hv("threads", choices=("", "threads", "native", "io_uring")),
        "disk_cache": _hv("default", choices=("default", "none", "writeback", "writethrough")),
        "disk_discard": _hv(
            "default", choices=("", "default", "ignore", "unmap"), since="2.16", new_default=("3.1", "ignore")
        ),
        "disk_type": _hv("paravirtual", choices=_KVM_DISKS),
        "floppy_image_path": _hv("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/srv/images/floppy.img"),
        "initrd_path": _hv("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/boot/initrd.img"),
        "kernel_args": "ro",
        "kernel_path": _hv("/boot/vmlinuz-3-kvmU", form=forms.PATH_OR_NOTHING, reach=Reach.FILE),
        "keymap": _hv("", example="de"),
        "kvm_extra": _hv("", reach=Reach.ARGUMENTS, example="-no-hpet"),
        "kvm_flag": _hv("", choices=("", "enabled", "disabled")),
        "kvm_path": _hv("/usr/bin/kvm", form=forms.PATH, reach=Reach.PROGRAM),
        "kvm_pci_reservations": _hv(12, minimum=0, maximum=32, since="2.16"),
        "machine_version": _hv("", example="pc-i440fx-7.2"),
        "mem_path": _hv("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/dev/hugepages"),
        "migration_bandwidth": _hv(32, minimum=0),
        "migration_caps": _hv("", example="xbzrle"),
        "migration_downtime": _hv(30, minimum=0),
        "migration_mode": _hv("live", choices=_MIGRATION),
        "migration_port": _hv(8102, minimum=1, maximum=_LAST_PORT),
        "nic_type": _hv("paravirtual", choices=_KVM_NICS),
        "reboot_behavior": _hv("reboot", choices=_REBOOT),
        "root_path": "/dev/vda1",
        "scsi_controller_type": _hv("lsi", choices=("lsi", "megasas", "virtio-scsi-pci", "dc390"), since="2.16"),
        "security_domain": _hv("", example="kvm"),
        "security_model": _hv("none", choices=("none", "user", "pool")),
        "serial_console": True,
        "serial_speed": 38400,
        "soundhw": _hv("", example="ac97"),
        "spice_bind": _hv("", example="127.0.0.1"),
        "spice_image_compression": _hv("", choices=("", "auto_glz", "auto_lz", "quic", "glz", "lz", "off")),
        "spice_ip_version": _hv(0, numbers=(0, 4, 6)),
        "spice_jpeg_wan_compression": _hv("", choices=("", *_LOSSY)),
        "spice_password_file": _hv(
            "", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/etc/ganeti/spice-password"
        ),
        "spice_playback_compression": True,
        "spice_streaming_video": _hv("", choices=("", "filter", "all", "off")),
        "spice_tls_ciphers": "HIGH:-DES:-3DES:-EXPORT:-DH",
        "spice_use_tls": False,
        "spice_use_vdagent": True,
        "spice_zlib_glz_wan_compression": _hv("", choices=("", *_LOSSY)),
        "usb_devices": _hv("", reach=Reach.ARGUMENTS, example="tablet"),
        "usb_mouse": _hv("", choices=("", "mouse", "tablet")),
        "use_chroot": False,
        "use_guest_agent": _hv(False, since="2.16"),
        "use_localtime": False,
        "user_shutdown": False,
        "vga": _hv("", example="std"),
        "vhost_net": _hv(False, new_default=("3.1", True)),
        "virtio_net_queues": _hv(1, minimum=1, maximum=8, new_maximum=("3.2", 32)),
        "vnc_bind_address": _hv("", example="127.0.0.1"),
        "vnc_password_file": _hv("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/etc/ganeti/vnc-password"),
        "vnc_tls": False,
        "vnc_x509_path": _hv("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/etc/ganeti/vnc"),
        "vnc_x509_verify": False,
        "vnet_hdr": True,
    },
    "lxc": {
        "cpu_mask": _hv("", form=forms.CPUS_OR_NOTHING, example="0-3"),
        "devices": _hv(
            "c 1:3 rw,c 1:5 rw,c 1:7 rw,c 1:8 rw,c 1:9 rw,c 1:10 rw,c 5:0 rw,c 5:1 rw,c 5:2 rw,c 136:* rw",
            reach=Reach.ARGUMENTS,
        ),
        "drop_capabilities": "mac_override,sys_boot,sys_module,sys_time,sys_admin",
        "extra_cgroups": _hv("", reach=Reach.ARGUMENTS, example="hugetlb"),
        "extra_config": _hv("", reach=Reach.ARGUMENTS, example="lxc.loglevel=2"),
        "num_ttys": _hv(6, minimum=0),
        "startup_timeout": _hv(30, minimum=0),
    },
    "xen-hvm": {
        "acpi": True,
        "blockdev_prefix": "hd",
        "boot_order": _hv("cd", form=forms.BOOT_LETTERS),
        "cdrom_image_path": _hv("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/srv/iso/debian.iso"),
        "cpu_cap": 0,
        "cpu_mask": _hv("all", form=forms.CPUS_PER_VCPU, example="0-3"),
        "cpu_weight": _hv(256, minimum=1, maximum=_LAST_PORT),
        "cpuid": _hv("", example="host,tm=0"),
        "device_model": _hv("/usr/lib/xen/bin/qemu-dm", form=forms.PATH, reach=Reach.PROGRAM),
        "disk_type": _hv("paravirtual", choices=("paravirtual", "ioemu")),
        "kernel_path": _hv("/usr/lib/xen/boot/hvmloader", form=forms.PATH, reach=Reach.FILE),
        "migration_mode": _hv("non-live", choices=_MIGRATION),
        "migration_port": _hv(8002, minimum=1, maximum=_LAST_PORT),
        "nic_type": _hv("rtl8139", choices=("paravirtual", "e1000", "rtl8139", "ne2k_isa", "ne2k_pci")),
        "pae": True,
        "pci_pass": _hv("", reach=Reach.ARGUMENTS, example="01:00.0"),
        "reboot_behavior": _hv("reboot", choices=_REBOOT),
        "soundhw": _hv("", example="ac97"),
        "use_localtime": False,
        "vif_script": _hv("", form=forms.PATH_OR_NOTHING, reach=Reach.PROGRAM, example="/etc/xen/scripts/vif-bridge"),
        "vif_type": _hv("ioemu", choices=("", "ioemu", "vif")),
        "viridian": False,
        "vnc_bind_address": _hv("0.0.0.0", form=forms.IPV4_OR_NOTHING, example="127.0.0.1"),  # noqa: S104 (Ganeti's default)
        "vnc_password_file": _hv(
            "/etc/ganeti/vnc-cluster-password", form=forms.PATH, reach=Reach.FILE, example="/etc/ganeti/vnc-password"
        ),
        "xen_cmd": _hv("xm", choices=_XEN_COMMANDS, until="3.1", reach=Reach.PROGRAM),
    },
    "xen-pvm": {
        "blockdev_prefix": "sd",
        "bootloader_args": _hv("", reach=Reach.ARGUMENTS, example="--quiet"),
        "bootloader_path": _hv("", form=forms.PATH_OR_NOTHING, reach=Reach.PROGRAM, example="/usr/lib/xen/bin/pygrub"),
        "cpu_cap": _hv(0, minimum=0),
        "cpu_mask": _hv("all", form=forms.CPUS_PER_VCPU, example="0-3"),
        "cpu_weight": _hv(256, minimum=1, maximum=65535),
        "cpuid": _hv("", example="host,tm=0"),
        "initrd_path": _hv("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/boot/initrd.img"),
        "kernel_args": "ro",
        "kernel_path": _hv("/boot/vmlinuz-3-xenU", form=forms.PATH, reach=Reach.FILE),
        "migration_mode": _hv("live", choices=_MIGRATION),
        "migration_port": _hv(8002, minimum=1, maximum=_LAST_PORT),
        "reboot_behavior": _hv("reboot", choices=_REBOOT),
        "root_path": "/dev/xvda1",
        "soundhw": _hv("", example="ac97"),
        "use_bootloader": False,
        "vif_script": _hv("", form=forms.PATH_OR_NOTHING, reach=Reach.PROGRAM, example="/etc/xen/scripts/vif-bridge"),
        "xen_cmd": _hv("xm", choices=_XEN_COMMANDS, until="3.1", reach=Reach.PROGRAM),
    },
}
"""By hypervisor. `root_path` does not reach root on a node: it names a device inside the instance."""

SERIAL_SPEEDS: Final = (
    *(75, 110, 300, 600, 1200, 1800, 2400, 4800, 9600, 14400, 19200, 28800, 38400, 57600, 115200),
    *(230400, 345600, 460800),
)
"""What serial_speed of kvm may be where there is a serial console."""


def _parameter(hypervisor: str, name: str, row: dict[str, Any]) -> Parameter:
    types = {bool: Type.BOOL, int: Type.INT, str: Type.STRING}
    return Parameter(
        path=("hvparams", hypervisor, name),
        type=Type.CHOICE if "choices" in row else types[type(row["default"])],
        levels=CLUSTER,
        takes_effect=TakesEffect.INSTANCE_START,
        **row,
    )


HVPARAMS: Final = tuple(
    _parameter(hypervisor, name, row if isinstance(row, dict) else _hv(row))
    for hypervisor, rows in _ROWS.items()
    for name, row in rows.items()
)
