"""Hostile names and values, in every field where Ganeti takes them, through policy, plan and apply."""

from __future__ import annotations

from pathlib import Path

import pytest
from carried_out import ROUTES, Way, write_policy
from live_cluster import LiveCluster, content, differing, gpolicy
from strategies import document

pytestmark = pytest.mark.e2e

GROUPS = ("-x", "a b", "--", 'o\'neil "q"', "$(touch x);`x`", "*", "\\ # ~ &&", "a/b:c,d=e")
ADDRESSABLE = ("-x", "--", "g_2.x-")
VALUES = ("'; touch x; '", '"$HOME"', "`x`", "\\,a\\\\", "-x", "no_x", "a,b=c:d", " ", "default ", "~/*?[a]")


def test_groups_with_names_that_a_shell_would_read(fresh: LiveCluster, tmp_path: Path) -> None:
    """Made, modified, tagged, renamed and removed again; nodes move in and out."""
    way, first = Way(fresh, "local"), content(fresh.config())
    made = [document("NodeGroup", name, {("ipolicy", "vcpu-ratio"): 2}, tags=["t:1"]) for name in GROUPS]
    made[0]["nodes"] = ["node4", "node5"]
    plans = [tmp_path / "made.json", tmp_path / "renamed.json"]
    assert way.carry_out(write_policy(tmp_path / "made.yaml", made), plans[0])
    assert set(fresh.state().groups) == {"default", *GROUPS}
    renamed = [
        document("NodeGroup", f"{name} 2", {("ipolicy", "vcpu-ratio"): "inherit"}, renamed_from=name)
        for name in GROUPS[:2]
    ]
    assert way.carry_out(write_policy(tmp_path / "renamed.yaml", renamed), plans[1])
    assert {f"{name} 2" for name in GROUPS[:2]} <= set(fresh.state().groups)
    for plan in reversed(plans):
        back = way.apply(plan, "--rollback")
        assert back.code == 0, back.err + back.out
    assert differing(first, content(fresh.config())) == []
    assert not (Path.cwd() / "x").exists()


def test_groups_that_rapi_can_address(fresh: LiveCluster, tmp_path: Path) -> None:
    way, first = Way(fresh, "rapi"), content(fresh.config())
    made = [document("NodeGroup", name, {("ipolicy", "vcpu-ratio"): 2}, tags=["t:1"]) for name in ADDRESSABLE]
    assert way.carry_out(write_policy(tmp_path / "made.yaml", made), tmp_path / "made.json")
    assert way.apply(tmp_path / "made.json", "--rollback").code == 0
    assert differing(first, content(fresh.config())) == []


@pytest.mark.parametrize("route", ROUTES)
def test_values_that_a_shell_or_a_parser_would_read(fresh: LiveCluster, tmp_path: Path, route: str) -> None:
    way = Way(fresh, route)
    values = list(VALUES)
    strings = {
        ("diskparams", "drbd", "disk-custom"): values[0],
        ("diskparams", "drbd", "net-custom"): values[1],
        ("diskparams", "rbd", "pool"): values[2],
        ("diskparams", "gluster", "volume"): values[3],
        ("diskparams", "gluster", "host"): values[4],
        ("ndparams", "oob_program"): values[5],
        ("ndparams", "ovs_name"): values[6],
        ("ndparams", "ovs_link"): values[7],
    }
    more: dict[tuple[str, ...], object] = {
        ("reserved_lvs",): values,
        ("default_iallocator_params",): {"a": values[0], "b": values[3]},
    }
    documents = [document("Cluster", "cluster", {**strings, **more}), document("NodeGroup", "default", strings)]
    policy = write_policy(tmp_path / "policy.yaml", documents)
    assert way.carry_out(policy, tmp_path / "plan.json")
    state = fresh.state()
    for path, value in strings.items():
        assert (state.cluster.own[path], state.groups["default"].own[path]) == (value, value)
    assert state.cluster.own["reserved_lvs",] == values
    assert not (Path.cwd() / "x").exists()


@pytest.mark.parametrize("name", ["é", "漢字", "a\nb", "a\x7fb"])
def test_names_that_stop_a_cluster_never_get_to_it(cluster: LiveCluster, tmp_path: Path, name: str) -> None:
    policy = write_policy(tmp_path / "policy.yaml", [document("NodeGroup", name)])
    before = cluster.config_file.read_bytes()
    planned = Way(cluster, "local").plan(policy, tmp_path / "plan.json")
    assert planned.code == 1
    assert "Traceback" not in planned.err
    assert not (tmp_path / "plan.json").exists() or gpolicy(
        "apply", tmp_path / "plan.json", "--to", "local:", "--yes"
    ).code in {1, 3}
    assert cluster.config_file.read_bytes() == before
