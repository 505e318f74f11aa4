"""Verdicts on thousands of random instances, compared with Ganeti's own functions."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.ganeti.parameters import unflatten
from tests.ganeti.real_ganeti import TREES, needs_ganeti
from tests.impact.changes import violation_change
from tests.impact.messages import breaches_told, violated
from tests.impact.policy_cases import instances_of, state_of

pytestmark = needs_ganeti

CLUSTERS = 60
INSTANCES = 20
NODES = ["node1", "node2", "node3", "node4"]


def described(state: ClusterState) -> dict[str, Any]:
    """Return the cluster as Ganeti's configuration has it, nodes and groups by name."""
    cluster = unflatten(
        {path: value for path, value in state.cluster.own.items() if path[0] in ("ipolicy", "ndparams")}
    )
    groups: dict[str, Any] = {
        name: {"ipolicy": {}, "ndparams": {}}
        | unflatten({path: value for path, value in group.own.items() if path[0] in ("ipolicy", "ndparams")})
        for name, group in state.groups.items()
    }
    return {
        "cluster": cluster,
        "groups": groups,
        "nodes": {node.name: {"group": node.group, "ndparams": {}} for node in state.nodes.values()},
        "instances": {instance.name: _described(instance) for instance in state.instances.values()},
    }


def _described(instance: LiveInstance) -> dict[str, Any]:
    return {
        "primary_node": instance.primary_node,
        "nodes": [instance.primary_node, *instance.secondary_nodes],
        "nics": instance.nic_count,
        "beparams": {
            "minmem": instance.minmem,
            "maxmem": instance.maxmem,
            "vcpus": instance.vcpus,
            "spindle_use": instance.spindle_use,
        },
        "disks": [{"size": disk.size, "dev_type": disk.template, "spindles": disk.spindles} for disk in instance.disks],
    }


def told_by_ganeti(states: list[ClusterState]) -> list[dict[str, dict[str, list[str]]]]:
    """Return Ganeti's messages for each state: by maxmem or minmem, by instance."""
    script = Path(__file__).with_name("ganeti_verdicts.py")
    run = subprocess.run(
        ["/usr/bin/python3", str(script), str(TREES[-1].parents[2])],
        input="\n".join(json.dumps(described(state)) for state in states),
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.fixture(scope="module")
def cases() -> list[tuple[ClusterState, ClusterState]]:
    """Return pairs of states that have the same instances, and nothing else in common."""
    found = []
    for seed in range(CLUSTERS):
        rnd = random.Random(seed)  # noqa: S311
        instances = instances_of(rnd, NODES, INSTANCES)
        found.append((state_of(rnd, instances, NODES), state_of(rnd, instances, NODES)))
    return found


def test_every_verdict_equals_ganetis(cases: list[tuple[ClusterState, ClusterState]]) -> None:
    seen: Counter[str] = Counter()
    told = zip(told_by_ganeti([old for old, _ in cases]), told_by_ganeti([new for _, new in cases]), strict=True)
    for (old, new), (before, after) in zip(cases, told, strict=True):
        change = violation_change(old, new)
        assert change.unknown == ()
        named = {item.instance: item for item in (*change.newly, *change.still, *change.no_longer)}
        for name in new.instances:
            item = named.get(name)
            assert violated(item.before if item else None) == breaches_told(before["maxmem"][name])
            assert violated(item.after if item else None) == breaches_told(after["maxmem"][name])
            seen.update(breach.parameter for breach in violated(item.after if item else None))
            seen["violating" if item and item.after else "conforming"] += 1
        least = {item.instance: item for item in (*change.minmem_newly, *change.minmem_still, *change.minmem_no_longer)}
        for name in new.instances:
            low = least.get(name)
            for told_now, mine in ((before, low.before if low else None), (after, low.after if low else None)):
                only_minmem = [] if told_now["maxmem"][name] else told_now["minmem"][name]
                assert violated(mine) == breaches_told(only_minmem)
                seen["only by minmem"] += bool(only_minmem)
    assert sum(seen[key] for key in ("violating", "conforming")) == CLUSTERS * INSTANCES
    assert min(seen.values()) > CLUSTERS // 10, seen  # each kind of breach was met
    assert len(seen) == 11
