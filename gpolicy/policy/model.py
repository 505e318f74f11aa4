"""The objects of a policy, with declared leaves and their places; names and patterns of nodes.

A leaf has one of three states: *unmanaged* (there is no leaf: never touched),
*inherit* (`INHERIT`: the own value is removed, so that the object follows the level above) and *explicit* (a value,
in Ganeti's units, normalised as Ganeti would store it). Documents list nodes by names and patterns: what a pattern
matches, and which one is a slip, is at the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import islice, product
from typing import Any, ClassVar, Final, cast

from gpolicy.findings import Located, Span
from gpolicy.ganeti.vocabulary import Level, Path, Value
from gpolicy.policy.source_file import Pointer, YamlDocument

RULES: Final[dict[str, tuple[str, ...]]] = {
    "iextags": ("exclusion",),
    "desiredlocation": ("desired_location",),
    "nlocation": ("failure_domains",),
    "migration": ("migration", "domains"),
    "allowmigration": ("migration", "allow"),
}
"""Where a TagRules document has the items that mean the tags of a family."""
RULE_NAME: Final = "^[a-z0-9]+(-[a-z0-9]+)*$"
"""The pattern of the names of house rules."""


class Inherit(Enum):
    """The state of a leaf that must not have an own value."""

    INHERIT = "inherit"

    def __repr__(self) -> str:
        return "inherit"


INHERIT: Final = Inherit.INHERIT


@dataclass(frozen=True, slots=True)
class Leaf:
    """One declared value. `overridden` are the values of bases that it overrides, nearest first."""

    path: Path
    value: Value | Inherit
    document: YamlDocument
    pointer: Pointer
    overridden: tuple[Leaf, ...] = ()

    @property
    def span(self) -> Span:
        """The place of the value."""
        return self.document.value_span(self.pointer)

    @property
    def number(self) -> float:
        """The number that it holds, of a numeric parameter."""
        return cast(float, self.value)

    @property
    def texts(self) -> tuple[str, ...]:
        """The words that it holds, of a list parameter."""
        return tuple(map(str, cast(list[Any], self.value)))

    @property
    def dotted(self) -> str:
        """The path as messages and plans show it."""
        return ".".join(self.path)

    def at(self, *steps: str | int) -> Span:
        """Return the place of a part of the value (`leaf.at(1, "max", "memory-size")`)."""
        return self.document.value_span((*self.pointer, *steps))

    @property
    def pair_names(self) -> tuple[str | None, ...]:
        """The names of the sizes, for `ipolicy.minmax`; None for a pair without a name."""
        written = self.document.value(self.pointer)
        return tuple(pair.get("name") for pair in written) if isinstance(written, list) else ()


Leaves = dict[Path, Leaf]

WrittenTerms = Mapping[str, Located[Any]]
"""The written keys of `limits` or of `physical_volumes`, which Ganeti does not know (`gpolicy.cluster.terms`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The common part of documents about objects. `tags`: None if not managed. Node sets have no limits and volumes."""

    name: str
    document: YamlDocument
    span: Span
    leaves: Leaves = field(default_factory=dict)
    tags: tuple[Located[str], ...] | None = None
    template: bool = False
    extends: tuple[Located[str], ...] = ()
    limits: WrittenTerms = field(default_factory=dict)
    physical_volumes: WrittenTerms = field(default_factory=dict)

    level: ClassVar[Level]
    """The level of the described object."""
    _label: ClassVar[str]
    _title: ClassVar[str]

    @property
    def label(self) -> str:
        """The object's name in findings and plans: cluster, group/NAME, node-set/NAME."""
        return self._label.format(self.name)

    @property
    def title(self) -> str:
        """How messages name it: `the cluster`, `group gold`, `node set rack-1`."""
        return self._title.format(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPolicy(Declared):
    """The desired state of the cluster."""

    level = Level.CLUSTER
    _label = "cluster"
    _title = "the cluster"
    ganeti_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """The promised hardware of each node of a group: MiB and counts; None if not written."""

    span: Span
    memory: Located[int] | None = None
    cpus: Located[int] | None = None
    pv_sizes: tuple[Located[int], ...] = ()
    pv_count: Located[int] | None = None

    @property
    def volume_count(self) -> int | None:
        """The number of physical volumes of a node; None if not written. A list has an item for each volume."""
        if self.pv_count:
            return self.pv_count.value
        return len(self.pv_sizes) if len(self.pv_sizes) > 1 else None

    @property
    def smallest_volume(self) -> Located[int] | None:
        """The size of the smallest physical volume; under exclusive storage all count as that."""
        return min(self.pv_sizes, key=lambda size: size.value, default=None)

    @property
    def figures(self) -> dict[str, Located[int]]:
        """Those of memory, cpus and pv_count that are written, by key."""
        known = {"memory": self.memory, "cpus": self.cpus, "pv_count": self.pv_count}
        return {key: figure for key, figure in known.items() if figure is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPolicy(Declared):
    """The desired state of a node group. `nodes` is None if membership is not managed."""

    level = Level.GROUP
    _label = "group/{}"
    _title = "group {}"
    renamed_from: Located[str] | None = None
    removed: Located[bool] | None = None
    nodes: tuple[Located[str], ...] | None = None
    hardware: Hardware | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSetPolicy(Declared):
    """Parameters and tags for matching nodes."""

    level = Level.NODE
    _label = "node-set/{}"
    _title = "node set {}"
    nodes: tuple[Located[str], ...] = ()
    groups: tuple[Located[str], ...] = ()


@dataclass(frozen=True, slots=True)
class OwnedPrefix:
    """Tags that gpolicy may remove: those beginning with `prefix` on objects at these levels."""

    prefix: str
    levels: frozenset[Level]


@dataclass(frozen=True, slots=True, kw_only=True)
class TagRulesPolicy:
    """Cluster tags for htools, rendered from the items of the document; and the prefixes that gpolicy owns."""

    span: Span
    document: YamlDocument
    owns: tuple[Located[OwnedPrefix], ...] = ()
    by_place: Mapping[Pointer, Located[str]] = field(default_factory=dict)

    @property
    def tags(self) -> tuple[Located[str], ...]:
        """The tags of all items."""
        return tuple(self.by_place.values())


def promised_nodes(group: GroupPolicy) -> tuple[str, ...] | None:
    """Return the names of the group's nodes; None if a pattern is not definite or has a slip, or there is none."""
    names: dict[str, None] = {}
    for pattern in group.nodes or ():
        found = None if unlikely(pattern.value) else written_out(pattern.value)
        if found is None:
            return None
        names.update(dict.fromkeys(found))
        if len(names) > MOST_NODES:
            return None
    return tuple(names) or None


MOST_NODES: Final = 1000
"""The greatest number of nodes of a group that are listed."""

WILDCARD: Final = re.compile(r"[*?\[]")


def is_glob(pattern: str) -> bool:
    """Return whether `pattern` is a glob, not a name."""
    return "*" in pattern or "[" in pattern or "?" in pattern


def matches(pattern: str, name: str) -> bool:
    """Return whether `pattern`, a name or a glob, matches a node's name."""
    begin, middle, end = _parts(pattern)
    if not (name.startswith(begin) and name.endswith(end)):
        return False
    if middle == "*":
        return len(name) >= len(begin) + len(end)
    return fnmatchcase(name, pattern) if middle else name == pattern


@lru_cache(maxsize=4096)
def _parts(pattern: str) -> tuple[str, str, str]:
    """Return a pattern in three: up to its first wildcard, what is between, and what follows its last wildcard."""
    begin, end = ends(pattern)
    return begin, pattern[len(begin) : len(pattern) - len(end)], end


def ends(pattern: str) -> tuple[str, str]:
    """Return the letters that all names that a pattern matches begin and end with."""
    parts = WILDCARD.split(pattern)
    return parts[0], "" if "[" in pattern else parts[-1]


_PART = re.compile(r"\[([^\]!][^\]]{0,250})\]|([^\[\]*?]++)")

_LETTERS: Final = re.compile(r"[A-Za-z0-9._*?!\[\]-]+")
_RANGE: Final = re.compile(r"([^\[\]!-])-([^\]])")
_NUMBERS: Final = re.compile(r"(?!.-.$)([0-9]{1,9})-([0-9]{1,9})")


@lru_cache(maxsize=1024)  # several rules ask of each pattern
def unlikely(pattern: str) -> str:
    """Return why a name or pattern can match no node, or not those that are meant; or nothing."""
    if not pattern:
        return "it is empty"
    if not _LETTERS.fullmatch(pattern):
        odd = next(letter for letter in pattern if not _LETTERS.fullmatch(letter))
        return f"no node has {odd!r} in its name"
    if pattern != pattern.lower():
        return "Ganeti stores names of nodes in lower case"
    if pattern.endswith("."):
        return "no name ends with a dot"
    if pattern.rfind("[") > pattern.rfind("]") or "]" in pattern.partition("[")[0]:
        return "a bracket is not closed, or not opened"
    for before_end in pattern.split("]")[:-1]:
        content = before_end.partition("[")[2].removeprefix("!")
        numbers = _NUMBERS.fullmatch(content)
        if numbers is not None and int(numbers[1]) <= int(numbers[2]):
            return f"[{content}] stands for one letter, not for the numbers from {numbers[1]} to {numbers[2]}"
        for low, high in _RANGE.findall(content):
            if low > high:
                return f"the range {low}-{high} is empty"
        letters = list(content) if "-" not in content else []
        if len(letters) != len(set(letters)) or (content.isalpha() and len(letters) > 2 and letters != sorted(letters)):
            return f"[{content}] stands for one of these letters, not for the word"
    return ""


@lru_cache(maxsize=64)  # of a few hundred names each; one pattern is compared with many
def written_out(pattern: str) -> list[str] | None:
    """Return the names that match a pattern of letters and sets of letters, None if it contains a wildcard."""
    parts, end = [], 0
    for match in _PART.finditer(pattern):
        if match.start() != end:
            return None
        end = match.end()
        parts.append(_letters(match[1]) if match[1] else [match[2]])
        if len(parts[-1]) > MOST_NODES:
            return None
    if end != len(pattern):
        return None
    found = ["".join(choice) for choice in islice(product(*parts), MOST_NODES + 1)]
    return found if len(found) <= MOST_NODES else None


def _letters(text: str) -> list[str]:
    """Return the letters of a set, as `fnmatch` reads it: `1-4` is a range."""
    letters: list[str] = []
    while text:
        is_range = len(text) > 2 and text[1] == "-"
        last = ord(text[2 if is_range else 0])
        letters += map(chr, islice(range(ord(text[0]), last + 1), MOST_NODES + 1))
        text = text[3 if is_range else 1 :]
    return list(dict.fromkeys(letters))
