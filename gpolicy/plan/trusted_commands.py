"""What a plan file may make Ganeti do: the commands and requests that plans hold, in their exact form, and no other.

A plan passes through review, storage and other people's hands before it is carried out, as root.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from gpolicy.cluster.json_input import Record
from gpolicy.errors import InputError
from gpolicy.ganeti.command_options import option_names
from gpolicy.ganeti.parameter import Level
from gpolicy.ganeti.rapi_calls import RapiCall, field_names

_LEVELS: Final = {"gnt-cluster": Level.CLUSTER, "gnt-group": Level.GROUP, "gnt-node": Level.NODE}
_VERBS: Final = {
    Level.CLUSTER: frozenset({"modify", "add-tags", "remove-tags"}),
    Level.GROUP: frozenset({"add", "modify", "rename", "remove", "assign-nodes", "add-tags", "remove-tags"}),
    Level.NODE: frozenset({"modify", "add-tags", "remove-tags"}),
}
_WITH_OPTIONS: Final = frozenset({"add", "modify"})
_NAME: Final = r"(?!\.\.?(?:/|$))[A-Za-z0-9_.-]+"
_REQUESTS: Final = {
    ("PUT", r"/2/modify"): "cluster",
    ("POST", r"/2/groups"): "new group",
    ("PUT", rf"/2/groups/{_NAME}/modify"): "group",
    ("PUT", rf"/2/groups/{_NAME}/rename"): "rename",
    ("PUT", rf"/2/groups/{_NAME}/assign-nodes"): "nodes",
    ("DELETE", rf"/2/groups/{_NAME}"): "nothing",
    ("POST", rf"/2/nodes/{_NAME}/modify"): "node",
    ("PUT", rf"/2/(?:groups/{_NAME}/|nodes/{_NAME}/)?tags"): "tags",
    ("DELETE", rf"/2/(?:groups/{_NAME}/|nodes/{_NAME}/)?tags"): "tags",
}
"""Methods and paths of requests, and what their body holds."""
_TAG: Final = re.compile(r"[A-Za-z0-9_.+*/:@-]{1,128}")
_LONGEST_SHOWN: Final = 40


def check_argv(words: Sequence[str], where: str) -> tuple[str, ...]:
    """Return an argument list of a plan file. Raise InputError for any that no plan holds."""
    argv = tuple(words)
    level = _LEVELS.get(argv[0]) if argv else None
    if level is None or len(argv) < 2 or argv[1] not in _VERBS[level]:
        raise InputError(f"{where}: would run {' '.join(argv[:2])[:_LONGEST_SHOWN]!r}, which is no command of a plan")
    if any("\0" in word for word in argv):
        raise InputError(f"{where}: holds a null character, which no command can carry")
    options, names = _parted(argv[2:])
    for option in options:
        if argv[1] not in _WITH_OPTIONS or option.partition("=")[0] not in option_names(level) or "=" not in option:
            raise InputError(f"{where}: {option[:_LONGEST_SHOWN]!r} is no option of {' '.join(argv[:2])} in a plan")
    if argv[1] == "assign-nodes" and len(names) < 2:
        raise InputError(f"{where}: assign-nodes without a node would move every node of the cluster")
    if not _counts(level, argv[1], len(names)) or (argv[:2] == ("gnt-cluster", "modify") and not options):
        raise InputError(f"{where}: {' '.join(argv[:2])} with {len(names)} names is no command of a plan")
    return argv


def _parted(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the options and the names behind them, as Ganeti's option parser takes them apart."""
    for index, word in enumerate(words):
        if word == "--":
            return words[:index], words[index + 1 :]
        if not word.startswith("-"):
            return words[:index], words[index:]
    return words, ()


def _counts(level: Level, verb: str, names: int) -> bool:
    owners = 0 if level is Level.CLUSTER else 1
    match verb:
        case "add-tags" | "remove-tags":
            return names > owners
        case "rename":
            return names == 2
        case "assign-nodes":
            return names > 1
    return names == owners


def check_rapi(written: Record) -> RapiCall:
    """Return a request of a plan file. Raise InputError for any that no plan holds."""
    method, address, body = written.text("method"), written.text("path"), written.fields.get("body")
    path, _, query = address.partition("?")
    what = next(
        (
            holds
            for (known, pattern), holds in _REQUESTS.items()
            if known == method and re.fullmatch(pattern, path, re.ASCII)
        ),
        None,
    )
    if what is None:
        shown = f"{method} {path}"[:_LONGEST_SHOWN]
        raise InputError(f"{written.where}: would ask {shown!r}, which is no request of a plan")
    if what in ("tags", "nothing"):
        tags = [part.partition("=") for part in query.split("&")] if query else []
        good = all(key == "tag" and _TAG.fullmatch(unquote(value)) for key, _, value in tags)
        if body is not None or not good or bool(tags) != (what == "tags"):
            raise InputError(f"{written.where}: {method} {path} with this query or body is no request of a plan")
        return RapiCall(method, address)
    if query:
        raise InputError(f"{written.where}: {method} {path} takes no query in a plan")
    _check_body(what, written.record("body"))
    return RapiCall(method, address, body)


def _check_body(what: str, body: Record) -> None:
    match what:
        case "nodes":
            if body.fields.keys() != {"nodes"} or not all(body.texts("nodes")) or not body.items("nodes"):
                raise InputError(f"{body.where}: assign-nodes needs nodes; without one it would move all of them")
            return
        case "rename":
            allowed, needed = frozenset({"new_name"}), {"new_name"}
        case "new group":
            allowed, needed = field_names(Level.GROUP) | {"group_name"}, {"group_name"}
        case _:
            allowed, needed = field_names(Level(what)), set[str]()
    for key in sorted(needed):
        body.name(key)
    extra = sorted(body.fields.keys() - allowed)
    if extra or not body.fields:
        reason = f"holds {extra[0][:_LONGEST_SHOWN]!r}" if extra else "is empty"
        raise InputError(f"{body.where}: {reason}, which is no request of a plan")
