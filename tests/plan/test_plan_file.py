"""A plan file may be edited before root applies it: all of it follows from its changes, or it is refused."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import assume, given, strategies as st

from gpolicy import __version__
from gpolicy.cluster.record import Record
from gpolicy.cluster.state import HIDDEN_BY_RAPI, ClusterState, Unreadable, hidden_in_text
from gpolicy.errors import ExitCode, InputError
from gpolicy.ganeti.parameters import PARAMETERS, known_in, reach_of
from gpolicy.ganeti.releases import VERSIONS
from gpolicy.ganeti.vocabulary import Level, Value
from gpolicy.plan.effects import Effect, effect_words
from gpolicy.plan.plan import Plan
from gpolicy.plan.plan_file import read_plan, rebuilt_plan
from gpolicy.plan.plan_json import plan_as_json
from gpolicy.policy.loading import load_policy
from tests.plan.mutations import at, mutated, places
from tests.plan.planned import cluster, make_plan, plan_for, plan_text, recorded, with_group_tags, with_node
from tests.plan.test_plan_laws import cases, law, plan_of
from tests.strategies import HOSTILE_NAMES, GeneratedPolicy, document, instance, written, yaml_text

SOURCES: Final = ((), HIDDEN_BY_RAPI, hidden_in_text(cluster_policy=True), hidden_in_text(cluster_policy=False))
POLICY: Final = (
    """Cluster
name: cluster.example.org
ipolicy: {vcpu-ratio: 7}
candidate_pool_size: 5
master_netdev: lo
compression_tools: [gzip, lzop]
data_collector_interval: {drbd: 6000000}
tags: [a]
hvparams: {kvm: {kvm_path: /usr/bin/kvm-b}}""",
    "NodeGroup\nname: new\nalloc_policy: last_resort\nnodes: [n1, n2]",
    "NodeGroup\nname: late\nrenamed_from: early\nndparams: {ssh_port: 23}\nipolicy: {vcpu-ratio: inherit}",
    "NodeGroup\nname: gone\nremoved: true",
    "NodeSet\nname: s\nnodes: [n3]\nndparams: {spindle_count: 9}\ntags: [b, c]",
    "NodeSet\nname: t\nnodes: [n2]\nndparams: {oob_program: /bin/oob}",
)  # fmt: skip


def through_a_file(plan: Plan) -> Plan:
    return read(json.loads(plan_text(plan)))


def read(content: Any) -> Plan:
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "plan.json")
        file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return read_plan(file)


def refusal(content: Any) -> str:
    with pytest.raises(InputError) as raised:
        read(content)
    assert "\n" not in raised.value.message
    assert len(raised.value.message) < 1300
    assert raised.value.exit_code is ExitCode.COULD_NOT_RUN
    return raised.value.message + f" ({raised.value.hint})"


def seen() -> ClusterState:
    pair = instance("i", "n1", "drbd", ("n9",))
    groups: Any = {"early": {("ipolicy", "vcpu-ratio"): 3.0}, "gone": {("ndparams", "ssh_port"): 24}, "rest": {}}
    nodes = {"n1": "early", "n2": "rest", "n3": "rest", "n9": "rest"}
    state = with_node(cluster({}, groups, nodes, pair), "n3", {}, frozenset({"b"}))
    return with_group_tags(state, "gone", "x")


@cache
def _text() -> str:
    plan = plan_for(seen(), *POLICY, allow=("master-network",))
    assert {int(step.wave) for step in plan.steps} >= {3, 4, 5, 6, 8}
    return plan_text(plan)


def honest() -> dict[str, Any]:
    """Return a plan with a step of almost every kind, one that runs through RAPI alone among them."""
    content: dict[str, Any] = json.loads(_text())
    return content


def forged(content: dict[str, Any]) -> dict[str, Any]:
    """Return a plan file from an attacker who knows how gpolicy derives the rest from the changes."""
    result: dict[str, Any] = json.loads(
        json.dumps(plan_as_json(rebuilt_plan(Record("plan", content)), content["impact"]))
    )
    return result


# --- plans that nobody touched ----------------------------------------------------------------------------------------


def same(read_back: Plan, plan: Plan) -> None:
    assert [replace(change, span=None) for change in read_back.changes] == [
        replace(change, span=None) for change in plan.changes
    ]
    assert read_back.steps == plan.steps


@law
@given(cases() | cases(HOSTILE_NAMES), st.sampled_from(SOURCES))
def test_every_plan_reads_back(case: tuple[ClusterState, GeneratedPolicy], gaps: Any) -> None:
    state, generated = case
    plan = plan_of(generated, replace(state, unreadable=gaps))
    same(through_a_file(plan), plan)


@law
@given(st.data(), st.sampled_from(VERSIONS), st.sampled_from(list(Level)))
def test_every_parameter_reads_back_for_every_release(data: st.DataObject, version: str, level: Level) -> None:
    known = [item for item in PARAMETERS if level in item.levels and known_in(item, version)]
    chosen = data.draw(st.lists(st.sampled_from(known), min_size=1, max_size=12, unique_by=lambda item: item.path))
    paths = [tuple("xenvg" if key == "*" else key for key in item.path) for item in chosen]
    values = {path: data.draw(written(item, level)) for item, path in zip(chosen, paths, strict=True)}
    kind = {Level.CLUSTER: "Cluster", Level.GROUP: "NodeGroup", Level.NODE: "NodeSet"}[level]
    name = {Level.CLUSTER: "cluster.example.org", Level.GROUP: "default", Level.NODE: "s"}[level]
    more = {"nodes": ["n1"]} if level is Level.NODE else {"ganeti_version": version} if level is Level.CLUSTER else {}
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "policy.yaml")
        file.write_text(yaml_text([document(kind, name, values, **more)]), encoding="utf-8")
        policy = load_policy(file)
    assume(not [finding for finding in policy.findings if finding.severity == "error"])
    state = replace(cluster({}, {"default": {}}, {"n1": "default"}), software_version=f"{version}.1")
    plan = make_plan(policy, state)
    assert plan.version == version
    same(through_a_file(plan), plan)


@pytest.mark.parametrize("name", ["base", "exclusive", "full", "rich", "volumes"])
def test_plans_of_recorded_clusters_read_back(name: str) -> None:
    plan = plan_for(recorded(name), "Cluster\nname: x\nipolicy: {vcpu-ratio: 9}\ncandidate_pool_size: 3")
    assert plan.steps
    same(through_a_file(plan), plan)


def test_a_plan_of_every_kind_of_step_reads_back() -> None:
    plan = read(honest())
    assert [step.id for step in plan.steps] == [str(number) for number in range(1, len(plan.steps) + 1)]
    assert any(step.command.argv is None for step in plan.steps)
    assert any(step.command.rapi is None for step in plan.steps)
    assert any("split a DRBD pair" in reason for step in plan.steps for reason in step.inverse.not_restored)


# --- what somebody changed on the way ---------------------------------------------------------------------------------


def step_of(content: dict[str, Any], words: str) -> dict[str, Any]:
    found: dict[str, Any] = next(step for step in content["steps"] if words in step["title"])
    return found


def test_a_parameter_outside_the_step_is_refused_and_named() -> None:
    content = honest()
    step = step_of(content, "modify the cluster")
    step["rapi"]["body"]["hvparams"]["kvm"]["kvm_path"] = "/tmp/x"
    said = refusal(content)
    assert f"step {step['id']} ({step['title']})" in said
    assert 'rapi.body.hvparams.kvm.kvm_path is "/tmp/x" in the file, and should be "/usr/bin/kvm-b"' in said
    del step["rapi"]["body"]["hvparams"]
    assert "rapi.body.hvparams is missing in the file" in refusal(content)
    content = honest()
    step_of(content, "tags to cluster")["rapi"]["body"] = {"hvparams": {"kvm": {"kvm_path": "/tmp/x"}}}
    assert 'rapi.body is {"hvparams": {"kvm": {"kvm_path": "/tmp/x"}}} in the file, and should be null' in refusal(
        content
    )


@pytest.mark.parametrize("number", ["2&force=1", "2 ", "02", "x", "", "1", 2, None, "\uff12", "2\n"])
def test_a_step_is_known_by_its_number_only(number: Any) -> None:
    content = honest()
    content["steps"][1]["id"] = number
    assert "steps[1].id" in refusal(content)


ARGV: Final = [
    ["rm", "-rf", "/"],
    ["gnt-cluster", "destroy", "--yes-do-it"],
    ["gnt-cluster", "command", "reboot"],
    ["gnt-group", "assign-nodes", "--", "g"],
    ["gnt-cluster", "modify", "\0"],
    ["gnt-cluster", "modify", 1],
    [],
    "gnt-cluster modify",
    {"gnt-cluster": "modify"},
    1,
    None,
]
RAPI: Final = [
    {"method": "DELETE", "path": "/2/instances/inst1", "body": None},
    {"method": "PUT", "path": "/2/groups/../modify", "body": {"candidate_pool_size": 3}},
    {"method": "PUT", "path": "/2/modify HTTP/1.1\r\nX: y", "body": {"candidate_pool_size": 3}},
    {"method": "PUT", "path": "/2/modify?force=1", "body": {"candidate_pool_size": 3}},
    {"method": "PUT", "path": "/2/modify"},
    {},
    "PUT /2/modify",
    None,
]


@pytest.mark.parametrize(("key", "values"), [("argv", ARGV), ("rapi", RAPI)])
@pytest.mark.parametrize("place", ["step", "inverse", "more"])
def test_commands_are_those_that_the_changes_make(key: str, values: list[Any], place: str) -> None:
    for value in values:
        content = honest()
        step = step_of(content, "remove group gone") if place == "more" else step_of(content, "rename group")
        target = {"step": step, "inverse": step["inverse"], "more": (step["inverse"]["more"] or [{}])[0]}[place]
        target[key] = value
        assert f"step {step['id']} (" in refusal(content)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("steps", 0, "title"), "modify the cluster: nothing at all"),
        (("steps", 0, "wave"), 8),
        (("steps", 0, "effects", 0, "after"), 8.0),
        (("steps", 0, "inverse", "effects"), []),
        (("steps", 0, "inverse", "not_restored"), ["nothing"]),
        (("changes", 0, "risk"), "medium"),
        (("changes", 0, "takes_effect"), "never"),
        (("changes", 0, "path"), "tags"),
        (("changes", 0, "action"), "reset"),
        (("changes", 0, "effective_after"), 4),
        (("summary", "changes"), 1),
        (("summary", "safe"), False),
        (("serials", "cluster"), 10),
        (("format_version",), "1.5"),
        (("format_version",), "1.8"),
        (("part", "only"), ["node/*"]),
        (("part", "exclude"), ["cluster"]),
        (("left_out",), [{"object": "cluster", "keys": ["tags"], "action": "set"}]),
        (("summary", "left_out"), 1),
        (("format_version",), "2.0"),
        (("ganeti_version",), "3.9"),
        (("ganeti_version",), "2.15"),
        (("state_digest",), "sha256:x"),
        (("kind",), "gpolicy-journal"),
        (("more",), "keys"),
        (("steps", 0, "more"), "keys"),
        (("guards", 0, "more"), "keys"),
    ],
)
def test_derived_parts_of_a_plan_follow_from_its_changes(place: tuple[Any, ...], value: Any) -> None:
    content = honest()
    parent = at(content, place[:-1])
    assert parent.get(place[-1]) != value
    parent[place[-1]] = value
    refusal(content)


def test_integers_booleans_and_floats_differ() -> None:
    content = honest()
    change = next(change for change in content["changes"] if change["path"] == "candidate_pool_size")
    for value in (5.0, "5"):
        change["after"] = change["effective_after"] = value
        refusal(content)
    body = step_of(honest(), "spindle_count")["rapi"]["body"]
    assert body == {"ndparams": {"spindle_count": 9}}
    content = honest()
    step_of(content, "spindle_count")["rapi"]["body"] = {"ndparams": {"spindle_count": 9.0}}
    assert "9.0" in refusal(content)


@pytest.mark.parametrize("first", [0, 2, 5])
def test_steps_come_in_their_order_and_all_of_them(first: int) -> None:
    content = honest()
    content["steps"][first], content["steps"][first + 1] = content["steps"][first + 1], content["steps"][first]
    refusal(content)
    content = honest()
    del content["steps"][first]
    refusal(content)


def test_a_duplicate_key_is_refused() -> None:
    text = _text()
    twice = text.replace(
        '"cluster": "cluster.example.org",', '"cluster": "cluster.example.org", "cluster": "other",', 1
    )
    assert twice != text
    assert "'cluster' twice" in refusal(twice.encode())


def test_a_plan_with_other_commands_of_another_gpolicy_is_refused() -> None:
    content = honest() | {"gpolicy": "0.0.1"}
    assert len(read(content).steps) == len(content["steps"])
    content["steps"][0]["argv"] = ["gnt-cluster", "modify", "--other-words"]
    said = refusal(content)
    assert f"gpolicy 0.0.1 made the plan, this is {__version__}: make a new plan" in said
    del content["gpolicy"]
    refusal(content)


@pytest.mark.parametrize("key", sorted(honest()))
@pytest.mark.parametrize("value", [None, 1, ["x"], {"x": 1}, [[]], True, "absent"])
def test_a_part_of_a_wrong_type_is_refused(key: str, value: Any) -> None:
    content = {name: item for name, item in honest().items() if name != key}
    if value != "absent":
        content[key] = value
    unknown = ("snapshot", "state_digest_rapi", "cluster_uuid", "made_at", "policy_commit", "policy_dirty")
    other_claims = [*((name, None) for name in (*unknown, "state_read_at")), ("policy_dirty", True)]
    if (key, value) not in [*other_claims, ("impact", {"x": 1}), ("notes", ["x"])]:
        refusal(content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x7fELF\x00\x01",
        b"[]",
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b"1" * 100_000,
        b'{"format_version": NaN}',
        b'{"format_version": "%s"}' % (b"x" * 1_000_000),
    ],
)
def test_an_invalid_plan_is_refused_in_one_line(content: bytes) -> None:
    assert len(refusal(content)) < 700
    refusal(_text().encode()[:-20])


# --- changes that no plan can hold, with all that follows from them ---------------------------------------------------


def _changed(words: str, **values: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        found = next(item for item in content["changes"] if f"{item['object']} {item['path']}" == words)
        found.update(values)

    return change


def _twice(content: dict[str, Any]) -> None:
    content["changes"].append({**content["changes"][0], "after": 9.0})


def _circle(content: dict[str, Any]) -> None:
    change = next(item for item in content["changes"] if item["action"] == "rename")
    content["changes"].append({**change, "object": "group/early", "before": "late", "after": "early"})
    values = content["observed"]["group/early"]["values"]
    renamed = [{**item, "value": "late"} if item["keys"] == ["name"] else item for item in values]
    content["observed"]["group/late"] = {**content["observed"]["group/early"], "values": renamed}


def _unseen(content: dict[str, Any]) -> None:
    del content["observed"]["group/gone"]


def _another(content: dict[str, Any]) -> None:
    content["observed"]["node/n7"] = content["observed"]["node/n3"]


def _of_nobody(content: dict[str, Any]) -> None:
    content["staying"] = ["n7"]


def _hidden(content: dict[str, Any]) -> None:
    content["not_shown"] = [{"level": "cluster", "prefix": ["ipolicy"]}]
    values = content["observed"]["cluster"]["values"]
    values[:] = [item for item in values if item["keys"][0] != "ipolicy"]
    _changed("cluster ipolicy.vcpu-ratio", before=None)(content)


def _seen_though_hidden(content: dict[str, Any]) -> None:
    content["not_shown"].append({"level": "group", "prefix": ["diskparams"]})
    content["observed"]["group/gone"]["values"].append({"keys": ["diskparams", "drbd", "metavg"], "value": "x"})


def _allowed(name: str) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        content["guards"].append({"name": name, "ok": True, "message": "all is well", "allowed": True})

    return change


def _quiet(content: dict[str, Any]) -> None:
    content["guards"] = [guard for guard in content["guards"] if guard["name"] != "master-network"]


def _not_compared(content: dict[str, Any]) -> None:
    content["unreadable"] = [{"object": "cluster", "path": "hv_state.kvm.mem_hv", "wanted": 1}]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_changed("cluster ipolicy.vcpu-ratio", before=5.0), "was 4.0 when it was seen, not 5.0"),
        (_changed("cluster ipolicy.vcpu-ratio", after=4.0), "does not change"),
        (_changed("cluster ipolicy.vcpu-ratio", keys=["ipolicy", "x"]), "was null when it was seen"),
        (_changed("cluster ipolicy.vcpu-ratio", keys=["ipolicy", "x"], before=None), "no such parameter of a cluster"),
        (_changed("cluster ipolicy.vcpu-ratio", keys=["name"]), "not have it"),
        (_changed("cluster ipolicy.vcpu-ratio", keys=["group"]), "not have it"),
        (_changed("cluster ipolicy.vcpu-ratio", after=10**30), "too large a number"),
        (_changed("cluster tags", after=["b", "a"]), "sorted list"),
        (_changed("cluster tags", after=["a", 1]), "sorted list"),
        (_changed("cluster tags", after="ab"), "sorted list"),
        (_changed("group/late name", after="rest"), "names before and after"),
        (_changed("group/late name", before="late"), "in a circle"),
        (_changed("group/new name", before="rest"), "no group to move to"),
        (_changed("group/gone name", after="x"), "in a circle"),
        (_changed("group/new alloc_policy", object="group/gone"), "removed or renamed"),
        (_changed("group/new alloc_policy", object="group/early"), "removed or renamed"),
        (_changed("group/new alloc_policy", before=None), "was"),
        (_changed("node/n1 group", after="gone"), "no group to move to"),
        (_changed("node/n1 group", after="early"), "not have it|no group to move to"),
        (_changed("node/n1 group", after="late"), "no group to move to|not have it"),
        (_changed("node/n1 group", after="nowhere"), "not have it"),
        (_changed("node/n1 group", before="rest"), "nothing changes|was"),
        (_changed("node/n3 ndparams.spindle_count", object="node/n8"), "not have it"),
        (_changed("node/n3 ndparams.spindle_count", keys=["ndparams", "exclusive_storage"]), "no such parameter of a"),
        (_twice, "is changed twice"),
        (_circle, "in a circle"),
        (_unseen, "does not have it"),
        (_another, "nothing changes|another name"),
        (_of_nobody, "does not move"),
        (_hidden, "the source cannot show it, so"),
        (_seen_though_hidden, "group/gone diskparams.drbd.metavg, which the source cannot show"),
        (_allowed("std-in-bounds"), "cannot be allowed"),
        (_allowed("master-network"), "two verdicts"),
        (_quiet, "guard master-network"),
        (_not_compared, "the source shows it"),
    ],
)
def test_changes_that_contradict_what_was_seen_or_one_another_are_refused(
    change: Callable[[dict[str, Any]], None], reason: str
) -> None:
    content = honest()
    change(content)
    with pytest.raises(InputError, match=reason):
        read(content)
    with pytest.raises(InputError, match=reason):
        forged(content)


def test_an_inherited_value_that_was_not_seen_is_not_brought_back() -> None:
    gap = Unreadable(level=Level.CLUSTER, prefix=("diskparams",))
    plan = plan_for(cluster(unreadable=(gap,)), "NodeGroup\nname: default\ndiskparams: {rbd: {access: userspace}}")
    same(through_a_file(plan), plan)
    assert plan.steps[0].inverse.commands == ()
    assert "stays an own value" in " ".join(plan.steps[0].inverse.not_restored)


def test_no_step_has_a_value_that_ganeti_cannot_store() -> None:
    content = honest()
    _changed("cluster candidate_pool_size", after=-5, effective_after=-5)(content)
    with pytest.raises(InputError, match="guard expressible"):
        read(content)


def test_the_inverse_of_an_inherited_value_follows_from_the_observed_cluster() -> None:
    content = json.loads(
        plan_text(plan_for(cluster(), "NodeGroup\nname: default\ndiskparams: {rbd: {access: userspace}}"))
    )
    honest_steps = read(content).steps
    assert honest_steps[0].inverse.commands[0].effects[0].after == "kernelspace"
    content["changes"][0]["effective_before"] = "userspace"
    assert "effective_before" in refusal(content)
    assert read(forged(content)).steps == honest_steps
    del content["observed"]["cluster"]
    assert "cluster is changed, but `observed` does not have it" in refusal(content)


# --- at random --------------------------------------------------------------------------------------------------------


CLAIMS: Final = {
    "cluster", "cluster_uuid", "pair_names", "source", "snapshot", "gpolicy", "impact", "notes", "findings",
    "unreadable", "not_shown", "made_at", "policy_commit", "policy_dirty",
    "policy_digest", "state_digest", "state_digest_rapi", "reason", "affects", "origin", "effective_before",
    "effective_after", "part", "left_out", "terms",
}  # fmt: skip
"""Fields about the origin of a plan, its policy and the rest of the cluster, from which no command follows."""


@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=pytest.mark.full)])
def test_an_edited_plan_file_is_refused_or_means_the_same(count: int) -> None:
    rng = random.Random(count)  # noqa: S311 (no secret)
    content = honest()
    plan, everywhere = read(content), list(places(content))
    taken = 0
    for _ in range(count):
        other, place, what = mutated(content, rng, everywhere)
        try:
            found = read(other)
        except InputError:
            continue
        taken += 1
        assert found.steps == plan.steps, (place, what)
        # apply holds what was seen against the cluster; its order says nothing
        seen_so = place[0] == "observed" and (
            repr(found.observed) != repr(plan.observed) or what == "swap"
        )  # 1.0 for 1
        said = place[0] in CLAIMS or found.guards != plan.guards or (place[0] == "changes" and {*place[2:3]} <= CLAIMS)
        assert seen_so or said or json.dumps(other) == json.dumps(content), (place, what)
    assert 0 < taken < count // 2


@pytest.mark.parametrize("count", [80, pytest.param(10_000, marks=pytest.mark.full)])
def test_a_completely_rewritten_plan_shows_its_changes(count: int) -> None:
    """A consistent forgery is another plan: plans with different commands also show different text."""
    rng = random.Random(count)  # noqa: S311 (no secret)
    content = honest()
    commands: dict[tuple[str, ...], Any] = {}
    for _ in range(count):
        facts = {key: content[key] for key in ("changes", "observed", "staying")}
        try:
            steps = read(forged(content | mutated(facts, rng)[0])).steps
        except InputError:
            continue
        for step in steps:
            for command in (step.command, *step.inverse.commands):
                told = tuple(effect_words(effect) for effect in command.effects)
                assert commands.setdefault(told, (command.argv, command.rapi)) == (command.argv, command.rapi)
    assert len(commands) > 2 * len(content["steps"])


# --- words and marks --------------------------------------------------------------------------------------------------


def test_values_that_root_runs_or_opens_are_marked() -> None:
    plan = plan_for(seen(), *POLICY)
    told = {change.path: (change.risk, change.reason) for change in plan.changes}
    assert told["hvparams", "kvm", "kvm_path"] == ("medium", "root on the nodes runs the program that this names")
    assert told["ndparams", "oob_program"][0] == "medium"
    words = [effect_words(effect) for step in plan.steps for effect in step.command.effects]
    kvm = next(text for text in words if "kvm_path" in text)
    assert kvm.startswith('cluster hvparams.kvm.kvm_path: "/usr/bin/kvm" → "/usr/bin/kvm-b"  ! root on the nodes runs')
    assert 'node/n1: from group "late" to "new"' in "\n".join(words)


def test_every_parameter_that_sounds_like_a_program_or_a_file_is_marked() -> None:
    sounds = ("_path", "_file", "_dir", "_script", "_program", "_helper", "_cmd", "_image", "_tools", "_args", "_extra")
    inside = {"root_path", "kernel_args"}  # of the instance
    named = [item.path for item in PARAMETERS if item.path[-1].endswith(sounds) and item.path[-1] not in inside]
    assert len(named) > 20
    assert [path for path in named if reach_of(path) is None] == []


def test_a_long_value_is_shortened_in_the_middle() -> None:
    told = effect_words(Effect("cluster", ("reserved_lvs",), [], ["x" * 5000, "y"]))
    assert "cut: 1009 more characters are in the plan" in told
    assert told.endswith('xxx", "y"]')
    other = effect_words(Effect("cluster", ("reserved_lvs",), [], ["a", "x" * 5000, "y"]))
    assert '"a"' in other


def test_two_long_values_show_the_part_that_differs() -> None:
    before: list[Value] = [f"xenvg/lv{number}" for number in range(1000)]
    after: list[Value] = [*before[:500], "/etc/passwd", *before[501:]]
    told = effect_words(Effect("cluster", ("reserved_lvs",), before, after))
    assert "xenvg/lv500" in told
    assert "/etc/passwd" in told
    assert "characters alike" in told
    assert "cut:" not in told
    assert len(told) < 500
    longer = effect_words(Effect("cluster", ("reserved_lvs",), before, [*before, "/etc/passwd"]))
    assert "/etc/passwd" in longer
    assert "cut:" not in longer
