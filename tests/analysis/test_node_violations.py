"""Nodes above a ratio: what hbal calls policy-violating nodes, at the limit and around it."""

from __future__ import annotations

import random
import re
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from gpolicy.analysis.violations import node_verdicts
from gpolicy.cluster.state import ClusterState, Resources
from gpolicy.errors import GpolicyError
from tests.analysis.full_nodes import instances, node, state, text
from tests.analysis.hspace_cases import from_text
from tests.htools.random_clusters import random_cluster
from tests.htools.three_ways import INSTALLED

CPU, DISK = "vcpu-ratio", "spindle-ratio"
TWO = [node("n1"), node("n2")]
off = partial(instances, status="ADMIN_offline")
CASES = {
    "as many CPUs as allowed": (TWO, instances(31), "4|32", []),
    "one CPU too many": (TWO, instances(32), "4|32", ["n1 vcpu-ratio"]),
    "instances that are down count": (TWO, instances(32, status="ADMIN_down"), "4|32", ["n1 vcpu-ratio"]),
    "those that are offline do not": (TWO, off(32), "4|32", []),
    "as many spindles as allowed": (TWO, off(32, "n1:n2", template="drbd"), "4|32", []),
    "a secondary uses spindles": (
        TWO,
        off(33, "n1:n2", template="drbd"),
        "4|32",
        ["n1 spindle-ratio", "n2 spindle-ratio"],
    ),
    "disks that are not of the volume group use none": (TWO, off(33, template="file"), "4|32", []),
    "no spindle counts under exclusive storage": (
        [node("n1", exclusive="Y"), node("n2", exclusive="Y")],
        off(33),
        "4|32",
        [],
    ),
    "CPUs count under it": (
        [node("n1", exclusive="Y"), node("n2", exclusive="Y")],
        instances(33),
        "4|32",
        ["n1 vcpu-ratio"],
    ),
    "both": (TWO, instances(33), "4|32", ["n1 vcpu-ratio", "n1 spindle-ratio"]),
    "offline nodes count": ([node("n1", role="Y"), node("n2")], instances(32), "4|32", ["n1 vcpu-ratio"]),
    "no CPU and none used": ([node("n1", cpus=0, own_cpus=0), node("n2")], off(1), "4|32", []),
    "no CPU and one used": ([node("n1", cpus=0), node("n2")], off(1), "4|32", ["n1 vcpu-ratio"]),
    "no spindle and one used": ([node("n1", spindles=0), node("n2")], instances(1), "4|32", ["n1 spindle-ratio"]),
    "no spindle and none used": ([node("n1", spindles=0), node("n2")], instances(1, use=0), "4|32", []),
    "a ratio below 0": (TWO, instances(1), "-1|32", ["n1 vcpu-ratio", "n2 vcpu-ratio"]),
    "a ratio that nothing exceeds": (TWO, instances(40), "100000|100000", []),
    "0.3 times 10 is 3": ([node("n1", cpus=10, own_cpus=2), node("n2")], instances(1), "0.3|32", []),
    "forthcoming instances do not count": (TWO, [line[:-1] + "Y" for line in instances(40)], "4|32", []),
}


def broken(observed: ClusterState) -> list[str]:
    found = node_verdicts(observed)
    return [f"{name} {breach.parameter}" for name, verdict in found.items() for breach in verdict.breaches]


def told_by_hbal(cluster: str, group: str, file: Path) -> dict[str, str]:
    """Return hbal's own status of the nodes of a group, without its "bad nodes"."""
    file.write_text(cluster, encoding="utf-8")
    command = ["hbal", "-t", str(file), "-l0", *["-v"] * 4, "-G", group]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    line = re.search(r"Node policy status: \[(.*)\]", told)
    return dict(re.findall(r'\("([^"]+)",(?:Ok \(\)|Bad (Fail\w+))\)', line[1])) if line else {}


def as_hbal(breaches: list[str]) -> str:
    return "FailDisk" if DISK in breaches else "FailCPU" if breaches else ""


@pytest.mark.parametrize("name", CASES)
def test_the_rule_at_its_limit(name: str) -> None:
    nodes, vms, ratios, wanted = CASES[name]
    assert broken(state(nodes, vms, ratios)) == wanted


@pytest.mark.htools
@pytest.mark.skipif(not INSTALLED, reason="Debian's ganeti-htools is not installed")
class TestRealHbal:
    @pytest.mark.parametrize("name", CASES)
    def test_says_the_same_at_the_limit(self, name: str, tmp_path: Path) -> None:
        nodes, vms, ratios, wanted = CASES[name]
        told = told_by_hbal(text(nodes, vms, ratios), "default", tmp_path / "c.data")
        own = {node: [word for word in wanted if word.startswith(node)] for node in told}
        assert told == {node: as_hbal([word.split()[1] for word in words]) for node, words in own.items()}
        assert set(told) == {"n1", "n2"}

    def test_says_the_same_of_random_clusters(self, tmp_path: Path) -> None:
        """But of nodes whose figures a text hides: they have no spindles there, and the node's own in Ganeti."""
        compared = 0
        for seed in range(25):
            made = random_cluster(random.Random(seed), "drbd", 9)  # noqa: S311 (no secrets here)
            hidden = {item.name for item in made.nodes if item.unknown}
            try:
                observed = from_text(made.text)
            except GpolicyError:
                continue
            mine = node_verdicts(observed)
            for group in observed.groups:
                for name, told in told_by_hbal(made.text, group, tmp_path / "c.data").items():
                    if name not in hidden:
                        assert told == as_hbal([breach.parameter for breach in mine[name].breaches]), (seed, name)
                        compared += bool(told)
        assert compared > 5


def test_without_cpus_only_the_vcpu_ratio_is_unknown() -> None:
    observed = state(TWO, instances(33))
    silent = replace(observed.nodes["n1"], resources=Resources())
    found = node_verdicts(replace(observed, nodes={**observed.nodes, "n1": silent}))
    assert [breach.parameter for breach in found["n1"].breaches] == [DISK]
    assert (found["n1"].unknown, found["n1"].reason) == ((CPU,), "its CPUs are not known")
    assert not found["n2"].unknown


def test_what_cannot_be_counted_is_unknown() -> None:
    observed = state(TWO, instances(1))
    item = observed.instances["vm0"]
    mixed = replace(item, disk_template="mixed")
    found = node_verdicts(replace(observed, instances={"vm0": mixed}))
    assert {verdict.unknown for verdict in found.values()} == {(CPU, DISK)}
    assert found["n1"].reason == "instance vm0 has disks of several templates, which htools cannot read"


def test_a_breach_in_numbers() -> None:
    found = node_verdicts(state(TWO, instances(33)))["n1"]
    assert [(breach.sentence, breach.beyond) for breach in found.breaches] == [
        ("34 virtual CPUs in use, 32 allowed: 8 CPUs times vcpu-ratio 4", 2),
        ("33 spindles in use, 32 allowed: spindle_count 1 times spindle-ratio 32", 1),
    ]
