"""Files generated from the rules and the table of parameters by scripts/generate; a test compares them."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from gpolicy.checking.settings_schema import FILE_NAME, settings_schema
from gpolicy.policy.schema_kinds import schemas
from gpolicy.report.capacity_json import CAPACITY_DOCUMENT
from gpolicy.report.evacuate_json import EVACUATE_DOCUMENT
from gpolicy.report.impact_json import PLAN_DOCUMENT
from gpolicy.report.place_json import PLACE_DOCUMENT
from gpolicy.report.remedy_json import REMEDY_DOCUMENT
from gpolicy.report.suggest_json import SUGGEST_DOCUMENT
from scripts.reference.output_schemas import output_schema
from scripts.reference.pages import pages
from tests.run_pages import PAGES, run_page
from tests.warm_python import started

ROOT = Path(__file__).resolve().parents[1]

OUTPUTS = {
    "capacity": CAPACITY_DOCUMENT,
    "evacuate": EVACUATE_DOCUMENT,
    "place": PLACE_DOCUMENT,
    "plan": PLAN_DOCUMENT,
    "remedy": REMEDY_DOCUMENT,
    "suggest": SUGGEST_DOCUMENT,
}


def schema_files() -> dict[str, str]:
    """Return the text of each schema, by its path from the top of the repository."""
    outputs = {f"output/{name}.json": output_schema(document) for name, document in OUTPUTS.items()}
    made = {**schemas(), FILE_NAME: settings_schema(), **outputs}
    return {f"schemas/{name}": json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in made.items()}


def generated_files() -> dict[str, str]:
    """Return the text of each schema, and of each page that is made quickly."""
    return {**pages(), **schema_files()}


def _mistakes_page() -> str:
    """Return docs/reference/seeded-mistakes.md."""
    from tests.rules.defects.measuring import measure
    from tests.rules.defects.page import page
    from tests.rules.defects.reasons import REASONS

    with tempfile.TemporaryDirectory() as directory:
        return page(measure(Path(directory)), REASONS)


def _slow_pages() -> dict[str, str]:
    """Return the pages that take long to make, each with a test of its own."""
    with started() as python:
        shown = {page: run_page(page, python) for page in PAGES}
    return {"docs/reference/seeded-mistakes.md": _mistakes_page(), **shown}


def _write(files: dict[str, str]) -> None:
    """Write each file that has changed, and name it."""
    for path, text in files.items():
        file = ROOT / path
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            sys.stdout.write(f"{path}\n")
            file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _write(schema_files())  # the pages and the examples on them are made with the schemas on disk
    _write({**pages(), **_slow_pages()})
