"""Laws of plans, over generated clusters and policies, judged by a model of what Ganeti's jobs do."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

from hypothesis import HealthCheck, Phase, event, given, settings, strategies as st

from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.commands import Command
from gpolicy.ganeti.vocabulary import DISK_STATE, HV_STATE, Path, Value, Values
from gpolicy.plan.plan import Plan
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from tests.ganeti.real_ganeti import needs_ganeti, real_ganeti
from tests.laws import FEW
from tests.plan.ganeti_model import ModelCluster, Tree, rapi_job, tools_job
from tests.plan.planned import make_plan, plan_text
from tests.strategies import HOSTILE_NAMES, OWNED, PLAIN_NAMES, GeneratedPolicy, adopted, cluster_states, policies

RISKS = frozenset({"disks-stay", "exclusive-storage", "master-network"})
"""Guards against expensive changes; the others are about what Ganeti refuses or what breaks."""

law = settings(
    derandomize=settings().max_examples == FEW,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def loaded(text: str) -> Policy:
    with tempfile.TemporaryDirectory() as directory:
        file = FilePath(directory, "policy.yaml")
        file.write_text(text, encoding="utf-8")
        policy = load_policy(file)
    assert [finding.message for finding in policy.findings if finding.severity == "error"] == []
    return policy


def plan_of(generated: GeneratedPolicy, state: ClusterState) -> Plan:
    return make_plan(loaded(generated.text), state, allowed=RISKS)


def job_of(command: Command) -> Tree:
    if command.rapi is not None:
        return rapi_job(command.rapi)
    assert command.argv is not None
    return tools_job(command.argv)


def parsed_job(command: Command) -> Tree:
    """Return the job that the real command line submits."""
    return real_ganeti().parse(command.argv)


def carried_out(plan: Plan, state: ClusterState, job: Any = job_of) -> ModelCluster:
    """Return the cluster after all steps; the model raises if a step is refused, or breaks something."""
    model = ModelCluster(state)
    for step in plan.steps:
        model.run(job(step.command))
    return model


@st.composite
def cases(draw: st.DrawFn, names: tuple[str, ...] = PLAIN_NAMES) -> tuple[ClusterState, GeneratedPolicy]:
    state = draw(cluster_states(names))
    return state, draw(policies(state, names))


@law
@given(cases())
def test_laws_of_a_plan(case: tuple[ClusterState, GeneratedPolicy]) -> None:
    """Generating a case is expensive, so all laws use the same one."""
    state, generated = case
    plan = plan_of(generated, state)
    check_order_of_documents_means_nothing(plan, generated, state)
    event(f"safe: {plan.safe}")
    if plan.safe:
        model = carried_out(plan, state)
        check_nothing_is_left_to_do(generated, model.as_state())
        check_what_is_not_declared_is_as_before(generated, state, model.as_state())
        check_rollback_gives_own_values_back(plan, model)


def check_order_of_documents_means_nothing(plan: Plan, generated: GeneratedPolicy, state: ClusterState) -> None:
    turned = plan_of(GeneratedPolicy(generated.documents[::-1]), state)
    assert [step.command for step in plan.steps] == [step.command for step in turned.steps]
    assert turned.policy_digest == plan.policy_digest


def check_nothing_is_left_to_do(generated: GeneratedPolicy, after: ClusterState) -> None:
    again = plan_of(generated, after)
    assert again.changes == ()
    assert again.steps == ()
    assert again.safe


def check_rollback_gives_own_values_back(plan: Plan, model: ModelCluster) -> None:
    for step in reversed(plan.steps):
        for command in step.inverse.commands:
            model.run(job_of(command))
    lost = "\n".join(reason for step in plan.steps for reason in step.inverse.not_restored)
    left = list(differences(model.state, model.as_state()))
    event(f"not restored: {bool(left)}")
    assert [where for where, path in left if ".".join(path) not in lost] == []


def differences(before: ClusterState, after: ClusterState) -> Iterator[tuple[str, Path]]:
    """Yield what differs between two states of a cluster: object and path."""
    pairs = [("cluster", before.cluster, after.cluster)]
    assert before.groups.keys() == after.groups.keys()
    for name, group in before.groups.items():
        yield from ((f"{name}: {path}", path) for path in _differing(group.own, after.groups[name].own))
        assert group.tags == after.groups[name].tags
    for name, node in before.nodes.items():
        yield from ((f"{name}: {path}", path) for path in _differing(node.own, after.nodes[name].own))
        assert (node.tags, node.group) == (after.nodes[name].tags, after.nodes[name].group)
    for label, one, other in pairs:
        yield from ((f"{label}: {path}", path) for path in _differing(_told(one.own), _told(other.own)))
        assert one.tags == other.tags


def _differing(one: Values, other: Values) -> list[Path]:
    return [path for path in sorted(one.keys() | other.keys()) if one.get(path, "absent") != other.get(path, "absent")]


def _told(own: Values) -> Values:
    """Return the cluster's values without states at their built-in value: Ganeti fills them in, and reads none."""
    built_in: dict[str, Value] = {name: row[0] for name, row in {**HV_STATE, **DISK_STATE}.items()}
    return {
        path: value
        for path, value in own.items()
        if path[0] not in ("hv_state", "disk_state") or value != built_in[path[-1]]
    }


def check_what_is_not_declared_is_as_before(
    generated: GeneratedPolicy, state: ClusterState, after: ClusterState
) -> None:
    owned = bool(generated.of("TagRules"))
    for path in _differing(state.cluster.own, after.cluster.own):
        assert _declares(generated.of("Cluster"), path) or path[0] in ("hv_state", "disk_state"), path
    assert _kept(state.cluster.tags, owned=owned, htools=owned) <= after.cluster.tags
    groups = generated.of("NodeGroup")
    names = {document.get("renamed_from", document["name"]): document for document in groups}
    for name, group in state.groups.items():
        document = names.get(name)
        if document is None or "removed" not in document:
            now = after.groups[document["name"] if document else name]
            for path in _differing(group.own, now.own):
                assert document is not None
                assert _declares([document], path), path
            assert _kept(group.tags, owned=owned) <= now.tags
    moved = {node for document in groups for node in document.get("nodes", ())}
    renamed = {document["renamed_from"]: document["name"] for document in groups if "renamed_from" in document}
    for name, node in state.nodes.items():
        for path in _differing(node.own, after.nodes[name].own):
            assert _declares(generated.of("NodeSet"), path), path
        assert _kept(node.tags, owned=owned) <= after.nodes[name].tags
        assert name in moved or after.nodes[name].group == renamed.get(node.group, node.group)


def _declares(documents: list[dict[str, Any]], path: Path) -> bool:
    for document in documents:
        below: Any = document
        for key in path:
            below = below.get(key) if isinstance(below, dict) else None
        if below is not None:
            return True
    return False


def _kept(tags: frozenset[str], *, owned: bool, htools: bool = False) -> set[str]:
    """Return the tags that no policy of ours may remove."""
    prefixes = ((OWNED,) if owned else ()) + (("htools:iextags:",) if htools else ())
    return {tag for tag in tags if not tag.startswith(prefixes or "\0")}


@law
@given(cluster_states(HOSTILE_NAMES), st.booleans())
def test_a_policy_that_declares_all_that_there_is_changes_nothing(
    state: ClusterState,
    inherit: bool,
) -> None:
    plan = plan_of(adopted(state, inherit=inherit), state)
    assert plan.changes == ()
    assert plan.findings == ()
    assert plan.safe


class TestByTheRealParsers:
    """The same through Ganeti's own command line: what it submits is what the model runs."""

    pytestmark = needs_ganeti

    @law
    @given(cases(HOSTILE_NAMES))
    def test_every_command_of_every_plan_is_accepted_and_the_plan_converges(
        self, case: tuple[ClusterState, GeneratedPolicy]
    ) -> None:
        state, generated = case
        plan = plan_of(generated, state)
        assert plan_text(plan).encode()
        for step in plan.steps:
            for command in step.inverse.commands:
                assert parsed_job(command)
        if not plan.safe:
            for step in plan.steps:
                assert parsed_job(step.command)
            return
        again = plan_of(generated, carried_out(plan, state, parsed_job).as_state())
        assert again.changes == ()
