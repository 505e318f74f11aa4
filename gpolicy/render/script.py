"""Render a plan as a POSIX shell script of `gnt-*` commands, or the script that undoes it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from gpolicy import __version__
from gpolicy.data import data_directory
from gpolicy.errors import ExitCode, GpolicyError
from gpolicy.ganeti.grammar import shell_line
from gpolicy.plan.effect_words import effect_words
from gpolicy.plan.plan_file import PlanFile, PlannedCommand, PlannedStep
from gpolicy.plan.step import Wave
from gpolicy.printable import printable


class UnsafePlanError(GpolicyError):
    """A guard of the plan fails: a verdict on the plan, not a fault."""

    exit_code = ExitCode.FINDINGS


@dataclass(frozen=True, slots=True)
class ScriptStep:
    """One command of a script: the number of its step in the plan, what it does, its shell line, how often to try.

    `effects` say what becomes of each value.
    """

    number: str
    title: str
    line: str
    effects: tuple[str, ...]
    tries: int = 1


def render_script(plan: PlanFile, *, rollback: bool = False) -> str:
    """Return the script that carries `plan` out, or with `rollback` the one that undoes it, last step first.

    Raise UnsafePlanError for a plan with a failed guard, GpolicyError for a step that the command line cannot make.
    """
    if plan.failed_guards and not rollback:
        reasons = "; ".join(plan.failed_guards)
        hint = "mend the policy, or make the plan again with --allow NAME for each guard that may be passed"
        raise UnsafePlanError(f"the plan is not safe: {reasons}", hint=hint)
    steps = list(_undo(plan.steps) if rollback else _do(plan.steps))
    lost = [f"step {step.id}: {reason}" for step in plan.steps for reason in step.not_restored] if rollback else []
    what = "Undo the plan" if rollback else "Carry out the plan"
    heading = f"{what} for cluster {plan.cluster}: {len(steps)} steps"
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415 (only rendering needs it)

    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, autoescape=False)  # noqa: S701 (a shell script: quoted by the filters)
    environment.filters |= {"shell": shlex.quote, "comment": comment}
    template = environment.from_string((data_directory("templates") / "script.sh.j2").read_text(encoding="utf-8"))
    return template.render(plan=plan, steps=steps, lost=lost, heading=heading, rollback=rollback, version=__version__)


def _do(steps: tuple[PlannedStep, ...]) -> Iterator[ScriptStep]:
    for step in steps:
        yield _script_step(step, step.title, step.command)


def _undo(steps: tuple[PlannedStep, ...]) -> Iterator[ScriptStep]:
    """Yield the inverses, last step first, but the candidate pool at the end: its job may die and stop the script."""
    backwards = [*reversed(steps)]
    for step in sorted(backwards, key=lambda step: step.wave == Wave.POOL):
        for command in step.inverse:
            yield _script_step(step, f"undo step {step.id}: {step.title}", command)


def _script_step(step: PlannedStep, title: str, command: PlannedCommand) -> ScriptStep:
    effects = tuple(effect_words(effect) for effect in command.effects)
    return ScriptStep(step.id, title, _line(step, command.argv), effects, _tries(step))


def _tries(step: PlannedStep) -> int:
    return 2 if step.wave == Wave.POOL else 1


def _line(step: PlannedStep, argv: tuple[str, ...] | None) -> str:
    if argv is None:
        message = f"step {step.id} ({step.title}) can be made through RAPI only, not by a command"
        raise GpolicyError(message, hint="Ganeti 3.0's own command line cannot set it; leave it out of the policy")
    return shell_line(argv)


def comment(text: str) -> str:
    """Return `text` on one line, so that it cannot end the comment that it stands in."""
    return "".join(letter if printable(letter) == letter else "?" for letter in text)
