"""House rules: what they look at, where their findings stand, and what accepts one of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpolicy.checking import value_schema
from gpolicy.checking.checking import Checker
from gpolicy.checking.consequences import one_for_each_missing
from gpolicy.checking.settings_tables import Overrides, settings_for, settings_of_each
from gpolicy.errors import InputError, RequestError
from gpolicy.findings import Finding, Severity, told
from gpolicy.forecast.bridge import FORECAST
from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes
from tests.rules.policy_texts import bounds
from tests.rules.run_rules import TODAY, check, codes

CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\nipolicy: {vcpu-ratio: 4}\n"
GOLD = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
RATIO = "properties: {ipolicy.vcpu-ratio: {maximum: 1}}"


def rule(schema: str = RATIO, about: str = "kind: NodeGroup", name: str = "ratio", extra: str = "") -> str:
    head = f"gpolicy: v1\nkind: Rule\nname: {name}\nfor: {{{about}}}\nmessage: too many\n"
    return f"{head}schema: {{{schema}}}\n{extra}"


def together(*documents: str) -> str:
    return "---\n".join(documents)


def said(findings: list[Finding]) -> list[tuple[str, int | None, str]]:
    return [(item.name, item.span.line if item.span else None, item.hint) for item in findings]


# --- what it looks at ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("about", "named"),
    [
        ("kind: NodeGroup", ["gold", "silver"]),
        ("kind: NodeGroup, names: [gold]", ["gold"]),
        ("kind: NodeGroup, names: ['s*', bronze]", ["silver"]),
        ("kind: NodeGroup, tags: ['tier:*']", ["gold"]),
        ("kind: NodeGroup, names: ['s*'], tags: ['tier:*']", []),
        ("kind: Cluster", ["the cluster"]),
        ("kind: NodeSet", ["node set rack", "node set rack"]),
    ],
)
def test_kind_names_and_tags_choose_the_objects(about: str, named: list[str], tmp_path: Path) -> None:
    text = together(
        CLUSTER,
        f"{GOLD}tags: ['tier:1']\nnodes: [n1]\n",
        GOLD.replace("gold", "silver") + "nodes: [n2]\n",
        GOLD.replace("gold", "bronze") + "removed: true\n",
        "gpolicy: v1\nkind: NodeSet\nname: rack\nnodes: [n1, n2]\nndparams: {ssh_port: 22}\n",
        rule("properties: {name: {enum: [other]}}", about),
    )
    found = [item for item in check(text, tmp_path) if item.code == "GP950"]
    assert [item.message.split(": ")[0].removeprefix("group ").partition(" in ")[0] for item in found] == named


def test_inherited_values_count_and_are_shown_where_they_are_written(tmp_path: Path) -> None:
    (found,) = check(together(CLUSTER, GOLD, rule()), tmp_path)
    assert said([found]) == [("house/ratio", 4, "ipolicy.vcpu-ratio is 4, it must be at most 1")]
    assert found.message == "group gold: too many"
    assert [(item.span.line, item.message) for item in found.related] == [
        (12, "the rule is here"),
        (8, "group gold has this value"),
    ]


@pytest.mark.parametrize(
    ("body", "schema", "line", "column", "reason"),
    [
        ("tags: [a, b]\n", "properties: {tags: {items: {const: a}}}", 4, 11, "an item of tags is b, it must be a"),
        ("nodes: [n1, x]\n", "properties: {nodes: {items: {pattern: ^n}}}", 4, 13, "does not match"),
        ("tags: [a]\n", "properties: {tags: {minItems: 2}}", 4, 1, "tags has 1 item, it must have at least 2"),
        ("", "required: [alloc_policy]", 3, 7, "the policy does not say alloc_policy"),
        (
            "ipolicy:\n  disk-templates: [plain, drbd]\n",
            "properties: {ipolicy.disk-templates: {items: {const: drbd}}}",
            *(5, 20, "an item of ipolicy.disk-templates is plain, it must be drbd"),
        ),
        ("ipolicy: {vcpu-ratio: 3.0}\n", "additionalProperties: false", 3, 7, "must not be there; it is gold"),
        (
            "limits: {max_node_failures: 1}\n",
            "properties: {limits.max_node_failures: {minimum: 2}}",
            4,
            29,
            "at least 2",
        ),
    ],
)
def test_a_finding_stands_at_the_value(
    body: str, schema: str, line: int, column: int, reason: str, tmp_path: Path
) -> None:
    found = [item for item in check(together(GOLD + body, rule(schema)), tmp_path) if item.code == "GP950"]
    assert found[0].span is not None
    assert (found[0].span.line, found[0].span.column) == (line, column)
    assert reason in found[0].hint


def test_parts_of_pairs_have_their_place(tmp_path: Path) -> None:
    body = f"ipolicy:\n  minmax:\n    - {bounds('1G 4G', '1 4', '10G 40G')}    - {bounds('8G 16G', '8 16', '80G 90G')}"
    schema = "properties: {ipolicy.minmax: {items: {properties: {max: {properties: {memory-size: {maximum: 8192}}}}}}}"
    (found,) = [item for item in check(together(GOLD + body, rule(schema)), tmp_path) if item.code == "GP950"]
    assert found.span is not None
    assert found.span.line == 9
    assert found.hint == "ipolicy.minmax[2].max.memory-size is 16384, it must be at most 8192"


def test_a_value_of_several_groups_is_one_finding(tmp_path: Path) -> None:
    silver, iron = (GOLD.replace("gold", name) for name in ("silver", "iron"))
    text = together(CLUSTER, GOLD, silver, f"{iron}ipolicy: {{vcpu-ratio: 9}}\n", rule())
    found = [*one_for_each_missing(check(text, tmp_path))]
    assert [(item.span.line, item.message) for item in found if item.span] == [
        (4, "group gold: too many"),
        (17, "group iron: too many"),
    ]
    values = [item.message for item in found[0].related]
    assert values == ["the rule is here", "group gold has this value"]
    assert [item.message for item in found[0].consequences] == ["group silver: too many"]
    text = together(CLUSTER, GOLD, silver, rule("required: [ipolicy.spindle-ratio]"))
    (lacking,) = one_for_each_missing(check(text, tmp_path))
    assert lacking.hint == "the policy does not say ipolicy.spindle-ratio"
    assert len(lacking.consequences) == 1


def test_the_rule_gives_its_severity(tmp_path: Path) -> None:
    for severity in Severity:
        (found,) = check(together(CLUSTER, GOLD, rule(extra=f"severity: {severity}\n")), tmp_path)
        assert found.severity is severity


# --- who takes it along --------------------------------------------------------------------------------------------


def fleet(directory: Path) -> tuple[Path, Path]:
    (directory / "base.yaml").write_text(
        together(CLUSTER.replace("c.example.org", "base") + "template: true\n", rule()), encoding="utf-8"
    )
    homes = (directory / "amsterdam", directory / "berlin")
    for home in homes:
        home.mkdir()
        own = f"gpolicy: v1\nkind: Cluster\nname: {home.name}.example.org\nextends: ../base.yaml#base\n"
        (home / "policy.yaml").write_text(together(own, GOLD), encoding="utf-8")
    (directory / ".git").mkdir()
    return homes


def test_who_extends_a_file_takes_its_rules(tmp_path: Path) -> None:
    for home in fleet(tmp_path):
        (found,) = find_mistakes(load_policy(home), today=TODAY, forecast=FORECAST)
        assert found.name == "house/ratio"


def test_a_shared_rule_may_look_at_nothing(tmp_path: Path) -> None:
    home, _ = fleet(tmp_path)
    base = tmp_path / "base.yaml"
    base.write_text(base.read_text().replace("NodeGroup", "NodeGroup, names: [x]"), encoding="utf-8")
    assert find_mistakes(load_policy(home), today=TODAY, forecast=FORECAST) == []


def test_a_comment_about_a_rule_of_another_policy_is_left_alone_in_a_base(tmp_path: Path) -> None:
    home, _ = fleet(tmp_path)
    base = tmp_path / "base.yaml"
    base.write_text(base.read_text().replace("4}", "4}  # gpolicy: ignore[house/ratio, house/other] agreed"))
    assert find_mistakes(load_policy(home), today=TODAY, forecast=FORECAST) == []


# --- what accepts it -----------------------------------------------------------------------------------------------

TWO = together(CLUSTER, GOLD, rule(), rule(RATIO.replace("1", "2"), name="twice"))
WAIVER = (
    "gpolicy: v1\nkind: Waiver\nwaivers:\n  - {rule: RULE, where: group/gold, reason: agreed, until: '2099-12-31'}\n"
)


def names(findings: list[Finding]) -> list[str]:
    return [item.name for item in findings]


@pytest.mark.parametrize(
    ("word", "left"),
    [
        ("house/ratio", ["house/twice"]),
        ("GP950", []),
        ("house-rule", []),
        ("house/other", ["house/ratio", "house/twice", "waiver-unknown-rule"]),
        ("ratio", ["house/twice", "waiver-unknown-rule"]),
    ],
)
def test_a_waiver_accepts_one_rule_or_all(word: str, left: list[str], tmp_path: Path) -> None:
    found = check(together(TWO, WAIVER.replace("RULE", word)), tmp_path)
    assert names(found) == left
    if word == "ratio":
        assert found[-1].hint == "Did you mean `house/ratio`?"


def test_a_waiver_that_accepts_nothing_is_unused(tmp_path: Path) -> None:
    text = together(GOLD, rule(), WAIVER.replace("RULE", "house/ratio"))
    assert codes(check(text, tmp_path)) == ["GP902"]


@pytest.mark.parametrize(("word", "left"), [("house/ratio", ["house/twice"]), ("GP950", [])])
def test_a_comment_accepts_one_rule_or_all(word: str, left: list[str], tmp_path: Path) -> None:
    text = TWO.replace("vcpu-ratio: 4}\n", f"vcpu-ratio: 4}}  # gpolicy: ignore[{word}] agreed\n", 1)
    assert names(check(text, tmp_path)) == left


def test_a_comment_that_accepts_nothing_is_unused(tmp_path: Path) -> None:
    text = together(f"{GOLD}nodes: [a]  # gpolicy: ignore[house/ratio]\n", rule())
    assert codes(check(text, tmp_path)) == ["GP911"]


@pytest.mark.parametrize(
    ("settings", "left"),
    [
        ('ignore = ["house/ratio"]', ["house/twice"]),
        ('ignore = ["GP950"]', []),
        ('ignore = ["GP9"]', []),
        ('select = ["GP2"]', []),
        ('select = ["GP2", "house/twice"]', ["house/twice"]),
        ('select = ["GP", "house/twice"]\nignore = ["house-rule"]', ["house/twice"]),
        ('select = ["house-rule"]\nignore = ["house/twice"]', ["house/ratio"]),
        ('[check.per-file-ignores]\n"*.yaml" = ["house/twice"]', ["house/ratio"]),
        ('[check.per-file-ignores]\n"*.yaml" = ["GP95"]', []),
    ],
)
def test_settings_name_one_rule_or_all(settings: str, left: list[str], tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(TWO, encoding="utf-8")
    (tmp_path / "gpolicy.toml").write_text(f"[check]\n{settings}\n", encoding="utf-8")
    made = settings_for(tmp_path)
    assert names(find_mistakes(load_policy(tmp_path), today=TODAY, forecast=FORECAST, settings=made)) == left


def test_settings_change_the_severity_of_one_rule(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(TWO, encoding="utf-8")
    made = settings_of_each([tmp_path], Overrides(severity=("house/ratio=info", "GP950=warning")))[0]
    found = find_mistakes(load_policy(tmp_path), today=TODAY, forecast=FORECAST, settings=made)
    assert {item.name: item.severity for item in found} == {
        "house/ratio": Severity.INFO,
        "house/twice": Severity.WARNING,
    }


def test_a_selected_rule_must_exist(tmp_path: Path) -> None:
    """Else a slip would hide every finding."""
    (tmp_path / "policy.yaml").write_text(TWO, encoding="utf-8")
    checker = Checker([tmp_path], None, Overrides(select=("house/ratoi",)), today=TODAY)
    with pytest.raises(RequestError, match="house/ratoi") as caught:
        checker.check()
    assert caught.value.hint == "Did you mean `house/ratio`?"


@pytest.mark.parametrize("word", ["house/", "house/A b", "house/a_b", "house"])
def test_a_word_that_no_rule_can_have_is_unknown(word: str, tmp_path: Path) -> None:
    (tmp_path / "gpolicy.toml").write_text(f'[check]\nignore = ["{word}"]\n', encoding="utf-8")
    with pytest.raises(InputError, match="there is no rule"):
        settings_for(tmp_path)


def test_a_baseline_tells_rules_apart(tmp_path: Path) -> None:
    """What is accepted of one rule accepts nothing of another at the same place."""
    policy, baseline = tmp_path / "policy.yaml", tmp_path / "baseline.json"
    policy.write_text(together(CLUSTER, GOLD, rule()), encoding="utf-8")
    from gpolicy.checking.checking import new_baseline

    found = Checker([tmp_path], None, today=TODAY).check()
    baseline.write_text(new_baseline(found, baseline).text, encoding="utf-8")
    assert [entry["rule"] for entry in json.loads(baseline.read_text())["findings"]] == ["house/ratio"]
    overrides = Overrides(baseline=baseline)
    policy.write_text(TWO, encoding="utf-8")
    assert names(Checker([tmp_path], None, overrides, today=TODAY).check()[0].findings) == ["house/twice"]
    policy.write_text(together(CLUSTER, GOLD), encoding="utf-8")
    assert codes(Checker([tmp_path], None, overrides, today=TODAY).check()[0].findings) == ["GP915"]


# --- mistakes in rules ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "code", "line", "hint"),
    [
        (rule("properties: {name: {maxLenght: 3}}"), "GP011", 6, "Did you mean `maxLength`?"),
        (rule("maximum: '3'"), "GP012", 6, ""),
        (rule("$ref: 'https://example.org/schema.json'"), "GP012", 6, ""),
        (rule("$ref: '#/definitions/x'"), "GP951", 6, "write it below `definitions` of the schema"),
        (rule("$ref: '#/definitions/a~b'"), "GP012", 6, ""),
        (rule("$ref: '#/definitions/x', definitions: {x: {not: {$ref: '#/definitions/x'}}}"), "GP951", 6, "plainer"),
        (rule("propertyNames: {pattern: '(a'}"), "GP951", 6, "write a plainer one"),
        (rule("patternProperties: {'a(?<!b+)': {const: 1}}"), "GP951", 6, "write a plainer one"),
        (rule("required: [vcpu-ratio]"), "GP952", 6, "Did you mean `ipolicy.vcpu-ratio`?"),
        (rule("if: {required: [group]}, then: {required: [name]}"), "GP952", 6, "effective"),
        (rule("allOf: [{properties: {alloc_polcy: {const: preferred}}}]"), "GP952", 6, "Did you mean `alloc_policy`?"),
        (rule(about="kind: NodeGroup, names: ['glod*']"), "GP953", 4, "Did you mean `gold`?"),
        (rule(about="kind: NodeGroup, names: [gold, glod]"), "GP953", 4, "Did you mean `gold`?"),
        (rule(about="kind: NodeGroup, names: [cold-old]"), "GP953", 4, "the names are gold"),
        (rule(about="kind: NodeGroup, tags: ['tier:*']"), "GP953", 4, "correct the tags"),
        (rule(about="kind: NodeSet", schema="required: [name]"), "GP953", 4, "correct its kind"),
        (rule(about="kind: Nodes"), "GP012", 4, ""),
        (rule(name="Ratio"), "GP012", 3, ""),
        (together(rule(), rule()), "GP954", 10, "give it another name"),
    ],
)
def test_a_mistake_in_a_rule_is_a_finding(document: str, code: str, line: int, hint: str, tmp_path: Path) -> None:
    (found,) = check(together(GOLD, document), tmp_path)
    assert found.code == code
    assert found.span is not None
    assert found.span.line == line + 4
    assert hint in found.hint


def nested(depth: int) -> str:
    return "not: {" * (depth - 1) + "maximum: 4" + "}" * (depth - 1)


def chain(count: int) -> str:
    each = ", ".join(f"d{n}: {{$ref: '#/definitions/d{n + 1}'}}" for n in range(count))
    return f"$ref: '#/definitions/d0', definitions: {{{each}, d{count}: {{maximum: 4}}}}"


def test_schemas_may_not_be_nested_without_end(tmp_path: Path) -> None:
    assert codes(check(together(GOLD, rule(chain(3000))), tmp_path)) == ["GP951"]


@pytest.mark.parametrize("schema", [nested(32), chain(30)])
def test_schemas_may_be_nested(schema: str, tmp_path: Path) -> None:
    assert "GP951" not in codes(check(together(GOLD, rule(schema)), tmp_path))


def test_a_definition_may_be_about_parts_of_what_it_is_about(tmp_path: Path) -> None:
    again = "{$ref: '#/definitions/part'}"
    part = f"definitions: {{part: {{maximum: 9000, items: {again}, additionalProperties: {again}}}}}"
    body = f"{GOLD}ipolicy:\n  minmax:\n    - {bounds('1G 4G', '1 4', '8G 16G')}"
    text = together(body, rule(f"properties: {{ipolicy.minmax: {again}}}, {part}"))
    assert [item.hint for item in check(text, tmp_path) if item.code == "GP950"] == [
        "ipolicy.minmax[1].max.disk-size is 16384, it must be at most 9000"
    ]


ENDLESS = "properties: {tags: {items: {pattern: '^(a+)+$'}}}"
TAGGED = f"{GOLD}tags: [{'a' * 60}1]\n"


def test_a_rule_that_takes_too_long_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_schema, "SECONDS", 0)
    text = together(CLUSTER, TAGGED, rule(name="before"), rule(ENDLESS, name="endless"), rule(name="after"))
    found = check(text, tmp_path)
    assert [item.name for item in found] == ["house/after", "house/before", "rule-schema"]
    assert found[-1].message == "house rule endless: its schema takes too much time, memory or depth"


def test_rules_that_take_too_long_together_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_schema, "MOST_SECONDS", 0)
    (found,) = check(together(CLUSTER, GOLD, rule(), rule(name="later")), tmp_path)
    assert (found.code, found.message) == ("GP004", "the house rules of this policy take too long, or find too much")


def test_one_mistake_elsewhere_makes_one_finding(tmp_path: Path) -> None:
    """Rules judge a policy that could be read as a whole, or not at all."""
    text = together(CLUSTER.replace("4", "four"), GOLD, rule(), rule("required: [alloc_policy]", name="other"))
    assert codes(check(text, tmp_path)) == ["GP012"]


def test_the_effective_values_of_show_are_what_rules_see(tmp_path: Path) -> None:
    from gpolicy.report.show_answer import SHOW_DOCUMENT
    from gpolicy.show.effective_policy import effective_view

    (tmp_path / "policy.yaml").write_text(together(CLUSTER, f"{GOLD}tags: [a]\nnodes: [n1]\n"), encoding="utf-8")
    objects: list[dict[str, Any]] = SHOW_DOCUMENT.data(effective_view(load_policy(tmp_path)))["objects"]
    assert [item["effective"] for item in objects] == [
        {"name": "c.example.org", "ipolicy.vcpu-ratio": 4.0},
        {"name": "gold", "nodes": ["n1"], "tags": ["a"], "ipolicy.vcpu-ratio": 4.0},
    ]


def test_an_empty_schema_demands_nothing(tmp_path: Path) -> None:
    found = check(f"{GOLD}---\n{rule('')}", tmp_path)
    assert "house rule ratio: its schema demands nothing" in [finding.message for finding in found]


def test_a_tag_that_is_almost_the_one_a_rule_looks_for(tmp_path: Path) -> None:
    tagged = [f"{GOLD.replace('gold', name)}tags: [{tag}]\n" for name, tag in (("a", "'for:web'"), ("b", "'for:wbe'"))]
    ratio = rule("properties: {ipolicy.vcpu-ratio: {maximum: 9}}", about="kind: NodeGroup, tags: ['for:web']")
    (found,) = check(together(CLUSTER, *tagged, ratio), tmp_path)
    assert (found.code, found.hint) == ("GP953", "Did you mean `for:web`?")
    assert found.message == "house rule ratio looks at for:web, and not at for:wbe"


def in_one(directory: Path, text: str) -> list[Finding]:
    return [*one_for_each_missing(check(text, directory))]


def test_a_tag_that_two_rules_name_is_misspelt_where_it_is_given(tmp_path: Path) -> None:
    tiers = 'properties: {tags: {contains: {enum: ["tier:gold"]}}}'
    one = rule(about='kind: NodeGroup, tags: ["tier:gold"]')
    (tag,) = in_one(tmp_path, together(CLUSTER, f"{GOLD}tags: ['tier:glod']\n", one, rule(tiers, name="tier")))
    assert (tag.code, tag.span and tag.span.line, tag.hint) == ("GP953", 9, "Did you mean `tier:gold`?")
    assert [item.name for item in tag.consequences] == ["house/tier"]
    (name,) = in_one(tmp_path, together(CLUSTER, f"{GOLD}tags: ['tier:glod']\n", one))
    assert (name.code, name.hint) == ("GP953", "is tier:glod meant?")


@pytest.mark.parametrize(
    ("about", "other", "line"),
    [
        ("kind: NodeGroup, names: [gold]", "", 8),  # who is to have a value of its own lacks it
        ("kind: NodeGroup", "", 4),  # what all are to have is wrong where it is said
        ("kind: NodeGroup, names: [gold, silver]", GOLD.replace("gold", "silver"), 4),
    ],
)
def test_a_value_that_one_object_inherits_is_lacking_there(about: str, other: str, line: int, tmp_path: Path) -> None:
    (found,) = in_one(tmp_path, together(CLUSTER, GOLD, *([other] if other else []), rule(about=about)))
    assert (found.code, found.span and found.span.line) == ("GP950", line)
    assert ("a value of its own" in found.hint) == (line == 8)


def test_values_of_another_kind_are_one_finding(tmp_path: Path) -> None:
    wrong = rule("properties: {alloc_policy: {const: preferred}}, required: [ipolicy.vcpu-ratio]", "kind: NodeSet")
    nodes = "gpolicy: v1\nkind: NodeSet\nname: rack\nnodes: [n1]\nndparams: {ssh_port: 22}\n"
    (found,) = check(together(CLUSTER, GOLD + "nodes: [n1]\n", nodes, wrong), tmp_path)
    assert (found.code, found.hint) == ("GP952", "Did you mean `NodeGroup`?")


WRITTEN = "gpolicy: v1\nkind: Cluster\nname: c.example.org\nmodify_etc_hosts: true\ncandidate_pool_size: 5\n"


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ("modify_etc_hosts: {const: 'true'}", "write true without quotes"),
        ("modify_etc_hosts: {enum: ['yes', 'on']}", "write true or false"),
        ("candidate_pool_size: {enum: ['5', '6']}", "write 5 without quotes"),
        ("candidate_pool_size: {const: [5]}", "write a number"),
        ("name: {const: 5}", "write a text"),
    ],
)
def test_a_constant_that_the_value_never_is_is_told_at_the_rule(schema: str, hint: str, tmp_path: Path) -> None:
    (found,) = check(together(WRITTEN, rule(f"properties: {{{schema}}}", "kind: Cluster")), tmp_path)
    assert (found.code, found.severity, found.hint) == ("GP955", Severity.ERROR, hint)
    assert codes(found.consequences) == ["GP950"]
    assert found.span is not None
    assert found.span.line > WRITTEN.count("\n")


def test_what_breaks_a_rule_elsewhere_stays(tmp_path: Path) -> None:
    schema = "properties: {modify_etc_hosts: {const: 'true'}, candidate_pool_size: {const: 6}}"
    found = check(together(WRITTEN, rule(schema, "kind: Cluster")), tmp_path)
    assert sorted(codes(found)) == ["GP950", "GP955"]
    sane = "properties: {modify_etc_hosts: {enum: [true, 'true']}, candidate_pool_size: {enum: [5.0, null]}}"
    assert check(together(WRITTEN, rule(sane, "kind: Cluster")), tmp_path) == []


def test_a_text_that_looks_like_the_value_is_called_a_text(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: Cluster\nname: c.example.org\nmodify_etc_hosts: true\n"
    wrong = rule("properties: {modify_etc_hosts: {const: 'true'}}", "kind: Cluster")
    (found,) = [item for item in told(check(together(text, wrong), tmp_path)) if item.code == "GP950"]
    assert found.hint == "modify_etc_hosts is true, it must be the text true"
