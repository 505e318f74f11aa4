"""The forms of reports: those that every verb has, made of its answer, and those of single verbs.

A form for all verbs is one module with a function `render`, and one entry in `ANSWER_FORMS`. One of a single verb is
a function from the verb's value to a text: the verb's `Report` has it in `own`, and `OWN_FORMS` its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from gpolicy.report.answer import Answer

COMMENT_BUDGET: Final = 65_536
"""The greatest length of a comment on GitHub, in characters. We count bytes, which are never fewer."""

LEAST_BUDGET: Final = 4_000
"""Bytes for the verdict, the marker and the notices of cut parts."""

ANSWER_FORMS: Final = {
    "text": "gpolicy.report.answer_brief",
    "markdown": "gpolicy.report.answer_markdown",
    "html": "gpolicy.report.answer_html",
}
"""The modules that render an answer."""

SUFFIXES: Final = {".html": "html", ".htm": "html", ".md": "markdown"}
"""The forms that files of these names have."""

OWN_FORMS: Final = {
    "check": ("concise", "github", "sarif", "junit", "gitlab"),
    "plan": ("github",),
    "suggest": ("yaml",),
    "test": ("junit",),
    "drift": ("prometheus",),
    "capacity": ("prometheus",),
}
"""Further forms of single verbs, from their own values. Every verb has JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """How to show an answer: `budget` is the most bytes of Markdown.

    A text is one screen, or with `details` all that there is, or with `quiet` the verdict; `every` has it show all rows
    as well. `width` is how many columns its tables may take; 0: any number. A page leads back to `index` beside it.
    """

    form: str = "text"
    budget: int = COMMENT_BUDGET
    details: bool = False
    quiet: bool = False
    every: bool = False
    colour: bool = False
    width: int = 0
    index: str = ""


def forms_of(verb: str) -> tuple[str, ...]:
    """Return the forms that a verb has."""
    text, *others = ANSWER_FORMS
    return (text, "json", *others, *OWN_FORMS.get(verb, ()))


def render(answer: Answer, display: Display) -> str:
    """Return the answer in one of `ANSWER_FORMS`."""
    whole = display.form == "text" and (display.details or display.every) and not display.quiet
    module = "gpolicy.report.answer_text" if whole else ANSWER_FORMS[display.form]
    text: str = import_module(module).render(answer, display)
    return text
