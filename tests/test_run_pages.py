"""The tutorial and the guides show what their commands answer."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests.cli.command_line import gpolicy
from tests.run_pages import PAGES, ROOT, run_page


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_what_its_commands_answer(page: str, warm_python: Path) -> None:
    assert run_page(page, warm_python) == (ROOT / page).read_text(encoding="utf-8"), (
        "run scripts/generate, and read what it changed"
    )


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "guides").glob("*.md")), ids=lambda page: page.name)
def test_the_policies_that_a_page_shows_conform(page: Path, tmp_path: Path) -> None:
    """Each block that is a policy has known keys and values; what it refers to may stand elsewhere."""
    blocks = [
        dedent(text)
        for text in re.findall(r"^ *```yaml\n(.*?)^ *```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    ]
    for number, text in enumerate(text for text in blocks if text.startswith("gpolicy: v1")):
        file = tmp_path / f"{number}.yaml"
        file.write_text(text, encoding="utf-8")
        told = gpolicy("check", file, "--isolated", "--select", "GP01")
        assert told.returncode == 0, told.stdout
