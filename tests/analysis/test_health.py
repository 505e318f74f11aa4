"""What is wrong with a cluster as it is, counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpolicy.analysis.health import CONFLICTS, cluster_health
from gpolicy.cluster.sources import read_state
from gpolicy.ganeti.vocabulary import Values

SNAPSHOT = Path(__file__).resolve().parents[2] / "policies" / "two-groups.snapshot.json"


def changed(tmp_path: Path, **of: Any) -> str:
    """Return the address of the example with some instances and the cluster changed."""
    data = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    for name, change in of.pop("instances", {}).items():
        data["instances"][name] |= change
    data["cluster"] |= of
    file = tmp_path / "changed.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    return f"snapshot:{file}"


def test_violations_conflicts_and_losses_are_counted(tmp_path: Path) -> None:
    data = json.loads(SNAPSHOT.read_text(encoding="utf-8"))
    on: dict[str, list[str]] = {}
    for name, instance in data["instances"].items():
        on.setdefault(instance["primary_node"], []).append(name)
    one, other, *_ = next(names for names in on.values() if len(names) > 1)
    group = data["nodes"][data["instances"][one]["primary_node"]]["group"]
    assert group == "default"
    sound = cluster_health(read_state(f"snapshot:{SNAPSHOT}"))
    assert set(sound.conflicts) == set(CONFLICTS)
    assert not any(sound.conflicts.values())
    before = {name: (item.violating, item.undecided) for name, item in sound.groups.items()}
    assert before == {"dedicated": (0, 0), "default": (1, 0), "spare": (0, 0)}

    tags = {"tags": ["web:a"]}
    huge = {**tags, "maxmem": 900_000, "minmem": 900_000}
    address = changed(tmp_path, instances={one: huge, other: tags}, tags=["htools:iextags:web:"])
    found = cluster_health(read_state(address))
    after = {name: (item.violating, item.undecided) for name, item in found.groups.items()}
    assert after == {"dedicated": (0, 0), "default": (2, 0), "spare": (0, 0)}
    assert found.conflicts["exclusion"] == 1
    redundancy = found.groups[group].redundancy
    assert redundancy is not None
    assert redundancy.not_absorbed


def test_what_the_source_does_not_show_is_undecided() -> None:
    text = Path(__file__).resolve().parents[1] / "data" / "clusters" / "full" / "htools.data"
    found = cluster_health(read_state(f"text:{text}"))
    assert sum(item.undecided for item in found.groups.values()) > 0


def test_nodes_above_a_ratio_and_those_without_cpus_are_counted() -> None:
    state = read_state(f"snapshot:{SNAPSHOT}")
    strict: Values = {("ipolicy", "vcpu-ratio"): 0.5}
    groups = {name: replace(item, effective={**item.effective, **strict}) for name, item in state.groups.items()}
    silent = replace(state.nodes["node1.example.org"].resources, cpu_total=None)
    nodes = {**state.nodes, "node1.example.org": replace(state.nodes["node1.example.org"], resources=silent)}
    found = cluster_health(replace(state, groups=groups, nodes=nodes)).groups
    above = {name: (item.violating_nodes, item.undecided_nodes) for name, item in found.items()}
    assert above == {"dedicated": (2, 0), "default": (0, 1), "spare": (0, 0)}
