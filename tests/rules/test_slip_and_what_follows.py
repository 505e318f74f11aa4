"""Slips of which several findings follow: the one that stands at the slip, or names its best witness, comes first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.state import Unreadable
from gpolicy.findings import Finding, Severity
from gpolicy.ganeti.vocabulary import Level, Values
from tests.rules.policy_texts import CLUSTER, EXCLUSIVE, GROUP, node_set, spec
from tests.rules.run_rules import check, cluster, codes, with_instance, with_resources
from tests.rules.test_plan_guards import ALLOWING
from tests.rules.test_slips_between_documents import bad
from tests.rules.test_slips_with_cluster import written

STD = "  std: {memory-size: 40G, cpu-count: 7, disk-size: 3000G, disk-count: 1, nic-count: 1, spindle-use: 2}\n"
PARTS = (
    f"{CLUSTER}ipolicy:\n  disk-templates: [plain]\n  vcpu-ratio: 1\n{STD}  minmax:\n"
    + spec("whole", "116G 120G", "22 22", "9950G 11900G", "6 6")
    + spec("third", "39G 40G", "7 7", "2000G 3970G", "2 2")
)
HARDWARE = "hardware: {memory: 128G, cpus: 24, pv_count: 6, pv_size: 2T}\n"
TEST = "---\ngpolicy: v1\nkind: Test\ntests:\n  - name: t\n    "


def following(found: Finding) -> list[str]:
    return codes(found.consequences)


@pytest.mark.parametrize(
    ("groups", "counted"),
    [
        (f"---\n{EXCLUSIVE}", False),
        (f"---\n{EXCLUSIVE}---\n{GROUP}ipolicy:\n  minmax:\n{spec('s', '1G 2G', '1 1', '9G 10G', '1 2')}", False),
        (f"---\n{EXCLUSIVE}---\n{GROUP}", True),
        ("", True),
    ],
)
def test_the_spindles_of_std_do_not_count_where_only_exclusive_storage_has_the_sizes(
    groups: str, counted: bool, tmp_path: Path
) -> None:
    found = [item for item in check(PARTS + groups, tmp_path) if item.code == "GP219"]
    assert ["size whole" in item.message for item in found] == [True] * counted


MIRRORED = (
    f"{GROUP}nodes: [n1, n2]\nipolicy:\n  disk-templates: [{{}}]\ndiskparams:\n  drbd: {{{{resync-rate: 100M}}}}\n"
)
ON_DRBD = (
    f"{TEST}check_instance: {{group: gold, memory-size: 1G, cpu-count: 1, disks: [1G], disk-template: drbd}}\n"
    "    expect: {refused: false}\n"
)


def test_a_template_that_parameters_and_a_test_are_about_is_asked_for_at_the_list(tmp_path: Path) -> None:
    text = f"{CLUSTER}enabled_disk_templates: [plain, drbd]\n---\n{MIRRORED.format('plain')}"
    (found,) = bad(text + ON_DRBD, tmp_path)
    assert (found.code, written(text, found), following(found)) == ("GP307", "[plain]", ["GP817"])
    assert found.hint == "is drbd meant too, as a test has it? Else leave its parameters out"
    (found,) = bad(text, tmp_path)
    assert (written(text, found), found.hint) == ("drbd", "leave its parameters out here, or allow drbd")


def test_instances_are_better_witnesses_of_a_template_than_its_parameters(tmp_path: Path) -> None:
    own: Values = {**ALLOWING, ("ipolicy", "disk-templates"): ["drbd"], ("diskparams", "drbd", "resync-rate"): 102400}
    state = with_instance(cluster({"gold": own}, {"n1": "gold", "n2": "gold"}), "n1", template="drbd", hypervisor="kvm")
    instances = {name: replace(item, secondary_nodes=("n2",), nic_count=1) for name, item in state.instances.items()}
    text = f"{CLUSTER}enabled_disk_templates: [plain, drbd]\n---\n{MIRRORED.format('plain')}{ON_DRBD}"
    (found,) = bad(text, tmp_path, replace(state, instances=instances))
    assert (found.code, written(text, found), following(found)) == ("GP749", "[plain]", ["GP307", "GP817"])
    assert "web1.example.org (drbd)" in found.message


def test_sizes_that_the_state_does_not_show_are_no_missing_sizes(tmp_path: Path) -> None:
    large = spec("large", "1G 4G", "1 2", "10G 90G")
    text = f"{GROUP}alloc_policy: preferred\nipolicy:\n  minmax:\n{large}"
    text += "---\ngpolicy: v1\nkind: Guards\nguards:\n  - {name: room, group: gold, spec: large, at_least: 1}\n"
    state = with_resources(
        cluster({"gold": {**ALLOWING, ("alloc_policy",): "unallocable"}}, {"n1": "gold", "n2": "gold"}),
        memory_total=1 << 16, memory_free=1 << 16, memory_node=0, cpu_total=8, disk_total=1 << 20, disk_free=1 << 20,
    )  # fmt: skip
    hidden = replace(state, unreadable=(Unreadable(level=Level.GROUP, prefix=("ipolicy",)),))
    (found,) = [item for item in check(text, tmp_path, state=hidden) if item.code == "GP748"]
    assert found.hint.startswith(
        "cannot be measured: the state does not show the own sizes of group gold, so that size"
    )
    assert "GP748" not in codes(check(text, tmp_path, state=state))


NUMBERED = f"{GROUP}nodes: ['a0[1-4].example.org']\n---\n{GROUP.replace('gold', 'b')}nodes: ['b0[1-4].example.org']\n"
EVEN = "ndparams: {cpu_speed: 2}\n"


@pytest.mark.parametrize(
    ("pattern", "code", "hint"),
    [
        ("?O2.example.org", "GP612", "is ?02.example.org meant?"),
        ("?o2.example.org", "GP613", "is ?02.example.org meant?"),
        ("a0l.example.org", "GP613", "is a01.example.org meant?"),
        ("?O9.example.org", "GP612", "* is for any letters"),
    ],
)
def test_a_letter_for_a_digit_is_asked_for(pattern: str, code: str, hint: str, tmp_path: Path) -> None:
    (found,) = bad(NUMBERED + node_set("even", f"'{pattern}', b04.example.org", EVEN), tmp_path)
    assert (found.code, found.hint.startswith(hint)) == (code, True), found


def test_a_letter_for_a_digit_is_asked_for_beside_the_cluster(tmp_path: Path) -> None:
    state = cluster({"gold": {}}, {f"a0{number}.example.org": "gold" for number in (1, 2, 3, 4)})
    text = f"{GROUP}nodes: ['a0[1-4].example.org']\n" + node_set("even", "'?o2.example.org'", EVEN)
    (found,) = [item for item in check(text, tmp_path, state=state) if item.code == "GP606"]
    assert found.hint == "Did you mean `?02.example.org`?"


@pytest.mark.parametrize(
    ("tags", "found"),
    [
        ("services:cache", ["Did you mean `service:cache`?"]),
        ("service:cache", []),
        ("owner:cache", []),
    ],
)
def test_a_tag_of_a_test_that_is_almost_an_exclusion(tags: str, found: list[str], tmp_path: Path) -> None:
    text = f"gpolicy: v1\nkind: TagRules\nexclusion: [service]\n---\n{GROUP}nodes: [n1]\n{TEST}"
    text += f"place: {{group: gold, memory-size: 1G, tags: ['{tags}']}}\n    expect: {{refused: false}}\n"
    hints = [item for item in check(text, tmp_path) if item.code == "GP529"]
    assert [item.hint for item in hints] == found
    assert [item.span and text.splitlines()[item.span.line - 1].split(":")[0].strip() for item in hints] == [
        "place"
    ] * len(found)


def test_figures_of_the_forgotten_volume_group_follow_from_its_name(tmp_path: Path) -> None:
    text = f"{CLUSTER}volume_group_name: vgdata\ndiskparams: {{drbd: {{metavg: datavg}}}}\n"
    text += "disk_state: {plain: {datavg: {disk_reserved: 50G}}}\n"
    (found,) = [item for item in check(text, tmp_path) if item.code in ("GP137", "GP127", "GP150")]
    assert (found.code, {*following(found)} >= {"GP127", "GP150"}) == ("GP137", True)


def test_a_share_that_a_node_does_not_give_explains_std_outside_of_it(tmp_path: Path) -> None:
    third = spec("third", "39G 40G", "7 7", "2000G 3970G", "2 2")
    assert third in PARTS
    half = spec("half", "58G 60G", "11 11", "4000G 5960G", "3 3")
    text = PARTS.replace(third, half + third.replace("spindle-use: 2", "spindle-use: 3"))
    state = cluster({"dedicated": {("ndparams", "exclusive_storage"): True}}, {"m1": "dedicated"})
    state = with_instance(state, "m1", template="plain", hypervisor="kvm")
    (found,) = [item for item in bad(f"{text}---\n{EXCLUSIVE}{HARDWARE}", tmp_path, state) if item.code[:4] != "GP7"]
    assert (found.code, found.severity, following(found)) == ("GP416", Severity.ERROR, ["GP205"])


@pytest.mark.parametrize(
    ("group", "more", "expected"),
    [
        (EXCLUSIVE.replace("true", "false"), "", [("GP414", "false")]),
        (EXCLUSIVE, "", []),
        (EXCLUSIVE.replace("true", "false"), f"---\n{EXCLUSIVE.replace('dedicated', 'other')}", []),
    ],
)
def test_what_needs_exclusive_storage_follows_from_the_line_that_turns_it_off(
    group: str, more: str, expected: list[tuple[str, str]], tmp_path: Path
) -> None:
    text = f"{PARTS}---\n{group}nodes: ['m[1-6]']\n{HARDWARE}{more}"
    assert [(item.code, written(text, item)) for item in bad(text, tmp_path)] == expected
    place = (
        "place: {group: dedicated, spec: third, disks: [{size: 2000G, spindles: 2}]}\n    expect: {refused: false}\n"
    )
    found = [item for item in bad(f"{text}{TEST}{place}", tmp_path) if item.code == "GP414"]
    assert ["GP818" in following(item) for item in found] == [True] * len(expected)


def test_domains_that_leave_none_follow_from_a_node_in_place_of_another(tmp_path: Path) -> None:
    rules = "gpolicy: v1\nkind: TagRules\nowns: [nlocation]\nfailure_domains: [hall, ups]\n---\n"
    text = f"{rules}{GROUP}nodes: ['n[1-4]']\n" + "".join(
        [
            node_set("hall x", "n1, n3", "tags: ['hall:x']"),
            node_set("hall y", "n2, n4", "tags: ['hall:y']"),
            node_set("ups a", "n1, n4", "tags: ['ups:a']"),
            node_set("ups b", "n2, n4", "tags: ['ups:b']"),
        ]
    )
    found = bad(text, tmp_path)
    assert codes(found) == ["GP520"]
    assert [item.message for item in found[0].related] == ["the tag that it gives"]


BATCH = f"{GROUP.replace('gold', 'batch')}nodes: [batch1.b.org, db3.b.org]\n---\n{GROUP.replace('gold', 'db')}nodes: "


def test_a_node_of_another_group_in_place_of_the_one_that_is_lacking(tmp_path: Path) -> None:
    nodes = {"batch1.b.org": "batch", "batch2.b.org": "batch", **{f"db{number}.b.org": "db" for number in (1, 2, 3)}}
    state = with_instance(cluster({"batch": {}, "db": {}}, nodes), "db3.b.org", template="drbd", hypervisor="kvm")
    instances = {name: replace(item, secondary_nodes=("db1.b.org",)) for name, item in state.instances.items()}
    text = f"{BATCH}['db[1-2].b.org']\n"
    (found,) = bad(text, tmp_path, replace(state, instances=instances))
    assert (found.code, written(text, found), following(found)) == ("GP619", "db3.b.org", ["GP741"])
    assert found.hint.startswith("is batch2.b.org meant?")


def test_the_node_that_only_a_set_names_is_meant_where_a_list_has_one_of_another_group(tmp_path: Path) -> None:
    text = f"{BATCH}['db[1-3].b.org']\n{node_set('rack', 'db1.b.org, batch1.b.org, batch2.b.org', EVEN)}"
    (found,) = bad(text, tmp_path)
    assert (found.code, written(text, found), following(found)) == ("GP611", "db3.b.org", ["GP613"])
    assert found.hint.startswith("is batch2.b.org meant?")


def test_what_does_not_fit_a_renamed_group_follows_from_its_new_name(tmp_path: Path) -> None:
    state = with_instance(cluster({"silver": {}}, {"n1": "silver"}), "n1", template="plain", hypervisor="kvm")
    text = f"{GROUP}nodes: [n1]\nipolicy:\n  minmax:\n{spec('s', '4G 8G', '1 1', '1G 10G', '1 2')}"
    (found,) = check(text, tmp_path, state=state)
    assert (found.code, following(found)) == ("GP728", ["GP723"])
    old = "---\ngpolicy: v1\nkind: {}\n"
    using = (
        old.format("Rule")
        + "name: r\nfor: {kind: NodeGroup, names: [silver]}\nschema: {required: [name]}\nmessage: m\n",
        old.format("Waiver") + "waivers:\n  - {rule: GP224, where: group/silver, reason: x, until: 2030-01-01}\n",
    )
    for more, code in zip(using, ("GP953", "GP902"), strict=True):
        (renamed,) = bad(text + more, tmp_path, state)
        assert (renamed.code, code in following(renamed)) == ("GP728", True)


def test_a_tag_is_misspelt_where_the_cluster_has_tags_with_the_owned_prefix(tmp_path: Path) -> None:
    state = cluster({"gold": {}}, {"n1": "gold"})
    state = replace(state, groups={"gold": replace(state.groups["gold"], tags=frozenset({"rent:whole"}))})
    text = f"{GROUP}tags: ['rentt:whole']\n---\ngpolicy: v1\nkind: TagRules\nowns: [{{prefix: 'rent:', on: [group]}}]\n"
    (found,) = bad(text, tmp_path, state)
    assert (found.code, found.span and found.span.line, found.hint) == ("GP523", 4, "is rent:whole meant?")
    (alone,) = bad(text, tmp_path)
    assert (alone.code, alone.hint) == ("GP523", 'write "rentt:"')


def test_a_domain_without_tags_and_a_tag_that_is_almost_of_it_are_one_finding(tmp_path: Path) -> None:
    state = cluster({"gold": {}}, {"n1": "gold"})
    owns = "owns: [migration, {prefix: 'net:', on: [node]}]"
    rules = f"---\ngpolicy: v1\nkind: TagRules\n{owns}\nmigration: {{domains: [net]}}\n"
    (found,) = bad(f"{GROUP}nodes: [n1]\n{rules}{node_set('s', 'n1', 'tags: [nets:fast]')}", tmp_path, state)
    assert (found.code, following(found)) == ("GP517", ["GP522"])
    assert found.hint.startswith("rename the tags nets:… to net:…")


def test_nodes_of_which_the_cluster_has_none_are_perhaps_those_of_another_cluster(tmp_path: Path) -> None:
    state = cluster({"gold": {}}, {"turin-n1": "gold", "turin-n2": "gold"})
    text = f"{GROUP}nodes: [oslo-n1, oslo-n2]\n{node_set('rack', 'oslo-n*', 'tags: [a]')}"
    (found,) = bad(text, tmp_path, state)
    assert (found.message, found.span and found.span.line) == (
        "the cluster has none of the 2 nodes that the policy names",
        4,
    )
    assert following(found) == ["GP701", "GP606"]
    assert "another cluster" in found.hint
    one = bad(text.replace("oslo-n1", "turin-n1"), tmp_path, state)
    assert ["another cluster" in item.hint for item in one] == [False] * len(one)
