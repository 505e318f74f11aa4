"""Hostile names and values, in every field where Ganeti takes them, through policy, plan and apply."""

from __future__ import annotations

import json
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from gpolicy.ganeti.vocabulary import Level, Path as ValuePath, Type
from tests.e2e.carried_out import ROUTES, Way, write_policy
from tests.e2e.live_cluster import LiveCluster, content, differing, gpolicy
from tests.e2e.parameter_values import GROUP, NODE, free_text, policy_documents
from tests.strategies import Document, document

pytestmark = pytest.mark.e2e

GROUPS = ("-x", "a b", "--", 'o\'neil "q"', "$(touch x);`x`", "*", "\\ # ~ &&", "a/b:c,d=e")
ADDRESSABLE = ("-x", "--", "g_2.x-")
TAGS = ("-x", "--", "*", "@a/b:c+d.e", "no_x")
VALUES = (
    "'; touch x; '",
    '"$HOME"',
    "`x`",
    "\\,a\\\\",
    "-x",
    "no_x",
    "a,b=c:d",
    "{}",
    "default ",
    "~/*?[a]",
    "$(touch x)",
)
DIRECTORY = "it's \n é;$(touch x)"
"""Where plan and journal are: names of files are nobody's business but ours."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / DIRECTORY).mkdir()
    return tmp_path / DIRECTORY


@pytest.mark.parametrize("route", [pytest.param("local", marks=pytest.mark.full), "ssh"])
def test_groups_with_names_that_a_shell_would_read(fresh: LiveCluster, ssh: None, place: Path, route: str) -> None:
    """Made, modified, tagged, renamed and removed again; nodes move in and out."""
    way, first = Way(fresh, route), content(fresh.config())
    made = [document("NodeGroup", name, {("ipolicy", "vcpu-ratio"): 2}) for name in GROUPS]
    made[0] |= {"nodes": ["node4", "node5"], "tags": [*TAGS]}
    made[3] |= {"tags": ["t:1"]}
    plans = [place / "made.json", place / "renamed.json"]
    assert way.carry_out(write_policy(place / "made.yaml", made), plans[0])
    assert set(fresh.state().groups) == {"default", *GROUPS}
    renamed = [
        document("NodeGroup", f"{name} 2", {("ipolicy", "vcpu-ratio"): "inherit"}, renamed_from=name)
        for name in GROUPS[3:5]
    ]
    assert way.carry_out(write_policy(place / "renamed.yaml", renamed), plans[1])
    assert {f"{name} 2" for name in GROUPS[3:5]} <= set(fresh.state().groups)
    for plan in reversed(plans):
        back = way.apply(plan, "--rollback")
        assert back.code == 0, back.err + back.out
    assert differing(first, content(fresh.config())) == []
    assert not (Path.cwd() / "x").exists()


def test_groups_that_rapi_can_address(fresh: LiveCluster, place: Path) -> None:
    way, first = Way(fresh, "rapi"), content(fresh.config())
    made = [document("NodeGroup", name, {("ipolicy", "vcpu-ratio"): 2}) for name in ADDRESSABLE]
    made[0] |= {"tags": [*TAGS]}
    assert way.carry_out(write_policy(place / "made.yaml", made), place / "made.json")
    assert way.apply(place / "made.json", "--rollback").code == 0
    assert differing(first, content(fresh.config())) == []


def test_groups_that_rapi_cannot_address_are_said_before_anything_begins(fresh: LiveCluster, place: Path) -> None:
    before = fresh.config_file.read_bytes()
    for number, name in enumerate(set(GROUPS) - set(ADDRESSABLE)):
        made = [document("NodeGroup", name, {("ipolicy", "vcpu-ratio"): 2}, tags=["t:1"])]
        plan = place / f"{number}.json"
        assert Way(fresh, "rapi").plan(write_policy(place / "made.yaml", made), plan).code == 2
        refused = Way(fresh, "rapi").apply(plan)
        assert (refused.code, "cannot carry" in refused.err) == (3, True), refused
    assert fresh.config_file.read_bytes() == before


@pytest.mark.parametrize("route", [*ROUTES, "ssh"])
def test_values_that_a_shell_or_a_parser_would_read(fresh: LiveCluster, ssh: None, place: Path, route: str) -> None:
    """In every parameter that takes any text; and tags of the cluster and a node."""
    way = Way(fresh, route)
    wanted = texts(*VALUES)
    more = {level: {"tags": [*TAGS]} for level in (Level.CLUSTER, Level.NODE)}
    policy = write_policy(place / "policy.yaml", of_all_levels(fresh, wanted, more))
    assert way.carry_out(policy, place / "plan.json")
    state = fresh.state()
    own = {
        Level.CLUSTER: state.cluster.own,
        Level.GROUP: state.groups[GROUP].own,
        Level.NODE: state.nodes[NODE].own,
    }
    different = {
        (level, path): (own[level].get(path), value)
        for level, values in wanted.items()
        for path, value in values.items()
        if own[level].get(path) != value
    }
    assert different == {}
    assert set(TAGS) == state.cluster.tags == state.nodes[NODE].tags
    assert sum(map(len, wanted.values())) > 40
    assert not (Path.cwd() / "x").exists()


def texts(*some: str) -> dict[Level, dict[ValuePath, Any]]:
    """Return a text for every parameter that takes any, each in turn."""
    turn, wanted = cycle(some), {level: dict[ValuePath, Any]() for level in Level}
    for path, level, kind in free_text():
        text = next(turn)
        if path in {("install_image",), ("zeroing_image",)}:
            text = f"/{text}"
        values = {Type.LIST: [text, f"b{text}"], Type.DICT: {"a": text, "b": f"b{text}"}}
        wanted[level][path] = values.get(kind, text)
    return wanted


def of_all_levels(
    cluster: LiveCluster, wanted: dict[Level, dict[ValuePath, Any]], more: dict[Level, dict[str, Any]]
) -> list[Document]:
    made = policy_documents(cluster.state(), wanted)
    return [{**item, **more.get(level, {})} for item, level in zip(made, Level, strict=True)]


def test_texts_that_stop_a_cluster_are_found_in_every_parameter(cluster: LiveCluster, place: Path) -> None:
    wanted = texts("é", "漢字", "a\nb")
    policy = write_policy(place / "policy.yaml", of_all_levels(cluster, wanted, {}))
    checked = gpolicy("check", policy, "--format", "json")
    assert checked.code == 1
    findings = json.loads(checked.out)["findings"]
    assert sum(item["severity"] == "error" for item in findings) >= sum(map(len, wanted.values()))


@pytest.mark.parametrize("name", ["é", "漢字", "a\nb", "a\x7fb"])
@pytest.mark.parametrize("where", ["group", "tag", "rename"])
def test_names_that_stop_a_cluster_never_get_to_it(cluster: LiveCluster, tmp_path: Path, name: str, where: str) -> None:
    made = {
        "group": document("NodeGroup", name),
        "tag": document("NodeGroup", "default", tags=[name]),
        "rename": document("NodeGroup", name, renamed_from="default"),
    }
    policy = write_policy(tmp_path / "policy.yaml", [made[where]])
    before = cluster.config_file.read_bytes()
    planned = Way(cluster, "local").plan(policy, tmp_path / "plan.json", state=cluster.sources["config"])
    assert planned.code == 1
    assert "Traceback" not in planned.err
    assert not (tmp_path / "plan.json").exists() or gpolicy(
        "apply", tmp_path / "plan.json", "--to", "local:", "--yes"
    ).code in {1, 3}
    assert cluster.config_file.read_bytes() == before
