"""In which document drift is written, and what is not written, with its reason."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

import gpolicy
from gpolicy.cluster.state import Unreadable
from gpolicy.drift.write_back import WriteBack, _changes, _named
from gpolicy.ganeti.vocabulary import DEFAULT_MIN, Level, Values
from gpolicy.policy.loading import load_policy
from gpolicy.writing.value_edits import Draft, UnwritableError, add_value, place_of
from tests.drift.test_comparing import RATIO
from tests.drift.written import (
    CLUSTER,
    RULES,
    SPINDLES,
    files_of,
    gold,
    group_with,
    one_file,
    pair,
    pairs_text,
    reasons,
    spec,
    text_of,
    with_nodes,
    write,
)
from tests.plan.planned import cluster

# --- bases ------------------------------------------------------------------------------------------------------------

BASE = """
    gpolicy: v1
    kind: NodeGroup
    name: base
    template: true
    ipolicy: {vcpu-ratio: 2}  # for all
"""
TWO = """
    gpolicy: v1
    kind: NodeGroup
    name: gold
    extends: base
    tags: []
    ---
    gpolicy: v1
    kind: NodeGroup
    name: silver
    extends: base
"""


def test_what_all_that_extend_a_base_have_is_written_into_the_base(tmp_path: Path) -> None:
    files_of(tmp_path, {"base.yaml": BASE, "two.yaml": TWO})
    wrote = write(tmp_path, cluster(groups={"gold": {RATIO: 4.0}, "silver": {RATIO: 4.0}}))
    assert [(str(item.how), item.span.file, item.span.line) for item in wrote.written] == [
        ("in-place", str(tmp_path / "base.yaml"), 5)
    ] * 2
    assert "ipolicy: {vcpu-ratio: 4}  # for all" in text_of(tmp_path, "base.yaml")
    assert text_of(tmp_path, "two.yaml") == textwrap.dedent(TWO).lstrip()


def test_what_one_of_several_has_becomes_its_own_value(tmp_path: Path) -> None:
    files_of(tmp_path, {"base.yaml": BASE, "two.yaml": TWO})
    wrote = write(tmp_path, cluster(groups={"gold": {RATIO: 4.0}, "silver": {RATIO: 2.0}}))
    assert [(item.drift.object, str(item.how), item.span.line) for item in wrote.written] == [
        ("group/gold", "override", 6)
    ]
    first = "gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: base\nipolicy:\n  vcpu-ratio: 4\ntags: []\n"
    assert text_of(tmp_path, "two.yaml").startswith(first)
    assert text_of(tmp_path, "base.yaml") == textwrap.dedent(BASE).lstrip()


def test_what_a_written_base_changes_in_the_same_policy_is_left(tmp_path: Path) -> None:
    files_of(tmp_path, {"base.yaml": BASE, "two.yaml": TWO})
    wrote = write(tmp_path, cluster(groups={"gold": {RATIO: 4.0}, "silver": {RATIO: 2.0}}), in_bases=True)
    assert [(item.drift.object, str(item.how)) for item in wrote.written] == [("group/gold", "in-place")]
    assert [(item.object, item.found) for item in wrote.left] == [("group/silver", 2.0)]
    assert "vcpu-ratio: 4}" in text_of(tmp_path, "base.yaml")


def test_only_what_is_selected_is_written(tmp_path: Path) -> None:
    files_of(tmp_path, {"base.yaml": BASE, "two.yaml": TWO})
    state = cluster(groups={"gold": {RATIO: 4.0}, "silver": {RATIO: 4.0}})
    wrote = write(tmp_path, state, "group/silver:ipolicy")
    assert [item.drift.object for item in wrote.written] == ["group/silver"]
    assert [item.object for item in wrote.left] == ["group/gold"]
    assert text_of(tmp_path, "two.yaml").endswith("name: silver\nextends: base\nipolicy:\n  vcpu-ratio: 4\n")


FLEET = {
    "common/base.yaml": CLUSTER.replace("cluster.example.org", "base")
    + "    template: true\n    max_running_jobs: 20\n",
    "ham/cluster.yaml": CLUSTER + "    extends: ../common/base.yaml\n",
    "ber/cluster.yaml": CLUSTER.replace("cluster", "ber") + "    extends: ../common/base.yaml\n",
}
JOBS = ("max_running_jobs",)


def test_a_base_that_another_policy_extends_stays_unless_that_is_asked_for(tmp_path: Path) -> None:
    files_of(tmp_path, FLEET | {"ber/cluster.yaml": FLEET["ber/cluster.yaml"].replace("kind: ber", "kind: Cluster")})
    (tmp_path / ".git").mkdir()
    ham, ber, state = tmp_path / "ham", tmp_path / "ber", cluster({JOBS: 25})
    base = text_of(tmp_path, "common/base.yaml")
    assert [policy.root for policy in gpolicy.other_policies(ham)] == [ber]
    wrote = write(ham, state, others=(ber,))
    assert [(str(item.how), item.span.file) for item in wrote.written] == [("override", str(ham / "cluster.yaml"))]
    assert text_of(tmp_path, "common/base.yaml") == base
    files_of(tmp_path, {"ham/cluster.yaml": FLEET["ham/cluster.yaml"]})
    wrote = write(ham, state, others=(ber,), in_bases=True)
    assert wrote.changed_elsewhere == (f"cluster max_running_jobs of {ber}",)
    assert text_of(tmp_path, "common/base.yaml") == base.replace("20", "25")
    assert wrote.left == ()


def test_a_base_that_nobody_else_extends_is_where_it_is_declared(tmp_path: Path) -> None:
    files_of(tmp_path, {name: text for name, text in FLEET.items() if "ber" not in name})
    (tmp_path / ".git").mkdir()
    wrote = write(tmp_path / "ham", cluster({JOBS: 25}))
    assert [str(item.how) for item in wrote.written] == ["in-place"]
    assert "max_running_jobs: 25" in text_of(tmp_path, "common/base.yaml")


def test_a_document_that_others_extend_is_named_and_stays(tmp_path: Path) -> None:
    text = (
        "gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy: {vcpu-ratio: 2}\n---\n"
        "gpolicy: v1\nkind: NodeGroup\nname: silver\nextends: gold\n"
    )
    files_of(tmp_path, {"policy.yaml": text})
    wrote = write(tmp_path, cluster(groups={"gold": {RATIO: 4.0}, "silver": {RATIO: 2.0}}))
    assert wrote.texts == {}
    assert "for group/silver as well" in reasons(wrote)["group/gold:ipolicy.vcpu-ratio"]


@pytest.mark.parametrize(
    "value",
    ["&a {vcpu-ratio: 2}\ndescription: x", "{vcpu-ratio: &a 2}", "{vcpu-ratio: !!int 2}"],
)
def test_anchors_and_tags_of_yaml_are_named_and_stay(tmp_path: Path, value: str) -> None:
    files_of(tmp_path, {"policy.yaml": f"gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy: {value}\n"})
    if [item for item in load_policy(tmp_path).findings if item.severity == "error"]:
        pytest.skip("the policy language does not have it")
    wrote = write(tmp_path, gold({RATIO: 4.0}))
    assert wrote.texts == {}
    assert "anchors" in reasons(wrote)["group/gold:ipolicy.vcpu-ratio"]


# --- what is not written ----------------------------------------------------------------------------------------------


def test_what_check_would_refuse_stays_and_the_rest_is_written(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy: {vcpu-ratio: 2, spindle-ratio: 8}\n"
    files_of(tmp_path, {"policy.yaml": text})
    wrote = write(tmp_path, gold({RATIO: 0.25, ("ipolicy", "spindle-ratio"): 16.0}))
    assert "check would find GP" in reasons(wrote)["group/gold:ipolicy.vcpu-ratio"]
    assert text_of(tmp_path, "policy.yaml") == text.replace("8}", "16}")


def test_values_that_only_fit_together_are_written_together(tmp_path: Path) -> None:
    text = CLUSTER + "    beparams: {minmem: 128M, maxmem: 256M}\n"
    files_of(tmp_path, {"policy.yaml": text})
    wrote = write(tmp_path, cluster({("beparams", "minmem"): 512, ("beparams", "maxmem"): 1024}))
    assert reasons(wrote) == {}
    assert "{minmem: 512M, maxmem: 1024M}" in text_of(tmp_path, "policy.yaml")


def test_what_a_waiver_accepts_stays(tmp_path: Path) -> None:
    text = (
        "gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy: {vcpu-ratio: 2}\n---\ngpolicy: v1\nkind: Waiver\nwaivers:\n"
        '  - {rule: drift, where: "group/gold", reason: agreed, until: "2026-06-30"}\n'
    )
    files_of(tmp_path, {"policy.yaml": text})
    assert write(tmp_path, gold({RATIO: 4.0})) == WriteBack()
    wrote = write(tmp_path, gold({RATIO: 4.0}), "group/gold")
    assert "a waiver accepts it until 2026-06-30" in reasons(wrote)["group/gold:ipolicy.vcpu-ratio"]


def test_what_the_source_cannot_show_stays(tmp_path: Path) -> None:
    text = CLUSTER + "    max_running_jobs: 20\n    hv_state: {kvm: {mem_node: 512M}}\n"
    files_of(tmp_path, {"policy.yaml": text})
    state = cluster({JOBS: 25}, unreadable=(Unreadable(level=Level.CLUSTER, prefix=("hv_state",)),))
    wrote = write(tmp_path, state)
    assert [item.drift.name for item in wrote.written] == ["max_running_jobs"]
    assert "mem_node: 512M" in text_of(tmp_path, "policy.yaml")


def test_what_no_command_could_set_stays(tmp_path: Path) -> None:
    files_of(tmp_path, {"policy.yaml": group_with("gold", "ndparams: {ovs_name: br0}\n")})
    wrote = write(tmp_path, gold({("ndparams", "ovs_name"): "default"}))
    assert "no policy can ask for" in reasons(wrote)["group/gold:ndparams.ovs_name"]


# --- several sets, bases and levels -----------------------------------------------------------------------------------


def test_a_set_that_names_the_node_is_found_beside_one_with_a_glob(tmp_path: Path) -> None:
    head = "gpolicy: v1\nkind: NodeSet\nname: {}\n"
    base = head.format("base") + "template: true\nndparams: {spindle_count: 2}\n"
    sets = (
        head.format(name) + f"extends: base\nnodes: [{nodes}]\n" for name, nodes in (("a", '"n*"'), ("b", "n1, n2"))
    )
    files_of(tmp_path, {"policy.yaml": "---\n".join([base, *sets])})
    wrote = write(tmp_path, with_nodes({"n1": {SPINDLES: 4}, "n2": {SPINDLES: 2}}))
    assert wrote.texts == {}
    assert "names n1 together with other nodes" in reasons(wrote)["node/n1:ndparams.spindle_count"]


def test_a_document_of_an_object_is_no_base(tmp_path: Path) -> None:
    text = group_with("gold", "ipolicy: {vcpu-ratio: 2}\n") + "---\n" + group_with("silver", "extends: gold\n")
    files_of(tmp_path, {"policy.yaml": text})
    wrote = write(tmp_path, cluster(groups={"gold": {RATIO: 4.0}, "silver": {RATIO: 2.0}}), in_bases=True)
    assert wrote.texts == {}
    assert "for group/silver as well" in reasons(wrote)["group/gold:ipolicy.vcpu-ratio"]


def test_an_own_value_brings_the_mappings_around_it(tmp_path: Path) -> None:
    rate = ("diskparams", "drbd", "resync-rate")
    base = group_with("base", "template: true\ndiskparams: {drbd: {resync-rate: 60M}}\n")
    own = [group_with("gold", "extends: base\n"), group_with("silver", "extends: base\n")]
    state = cluster(groups={"gold": {rate: 30720}, "silver": {rate: 61440}})
    after = one_file(tmp_path, "---\n".join([base, *own]), state)
    own[0] += "diskparams:\n  drbd:\n    resync-rate: 30M\n"
    assert after == "---\n".join([base, *own])
    own[0] = group_with("gold", "extends: base\ndiskparams:\n  drbd: {metavg: inherit}\n")
    after = one_file(tmp_path, "---\n".join([base, *own]), state)
    assert "drbd: {metavg: inherit, resync-rate: 30M}\n" in after
    own[0] = group_with("gold", "extends: base\ndiskparams:\n  rbd: {access: inherit}\n")
    after = one_file(tmp_path, "---\n".join([base, *own]), state)
    assert "diskparams:\n  rbd: {access: inherit}\n  drbd:\n    resync-rate: 30M\n" in after


def test_three_of_many_changes_are_named() -> None:
    keys = [(f"group/{name}", RATIO) for name in "dcba"]
    shown = ", ".join(f"group/{name} ipolicy.vcpu-ratio" for name in "abc")
    assert _named(keys) == f"{shown} and 1 more"
    assert _named(keys[1:]) == shown


def test_units_of_one_object_that_only_fit_together_are_tried_together(tmp_path: Path) -> None:
    """The standard size has to lie in a pair, and gold cannot be written."""
    pairs = pairs_text(("one", "1G", "2G")).partition("ipolicy:\n")[2]
    text = textwrap.dedent(CLUSTER).lstrip() + f"ipolicy:\n{pairs}  std: {spec('1G', DEFAULT_MIN)}\n"
    files_of(tmp_path, {"policy.yaml": f"{text}---\n{group_with('gold', 'ipolicy: {vcpu-ratio: 2}')}\n"})
    size: Values = {("ipolicy", "std", name): value for name, value in DEFAULT_MIN.items()}
    size |= {("ipolicy", "std", "memory-size"): 4096}
    own: Values = {("ipolicy", "minmax"): [pair(4096, 8192)], **size}
    wrote = write(tmp_path, cluster(own, {"gold": {RATIO: 0.25}}))
    assert reasons(wrote).keys() == {"group/gold:ipolicy.vcpu-ratio"}
    assert {item.drift.name for item in wrote.written} == {"ipolicy.minmax", "ipolicy.std.memory-size"}


def test_a_rule_that_is_missing_is_removed_with_the_mapping_around_it(tmp_path: Path) -> None:
    rules = (
        RULES.partition("    exclusion")[0].replace("[iextags,", "[migration,") + "    migration: {domains: [cpu]}\n"
    )
    files_of(tmp_path, {"tags.yaml": rules})
    assert reasons(write(tmp_path, cluster())) == {}
    assert "migration:" not in text_of(tmp_path, "tags.yaml")


def test_a_value_that_is_there_already_cannot_be_added(tmp_path: Path) -> None:
    files_of(tmp_path, {"policy.yaml": group_with("gold", "ipolicy: {vcpu-ratio: 2}\n")})
    policy = load_policy(tmp_path)
    place = place_of(policy.groups["gold"].document)
    for path in (RATIO, RATIO[:1]):
        with pytest.raises(UnwritableError, match=f"it says {'.'.join(path)} already"):
            add_value(Draft(policy.files), place, path, "4")


def test_what_one_side_alone_says_is_a_change() -> None:
    one, other, same = (("group/a", path) for path in (RATIO, SPINDLES, ("alloc_policy",)))
    assert _changes({one: 1, same: 3}, {other: 1, same: 3}) == {one, other}


def test_what_belongs_to_a_group_that_is_gone_says_so(tmp_path: Path) -> None:
    files_of(tmp_path, {"policy.yaml": group_with("gold", "ipolicy: {vcpu-ratio: 2}\nalloc_policy: last_resort\n")})
    wrote = write(tmp_path, cluster(groups={"default": {}}))
    said = reasons(wrote)
    assert said["group/gold:name"].startswith("the cluster has no such group")
    assert {key for key, text in said.items() if text == "the cluster has no such group"} == {
        "group/gold:ipolicy.vcpu-ratio",
        "group/gold:alloc_policy",
    }
