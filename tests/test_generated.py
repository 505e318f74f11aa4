from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from scripts.reference.output_schemas import LATER, TEXTS
from tests.generated import ROOT, generated_files

FILES = generated_files()


@pytest.mark.parametrize("path", sorted(FILES))
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="difflib pairs lines otherwise from Python 3.14 on")
def test_a_generated_file_is_what_the_code_says(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == FILES[path], "run scripts/generate"


def test_there_is_no_other_schema() -> None:
    assert {f"schemas/{path.name}" for path in (ROOT / "schemas").glob("*.json")} == {
        path for path in FILES if path.startswith("schemas/") and not path.startswith("schemas/output/")
    }
    assert {f"schemas/output/{path.name}" for path in (ROOT / "schemas/output").iterdir()} <= FILES.keys()


def test_each_text_on_our_json_is_in_a_schema() -> None:
    schemas = "".join(text for path, text in FILES.items() if path.startswith("schemas/output/"))
    texts = [text for about in TEXTS.values() for text in about.values()]
    assert texts
    assert [text for text in texts if json.dumps(text, ensure_ascii=False) not in schemas] == []


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the schema of each object in a schema."""
    if isinstance(schema, dict) and "properties" in schema:
        yield schema
    for inside in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _objects(inside)


OBJECTS = [item for path, text in FILES.items() if "schemas/output/" in path for item in _objects(json.loads(text))]


def test_a_key_with_the_version_that_it_came_with_is_not_required() -> None:
    since = re.compile(r"\(from \d+\.\d+ on\)")
    told = [
        (name, name in item["required"])
        for item in OBJECTS
        for name, value in item["properties"].items()
        if since.search(value.get("description", ""))
    ]
    assert told
    required = [name for name, is_required in told if is_required]
    assert required == ["written"], "name it below [later] in output_texts.toml"  # of drift: of old, it is required


def test_each_key_that_came_later_is_in_a_schema_that_does_not_require_it() -> None:
    by_document = [about for about in LATER.values() if isinstance(about, dict)]
    names = [names for about in (LATER, *by_document) for names in about.values() if isinstance(names, str)]
    later = {name for words in names for name in words.split()}
    assert later
    assert later - {name for item in OBJECTS for name in item["properties"].keys() - set(item["required"])} == set()
