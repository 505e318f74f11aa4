"""Failure domains, exclusion, migration and desired locations before a change and after it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Generic, TypeVar

from gpolicy.analysis import health
from gpolicy.impact.comparison import Sides

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared(Generic[T]):
    """Facts that are there after the changes only, before and after, and before only."""

    new: tuple[T, ...] = ()
    """Then only."""
    still: tuple[T, ...] = ()
    """Now and then."""
    gone: tuple[T, ...] = ()
    """Now only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocationChange:
    """What the changes do to locations and migration."""

    shared_domains: Compared[health.SharedDomain] = Compared()
    """Mirrored instances with both nodes in one failure domain."""
    exclusion_conflicts: Compared[health.ExclusionConflict] = Compared()
    """Instances with one exclusion tag on one primary node."""
    domain_conflicts: Compared[health.DomainConflict] = Compared()
    """Instances with one exclusion tag whose primary nodes share a failure domain."""
    unsatisfiable: Compared[health.ExclusionUnsatisfiable] = Compared()
    """More instances with one exclusion tag than places."""
    stranded: Compared[health.Unmovable] = Compared()
    """Instances that no node may receive, as far as migration tags go."""
    desired_missing: Compared[health.DesiredLocationMissing] = Compared()
    """Instances with a desired location that no node of their group has."""

    @property
    def numbers(self) -> list[tuple[int, int, int]]:
        """How many facts of each kind are new, as before, and gone."""
        compared = (getattr(self, item.name) for item in fields(self))
        return [(len(facts.new), len(facts.still), len(facts.gone)) for facts in compared]


def location_change(compared: Sides) -> LocationChange:
    """Return what differs between two states of a cluster in location and migration; groups by their names after."""
    old = health.LocationFacts(compared.before, {match.before: match.name for match in compared.groups if match.before})
    new = health.LocationFacts(compared.after, {})
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
