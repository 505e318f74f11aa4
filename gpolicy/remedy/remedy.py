"""A remedy: the moves and sizes that cure a cluster, what each costs, and what is left and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import floor
from typing import Final

from gpolicy.allocator.balancing import Balanced
from gpolicy.allocator.cluster_data import NO_NODE, AllocPolicy, FailReason, InstanceStatus, Node
from gpolicy.allocator.instance_moves import InstanceMove
from gpolicy.allocator.merge import Cluster
from gpolicy.analysis.basis import Settled, StateReport, node_uses, origin_of
from gpolicy.analysis.binding import Cause, of_move
from gpolicy.analysis.capacity import CapacityReport, GroupCapacity, PairCapacity
from gpolicy.analysis.health import ExclusionUnsatisfiable, LocationFacts
from gpolicy.analysis.loaded_state import LoadedState, basis_notes, load_state
from gpolicy.analysis.shown_score import Score, score_of
from gpolicy.analysis.violations import PolicyJudge
from gpolicy.analysis.wanted_instance import PlaceRequest, of_pair
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import NO_LIMITS, Limits, PairNames, limits_in_force
from gpolicy.data import read_data
from gpolicy.errors import GpolicyError
from gpolicy.printable import count, listed, some
from gpolicy.progress import Stop, Tell, silent
from gpolicy.remedy.commands import SizeCure, commands_of, downtime, sets_of, size_cure
from gpolicy.remedy.faults import RATIOS, Fault, FaultKind, Layout, Places
from gpolicy.remedy.moving import Movers, copied_by, why_fixed
from gpolicy.remedy.room import MOST_WANTED, Hail, MadeRoom, Want, most_that_fit
from gpolicy.remedy.room_search import RoomSearch, make_room
from gpolicy.remedy.saved_remedy import Move
from gpolicy.remedy.search import Moves, RemedySearch

DEFAULT_RATE: Final = 60
"""MiB a second: Ganeti's own `resync-rate` of DRBD."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyStep(Move):
    """One move of a remedy. `copied` is MiB, `seconds` the time for them. `cures` are the faults that it ends."""

    number: int
    copied: int
    seconds: float
    downtime: str
    cures: tuple[Fault, ...]
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A fault that nothing cures, and why."""

    fault: Fault
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyReport(StateReport):
    """What is wrong with a cluster, what cures it, and what is left.

    `rate` is in MiB a second; `seconds` is the time for all sets, one after the other. `exhaustive` says whether the
    search ended by itself, not by its limits or for lack of time. With `room` the moves make room, and cure nothing.
    """

    cluster_uuid: str | None
    faults: tuple[Fault, ...]
    steps: tuple[RemedyStep, ...]
    left: tuple[Left, ...]
    faults_after: tuple[Fault, ...]
    sizes: tuple[SizeCure, ...]
    rate: int
    seconds: float
    score_before: Score
    score_after: Score
    exhaustive: bool
    room: MadeRoom | None = None
    notes: tuple[str, ...] = ()

    @property
    def cured(self) -> int:
        """How many faults the moves end."""
        return len(set(self.faults) - set(self.faults_after))

    @property
    def new(self) -> tuple[Fault, ...]:
        """The faults that the moves bring: fewer than they end."""
        known = set(self.faults)
        return tuple(fault for fault in self.faults_after if fault not in known)

    @property
    def copied(self) -> int:
        """The disk that is copied, in MiB."""
        return sum(step.copied for step in self.steps)

    @property
    def job_sets(self) -> int:
        """The number of sets."""
        return self.steps[-1].job_set if self.steps else 0


@dataclass(frozen=True, slots=True)
class Beginning:
    """A cluster as the search for its remedy begins with it, and what is wrong then."""

    loaded: LoadedState
    movers: Movers
    before: Moves


def begin_remedy(state: ClusterState, loaded: LoadedState) -> Beginning:
    """Return what is wrong with the cluster in `state`, and which of its instances may move where."""
    cluster = loaded.whole.cluster
    limits = {group.index: loaded.groups[group.name].limits for group in loaded.settled.data.groups}
    movers = _movers(state, cluster, limits)
    instances = dict(cluster.instances)
    for index, item in cluster.instances.items():  # none runs on a node that is offline: it may be so only in a plan
        if item.primary in movers.silent and item.status is InstanceStatus.RUNNING:
            instances[index] = replace(item, status=InstanceStatus.NODE_OFFLINE)
    cpus = {index: item.cpus_after_failure is not False for index, item in limits.items()}
    unprotected = frozenset(index for index, item in limits.items() if item.max_node_failures == 0)
    start = Layout(cluster.nodes, instances, cpus, unprotected)
    return Beginning(loaded, movers, Moves((), start, movers.places.faults(start)))


def find_remedy(  # noqa: PLR0913 (one parameter a choice)
    state: ClusterState,
    names: PairNames,
    *,
    beginning: Beginning | None = None,
    rate: int,
    resource_model: bool = False,
    explain: bool = True,
    want: Want | None = None,
    settled: Settled | None = None,
    tell: Tell = silent,
    stop: Stop | None = None,
) -> RemedyReport:
    """Return what cures the cluster in `state`. `names` are those of the policy's sizes.

    `beginning` is that of the state, where it is known already; else `resource_model` and `settled` are those of
    `load_state`. The search ends after a `stop` (`RemedySearch` counts the work). `explain`: what is left has reasons,
    and sizes are looked for. With `want` the moves make room for wanted instances instead (`gpolicy.remedy.room`).
    Raise GpolicyError if figures of nodes are missing in all groups, RequestError if what is wanted makes no sense on
    this cluster.
    """
    if beginning is None:
        tell("what is wrong")
        beginning = begin_remedy(state, load_state(state, resource_model=resource_model, settled=settled))
    loaded, movers, before = beginning.loaded, beginning.movers, beginning.before
    start = before.layout
    grounds = basis_notes(loaded.settled, loaded.whole.cluster, resource_model=True) if resource_model else []
    search = RemedySearch(start, movers, stop or Stop(), tell)
    room, explain = None, explain and want is None
    if want is None:
        found = search.find(before)
    else:
        found, room = make_room(search, before, loaded, want, names)
    measured = {item.name: item.status for item in loaded.settled.data.instances}
    done = [_as_measured(step, measured[step.instance.name]) for step in found.steps]
    steps, total = _steps(state, start, before, replace(found, steps=tuple(done)), movers, rate)
    tries = _MOST_TRIES if search.exhaustive else min(_FEW_TRIES, _FEW_LOOKS // max(1, len(start.nodes)))
    return RemedyReport(
        **origin_of(state),
        cluster_uuid=state.cluster.identity.uuid,
        basis=loaded.basis(),
        faults=before.faults,
        steps=steps,
        left=tuple(_left(before, found, movers, state, tries)) if explain else (),
        faults_after=found.faults,
        sizes=tuple(_size_cures(state, names, found.layout)) if explain else (),
        rate=rate,
        seconds=total,
        score_before=score_of(start.nodes.values()),
        score_after=score_of(found.layout.nodes.values()),
        exhaustive=search.exhaustive,
        room=room,
        notes=(*state.notes, *grounds, *loaded.notes, *_unjudged(loaded), *_into_closed_groups(state, steps)),
        limits=limits_in_force(state, NO_LIMITS),
        unknown=loaded.settled.unknown,
        nodes_before=node_uses(state, start.nodes.values()),
        nodes_after=node_uses(state, found.layout.nodes.values()),
    )


def _into_closed_groups(state: ClusterState, steps: Iterable[RemedyStep]) -> Iterator[str]:
    """Yield a note for each group that Ganeti itself gives no instances, and to which moves bring some."""
    for name, group in state.groups.items():
        nodes = {node.name for node in state.nodes_of(name)}
        moved = {step.instance for step in steps if nodes.issuperset(step.nodes_after)}
        came = [step.instance for step in steps if step.instance in moved and not nodes.issuperset(step.nodes_before)]
        if came and group.effective.get(("alloc_policy",)) == AllocPolicy.UNALLOCABLE.value:
            yield f"moves bring {some(list(dict.fromkeys(came)))} into group {name}, which is unallocable"


def _unjudged(loaded: LoadedState) -> Iterator[str]:
    for name, group in loaded.groups.items():
        if (failures := group.limits.max_node_failures or 0) > 1:
            judged = f"moves are judged by the loss of one node, not of {failures} at once"
            yield f"group {name}: {judged} (max-node-failures)"


def _movers(state: ClusterState, cluster: Cluster, limits: Mapping[int, Limits]) -> Movers:
    fixed = {}
    for index, item in cluster.instances.items():
        observed = state.instances[item.name]
        own = (observed.primary_node, *observed.secondary_nodes)
        reason = why_fixed(replace(item, auto_balance=observed.auto_balance))  # to hail all are balanced
        if observed.disk_template != item.template.value:
            reason = "its nodes are in groups of which one is left out"
        elif item.template.local and not any(state.nodes[name].is_measured for name in own):
            reason = f"its only disks are on {' and '.join(own)}, which {'is' if len(own) == 1 else 'are'} offline"
        if reason:
            fixed[index] = reason
    silent = frozenset(index for index, node in cluster.nodes.items() if not state.nodes[node.facts.name].is_measured)
    shared = {index: item.oversubscription for index, item in limits.items() if item.oversubscription is not None}
    return Movers(Places(cluster.nodes), fixed, silent, shared)


def _steps(
    state: ClusterState, start: Layout, before: Moves, found: Moves, movers: Movers, rate: int
) -> tuple[tuple[RemedyStep, ...], float]:
    made: list[RemedyStep] = []
    total, here = 0.0, start
    to_end = set(before.faults) - set(found.faults)
    for job_set, jobs in enumerate(sets_of(start, found.steps, movers), 1):
        total += max(copied_by(job.move) for job in jobs) / rate
        for job in jobs:
            here = here.reached(job.nodes, job.instances)
            there = set(movers.places.faults(here))
            cures = tuple(fault for fault in before.faults if fault in to_end and fault not in there)
            to_end -= set(cures)
            step = RemedyStep(
                number=len(made) + 1,
                job_set=job_set,
                instance=job.instance.name,
                nodes_before=_names_of_nodes(job.nodes, job.move.instance.primary, job.move.instance.secondary),
                nodes_after=_names_of_nodes(job.nodes, job.instance.primary, job.instance.secondary),
                commands=tuple(commands_of(job)),
                copied=copied_by(job.move),
                seconds=copied_by(job.move) / rate,
                downtime=downtime(job, state),
                cures=cures,
                score=job.score,
            )
            made.append(step.with_way_back(state.nodes))
    return tuple(made), total


def _as_measured(step: Balanced, status: InstanceStatus) -> Balanced:
    """Return a move of an instance with its `status`: to hail all run that should."""
    if step.instance.status is InstanceStatus.NODE_OFFLINE:
        return step
    old, new = (replace(item, status=status) for item in (step.move.instance, step.instance))
    return replace(step, move=replace(step.move, instance=old), instance=new)


def _names_of_nodes(nodes: Mapping[int, Node], *indices: int) -> tuple[str, ...]:
    return tuple(nodes[index].facts.name for index in indices if index != NO_NODE and index in nodes)


def _objection(layout: Layout, move: InstanceMove, movers: Movers) -> str:
    trial = movers.try_move(layout, move)
    if isinstance(trial, FailReason):
        if trial is FailReason.DISK and of_move(layout.nodes, move, trial, force=False).cause is Cause.SPINDLE_RATIO:
            return "would exceed their spindle-ratio"
        return str(read_data("known_words.toml")["refused_moves"].get(trial.title, trial.title))
    if trial.gain.helps and movers.is_safe(layout, trial):
        return "would help, but was not reached: the search ended before"
    if trial.gain.units > 0:
        return "would make N+1 worse on the way"
    if trial.gain.helps:
        return "would lessen it at most, or make N+1 worse on the way"
    return "would end nothing, or do as much harm"


def _left(before: Moves, found: Moves, movers: Movers, state: ClusterState, most_tries: int) -> Iterator[Left]:
    crowded = tuple(LocationFacts(state, {}).unsatisfiable())
    numbers = {item.name: index for index, item in found.layout.instances.items()}
    known, tries = set(before.faults), 0
    for fault in [fault for fault in found.faults if fault in known]:
        reason = next((_crowding(item) for item in crowded if _explains(item, fault)), _excess(fault, found.layout))
        if not reason and tries > most_tries:
            reason = "why was not looked into: too much is left"
        elif not reason:
            reason, tried = _why_no_cure([numbers[name] for name in fault.instances], found.layout, movers, most_tries)
            tries += tried
        yield Left(fault=fault, reason=reason)


def _explains(item: ExclusionUnsatisfiable, fault: Fault) -> bool:
    """Whether too few places for an exclusion tag in a group are why a conflict stays."""
    if fault.kind not in {FaultKind.EXCLUSION, FaultKind.EXCLUSION_DOMAIN}:
        return False
    tag, place = fault.key
    of_place = item.domain_kind is None or place.startswith(f"{item.domain_kind}:")
    return tag == item.tag and of_place and not set(item.instances).isdisjoint(fault.instances)


def _crowding(item: ExclusionUnsatisfiable) -> str:
    kinds = (f"value of {item.domain_kind}", f"values of {item.domain_kind}") if item.domain_kind else ("node", "nodes")
    return f"{len(item.instances)} instances of group {item.group} have the tag, for {count(len(item.places), *kinds)}"


def _excess(fault: Fault, layout: Layout) -> str:
    """Return that the nodes of a group have too much in sum, where that is why one of them exceeds a ratio."""
    if fault.kind not in RATIOS:
        return ""
    group = next(node.facts.group for node in layout.nodes.values() if (node.facts.name,) == fault.key)
    nodes = [node for node in layout.nodes.values() if node.facts.group == group and not node.facts.offline]
    what, numbers = "virtual CPUs", [(node.used_cpus, node.facts.high_cpus) for node in nodes]
    if fault.kind is FaultKind.SPINDLE_RATIO:
        what, numbers = "spindles", [(int(node.instance_spindles), floor(node.facts.high_spindles)) for node in nodes]
    used, allowed = map(sum, zip(*numbers, strict=True))
    if used <= allowed:
        return ""
    may = f"the nodes of its group may have {allowed:,} together: raise the ratio, or add nodes"
    return f"{used:,} {what} are in use, {may}"


def _why_no_cure(numbers: Sequence[int], layout: Layout, movers: Movers, most: int) -> tuple[str, int]:
    """Return why no move of the instances cures a fault, and the number of moves that were tried, at most `most`."""
    fixed = {movers.fixed[number]: layout.instances[number].name for number in numbers if number in movers.fixed}
    free = [number for number in numbers if number not in movers.fixed][:_MOST_EXPLAINED]
    if not free:
        return "; ".join(f"{name}: {reason}" for reason, name in fixed.items()) or "there is no instance to move", 0
    refused: Counter[str] = Counter()
    for move in islice((move for number in free for move in movers.moves(layout, number)), most):
        refused[_objection(layout, move, movers)] += 1
    names = some([layout.instances[number].name for number in free], 3)
    if not refused:
        return f"there is no other node for {names}", 0
    words = [f"{number} {text}" for text, number in refused.most_common()]
    tried = refused.total()
    return f"of {count(tried, 'move')} of {names}, {listed(words)}", tried


_MOST_EXPLAINED: Final = 20
_MOST_TRIES: Final = 20_000
_FEW_TRIES: Final = 1_000
_FEW_LOOKS: Final = 400_000
"""Moves that are tried to explain what is left where the search was ended, and the same times the nodes, which each may
look at: who ended it does not wait for more."""


def _size_cures(state: ClusterState, names: PairNames, layout: Layout) -> Iterator[SizeCure]:
    judge = PolicyJudge(state, {name: names.groups.get(name, ()) for name in state.groups})
    known = {item.name for item in layout.instances.values()}
    for item in sorted(state.instances.values(), key=lambda item: item.name):
        violation = judge.verdict(item).violation
        if violation is not None and item.name in known:
            cure, layout = size_cure(item, violation, judge.policy(item), layout)
            yield cure


ENOUGH_WORK: Final = 6_000
"""The work of all searches together: about half a second."""


def count_after_moves(report: CapacityReport, state: ClusterState, settled: Settled) -> CapacityReport:
    """Return `report` with what fits of each size after moves, and at most; the rest of a search is for the next size.

    `state`, under its limits, and `settled` are those that it was made of. What hail refuses altogether, and what fits
    more often than one may want, has neither.
    """
    beginning = begin_remedy(state, load_state(state, settled=settled))
    sizes = sum(len(item.specs) for item in report.groups)
    left, groups = ENOUGH_WORK, []
    for item in report.groups:
        specs = []
        for size in item.specs:
            stop = Stop(steps=left // sizes)
            specs.append(_after_moves(item, size, beginning, state, stop))
            sizes, left = sizes - 1, max(0, left - stop.spent)
        groups.append(replace(item, specs=tuple(specs)))
    whole = report.cluster
    if whole is not None and len(groups) == 1 and whole.specs == report.groups[0].specs:  # else by the cluster's policy
        whole = replace(whole, specs=groups[0].specs)
    return replace(report, groups=tuple(groups), cluster=whole)


def _after_moves(
    item: GroupCapacity, size: PairCapacity, beginning: Beginning, state: ClusterState, stop: Stop
) -> PairCapacity:
    if item.template is None or item.is_closed or size.fits >= MOST_WANTED:
        return size
    layout, request = beginning.before.layout, PlaceRequest(group=item.group, template=item.template.value)
    try:
        hail = Hail(beginning.loaded, of_pair(request, size.pair, "max", state, item.group or ""), layout)
    except GpolicyError:
        return size
    most = min(MOST_WANTED, max(size.fits, most_that_fit(layout, hail, beginning.movers.fixed)))
    search = RoomSearch(RemedySearch(layout, beginning.movers, stop, silent), beginning.before, hail, most, size.fits)
    reached = search.most_reached() if size.fits < most else 0
    return replace(size, after_moves=max(size.fits, reached), at_most=most)
