"""The rules say of each policy in `cases/` what is written there, at its place, and nothing else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

from gpolicy.findings import Severity
from tests.rules.case_files import cases
from tests.rules.run_rules import check


def test_each_case_has_the_findings_that_are_marked(tmp_path: Path) -> None:
    wrong = {}
    for case in cases():
        found = check(case.text, tmp_path)
        places = Counter((item.span.line, item.code) for item in found if item.span)
        places.update((more.span.line, f"+{more.code}") for item in found for more in item.consequences if more.span)
        if places != case.expected:
            wrong[case.name] = f"missing: {dict(case.expected - places)}, too many: {dict(places - case.expected)}"
    assert wrong == {}
    assert len(cases()) > 400


FORMS: Final[dict[str, Callable[[str], str]]] = {
    "lines of another system": lambda text: text.replace("\n", "\r\n"),
    "no end of the last line": lambda text: text.rstrip("\n"),
    "an explicit end": lambda text: text + "...\n",
    "comments around": lambda text: "# first\n" + text.replace("\n", "  # why\n", 3) + "# last\n",
}


def serious(text: str, directory: Path) -> list[str]:
    found = check(text, directory)
    return [item.code for item in found if item.severity is not Severity.INFO]


def test_a_sane_policy_is_sane_in_any_form(tmp_path: Path) -> None:
    (sane,) = (case.text for case in cases("sane") if case.name == "ssh-port")
    assert {name: said for name, form in FORMS.items() if (said := serious(form(sane), tmp_path))} == {}


def test_one_broken_document_is_one_mistake(tmp_path: Path) -> None:
    """A document that cannot be read says nothing: no rule may take what it says for missing."""
    failures = {}
    for case in cases("sane"):
        parts = re.split("(?m)^---\n", case.text)
        for place, part in enumerate(parts):
            if "kind:" in part and "kind: Waiver" not in part and case.name != "document-end":
                broken = [*parts[:place], f"{part.rstrip()}\nno_such_key: 1\n", *parts[place + 1 :]]
                failures[case.name, place] = serious("---\n".join(broken), tmp_path)
    assert {where: said for where, said in failures.items() if said != ["GP011"]} == {}
    assert len(failures) > 200
