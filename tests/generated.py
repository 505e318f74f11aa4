"""Files generated from the rules, the table of parameters and the shapes of our JSON by scripts/generate.

A test compares them.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from gpolicy.apply.plan_run import JOURNAL_DOCUMENT
from gpolicy.checking.baseline import BASELINE_DOCUMENT
from gpolicy.cli.many_clusters import CLUSTERS_DOCUMENT
from gpolicy.report.capacity_json import CAPACITY_DOCUMENT, COMPARED_DOCUMENT
from gpolicy.report.drift_answer import DRIFT_DOCUMENT
from gpolicy.report.evacuate_answer import EVACUATE_DOCUMENT
from gpolicy.report.findings_json import CHECK_DOCUMENT
from gpolicy.report.fleet_report import FLEET_DOCUMENT
from gpolicy.report.impact_json import PLAN_DOCUMENT
from gpolicy.report.outcomes_answer import TEST_DOCUMENT
from gpolicy.report.place_answer import PLACE_DOCUMENT
from gpolicy.report.remedy_answer import REMEDY_DOCUMENT
from gpolicy.report.rollout_answer import APPLY_DOCUMENT
from gpolicy.report.show_answer import SHOW_DOCUMENT
from gpolicy.report.size_answer import SIZE_DOCUMENT
from gpolicy.report.suggest_answer import SUGGEST_DOCUMENT
from gpolicy.report.waves_answer import WAVES_DOCUMENT
from gpolicy.rollout.rollout_run import ROLLOUT_DOCUMENT
from scripts.reference.nodes_picture import nodes_picture
from scripts.reference.output_schemas import line_schema, output_schema
from scripts.reference.pages import pages
from scripts.reference.settings_schema import FILE_NAME, settings_schema
from scripts.schemas.documents import schemas
from tests.run_pages import PAGES, run_page
from tests.warm_python import started

ROOT = Path(__file__).resolve().parents[1]
LONG_LINE = 100

OUTPUTS = {
    "apply": APPLY_DOCUMENT,
    "baseline": BASELINE_DOCUMENT,
    "capacity": CAPACITY_DOCUMENT,
    "capacity-compared": COMPARED_DOCUMENT,
    "check": CHECK_DOCUMENT,
    "clusters": CLUSTERS_DOCUMENT,
    "drift": DRIFT_DOCUMENT,
    "evacuate": EVACUATE_DOCUMENT,
    "evacuate-in-turn": WAVES_DOCUMENT,
    "fleet": FLEET_DOCUMENT,
    "place": PLACE_DOCUMENT,
    "plan": PLAN_DOCUMENT,
    "remedy": REMEDY_DOCUMENT,
    "show": SHOW_DOCUMENT,
    "size": SIZE_DOCUMENT,
    "suggest": SUGGEST_DOCUMENT,
    "test": TEST_DOCUMENT,
}
JOURNALS = {"journal": JOURNAL_DOCUMENT, "rollout-journal": ROLLOUT_DOCUMENT}


def schema_files() -> dict[str, str]:
    """Return the text of each schema, by its path from the top of the repository."""
    made = {**schemas(), FILE_NAME: settings_schema()}
    files = {name: json.dumps(schema, indent=2, ensure_ascii=False) for name, schema in made.items()}
    files |= {f"output/{name}.json": _laid_out(output_schema(document)) for name, document in OUTPUTS.items()}
    files |= {f"output/{name}.json": _laid_out(line_schema(document)) for name, document in JOURNALS.items()}
    return {f"schemas/{name}": f"{text}\n" for name, text in files.items()}


def _laid_out(value: object, indent: str = "") -> str:
    """Return JSON text in which each object and each list has one line, if it is not long."""
    line = json.dumps(value, ensure_ascii=False)
    inner = f"{indent}  "
    match value:
        case _ if len(indent) + len(line) < LONG_LINE:
            return line
        case dict():
            items = [f"{json.dumps(name)}: {_laid_out(item, inner)}" for name, item in value.items()]
        case list():
            items = [_laid_out(item, inner) for item in value]
        case _:
            return line
    return f",\n{inner}".join(items).join((f"{line[0]}\n{inner}", f"\n{indent}{line[-1]}"))


def generated_files() -> dict[str, str]:
    """Return the text of each schema, of each page that is made quickly, and of the picture on the first page."""
    return {**pages(), **schema_files(), "docs/nodes.svg": nodes_picture()}


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
    _write({**generated_files(), **_slow_pages()})
