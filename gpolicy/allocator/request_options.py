"""How a request for one or more instances is to be answered."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Options of a request.

    `restriction` holds the names of the only nodes that new instances may use. `ignore_soft_errors`
    ignores soft limits of primaries, `capacity_checks` asks for global N+1 after each placement.
    """

    capacity_checks: bool = True
    ignore_soft_errors: bool = False
    restriction: frozenset[str] | None = None
