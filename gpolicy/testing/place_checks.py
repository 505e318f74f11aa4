"""`place`: where would this instance go, and why?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from gpolicy.allocator.cluster_data import Disk
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.pair_names import find_pair, pair_names
from gpolicy.analysis.place_report import Candidate, PlaceReport
from gpolicy.analysis.placing import place
from gpolicy.analysis.wanted_instance import PlaceRequest, of_pair
from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.units import exact_size
from gpolicy.policy.model import Policy
from gpolicy.policy.scenario import Expectation, Scenario, Sizes
from gpolicy.testing.outcome import CannotRunError, Check, checked, errors_at, known_name


def check_place(policy: Policy, state: ClusterState, scenario: Scenario) -> list[Check]:
    """Return the checks of placing the instance of a test."""
    assert scenario.sizes is not None  # noqa: S101 (the schema asks for it)
    sizes = scenario.sizes
    with errors_at(sizes.span):
        report = place(state, _request(policy, state, sizes), names=pair_names(policy, state))
    if report.unknown:  # hail might choose one of these groups
        raise CannotRunError("; ".join(report.not_known), sizes.span, hint="say `group:`")
    if report.objections:  # Ganeti refuses what hail accepts
        report = replace(report, ok=False, group=None, nodes=(), reason="; ".join(report.objections))
    return [_check(report, expectation) for expectation in scenario.expectations]


def _request(policy: Policy, state: ClusterState, sizes: Sizes) -> PlaceRequest:
    group = known_name(sizes.group, state.groups, "group") if sizes.group else None
    request = PlaceRequest(
        memory=sizes.memory,
        minimum_memory=sizes.minmem,
        vcpus=sizes.cpus,
        disks=None if sizes.disks is None else tuple(Disk(disk.size, disk.spindles) for disk in sizes.disks),
        spindle_use=sizes.spindle_use,
        template=sizes.template.value if sizes.template else None,
        tags=sizes.tags,
        group=group,
        nic_count=sizes.nic_count,
        ignore_ipolicy=sizes.ignore_ipolicy,
    )
    if sizes.spec is None:
        return request
    with errors_at(sizes.spec.span):
        pair, of = find_pair(sizes.spec.value, pair_names(policy, state), state, group)
    return of_pair(request, pair, sizes.bound, state, of)


def _check(report: PlaceReport, expectation: Expectation) -> Check:
    head, *rest = expectation.path
    why = "; ".join((report.reason or report.info, *report.parameters))
    match head:
        case "refused":
            return checked(
                expectation, not report.ok, detail=f"goes to {', '.join(report.nodes)}" if report.ok else why
            )
        case "because":
            return checked(expectation, None if report.ok else _main_reason(report), detail=why)
        case "group":
            return checked(expectation, report.group, detail="" if report.ok else why)
        case "node":
            return checked(expectation, report.nodes[0] if report.ok else None, detail=_comparison(report, expectation))
        case "nodes":
            return checked(expectation, report.nodes, detail="" if report.ok else why)
        case "preference":
            return _preference(report, expectation)
        case "candidates":
            found = next((item for item in report.candidates if item.nodes[0] == rest[0]), None)
            return _of_candidate(report, found, expectation, rest[1:])
        case _:
            return _of_candidate(report, report.chosen, expectation, [head, *rest])


def _main_reason(report: PlaceReport) -> str:
    """Return the reason of most refusals; without candidates it is the lack of nodes."""
    if report.objections:
        return Cause.BOUNDS.key
    counts = Counter(item.reason for item in report.candidates if item.reason)
    return counts.most_common(1)[0][0] if counts else "nodes"


def _of_candidate(report: PlaceReport, candidate: Candidate | None, expectation: Expectation, path: list[str]) -> Check:
    if candidate is None:
        return checked(
            expectation, None, detail="it was not a candidate" if report.ok else report.reason or report.info
        )
    why = candidate.detail or candidate.explanation or ""
    match path:
        case ["refused"]:
            return checked(expectation, not candidate.ok, detail=why)
        case ["because"]:
            return checked(expectation, candidate.reason, detail=why)
        case ["disk_left"]:
            return checked(expectation, candidate.disk_left, detail=why)
        case ["lost_allocations", spec]:
            if candidate.lost_allocations is None:
                reason = why or "the metric is the cluster score: not all nodes have exclusive storage"
                return checked(expectation, None, detail=reason)
            lost = dict(zip(report.sizes, candidate.lost_allocations, strict=False))
            words = ", ".join(f"{name} {count}" for name, count in lost.items())
            return checked(expectation, lost.get(spec), detail=f"lost allocations: {words}")
    return checked(expectation, None)


def _preference(report: PlaceReport, expectation: Expectation) -> Check:
    wanted = expectation.wanted if isinstance(expectation.wanted, tuple) else ()
    possible = dict.fromkeys(item.nodes[0] for item in report.candidates if item.ok)
    found = tuple(node for node in possible if node in wanted)
    return checked(expectation, found, detail="; ".join(_refusals(report, wanted)))


def _refusals(report: PlaceReport, nodes: tuple[object, ...]) -> Iterator[str]:
    possible = {item.nodes[0] for item in report.candidates if item.ok}
    seen: set[str] = set()
    for item in report.candidates:
        node = item.nodes[0]
        if node in nodes and node not in possible and node not in seen:
            seen.add(node)
            yield f"{node} is refused ({item.reason})"


def _comparison(report: PlaceReport, expectation: Expectation) -> str:
    """Return why the chosen node is not the expected one."""
    chosen = report.chosen
    wanted = next((item for item in report.candidates if item.nodes[0] == expectation.wanted), None)
    if chosen is None:
        return report.reason or report.info
    if wanted is None or wanted is chosen:
        return ""
    if not wanted.ok:
        return f"{wanted.nodes[0]} is refused ({wanted.reason})"
    return f"{_value(chosen, report)} there, {_value(wanted, report)} on {wanted.nodes[0]}"


def _value(item: Candidate, report: PlaceReport) -> str:
    if item.lost_allocations is None:
        return f"score {item.score:.8f}" if item.score is not None else "no score"
    lost = ", ".join(f"{name} {count}" for name, count in zip(report.sizes, item.lost_allocations, strict=False))
    return f"lost {lost} and {exact_size(item.disk_left or 0)} left"
