"""Every Test document in `policies/`, and every example of docs/guides/testing.md, is run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpolicy.policy.files import policy_roots
from gpolicy.policy.loading import load_policy
from gpolicy.report.forms import Display, render
from gpolicy.report.outcomes_answer import outcomes_answer
from gpolicy.testing.running_tests import run_tests
from tests.testing.policy_tests import policy_of, problems

ROOT = Path(__file__).resolve().parents[2]
POLICIES = policy_roots(ROOT / "policies")
PAGE = (ROOT / "docs" / "guides" / "testing.md").read_text(encoding="utf-8")
FENCES = re.findall(r"^```(yaml|text)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
POLICY, *TESTS = [text for kind, text in FENCES if kind == "yaml"]
(OUTPUT,) = [text for kind, text in FENCES if kind == "text"]


@pytest.mark.parametrize("root", POLICIES, ids=lambda root: root.name)
def test_the_tests_of_the_examples_pass(root: Path) -> None:
    found = {outcome.name: problems(outcome) for outcome in run_tests(load_policy(root))}
    assert {name: said for name, said in found.items() if said} == {}


def test_the_design_documents_are_covered() -> None:
    tested = {root.name for root in POLICIES if load_policy(root).scenarios}
    assert tested >= {
        *("allocation-efficiency", "dedicated-allocation", "constrained-sizes", "exclusive-storage"),
        *("failure-tags", "migration-tags", "resource-model", "two-groups"),
    }


@pytest.mark.parametrize("number", range(len(TESTS)))
def test_the_page_shows_tests_that_pass(number: int, tmp_path: Path) -> None:
    found = run_tests(policy_of(tmp_path, f"{POLICY}---\n{TESTS[number]}"))
    assert found
    assert [(outcome.name, problems(outcome)) for outcome in found if not outcome.ok] == []


def test_the_page_shows_how_a_failure_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, _, shown = OUTPUT.partition("\n")
    assert command == "$ gpolicy test"
    policy_of(tmp_path, f"{POLICY}---\n{TESTS[0].replace('refused: true', 'refused: false')}")
    monkeypatch.chdir(tmp_path)
    assert render(outcomes_answer(run_tests(load_policy(Path("policy.yaml")))), Display(details=True)) == shown
