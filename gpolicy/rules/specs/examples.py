"""Parts of the examples of rules about specs."""

from __future__ import annotations

from typing import Final

from gpolicy.rules.examples import GROUP, spec

SIZES: Final = "Partitioned Ganeti, Constrained instance sizes"
LARGE: Final = spec("large", "16G 64G", "4 16", "100G 1T")
SMALL: Final = spec("small", "1G 12G", "1 3", "10G 90G")


def group_with(*pairs: str) -> str:
    return f"{GROUP}ipolicy:\n  minmax:\n{''.join(pairs)}"


GOOD: Final = group_with(LARGE, SMALL)
