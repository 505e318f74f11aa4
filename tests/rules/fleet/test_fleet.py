"""Rules about several policies: their own examples, as the files that their comments name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpolicy.checking.catalogue import FLEET_RULES
from gpolicy.checking.checking import check_fleet
from gpolicy.checking.rule import Fleet, Hit
from gpolicy.findings import RuleInfo, Severity
from gpolicy.forecast.bridge import FORECAST
from gpolicy.policy.files import policy_roots
from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes
from tests.rules.run_rules import TODAY

BASE = "# base.yaml\ngpolicy: v1\nkind: Cluster\nname: fleet\ntemplate: true\nbeparams: {vcpus: 1}\n"


def hits(text: str, directory: Path) -> list[Hit]:
    """Write the documents of `text` to the files that their first lines name, and return what is found."""
    for document in text.split("---\n"):
        name = re.match(r"# (.*)\n", document)
        assert name, document
        file = directory / name[1]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(document, encoding="utf-8")
    policies = [load_policy(root) for root in policy_roots(directory)]
    assert [finding for policy in policies for finding in policy.findings] == []
    return [hit for hits in check_fleet(policies) for hit in hits]


def found(text: str, directory: Path) -> list[str]:
    return [item.finding.code for item in hits(text, directory)]


def member(town: str, more: str = "", base: str = "../base.yaml#fleet") -> str:
    extends = f"extends: {base}\n" if base else ""
    return f"---\n# {town}/cluster.yaml\ngpolicy: v1\nkind: Cluster\nname: {town}\n{extends}{more}"


@pytest.mark.parametrize("info", [rule.info for rule in FLEET_RULES], ids=lambda info: info.name)
def test_the_bad_example_has_this_finding_and_no_other(info: RuleInfo, tmp_path: Path) -> None:
    shown = hits(info.text.bad, tmp_path)
    assert {item.finding.code for item in shown} == {info.code}
    assert all(item.finding.span is not None and item.policy in (0, 1) for item in shown)


@pytest.mark.parametrize("info", [rule.info for rule in FLEET_RULES], ids=lambda info: info.name)
def test_the_good_example_has_none(info: RuleInfo, tmp_path: Path) -> None:
    assert found(info.text.good, tmp_path) == []


def test_one_policy_is_no_fleet(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("gpolicy: v1\nkind: Cluster\nname: c\n", encoding="utf-8")
    policy = load_policy(tmp_path)
    assert check_fleet([policy]) == [[]]
    assert check_fleet([]) == []
    assert check_fleet([policy, policy]) == [[], []]  # the same directory named twice


def test_names_are_compared_in_any_case(tmp_path: Path) -> None:
    text = BASE + member("a").replace("name: a", "name: Ganeti") + member("b").replace("name: b", "name: ganeti")
    assert found(text, tmp_path) == ["GP831"]


def test_clusters_without_a_common_base_are_no_fleet(tmp_path: Path) -> None:
    group = "---\n# {0}/g.yaml\ngpolicy: v1\nkind: NodeGroup\nname: g\nnodes: [n1]\n"
    drifting = "ipolicy: {vcpu-ratio: %d}\n"
    texts = [member(town, drifting % n, base="") + group.format(town) for n, town in enumerate(("a", "b"), 4)]
    assert found("".join(texts).removeprefix("---\n"), tmp_path) == []
    texts = [member(town, drifting % n) + group.format(town) for n, town in enumerate(("a", "b"), 4)]
    assert found(BASE + "".join(texts), tmp_path / "fleet") == ["GP832", "GP834"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("n[1-6].x.org", "n[4-9].x.org", ["GP832"]),
        ("n[1-3].x.org", "n[4-9].x.org", []),
        ("n*.x.org", "n4.x.org", ["GP832"]),
        ("n4.x.org", "n*.x.org", ["GP832"]),
        ("n[1-3].x.org", "n*.y.org", []),
        ("n*", "n4.x.org", []),  # a wide one means the nodes of its own cluster
    ],
)
def test_patterns_of_two_clusters_may_mean_the_same_nodes(
    one: str, other: str, expected: list[str], tmp_path: Path
) -> None:
    group = "---\n# {0}/g.yaml\ngpolicy: v1\nkind: NodeGroup\nname: g\nnodes: ['{1}']\n"
    texts = [member(town) + group.format(town, nodes) for town, nodes in (("a", one), ("b", other))]
    assert found(BASE + "".join(texts), tmp_path) == expected


def test_two_bases_make_one_fleet_where_one_cluster_extends_both(tmp_path: Path) -> None:
    bases = BASE + "---\n" + BASE.replace("base.yaml", "other.yaml")
    both = member("c", base='["../base.yaml#fleet", "../other.yaml#fleet"]')
    other = member("b", base="../other.yaml#fleet")
    hits(bases + member("a") + other + both + member("d", base=""), tmp_path)
    policies = [load_policy(root) for root in policy_roots(tmp_path)]
    assert Fleet(policies).with_one_base == [[0, 1, 2]]


def test_the_value_that_fewer_clusters_have_is_the_one_that_drifts(tmp_path: Path) -> None:
    ratios = {"a": 4, "b": 8, "c": 4}
    text = BASE + "".join(member(town, f"ipolicy: {{vcpu-ratio: {ratio}}}\n") for town, ratio in ratios.items())
    (item,) = hits(text, tmp_path)
    assert (item.policy, item.label) == (1, "cluster")
    assert item.finding.message == "ipolicy.vcpu-ratio differs from a, which has the same base"
    assert [related.message for related in item.finding.related] == ["the value of a"]


def test_an_override_of_the_base_does_not_drift_and_neither_does_what_is_each_cluster_s_own(tmp_path: Path) -> None:
    text = BASE + member("a", "beparams: {vcpus: 2}\nmaster_netdev: eth0\n") + member("b", "master_netdev: br0\n")
    assert found(text, tmp_path) == []


def test_a_base_that_one_cluster_follows_is_the_reference(tmp_path: Path) -> None:
    two = BASE + member("a", "beparams: {vcpus: 2}\n") + member("b", "beparams: {vcpus: 4}\n")
    (item,) = hits(two, tmp_path / "two")
    assert item.finding.message == "beparams.vcpus of this base holds in no cluster: a and b override it"
    assert item.finding.span is not None
    assert Path(item.finding.span.file).name == "base.yaml"
    assert found(two + member("c"), tmp_path / "three") == []


def test_bases_of_bases_make_one_fleet(tmp_path: Path) -> None:
    middle = "---\n# middle.yaml\ngpolicy: v1\nkind: Cluster\nname: middle\ntemplate: true\nextends: base.yaml#fleet\n"
    text = BASE + middle + member("a", "mac_prefix: 'aa:00:00'\n", "../middle.yaml#middle")
    assert found(text + member("b", "mac_prefix: 'aa:00:00'\n"), tmp_path) == ["GP833"]


def test_tag_rules_that_one_member_lacks(tmp_path: Path) -> None:
    rules = "---\n# {0}/tags.yaml\ngpolicy: v1\nkind: TagRules\nexclusion: [{1}]\n"
    towns = {"a": "service", "b": "service, tenant", "c": "service"}
    text = BASE + "".join(member(town) + rules.format(town, names) for town, names in towns.items())
    (drift,) = hits(text, tmp_path)
    assert (drift.policy, drift.finding.code) == (1, "GP834")
    assert "has htools:iextags:tenant" in drift.finding.message


def test_a_waiver_of_the_policy_accepts_it(tmp_path: Path) -> None:
    ratios = {"a": 4, "b": 8, "c": 4}
    text = BASE + "".join(member(town, f"ipolicy: {{vcpu-ratio: {ratio}}}\n") for town, ratio in ratios.items())
    waiver = "rule: fleet-drift, where: cluster, reason: faster CPUs, until: '2099-12-31'"
    text += f"---\n# b/waiver.yaml\ngpolicy: v1\nkind: Waiver\nwaivers:\n  - {{{waiver}}}\n"
    assert [item.policy for item in hits(text, tmp_path)] == [1]
    policies = [load_policy(root) for root in policy_roots(tmp_path)]
    _, (drift,), _ = check_fleet(policies)
    assert [
        finding.code for finding in find_mistakes(policies[0], today=TODAY, forecast=FORECAST, together=[drift])
    ] == ["GP834"]
    assert find_mistakes(policies[1], today=TODAY, forecast=FORECAST, together=[drift]) == []


GROUPS = "".join(
    f"--- # in the same file\ngpolicy: v1\nkind: NodeGroup\nname: {name}\ntemplate: true\nipolicy: {{vcpu-ratio: 4}}\n"
    for name in "gh"
)


def test_a_group_without_the_base_of_its_name_in_all_other_clusters(tmp_path: Path) -> None:
    group = "---\n# {0}/g.yaml\ngpolicy: v1\nkind: NodeGroup\nname: g\nnodes: [{0}1]\n"
    extends = "extends: ../base.yaml#g\n"

    def fleet(**lacking: str) -> str:
        towns = (member(town) + group.format(town) + lacking.get(town, extends) for town in "abc")
        return BASE + GROUPS + "".join(towns)

    (item,) = hits(fleet(b=""), tmp_path / "one")
    assert (item.policy, item.label, item.finding.code) == (1, "group/g", "GP834")
    assert (item.finding.severity, item.finding.hint) == (Severity.WARNING, "add `extends: ../base.yaml#g`")
    owns = ("hardware: {memory: 64G}\n", "alloc_policy: preferred\n", "ipolicy: {vcpu-ratio: 2}\n")
    sane = [fleet(), fleet(a="", b=""), fleet(b=extends.replace("#g", "#h")), *(fleet(b=own) for own in owns)]
    for number, text in enumerate(sane):
        assert hits(text, tmp_path / str(number)) == []
    assert [item.label for item in hits(fleet(b="limits: {max_node_failures: 1}\n"), tmp_path / "bare")] == ["group/g"]


@pytest.mark.parametrize(
    ("lost", "town_b", "count"),
    [
        ("", "", 1),
        ("", "beparams: {maxmem: 2G}\n", 1),  # an override stands alone
        ("", "beparams: {vcpus: 2}\n", 0),  # it says for itself what the base says
        ("../base.yaml#fleet", "", 0),
        ("../base.yaml#other", "", 0),
    ],
)
def test_a_cluster_without_the_base_of_all_others_of_which_a_group_extends_a_base(
    lost: str, town_b: str, count: int, tmp_path: Path
) -> None:
    group = "---\n# {0}/g.yaml\ngpolicy: v1\nkind: NodeGroup\nname: g\nextends: ../base.yaml#g\nnodes: [{0}1]\n"
    other = "--- # in the same file\ngpolicy: v1\nkind: Cluster\nname: other\ntemplate: true\n"
    for word in ("#fleet", ""):
        base = f"../base.yaml{word}"
        towns = (member(town, base=base) + group.format(town) for town in "ac")
        text = BASE + (other if word else "") + GROUPS + "".join(towns) + member("b", town_b, lost) + group.format("b")
        found = hits(text, tmp_path / f"base{word}")
        hints = [(item.policy, item.finding.severity, item.finding.hint) for item in found]
        assert hints == [(1, Severity.WARNING, f"add `extends: {base}`")] * count
        if lost.endswith("other"):
            break


def test_all_patterns_that_no_group_has_may_be_meant(tmp_path: Path) -> None:
    group = "---\n# {0}/g.yaml\ngpolicy: v1\nkind: NodeGroup\nname: g\nnodes: ['a[1-8].x.org']\n"
    sets = "".join(
        f"---\n# b/{rack}.yaml\ngpolicy: v1\nkind: NodeSet\nname: {rack}\nnodes: ['b[{nodes}].x.org']\ntags: [x]\n"
        for rack, nodes in (("r1", "1-4"), ("r2", "5-8"))
    )
    text = BASE + "".join(member(town) + group.format(town) for town in "ab") + sets
    (item,) = hits(text, tmp_path)
    assert item.finding.code == "GP832"
    assert item.finding.hint == "are b[1-4].x.org and b[5-8].x.org meant? Node sets name them, and no group does"


NODES = '---\n# {0}/g.yaml\ngpolicy: v1\nkind: NodeGroup\nname: g\nnodes: ["{1}[1-4].example.org"]\n'


@pytest.mark.parametrize("wrong", ["oslo", "wien"])
def test_a_member_with_the_nodes_of_another_is_to_blame_whatever_its_place_in_the_alphabet(
    wrong: str, tmp_path: Path
) -> None:
    towns = {town: town if town != wrong else "rome" for town in ("oslo", "rome", "wien")}
    text = BASE + "".join(member(town) + NODES.format(town, nodes) for town, nodes in towns.items())
    (item,) = hits(text, tmp_path)
    assert (item.finding.code, item.finding.message) == ("GP832", "rome[1-4].example.org is also a pattern of rome")
    assert item.finding.span is not None
    assert Path(item.finding.span.file).parent.name == wrong


@pytest.mark.parametrize(("wrong", "other"), [("oslo", "wien"), ("wien", "oslo")])
def test_a_member_with_the_name_of_another_is_to_blame(wrong: str, other: str, tmp_path: Path) -> None:
    members = {town: member(town) + NODES.format(town, town) for town in (wrong, other)}
    members[wrong] = members[wrong].replace(f"name: {wrong}", f"name: {other}")
    (item,) = hits(BASE + "".join(members[town] for town in sorted(members)), tmp_path)
    assert item.finding.code == "GP831"
    assert item.finding.span is not None
    assert Path(item.finding.span.file).parent.name == wrong


GUARDED = (
    f"{BASE}---\ngpolicy: v1\nkind: NodeGroup\nname: general\ntemplate: true\nndparams: {{ssh_port: 22}}\n"
    "---\ngpolicy: v1\nkind: Guards\nguards:\n  - {name: survive, group: general, node_failures: 1}\n"
)
HEIR = "---\ngpolicy: v1\nkind: NodeGroup\nname: {}\nextends: ../base.yaml#general\n"
OWN_GUARD = "---\ngpolicy: v1\nkind: Guards\nguards:\n  - {name: survive, group: generell, node_failures: 1}\n"


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (HEIR.format("generell"), ["GP834"]),
        (HEIR.format("general"), []),
        (HEIR.format("general") + HEIR.format("more"), []),
        (HEIR.format("web") + HEIR.format("db"), []),  # a base for several groups
        (HEIR.format("generell") + OWN_GUARD, []),
        (HEIR.format("generell") + HEIR.format("memory"), ["GP834"]),
        (HEIR.format("general-a") + HEIR.format("general-b"), []),
    ],
)
def test_a_group_that_extends_the_group_of_a_guard_under_another_name(
    groups: str, expected: list[str], tmp_path: Path
) -> None:
    texts = {
        "base": GUARDED,
        "oslo/c": member("oslo")[4:] + HEIR.format("general"),
        "wien/c": member("wien")[4:] + groups,
    }
    for name, text in texts.items():
        file = tmp_path / f"{name}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    found = [
        hit.finding
        for hits in check_fleet([load_policy(tmp_path / "oslo"), load_policy(tmp_path / "wien")])
        for hit in hits
    ]
    assert [item.code for item in found] == expected
    for item in found:
        assert item.message == "'survive' of this base is about group general, and so not about generell"
        assert item.hint.startswith("call it general, as other clusters do")
