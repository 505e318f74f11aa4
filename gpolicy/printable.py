r"""Text that is safe on a terminal or in a log: it moves no cursor, hides nothing and fakes no line.

Names, values and messages come from policies, plans and clusters, and may contain anything. Reports pass their lines to
`as_text`; the command line writes through a `Console`. Our own colours survive both: they contain a random number of
this process, which no input can know. Reports give each piece of text a tone, which a `Painter` paints.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from enum import Enum

from gpolicy.light_dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, TextIO

_OURS: Final = f"\x1b{os.urandom(8).hex()}"
_CONTROL: Final = re.compile(rf"({_OURS}\[[0-9;]*[A-Z]?[a-z]?)")

# Letters that are invisible although they count as printable (Default_Ignorable_Code_Point, and the empty Braille
# cell).
_UNSEEN: Final = frozenset(
    (
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    )
)

_RIGHT_TO_LEFT: Final = frozenset(("R", "AL", "AN"))  # classes of letters that reorder their neighbours


def control(sequence: str) -> str:
    r"""Return our form of a control sequence (`[1m`, `[K`), which `terminal_text` turns into one for a terminal."""
    return f"{_OURS}{sequence}"


def printable(text: str) -> str:
    r"""Return `text` as one line, with escapes for what could move a cursor, hide or reorder text, or end the line.

    Escapes are Python's: \x1b, \n, \u202e. Our own control sequences stay.
    """
    if _stays(text):
        return text
    if _OURS in text:
        parts = _CONTROL.split(text)
        return "".join(part if number % 2 else _escaped(part) for number, part in enumerate(parts))
    return _escaped(text)


def _escaped(text: str) -> str:
    return "".join(letter if _stays(letter) else letter.encode("unicode_escape").decode("ascii") for letter in text)


def _stays(text: str) -> bool:
    """Return whether all of a text is visible, in the order of its letters."""
    return text.isprintable() and (
        text.isascii()
        or (_UNSEEN.isdisjoint(map(ord, text)) and _RIGHT_TO_LEFT.isdisjoint(map(unicodedata.bidirectional, text)))
    )


def columns(text: str) -> int:
    """Return the number of terminal columns of printable text: wide letters take two, combining marks none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def wrapped(text: str, width: int) -> list[str]:
    """Return a text as lines of at most `width` columns, broken at blanks; 0: of any width."""
    if not width or columns(text) <= width:
        return [text]
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        lines = [*lines[:-1], longer] if columns(longer) <= width or not lines[-1] else [*lines, word]
    return lines


def hanging(text: str, width: int, indent: str = "") -> list[str]:
    """Return a text made printable, as lines of at most `width` columns behind `indent`, later ones two columns in."""
    first, *more = wrapped(printable(text), width - len(indent) - 2)
    return [f"{indent}{first}", *(f"{indent}  {line}" for line in more)]


def height(text: str, width: int) -> int:
    """Return the number of rows that a text takes on a terminal of this many columns."""
    lines = _CONTROL.sub("", text).splitlines()
    return sum(max(-(-columns(line) // max(width, 1)), 1) for line in lines)


def one_line(text: str, longest: int = 2000) -> str:
    """Return the first letters of another program's output on one line, with a blank for each invisible letter."""
    return "".join(letter if letter.isprintable() else " " for letter in text[:longest]).strip()


def as_text(lines: Iterable[str]) -> str:
    """Return lines as a text with exactly these lines, for any content."""
    return "".join(f"{printable(line)}\n" for line in lines)


def printable_text(text: str) -> str:
    """Return a text of several lines, each of which is made printable."""
    return "\n".join(map(printable, text.split("\n")))


def terminal_text(text: str) -> str:
    """Return printable text for a terminal, with our control sequences as real ones."""
    return text.replace(_OURS, "\x1b")


def no_command(line: str) -> str:
    """Return a printable line that GitHub's runner does not take for a command: without `::` at its start and `##[`."""
    shown = line.replace("##[", "## [")
    return f"- {shown}" if shown.lstrip().startswith("::") else shown


def some(names: Sequence[str], most: int = 5) -> str:
    """Return the first `most` of `names` for a sentence, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def named(word: str, names: Sequence[str]) -> str:
    """Return names behind what they are of: `group gold`, `groups gold, silver`."""
    return f"{word if len(names) == 1 else f'{word}s'} {some(names)}"


def listed(words: Iterable[str], last: str = "and") -> str:
    """Return words as an enumeration: a, b and c."""
    *first, end = [*words] or [""]
    return f"{', '.join(first)} {last} {end}" if first else end


def clipped(text: str, longest: int) -> str:
    """Return `text` in at most `longest` characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def count(number: int, word: str, plural: str = "") -> str:
    """Return the number with its word: 1 instance, 2 instances."""
    return f"{number:,} {word if number == 1 else plural or word + 's'}"


def free_name(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return a name that is not taken: this one, or with the least number from 2 on behind it."""
    found, number = name, 1
    while is_taken(found):
        number += 1
        found = f"{name}-{number}"
    return found


class Console:
    """A stream on top of another. A line feed ends a line; all other control characters are shown as escapes.

    In a job of GitHub's, no line becomes a command to its runner.
    """

    def __init__(self, below: TextIO) -> None:
        self.below = below
        self._defused = os.environ.get("GITHUB_ACTIONS") == "true"
        self._within_line = False

    def write(self, text: str) -> int:
        """Write `text`, made printable."""
        shown = printable_text(text)
        if self._defused and shown:
            first, *others = shown.split("\n")
            first = first.replace("##[", "## [") if self._within_line else no_command(first)
            shown = "\n".join([first, *map(no_command, others)])
            self._within_line = not shown.endswith("\n")
        self.below.write(terminal_text(shown))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each of the lines, which end themselves."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Pass everything else on to the stream below."""
        return getattr(self.below, name)


def console(stream: TextIO) -> TextIO:
    """Return a stream that writes printable text to `stream`; itself if it does so already."""
    if not isinstance(stream, Console):
        above: Any = Console(stream)
        stream = above
    return stream


def write_commands(stream: TextIO, text: str) -> None:
    """Write lines to a console as commands for GitHub's runner."""
    below = stream.below if isinstance(stream, Console) else stream
    below.write(printable_text(text))


def write_diff(stream: TextIO, lines: Iterable[str]) -> None:
    """Write a diff as `patch` takes it: tabs stay, and carriage returns at the ends of lines.

    A line with other control characters or with letters that nobody sees shows them as escapes, and is not patched.
    """
    below = stream.below if isinstance(stream, Console) else stream
    defused = os.environ.get("GITHUB_ACTIONS") == "true"
    written = []
    for line in "".join(lines).split("\n"):
        body = line.removesuffix("\r")
        shown = "\t".join(map(printable, body.split("\t")))
        written.append((no_command(shown) if defused else shown) + line[len(body) :])
    below.write("\n".join(written))


class Tone(Enum):
    """The meaning of a piece of text for the reader. The value is the SGR code of terminals."""

    PLAIN = ""
    STRONG = "1"
    QUIET = "2"
    BAD = "31"
    GOOD = "32"
    CAREFUL = "33"
    NOTED = "36"
    ALARM = "1;31"


_START: Final = {tone: control(f"[{tone.value}m") for tone in Tone if tone.value}
_END: Final = control("[0m")


@dataclass(frozen=True, slots=True)
class Painter:
    """Paints text if `colour` is true, otherwise leaves it unchanged."""

    colour: bool

    def __call__(self, tone: Tone, text: str) -> str:
        """Return `text` in its tone."""
        return f"{_START[tone]}{text}{_END}" if self.colour and text and tone in _START else text


def without_colour(text: str) -> str:
    """Return painted text without its paint."""
    for code in (*_START.values(), _END):
        text = text.replace(code, "")
    return text
