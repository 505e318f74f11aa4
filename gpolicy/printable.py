r"""Text that is safe on a terminal or in a log: it moves no cursor, hides nothing and fakes no line.

Names, values and messages come from policies, plans and clusters, and hold anything. Reports give their lines to
`as_text`, the command line writes through a stream that calls `printable` on whatever it is told to write
(`cli/console.py`). Our own colours survive both: they hold a random number of this process, which nothing that was
written before can know.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable
from typing import Final

_OURS: Final = f"\x1b{os.urandom(8).hex()}"
_CONTROL: Final = re.compile(rf"({_OURS}\[[0-9;]*[A-Z]?[a-z]?)")

# Letters that show nothing although they count as printable (Default_Ignorable_Code_Point, and the empty Braille cell).
_UNSEEN: Final = frozenset(
    (
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    )
)

_RIGHT_TO_LEFT: Final = frozenset(("R", "AL", "AN"))  # classes of letters that take what is beside them to other places


def control(sequence: str) -> str:
    r"""Return a control sequence of ours (`[1m`, `[K`), as `terminal_text` makes it one for a terminal."""
    return f"{_OURS}{sequence}"


def printable(text: str) -> str:
    r"""Return `text` as one line, with what could move a cursor, hide or reorder text, or end the line as an escape.

    Escapes are Python's: \x1b, \n, \u202e. Control sequences of ours stay.
    """
    if _stays(text):
        return text
    if _OURS in text:
        parts = _CONTROL.split(text)
        return "".join(part if number % 2 else _escaped(part) for number, part in enumerate(parts))
    return _escaped(text)


def _escaped(text: str) -> str:
    return "".join(letter if _stays(letter) else _escape(letter) for letter in text)


def _stays(text: str) -> bool:
    """Return whether all of a text is seen, in the order of its letters."""
    return text.isprintable() and (
        text.isascii()
        or (_UNSEEN.isdisjoint(map(ord, text)) and _RIGHT_TO_LEFT.isdisjoint(map(unicodedata.bidirectional, text)))
    )


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def columns(text: str) -> int:
    """Return the number of terminal columns of printable text: wide letters take two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def one_line(text: str, longest: int = 2000) -> str:
    """Return the first letters of what another program said, on one line: a blank for each that nobody could see."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:longest]).strip()


def as_text(lines: Iterable[str]) -> str:
    """Return lines as a text that holds these lines and no others, whatever is in them."""
    return "".join(f"{printable(line)}\n" for line in lines)


def printable_text(text: str) -> str:
    """Return a text of several lines, each of which is made printable."""
    return "\n".join(map(printable, text.split("\n")))


def terminal_text(text: str) -> str:
    """Return printable text as a terminal takes it: our control sequences become such."""
    return text.replace(_OURS, "\x1b")


def no_command(line: str) -> str:
    """Return a printable line that GitHub's runner takes for no command: no `::` at its start, no `##[` in it."""
    shown = line.replace("##[", "## [")
    return f"- {shown}" if shown.lstrip().startswith("::") else shown
