"""The new look after a plan or a remedy was applied or rolled back: it decides about success, not exit codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpolicy.apply.staleness import LeafDifference, Sight, compare_objects, path_text
from gpolicy.plan.change import NAME
from gpolicy.plan.effects import Effect, found
from gpolicy.plan.procedure import Procedure


@dataclass(frozen=True, slots=True)
class FinalLook:
    """The values that are not as planned, and those that this connection does not show."""

    differences: tuple[LeafDifference, ...]
    unseen: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether nothing that can be seen differs."""
        return not self.differences


def judge_outcome(effects: Iterable[Effect], sight: Sight) -> FinalLook:
    """Compare what all steps were to change with a new look."""
    differences: list[LeafDifference] = []
    unseen: list[str] = []
    for effect in effects:
        if not sight.shows(effect.object, effect.path):
            unseen.append(f"{effect.object} {path_text(effect.path)}")
        else:
            differences += _not_as_planned(effect, sight)
    return FinalLook(tuple(differences), tuple(unseen))


def _not_as_planned(effect: Effect, sight: Sight) -> list[LeafDifference]:
    if effect.path == NAME:
        made = [f"group/{effect.after}"] if effect.after is not None else []
        gone = [effect.object] if effect.before is not None else []
        return [
            *(LeafDifference(name, (), "there", "not there") for name in made if name not in sight.contents),
            *(LeafDifference(name, (), "not there", "there") for name in gone if name in sight.contents),
        ]
    if effect.object not in sight.contents:
        return [LeafDifference(effect.object, (), "there", "not there")]
    value = found(effect, sight.contents)
    return [] if value == effect.after else [LeafDifference(effect.object, effect.path, effect.after, value)]


def judge_restored(plan: Procedure, sight: Sight, effects: Sequence[Effect]) -> FinalLook:
    """Compare the objects of what was rolled back with what they were; `effects` are those of both ways.

    Values that no command can restore are left out; the steps name them.
    """
    unseen = dict.fromkeys(
        f"{effect.object} {path_text(effect.path)}" for effect in effects if not sight.shows(effect.object, effect.path)
    )
    return FinalLook(tuple(compare_objects(plan, sight, effects)), tuple(unseen))
