"""The new look after a plan was applied or rolled back: it decides about success, not exit codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpolicy.apply.staleness import LeafDifference, Sight, compare_objects, path_text
from gpolicy.plan.change import MEMBERSHIP, NAME, TAGS, Change, ChangeAction, words
from gpolicy.plan.effects import Effect
from gpolicy.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class FinalLook:
    """The values that are not as planned, and those that this connection does not show."""

    differences: tuple[LeafDifference, ...]
    unseen: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether nothing that can be seen differs."""
        return not self.differences


def judge_applied(changes: Iterable[Change], sight: Sight) -> FinalLook:
    """Compare every change of a plan with a new look."""
    differences: list[LeafDifference] = []
    unseen: list[str] = []
    for change in changes:
        if not sight.shows(change.object, change.path) and change.path not in (NAME, MEMBERSHIP, TAGS):
            unseen.append(f"{change.object} {path_text(change.path)}")
        else:
            differences += _not_as_planned(change, sight)
    return FinalLook(tuple(differences), tuple(unseen))


def _not_as_planned(change: Change, sight: Sight) -> list[LeafDifference]:
    values = sight.contents.get(change.object)
    if change.action is ChangeAction.REMOVE:
        gone = f"group/{change.before}" not in sight.contents
        return [] if gone else [LeafDifference(f"group/{change.before}", (), "not there", "there")]
    if values is None:
        return [LeafDifference(change.object, (), "there", "not there")]
    if change.action is ChangeAction.RENAME:
        old = f"group/{change.before}"
        return [LeafDifference(old, (), "not there", "there")] if old in sight.contents else []
    if change.path == TAGS:
        before, after = set(words(change.before)), set(words(change.after))
        have = {path[1] for path in values if path[:1] == TAGS}
        return [
            *(LeafDifference(change.object, (*TAGS, tag), True, None) for tag in sorted(after - before - have)),
            *(LeafDifference(change.object, (*TAGS, tag), None, True) for tag in sorted((before - after) & have)),
        ]
    found = values.get(change.path)
    return [] if found == change.after else [LeafDifference(change.object, change.path, change.after, found)]


def judge_restored(plan: Plan, sight: Sight, effects: Sequence[Effect]) -> FinalLook:
    """Compare the objects of a plan that was rolled back with what they were; `effects` are those of both ways.

    Values that no command can restore are left out; the plan names them step by step.
    """
    unseen = dict.fromkeys(
        f"{effect.object} {path_text(effect.path)}" for effect in effects if not sight.shows(effect.object, effect.path)
    )
    return FinalLook(tuple(compare_objects(plan, sight, effects)), tuple(unseen))
