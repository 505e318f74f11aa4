"""Rules that use values of an observed cluster where the policy has none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.state import ClusterState, PhysicalVolume
from gpolicy.ganeti.vocabulary import Values
from tests.rules.run_rules import check, cluster, codes, with_instance, with_resources

CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
PLAN = ("diskparams", "drbd", "c-plan-ahead")
DYNAMIC = ("diskparams", "drbd", "dynamic-resync")


def having(own: Values, of_gold: Values | None = None) -> ClusterState:
    """Return a cluster with these own values, and one group with a node."""
    state = cluster({"gold": of_gold or {}}, {"n1": "gold"})
    return replace(state, cluster=replace(state.cluster, own=own))


def tagged(nodes: dict[str, str], cluster_tags: str = "") -> ClusterState:
    """Return a cluster of one group with these nodes and their tags, and tags of the cluster."""
    state = cluster({"gold": {}}, dict.fromkeys(nodes, "gold"))
    found = {name: replace(state.nodes[name], tags=frozenset(tags.split())) for name, tags in nodes.items()}
    return replace(state, nodes=found, cluster=replace(state.cluster, tags=frozenset(cluster_tags.split())))


@pytest.mark.parametrize("text", [CLUSTER, GROUP], ids=["cluster", "group"])
def test_dynamic_resync_is_checked_against_the_clusters_plan_ahead(text: str, tmp_path: Path) -> None:
    text += "diskparams:\n  drbd: {dynamic-resync: true}\n"
    assert check(text, tmp_path) == []
    assert check(text, tmp_path, state=having({PLAN: 20})) == []
    (found,) = check(text, tmp_path, state=having({PLAN: 0}))
    assert found.code == "GP120"
    assert found.message.endswith("has now")
    assert found.span is not None


def test_a_group_has_its_own_value_before_the_cluster_s(tmp_path: Path) -> None:
    text = f"{GROUP}diskparams:\n  drbd: {{dynamic-resync: true}}\n"
    assert check(text, tmp_path, state=having({PLAN: 0}, {PLAN: 20})) == []
    assert codes(check(text, tmp_path, state=having({PLAN: 20}, {PLAN: 0}))) == ["GP120"]


def test_a_group_that_is_told_to_inherit_has_the_cluster_s_value(tmp_path: Path) -> None:
    text = f"{GROUP}diskparams:\n  drbd: {{dynamic-resync: true, c-plan-ahead: inherit}}\n"
    assert check(text, tmp_path, state=having({PLAN: 20}, {PLAN: 0})) == []
    declared = f"{CLUSTER}diskparams:\n  drbd: {{c-plan-ahead: 0}}\n---\n{text}"
    assert codes(check(declared, tmp_path, state=having({PLAN: 20}))) == ["GP120"]


def test_a_renamed_group_keeps_what_it_has(tmp_path: Path) -> None:
    text = f"{GROUP.replace('gold', 'main')}renamed_from: gold\ndiskparams:\n  drbd: {{dynamic-resync: true}}\n"
    assert codes(check(text, tmp_path, state=having({}, {PLAN: 0}))) == ["GP120"]
    new = GROUP.replace("gold", "other") + "diskparams:\n  drbd: {dynamic-resync: true}\n"
    assert check(new, tmp_path, state=having({}, {PLAN: 0})) == []


@pytest.mark.parametrize("wild", ["20", None, True, [20], {"a": 1}])
def test_a_value_of_a_wrong_type_is_not_judged(wild: object, tmp_path: Path) -> None:
    text = f"{CLUSTER}diskparams:\n  drbd: {{c-min-rate: 100M, dynamic-resync: true}}\n"
    state = having({("diskparams", "drbd", "c-max-rate"): wild, PLAN: wild})  # type: ignore[dict-item]
    assert check(text, tmp_path, state=state) == []


def test_rates_and_memory_are_checked_against_the_cluster(tmp_path: Path) -> None:
    text = f"{CLUSTER}diskparams:\n  drbd: {{c-min-rate: 100M}}\nbeparams: {{minmem: 4G}}\n"
    own: Values = {("diskparams", "drbd", "c-max-rate"): 61440, ("beparams", "maxmem"): 1024}
    assert codes(check(text, tmp_path, state=having(own))) == ["GP121", "GP108"]


def test_a_parameter_that_the_controller_of_the_cluster_does_not_read(tmp_path: Path) -> None:
    text = f"{CLUSTER}diskparams:\n  drbd: {{c-max-rate: 90M}}\n"
    assert check(text, tmp_path, state=having({DYNAMIC: True})) == []
    assert codes(check(text, tmp_path, state=having({DYNAMIC: False}))) == ["GP122"]


@pytest.mark.parametrize(
    "more", ["c-max-rate: 90M", "c-max-rate: 90M, c-min-rate: 9M, c-plan-ahead: 0", "c-max-rate: 60M, c-min-rate: 9M"]
)
def test_values_of_a_controller_that_something_else_may_turn_on(more: str, tmp_path: Path) -> None:
    of_drbd = f"diskparams:\n  drbd: {{{more}}}\n"
    assert check(f"{CLUSTER}{of_drbd}", tmp_path) == []
    two = of_drbd.replace(more, "c-max-rate: 90M, c-min-rate: 9M")
    assert codes(check(f"{CLUSTER}{two}", tmp_path)) == ["GP122"]
    assert check(f"{GROUP}{two}", tmp_path) == [], "nothing is known of the cluster"
    assert check(f"{CLUSTER}{two}", tmp_path, state=having({DYNAMIC: True})) == []


def test_the_metadata_group_is_checked_against_the_clusters_own(tmp_path: Path) -> None:
    text = f"{CLUSTER}diskparams:\n  drbd: {{metavg: ssdvg}}\n"
    assert check(text, tmp_path) == []
    assert codes(check(text, tmp_path, state=having({("volume_group_name",): "xenvg"}))) == ["GP127"]
    assert check(text, tmp_path, state=having({("volume_group_name",): "ssdvg"})) == []


def test_what_the_cluster_has_does_not_stand_in_for_what_could_not_be_read(tmp_path: Path) -> None:
    text = f'{CLUSTER}volume_group_name: "caf\u00e9"\ndiskparams:\n  drbd: {{metavg: ssdvg}}\n'
    state = having({("volume_group_name",): "xenvg"})
    assert codes(check(text.replace("caf\u00e9", "xenvg"), tmp_path, state=state)) == ["GP127"]
    assert codes(check(text, tmp_path, state=state)) == ["GP016"]


def test_a_switch_without_a_link_in_the_cluster(tmp_path: Path) -> None:
    text = f"{GROUP}ndparams: {{ovs: true}}\n"
    state = having({("ndparams", "ovs_link"): "", ("ndparams", "ovs_name"): "switch1"})
    assert codes(check(text, tmp_path, state=state)) == ["GP142"]


def test_stripes_are_checked_against_the_volumes(tmp_path: Path) -> None:
    text = f"{GROUP}diskparams:\n  plain: {{stripes: 4}}\n"
    state = having({})
    volume = PhysicalVolume(name="/dev/sda", size=1024, free=1024, used=0)
    nodes = {"n1": replace(state.nodes["n1"], physical_volumes=(volume, replace(volume, name="/dev/sdb")))}
    assert check(text, tmp_path, state=state) == []
    (found,) = check(text, tmp_path, state=replace(state, nodes=nodes))
    assert (found.code, found.hint) == ("GP128", "write at most 2")
    excluding = f"{text}physical_volumes: {{exclude: [/dev/sda]}}\n"
    (found,) = check(excluding, tmp_path, state=replace(state, nodes=nodes))
    assert (found.code, found.hint) == ("GP128", "write at most 1")


@pytest.mark.parametrize(
    ("template", "hypervisor", "expected"),
    [("rbd", "xen-pvm", ["GP126"]), ("rbd", "kvm", []), ("ext", "xen-pvm", [])],
)
def test_userspace_is_checked_against_the_instances(
    template: str, hypervisor: str, expected: list[str], tmp_path: Path
) -> None:
    text = "diskparams:\n  rbd: {access: userspace}\n"
    state = with_instance(having({}), "n1", template=template, hypervisor=hypervisor)
    assert codes(check(CLUSTER + text, tmp_path, state=state)) == expected
    assert codes(check(GROUP + text, tmp_path, state=state)) == expected
    assert check(GROUP.replace("gold", "other") + text, tmp_path, state=state) == []


def test_figures_are_checked_against_reported_ones_where_they_count(tmp_path: Path) -> None:
    state = with_resources(having({}), memory_total=64 * 1024, cpu_total=16)
    figures = "hv_state:\n  kvm: {mem_total: 128G, cpu_total: 17}\n"
    found = [finding for finding in check(CLUSTER + figures, tmp_path, state=state) if finding.code == "GP154"]
    assert [finding.message for finding in found] == ["hv_state.kvm.mem_total is 128G, but node n1 reports 64G"]
    own = f"{CLUSTER}{figures}---\n{GROUP}hv_state:\n  kvm: {{mem_total: 64G}}\n"
    assert "GP154" not in codes(check(own, tmp_path, state=state))


RULES = "gpolicy: v1\nkind: TagRules\nfailure_domains: [rack]\n"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ({"n1": "rack:1", "n2": "rack:2"}, []),
        ({"n1": "rack:1", "n2": "rack:1"}, ["GP519"]),
        ({"n1": "rack:1", "n2": "rack:1 rack:2"}, []),
        ({"n1": "rack:1", "n2": ""}, ["GP520"]),
        ({"n1": "", "n2": ""}, ["GP517"]),
        ({"n1": "rack:1"}, []),
    ],
)
def test_failure_domains_are_checked_against_the_tags_of_nodes(
    nodes: dict[str, str], expected: list[str], tmp_path: Path
) -> None:
    assert check(RULES, tmp_path) == []
    assert codes(check(RULES, tmp_path, state=tagged(nodes))) == expected


def test_tags_that_the_policy_removes_do_not_count(tmp_path: Path) -> None:
    state = tagged({"n1": "rack:1", "n2": "rack:1"})
    moved = '---\ngpolicy: v1\nkind: NodeSet\nname: moved\nnodes: [n2]\ntags: ["rack:2"]\n'
    owns = 'owns: [{prefix: "rack:", "on": [node]}]\n'
    assert check(RULES + owns + moved, tmp_path, state=state) == []
    assert codes(check(RULES + moved, tmp_path, state=state)) == ["GP528"]


def test_a_domain_that_only_the_cluster_has_is_judged_where_the_policy_tags_its_nodes(tmp_path: Path) -> None:
    state = tagged({"n1": "rack:1", "n2": "rack:2"}, "htools:nlocation:rack")
    text = '---\ngpolicy: v1\nkind: NodeSet\nname: both\nnodes: [n1, n2]\ntags: ["rack:1", "rack:2"]\n'
    assert codes(check(text.removeprefix("---\n"), tmp_path, state=state)) == ["GP519", "GP528"]


@pytest.mark.parametrize(
    ("nodes", "allow", "expected"),
    [
        ({"n1": "hv:1", "n2": "hv:1"}, "", []),
        ({"n1": "hv:1", "n2": ""}, "", []),
        ({"n1": "hv:1", "n2": "hv:2", "n3": "hv:2"}, "", ["GP518"]),
        ({"n1": "hv:1", "n2": "hv:2", "n3": "hv:2"}, '{from: "hv:1", to: "hv:2"}', []),
        ({"n1": "hv:1", "n2": "hv:2"}, '{from: "hv:1", to: "hv:2"}', []),
        ({"n1": "hv:1"}, "", []),
    ],
)
def test_a_node_that_no_instance_can_leave(
    nodes: dict[str, str], allow: str, expected: list[str], tmp_path: Path
) -> None:
    text = f"gpolicy: v1\nkind: TagRules\nmigration: {{domains: [hv], allow: [{allow}]}}\n"
    assert codes(check(text, tmp_path, state=tagged(nodes))) == expected


def test_an_exception_that_the_cluster_has_counts_too(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: TagRules\nmigration: {domains: [hv]}\n"
    nodes = {"n1": "hv:1", "n2": "hv:2", "n3": "hv:2"}
    assert check(text, tmp_path, state=tagged(nodes, "htools:allowmigration:hv:1::hv:2")) == []


def test_a_line_without_matching_nodes_is_reported_once(tmp_path: Path) -> None:
    groups: dict[str, Values] = {"a": {}, "b": {}}
    state = cluster(groups, {"a1": "a", "a2": "a", "b1": "b", "b2": "b"})
    tags = {"a1": {"rack:1", "feed:1"}, "b1": {"rack:2", "feed:1"}}
    nodes = {name: replace(node, tags=frozenset(tags.get(name, ()))) for name, node in state.nodes.items()}
    found = check(
        "gpolicy: v1\nkind: TagRules\nfailure_domains: [rack, feed]\n", tmp_path, state=replace(state, nodes=nodes)
    )
    assert [(item.code, item.span.line if item.span else 0) for item in found] == [("GP520", 3)]
    assert found[0].message == (
        "no tag rack:… (group a: a2; group b: b2), no tag feed:… (group a: a2; group b: b2),"
        " unlike other nodes of these groups"
    )
    assert found[0].hint == "tag every node of these groups rack:… and feed:…"


def test_state_without_effect_says_what_can_be_done(tmp_path: Path) -> None:
    (found,) = check(f"{GROUP}hv_state:\n  kvm: {{mem_node: 4G}}\n", tmp_path)
    assert (found.code, str(found.severity)) == ("GP113", "info")
    assert "leave it out: the cluster then keeps what it has" in found.hint


@pytest.mark.parametrize(
    ("pattern", "expected"), [("n[1-3]", ["GP606"]), ("n[12]", []), ("n[1-9]", []), ("n*", []), ("m[12]", ["GP606"])]
)
def test_a_pattern_that_lists_nodes_lists_those_that_are_there(
    pattern: str, expected: list[str], tmp_path: Path
) -> None:
    state = cluster({"gold": {}}, {"n1": "gold", "n2": "gold"})
    assert codes(check(f'{GROUP}nodes: ["{pattern}"]\n', tmp_path, state=state)) == expected


def test_a_pool_of_user_ids_is_held_against_the_instances_of_a_node(tmp_path: Path) -> None:
    state = with_instance(cluster({"gold": {}}, {"n1": "gold"}), "n1", template="plain", hypervisor="kvm")
    busy = {f"i{number}": replace(item, name=f"i{number}") for item in state.instances.values() for number in range(9)}
    for last, expected in ((20007, ["GP119"]), (20008, [])):
        text = f"{CLUSTER}hvparams:\n  kvm: {{security_model: pool}}\nuid_pool: [20000-{last}]\n"
        assert codes(check(text, tmp_path, state=replace(state, instances=busy))) == expected
