from __future__ import annotations

import json
import sys

import pytest

from scripts.reference.output_schemas import TEXTS
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


def test_each_text_on_our_json_is_in_a_schema() -> None:
    schemas = "".join(text for path, text in FILES.items() if path.startswith("schemas/output/"))
    texts = [text for about in TEXTS.values() for text in about.values()]
    assert texts
    assert [text for text in texts if json.dumps(text, ensure_ascii=False) not in schemas] == []
