"""Ganeti's enumerations, the names inside its composite values, forms of texts that Ganeti checks; drbdsetup's options.

A form is a pattern, which schemas use, and words for people. What each takes was seen by giving the
hypervisors' own checks of Ganeti 3.0.2 thousands of values. The options are those of DRBD 8.3 and 8.4.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

DISK_TEMPLATES: Final = ("blockdev", "diskless", "drbd", "ext", "file", "gluster", "plain", "rbd", "sharedfile")
HYPERVISORS: Final = ("chroot", "fake", "kvm", "lxc", "xen-hvm", "xen-pvm")
ALLOC_POLICIES: Final = ("preferred", "last_resort", "unallocable")
ACCESS_MODES: Final = ("kernelspace", "userspace")
DATA_COLLECTORS: Final = ("cpu-avg-load", "diskstats", "drbd", "inst-status-xen", "lv", "xen-cpu-avg-load")

RAPI_PORT: Final = 5080
GANETI_PORTS: Final = {1811: "ganeti-noded", 1814: "ganeti-confd", 1815: "ganeti-mond", RAPI_PORT: "ganeti-rapi"}
"""The ports of Ganeti's daemons on each node."""
SERVICE_PORTS: Final = {
    21: "FTP",
    23: "telnet",
    25: "mail",
    53: "DNS",
    80: "HTTP",
    111: "rpcbind",
    123: "NTP",
    443: "HTTPS",
    445: "SMB",
    631: "CUPS",
    873: "rsync",
    2049: "NFS",
    3260: "iSCSI",
    3306: "MySQL",
    5432: "PostgreSQL",
    3300: "Ceph",
    6789: "Ceph",
    8080: "HTTP",
    16509: "libvirt",
    24007: "Gluster",
    24008: "Gluster",
    **dict.fromkeys(range(5900, 5910), "VNC"),
}
"""Ports on which other programs listen by custom."""
INSTANCE_PORTS: Final = (11000, 14999)
"""The first and the last port that Ganeti gives to DRBD disks and consoles."""
RAPI_READS: Final = {
    "groups": "/2/groups?bulk=1",
    "nodes": "/2/nodes?bulk=1",
    "instances": "/2/instances?bulk=1",
    "info": "/2/info",
}
"""The requests whose answers describe a cluster, by the names that htools gives to files with these answers, and in the
order in which htools reads them."""

SPEC_PARAMETERS: Final = {
    "memory-size": "memory of the instance (backend parameter maxmem)",
    "cpu-count": "virtual CPUs",
    "disk-size": "size of each disk",
    "disk-count": "number of disks",
    "nic-count": "number of network interfaces",
    "spindle-use": "spindles used: the backend parameter spindle_use, or under exclusive storage the sum of the"
    " disks' own spindles",
}
"""The six parameters of a spec, in the order in which gpolicy writes them (partitioned Ganeti, "Constrained
instance sizes")."""

MAX_DISKS: Final = 16
MAX_NICS: Final = 8
"""The most disks and network interfaces that an instance of Ganeti can have (its constants of these names)."""

DRBD_METADATA: Final = 128
"""MiB that each DRBD disk takes beside its size (`DRBD_META_SIZE`). htools counts them as disk of the instance."""

SPEC_SIZES: Final = frozenset({"memory-size", "disk-size"})
"""Spec parameters in MiB."""

DEFAULT_MIN: Final = dict(zip(SPEC_PARAMETERS, (128, 1, 1024, 1, 1, 1), strict=True))
DEFAULT_MAX: Final = dict(zip(SPEC_PARAMETERS, (32768, 8, 1048576, 16, 8, 12), strict=True))

HV_STATE: Final[dict[str, tuple[int, str, str]]] = {
    "mem_total": (0, "MiB", "Memory of the node, as this hypervisor sees it."),
    "mem_node": (0, "MiB", "Memory that the node itself uses or keeps for itself."),
    "mem_hv": (0, "MiB", "Memory that the hypervisor itself uses or loses to rounding."),
    "cpu_total": (1, "cores", "CPU cores of the node."),
    "cpu_node": (1, "cores", "CPU cores that the node keeps for itself."),
}
DISK_STATE: Final[dict[str, tuple[int, str, str]]] = {
    "disk_total": (0, "MiB", "Size of the volume group."),
    "disk_reserved": (0, "MiB", "Space that stays free."),
    "disk_overhead": (0, "MiB", "Space that other volumes (reserved_lvs) use."),
}

SCORE_COMPONENTS: Final = (
    *("free_mem_cv", "free_disk_cv", "n1_cnt", "reserved_mem_cv", "offline_all_cnt", "offline_pri_cnt"),
    *("vcpu_ratio_cv", "cpu_load_cv", "mem_load_cv", "disk_load_cv", "net_load_cv", "pri_tags_score", "spindles_cv"),
    *("free_mem_cv_forth", "free_disk_cv_forth", "vcpu_ratio_cv_forth", "spindles_cv_forth"),
    *("location_score", "location_exclusion_score", "reserved_mem_rtotal"),
)
"""The components of the cluster score, as htools names them and in its order."""

QEMU_MIGRATION_CAPABILITIES: Final = frozenset(
    {
        *("xbzrle", "rdma-pin-all", "auto-converge", "zero-blocks", "compress", "events", "postcopy-ram", "x-colo"),
        *("release-ram", "block", "return-path", "pause-before-switchover", "multifd", "dirty-bitmaps"),
        *("postcopy-blocktime", "late-block-activate", "x-ignore-shared", "validate-uuid", "background-snapshot"),
        *("zero-copy-send", "postcopy-preempt", "switchover-ack", "dirty-limit", "mapped-ram"),
    }
)
"""What a migration of QEMU can be told, of all releases up to 9."""

LINUX_CAPABILITIES: Final = frozenset(
    {
        *("audit_control", "audit_read", "audit_write", "block_suspend", "bpf", "checkpoint_restore", "chown"),
        *("dac_override", "dac_read_search", "fowner", "fsetid", "ipc_lock", "ipc_owner", "kill", "lease"),
        *("linux_immutable", "mac_admin", "mac_override", "mknod", "net_admin", "net_bind_service", "net_broadcast"),
        *("net_raw", "perfmon", "setfcap", "setgid", "setpcap", "setuid", "sys_admin", "sys_boot", "sys_chroot"),
        *("sys_module", "sys_nice", "sys_pacct", "sys_ptrace", "sys_rawio", "sys_resource", "sys_time"),
        *("sys_tty_config", "syslog", "wake_alarm"),
    }
)
"""The capabilities of capabilities(7), as LXC writes them."""

HTOOLS_PROGRAMS: Final = frozenset(
    {"harep", "hbal", "hcheck", "hinfo", "hroller", "hscan", "hspace", "hsqueeze", "htools", "mon-collector"}
)
"""The programs of htools that answer no requests for nodes (those are hail's)."""

KVM_CPU_MODELS: Final = frozenset(
    {
        *("host", "max", "base", "qemu32", "qemu64", "kvm32", "kvm64", "486", "pentium", "pentium2", "pentium3"),
        *("athlon", "phenom", "coreduo", "core2duo", "n270", "Conroe", "Penryn", "Nehalem", "Westmere"),
        *("SandyBridge", "IvyBridge", "Haswell", "Broadwell", "Skylake-Client", "Skylake-Server", "Cascadelake-Server"),
        *("Cooperlake", "Icelake-Client", "Icelake-Server", "Snowridge", "KnightsMill", "Denverton"),
        *("SapphireRapids", "GraniteRapids", "SierraForest", "Opteron_G1", "Opteron_G2", "Opteron_G3", "Opteron_G4"),
        *("Opteron_G5", "EPYC", "EPYC-Rome", "EPYC-Milan", "EPYC-Genoa", "Dhyana", "YongFeng"),
        *("Nehalem-IBRS", "Westmere-IBRS", "SandyBridge-IBRS", "IvyBridge-IBRS", "Haswell-IBRS", "Haswell-noTSX"),
        *("Haswell-noTSX-IBRS", "Broadwell-IBRS", "Broadwell-noTSX", "Broadwell-noTSX-IBRS", "Skylake-Client-IBRS"),
        *("Skylake-Client-noTSX-IBRS", "Skylake-Server-IBRS", "Skylake-Server-noTSX-IBRS", "EPYC-IBPB"),
        *("Cascadelake-Server-noTSX", "Icelake-Server-noTSX"),
    }
)
"""CPU models of QEMU for x86, without their versions (-v1, -v2, …)."""

KVM_MACHINES: Final = frozenset({"pc", "q35", "pc-i440fx", "pc-q35", "microvm", "isapc", "virt", "pseries"})
"""Families of QEMU's machine types, without their versions (-7.2)."""

KVM_KEYMAPS: Final = frozenset(
    {
        *("ar", "bepo", "cz", "da", "de", "de-ch", "en-gb", "en-us", "es", "et", "fi", "fo", "fr", "fr-be", "fr-ca"),
        *("fr-ch", "hr", "hu", "is", "it", "ja", "lt", "lv", "mk", "nl", "nl-be", "no", "pl", "pt", "pt-br", "ru"),
        *("sl", "sv", "th", "tr"),
    }
)
"""The keyboard layouts that come with QEMU."""

KVM_GRAPHICS: Final = frozenset({"cg3", "cirrus", "none", "qxl", "std", "tcx", "virtio", "vmware", "xenfb"})
"""What -vga of QEMU takes."""

SOUND_CARDS: Final = frozenset(
    {"ac97", "adlib", "all", "cs4231a", "es1370", "gus", "hda", "pcspk", "sb16", "virtio-sound"}
)
"""The sound cards of QEMU, and of Xen, which uses QEMU for them."""

USB_DEVICES: Final = frozenset(
    {"braille", "bt", "ccid", "disk", "host", "keyboard", "mouse", "net", "serial", "tablet", "wacom-tablet"}
)
"""What -usbdevice of QEMU takes, before a colon."""


_PART: Final = r"(?!\.{1,2}(?:/|$))[^/]+"  # any name but . and ..
_PATH: Final = rf"//?(?:{_PART}(?:/{_PART})*)?"  # POSIX gives two slashes at the beginning a meaning of their own
_URL: Final = r"(?:https?|ftps?)://.*"
_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_CPU: Final = r" *\+?[0-9]+(?:_[0-9]+)* *"  # blanks, a sign and underscores are taken as well
_CPUS: Final = rf"{_CPU}(?:-{_CPU})?(?:,{_CPU}(?:-{_CPU})?)*"


def _whole(pattern: str) -> str:
    return f"^(?:{pattern})$"


def _optional(pattern: str) -> str:
    return f"^(?:{pattern})?$"


PATH: Final = _whole(_PATH)
PATH_OR_NOTHING: Final = _optional(_PATH)
PATH_URL_OR_NOTHING: Final = _optional(f"{_PATH}|{_URL}")
IPV4: Final = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
IPV4_OR_NOTHING: Final = _optional(IPV4)
BOOT_LETTERS: Final = _whole("[acdn]+")
CPUS_OR_NOTHING: Final = _optional(_CPUS)
CPUS_PER_VCPU: Final = _whole(f"(?:all|{_CPUS})?(?::(?:all|{_CPUS})?)*")

PATHS: Final = frozenset({PATH, PATH_OR_NOTHING, PATH_URL_OR_NOTHING})
"""Forms of paths."""

_A_PATH: Final = "a whole path without . and .., double slashes and a slash at its end (/boot/vmlinuz)"
FORMS: Final[dict[str, str]] = {
    PATH: _A_PATH,
    PATH_OR_NOTHING: f'{_A_PATH}, or ""',
    PATH_URL_OR_NOTHING: f'{_A_PATH}, an http or ftp URL, or ""',
    IPV4_OR_NOTHING: 'an IPv4 address, or ""',
    BOOT_LETTERS: "letters of a (floppy), c (disk), d (CD-ROM) and n (network), in order",
    CPUS_OR_NOTHING: "CPUs and ranges of them between commas (0-3,8)",
    CPUS_PER_VCPU: "all, or CPUs and ranges of them between commas (0-3,8); or one of these for each virtual CPU,"
    " between colons (0:1:all)",
}
"""What each form is, in words."""


DISK: Final = "disk-custom"
NET: Final = "net-custom"


@dataclass(frozen=True, slots=True)
class DrbdOption:
    """One option: the parameters that may hold it, and its words, or its least and greatest number; any if neither."""

    holders: tuple[str, ...]
    words: frozenset[str] = frozenset()
    numbers: tuple[int, int] | None = None

    def refuses(self, value: str) -> str:
        """Return what the option wants instead of `value`; nothing if it takes it."""
        if self.words:
            return "" if value in self.words else f"one of {', '.join(sorted(self.words))}"
        number = _number(value) if self.numbers is not None else None
        if self.numbers is None or (number is not None and self.numbers[0] <= number <= self.numbers[1]):
            return ""
        return f"a number from {self.numbers[0]} to {self.numbers[1]}"


_NUMBER: Final = re.compile(r"(-?[0-9]{1,12})([skmgSKMG]?)")
_UNITS: Final = {"": 1, "s": 512, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _number(text: str) -> int | None:
    found = _NUMBER.fullmatch(text)
    return int(found[1]) * _UNITS[found[2].lower()] if found else None


def _words(holder: str, words: str) -> DrbdOption:
    return DrbdOption((holder,), words=frozenset(words.split()))


def _numbers(holder: str, least: int, most: int) -> DrbdOption:
    return DrbdOption((holder,), numbers=(least, most))


_HASHES: Final = _words(
    NET,
    "crc32 crc32c crct10dif md4 md5 rmd160 sha1 sha224 sha256 sha384 sha512 sha3-224 sha3-256 sha3-384 sha3-512 sm3"
    " streebog256 streebog512 wp512 xxhash64 blake2b-160 blake2b-256 blake2b-384 blake2b-512",
)
_SWITCHES: Final = "yes no"
_BUFFER: Final = _numbers(NET, 0, 10 << 20)
_ANY_DISK: Final = DrbdOption((DISK,))

OPTIONS: Final[dict[str, DrbdOption]] = {
    **dict.fromkeys(("size", "max-bio-bvecs", "rs-discard-granularity"), _ANY_DISK),
    **dict.fromkeys(("disk-barrier", "disk-flushes", "disk-drain", "md-flushes"), _words(DISK, _SWITCHES)),
    **dict.fromkeys(("no-disk-barrier", "no-disk-flushes", "no-disk-drain", "no-md-flushes"), _ANY_DISK),
    **dict.fromkeys(("resync-rate", "rate", "c-plan-ahead", "c-fill-target", "c-delay-target"), _ANY_DISK),
    **dict.fromkeys(("c-min-rate", "c-max-rate"), _ANY_DISK),
    "on-io-error": _words(DISK, "pass_on call-local-io-error detach"),
    "fencing": DrbdOption((DISK, NET), frozenset({"dont-care", "resource-only", "resource-and-stonith"})),
    "resync-after": _numbers(DISK, -1, 1 << 20),
    "al-extents": _numbers(DISK, 7, 65534),
    **dict.fromkeys(("al-updates", "discard-zeroes-if-aligned", "disable-write-same"), _words(DISK, _SWITCHES)),
    "disk-timeout": _numbers(DISK, 0, 6000),
    "read-balancing": _words(
        DISK,
        "prefer-local prefer-remote round-robin least-pending when-congested-remote 32K-striping 64K-striping"
        " 128K-striping 256K-striping 512K-striping 1M-striping",
    ),
    "protocol": _words(NET, "A B C"),
    "timeout": _numbers(NET, 1, 600),
    "connect-int": _numbers(NET, 1, 120),
    "ping-int": _numbers(NET, 1, 120),
    "ping-timeout": _numbers(NET, 1, 300),
    "max-epoch-size": _numbers(NET, 1, 20000),
    "max-buffers": _numbers(NET, 32, 131072),
    "unplug-watermark": _numbers(NET, 1, 131072),
    **dict.fromkeys(("sndbuf-size", "rcvbuf-size"), _BUFFER),
    "ko-count": _numbers(NET, 0, 200),
    **dict.fromkeys(("allow-two-primaries", "always-asbp", "tcp-cork", "use-rle"), _words(NET, _SWITCHES)),
    **dict.fromkeys(("no-tcp-cork", "cram-hmac-alg", "shared-secret", "socket-check-timeout"), DrbdOption((NET,))),
    "csums-after-crash-only": _words(NET, _SWITCHES),
    "after-sb-0pri": _words(
        NET,
        "disconnect discard-younger-primary discard-older-primary discard-zero-changes discard-least-changes"
        " discard-local discard-remote",
    ),
    "after-sb-1pri": _words(
        NET, "disconnect consensus violently-as0p discard-secondary call-pri-lost-after-sb call-pri-lost"
    ),
    "after-sb-2pri": _words(NET, "disconnect violently-as0p call-pri-lost-after-sb call-pri-lost"),
    "rr-conflict": _words(NET, "disconnect violently call-pri-lost retry-connect auto-discard"),
    **dict.fromkeys(("data-integrity-alg", "csums-alg", "verify-alg"), _HASHES),
    "on-congestion": _words(NET, "block pull-ahead disconnect"),
    "congestion-fill": _numbers(NET, 0, 10 << 30),
    "congestion-extents": _numbers(NET, 7, 65534),
}
"""By name. Each release knows more, so a rule reports an unknown one only if it looks like one of these."""

FLAGS: Final = frozenset(
    name for name, option in OPTIONS.items() if name.startswith("no-") or option.words == frozenset(_SWITCHES.split())
)
"""Options that also stand without a value."""

TAG_FAMILIES: Final = {
    "iextags": "htools:iextags:",
    "nlocation": "htools:nlocation:",
    "migration": "htools:migration:",
    "allowmigration": "htools:allowmigration:",
    "desiredlocation": "htools:desiredlocation:",
}
"""Families of cluster tags that htools reads, and their prefixes (location awareness; partitioned Ganeti)."""
