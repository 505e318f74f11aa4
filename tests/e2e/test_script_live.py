"""The script that `gpolicy render` writes, run by sh on the master, is `gpolicy apply` by other means."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.carried_out import Way, write_policy
from tests.e2e.live_cluster import LiveCluster, content, differing, gpolicy
from tests.strategies import document

pytestmark = pytest.mark.e2e

POLICY = [
    document(
        "Cluster",
        "cluster",
        {
            ("ipolicy", "vcpu-ratio"): 7,
            ("ipolicy", "std", "memory-size"): "0.5G",
            ("diskparams", "drbd", "net-custom"): "--max-buffers 8000, 'quoted' \\ $HOME",
            ("reserved_lvs",): ["xenvg/a\\.b,c"],
            ("beparams", "vcpus"): 2,
        },
        tags=["team:x", "htools:iextags:s:"],
    ),
    document("NodeGroup", "fast nodes", {("ipolicy", "spindle-ratio"): 8}, nodes=["node4", "node5"], tags=["team:x"]),
    document("NodeGroup", "default", {("alloc_policy",): "last_resort", ("ndparams", "ssh_port"): 2222}),
    document("NodeSet", "one", {("ndparams", "spindle_count"): 12}, nodes=["node2"], tags=["rack:a"]),
]


def script(cluster: LiveCluster, plan: Path, *options: str) -> subprocess.CompletedProcess[str]:
    file = plan.with_suffix(".sh")
    assert gpolicy("render", plan, "--script", file, *options).code == 0
    return subprocess.run(
        ["sh", file], env=cluster.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


def test_the_script_ends_where_apply_ends_and_leads_back(fresh: LiveCluster, tmp_path: Path) -> None:
    way, plan = Way(fresh, "local"), tmp_path / "plan.json"
    first = content(fresh.config())
    policy = write_policy(tmp_path / "policy.yaml", POLICY)
    assert way.carry_out(policy, plan)
    applied = content(fresh.config())
    assert way.apply(plan, "--rollback").code == 0
    assert differing(first, content(fresh.config())) == []
    assert way.plan(policy, plan).code == 2
    done = script(fresh, plan)
    assert done.returncode == 0, done.stdout + done.stderr
    assert differing(applied, content(fresh.config())) == []
    undone = script(fresh, plan, "--rollback")
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert differing(first, content(fresh.config())) == []
