"""The commands that move an instance, word by word: their requests to RAPI, and where each leads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from gpolicy.ganeti.commands import Command, call
from gpolicy.ganeti.parameter import Value

_WITHOUT_TARGET: Final = {"migrate", "failover"}
_WITH_TARGET: Final = {"migrate", "failover", "move", "replace-disks"}


def target_of(argv: Sequence[str]) -> str | None:
    """Return the node that a command names."""
    return argv[argv.index("-n") + 1] if "-n" in argv else None


def command_of(argv: tuple[str, ...]) -> Command:
    """Return a command that moves an instance, and the same as a request to RAPI; that has none for `move`."""
    verb, name, target = argv[1], argv[-1], target_of(argv)
    if verb == "move":
        return Command(argv)
    if verb == "replace-disks":
        body: dict[str, Value] = {"mode": "replace_new_secondary", "remote_node": target}
        return Command(argv, call("POST", ("instances", name, verb), body))
    return Command(argv, call("PUT", ("instances", name, verb), {} if target is None else {"target_node": target}))


def is_move(argv: Sequence[str], instance: str) -> bool:
    """Whether `argv` is, word by word, a command that remedies have for moves of `instance`."""
    verb = argv[1] if len(argv) > 1 else ""
    force = () if verb == "replace-disks" else ("-f",)
    where = ("-n", argv[-2]) if verb in _WITH_TARGET and len(argv) == 5 + len(force) else ()
    if not where and verb not in _WITHOUT_TARGET:
        return False
    return (*argv,) == ("gnt-instance", verb, *force, *where, instance)


def places_of(nodes: Sequence[str], commands: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the nodes of an instance, primary and secondary, before and after each of the commands."""
    found = [tuple(nodes)]
    for argv in commands:
        target, (primary, *secondary) = target_of(argv), found[-1]
        if target is None:
            found.append((*secondary, primary))
        elif argv[1] == "replace-disks":
            found.append((primary, target))
        else:
            found.append((target, *secondary))
    return found
