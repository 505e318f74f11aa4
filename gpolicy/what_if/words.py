"""What is supposed of a cluster, in words: `2x like:node1 in shared`, `node1 memory=+64G`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Final

from gpolicy.analysis.request_words import read_words
from gpolicy.analysis.wanted_instance import PlaceRequest
from gpolicy.errors import UsageError
from gpolicy.ganeti.units import parse_size
from gpolicy.guessing import did_you_mean, did_you_mean_one_of
from gpolicy.what_if.load import UPGRADES, Amount

MOST_NODES: Final = 1000
"""Nodes that one supposition may add."""

MOST_INSTANCES: Final = 20_000
"""Instances that one supposition may add."""

_WITH_FORM: Final = (
    "2x like:NODE in GROUP for nodes, 10x SPEC in GROUP or 10x memory=4G disk=20G in GROUP for instances"
)
_WANT_FORM: Final = "50x SPEC, or 50x memory=4G disk=20G"
SIZE_KEYS: Final = ("memory", "minmem", "vcpus", "disk", "spindle-use", "template")
"""Words of a request that make the size of an instance."""


@dataclass(frozen=True, slots=True)
class More:
    """More nodes `like` one, or more instances of a size: of `spec` (its maximum with `bound` max), or of `request`.

    With `request`, `spec` is what it was read from.
    """

    count: int
    group: str | None
    like: str | None = None
    spec: str | None = None
    bound: str = "min"
    request: PlaceRequest | None = None


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Other amounts of memory, disk, CPUs or physical volumes in nodes."""

    nodes: str
    amounts: Mapping[str, Amount]


@dataclass(frozen=True, slots=True)
class Move:
    """Nodes in another group."""

    nodes: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What is supposed of a cluster. Names are lists with commas, of globs."""

    more: tuple[More, ...] = ()
    less: tuple[str, ...] = ()
    moves: tuple[Move, ...] = ()
    upgrades: tuple[Upgrade, ...] = ()
    offline: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is supposed."""
        return self != WhatIf()

    def about(self, group: str | None) -> WhatIf:
        """Return the same with what comes in `group`, the one that a run is about, where no group is named."""
        more = (item if item.group else replace(item, group=group) for item in self.more)
        return replace(self, more=tuple(more))


def read_more(text: str, option: str = "--with", form: str = _WITH_FORM) -> More:
    """Return what `--with` says. Raise UsageError."""
    words = re.sub(r"\bpair (?=[0-9])", "", text).split()  # as reports call a pair without a name
    times = words.pop(0) if words and re.fullmatch("[0-9]{1,6}x", words[0], re.ASCII) else "1x"
    words, group = (words[:-2], words[-1]) if words[-2:-1] == ["in"] else (words, None)
    sized = bool(words) and all("=" in word for word in words)
    if len(words) != 1 and not sized:
        raise UsageError(f"{option} {text!r} cannot be read", hint=f"write {form}")
    what, number = " ".join(words), int(times[:-1])
    name, colon, rest = what.partition(":")
    nodes = name == "like" and bool(rest)
    if colon and not nodes and not sized and rest not in ("min", "max"):
        hint = f"write {form}; SPEC:max is the maximum of a spec"
        raise UsageError(f"{option} {text!r}: nothing is known of {what!r}", hint=hint)
    most = MOST_NODES if nodes else MOST_INSTANCES
    if not 1 <= number <= most:
        raise UsageError(
            f"{option} {text!r}: {number} {'nodes' if nodes else 'instances'}", hint=f"write 1 to {most:,}"
        )
    if sized:
        return More(number, group, spec=what, request=read_words(words, keys=SIZE_KEYS).request)
    return More(number, group, like=rest) if nodes else More(number, group, spec=name, bound=rest or "min")


def read_wanted(text: str) -> More:
    """Return what must fit: `50x SPEC`. Raise UsageError."""
    wanted = read_more(text, "--want", _WANT_FORM)
    if wanted.group is not None:
        raise UsageError(f"--want {text!r} names a group", hint=f"write {_WANT_FORM}, and the group as --group NAME")
    if wanted.like is not None:
        hint = f"write {_WANT_FORM}; --like says which nodes can be bought"
        raise UsageError(f"--want {text!r} names no instances", hint=hint)
    return wanted


def read_move(text: str) -> Move:
    """Return what `--move` says. Raise UsageError."""
    match text.split():
        case [nodes, "to", group]:
            return Move(nodes, group)
    raise UsageError(f"--move {text!r} cannot be read", hint="write NODE,... to GROUP")


def read_upgrade(text: str) -> Upgrade:
    """Return what `--upgrade` says. Raise UsageError."""
    nodes, *words = text.split() or [""]
    if not words or "=" in nodes:
        raise UsageError(f"--upgrade {text!r} cannot be read", hint="write NODE,... memory=+64G disk=4T cpus=32 pvs=+1")
    amounts: dict[str, Amount] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key not in UPGRADES:
            raise UsageError(f"--upgrade: unknown {key!r}", hint=did_you_mean_one_of(key, "upgrades", UPGRADES))
        if key in amounts:
            raise UsageError(f"--upgrade: {key} is given twice")
        amounts[key] = _amount(key, value)
    return Upgrade(nodes, amounts)


def _amount(key: str, text: str) -> Amount:
    more, number = text.startswith("+"), text.removeprefix("+")
    if key in ("cpus", "pvs"):
        if not re.fullmatch("[0-9]{1,6}", number, re.ASCII):
            raise UsageError(f"--upgrade: {key}={text}: not a whole number of at most six digits")
        return Amount(int(number), more)
    try:
        return Amount(parse_size(number), more)
    except ValueError as error:
        raise UsageError(f"--upgrade: {key}={text}: {error}") from None


def matching(option: str, words: str, known: Collection[str], what: str) -> list[str]:
    """Return the names that `words` (a list with commas, of globs) mean, each once.

    The first part of a full name is enough, as in Ganeti, if only one has it. Raise UsageError for an unknown name.
    """
    found: dict[str, None] = {}
    for word in words.split(","):
        here = list(_matching(word, known))
        if not here:
            hint = did_you_mean_one_of(word, f"{what}s", known)
            place = f"{option}: " if option.startswith("-") else ""
            raise UsageError(f"{place}there is no {what} {word!r}", hint=hint)
        found |= dict.fromkeys(here)
    return list(found)


def _matching(word: str, known: Collection[str]) -> Iterator[str]:
    if word in known:
        yield word
        return
    if not re.search(r"[*?\[]", word):
        short = [name for name in known if name.startswith(f"{word}.")]
        yield from short if len(short) == 1 else ()
        return
    yield from (name for name in known if fnmatchcase(name, word))


def full_name(word: str, known: Collection[str]) -> str:
    """Return the one name whose first part `word` is; the word itself where there is none, or several."""
    short = [name for name in known if name.startswith(f"{word}.")]
    return short[0] if len(short) == 1 and word not in known else word


def one_of(option: str, word: str, known: Collection[str], what: str) -> str:
    """Return the one name that `word` means. Raise UsageError for none, or several."""
    found = matching(option, word, known, what)
    if len(found) > 1:
        raise UsageError(f"{option}: {word!r} means {len(found)} {what}s", hint=f"name one: {found[0]}")
    return found[0]


def nodes_and_instances(
    words: str, nodes: Collection[str], instances: Collection[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the nodes and the instances that `--without` means. Raise UsageError for a word that means neither."""
    of_nodes: dict[str, None] = {}
    of_instances: dict[str, None] = {}
    for word in words.split(","):
        here, there = list(_matching(word, nodes)), list(_matching(word, instances))
        if here and there:
            hint = f"{here[0]} is a node, {there[0]} an instance: write longer names"
            raise UsageError(f"--without {word!r} means nodes and instances", hint=hint)
        if not here and not there:
            hint = did_you_mean(word, (*nodes, *instances), "name nodes or instances, with commas between them")
            raise UsageError(f"--without: there is no node or instance {word!r}", hint=hint)
        of_nodes |= dict.fromkeys(here)
        of_instances |= dict.fromkeys(there)
    return list(of_nodes), list(of_instances)
