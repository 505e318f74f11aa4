"""160 random changes on a real cluster: the instances in Ganeti's warnings and in `gnt-cluster verify`."""

from __future__ import annotations

import copy
import gzip
import json
from typing import Any

import pytest

from gpolicy.analysis.violations import ParameterBreach
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.state_files import parse_config
from tests.impact.changes import violation_change
from tests.impact.messages import breaches_told, violated
from tests.impact.transcripts import DATA, separate_messages

Row = dict[str, Any]


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    text = gzip.decompress((DATA / "violations" / "modifies.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def state_of(whole: Row, parts: Row, *, parameters: Row | None = None) -> ClusterState:
    """Return the cluster with the recorded parts, and the node parameters of other parts."""
    config = {**whole, "nodes": parts["nodes"], "nodegroups": copy.deepcopy(parts["nodegroups"])}
    config["cluster"] = {**whole["cluster"], **parts["cluster"]}
    if parameters is not None:
        config["cluster"]["ndparams"] = parameters["cluster"]["ndparams"]
        for uuid, group in config["nodegroups"].items():
            group["ndparams"] = parameters["nodegroups"][uuid]["ndparams"]
    return parse_config(json.dumps(config).encode(), where="recorded", source="config:recorded")


def test_modify_warned_of_exactly_those_that_newly_violate(rows: list[Row]) -> None:
    whole = rows[0]["config"]
    before = {"cluster": whole["cluster"], "nodegroups": whole["nodegroups"], "nodes": whole["nodes"]}
    modified = warned = moved = 0
    for row in rows[1:]:
        assert row["exit"] == 0
        if row["argv"][1] == "modify":
            after = state_of(whole, row["after"], parameters=before)
            change = violation_change(state_of(whole, before), after)
            assert sorted(item.instance for item in change.newly) == row["warned"], row["argv"]
            modified, warned = modified + 1, warned + bool(row["warned"])
        else:
            change = violation_change(state_of(whole, before), state_of(whole, row["after"]))
            moved += bool(change.newly)
            assert row["warned"] == []
        before = row["after"]
    assert (modified, warned, moved) == (129, 16, 6)


def test_verify_told_the_same_of_every_instance(rows: list[Row]) -> None:
    instances = exclusive = 0
    for row in rows[1:]:
        if "verify" not in row:
            continue
        state = state_of(rows[0]["config"], row["after"])
        still = violation_change(state, state).still
        told: dict[str, list[ParameterBreach]] = {}
        for line in row["verify"]:
            _, code, kind, name, message = line.split(":", 4)
            assert (code, kind) == ("EINSTANCEPOLICY", "instance")
            told[name] = breaches_told(separate_messages(message))
        assert {item.instance: violated(item.after) for item in still} == told
        instances += len(told)
        exclusive += sum(item.after.exclusive_storage for item in still if item.after)
    assert (instances, exclusive) == (556, 190)
