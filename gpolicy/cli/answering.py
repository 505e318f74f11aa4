"""Answers in the forms that place, suggest and test share."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpolicy.report.answer import Answer


def write_answer(answer: Answer, form: str, budget: int) -> None:
    """Write an answer to standard output, as `markdown` of at most `budget` bytes or as `html`."""
    if form == "html":
        from gpolicy.report.answer_html import answer_html  # noqa: PLC0415

        sys.stdout.write(answer_html(answer))
    else:
        from gpolicy.report.answer_markdown import answer_markdown  # noqa: PLC0415

        sys.stdout.write(answer_markdown(answer, budget=budget))
