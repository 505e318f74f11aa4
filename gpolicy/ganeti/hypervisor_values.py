"""What Ganeti takes as values of hypervisor parameters: closed lists, bounds of numbers, forms of texts.

Seen by giving the hypervisors' own checks of Ganeti 3.0.2 every word of its constants and many others
(`tests/data/hypervisors/` keeps the answers); gnt-instance(8) and the release notes for 3.1. A parameter that is not
named here takes any value of its type. What depends on several parameters is a rule's matter.
"""

from __future__ import annotations

from typing import Final

from gpolicy.ganeti.forms import (
    BOOT_LETTERS,
    CPUS_OR_NOTHING,
    CPUS_PER_VCPU,
    IPV4_OR_NOTHING,
    PATH,
    PATH_OR_NOTHING,
    PATH_URL_OR_NOTHING,
)

_KVM_DISKS: Final = (
    *("paravirtual", "ide", "scsi", "scsi-hd", "scsi-block", "scsi-generic", "scsi-cd", "sd", "mtd", "pflash"),
)
_LOSSY: Final = ("auto", "always", "never")
_MIGRATION: Final = ("live", "non-live")
_REBOOT: Final = ("reboot", "exit")
_XEN_COMMANDS: Final = ("xl", "xm")

CHOICES: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("kvm", "boot_order"): ("disk", "cdrom", "floppy", "network"),
    ("kvm", "cdrom_disk_type"): ("", *_KVM_DISKS),
    ("kvm", "disk_aio"): ("", "threads", "native", "io_uring"),
    ("kvm", "disk_cache"): ("default", "none", "writeback", "writethrough"),
    ("kvm", "disk_discard"): ("", "default", "ignore", "unmap"),
    ("kvm", "disk_type"): _KVM_DISKS,
    ("kvm", "kvm_flag"): ("", "enabled", "disabled"),
    ("kvm", "migration_mode"): _MIGRATION,
    ("kvm", "nic_type"): (
        *("paravirtual", "e1000", "rtl8139", "pcnet", "i82551", "i82557b", "i82559er", "ne2k_isa", "ne2k_pci"),
    ),
    ("kvm", "reboot_behavior"): _REBOOT,
    ("kvm", "scsi_controller_type"): ("lsi", "megasas", "virtio-scsi-pci"),
    ("kvm", "security_model"): ("none", "user", "pool"),
    ("kvm", "spice_image_compression"): ("", "auto_glz", "auto_lz", "quic", "glz", "lz", "off"),
    ("kvm", "spice_jpeg_wan_compression"): ("", *_LOSSY),
    ("kvm", "spice_streaming_video"): ("", "filter", "all", "off"),
    ("kvm", "spice_zlib_glz_wan_compression"): ("", *_LOSSY),
    ("kvm", "usb_mouse"): ("", "mouse", "tablet"),
    ("fake", "migration_mode"): _MIGRATION,
    ("xen-hvm", "disk_type"): ("paravirtual", "ioemu"),
    ("xen-hvm", "migration_mode"): _MIGRATION,
    ("xen-hvm", "nic_type"): ("paravirtual", "e1000", "rtl8139", "ne2k_isa", "ne2k_pci"),
    ("xen-hvm", "reboot_behavior"): _REBOOT,
    ("xen-hvm", "vif_type"): ("", "ioemu", "vif"),
    ("xen-hvm", "xen_cmd"): _XEN_COMMANDS,
    ("xen-pvm", "migration_mode"): _MIGRATION,
    ("xen-pvm", "reboot_behavior"): _REBOOT,
    ("xen-pvm", "xen_cmd"): _XEN_COMMANDS,
}
"""Closed lists of words; an empty word is one of them where Ganeti takes it."""

CHOICES_SINCE: Final[dict[tuple[str, str, str], str]] = {("kvm", "disk_aio", "io_uring"): "3.1"}
"""Words that an earlier release does not know yet."""

CHOICES_UNTIL: Final[dict[tuple[str, str, str], str]] = {("kvm", "disk_discard", "default"): "3.1"}
"""Words that a later release no longer knows."""

NUMBERS: Final[dict[tuple[str, str], tuple[int, ...]]] = {("kvm", "spice_ip_version"): (0, 4, 6)}
"""Closed lists of numbers; 0 is for none."""

_PORT: Final = (1, 65534)  # Ganeti leaves the last one out
BOUNDS: Final[dict[tuple[str, str], tuple[int, int | None]]] = {
    ("kvm", "cpu_cores"): (0, None),
    ("kvm", "cpu_sockets"): (0, None),
    ("kvm", "cpu_threads"): (0, None),
    ("kvm", "kvm_pci_reservations"): (0, 32),
    ("kvm", "migration_bandwidth"): (0, None),
    ("kvm", "migration_downtime"): (0, None),
    ("kvm", "migration_port"): _PORT,
    ("kvm", "virtio_net_queues"): (1, 8),
    ("lxc", "num_ttys"): (0, None),
    ("lxc", "startup_timeout"): (0, None),
    ("xen-hvm", "cpu_weight"): (1, 65534),
    ("xen-hvm", "migration_port"): _PORT,
    ("xen-pvm", "cpu_cap"): (0, None),  # not so of xen-hvm: any number is taken there
    ("xen-pvm", "cpu_weight"): (1, 65535),
    ("xen-pvm", "migration_port"): _PORT,
}
"""Least and greatest number; None where there is no greatest."""

FORMS_OF: Final[dict[tuple[str, str], str]] = {
    ("chroot", "init_script"): PATH,
    ("kvm", "cdrom2_image_path"): PATH_URL_OR_NOTHING,
    ("kvm", "cdrom_image_path"): PATH_URL_OR_NOTHING,
    ("kvm", "cpu_mask"): CPUS_PER_VCPU,
    ("kvm", "floppy_image_path"): PATH_OR_NOTHING,
    ("kvm", "initrd_path"): PATH_OR_NOTHING,
    ("kvm", "kernel_path"): PATH_OR_NOTHING,
    ("kvm", "kvm_path"): PATH,
    ("kvm", "mem_path"): PATH_OR_NOTHING,
    ("kvm", "spice_password_file"): PATH_OR_NOTHING,
    ("kvm", "vnc_password_file"): PATH_OR_NOTHING,
    ("kvm", "vnc_x509_path"): PATH_OR_NOTHING,
    ("lxc", "cpu_mask"): CPUS_OR_NOTHING,
    ("xen-hvm", "boot_order"): BOOT_LETTERS,
    ("xen-hvm", "cdrom_image_path"): PATH_OR_NOTHING,
    ("xen-hvm", "cpu_mask"): CPUS_PER_VCPU,
    ("xen-hvm", "device_model"): PATH,
    ("xen-hvm", "kernel_path"): PATH,
    ("xen-hvm", "vif_script"): PATH_OR_NOTHING,
    ("xen-hvm", "vnc_bind_address"): IPV4_OR_NOTHING,
    ("xen-hvm", "vnc_password_file"): PATH,
    ("xen-pvm", "bootloader_path"): PATH_OR_NOTHING,
    ("xen-pvm", "cpu_mask"): CPUS_PER_VCPU,
    ("xen-pvm", "initrd_path"): PATH_OR_NOTHING,
    ("xen-pvm", "kernel_path"): PATH,
    ("xen-pvm", "vif_script"): PATH_OR_NOTHING,
}
"""Forms of texts (`gpolicy.ganeti.forms`)."""

SERIAL_SPEEDS: Final = (
    *(75, 110, 300, 600, 1200, 1800, 2400, 4800, 9600, 14400, 19200, 28800, 38400, 57600, 115200),
    *(230400, 345600, 460800),
)
"""What serial_speed of kvm may be where there is a serial console."""
