"""Fingerprints identify a finding by its rule, its object and the text at its place, not by its line number."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from gpolicy.findings import Finding
from gpolicy.policy.source_file import Files, SourceFile, YamlMapping

_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_LENGTH: Final = 32  # hex digits


def fingerprint(finding: Finding, files: Files) -> str:
    """Return 32 hex digits that stay the same while the text of the finding's line does.

    They hold neither the file's name nor the message, so a policy that is checked from another directory, or by a
    later gpolicy with better words, has the same. Two equal mistakes in one document have one fingerprint: count them.
    """
    span = finding.span
    file = files.get(span.file) if span else None
    if span is None or file is None:
        return _digest(finding.key, finding.message if span is None else "")
    line = " ".join(_COMMENT.sub("", file.line(span.line)).split())
    marked = file.written(span) if span.end_line == span.line else ""
    return _digest(finding.key, _object_at(file, span.line), line, " ".join(marked.split()))


def unique_fingerprints(findings: Iterable[Finding], files: Files, *, locate: Callable[[str], str] = str) -> list[str]:
    """Return a fingerprint for each finding that no other has, for readers that know findings by it alone.

    It also tells files apart, by the name that `locate` gives, and the second of two equal mistakes from the first.
    """
    seen: Counter[str] = Counter()
    result = []
    for finding in findings:
        file = locate(finding.span.file) if finding.span else ""
        plain = _digest(file, fingerprint(finding, files))
        seen[plain] += 1
        result.append(_digest(plain, str(seen[plain])) if seen[plain] > 1 else plain)
    return result


def _object_at(file: SourceFile, line: int) -> str:
    """Return kind and name of the document around a line, as written."""
    document = file.document_at(line)
    if document is None or not isinstance(document.root, YamlMapping):
        return ""
    return " ".join(document.written((key,)) for key in document.root if key in ("kind", "name"))


def _digest(*parts: str) -> str:
    from hashlib import sha256  # noqa: PLC0415 (loads OpenSSL; most checks need no fingerprint)

    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]
