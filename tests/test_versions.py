"""The version stands in `gpolicy/__init__.py`; all other places that name it say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from gpolicy import HOMEPAGE, __version__

ROOT = Path(__file__).resolve().parents[1]
NAMED = re.compile(r"\brev: v([\w.]+)|\bgpolicy(?:@v|[-_ =]+v?)([0-9]+(?:\.[0-9]+)+)")
"""A tag of gpolicy, `gpolicy 1.0.0` as --version prints it, and the names of packages."""


def pages() -> list[Path]:
    """Return the files that show users how to get gpolicy."""
    files = [
        ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "action.yml", ".pre-commit-hooks.yaml")
    ]
    return [*files, *(ROOT / "docs").rglob("*.md"), *(path for path in (ROOT / "ci").rglob("*") if path.is_file())]


def test_pages_and_files_for_services_name_this_version() -> None:
    named = {
        (path.relative_to(ROOT).as_posix(), *match.groups(""))
        for path in pages()
        for match in NAMED.finditer(path.read_text(encoding="utf-8"))
    }
    assert ("docs/guides/install.md", "", __version__) in named  # the names of packages
    assert {item for item in named if __version__ not in item[1:]} == set()


def test_the_newest_entry_of_the_changelog_is_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[([0-9.]+)\] - \d{4}-\d\d-\d\d$", text, re.MULTILINE)
    assert released[0] == __version__


def test_the_debian_package_has_this_version() -> None:
    newest = (ROOT / "debian" / "changelog").read_text(encoding="utf-8").splitlines()[0]
    assert newest.startswith(f"gpolicy ({__version__}) ")


def test_the_homepage_is_that_of_the_package() -> None:
    assert (
        tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Homepage"] == HOMEPAGE
    )
