"""The files that gpolicy writes and reads again: which kinds and versions each reader takes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from gpolicy.apply.journals import BEGIN, JOURNAL_FILE, Direction, event_line, read_history, right_format
from gpolicy.apply.plan_run import JOURNAL_DOCUMENT
from gpolicy.cluster.assembly import read
from gpolicy.cluster.record import Record
from gpolicy.cluster.state import Snapshot, Unreadable
from gpolicy.cluster.state_files import SNAPSHOT_FILE, parse_snapshot
from gpolicy.errors import InputError
from gpolicy.findings import Finding, Severity, Span
from gpolicy.ganeti.vocabulary import Level, Value
from gpolicy.json_values import Key, OwnFile, Shape
from gpolicy.plan.built_in_guards import GuardResult
from gpolicy.plan.changes import ChangeAction, NotCompared
from gpolicy.plan.effects import Effect
from gpolicy.plan.part import LeftOut, Part
from gpolicy.plan.plan import Plan
from gpolicy.plan.plan_file import plan_in, rebuilt_plan
from gpolicy.plan.plan_json import PLAN_FILE, plan_as_json
from gpolicy.provenance import Provenance
from gpolicy.remedy.saved_remedy import MOVE, REMEDY_FILE, SAVED, SavedRemedy, Supposed, procedure_in
from gpolicy.report.file_answer import journal_answer
from gpolicy.rollout.rollout_run import ROLLOUT_DOCUMENT, ROLLOUT_FILE, read_rollout
from tests.apply.test_apply_remedy import pretended, written
from tests.cli.command_line import ROOT
from tests.plan.planned import cluster, plan_for, policy_of

RECORDS = ROOT / "tests/data/journals"
READ = {
    SNAPSHOT_FILE: ("1", "1.", "1.0", "1.1", "1.2", "1.3", "1.6", "1.7", "1.99"),
    PLAN_FILE: ("1.7",),
    REMEDY_FILE: ("1.1",),
    JOURNAL_FILE: ("1.1", "1.2", "1.3", "1.6", "1.7", "1.99"),
    ROLLOUT_FILE: ("1.0", "1.1", "1.2", "1.3", "1.6", "1.7", "1.99"),
}
VERSIONS = ("", "0.9", "1", "1.", "1.0", "1.1", "1.2", "1.3", "1.6", "1.7", "1.99", "2.0", "10.1")


@pytest.mark.parametrize("file", READ, ids=lambda file: str(file.kind))
def test_a_file_is_read_in_these_versions(file: OwnFile) -> None:
    assert tuple(version for version in VERSIONS if file.reads(version)) == READ[file]
    assert file.reads(file.version)
    assert Shape(dict).with_keys(**file.head)({}) == {"format_version": file.version, "kind": file.kind}


def read_head(file: OwnFile, fields: dict[str, Value]) -> None:
    """Have a head alone read by the reader of a file."""
    if file is SNAPSHOT_FILE:
        parse_snapshot(json.dumps(fields).encode(), "FILE")
    elif file is PLAN_FILE:
        plan_in(Record.of(fields, "FILE"))
    elif file is REMEDY_FILE:
        procedure_in(Record.of(fields, "FILE"))
    else:
        right_format(Record.of(fields, "FILE"), file)


def refusal(file: OwnFile, kind: str, version: str) -> str:
    """Return why a file with this head alone is refused."""
    with pytest.raises(InputError) as caught:
        read_head(file, {"kind": kind, "format_version": version, "gpolicy": "1.0"})
    return caught.value.message.partition(" (gpolicy")[0]


def test_messages_name_what_a_file_is_not() -> None:
    assert refusal(SNAPSHOT_FILE, "other", "1.0") == "FILE: not a snapshot of gpolicy, but other"
    assert refusal(SNAPSHOT_FILE, "gpolicy-snapshot", "2.0") == "FILE: is of format '2.0', this gpolicy reads 1.3"
    assert refusal(PLAN_FILE, "other", "1.7") == "FILE: this is not a plan: its kind is other"
    assert refusal(PLAN_FILE, "gpolicy-plan", "1.6") == "FILE: its format is '1.6'"
    assert refusal(REMEDY_FILE, "gpolicy-remedy", "1.0") == "FILE: its format is '1.0'"
    for kind, version in (("other", "1.1"), ("gpolicy-journal", "1.0"), ("gpolicy-journal", "2.1")):
        assert refusal(JOURNAL_FILE, kind, version) == "FILE: is not a journal of format 1.1"
    for kind, version in (("gpolicy-journal", "1.1"), ("gpolicy-rollout-journal", "2.0")):
        assert refusal(ROLLOUT_FILE, kind, version) == "FILE: is not a roll-out's journal of format 1.0"


RECORDED = {
    "plan.journal.jsonl": (JOURNAL_DOCUMENT, "journal"),
    "_rollout.journal.jsonl": (ROLLOUT_DOCUMENT, "rollout-journal"),
}


@pytest.mark.parametrize("name", RECORDED)
def test_each_line_of_a_recorded_journal_is_what_its_event_makes_of_it(name: str) -> None:
    document, schema = RECORDED[name]
    validator = jsonschema.Draft7Validator(json.loads((ROOT / f"schemas/output/{schema}.json").read_text()))
    shapes = {event.name: event for event in document.parts[1]}
    before, seen = "", set()
    for line in (RECORDS / name).read_bytes().splitlines(keepends=True):
        fields = json.loads(line)
        validator.validate(fields)
        event, time = fields.pop("event"), fields.pop("time")
        chain = fields.pop("chain")
        made = fields if event == BEGIN else shapes[event](fields)
        assert list(made) == list(shapes[event].keys)
        assert event_line(event, {"time": time, **made}, before) == (line, chain)
        before = chain
        seen.add(event)
    assert seen == shapes.keys()


def test_recorded_journals_are_read() -> None:
    history = read_history((RECORDS / "plan.journal.jsonl").read_bytes(), "j")
    assert (history.id, history.direction, history.ended) == ("00000001", Direction.ROLLBACK, "done")
    assert len(history.jobs) == 11
    rollout = read_rollout((RECORDS / "_rollout.journal.jsonl").read_bytes(), "j")
    assert (rollout.direction, rollout.ended, {*rollout.begun}) == (Direction.ROLLBACK, "done", {"ham", "ber", "cam"})
    for name in RECORDED:
        answer, as_json = journal_answer(RECORDS / name)
        assert answer.verdict == "2 runs; its rollback ended: done"
        lines = [json.loads(line) for line in (RECORDS / name).read_text().splitlines()]
        assert json.loads(as_json()) == {"events": lines}


def test_a_journal_without_checksums_is_told_by_its_version(tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    file.write_text('{"event": "begin", "kind": "gpolicy-journal", "format_version": "1.0"}\n')
    with pytest.raises(InputError, match=r":1: is not a journal of gpolicy of format 1\.1"):
        journal_answer(file)


# --- a file is read along the shapes that it was written from ---------------------------------------------------------

POLICY = (
    """Cluster
name: cluster.example.org
limits: {max_node_failures: 1, oversubscription: 1.5}
master_netdev: lo
hv_state: {kvm: {mem_node: 1024}}""",
    "NodeGroup\nname: gold\nipolicy: {vcpu-ratio: 3}",
    "Guards\nguards:\n- {name: a, at_least: 1, group: gold, spec: l}\n- {name: b, max_changes: 3}",
)


@cache
def rich_plan() -> Plan:
    """Return a plan in which each attribute that a file keeps has a value."""
    plan = plan_for(cluster(groups={"gold": {}}), *POLICY, allow=("master-network",))
    return replace(
        plan,
        changes=tuple(replace(change, span=Span("p.yaml", 3, 4, 3, 4)) for change in plan.changes),
        gaps=(Unreadable(level=Level.NODE), Unreadable(level=Level.GROUP, prefix=("diskparams",))),
        cluster_uuid="u",
        snapshot=Snapshot("s.json", "2026-01-02T03:04:05Z"),
        provenance=Provenance("2026-01-02T03:04:06Z", "a" * 40, dirty=True),
        state_digest_rapi=plan.policy_digest,
        guards=(*plan.guards, GuardResult("a", ok=True, message="x"), GuardResult("b", ok=False, message="y")),
        declared_guards=policy_of(*POLICY).guards,
        pair_names={"group/gold": ("s", None)},
        not_compared=(NotCompared("node/n", ("ndparams", "ovs"), wanted=True),),
        part=Part(("cluster", "group/*"), ("node/*",)),
        left_out=(LeftOut("node/n", ("ndparams", "ovs"), ChangeAction.SET),),
        findings=(Finding("GP101", "a-rule", Severity.WARNING, "wrong", Span("f", 3, 4, 3, 4), "do"),),
        notes=("a note",),
    )


def plan_data() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(plan_as_json(rich_plan())))
    return found


def test_a_plan_is_read_along_its_shape() -> None:
    plan, again = rich_plan(), rebuilt_plan(Record("FILE", plan_data()))
    assert plan_as_json(again) == plan_as_json(plan)
    assert plan.terms.values["cluster"]
    assert [guard.about for guard in again.declared_guards] == [guard.about for guard in plan.declared_guards]
    assert again == replace(plan, declared_guards=again.declared_guards)  # their places are not written


def test_a_remedy_is_read_along_its_shape() -> None:
    supposed = Supposed("p.json", is_plan=True, effects=(Effect("cluster", ("tags", "htools:x"), None, True),))
    data = json.loads(json.dumps(written(pretended(), supposed)))
    again = procedure_in(Record("FILE", data))
    assert isinstance(again, SavedRemedy)
    assert again.supposed == supposed
    assert SAVED(again) == {key: data[key] for key in SAVED.keys if key in data}
    assert [MOVE(move) for move in again.moves] == [{key: step[key] for key in MOVE.keys} for step in data["steps"]]


WRONG: list[tuple[tuple[str | int, ...], Value, str]] = [
    (("policy_digest",), "sha256:x", "policy_digest should be sha256: and 64 hexadecimal digits, but is 'sha256:x'"),
    (("state_digest_rapi",), "", "state_digest_rapi should be sha256: and 64 hexadecimal digits, but is ''"),
    (("made_at",), "2026-01-02", "made_at should be YYYY-MM-DDThh:mm:ssZ, but is '2026-01-02'"),
    (("snapshot", "taken_at"), "now", "snapshot: taken_at should be YYYY-MM-DDThh:mm:ssZ, but is 'now'"),
    (("policy_commit",), "a" * 39, "policy_commit should be a commit of git, but is 'aaaaaaa"),
    (("policy_dirty",), 1, "policy_dirty should be true or false, but is a number"),
    (("cluster",), "a\0b", "cluster should be text without a null character, which no command can carry, but is"),
    (("source",), "\0", "source should be text without a null character"),
    (("guards", 0, "message"), "\0", "guards: message should be text without a null character"),
    (("findings", 0, "message"), "\0", "findings: message should be text without a null character"),
    (("unreadable", 0, "path"), "ndparams.\0", "unreadable: path should be text without a null character"),
    (("unreadable", 0, "object"), "node/", "unreadable: object should be cluster, group/NAME or node/NAME, but is"),
    (("changes", 0, "object"), "cluster/x", "changes: object should be cluster, group/NAME or node/NAME, but is"),
    (("changes", 0, "affects"), ["x"], "changes: affects should be cluster, group/NAME or node/NAME, but is 'x'"),
    (("left_out", 0, "object"), "instance/i", "left_out: object should be cluster, group/NAME or node/NAME, but is"),
    (("left_out", 0, "object"), "group/a\0", "left_out: object should be cluster, group/NAME or node/NAME"),
    (("unreadable", 0, "object"), "node/a\0", "unreadable: object should be cluster, group/NAME or node/NAME"),
    (("left_out", 0, "keys"), [], "left_out: keys should be the path of a value, but is a list"),
    (("left_out", 0, "action"), "x", "left_out: action should be one of set, reset,"),
    (("changes", 0, "keys"), [], "changes: keys should be the path of a value, but is a list"),
    (("changes", 0, "after"), 2**63, "changes: after holds too large a number"),
    (("observed", "x"), {}, "observed should be cluster, group/NAME or node/NAME, but is 'x'"),
    (("not_shown", 0, "level"), "moon", "not_shown: level should be one of cluster, group, node, but is 'moon'"),
    (("pair_names", "group/gold"), [1], "pair_names: group/gold should be a list of names, but is a list"),
    (("declared_guards", 0, "limit"), -1, "declared_guards: limit should be a number from 0, but is a number"),
    (("terms", "others", "volumes", "reserve"), None, "reserve should be a share below 1, but is null"),
    (("terms", "release"), "1.0", "terms: release should be a release of Ganeti that gpolicy knows, but is '1.0'"),
    (("terms", "values", "cluster", 0, "value"), -1, "a declared value needs its keys, and is 0 or more"),
]


@pytest.mark.parametrize(("place", "value", "message"), WRONG)
def test_a_plan_with_a_wrong_value_is_refused(place: tuple[str | int, ...], value: Value, message: str) -> None:
    data = plan_data()
    parent: Any = data
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    with pytest.raises(InputError) as caught:
        rebuilt_plan(Record("FILE", data))
    assert message in caught.value.message
    assert caught.value.message.startswith("FILE: ")


@pytest.mark.parametrize("key", ["instance", "file"])
def test_a_remedy_with_a_null_character_is_refused(key: str) -> None:
    data = json.loads(json.dumps(written(pretended(), Supposed("p.json", is_plan=True, effects=()))))
    place = {"instance": data["steps"][0], "file": data["supposes"]}[key]
    place[key] += "\0"
    if key == "instance":
        for command in (*place["commands"], *place["back"]):
            command["argv"][-1] = place["instance"]
            command["rapi"] = None
    with pytest.raises(InputError, match=f"{key} should be text without a null character"):
        procedure_in(Record("FILE", data))


@dataclass(frozen=True)
class Inner:
    number: int


@dataclass(frozen=True)
class Whole:
    """What a shape of the tests is of."""

    text: str
    inside: Inner
    secret: bool = False
    unread: set[int] = field(default_factory=set)

    @property
    def more(self) -> int:
        return 2 * self.inside.number


SHAPE = Shape(Whole).with_keys("text number more twice", number="inside.number", twice=Key(int, lambda _: 2))


def test_a_shape_is_all_that_is_read() -> None:
    whole = Whole("t", Inner(3))
    assert read(SHAPE, Record("FILE", SHAPE(whole))) == whole
    file: dict[str, Value] = {
        "text": "t",
        "number": 3,
        "more": 5,
        "twice": "x",
        "secret": True,
        "inside": {"number": 4},
    }
    assert read(SHAPE, Record("FILE", file)) == whole
    assert read(SHAPE, Record("FILE", file), text="known") == replace(whole, text="known")
    with pytest.raises(InputError, match="FILE: number should be a whole number, but is missing"):
        read(SHAPE, Record("FILE", {"text": "t"}))
    with pytest.raises(TypeError):
        read(Shape(Whole).with_keys("text unread", number="inside.number"), Record("FILE", {"text": "t", "number": 1}))
