"""The options that suppose something of a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import ROOT, gpolicy

SNAPSHOT = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"
POLICY = ROOT / "policies" / "two-groups"
MORE = ("--with", "2x like:node1 in default")
SAID = "2 more nodes like node1.example.org in group default"


@pytest.mark.parametrize(
    "verb", [["capacity"], ["place", "memory=8G", "group=default"], ["suggest", "--group", "default"]]
)
def test_the_verdict_or_the_basis_says_what_is_supposed(verb: list[str]) -> None:
    done = gpolicy(*verb, "--state", SNAPSHOT, *MORE)
    assert SAID in done.stdout
    data = json.loads(gpolicy(*verb, "--state", SNAPSHOT, *MORE, "--format", "json").stdout)
    assert data["what_if"] == [SAID]


def test_a_plan_supposes_the_same_before_and_after() -> None:
    arguments = ("plan", POLICY, "--state", SNAPSHOT, "--format", "json")
    now = json.loads(gpolicy(*arguments).stdout)
    then = json.loads(gpolicy(*arguments, *MORE).stdout)
    assert (now["impact"]["what_if"], then["impact"]["what_if"]) == ([], [SAID])
    assert then["changes"] == now["changes"]
    assert then["steps"] == now["steps"]
    capacities = [data["impact"]["capacity"]["groups"] for data in (now, then)]
    standard = [next(item for item in groups if item["group"] == "shared")["standard"] for groups in capacities]
    assert standard[1]["before"]["fits"] > standard[0]["before"]["fits"]
    assert standard[1]["after"]["fits"] > standard[0]["after"]["fits"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan", POLICY, *MORE, "-o", "plan.json"], "a plan that is kept is about the cluster as it is"),
        (["capacity", *MORE, "--format", "prometheus"], "metrics are of the cluster as it is"),
        (["capacity", "--with", "2 like:node1"], "--with '2 like:node1' cannot be read"),
        (["capacity", "--with", "500x 1:max in default"], "of 500 pair 1:max fit in group default"),
        (["capacity", "--upgrade", "node1 ram=+4G"], "--upgrade: unknown 'ram'"),
        (["place", "memory=4G", "--lost", "nod1"], "--lost: there is no node 'nod1'"),
        (["suggest", "--move", "node1 default"], "--move 'node1 default' cannot be read"),
    ],
)
def test_what_cannot_be_supposed_is_said(arguments: list[str], said: str, tmp_path: Path) -> None:
    done = gpolicy(*arguments, "--state", SNAPSHOT, cwd=tmp_path)
    assert done.returncode == 3
    assert said in done.stderr
    assert not (tmp_path / "plan.json").exists()
