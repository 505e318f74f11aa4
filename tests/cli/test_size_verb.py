"""`gpolicy size`: its forms, and what its JSON promises."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft7Validator

from tests.cli.command_line import ROOT, gpolicy

SNAPSHOT = ("--state", f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}")
POLICY = ROOT / "policies" / "two-groups"
SCHEMA = json.loads((ROOT / "schemas/output/size.json").read_text(encoding="utf-8"))
NODES = ("--want", "10x large:max", "--like", "node1=8000", "--like", "node4=5000", "-g", "shared")
SIZES = ("--want", "10x memory=64G cpus=16 disk=1T", "--like", "node1")


@pytest.mark.parametrize("words", [NODES, SIZES, ("-g", "shared"), ("-g", "shared", "--lost", "node1")])
def test_the_json_is_what_the_schema_promises(words: tuple[str, ...]) -> None:
    done = gpolicy("size", POLICY, *SNAPSHOT, *words, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    data = json.loads(done.stdout)
    Draft7Validator(SCHEMA).validate(data)
    assert set(data) <= set(SCHEMA["properties"])


def test_the_text_says_what_to_buy_and_what_one_node_fewer_lacks() -> None:
    done = gpolicy("size", POLICY, *SNAPSHOT, *NODES, "--details")
    verdict = (
        "Group shared needs 3 more nodes (3 like node4.example.org) for 10 large at its largest, with N+1 redundancy"
    )
    assert verdict in done.stdout
    assert "N+1 redundancy: after the loss of any one node" in done.stdout
    assert "with 2 more nodes, 9 of 10 large at its largest would fit; the limit is memory" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--want", "1x large"), "which group?"),
        (("--like", "node1"), "--like is of no use without --want"),
        (("--want", "1x large", *("--like", "node1") * 4), "4 kinds of nodes are too many to try"),
        ((), "which group?"),
        (("-g", "gold"), "--group: there is no group 'gold'"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(words: tuple[str, ...], said: str) -> None:
    done = gpolicy("size", POLICY, *SNAPSHOT, *words)
    assert (done.returncode, done.stdout) == (3, "")
    assert said in done.stderr


def test_limits_count_and_are_said() -> None:
    done = gpolicy(
        "size", POLICY, *SNAPSHOT, *NODES, "--max-node-failures", "2", "--oversubscription", "1.5", "--details"
    )
    assert "limits of group shared: " in done.stdout
    assert (
        "Group shared needs no more nodes for 10 large at its largest, and any 2 nodes may fail at once" in done.stdout
    )
