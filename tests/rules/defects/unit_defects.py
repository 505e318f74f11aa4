"""Numbers in another unit than the parameter's; ports, user IDs and files that others have; values of no use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.rules.defects.seeding import Base, Pointer, Seed, defect

Values = tuple[tuple[Pointer, Any], ...]


def _kvm(name: str) -> Pointer:
    return ("hvparams", "kvm", name)


def _drbd(name: str) -> Pointer:
    return ("diskparams", "drbd", name)


def _puts(base: Base, values: Values) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        for pointer, value in values:
            yield document.put(pointer, value)


_SECONDS: Final[Values] = (
    (_kvm("migration_downtime"), 1),
    (("data_collector_interval", "lv"), 5),
    (("data_collector_interval", "diskstats"), 10),
    (_drbd("c-plan-ahead"), 2),
)
_THOUSANDS: Final[Values] = (
    (_kvm("migration_downtime"), 30000),
    (_kvm("migration_bandwidth"), 1048576),
    (("hvparams", "lxc", "startup_timeout"), 30000),
    (("hv_state", "kvm", "mem_node"), 8388608),
)
_WITHOUT_UNIT: Final[Values] = (
    (_drbd("resync-rate"), 60),
    (_drbd("c-min-rate"), 4),
    (("beparams", "maxmem"), 2),
    (("disk_state", "plain", "xenvg", "disk_total"), 4),
)
_SIZES: Final[Values] = (
    (("diskparams", "plain", "stripes"), 64),
    (_drbd("data-stripes"), 256),
    (("ndparams", "cpu_speed"), 2.4e3),
    (("hvparams", "xen-pvm", "cpu_cap"), 4),
)
_PORTS: Final[Values] = (
    (_kvm("migration_port"), 1811),
    (_kvm("migration_port"), 11000),
    (_kvm("migration_port"), 22),
    (("ndparams", "ssh_port"), 5080),
)
_FILES: Final[Values] = (
    (_kvm("kernel_path"), "/tmp/vmlinuz"),
    (("ndparams", "oob_program"), "/home/admin/oob"),
    (("zeroing_image",), "http://images.example.org/zero.img"),
    (("file_storage_dir",), "/usr/lib/ganeti/disks"),
)
_USERS: Final[Values] = (
    (("uid_pool",), ["0-99"]),
    (("uid_pool",), ["100-199"]),
    (("uid_pool",), ["2000-2099", "2050-2150"]),
    (("uid_pool",), ["65500-65599"]),
)
_USELESS: Final[Values] = (
    (("hvparams", "kvm"), {"kernel_path": "", "kernel_args": "ro quiet"}),
    (("hvparams", "kvm"), {"vhost_net": True, "nic_type": "e1000"}),
    (("hvparams", "kvm"), {"vnc_tls": True}),
    (("hvparams", "xen-pvm"), {"use_bootloader": True}),
)


@defect("units", "seconds where a smaller unit is meant", "Ganeti's units are ms, µs and tenths of a second there.")
def _(base: Base) -> Iterator[Seed]:
    yield from _puts(base, _SECONDS)


@defect("units", "a unit a thousand times too small", "ms for seconds, KiB for MiB: a thousand times too much.")
def _(base: Base) -> Iterator[Seed]:
    yield from _puts(base, _THOUSANDS)


@defect("units", "a number without its unit", "It is KiB/s or MiB then.")
def _(base: Base) -> Iterator[Seed]:
    yield from _puts(base, _WITHOUT_UNIT)


@defect("units", "another measure", "KiB of a stripe, MHz of a CPU, CPUs for percent.")
def _(base: Base) -> Iterator[Seed]:
    yield from _puts(base, _SIZES)


@defect("nodes", "a port that something else has", "Ganeti's daemons, DRBD disks and ssh listen there.")
def _(base: Base) -> Iterator[Seed]:
    yield from _puts(base, _PORTS)


@defect("nodes", "a file that others can replace, or a directory of the system", "Root runs or opens it.")
def _(base: Base) -> Iterator[Seed]:
    yield from _puts(base, _FILES)


@defect("nodes", "user IDs of others", "Instances run as root, as a service, or two with one ID.")
def _(base: Base) -> Iterator[Seed]:
    yield from _puts(base, _USERS)


@defect("hypervisors", "a parameter that another one makes useless", "Ganeti leaves it out, or no instance starts.")
def _(base: Base) -> Iterator[Seed]:
    yield from _puts(base, _USELESS)
