"""What of a step is there, by a look that does not show every value."""

from __future__ import annotations

from gpolicy.apply.tasks import Sight, effects_missing, effects_there
from gpolicy.cluster.state import HIDDEN_BY_RAPI
from gpolicy.plan.change import NAME
from gpolicy.plan.effects import Effect, carried_out

MADE = Effect("group/gold", NAME, None, "gold")
HIDDEN = Effect("group/gold", ("disk_state", "plain", "xenvg", "disk_overhead"), None, 10)
STEP = (MADE, HIDDEN)


def seen(*effects: Effect) -> Sight:
    """Return what the remote API shows after these effects."""
    contents = carried_out(effects, {"cluster": {}})
    shown = {
        name: {path: value for path, value in values.items() if path[0] != "disk_state"}
        for name, values in contents.items()
    }
    return Sight(shown, {}, HIDDEN_BY_RAPI)


def test_what_cannot_be_seen_of_a_step_that_has_not_begun_is_not_there() -> None:
    """A refused attempt to make a group leaves nothing: no group is expected the next time."""
    assert effects_there(STEP, seen()) == []
    assert effects_missing(STEP, seen()) == [*STEP]
    assert carried_out(effects_there(STEP, seen()), {}) == {}


def test_what_cannot_be_seen_of_a_step_that_has_begun_is_taken_for_there() -> None:
    assert effects_there(STEP, seen(MADE)) == [*STEP]
    assert effects_there([HIDDEN], seen(MADE)) == [HIDDEN]
