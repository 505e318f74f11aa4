"""Links of the pages outside docs/ lead somewhere; mkdocs says so of those inside."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.reference.markdown import anchor

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(ROOT.glob("*.md"))
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)")


def _anchors(path: Path) -> set[str]:
    titles = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {anchor(title.replace("\\", "")) for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for file, place in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / file if file else page
        assert target.exists(), f"{page.name}: {file}"
        assert not place or place in _anchors(target), f"{page.name}: {file}#{place}"


def test_there_are_pages_with_links() -> None:
    assert len(LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))) >= 3
