"""Hypervisor parameters of Ganeti 3.0: their built-in defaults, and the values that Ganeti takes.

Names and defaults are those of the constants of the released 3.0.2 modules. What Ganeti takes was seen by giving the
hypervisors' own checks of 3.0.2 every word of its constants and many others (`tests/data/hypervisors/` keeps the
answers); gnt-instance(8) and the release notes for 3.1. Where nothing is said, a parameter takes any value of the type
of its default. What depends on several parameters is for rules.
"""

from __future__ import annotations

from typing import Any, Final

from gpolicy.ganeti import vocabulary as forms
from gpolicy.ganeti.vocabulary import CLUSTER, Parameter, Reach, TakesEffect, Type

Default = bool | int | str


def _row(default: Default, **more: Any) -> dict[str, Any]:
    """Return a parameter of which there is more to say than its default: fields of `Parameter`."""
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
    "chroot": {"init_script": _row("/ganeti-chroot", form=forms.PATH, reach=Reach.PROGRAM)},
    "fake": {"migration_mode": _row("live", choices=_MIGRATION)},
    "kvm": {
        "acpi": True,
        "boot_order": _row("disk", choices=("disk", "cdrom", "floppy", "network")),
        "cdrom2_image_path": _row("", form=forms.PATH_URL_OR_NOTHING, reach=Reach.FILE, example="/srv/iso/drivers.iso"),
        "cdrom_disk_type": _row("", choices=("", *_KVM_DISKS)),
        "cdrom_image_path": _row("", form=forms.PATH_URL_OR_NOTHING, reach=Reach.FILE, example="/srv/iso/debian.iso"),
        "cpu_cores": _row(0, minimum=0),
        "cpu_mask": _row("all", form=forms.CPUS_PER_VCPU, example="0-3"),
        "cpu_sockets": _row(0, minimum=0),
        "cpu_threads": _row(0, minimum=0),
        "cpu_type": _row("", example="host"),
        "disk_aio": _row("threads", choices=("", "threads", "native", "io_uring")),
        "disk_cache": _row("default", choices=("default", "none", "writeback", "writethrough")),
        "disk_discard": _row(
            "default", choices=("", "default", "ignore", "unmap"), since="2.16", new_default=("3.1", "ignore")
        ),
        "disk_type": _row("paravirtual", choices=_KVM_DISKS),
        "floppy_image_path": _row("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/srv/images/floppy.img"),
        "initrd_path": _row("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/boot/initrd.img"),
        "kernel_args": "ro",
        "kernel_path": _row("/boot/vmlinuz-3-kvmU", form=forms.PATH_OR_NOTHING, reach=Reach.FILE),
        "keymap": _row("", example="de"),
        "kvm_extra": _row("", reach=Reach.ARGUMENTS, example="-no-hpet"),
        "kvm_flag": _row("", choices=("", "enabled", "disabled")),
        "kvm_path": _row("/usr/bin/kvm", form=forms.PATH, reach=Reach.PROGRAM),
        "kvm_pci_reservations": _row(12, minimum=0, maximum=32, since="2.16"),
        "machine_version": _row("", example="pc-i440fx-7.2"),
        "mem_path": _row("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/dev/hugepages"),
        "migration_bandwidth": _row(32, minimum=0),
        "migration_caps": _row("", example="xbzrle"),
        "migration_downtime": _row(30, minimum=0),
        "migration_mode": _row("live", choices=_MIGRATION),
        "migration_port": _row(8102, minimum=1, maximum=_LAST_PORT),
        "nic_type": _row("paravirtual", choices=_KVM_NICS),
        "reboot_behavior": _row("reboot", choices=_REBOOT),
        "root_path": "/dev/vda1",
        "scsi_controller_type": _row("lsi", choices=("lsi", "megasas", "virtio-scsi-pci", "dc390"), since="2.16"),
        "security_domain": _row("", example="kvm"),
        "security_model": _row("none", choices=("none", "user", "pool")),
        "serial_console": True,
        "serial_speed": 38400,
        "soundhw": _row("", example="ac97"),
        "spice_bind": _row("", example="127.0.0.1"),
        "spice_image_compression": _row("", choices=("", "auto_glz", "auto_lz", "quic", "glz", "lz", "off")),
        "spice_ip_version": _row(0, numbers=(0, 4, 6)),
        "spice_jpeg_wan_compression": _row("", choices=("", *_LOSSY)),
        "spice_password_file": _row(
            "", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/etc/ganeti/spice-password"
        ),
        "spice_playback_compression": True,
        "spice_streaming_video": _row("", choices=("", "filter", "all", "off")),
        "spice_tls_ciphers": "HIGH:-DES:-3DES:-EXPORT:-DH",
        "spice_use_tls": False,
        "spice_use_vdagent": True,
        "spice_zlib_glz_wan_compression": _row("", choices=("", *_LOSSY)),
        "usb_devices": _row("", reach=Reach.ARGUMENTS, example="tablet"),
        "usb_mouse": _row("", choices=("", "mouse", "tablet")),
        "use_chroot": False,
        "use_guest_agent": _row(False, since="2.16"),
        "use_localtime": False,
        "user_shutdown": False,
        "vga": _row("", example="std"),
        "vhost_net": _row(False, new_default=("3.1", True)),
        "virtio_net_queues": _row(1, minimum=1, maximum=8, new_maximum=("3.2", 32)),
        "vnc_bind_address": _row("", example="127.0.0.1"),
        "vnc_password_file": _row("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/etc/ganeti/vnc-password"),
        "vnc_tls": False,
        "vnc_x509_path": _row("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/etc/ganeti/vnc"),
        "vnc_x509_verify": False,
        "vnet_hdr": True,
    },
    "lxc": {
        "cpu_mask": _row("", form=forms.CPUS_OR_NOTHING, example="0-3"),
        "devices": _row(
            "c 1:3 rw,c 1:5 rw,c 1:7 rw,c 1:8 rw,c 1:9 rw,c 1:10 rw,c 5:0 rw,c 5:1 rw,c 5:2 rw,c 136:* rw",
            reach=Reach.ARGUMENTS,
        ),
        "drop_capabilities": "mac_override,sys_boot,sys_module,sys_time,sys_admin",
        "extra_cgroups": _row("", reach=Reach.ARGUMENTS, example="hugetlb"),
        "extra_config": _row("", reach=Reach.ARGUMENTS, example="lxc.loglevel=2"),
        "num_ttys": _row(6, minimum=0),
        "startup_timeout": _row(30, minimum=0),
    },
    "xen-hvm": {
        "acpi": True,
        "blockdev_prefix": "hd",
        "boot_order": _row("cd", form=forms.BOOT_LETTERS),
        "cdrom_image_path": _row("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/srv/iso/debian.iso"),
        "cpu_cap": 0,
        "cpu_mask": _row("all", form=forms.CPUS_PER_VCPU, example="0-3"),
        "cpu_weight": _row(256, minimum=1, maximum=_LAST_PORT),
        "cpuid": _row("", example="host,tm=0"),
        "device_model": _row("/usr/lib/xen/bin/qemu-dm", form=forms.PATH, reach=Reach.PROGRAM),
        "disk_type": _row("paravirtual", choices=("paravirtual", "ioemu")),
        "kernel_path": _row("/usr/lib/xen/boot/hvmloader", form=forms.PATH, reach=Reach.FILE),
        "migration_mode": _row("non-live", choices=_MIGRATION),
        "migration_port": _row(8002, minimum=1, maximum=_LAST_PORT),
        "nic_type": _row("rtl8139", choices=("paravirtual", "e1000", "rtl8139", "ne2k_isa", "ne2k_pci")),
        "pae": True,
        "pci_pass": _row("", reach=Reach.ARGUMENTS, example="01:00.0"),
        "reboot_behavior": _row("reboot", choices=_REBOOT),
        "soundhw": _row("", example="ac97"),
        "use_localtime": False,
        "vif_script": _row("", form=forms.PATH_OR_NOTHING, reach=Reach.PROGRAM, example="/etc/xen/scripts/vif-bridge"),
        "vif_type": _row("ioemu", choices=("", "ioemu", "vif")),
        "viridian": False,
        "vnc_bind_address": _row("0.0.0.0", form=forms.IPV4_OR_NOTHING, example="127.0.0.1"),  # noqa: S104 (Ganeti's default)
        "vnc_password_file": _row(
            "/etc/ganeti/vnc-cluster-password", form=forms.PATH, reach=Reach.FILE, example="/etc/ganeti/vnc-password"
        ),
        "xen_cmd": _row("xm", choices=_XEN_COMMANDS, until="3.1", reach=Reach.PROGRAM),
    },
    "xen-pvm": {
        "blockdev_prefix": "sd",
        "bootloader_args": _row("", reach=Reach.ARGUMENTS, example="--quiet"),
        "bootloader_path": _row("", form=forms.PATH_OR_NOTHING, reach=Reach.PROGRAM, example="/usr/lib/xen/bin/pygrub"),
        "cpu_cap": _row(0, minimum=0),
        "cpu_mask": _row("all", form=forms.CPUS_PER_VCPU, example="0-3"),
        "cpu_weight": _row(256, minimum=1, maximum=65535),
        "cpuid": _row("", example="host,tm=0"),
        "initrd_path": _row("", form=forms.PATH_OR_NOTHING, reach=Reach.FILE, example="/boot/initrd.img"),
        "kernel_args": "ro",
        "kernel_path": _row("/boot/vmlinuz-3-xenU", form=forms.PATH, reach=Reach.FILE),
        "migration_mode": _row("live", choices=_MIGRATION),
        "migration_port": _row(8002, minimum=1, maximum=_LAST_PORT),
        "reboot_behavior": _row("reboot", choices=_REBOOT),
        "root_path": "/dev/xvda1",
        "soundhw": _row("", example="ac97"),
        "use_bootloader": False,
        "vif_script": _row("", form=forms.PATH_OR_NOTHING, reach=Reach.PROGRAM, example="/etc/xen/scripts/vif-bridge"),
        "xen_cmd": _row("xm", choices=_XEN_COMMANDS, until="3.1", reach=Reach.PROGRAM),
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
    _parameter(hypervisor, name, row if isinstance(row, dict) else _row(row))
    for hypervisor, rows in _ROWS.items()
    for name, row in rows.items()
)
