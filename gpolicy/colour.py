"""Colour on a terminal: reports give each piece of text a tone, which is painted here."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gpolicy.printable import control


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
