"""Every verb goes on with what is known of a cluster where a node does not answer, and names what is not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import ROOT, Done, gpolicy

SNAPSHOT = ROOT / "policies" / "two-groups.snapshot.json"
NODE = "node2.example.org"
OTHER = "node6.example.org"
DEFAULT = f"not known for group default: {NODE} does not answer"
DEDICATED = f"not known for group dedicated: {OTHER} does not answer"
CLUSTER = "gpolicy: v1\nkind: Cluster\nname: ganeti.example.org\nganeti_version: '3.0'\n"
FEWER_SPINDLES = f"{CLUSTER}ipolicy: {{spindle-ratio: 16}}\n"
PLACED = ("place", "memory=62G", "vcpus=7", "disk=2T:3", "template=plain")


def changed(directory: Path, **nodes: dict[str, Any]) -> str:
    """Return the address of the snapshot with other fields of its nodes, by the first part of their names."""
    document = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    for name, fields in nodes.items():
        document["nodes"][f"{name}.example.org"] |= fields
    file = directory / "state.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    return f"snapshot:{file}"


@pytest.fixture
def dead(tmp_path: Path) -> str:
    """Node2 of group default does not answer."""
    return changed(tmp_path, node2={"resources": {}})


@pytest.fixture
def other(tmp_path: Path) -> str:
    """Node6 of group dedicated does not answer."""
    return changed(tmp_path, node6={"resources": {}})


def first_line(done: Done) -> str:
    return done.stdout.splitlines()[1]


@pytest.mark.parametrize(
    ("arguments", "begins"),
    [
        (("capacity",), "Group default takes 48 standard instances, or 12 in a tiered run; "),
        (("place", "memory=1G"), "new (1G memory, 1 CPU, 1G disk, drbd) goes to node1.example.org / node"),
        (("suggest",), "Sizes for 1 group; "),
        (("remedy",), "No instance has to move; "),
        (("evacuate", "-g", "spare"), "Group spare has no instances to move; "),
        (("capacity", "--lost", "node7"), "With node7.example.org lost: group default takes 48 "),
    ],
)
def test_the_other_groups_are_counted_and_the_one_is_named(arguments: tuple[str, ...], begins: str, other: str) -> None:
    done = gpolicy(*arguments, "--details", "--state", other)
    assert (done.returncode, done.stderr) == (0, "")
    assert first_line(done).startswith(begins)
    assert first_line(done).endswith(f"; {DEDICATED}")
    assert f"gnt-node modify --offline yes {OTHER}" in " ".join(done.stdout.split())
    done = gpolicy(*arguments, "--state", other, "--format", "json")
    assert json.loads(done.stdout)["unknown"] == {"dedicated": f"{OTHER} does not answer"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("capacity", "-g", "dedicated"),
        ("suggest", "-g", "dedicated"),
        (*PLACED, "group=dedicated"),
        (*PLACED, "nodes=node6,node7"),
        ("evacuate", "node6"),
    ],
)
def test_a_question_about_another_group_has_the_answer_of_ever(arguments: tuple[str, ...], dead: str) -> None:
    done, ever = (gpolicy(*arguments, "--state", state) for state in (dead, f"snapshot:{SNAPSHOT}"))
    assert (done.returncode, first_line(done)) == (ever.returncode, first_line(ever))


@pytest.mark.parametrize(
    "arguments",
    [
        ("capacity", "-g", "default"),
        ("suggest", "-g", "default"),
        ("place", "memory=1G", "group=default"),
        ("place", "memory=1G", "nodes=node1,node6"),
        ("size", "-g", "default"),
        ("evacuate", "node1"),
        ("evacuate", "-g", "dedicated", "--to", "default"),
    ],
)
def test_a_question_about_the_group_itself_is_refused_with_a_way_out(arguments: tuple[str, ...], dead: str) -> None:
    done = gpolicy(*arguments, "--state", dead)
    assert (done.returncode, done.stdout) == (3, "")
    assert DEFAULT in done.stderr
    assert f"`--offline {NODE}`" in done.stderr


@pytest.mark.parametrize("verb", [("capacity",), ("capacity", "-g", "default"), ("place", "memory=1G"), ("remedy",)])
def test_a_node_that_is_supposed_offline_is_no_longer_in_the_way(verb: tuple[str, ...], tmp_path: Path) -> None:
    """The answer is that of a cluster where the node is marked offline."""
    said = []
    for fields, options in (({}, ("--offline", "node2")), ({"offline": True}, ())):
        done = gpolicy(*verb, *options, "--details", "--state", changed(tmp_path, node2={"resources": {}, **fields}))
        assert done.stderr == ""
        assert "not known for" not in first_line(done)
        said.append(re.sub(r" \(today [^)]*\)", "", first_line(done).removeprefix(f"With {NODE} offline: ")).lower())
    assert said[0] == said[1]


def test_the_node_itself_is_evacuated_as_one_that_is_offline(tmp_path: Path) -> None:
    answers = []
    for fields in ({}, {"offline": True}):
        state = changed(tmp_path, node2={"resources": {}, **fields})
        answers.append(json.loads(gpolicy("evacuate", "node2", "--state", state, "--format", "json").stdout))
    (said,) = answers[0].pop("what_if")
    assert said.startswith(f"{NODE} offline: {NODE} does not answer; mark it so first")
    assert answers[1].pop("what_if") == []
    assert answers[0] == answers[1]


def test_metrics_keep_all_series_of_the_other_groups(dead: str) -> None:
    def series(state: str) -> set[str]:
        text = gpolicy("capacity", "--format", "prometheus", "--state", state).stdout
        return {re.sub(r'target="[^"]*",?', "", line) for line in text.splitlines() if not line.startswith("#")}

    ever, now = series(f"snapshot:{SNAPSHOT}"), series(dead)
    of_others = {line for line in ever if 'group="' in line and 'group="default"' not in line}
    assert of_others <= now
    assert 'gpolicy_capacity_group_unknown{group="default"} 1' in now
    assert "gpolicy_capacity_up{} 1" in now
    assert 'gpolicy_capacity_group_violating_instances{group="default"} 1' in now
    assert not any("_cluster_fitting_" in line for line in now)


def test_the_whole_cluster_is_not_the_headline_where_a_group_takes_more(tmp_path: Path) -> None:
    """hail accepts no request that names no group as long as one node of any group breaks N+1."""
    document = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    spare = document["nodes"]["node7.example.org"]
    spare["group"], spare["resources"]["memory_free"] = "spare", 512
    document["instances"]["dns1.example.org"] |= {
        "primary_node": "node8.example.org",
        "secondary_nodes": ["node7.example.org"],
    }
    (tmp_path / "state.json").write_text(json.dumps(document), encoding="utf-8")
    done = gpolicy("capacity", "--state", f"snapshot:{tmp_path}/state.json", "--details")
    rows = [line.split() for line in done.stdout.splitlines() if line.split()[:1] == ["standard"]]
    assert "\n  (cluster)  drbd      every size     0  " in done.stdout
    assert rows
    refused, _, taken = first_line(done).partition(". ")
    assert refused.startswith("Requests that name no group are refused: the loss of node5.example.org cannot be ")
    assert taken.startswith("Group default takes 49 standard instances of drbd, or 12 in a tiered run; group dedicated")


def policy(directory: Path, *guards: str) -> Path:
    made = directory / "policy"
    made.mkdir()
    listed = "".join(f"  - {guard}\n" for guard in guards)
    document = f"---\ngpolicy: v1\nkind: Guards\nguards:\n{listed}" if guards else ""
    (made / "policy.yaml").write_text(f"{FEWER_SPINDLES}{document}", encoding="utf-8")
    return made


def test_a_plan_is_never_green_where_a_group_was_not_looked_at(dead: str, tmp_path: Path) -> None:
    made = policy(tmp_path)
    done = gpolicy("plan", made, "--state", dead, "--details")
    assert done.returncode == 0
    assert first_line(done) == f"Can be applied; {DEFAULT} · 1 change in 1 step"
    text = gpolicy("plan", made, "--state", dead, "--format", "markdown").stdout
    assert f"⚠ **Can be applied; {DEFAULT}**" in text
    assert "✅" not in text
    notices = gpolicy("plan", made, "--state", dead, "--format", "github").stdout
    assert f"::warning title=Not everything was looked at::{DEFAULT}\n" in notices
    for said in (done.stdout, text, notices):
        assert "nothing changes in what fits" not in said
        assert "each group" not in said
        assert not re.search(r"No worse\W.*(capacity|redundancy)", said)
    figures = {line.split()[0]: line for line in done.stdout.splitlines()[2:7]}
    assert DEFAULT in figures["capacity"]
    assert DEFAULT in figures["node"]
    page = gpolicy("plan", made, "--state", dead, "--format", "html").stdout
    assert '<div class="verdict warn">' in page
    assert DEFAULT in page


def test_a_plan_is_not_to_be_applied_where_a_guard_needs_what_is_not_known(dead: str, tmp_path: Path) -> None:
    made = policy(
        tmp_path,
        "{name: keep, capacity_loss: {at_most: 10%}}",
        "{name: one-fails, node_failures: 1, group: default}",
        "{name: of-another, capacity_loss: {at_most: 10%}, group: dedicated}",
    )
    done = gpolicy("plan", made, "--state", dead, "--details")
    assert done.returncode == 1
    assert first_line(done) == f"Not to be applied: 2 guards of 3 fail; {DEFAULT} · 1 change in 1 step"
    assert f"FAILS keep: group default: cannot be measured: {NODE} does not answer" in done.stdout
    done = gpolicy("plan", made, "--state", dead, "--allow", "keep", "--allow", "one-fails", "--details")
    assert done.returncode == 0
    assert first_line(done).startswith(f"Can be applied, 2 guards overridden; {DEFAULT}")


def test_tests_are_not_passed_by_what_was_not_looked_at(dead: str, tmp_path: Path) -> None:
    made = policy(tmp_path)
    (made / "tests.yaml").write_text(
        """gpolicy: v1
kind: Test
tests:
  - {name: whole, capacity: {}, expect: {standard: 0}}
  - {name: anywhere, place: {memory-size: 33G, cpu-count: 1, disks: [2G]}, expect: {refused: true}}
  - {name: there, capacity: {group: default}, expect: {standard: 0}}
  - {name: elsewhere, redundancy: {group: dedicated}, expect: {survives: true}}
""",
        encoding="utf-8",
    )
    done = gpolicy("test", made, "--state", dead, "--output", f"junit={tmp_path}/tests.xml")
    assert done.returncode == 1
    assert "4 tests, 3 could not run" in done.stdout
    report = (tmp_path / "tests.xml").read_text(encoding="utf-8")
    assert report.count(DEFAULT) == 6


def test_the_table_of_many_clusters_names_it(dead: str, tmp_path: Path) -> None:
    policy(tmp_path)
    (tmp_path / "whole.json").write_bytes(SNAPSHOT.read_bytes())
    (tmp_path / "gpolicy.toml").write_text(
        f'[clusters.ber]\npolicy = "policy"\nstate = "{dead}"\n'
        f'[clusters.ham]\npolicy = "policy"\nstate = "snapshot:{tmp_path}/whole.json"\n',
        encoding="utf-8",
    )
    done = gpolicy("capacity", "--all", "--details", cwd=tmp_path)
    assert done.returncode == 0
    assert first_line(done) == "2 are known in part: ber, ham"  # no volume of ham was measured
    row = next(line for line in done.stdout.splitlines() if line.startswith("  ber "))
    assert DEFAULT in row
    done = gpolicy("plan", "--all", "--format", "markdown", cwd=tmp_path)
    assert "⚠ **1 gets worse: ham; 1 is known in part: ber**" in done.stdout
    assert "✅" not in done.stdout


def test_a_disk_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    document = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    resources = document["nodes"][NODE]["resources"] | {"disk_total": None, "disk_free": None}
    done = gpolicy("capacity", "--state", changed(tmp_path, node2={"resources": resources}), "--details")
    assert done.returncode == 0
    assert f"; not known for group default: {NODE} shows no disk; spindles not checked in" in first_line(done)


def test_without_the_impact_a_plan_is_not_green(tmp_path: Path) -> None:
    made = policy(tmp_path)
    done = gpolicy("plan", made, "--state", f"snapshot:{SNAPSHOT}", "--no-impact", "--format", "markdown")
    assert "⚠ **Can be applied; what the changes do was not looked at**" in done.stdout


def test_what_needs_no_cluster_is_checked_where_the_cluster_is_silent(tmp_path: Path) -> None:
    made = Path(policy(tmp_path))
    (tmp_path / "gpolicy.toml").write_text(
        f'[clusters.ber]\npolicy = "{made.name}"\nstate = "snapshot:{tmp_path}/none.json"\n', encoding="utf-8"
    )
    done = gpolicy("check", "--all", cwd=tmp_path)
    assert (done.returncode, first_line(done)) == (3, "1 could not be looked at: ber")
    assert "; the cluster was not read: " in " ".join(done.stdout.split())
    (made / "wrong.yaml").write_text(
        "gpolicy: v1\nkind: NodeGroup\nname: wrong\nipolicy: {minmx: 3}\n", encoding="utf-8"
    )
    done = gpolicy("check", "--all", cwd=tmp_path)
    assert (done.returncode, first_line(done)) == (3, "1 could not be looked at: ber")
    assert "1 error" in done.stdout
