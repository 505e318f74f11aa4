"""Guards judge a part of a plan by what it touches; a part of nothing is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpolicy.apply.plan_run import guards_now
from gpolicy.cluster.state_files import read_snapshot
from gpolicy.plan.plan_file import read_plan
from tests.cli.command_line import ROOT, gpolicy

POLICY = ROOT / "policies" / "two-groups"
SNAPSHOT = ROOT / "policies" / "two-groups.snapshot.json"
OF_THE_POLICY = ("room-for-quarter", "no-shrink", "no-surprise", "survive")


def verdicts(tmp_path: Path, *options: str) -> dict[str, tuple[bool, str]]:
    """Return the verdicts on a part of the plan; they are the same when the plan file is judged again."""
    file = tmp_path / "plan.json"
    done = gpolicy("plan", POLICY, "-s", f"snapshot:{SNAPSHOT}", *options, "--save", file, "--details")
    found = {item["name"]: (item["ok"], item["message"]) for item in json.loads(file.read_text())["guards"]}
    assert done.returncode == (0 if all(ok for ok, _ in found.values()) else 1), done.stderr
    if done.returncode == 0:
        again = guards_now(read_plan(file), read_snapshot(SNAPSHOT))
        assert {item.name: (item.ok, item.message) for item in again} == found
    return found


def test_what_a_part_leaves_out_is_not_judged(tmp_path: Path) -> None:
    found = verdicts(tmp_path, "--only", "cluster:diskparams")
    assert tuple(found) == OF_THE_POLICY
    assert found["room-for-quarter"] == (True, "this part of the plan leaves out the sizes, and with them quarter")
    assert found["survive"][1].startswith("group default: survives 1 node failure"), "by its present name"


def test_what_a_part_does_not_touch_is_not_judged(tmp_path: Path) -> None:
    found = verdicts(tmp_path, "--only", "group/shared")
    assert found["room-for-quarter"] == (True, "this part of the plan does not touch group dedicated")
    assert "group dedicated" not in found["no-shrink"][1]
    assert found["survive"][1].startswith("group shared: survives 1 node failure")


def test_what_a_part_costs_is_judged(tmp_path: Path) -> None:
    found = verdicts(tmp_path, "--only", "cluster:ipolicy")
    assert not found["no-shrink"][0]
    assert found["no-surprise"] == (True, "1 instance newly violates the policy (build1.example.org), at most 1")


@pytest.mark.parametrize("options", [["--only", "group/spare"], ["--exclude", "*"]])
def test_a_part_of_nothing_is_refused(options: list[str]) -> None:
    done = gpolicy("plan", POLICY, "-s", f"snapshot:{SNAPSHOT}", *options)
    assert (done.returncode, done.stdout) == (3, "")
    assert "--only and --exclude leave nothing of 17 changes" in done.stderr
    assert "what changes: cluster, group/dedicated, group/shared, node/" in done.stderr


def test_a_group_that_is_renamed_is_managed() -> None:
    done = gpolicy(
        "plan", POLICY, "-s", f"snapshot:{SNAPSHOT}", "--only", "cluster:diskparams", "--no-impact", "--details"
    )
    assert "not managed: group spare, which no document declares" in done.stdout
