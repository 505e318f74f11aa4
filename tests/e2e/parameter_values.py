"""Two values for every parameter at every level that has it, which this cluster takes.

They differ from one another, from Ganeti's default and from what the fresh cluster has, so that a value that is found
afterwards can only have come from the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.parameters import canonical, known_in, parameters_of
from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN, Level, Parameter, Path, Type, Value
from tests.ganeti.real_ganeti import RELEASE
from tests.strategies import Document, as_written, document

INHERIT: Final = "inherit"
GROUP: Final = "default"
NODE: Final = "node2"
VOLUME_GROUP: Final = "xenvg"


def _pair(memory: int) -> Value:
    return {"min": {**DEFAULT_MIN}, "max": {**DEFAULT_MAX, "memory-size": memory}}


_TEMPLATES: Final = ["drbd", "plain", "file", "diskless", "rbd", "ext", "gluster", "sharedfile", "blockdev"]
_SPECIAL: Final[dict[Path, tuple[Any, Any]]] = {
    ("enabled_disk_templates",): (_TEMPLATES, _TEMPLATES[::-1]),  # the order counts
    ("enabled_hypervisors",): (["fake", "chroot"], ["chroot", "fake"]),
    ("candidate_pool_size",): (2, 3),
    ("master_netdev",): ("xen-br0", "lo"),
    ("master_netmask",): (24, 25),
    ("default_iallocator",): ("", "hail"),
    ("install_image",): ("/srv/a b.img", "http://images.example.org/b"),
    ("zeroing_image",): ("/srv/zero.img", "https://images.example.org/z"),
    ("compression_tools",): (["gzip"], ["gzip", "lzop"]),
    ("mac_prefix",): ("52:54:00", "aa:00:01"),
    ("uid_pool",): (["1000-1010"], ["2000-2001", "3000"]),
    ("ipolicy", "minmax"): ([_pair(65536)], [_pair(16384), _pair(131072)]),
    ("ipolicy", "disk-templates"): (
        ["drbd", "plain", "file", "diskless"],
        ["plain", "drbd", "file", "diskless"],  # the order counts
    ),
    ("nicparams", "mode"): ("openvswitch", "bridged"),  # a routed one would need an address of every instance
    ("nicparams", "link"): ("br7", "br8"),
    ("nicparams", "vlan"): (".100", ".200:300"),
    ("ndparams", "oob_program"): ("/bin/a b", "/bin/true"),
    ("alloc_policy",): ("last_resort", "unallocable"),
    ("diskparams", "drbd", "disk-barriers"): ("bf", "bfd"),
    ("diskparams", "drbd", "metavg"): ("vg.a", "vg+b"),
    ("diskparams", "drbd", "protocol"): ("A", "B"),
}
_HYPERVISORS: Final[dict[str, tuple[Any, Any]]] = {
    "init_script": ("/bin/a b", "/bin/c,d"),
    "migration_mode": ("non-live", "live"),
    "migration_port": (1234, 4321),
    "boot_order": ("network", "cdrom"),
    "xen-hvm.boot_order": ("n", "dc"),
    "cdrom_disk_type": ("ide", "scsi"),
    "cpu_mask": ("1-2", "0,3"),
    "machine_version": ("pc-a", "pc-b"),
    "mem_path": ("/var", "/srv"),
    "kvm_path": ("/srv/kvm-b", "/srv/kvm-a"),  # Ganeti asks it for its help text
    "vnc_x509_path": ("/var", "/srv"),
    "disk_aio": ("native", "threads"),
    "disk_cache": ("none", "writeback"),
    "disk_discard": ("ignore", "unmap"),
    "disk_type": ("ide", "paravirtual"),
    "xen-hvm.disk_type": ("ioemu", "paravirtual"),
    "nic_type": ("e1000", "rtl8139"),
    "vif_type": ("vif", "ioemu"),
    "reboot_behavior": ("exit", "reboot"),
    "scsi_controller_type": ("megasas", "virtio-scsi-pci"),
    "security_model": ("user", "pool"),
    "security_domain": ("nobody", ""),  # goes with the model `user` alone
    "serial_speed": (9600, 115200),
    "kvm_flag": ("enabled", "disabled"),
    "usb_mouse": ("tablet", "mouse"),
    "virtio_net_queues": (2, 4),
    "vnc_bind_address": ("127.0.0.1", "0.0.0.0"),  # noqa: S104 (nothing binds to it here)
    "kvm_pci_reservations": (5, 6),
    "xen_cmd": ("xl", "xm"),
    "spice_bind": ("127.0.0.1", "::1"),  # goes with the next one
    "spice_ip_version": (4, 6),
    "spice_image_compression": ("off", "auto_glz"),
    "spice_jpeg_wan_compression": ("always", "never"),
    "spice_zlib_glz_wan_compression": ("always", "auto"),
    "spice_streaming_video": ("all", "filter"),
    "cpu_cap": (50, 60),
    "cpu_weight": (128, 512),
    "blockdev_prefix": ("xvd", "vd"),
}
"""Values of hypervisor parameters that Ganeti holds against a list or a form; by name, for all hypervisors or one."""
_FILES: Final = ("/etc/passwd", "/etc/group")
"""Files that every node has: Ganeti looks for those that hypervisor parameters name."""
FIXED: Final[dict[Path, str]] = {
    ("volume_group_name",): "the nodes have one volume group; another name is refused",
    ("drbd_usermode_helper",): "must be what the kernel of every node says",
    ("instance_communication_network",): "the network is made by follow-up jobs",
}
"""Parameters of which this cluster takes one value only, and why."""
ALONE: Final[frozenset[Path]] = frozenset({("hvparams", "kvm", "vnc_bind_address"), ("candidate_pool_size",)})
"""Parameters that are not set together with all others: an instance has a VNC or a SPICE console; a larger pool makes
every later job slower."""
NOT_UNDONE: Final[dict[Path, str]] = {
    ("install_image",): "Ganeti cannot empty it (T32)",
    ("zeroing_image",): "Ganeti cannot empty it (T32)",
}
"""Parameters that do not get their first value back, and why."""


def levels(release: str = RELEASE) -> list[tuple[Parameter, Level]]:
    """Return every parameter that a release of Ganeti has, with each level that has it."""
    return [(item, level) for level in Level for item in parameters_of(level) if known_in(item, release)]


def concrete(path: Path) -> Path:
    """Return the path with a name for what an administrator chooses."""
    return tuple(VOLUME_GROUP if key == "*" else key for key in path)


def two_values(parameter: Parameter, level: Level) -> tuple[Any, Any]:
    """Return two values as a policy writes them."""
    path, default = parameter.path, parameter.default
    if path in _SPECIAL:
        return _SPECIAL[path]
    known = _of_hypervisor(path) if path[0] == "hvparams" else None
    if known is not None:
        return known
    shift = list(Level).index(level)  # each level its own, so that none can be taken for an inherited one
    match parameter.type:
        case Type.CHOICE:
            others = [choice for choice in parameter.choices if choice != default]
            return others[0], others[1] if len(others) > 1 else default
        case Type.BOOL:
            return not default, default
        case Type.FLOAT:
            return 5.5 + shift, 7.25 + shift
        case Type.SIZE:
            return 2048 + 4 * shift, "3G"
        case Type.INT | Type.MIB:
            return _numbers(path, shift)
        case Type.DICT:
            return {"a": "1", "b": "x y", "-flag": None}, {"c": "a,b", "no_flag": None}
        case Type.LIST:
            return ["xenvg/a.*"], ["b\\..*", "c,d"]
    return f"/a {path[-1]}{shift}", f"/b\\,{path[-1]}={shift}"


def free_text() -> Iterator[tuple[Path, Level, Type]]:
    """Yield the parameters that take any text (or a list, or a mapping of texts), at each level that has them."""
    for parameter, level in levels():
        path = concrete(parameter.path)
        formed = path in FIXED or path in ALONE or path in _PLACES or (path in _SPECIAL and path not in _ALMOST_FREE)
        known = parameter.choices or (path[0] == "hvparams" and _of_hypervisor(path))
        if parameter.type in {Type.STRING, Type.LIST, Type.DICT} and not formed and not known:
            yield path, level, parameter.type


_ALMOST_FREE: Final = frozenset({("install_image",), ("zeroing_image",), ("ndparams", "oob_program")})
_PLACES: Final = frozenset({("file_storage_dir",), ("shared_file_storage_dir",)})
"""Directories that Ganeti takes from a list of its own only."""


def _of_hypervisor(path: Path) -> tuple[Any, Any] | None:
    """Return two values of a hypervisor's parameter whose values Ganeti checks; None if it accepts any."""
    for name in (".".join(path[1:]), path[2]):
        if name in _HYPERVISORS:
            return _HYPERVISORS[name]
    return _FILES if path[2].endswith(("_path", "_file", "_script", "_model")) else None


def _numbers(path: Path, shift: int) -> tuple[int, int]:
    """Return numbers that lie within what every parameter takes: DRBD's own bounds, the spec pairs of this module."""
    if path[:2] == ("ipolicy", "std"):
        return 2, 3
    if path[-1] in {"c-plan-ahead", "c-delay-target"}:
        return 31 + shift, 42 + shift
    if path[0] == "diskparams":
        return 1001 + shift, 2002 + shift
    return 101 + shift, 202 + shift


def alone_values(which: int) -> dict[Level, dict[Path, Any]]:
    """Return the first (0) or second (1) value of the parameters that stand alone."""
    values: dict[Level, dict[Path, Any]] = {level: {} for level in Level}
    for parameter, level in levels():
        if parameter.path in ALONE:
            values[level][parameter.path] = two_values(parameter, level)[which]
    return values


def policy_documents(state: ClusterState, values: Mapping[Level, Mapping[Path, Any]]) -> list[Document]:
    """Return a policy of the cluster, one group and one node."""
    return [
        document("Cluster", state.name, values[Level.CLUSTER]),
        document("NodeGroup", GROUP, values[Level.GROUP]),
        document("NodeSet", "one", values[Level.NODE], nodes=[NODE]),
    ]


def written_values(which: int, store: str) -> dict[Level, dict[Path, Any]]:
    """Return the first (0) or second (1) value of every parameter. `store` is the directory that files may be in."""
    values: dict[Level, dict[Path, Any]] = {level: {} for level in Level}
    for parameter, level in levels():
        path = concrete(parameter.path)
        if path not in FIXED and path not in ALONE:
            values[level][path] = two_values(parameter, level)[which]
    values[Level.CLUSTER]["file_storage_dir",] = f"{store}/{('gluster', 'shared')[which]}"
    values[Level.CLUSTER]["shared_file_storage_dir",] = f"{store}/{('gluster', 'file')[which]}"
    return values


def first_values(fresh: ClusterState) -> dict[Level, dict[Path, Any]]:
    """Return the policy that undoes the others: first values or defaults of the cluster, `inherit` for the rest."""
    values: dict[Level, dict[Path, Any]] = {level: {} for level in Level}
    for parameter, level in levels():
        path = concrete(parameter.path)
        if path in FIXED or path in NOT_UNDONE:
            continue
        if level is Level.CLUSTER:
            values[level][path] = as_written(path, fresh.cluster.own.get(path, parameter.default))
        elif path == ("alloc_policy",):
            values[level][path] = "preferred"
        else:
            values[level][path] = fresh.cluster.own[path] if path[-1] == "access" else INHERIT
    return values


def only(chosen: Callable[[Path], bool], values: Mapping[Level, Mapping[Path, Any]]) -> dict[Level, dict[Path, Any]]:
    """Return the values at the paths that are `chosen`."""
    return {level: {path: value for path, value in own.items() if chosen(path)} for level, own in values.items()}


def stored(path: Path, written: Any) -> Value:
    """Return the stored form of a written value of this module."""
    if path == ("uid_pool",):
        ends = [[int(end) for end in text.split("-")] for text in written]
        return [[pair[0], pair[-1]] for pair in ends]
    return canonical(path, 3072 if written == "3G" else written)
