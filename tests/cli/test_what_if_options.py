"""The options that suppose something of a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import ROOT, gpolicy
from tests.cli.test_capacity_compared import without_moves

SNAPSHOT = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"
POLICY = ROOT / "policies" / "two-groups"
MORE = ("--with", "2x like:node1 in default")
SAID = "2 more nodes like node1.example.org in group default"


@pytest.mark.parametrize(
    "verb", [["capacity"], ["place", "memory=8G", "group=default"], ["suggest", "--group", "default"]]
)
def test_the_verdict_or_the_basis_says_what_is_supposed(verb: list[str]) -> None:
    done = gpolicy(*verb, "--state", SNAPSHOT, *MORE)
    assert SAID.replace("node1.example.org", "node1") in " ".join(done.stdout.split())
    assert SAID in gpolicy(*verb, "--details", "--state", SNAPSHOT, *MORE).stdout
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


def test_a_plan_on_a_supposed_cluster_is_not_carried_out(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(gpolicy("plan", POLICY, "--state", SNAPSHOT, *MORE, "--format", "json").stdout, encoding="utf-8")
    done = gpolicy("render", file)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"its guards were judged on a supposed cluster: {SAID}" in done.stderr


def test_the_names_of_a_plan_are_those_before_it(tmp_path: Path) -> None:
    pair = "{memory-size: %s, cpu-count: 1, disk-size: 1T, disk-count: 1, nic-count: 1, spindle-use: 1}"
    (tmp_path / "policy.yaml").write_text(
        "gpolicy: v1\nkind: NodeGroup\nname: dedicated\nipolicy:\n  minmax:\n"
        f"    - {{name: most, min: {pair % '200G'}, max: {pair % '240G'}}}\n",
        encoding="utf-8",
    )
    words = ("plan", tmp_path, "--state", SNAPSHOT, "--with")
    done = gpolicy(*words, "1x most in dedicated")
    assert (done.returncode, done.stdout) == (3, "")
    assert "there is no size 'most' in group dedicated" in done.stderr
    assert "With 1 more size 1 at its smallest in group dedicated: " in gpolicy(*words, "1x 1 in dedicated").stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan", POLICY, *MORE, "--save", "plan.json"], "a plan that is kept is about the cluster as it is"),
        (["plan", POLICY, *MORE, "--no-impact"], "what is supposed counts in the impact only"),
        (["plan", POLICY, "--with", "1x like:node1 in shared"], "--with: there is no group 'shared'"),
        (["capacity", *MORE, "--format", "prometheus"], "metrics are of the cluster as it is"),
        (["capacity", "--with", "2 like:node1"], "--with '2 like:node1' cannot be read"),
        (["capacity", "--with", "500x 1:max in default"], "of 500 size 1 at its largest fit in group default"),
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


@pytest.mark.parametrize("verb", [["capacity", "-g", "default"], ["place", "memory=1G", "group=default"]])
def test_more_instances_are_in_the_group_that_a_run_is_about(verb: list[str]) -> None:
    done = gpolicy(*verb, "--state", SNAPSHOT, "--with", "8x 1")
    assert "With 8 more size 1 at its smallest in group default: " in done.stdout
    assert "--with: 1 in which group?" in gpolicy("capacity", "--state", SNAPSHOT, "--with", "8x 1").stderr


def test_capacity_shows_what_fits_now_and_as_supposed() -> None:
    words = ("capacity", "--state", SNAPSHOT, "-g", "default")
    now, then = (gpolicy(*words, *more, "-f", "json").stdout for more in ((), ("--lost", "node1")))
    before, after = json.loads(now), json.loads(then)
    assert before["before"] is None
    as_before = without_moves({"groups": before["groups"], "cluster": before["cluster"]})
    assert after["before"] == as_before
    text = gpolicy(*words, "--lost", "node1", "--max-node-failures", "1", "--details").stdout
    fits = [str(data["groups"][0]["standard"]["fits"]) for data in (before, after)]
    assert fits[1] == "0"  # hail refuses all while an instance has its mirror on the lost node
    assert f"With node1.example.org lost: group default takes no new instance (today {fits[0]} standard, " in text
    rows = [line.split() for line in text.splitlines() if "standard" in line]
    assert next(row for row in rows if row[0] == "standard")[1:3] == fits
