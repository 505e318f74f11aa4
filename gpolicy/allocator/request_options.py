"""The options of a request to hail, and the error of one that cannot be granted."""

from __future__ import annotations

from gpolicy.allocator.cluster_score import WEIGHTS, Weights
from gpolicy.errors import InputError
from gpolicy.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Options of a request.

    `restriction` holds the names of the only nodes that new instances may use. `ignore_soft_errors`
    ignores soft limits of primaries, `capacity_checks` requires global N+1 after each placement. `weights` are those of
    the score.
    """

    capacity_checks: bool = True
    ignore_soft_errors: bool = False
    restriction: frozenset[str] | None = None
    weights: Weights = WEIGHTS


class NotGrantedError(InputError):
    """A request that cannot be granted; the message is the answer."""
