from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from gpolicy.findings import Severity
from gpolicy.ganeti.vocabulary import Value
from gpolicy.policy.extending import MAX_DEPTH
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from gpolicy.policy.model import INHERIT
from scripts.schemas.documents import MOST_BASES
from tests.mistakes import find_mistakes

HEAD = "gpolicy: v1\nkind: NodeGroup\n"
SSH = ("ndparams", "ssh_port")
SPINDLES = ("ndparams", "spindle_count")


def group(name: str, body: str = "", *, template: bool = False, extends: str = "") -> str:
    parts = [f"{HEAD}name: {name}\n"]
    parts += ["template: true\n"] if template else []
    parts += [f"extends: {extends}\n"] if extends else []
    return "".join([*parts, body])


def load(directory: Path, *documents: str) -> Policy:
    (directory / "policy.yaml").write_text("---\n".join(documents), encoding="utf-8")
    return load_policy(directory)


def codes(policy: Policy) -> list[str]:
    return [finding.code for finding in policy.findings]


def value(policy: Policy, name: str, path: tuple[str, ...]) -> object:
    return policy.groups[name].leaves[path].value


def test_own_values_win_and_the_rest_comes_from_the_base(tmp_path: Path) -> None:
    base = group("base", "ndparams: {ssh_port: 22, spindle_count: 4}\n", template=True)
    policy = load(tmp_path, base, group("gold", "ndparams: {ssh_port: 2222}\n", extends="base"))
    assert policy.findings == ()
    assert list(policy.groups) == ["gold"]
    assert (value(policy, "gold", SSH), value(policy, "gold", SPINDLES)) == (2222, 4)


def test_every_value_knows_where_it_and_what_it_overrides_stands(tmp_path: Path) -> None:
    base = group("base", "ndparams: {ssh_port: 22, spindle_count: 4}\n", template=True)
    middle = group("middle", "ndparams: {ssh_port: 23}\n", template=True, extends="base")
    policy = load(tmp_path, base, middle, group("gold", "ndparams: {ssh_port: 24}\n", extends="middle"))
    leaf = policy.groups["gold"].leaves[SSH]
    assert [(item.value, item.span.line) for item in (leaf, *leaf.overridden)] == [(24, 18), (23, 12), (22, 5)]
    assert policy.groups["gold"].leaves[SPINDLES].span.line == 5


@pytest.mark.parametrize("written", ["inherit", "2222"])
def test_inherit_is_a_value_that_wins_like_any_other(written: str, tmp_path: Path) -> None:
    base = group("base", f"ndparams: {{ssh_port: {written}}}\n", template=True)
    own = "2222" if written == "inherit" else "inherit"
    policy = load(tmp_path, base, group("gold", f"ndparams: {{ssh_port: {own}}}\n", extends="base"))
    expected: Value | object = INHERIT if own == "inherit" else 2222
    assert value(policy, "gold", SSH) == expected


def test_lists_are_replaced_as_a_whole(tmp_path: Path) -> None:
    base = group("base", "tags: [a, b]\nnodes: [n1]\nipolicy: {disk-templates: [drbd, plain]}\n", template=True)
    own = "tags: [c]\nipolicy: {disk-templates: [plain]}\n"
    gold = load(tmp_path, base, group("gold", own, extends="base")).groups["gold"]
    assert [tag.value for tag in gold.tags or ()] == ["c"]
    assert [node.value for node in gold.nodes or ()] == ["n1"]
    assert gold.leaves["ipolicy", "disk-templates"].value == ["plain"]


def test_hardware_is_merged_by_figure(tmp_path: Path) -> None:
    base = group("base", "hardware: {memory: 64G, cpus: 16}\n", template=True)
    gold = load(tmp_path, base, group("gold", "hardware: {cpus: 32}\n", extends="base")).groups["gold"]
    assert gold.hardware is not None
    assert gold.hardware.memory is not None
    assert gold.hardware.cpus is not None
    assert (gold.hardware.memory.value, gold.hardware.cpus.value) == (64 * 1024, 32)


def test_bases_that_disagree_are_a_conflict_unless_the_document_decides(tmp_path: Path) -> None:
    one = group("one", "ndparams: {ssh_port: 1}\n", template=True)
    two = group("two", "ndparams: {ssh_port: 2}\n", template=True)
    policy = load(tmp_path, one, two, group("gold", extends="[one, two]"))
    (finding,) = policy.findings
    assert (finding.code, finding.severity) == ("GP023", Severity.WARNING)
    assert [related.span.line for related in finding.related] == [5, 11]
    assert value(policy, "gold", SSH) == 2
    decided = load(tmp_path, one, two, group("gold", "ndparams: {ssh_port: 3}\n", extends="[one, two]"))
    assert decided.findings == ()


def test_bases_that_agree_are_no_conflict(tmp_path: Path) -> None:
    one = group("one", "ndparams: {ssh_port: 1}\n", template=True)
    two = group("two", "ndparams: {ssh_port: 1}\n", template=True)
    assert load(tmp_path, one, two, group("gold", extends="[one, two]")).findings == ()


BASE = group("base", "ndparams: {ssh_port: 1}\n", template=True)
REFINED = group("refined", "ndparams: {ssh_port: 2}\n", template=True, extends="base")


def overridden(policy: Policy, name: str) -> list[object]:
    return [leaf.value for leaf in policy.groups[name].leaves[SSH].overridden]


def test_a_base_that_refines_another_base_does_not_disagree_with_it(tmp_path: Path) -> None:
    policy = load(tmp_path, BASE, REFINED, group("gold", extends="[base, refined]"))
    assert policy.findings == ()
    assert (value(policy, "gold", SSH), overridden(policy, "gold")) == (2, [1])


def test_a_plain_base_behind_the_one_that_refines_it_is_a_conflict(tmp_path: Path) -> None:
    policy = load(tmp_path, BASE, REFINED, group("gold", extends="[refined, base]"))
    assert codes(policy) == ["GP023"]
    assert (value(policy, "gold", SSH), overridden(policy, "gold")) == (1, [2])


def test_two_that_refine_one_base_disagree_and_the_base_stands_behind_both_once(tmp_path: Path) -> None:
    other = group("other", "ndparams: {ssh_port: 3}\n", template=True, extends="base")
    policy = load(tmp_path, BASE, REFINED, other, group("gold", extends="[refined, other]"))
    assert codes(policy) == ["GP023"]
    assert (value(policy, "gold", SSH), overridden(policy, "gold")) == (3, [2, 1])


@pytest.mark.parametrize("circle", [["gold"], ["silver", "gold"], ["silver", "copper", "gold"]])
def test_a_cycle_is_a_finding(circle: list[str], tmp_path: Path) -> None:
    names = ["gold", *circle]
    documents = [group(name, extends=base) for name, base in zip(names, circle, strict=False)]
    policy = load(tmp_path, *documents)
    assert set(codes(policy)) == {"GP022"}
    assert len(policy.groups) == len(circle)


def test_a_cycle_is_blamed_on_the_entry_of_the_template_that_closes_it(tmp_path: Path) -> None:
    good, circular = group("good", template=True), group("t", template=True, extends="[good, gold]")
    (found,) = load(tmp_path, good, circular, group("gold", extends="t")).findings
    assert found.span
    assert (found.message, found.span.line, found.span.column) == ("t extends itself: t → gold → t", 10, 17)


@pytest.mark.parametrize("backwards", [False, True])
def test_a_very_long_chain_ends(backwards: bool, tmp_path: Path) -> None:
    chain = [group("g0"), *(group(f"g{n}", extends=f"g{n - 1}") for n in range(1, 60))]
    policy = load(tmp_path, *(reversed(chain) if backwards else chain))
    assert codes(policy) == ["GP022"] * (60 - MAX_DEPTH)
    assert {finding.message for finding in policy.findings} == {
        f"g{n} extends a chain of more than {MAX_DEPTH} documents" for n in range(MAX_DEPTH, 60)
    }


@pytest.mark.parametrize("layers", [MAX_DEPTH, 2 * MAX_DEPTH])
def test_bases_that_are_reached_in_many_ways_are_followed_once(layers: int, tmp_path: Path) -> None:
    bottom = [group(f"{side}0", "ndparams: {ssh_port: 7}\n") for side in "ab"]
    above = [group(f"{side}{n}", extends=f"[a{n - 1}, b{n - 1}]") for n in range(1, layers) for side in "ab"]
    policy = load(tmp_path, *reversed([*bottom, *above]))  # two ways on each layer: 2 to the power of layers in all
    assert codes(policy) == ["GP022"] * 2 * (layers - MAX_DEPTH)
    assert value(policy, f"a{MAX_DEPTH - 1}", SSH) == 7


@pytest.mark.parametrize("name", ["nobody", "other.yaml", "policy.yaml#nobody", "policy.yaml", "c.example.org"])
def test_an_unknown_base_is_a_finding(name: str, tmp_path: Path) -> None:
    cluster = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
    policy = load(tmp_path, cluster, group("gold", extends=f'"{name}"'), group("a"), group("b"))
    assert codes(policy) == ["GP021"]


@pytest.mark.parametrize("name", ["base", '"policy.yaml#base"'])
@pytest.mark.parametrize("wrong", ["x: 1\n", "ndparams: {ssh_port: *nope}\n", "x: [\n"])
def test_a_base_with_a_mistake_is_not_unknown(name: str, wrong: str, tmp_path: Path) -> None:
    policy = load(tmp_path, group("gold", extends=name), group("base", wrong, template=True))
    assert codes(policy) in (["GP011"], ["GP005"], ["GP002"])
    assert codes(load(tmp_path, group("gold", extends="other"), group("base", "x: 1\n"))) == ["GP021", "GP011"]


# --- other files ---------------------------------------------------------------------------------------------------


@pytest.fixture(name="repository")
def _repository(tmp_path: Path) -> Path:
    """A work tree with a policy in it, and files outside."""
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").touch()
    (root / "policies").mkdir()
    (root / "common").mkdir()
    body = "ndparams: {ssh_port: 2222}\n"
    (root / "common" / "base.yaml").write_text(group("base", body, template=True), encoding="utf-8")
    (tmp_path / "outside.yaml").write_text(group("base", body, template=True), encoding="utf-8")
    return root


@pytest.mark.parametrize("name", ["../common/base.yaml#base", "../common/base.yaml", "./../common//base.yaml#base"])
def test_a_base_in_another_file(name: str, repository: Path) -> None:
    policy = load(repository / "policies", group("gold", extends=f'"{name}"'))
    assert policy.findings == ()
    assert value(policy, "gold", SSH) == 2222
    assert any(file.endswith("base.yaml") for file in policy.files)
    assert list(policy.groups) == ["gold"]


@pytest.mark.parametrize("name", ["../../outside.yaml#base", "../common/../../outside.yaml", "/etc/passwd.yaml"])
def test_a_base_outside_the_work_tree_is_not_read(name: str, repository: Path) -> None:
    policy = load(repository / "policies", group("gold", extends=f'"{name}"'))
    assert codes(policy) == ["GP021"]


def test_an_absolute_path_leads_nowhere_outside(repository: Path) -> None:
    outside = repository.parent / "outside.yaml"
    assert codes(load(repository / "policies", group("gold", extends=f'"{outside}"'))) == ["GP021"]


def test_a_link_leads_nowhere_outside(repository: Path) -> None:
    (repository / "common" / "link.yaml").symlink_to(repository.parent / "outside.yaml")
    policy = load(repository / "policies", group("gold", extends='"../common/link.yaml#base"'))
    assert codes(policy) == ["GP021"]


def test_errors_in_a_base_file_are_found_there(repository: Path) -> None:
    (repository / "common" / "base.yaml").write_text(
        "gpolicy: v1\nkind: NodeGroup\nname: base\nx: 1\n", encoding="utf-8"
    )
    policy = load(repository / "policies", group("gold", extends='"../common/base.yaml#base"'))
    assert codes(policy) == ["GP011"]
    assert any(finding.span and finding.span.file.endswith("base.yaml") for finding in policy.findings)


def test_a_base_file_with_invalid_yaml_is_not_unknown(repository: Path) -> None:
    (repository / "common" / "base.yaml").write_text(group("base", "x: [\n"), encoding="utf-8")
    assert codes(load(repository / "policies", group("gold", extends='"../common/base.yaml"'))) == ["GP002"]


def test_a_base_file_is_read_once_for_all(repository: Path) -> None:
    base = "../common/base.yaml#base"
    (repository / "common" / "base.yaml").write_text(
        group("base", "beparams: {}\nndparams: {ssh_port: 2222}\n", template=True), encoding="utf-8"
    )
    documents = [group(name, extends=f'"{base}"') for name in ("gold", "silver")]
    assert codes(load(repository / "policies", *documents)).count("GP011") == 1


SHARED = """---
gpolicy: v1
kind: Guards
guards:
  - {name: few, max_changes: 5}
  - {name: kept, capacity_loss: {at_most: 10%}}
  - {name: of others, group: base, at_least: 4}
---
gpolicy: v1
kind: Test
tests:
  - {name: room, "on": {snapshot: here.json}, capacity: {}, expect: {standard: {at_least: 1}}}
---
gpolicy: v1
kind: TagRules
exclusion: [service]
---
gpolicy: v1
kind: Waiver
waivers:
  - {rule: GP211, where: group/gold, until: "2030-01-31", reason: a large size}
"""


def test_who_extends_a_document_takes_guards_tests_tag_rules_and_waivers_of_its_file(repository: Path) -> None:
    (repository / "common" / "base.yaml").write_text(group("base", template=True) + SHARED, encoding="utf-8")
    (repository / "common" / "here.json").write_text("{}", encoding="utf-8")
    own = "gpolicy: v1\nkind: Guards\nguards:\n  - {name: few, max_changes: 9}\n"
    policy = load(repository / "policies", group("gold", extends='"../common/base.yaml#base"'), own)
    assert codes(policy) == []
    assert [(guard.name.value, guard.limit) for guard in policy.guards] == [("few", 9), ("kept", 10)]
    assert [rules.tags[0].value for rules in policy.tag_rules] == ["htools:iextags:service:"]
    (scenario,) = policy.scenarios
    assert scenario.stage.snapshot
    assert Path(scenario.stage.snapshot.value).resolve() == repository / "common" / "here.json"
    found = find_mistakes(policy, today=date(2029, 1, 1))
    assert [waiver.where for waiver in policy.waivers] == ["group/gold"]
    assert "GP902" not in [finding.code for finding in found], "another policy may need the waiver"


def with_guard(kind: str, limit: int, extends: str = "") -> str:
    head = f"gpolicy: v1\nkind: NodeGroup\nname: {kind}\ntemplate: true\nndparams: {{ssh_port: {limit}}}\n{extends}"
    return f"{head}---\ngpolicy: v1\nkind: Guards\nguards:\n  - {{name: few, max_changes: {limit}}}\n"


@pytest.mark.parametrize(
    ("extends", "first", "found"),
    [
        ("[../common/a.yaml#a, ../common/b.yaml#b]", "", ["GP023", "GP023"]),
        ("[../common/b.yaml#b, ../common/a.yaml#a]", "", ["GP023", "GP023"]),
        ("../common/a.yaml#a", "extends: b.yaml#b\n", []),  # the nearer one
        ("../common/a.yaml#a", "extends: [c.yaml#c, b.yaml#b]\n", []),
        ("[../common/b.yaml#b, ../common/b2.yaml#b]", "", []),
    ],
)
def test_of_two_bases_the_guard_and_the_value_of_one_are_taken(
    extends: str, first: str, found: list[str], repository: Path
) -> None:
    for name, limit, more in (("a", 10, first), ("b", 20, ""), ("c", 30, "")):
        (repository / "common" / f"{name}.yaml").write_text(with_guard(name, limit, more), encoding="utf-8")
    (repository / "common" / "b2.yaml").write_text(with_guard("b", 20), encoding="utf-8")
    policy = load(repository / "policies", group("gold", extends=extends))
    (guard,) = policy.guards
    assert policy.groups["gold"].leaves[("ndparams", "ssh_port")].value == guard.limit
    assert codes(policy) == found


@pytest.mark.parametrize(("count", "found"), [(MOST_BASES, []), (MOST_BASES + 1, ["GP012"])])
def test_a_document_extends_a_limited_number_of_bases(count: int, found: list[str], tmp_path: Path) -> None:
    bases = [group(f"base{number}", template=True) for number in range(count)]
    names = ", ".join(f"base{number}" for number in range(count))
    policy = load(tmp_path, *bases, group("gold", extends=f"[{names}]"))
    assert codes(policy) == found


@pytest.mark.parametrize(
    ("extends", "message", "hint"),
    [
        ("../../../base.yaml", "leads out of", "keep both in one git repository"),
        ("../bsae.yaml", "there is no file '../bsae.yaml' to extend", "Did you mean `../base.yaml`?"),
        ("base.yaml#common", "there is no file 'base.yaml' to extend", "Did you mean `../base.yaml#common`?"),
        ("../other.yaml", "there is no file '../other.yaml' to extend", "write the path from this document"),
        (
            "../base.yaml#comon",
            "there is no NodeGroup '../base.yaml#comon' to extend",
            "Did you mean `../base.yaml#common`?",
        ),
        (
            "../base.yaml#other",
            "there is no NodeGroup '../base.yaml#other' to extend",
            "its NodeGroup documents are `../base.yaml#common`",
        ),
        ("comon", "there is no NodeGroup 'comon' to extend", "name a document of the same kind"),
    ],
)
def test_an_unknown_base_says_what_is_not_there(extends: str, message: str, hint: str, tmp_path: Path) -> None:
    policy = tmp_path / "a" / "b" / "policy"
    policy.mkdir(parents=True)
    base = "gpolicy: v1\nkind: NodeGroup\nname: common\ntemplate: true\n"
    for place in (tmp_path, policy.parent):
        (place / "base.yaml").write_text(base, encoding="utf-8")
    (policy / "gold.yaml").write_text(f"gpolicy: v1\nkind: NodeGroup\nname: gold\nextends: {extends}\n")
    (finding,) = load_policy(policy).findings
    assert message in finding.message
    assert finding.hint.startswith(hint)
