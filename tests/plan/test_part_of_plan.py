"""A part of a plan: what it takes along, what it refuses, and what is left for a full plan."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import event, given, strategies as st

from gpolicy.cluster.state import ClusterState
from gpolicy.errors import InputError, RequestError
from gpolicy.plan import part as part_of_plan
from gpolicy.plan.changes import Change, key_of
from gpolicy.plan.part import Part
from gpolicy.plan.plan import Plan
from gpolicy.plan.plan_file import read_plan
from gpolicy.policy.kinds import Policy
from tests.plan.planned import cluster, make_plan, plan_text, policy_of
from tests.plan.test_plan_laws import RISKS, carried_out, cases, law, loaded, plan_of
from tests.strategies import GeneratedPolicy

POLICY = (
    "Cluster\nname: cluster.example.org\nipolicy: {vcpu-ratio: 7}\ncandidate_pool_size: 5",
    "NodeGroup\nname: new\nnodes: [n1]\nalloc_policy: last_resort",
    "NodeGroup\nname: gold\nrenamed_from: old\nipolicy: {vcpu-ratio: 3, spindle-ratio: 9}",
    "NodeGroup\nname: gone\nremoved: true",
    "NodeGroup\nname: home\nnodes: [n2]",
)


def state() -> ClusterState:
    nodes = {"n1": "home", "n2": "gone", "n3": "home"}
    return cluster(None, {"home": {}, "gone": {}, "old": {}}, nodes)


def keys(plan: Plan) -> set[str]:
    return {f"{change.object}:{'.'.join(change.path)}" for change in plan.changes}


def part(*, only: tuple[str, ...] = (), exclude: tuple[str, ...] = (), policy: Policy | None = None) -> Plan:
    return make_plan(policy or policy_of(*POLICY), state(), part=Part(only, exclude))


WHOLE = {
    *("cluster:ipolicy.vcpu-ratio", "cluster:candidate_pool_size"),
    *("group/new:name", "group/new:alloc_policy", "node/n1:group"),
    *("group/gold:name", "group/gold:ipolicy.vcpu-ratio", "group/gold:ipolicy.spindle-ratio"),
    *("group/gone:name", "node/n2:group"),
}


@pytest.mark.parametrize(
    ("only", "exclude", "made"),
    [
        ((), (), WHOLE),
        (("cluster",), (), {"cluster:ipolicy.vcpu-ratio", "cluster:candidate_pool_size"}),
        (("cluster:ipolicy",), (), {"cluster:ipolicy.vcpu-ratio"}),
        (("cluster",), ("cluster:candidate*",), {"cluster:ipolicy.vcpu-ratio"}),
        (("node/n1",), (), {"node/n1:group", "group/new:name"}),
        (("group/g*:ipolicy.vcpu-ratio",), (), {"group/gold:ipolicy.vcpu-ratio", "group/gold:name"}),
        (("group/old",), (), {"group/gold:name"}),
        (("group/gone",), (), {"group/gone:name", "node/n2:group"}),
        (("node/n3",), (), set()),
        ((), ("group/*", "node/*"), {"cluster:ipolicy.vcpu-ratio", "cluster:candidate_pool_size"}),
        ((), ("group/gone", "node/n2"), WHOLE - {"group/gone:name", "node/n2:group"}),
        ((), ("group/gone",), WHOLE - {"group/gone:name"}),
    ],
)
def test_only_and_exclude_choose_the_changes(only: tuple[str, ...], exclude: tuple[str, ...], made: set[str]) -> None:
    plan = part(only=only, exclude=exclude)
    assert keys(plan) == made
    assert {f"{item.object}:{'.'.join(item.path)}" for item in plan.left_out} == WHOLE - made


def test_what_is_taken_along_is_said() -> None:
    assert part(only=("node/n1",)).notes == ("group/new (create) is taken along: node/n1:group needs it",)


@pytest.mark.parametrize(
    ("only", "exclude", "named"),
    [
        ((), ("group/new",), "node/n1:group needs group/new (create)"),
        (("group/gone",), ("node/n2",), "group/gone (remove) needs node/n2:group"),
        (("group/gold",), ("group/gold:name",), "needs group/gold (rename)"),
    ],
)
def test_what_is_needed_cannot_be_excluded(only: tuple[str, ...], exclude: tuple[str, ...], named: str) -> None:
    with pytest.raises(RequestError) as caught:
        part(only=only, exclude=exclude)
    assert named in caught.value.message


@pytest.mark.parametrize(
    ("word", "said", "hint"),
    [
        ("group/glod", "names no object", "Did you mean `group/gold`?"),
        ("gold", "names no object", "Did you mean `group/gold`?"),
        ("x:y", "names no object", "group/NAME"),
        ("cluster:ipolicy.minmx", "names no value of cluster", "Did you mean `ipolicy.minmax`?"),
        ("group/g*:ipolicy.vcpu-rato", "names no value of group/g", "Did you mean `ipolicy.vcpu-ratio`?"),
        ("cluster:alloc_policy", "names no value of cluster", "write a path"),  # of groups only
        ("cluster:", "names no value of cluster", "write a path"),
    ],
)
def test_a_word_must_name_an_object_and_a_value_of_it(word: str, said: str, hint: str) -> None:
    for chosen in (Part(only=(word,)), Part(exclude=(word,))):
        with pytest.raises(RequestError, match=said) as caught:
            make_plan(policy_of(*POLICY), state(), part=chosen)
        assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    "word",
    [
        "cluster:ipolicy.minmax",
        "cluster:hvparams.kvm",
        "*:*serial*",
        "cluster:disk_state.plain.my.vg.disk_total",
        "group/home:tags",
    ],
)
def test_a_value_without_a_change_is_said(word: str) -> None:
    plan = part(exclude=(word,))
    assert keys(plan) == WHOLE
    assert plan.notes == (f"--exclude {word} names nothing that changes",)


def test_effective_values_are_those_of_the_part() -> None:
    """A group that follows the cluster keeps what the cluster keeps."""
    policy = policy_of(
        "Cluster\nname: cluster.example.org\nipolicy: {vcpu-ratio: 7}",
        "NodeGroup\nname: home\nipolicy: {vcpu-ratio: inherit}",
    )
    before = cluster({("ipolicy", "vcpu-ratio"): 4.0}, {"home": {("ipolicy", "vcpu-ratio"): 2.0}}, {"n1": "home"})
    (whole,) = [item for item in make_plan(policy, before).changes if item.object == "group/home"]
    (alone,) = make_plan(policy, before, part=Part(only=("group/home",))).changes
    assert (whole.effective_after, alone.effective_after) == (7.0, 4.0)


def test_a_file_that_leaves_out_what_it_changes_is_refused(tmp_path: Path) -> None:
    text = plan_text(part(only=("cluster:ipolicy",)))
    file = tmp_path / "plan.json"
    file.write_text(text.replace('"candidate_pool_size"', '"ipolicy",\n        "vcpu-ratio"'), encoding="utf-8")
    with pytest.raises(InputError, match="changed and left out"):
        read_plan(file)


@law
@given(cases(), st.data())
def test_after_a_part_a_full_plan_has_the_rest(case: tuple[ClusterState, GeneratedPolicy], data: st.DataObject) -> None:
    before, generated = case
    whole = plan_of(generated, before)
    if not whole.changes or not whole.safe:
        return
    words = sorted(
        {*(item.object for item in whole.changes), *(f"{item.object}:{'.'.join(item.path)}" for item in whole.changes)}
    )
    chosen = Part(only=tuple(data.draw(st.lists(st.sampled_from(words), min_size=1, max_size=4, unique=True))))
    made = make_plan(loaded(generated.text), before, allowed=RISKS, part=chosen)
    assert {*map(key_of, made.changes)} | {(item.object, item.path) for item in made.left_out} == {
        *map(key_of, whole.changes)
    }
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "plan.json")
        file.write_text(plan_text(made), encoding="utf-8")
        again = read_plan(file)
    assert (again.part, again.left_out, again.steps) == (made.part, made.left_out, made.steps)
    event(f"safe: {made.safe}, left out: {bool(made.left_out)}")
    if made.safe:
        rest = plan_of(generated, carried_out(made, before).as_state())
        assert {*map(key_of, rest.changes)} == {(item.object, item.path) for item in made.left_out}


def test_what_only_a_left_out_change_makes_needed_is_left_out_as_well() -> None:
    """The group's own value is what it would inherit after the change of the cluster, but not without that."""
    mode = ("diskparams", "rbd", "access")
    policy = policy_of(
        "Cluster\nname: cluster.example.org\ndiskparams: {rbd: {access: userspace}}",
        "NodeGroup\nname: gold\ndiskparams: {rbd: {access: inherit}}",
    )
    gold = cluster(None, {"gold": {mode: "userspace"}})
    assert keys(make_plan(policy, gold)) == {"cluster:diskparams.rbd.access"}
    assert keys(make_plan(policy, gold, part=Part((), ("cluster",)))) == set()


def test_a_whole_plan_compares_no_change_with_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def compared(*_: Change) -> bool:
        raise AssertionError("with thousands of changes this takes minutes")

    monkeypatch.setattr(part_of_plan, "_is_needed", compared)
    assert part().changes
    with pytest.raises(AssertionError, match="minutes"):
        part(only=("node/n1",))
