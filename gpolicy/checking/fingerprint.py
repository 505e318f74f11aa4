"""What makes a finding the same one tomorrow: its rule, the object, and the words it stands on; not its line number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final

from gpolicy.findings import Finding
from gpolicy.policy.source_text import line_text, offset, span_offsets

_MARKER: Final = "\n---"  # begins a document
_OBJECT: Final = re.compile(r"^(?:kind|name):[ \t]*(.*)$", re.MULTILINE)
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_LENGTH: Final = 32  # hex digits


def fingerprint(finding: Finding, sources: Mapping[str, str]) -> str:
    """Return 32 hex digits that stay the same while the text of the finding's line does.

    They hold neither the file's name nor the message, so a policy that is checked from another directory, or by a
    later gpolicy with better words, has the same. Two equal mistakes in one document have one fingerprint: count them.
    """
    span = finding.span
    text = sources.get(span.file) if span else None
    if span is None or text is None:
        return _digest(finding.code, finding.message if span is None else "")
    line = " ".join(_COMMENT.sub("", line_text(text, span.line)).split())
    start, stop = span_offsets(text, span)
    marked = text[start:stop] if span.end_line == span.line else ""
    return _digest(finding.code, _object_at(text, offset(text, span.line, 1)), line, " ".join(marked.split()))


def unique_fingerprints(
    findings: Iterable[Finding], sources: Mapping[str, str], *, locate: Callable[[str], str] = str
) -> list[str]:
    """Return a fingerprint for each finding that no other has, for readers that know findings by it alone.

    It also tells files apart, by the name that `locate` gives, and the second of two equal mistakes from the first.
    """
    seen: Counter[str] = Counter()
    result = []
    for finding in findings:
        file = locate(finding.span.file) if finding.span else ""
        plain = _digest(file, fingerprint(finding, sources))
        seen[plain] += 1
        result.append(_digest(plain, str(seen[plain])) if seen[plain] > 1 else plain)
    return result


def _object_at(text: str, place: int) -> str:
    """Return kind and name of the document around an offset, as written."""
    begin, end = text.rfind(_MARKER, 0, place + len(_MARKER)), text.find(_MARKER, place)
    return _object_between(text, max(begin, 0), end if end >= 0 else len(text))


@lru_cache(maxsize=256)
def _object_between(text: str, begin: int, end: int) -> str:
    return " ".join(_without_comment(value) for value in _OBJECT.findall(text, begin, end)[:2])


def _without_comment(value: str) -> str:
    """Return what stands before a comment and the blanks at its end. (One pattern for all would try each blank.)"""
    before, mark, _ = value.partition("#")
    return (before if mark else value.removesuffix("\r")).rstrip(" \t")


def _digest(*parts: str) -> str:
    from hashlib import sha256  # noqa: PLC0415 (loads OpenSSL; most checks need no fingerprint)

    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]
