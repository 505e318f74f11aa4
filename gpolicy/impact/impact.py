"""What a plan costs: everything that the reports show and the guards judge, in one value.

A wrong number is worse than no number. Location, redundancy, the remedy and both models of resources are compared here.

What the fields mean, with their units, `scripts/reference/output_texts.toml` says.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from math import nan
from typing import Any, Final, Generic, TypeVar

from gpolicy.analysis import health
from gpolicy.analysis.basis import Basis, BasisKind
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.losses import Loss
from gpolicy.analysis.node_losses import GroupRedundancy, group_redundancy
from gpolicy.analysis.resource_models import ResourceModel, resource_models
from gpolicy.analysis.shown_score import Score, score_of
from gpolicy.cluster.terms import LimitsInForce
from gpolicy.errors import GpolicyError
from gpolicy.impact.capacity_change import CapacityChange, capacity_change
from gpolicy.impact.comparison import LoadedSides, ViolationChange, load_sides, measure_sides, violation_change
from gpolicy.impact.exclusive_storage_change import ExclusiveStorageChange, exclusive_storage_change
from gpolicy.plan.sides import Sides
from gpolicy.policy.model import Hardware
from gpolicy.progress import Tell, after_work, silent
from gpolicy.remedy.faults import Fault, FaultKind
from gpolicy.remedy.remedy import DEFAULT_RATE, begin_remedy, find_remedy

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Generic[T]):
    """Facts that are there after the changes only, before and after, and before only."""

    new: tuple[T, ...] = ()
    still: tuple[T, ...] = ()
    gone: tuple[T, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationChange:
    """What the changes do to locations and migration."""

    shared_domains: Compared[health.SharedDomain] = Compared()
    exclusion_conflicts: Compared[health.ExclusionConflict] = Compared()
    domain_conflicts: Compared[health.DomainConflict] = Compared()
    unsatisfiable: Compared[health.ExclusionUnsatisfiable] = Compared()
    stranded: Compared[health.Unmovable] = Compared()
    desired_missing: Compared[health.DesiredLocationMissing] = Compared()

    @property
    def numbers(self) -> list[tuple[int, int, int]]:
        """How many facts of each kind are new, as before, and gone."""
        compared = (getattr(self, item.name) for item in fields(self))
        return [(len(facts.new), len(facts.still), len(facts.gone)) for facts in compared]


def location_change(sides: Sides) -> LocationChange:
    """Return what differs between two states of a cluster in location and migration; groups by their names after."""
    old = health.LocationFacts(sides.before, {match.before: match.name for match in sides.groups if match.before})
    new = health.LocationFacts(sides.after, {})
    return LocationChange(
        shared_domains=_compare_domains(old.shared_domains(), new.shared_domains()),
        exclusion_conflicts=_compare(
            old.exclusion_conflicts(), new.exclusion_conflicts(), lambda it: (it.tag, it.node)
        ),
        domain_conflicts=_compare(old.domain_conflicts(), new.domain_conflicts(), lambda it: (it.tag, it.domain)),
        unsatisfiable=_compare(old.unsatisfiable(), new.unsatisfiable(), lambda it: (it.tag, it.group, it.domain_kind)),
        stranded=_compare(old.stranded(), new.stranded(), lambda it: it.instance),
        desired_missing=_compare(old.desired_missing(), new.desired_missing(), lambda it: (it.instance, it.tag)),
    )


def _compare(old: Iterable[T], new: Iterable[T], key: Callable[[T], Hashable]) -> Compared[T]:
    had, has = {key(item): item for item in old}, {key(item): item for item in new}
    return Compared(
        new=tuple(item for name, item in has.items() if name not in had),
        still=tuple(item for name, item in has.items() if name in had),
        gone=tuple(item for name, item in had.items() if name not in has),
    )


def _compare_domains(
    old: Iterable[health.SharedDomain], new: Iterable[health.SharedDomain]
) -> Compared[health.SharedDomain]:
    """Compare tag by tag: a pair of nodes may share one domain still and another one newly."""

    def single(items: Iterable[health.SharedDomain]) -> Iterator[health.SharedDomain]:
        return (replace(item, tags=(tag,)) for item in items for tag in item.tags)

    def joined(items: Iterable[health.SharedDomain]) -> tuple[health.SharedDomain, ...]:
        tags: dict[health.SharedDomain, list[str]] = {}
        for item in items:
            tags.setdefault(replace(item, tags=()), []).extend(item.tags)
        return tuple(replace(item, tags=tuple(found)) for item, found in tags.items())

    found = _compare(single(old), single(new), lambda it: (it.instance, it.secondary_node, it.tags))
    return Compared(new=joined(found.new), still=joined(found.still), gone=joined(found.gone))


@dataclass(frozen=True, slots=True)
class GroupRedundancyChange:
    """One group before and after; None on the side where there is no such group."""

    group: str
    before: GroupRedundancy | None
    after: GroupRedundancy | None
    renamed_from: str | None = None

    @property
    def newly_lost(self) -> tuple[Loss, ...]:
        """Losses that were absorbed before and will not be."""
        known = set() if self.before is None else {loss.nodes for loss in self.before.not_absorbed}
        lost = () if self.after is None else self.after.not_absorbed
        return tuple(loss for loss in lost if loss.nodes not in known and not self.of_other_nodes(loss))

    def of_other_nodes(self, loss: Loss) -> bool:
        """Whether `loss` cannot be compared: not all of its nodes were in the group before, or it has no others now."""
        if self.before is None or self.after is None or self.before.members is None:
            return False
        return len(loss.nodes) == self.after.nodes or not self.before.members.issuperset(loss.nodes)


@dataclass(frozen=True, slots=True)
class RedundancyChange:
    """Redundancy of each group and the score with its components, before and after."""

    failures: int
    groups: tuple[GroupRedundancyChange, ...]
    score_before: Score
    score_after: Score
    notes: tuple[str, ...] = ()
    unavailable: Mapping[str, str] = field(default_factory=dict)


def redundancy_change(loaded: LoadedSides, failures: int, tell: Tell) -> RedundancyChange:
    """Examine each group before and after: any `failures` nodes, and fewer; more where its limits allow more.

    Raise RequestError for fewer than one.
    """

    def examine(cluster: CountedCluster, title: str) -> GroupRedundancy:
        tell(f"{title}which losses of nodes it can absorb")
        return group_redundancy(cluster, max(failures, cluster.limits.max_node_failures or 0))

    groups = tuple(
        GroupRedundancyChange(
            group=pair.match.name,
            before=before and replace(before, group=pair.match.before or ""),
            after=after and replace(after, group=pair.match.after or ""),
            renamed_from=pair.match.renamed_from,
        )
        for pair, (before, after) in zip(loaded.groups, measure_sides(loaded.groups, examine), strict=True)
    )
    notes = ["the cluster score is not known for the same reason"] if loaded.unavailable else []
    now, then = (
        Score(nan, ()) if side.settled.unknown else score_of(side.whole.as_hspace.cluster.nodes.values())
        for side in (loaded.before, loaded.after)
    )
    most = max([failures, *(side.asked for item in groups for side in (item.before, item.after) if side is not None)])
    return RedundancyChange(most, groups, now, then, (*notes, *loaded.notes), loaded.unavailable)


MOST_NODES: Final = 1_000
"""The nodes of the largest cluster in which a plan looks for moves."""
_MOST_WORK: Final = 3_000
"""What a plan searches: about a second. It is no time, so that a plan says the same on every machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindChange:
    """The number of faults of one kind."""

    kind: FaultKind
    before: int
    after: int
    remedied: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyChange:
    """What is wrong before and after, and the moves after the change."""

    kinds: tuple[KindChange, ...] = ()
    new: int = 0
    cured: int = 0
    cured_old: int = 0
    moves: int = 0
    job_sets: int = 0
    copied: int = 0
    seconds: float = 0.0
    searched: bool = True
    exhaustive: bool = True


def remedy_change(loaded: LoadedSides, tell: Tell) -> RemedyChange:
    """Return what the change does wrong, and what moves cure of it."""
    sides = loaded.sides
    beginning = begin_remedy(sides.after, loaded.after)
    before, after = set(begin_remedy(sides.before, loaded.before).before.faults), beginning.before.faults
    new = {fault for fault in after if fault not in before}
    if not new:
        return RemedyChange(kinds=_kinds(before, after, after))
    if len(sides.after.nodes) > MOST_NODES:
        return RemedyChange(kinds=_kinds(before, after, after), new=len(new), searched=False, exhaustive=False)
    tell("which moves cure what it does wrong")
    report = find_remedy(
        sides.after,
        sides.names,
        beginning=beginning,
        rate=DEFAULT_RATE,
        explain=False,
        tell=tell,
        stop=after_work(_MOST_WORK),
    )
    ended = set(report.faults) - set(report.faults_after)
    return RemedyChange(
        kinds=_kinds(before, after, report.faults_after),
        new=len(new),
        cured=len(ended & new),
        cured_old=len(ended - new),
        moves=len(report.steps),
        job_sets=report.job_sets,
        copied=report.copied,
        seconds=report.seconds,
        exhaustive=report.exhaustive,
    )


def _kinds(*sides: set[Fault] | tuple[Fault, ...]) -> tuple[KindChange, ...]:
    before, after, remedied = (Counter(fault.kind for fault in side) for side in sides)
    return tuple(
        KindChange(kind=kind, before=before[kind], after=after[kind], remedied=remedied[kind])
        for kind in FaultKind
        if before[kind] or after[kind]
    )


@dataclass(frozen=True, slots=True)
class ResourceModelChange:
    """Both resource models before and after."""

    before: ResourceModel
    after: ResourceModel


def resource_model_change(loaded: LoadedSides, tell: Tell) -> ResourceModelChange:
    """Compare both models before and after."""
    states, declared = ([item.before, item.after] for item in (loaded, loaded.declared))
    return ResourceModelChange(*resource_models(states, declared, tell))


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """What the changes of one plan do: each part compares the cluster now with the cluster as it will be.

    A part is None where it could not be found out. JSON shows the parts in this order, and reports show each as the
    section of its name.
    """

    violations: ViolationChange | None = None
    capacity: CapacityChange | None = None
    redundancy: RedundancyChange | None = None
    location: LocationChange | None = None
    remedy: RemedyChange | None = None
    exclusive_storage: ExclusiveStorageChange | None = None
    resource_model: ResourceModelChange | None = None
    unavailable: Mapping[str, str] = field(default_factory=dict)
    basis: Basis | None = None
    group_basis: Mapping[str, BasisKind] = field(default_factory=dict)
    declares: bool = False
    what_if: tuple[str, ...] = ()
    limits: tuple[LimitsInForce, ...] = ()


PARTS: Final = ("violations", "capacity", "redundancy", "location", "remedy", "exclusive_storage", "resource_model")
"""The parts of an impact, as `Impact` and `unavailable` name them."""
_COUNTED: Final = frozenset({"capacity", "redundancy", "remedy", "resource_model"})


def measure_impact(
    sides: Sides,
    *,
    hardware: Mapping[str, Hardware] | None = None,
    failures: int = 1,
    parts: Collection[str] = PARTS,
    whole: bool = True,
    tell: Tell = silent,
) -> Impact:
    """Return what a change does to a cluster.

    `hardware` is what a policy promises of the nodes of a group; `failures`: how many nodes of a group may fail at once
    in the test of redundancy. Only `parts` are worked out. Without `whole` only groups are counted, not all of them
    together. `tell` is told what is being computed.
    """
    loaded, why_not = None, GpolicyError("")
    if not _COUNTED.isdisjoint(parts):
        try:
            loaded = load_sides(sides)
            loaded = loaded if whole else replace(loaded, whole=None)
        except GpolicyError as error:
            why_not = error

    def counted() -> LoadedSides:
        if loaded is None:
            raise why_not
        return loaded

    settled = (loaded.before.readable, loaded.after.readable) if loaded else (None, None)
    measures: Mapping[str, Callable[[], object]] = {
        "violations": lambda: violation_change(sides, settled),
        "capacity": lambda: capacity_change(counted(), tell),
        "redundancy": lambda: redundancy_change(counted(), failures, tell),
        "location": lambda: location_change(sides),
        "remedy": lambda: remedy_change(counted(), tell),
        "exclusive_storage": lambda: exclusive_storage_change(sides, hardware or {}),
        "resource_model": lambda: resource_model_change(counted(), tell),
    }
    found: dict[str, Any] = {}
    unavailable: dict[str, str] = {}
    for part in (name for name in PARTS if name in parts):
        try:
            found[part] = measures[part]()
        except GpolicyError as error:
            unavailable[part] = error.message
    if loaded is None:  # nothing needed it, or nothing is known
        return Impact(**found, unavailable=unavailable)
    return Impact(
        **found,
        unavailable=unavailable,
        basis=loaded.after.basis(),
        group_basis={name: loaded.after.basis(name).kind for name in loaded.after.groups},
        declares=loaded.declares,
    )
