"""Every command on a page is one that gpolicy has, with options that its verb has."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from gpolicy.cli.app import VERBS, app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(page for page in (ROOT / "docs").rglob("*.md") if page.parent.name != "reference")]
COMMAND = re.compile(r"(?:`|^(?: {4}|\$ | *- (?:run: )?)| && )gpolicy (?P<rest>[a-z-][^`\n]*)", re.MULTILINE)
SHELL = re.compile(r"\s(?:[|&;<>]|2>|#|\()|…|;")


def options_of(verb: str) -> set[str]:
    root: Any = get_command(app)
    found = root.get_command(root.make_context("gpolicy", [], resilient_parsing=True), verb)
    return {name for option in found.params for name in (*option.opts, *option.secondary_opts)} | {"--help", "-h"}


OPTIONS = {verb: options_of(verb) for verb in VERBS} | {"help": {"--all"}}


def commands(page: Path) -> list[list[str]]:
    text = page.read_text(encoding="utf-8").replace("\\|", "|")
    return [shlex.split(SHELL.split(found["rest"])[0], comments=True) for found in COMMAND.finditer(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_verb_has_the_options_that_it_is_given(page: Path) -> None:
    wrong = []
    for words in commands(page):
        verb = words[0]
        if verb == "htools" or verb.startswith("-"):
            continue  # the options of hspace and hail
        given = {word.partition("=")[0].strip("[]") for word in words[1:] if re.match(r"\[?--?[a-z]", word)}
        if verb not in OPTIONS or given - OPTIONS[verb]:
            wrong.append(" ".join(words))
    assert wrong == []


def test_there_are_many() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 150
