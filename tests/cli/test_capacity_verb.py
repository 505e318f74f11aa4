from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import ROOT, STATE, gpolicy

TEXT = f"text:{ROOT / 'tests' / 'data' / 'clusters' / 'full' / 'htools.data'}"


def test_a_table_and_an_exit_code() -> None:
    done = gpolicy("capacity", "--state", TEXT, "--details")
    assert (done.returncode, done.stderr) == (0, "")
    first = done.stdout.splitlines()[1]
    assert first.startswith(
        "Group gold takes no new instance: the loss of node4 cannot be absorbed (inst5, 2G: memory, "
    )
    said, _, unsure = first.partition(
        "; hail refuses such instances in group default today: Ganeti tells it of no disk"
    )
    assert said.endswith("Group default takes 184 standard instances of ext, or 4 in a tiered run")
    assert unsure
    assert "ipolicy.vcpu-ratio" in done.stdout


def test_json_with_one_group_and_a_template() -> None:
    done = gpolicy("capacity", "--state", TEXT, "--group", "gold", "--template", "plain", "--format", "json")
    assert done.returncode == 0
    data = json.loads(done.stdout)
    assert [(group["group"], group["template"]) for group in data["groups"]] == [("gold", "plain")]
    assert [spec["name"] for spec in data["groups"][0]["specs"]] == ["1", "2"]


def test_the_score_is_shown_when_asked_for() -> None:
    done = gpolicy("capacity", "--state", TEXT, "--score", "--group", "default", "--details")
    assert "Score of group default: 2.32281467" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--state", STATE], "not known for group default: node1, node2, node3 show no memory, CPUs, disk"),
        (["--state", TEXT, "--group", "silver"], "there is no group 'silver'"),
        (["--state", TEXT, "--template", "tape"], "there is no disk template 'tape'"),
        (["--state", TEXT, "--format", "xml"], "unknown format 'xml'"),
        (["--state", "text:/nonexistent"], "no such file"),
        ([], "--state"),
    ],
)
def test_capacity_without_needed_figures_is_one_line_and_exit_code_3(arguments: list[str], message: str) -> None:
    done = gpolicy("capacity", *arguments)
    assert done.returncode == 3
    assert message in done.stderr
    assert done.stdout == ""


def test_a_template_that_is_not_enabled_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    assert gpolicy("snapshot", "--state", STATE, "--save", file).returncode == 0
    document = json.loads(file.read_text())
    document["cluster"]["own"]["enabled_disk_templates"] = ["plain"]
    file.write_text(json.dumps(document))
    done = gpolicy("capacity", "--state", f"snapshot:{file}", "--template", "rbd")
    assert done.returncode == 3
    assert "disk template rbd is not enabled" in done.stderr


SNAPSHOT = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"
POLICY = str(ROOT / "policies" / "two-groups")


def test_under_a_policy_pairs_have_their_names() -> None:
    done = gpolicy("capacity", "--state", SNAPSHOT, POLICY, "--group", "dedicated", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    (group,) = json.loads(done.stdout)["groups"]
    assert [spec["name"] for spec in group["specs"]] == ["full", "half", "quarter"]


def test_limits_that_htools_does_not_know() -> None:
    """The loss of node5 and node6 leaves a half instance without a place: nothing new is accepted."""
    arguments = ["capacity", "--state", SNAPSHOT, POLICY, "--group", "dedicated"]
    limits = ["--max-node-failures", "2", "--oversubscription", "1.5"]
    done = gpolicy(*arguments, *limits, "--details")
    assert done.stdout.splitlines()[1].startswith(
        "Group dedicated takes no new instance: the loss of node5.example.org + node6.example.org cannot be absorbed ("
    )
    assert (
        "limits of group dedicated: 2 nodes of a group may fail at once (option), memory may be over-subscribed 1.5"
        " times (option)" in done.stdout
    )
    data = json.loads(gpolicy(*arguments, *limits, "--format", "json").stdout)
    assert (data["limits"][0]["max_node_failures"], data["limits"][0]["oversubscription"]) == (2, 1.5)
    (group,) = data["groups"]
    assert [(spec["name"], spec["fits"], spec["hspace"]) for spec in group["specs"]] == [
        ("full", 0, 0),
        ("half", 0, 0),
        ("quarter", 0, 1),
    ]


def test_declared_resources() -> None:
    arguments = ["capacity", "--state", SNAPSHOT, POLICY, "--group", "dedicated", "--format", "json"]
    measured, declared = (json.loads(gpolicy(*arguments, *more).stdout) for more in ([], ["--resource-model"]))
    free = [data["groups"][0]["stranded"]["free"]["memory"] for data in (measured, declared)]
    assert free[0] - free[1] == 3 * (6144 - 4096)  # hv_state declares 6G for the node, htools takes 4096 under KVM


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--max-node-failures", "-1"], "max-node-failures is -1, it must be 0 to 8"),
        (["--max-node-failures", "9"], "max-node-failures is 9, it must be 0 to 8"),
        (["--oversubscription", "0"], "it must be above 0"),
        (["--oversubscription", "inf"], "is inf, it must be above 0 and at most 100"),
        (["/nonexistent"], "/nonexistent"),
    ],
)
def test_invalid_limits_and_policies_are_one_line(arguments: list[str], message: str) -> None:
    done = gpolicy("capacity", "--state", SNAPSHOT, *arguments)
    assert done.returncode == 3
    assert message in done.stderr
    assert done.stdout == ""


def test_markdown_names_what_binds_under_the_extra_limits() -> None:
    done = gpolicy("capacity", "--state", SNAPSHOT, "--oversubscription", "0.5", "--format", "markdown")
    assert "| oversubscription (FailMem) |" in done.stdout
