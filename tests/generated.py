"""Files generated from the rules and the table of parameters by scripts/generate; a test compares them."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from rules_page import rules_page

from gpolicy.checking.settings_schema import FILE_NAME, settings_schema
from gpolicy.policy.schema_kinds import schemas

ROOT = Path(__file__).resolve().parents[1]


def generated_files() -> dict[str, str]:
    """Return the text of each file, by its path from the top of the repository."""
    made = {f"schemas/{name}": schema for name, schema in {**schemas(), FILE_NAME: settings_schema()}.items()}
    return {
        "docs/rules.md": rules_page(),
        **{name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in made.items()},
    }


def _defects_page() -> str:
    """Return docs/seeded-defects.md, which takes half a minute and has a test of its own."""
    from defects.measuring import mutants
    from defects.page import page
    from defects.reasons import REASONS

    with tempfile.TemporaryDirectory() as directory:
        return page(mutants(Path(directory)), REASONS)


if __name__ == "__main__":
    for path, text in {**generated_files(), "docs/seeded-defects.md": _defects_page()}.items():
        file = ROOT / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            sys.stdout.write(f"{path}\n")
            file.write_text(text, encoding="utf-8")
