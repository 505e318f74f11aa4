"""A hook of mkdocs: links to files of the repository that are no pages become plain words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_LINK = re.compile(r"\[([^\]\n]+)\]\((\.\./[^)#\s]*)\)")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page without links that lead out of docs/; broken ones stay, and mkdocs names them."""
    here = Path(page.file.abs_src_path).parent

    def plain(found: re.Match[str]) -> str:
        target = (here / found[2]).resolve()
        outside = not target.is_relative_to(ROOT / "docs") and target.is_relative_to(ROOT)
        return found[1] if outside and target.exists() else found[0]

    return _LINK.sub(plain, markdown)
