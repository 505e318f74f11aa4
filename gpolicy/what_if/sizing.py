"""How many more nodes of given kinds it takes until wanted instances fit.

A number of nodes is enough if hail accepts all wanted instances, the largest first, under the limits of the policy.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from gpolicy.allocator.cluster_data import Instance
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.analysis.basis import Basis, StateReport, node_uses, origin_of
from gpolicy.analysis.binding import Binding
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.policy_limits import OF_HTOOLS, OtherValue, needed, with_value, without_limit
from gpolicy.analysis.size_words import with_bound
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import Limits, PairNames, limited, limits_in_force
from gpolicy.errors import ArgumentError, GpolicyError, RequestError, argument
from gpolicy.printable import count, some
from gpolicy.progress import Stop, StoppedError, Tell, silent, until_stopped
from gpolicy.what_if.filling import FillingGroup, only_group, room_of
from gpolicy.what_if.load import nodes_like
from gpolicy.what_if.supposing import MOST_NODES, More, matching, one_of, spec_instance


@dataclass(frozen=True, slots=True)
class NodeOffer:
    """A kind of node: like the node `like`, at `cost` (of any currency; 1 counts nodes)."""

    like: str
    cost: float = 1.0


def read_kind(text: str) -> NodeOffer:
    """Return what `--like` says: NODE or NODE=COST. Raise RequestError."""
    like, equals, written = text.partition("=")
    if not like or (equals and not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", written, re.ASCII)):
        raise ArgumentError(f"like {text!r} cannot be read", hint="write NODE, or NODE=COST with a number: node1=8500")
    cost = float(written) if equals else 1.0
    if not cost:
        raise ArgumentError(f"like {text!r}: a node that costs nothing", hint="write a cost above 0")
    return NodeOffer(like, cost)


@dataclass(frozen=True, slots=True)
class WantedSize:
    """Wanted instances of one size, and how many of them fit in the answer (all, if there is one)."""

    title: str
    count: int
    instance: Instance


@dataclass(frozen=True, slots=True)
class Shortfall:
    """What is missing with fewer nodes: the first size that does not fit as often as wanted, how often, and why."""

    nodes: tuple[int, ...]
    title: str
    fits: int
    binding: Binding


@dataclass(frozen=True, slots=True)
class FewerNodes:
    """How many nodes are enough with another value of a number of the policy, which limits with fewer."""

    other: OtherValue
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeReport(StateReport):
    """How many more nodes of each of `kinds` group `group` needs (`nodes`), for `wanted` instances.

    So many `failures` of nodes at once are absorbed then. `shortage` says what is missing with one node fewer; None
    where none is needed. `more` are the instances that still fit then, of each wanted size alone; None where the time
    was over. `instead`: fewer are enough with another value of the policy's number that limits. `exhaustive`: no
    cheaper choice is left that was not tried, and all was counted.
    """

    group: str
    wanted: tuple[WantedSize, ...]
    kinds: tuple[NodeOffer, ...]
    nodes: tuple[int, ...]
    failures: int
    shortage: Shortfall | None
    more: tuple[int | None, ...]
    instead: FewerNodes | None
    trials: int
    exhaustive: bool

    @property
    def cost(self) -> float:
        """What the nodes cost together."""
        return _cost(self.kinds, self.nodes)


def _cost(kinds: Sequence[NodeOffer], nodes: Sequence[int]) -> float:
    return sum(kind.cost * number for kind, number in zip(kinds, nodes, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRequest:
    """What must fit in which group, on which kinds of nodes; none: nodes as most of the group's are."""

    wanted: tuple[More, ...]
    kinds: tuple[NodeOffer, ...] = ()
    group: str | None = None


MOST_KINDS = 3
"""Kinds of nodes in one question."""

_SEARCH = 0.75  # the share of the time for the search; the rest is for what the answer lacks and leaves


def find_size(
    state: ClusterState,
    request: SizeRequest,
    names: PairNames,
    limits: Limits,
    tell: Tell = silent,
    stop: Stop | None = None,
) -> SizeReport:
    """Return the cheapest number of nodes of each kind; of equally cheap ones that with the fewest nodes.

    Raise RequestError for a question that makes no sense on this cluster, GpolicyError if no number of nodes is enough,
    or if the `stop` comes before one is found.
    """
    group = _group_to_grow(state, request)
    offers = request.kinds or (NodeOffer(_usual_node(state, group)),)
    kinds = tuple(replace(kind, like=one_of("like", kind.like, state.nodes, "node")) for kind in offers)
    if len({kind.like for kind in kinds}) < len(kinds):
        raise ArgumentError("like names a node twice", hint="name each kind of nodes once")
    stop = stop or Stop()
    counts = Counter[More]()
    for more in request.wanted:
        counts[replace(more, count=1)] += more.count
    asked = tuple(replace(more, count=number) for more, number in counts.items())
    search = _NodeSearch(limited(state, limits), group, kinds, names, asked, stop, tell)
    nodes, exhaustive = search.cheapest()
    search.share = 1.0
    found, shortage, instead, complete = search.trial(nodes), None, None, False
    still: list[int] = []
    with until_stopped():
        shortage = search.shortage(nodes)
        instead = None if shortage is None else search.instead(shortage.nodes, _cost(kinds, nodes))
        for item in found.wanted:
            after = found.room.place_by_parts(found.reached, item.instance, math.inf, stop)
            still.append(len(after.placed) - len(found.reached.placed))
        complete = True
    return SizeReport(
        **origin_of(state),
        basis=found.basis,
        group=group,
        wanted=found.wanted,
        kinds=kinds,
        nodes=nodes,
        failures=found.room.counted.rules.failures,
        shortage=shortage,
        instead=instead,
        more=(*still, *[None] * (len(found.wanted) - len(still))),
        trials=len(search.known),
        exhaustive=exhaustive and complete,
        limits=limits_in_force(state, limits, group),
        nodes_before=node_uses(state, search.trial((0,) * len(kinds)).room.counted.initial.nodes.values(), group),
        nodes_after=node_uses(state, found.reached.nodes.values(), group),
    )


def _group_to_grow(state: ClusterState, request: SizeRequest) -> str:
    if request.group is not None or not request.kinds:
        return only_group(state, request.group)
    likes = matching("like", ",".join(kind.like for kind in request.kinds), state.nodes, "node")
    groups = sorted({state.nodes[name].group for name in likes})
    if len(groups) > 1:
        hint = f"say {argument('group')}, one of {some(groups)}"
        raise RequestError("the kinds of nodes are in several groups", hint=hint)
    return groups[0]


def _usual_node(state: ClusterState, group: str) -> str:
    """Return the first node of the group with the hardware that most of its nodes have. Raise RequestError."""
    hardware = {
        node.name: (node.resources.memory_total, node.resources.disk_total, node.resources.cpu_total)
        for node in state.nodes_of(group)
    }
    if not hardware:
        hint = f"say {argument('like')} NODE: which nodes can be bought"
        raise RequestError(f"group {group} has no nodes", hint=hint)
    usual = Counter(hardware.values()).most_common(1)[0][0]
    return next(name for name, item in hardware.items() if item == usual)


@dataclass(frozen=True, slots=True)
class _TriedNodes:
    """The wanted instances placed on some number of nodes: the state reached, and what is missing."""

    room: FillingGroup
    basis: Basis
    wanted: tuple[WantedSize, ...]
    reached: AllocationState
    missing: tuple[WantedSize, int] | None

    def binding(self) -> Binding:
        """Return why the missing instance does not fit."""
        assert self.missing is not None  # noqa: S101 (asked by the caller)
        return self.room.binding(self.reached, self.missing[0].instance)


@dataclass(slots=True)
class _NodeSearch:
    """Tries numbers of nodes. What was tried is remembered."""

    state: ClusterState
    group: str
    kinds: tuple[NodeOffer, ...]
    names: PairNames
    asked: tuple[More, ...]
    stop: Stop
    tell: Tell
    share: float = _SEARCH
    relax: Callable[[CountedCluster], CountedCluster] | None = None
    known: dict[tuple[int, ...], _TriedNodes] = field(default_factory=dict)
    best: tuple[int, ...] | None = None

    def cheapest(self) -> tuple[tuple[int, ...], bool]:
        """Return the cheapest numbers that are enough, and whether the search ended by itself."""
        ended = False
        with until_stopped():
            self._find_any()
            self._improve(())
            ended = True
        if self.best is None:
            hint = f"give it longer: {argument('stop')}"
            raise GpolicyError(f"no answer after {count(len(self.known), 'trial')}", hint=hint)
        return self.best, ended

    def _find_any(self) -> None:
        """Find numbers that are enough: as many of each kind, by doubling."""
        number = 0
        while not self.fits(nodes := (number,) * len(self.kinds)):
            if number == MOST_NODES:
                raise self._hopeless(nodes)
            number = min(MOST_NODES, max(1, 2 * number))
        self.best = nodes

    def _improve(self, fixed: tuple[int, ...]) -> None:
        """Find what is cheaper than the best, with the first numbers `fixed`."""
        if len(fixed) == len(self.kinds) - 1:
            self._least_of_last(fixed)
            return
        number = 0
        while number <= MOST_NODES and self._may_win((*fixed, number)):
            self._improve((*fixed, number))
            number += 1

    def _may_win(self, nodes: tuple[int, ...]) -> bool:
        """Return whether these numbers, with none of the other kinds, come before the best."""
        assert self.best is not None  # noqa: S101 (found first)
        return self._rank(nodes) < self._rank(self.best)

    def _rank(self, nodes: tuple[int, ...]) -> tuple[float, int]:
        return _cost(self.kinds[: len(nodes)], nodes), sum(nodes)

    def _least_of_last(self, fixed: tuple[int, ...]) -> None:
        """Find the least number of the last kind that is enough beside `fixed`, by bisection below what may win."""
        high = bisect_left(range(MOST_NODES + 1), 1, key=lambda number: not self._may_win((*fixed, number))) - 1
        if high < 0 or not self.fits((*fixed, high)):
            return
        low = -1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.fits((*fixed, middle)) else (middle, high)
        self.best = (*fixed, high)

    def fits(self, nodes: tuple[int, ...]) -> bool:
        """Return whether all wanted instances fit with so many more nodes."""
        return self.trial(nodes).missing is None

    def trial(self, nodes: tuple[int, ...]) -> _TriedNodes:
        """Return the wanted instances placed with so many more nodes."""
        if nodes not in self.known:
            self.stop.spend(share=self.share)
            self.tell(count(sum(nodes), "more node"))
            self.known[nodes] = self._tried(nodes)
        return self.known[nodes]

    def _tried(self, nodes: tuple[int, ...]) -> _TriedNodes:
        state = self.state
        for kind, number in zip(self.kinds, nodes, strict=True):
            if number:
                state = nodes_like(state, kind.like, number, self.group)
        room, basis = room_of(state, self.group)
        room = room if self.relax is None else FillingGroup(self.relax(room.counted))
        titles = ((more, *spec_instance(state, more, self.group, self.names)) for more in self.asked)
        wanted = [WantedSize(title, more.count, instance) for more, title, instance in titles]
        wanted.sort(key=lambda one: (one.instance.memory, one.instance.disk, one.instance.vcpus), reverse=True)
        reached, missing = room.counted.initial, None
        for item in wanted:
            before = len(reached.placed)
            reached = room.place_by_parts(reached, item.instance, item.count, self.stop, self.share)
            if (fits := len(reached.placed) - before) < item.count:
                missing = item, fits
                break
        return _TriedNodes(room, basis, tuple(wanted), reached, missing)

    def shortage(self, nodes: tuple[int, ...]) -> Shortfall | None:
        """Return what is missing with one node of the last kind in use fewer."""
        used = [place for place, number in enumerate(nodes) if number]
        if not used:
            return None
        fewer = (*nodes[: used[-1]], nodes[used[-1]] - 1, *nodes[used[-1] + 1 :])
        trial = self.trial(fewer)
        if trial.missing is None:
            return None
        item, fits = trial.missing
        return Shortfall(fewer, item.title, fits, trial.binding())

    def instead(self, short: tuple[int, ...], cost: float) -> FewerNodes | None:
        """Return how many nodes below `cost` are enough with another value of the number that limits with `short`."""
        trial = self.trial(short)
        assert trial.missing is not None  # noqa: S101 (else nothing is missing)
        cause, instance = trial.binding().cause, trial.missing[0].instance
        if cause not in OF_HTOOLS:
            return None
        free = self._relaxed_by(lambda counted: without_limit(counted, cause, instance))
        nodes, _ = free.cheapest()
        other = needed(trial.room.counted, cause, instance, free.trial(nodes).reached.nodes.values())
        if other is None or _cost(self.kinds, nodes) >= cost:
            return None
        fewer, _ = self._relaxed_by(lambda counted: with_value(counted, cause, other.then)).cheapest()
        return FewerNodes(other, fewer) if _cost(self.kinds, fewer) < cost else None

    def _relaxed_by(self, relax: Callable[[CountedCluster], CountedCluster]) -> _NodeSearch:
        return replace(self, relax=relax, known={}, best=None)

    def _hopeless(self, nodes: tuple[int, ...]) -> GpolicyError:
        trial = self.known[nodes]
        assert trial.missing is not None  # noqa: S101 (asked by the caller)
        item, fits = trial.missing
        cause, instead = trial.binding().cause, None
        message = f"{count(sum(nodes), 'more node')} are too few: {fits} of {item.count} {with_bound(item.title)} fit"
        hint = f"the limit is {cause.key}: {cause.sentence}"
        if self.relax is None:
            with suppress(GpolicyError, StoppedError):
                instead = self.instead(nodes, math.inf)
        if instead is not None:
            hint += f"; with {instead.other.words} it needs {count(sum(instead.nodes), 'more node')}"
        return GpolicyError(message, hint=hint)
