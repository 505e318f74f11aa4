"""What there is to know of one parameter: path, type, levels, and when a change takes effect."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from gpolicy.data import read_data
from gpolicy.ganeti.amounts import SensibleRange, sensible_range

Path = tuple[str, ...]
Value = bool | int | float | str | list["Value"] | dict[str, "Value"] | None
"""A stored value in JSON's own types; sizes are MiB as int."""

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
    be; `form`: the pattern of a text (`gpolicy.ganeti.vocabulary`). `reach`: what root on the nodes does with the
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
