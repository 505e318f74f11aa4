"""The inverse of a step: the commands that restore the values before it, and in words what no command restores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from gpolicy.ganeti import commands
from gpolicy.ganeti.commands import Command
from gpolicy.ganeti.expressible import RESET, Assignments, InexpressibleError, Reset
from gpolicy.ganeti.parameter import Level, Path, Value
from gpolicy.ganeti.parameters import default_in, parameter_at
from gpolicy.plan.effects import Effect, assigned
from gpolicy.plan.step import Inverse, planned


def made(makers: Iterable[tuple[Callable[[], Command], tuple[Effect, ...]]]) -> Inverse:
    """Return the inverse that runs these commands, each with its effects; only a reason if one cannot be expressed."""
    try:
        return Inverse(tuple(planned(make(), effects) for make, effects in makers))
    except InexpressibleError as error:
        return Inverse((), (error.message,))


def inverse_of(
    level: Level, name: str | None, before: Mapping[Path, Value], after: Mapping[Path, Value | Reset], version: str
) -> Inverse:
    """Return what restores the values `before` after a step has set those of `after`."""
    values, lost = expressible(level, name, before, version)
    if not values:
        return Inverse((), lost)
    label = level.value if name is None else f"{level.value}/{name}"
    forward = {effect.path: effect for effect in assigned(label, {}, after)}
    effects = assigned(label, {path: effect.after for path, effect in forward.items()}, _stored(level, values, version))
    back = made([(partial(_modify, level, name, values, version), effects)])
    return replace(back, not_restored=(*lost, *back.not_restored))


def _stored(level: Level, values: Assignments, version: str) -> Assignments:
    """Return the stored form of `values`: own values of the cluster are reset to Ganeti's defaults, not removed."""
    if level is not Level.CLUSTER:
        return values
    defaults = {path: _default_at(path, version) for path, value in values.items() if value is RESET}
    return {path: value for path, value in {**values, **defaults}.items() if value is not None}


def expressible(
    level: Level, name: str | None, before: Mapping[Path, Value], version: str
) -> tuple[Assignments, tuple[str, ...]]:
    """Return the values that a command can restore, and in words those that no command can."""
    values: dict[Path, Value | Reset] = {}
    lost: list[str] = []
    for path, value in before.items():
        wanted: Value | Reset = RESET if value is None else value
        try:
            _modify(level, name, {path: wanted}, version)
        except InexpressibleError as error:
            lost.append(error.message)
        else:
            values[path] = wanted
            if level is Level.CLUSTER and wanted is RESET:
                lost.append(f"{'.'.join(path)} stays, with Ganeti's default: the cluster's entry cannot be removed")
    return values, tuple(lost)


def _default_at(path: Path, version: str) -> Value:
    """Return Ganeti's built-in default of the parameter at `path`; None where it has none."""
    parameter = parameter_at(path)
    return None if parameter is None else default_in(parameter, version)


def _modify(level: Level, name: str | None, values: Assignments, version: str) -> Command:
    if level is Level.CLUSTER:
        return commands.cluster_modify(values, version=version)
    modify = commands.group_modify if level is Level.GROUP else commands.node_modify
    return modify(name or "", values, version=version)
