"""Render a plan as a POSIX shell script of `gnt-*` commands, or the script that undoes it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from gpolicy import __version__
from gpolicy.data import text_templates
from gpolicy.errors import GpolicyError, RequestError
from gpolicy.ganeti.commands import shell_line
from gpolicy.plan.effects import effect_words
from gpolicy.plan.plan import Plan, check_safe
from gpolicy.plan.step import PlannedCommand, Step, StepWave, ways_back
from gpolicy.printable import count, printable

if TYPE_CHECKING:
    from jinja2 import Environment


def render_script(plan: Plan, *, rollback: bool = False) -> str:
    """Return the script that carries `plan` out, or with `rollback` the one that undoes it, last step first.

    Raise UnsafePlanError for a plan with a failed guard, GpolicyError for a step that the command line cannot make.
    """
    if rollback:
        what, lost = "Undo the plan", [text for step in plan.steps for text in step.lost]
        steps = [
            _script_step(step, f"undo step {step.id}: {step.title}", command)
            for step in ways_back(plan.steps)
            for command in step.inverse.commands
        ]
    else:
        check_safe(plan)
        what, lost = "Carry out the plan", []
        steps = [_script_step(step, step.title, step.command) for step in plan.steps]
    template = script_environment().get_template("script.sh.j2")
    return template.render(
        plan=plan,
        cluster=name_for_script(plan.cluster),
        cluster_uuid=plan.cluster_uuid,
        made=", ".join(plan.made_words),
        steps=steps,
        lost=lost,
        heading=f"{what} for cluster {plan.cluster}: {count(len(steps), 'step')}",
        rollback=rollback,
        version=__version__,
    )


def name_for_script(cluster: str) -> str:
    """Return the name that a script looks for before it does anything. Raise RequestError where nothing names it."""
    if not cluster:
        hint = "read the cluster itself, or a snapshot of it: a text file and a simulation do not name theirs"
        raise RequestError("a script needs to know its cluster, and neither policy nor state names it", hint=hint)
    return cluster


def script_environment() -> Environment:
    """Return the environment for templates of shell scripts: each value goes through a filter that quotes it."""
    environment = text_templates()
    environment.filters |= {"shell": shlex.quote, "comment": comment}
    return environment


def _script_step(step: Step, title: str, command: PlannedCommand) -> dict[str, object]:
    """Return one command as the template has it; if it fails, it is tried `twice`."""
    if command.argv is None:
        message = f"step {step.id} ({step.title}) is possible through RAPI only, not by a command"
        raise GpolicyError(message, hint="Ganeti 3.0's own command line cannot set it; leave it out of the policy")
    effects = tuple(map(effect_words, command.effects))
    line, twice = shell_line(command.argv), step.wave is StepWave.POOL
    return {"number": step.id, "title": title, "line": line, "effects": effects, "twice": twice}


def comment(text: str) -> str:
    """Return `text` on one line, so that it cannot end its comment."""
    return "".join(letter if printable(letter) == letter else "?" for letter in text)
