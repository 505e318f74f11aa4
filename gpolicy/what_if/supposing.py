"""A state with what is supposed of it: first its hardware, then its failures, then its load."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial

from gpolicy.allocator.cluster_data import Instance
from gpolicy.allocator.enumerations import NO_NODE
from gpolicy.analysis.basis import settle
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.loaded_state import load_state
from gpolicy.analysis.pair_names import PairNames, find_pair, pair_title
from gpolicy.analysis.unknown import require
from gpolicy.analysis.wanted_instance import PlaceRequest, of_pair, wanted_group, wanted_instance
from gpolicy.cluster.state import ClusterState, LiveDisk, LiveInstance
from gpolicy.errors import GpolicyError, UsageError
from gpolicy.ganeti.units import exact_size
from gpolicy.printable import count, some
from gpolicy.what_if.load import (
    Amount,
    failed_over,
    free_names,
    moved,
    nodes_like,
    offline,
    restarted,
    upgraded,
    with_all,
    without,
    without_node,
)
from gpolicy.what_if.words import (
    MOST_INSTANCES,
    MOST_NODES,
    More,
    Move,
    Upgrade,
    WhatIf,
    matching,
    nodes_and_instances,
    one_of,
)


def suppose(
    state: ClusterState, what_if: WhatIf, names: PairNames | None = None, *, declared: bool = False
) -> ClusterState:
    """Return the cluster as it would be, with the suppositions in words (`ClusterState.supposed`).

    Nodes come, move and are upgraded; nodes go offline or are lost; instances and nodes go; at last instances come,
    each where the allocator places it, with as few disks as its spec allows, as capacity counts. `names` are those of
    the policy's spec pairs; `declared` is that of `settle`. Raise UsageError for a supposition that is impossible,
    GpolicyError where instances do not fit.
    """
    for step in _steps(what_if, names or PairNames(), declared=declared):
        state, said = step(state)
        state = replace(state, supposed=(*state.supposed, said))
    return state


Step = Callable[[ClusterState], tuple[ClusterState, str]]


def _steps(what_if: WhatIf, names: PairNames, *, declared: bool) -> Iterator[Step]:
    yield from (partial(_nodes, item, item.like) for item in what_if.more if item.like is not None)
    yield from (partial(_move, item) for item in what_if.moves)
    yield from (partial(_upgrade, item) for item in what_if.upgrades)
    yield from (partial(_offline, words) for words in what_if.offline)
    yield from (partial(_lost, words, declared=declared) for words in what_if.lost)
    yield from (partial(_less, words) for words in what_if.less)
    more = (item for item in what_if.more if item.spec is not None)
    yield from (partial(_instances, item, item.spec or "", names, declared=declared) for item in more)


def _nodes(more: More, like: str, state: ClusterState) -> tuple[ClusterState, str]:
    node = one_of("--with", like, state.nodes, "node")
    _check_number("nodes", more.count, state.nodes, MOST_NODES)
    group = state.nodes[node].group if more.group is None else one_of("--with", more.group, state.groups, "group")
    said = f"{count(more.count, 'more node')} like {node} in group {group}"
    return nodes_like(state, node, more.count, group), said


def _move(move: Move, state: ClusterState) -> tuple[ClusterState, str]:
    group = one_of("--move", move.group, state.groups, "group")
    nodes = matching("--move", move.nodes, state.nodes, "node")
    for name in nodes:
        state = moved(state, name, group)
    return state, f"{some(nodes)} in group {group}"


def _upgrade(upgrade: Upgrade, state: ClusterState) -> tuple[ClusterState, str]:
    nodes = matching("--upgrade", upgrade.nodes, state.nodes, "node")
    for name in nodes:
        state = upgraded(state, name, dict(upgrade.amounts))
    amounts = " and ".join(_amount(key, amount) for key, amount in upgrade.amounts.items())
    return state, f"{amounts} in {'each of ' if len(nodes) > 1 else ''}{some(nodes)}"


_UPGRADED = {"memory": "of memory", "disk": "of disk", "cpus": "CPUs", "pvs": "physical volumes"}


def _amount(key: str, amount: Amount) -> str:
    number = exact_size(amount.number) if key in ("memory", "disk") else str(amount.number)
    return f"{number} {'more ' if amount.more else ''}{_UPGRADED[key]}"


def _offline(words: str, state: ClusterState) -> tuple[ClusterState, str]:
    nodes = matching("--offline", words, state.nodes, "node")
    return offline(state, nodes), f"{some(nodes)} offline"


def _lost(words: str, state: ClusterState, *, declared: bool) -> tuple[ClusterState, str]:
    nodes = matching("--lost", words, state.nodes, "node")
    state, homeless = failed_over(state, set(nodes))
    state = offline(restarted(state, nodes, homeless, declared=declared), nodes)
    stay = [name for name in homeless if state.instances[name].primary_node in nodes]
    return state, f"{some(nodes)} lost{f' (without failover of {some(stay, 3)})' if stay else ''}"


def _less(words: str, state: ClusterState) -> tuple[ClusterState, str]:
    nodes, instances = nodes_and_instances(words, state.nodes, state.instances)
    state = without(state, instances)
    for name in nodes:
        state = without_node(state, name)
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
    more: More, spec: str, names: PairNames, state: ClusterState, *, declared: bool
) -> tuple[ClusterState, str]:
    group = _group_for(more, state)
    _check_number("instances", more.count, state.instances, MOST_INSTANCES)
    title, wanted = spec_instance(state, more, group, names)
    counted = load_state(state, template=wanted.template, declared=declared, group=group).groups[group]
    if (refusal := counted.refusal(wanted)) is not None:
        raise GpolicyError(f"--with: {title} in group {group}: {refusal.sentence}")
    placed = counted.place(counted.initial, wanted, more.count)
    if len(placed.placed) < more.count:
        binding = counted.find_binding(placed, wanted)
        message = f"--with: only {len(placed.placed):,} of {more.count:,} {title} fit in group {group}"
        raise GpolicyError(message, hint=f"the limit is {binding.cause.key}: {binding.cause.sentence}")
    called = free_names(spec if more.request is None else "instance", more.count, state.instances)
    made = [_observed(item, counted, name) for item, name in zip(reversed(placed.placed), called, strict=True)]
    return with_all(state, made), f"{more.count:,} more {title} in group {group}"


def _check_number(what: str, count: int, known: Collection[str], most: int) -> None:
    """Raise UsageError for more supposed nodes or instances than `most` in all."""
    number = count + sum("+" in name for name in known)
    if number > most:
        raise UsageError(f"--with: {number:,} more {what} in all", hint=f"suppose at most {most:,}")


def _group_for(more: More, state: ClusterState) -> str:
    if more.group is not None:
        return one_of("--with", more.group, state.groups, "group")
    filled = sorted({node.group for node in state.nodes.values()})
    if len(filled) != 1:
        hint = f"write {more.count}x {more.spec} in GROUP, one of {some(filled)}"
        raise UsageError(f"--with: {more.spec} in which group?", hint=hint)
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
