"""`gpolicy capacity --compare`: several policies side by side."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from tests.cli.command_line import ROOT, gpolicy

SNAPSHOT = ("--state", f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}")
POLICY = ROOT / "policies" / "two-groups"
SCHEMA = json.loads((ROOT / "schemas/output/capacity-compared.json").read_text(encoding="utf-8"))


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A policy with half the virtual CPUs, another size of one spec, and one more spec."""
    shutil.copytree(POLICY, tmp_path / "other")
    file = tmp_path / "other" / "cluster.yaml"
    text = file.read_text(encoding="utf-8")
    assert "vcpu-ratio: 4" in text
    file.write_text(text.replace("vcpu-ratio: 4", "vcpu-ratio: 2"), encoding="utf-8")
    return tmp_path / "other"


def test_each_column_is_what_capacity_says_of_that_policy(other: Path) -> None:
    data = json.loads(gpolicy("capacity", "--compare", POLICY, other, *SNAPSHOT, "--format", "json").stdout)
    Draft7Validator(SCHEMA).validate(data)
    assert set(data) <= set(SCHEMA["properties"])
    for policy, found in zip((POLICY, other), data["policies"], strict=True):
        assert found["policy"] == str(policy)
        alone = json.loads(gpolicy("capacity", policy, *SNAPSHOT, "--format", "json").stdout)
        assert without_moves(found["capacity"]) == without_moves(alone)


def without_moves(capacity: dict[str, Any]) -> dict[str, Any]:
    """Return a capacity as if no moves had been looked for: they are not where policies are compared."""
    for group in [*capacity["groups"], *([capacity["cluster"]] if capacity["cluster"] else [])]:
        for spec in group["specs"]:
            spec |= {"after_moves": None, "at_most": None}
    return capacity


def test_the_text_has_a_column_for_each_policy(other: Path) -> None:
    done = gpolicy("capacity", "--compare", POLICY, "--compare", other, *SNAPSHOT, "-g", "shared", "--details")
    lines = done.stdout.splitlines()
    heading = next(line for line in lines if line.startswith("  group"))
    assert heading.split() == ["group", "size", "at", "its", "largest", str(POLICY), str(other)]
    small = next(line.split() for line in lines if " small " in line)
    alone = [
        json.loads(gpolicy("capacity", policy, *SNAPSHOT, "-g", "shared", "--format", "json").stdout)["groups"][0][
            "specs"
        ]
        for policy in (POLICY, other)
    ]
    assert small[-2:] == [str(next(spec["fits"] for spec in specs if spec["name"] == "small")) for specs in alone]
    assert lines[1].startswith("Of standard instances group shared takes ")


def test_another_size_of_a_spec_is_said_with_its_number(other: Path) -> None:
    file = next(path for path in other.rglob("*.yaml") if "name: small" in path.read_text(encoding="utf-8"))
    text = file.read_text(encoding="utf-8")
    assert "memory-size: 12G" in text
    file.write_text(text.replace("memory-size: 12G", "memory-size: 8G"), encoding="utf-8")
    done = gpolicy("capacity", "--compare", POLICY, other, *SNAPSHOT, "-g", "shared", "--details")
    small = next(line for line in done.stdout.splitlines() if " small " in line)
    assert " of 12G · 3 CPU · 90G" in small
    assert " of 8G · 3 CPU · 90G" in small


def test_another_first_template_is_said_with_its_number(other: Path) -> None:
    file = other / "cluster.yaml"
    text = file.read_text(encoding="utf-8").replace(
        "  disk-templates: [drbd, plain]", "  disk-templates: [plain, drbd]"
    )
    file.write_text(text, encoding="utf-8")
    done = gpolicy("capacity", "--compare", POLICY, other, *SNAPSHOT, "-g", "shared", "--details")
    small = next(line for line in done.stdout.splitlines() if " small " in line)
    assert " of 12G · 3 CPU · 90G, drbd" in small
    assert " of 12G · 3 CPU · 90G, plain" in small


def test_a_policy_with_errors_ends_it(other: Path) -> None:
    (other / "wrong.yaml").write_text("gpolicy: v1\nkind: NodeGroup\nname: x\nnodse: []\n", encoding="utf-8")
    done = gpolicy("capacity", "--compare", POLICY, other, *SNAPSHOT)
    assert done.returncode == 1
    assert "nodse" in done.stderr + done.stdout


def test_both_are_counted_under_the_limits(other: Path) -> None:
    words = ("capacity", "--compare", POLICY, other, *SNAPSHOT, "-g", "shared", "--max-node-failures", "2")
    done, data = gpolicy(*words, "--details"), json.loads(gpolicy(*words, "--format", "json").stdout)
    assert "limits of group shared: 2 nodes of a group may fail at once (option)" in done.stdout
    row = next(line.split() for line in done.stdout.splitlines() if " small " in line)
    strict = [found["capacity"]["groups"][0]["specs"] for found in data["policies"]]
    assert row[-2:] == [str(next(spec["fits"] for spec in specs if spec["name"] == "small")) for specs in strict]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--compare", POLICY), "--compare shows policies side by side"),
        (("--compare", POLICY, POLICY), "--compare shows policies side by side"),
        (("--compare", POLICY, POLICY.parent, "--score"), "--compare shows policies side by side"),
        (("--compare", POLICY, POLICY, "--format", "prometheus"), "metrics are of the cluster as it is"),
    ],
)
def test_what_cannot_be_compared_is_refused(words: tuple[str | Path, ...], said: str) -> None:
    done = gpolicy("capacity", *words, *SNAPSHOT)
    assert (done.returncode, done.stdout) == (3, "")
    assert said in done.stderr
