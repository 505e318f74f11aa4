"""An answer as one page of HTML: one file that loads nothing; all text is escaped by the environment."""

from __future__ import annotations

import base64
import hashlib
import itertools
import operator
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from gpolicy import __version__
from gpolicy.data import data_directory
from gpolicy.printable import Tone, count, printable
from gpolicy.report import answer
from gpolicy.report.findings_text import TONES
from gpolicy.report.forms import Display
from gpolicy.report.glossary import CAUSES, terms_of

if TYPE_CHECKING:
    from markupsafe import Markup

_CLASSES: Final = {Tone.GOOD: "good", Tone.BAD: "bad", Tone.CAREFUL: "warn", Tone.QUIET: "quiet"}
_BACKTICKS: Final = re.compile("`([^`]+)`")
_TESTED: Final = (answer.Name, answer.Page, answer.Table, answer.Entries, answer.Findings)
_TESTS: Final = {"names": tuple, **{kind.__name__.lower(): kind for kind in _TESTED}}


def render(full: answer.Answer, display: Display) -> str:
    """Return the answer as a page. Strings are escaped, without control characters.

    The page's own style and script are the only ones that its content security policy allows, by their digests.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (only rendering needs it)
    from markupsafe import Markup  # noqa: PLC0415

    folder = data_directory("templates")
    environment = Environment(
        loader=FileSystemLoader(folder, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda item: printable(item) if isinstance(item, str) and not isinstance(item, Markup) else item,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.tests |= {word: lambda item, kind=kind: isinstance(item, kind) for word, kind in _TESTS.items()}
    environment.globals |= {
        "size": answer.size,
        "rough_size": answer.rough_size,
        "count": count,
        "weights": answer.Weight,
        "tones": Tone,
    }
    environment.filters |= {"tone": lambda tone: _CLASSES.get(tone, ""), "severity_tone": TONES.get}
    environment.filters |= {"digest": _digest, "prose": _prose, "runs": _runs}
    style, script = (Markup((folder / name).read_text("utf-8")) for name in ("report.css", "report.js"))  # noqa: S704 (our own files)
    sections = answer.with_content(map(_drawn, full.sections))
    return environment.get_template("answer.html.j2").render(
        answer=full,
        display=display,
        sections=sections,
        terms=terms_of(replace(full, sections=tuple(sections))),
        causes=CAUSES,
        version=__version__,
        style=style,
        script=script,
    )


def _prose(text: str) -> Markup:
    """Return words of ours, escaped; what stands in backticks is code."""
    from markupsafe import Markup, escape  # noqa: PLC0415

    return Markup(_BACKTICKS.sub(r"<code>\1</code>", str(escape(printable(text)))))  # noqa: S704 (escaped just now)


def _runs(items: Sequence[Any], attribute: str) -> list[tuple[Any, list[Any]]]:
    """Return neighbours with the same `attribute` together."""
    return [(key, list(run)) for key, run in itertools.groupby(items, key=operator.attrgetter(attribute))]


def _digest(text: str) -> str:
    """Return what a content security policy calls the text of a script or a style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _drawn(section: answer.Section) -> answer.Section:
    """Return the section with its pictures as macro and what it draws, without empty ones."""
    parts: list[Any] = [
        (part.macro, part.draw()) if isinstance(part, answer.Picture) else part for part in section.parts
    ]
    return replace(section, parts=[part for part in parts if not isinstance(part, tuple) or part[1]])
