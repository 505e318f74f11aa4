"""How many instances of each size fit after moves, and how many fit at most, beside the capacity of groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gpolicy.analysis.capacity import CapacityReport, GroupCapacity, SpecCapacity
from gpolicy.analysis.loaded_state import load_state
from gpolicy.analysis.wanted_instance import PlaceRequest, of_pair
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import GpolicyError
from gpolicy.progress import Stop, silent
from gpolicy.remedy.remedy import Beginning, begin_remedy
from gpolicy.remedy.room import MOST_WANTED, Hail, most_that_fit
from gpolicy.remedy.room_search import RoomSearch
from gpolicy.remedy.search import Search

ENOUGH_WORK: Final = 6_000
"""The work of all searches together: about half a second."""


def count_after_moves(report: CapacityReport, state: ClusterState, *, declared: bool) -> CapacityReport:
    """Return `report` with what fits of each size after moves, and at most; the rest of a search is for the next size.

    `state` and `declared` are those that it was made of. What hail refuses altogether, and what fits more often than
    one may want, has neither.
    """
    beginning = begin_remedy(state, load_state(state, declared=declared))
    sizes = sum(len(item.specs) for item in report.groups)
    left, groups = ENOUGH_WORK, []
    for item in report.groups:
        specs = []
        for spec in item.specs:
            stop = Stop(steps=left // sizes)
            specs.append(_after_moves(item, spec, beginning, state, stop))
            sizes, left = sizes - 1, max(0, left - stop.spent)
        groups.append(replace(item, specs=tuple(specs)))
    whole = report.cluster
    if whole is not None and len(groups) == 1 and whole.specs == report.groups[0].specs:  # else by the cluster's policy
        whole = replace(whole, specs=groups[0].specs)
    return replace(report, groups=tuple(groups), cluster=whole)


def _after_moves(
    item: GroupCapacity, spec: SpecCapacity, beginning: Beginning, state: ClusterState, stop: Stop
) -> SpecCapacity:
    if item.template is None or item.is_closed or spec.fits >= MOST_WANTED:
        return spec
    layout, group = beginning.before.layout, item.group or ""
    request = PlaceRequest(group=group, template=item.template.value)
    try:
        hail = Hail(beginning.loaded, of_pair(request, spec.pair, "max", state, group), layout)
    except GpolicyError:
        return spec
    most = min(MOST_WANTED, max(spec.fits, most_that_fit(layout, hail, beginning.movers.fixed)))
    after = spec.fits
    if after < most:
        search = Search(layout, beginning.movers, stop, silent)
        after = max(after, RoomSearch(search, beginning.before, hail, most, spec.fits).most_reached())
    return replace(spec, after_moves=after, at_most=most)
