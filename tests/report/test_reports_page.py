"""The statements of docs/guides/reports.md are true."""

from __future__ import annotations

import re
from pathlib import Path

from gpolicy.report.answer import Table
from gpolicy.report.forms import COMMENT_BUDGET, LEAST_BUDGET, forms_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/guides/reports.md").read_text(encoding="utf-8")


def test_the_forms_of_each_verb() -> None:
    rows = {row[0]: row[1] for row in re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE, re.MULTILINE)}
    verbs = {
        verb: forms_of(verb)
        for verb in (
            "check",
            "show",
            "plan",
            "drift",
            "capacity",
            "place",
            "suggest",
            "size",
            "evacuate",
            "remedy",
            "test",
        )
    }
    assert {form for forms in verbs.values() for form in forms} == set(rows)
    for form, named in rows.items():
        has = {verb for verb, forms in verbs.items() if form in forms}
        assert has == (set(verbs) if named == "all" else set(named.split(", ")) & set(verbs)), form


def test_the_numbers() -> None:
    assert f"(default {COMMENT_BUDGET}, at least {LEAST_BUDGET})" in PAGE
    pictures = (ROOT / "templates/pictures.html.j2").read_text(encoding="utf-8")
    rows = re.findall(r"if group.nodes\|length > (\d+)", pictures)
    assert f"more than {rows[0]} nodes of a group" in PAGE
    most = Table(title="", of="", headings=(), rows=()).most
    assert f"the first {most} rows of long tables" in PAGE
