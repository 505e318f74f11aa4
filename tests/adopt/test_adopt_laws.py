"""Law: the policy adopted from any cluster loads, is formatted, has an empty plan, and its guards pass."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from hypothesis import HealthCheck, given, settings, strategies as st

from gpolicy.adopt.adopting import Adopted, adopt_cluster
from gpolicy.cluster.state import ClusterState
from gpolicy.forecast.bridge import FORECAST
from gpolicy.formatting.formatting import format_text
from gpolicy.ganeti.parameters import default_in, parameter_at
from gpolicy.ganeti.releases import DEFAULT_VERSION, release_of
from gpolicy.ganeti.vocabulary import Level, Path as ValuePath, Value
from gpolicy.impact.declared_guards import verdicts_on
from gpolicy.plan.sides import planned_sides
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from gpolicy.policy.model import Leaves
from gpolicy.policy.yaml_reader import read_yaml
from gpolicy.writing.documents import SCHEMA_FILE
from gpolicy.writing.yaml_text import YamlNode, comment_lines, entry
from tests.adopt.cluster_states import cluster_states, texts
from tests.laws import examples
from tests.mistakes import find_mistakes
from tests.plan.planned import make_plan

_QUIET = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)


def check_law(state: ClusterState) -> None:
    adopted = adopt_cluster(state)
    with tempfile.TemporaryDirectory() as parent:
        directory = Path(parent) / "policy"
        for name, text in adopted.files.items():
            if name != SCHEMA_FILE:  # the same each time, and large
                (directory / name).parent.mkdir(parents=True, exist_ok=True)
                (directory / name).write_text(text, encoding="utf-8")
                made = format_text(text, name)
                assert (made.text, made.reason) == (text, "")  # in form already
        policy = load_policy(directory)
    assert policy.findings == ()
    plan = make_plan(policy, state)
    assert plan.findings == ()
    assert plan.changes == ()
    assert plan.steps == ()
    assert plan.not_compared == ()
    found = find_mistakes(policy, state=state, today=date.min, forecast=FORECAST)
    has_name = policy.cluster is not None and policy.cluster.name == state.name
    assert [item for item in found if item.severity == "error" and (has_name or item.code != "GP705")] == []
    declared, built_in = verdicts_on(policy, planned_sides(policy, state))
    assert [item for item in (*declared, *built_in) if not item.ok] == []
    check_nothing_lost(state, policy, adopted)


def check_nothing_lost(state: ClusterState, policy: Policy, adopted: Adopted) -> None:
    """All that the cluster has is declared, listed as left out, or one of Ganeti's own defaults."""
    missing = {(item.object, item.what) for item in adopted.left_out}
    version = release_of(state.software_version) or DEFAULT_VERSION

    def values(label: str, level: Level, own: Mapping[ValuePath, Value], leaves: Leaves) -> None:
        for path, value in own.items():
            parameter = parameter_at(path)
            at_default = level is Level.CLUSTER and parameter is not None and default_in(parameter, version) == value
            if state.readable(level, path) and path not in leaves and not at_default:
                assert {(label, ""), (label, ".".join(path))} & missing, (label, path, value)

    def tags(label: str, have: frozenset[str], declared: set[str]) -> None:
        for tag in have - declared:
            assert {(label, ""), (label, f"tag {tag}")} & missing, (label, tag)

    values("cluster", Level.CLUSTER, state.cluster.own, policy.cluster.leaves if policy.cluster else {})
    tags("cluster", state.cluster.tags, {tag.value for tag in policy.cluster_tags or ()})
    for name, group in state.groups.items():
        declared = policy.groups.get(name)
        values(f"group/{name}", Level.GROUP, group.own, declared.leaves if declared else {})
        tags(f"group/{name}", group.tags, {tag.value for tag in (declared and declared.tags) or ()})
    sets = {node.value: node_set for node_set in policy.node_sets for node in node_set.nodes}
    members = {node.value: group.name for group in policy.groups.values() for node in group.nodes or ()}
    for name, node in state.nodes.items():
        node_set = sets.get(name)
        values(f"node/{name}", Level.NODE, node.own, node_set.leaves if node_set else {})
        tags(f"node/{name}", node.tags, {tag.value for tag in (node_set and node_set.tags) or ()})
        where = {(f"node/{name}", ""), (f"group/{node.group}", "")}
        assert members.get(name) == node.group or where & missing


@settings(max_examples=examples(40), suppress_health_check=_QUIET)
@given(cluster_states())
def test_the_plan_of_an_adopted_policy_is_empty(state: ClusterState) -> None:
    check_law(state)


_nodes: st.SearchStrategy[YamlNode] = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def _carried(node: YamlNode) -> bool:
    """An unpaired surrogate is not text, and `<<` is not a key for our reader."""
    if isinstance(node, dict):
        return all(_carried(key) and key != "<<" and _carried(below) for key, below in node.items())
    if isinstance(node, list):
        return all(_carried(item) for item in node)
    return not isinstance(node, str) or not any(0xD800 <= ord(letter) < 0xE000 for letter in node)


@settings(max_examples=examples(200))
@given(texts, _nodes.filter(_carried), texts, st.booleans())
def test_any_value_reads_back(key: str, node: YamlNode, comment: str, as_flow: bool) -> None:
    if key == "end" or not _carried({key: node}):
        return
    lines = [*comment_lines(comment), *entry(key, node, comment=comment, as_flow=as_flow), "end: true"]
    reading = read_yaml("\n".join(lines) + "\n", "x")
    assert reading.findings == []
    expected = {key: node, "end": True} if key != "end" else None
    assert expected is None or [document.root for document in reading.documents] == [expected]
    assert all(line.isprintable() for line in lines)
