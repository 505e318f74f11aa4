"""The lists of nodes of groups and node sets: what they name, and which of them is most likely wrong about a node."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from gpolicy.checking.context import Context
from gpolicy.checking.rule import see
from gpolicy.checking.tags import share_nodes
from gpolicy.findings import ALMOST, NODES_LIKE, Located, Related, Span
from gpolicy.ganeti.vocabulary import Level
from gpolicy.guessing import MOST_GUESSES, MOST_KNOWN, closest
from gpolicy.policy.model import Declared, NodeSetPolicy, ends, is_glob, matches, unlikely, written_out

_RANGE: Final = re.compile(r"\[([0-9])-([0-9])\]")
_NUMBERS: Final = re.compile(r"\[[^][]*+\]|[\d*?]++")
_SPAN_OF_NUMBERS: Final = re.compile(r"[\[{(]([0-9]{1,2})(?:-|:|\.\.)([0-9]{1,2})[\])}]")
_ALTERNATIVES: Final = re.compile(r"\{([a-z0-9.-]++(?:,[a-z0-9.-]++)++)\}")
ALL_THAT_COME: Final = re.compile("-9|[a-z]-[a-z]|!")
"""What makes a set of letters in a pattern about all nodes that come."""
_AS_LONG_AS_OTHERS, _GROUP, _OTHER_SET = range(3)
"""The order of lists that may be wrong about a node: first a set that would have as many nodes as others."""


class Beside(NamedTuple):
    """A pattern one number longer or shorter than the one in the list of a group or node set, and the place of that."""

    owner: Declared
    span: Span
    pattern: str


class ListSlip(NamedTuple):
    """The list that is most likely wrong: whose it is, its place, and the question what is meant."""

    owner: Declared
    span: Span
    question: str


def lists_of_nodes(context: Context) -> list[tuple[Declared, Sequence[Located[str]]]]:
    """Return the groups and node sets, each with the nodes and patterns that it names."""
    groups = [(group, group.nodes or ()) for group in context.groups]
    return [*groups, *((nodes, nodes.nodes) for nodes in context.policy.node_sets)]


def patterns_beside(context: Context) -> tuple[dict[str, list[Declared]], dict[str, list[Beside]]]:
    """Return, by node, the groups and node sets that name it, and the patterns that almost do or almost do not."""
    owners, beside = dict[str, list[Declared]](), dict[str, list[Beside]]()
    lists = lists_of_nodes(context)
    patterns = [entry.value for owner, entries in lists if owner.level is Level.GROUP for entry in entries]
    are_known = all(group.nodes for group in context.groups) and all(map(written_out, patterns))
    are_few = sum(len(entries) for _, entries in lists) <= MOST_GUESSES
    for owner, entries in lists if are_known and are_few else ():
        for entry in entries:
            names, ranges = {*(written_out(entry.value) or ())}, _RANGE.findall(entry.value)
            for name in names:
                owners.setdefault(name, []).append(owner)
            first, last = map(int, ranges[0]) if len(ranges) == 1 else (1, -1)
            for low, high in ((first, last - 1), (first, last + 1), (first - 1, last), (first + 1, last)):
                other = _RANGE.sub(f"[{low}-{high}]", entry.value) if 0 <= low <= high <= 9 else entry.value
                changed = names.symmetric_difference(written_out(other) or ())
                for name in changed if len(changed) == 1 else ():
                    beside.setdefault(name, []).append(Beside(owner, entry.span, other))
    return owners, beside


def digits_meant(context: Context, entry: str) -> str:
    """Return a name or pattern with digits for O and l in its numbers, if groups have such nodes; or nothing."""
    zeros = re.sub(r"[oO](?=\d)|(?<=[\d?])[oO]", "0", entry)
    right = re.sub(r"[lI](?=\d)|(?<=[\d?])[lI]", "1", zeros)
    listed = (item.value for group in context.groups for item in group.nodes or ())
    return right if right != entry and any(share_nodes(right, item) for item in listed) else ""


def expanded(pattern: str) -> list[str]:
    """Return the patterns for numbers of several digits, and for the braces of a shell; none where there are none."""
    numbers, words = _SPAN_OF_NUMBERS.search(pattern), _ALTERNATIVES.search(pattern)
    found, parts = numbers or words, list[str]()
    tens: dict[str, list[str]] = {}
    for number in range(int(numbers[1]), int(numbers[2]) + 1) if numbers else ():
        digits = str(number).zfill(len(numbers[1]) if numbers else 0)
        tens.setdefault(digits[:-1], []).append(digits[-1])
    parts += [f"{ten}[{last[0]}-{last[-1]}]" if len(last) > 1 else f"{ten}{last[0]}" for ten, last in tens.items()]
    if words and not numbers:
        letters = words[1].replace(",", "")
        parts = [f"[{letters}]"] if len(letters) == words[1].count(",") + 1 else words[1].split(",")
    return [f"{pattern[: found.start()]}{part}{pattern[found.end() :]}" for part in parts] if found else []


def list_meant(context: Context, node: str, domain: str = "", had: Collection[str] = ()) -> ListSlip | None:
    """Return whose list of nodes is most likely wrong about a node, its place, and the question what is meant.

    Only groups know the node, or only node sets (with tags of a domain), or two of these sets. So a pattern is one
    number too long or too short, or one of several sets is one node too short. A set that would have as many nodes as
    others comes first, then groups. `had` are the tags of the domain that the node has now.
    """
    owners, beside = context.once(patterns_beside)

    def is_about(owner: Declared) -> bool:
        tags = owner.tags or ()
        return owner.level is Level.GROUP or not domain or any(tag.value.startswith(f"{domain}:") for tag in tags)

    known = [owner for owner in owners.get(node, ()) if is_about(owner)]
    sets = [item for item in context.policy.node_sets if item.nodes and is_about(item)] if known else []
    if exchanged := _exchanged(sets if domain else [], owners, node):
        return exchanged
    found = list[tuple[int, int, ListSlip]]()
    for owner, span, pattern in beside.get(node, ()):
        if is_about(owner) and _may_be_wrong(owner, known, is_short=matches(pattern, node)):
            count = len(written_out(pattern) or ())
            others = (entry for item in sets if item is not owner for entry in item.nodes)
            is_alike = any(len(written_out(entry.value) or ()) == count for entry in others)
            order = _GROUP if owner.level is Level.GROUP else _AS_LONG_AS_OTHERS if is_alike else _OTHER_SET
            found.append((order, count, ListSlip(owner, span, f"is {pattern} meant?")))
    counts = [len(_written_out(item.nodes)) for item in sets]
    few, *most = sorted(counts) or [0]
    short = [item for item in sets if any(tag.value in had for tag in item.tags or ())]
    if {*most} == {few + 1} and len(most) >= (2 if found else 1):
        short += [item for item, count in zip(sets, counts, strict=True) if count == few]
    if short and all(owner.level is Level.GROUP for owner in known):
        slip = ListSlip(short[0], short[0].document.value_span(("nodes",)), f"is {node} missing here?")
        found.append((_AS_LONG_AS_OTHERS, few, slip))
    return min(found, key=lambda item: item[:2])[2] if found else None


def _may_be_wrong(owner: Declared, known: Sequence[Declared], *, is_short: bool) -> bool:
    """Return whether a list may be one node too short, or too long, by who names the node."""
    groups = sum(item.level is Level.GROUP for item in known)
    sets = len(known) - groups
    is_group = owner.level is Level.GROUP
    if is_group and is_short:
        return sets > 0 and groups == 0  # only node sets name it
    if is_group:
        return sets == 0  # no node set names it
    if is_short:
        return groups > 0 and sets == 0  # only groups name it
    return sets > 1 or groups == 0  # several sets name it, or no group does


def _exchanged(sets: list[NodeSetPolicy], nodes: Iterable[str], node: str) -> ListSlip | None:
    """Return which of two sets names a node in place of the only one that is in none, if `node` is one of the two."""
    names_of = {item.name: [name for entry in item.nodes for name in written_out(entry.value) or ()] for item in sets}
    uses = Counter(name for names in names_of.values() for name in names)
    order = sorted(nodes, key=lambda name: (len(name), name))
    twice, none = ([name for name in order if uses[name] == times] for times in (2, 0))
    if len(twice) != 1 or len(none) != 1 or node not in (*twice, *none):
        return None
    at = {name: abs(place - order.index(none[0])) for place, name in enumerate(order) if name != twice[0]}
    having = (item for item in reversed(sets) if twice[0] in names_of[item.name])
    short = min(having, key=lambda item: max(at.get(name, 0) for name in names_of[item.name]))
    span = next(entry.span for entry in short.nodes if twice[0] in (written_out(entry.value) or ()))
    return ListSlip(short, span, f"is {none[0]} meant, which is in none?")


def too_wide(context: Context, nodes: set[str], domain: str) -> ListSlip | None:
    """Return the only set with tags of a domain whose pattern, if narrower, would leave just these nodes out."""
    found: list[ListSlip] = []
    begin = f"{domain}:"
    about = (item for item in context.policy.node_sets if any(tag.value.startswith(begin) for tag in item.tags or ()))
    for owner in about:
        for entry in owner.nodes:
            left, ranges = {*(written_out(entry.value) or ())} - nodes, _RANGE.findall(entry.value)
            first, last = map(int, ranges[0]) if len(ranges) == 1 and left else (1, 0)
            narrower = [(first, at) for at in range(first, last)] + [(at, last) for at in range(first + 1, last + 1)]
            patterns = (_RANGE.sub(f"[{low}-{high}]", entry.value) for low, high in narrower)
            meant = next((pattern for pattern in patterns if {*(written_out(pattern) or ())} == left), "")
            found += [ListSlip(owner, entry.span, f"is {meant} meant?")] if meant else []
    return found[0] if len(found) == 1 else None


def almost_in_group(context: Context, name: str) -> tuple[Related, ...]:
    """Return the list of a group that has almost a node which others name, where no node set names one of the list."""
    for span, names in context.once(_in_no_set):
        near = closest(name, names)
        if near is not None and nodes_like(near) != nodes_like(name):
            return see(span, ALMOST)
    return ()


def _in_no_set(context: Context) -> list[tuple[Span, list[str]]]:
    """Return the entries of groups none of whose nodes is in a set, with their nodes; none where there are no sets."""
    in_sets = {each for nodes in context.policy.node_sets for each in _written_out(nodes.nodes)}
    entries = [entry for group in context.groups for entry in group.nodes or ()]
    are_few = in_sets and len(entries) <= MOST_GUESSES
    written = ((entry.span, _written_out([entry])) for entry in (entries if are_few else ()))
    found = [(span, names) for span, names in written if names and in_sets.isdisjoint(names)]
    return found if sum(len(names) for _, names in found) <= MOST_KNOWN else []


def _written_out(entries: Iterable[Located[str]]) -> list[str]:
    return [name for entry in entries for name in written_out(entry.value) or ()]


def nodes_like(name: str) -> str:
    """Return what is missing where a node or a pattern of nodes is unknown: all that differ in numbers only."""
    return f"{NODES_LIKE}{_NUMBERS.sub('#', name)}" if name else ""


def unknown_in_sets(
    context: Context, live: Iterable[str] | None = None
) -> Iterator[tuple[NodeSetPolicy, list[Located[str]]]]:
    """Yield the node sets that name nodes which no group has, with these names; none where that is not known.

    `live` are the nodes of the cluster; without them those of the policy's groups count.
    """
    entries = [entry.value for group in context.groups for entry in group.nodes or ()]
    if not context.policy.node_sets:
        return
    if live is not None:
        known = _KnownNodes(list(live))
    elif entries and all(group.nodes is not None for group in context.groups) and not any(map(unlikely, entries)):
        known = _KnownNodes(entries)
    else:
        return  # the node may be one that a pattern with a slip means
    for nodes in context.policy.node_sets:
        likely = (entry for entry in nodes.nodes if not unlikely(entry.value))  # else GP612
        unknown = []
        for entry in likely:
            absent = known.absent(entry.value) if live is None else []  # else GP606
            unknown += [Located(name, entry.span) for name in absent]
            unknown += [entry] if not absent and not known.may_have(entry.value) else []
        if unknown:
            yield nodes, unknown


class _KnownNodes:
    """The nodes that groups name: definite names, in order, and the patterns that are not definite."""

    def __init__(self, entries: list[str]) -> None:
        definite = {entry: written_out(entry) for entry in dict.fromkeys(entries)}
        self._entries = definite.keys()
        self._definite = {name for names in definite.values() for name in names or ()}
        self._names = sorted(self._definite)
        patterns = [entry for entry, names in definite.items() if names is None]
        self._patterns = {pattern: ends(pattern) for pattern in patterns}

    def absent(self, entry: str) -> list[str]:
        """Return the names that a pattern lists and no group has; none where it is about all nodes that come."""
        is_list = is_glob(entry) and not self._patterns and not ALL_THAT_COME.search(entry)
        names = (written_out(entry) or []) if is_list else []
        absent = [name for name in names if name not in self._definite]
        return absent if len(absent) < len(names) else []

    def may_have(self, entry: str) -> bool:
        """Return whether a node that `entry`, a name or a pattern, stands for may be in a group."""
        if entry in self._entries or any(matches(pattern, entry) for pattern in self._patterns):
            return True
        begin, end = ends(entry)
        if not is_glob(entry):
            return entry in self._definite
        place = bisect_left(self._names, begin)
        while place < len(self._names) and self._names[place].startswith(begin):
            if matches(entry, self._names[place]):
                return True
            place += 1
        return any(
            (first.startswith(begin) or begin.startswith(first)) and (last.endswith(end) or end.endswith(last))
            for first, last in self._patterns.values()
        )
