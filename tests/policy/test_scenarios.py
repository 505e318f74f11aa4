"""Tests and guards as data: they are read as written, and an impossible one is a finding at its place."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from gpolicy.findings import Finding, Located, Span
from gpolicy.policy.kinds import Measure, Policy
from gpolicy.policy.loading import LARGEST_SNAPSHOT, load_policy
from gpolicy.policy.model import MOST_NODES, GroupPolicy, promised_nodes
from gpolicy.policy.scenario import Action, DiskSize, ExpectedNumber, Machine
from gpolicy.policy.source_file import SourceFile, YamlDocument

HEAD = "gpolicy: v1\nkind: Test\ntests:\n  - name: t\n"
CHECK = "    check_instance: {memory-size: 1G}\n    expect: {refused: true}\n"


def load(directory: Path, text: str) -> Policy:
    (directory / "policy.yaml").write_text(text, encoding="utf-8")
    return load_policy(directory)


def complaints(found: tuple[Finding, ...]) -> list[tuple[str, int | None, str]]:
    return [(finding.code, finding.span.line if finding.span else None, finding.message) for finding in found]


def test_what_is_written_comes_out(tmp_path: Path) -> None:
    text = HEAD + (
        "    'on':\n"
        "      simulate:\n"
        "        {group: g, memory: 8G, pv_size: 1T, pv_count: 2, nodes: {half-full: 1, empty: 2},\n"
        "         instances: [{name: web, nodes: [empty-1, empty-2], count: 2, spec: s, running: false}]}\n"
        "      edits: [{node: empty-1, offline: true, add_tags: ['x:1']}, {remove_instance: web-1}]\n"
        "    place: {spec: s, bound: max, disks: [10G, {size: 1.5G, spindles: 2}], tags: ['a:b']}\n"
        "    expect: {node: half-full, lost_allocations: {s: 1}, disk_left: 1G, preference: [half-full, empty-1],\n"
        "             candidates: {empty-1: {refused: true, because: memory, lost_allocations: {s: 0}}}}\n"
    )
    policy = load(tmp_path, text)
    assert policy.findings == ()
    (found,) = policy.scenarios
    assert (found.name.value, found.action) == ("t", Action.PLACE)
    (part,) = found.stage.simulated
    assert part.machine == Machine(memory=8192, pv_sizes=(1024**2, 1024**2))
    assert [(node.name, node.filled) for node in part.nodes] == [("half-full", 2), ("empty-1", 0), ("empty-2", 0)]
    assert part.instances[0].names == ("web-1", "web-2")
    assert [edit.offline for edit in found.stage.edits] == [True, None]
    assert found.sizes is not None
    assert (found.sizes.bound, found.sizes.disks) == ("max", (DiskSize(10240), DiskSize(1536, 2)))
    assert {item.title: item.wanted for item in found.expectations} == {
        "node": "half-full",
        "lost_allocations.s": ExpectedNumber(1, 1),
        "disk_left": ExpectedNumber(1024, 1024),
        "preference": ("half-full", "empty-1"),
        "candidates.empty-1.refused": True,
        "candidates.empty-1.because": "memory",
        "candidates.empty-1.lost_allocations.s": ExpectedNumber(0, 0),
    }
    assert found.expectations[0].span.line == 11


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("'on': {snapshot: policy.yaml, simulate: {nodes: 1}}", 5, "a test runs on a snapshot or on simulated"),
        ("'on': {simulate: {nodes: [{name: a}, {name: a}]}}", 5, "a second node 'a'"),
        (
            "'on': {simulate: {nodes: 1, instances: [{name: w, count: 2, nodes: [a]}, {name: w-2, nodes: [b]}]}}",
            5,
            "a second instance 'w-2'",
        ),
        (
            "'on': {simulate: {nodes: 1, instances: [{name: w, nodes: [node-1]}]}, edits: [{remove_instance: ww}]}",
            5,
            "the cluster of this test has no instance 'ww'",
        ),
        (
            "'on': {simulate: {nodes: 1}, edits: [{instance: w, add_tags: [x]}]}",
            5,
            "the cluster of this test has no instance 'w'",
        ),
        ("'on': {simulate: [{nodes: 900}, {nodes: {empty: 900}}]}", 5, "1800 simulated nodes; a test has at most"),
        ("'on': {simulate: {nodes: 1001}}", 5, "tests[1].on.simulate.nodes is 1001, it must be at most 1000"),
        ("'on': {simulate: {nodes: 1, pv_size: 1G}}", 5, "pv_size and pv_count belong together"),
        ("'on': {simulate: {nodes: 1, pv_size: 1G, pv_count: 1001}}", 5, "a node has at most 1000 physical volumes"),
        ("'on': {simulate: {nodes: [{name: a, pvs: [1G], pv_count: 1}]}}", 5, "pvs are all physical volumes"),
        ("'on': {edits: [{node: a}]}", 5, "this edit changes nothing"),
        ("'on': {edits: [{instance: a, offline: true}]}", 5, "offline does not belong to this edit"),
        ("'on': {edits: [{remove_node: a, add_tags: [x]}]}", 5, "add_tags does not belong to this edit"),
        ("'on': {edits: [{node: a, instance: b}]}", 5, "exactly one of node, instance, add_instance"),
        ("'on': {simulate: {nodes: 1, instances: [{name: a, nodes: [b], disk-template: drbd}]}}", 5, "an instance on"),
        ("'on': {simulate: {nodes: 1, memory: 9999999999T}}", 5, "tests[1].on.simulate.memory: larger than any"),
        ("'on': {simulate: {nodes: {three-quarters: 1}}}", 5, 'unknown key "three-quarters"'),
        ("'on': {simulate: {nodes: 1, cpus: 0}}", 5, "tests[1].on.simulate.cpus is 0, it must be at least 1"),
        ("'on': {}", 5, "tests[1].on is empty"),
    ],
)  # fmt: skip
def test_an_impossible_test_is_a_finding(body: str, line: int, message: str, tmp_path: Path) -> None:
    found = load(tmp_path, f"{HEAD}    {body}\n{CHECK}").findings
    assert [(at, text.startswith(message)) for _, at, text in complaints(found)] == [(line, True)]


@pytest.mark.parametrize(
    "edits",
    [
        "{add_instance: {name: x, nodes: [node-1]}}, {instance: x, add_tags: [t]}, {remove_instance: x}",
        "{remove_instance: w}, {add_instance: {name: w, nodes: [node-1]}}",
        "{with: 2x s}, {remove_instance: new-1}",
    ],
)
def test_edits_know_the_instances_of_earlier_ones(edits: str, tmp_path: Path) -> None:
    stage = f"'on': {{simulate: {{nodes: 1, instances: [{{name: w, nodes: [node-1]}}]}}, edits: [{edits}]}}"
    assert complaints(load(tmp_path, f"{HEAD}    {stage}\n{CHECK}").findings) == []


@pytest.mark.parametrize(
    ("action", "expect", "message"),
    [
        ("place: {spec: s, disk-template: cloud}", "{refused: true}", "tests[1].place.disk-template cannot be"),
        ("place: {spec: s}", "{pair: s}", 'unknown key "pair" in tests[1].expect'),
        ("place: {spec: s}", "{because: whatever}", "tests[1].expect.because cannot be"),
        ("place: {spec: s}", "{node: 3}", "tests[1].expect.node cannot be 3"),
        ("check_instance: {spec: s}", "{node: a}", 'unknown key "node" in tests[1].expect'),
        ("check_instance: {spec: s}", "{because: [size]}", "tests[1].expect.because"),
        ("check_instance: {memory: 1G}", "{refused: true}", 'unknown key "memory" in tests[1].check_instance'),
        ("capacity: {}", "{standard: {at_least: 3, at_most: 2}}", "no number is at least 3 and at most 2"),
        ("capacity: {}", "{standard: {exactly: 3, at_most: 4}}", "exactly stands alone"),
        ("capacity: {}", "{specs: {s: -1}}", "tests[1].expect.specs.s"),
        ("capacity: {oversubscription: 101}", "{standard: 1}", "tests[1].capacity.oversubscription is 101, it must"),
        ("capacity: {without: [n1_count]}", "{standard: 1}", "tests[1].capacity.without[1] cannot be"),
        ("capacity: {weights: {n1_cnt: -1}}", "{standard: 1}", "tests[1].capacity.weights.n1_cnt is -1"),
        ("capacity: {weights: {n1_count: 1}}", "{standard: 1}", 'unknown key "n1_count" in tests[1].capacity.weights'),
        ("redundancy: {failures: 9}", "{survives: true}", "tests[1].redundancy.failures is 9, it must be at most 8"),
        ("redundancy: {}", "{}", "tests[1].expect is empty"),
        ("place: {spec: s, bound: middle}", "{refused: true}", "tests[1].place.bound cannot be"),
        ("place: {memory-size: 1G, bound: max}", "{refused: true}", "bound is an end of a size"),
    ],
)
def test_questions_and_expectations_that_are_impossible(action: str, expect: str, message: str, tmp_path: Path) -> None:
    found = load(tmp_path, f"{HEAD}    {action}\n    expect: {expect}\n").findings
    assert [text.startswith(message) for _, _, text in complaints(found)] == [True], complaints(found)


# --- snapshots -----------------------------------------------------------------------------------------------------


def snapshot(directory: Path, written: str) -> list[tuple[str, int | None, str]]:
    return complaints(load(directory, f"{HEAD}    'on': {{snapshot: {written}}}\n{CHECK}").findings)


def test_a_snapshot_must_be_in_the_directory_of_the_policy(tmp_path: Path) -> None:
    (home := tmp_path / "policy").mkdir()
    (tmp_path / "outside.json").write_text("{}")
    (home / "inside.json").write_text("{}")
    (home / "link.json").symlink_to(tmp_path / "outside.json")
    (home / "loop.json").symlink_to(home / "loop.json")
    assert snapshot(home, "inside.json") == []
    assert snapshot(home, "../policy/inside.json") == []
    outside = "lies outside of the policy's directory"
    for written, reason in [
        ("../outside.json", outside),
        (str(tmp_path / "outside.json"), outside),
        ("/etc/passwd", outside),
        ("link.json", outside),
        ("gone.json", "no such file"),
        (".", "no such file"),
        ('"a\\0b"', "cannot be read"),
    ]:
        ((code, line, message),) = snapshot(home, written)
        assert (code, line) == ("GP025", 5)
        assert message.endswith(reason), message
    ((code, _, _),) = snapshot(home, "loop.json")
    assert code == "GP025"


def test_a_huge_snapshot_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "s.json").open("wb") as file:
        file.truncate(LARGEST_SNAPSHOT + 1)
    ((code, _, message),) = snapshot(tmp_path, "s.json")
    assert (code, message) == ("GP025", "snapshot 's.json': larger than 64 MiB")


# --- guards --------------------------------------------------------------------------------------------------------


def test_guards_know_their_measure_and_limit(tmp_path: Path) -> None:
    policy = load(
        tmp_path,
        "gpolicy: v1\nkind: Guards\nguards:\n"
        "  - {name: a, group: g, spec: s, at_least: 3}\n"
        "  - {name: b, capacity_loss: {at_most: 2.5 %}}\n"
        "  - {name: c, capacity_loss: {at_most: 4}}\n"
        "  - {name: d, max_changes: 10}\n",
    )
    assert policy.findings == ()
    assert [(guard.measure, guard.limit, guard.percent, guard.shown_limit) for guard in policy.guards] == [
        (Measure.AT_LEAST, 3, False, "3"),
        (Measure.CAPACITY_LOSS, 2.5, True, "2.5 %"),
        (Measure.CAPACITY_LOSS, 4, False, "4"),
        (Measure.MAX_CHANGES, 10, False, "10"),
    ]
    assert [guard.span.line for guard in policy.guards] == [4, 5, 6, 7]
    assert [[number for number in range(12) if guard.accepts(number)] for guard in policy.guards] == [
        list(range(3, 12)),
        [0, 1, 2],
        [0, 1, 2, 3, 4],
        list(range(11)),
    ]
    assert policy.guards[0].group == Located("g", policy.guards[0].group.span if policy.guards[0].group else None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("guard", "message"),
    [
        ("capacity_loss: {at_most: 101%}", "a loss of 101% is more than 100%"),
        ("group: g, max_changes: 1", "max_changes has no group: it is about the whole plan"),
        ("spec: s, node_failures: 1", "node_failures has no spec: it is about the whole group"),
        ("at_least: 1, max_changes: 1", "exactly one of at_least, capacity_loss"),
        ("capacity_los: {at_most: 1}", 'unknown key "capacity_los" in guards[1]'),
    ],
)
def test_invalid_guards(guard: str, message: str, tmp_path: Path) -> None:
    found = load(tmp_path, f"gpolicy: v1\nkind: Guards\nguards:\n  - {{name: a, {guard}}}\n").findings
    assert [text.startswith(message) for _, _, text in complaints(found)] == [True]


# --- the nodes that a group names ----------------------------------------------------------------------------------

SPAN = Span("f", 1, 1, 1, 1)
PARTS = st.lists(st.sampled_from(["a", "-", "1", "[12]", "[a-c]", "[1-3x]"]), min_size=1, max_size=4)


def group(*patterns: str) -> GroupPolicy:
    nodes = tuple(Located(pattern, SPAN) for pattern in patterns)
    return GroupPolicy(name="g", document=YamlDocument(SourceFile("f", ""), {}, (1, 1, 1, 1)), span=SPAN, nodes=nodes)


@settings(deadline=None)
@given(PARTS)
def test_the_names_that_a_pattern_stands_for_are_those_that_match_it(parts: list[str]) -> None:
    pattern = "".join(parts)
    names = promised_nodes(group(pattern))
    assert names is not None
    assert all(fnmatchcase(name, pattern) for name in names)
    count = 1
    for part in parts:
        count *= {"[12]": 2, "[a-c]": 3, "[1-3x]": 4}.get(part, 1)
    assert len(set(names)) == len(names) == count


@pytest.mark.parametrize("pattern", ["node*", "node?", "[!a]", "[a", "a]", "[0-9][0-9][0-9][0-9]", "[]", ""])
def test_an_indefinite_pattern_promises_no_nodes(pattern: str) -> None:
    assert promised_nodes(group(pattern, "b")) is None


def test_names_are_counted_once() -> None:
    assert promised_nodes(group("a[12]", "a2", "b")) == ("a1", "a2", "b")
    assert promised_nodes(group()) is None
    assert promised_nodes(group(*(f"n{number}" for number in range(MOST_NODES + 1)))) is None
