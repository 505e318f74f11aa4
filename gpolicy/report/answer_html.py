"""An answer as one page of HTML: the same sections and tables as in Markdown."""

from __future__ import annotations

from gpolicy import __version__
from gpolicy.report.answer import Answer
from gpolicy.report.html_page import render_page


def answer_html(answer: Answer) -> str:
    """Return the answer as a page: one file, without script or network."""
    return render_page(
        "answer.html.j2",
        answer=answer,
        listings=[(listing.title, listing.text.splitlines()) for listing in answer.listings],
        version=__version__,
    )
