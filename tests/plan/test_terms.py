"""What a policy says of resources beyond what Ganeti stores: read, inherited, kept in a plan file."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.record import Record
from gpolicy.cluster.sources import read_state
from gpolicy.cluster.state import ClusterState, Unreadable
from gpolicy.cluster.terms import GroupTerms, Limits, Promise, Terms, VolumeTerms, limits_in_force, under_terms
from gpolicy.errors import InputError
from gpolicy.ganeti.vocabulary import Level, Value
from gpolicy.plan.changes import ChangeAction
from gpolicy.plan.diff import Difference, diff
from gpolicy.plan.plan_json import TERMS
from gpolicy.plan.sides import sides_of
from gpolicy.policy.loading import load_policy
from gpolicy.resolve.desired import resolve, terms_of

POLICY = """
gpolicy: v1
kind: Cluster
name: ganeti.example.org
limits: {max_node_failures: 2, oversubscription: 1.5}
default_iallocator_params: {no-capacity-checks: null, static-kvm-node-memory: 8192}
physical_volumes: {margin: 1.5 %, exclude: [/dev/sda*]}
---
gpolicy: v1
kind: NodeGroup
name: fast
renamed_from: dedicated
limits: {max_node_failures: 1, cpus_after_failure: true}
physical_volumes: {reserve: 0%, volume_groups: {meta: [/dev/nvme0n1]}}
hardware: {memory: 64G, cpus: 16, pv_size: 100G, pv_count: 2}
hv_state: {kvm: {mem_total: 64G, mem_node: 0}}
---
gpolicy: v1
kind: NodeSet
name: big
nodes: [node1.example.org]
hv_state: {kvm: {mem_total: 128G}}
"""
HIDDEN = tuple(Unreadable(level=level, prefix=("hv_state",)) for level in Level)
FAST = GroupTerms(
    limits=Limits(max_node_failures=1, oversubscription=1.5, cpus_after_failure=True),
    volumes=VolumeTerms(exclude=("/dev/sda*",), volume_groups={"meta": ("/dev/nvme0n1",)}, margin=0.015, reserve=0.0),
    promise=Promise(memory=65536, cpus=16, volumes=(102400, 102400)),
)


@pytest.fixture
def state() -> ClusterState:
    found = read_state("snapshot:policies/two-groups.snapshot.json")
    assert "dedicated" in found.groups
    return replace(found, unreadable=(*found.unreadable, *HIDDEN))


def terms(state: ClusterState, directory: Path) -> Terms:
    (directory / "policy.yaml").write_text(POLICY)
    policy = load_policy(directory / "policy.yaml")
    assert [item.message for item in policy.findings] == []
    return terms_of(policy, resolve(policy, state))


def test_a_group_has_the_terms_of_the_cluster_and_its_own_go_first(state: ClusterState, tmp_path: Path) -> None:
    found = terms(state, tmp_path)
    assert found.groups == {"fast": FAST}
    assert found.others == GroupTerms(
        limits=Limits(max_node_failures=2, oversubscription=1.5),
        volumes=VolumeTerms(exclude=("/dev/sda*",), margin=0.015),
    )


def test_declared_values_count_only_where_the_source_does_not_show_them(state: ClusterState, tmp_path: Path) -> None:
    found = terms(state, tmp_path)
    path = ("hv_state", "kvm", "mem_total")
    hidden, shown = under_terms(state, found), under_terms(replace(state, unreadable=()), found)
    assert hidden.nodes["node1.example.org"].own[path] == 131072
    assert path not in shown.nodes["node1.example.org"].own
    assert shown.terms_of("dedicated") == found.others  # not renamed yet, and nobody says that it will be


def test_parameters_of_the_allocator_count_where_the_source_does_not_show_them(
    state: ClusterState, tmp_path: Path
) -> None:
    found, path = terms(state, tmp_path), ("default_iallocator_params",)
    silent = replace(state, unreadable=(Unreadable(level=Level.CLUSTER, prefix=path),))
    declared = {"no-capacity-checks": None, "static-kvm-node-memory": "8192"}
    assert under_terms(silent, found).cluster.own[path] == declared
    assert under_terms(state, found).cluster.own[path] == {}


def test_terms_follow_a_group_that_is_renamed(state: ClusterState, tmp_path: Path) -> None:
    found = terms(state, tmp_path)
    changes = diff(load_policy(tmp_path / "policy.yaml"), state).changes
    assert [change.after for change in changes if change.action is ChangeAction.RENAME] == ["fast"]
    sides = sides_of(state, Difference([*changes]), found)
    before, after = sides.before, sides.after
    assert before.terms_of("dedicated") == after.terms_of("fast") == FAST
    assert before.groups["dedicated"].own["hv_state", "kvm", "mem_node"] == 0


def read_terms(written: Record) -> Terms:
    assert TERMS.reader is not None
    found: Terms = TERMS.reader(written)
    return found


def test_a_plan_file_keeps_terms(state: ClusterState, tmp_path: Path) -> None:
    found = terms(state, tmp_path)
    written = json.loads(json.dumps(TERMS(found)))
    assert read_terms(Record.of(written, "plan.json: terms")) == found


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ({"limits": {"max_node_failures": 9}}, "max_node_failures should be a number from 0 to 8, but is a number"),
        (
            {"limits": {"oversubscription": 0}},
            "oversubscription should be a ratio above 0 and up to 100, but is a number",
        ),
        ({"volumes": {"margin": 1}}, "margin should be a share below 1, but is a number"),
        (
            {"volumes": {"margin": 0, "reserve": 0}, "promise": {"volumes": [1, -1]}},
            "volumes should be a list of sizes, but is a list",
        ),
    ],
)
def test_terms_that_no_policy_can_have_are_refused(group: Value, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_terms(Record.of({"groups": {"fast": group}}, "plan.json: terms"))
    assert message in caught.value.message


def test_a_whole_number_may_be_written_as_2_0_and_a_ratio_is_a_number(tmp_path: Path) -> None:
    head = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
    (tmp_path / "policy.yaml").write_text(f"{head}limits: {{max_node_failures: 2.0}}\n")
    policy = load_policy(tmp_path / "policy.yaml")
    assert policy.findings == ()
    assert policy.cluster is not None
    assert repr(policy.cluster.limits["max_node_failures"].value) == "2"
    (tmp_path / "policy.yaml").write_text(f"{head}limits: {{oversubscription: .nan}}\n")
    (finding,) = load_policy(tmp_path / "policy.yaml").findings
    assert finding.message == "limits.oversubscription is nan, which is not a ratio"
    assert str(finding.span).endswith("policy.yaml:4:28")


def test_limits_say_where_all_nodes_of_a_group_may_fail(state: ClusterState) -> None:
    some = {name: GroupTerms(limits=Limits(max_node_failures=3)) for name in state.groups}
    (found,) = limits_in_force(replace(state, terms=some), Limits())
    assert {name: len(state.nodes_of(name)) for name in state.groups} == {"dedicated": 3, "default": 4, "spare": 1}
    assert found.too_small == ("dedicated", "spare")
    assert found.sentence.endswith("; no more nodes than may fail: dedicated, spare")
