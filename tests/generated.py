"""Files generated from the rules and the table of parameters by scripts/generate; a test compares them."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from reference.pages import pages
from run_pages import PAGES, run_page

from gpolicy.checking.settings_schema import FILE_NAME, settings_schema
from gpolicy.policy.schema_kinds import schemas

ROOT = Path(__file__).resolve().parents[1]


def generated_files() -> dict[str, str]:
    """Return the text of each file, by its path from the top of the repository."""
    made = {f"schemas/{name}": schema for name, schema in {**schemas(), FILE_NAME: settings_schema()}.items()}
    return {
        **pages(),
        **{name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in made.items()},
    }


def _defects_page() -> str:
    """Return docs/how-we-know/seeded-defects.md."""
    from defects.measuring import mutants
    from defects.page import page
    from defects.reasons import REASONS

    with tempfile.TemporaryDirectory() as directory:
        return page(mutants(Path(directory)), REASONS)


def _slow_pages() -> dict[str, str]:
    """Return the pages that take long to make, each with a test of its own."""
    return {"docs/how-we-know/seeded-defects.md": _defects_page(), **{page: run_page(page) for page in PAGES}}


if __name__ == "__main__":
    for path, text in {**generated_files(), **_slow_pages()}.items():
        file = ROOT / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            sys.stdout.write(f"{path}\n")
            file.write_text(text, encoding="utf-8")
