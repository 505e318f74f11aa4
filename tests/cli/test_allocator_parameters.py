"""What the cluster passes to hail counts in every answer of hail, and says so in one line where it decides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.cli.command_line import ROOT, Done, gpolicy

SNAPSHOT = ROOT / "policies" / "two-groups.snapshot.json"
ONE_NODE = """default|uuid-d|preferred||

node1.example.org|96659|1024|46122|408000|68000|24|N|uuid-d|1||N|0|1|1.0

vm1.example.org|8192|20480|2|running|Y|node1.example.org||ext||1|-|N


|128,1,1024,1,1,1|128,1,1024,1,1,1;32768,8,1048576,16,8,12|ext|4.0|32.0
default|128,1,1024,1,1,1|128,1,1024,1,1,1;32768,8,1048576,16,8,12|ext|4.0|32.0
"""
WANTED = ("memory=4G", "disk=20G", "template=drbd", "group=default")


def state(directory: Path, stored: dict[str, Any]) -> str:
    """Return a copy of the example whose cluster passes these parameters to its allocator."""
    read = json.loads(SNAPSHOT.read_text())
    read["cluster"]["own"]["default_iallocator_params"] = stored
    file = directory / "state.json"
    file.write_text(json.dumps(read))
    return f"snapshot:{file}"


def policy(directory: Path, parameters: str, name: str = "ganeti.example.org") -> Path:
    file = directory / "policy.yaml"
    head = f"gpolicy: v1\nkind: Cluster\nname: {name}\ndefault_iallocator: hail\n"
    file.write_text(f"{head}default_iallocator_params: {parameters}\n")
    return file


def decided(done: Done) -> list[str]:
    return [line for line in done.stdout.splitlines() if "decide this" in line]


def test_a_flag_of_the_policy_counts_where_the_source_shows_no_parameters(tmp_path: Path) -> None:
    (tmp_path / "one.data").write_text(ONE_NODE)
    asked = ("place", "memory=2G", "vcpus=4", "disk=10G", "--state", f"text:{tmp_path / 'one.data'}")
    without = gpolicy(*asked)
    assert "goes nowhere: refused by n1-capacity (1 candidate)" in without.stdout
    assert decided(without) == []
    done = gpolicy(*asked, "--details", "-p", policy(tmp_path, "{no-capacity-checks: ~}", "one"))
    assert (done.returncode, done.stdout.splitlines()[1]) == (
        0, "new (2G memory, 4 CPUs, 10G disk, ext) goes to node1.example.org in group default",
    )  # fmt: skip
    assert decided(done) == [
        "default_iallocator_params (no-capacity-checks) decide this: without them it would go nowhere"
    ]


def test_the_nodes_of_the_cluster_go_before_those_of_the_request(tmp_path: Path) -> None:
    only = state(tmp_path, {"restrict-allocation-to": "node3.example.org,node4.example.org"})
    done = gpolicy("place", *WANTED, "nodes=node1.example.org,node2.example.org", "--state", only, "--details")
    assert "goes to node3.example.org / node4.example.org" in done.stdout
    assert len(decided(done)) == 1
    short = gpolicy(
        "place", *WANTED, "--state", state(tmp_path, {"restrict-allocation-to": "node3,node4"}), "--details"
    )
    assert "restrict-allocation-to names no node of this cluster by its full name" in short.stdout
    assert short.returncode == 1


def test_the_policy_goes_before_the_state(tmp_path: Path) -> None:
    broken = state(tmp_path, {"no-capacity-checks": True})
    assert gpolicy("place", *WANTED, "--state", broken).returncode == 1
    done = gpolicy("place", *WANTED, "--state", broken, "-p", policy(tmp_path, "{no-capacity-checks: null}"))
    assert (done.returncode, decided(done)) == (0, [])  # it changes nothing of this answer


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        ({"bogus": None}, "unrecognized option `--bogus'"),
        ({"no-capacity-checks": True}, "Ganeti cannot pass `no-capacity-checks`"),
    ],
)
def test_parameters_with_which_hail_fails_are_told(stored: dict[str, Any], why: str, tmp_path: Path) -> None:
    source = state(tmp_path, stored)
    done = gpolicy("place", *WANTED, "--state", source, "--format", "json")
    answer = json.loads(done.stdout)
    jsonschema.validate(answer, json.loads((ROOT / "schemas" / "output" / "place.json").read_text()))
    assert (done.returncode, answer["ok"], answer["candidates"]) == (1, False, [])
    assert answer["reason"].startswith(f"hail refuses every request, by default_iallocator_params: {why}")
    assert "without them it would go to node1.example.org / node3.example.org" in answer["notes"][0]
    emptied = gpolicy("evacuate", "node2", "--state", source, "--details")
    assert emptied.returncode == 1
    assert "8 of 8 instances stay" in emptied.stdout
    assert "without them 8 instances would end up elsewhere" in emptied.stdout
    assert why in emptied.stdout
    lost = gpolicy("place", *WANTED, "--state", source, "--lost", "node2", "--details")
    assert why in lost.stdout


def test_soft_errors_are_ignored_in_evacuations(tmp_path: Path) -> None:
    plain = gpolicy("evacuate", "node1", "--state", f"snapshot:{SNAPSHOT}", "--details")
    assert "2 of 7 instances stay" in plain.stdout
    done = gpolicy("evacuate", "node1", "--state", state(tmp_path, {"ignore-soft-errors": None}), "--details")
    asked = gpolicy("evacuate", "node1", "--state", f"snapshot:{SNAPSHOT}", "--ignore-soft-errors", "--details")
    assert done.stdout.splitlines()[1] == asked.stdout.splitlines()[1]
    assert decided(done) == [
        "default_iallocator_params (ignore-soft-errors) decide this: without them 2 instances would end up elsewhere"
    ]


def test_the_load_of_monitoring_daemons_is_not_known(tmp_path: Path) -> None:
    done = gpolicy("place", *WANTED, "--state", state(tmp_path, {"mond": "yes"}), "--details")
    assert done.returncode == 0
    assert "weighs the CPU load that monitoring daemons report (mond), which is not known here" in done.stdout
    assert decided(done) == []


def test_a_test_asks_hail_with_the_parameters_of_the_policy(tmp_path: Path) -> None:
    file = policy(tmp_path, "{no-capacity-checks: null}", "one")
    file.write_text(
        f"{file.read_text()}---\ngpolicy: v1\nkind: Test\ntests:\n  - name: it fits without a second node\n"
        '    "on": {simulate: {memory: 20G, cpus: 8, disk: 300G, nodes: [{name: a}]}}\n'
        "    place: {memory-size: 2G, cpu-count: 4, disks: [10G], disk-template: plain}\n    expect: {refused: false}\n"
    )
    assert gpolicy("test", file).returncode == 0
    file.write_text(file.read_text().replace("{no-capacity-checks: null}", "{}"))
    assert gpolicy("test", file).returncode == 1


def test_what_the_cluster_has_is_adopted_and_planned_back(tmp_path: Path) -> None:
    stored = {"no-capacity-checks": None, "restrict-allocation-to": "node1.example.org,node2.example.org"}
    source, adopted = state(tmp_path, stored), tmp_path / "adopted"
    assert gpolicy("adopt", "--save", adopted, "--state", source).returncode == 0
    assert "default_iallocator_params: {no-capacity-checks: null, restrict" in (adopted / "cluster.yaml").read_text()
    assert gpolicy("plan", adopted, "--state", source).returncode == 0
    planned = gpolicy("plan", adopted, "--state", f"snapshot:{SNAPSHOT}", "--format", "json")
    (step,) = json.loads(planned.stdout)["steps"]
    words = r"-no-capacity-checks,restrict-allocation-to=node1.example.org\,node2.example.org"
    assert step["argv"] == ["gnt-cluster", "modify", f"--default-iallocator-params={words}"]
    assert step["rapi"]["body"] == {"default_iallocator_params": stored}
    assert step["inverse"]["argv"] == ["gnt-cluster", "modify", "--default-iallocator-params="]


def test_what_ganeti_cannot_pass_is_left_out_of_the_policy(tmp_path: Path) -> None:
    adopted = tmp_path / "adopted"
    gpolicy("adopt", "--save", adopted, "--state", state(tmp_path, {"no-capacity-checks": True}))
    text = " ".join((adopted / "cluster.yaml").read_text().replace("#", "").split())
    assert "neither a text nor null, so Ganeti fails to run any allocator" in text
