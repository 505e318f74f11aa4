"""A projected state is the cluster after the plan, compared with the model of Ganeti's jobs."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import Phase, event, find, given, settings, strategies as st

from gpolicy.cluster.htools_sources import read_text_file
from gpolicy.cluster.state import HIDDEN_BY_RAPI, HIDDEN_OWN, ClusterState, LiveGroup, Unreadable, hidden_in_text
from gpolicy.ganeti.parameters import fill
from gpolicy.ganeti.vocabulary import Level, Values
from gpolicy.plan.changes import ChangeAction
from gpolicy.plan.diff import diff
from gpolicy.plan.sides import project, undo
from tests.plan.planned import CLUSTERS, cluster, plan_for, recorded
from tests.plan.test_plan_laws import _told, carried_out, cases, differences, law, loaded, plan_of
from tests.strategies import GeneratedPolicy, cluster_states, instance

ES = ("ndparams", "exclusive_storage")
RATIO = ("ipolicy", "vcpu-ratio")


@law
@given(cases())
def test_the_projected_cluster_equals_the_policy(case: tuple[ClusterState, GeneratedPolicy]) -> None:
    state, generated = case
    policy = loaded(generated.text)
    changes = diff(policy, state).changes
    after = project(state, changes)
    left = diff(policy, after).changes
    occupied = {
        str(item.before) for item in changes if item.action is ChangeAction.REMOVE and after.nodes_of(str(item.before))
    }
    assert {str(item.before) for item in left} == occupied
    assert all(item.action is ChangeAction.REMOVE for item in left)
    assert after.instances == state.instances


@law
@given(cases())
def test_the_projection_equals_the_result_of_ganetis_jobs(case: tuple[ClusterState, GeneratedPolicy]) -> None:
    state, generated = case
    plan = plan_of(generated, state)
    event(f"safe: {plan.safe}")
    if not plan.safe:
        return
    after, made = project(state, plan.changes), carried_out(plan, state).as_state()
    assert list(differences(after, made)) == []
    for name, group in after.groups.items():
        assert _told(group.effective) == _told(fill(made.groups[name].own, made.cluster.own, Level.GROUP))


@law
@given(cases(), st.floats(0, 1))
def test_a_plan_is_undone_from_any_of_its_steps(case: tuple[ClusterState, GeneratedPolicy], part: float) -> None:
    state, generated = case
    plan = plan_of(generated, state)
    if not plan.safe:
        return
    steps = plan.steps[: round(part * len(plan.steps))]
    event(f"steps: {'none' if not steps else 'all' if len(steps) == len(plan.steps) else 'some'}")
    before = undo(carried_out(replace(plan, steps=steps), state).as_state(), plan.changes)
    removed = {str(change.before) for change in plan.changes if change.action is ChangeAction.REMOVE}
    made_again = {name: group for name, group in before.groups.items() if name not in removed}
    kept = {name: group for name, group in state.groups.items() if name not in removed}
    assert before.groups.keys() == state.groups.keys()
    assert list(differences(replace(state, groups=kept), replace(before, groups=made_again))) == []


def hidden(state: ClusterState, gaps: tuple[Unreadable, ...]) -> ClusterState:
    """Return `state` as a source reads it that cannot show own values in `gaps`, but effective ones."""

    def shown(own: Values, level: Level) -> Values:
        return {path: value for path, value in own.items() if not any(gap.covers(level, path) for gap in gaps)}

    groups = {
        name: replace(group, own=shown(group.own, Level.GROUP))  # its effective values stay
        for name, group in state.groups.items()
    }
    nodes = {name: replace(node, own=shown(node.own, Level.NODE)) for name, node in state.nodes.items()}
    own = shown(state.cluster.own, Level.CLUSTER)
    return replace(state, cluster=replace(state.cluster, own=own), groups=groups, nodes=nodes, unreadable=gaps)


GROUP_POLICIES_HIDDEN = (
    Unreadable(level=Level.GROUP, prefix=("ipolicy",)),
    Unreadable(level=Level.GROUP, prefix=("ndparams",)),
)


@law
@given(cases())
def test_hidden_own_values_keep_their_meaning(case: tuple[ClusterState, GeneratedPolicy]) -> None:
    state, generated = case
    policy = loaded(generated.text)
    read = hidden(state, GROUP_POLICIES_HIDDEN)
    changes = diff(policy, read).changes
    after = project(read, changes)
    assert [item for item in diff(policy, after).changes if item.action is not ChangeAction.REMOVE] == []
    names = {str(item.before): str(item.after) for item in changes if item.action is ChangeAction.RENAME}
    for name, group in state.groups.items():
        now = after.groups.get(names.get(name, name))
        for path in group.effective if now else ():
            assert now is not None
            if path[0] in ("ipolicy", "ndparams"):
                follows = group.effective[path] == state.cluster.own.get(path)
                assert now.effective[path] == (after.cluster.own[path] if follows else group.effective[path])


@law
@given(cases())
def test_the_remote_apis_gaps_do_not_keep_a_plan_from_converging(case: tuple[ClusterState, GeneratedPolicy]) -> None:
    state, generated = case
    policy = loaded(generated.text)
    for gaps in (HIDDEN_BY_RAPI, (*HIDDEN_BY_RAPI, HIDDEN_OWN)):
        read = hidden(state, gaps)
        after = project(read, diff(policy, read).changes)
        assert [item for item in diff(policy, after).changes if item.action is not ChangeAction.REMOVE] == []


@law
@given(cluster_states())
def test_one_node_parameter_equals_the_one_among_all(state: ClusterState) -> None:
    for node in state.nodes.values():
        filled = state.effective_of_node(node)
        for path in [path for path in filled if path[0] == "ndparams"]:
            assert state.in_force(node, path) == filled[path]
        assert state.in_force(node, ("ndparams", "none")) is None


@law
@given(cluster_states())
def test_no_change_changes_nothing(state: ClusterState) -> None:
    assert project(state, ()) == state


def test_recorded_clusters_stay_as_they_are_without_changes() -> None:
    for name in ("base", "rich", "full", "exclusive"):
        assert project(recorded(name), ()) == recorded(name)


def test_groups_are_renamed_created_and_removed_with_their_nodes() -> None:
    state = cluster({RATIO: 4.0}, {"old": {RATIO: 2.0}, "spare": {}}, {"node1": "old", "node2": "spare"})
    state = replace(
        state, groups={name: replace(group, position=index) for index, (name, group) in enumerate(state.groups.items())}
    )
    plan = plan_for(
        state,
        "Cluster\nname: cluster.example.org\nipolicy: {vcpu-ratio: 3}",
        "NodeGroup\nname: gold\nrenamed_from: old",
        "NodeGroup\nname: bronze\nnodes: [node2]\nndparams: {exclusive_storage: true}\ntags: ['x:y']",
        "NodeGroup\nname: spare\nremoved: true",
    )
    after = project(state, plan.changes)
    assert {name: group.position for name, group in after.groups.items()} == {"bronze": 2, "gold": 0}
    assert after.groups["gold"].effective[RATIO] == 2.0
    assert after.groups["bronze"].effective[RATIO] == 3.0
    assert after.groups["bronze"].tags == {"x:y"}
    assert {node.name: node.group for node in after.nodes.values()} == {"node1": "gold", "node2": "bronze"}
    assert after.effective_of_node(after.nodes["node2"])[ES] is True
    assert state.nodes["node2"].group == "spare"


def test_a_group_that_is_not_empty_stays() -> None:
    state = cluster({}, {"default": {}, "full": {}}, {"node1": "full"}, instance("inst1", "node1"))
    plan = plan_for(state, "NodeGroup\nname: full\nremoved: true")
    assert "full" in project(state, plan.changes).groups


class TestTextFormat:
    """What hscan writes shows a group's exclusive storage on its nodes only."""

    def read(self, *groups: tuple[str, str]) -> ClusterState:
        state = cluster({}, {name: {} for name, _ in groups}, {f"node-{name}": name for name, _ in groups})
        nodes = {name: replace(node, own={ES: dict(groups)[node.group] == "Y"}) for name, node in state.nodes.items()}
        return replace(
            hidden(state, hidden_in_text(cluster_policy=True)),
            nodes=nodes,
        )

    def test_a_node_that_moves_gets_the_flag_of_its_new_group(self) -> None:
        state = self.read(("shared", "N"), ("dedicated", "Y"))
        plan = plan_for(state, "NodeGroup\nname: dedicated\nnodes: [node-shared]")
        after = project(state, plan.changes)
        assert after.effective_of_node(after.nodes["node-shared"])[ES] is True
        assert after.notes == state.notes

    def test_unreadable_values_are_noted_as_unknown(self) -> None:
        state = self.read(("shared", "N"), ("dedicated", "Y"))
        empty = replace(state, groups={**state.groups, "empty": LiveGroup(name="empty", own={}, effective={})})
        plan = plan_for(empty, "NodeGroup\nname: empty\nnodes: [node-shared]")
        after = project(empty, plan.changes)
        assert "exclusive storage is on in empty is not known" in after.notes[-1]


def test_policies_are_generated_for_what_matters() -> None:
    """The laws above also hold for empty policies: check that the generated ones make changes of each kind."""
    missing = set(ChangeAction)  # `find` raises unless all are found

    def completes_them(case: tuple[ClusterState, GeneratedPolicy]) -> bool:
        missing.difference_update(item.action for item in diff(loaded(case[1].text), case[0]).changes)
        return not missing

    find(cases(), completes_them, settings=settings(law, max_examples=1000, phases=[Phase.generate]))


def test_the_text_recording_reads_and_projects() -> None:
    state = read_text_file(CLUSTERS / "full" / "htools.data")
    assert project(state, ()) == state
