"""The parts of a JUnit report: XML as CI services read it. ASCII only: all else becomes a character reference."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr  # it only writes here; nothing is parsed

from gpolicy.printable import printable


def document(counts: str, suites: Iterable[str]) -> str:
    """Return the whole report. `counts` are the attributes of its root element."""
    body = "\n".join([f"<testsuites {counts}>", *suites, "</testsuites>"])
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def suite(name: str, counts: str, cases: Iterable[str]) -> str:
    """Return one suite."""
    return "\n".join([f"  <testsuite name={attribute(name)} {counts}>", *cases, "  </testsuite>"])


def case(name: str, file: str, line: int, inside: str = "") -> str:
    """Return one case, about a line of a file. `inside` is an element, or nothing when all is well."""
    place = f'file={attribute(file)} line="{line}"'
    head = f"    <testcase classname={attribute(file)} name={attribute(name)} {place}"
    return f"{head}>\n      {inside}\n    </testcase>" if inside else f"{head}/>"


def element(name: str, message: str, text: str) -> str:
    """Return an element that says in a few words and in full what is wrong."""
    body = "\n".join(escape(printable(line)) for line in text.split("\n"))
    return f"<{name} message={attribute(message)}>{body}</{name}>"


def attribute(text: str) -> str:
    """Return `text` as the quoted value of an attribute."""
    return quoteattr(printable(text))
