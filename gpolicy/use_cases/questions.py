"""What is asked of a policy, and what the allocator is asked about a cluster.

Of a policy: whether it is sound, what its tests find, and where a cluster is not as it declares. Of a cluster: as it
is, or as a policy makes it, with what is supposed of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import gpolicy
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import NO_LIMITS, Limits, limited
from gpolicy.errors import ExitCode, GpolicyError, RequestError
from gpolicy.findings import Accepted, Finding, Severity
from gpolicy.policy.kinds import Policy
from gpolicy.policy.source_file import Files
from gpolicy.printable import count
from gpolicy.progress import Working, quietly

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_score import Weights
    from gpolicy.analysis.basis import Settled
    from gpolicy.analysis.size_words import SizeWords
    from gpolicy.checking.rule import Hit
    from gpolicy.cluster.terms import PairNames
    from gpolicy.plan.sides import Sides
    from gpolicy.resolve.desired import Desired
    from gpolicy.show.effective_policy import EffectivePolicy
    from gpolicy.testing.outcome import Outcome
    from gpolicy.what_if.supposing import WhatIf


class PolicyError(GpolicyError):
    """The policy has errors that nobody accepted. `findings` are these, in `files`."""

    exit_code = ExitCode.FINDINGS

    def __init__(self, findings: Sequence[Finding], files: Files) -> None:
        first = findings[0]
        where = f"{first.span}: " if first.span else ""
        super().__init__(f"the policy has {count(len(findings), 'error')}: {where}{first.message}", hint=first.hint)
        self.findings, self.files = tuple(findings), files


@dataclass(frozen=True, slots=True)
class CheckedPolicy:
    """A policy, and what was found in it; what waivers, comments and the baseline accept of it is apart.

    `desired` is what the policy wants of the `state` that it was checked with.
    """

    policy: Policy
    findings: tuple[Finding, ...]
    accepted: Sequence[Accepted] = ()
    state: ClusterState | None = None
    desired: Desired | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings of severity error."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)

    def desired_of(self, state: ClusterState) -> Desired | None:
        """Return what the policy wants of a state, if that is known already."""
        return self.desired if state is self.state else None

    def sound(self) -> Policy:
        """Return the policy. Raise PolicyError if it has an error."""
        _refuse_errors(self.errors, self.policy.files)
        return self.policy


def _refuse_errors(findings: Sequence[Finding], files: Files) -> None:
    """Raise PolicyError if one of these findings is an error."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if errors:
        raise PolicyError(errors, files)


def check_policy(
    policy: Policy,
    state: ClusterState | None = None,
    *,
    today: date,
    together: Sequence[Hit] = (),
    only_errors: bool = False,
    texts: Mapping[str, str] | None = None,
) -> CheckedPolicy:
    """Check a policy by the settings of its repository (gpolicy.toml).

    With the `state` of a cluster, the rules that need one run as well, but those about the plan (GP741 and others):
    `plan_change` says what they say. Waivers that end before `today` are no longer in force. `together` is what the
    policy shows beside others. With `only_errors`, rules that only warn may be left out. `texts` may hold another text
    of its baseline: that at the base of a change. Raise InputError for settings that are malformed.

    For example, a test is `assert not check_policy(load_policy(Path("policies/berlin")), today=date.today()).errors`.
    """
    from gpolicy.forecast.bridge import check_by_settings  # noqa: PLC0415

    found = check_by_settings(policy, state, today=today, together=together, only_errors=only_errors, texts=texts)
    return CheckedPolicy(policy, tuple(found.findings), found.accepted, state, found.desired)


def run_tests(
    policies: Sequence[CheckedPolicy], state: ClusterState | None = None, *, name: str | None = None
) -> list[Outcome]:
    """Run the tests of policies (documents of kind Test), with a `name` only those that have it in theirs.

    A test without a cluster of its own runs on `state`, else on the hardware that the groups promise. Raise PolicyError
    for a policy with an error, RequestError where no test has that name.

    For example, `all(outcome.ok for outcome in run_tests([checked]))` says whether all of them pass.
    """
    from gpolicy.testing import running_tests  # noqa: PLC0415 (the allocator comes with it)

    wanted = (name or "").lower()
    chosen = [
        (policy, [scenario for scenario in policy.scenarios if wanted in scenario.name.value.lower()])
        for policy in [checked.sound() for checked in policies]
    ]
    if name is not None and not any(scenarios for _, scenarios in chosen):
        raise RequestError(f"no test has {name!r} in its name", hint="leave out -k to run all of them")
    return [
        outcome
        for policy, scenarios in chosen
        if scenarios
        for outcome in running_tests.run_tests(policy, chosen=scenarios, stages=running_tests.Stages(policy, state))
    ]


def find_drift(checked: CheckedPolicy, state: ClusterState, *, today: date) -> gpolicy.DriftReport:
    """Return where the cluster in `state` differs from the policy, less what waivers accept on `today`.

    Raise PolicyError for a policy with an error.

    For example, `find_drift(checked, state, today=date.today()).drift` is empty where it is as the policy declares.
    """
    from gpolicy.checking.settings_tables import settings_for  # noqa: PLC0415
    from gpolicy.drift.comparing import find_drift as compare  # noqa: PLC0415

    policy = checked.sound()
    settings = settings_for(policy.root or Path())
    return compare(policy, state, today=today, settings=settings, desired=checked.desired_of(state))


def show_policy(checked: CheckedPolicy) -> EffectivePolicy:
    """Return the effective values of cluster, groups and node sets, each with the place that it comes from.

    Raise PolicyError for a policy with an error.
    """
    from gpolicy.show.effective_policy import effective_view  # noqa: PLC0415

    return effective_view(checked.sound())


@dataclass(frozen=True, kw_only=True)
class OpenedCluster:
    """A cluster that questions are asked about. `names` are those of its sizes.

    `limits` go before those of the policy where a question counts or places instances. Moves (a remedy, evacuations,
    waves) keep those of the `state`; a supposed state has the `limits` already. With `resource_model`, what hv_state
    and disk_state declare goes before measured figures.
    """

    state: ClusterState
    names: PairNames
    limits: Limits = NO_LIMITS
    resource_model: bool = False

    @cached_property
    def settled(self) -> Settled:
        """What is known of the state as the allocator's input, converted once for all questions that share it."""
        from gpolicy.analysis.basis import settle  # noqa: PLC0415

        return settle(self.state, resource_model=self.resource_model)


def open_cluster(
    state: ClusterState,
    policy: CheckedPolicy | gpolicy.Plan | None = None,
    *,
    what_if: WhatIf | None = None,
    limits: Limits = NO_LIMITS,
    resource_model: bool = False,
    plan_file: Path = Path("the plan"),
    working: Working = quietly,
) -> OpenedCluster:
    """Return the cluster in `state`, as a policy or a plan would make it, and then with what is supposed of it.

    `plan_file` is what notes call the plan. Raise PolicyError for a policy with an error or that does not fit the
    cluster, RequestError for a plan of another cluster, or where what is supposed is impossible.

    For example, `open_cluster(state, checked).state.groups` are the groups as the policy makes them.
    """
    from gpolicy.plan.sides import Sides, planned_sides  # noqa: PLC0415

    sides = Sides(state, state)
    if isinstance(policy, CheckedPolicy):
        sides = planned_sides(policy.sound(), state, policy.desired_of(state))
        _refuse_errors(sides.difference.findings, policy.policy.files)  # what does not fit this cluster
    elif policy is not None:
        sides = _planned(state, policy, plan_file)
    after, names = sides.after, sides.names
    if what_if is not None:
        from gpolicy.what_if.supposing import suppose  # noqa: PLC0415 (few ask)

        with working("supposing what the options say"):
            under_limits = after if limits == NO_LIMITS else limited(after, limits)
            after = suppose(under_limits, what_if, names, resource_model=resource_model)
    return OpenedCluster(state=after, names=names, limits=limits, resource_model=resource_model)


def _planned(state: ClusterState, plan: gpolicy.Plan, file: Path) -> Sides:
    """Return the cluster before and after a plan. Raise RequestError for a plan for another cluster."""
    from gpolicy.apply.work import ClusterIdentity  # noqa: PLC0415
    from gpolicy.cluster.state_files import state_digest  # noqa: PLC0415
    from gpolicy.plan.plan import sides_of_plan  # noqa: PLC0415

    if state.name and (other := ClusterIdentity(plan.cluster, plan.cluster_uuid).other(state)):
        raise RequestError(f"{file} is a plan for cluster {plan.cluster or plan.source}: {other}")
    sides = sides_of_plan(plan, state)
    stops = [f"no move cures what stops {file}, as moves come after the plan: {reason}" for reason in plan.obstacles]
    if state_digest(state) not in {plan.state_digest, plan.state_digest_rapi}:
        stops.append(f"the cluster has changed since {file} was made")
    supposed = (f"{file.name} applied, which is stopped now",) if plan.obstacles else ()
    notes, supposed = (*sides.after.notes, *stops), (*sides.after.supposed, *supposed)
    return replace(sides, after=replace(sides.after, notes=notes, supposed=supposed))


def _under_limits(cluster: OpenedCluster) -> tuple[ClusterState, Settled]:
    """Return the state of a cluster, and what is known of it, under the limits of the question."""
    known = cluster.settled
    return limited(cluster.state, cluster.limits), replace(known, state=limited(known.state, cluster.limits))


def count_capacity(
    cluster: OpenedCluster,
    *,
    group: str | None = None,
    template: str | None = None,
    weights: Weights | None = None,
    other_values: bool = True,
    after_moves: bool = False,
    working: Working = quietly,
) -> gpolicy.CapacityReport:
    """Return how many more instances fit in each group, or in `group`, and what limits them.

    `template` is their disk template, by default the first that is enabled of each group's list. `weights` are those of
    the cluster score (default: Ganeti's). With `other_values`, what a number of the policy limits is counted with
    another value as well; with `after_moves`, also what fits after moves (half a second more). Sizes are in MiB. Raise
    RequestError for an unknown group or a template that is not enabled, GpolicyError if nothing is known of the nodes.

    For example, `count_capacity(open_cluster(state)).groups[0].tiered_fit.fits` is how many more the first group takes.
    """
    from gpolicy.allocator.cluster_score import WEIGHTS  # noqa: PLC0415
    from gpolicy.analysis.capacity import capacity  # noqa: PLC0415

    with working("counting what fits") as tell:
        report = capacity(
            cluster.state,
            group=group,
            template=template,
            names=cluster.names,
            limits=cluster.limits,
            weights=weights or WEIGHTS,
            resource_model=cluster.resource_model,
            other_values=other_values,
            settled=cluster.settled,
            tell=tell,
        )
    if not after_moves:
        return report
    from gpolicy.remedy.remedy import count_after_moves  # noqa: PLC0415 (not all ask)

    with working("looking for moves that make room"):
        return count_after_moves(report, *_under_limits(cluster))


def forecast_capacity(
    cluster: OpenedCluster,
    report: gpolicy.CapacityReport,
    directory: Path,
    *,
    state: ClusterState,
    at: str,
    working: Working = quietly,
) -> gpolicy.GrowthReport:
    """Return when the sizes that `report` counts on `cluster` are full, at the growth of the snapshots in `directory`.

    `state` is the cluster as it is, read `at` (YYYY-MM-DDThh:mm:ssZ).
    """
    from gpolicy.analysis.loaded_state import load_state  # noqa: PLC0415
    from gpolicy.growth.filling_up import forecast, read_history  # noqa: PLC0415

    with working("reading snapshots") as tell:
        counted, settled = _under_limits(cluster)
        history = read_history(directory, state, {node.name: node.group for node in counted.nodes.values()}, at, tell)
        return forecast(report, load_state(counted, settled=settled), history, at)


def place_instance(
    cluster: OpenedCluster,
    request: SizeWords | Sequence[str],
    *,
    ignore_ipolicy: bool = False,
    weights: Weights | None = None,
    working: Working = quietly,
) -> gpolicy.PlaceReport:
    """Return where an instance goes, by hail's own answer, and why each other node or pair of nodes does not take it.

    `request` are words as `gpolicy place` takes them: the name of a size, or `memory=4G`, `disk=20G`. Raise
    RequestError for words without a meaning on this cluster.

    For example, `place_instance(cluster, ["memory=4G", "vcpus=2", "disk=20G"]).nodes` are the chosen nodes.
    """
    from gpolicy.analysis.placing import place  # noqa: PLC0415
    from gpolicy.analysis.size_words import SizeWords, read_words  # noqa: PLC0415
    from gpolicy.what_if.supposing import full_name  # noqa: PLC0415

    words = request if isinstance(request, SizeWords) else read_words(request)
    with working("trying every node and what would fit"):
        asked = words.on(cluster.state, cluster.names)
        if asked.nodes is not None:
            asked = replace(asked, nodes=tuple(full_name(node, cluster.state.nodes) for node in asked.nodes))
        asked = replace(asked, ignore_ipolicy=ignore_ipolicy, weights=weights or asked.weights)
        names, limits, by_model, known = cluster.names, cluster.limits, cluster.resource_model, cluster.settled
        return place(
            cluster.state, asked, names=names, limits=limits, resource_model=by_model, instead=True, settled=known
        )


def suggest_sizes(
    cluster: OpenedCluster,
    request: gpolicy.SuggestRequest,
    *,
    group: str | None = None,
    stop: gpolicy.Stop | None = None,
    working: Working = quietly,
) -> gpolicy.SuggestReport:
    """Return sizes of instances that tile the nodes of each group, or of `group`, with what they would let fit.

    `stop` may end the search early (default: never). Raise RequestError for an impossible request.

    For example, `suggest_sizes(cluster, SuggestRequest(), group="shared").groups[0].document` declares such sizes.
    """
    from gpolicy.suggest.suggesting import suggest  # noqa: PLC0415

    with working("trying sizes") as tell:
        return suggest(cluster.state, request, group=group, limits=cluster.limits, stop=stop, tell=tell)


def size_group(
    cluster: OpenedCluster,
    request: gpolicy.SizeRequest,
    *,
    stop: gpolicy.Stop | None = None,
    working: Working = quietly,
) -> gpolicy.SizeReport:
    """Return the cheapest numbers of nodes to buy until the wanted instances fit.

    `stop` may end the search early. Raise RequestError for a question without sense, GpolicyError if none is enough.
    """
    from gpolicy.what_if.sizing import find_size  # noqa: PLC0415

    with working("trying numbers of nodes") as tell:
        return find_size(cluster.state, request, cluster.names, cluster.limits, tell, stop)


def fill_group(
    cluster: OpenedCluster, group: str | None = None, *, stop: gpolicy.Stop | None = None, working: Working = quietly
) -> gpolicy.FullReport:
    """Return how many more instances fit in `group`, or in the only one with instances, at today's mix of sizes.

    `stop` may end the count early. Raise RequestError where the group is not clear, or has no instances.
    """
    from gpolicy.what_if.filling import count_until_full, only_group  # noqa: PLC0415

    with working("counting until it is full") as tell:
        return count_until_full(cluster.state, only_group(cluster.state, group), cluster.limits, tell, stop)


def find_evacuation(
    cluster: OpenedCluster,
    request: gpolicy.EvacuationRequest,
    *,
    stop: gpolicy.Stop | None = None,
    working: Working = quietly,
) -> gpolicy.EvacuationReport:
    """Return what moves where, by hail's own evacuation, to empty nodes or a group, and what stays.

    The `resource_model` of the cluster goes before that of the request. What is left when `stop` ends the search
    stays. Raise RequestError for a request without sense on this cluster.

    For example, `find_evacuation(cluster, EvacuationRequest(nodes="node1")).stays` is what could not leave that node.
    """
    from gpolicy.evacuate.evacuating import find_evacuation as find  # noqa: PLC0415

    with working("asking hail") as tell:
        return find(cluster.state, replace(request, resource_model=cluster.resource_model), tell, stop)


def find_waves(
    cluster: OpenedCluster,
    request: gpolicy.EvacuationRequest,
    *,
    stop: gpolicy.Stop | None = None,
    working: Working = quietly,
) -> gpolicy.WavesReport:
    """Return in which waves the nodes of a request (none named: all) are rebooted or upgraded so that nothing stops.

    Of the request `nodes` or `group`, `ignore_soft_errors` and `rate` count. The nodes that are left when `stop` ends
    the search go one by one. Raise RequestError for a request without sense on this cluster.

    For example, `[wave.nodes for wave in find_waves(cluster, EvacuationRequest()).waves]` is the order of the nodes.
    """
    from gpolicy.evacuate.in_turn import find_waves as find  # noqa: PLC0415

    with working("looking for waves") as tell:
        return find(cluster.state, replace(request, resource_model=cluster.resource_model), tell, stop)


def find_remedy(
    cluster: OpenedCluster,
    *,
    rate: int = 60,
    want: str | None = None,
    stop: gpolicy.Stop | None = None,
    working: Working = quietly,
) -> gpolicy.RemedyReport:
    """Return the moves that cure the cluster, in job sets, and what nothing cures.

    `rate` is how many MiB of disk a job copies a second. With `want`, as in "3x large", the moves make room for wanted
    instances instead. `stop` may end the search early. Raise RequestError for a `want` without sense on this cluster,
    GpolicyError if figures of nodes are missing in all groups.

    For example, `find_remedy(cluster, want="1x small group=shared").steps` are the moves that make room for one.
    """
    from gpolicy.remedy.remedy import find_remedy as find  # noqa: PLC0415
    from gpolicy.remedy.room import read_want  # noqa: PLC0415

    state, names, by_model = cluster.state, cluster.names, cluster.resource_model
    wanted, known = None if want is None else read_want(want), cluster.settled
    with working("looking for moves") as tell:
        return find(state, names, rate=rate, resource_model=by_model, want=wanted, settled=known, stop=stop, tell=tell)
