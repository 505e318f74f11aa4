"""Adopted policies of recorded clusters and of states made for single cases."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from gpolicy.adopt.adopting import Adopted, adopt_cluster
from gpolicy.cluster.sources import read_state
from gpolicy.cluster.state import ClusterObject, ClusterState, LiveGroup, LiveNode
from gpolicy.cluster.state_files import write_snapshot
from gpolicy.forecast.bridge import FORECAST
from gpolicy.ganeti.parameters import fill
from gpolicy.ganeti.vocabulary import Level, Path as ValuePath, Value, Values
from gpolicy.plan.plan import Plan
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from gpolicy.writing.new_files import write_files
from tests.cli.command_line import gpolicy
from tests.mistakes import find_mistakes
from tests.plan.planned import make_plan

CLUSTERS = Path(__file__).resolve().parents[1] / "data" / "clusters"
SOURCES = [
    *(f"config:{path}" for path in sorted(CLUSTERS.glob("*/config.data"))),
    *(f"text:{path}" for path in sorted(CLUSTERS.glob("*/htools.data"))),
    f"snapshot:{CLUSTERS.parents[2] / 'policies' / 'two-groups.snapshot.json'}",
]
MINMAX: ValuePath = ("ipolicy", "minmax")


def load(adopted: Adopted, directory: Path) -> Policy:
    write_files(adopted.files, directory)
    return load_policy(directory)


def plan_after(adopted: Adopted, state: ClusterState, directory: Path, file: str, old: str, new: str) -> Plan:
    """Return the plan of the adopted policy with one edit."""
    assert old in adopted.files[file]
    files = adopted.files | {file: adopted.files[file].replace(old, new)}
    policy = load(Adopted(files), directory)
    assert policy.findings == ()
    return make_plan(policy, state)


def cluster_state(
    *,
    cluster: Values | None = None,
    group: Values | None = None,
    tags: tuple[str, ...] = (),
    nodes: dict[str, tuple[str, ...]] | None = None,
    version: str | None = "3.0.2",
) -> ClusterState:
    own = cluster or {}
    values: Values = {("alloc_policy",): "preferred", **(group or {})}
    return ClusterState(
        source="config:made",
        name="c.example.org",
        software_version=version,
        cluster=ClusterObject(own=own, tags=frozenset(tags)),
        groups={"default": LiveGroup(name="default", own=values, effective=fill(values, own, Level.GROUP))},
        nodes={
            name: LiveNode(name=name, group="default", own={}, tags=frozenset(of_node))
            for name, of_node in (nodes or {}).items()
        },
        instances={},
    )


NAMELESS = "cluster: name: the source does not tell it; write it in place of `unnamed`"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: "/".join(source.split("/")[-2:]))
def test_the_plan_of_a_recorded_cluster_is_empty(source: str, tmp_path: Path) -> None:
    state = read_state(source)
    adopted = adopt_cluster(state)
    policy = load(adopted, tmp_path / "policy")
    assert policy.findings == ()
    assert [
        item
        for item in find_mistakes(policy, state=state, today=date.min, forecast=FORECAST)
        if item.severity == "error"
    ] == []
    plan = make_plan(policy, state)
    assert (plan.changes, plan.steps, plan.findings, plan.not_compared) == ((), (), (), ())
    assert plan.safe
    assert [str(item) for item in adopted.left_out] == ([] if state.name else [NAMELESS])
    assert adopt_cluster(state) == adopted


def test_a_recorded_cluster_reads_well() -> None:
    files = adopt_cluster(read_state(f"config:{CLUSTERS / 'rich' / 'config.data'}")).files
    assert set(files) >= {"cluster.yaml", "groups/default.yaml", "groups/gold.yaml", "nodes.yaml", "tags.yaml"}
    cluster, gold = files["cluster.yaml"], files["groups/gold.yaml"]
    assert 'ganeti_version: "3.0"\n' in cluster
    assert "\n  vcpu-ratio: 5  # Ganeti's default: 4\n" in cluster
    assert "\n  spindle-ratio: 32\n" in cluster
    assert (
        "max: {memory-size: 32G, cpu-count: 8, disk-size: 1T, disk-count: 16, nic-count: 8, spindle-use: 12}" in cluster
    )
    assert "\n    c-max-rate: 60M\n" in cluster
    assert "\n  vcpu-ratio: 6  # cluster: 5\n" in gold
    assert "\n    metavg: xenvg  # own value, as the cluster's\n" in gold
    assert "\nnodes:\n  - node4\n  - node5\n" in gold
    assert "\n  fake: {mem_node: 8G}\n" in files["nodes.yaml"]
    assert all(len(line) <= 120 for name, text in files.items() if name.endswith("yaml") for line in text.splitlines())


def test_unreadable_values_are_noted_and_not_declared() -> None:
    files = adopt_cluster(read_state(f"text:{CLUSTERS / 'full' / 'htools.data'}")).files
    group = next(text for name, text in files.items() if name.startswith("groups/"))
    assert "# The source does not show " in group
    assert "ipolicy:" not in group
    assert "# ganeti_version: " in files["cluster.yaml"]


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        (("ipolicy", "vcpu-ratio"), 0.0, "reset"),
        (("ipolicy", "vcpu-ratio"), -1.0, "-1"),
        (("beparams", "maxmem"), 130, "4 MiB"),
        (("ipolicy", "memory-ratio"), 1.0, "does not know"),
        (("diskparams", "rbd", "user-id"), "admin", "does not know"),
        (("diskparams", "drbd", "metavg"), "default", "default"),
        (("nicparams", "link"), "br\n0", "not printable ASCII"),
        (("nicparams", "link"), "br\u00e9", "ASCII"),
    ],
)
def test_inexpressible_values_are_left_out_and_noted(path: ValuePath, value: Value, reason: str) -> None:
    adopted = adopt_cluster(cluster_state(cluster={path: value}))
    assert [(item.object, item.what) for item in adopted.left_out] == [("cluster", ".".join(path))]
    assert reason in adopted.left_out[0].reason
    comment = [
        line for line in adopted.files["cluster.yaml"].splitlines() if line.startswith(f"# - {'.'.join(path)}: ")
    ]
    assert len(comment) == 1


def test_of_much_that_is_left_out_the_files_name_all(tmp_path: Path) -> None:
    state = cluster_state(cluster={("hvparams", f"h{number}", "a"): 1 for number in range(150)})
    state.groups["n\u00e4me"] = replace(state.groups["default"], name="n\u00e4me")
    write_snapshot(state, tmp_path / "state.json", taken_at="2026-01-01T00:00:00Z")
    said = gpolicy(
        "adopt", "--state", f"snapshot:{tmp_path / 'state.json'}", "--save", str(tmp_path / "adopted")
    ).stderr
    assert said.count("left out") == 101
    assert said.endswith("gpolicy: left out 51 more: comments in the written files name them all\n")
    assert (tmp_path / "adopted" / "cluster.yaml").read_text().count("# - hvparams.h") == 150
    assert "# - group/n\u00e4me: it cannot be declared" in (tmp_path / "adopted" / "cluster.yaml").read_text()


def test_values_that_check_refuses_are_left_out() -> None:
    templates: ValuePath = ("ipolicy", "disk-templates")
    state = cluster_state(cluster={("enabled_disk_templates",): ["plain"]}, group={templates: ["drbd", "plain"]})
    adopted = adopt_cluster(state)
    reasons = {(item.object, item.what): item.reason for item in adopted.left_out}
    assert "GP301" in reasons["group/default", "ipolicy.disk-templates"]


def test_a_group_with_its_own_std_keeps_its_other_values() -> None:
    adopted = adopt_cluster(cluster_state(group={("ipolicy", "std", "cpu-count"): 1, ("ipolicy", "vcpu-ratio"): 2.0}))
    assert [item.what for item in adopted.left_out] == ["ipolicy.std.cpu-count"]
    assert "vcpu-ratio: 2\n" in adopted.files["groups/default.yaml"]


@pytest.mark.parametrize(
    ("software", "written"),
    [("3.0.2", '"3.0"'), ("3.1.0~rc1", '"3.1"'), ("2.15.2", '"2.15"'), ("4.1", '"3.2"'), ("2.9", None), (None, None)],
)
def test_the_release_is_the_newest_known_one(software: str | None, written: str | None) -> None:
    text = adopt_cluster(cluster_state(version=software)).files["cluster.yaml"]
    line = next((line for line in text.splitlines() if line.startswith("ganeti_version: ")), None)
    assert line == (None if written is None else f"ganeti_version: {written}")


def test_equal_nodes_are_one_set() -> None:
    nodes: dict[str, tuple[str, ...]] = {
        f"node{n}": ("rack:a",) if n < 4 else ("rack:b", "power:1") if n < 6 else () for n in range(1, 8)
    }
    policy_text = adopt_cluster(cluster_state(nodes=nodes)).files["nodes.yaml"]
    assert policy_text.count("kind: NodeSet") == 2
    assert "name: rack:a\n" in policy_text
    assert "nodes: [node1, node2, node3]\n" in policy_text
    assert 'name: "power:1 rack:b"\n' in policy_text
    assert "node6" not in policy_text


# --- tags ----------------------------------------------------------------------------------------------------------

TAGS = (
    "htools:iextags:service:",
    "htools:iextags:db",
    "htools:nlocation:rack",
    "htools:migration:hv",
    "htools:allowmigration:hv:4.1::hv:4.2",
    "htools:desiredlocation:rack:",
    "owner:x",
)


def test_tags_are_written_by_their_meaning(tmp_path: Path) -> None:
    state = cluster_state(tags=TAGS)
    adopted = adopt_cluster(state)
    text = adopted.files["tags.yaml"]
    assert "exclusion:\n  - {raw: db}\n  - service\n" in text
    assert "failure_domains:\n  - rack\n" in text
    assert 'allow:\n    - {from: "hv:4.1", to: "hv:4.2"}\n' in text
    assert "desired_location:\n  - rack\n" in text
    assert "tags:\n  - owner:x\n" in adopted.files["cluster.yaml"]
    tags = load(adopted, tmp_path / "p").cluster_tags
    assert tags is not None
    assert sorted(tag.value for tag in tags) == sorted(TAGS)


def test_a_removed_tag_rule_is_removed_from_the_cluster(tmp_path: Path) -> None:
    state = cluster_state(tags=TAGS)
    plan = plan_after(adopt_cluster(state), state, tmp_path / "p", "tags.yaml", "  - {raw: db}\n", "")
    assert [(change.object, change.path) for change in plan.changes] == [("cluster", ("tags",))]
    assert isinstance(plan.changes[0].after, list)
    assert set(TAGS) - set(map(str, plan.changes[0].after)) == {"htools:iextags:db"}


def test_a_node_that_moves_to_another_rack_loses_the_old_tag(tmp_path: Path) -> None:
    state = cluster_state(tags=TAGS, nodes={"node1": ("rack:a", "note:keep")})
    plan = plan_after(adopt_cluster(state), state, tmp_path / "p", "nodes.yaml", "rack:a", "rack:b")
    assert [change.after for change in plan.changes] == [["note:keep", "rack:b"]]


def test_tags_outside_the_rules_are_never_owned(tmp_path: Path) -> None:
    state = cluster_state(tags=TAGS)
    plan = plan_after(adopt_cluster(state), state, tmp_path / "p", "cluster.yaml", "tags:\n  - owner:x\n", "")
    assert plan.changes == ()


def test_a_family_with_a_tag_that_is_left_out_is_not_owned(tmp_path: Path) -> None:
    state = cluster_state(tags=("htools:nlocation:rack", "htools:nlocation:r\u00e4ck"))
    adopted = adopt_cluster(state)
    assert "owns: []" in adopted.files["tags.yaml"].replace('\n  - {prefix: "rack:", "on": [node]}', " []")
    assert make_plan(load(adopted, tmp_path / "p"), state).changes == ()


def test_tags_of_other_tools_stay() -> None:
    adopted = adopt_cluster(cluster_state(nodes={"node1": ("htools:standby:auto", "rack:a")}))
    assert "htools:standby:auto" not in adopted.files["nodes.yaml"].partition("gpolicy: v1")[2]
    assert [item.what for item in adopted.left_out] == ["tag htools:standby:auto"]


@pytest.mark.parametrize("order", [["drbd", "plain"], ["plain", "drbd"]])
def test_the_order_of_templates_is_the_clusters(order: list[Value], tmp_path: Path) -> None:
    path: ValuePath = ("ipolicy", "disk-templates")
    state = cluster_state(cluster={path: order}, group={path: order[::-1]})
    assert make_plan(load(adopt_cluster(state), tmp_path), state).changes == ()
    turned = cluster_state(cluster={path: order[::-1]}, group={path: order})
    assert [change.after for change in make_plan(load_policy(tmp_path), turned).changes] == [order, order[::-1]]
