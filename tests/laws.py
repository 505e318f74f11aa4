"""How many examples a law is tried on: few in an ordinary run, forty times as many with `-m full`."""

from __future__ import annotations

from typing import Final

from hypothesis import settings

FEW: Final = 25
MANY: Final = 1000

settings.register_profile("few", deadline=None, max_examples=FEW)
settings.register_profile("many", deadline=None, max_examples=MANY)


def examples(few: int) -> int:
    """Return how many examples to try of a law that needs another number than the profile's: `few` are ordinary."""
    return few * settings().max_examples // FEW
