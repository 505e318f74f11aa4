"""Each measure of an impact, taken of two states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gpolicy.analysis.violations import Verdict, allowed_sizes, verdict_on
from gpolicy.cluster.terms import PairNames
from gpolicy.impact import (
    capacity_change as capacity,
    comparison as violations,
    exclusive_storage_change as storage,
    impact,
)
from gpolicy.impact.comparison import load_sides
from gpolicy.plan.sides import Sides
from gpolicy.progress import Tell, silent

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState, LiveInstance
    from gpolicy.ganeti.vocabulary import Path, Value
    from gpolicy.policy.model import Hardware


def capacity_change(
    before: ClusterState, after: ClusterState, *, names: PairNames | None = None, tell: Tell = silent
) -> capacity.CapacityChange:
    return capacity.capacity_change(load_sides(Sides(before, after, names or PairNames())), tell)


def redundancy_change(
    before: ClusterState, after: ClusterState, *, failures: int = 1, tell: Tell = silent
) -> impact.RedundancyChange:
    return impact.redundancy_change(load_sides(Sides(before, after)), failures, tell)


def resource_model_change(
    before: ClusterState, after: ClusterState, *, tell: Tell = silent
) -> impact.ResourceModelChange:
    return impact.resource_model_change(load_sides(Sides(before, after)), tell)


def location_change(before: ClusterState, after: ClusterState) -> impact.LocationChange:
    return impact.location_change(Sides(before, after))


def exclusive_storage_change(
    before: ClusterState, after: ClusterState, hardware: Mapping[str, Hardware] | None = None
) -> storage.ExclusiveStorageChange:
    return storage.exclusive_storage_change(Sides(before, after), hardware or {})


def violation_change(
    before: ClusterState, after: ClusterState, names: PairNames | None = None
) -> violations.ViolationChange:
    return violations.violation_change(Sides(before, after, names or PairNames()))


def violations_of(
    instance: LiveInstance,
    policy: Mapping[Path, Value],
    *,
    group: str,
    exclusive_storage: bool,
    names: Sequence[str | None] = (),
) -> Verdict:
    return verdict_on(
        instance, allowed_sizes(policy, group, names), exclusive=exclusive_storage, memory=instance.maxmem
    )
