"""An answer as one page of HTML: one file, without script or network; all text is escaped by the environment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from gpolicy import __version__
from gpolicy.colour import Tone
from gpolicy.data import data_directory
from gpolicy.printable import printable
from gpolicy.report.answer import (
    Answer,
    Entries,
    Findings,
    Name,
    Picture,
    Section,
    Table,
    Weight,
    count,
    rough_size,
    size,
    with_content,
)
from gpolicy.report.findings_text import TONES
from gpolicy.report.forms import Look

_CLASSES: Final = {Tone.GOOD: "good", Tone.BAD: "bad", Tone.CAREFUL: "warn", Tone.QUIET: "quiet"}
_VERDICTS: Final = {Tone.BAD: " fails", Tone.CAREFUL: " warns"}


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A picture that is not empty."""

    macro: str
    value: Any


def render(answer: Answer, look: Look) -> str:  # noqa: ARG001 (pages have one look)
    """Return the answer as a page. Strings are escaped, without control characters."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (only rendering needs it)
    from markupsafe import Markup  # noqa: PLC0415

    environment = Environment(
        loader=FileSystemLoader(data_directory("templates"), encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda item: printable(item) if isinstance(item, str) and not isinstance(item, Markup) else item,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    kinds = {"name": Name, "names": tuple, "table": Table, "entries": Entries, "findings": Findings}
    environment.tests |= {word: lambda item, kind=kind: isinstance(item, kind) for word, kind in kinds.items()}
    environment.globals |= {"size": size, "rough_size": rough_size, "count": count, "weights": Weight}
    environment.filters |= {"tone": _tone_class, "severity_tone": TONES.get}
    css = (data_directory("templates") / "report.css").read_text(encoding="utf-8")
    sections = with_content(map(_drawn, (*answer.grounds, *answer.sections)))
    return environment.get_template("answer.html.j2").render(
        answer=answer,
        verdict_class=_VERDICTS.get(answer.tone, ""),
        sections=sorted(sections, key=lambda item: item.weight is Weight.SAME and not item.sections),
        listings=[(listing.title, listing.text.splitlines()) for listing in answer.listings],
        version=__version__,
        css=Markup(css),  # noqa: S704 (our own file)
    )


def _tone_class(tone: Tone) -> str:
    return _CLASSES.get(tone, "")


def _drawn(section: Section) -> Section:
    """Return the section with its pictures drawn, without empty ones."""
    parts: list[Any] = []
    for part in section.parts:
        drawn = _Drawn(part.macro, part.draw()) if isinstance(part, Picture) else None
        if drawn is None or drawn.value:
            parts.append(drawn or part)
    return replace(section, parts=tuple(parts))
