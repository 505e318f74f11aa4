"""Slips that only the observed cluster shows: the finding stands at the slip, and asks for what is meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.state import ClusterObject, ClusterState, LiveInstance
from gpolicy.findings import Finding, Severity
from gpolicy.ganeti.vocabulary import Values
from gpolicy.rules.node_limits import METAVG
from tests.rules.policy_texts import CLUSTER, GROUP, SILVER, group, group_with, node_set, spec
from tests.rules.run_rules import check, cluster, with_instance, with_resources
from tests.rules.test_plan_guards import ALLOWING
from tests.rules.test_slips_between_documents import bad


def wrong(text: str, directory: Path, state: ClusterState) -> list[Finding]:
    """Return the errors and warnings of a policy, beside a cluster."""
    return [item for item in check(text, directory, state=state) if item.severity is not Severity.INFO]


def written(text: str, found: Finding) -> str:
    """Return the text at the place of a finding."""
    assert found.span is not None
    return text.splitlines()[found.span.line - 1][found.span.column - 1 : found.span.end_column - 1]


def with_sizes(state: ClusterState, *sizes: tuple[int, int]) -> ClusterState:
    """Return the cluster with an instance for each memory and disk (MiB) on its first node."""
    node = next(iter(state.nodes))
    (first,) = with_instance(state, node, template="plain", hypervisor="kvm").instances.values()
    instances: dict[str, LiveInstance] = {}
    for number, (memory, disk) in enumerate(sizes):
        disks = tuple(replace(item, size=disk) for item in first.disks)
        name = f"web{number}.example.org"
        instances[name] = replace(first, name=name, maxmem=memory, minmem=memory, disks=disks, nic_count=1)
    return replace(state, instances=instances)


GIB = 1024
WIDE: Values = {**ALLOWING, ("ipolicy", "minmax"): [{"min": {"memory-size": 1}, "max": {"memory-size": 99 * GIB}}]}


def test_instances_between_two_sizes_count_for_the_bound_that_most_are_near(tmp_path: Path) -> None:
    state = with_sizes(cluster({"gold": WIDE}, {"n1": "gold"}), (64 * GIB, 50 * GIB), (64 * GIB, 200 * GIB))
    large, medium = spec("l", "72G 96G", "1 16", "100G 1T"), spec("m", "32G 46G", "1 16", "10G 1T")
    text = group_with(large, medium)
    (found,) = wrong(text, tmp_path, state)
    assert (found.code, written(text, found), "and" in found.message) == ("GP749", "46G", False)
    assert "web0.example.org (memory-size), web1.example.org (memory-size)" in found.message
    assert found.hint.startswith("allow memory-size 64G")
    assert wrong(group_with(large, medium.replace("46G", "64G")), tmp_path, state) == []


def test_a_pattern_that_takes_a_whole_group_is_asked_for_its_own_nodes(tmp_path: Path) -> None:
    nodes = {"dedicated1.c.org": "dedicated", "dedicated2.c.org": "dedicated"}
    groups = {"db": ALLOWING, "dedicated": ALLOWING}
    state = with_sizes(cluster(groups, {**nodes, "db1.c.org": "db", "db2.c.org": "db"}), (64 * GIB, GIB))

    def policy(pattern: str) -> str:
        sizes = "ipolicy:\n  minmax:\n" + spec("m", "1G 4G", "1 4", "1G 1T")
        return group("db", f'"{pattern}"', sizes).removeprefix("---\n")

    (found,) = wrong(policy("d*.c.org"), tmp_path, state)
    assert (found.code, written(policy("d*.c.org"), found)) == ("GP723", '"d*.c.org"')
    assert found.message.endswith("d*.c.org also takes in all nodes of group dedicated")
    assert found.hint == "is db*.c.org meant? Else move or change the instances first, or allow them there"
    assert wrong(policy("db*.c.org"), tmp_path, state) == []
    removed = "---\ngpolicy: v1\nkind: NodeGroup\nname: dedicated\nremoved: true\n"
    (moved,) = wrong(policy("d*.c.org") + removed, tmp_path, state)
    assert "meant" not in moved.hint, "a group that is dissolved loses its nodes on purpose"


NAMES = [f"node{number}.c.org" for number in (1, 2, 7)]
RACKS = CLUSTER + group("gold", ", ".join(NAMES)) + node_set("east", NAMES[0], "tags: ['rack:east']")


@pytest.mark.parametrize(
    ("listed", "hint"),
    [
        ("node2.c.org, node77.c.org", "Did you mean `node7.c.org`? Else add the node to the cluster first"),
        ("node7.c.org, node77.c.org", "add the node to the cluster first"),
        ("'node[2-7].c.org', node77.c.org", "add the node to the cluster first"),
        ("node12.c.org", "Did you mean `node2.c.org`?"),
    ],
)
def test_a_node_that_no_list_of_its_kind_names_is_the_one_that_is_meant(listed: str, hint: str, tmp_path: Path) -> None:
    state = cluster({"gold": {}}, dict.fromkeys(NAMES, "gold"))
    text = RACKS + node_set("west", listed, "tags: ['rack:west']") + node_set("fast", NAMES[2], "tags: ['cpu:fast']")
    assert [item.hint.startswith(hint) for item in wrong(text, tmp_path, state) if item.code == "GP701"] == [True]


def test_a_group_that_closes_is_asked_for_the_value_of_today(tmp_path: Path) -> None:
    text = CLUSTER + "ipolicy:\n  minmax:\n" + spec("m", "1G 4G", "1 4", "1G 1T") + group("gold", "n1")
    closed = f"{text}alloc_policy: unallocable\n"
    for today, hint in {"preferred": "is preferred meant, as today?", "unallocable": "write last_resort"}.items():
        state = cluster({"gold": {**ALLOWING, ("alloc_policy",): today}}, {"n1": "gold"})
        found = [item for item in wrong(closed, tmp_path, state) if item.code == "GP610"]
        assert [item.hint.startswith(hint) for item in found] == [True]


def test_what_groups_without_a_promise_cannot_have_follows_from_the_memory_that_all_nodes_keep(tmp_path: Path) -> None:
    state = with_resources(cluster({"gold": {}, "spare": {}}, {"n1": "gold", "n2": "spare"}), memory_total=256 * GIB)
    text = CLUSTER + "hv_state: {kvm: {mem_node: 400G}}\nipolicy:\n  minmax:\n" + spec("m", "1G 4G", "1 4", "1G 1T")
    groups = group("gold", "n1", "hardware: {memory: 256G}\n") + group("spare", "n2")
    (found,) = wrong(text + groups, tmp_path, state)
    assert (found.code, {item.code for item in found.consequences}) == ("GP419", {"GP211", "GP724"})


@pytest.mark.parametrize(
    ("pattern", "hint"),
    [
        ("wbe*.c.org", "Did you mean `web*.c.org`?"),
        ("dc*.c.org", "correct the pattern"),  # another group names db1
        ("cache*.c.org", "correct the pattern"),
    ],
)
def test_a_pattern_one_slip_away_from_nodes_that_no_group_names(pattern: str, hint: str, tmp_path: Path) -> None:
    state = cluster({"web": {}, "db": {}}, {"web1.c.org": "web", "web2.c.org": "web", "db1.c.org": "db"})
    text = CLUSTER + group("web", f'"{pattern}"') + group("db", '"db*.c.org"')
    found = [item for item in wrong(text, tmp_path, state) if item.code == "GP606"]
    assert [item.hint.startswith(hint) for item in found] == [True]


def test_a_pattern_in_another_domain_is_corrected(tmp_path: Path) -> None:
    state = cluster({"gold": {}}, {f"kvm{number}.kiel.example.net": "gold" for number in range(1, 4)})
    text = CLUSTER + group("gold", '"kvm[1-3].kiel.example.com"')
    found = [item for item in wrong(text, tmp_path, state) if item.code == "GP606"]
    assert [item.hint for item in found] == ["Did you mean `kvm[1-3].kiel.example.net`?"]


def test_metadata_in_another_volume_group_than_now_is_asked(tmp_path: Path) -> None:
    text = f"{CLUSTER}volume_group_name: xenvg\ndiskparams: {{drbd: {{metavg: vg0}}}}\n"
    for now, severity, hint in (
        ("xenvg", Severity.WARNING, "is xenvg meant, as it is now?"),
        ("vg0", Severity.INFO, ""),
    ):
        state = replace(cluster({"gold": {}}), cluster=ClusterObject(own={METAVG: now}))
        (found,) = [item for item in check(text, tmp_path, state=state) if item.code == "GP127"]
        assert (found.severity, found.hint) == (severity, hint)


def test_another_volume_group_is_one_mistake(tmp_path: Path) -> None:
    own: Values = {("volume_group_name",): "xenvg", METAVG: "xenvg"}
    state = with_sizes(cluster({"gold": WIDE}, {"n1": "gold"}), (GIB, GIB))
    state = replace(state, cluster=ClusterObject(own=own))
    text = f"{CLUSTER}volume_group_name: vg0\ndiskparams: {{drbd: {{metavg: xenvg}}}}\n"
    (found,) = wrong(text, tmp_path, state)
    assert (found.code, written(text, found)) == ("GP746", "vg0")
    assert "GP137" in [item.code for item in found.consequences]


RULE = "---\ngpolicy: v1\nkind: Rule\nname: r\nfor: {kind: NodeGroup, names: [gold*]}\nschema: {required: [name]}\n"
IN_RACKS = (
    "---\ngpolicy: v1\nkind: TagRules\nowns: [nlocation, {prefix: 'cellar:', on: [node]}]\nfailure_domains: [cellar]\n"
    + "".join(
        node_set(f"set {name}", nodes, f"tags: ['cellar:{name}']") for name, nodes in (("a", "n1, n2"), ("b", "n3, n4"))
    )
)


@pytest.mark.parametrize(
    ("text", "code", "place", "hint", "following"),
    [
        (  # nodes that are named one by one in two groups
            f"{GROUP}nodes: [n1, n2, n3, n4]\n---\n{SILVER}nodes: [n3, n4]\n",
            "GP702",
            "n3",
            "name the node in one of them",
            ["GP702"],
        ),
        (  # a pattern of nodes that another group names
            f"{GROUP}nodes: [n1, n2, n3, n4]\n---\n{SILVER}nodes: ['n[34]']\n",
            "GP606",
            "'n[34]'",
            "a name wins over a pattern",
            [],
        ),
        (f"{GROUP}removed: true\n{RULE}message: m\n", "GP721", "true", "", ["GP722", "GP953"]),
        (  # a domain that is not known as a place, with one node of four in two values
            f"{GROUP}nodes: [n1, n2, n3, n4]\n{IN_RACKS}{node_set('moved', 'n3', 'tags: [cellar:a]')}",
            "GP528",
            "cellar:a",
            "leave it the tag of the place where it is",
            [],
        ),
        (  # the set that gives a tag that the node has now
            f"{GROUP}nodes: [n1, n2, n3, n4]\n{IN_RACKS.replace('n3, n4', 'n3')}"
            + node_set("own", "n4", "tags: ['owner:x']"),
            "GP520",
            "[n3]",
            "is n4 missing here?",
            [],
        ),
    ],
)
def test_a_slip_between_documents_beside_a_cluster_is_one_finding(
    text: str, code: str, place: str, hint: str, following: list[str], tmp_path: Path
) -> None:
    state = cluster({"gold": ALLOWING}, dict.fromkeys(("n1", "n2", "n3", "n4"), "gold"))
    nodes = {
        name: replace(node, tags=frozenset({"cellar:a" if name in ("n1", "n2") else "cellar:b"}))
        for name, node in state.nodes.items()
    }
    (found,) = [item for item in bad(text, tmp_path, replace(state, nodes=nodes)) if item.code != "GP744"]
    assert (found.code, written(text, found), [item.code for item in found.consequences]) == (code, place, following)
    assert hint in found.hint
