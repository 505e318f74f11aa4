from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy import rules
from gpolicy.checking.catalogue import CATALOGUE, CODES, FLEET_RULES, RULES, catalogue, find_rule, rules_in
from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, warning
from gpolicy.checking.settings import DEFAULT
from gpolicy.data import data_directory, read_data
from gpolicy.findings import FAMILIES, Role, RuleInfo, Severity
from gpolicy.policy.loading import load_policy
from tests.rules.policy_texts import CLUSTER, SMALL
from tests.rules.run_rules import TODAY


def test_codes_and_names_are_unique_and_in_order() -> None:
    codes = [info.code for info in CATALOGUE]
    assert codes == sorted(set(codes))
    assert len({info.name for info in CATALOGUE}) == len(CATALOGUE)


def test_codes_and_names_have_one_form() -> None:
    for info in CATALOGUE:
        assert re.fullmatch(r"GP[0-9]{3}", info.code)
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", info.name)
        assert info.code[:3] in read_data("reference.toml")["families"]
        assert info.text.summary.endswith(".")
        assert info.text.rationale.endswith((".", ")"))
        assert info.text.source
        assert not info.text.source.endswith(".")


def test_every_decorated_function_is_registered_once() -> None:
    begun = [
        line
        for file in Path(rules.__path__[0]).rglob("*.py")
        for line in file.read_text(encoding="utf-8").splitlines()
        if re.match(r"@(error|warning|information)\(|\w+ = _of_resolving\(", line)
    ]
    assert len(begun) == len(RULES) + len(FLEET_RULES) == len({rule.find for rule in (*RULES, *FLEET_RULES)})


def test_a_rule_lies_in_the_folder_of_its_family() -> None:
    folders: dict[str, set[str]] = {}
    for rule in (*RULES, *FLEET_RULES):
        folders.setdefault(rule.find.__module__.split(".")[2], set()).add(rule.info.code[:3])
    assert all(len(families) == 1 for families in folders.values()), folders


@warning("GP999")
def another_rule(_: Context) -> Iterator[Hit]:
    yield from ()


def test_a_decorated_function_in_a_module_is_a_rule() -> None:
    assert rules_in([sys.modules[__name__]]) == (another_rule,)
    assert another_rule.info.name == "another-rule"


def test_two_rules_of_one_code_or_name_are_a_fault() -> None:
    first = CATALOGUE[0]
    for another in (replace(first, name="another"), replace(first, code="GP999")):
        with pytest.raises(ValueError, match=f"two rules are called ({first.code}|{first.name})"):
            catalogue([*CATALOGUE, another])


@pytest.mark.parametrize("word", ["GP201", "gp201", "spec-overlap", " Spec-Overlap "])
def test_a_rule_is_found_by_code_and_by_name(word: str) -> None:
    info, hint = find_rule(word)
    assert info is not None
    assert (info.code, hint) == ("GP201", "")


def test_a_misspelt_name_gets_a_hint() -> None:
    assert find_rule("spec-overlapp") == (None, "Did you mean `spec-overlap`?")
    assert find_rule("x" * 10_000) == (None, "`gpolicy explain` lists all rules")


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("GP2O1", "Did you mean `GP201`?"),
        ("gp2ol", "Did you mean `GP201`?"),
        ("GP2011", "Did you mean `GP201`?"),
        ("GP2", "GP2 is a family of rules: `gpolicy explain GP2` lists them"),
        ("GP2O", "GP20 is a family of rules: `gpolicy explain GP20` lists them"),
        ("GP299", "`gpolicy explain GP2` lists its family"),
        ("GP" + "9" * 5000, "`gpolicy explain GP9` lists its family"),
    ],
)
def test_a_misspelt_code_gets_the_hint_of_one_like_it(word: str, hint: str) -> None:
    info, said = find_rule(word)
    assert info is None
    assert said.startswith(hint)


def test_the_texts_are_those_of_the_rules() -> None:
    files = sorted((data_directory("templates") / "rules").iterdir())
    texts = [(file.stem, code) for file in files for code in tomllib.loads(file.read_text(encoding="utf-8"))]
    assert sorted(texts) == [(info.code[:3], info.code) for info in CATALOGUE]


def test_each_number_of_a_rule_has_a_text() -> None:
    for info in CATALOGUE:
        assert {parameter.name for parameter in info.parameters} == info.text.parameters.keys(), info.code
        assert all(text.endswith(".") for text in info.text.parameters.values())


def test_a_rule_has_the_roles_of_its_family_and_its_own() -> None:
    info = RuleInfo(Severity.WARNING, "GP599", "made-up", role=Role.USES)
    assert info.role == Role.USES | Role.DECIDES | Role.OF_TAG
    assert replace(info, code="GP199").role & Role.USES
    assert all(any(info.code.startswith(family) for info in CATALOGUE) for family in FAMILIES)
    assert all(CODES[role] == {info.code for info in CATALOGUE if role in info.role} != set() for role in Role)
    explaining = {rule.info.code for rule in RULES if rule.explains is not None}
    assert CODES[Role.ALSO_RELATED] <= explaining


def test_rules_are_asked_by_their_roles(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(f"{CLUSTER}ipolicy:\n  minmax:\n{SMALL}{SMALL}", encoding="utf-8")
    policy, by_code = load_policy(tmp_path), {rule.info.code: rule for rule in RULES}
    context = Context(policy, None, DEFAULT, TODAY, rules=by_code)
    (found,) = context.found_with(Role.SAME_NAME)
    assert found.finding.code == "GP208"
    assert context.found_by("GP208") == (found,)
    assert context.codes_with(Role.JUDGES) == sorted(CODES[Role.JUDGES])
    assert not Context(policy, None, DEFAULT, TODAY).found_with(Role.SAME_NAME)
