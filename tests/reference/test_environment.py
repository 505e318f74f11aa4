"""What the reference says of environment variables, and what the code reads."""

from __future__ import annotations

import re
from pathlib import Path

from gpolicy.reference.explaining import VARIABLES

PACKAGE = Path(__file__).resolve().parents[2] / "gpolicy"
OF_THE_SERVICE = {"posting"}
"""It runs in jobs of CI services alone; docs/guides/ci.md says what it reads."""


def test_the_variables_that_the_code_reads_are_those_of_the_reference() -> None:
    read = set[str]()
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] not in OF_THE_SERVICE:
            text = path.read_text(encoding="utf-8")
            read |= set(re.findall(r"environ(?:\.get\(|\[)\"([A-Z_]+)\"", text))
            read |= set(re.findall(r"VARIABLE(?:: Final)? = \"([A-Z_]+)\"", text))
    assert read == VARIABLES.keys()
