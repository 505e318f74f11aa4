"""Format the text of a policy file, and check that nothing is lost."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

from gpolicy.findings import Finding
from gpolicy.formatting.reading import CannotFormatError, File, read_file
from gpolicy.formatting.rendering import render
from gpolicy.policy.source_file import SourceFile
from gpolicy.policy.yaml_reader import read_yaml

_ODD_BREAK: Final = re.compile("\r|[\x85\u2028\u2029]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatted:
    """The formatted text, or the unchanged text if it cannot be formatted.

    `reason` tells why not, `line` where, from 1 (0: no particular place). `broken` are findings about the file's YAML.
    """

    text: str
    reason: str = ""
    line: int = 0
    broken: tuple[Finding, ...] = ()


def format_text(text: str, file: str) -> Formatted:
    """Return the canonical form of a policy file's text; findings name the file `file`.

    Our own reader finds the same values, no comment is lost, and formatting again changes nothing. If one of these
    fails, the text stays unchanged.
    """
    source = read_yaml(text, file)
    if source.findings:
        return Formatted(text=text, reason="it has a mistake", broken=tuple(source.findings))
    try:
        return Formatted(text=_formatted(source))
    except CannotFormatError as error:
        return Formatted(text=text, reason=error.reason, line=error.line)


def _formatted(source: SourceFile) -> str:
    lines = source.text.removeprefix("\ufeff").replace("\r\n", "\n")
    odd = _ODD_BREAK.search(lines)
    if odd:
        raise CannotFormatError("a line ends in CR", lines.count("\n", 0, odd.start()) + 1)
    tree = read_file(source if lines == source.text else read_yaml(lines, source.name))
    for document in tree.documents:
        if not any(entry.key is not None and entry.key.text == "gpolicy" for entry in document.root.entries):
            raise CannotFormatError("a document is not a policy document (it has no key gpolicy)")
    result = render(tree)
    _prove(result, source, tree)
    return result


def _prove(result: str, before: SourceFile, tree: File) -> None:
    """Raise CannotFormatError unless the result means the same as the file before and is formatted."""
    after = read_yaml(result, "formatted")
    if after.findings or _values(after) != _values(before):
        has_alias = re.search(r"(?:^|[\s,\[{])\*\S", result) is not None
        raise CannotFormatError("an anchor would come behind its alias" if has_alias else "its values would change")
    again = read_file(after)
    if _comment_lines(again) != _comment_lines(tree):
        raise CannotFormatError("a comment would be lost")
    if render(again) != result:
        raise CannotFormatError("formatting it twice would differ from formatting it once")


def _values(source: SourceFile) -> str:
    """Return the values of the documents, without empty ones, as text that differs for 1, 1.0 and true."""
    return json.dumps([item.root for item in source.documents if item.root is not None], sort_keys=True)


def _comment_lines(tree: File) -> Counter[str]:
    return Counter(text for comment in tree.comments for text in comment.texts)
