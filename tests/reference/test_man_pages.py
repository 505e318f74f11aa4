from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from gpolicy.cli.app import VERBS
from gpolicy.reference.blocks import Heading, PageBlock, PageListing, PageTable
from scripts.reference.commands import verbs
from scripts.reference.man import man_pages
from scripts.reference.roff import man_page

PAGES = man_pages("2026-01-31")


def test_every_verb_has_a_page_that_names_its_options() -> None:
    assert {f"gpolicy-{name}.1" for name in VERBS} <= PAGES.keys()
    for verb in verbs():
        page = PAGES[f"gpolicy-{verb.name}.1"].replace("\\-", "-")
        for option in verb.options:
            assert option.name.split("`")[1] in page
    assert all(f"gpolicy-{name}(1)" in PAGES["gpolicy.1"] for name in VERBS)


def test_text_cannot_become_a_request_or_an_escape() -> None:
    blocks: list[PageBlock] = [
        Heading("Name"),
        ".so /etc/passwd",
        PageListing("'\\n"),
        PageTable(("a", "b"), ((".B", "\\*x …"),)),
    ]
    page = man_page("x", 1, "2026-01-31", "1", blocks)
    assert page.splitlines()[1:] == [
        *(".nh", ".ad l", ".SH NAME", "\\&.so /etc/passwd"),
        *(".PP", ".RS 4", ".nf", "\\&'\\en", ".fi", ".RE", ".TP", "\\&.B", "\\e*x \\[u2026]"),
    ]


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
@pytest.mark.parametrize("name", sorted(PAGES))
def test_groff_has_nothing_to_say_about_a_page(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(PAGES[name], encoding="ascii")
    command = ["groff", "-man", "-ww", "-Tutf8", "-z", str(tmp_path / name)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""
