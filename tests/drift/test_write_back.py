"""Where drift is written in a policy, in which form, and what is not written, with its reason."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.state import ClusterState, Unreadable
from gpolicy.drift.comparing import find_drift
from gpolicy.drift.unit_writer import _changes, _named
from gpolicy.drift.write_back import WriteBack, write_back
from gpolicy.ganeti.amounts import format_size
from gpolicy.ganeti.parameter import Level, Value, Values
from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN
from gpolicy.plan.diff import diff
from gpolicy.policy.loading import load_policy
from gpolicy.writing.value_edits import Draft, UnwritableError, add_value, place_of
from tests.drift.test_comparing import RATIO, TODAY
from tests.plan.planned import cluster

CLUSTER = """
    gpolicy: v1
    kind: Cluster
    name: cluster.example.org
"""


def files_of(directory: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text).lstrip(), encoding="utf-8", newline="")


def write(
    path: Path, state: ClusterState, *selected: str, others: tuple[Path, ...] = (), in_bases: bool = False
) -> WriteBack:
    """Write drift into the policy at `path`; whatever was not written is still the only difference."""
    policy = load_policy(path)
    report = find_drift(policy, state, today=TODAY)
    wrote = write_back(
        policy,
        state,
        report,
        selected=selected,
        today=TODAY,
        in_bases=in_bases,
        others=lambda: [load_policy(other) for other in others],
    )
    for name, text in wrote.texts.items():
        Path(name).write_text(text, encoding="utf-8", newline="")
    left = {(item.object, ".".join(item.path)) for item in diff(load_policy(path), state).changes}
    accepted = {(item.drift.object, item.drift.name) for item in report.accepted}
    if not in_bases:
        assert left - accepted == {(item.object, item.name) for item in wrote.left}
    return wrote


def reasons(wrote: WriteBack) -> dict[str, str]:
    return {f"{item.drift.object}:{item.drift.name}": item.reason for item in wrote.not_written}


def one_file(tmp_path: Path, text: str, state: ClusterState, *selected: str) -> str:
    """Return a policy of one file after drift was written; all that was selected must have been."""
    files_of(tmp_path, {"policy.yaml": text})
    wrote = write(tmp_path, state, *selected)
    assert reasons(wrote) == {}
    return (tmp_path / "policy.yaml").read_bytes().decode()


def gold(own: Values, nodes: dict[str, str] | None = None) -> ClusterState:
    return cluster(groups={"gold": own}, nodes=nodes)


def pair(low: int, high: int) -> dict[str, Value]:
    return {"min": {**DEFAULT_MIN, "memory-size": low}, "max": {**DEFAULT_MAX, "memory-size": high}}


def spec(memory: str, values: Mapping[str, int]) -> str:
    shown = {name: format_size(value) if name == "disk-size" else value for name, value in values.items()}
    rest = ", ".join(f"{name}: {value}" for name, value in shown.items() if name != "memory-size")
    return f"{{memory-size: {memory}, {rest}}}"


# --- the form of a value ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "before", "found", "after"),
    [
        (RATIO, "2", 4.0, "4"),
        (RATIO, "2   # as agreed", 2.5, "2.5   # as agreed"),
        (RATIO, "inherit", 4.0, "4"),
        (RATIO, "4", None, "inherit"),
        (("ndparams", "ssh_port"), '"inherit"', 2222, "2222"),
        (("ndparams", "ovs_name"), "'br0'", "br1", "'br1'"),
        (("ndparams", "ovs_name"), "br0", "12", '"12"'),
        (("ndparams", "exclusive_storage"), "false", True, "true"),
        (("diskparams", "drbd", "resync-rate"), "60M", 30720, "30M"),
        (("diskparams", "rbd", "access"), "inherit", "userspace", "userspace"),
        (("alloc_policy",), "last_resort", "preferred", "preferred"),
        (("ipolicy", "disk-templates"), "[plain, drbd]", ["drbd"], "[drbd]"),
        (("ipolicy", "disk-templates"), "[plain]", ["drbd", "plain"], "[drbd, plain]"),
        (("ipolicy", "disk-templates"), "[plain, drbd]", ["drbd", "plain"], "[drbd, plain]"),
        (("ipolicy", "disk-templates"), "[plain]  # x", ["drbd"], "[drbd]  # x"),
    ],
)
def test_a_value_keeps_the_form_that_it_has(
    tmp_path: Path, path: tuple[str, ...], before: str, found: Value, after: str
) -> None:
    lines = [f"{'  ' * depth}{key}:" for depth, key in enumerate(path)]
    text = "gpolicy: v1\nkind: NodeGroup  # a comment\nname: gold\n" + "\n".join(lines) + " {}\n# the end\n"
    own: Values = {} if found is None else {path: found}
    assert one_file(tmp_path, text.format(before), gold(own)) == text.format(after)


@pytest.mark.parametrize(
    ("before", "mib", "after"),
    [
        ("4G", 8192, "8G"),
        ("4096", 8192, "8192"),
        ("4096M", 8192, "8192M"),
        ("'4 GiB'", 8192, "'8 GiB'"),
        ("4g", 8192, "8g"),
        ("1T", 524288, "512G"),
        ("4096", 512, "512M"),
        ("1.5G", 2048, "2G"),
    ],
)
def test_a_size_keeps_its_unit(tmp_path: Path, before: str, mib: int, after: str) -> None:
    text = (
        f"gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  minmax:\n    - name: one\n"
        f"      min: {spec('128M', DEFAULT_MIN)}\n      max: {spec('{}', DEFAULT_MAX)}  # the largest\n"
    )
    state = gold({("ipolicy", "minmax"): [pair(128, mib)]})
    assert one_file(tmp_path, text.replace("{}", before), state) == text.replace("{}", after)


def test_line_ends_and_a_last_line_without_one_stay(tmp_path: Path) -> None:
    text = "gpolicy: v1\r\nkind: NodeGroup\r\nname: gold\r\nextends: base\r\n---\r\n{}"
    base = "gpolicy: v1\r\nkind: NodeGroup\r\nname: base\r\ntemplate: true\r\nipolicy: {vcpu-ratio: 2}"
    other = "\r\n---\r\ngpolicy: v1\r\nkind: NodeGroup\r\nname: silver\r\nextends: base"
    state = cluster(groups={"gold": {RATIO: 2.0}, "silver": {RATIO: 4.0}})
    after = one_file(tmp_path, text.replace("{}", base + other), state)
    assert after == text.replace("{}", base + other) + "\r\nipolicy:\r\n  vcpu-ratio: 4"


# --- spec pairs ------------------------------------------------------------------------------------------------------


def pairs_text(*pairs: tuple[str, str, str]) -> str:
    text = "gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  minmax:\n"
    for name, low, high in pairs:
        first = f"    - name: {name}\n      min" if name else "    - min"
        text += f"{first}: {spec(low, DEFAULT_MIN)}\n      max: {spec(high, DEFAULT_MAX)}\n"
    return text


@pytest.mark.parametrize(
    ("before", "found", "after"),
    [
        (
            [("s", "1G", "2G"), ("l", "4G", "8G")],
            [(1024, 2048), (4096, 16384)],
            [("s", "1G", "2G"), ("l", "4G", "16G")],
        ),
        ([("", "1G", "2G"), ("", "4G", "8G")], [(4096, 8192)], [("", "4G", "8G")]),
        ([("l", "4G", "8G")], [(4096, 8192), (1024, 2048)], [("l", "4G", "8G"), ("", "1G", "2G")]),
        ([("s", "1G", "2G"), ("l", "4G", "8G")], [(1024, 2048)], [("s", "1G", "2G")]),
    ],
)
def test_pairs_keep_their_names_and_order(
    tmp_path: Path, before: list[tuple[str, str, str]], found: list[tuple[int, int]], after: list[tuple[str, str, str]]
) -> None:
    state = gold({("ipolicy", "minmax"): [pair(*item) for item in found]})
    assert one_file(tmp_path, pairs_text(*before), state) == pairs_text(*after)


def test_own_pairs_in_place_of_inherited_ones_and_back(tmp_path: Path) -> None:
    inherited = "gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  minmax: inherit\n  vcpu-ratio: inherit\n"
    own = pairs_text(("", "1G", "2G")) + "  vcpu-ratio: inherit\n"
    assert one_file(tmp_path, inherited, gold({("ipolicy", "minmax"): [pair(1024, 2048)]})) == own
    assert one_file(tmp_path, own, gold({})) == inherited


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ([("s", "1G", "2G"), ("l", "4G", "8G")], [(4096, 8192), (1024, 2048)]),
        ([("s", "1G", "2G"), ("l", "4G", "8G")], [(1024, 8192)]),
    ],
)
def test_it_is_not_guessed_which_named_pair_became_which(
    tmp_path: Path, before: list[tuple[str, str, str]], found: list[tuple[int, int]]
) -> None:
    files_of(tmp_path, {"policy.yaml": pairs_text(*before)})
    wrote = write(tmp_path, gold({("ipolicy", "minmax"): [pair(*item) for item in found]}))
    assert wrote.texts == {}
    assert "named" in reasons(wrote)["group/gold:ipolicy.minmax"] or "cannot be told" in str(reasons(wrote))


def test_a_pair_that_a_guard_names_is_not_removed(tmp_path: Path) -> None:
    text = pairs_text(("s", "1G", "2G"), ("l", "4G", "8G"))
    guards = "gpolicy: v1\nkind: Guards\nguards:\n  - {name: g, at_least: 1, group: gold, spec: l}\n"
    files_of(tmp_path, {"policy.yaml": text, "guards.yaml": guards})
    wrote = write(tmp_path, gold({("ipolicy", "minmax"): [pair(1024, 2048)]}))
    assert wrote.texts == {}
    assert "check would find" in reasons(wrote)["group/gold:ipolicy.minmax"]


# --- bases -----------------------------------------------------------------------------------------------------------

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


def text_of(tmp_path: Path, name: str) -> str:
    return (tmp_path / name).read_text(encoding="utf-8")


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


# --- nodes -----------------------------------------------------------------------------------------------------------

SPINDLES = ("ndparams", "spindle_count")


def with_nodes(values: Mapping[str, Values], tags: Mapping[str, set[str]] | None = None) -> ClusterState:
    state = cluster(nodes=dict.fromkeys(values, "default"))
    nodes = {
        name: replace(node, own=values[name], tags=frozenset((tags or {}).get(name, ())))
        for name, node in state.nodes.items()
    }
    return replace(state, nodes=nodes)


SET = "gpolicy: v1\nkind: NodeSet\nname: all\nnodes: [{}]\nndparams: {{spindle_count: 2}}\n"


def test_a_set_all_of_whose_nodes_changed_is_written(tmp_path: Path) -> None:
    state = with_nodes({"n1": {SPINDLES: 4}, "n2": {SPINDLES: 4}})
    assert one_file(tmp_path, SET.format("n1, n2"), state) == SET.format("n1, n2").replace("count: 2", "count: 4")


def test_one_node_of_a_glob_gets_a_set_of_its_own(tmp_path: Path) -> None:
    state = with_nodes({"n1": {SPINDLES: 4}, "n2": {SPINDLES: 2}})
    new = "---\ngpolicy: v1\nkind: NodeSet\nname: n1\nnodes: [n1]\nndparams:\n  spindle_count: 4\n"
    after = one_file(tmp_path, SET.format('"n*"'), state)
    assert after == SET.format('"n*"') + new
    state = with_nodes({"n1": {SPINDLES: 4, ("ndparams", "ssh_port"): 2222}, "n2": {SPINDLES: 2}})
    with_port = SET.format('"n*"').replace("2}", "2, ssh_port: inherit}")
    after = one_file(tmp_path, with_port + new, state)
    assert after == with_port + new + "  ssh_port: 2222\n"


def test_one_node_of_a_list_is_named_and_stays(tmp_path: Path) -> None:
    files_of(tmp_path, {"policy.yaml": SET.format("n1, n2")})
    wrote = write(tmp_path, with_nodes({"n1": {SPINDLES: 4}, "n2": {SPINDLES: 2}}))
    assert wrote.texts == {}
    assert "names n1 together with other nodes" in reasons(wrote)["node/n1:ndparams.spindle_count"]


def group_with(name: str, nodes: str) -> str:
    return f"gpolicy: v1\nkind: NodeGroup\nname: {name}\n{nodes}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (("nodes:\n  - n1\n  - n2\n", "nodes: [n3]\n"), ("nodes:\n  - n2\n", "nodes: [n3, n1]\n")),
        (("nodes: [n1, n2]\n", ""), ("nodes: [n2]\n", "")),
        (("nodes:\n  - n1\n", "nodes: []\n"), ("nodes: []\n", "nodes: [n1]\n")),
        (('nodes: ["n[12]*"]\n', "nodes:\n  - n3\n"), ('nodes: ["n[12]*"]\n', "nodes:\n  - n3\n  - n1\n")),
        (("nodes: [n1]\n", 'nodes: ["n*"]\n'), ("nodes: []\n", 'nodes: ["n*"]\n')),
    ],
)
def test_a_moved_node_is_in_the_list_of_its_group(
    tmp_path: Path, before: tuple[str, str], after: tuple[str, str]
) -> None:
    state = cluster(groups={"gold": {}, "silver": {}}, nodes={"n1": "silver", "n2": "gold", "n3": "silver"})
    was, now = (f"{group_with('gold', one)}---\n{group_with('silver', other)}" for one, other in (before, after))
    if "n*" in before[1]:
        state = cluster(groups={"gold": {}, "silver": {}}, nodes={"n1": "silver"})
    assert one_file(tmp_path, was, state) == now


def test_a_node_that_a_range_of_another_group_lists_is_named_and_stays(tmp_path: Path) -> None:
    """Its name would win over the range, but `check` warns of such a pair, and no draft may bring a warning."""
    was = group_with("gold", 'nodes: ["n[12]"]\n') + "---\n" + group_with("silver", "nodes: [n3]\n")
    files_of(tmp_path, {"policy.yaml": was})
    nodes = {"n1": "silver", "n2": "gold", "n3": "silver"}
    wrote = write(tmp_path, cluster(groups={"gold": {}, "silver": {}}, nodes=nodes))
    assert wrote.texts == {}
    assert "GP611" in reasons(wrote)["node/n1:group"]


def test_a_node_that_a_glob_claims_is_named_and_stays(tmp_path: Path) -> None:
    files_of(tmp_path, {"policy.yaml": group_with("gold", 'nodes: ["n*"]\n')})
    wrote = write(tmp_path, cluster(groups={"gold": {}, "silver": {}}, nodes={"n1": "silver", "n2": "gold"}))
    assert wrote.texts == {}
    assert "claims the node by `n*`" in reasons(wrote)["node/n1:group"]


# --- tags ------------------------------------------------------------------------------------------------------------

RULES = """
    gpolicy: v1
    kind: TagRules
    owns: [iextags, {prefix: "team:", "on": [cluster, group, node]}]
    exclusion:
      - service
      - db
"""


def test_tags_of_the_cluster_become_rules_where_they_mean_one(tmp_path: Path) -> None:
    state = cluster(tags=frozenset({"htools:iextags:db:", "htools:iextags:web:", "team:x", "other"}))
    files_of(tmp_path, {"cluster.yaml": CLUSTER, "tags.yaml": RULES})
    assert reasons(write(tmp_path, state)) == {}
    assert text_of(tmp_path, "tags.yaml").endswith("exclusion:\n  - db\n  - web\n")
    assert text_of(tmp_path, "cluster.yaml").endswith('name: cluster.example.org\ntags: ["team:x"]\n')


def test_a_rule_that_is_missing_is_removed_with_its_key(tmp_path: Path) -> None:
    files_of(tmp_path, {"tags.yaml": RULES.replace("      - db\n", "")})
    assert reasons(write(tmp_path, cluster())) == {}
    assert "exclusion" not in text_of(tmp_path, "tags.yaml")


def test_tags_of_a_group_and_of_nodes(tmp_path: Path) -> None:
    text = (
        "gpolicy: v1\nkind: NodeGroup\nname: default\ntags:\n  - team:a  # ours\n  - keep\n---\n"
        'gpolicy: v1\nkind: NodeSet\nname: all\nnodes: ["n*"]\ntags: ["team:n", "team:m"]\n'
    )
    state = with_nodes({"n1": {}, "n2": {}}, {"n1": {"team:n", "team:z"}, "n2": {"team:n"}})
    state = replace(
        state, groups={"default": replace(state.groups["default"], tags=frozenset({"team:a", "team:b", "keep"}))}
    )
    files_of(tmp_path, {"policy.yaml": text, "tags.yaml": RULES.partition("exclusion")[0]})
    wrote = write(tmp_path, state)
    assert "gives the missing tags to 2 nodes: take n1 out of it" in reasons(wrote)["node/n1:tags"]
    assert "  - team:a  # ours\n  - keep\n  - team:b\n" in text_of(tmp_path, "policy.yaml")
    both = replace(state, nodes={name: replace(node, tags=frozenset({"team:n"})) for name, node in state.nodes.items()})
    write(tmp_path, both)
    assert 'tags: ["team:n"]' in text_of(tmp_path, "policy.yaml")
    assert reasons(write(tmp_path, state)) == {}
    assert text_of(tmp_path, "policy.yaml").endswith('name: n1\nnodes: [n1]\ntags: ["team:z"]\n')


def test_a_comment_that_would_be_lost_keeps_its_item(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: NodeGroup\nname: gold\ntags:\n  # since March\n  - team:a\n  - team:b\n"
    files_of(tmp_path, {"policy.yaml": text})
    state = gold({})
    state = replace(state, groups={"gold": replace(state.groups["gold"], tags=frozenset({"team:b"}))})
    wrote = write(tmp_path, state)
    assert wrote.texts == {}
    assert "a comment would be lost" in reasons(wrote)["group/gold:tags"]


# --- groups ----------------------------------------------------------------------------------------------------------


def test_a_group_that_is_gone(tmp_path: Path) -> None:
    files_of(tmp_path, {"policy.yaml": group_with("default", "") + "---\n" + group_with("gold", "")})
    assert [item.drift.name for item in write(tmp_path, cluster()).written] == ["name"]
    assert text_of(tmp_path, "policy.yaml").endswith("name: gold\nremoved: true\n")


def test_a_group_that_may_have_another_name_now(tmp_path: Path) -> None:
    files_of(tmp_path, {"policy.yaml": group_with("gold", "ipolicy: {vcpu-ratio: 2}\n")})
    wrote = write(tmp_path, cluster(groups={"silver": {RATIO: 2.0}}))
    assert wrote.texts == {}
    assert "if it is silver now, write that as its `name`" in reasons(wrote)["group/gold:name"]


def test_a_group_that_should_have_gone_or_another_name(tmp_path: Path) -> None:
    renamed = group_with("new", "renamed_from: gold\n")
    files_of(tmp_path, {"policy.yaml": f"{renamed}---\n{group_with('silver', 'removed: true')}\n"})
    wrote = write(tmp_path, cluster(groups={"gold": {}, "silver": {}}))
    assert "take `renamed_from` out" in reasons(wrote)["group/new:name"]
    assert text_of(tmp_path, "policy.yaml") == f"{renamed}---\n{group_with('silver', '')}"


# --- what is not written ---------------------------------------------------------------------------------------------


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


# --- several sets, bases and levels ----------------------------------------------------------------------------------


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
