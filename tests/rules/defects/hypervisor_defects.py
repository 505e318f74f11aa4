"""Parameters of hypervisors, network interfaces and instance moves: what Ganeti 3.0.2's own checks refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.rules.defects.seeding import Base, Seed, defect

_CLOSED: Final = {
    "kvm": (
        *(("disk_cache", "writeback "), ("disk_cache", "unsafe"), ("disk_aio", "io-uring"), ("disk_type", "virtio")),
        *(("nic_type", "virtio-net"), ("boot_order", "hd"), ("security_model", "users"), ("disk_discard", "on")),
        *(("cdrom_disk_type", "usb"), ("kvm_flag", "true"), ("usb_mouse", "tabelt"), ("migration_mode", "nonlive")),
        *(("scsi_controller_type", "virtio-scsi"), ("reboot_behavior", "restart"), ("spice_streaming_video", "on")),
        *(("spice_image_compression", "zlib"), ("spice_jpeg_wan_compression", "on"), ("spice_ip_version", 5)),
    ),
    "xen-hvm": (("disk_type", "ide"), ("nic_type", "virtio"), ("vif_type", "bridge"), ("boot_order", "disk")),
    "xen-pvm": (("reboot_behavior", "off"), ("migration_mode", "Live"), ("xen_cmd", "xe")),
}
_FORMS: Final = {
    "kvm": (
        *(("kernel_path", "boot/vmlinuz"), ("kvm_path", "kvm"), ("mem_path", "/dev/hugepages/"), ("cpu_mask", "0-")),
        *(("cdrom_image_path", "file:///srv/a.iso"), ("initrd_path", "/boot/../initrd"), ("cpu_mask", "all,1")),
        *(("vnc_x509_path", "certs"), ("floppy_image_path", "a.img"), ("cpu_mask", "3-0")),
    ),
    "xen-hvm": (("vnc_bind_address", "::1"), ("device_model", ""), ("cdrom_image_path", "http://example.org/a.iso")),
    "xen-pvm": (("bootloader_path", "pygrub"), ("kernel_path", ""), ("vif_script", "vif-bridge")),
    "lxc": (("cpu_mask", "all"),),
}
_BOUNDS: Final = {
    "kvm": (
        *(("kvm_pci_reservations", 33), ("virtio_net_queues", 0), ("virtio_net_queues", 16), ("migration_port", 65535)),
        *(("cpu_cores", -1), ("migration_bandwidth", -1), ("migration_downtime", -30), ("serial_speed", 9200)),
    ),
    "xen-pvm": (("cpu_cap", -1), ("cpu_weight", 0), ("migration_port", 0)),
    "xen-hvm": (("cpu_weight", 65536),),
    "lxc": (("num_ttys", -1), ("startup_timeout", -1)),
}
_TOGETHER: Final[tuple[dict[str, Any], ...]] = (
    {"disk_aio": "native", "disk_cache": "writeback"},
    {"security_model": "user", "security_domain": ""},
    {"security_model": "none", "security_domain": "nobody"},
    {"boot_order": "cdrom", "cdrom_image_path": ""},
    {"kernel_path": "/boot/vmlinuz-3-kvmU", "root_path": ""},
    {"vnc_x509_verify": True, "vnc_x509_path": ""},
    {"vnc_bind_address": "127.0.0.1", "spice_bind": "127.0.0.1"},
    {"spice_bind": "::1", "spice_ip_version": 4},
    {"spice_bind": "", "spice_use_tls": True},
    {"spice_bind": "", "spice_image_compression": "off"},
)


def _each(base: Base, wrong: dict[str, tuple[tuple[str, Any], ...]]) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        for hypervisor, values in wrong.items():
            for name, value in values:
                yield document.put(("hvparams", hypervisor, name), value)


@defect(
    "hypervisors", "a word that a parameter of a hypervisor does not take", "Ganeti: The value must be one of a list."
)
def _(base: Base) -> Iterator[Seed]:
    yield from _each(base, _CLOSED)


@defect("hypervisors", "a path, address or list of CPUs that is none", "Ganeti: it fails the syntax check.")
def _(base: Base) -> Iterator[Seed]:
    yield from _each(base, _FORMS)


@defect("hypervisors", "a number out of its bounds", "Ganeti: it fails the syntax check.")
def _(base: Base) -> Iterator[Seed]:
    yield from _each(base, _BOUNDS)


@defect("hypervisors", "two parameters of KVM that exclude each other", "Ganeti refuses the two together.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        for values in _TOGETHER:
            yield document.put(("hvparams", "kvm"), values)


@defect(
    "hypervisors", "an address of consoles with its port, or a host name", "It is neither an address nor an interface."
)
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        for value in ("0.0.0.0:5900", "localhost", "10.0.0.256", "10.0.0.0/8"):
            yield document.put(("hvparams", "kvm", "vnc_bind_address"), value)


@defect("cluster", "a path or options for a compression tool", "Ganeti: letters, digits, dashes and underscores only.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        for value in ("/usr/bin/zstd", "xz -9", "none", "gzip.fast"):
            yield document.put(("compression_tools",), ["gzip", value])


@defect("cluster", "bridged interfaces without a bridge", "Ganeti: Missing bridged NIC link.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        yield document.put(("nicparams",), {"mode": "bridged", "link": ""})


@defect("cluster", "a VLAN in a form that no port takes", "gnt-instance(8): n, .n, :n:m or .n:m.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        for value in ("100,200", "vlan100", "4095", "0", "100:"):
            yield document.put(("nicparams",), {"mode": "openvswitch", "vlan": value})
