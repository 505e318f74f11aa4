"""Answers from a snapshot name it, with its source and time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from tests.cli.command_line import ROOT, gpolicy

VERBS = ("plan", "capacity", "place", "suggest", "drift")
AT = "2026-03-04T05:06:07Z"
POLICY = str(ROOT / "policies/two-groups")


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """The example's cluster, as if it had been read on its master."""
    content = json.loads((ROOT / "policies/two-groups.snapshot.json").read_text(encoding="utf-8"))
    content.update(source="local:", taken_at=AT, format_version="1.3")
    file = tmp_path / "kept.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def ask(verb: str, snapshot: Path, form: str) -> str:
    asked = {"place": ["memory=1G", "vcpus=1", "disk=1G"], "plan": [POLICY], "drift": [POLICY]}.get(verb, [])
    done = gpolicy(verb, *asked, "--state", "snapshot:kept.json", "--format", form, "--details", cwd=snapshot.parent)
    assert done.stdout, done.stderr
    return done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_json_has_the_file_and_its_time_beside_the_source(verb: str, snapshot: Path) -> None:
    data = json.loads(ask(verb, snapshot, "json"))
    assert (data["source"], data["snapshot"]) == ("local:", {"file": "kept.json", "taken_at": AT})
    schema = json.loads((ROOT / f"schemas/output/{verb}.json").read_text(encoding="utf-8"))
    assert list(Draft7Validator(schema).iter_errors(data)) == []


@pytest.mark.parametrize(
    ("verb", "form"),
    [
        *((verb, "text") for verb in VERBS),
        *((verb, "markdown") for verb in VERBS[:4]),
        *((verb, "html") for verb in ("plan", "place", "suggest")),
        ("suggest", "yaml"),
    ],
)
def test_text_names_the_file_and_its_time(verb: str, form: str, snapshot: Path) -> None:
    shown = " ".join(ask(verb, snapshot, form).replace("\n#", " ").split())
    assert f"snapshot:kept.json (taken from local:, at {AT})" in shown


@pytest.mark.parametrize("verb", VERBS)
def test_a_short_answer_names_its_time(verb: str, snapshot: Path) -> None:
    asked = {"place": ["memory=1G", "vcpus=1", "disk=1G"], "plan": [POLICY], "drift": [POLICY]}.get(verb, [])
    shown = gpolicy(verb, *asked, "--state", "snapshot:kept.json", cwd=snapshot.parent).stdout
    assert shown.splitlines()[0].endswith(f", state of {AT}")


def test_a_snapshot_keeps_when_the_cluster_was_read(snapshot: Path) -> None:
    written = snapshot.parent / "first.json"
    gpolicy("snapshot", "--state", f"text:{ROOT}/tests/data/clusters/full/htools.data", "--save", written)
    taken = json.loads(written.read_text(encoding="utf-8"))["taken_at"]
    assert taken.startswith("20")
    gpolicy("snapshot", "--state", f"snapshot:{snapshot}", "--save", snapshot.parent / "again.json")
    assert json.loads((snapshot.parent / "again.json").read_text(encoding="utf-8"))["taken_at"] == AT


def test_an_older_snapshot_without_a_time_is_read(snapshot: Path) -> None:
    content = json.loads(snapshot.read_text(encoding="utf-8"))
    del content["taken_at"]
    snapshot.write_text(json.dumps(content | {"format_version": "1.2"}), encoding="utf-8")
    assert "read from snapshot:kept.json (taken from local:)\n" in ask("capacity", snapshot, "text")


@pytest.mark.parametrize("time", ["yesterday", "2026-02-30T00:00:00Z", "0000-01-01T00:00:00Z", "2026-01-01T25:00:00Z"])
def test_an_invalid_time_is_refused(snapshot: Path, time: str) -> None:
    content = json.loads(snapshot.read_text(encoding="utf-8"))
    snapshot.write_text(json.dumps(content | {"taken_at": time}), encoding="utf-8")
    done = gpolicy("capacity", "--state", f"snapshot:{snapshot}")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"gpolicy: {snapshot}: taken_at should be YYYY-MM-DDThh:mm:ssZ, but is '{time}'\n"


def test_an_error_names_the_snapshot_and_not_where_it_was_taken(snapshot: Path) -> None:
    content = json.loads(snapshot.read_text(encoding="utf-8"))
    for node in content["nodes"].values():
        node["resources"]["memory_total"] = None
    snapshot.write_text(json.dumps(content), encoding="utf-8")
    done = gpolicy("capacity", "--state", "snapshot:kept.json", cwd=snapshot.parent)
    assert done.stderr.startswith("gpolicy: snapshot:kept.json: not known for group default: node1.example.org, ")


@pytest.mark.parametrize("words", [(), ("--group", "group-01")])
def test_the_capacity_of_a_single_group_names_it_as_well(words: tuple[str, ...], tmp_path: Path) -> None:
    gpolicy("snapshot", "--state", "sim:p,3,500g,64g,16", "--save", tmp_path / "one.json")
    done = gpolicy("capacity", *words, "--state", "snapshot:one.json", "--format", "json", cwd=tmp_path)
    assert json.loads(done.stdout)["snapshot"]["file"] == "one.json"
