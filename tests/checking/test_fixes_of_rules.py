"""Every fix of every rule, on the examples and cases of the rules: it fixes what it is about and harms nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.checking.fixing import CheckRound, applied, fix_policy
from gpolicy.findings import Finding, Severity
from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes
from tests.rules.case_files import cases

TODAY = date(2026, 6, 15)
ROOT = Path(__file__).resolve().parents[2]
TEXTS = {info.code: info.text.bad for info in CATALOGUE if info.text.bad} | {
    case.name: case.text for case in cases() if case.expected
}
POLICIES = [path for path in (ROOT / "policies").rglob("*.yaml") if not path.is_symlink()]


class OnePolicy:
    def __init__(self, text: str, directory: Path) -> None:
        self.file = directory / "policy.yaml"
        self.file.write_text(text, encoding="utf-8")

    def __call__(self, texts: Mapping[str, str]) -> CheckRound:
        policy = load_policy(self.file, texts)
        return CheckRound(
            findings=find_mistakes(policy, today=TODAY), files=policy.files, editable=frozenset({str(self.file)})
        )


def comments(text: str) -> Counter[str]:
    return Counter(re.findall(r"(?:^|\s)(#[^\n]*)", text))


def keys(findings: list[Finding]) -> Counter[str]:
    return Counter(finding.code for finding in findings)


def fix_each(check: OnePolicy, before: CheckRound) -> None:
    """Each fix alone removes its finding."""
    for finding in before.findings:
        if finding.fix is None:
            continue
        info = next(info for info in CATALOGUE if info.code == finding.code)
        assert info.text.fix, f"{info.code} has a fix; say in its `fix` what it does"
        assert finding.fix.message == finding.fix.message.strip()
        texts = applied(before.files, [finding])
        assert texts != {}
        after = check(texts)
        assert keys(after.findings)[finding.code] < keys(before.findings)[finding.code], texts[str(check.file)]
        fewer = keys(after.findings) - keys(before.findings)
        assert all(code[:3] != "GP0" for code in fewer), fewer


def fix_all(check: OnePolicy, before: CheckRound, text: str) -> None:
    """All fixes together leave nothing worse and nothing that can be fixed."""
    result = fix_policy(check)
    assert [finding.code for finding in result.left.findings if finding.fix] == []
    assert (result.texts != {}) == any(finding.fix for finding in before.findings)
    assert result.left.findings == (check(result.texts) if result.texts else before).findings
    errors = [finding for finding in before.findings if finding.severity is Severity.ERROR]
    if not any(finding.code.startswith("GP0") for finding in errors):
        assert sum(finding.severity is Severity.ERROR for finding in result.left.findings) <= len(errors)
    for fixed in result.texts.values():
        assert not comments(fixed) - comments(text), "a fix has written a comment"


def test_fixes_remove_their_findings_and_leave_nothing_worse(tmp_path: Path) -> None:
    failures = {}
    for name, text in TEXTS.items():
        check = OnePolicy(text, tmp_path)
        before = check({})
        try:
            fix_each(check, before)
            fix_all(check, before, text)
        except AssertionError as error:
            failures[name] = str(error)
    assert failures == {}


def test_there_are_fixes() -> None:
    assert sum(bool(info.text.fix) for info in CATALOGUE) >= 10


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_example_policies_have_nothing_to_fix(path: Path) -> None:
    policy = load_policy(path)
    assert [finding.code for finding in find_mistakes(policy, today=date(2026, 1, 1)) if finding.fix] == []
