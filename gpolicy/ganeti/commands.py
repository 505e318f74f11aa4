"""The commands that change a cluster: argument lists for the `gnt-*` programs, and the same as RAPI requests.

Values in, values out. Both forms of a command end in the same stored values; what neither can express raises
InexpressibleError. Nothing here is retried, forced, or run as a trial: that is for whoever runs the command.

Options are always long ones with `=`: a value may then start with `-`, and `gnt-node modify -D` is "drained", not disk
parameters. One argument per template, hypervisor or volume group, since Ganeti keeps only the last of two.

Ganeti's RAPI daemon matches the path as it comes: it decodes no percent sign in it, and takes only letters, digits,
`_`, `.` and `-` in a name. An object with another name can be addressed by its UUID, or not at all. Query arguments
are decoded, and so a tag may hold any character of its grammar.

Source: Ganeti's own option parsers, opcodes and RAPI handlers (3.0.2), which the tests run.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final
from urllib.parse import quote

from gpolicy.ganeti.expressible import DEFAULT_WORD, Assignments, InexpressibleError, Reset, check_name, checked
from gpolicy.ganeti.parameters import parameter_at, position, unflatten
from gpolicy.ganeti.releases import DEFAULT_VERSION, release_key
from gpolicy.ganeti.vocabulary import Level, Path, Type, Value

_RESERVED_PREFIXES: Final = ("no_", "-")  # in front of an ident they mean "remove it", not a name
_COMMAND_NAME: Final = re.compile(r"\A[a-z]+(-[a-z]+)+")


def escape(text: str) -> str:
    r"""Return `text` with `\` and `,` behind a backslash: an item of a list that Ganeti unescapes."""
    return text.replace("\\", "\\\\").replace(",", "\\,")


def key_values(values: Mapping[str, str | None]) -> str:
    """Return `key=value,…`, for None `-key`. A value may hold any character; a key may not be empty or hold `=`.

    A key that starts with `no_` or `-` is an ordinary one here: those prefixes mean something only at the start of an
    item without `=`, and each of ours begins with a `-` that Ganeti takes away.
    """
    for key in values:
        if not key or "=" in key:
            raise ValueError(f"{key!r} cannot be a key: the first '=' ends it")
    return ",".join(escape(f"-{key}" if value is None else f"{key}={value}") for key, value in values.items())


def ident_key_values(ident: str, values: Mapping[str, str]) -> str:
    """Return `ident:key=value,…`: the parameters of one template, hypervisor or volume group (`plain/xenvg`)."""
    if not ident or ":" in ident or ident.startswith(_RESERVED_PREFIXES):
        raise ValueError(f"{ident!r} cannot be written in front of ':'")
    return f"{ident}:{key_values(values)}"


def bounds(pairs: Sequence[Mapping[str, Mapping[str, int]]]) -> str:
    """Return `min:…/max:…//min:…/max:…`, the whole list of sizes (`--ipolicy-bounds-specs`)."""
    return "//".join(
        "/".join(
            ident_key_values(bound, {name: str(value) for name, value in pair[bound].items()})
            for bound in ("min", "max")
        )
        for pair in pairs
    )


def uid_ranges(ranges: Iterable[tuple[int, int]]) -> str:
    """Return `low-high,single,…` (`--uid-pool`); both ends count."""
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def seconds(microseconds: int) -> str:
    """Return the text that Ganeti 2.x turns into exactly this many µs: it multiplies by 1e6 and cuts off."""
    value = microseconds / 1e6
    if int(1e6 * value) == microseconds:
        return repr(value)
    return repr((microseconds + 0.5) / 1e6)  # half a microsecond above, which the cut takes away again


def shell_line(argv: Sequence[str]) -> str:
    """Return one POSIX shell command that runs `argv`, newlines in quotes. Raise ValueError for none, and for NUL."""
    if not argv:
        raise ValueError("no command to write")
    if any("\0" in word for word in argv):
        raise ValueError("an argument cannot hold a NUL character")
    first = argv[0]
    # A bare first word might be an assignment, a keyword, a function or an alias of the shell.
    command = first if _COMMAND_NAME.fullmatch(first) else "'" + first.replace("'", "'\\''") + "'"
    return " ".join((command, *map(shlex.quote, argv[1:])))


_PER_IDENT: Final = {
    "diskparams": "--disk-parameters",
    "disk_state": "--disk-state",
    "hv_state": "--hypervisor-state",
    "hvparams": "--hypervisor-parameters",
}
_FLAT: Final = {
    "ndparams": "--node-parameters",
    "beparams": "--backend-parameters",
    "nicparams": "--nic-parameters",
    "enabled_data_collectors": "--enabled-data-collectors",
    "data_collector_interval": "--data-collector-interval",
}
_GROUP_OPTIONS: Final[dict[Path, str]] = {("alloc_policy",): "--alloc-policy"}
_SPLIT_WITHOUT_ESCAPES: Final[set[Path]] = {
    ("enabled_disk_templates",),
    ("enabled_hypervisors",),
    ("compression_tools",),
}


def options(assignments: Assignments) -> list[str]:
    """Return the options for checked assignments, in the order of the table of parameters."""
    ordered = dict(sorted(assignments.items(), key=lambda item: position(item[0])))
    families: dict[str, dict[Path, Value | Reset]] = {}
    for path, value in ordered.items():
        families.setdefault(path[0], {})[path] = value
    return [f"{name}={text}" for values in families.values() for name, text in _family(values)]


def _family(values: Assignments) -> Iterator[tuple[str, str]]:
    family = next(iter(values))[0]
    if family == "ipolicy":
        yield from _ipolicy(values)
    elif family in _PER_IDENT:
        idents: dict[str, dict[str, str]] = {}
        for path, value in values.items():
            idents.setdefault("/".join(path[1:-1]), {})[path[-1]] = _value_in_list(path, value)
        yield from ((_PER_IDENT[family], ident_key_values(ident, texts)) for ident, texts in idents.items())
    elif family in _FLAT:
        yield _FLAT[family], key_values({path[1]: _value_in_list(path, value) for path, value in values.items()})
    else:
        yield from (_single(path, value) for path, value in values.items())


def _ipolicy(values: Assignments) -> Iterator[tuple[str, str]]:
    std = {path[2]: _value_in_list(path, value) for path, value in values.items() if path[1] == "std"}
    for path, value in values.items():
        if path[1] == "minmax":
            text = DEFAULT_WORD if isinstance(value, Reset) else bounds(value)  # type: ignore[arg-type]
            yield "--ipolicy-bounds-specs", text
        elif path[1] == "disk-templates":
            yield "--ipolicy-disk-templates", _items(path, value)
        elif path[1] != "std":
            yield f"--ipolicy-{path[1]}", _value_in_list(path, value)
    if std:
        yield "--ipolicy-std-specs", key_values(std)


def _items(path: Path, value: Value | Reset) -> str:
    if isinstance(value, Reset):
        return DEFAULT_WORD
    assert isinstance(value, list)  # noqa: S101 (checked before)
    return ",".join(str(item) if path in _SPLIT_WITHOUT_ESCAPES else escape(str(item)) for item in value)


def _single(path: Path, value: Value | Reset) -> tuple[str, str]:
    """Return the option of a parameter that has one of its own; here booleans are yes and no."""
    parameter = parameter_at(path)
    assert parameter is not None  # noqa: S101 (checked before)
    name = parameter.option or _GROUP_OPTIONS[path]
    match parameter.type, value:
        case Type.BOOL, bool():
            return name, "yes" if value else "no"
        case ((Type.LIST | Type.SET), _):
            return name, _items(path, value)
        case Type.DICT, dict():
            return name, key_values(value)  # type: ignore[arg-type]
        case Type.UID_RANGES, list():
            return name, uid_ranges(value)  # type: ignore[arg-type]
    return name, _value_in_list(path, value)


def _value_in_list(path: Path, value: Value | Reset) -> str:
    """Return a value inside a parameter list; here booleans are true and false."""
    match value:
        case Reset():
            return DEFAULT_WORD
        case bool():
            return "true" if value else "false"
        case int() if path[0] == "data_collector_interval":
            return seconds(value)
    return str(value)


_ADDRESSABLE: Final = re.compile(r"[A-Za-z0-9_.-]+")
_REASON: Final = 100  # what carrying a plan out adds to the query: a mark to find the job by
_LONGEST_PATH: Final = 8192 - len("DELETE  HTTP/1.1\r\n") - _REASON  # the daemon refuses a longer start line


@dataclass(frozen=True, slots=True)
class RapiCall:
    """One request to RAPI. `path` holds the query; `body` is sent as application/json, or not at all if None."""

    method: str
    path: str
    body: Value = None


def call(method: str, path: Iterable[str], body: Value = None, *, tags: Iterable[str] = ()) -> RapiCall | None:
    """Return the request for `/2/…`, or None if RAPI cannot address the object or take so long a request."""
    parts = list(path)
    if any(not _ADDRESSABLE.fullmatch(part) or part in {".", ".."} for part in parts):
        return None
    query = "&".join(f"tag={quote(tag, safe='')}" for tag in tags)
    address = "/".join(("/2", *parts)) + (f"?{query}" if query else "")
    return RapiCall(method, address, body) if len(address) <= _LONGEST_PATH else None


def fields(assignments: Assignments) -> dict[str, Value]:
    """Return checked assignments as fields of the opcode: nested, by the names under which they are written."""
    found: dict[Path, Value] = {}
    for path, value in sorted(assignments.items(), key=lambda item: position(item[0])):
        parameter = parameter_at(path[:1])  # `volume_group_name` is written as `vg_name`
        name = parameter.opcode or path[0] if parameter is not None else path[0]
        reset: Value = [DEFAULT_WORD] if path == ("ipolicy", "disk-templates") else DEFAULT_WORD
        found[name, *path[1:]] = reset if isinstance(value, Reset) else value
    return unflatten(found)


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


TAG: Final = re.compile(r"[A-Za-z0-9_.+*/:@-]{1,128}")  # Ganeti takes other letters too; htools and RAPI do not
_LONGEST_ARGUMENT: Final = 128 * 1024 - 1  # bytes that Linux passes on in one argument
_PROGRAMS: Final = {Level.CLUSTER: "gnt-cluster", Level.GROUP: "gnt-group", Level.NODE: "gnt-node"}
_COLLECTIONS: Final = {Level.GROUP: "groups", Level.NODE: "nodes"}


def only_route(path: Path, *, version: str) -> Route | None:
    """Return the one route that sets a cluster parameter, None if both can; one `cluster_modify` takes one route."""
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
        reason = "some of these can be set on the command line only, others through RAPI only"
        raise InexpressibleError((), sorted(map(".".join, values)), reason, "set them in separate commands")
    argv = ["gnt-cluster", "modify", *options(values)] if Route.RAPI not in routes else None
    return _command(argv, call("PUT", ("modify",), fields(values)) if Route.ARGV not in routes else None)


def group_add(name: str, assignments: Assignments, *, version: str = DEFAULT_VERSION) -> Command:
    """Return the command that makes a node group. Ganeti reads no reset here, and so none is taken."""
    check_name("group", name)
    for path, value in assignments.items():
        if isinstance(value, Reset):
            raise InexpressibleError(path, value, "a new group has nothing to reset", "leave it out")
    values = _checked(assignments, Level.GROUP, version, may_be_empty=True)
    body: dict[str, Value] = {"group_name": name, **fields(values)}
    return _command(["gnt-group", "add", *options(values), *_positional(name)], call("POST", ("groups",), body))


def object_modify(level: Level, name: str, assignments: Assignments, *, version: str = DEFAULT_VERSION) -> Command:
    """Return the command that sets or resets own values of a group or a node."""
    values = _checked(assignments, level, version)
    check_name(level, name)
    method = "POST" if level is Level.NODE else "PUT"
    argv = [_PROGRAMS[level], "modify", *options(values), *_positional(name)]
    return _command(argv, call(method, (_COLLECTIONS[level], name, "modify"), fields(values)))


def group_rename(old: str, new: str) -> Command:
    """Return the command that renames a group; its nodes, tags and networks stay with it."""
    check_name("group", old)
    check_name("group", new)
    request = call("PUT", ("groups", old, "rename"), {"new_name": new})
    return _command(["gnt-group", "rename", *_positional(old, new)], request)


def group_remove(name: str) -> Command:
    """Return the command that removes a group. Ganeti refuses one that has nodes, and the last one."""
    check_name("group", name)
    return _command(["gnt-group", "remove", *_positional(name)], call("DELETE", ("groups", name)))


def assign_nodes(group: str, nodes: Iterable[str]) -> Command:
    """Return the command that moves nodes into a group: at least one, as Ganeti would take none for every node."""
    check_name("group", group)
    names = [check_name("node", node) for node in nodes]
    if not names:
        reason = "with no node named Ganeti moves every node of the cluster"
        raise InexpressibleError(("group", group, "nodes"), names, reason, "name the nodes that are to move")
    request = call("PUT", ("groups", group, "assign-nodes"), {"nodes": list(names)})
    return _command(["gnt-group", "assign-nodes", *_positional(group, *names)], request)


def _tag_command(verb: str, method: str, level: Level, name: str | None, tags: Iterable[str]) -> Command:
    wanted = sorted(set(tags))
    if not wanted:
        raise InexpressibleError(("tags",), wanted, "a command needs at least one tag", "leave the command out")
    for tag in wanted:
        if not TAG.fullmatch(tag):
            way_out = "write 1 to 128 ASCII letters, digits and _ . + * / : @ -"
            raise InexpressibleError(("tags",), tag, "it is no tag", way_out)
    if level is Level.CLUSTER and name is not None:
        raise InexpressibleError(("tags",), name, "the tags of the cluster take no name", "leave the name out")
    objects = () if level is Level.CLUSTER else (check_name(level, name),)
    collection = (_COLLECTIONS[level], *objects) if objects else ()
    argv = [_PROGRAMS[level], verb, *_positional(*objects, *wanted)]
    return _command(argv, call(method, (*collection, "tags"), tags=wanted))


add_tags: Final = partial(_tag_command, "add-tags", "PUT")
"""The command that adds tags (in sorted order) to an object; one that is there already does no harm."""
remove_tags: Final = partial(_tag_command, "remove-tags", "DELETE")
"""The command that removes tags. All of them must be there, or Ganeti removes none."""


def _checked(
    assignments: Assignments, level: Level, version: str, *, may_be_empty: bool = False
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
