"""What verbs say of their work: what was compared, counted and written, and which command comes next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import STATE, gpolicy, policy

CHANGE = "candidate_pool_size: 3\n"
UNSAFE = "master_netmask: 24\n"


@pytest.mark.parametrize(("text", "has_next"), [(CHANGE, True), (UNSAFE, False), ("", False)])
def test_a_plan_file_names_the_next_command(tmp_path: Path, text: str, has_next: bool) -> None:
    file = tmp_path / "my plan.json"
    said = gpolicy("plan", policy(tmp_path, text), "--state", STATE, "--save", file).stdout
    assert f"\nwrote {file}: gpolicy show '{file}' shows it again\n" in said
    following = f"next: gpolicy apply '{file}' --to DST\n"
    assert said.endswith(following) is has_next
    assert ("next:" in said) is has_next


def test_a_plan_file_of_an_earlier_run_is_named(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    assert "earlier" not in gpolicy("plan", policy(tmp_path, CHANGE), "--state", STATE, "--save", file).stderr
    done = gpolicy("plan", policy(tmp_path, "candidate_pool_size: x\n"), "--state", STATE, "--save", file)
    assert done.returncode == 1
    assert f"note: {file} is of an earlier plan\n" in done.stderr


@pytest.mark.parametrize("form", ["json", "markdown", "html", "github"])
def test_other_forms_of_a_plan_say_nothing_of_the_file(tmp_path: Path, form: str) -> None:
    file = tmp_path / "plan.json"
    done = gpolicy("plan", policy(tmp_path, CHANGE), "--state", STATE, "--save", file, "--format", form)
    assert "next:" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "objects"), [("", "1 object"), (f"---\n{'gpolicy: v1'}\nkind: NodeGroup\nname: default\n", "2 objects")]
)
def test_drift_says_what_it_compared(tmp_path: Path, text: str, objects: str) -> None:
    file = policy(tmp_path, text)
    said = gpolicy("drift", file, "--state", STATE, "--details").stdout
    assert said.startswith("Drift of cluster cluster from its policy\nNone: ")
    groups = ", 1 group" if "NodeGroup" in text else ""
    assert f"\ncompared: {file} (1 file{groups}) with {objects} of {STATE}\n" in said


def test_a_snapshot_counts_in_words(tmp_path: Path) -> None:
    state = "sim:preferred,1,1T,32G,8"
    said = gpolicy("snapshot", "--state", state, "--save", tmp_path / "kept.json").stdout
    assert "1 group, 1 node, 0 instances\n" in said
