"""`place` and `check_instance`: where would this instance go, and does the policy allow it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from gpolicy.allocator.cluster_data import Disk
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.disk_templates import Unmade, unmade
from gpolicy.analysis.pair_names import MINMAX, find_pair, pair_names, pair_title
from gpolicy.analysis.place_report import Candidate, PlaceReport
from gpolicy.analysis.placing import place
from gpolicy.analysis.violations import AllowedSizes, PolicyViolation, allowed_sizes, verdict_on
from gpolicy.analysis.volume_resources import promised_volume, smallest_volume
from gpolicy.analysis.wanted_instance import PlaceRequest, of_pair
from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.ganeti.parameter import Path
from gpolicy.ganeti.units import exact_size
from gpolicy.policy.model import Policy
from gpolicy.policy.scenario import Expectation, Scenario, Sizes
from gpolicy.testing.instances import instance_of
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


_EXCLUSIVE: Path = ("ndparams", "exclusive_storage")


def check_conformity(policy: Policy, state: ClusterState, scenario: Scenario) -> list[Check]:
    """Return the checks of an instance of a test against the policy of its group.

    It is refused if its maximum or its minimum memory is outside, as Ganeti refuses to create or modify it, and if
    Ganeti would not make its disks with their spindles.
    """
    assert scenario.sizes is not None  # noqa: S101 (the schema asks for it)
    sizes = scenario.sizes
    group = _group(state, scenario)
    values = state.groups[group].effective
    exclusive = values.get(_EXCLUSIVE) is True
    pairs = values.get(MINMAX)
    names = pair_names(policy, state).of(group, len(pairs) if isinstance(pairs, list) else 0)
    instance = instance_of(policy, state, sizes, group, exclusive=exclusive)
    if instance.minmem > instance.maxmem:
        raise CannotRunError(f"minmem {instance.minmem} is above memory-size {instance.maxmem}", sizes.span)
    allowed = allowed_sizes(values, group, names)

    def violation_of(memory: int, allowed: AllowedSizes) -> PolicyViolation | None:
        return verdict_on(instance, allowed, exclusive=exclusive, memory=memory).violation

    taking = (
        name
        for name, pair in zip(names, allowed.pairs, strict=True)
        if violation_of(instance.maxmem, replace(allowed, pairs=(pair,), names=(name,))) is None
    )
    violation = violation_of(instance.maxmem, allowed) or violation_of(instance.minmem, allowed)
    found = _Found(violation, next(taking, None), _refused_disk(state, group, instance, exclusive=exclusive))
    return [found.check(expectation) for expectation in scenario.expectations]


def _refused_disk(state: ClusterState, group: str, instance: LiveInstance, *, exclusive: bool) -> Unmade | None:
    """Return why Ganeti makes the disks of an instance on no node of the group, None if it may make them."""
    known = [smallest_volume(state, node) for node in state.nodes_of(group)]
    known = known or [promised_volume(state, group)]
    sizes = [size for size in known if size is not None]
    volume = max(sizes, key=lambda size: size.usable) if len(sizes) == len(known) else None
    return unmade(instance, exclusive=exclusive, volume=volume)


def _group(state: ClusterState, scenario: Scenario) -> str:
    """Return the group of the question: the named one, the one with nodes, or the only one that hail would choose."""
    if scenario.group is not None:
        return known_name(scenario.group, state.groups, "group")
    simulated = {part.group.value for part in scenario.stage.simulated if part.group is not None}
    open_groups = {name for name, group in state.groups.items() if group.own.get(("alloc_policy",)) != "unallocable"}
    candidates = simulated if len(simulated) == 1 else open_groups or set(state.groups)
    if len(candidates) != 1:
        hint = f"say `group:`, one of {', '.join(sorted(candidates))}"
        raise CannotRunError("which group is meant?", scenario.span, hint=hint)
    return next(iter(candidates))


class _Found:
    def __init__(self, violation: PolicyViolation | None, taking: str | None, disk: Unmade | None) -> None:
        self.violation = violation
        self.taking = taking
        self.disk = disk

    def check(self, expectation: Expectation) -> Check:
        violation = self.violation
        match expectation.path[0]:
            case "refused":
                return checked(expectation, violation is not None or self.disk is not None, detail=self._reason())
            case "because":
                broken = [item.parameter for item in violation.breaches] if violation else []
                found = tuple(dict.fromkeys([*broken, *(self._of_disk())]))
                wanted = expectation.wanted
                if isinstance(wanted, str):
                    shown: object = wanted if wanted in found else found or None
                else:
                    shown = wanted if isinstance(wanted, tuple) and set(wanted) == set(found) else found
                return checked(expectation, shown, detail=self._reason())
            case _:
                nearest = (violation.pair_name or str(violation.pair)) if violation else self.taking
                return checked(expectation, nearest, detail=self._reason())

    def _of_disk(self) -> Iterator[str]:
        if self.disk is not None:
            yield "disk-templates" if self.disk.cause is Cause.ONLY_PLAIN else "spindles"

    def _reason(self) -> str:
        """Return the breaches of the nearest pair, in words."""
        if self.disk is not None:
            return f"Ganeti refuses to make it: {self.disk.sentence}"
        if self.violation is None:
            return f"spec {pair_title(self.taking)} takes it" if self.taking else ""
        parts = []
        for item in self.violation.breaches:
            if item.minimum is None:
                parts.append(f"{item.parameter} {item.value if item.value is not None else 'is not known'}")
            else:
                parts.append(f"{item.parameter} {item.value}, not {item.minimum} to {item.maximum}")
        return f"nearest is spec {pair_title(self.violation.pair_name or str(self.violation.pair))}: {'; '.join(parts)}"
