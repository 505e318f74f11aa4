"""The man pages: gpolicy(1), one for each verb, and gpolicy-policy(5)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from gpolicy import __version__
from gpolicy.policy.kinds import KINDS
from gpolicy.reference.blocks import Heading, PageBlock, PageListing, PageTable
from gpolicy.reference.keys import SETTINGS
from scripts.reference.commands import Verb, environment, exit_codes, global_options, introduction, verb_blocks, verbs
from scripts.reference.parameters import parameter_sections
from scripts.reference.policy import kind_section, language, settings_section
from scripts.reference.roff import man_page


def man_pages(date: str) -> dict[str, str]:
    """Return the text of each man page by its file name."""
    known = verbs()
    pages = {"gpolicy": _overview(known)} | {f"gpolicy-{verb.name}": _of_verb(verb) for verb in known}
    written = {f"{name}.1": man_page(name, 1, date, __version__, blocks) for name, blocks in pages.items()}
    return {**written, "gpolicy-policy.5": man_page("gpolicy-policy", 5, date, __version__, _of_language())}


def _overview(known: list[Verb]) -> Iterator[PageBlock]:
    yield Heading("Name")
    yield "gpolicy - policy as code for Ganeti clusters"
    yield Heading("Synopsis")
    yield PageListing("gpolicy [OPTIONS] VERB [ARGS]...")
    yield Heading("Description")
    yield from introduction()
    yield Heading("Verbs")
    yield PageTable(("verb", "meaning"), tuple((f"`gpolicy-{verb.name}`(1)", f"{verb.summary}.") for verb in known))
    yield Heading("Options")
    options = global_options()
    yield PageTable(("option", "meaning"), tuple((word.name, word.text) for word in options))
    yield Heading("Exit status")
    yield exit_codes()
    yield Heading("Environment")
    yield environment()
    yield from _see_also([*(f"gpolicy-{verb.name}(1)" for verb in known), "gpolicy-policy(5)"])


def _of_verb(verb: Verb) -> Iterator[PageBlock]:
    name = f"gpolicy-{verb.name}"
    summary = verb.summary[0].lower() + verb.summary[1:]
    yield Heading("Name")
    yield f"{name} - {summary}"
    yield from verb_blocks(verb, 2)
    if verb.name != "htools":  # it ends as the programs do
        yield Heading("Exit status")
        yield exit_codes()
    yield from _see_also(["gpolicy(1)", "gpolicy-policy(5)"])


def _of_language() -> Iterator[PageBlock]:
    yield Heading("Name")
    yield "gpolicy-policy - the language of policies for Ganeti clusters, and gpolicy.toml"
    yield Heading("Description")
    yield from language()
    for kind in KINDS:
        yield Heading(kind)
        yield from kind_section(kind)
    yield from parameter_sections()
    yield Heading(SETTINGS)
    yield from settings_section()
    yield from _see_also(["gpolicy(1)", "gpolicy-check(1)", "gpolicy-explain(1)"])


def _see_also(pages: list[str]) -> Iterator[PageBlock]:
    yield Heading("See also")
    yield ", ".join(pages)


def main(directory: Path) -> None:
    """Write all man pages to a directory, and name them. SOURCE_DATE_EPOCH gives their date, as packagers know it."""
    directory.mkdir(parents=True, exist_ok=True)
    date = datetime.fromtimestamp(float(os.environ.get("SOURCE_DATE_EPOCH") or time.time()), UTC).date().isoformat()
    for name, text in man_pages(date).items():
        (directory / name).write_text(text, encoding="ascii")
        sys.stdout.write(f"{directory / name}\n")
