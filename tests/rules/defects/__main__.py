"""Write docs/seeded-defects.md: run `python -m defects` in tests/rules."""

from __future__ import annotations

import tempfile
from pathlib import Path

from defects.bases import TOP
from defects.measuring import mutants
from defects.page import page
from defects.reasons import REASONS

with tempfile.TemporaryDirectory() as directory:
    (TOP / "docs" / "seeded-defects.md").write_text(page(mutants(Path(directory)), REASONS), encoding="utf-8")
