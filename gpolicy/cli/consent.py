"""What `apply` shows before it asks for consent, and the question."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpolicy.printable import count

if TYPE_CHECKING:
    from gpolicy.apply.plan_run import Intention
    from gpolicy.plan.step import Procedure


def consent_lines(plan: Procedure, destination: str, intention: Intention) -> Iterator[str]:
    """Yield what a run is going to do: every step with its values, the guards, and what nobody can restore."""
    from gpolicy.plan.effects import effect_words  # noqa: PLC0415
    from gpolicy.plan.plan import Plan  # noqa: PLC0415

    back = intention.direction == "rollback"
    verb = "move instances of" if plan.moves_instances else "change"
    noun = plan.noun
    what = f"roll back the {noun} for" if back else f"resume the {noun} for" if intention.skipped else verb
    yield f"{count(len(intention.tasks), 'step')} to {what} cluster {plan.cluster} through {destination}"
    signed = f"signed by {plan.signer}" if plan.signer is not None else "signature not asked for"
    yield f"  {noun} {plan.digest}, {signed}"
    yield from (f"  {word}" for word in plan.provenance.words(plan.source, plan.snapshot))
    for title in intention.skipped:
        yield f"   done  {title}"
    for task in intention.tasks:
        yield f"  {task.step:>5}. {task.title}"
        yield from (f"         {effect_words(effect)}" for effect in task.command.effects)
    declared = plan.declared_guards if isinstance(plan, Plan) else ()
    limits = {guard.name.value: f" [{guard.measure} {guard.shown_limit}]" for guard in declared}
    for guard in intention.guards:
        about = limits.get(guard.name, "") + (" (allowed)" if guard.allowed else "")
        yield f"  guard {guard.name}{about}: {guard.message}"
    for item in plan.unreadable if isinstance(plan, Plan) and not back else ():
        yield f"  not compared when the plan was made: {item.object} {'.'.join(item.path)}"
    for lost in intention.lost:
        yield f"  NOT RESTORED: {lost}"
    for note in intention.notes:
        yield f"  note: {note}"


def can_ask() -> bool:
    """Return whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def says_yes(*, back: bool) -> bool:
    """Ask whether to do what was shown; return whether the answer is yes."""
    verb = "Take it back" if back else "Do it"
    sys.stderr.write(f"{verb}? Only yes is taken for a yes: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() == "yes"
