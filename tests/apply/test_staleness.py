"""What tells a cluster from the one that a plan saw."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.apply.tasks import LeafDifference, Sight, _other_objects, filled_in, judge_restored, path_text
from gpolicy.cluster.state import ClusterState, Identity, Unreadable
from gpolicy.ganeti.parameter import Level, Path, Value
from gpolicy.plan.change import TAGS
from gpolicy.plan.effects import Effect
from tests.plan.planned import cluster, plan_for

RATIO = ("ipolicy", "vcpu-ratio")
NODE_MEMORY, TOTAL = (("hv_state", "kvm", name) for name in ("mem_node", "mem_total"))


def _gold(uuid: str | None, ratio: float = 2.0) -> ClusterState:
    state = cluster(groups={"gold": {RATIO: ratio}})
    return replace(state, groups={"gold": replace(state.groups["gold"], identity=Identity(uuid=uuid, serial_no=3))})


def _plan_text(ratio: int) -> str:
    return f"NodeGroup\nname: gold\nipolicy: {{vcpu-ratio: {ratio}}}"


@pytest.mark.parametrize(("now", "differs"), [("u-1", False), ("u-2", True), (None, False)])
def test_an_object_of_the_same_name_may_be_another(now: str | None, *, differs: bool) -> None:
    plan = plan_for(_gold("u-1"), _plan_text(4))
    found = _other_objects(plan, Sight.of(_gold(now)), set())
    assert found == ([LeafDifference("group/gold", ("uuid",), "u-1", now)] if differs else [])
    assert _other_objects(plan, Sight.of(_gold(now)), {"group/gold"}) == []
    gone = replace(_gold(now), groups={})
    assert _other_objects(plan, Sight.of(gone), set()) == []


@pytest.mark.parametrize(
    ("name", "path", "expected", "found", "filled"),
    [
        ("cluster", NODE_MEMORY, None, 0, True),
        ("group/a", NODE_MEMORY, None, 0, False),
        ("cluster", NODE_MEMORY, 0, 0, False),
        ("cluster", NODE_MEMORY, None, 7, False),
        ("cluster", RATIO, None, 4.0, False),
    ],
)
def test_a_default_that_ganeti_fills_in(name: str, path: Path, expected: Value, found: Value, *, filled: bool) -> None:
    difference = LeafDifference(name, path, expected, found)
    assert filled_in(difference, [Effect("cluster", TOTAL, None, 5)]) is filled
    assert not filled_in(difference, [Effect("group/a", TOTAL, None, 5), Effect("cluster", RATIO, None, 5.0)])


def test_a_path_in_words() -> None:
    assert [path_text(path) for path in (RATIO, TAGS, (*TAGS, "a"))] == ["ipolicy.vcpu-ratio", "tags", "tags a"]


def test_what_cannot_be_seen_of_a_rollback_is_named() -> None:
    state = _gold("u-1")
    plan = plan_for(state, _plan_text(4))
    effects = [effect for step in plan.steps for effect in step.command.effects]
    assert judge_restored(plan, Sight.of(state), effects).unseen == ()
    hidden = replace(state, unreadable=(Unreadable(level=Level.GROUP, prefix=("ipolicy",)),))
    assert judge_restored(plan, Sight.of(hidden), effects).unseen == ("group/gold ipolicy.vcpu-ratio",)
