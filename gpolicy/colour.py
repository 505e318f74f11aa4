"""Colour on a terminal: reports say what a piece of text means (its tone), and here is how each tone is painted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from gpolicy.printable import control


class Tone(Enum):
    """What a piece of text is to its reader. The value is the SGR code of terminals."""

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
    """Paints text, or leaves it as it is where there is no `colour`."""

    colour: bool

    def __call__(self, tone: Tone, text: str) -> str:
        """Return `text` in its tone."""
        return f"{_START[tone]}{text}{_END}" if self.colour and text and tone in _START else text
