"""`check --state` says which instances the policy's tags find in the wrong place, as the plan compares them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.checking.checking import check_by_settings
from gpolicy.cluster.state import ClusterState
from gpolicy.forecast.bridge import FORECAST
from gpolicy.policy.loading import load_policy
from tests.rules.run_rules import TODAY, check, cluster, with_instance

GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
RACKS = "---\ngpolicy: v1\nkind: TagRules\nowns: [{prefix: 'rack:', on: [node]}]\nfailure_domains: [rack]\n"


def observed(
    tags: Mapping[str, str], of_cluster: str = "", template: str = "drbd", of_instances: str = ""
) -> ClusterState:
    """Return three nodes with these tags; web1 is on n1 and n2, web2 on n3 and n2."""
    state = cluster({"gold": {}}, dict.fromkeys(("n1", "n2", "n3"), "gold"))
    nodes = {name: replace(node, tags=frozenset(tags.get(name, "").split())) for name, node in state.nodes.items()}
    state = replace(
        state,
        nodes=nodes,
        cluster=replace(state.cluster, tags=frozenset(f"htools:{tag}" for tag in of_cluster.split())),
    )
    (web,) = with_instance(state, "n1", template=template, hypervisor="kvm").instances.values()
    secondary = ("n2",) if template == "drbd" else ()
    web = replace(web, secondary_nodes=secondary, tags=frozenset(of_instances.split()))
    return replace(
        state, instances={"web1": replace(web, name="web1"), "web2": replace(web, name="web2", primary_node="n3")}
    )


def racks(**of_nodes: str) -> str:
    return "".join(
        f'---\ngpolicy: v1\nkind: NodeSet\nname: {name}\nnodes: [{name}]\ntags: ["{tag}"]\n'
        for name, tag in of_nodes.items()
    )


def found(text: str, directory: Path, state: ClusterState) -> dict[int, str]:
    """Return what GP750 says, by the line that it points to."""
    hits = [item for item in check(text, directory, state=state) if item.code == "GP750"]
    return {item.span.line if item.span else 0: item.message for item in hits}


IN_RACKS = {"n1": "rack:a", "n2": "rack:b", "n3": "rack:c"}


@pytest.mark.parametrize(
    ("n2", "message"),
    [
        ("rack:a", "both nodes of web1 would be in one failure domain (rack:a)"),
        ("rack:c", "both nodes of web2 would be in one failure domain (rack:c)"),
        ("rack:d", None),
        ("rack:b", None),
    ],
)
def test_a_node_gets_the_tag_of_another_rack(n2: str, message: str | None, tmp_path: Path) -> None:
    text = f"{GROUP}{RACKS}{racks(n2=n2)}"
    state = observed(IN_RACKS, "nlocation:rack")
    place = text[: text.index(f'"{n2}"')].count("\n") + 1
    assert found(text, tmp_path, state) == ({place: message} if message else {})


def test_what_the_tags_say_now_is_no_matter_of_the_policy(tmp_path: Path) -> None:
    text = f"{GROUP}{RACKS}{racks(n1='rack:a', n2='rack:a', n3='rack:c')}"
    together = {"n1": "rack:a", "n2": "rack:a", "n3": "rack:c"}
    assert found(text, tmp_path, observed(together, "nlocation:rack")) == {}
    assert found(text, tmp_path, observed(IN_RACKS, "nlocation:rack")) != {}
    assert found(text, tmp_path, observed(IN_RACKS, "nlocation:rack", template="plain")) == {}


def test_a_new_failure_domain_is_the_cause_where_all_nodes_have_their_tags(tmp_path: Path) -> None:
    state = observed({"n1": "rack:a", "n2": "rack:a", "n3": "rack:a room:1"})
    text = f"{GROUP}{RACKS.replace('[rack]', '[rack, room]')}"
    assert found(text, tmp_path, state) == {}, "all nodes are in one rack: GP519 says it of all instances"
    state = observed({"n1": "rack:a", "n2": "rack:a", "n3": "rack:b"})
    assert found(text, tmp_path, state) == {8: "both nodes of web1 would be in one failure domain (rack:a)"}


def test_a_new_exclusion_finds_instances_together(tmp_path: Path) -> None:
    text = f"{GROUP}---\ngpolicy: v1\nkind: TagRules\nexclusion: [service]\n"
    state = observed(IN_RACKS, "nlocation:rack", of_instances="service:web")
    assert found(text, tmp_path, state) == {}
    on_one = {name: replace(item, primary_node="n1") for name, item in state.instances.items()}
    message = "web1, web2 would each be on a node with another of its exclusion tag (service:web)"
    assert found(text, tmp_path, replace(state, instances=on_one)) == {7: message}
    in_one_rack = observed(
        {"n1": "rack:a", "n3": "rack:a", "n2": "rack:b"}, "nlocation:rack", of_instances="service:web"
    )
    message = "web1, web2 would each be in a failure domain with another of its exclusion tag (rack:a, service:web)"
    assert found(text, tmp_path, in_one_rack) == {7: message}


def test_a_new_tag_of_a_node_strands_its_instances(tmp_path: Path) -> None:
    rules = "---\ngpolicy: v1\nkind: TagRules\nmigration: {domains: [hv]}\n"
    text = f"{GROUP}{rules}{racks(n1='hv:2', n3='hv:1')}"
    state = observed({"n2": "hv:1"}, "migration:hv")
    assert found(text, tmp_path, state) == {}, "GP518 says it of the node"
    text = f"{GROUP}{rules}{racks(n1='hv:2', n3='hv:2')}"
    message = "no other node would take web1, web2 (for want of hv:2)"
    assert [*found(text, tmp_path, state).values()] == [message.replace(", web2", ""), message.replace("web1, ", "")]


def test_the_plan_shows_its_own_figures(tmp_path: Path) -> None:
    state = observed(IN_RACKS, "nlocation:rack")
    assert found(f"{GROUP}{RACKS}{racks(n2='rack:a')}", tmp_path, state)
    planning = check_by_settings(load_policy(tmp_path), state, today=TODAY, forecast=FORECAST).findings
    assert "GP750" not in [item.code for item in planning]
