"""How far the plan of one cluster is, as the cluster's own journal says."""

from __future__ import annotations

from enum import StrEnum

from gpolicy.apply.journal import Direction, History


class Stage(StrEnum):
    """How far a plan is."""

    EMPTY = "nothing to do"  # it has no steps
    UNTOUCHED = "not begun"
    PARTLY = "partly done"
    DONE = "done"
    PARTLY_BACK = "partly taken back"
    BACK = "taken back"


COMPLETE = frozenset({Stage.EMPTY, Stage.DONE})
"""Nothing of the plan is left to do."""

REVERTED = frozenset({Stage.EMPTY, Stage.UNTOUCHED, Stage.BACK})
"""Nothing of the plan is left to take back."""


def stage_of(steps: int, history: History | None) -> Stage:
    """Return how far a plan of so many steps is; `history` is what its journal says, None without one."""
    if not steps:
        return Stage.EMPTY
    if history is None:
        return Stage.UNTOUCHED
    if history.direction is Direction.ROLLBACK:
        return Stage.BACK if history.ended == "done" else Stage.PARTLY_BACK
    return Stage.DONE if history.ended == "done" else Stage.PARTLY
