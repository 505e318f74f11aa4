"""What a plan costs: everything that the reports show and the guards judge, in one value.

A wrong number is worse than no number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gpolicy.analysis.basis import Basis, BasisKind
from gpolicy.analysis.resource_models import ResourceModel, resource_models
from gpolicy.cluster.terms import LimitsInForce
from gpolicy.errors import GpolicyError
from gpolicy.impact.capacity_change import CapacityChange, capacity_change
from gpolicy.impact.comparison import LoadedSides, Sides
from gpolicy.impact.exclusive_storage_change import ExclusiveStorageChange, exclusive_storage_change
from gpolicy.impact.location_change import LocationChange, location_change
from gpolicy.impact.redundancy_change import RedundancyChange, redundancy_change
from gpolicy.impact.violation_change import ViolationChange, violation_change
from gpolicy.policy.model import Hardware
from gpolicy.progress import Tell, after_work, silent
from gpolicy.remedy.faults import Fault, FaultKind
from gpolicy.remedy.remedy import DEFAULT_RATE, begin_remedy, find_remedy

MOST_NODES: Final = 1_000
"""The nodes of the largest cluster in which a plan looks for moves."""
_MOST_WORK: Final = 3_000
"""What a plan searches: about a second. It is no time, so that a plan says the same on every machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindChange:
    """The number of faults of one kind."""

    kind: FaultKind
    """The kind."""
    before: int
    """How many now."""
    after: int
    """How many after the changes."""
    remedied: int
    """How many after the moves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemedyChange:
    """What is wrong before and after, and the moves after the change."""

    kinds: tuple[KindChange, ...] = ()
    """The kinds of faults that there are, as `gpolicy remedy` names them."""
    new: int = 0
    """Faults that the changes bring. Where there are none, no moves are looked for."""
    cured: int = 0
    """How many of them the moves end."""
    cured_old: int = 0
    """How many faults of before the moves end."""
    moves: int = 0
    """Moves."""
    job_sets: int = 0
    """Sets of jobs that may run side by side."""
    copied: int = 0
    """Disk that they copy."""
    seconds: float = 0.0
    """Time for it at Ganeti's own rate of DRBD."""
    searched: bool = True
    """Whether moves were looked for: not in a cluster of more than 200 nodes."""
    exhaustive: bool = True
    """Whether the search ended by itself; false where there was none."""


def remedy_change(compared: LoadedSides, tell: Tell) -> RemedyChange:
    """Return what the change does wrong, and what moves cure of it."""
    sides = compared.sides
    beginning = begin_remedy(sides.after, compared.after)
    before, after = set(begin_remedy(sides.before, compared.before).before.faults), beginning.before.faults
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


def resource_model_change(compared: LoadedSides, tell: Tell) -> ResourceModelChange:
    """Compare both models before and after."""
    states, planned = ([item.before, item.after] for item in (compared, compared.declared))
    return ResourceModelChange(*resource_models(states, planned, tell))


@dataclass(frozen=True, slots=True, kw_only=True)
class Impact:
    """What the changes of one plan do: each part compares the cluster now with the cluster as it will be.

    A part is None where it could not be found out. JSON shows the parts in this order, and reports show each as the
    section of its name.
    """

    violations: ViolationChange | None = None
    """Instances and nodes against the instance policy."""
    capacity: CapacityChange | None = None
    """What fits."""
    redundancy: RedundancyChange | None = None
    """Which losses of nodes can be absorbed."""
    location: LocationChange | None = None
    """Failure domains, exclusion, migration and desired locations."""
    remedy: RemedyChange | None = None
    """What is wrong with where instances are, and what moves cure of it (from 1.6 on)."""
    exclusive_storage: ExclusiveStorageChange | None = None
    """Physical volumes, and what exclusive storage does to instances."""
    resource_model: ResourceModelChange | None = None
    """Declared resources (hv_state, disk_state) against those that nodes report."""
    unavailable: Mapping[str, str] = field(default_factory=dict)
    """Why a part is None, by its name."""
    basis: Basis | None = None
    """What the figures rest on (from 1.4 on); None if none are known. Guards count on what is declared, and say their
    own basis.
    """
    group_basis: Mapping[str, BasisKind] = field(default_factory=dict)
    """The same for each group, by its name after the changes (from 1.4 on)."""
    declares: bool = False
    """Whether hv_state or disk_state declares anything of a node (from 1.4 on)."""
    what_if: tuple[str, ...] = ()
    """What is supposed of the cluster before and after the changes (from 1.6 on)."""
    limits: tuple[LimitsInForce, ...] = ()
    """The limits that groups have beyond those that htools knows (from 1.4 on)."""


PARTS: Final = ("violations", "capacity", "redundancy", "location", "remedy", "exclusive_storage", "resource_model")
"""The parts of an impact, as `Impact` and `unavailable` name them."""
_COUNTED: Final = frozenset({"capacity", "redundancy", "remedy", "resource_model"})


def impact(
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
    loaded, unknown = None, GpolicyError("")
    if not _COUNTED.isdisjoint(parts):
        try:
            loaded = sides.loaded if whole else replace(sides.loaded, whole=None)
        except GpolicyError as error:
            unknown = error

    def counted() -> LoadedSides:
        if loaded is None:
            raise unknown
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
