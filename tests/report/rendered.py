"""The visible part of Markdown or HTML, by a real renderer and the parser of the standard library."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from markdown_it import MarkdownIt

from gpolicy.report.answer import Answer
from gpolicy.report.forms import COMMENT_BUDGET, Display, render

VOID = {"meta", "br", "hr", "link", "img"}


class Page(HTMLParser):
    """Elements, attributes and text of a page.

    `tables` are rows of cells' text, `items` those of lists; `prose` is text outside of code.
    """

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.values: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.prose: list[str] = []
        self.items: list[str] = []
        self.summaries: list[str] = []
        self.comments: list[str] = []
        self.stack: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        self.close()
        assert self.stack == [], f"not closed: {self.stack}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        for key, value in attrs:
            self.attributes.add((tag, key))
            self.values.append(value or "")
            if key == "id":
                self.ids.append(value or "")
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "summary":
            self.summaries.append("")
        elif tag == "li":
            self.items.append("")
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"</{tag}> without a start"
        assert self.stack.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if "td" in self.stack or "th" in self.stack:
            self.tables[-1][-1][-1] += data
        if "li" in self.stack:
            self.items[-1] += data
        if "summary" in self.stack:
            self.summaries[-1] += data
        if not {"code", "pre", "style", "script"} & set(self.stack):
            self.prose.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)


def unfolded(markdown: str) -> str:
    """Return Markdown without its folded parts."""
    return re.sub(r"<details>.*?</details>", "", markdown, flags=re.DOTALL)


def page_of_markdown(text: str) -> Page:
    """Return `text` rendered in GitHub's dialect, with raw HTML."""
    renderer = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    return Page(renderer.render(text))


def mentions(page: Page) -> list[str]:
    """Return the mentions of a person, an issue or a merge request in one text outside code."""
    return [found for text in page.prose for found in re.findall(r"(?:^|\W)([@#!]\w+)", text)]


def text_of(answer: Answer, *, colour: bool = False, every: bool = False) -> str:
    """Return all of an answer as text."""
    return render(answer, Display(details=True, colour=colour, every=every))


def markdown_of(answer: Answer, *, budget: int = COMMENT_BUDGET) -> str:
    """Return an answer as Markdown."""
    return render(answer, Display(form="markdown", budget=budget))


def html_of(answer: Answer) -> str:
    """Return an answer as a page."""
    return render(answer, Display(form="html"))
