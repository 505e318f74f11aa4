"""The questions of a test: where would this instance go, is it allowed, how many fit, which losses can be absorbed?"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

from gpolicy.allocator.cluster_data import Disk
from gpolicy.allocator.compiled_allocation import Budget
from gpolicy.analysis.allocator_input import not_known
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.capacity import tiered_run
from gpolicy.analysis.counted_cluster import CountedCluster, Fit
from gpolicy.analysis.loaded_state import load_state
from gpolicy.analysis.losses import Loss
from gpolicy.analysis.node_losses import GroupRedundancy, redundancy
from gpolicy.analysis.node_resources import promised_volume, smallest_volume
from gpolicy.analysis.place_report import Candidate, PlaceReport
from gpolicy.analysis.placing import place
from gpolicy.analysis.shown_score import with_weights
from gpolicy.analysis.size_words import find_pair, size_title
from gpolicy.analysis.violations import AllowedSizes, PolicyViolation, allowed_sizes, verdict_on
from gpolicy.analysis.wanted_instance import PlaceRequest, Unmade, enabled_templates, of_pair, unmade, wanted_template
from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.cluster.terms import Limits, PairNames, limited
from gpolicy.findings import Located
from gpolicy.ganeti.amounts import exact_size
from gpolicy.ganeti.parameters import fill
from gpolicy.ganeti.vocabulary import MINMAX, Level
from gpolicy.policy.kinds import Policy
from gpolicy.policy.scenario import CapacityQuestion, Expectation, Scenario, Sizes
from gpolicy.printable import count
from gpolicy.progress import silent
from gpolicy.resolve.desired import pair_names
from gpolicy.testing.outcome import CannotRunError, Check, checked, errors_at, instance_of, known_name


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
            said = f"goes to {', '.join(report.nodes)}" if report.ok else why
            return checked(expectation, not report.ok, detail=said)
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
        said = "it was not a candidate" if report.ok else report.reason or report.info
        return checked(expectation, None, detail=said)
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
    refused: dict[str, str | None] = {}
    for item in report.candidates:
        if item.nodes[0] in wanted and item.nodes[0] not in possible:
            refused.setdefault(item.nodes[0], item.reason)
    found = tuple(node for node in possible if node in wanted)
    return checked(expectation, found, detail="; ".join(f"{node} is refused ({why})" for node, why in refused.items()))


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
    return f"{_score(chosen, report)} there, {_score(wanted, report)} on {wanted.nodes[0]}"


def _score(item: Candidate, report: PlaceReport) -> str:
    if item.lost_allocations is None:
        return f"score {item.score:.8f}" if item.score is not None else "no score"
    lost = ", ".join(f"{name} {count}" for name, count in zip(report.sizes, item.lost_allocations, strict=False))
    return f"lost {lost} and {exact_size(item.disk_left or 0)} left"


def check_conformity(policy: Policy, state: ClusterState, scenario: Scenario) -> list[Check]:
    """Return the checks of an instance of a test against the policy of its group.

    It is refused if its maximum or its minimum memory is outside, as Ganeti refuses to create or modify it, and if
    Ganeti would not make its disks with their spindles.
    """
    assert scenario.sizes is not None  # noqa: S101 (the schema asks for it)
    sizes = scenario.sizes
    group = _group_asked(state, scenario)
    values = state.groups[group].effective
    exclusive = values.get(("ndparams", "exclusive_storage")) is True
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
    found = _InstanceVerdict(violation, next(taking, None), _refused_disk(state, group, instance, exclusive=exclusive))
    return [found.check(expectation) for expectation in scenario.expectations]


def _refused_disk(state: ClusterState, group: str, instance: LiveInstance, *, exclusive: bool) -> Unmade | None:
    """Return why Ganeti makes the disks of an instance on no node of the group, None if it may make them."""
    known = [smallest_volume(state, node) for node in state.nodes_of(group)]
    known = known or [promised_volume(state, group)]
    sizes = [size for size in known if size is not None]
    volume = max(sizes, key=lambda size: size.usable) if len(sizes) == len(known) else None
    return unmade(instance, exclusive=exclusive, volume=volume)


def _group_asked(state: ClusterState, scenario: Scenario) -> str:
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


@dataclass(frozen=True, slots=True)
class _InstanceVerdict:
    """What an instance violates, the size that takes it, and why Ganeti does not make its disks."""

    violation: PolicyViolation | None
    taking: str | None
    disk: Unmade | None

    def check(self, expectation: Expectation) -> Check:
        """Return the check of one expectation."""
        violation, disk = self.violation, self.disk
        found: object = expectation.wanted
        match expectation.path[0]:
            case "refused":
                found = violation is not None or disk is not None
            case "because":
                because = dict.fromkeys(item.parameter for item in violation.breaches) if violation else {}
                if disk is not None:
                    because["disk-templates" if disk.cause is Cause.ONLY_PLAIN else "spindles"] = None
                if isinstance(found, str):
                    found = found if found in because else tuple(because) or None
                elif not isinstance(found, tuple) or set(found) != set(because):
                    found = tuple(because)
            case _:
                found = (violation.pair_name or str(violation.pair)) if violation else self.taking
        return checked(expectation, found, detail=self._breaches_in_words())

    def _breaches_in_words(self) -> str:
        """Return the breaches of the nearest pair, in words."""
        if self.disk is not None:
            return f"Ganeti refuses to make it: {self.disk.sentence}"
        if self.violation is None:
            return f"{size_title(self.taking)} takes it" if self.taking else ""
        parts = []
        for item in self.violation.breaches:
            if item.minimum is None:
                parts.append(f"{item.parameter} {item.value if item.value is not None else 'is not known'}")
            else:
                parts.append(f"{item.parameter} {item.value}, not {item.minimum} to {item.maximum}")
        return f"nearest is {size_title(self.violation.pair_name or str(self.violation.pair))}: {'; '.join(parts)}"


def check_capacity(policy: Policy, state: ClusterState, scenario: Scenario, budget: Budget) -> list[Check]:
    """Return the checks of a capacity test, which counts what it expects and nothing else, within `budget`."""
    question = scenario.capacity
    assert question is not None  # noqa: S101 (the schema asks for it)
    if question.resource_model and any(node.filled for part in scenario.stage.simulated for node in part.nodes):
        hint = "name the instances that are there instead"
        raise CannotRunError("these nodes have used quarters, which the resource model cannot count", hint=hint)
    group = _only_group(state, scenario, question.group, "count on")
    names = pair_names(policy, state)
    state = _with_standard(state, question)
    with errors_at(question.template.span if question.template else scenario.span):
        counts = _ClusterCounts(_cluster_to_count(state, group, scenario, question, budget), names, group)
        return [_check_counts(counts, expectation) for expectation in scenario.expectations]


def _only_group(state: ClusterState, scenario: Scenario, named: Located[str] | None, what: str) -> str | None:
    """Return the group that is named, or the only one with nodes; None where several have some.

    Raise CannotRunError where none has: there is no cluster for `what`.
    """
    if named is not None:
        name = known_name(named, state.groups, "group")
        if not state.nodes_of(name):
            hint = "simulate some, or promise hardware and name its nodes"
            raise CannotRunError(f"group {name} has no nodes", named.span, hint=hint)
        return name
    used = {node.group for node in state.nodes.values()}
    if not used:
        hint = "say `on: {simulate: …}`, or write `hardware` and `nodes` of the groups"
        raise CannotRunError(f"no cluster to {what}: the groups promise too little", scenario.span, hint=hint)
    return next(iter(used)) if len(used) == 1 else None


def _with_standard(state: ClusterState, question: CapacityQuestion) -> ClusterState:
    if not question.standard:
        return state
    own = state.cluster.own | {("ipolicy", "std", name): value for name, value in question.standard}
    groups = {name: replace(group, effective=fill(group.own, own, Level.GROUP)) for name, group in state.groups.items()}
    return replace(state, cluster=replace(state.cluster, own=own), groups=groups)


def _cluster_to_count(
    state: ClusterState, group: str | None, scenario: Scenario, question: CapacityQuestion, budget: Budget
) -> CountedCluster:
    weights = with_weights({**dict(question.weights), **dict.fromkeys(question.without, 0.0)})
    limits = Limits(
        max_node_failures=question.max_node_failures,
        oversubscription=question.oversubscription,
        cpus_after_failure=question.cpus_after_failure,
    )
    hint = f"say `group:`, one of {', '.join(sorted({node.group for node in state.nodes.values()}))}"
    if limits.beyond_htools and group is None:
        raise CannotRunError("such limits apply to the nodes of one group: which one?", scenario.span, hint=hint)
    template = wanted_template(question.template.value, enabled_templates(state)) if question.template else None
    state, by_model = limited(state, limits), question.resource_model
    loaded = load_state(state, template=template, resource_model=by_model, group=group, weights=weights)
    if group is None and (loaded.settled.unknown or loaded.limits_differ):
        reason = "; ".join(not_known({name: why.reason for name, why in loaded.settled.unknown.items()}))
        raise CannotRunError(reason or "the groups have different limits", scenario.span, hint=hint)
    found = loaded.whole if group is None else loaded.groups[group]
    if found.too_slow:
        raise found.too_slow
    return replace(found, budget=budget)


@dataclass(eq=False)
class _ClusterCounts:
    """The counts on one cluster; each is worked out when it is asked for."""

    cluster: CountedCluster
    names: PairNames
    group: str | None

    def fit(self, name: str) -> Fit | None:
        """Return how many of the pair (or `standard`) of this name fit; None if there is none."""
        policy = self.cluster.policy
        if name == "standard":
            return self.cluster.standard(policy.std, policy.std.spindle_use)
        pair = dict(zip(self.pairs, policy.minmax, strict=True)).get(name)
        return self.cluster.fit_pair(pair) if pair else None

    @cached_property
    def pairs(self) -> tuple[str, ...]:
        """The names of the pairs."""
        return self.names.of(self.group, len(self.cluster.policy.minmax))

    @cached_property
    def tiered(self) -> dict[str, int]:
        """How many fit in the tiered run, by the name of the pair."""
        _, sizes = tiered_run(self.cluster, silent)
        return {name: sum(size.count for size in placed) for name, placed in zip(self.pairs, sizes, strict=True)}


def _check_counts(counts: _ClusterCounts, expectation: Expectation) -> Check:
    match expectation.path:
        case ("tiered", *name):
            found = counts.tiered.get(name[0]) if name else sum(counts.tiered.values())
            detail = ", ".join(f"{pair} {fits}" for pair, fits in counts.tiered.items())
            return checked(expectation, found, detail=detail)
        case ("specs" | "binding", name):
            fit = counts.fit(name)
        case _:
            fit = counts.fit("standard")
    if fit is None:
        return checked(expectation, None)
    cause = fit.binding.cause.key
    is_binding = expectation.path[0] == "binding"
    return checked(expectation, cause if is_binding else fit.fits, detail=f"{fit.fits} fit, bound by {cause}")


def check_redundancy(state: ClusterState, scenario: Scenario) -> list[Check]:
    """Return the checks of a redundancy test."""
    question = scenario.redundancy
    assert question is not None  # noqa: S101 (the schema asks for it)
    group = _only_group(state, scenario, scenario.group, "ask")
    if group is None:
        used = ", ".join(sorted({node.group for node in state.nodes.values()}))
        raise CannotRunError("which group is meant?", scenario.span, hint=f"say `group:`, one of {used}")
    declared = state.terms_of(group).limits.max_node_failures
    failures = question.failures or declared or 1
    limits = Limits(cpus_after_failure=question.cpus_after_failure)
    with errors_at(scenario.span):
        (found,) = redundancy(state, failures=failures, group=group, limits=limits)
    if found.unavailable is not None:
        raise CannotRunError(found.unavailable, scenario.span, hint="ask for fewer failures, or on fewer nodes")
    if found.nodes < failures:
        message = f"group {group} has {count(found.nodes, 'node')}, so {failures} cannot be lost"
        raise CannotRunError(message, scenario.span)
    return [_check_losses(found, expectation) for expectation in scenario.expectations]


def _check_losses(found: GroupRedundancy, expectation: Expectation) -> Check:
    losses = found.not_absorbed
    detail = "; ".join(_in_words(loss) for loss in losses[:3])
    if expectation.path == ("survives",):
        return checked(expectation, not losses, detail=detail)
    with_reasons = isinstance(expectation.wanted, tuple) and any(isinstance(x, tuple) for x in expectation.wanted)
    # the reason is what most of the instances lack, the first of equal ones
    reasons = [Counter(item.key for item in loss.homeless).most_common(1)[0][0] for loss in losses]
    names = [(title(loss), why) if with_reasons else title(loss) for loss, why in zip(losses, reasons, strict=True)]
    return checked(expectation, tuple(sorted(names)), detail=detail)


def title(loss: Loss) -> str:
    """Return the name of a loss in tests: the node, or the nodes that are lost at once."""
    return " + ".join(loss.nodes)


def _in_words(loss: Loss) -> str:
    first = loss.homeless[0]
    more = f" and {len(loss.homeless) - 1} more" if len(loss.homeless) > 1 else ""
    return f"without {title(loss)}: no place for {first.instance}{more} ({first.key}: {first.detail})"
