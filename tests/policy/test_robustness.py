"""Any file gives findings without an exception, and every report can show them."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from gpolicy.json_values import json_text
from gpolicy.policy.loading import load_policy
from gpolicy.report.findings_json import findings_data
from gpolicy.report.findings_text import findings_text
from tests.laws import examples
from tests.mistakes import find_mistakes
from tests.policy.mutated import DOCUMENTS, mutations


def check_everything(directory: Path, text: str) -> None:
    (directory / "policy.yaml").write_text(text, encoding="utf-8", newline="")
    policy = load_policy(directory)
    findings = find_mistakes(policy, today=date(2026, 1, 1))
    shown = findings_text(findings, policy.files)
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert len(json.loads(json_text(findings_data(findings)))["findings"]) == len(findings)
    lines = text.count("\n") + text.count("\r") + text.count("\x85") + text.count("\u2028") + text.count("\u2029") + 1
    for finding in findings:
        assert finding.span is not None
        assert 1 <= finding.span.line <= lines
        assert (finding.span.line, finding.span.column) <= (finding.span.end_line, finding.span.end_column)


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents=st.lists(mutations(), min_size=1, max_size=4))
def test_documents_with_mistakes(tmp_path: Path, documents: list[Any]) -> None:
    check_everything(tmp_path, yaml.safe_dump_all(documents, allow_unicode=True, sort_keys=False))


@settings(max_examples=examples(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(documents=st.lists(st.sampled_from(DOCUMENTS), min_size=1, max_size=12))
def test_any_sound_documents_together(tmp_path: Path, documents: list[Any]) -> None:
    check_everything(tmp_path, yaml.safe_dump_all(documents, allow_unicode=True, sort_keys=False))


@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_texts_with_damage(tmp_path: Path, data: st.DataObject) -> None:
    text = yaml.safe_dump(data.draw(st.sampled_from(DOCUMENTS)), sort_keys=False)
    begin, end = sorted(data.draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    damage = data.draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=5))
    check_everything(tmp_path, text[:begin] + damage + text[end:])
