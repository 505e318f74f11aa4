"""The output and files of `gpolicy suggest`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from gpolicy.analysis.capacity import capacity
from gpolicy.cluster.state_files import read_snapshot
from tests.cli.command_line import ROOT, gpolicy

DEMO = "policies/two-groups.snapshot.json"
STATE = f"snapshot:{DEMO}"
SCHEMA = json.loads((ROOT / "schemas/output/suggest.json").read_text(encoding="utf-8"))


def test_json_is_as_its_schema_says() -> None:
    Draft7Validator.check_schema(SCHEMA)
    done = gpolicy("suggest", "--state", STATE, "--format", "json", "--mix", "full=1,quarter=2", cwd=ROOT)
    data = json.loads(done.stdout)
    assert list(Draft7Validator(SCHEMA).iter_errors(data)) == []
    assert [item["group"] for item in data["groups"]] == ["dedicated", "default"]
    for item in data["groups"]:
        fits = capacity(read_snapshot(ROOT / DEMO), group=item["group"], template=item["template"]).groups[0].specs
        assert [pair["now"]["fits"] for pair in item["today"]] == [spec.fits for spec in fits]


@pytest.mark.parametrize("more", [(), ("--max-node-failures", "2"), ("--policy", "policies/two-groups")])
@pytest.mark.slow
def test_sizes_for_the_instances_that_exist(more: tuple[str, ...]) -> None:
    done = gpolicy("suggest", "--state", STATE, "--real-mix", "--format", "json", *more, cwd=ROOT)
    data = json.loads(done.stdout)
    assert list(Draft7Validator(SCHEMA).iter_errors(data)) == []
    for item in data["groups"]:
        assert [size["name"] for size in item["sizes"]] == list(item["choices"][0]["sizes"])
        assert sum(item["choices"][0]["weights"].values()) + item["choices"][0]["outside"] == item["instances"]
    assert bool(data["limits"]) is ("--max-node-failures" in more)


def test_the_document_passes_check_and_is_never_written_over(tmp_path: Path) -> None:
    file = tmp_path / "group.yaml"
    done = gpolicy("suggest", "--state", STATE, "--save", file, "--details", cwd=ROOT)
    assert done.stdout.endswith(f"Sizes for 2 groups, written to {file}\n")
    plain = gpolicy("suggest", "--state", STATE, "--format", "yaml", cwd=ROOT)
    assert plain.stdout == file.read_text(encoding="utf-8")
    checked = gpolicy("check", file, "--format", "json")
    severities = {item["severity"] for item in json.loads(checked.stdout)["findings"]}
    assert (checked.returncode, severities) == (0, set())
    again = gpolicy("suggest", "--state", STATE, "--save", file, "--details", cwd=ROOT)
    assert (again.returncode, again.stdout) == (3, "")
    assert "exists already" in again.stderr
    assert sorted(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--state", "config:tests/data/clusters/full/config.data"), "show no memory"),
        (("--state", STATE, "--sizes", "fulll"), "there is no size 'fulll'"),
        (("--state", STATE, "--mix", "full"), "is not a valid part of a mix"),
        (("--state", STATE, "--bounds", "some"), "unknown bounds 'some'"),
        (("--state", STATE, "-t", "foo"), "gpolicy: there is no disk template 'foo'\n  the disk templates are "),
        (("--state", STATE, "--pv-size", "1X"), "Ganeti knows no unit"),
        (("--state", STATE, "--format", "xml"), "unknown format 'xml'"),
        (("--state", STATE, "--group", "x\x1b[31m"), "there is no group"),
    ],
)
def test_impossible_requests_are_one_clear_line(arguments: tuple[str, ...], message: str) -> None:
    done = gpolicy("suggest", *arguments, cwd=ROOT)
    assert (done.returncode, done.stdout) == (3, "")
    assert message in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("group", "unused"),
    [
        ("dedicated", "what sizes have more than the instances and what no size fills"),
        ("default", "what sizes have more than the instances, what no size fills and what N+1 keeps"),
    ],
)
def test_the_text_says_what_is_unused(group: str, unused: str) -> None:
    done = gpolicy("suggest", "--state", STATE, "--real-mix", "--group", group, "--details", cwd=ROOT)
    lines = [line.strip() for line in done.stdout.splitlines()]
    words = "in these proportions the sizes fill the empty group until none fits; unused is then"
    assert f"{words} {unused}" in lines
