"""What counts as drift, its date, and the effect of waivers."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from gpolicy.checking.settings import Settings
from gpolicy.cluster.state import ClusterState, Identity, Unreadable
from gpolicy.drift.comparing import DriftReport, find_drift
from gpolicy.ganeti.vocabulary import Level, Values
from gpolicy.plan.diff import diff
from tests.plan.planned import HEAD, cluster, policy_of, recorded
from tests.plan.test_plan_laws import loaded
from tests.strategies import adopted, cluster_states, policies

TODAY = date(2026, 6, 30)
CLUSTER = HEAD.removeprefix("gpolicy: v1\nkind: ")
RATIO = ("ipolicy", "vcpu-ratio")
SPINDLES = ("ipolicy", "spindle-ratio")
GOLD = "NodeGroup\nname: gold\nipolicy: {vcpu-ratio: 2}\n"


def waiver(where: str, until: str = "2026-06-30", rule: str = "drift") -> str:
    return f'Waiver\nwaivers:\n  - {{rule: {rule}, where: "{where}", reason: agreed, until: "{until}"}}\n'


def found(state: ClusterState, *documents: str) -> DriftReport:
    return find_drift(policy_of(*documents), state, today=TODAY)


GOLD_AT_4 = cluster(groups={"gold": {RATIO: 4.0}})


def test_a_declared_value_that_differs_is_drift() -> None:
    report = found(GOLD_AT_4, GOLD)
    (drift,) = report.drift
    assert (drift.object, drift.name, drift.declared, drift.found) == ("group/gold", "ipolicy.vcpu-ratio", 2.0, 4.0)
    assert not drift.inherits
    assert drift.span is not None
    assert drift.span.line == 4


def test_an_undeclared_value_is_not_drift() -> None:
    assert found(GOLD_AT_4, CLUSTER, "NodeGroup\nname: gold\n").drift == ()


def test_an_own_value_where_none_is_declared_is_drift_even_if_it_is_equal() -> None:
    (drift,) = found(GOLD_AT_4, "NodeGroup\nname: gold\nipolicy: {vcpu-ratio: inherit}\n").drift
    assert (drift.inherits, drift.declared, drift.found) == (True, None, 4.0)
    assert drift.effective_declared == drift.effective_found == 4.0


def test_an_access_mode_that_should_be_inherited_is_shown_so() -> None:
    state = cluster(groups={"gold": {("diskparams", "rbd", "access"): "userspace"}})
    (drift,) = found(state, "NodeGroup\nname: gold\ndiskparams: {rbd: {access: inherit}}\n").drift
    assert (drift.inherits, drift.declared, drift.found) == (True, None, "userspace")
    assert drift.effective_declared == "kernelspace"


def test_since_when_is_the_last_write_to_the_object() -> None:
    state = recorded("rich")
    node = min(state.nodes)
    report = found(
        state,
        "Cluster\nname: cluster\ncandidate_pool_size: 99\n",
        "NodeGroup\nname: gold\nipolicy: {vcpu-ratio: 99}\n",
        f"NodeGroup\nname: empty\nnodes: [{node}]\n",
        "NodeGroup\nname: nowhere\n",
    )
    since = {(drift.object, drift.name): drift.since for drift in report.drift}
    assert since["cluster", "candidate_pool_size"] == state.cluster.identity
    assert since["group/gold", "ipolicy.vcpu-ratio"] == state.groups["gold"].identity
    assert since[f"node/{node}", "group"] == state.nodes[node].identity
    assert since["group/nowhere", "name"] == Identity()
    assert all(item.mtime for (obj, _), item in since.items() if obj != "group/nowhere")


def test_a_group_that_was_not_renamed_is_dated_by_the_group_that_is_there() -> None:
    (drift,) = found(recorded("rich"), "NodeGroup\nname: empty2\nrenamed_from: empty\n").drift
    assert (drift.name, drift.found, drift.declared) == ("name", "empty", "empty2")
    assert drift.since == recorded("rich").groups["empty"].identity


@pytest.mark.parametrize(
    "where",
    ["group/gold:ipolicy.vcpu-ratio", "group/gold:ipolicy.*", "group/gold", "group/*", "*:ipolicy.*", "policy.yaml"],
)
def test_a_waiver_accepts_a_value_an_object_or_a_file(where: str) -> None:
    report = found(GOLD_AT_4, GOLD, waiver(where))
    assert report.drift == ()
    assert [(item.drift.name, item.waiver.reason) for item in report.accepted] == [("ipolicy.vcpu-ratio", "agreed")]
    assert report.findings == ()


@pytest.mark.parametrize("where", ["group/gold:ipolicy.spindle-ratio", "group/silver", "cluster", "gold"])
def test_a_waiver_of_something_else_accepts_nothing_and_is_reported(where: str) -> None:
    report = found(GOLD_AT_4, GOLD, waiver(where))
    assert len(report.drift) == 1
    assert report.accepted == ()
    assert [finding.name for finding in report.findings] == ["waiver-unused"]


def test_a_waiver_holds_on_its_last_day_and_not_on_the_next() -> None:
    policy = policy_of(GOLD, waiver("group/gold", until="2026-06-30"))
    assert find_drift(policy, GOLD_AT_4, today=date(2026, 6, 30)).drift == ()
    late = find_drift(policy, GOLD_AT_4, today=date(2026, 7, 1))
    assert len(late.drift) == 1
    assert [finding.name for finding in late.findings] == ["waiver-expired"]
    assert late.findings[0].consequences == (), "the drift itself is shown"


def test_waivers_of_other_rules_are_left_to_check() -> None:
    report = found(GOLD_AT_4, GOLD, waiver("group/gold", rule="spec-overlap", until="2001-01-01"))
    assert len(report.drift) == 1
    assert report.findings == ()


def test_the_rule_has_a_code_as_well() -> None:
    assert found(GOLD_AT_4, GOLD, waiver("group/gold", rule="gp821")).drift == ()


def test_two_waivers_of_one_value_are_both_used() -> None:
    report = found(GOLD_AT_4, GOLD, waiver("group/gold"), waiver("group/*"))
    assert report.findings == ()
    assert len(report.accepted) == 1


def test_unreadable_values_are_listed_separately() -> None:
    hidden = (Unreadable(level=Level.GROUP, prefix=("hv_state",)),)
    state = cluster(groups={"gold": {}}, unreadable=hidden)
    report = found(state, "NodeGroup\nname: gold\nhv_state: {kvm: {mem_node: 5}}\n", waiver("group/gold:hv_state.*"))
    assert report.drift == ()
    assert [(item.object, item.path) for item in report.not_compared] == [
        ("group/gold", ("hv_state", "kvm", "mem_node"))
    ]
    assert report.findings == ()  # nobody knows whether the waiver is needed


@settings(suppress_health_check=list(HealthCheck))
@given(cluster_states())
def test_a_cluster_that_is_as_declared_has_no_drift(state: ClusterState) -> None:
    assert find_drift(loaded(adopted(state).text), state, today=TODAY).drift == ()


@settings(suppress_health_check=list(HealthCheck))
@given(st.data())
def test_each_change_of_a_plan_is_drift_or_accepted_once(data: st.DataObject) -> None:
    state = data.draw(cluster_states())
    policy = loaded(data.draw(policies(state)).text)
    changes = diff(policy, state).changes
    report = find_drift(policy, state, today=TODAY)
    assert [(drift.object, drift.path) for drift in report.drift] == [(item.object, item.path) for item in changes]
    for drift, change in zip(report.drift, changes, strict=True):
        assert drift.found == change.before
        assert drift.inherits or drift.declared == change.after
    all_waived = replace(policy, waivers=policy_of(waiver("*")).waivers)
    waived = find_drift(all_waived, state, today=TODAY)
    assert waived.drift == ()
    assert tuple(item.drift for item in waived.accepted) == report.drift


@pytest.mark.parametrize(
    ("values", "said"),
    [({RATIO: 4.0}, "1 value that drifted is"), ({RATIO: 4.0, SPINDLES: 3.0}, "2 values that drifted are")],
)
def test_drift_that_the_settings_ignore_is_counted(values: Values, said: str) -> None:
    policy = policy_of("NodeGroup\nname: gold\nipolicy: {vcpu-ratio: 2, spindle-ratio: 8}\n")
    state = cluster(groups={"gold": {RATIO: 2.0, SPINDLES: 8.0, **values}})
    report = find_drift(policy, state, today=TODAY, settings=Settings(ignored=frozenset({"GP821"})))
    assert (report.drift, report.accepted) == ((), ())
    assert report.notes == (f"{said} not shown: the settings ignores GP821 drift there",)
    assert find_drift(policy, state, today=TODAY).notes == ()


def test_what_was_compared_is_counted() -> None:
    state = cluster(groups={"gold": {}, "silver": {}}, nodes={"n1": "gold", "n2": "gold", "n3": "silver"})
    documents = "NodeGroup\nname: gold\nnodes: [n1, n2]", "NodeGroup\nname: silver"
    assert found(state, *documents).compared == 4
    assert found(state, CLUSTER, *documents).compared == 5
    assert found(state, "TagRules\nowns: [iextags]\nexclusion: [web]").compared == 1
