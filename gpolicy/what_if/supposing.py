"""What is supposed of a cluster, in words (`2x like:node1 in shared`, `node1 memory=+64G`), and the state that follows.

First its hardware is changed, then its failures happen, then its load.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import Final

from gpolicy.allocator.cluster_data import NO_NODE, Instance
from gpolicy.analysis.allocator_input import require
from gpolicy.analysis.basis import settle
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.loaded_state import load_state
from gpolicy.analysis.size_words import find_pair, pair_title, read_words, split_count, with_bound
from gpolicy.analysis.wanted_instance import PlaceRequest, of_pair, wanted_group, wanted_instance
from gpolicy.cluster.state import ClusterState, LiveDisk, LiveInstance
from gpolicy.cluster.terms import PairNames
from gpolicy.errors import ArgumentError, RequestError, argument
from gpolicy.ganeti.amounts import exact_size, parse_size
from gpolicy.guessing import did_you_mean, did_you_mean_one_of
from gpolicy.printable import count, some
from gpolicy.what_if import load

MOST_NODES: Final = 1000
"""Nodes that one supposition may add."""

MOST_INSTANCES: Final = 20_000
"""Instances that one supposition may add."""

_WITH_FORM: Final = (
    "2x like:NODE in GROUP for nodes, 10x SIZE in GROUP or 10x memory=4G disk=20G in GROUP for instances"
)
_WANT_FORM: Final = "50x SIZE, or 50x memory=4G disk=20G"
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
class SupposedUpgrade:
    """Other amounts of memory, disk, CPUs or physical volumes in nodes."""

    nodes: str
    amounts: Mapping[str, load.Amount]


@dataclass(frozen=True, slots=True)
class SupposedMove:
    """Nodes in another group."""

    nodes: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """What is supposed of a cluster. Names are lists with commas, of globs."""

    more: tuple[More, ...] = ()
    less: tuple[str, ...] = ()
    moves: tuple[SupposedMove, ...] = ()
    upgrades: tuple[SupposedUpgrade, ...] = ()
    offline: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether anything is supposed."""
        return self != WhatIf()

    def about(self, group: str | None) -> WhatIf:
        """Return the same with what comes in `group`, the one that a run is about, where no group is named."""
        more = (item if item.group else replace(item, group=group) for item in self.more)
        return replace(self, more=tuple(more))


def read_more(text: str, option: str = "with", form: str = _WITH_FORM) -> More:
    """Return what `--with` says. Raise RequestError."""
    plain = re.sub(r"\b(size|pair) (?=[0-9])", "", text)  # as reports call, and called, one without a name
    number, words = split_count(plain.split())
    words, group = (words[:-2], words[-1]) if words[-2:-1] == ["in"] else (words, None)
    sized = bool(words) and all("=" in word for word in words)
    if len(words) != 1 and not sized:
        raise ArgumentError(f"{option} {text!r} cannot be read", hint=f"write {form}")
    what = " ".join(words)
    name, colon, rest = what.partition(":")
    nodes = name == "like" and bool(rest)
    if colon and not nodes and not sized and rest not in ("min", "max"):
        hint = f"write {form}; SIZE:max is a size at its largest"
        raise ArgumentError(f"{option} {text!r}: nothing is known of {what!r}", hint=hint)
    most = MOST_NODES if nodes else MOST_INSTANCES
    if not 1 <= number <= most:
        many = f"{number} {'nodes' if nodes else 'instances'}"
        raise ArgumentError(f"{option} {text!r}: {many}", hint=f"write 1 to {most:,}")
    if sized:
        return More(number, group, spec=what, request=read_words(words, keys=SIZE_KEYS).request)
    return More(number, group, like=rest) if nodes else More(number, group, spec=name, bound=rest or "min")


def read_wanted(text: str) -> More:
    """Return what must fit: `50x SPEC`. Raise RequestError."""
    wanted = read_more(text, "want", _WANT_FORM)
    if wanted.group is not None:
        hint = f"write {_WANT_FORM}, and the group as {argument('group')} NAME"
        raise ArgumentError(f"want {text!r} names a group", hint=hint)
    if wanted.like is not None:
        hint = f"write {_WANT_FORM}; {argument('like')} says which nodes can be bought"
        raise ArgumentError(f"want {text!r} names no instances", hint=hint)
    return wanted


def read_move(text: str) -> SupposedMove:
    """Return what `--move` says. Raise RequestError."""
    match text.split():
        case [nodes, "to", group]:
            return SupposedMove(nodes, group)
    raise ArgumentError(f"move {text!r} cannot be read", hint="write NODE,... to GROUP")


def read_upgrade(text: str) -> SupposedUpgrade:
    """Return what `--upgrade` says. Raise RequestError."""
    nodes, *words = text.split() or [""]
    if not words or "=" in nodes:
        hint = "write NODE,... memory=+64G disk=4T cpus=32 pvs=+1"
        raise ArgumentError(f"upgrade {text!r} cannot be read", hint=hint)
    amounts: dict[str, load.Amount] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key not in load.UPGRADES:
            hint = did_you_mean_one_of(key, "upgrades", (*load.UPGRADES,))
            raise ArgumentError(f"upgrade: unknown {key!r}", hint=hint)
        if key in amounts:
            raise ArgumentError(f"upgrade: {key} is given twice")
        amounts[key] = _amount(key, value)
    return SupposedUpgrade(nodes, amounts)


def _amount(key: str, text: str) -> load.Amount:
    more, number = text.startswith("+"), text.removeprefix("+")
    if key in ("cpus", "pvs"):
        if not re.fullmatch("[0-9]{1,6}", number, re.ASCII):
            raise ArgumentError(f"upgrade: {key}={text}: not a whole number of at most six digits")
        return load.Amount(int(number), more)
    try:
        return load.Amount(parse_size(number), more)
    except ValueError as error:
        raise ArgumentError(f"upgrade: {key}={text}: {error}") from None


def matching(option: str, words: str, known: Collection[str], what: str) -> list[str]:
    """Return the names that `words` (a list with commas, of globs) mean, each once.

    The first part of a full name is enough, as in Ganeti, if only one has it. Raise RequestError for an unknown name.
    """
    found: dict[str, None] = {}
    for word in words.split(","):
        here = _matching(word, known)
        if not here:
            hint = did_you_mean_one_of(word, f"{what}s", known)
            error = f"there is no {what} {word!r}"
            raise ArgumentError(f"{option}: {error}", hint=hint) if option else RequestError(error, hint=hint)
        found |= dict.fromkeys(here)
    return list(found)


def _matching(word: str, known: Collection[str]) -> list[str]:
    name = full_name(word, known)
    if name in known:
        return [name]
    globs = (word, f"{word}.*") if re.search(r"[*?\[]", word) else ()
    return [name for name in known if any(fnmatchcase(name, glob) for glob in globs)]


def full_name(word: str, known: Collection[str]) -> str:
    """Return the one name whose first part `word` is; the word itself where there is none, or several."""
    short = [name for name in known if name.startswith(f"{word}.")]
    return short[0] if len(short) == 1 and word not in known else word


def one_of(option: str, word: str, known: Collection[str], what: str) -> str:
    """Return the one name that `word` means. Raise RequestError for none, or several."""
    found = matching(option, word, known, what)
    if len(found) > 1:
        raise ArgumentError(f"{option}: {word!r} means {len(found)} {what}s", hint=f"name one: {found[0]}")
    return found[0]


def nodes_and_instances(
    words: str, nodes: Collection[str], instances: Collection[str]
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the nodes and the instances that `--without` means. Raise RequestError for a word that means neither."""
    of_nodes: dict[str, None] = {}
    of_instances: dict[str, None] = {}
    for word in words.split(","):
        here, there = _matching(word, nodes), _matching(word, instances)
        if here and there:
            hint = f"{here[0]} is a node, {there[0]} an instance: write longer names"
            raise ArgumentError(f"without {word!r} means nodes and instances", hint=hint)
        if not here and not there:
            hint = did_you_mean(word, (*nodes, *instances), "name nodes or instances, with commas between them")
            raise ArgumentError(f"without: there is no node or instance {word!r}", hint=hint)
        of_nodes |= dict.fromkeys(here)
        of_instances |= dict.fromkeys(there)
    return list(of_nodes), list(of_instances)


def suppose(
    state: ClusterState, what_if: WhatIf, names: PairNames | None = None, *, resource_model: bool = False
) -> ClusterState:
    """Return the cluster as it would be, with the suppositions in words (`ClusterState.supposed`).

    Nodes come, move and are upgraded; nodes go offline or are lost; instances and nodes go; at last instances come,
    each where the allocator places it, with as few disks as its spec allows, as capacity counts. `names` are those of
    the policy's sizes; `resource_model` is that of `settle`. Raise RequestError for a supposition that is
    impossible, GpolicyError where instances do not fit.
    """
    for step in _steps(what_if, names or PairNames(), resource_model=resource_model):
        state, said = step(state)
        state = replace(state, supposed=(*state.supposed, said))
    return state


Supposing = Callable[[ClusterState], tuple[ClusterState, str]]


def _steps(what_if: WhatIf, names: PairNames, *, resource_model: bool) -> Iterator[Supposing]:
    yield from (partial(_more_nodes, item, item.like) for item in what_if.more if item.like is not None)
    yield from (partial(_move, item) for item in what_if.moves)
    yield from (partial(_upgrade, item) for item in what_if.upgrades)
    yield from (partial(_offline, words) for words in what_if.offline)
    yield from (partial(_lost, words, resource_model=resource_model) for words in what_if.lost)
    yield from (partial(_less, words) for words in what_if.less)
    more = (item for item in what_if.more if item.spec is not None)
    yield from (partial(_instances, item, item.spec or "", names, resource_model=resource_model) for item in more)


def _more_nodes(more: More, like: str, state: ClusterState) -> tuple[ClusterState, str]:
    node = one_of("with", like, state.nodes, "node")
    _check_number("nodes", more.count, state.nodes, MOST_NODES)
    group = state.nodes[node].group if more.group is None else one_of("with", more.group, state.groups, "group")
    said = f"{count(more.count, 'more node')} like {node} in group {group}"
    return load.nodes_like(state, node, more.count, group), said


def _move(move: SupposedMove, state: ClusterState) -> tuple[ClusterState, str]:
    group = one_of("move", move.group, state.groups, "group")
    nodes = matching("move", move.nodes, state.nodes, "node")
    for name in nodes:
        state = load.moved(state, name, group)
    return state, f"{some(nodes)} in group {group}"


def _upgrade(upgrade: SupposedUpgrade, state: ClusterState) -> tuple[ClusterState, str]:
    nodes = matching("upgrade", upgrade.nodes, state.nodes, "node")
    for name in nodes:
        state = load.upgraded(state, name, dict(upgrade.amounts))
    said = []
    for key, amount in upgrade.amounts.items():
        number = exact_size(amount.number) if key in ("memory", "disk") else str(amount.number)
        said.append(f"{number} {'more ' if amount.more else ''}{_UPGRADED[key]}")
    return state, f"{' and '.join(said)} in {'each of ' if len(nodes) > 1 else ''}{some(nodes)}"


_UPGRADED = {"memory": "of memory", "disk": "of disk", "cpus": "CPUs", "pvs": "physical volumes"}


def _offline(words: str, state: ClusterState) -> tuple[ClusterState, str]:
    nodes = matching("offline", words, state.nodes, "node")
    return load.offline(state, nodes), f"{some(nodes)} offline"


def _lost(words: str, state: ClusterState, *, resource_model: bool) -> tuple[ClusterState, str]:
    nodes = matching("lost", words, state.nodes, "node")
    state, homeless = load.failed_over(state, set(nodes))
    state = load.offline(load.restarted(state, nodes, homeless, resource_model=resource_model), nodes)
    stay = [name for name in homeless if state.instances[name].primary_node in nodes]
    return state, f"{some(nodes)} lost{f' (without failover of {some(stay, 3)})' if stay else ''}"


def _less(words: str, state: ClusterState) -> tuple[ClusterState, str]:
    nodes, instances = nodes_and_instances(words, state.nodes, state.instances)
    state = load.without(state, instances)
    for name in nodes:
        state = load.without_node(state, name)
    return state, f"{some([*nodes, *instances])} gone"


def spec_instance(state: ClusterState, more: More, group: str, names: PairNames) -> tuple[str, Instance]:
    """Return the name of the size that `more` wants in `group`, and an instance of it."""
    title, settled = more.spec or "", settle(state)
    require(state, settled.unknown, {group})
    if more.request is not None:
        request = replace(more.request, group=group)
    else:
        pair, _ = find_pair(title, names, state, group)
        request = of_pair(PlaceRequest(group=group), pair, more.bound, state, group)
        title = f"{pair_title(title)}:{more.bound}"
    return title, wanted_instance(request, wanted_group(request, settled.data), state, settled.data)


def _instances(
    more: More, spec: str, names: PairNames, state: ClusterState, *, resource_model: bool
) -> tuple[ClusterState, str]:
    group = _group_for(more, state)
    _check_number("instances", more.count, state.instances, MOST_INSTANCES)
    title, wanted = spec_instance(state, more, group, names)
    counted = load_state(state, template=wanted.template, resource_model=resource_model, group=group).groups[group]
    if (refusal := counted.refusal(wanted)) is not None:
        raise ArgumentError(f"with: {with_bound(title)} in group {group}: {refusal.sentence}")
    placed = counted.place(counted.initial, wanted, more.count)
    if len(placed.placed) < more.count:
        binding = counted.find_binding(placed, wanted)
        message = f"with: only {len(placed.placed):,} of {more.count:,} {with_bound(title)} fit in group {group}"
        raise ArgumentError(message, hint=f"the limit is {binding.cause.key}: {binding.cause.sentence}")
    called = load.free_names(spec if more.request is None else "instance", more.count, state.instances)
    made = [_observed(item, counted, name) for item, name in zip(reversed(placed.placed), called, strict=True)]
    return load.with_all(state, made), f"{more.count:,} more {with_bound(title)} in group {group}"


def _check_number(what: str, count: int, known: Collection[str], most: int) -> None:
    """Raise RequestError for more supposed nodes or instances than `most` in all."""
    number = count + sum("+" in name for name in known)
    if number > most:
        raise ArgumentError(f"with: {number:,} more {what} in all", hint=f"suppose at most {most:,}")


def _group_for(more: More, state: ClusterState) -> str:
    if more.group is not None:
        return one_of("with", more.group, state.groups, "group")
    filled = sorted({node.group for node in state.nodes.values()})
    if len(filled) != 1:
        hint = f"write {more.count}x {more.spec} in GROUP, one of {some(filled)}"
        raise ArgumentError(f"with: {more.spec} in which group?", hint=hint)
    return filled[0]


def _observed(placed: Instance, counted: CountedCluster, name: str) -> LiveInstance:
    """Return a placed instance as a state has it."""
    nodes = counted.cluster.nodes
    secondary = () if placed.secondary == NO_NODE else (nodes[placed.secondary].facts.name,)
    template = placed.template.value
    return LiveInstance(
        name=name,
        primary_node=nodes[placed.primary].facts.name,
        secondary_nodes=secondary,
        disk_template=template,
        disks=tuple(LiveDisk(size=disk.size, template=template, spindles=disk.spindles) for disk in placed.disks),
        minmem=placed.memory,
        maxmem=placed.burst,
        vcpus=placed.vcpus,
        spindle_use=placed.spindle_use,
        status=placed.status.value,
        running=True,
    )
