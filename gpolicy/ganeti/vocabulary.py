"""What there is to know of one parameter, and Ganeti's words: enumerations, names inside its composite values, forms of
texts that it checks; words of QEMU and DRBD.

A form is a pattern, which schemas use, and words for people. What each takes was seen by giving the
hypervisors' own checks of Ganeti 3.0.2 thousands of values. The options are those of DRBD 8.3 and 8.4.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final

from gpolicy.data import read_data
from gpolicy.ganeti.amounts import SensibleRange, sensible_range

Path = tuple[str, ...]
Value = bool | int | float | str | list["Value"] | dict[str, "Value"] | None
"""A stored value in JSON's own types; sizes are MiB as int."""

MINMAX: Final[Path] = ("ipolicy", "minmax")
ALLOWED_TEMPLATES: Final[Path] = ("ipolicy", "disk-templates")
VCPU_RATIO: Final[Path] = ("ipolicy", "vcpu-ratio")
SPINDLE_RATIO: Final[Path] = ("ipolicy", "spindle-ratio")
SPINDLE_COUNT: Final[Path] = ("ndparams", "spindle_count")
EXCLUSIVE_STORAGE: Final[Path] = ("ndparams", "exclusive_storage")
ENABLED_TEMPLATES: Final[Path] = ("enabled_disk_templates",)
ENABLED_HYPERVISORS: Final[Path] = ("enabled_hypervisors",)
Values = dict[Path, Value]
"""Own values of one object (cluster, group or node): a leaf that is absent is inherited or not set."""


class Level(StrEnum):
    """The object that a value can be set on."""

    CLUSTER = "cluster"
    GROUP = "group"
    NODE = "node"


class Type(StrEnum):
    """How a value is written, stored and compared."""

    INT = "int"
    SIZE = "size"  # MiB; the command line takes units and rounds up to 4 MiB
    MIB = "mib"  # whole MiB; Ganeti's command line takes neither units nor rounds
    FLOAT = "float"
    BOOL = "bool"
    STRING = "string"
    CHOICE = "choice"  # one of `choices`
    LIST = "list"  # of strings, order matters
    SET = "set"  # of strings, order means nothing to Ganeti
    DICT = "dict"  # of strings and null, replaced as a whole
    MINMAX = "minmax"  # the list of min/max sizes, replaced as a whole
    UID_RANGES = "uid-ranges"  # [[low, high], …]


class TakesEffect(StrEnum):
    """When a changed value begins to matter."""

    AT_ONCE = "at once"
    NEW_INSTANCES = "for new and modified instances"
    NEW_DISKS = "for new disks"
    DISK_ACTIVATION = "for new disks; for existing ones after instance stop and start, or replace-disks"
    EXISTING_DISKS_AT_ONCE = "at once, and existing disks are redirected"
    INSTANCE_START = "at the next instance start"
    NODE_ADD = "when a node is added"
    CAPACITY_ONLY = "in htools only (placement and capacity)"
    NOTHING = "never: Ganeti stores it and reads it nowhere"
    NEXT_JOB = "for the next jobs"


class Reach(StrEnum):
    """How a value reaches root on the nodes: as a program that runs, as its arguments, or as a file."""

    PROGRAM = "root on the nodes runs the program that this names"
    ARGUMENTS = "root on the nodes runs a program with this as arguments"
    FILE = "root on the nodes opens the file or directory that this names"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What Ganeti knows of one parameter.

    `unit` is for people. `default` is Ganeti's built-in value, or None where there is none (it is chosen when
    the cluster is made). `option` is the command-line option of `gnt-cluster modify` for a parameter that has
    one of its own; families (ipolicy, ndparams, …) share theirs. `opcode` is the field of the cluster-modify
    opcode, where it is not the stored name. `since`/`until`: first release that has it, first that has not.
    `new_default`, `new_maximum`: the release that changed it, and what to. `numbers`: the only ones that a number may
    be; `form`: the pattern of a text (below). `reach`: what root on the nodes does with the
    value. `example`: a value to show where the default is none or empty.
    """

    path: Path
    type: Type
    levels: frozenset[Level]
    takes_effect: TakesEffect
    unit: str = ""
    default: Value = None
    choices: tuple[str, ...] = ()
    option: str = ""
    opcode: str = ""
    minimum: int | None = None
    maximum: int | None = None
    new_maximum: tuple[str, int] | None = None
    numbers: tuple[int, ...] = ()
    form: str = ""
    since: str = ""
    until: str = ""
    new_default: tuple[str, Value] | None = None
    can_be_empty: bool = True
    reach: Reach | None = None
    example: Value = None

    @property
    def description(self) -> str:
        """What it means, for people: `templates/parameters.toml`."""
        place: Any = read_data("parameters.toml")
        for key in self.path if len(self.path) > 1 else ("cluster", *self.path):
            place = place.get(key) or place["*"]
        return str(place).format(self.path[-1])

    @property
    def name(self) -> str:
        """The path as it is written in plans and reports."""
        return ".".join(self.path)

    @property
    def family(self) -> str:
        """The first key: `ipolicy`, `diskparams`, …, or the parameter's own name."""
        return self.path[0]

    @property
    def sensible(self) -> SensibleRange | None:
        """The numbers that make sense; Ganeti takes others as well."""
        return sensible_range(self.path)


CLUSTER: Final = frozenset({Level.CLUSTER})
CLUSTER_GROUP: Final = frozenset({Level.CLUSTER, Level.GROUP})
ALL_LEVELS: Final = frozenset(Level)

DISK_TEMPLATES: Final = ("blockdev", "diskless", "drbd", "ext", "file", "gluster", "plain", "rbd", "sharedfile")
HYPERVISORS: Final = ("chroot", "fake", "kvm", "lxc", "xen-hvm", "xen-pvm")
ALLOC_POLICIES: Final = ("preferred", "last_resort", "unallocable")
ACCESS_MODES: Final = ("kernelspace", "userspace")
DATA_COLLECTORS: Final = ("cpu-avg-load", "diskstats", "drbd", "inst-status-xen", "lv", "xen-cpu-avg-load")

RAPI_PORT: Final = 5080
GANETI_PORTS: Final = {1811: "ganeti-noded", 1814: "ganeti-confd", 1815: "ganeti-mond", RAPI_PORT: "ganeti-rapi"}
"""The ports of Ganeti's daemons on each node."""
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

SPEC_PARAMETERS: Final = ("memory-size", "cpu-count", "disk-size", "disk-count", "nic-count", "spindle-use")
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

HV_STATE: Final[dict[str, tuple[int, str]]] = {
    "mem_total": (0, "MiB"),
    "mem_node": (0, "MiB"),
    "mem_hv": (0, "MiB"),
    "cpu_total": (1, "cores"),
    "cpu_node": (1, "cores"),
}
DISK_STATE: Final[dict[str, tuple[int, str]]] = {
    "disk_total": (0, "MiB"),
    "disk_reserved": (0, "MiB"),
    "disk_overhead": (0, "MiB"),
}

SCORE_COMPONENTS: Final = (
    *("free_mem_cv", "free_disk_cv", "n1_cnt", "reserved_mem_cv", "offline_all_cnt", "offline_pri_cnt"),
    *("vcpu_ratio_cv", "cpu_load_cv", "mem_load_cv", "disk_load_cv", "net_load_cv", "pri_tags_score", "spindles_cv"),
    *("free_mem_cv_forth", "free_disk_cv_forth", "vcpu_ratio_cv_forth", "spindles_cv_forth"),
    *("location_score", "location_exclusion_score", "reserved_mem_rtotal"),
)
"""The components of the cluster score, as htools names them and in its order."""


@cache
def known_words(of_what: str) -> frozenset[str]:
    """Return the words of a list in `templates/known_words.toml`."""
    return frozenset(read_data("known_words.toml")["words"][of_what])


_PART: Final = r"(?!\.{1,2}(?:/|$))[^/]+"  # any name but . and ..
_PATH: Final = rf"//?(?:{_PART}(?:/{_PART})*)?"  # POSIX gives two slashes at the beginning a meaning of their own
_URL: Final = r"(?:https?|ftps?)://.*"
_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_CPU: Final = r" *\+?[0-9]+(?:_[0-9]+)* *"  # blanks, a sign and underscores are taken as well
_CPUS: Final = rf"{_CPU}(?:-{_CPU})?(?:,{_CPU}(?:-{_CPU})?)*"


def _whole_text(pattern: str) -> str:
    return f"^(?:{pattern})$"


def _optional(pattern: str) -> str:
    return f"^(?:{pattern})?$"


PATH: Final = _whole_text(_PATH)
PATH_OR_NOTHING: Final = _optional(_PATH)
PATH_URL_OR_NOTHING: Final = _optional(f"{_PATH}|{_URL}")
IPV4: Final = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
IPV4_OR_NOTHING: Final = _optional(IPV4)
BOOT_LETTERS: Final = _whole_text("[acdn]+")
CPUS_OR_NOTHING: Final = _optional(_CPUS)
CPUS_PER_VCPU: Final = _whole_text(f"(?:all|{_CPUS})?(?::(?:all|{_CPUS})?)*")

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


@dataclass(frozen=True, slots=True)
class DrbdOption:
    """One option: the parameters that may hold it, and its words, or its least and greatest number; any if neither."""

    holders: tuple[str, ...]
    words: frozenset[str] = frozenset()
    numbers: tuple[int, int] | None = None

    @property
    def is_switch(self) -> bool:
        """Whether it may stand without a value."""
        return self.words == {"yes", "no"}

    def refuses(self, value: str) -> str:
        """Return what the option wants instead of `value`; nothing if it takes it."""
        if self.words:
            return "" if value in self.words else f"one of {', '.join(sorted(self.words))}"
        number = _read_amount(value) if self.numbers is not None else None
        if self.numbers is None or (number is not None and self.numbers[0] <= number <= self.numbers[1]):
            return ""
        return f"a number from {self.numbers[0]} to {self.numbers[1]}"


_NUMBER: Final = re.compile(r"(-?[0-9]{1,12})([skmgSKMG]?)")
_UNITS: Final = {"": 1, "s": 512, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _read_amount(text: str) -> int | None:
    found = _NUMBER.fullmatch(text)
    return int(found[1]) * _UNITS[found[2].lower()] if found else None


@cache
def usual_ports() -> dict[int, str]:
    """Return the ports on which other programs listen by custom, with what listens there."""
    return {port: service for service, ports in read_data("known_words.toml")["ports"].items() for port in ports}


@cache
def drbd_options() -> dict[str, DrbdOption]:
    """Return the options of DRBD by name."""
    return {name: _drbd_option(**option) for name, option in read_data("known_words.toml")["drbd"].items()}


def _drbd_option(
    of: Sequence[str], words: Sequence[str] | str = (), numbers: tuple[int, int] | None = None
) -> DrbdOption:
    listed = known_words(words) if isinstance(words, str) else frozenset(words)
    return DrbdOption(tuple(of), listed, numbers)


TAG_FAMILIES: Final = {
    "iextags": "htools:iextags:",
    "nlocation": "htools:nlocation:",
    "migration": "htools:migration:",
    "allowmigration": "htools:allowmigration:",
    "desiredlocation": "htools:desiredlocation:",
}
"""Families of cluster tags that htools reads, and their prefixes (location awareness; partitioned Ganeti)."""


def is_access(path: Path) -> bool:
    """Return whether a path is an access mode of a disk template. Ganeti cannot remove an own one of a group again."""
    return path[0] == "diskparams" and path[-1] == "access"
