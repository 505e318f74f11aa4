from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scripts.reference.site_hooks import ROOT, on_page_markdown


@dataclass
class File:
    abs_src_path: str = str(ROOT / "docs" / "guides" / "check.md")


@dataclass
class Page:
    file: File = field(default_factory=File)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[the schema](../../schemas/output/plan.json)", "the schema"),
        (
            "[readme](../../README.md) and [rules](../reference/rules.md#tags)",
            "readme and [rules](../reference/rules.md#tags)",
        ),
        ("[broken](../../schemas/none.json)", "[broken](../../schemas/none.json)"),
        ("[outside](../../../../etc/passwd)", "[outside](../../../../etc/passwd)"),
    ],
)
def test_only_links_to_files_of_the_repository_that_are_no_pages_become_words(text: str, shown: str) -> None:
    assert on_page_markdown(text, page=Page()) == shown
    assert Path(File.abs_src_path).exists()
