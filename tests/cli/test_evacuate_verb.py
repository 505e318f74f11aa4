"""`gpolicy evacuate`: its forms, what its JSON promises, and what is refused."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from gpolicy.remedy.saved_remedy import read_procedure
from tests.cli.command_line import ROOT, gpolicy

SNAPSHOT = ("--state", f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}")
SCHEMA = json.loads((ROOT / "schemas/output/evacuate.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "words",
    [("node1",), ("node1,node2", "--ignore-soft-errors"), ("-g", "default"), ("node8", "--to", "default"), ("node5",)],
)
def test_the_json_is_what_the_schema_promises(words: tuple[str, ...]) -> None:
    done = gpolicy("evacuate", *SNAPSHOT, *words, "--format", "json")
    data = json.loads(done.stdout)
    Draft7Validator(SCHEMA).validate(data)
    assert set(data) == set(SCHEMA["properties"])
    assert (done.returncode == 0) is data["ok"]
    assert [item["job_set"] for item in data["moved"]] == sorted(item["job_set"] for item in data["moved"])
    assert data["copied"] == sum(item["copied"] for item in data["moved"])


def test_the_text_says_what_moves_what_stays_and_why() -> None:
    done = gpolicy("evacuate", *SNAPSHOT, "node1", "--details")
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    assert lines[1] == "node1.example.org cannot be emptied: 2 of 7 instances stay"
    assert "exclusion-tags: node4.example.org: has service:dns already [FailTags]" in done.stdout
    assert "with --ignore-soft-errors nothing would stay (against exclusion tags" in done.stdout
    assert "gnt-node evacuate --force" not in done.stdout  # Ganeti would move nothing


def test_for_a_reboot_only_what_runs_there_moves_and_ganeti_can_ask_the_same() -> None:
    done = gpolicy("evacuate", *SNAPSHOT, "node2", "--primary-only", "--ignore-soft-errors", "--details")
    assert done.returncode == 0
    assert (
        "node2.example.org can be emptied of what runs there: 4 instances move in 4 jobs, no disk to copy"
        in done.stdout
    )
    command = "gnt-node evacuate --force --ignore-soft-errors --primary-only --iallocator hail node2.example.org"
    assert f"`{command}` asks hail the same" in done.stdout


def test_both_nodes_of_an_instance_move_where_both_are_emptied() -> None:
    data = json.loads(gpolicy("evacuate", *SNAPSHOT, "node1,node2", "-f", "json").stdout)
    first = data["moved"][0]
    assert (first["instance"], first["before"]) == ("build1.example.org", ["node2.example.org", "node1.example.org"])
    assert [step["what"] for step in first["steps"]] == ["copy disks", "migrate", "copy disks"]
    leaving = set(data["leaving"])
    stays = {item["instance"] for item in data["stays"]}
    last = {item["instance"]: item["after"] for item in data["moved"]}
    assert all(leaving.isdisjoint(nodes) for name, nodes in last.items() if name not in stays)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "what is to be emptied?"),
        (("node1", "-g", "default"), "NODE and --group exclude one another"),
        (("node99",), "there is no node 'node99'"),
        (("-g", "gold"), "--group: there is no group 'gold'"),
        (("-g", "default", "--to", "default"), "--to: group default is the one to be emptied"),
        (("-g", "spare", "--to", "spare"), "--to: group spare is the one to be emptied"),
        (("node1", "--to", "default"), "--to: build1.example.org, which is to move, runs in group default"),
        (("node1", "--primary-only", "--secondary-only"), "exclude one another"),
        (("-g", "default", "--primary-only"), "an instance changes its group with all of its nodes"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(words: tuple[str, ...], said: str) -> None:
    done = gpolicy("evacuate", *SNAPSHOT, *words)
    assert (done.returncode, done.stdout) == (3, "")
    assert said in done.stderr


def test_a_secondary_node_that_is_offline_is_named_so() -> None:
    done = gpolicy("evacuate", *SNAPSHOT, "node1", "--primary-only", "--offline", "node2", "--details")
    assert done.returncode == 1
    assert "memory: node2.example.org: offline or drained, so none of its memory counts as free [FailMem]" in (
        done.stdout
    )


def test_a_forthcoming_instance_has_no_disk_to_copy(tmp_path: Path) -> None:
    state = json.loads((ROOT / "policies" / "two-groups.snapshot.json").read_text(encoding="utf-8"))
    words = ("node1", "--secondary-only", "--format", "json")
    copied = json.loads(gpolicy("evacuate", *SNAPSHOT, *words).stdout)["copied"]
    git = state["instances"]["git.example.org"]
    git["forthcoming"] = True
    file = tmp_path / "forthcoming.json"
    file.write_text(json.dumps(state), encoding="utf-8")
    data = json.loads(gpolicy("evacuate", "--state", f"snapshot:{file}", *words).stdout)
    assert "git.example.org" in {item["instance"] for item in data["moved"]}
    assert data["copied"] == copied - sum(disk["size"] for disk in git["disks"])


def test_a_node_without_instances_is_empty_already() -> None:
    done = gpolicy("evacuate", *SNAPSHOT, "--with", "like:node1", "node1.example.org+1")
    assert done.returncode == 0
    assert "node1.example.org+1 has no instances to move" in done.stdout


def test_what_a_reboot_needs_is_said_where_disks_would_be_copied() -> None:
    said = gpolicy("evacuate", *SNAPSHOT, "node2").stdout
    assert "for a reboot  4 move  --primary-only is enough; no disk to copy" in said
    assert "for a reboot  2 of 4 stay" in gpolicy("evacuate", *SNAPSHOT, "node1").stdout
    assert "for a reboot" not in gpolicy("evacuate", *SNAPSHOT, "node2", "--primary-only").stdout


def test_of_several_nodes_it_says_what_happens_if_each_is_emptied_alone() -> None:
    done = gpolicy("evacuate", *SNAPSHOT, "node[1-4]", "--primary-only")
    assert "one by one  1 of 4  can be emptied: 2 stay on node1, 2 stay on node3, 3 stay on node4" in done.stdout
    data = json.loads(gpolicy("evacuate", *SNAPSHOT, "node[1-4]", "--primary-only", "-f", "json").stdout)
    alone = json.loads(gpolicy("evacuate", *SNAPSHOT, "node2", "--primary-only", "-f", "json").stdout)
    assert [item["node"].partition(".")[0] for item in data["in_turn"]] == ["node1", "node2", "node3", "node4"]
    assert data["in_turn"][1] == {"node": "node2.example.org", "jobs": len(alone["moved"]), "copied": 0, "stays": []}


def test_the_moves_are_kept_for_apply_and_as_a_script(tmp_path: Path) -> None:
    file, script = tmp_path / "moves.json", tmp_path / "moves.sh"
    done = gpolicy("evacuate", *SNAPSHOT, "node2", "--rate", "100M", "--save", file, "--script", script)
    assert "1.2T of disk to copy in 3 h 35 min" in done.stdout
    assert done.stdout.splitlines()[-3:] == [
        f"wrote {file}: gpolicy show {file} shows it again",
        f"next: gpolicy apply {file} --to DST --job-timeout 10800",
        f"wrote {script}: read it, and run it on the master of the cluster",
    ]
    procedure = read_procedure(file)
    answer = json.loads(gpolicy("evacuate", *SNAPSHOT, "node2", "-f", "json").stdout)
    commands = [step["argv"] for job in answer["moved"] for step in job["steps"]]
    assert [list(step.command.argv or ()) for step in procedure.steps] == commands
    assert all(step.inverse.commands for step in procedure.steps)
    text = script.read_text(encoding="utf-8")
    assert all(shlex.join(argv) in text for argv in commands)
    told, shown = gpolicy("evacuate", *SNAPSHOT, "node2", "--rate", "100M").stdout, gpolicy("show", file).stdout
    checked = "commands and guards were checked; the other figures are as the file says\n"
    assert shown.replace(checked, "") == told.replace("next: add --save FILE for gpolicy apply, or --script FILE\n", "")


def test_what_moves_break_is_said_where_soft_errors_are_ignored() -> None:
    done = gpolicy("evacuate", *SNAPSHOT, "node1", "--primary-only", "--ignore-soft-errors")
    verdict = " ".join(done.stdout.split())
    assert "; but worse: 2 new conflicts: dns1, dns2 have the exclusion tag service:dns on node4" in verdict
    assert "node1.example.org is the master: run gnt-cluster master-failover on another node first" in done.stdout
    assert "but worse" not in gpolicy("evacuate", *SNAPSHOT, "node2", "--ignore-soft-errors").stdout


def test_a_second_word_of_nodes_says_how_to_write_several() -> None:
    done = gpolicy("evacuate", *SNAPSHOT, "node1", "node2")
    assert done.returncode == 3
    assert "too many arguments: `node2`\n  write several names as one word, with commas" in done.stderr


def test_instances_that_stay_for_one_reason_share_a_row_with_a_legend() -> None:
    done = gpolicy("evacuate", *SNAPSHOT, "-g", "default", "--details")
    rows = [line.strip() for line in done.stdout.splitlines() if "group spare: Not enough online nodes" in line]
    assert rows == ["group dedicated: 6 refused by memory (FailMem), group spare: Not enough online nodes"]
    assert "\nFailMem: htools' word" in done.stdout


def test_moves_that_were_kept_become_a_script_later(tmp_path: Path) -> None:
    file, script, later = (tmp_path / name for name in ("moves.json", "moves.sh", "later.sh"))
    gpolicy("evacuate", *SNAPSHOT, "node2", "--save", file, "--script", script)
    gpolicy("render", file, "--script", later)
    asked, rendered = (path.read_text(encoding="utf-8") for path in (script, later))
    assert "gpolicy evacuate node2 --state local:" in asked
    unlike = [line for line in rendered.splitlines() if line not in asked.splitlines()]
    assert [("--back" in line, "gnt-instance list" in line) for line in unlike] == [(True, False), (False, True)]
    subprocess.run(["sh", "-n", later], check=True)
    refused = gpolicy("render", file, "--rollback")
    assert (refused.returncode, "run it with --back" in refused.stderr) == (3, True)


def test_what_does_not_fit_on_the_screen_is_counted_and_what_moves_break_is_said_where_something_stays() -> None:
    said = gpolicy("evacuate", *SNAPSHOT, "node4").stdout
    assert "\nMoves: 8 moves\n" in said
    verdict = gpolicy("evacuate", *SNAPSHOT, "node4", "--primary-only", "--ignore-soft-errors", "-q").stdout
    assert " ".join(verdict.split()).startswith(
        "node4 cannot be emptied of what runs there: 1 of 5 instances stays; but worse: 2 new conflicts: "
    )
