"""What a plan costs: everything that the reports show and the guards judge, in one value.

A wrong number is worse than no number.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from gpolicy.analysis.basis import Basis, BasisKind, Settled
from gpolicy.analysis.pair_names import PairNames
from gpolicy.analysis.resource_models import ResourceModel, resource_models
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import LimitsInForce
from gpolicy.errors import GpolicyError
from gpolicy.impact.capacity_change import capacity_change
from gpolicy.impact.comparison import LoadedComparison, StateComparison, compare, load
from gpolicy.impact.exclusive_storage_change import exclusive_storage_change
from gpolicy.impact.fit_change import CapacityChange
from gpolicy.impact.location_change import LocationChange, location_change
from gpolicy.impact.redundancy_change import RedundancyChange, redundancy_change
from gpolicy.impact.remedy_change import RemedyChange, remedy_change
from gpolicy.impact.storage_findings import ExclusiveStorageChange
from gpolicy.impact.violation_change import ViolationChange, violation_change
from gpolicy.policy.model import Hardware


@dataclass(frozen=True, slots=True)
class ResourceModelChange:
    """Both resource models before and after."""

    before: ResourceModel
    after: ResourceModel


def resource_model_change(
    compared: LoadedComparison, declared: LoadedComparison, tell: Callable[[str], None]
) -> ResourceModelChange:
    """Compare both models before and after."""
    states, planned = ([item.before, item.after] for item in (compared, declared))
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


@dataclass(frozen=True, kw_only=True)
class _Input:
    """What the parts are computed from."""

    states: StateComparison
    names: PairNames
    hardware: Mapping[str, Hardware]
    failures: int
    tell: Callable[[str], None]
    settled: tuple[Settled | None, Settled | None] = (None, None)
    """What the states come to by measured figures, where that is known."""


@dataclass(frozen=True, kw_only=True)
class _Counted(_Input):
    """The same, with the states to count on."""

    loaded: LoadedComparison

    @property
    def declares(self) -> bool:
        """Whether hv_state or disk_state declares anything of a node."""
        return any(side.settled.stated for side in (self.loaded.before, self.loaded.after))

    @property
    def declared(self) -> LoadedComparison:
        """The states to count on by what is declared."""
        if not self.declares:
            return self.loaded
        known = (*self.loaded.before.clusters, *self.loaded.after.clusters)
        return load(self.states, like=known, declared=True)


_MEASURES: Final[dict[str, Callable[[_Input], object]]] = {
    "violations": lambda given: violation_change(given.states, given.names, given.settled),
    "location": lambda given: location_change(given.states),
    "exclusive_storage": lambda given: exclusive_storage_change(given.states, given.hardware),
}
_COUNTS: Final[dict[str, Callable[[_Counted], object]]] = {
    "capacity": lambda given: capacity_change(given.loaded, given.names, given.tell),
    "redundancy": lambda given: redundancy_change(given.loaded, given.failures, given.tell),
    "remedy": lambda given: remedy_change(given.states, given.loaded, given.names, given.tell),
    "resource_model": lambda given: resource_model_change(given.loaded, given.declared, given.tell),
}
PARTS: Final = tuple(item.name for item in fields(Impact) if item.name in _MEASURES.keys() | _COUNTS.keys())
"""The parts of an impact, as `Impact` and `unavailable` name them."""


def impact(  # noqa: PLR0913 (each is a choice of its own)
    before: ClusterState,
    after: ClusterState,
    *,
    names: PairNames,
    hardware: Mapping[str, Hardware] | None = None,
    failures: int = 1,
    parts: Collection[str] = PARTS,
    declared: bool = False,
    whole: bool = True,
    observer: Callable[[str], None] | None = None,
) -> Impact:
    """Return what it does to a cluster that it becomes `after`, with `names` for its spec pairs.

    `hardware` is what a policy promises of the nodes of a group; `failures`: how many nodes of a group may fail at once
    in the test of redundancy. Only `parts` are worked out. With `declared`, what hv_state and disk_state
    declare goes before measured figures; without `whole` only groups are counted, not all of them together. `observer`
    is told what is being computed.
    """
    given = _Input(
        states=compare(before, after),
        names=names,
        hardware=hardware or {},
        failures=failures,
        tell=observer or (lambda _what: None),
    )
    counted, unknown = None, ""
    if not _COUNTS.keys().isdisjoint(parts):
        try:
            sides = load(given.states, declared=declared)
            counted = _Counted(**vars(given), loaded=sides if whole else replace(sides, whole=None))
            if not declared:
                given = replace(given, settled=(sides.before.readable, sides.after.readable))
        except GpolicyError as error:
            unknown = error.message
    found: dict[str, Any] = {}
    unavailable: dict[str, str] = {}
    for part in PARTS:
        if part not in parts:
            continue
        try:
            if part in _MEASURES:
                found[part] = _MEASURES[part](given)
            elif counted is not None:
                found[part] = _COUNTS[part](counted)
            else:
                unavailable[part] = unknown
        except GpolicyError as error:
            unavailable[part] = error.message
    if counted is None:  # nothing needed it, or nothing is known
        return Impact(**found, unavailable=unavailable)
    last = counted.loaded.after
    return Impact(
        **found,
        unavailable=unavailable,
        basis=last.basis(),
        group_basis={name: last.basis(name).kind for name in last.groups},
        declares=counted.declares,
    )
