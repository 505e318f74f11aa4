"""The effective policy: values and their origins."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from gpolicy.data import data_directory
from gpolicy.ganeti.parameters import fill
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, Level, Path as ValuePath
from gpolicy.json_values import json_text
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from gpolicy.policy.model import INHERIT
from gpolicy.report.show_answer import SHOW_DOCUMENT, show_answer
from gpolicy.show.effective_policy import Declaration, EffectiveObject, EffectivePolicy, EffectiveValue, effective_view
from tests.report.rendered import Page, html_of, markdown_of, page_of_markdown, text_of

POLICIES = Path(__file__).resolve().parents[2] / "policies"
RATIO: ValuePath = ("ipolicy", "vcpu-ratio")
SPINDLES: ValuePath = ("ipolicy", "spindle-ratio")
PORT: ValuePath = ("ndparams", "ssh_port")
COUNT: ValuePath = ("ndparams", "spindle_count")

POLICY = """\
gpolicy: v1
kind: Cluster
name: c.example.org
ipolicy: {vcpu-ratio: 4, std: {cpu-count: 2}}
ndparams: {ssh_port: 22}
diskparams: {drbd: {protocol: C, metavg: xenvg}, plain: {stripes: 1}}
hv_state: {kvm: {mem_node: 1G}}
---
gpolicy: v1
kind: NodeGroup
name: base
template: true
ipolicy: {vcpu-ratio: 2, spindle-ratio: 8}
---
gpolicy: v1
kind: NodeGroup
name: gold
extends: base
nodes: [n1, "g*"]
ipolicy: {vcpu-ratio: 1}
diskparams: {drbd: {protocol: A}}
ndparams: {ssh_port: inherit, spindle_count: 4}
---
gpolicy: v1
kind: NodeGroup
name: plain
nodes: [n2]
ipolicy: {spindle-ratio: inherit}
---
gpolicy: v1
kind: NodeSet
name: some
nodes: [n1, n2]
ndparams: {spindle_count: 6}
---
gpolicy: v1
kind: NodeSet
name: by group
groups: [gold]
tags: [a]
"""


def load(tmp_path: Path, text: str = POLICY) -> Policy:
    file = tmp_path / "policy.yaml"
    file.write_text(text, encoding="utf-8")
    policy = load_policy(file)
    assert policy.findings == ()
    return policy


@pytest.fixture
def view(tmp_path: Path) -> EffectivePolicy:
    return effective_view(load(tmp_path))


def item(view: EffectivePolicy, label: str, group: str | None = None) -> EffectiveObject:
    return next(each for each in view.objects if each.label == label and group in (None, each.group))


def value(view: EffectivePolicy, label: str, path: ValuePath, group: str | None = None) -> EffectiveValue:
    return next(each for each in item(view, label, group).values if each.path == path)


def test_an_own_value_wins_over_its_base_and_the_cluster(view: EffectivePolicy) -> None:
    found = value(view, "group/gold", RATIO)
    assert (found.state, found.value) == (Declaration.EXPLICIT, 1.0)
    assert [(over.object, over.base, over.value) for over in found.overrides] == [
        ("group/gold", "base", 2.0),
        ("cluster", None, 4.0),
    ]


def test_a_value_from_a_base_is_the_objects_own(view: EffectivePolicy) -> None:
    found = value(view, "group/gold", SPINDLES)
    assert found.origin is not None
    assert (found.state, found.value, found.origin.base) == (Declaration.EXPLICIT, 8.0, "base")
    assert found.origin.span.line == 13


def test_inherit_gives_the_value_of_the_level_above(view: EffectivePolicy) -> None:
    found = value(view, "group/gold", PORT)
    assert found.origin is not None
    assert found.span is not None
    assert (found.state, found.value, found.origin.object) == (Declaration.INHERIT, 22, "cluster")
    assert found.span.line == 22


def test_inherit_without_a_managed_value_is_unknown(view: EffectivePolicy) -> None:
    found = value(view, "group/plain", SPINDLES)
    assert (found.state, found.value, found.origin) == (Declaration.INHERIT, None, None)


def test_missing_values_of_a_group_come_from_the_cluster(view: EffectivePolicy) -> None:
    found = value(view, "group/plain", RATIO)
    assert found.origin is not None
    assert (found.state, found.value, found.origin.object) == (Declaration.UNMANAGED, 4.0, "cluster")


def test_disk_parameters_are_filled_one_by_one(view: EffectivePolicy) -> None:
    assert value(view, "group/gold", ("diskparams", "drbd", "protocol")).value == "A"
    assert value(view, "group/gold", ("diskparams", "drbd", "metavg")).value == "xenvg"
    assert value(view, "group/gold", ("diskparams", "plain", "stripes")).value == 1


def test_what_declares_resources_counts_below_where_ganeti_inherits_nothing(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(
        "gpolicy: v1\nkind: Cluster\nname: c.example.org\nlimits: {max_node_failures: 2, oversubscription: 1.5}\n"
        "hv_state: {kvm: {mem_node: 1G, mem_total: 64G}}\n"
        "---\ngpolicy: v1\nkind: NodeGroup\nname: g\nlimits: {max_node_failures: 1}\n"
        "hv_state: {kvm: {mem_node: 2G}}\nhardware: {memory: 64G, pv_size: [1T, 2T]}\nnodes: [n1]\n"
        "---\ngpolicy: v1\nkind: NodeSet\nname: s\nnodes: [n1]\nhv_state: {kvm: {mem_total: 32G}}\n"
    )
    view = effective_view(load_policy(tmp_path / "policy.yaml"))

    def shown(label: str) -> dict[str, tuple[object, str | None]]:
        values = item(view, label).values
        return {".".join(each.path): (each.value, each.origin.object if each.origin else None) for each in values}

    assert shown("group/g") == {
        "hv_state.kvm.mem_total": (65536, "cluster"),
        "hv_state.kvm.mem_node": (2048, "group/g"),
        "hardware.memory": (65536, "group/g"),
        "hardware.pv_size": ([1048576, 2097152], "group/g"),
        "limits.max_node_failures": (1, "group/g"),
        "limits.oversubscription": (1.5, "cluster"),
    }
    assert shown("node-set/s") == {
        "hv_state.kvm.mem_total": (32768, "node-set/s"),
        "hv_state.kvm.mem_node": (2048, "group/g"),
    }
    text = text_of(show_answer(view))
    assert re.search(r"hardware.pv_size +\[1T, 2T\] +own", text)
    assert re.search(r"limits.max_node_failures +1 +own, over 2 of cluster", text)
    assert re.search(r"limits.oversubscription +1.5 +from cluster\n", text)


def test_a_node_set_stands_once_for_each_group_of_its_nodes(view: EffectivePolicy) -> None:
    assert [each.group for each in view.objects if each.label == "node-set/some"] == ["gold", "plain"]
    assert [over.value for over in value(view, "node-set/some", COUNT, "gold").overrides] == [4]
    assert value(view, "node-set/some", COUNT, "plain").overrides == ()
    assert value(view, "node-set/by group", COUNT).value == 4
    assert value(view, "node-set/by group", PORT).value == 22


@pytest.mark.parametrize("name", ["two-groups", "fleet/amsterdam", "fleet/berlin"])
def test_the_values_are_those_that_ganeti_fills(name: str) -> None:
    policy = load_policy(POLICIES / name)
    assert policy.cluster is not None
    view = effective_view(policy)
    cluster = {path: leaf.value for path, leaf in policy.cluster.leaves.items() if leaf.value is not INHERIT}
    for group in policy.groups.values():
        own = {path: leaf.value for path, leaf in group.leaves.items() if leaf.value is not INHERIT}
        values = [each for each in item(view, group.label).values if each.path[0] not in ("hardware", "hv_state")]
        shown = {each.path: each.value for each in values if each.origin is not None}
        assert shown == fill(own, cluster, Level.GROUP)


def test_json_is_what_its_schema_says(view: EffectivePolicy) -> None:
    schema = json.loads((data_directory("schemas") / "output" / "show.json").read_text(encoding="utf-8"))
    Draft7Validator.check_schema(schema)
    assert list(Draft7Validator(schema).iter_errors(SHOW_DOCUMENT.data(view))) == []
    assert json.loads(json_text(SHOW_DOCUMENT.data(view))) == SHOW_DOCUMENT.data(view)
    assert SHOW_DOCUMENT.data(view)["format_version"] == "1.1"


def test_text_shows_places_only_when_asked(view: EffectivePolicy) -> None:
    plain, with_origin = text_of(show_answer(view)), text_of(show_answer(view, origin=True))
    assert "policy.yaml:" not in plain
    assert "own, over 4 of cluster" in plain
    assert "policy.yaml:20:23" in with_origin
    overridden = with_origin[with_origin.index("  Inherited and overridden") :].splitlines()
    assert [re.sub(r" \S*policy\.yaml:", " ", line).split() for line in overridden[1:4]] == [
        ["parameter", "value", "declared", "at", "of"],
        ["ipolicy.vcpu-ratio", "2", "13:23", "base"],
        ["ipolicy.vcpu-ratio", "4", "4:23", "cluster"],
    ]


def test_text_names_the_specs_once() -> None:
    text = text_of(show_answer(effective_view(load_policy(POLICIES / "two-groups"))))
    lines = [line.split() for line in text.splitlines()]
    assert ["size", *SPEC_PARAMETERS] in lines
    assert ["quarter", "61G..62G", "7", "2000G..2982G", "1", "1..8", "3"] in lines
    assert sum(line[:1] == ["large"] for line in lines) == 1, "a group that inherits sizes refers to the cluster"


def test_each_object_is_shown_also_one_without_values(tmp_path: Path) -> None:
    text = text_of(show_answer(effective_view(load(tmp_path, "gpolicy: v1\nkind: NodeGroup\nname: bare\n"))))
    assert text == "Effective policy\n1 object of a policy for Ganeti 3.0\n\ngroup/bare: no values\n"


def test_no_row_of_a_text_is_cut(view: EffectivePolicy) -> None:
    text = text_of(show_answer(view, origin=True))
    assert " more " not in text
    assert text.count("ndparams.spindle_count") == sum(
        1 + len(each.overrides) for shown in view.objects for each in shown.values if each.path == COUNT
    )


def test_nothing_from_the_policy_moves_the_cursor(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text('gpolicy: v1\nkind: NodeGroup\nname: "a\\e[2Jb"\nnodes: ["\\u202e"]\n', encoding="utf-8")
    text = text_of(show_answer(effective_view(load_policy(file)), origin=True))
    assert all(line.isprintable() for line in text.splitlines())


def test_markdown_and_the_page_have_each_value_in_a_table(view: EffectivePolicy) -> None:
    answer = show_answer(view, origin=True)
    for page in (page_of_markdown(markdown_of(answer)), Page(html_of(answer))):
        tables = iter([table for table in page.tables if table[0][-1] == "from"])
        for shown in view.objects:
            if shown.values:
                rows = next(tables)[1:]
                assert [row[0] for row in rows] == [".".join(each.path) for each in shown.values]
                places = [str(each.origin.span) if each.origin else "" for each in shown.values]
                assert [row[2] for row in rows] == places


def test_a_policy_without_objects_says_so(tmp_path: Path) -> None:
    view = effective_view(load(tmp_path, "gpolicy: v1\nkind: TagRules\nowns: [iextags]\n"))
    assert view.objects == ()
    assert text_of(show_answer(view)) == "Effective policy\n0 objects of a policy for Ganeti 3.0\n"
