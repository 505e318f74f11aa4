"""How a scalar is written: in its original form, with quotes only where they are needed."""

from __future__ import annotations

import re
from typing import Final

from gpolicy.formatting.tree import CannotFormatError, Scalar
from gpolicy.writing.yaml_text import is_ambiguous_word, quoted, scalar

_BLOCK: Final = ("|", ">")
_GLOB: Final = frozenset("*?[")  # patterns keep their quotes, which some of them need
_HEADER: Final = re.compile(r"[|>][+-]?")


def is_block(value: Scalar) -> bool:
    """Return whether a scalar is a block of text under its key."""
    return value.style in _BLOCK


def plain_or_quoted(value: Scalar) -> str:
    """Return a scalar of one line, in the form for a block."""
    return _written(value, flow=False)


def flow_scalar(value: Scalar) -> str:
    """Return a scalar of one line, in the form for braces or brackets."""
    return _written(value, flow=True)


def _written(value: Scalar, *, flow: bool) -> str:
    if value.tagged or value.style == "*" or not value.body:
        return value.body
    if not value.style:
        return quoted(value.text) if is_ambiguous_word(value.text) else value.body
    plain = scalar(value.text, flow=flow)
    if not plain.startswith('"') and not _GLOB & set(value.text):
        return plain
    if value.style == "'" and value.text.isprintable() and not {'"', "\\"} & set(value.text):
        return quoted(value.text)
    return value.body


def written_lines(value: Scalar, indent: int) -> list[str]:
    """Return the lines of a plain or quoted scalar that runs over several; all but the first are indented."""
    first, *others = value.body.split("\n")
    lines = [f"{' ' * indent}{line.strip()}".rstrip() for line in others]
    return [with_prefix(value.prefix, first.rstrip()), *lines]


def block_lines(value: Scalar, indent: int) -> list[str]:
    """Return the header of a block scalar and its lines, indented. Raise CannotFormatError if it is ambiguous."""
    header = _HEADER.match(value.body)
    assert header is not None  # noqa: S101 (reading has seen to it)
    _, *lines = value.body.split("\n")
    text = [line for line in lines if line.strip(" ")]
    old = len(text[0]) - len(text[0].lstrip(" ")) if text else 0
    if any(line.strip(" ") and not line.startswith(" " * old) for line in lines):
        raise CannotFormatError("a block of text is not indented evenly")
    moved = [f"{' ' * indent}{line[old:]}" if line[old:] else "" for line in lines]
    if not header.group().endswith("+"):
        while moved and not moved[-1]:  # a line of blanks is a part of the text
            moved.pop()
    elif moved and not moved[-1]:
        moved.pop()  # the rest behind the end of the last line
    return [with_prefix(value.prefix, header.group()), *moved]


def with_prefix(prefix: str, text: str) -> str:
    """Return a value with its anchor and tag before it, if it has any."""
    return f"{prefix} {text}".strip() if prefix else text
