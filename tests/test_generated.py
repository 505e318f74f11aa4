from __future__ import annotations

import sys

import pytest

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
