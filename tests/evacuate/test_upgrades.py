"""Upgrades and reboots of tiny clusters: live migration alone is found wherever any order of moves does it."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from gpolicy.cluster.htools_sources import parse_text
from gpolicy.cluster.state import ClusterState
from gpolicy.evacuate.evacuation import EvacuationRequest, WavesReport
from gpolicy.evacuate.in_turn import find_waves
from gpolicy.progress import after
from gpolicy.remedy.saved_remedy import read_procedure
from gpolicy.report.waves_answer import WAVES_DOCUMENT, waves_answer
from tests.cli.command_line import ROOT, gpolicy
from tests.evacuate.all_upgrades import EveryOrder, upgradable
from tests.evacuate.test_evacuation_ends import two_groups
from tests.evacuate.waves_replayed import check_waves
from tests.remedy.small_clusters import small_cluster

SNAPSHOT = ("--state", f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}")


def waves_of(state: ClusterState, **words: object) -> WavesReport:
    return find_waves(state, replace(EvacuationRequest(), **words))  # type: ignore[arg-type]


def check_that_can_and_cannot_are_true(state: ClusterState, *, upgrade: bool) -> None:
    report = waves_of(state)
    check_waves(state, report)
    assert (report.upgrade is not None) is upgrade
    stuck = [item for item in report.halted if not item.reason.startswith("nothing moves")]
    can = EveryOrder(state).can_all_go(upgrade=upgrade)
    assert can is (not stuck and not report.copied) or (not can and report.copied > 0)


@pytest.mark.parametrize("seed", [0, *range(4, 13), 14, 20, 40, 59])
def test_a_way_is_found_where_there_is_one(seed: int) -> None:
    state, _ = small_cluster(seed)
    check_that_can_and_cannot_are_true(state, upgrade=False)
    check_that_can_and_cannot_are_true(upgradable(state), upgrade=True)


@pytest.mark.full
def test_a_way_is_found_where_there_is_one_in_many() -> None:
    for seed in range(60, 80):
        state, _ = small_cluster(seed)
        check_that_can_and_cannot_are_true(state, upgrade=False)
        check_that_can_and_cannot_are_true(upgradable(state), upgrade=True)


def test_an_upgrade_goes_on_with_the_nodes_that_are_old() -> None:
    state = upgradable(small_cluster(0)[0])
    done = replace(state.nodes["node1"], tags=frozenset({"hv:new"}))
    state = replace(state, nodes={**state.nodes, "node1": done})
    report = waves_of(state)
    check_waves(state, report)
    assert set(report.leaving) == state.nodes.keys() - {"node1"}
    assert waves_answer(report).verdict.startswith("Upgrade hv:old to hv:new in ")
    both = replace(state.cluster, tags=state.cluster.tags | {"htools:allowmigration:hv:new::hv:old"})
    assert waves_of(replace(state, cluster=both)).upgrade is None


def test_old_nodes_without_a_tag_are_told_of() -> None:
    state = small_cluster(0)[0]
    tagged = replace(state, cluster=upgradable(state).cluster)
    assert not waves_of(tagged).hint
    new = replace(state.nodes["node1"], tags=frozenset({"hv:new"}))
    report = waves_of(replace(tagged, nodes={**state.nodes, "node1": new}))
    assert report.upgrade is None
    assert "tag the old nodes first (gnt-node add-tags NODE hv:old)" in report.hint
    assert waves_of(replace(tagged, nodes={"node1": new}, instances={})).hint == ""


def test_without_a_node_that_is_online_nothing_is_promised() -> None:
    state = small_cluster(0)[0]
    nodes = {name: replace(node, offline=True) for name, node in state.nodes.items()}
    assert waves_answer(waves_of(replace(state, nodes=nodes))).verdict.startswith("There is no node that could go")


def test_without_time_each_node_goes_alone() -> None:
    state = upgradable(small_cluster(8)[0])
    report = find_waves(state, EvacuationRequest(), stop=after(0))
    check_waves(state, report)
    assert not report.exhaustive
    assert [len(wave.nodes) for wave in report.waves] == [1] * len(state.nodes)
    assert {wave.waits for wave in report.waves[1:]} == {"the search ended early"}
    assert any("ended early" in note for note in waves_answer(report).notes)


IPOLICY = "1024,1,10240,1,1,1|128,1,1024,1,1,1;8192,8,1048576,4,8,8|drbd|8.0|32.0"
CHAIN = "\n".join(
    [
        "g0|uuid-0|preferred||\n",
        *(f"n{n}|16384|1024|14336|1048576|1028096|8|N|uuid-0|1||N|0|0|1.0" for n in range(1, 4)),
        "n4|16384|1024|15360|1048576|1038336|8|N|uuid-0|1||N|0|0|1.0\n",
        *(f"i{n}|1024|10240|1|running|Y|n{n}|n{n + 1}|drbd|svc:a|1|-|N" for n in range(1, 4)),
        "\nhtools:iextags:svc\n",
        *(f"{owner}|{IPOLICY}" for owner in ("", "g0")),
    ]
)


def test_others_make_room_in_turn() -> None:
    """The one on n3 goes to n4 for the sake of the one on n2, which goes for the sake of one that must leave n1."""
    report = waves_of(parse_text(f"{CHAIN}\n", where="a text", source="text:chain"))
    check_waves(parse_text(f"{CHAIN}\n", where="a text", source="text:chain"), report)
    assert not report.halted
    (wave,) = (wave for wave in report.waves if "n1" in wave.nodes)
    assert [move.instance for move in wave.out] == ["i3", "i2", "i1"]
    assert [move.instance for move in wave.back] == ["i1", "i2", "i3"]


def test_edges() -> None:
    state = two_groups()
    empty = replace(state, instances={})
    assert [len(wave.nodes) for wave in waves_of(empty).waves] == [7, 1]
    assert waves_of(empty).master == "node1.example.org"
    down = {name: replace(item, running=False, admin_state="down") for name, item in state.instances.items()}
    assert not waves_of(replace(state, instances=down)).halted
    assert len(waves_of(state, nodes="node2").waves) == 1
    assert set(waves_of(state, group="default").leaving) == {node.name for node in state.nodes_of("default")}
    name = "node2.example.org"
    drained = replace(state, nodes={**state.nodes, name: replace(state.nodes[name], drained=True)})
    report = waves_of(drained)
    assert any("is drained" in item.reason for item in report.halted)
    (wave,) = (wave for wave in report.waves if name in wave.nodes)
    assert all(move.nodes_after[0] != name for move in wave.back)
    off = replace(state, nodes={**state.nodes, name: replace(state.nodes[name], offline=True)})
    assert name not in waves_of(off).leaving
    soft = waves_of(state, ignore_soft_errors=True)
    assert {item.template for item in soft.halted} == {"plain"}
    assert len(soft.halted) == waves_of(state).halted_softly


def test_the_json_is_what_the_schema_promises() -> None:
    schema = json.loads((ROOT / "schemas/output/evacuate-in-turn.json").read_text(encoding="utf-8"))
    for state in (two_groups(), upgradable(small_cluster(8)[0])):
        Draft7Validator(schema).validate(WAVES_DOCUMENT.data(waves_of(state)))


def test_the_moves_of_each_wave_are_saved_and_a_script_is_written(tmp_path: Path) -> None:
    saved, script = tmp_path / "waves", tmp_path / "waves.sh"
    saved.mkdir()
    (saved / "wave-99-out.json").write_text("of an earlier search", encoding="utf-8")
    done = gpolicy("evacuate", "--in-turn", *SNAPSHOT, "--save", saved, "--script", script)
    assert done.returncode == 1
    assert "8 nodes in 4 waves: 7 instances must be shut down" in done.stdout
    assert not (saved / "wave-99-out.json").exists()
    out, back = (read_procedure(saved / f"wave-2-{way}.json") for way in ("out", "back"))
    assert [step.object for step in out.steps] == [step.object for step in back.steps][::-1]
    assert {name: item.values for name, item in out.observed.items() if name.startswith("instance")} != {
        name: item.values for name, item in back.observed.items() if name.startswith("instance")
    }
    text = script.read_text(encoding="utf-8")
    assert "wait_for node2.example.org" in text
    assert "--back" not in text
    assert gpolicy("evacuate", "--in-turn", *SNAPSHOT, "--primary-only").returncode == 3


PROGRAMS = {
    "gnt-cluster": """case $1 in
 getmaster) cat "$STAND_IN/master" ;;
 *) printf 'Cluster name: ganeti.example.org\\nCluster UUID: %s\\n' "$(cat "$STAND_IN/uuid")" ;;
esac""",
    "gnt-instance": """for name; do :; done
file="$STAND_IN/instances/$name"
case "$1 $*" in
 *oper_state*) ;;
 list*) cat "$file" ;;
 migrate*) IFS=/ read -r first second <"$file"; printf '%s/%s\\n' "$second" "$first" >"$file" ;;
esac
printf '%s\\n' "$1 $name" >>$STAND_IN/log""",
    "gnt-node": "echo 1234",
    "ping": "exit 0",
}


def test_the_script_waits_in_each_wave_and_leads_home(tmp_path: Path) -> None:
    state, script = two_groups(), tmp_path / "waves.sh"
    gpolicy("evacuate", "--in-turn", *SNAPSHOT, "--script", script)
    (tmp_path / "instances").mkdir()
    (tmp_path / "uuid").write_text(state.cluster.identity.uuid or "", encoding="utf-8")
    for item in state.instances.values():
        line = f"{item.primary_node}/{','.join(item.secondary_nodes)}\n"
        (tmp_path / "instances" / item.name).write_text(line, encoding="utf-8")
    for name, body in PROGRAMS.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    before = {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "instances").iterdir()}

    def run(answers: str, master: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "master").write_text(f"{master}\n", encoding="utf-8")
        environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "STAND_IN": str(tmp_path)}
        command = ["/bin/sh", str(script)]
        return subprocess.run(command, input=answers, env=environ, capture_output=True, text=True, check=False)

    done = run("\n\ns\ns\n\n", "node1.example.org")
    assert done.returncode == 1
    assert "node1.example.org is the master: run gnt-cluster master-failover" in done.stderr
    done = run("s\n\n\n\n\n\n\n", "node5.example.org")
    assert (done.returncode, done.stderr) == (0, "")
    log = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    stopped = [line.split()[1] for line in log if line.startswith("shutdown")]
    assert stopped == [item.instance for item in waves_of(state).halted]
    assert stopped == [line.split()[1] for line in log if line.startswith("startup")]
    assert before == {file.name: file.read_text(encoding="utf-8") for file in (tmp_path / "instances").iterdir()}
    quit_at_once = run("q\n", "node5.example.org")
    assert quit_at_once.returncode == 1
