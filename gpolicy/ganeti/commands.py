"""The commands that change a cluster: argument lists for the `gnt-*` programs, and the same as RAPI requests.

Values in, values out. Both forms of a command end in the same stored values; what neither can express raises
InexpressibleError. Nothing here is retried, forced, or run as a trial: that is for whoever runs the command.

Source: Ganeti's own option parsers, opcodes and RAPI handlers (3.0.2), which the tests run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gpolicy.ganeti.command_options import options
from gpolicy.ganeti.expressible import Assignments, InexpressibleError, Reset, check_name, checked
from gpolicy.ganeti.parameter import Level, Path, Value
from gpolicy.ganeti.rapi_calls import RapiCall, call, fields
from gpolicy.ganeti.releases import DEFAULT_VERSION, release_key


class Route(StrEnum):
    """How a change gets to the cluster."""

    ARGV = "argv"
    RAPI = "rapi"


@dataclass(frozen=True, slots=True)
class Command:
    """One job for Ganeti, by either route; at least one is there.

    `argv` is None where the command line cannot do it (the interval of a data collector in Ganeti 3.0 and later),
    `rapi` where RAPI cannot (compression tools, an object whose name RAPI cannot address).
    """

    argv: tuple[str, ...] | None
    rapi: RapiCall | None = None


_TAG: Final = re.compile(r"[A-Za-z0-9_.+*/:@-]{1,128}")  # Ganeti takes other letters too; htools and RAPI do not
_LONGEST_ARGUMENT: Final = 128 * 1024 - 1  # bytes that Linux passes on in one argument
_PROGRAMS: Final = {Level.CLUSTER: "gnt-cluster", Level.GROUP: "gnt-group", Level.NODE: "gnt-node"}
_COLLECTIONS: Final = {Level.GROUP: "groups", Level.NODE: "nodes"}


def only_route(path: Path, *, version: str) -> Route | None:
    """Return the one route by which a cluster parameter can be set, or None if both can.

    Parameters with different routes do not fit into one `cluster_modify`.
    """
    if path[0] == "compression_tools":
        return Route.ARGV
    if path[0] == "data_collector_interval" and release_key(version) >= (3, 0):
        return Route.RAPI  # gnt-cluster of Ganeti 3 fails on every value: it compares text with a number
    return None


def cluster_modify(assignments: Assignments, *, version: str) -> Command:
    """Return the command that sets parameters of the cluster, all in one job.

    `Reset` is for hv_state and disk_state only. `std` is merged per parameter, `minmax` replaced as a whole; bounds
    and `std` that depend on one another belong into one command, and so do enabled templates and the policy's.
    """
    values = _checked(assignments, Level.CLUSTER, version)
    routes = {only_route(path, version=version) for path in values} - {None}
    if len(routes) > 1:
        raise InexpressibleError(
            (),
            sorted(".".join(path) for path in values),
            "some of these can be set on the command line only, others through RAPI only",
            "set them in separate commands",
        )
    return _command(
        ["gnt-cluster", "modify", *options(values)] if Route.RAPI not in routes else None,
        call("PUT", ("modify",), dict(fields(values))) if Route.ARGV not in routes else None,
    )


def group_add(name: str, assignments: Assignments, *, version: str = DEFAULT_VERSION) -> Command:
    """Return the command that makes a node group. Ganeti reads no reset here, and so none is taken."""
    check_name("group", name)
    for path, value in assignments.items():
        if isinstance(value, Reset):
            raise InexpressibleError(path, value, "a new group has nothing to reset", "leave it out")
    values = _checked(assignments, Level.GROUP, version, may_be_empty=True)
    body: dict[str, Value] = {"group_name": name, **fields(values)}
    return _command(["gnt-group", "add", *options(values), *_positional(name)], call("POST", ("groups",), body))


def group_modify(name: str, assignments: Assignments, *, version: str = DEFAULT_VERSION) -> Command:
    """Return the command that sets or resets own values of a group."""
    return _object_modify(Level.GROUP, name, _checked(assignments, Level.GROUP, version))


def node_modify(name: str, assignments: Assignments, *, version: str = DEFAULT_VERSION) -> Command:
    """Return the command that sets or resets own values of a node."""
    return _object_modify(Level.NODE, name, _checked(assignments, Level.NODE, version))


def _object_modify(level: Level, name: str, values: Assignments) -> Command:
    check_name(level, name)
    method = "POST" if level is Level.NODE else "PUT"
    return _command(
        [_PROGRAMS[level], "modify", *options(values), *_positional(name)],
        call(method, (_COLLECTIONS[level], name, "modify"), dict(fields(values))),
    )


def group_rename(old: str, new: str) -> Command:
    """Return the command that renames a group; its nodes, tags and networks stay with it."""
    check_name("group", old)
    check_name("group", new)
    return _command(
        ["gnt-group", "rename", *_positional(old, new)],
        call("PUT", ("groups", old, "rename"), {"new_name": new}),
    )


def group_remove(name: str) -> Command:
    """Return the command that removes a group. Ganeti refuses one that has nodes, and the last one."""
    check_name("group", name)
    return _command(["gnt-group", "remove", *_positional(name)], call("DELETE", ("groups", name)))


def assign_nodes(group: str, nodes: Iterable[str]) -> Command:
    """Return the command that moves nodes into a group.

    No node at all is refused: Ganeti would take that for every node of the cluster.
    """
    check_name("group", group)
    names = [check_name("node", node) for node in nodes]
    if not names:
        reason = "with no node named Ganeti moves every node of the cluster"
        raise InexpressibleError(("group", group, "nodes"), names, reason, "name the nodes that are to move")
    return _command(
        ["gnt-group", "assign-nodes", *_positional(group, *names)],
        call("PUT", ("groups", group, "assign-nodes"), {"nodes": list(names)}),
    )


def add_tags(level: Level, name: str | None, tags: Iterable[str]) -> Command:
    """Return the command that adds tags (in sorted order); one that is there already does no harm."""
    return _tags("add-tags", "PUT", level, name, tags)


def remove_tags(level: Level, name: str | None, tags: Iterable[str]) -> Command:
    """Return the command that removes tags. All of them must be there, or Ganeti removes none."""
    return _tags("remove-tags", "DELETE", level, name, tags)


def _tags(verb: str, method: str, level: Level, name: str | None, tags: Iterable[str]) -> Command:
    wanted = sorted(set(tags))
    if not wanted:
        raise InexpressibleError(("tags",), wanted, "a command needs at least one tag", "leave the command out")
    for tag in wanted:
        if not _TAG.fullmatch(tag):
            way_out = "write 1 to 128 ASCII letters, digits and _ . + * / : @ -"
            raise InexpressibleError(("tags",), tag, "it is no tag", way_out)
    if level is Level.CLUSTER:
        objects: tuple[str, ...] = ()
        collection: tuple[str, ...] = ()
        if name is not None:
            raise InexpressibleError(("tags",), name, "the tags of the cluster take no name", "leave the name out")
    else:
        objects = (check_name(level, name),)
        collection = (_COLLECTIONS[level], *objects)
    return _command(
        [_PROGRAMS[level], verb, *_positional(*objects, *wanted)],
        call(method, (*collection, "tags"), tags=wanted),
    )


def _checked(
    assignments: Assignments,
    level: Level,
    version: str,
    *,
    may_be_empty: bool = False,
) -> Mapping[Path, Value | Reset]:
    if not assignments and not may_be_empty:
        reason = "Ganeti would run a job that changes nothing, or refuse it"
        raise InexpressibleError((), {}, reason, "leave the command out")
    return {path: checked(path, value, level, version=version) for path, value in assignments.items()}


def _positional(*names: str) -> list[str]:
    """Return the arguments behind the options: Ganeti stops looking for options at the first that is none."""
    return ["--", *names] if names[0].startswith("-") else list(names)


def _command(argv: list[str] | None, rapi: RapiCall | None) -> Command:
    if argv is not None and any(len(word.encode()) > _LONGEST_ARGUMENT for word in argv):
        argv = None
    if argv is None and rapi is None:
        raise InexpressibleError((), "this change", "it is too long for one command", "split it")
    return Command(tuple(argv) if argv is not None else None, rapi)
