"""The fields of opcodes that gnt-cluster, gnt-group and gnt-node make from their arguments.

A reader of its own, after Ganeti's option grammar (keyval, identkeyval, multilistidentkeyval, lists): it shares
nothing with what writes the arguments but the table of types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from gpolicy.ganeti.parameters import PARAMETERS, parameter_at
from gpolicy.ganeti.vocabulary import Path, Type

Tree = dict[str, Any]
_IDENT: Final = {
    "--disk-parameters": "diskparams",
    "--hypervisor-state": "hv_state",
    "--hypervisor-parameters": "hvparams",
}
_FLAT: Final = {"--node-parameters": "ndparams", "--backend-parameters": "beparams", "--nic-parameters": "nicparams"}
_RATIOS: Final = {"--ipolicy-vcpu-ratio": "vcpu-ratio", "--ipolicy-spindle-ratio": "spindle-ratio"}
_KINDS: Final = {"gnt-cluster": "cluster", "gnt-group": "nodegroup", "gnt-node": "node"}
_SINGLES: Final = {item.option: item for item in PARAMETERS if item.option}


class ArgumentsError(Exception):
    """The command would end with an error of usage."""


def opcode_of(argv: Sequence[str]) -> Tree:
    """Return the opcode that a command submits."""
    program, verb, *rest = argv
    given, names = _parted(rest)
    match program, verb:
        case "gnt-cluster", "modify":
            return {"OP_ID": "OP_CLUSTER_SET_PARAMS", **_fields(given)}
        case "gnt-group", ("add" | "modify") as what:
            job = "OP_GROUP_ADD" if what == "add" else "OP_GROUP_SET_PARAMS"
            return {"OP_ID": job, "group_name": _one(names), **_fields(given)}
        case "gnt-node", "modify":
            return {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": _one(names), **_fields(given)}
        case "gnt-group", "rename":
            old, new = names
            return {"OP_ID": "OP_GROUP_RENAME", "group_name": old, "new_name": new}
        case "gnt-group", "remove":
            return {"OP_ID": "OP_GROUP_REMOVE", "group_name": _one(names)}
        case "gnt-group", "assign-nodes":
            return {"OP_ID": "OP_GROUP_ASSIGN_NODES", "group_name": names[0], "nodes": names[1:]}
        case program, ("add-tags" | "remove-tags") as what if program in _KINDS:
            owner = None if program == "gnt-cluster" else names[0]
            tags = names if owner is None else names[1:]
            job = "OP_TAGS_SET" if what == "add-tags" else "OP_TAGS_DEL"
            return {"OP_ID": job, "kind": _KINDS[program], "name": owner, "tags": tags}
    raise ArgumentsError(f"no command {program} {verb}")


def _one(names: list[str]) -> str:
    if len(names) != 1:
        raise ArgumentsError(f"one name is wanted, not {names}")
    return names[0]


def _parted(words: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    given: list[tuple[str, str]] = []
    for index, word in enumerate(words):
        if word == "--":
            return given, words[index + 1 :]
        if not word.startswith("-"):
            return given, words[index:]
        name, equals, value = word.partition("=")
        if not equals:
            raise ArgumentsError(f"{word} without a value")
        given.append((name, value))
    return given, []


def _fields(given: list[tuple[str, str]]) -> Tree:
    fields: Tree = {}
    for name, text in given:
        if name in _IDENT:
            ident, _, values = text.partition(":")
            family = _IDENT[name]
            fields.setdefault(family, {})[ident] = _key_values((family, ident), values)
        elif name == "--disk-state":
            ident, _, values = text.partition(":")
            storage, _, volume_group = ident.partition("/")
            path = ("disk_state", storage, volume_group)
            fields.setdefault("disk_state", {}).setdefault(storage, {})[volume_group] = _key_values(path, values)
        elif name in _FLAT:
            fields[_FLAT[name]] = _key_values((_FLAT[name],), text)
        elif name == "--alloc-policy":
            fields["alloc_policy"] = text
        elif name in _RATIOS:
            fields.setdefault("ipolicy", {})[_RATIOS[name]] = text if text == "default" else float(text)
        elif name == "--ipolicy-disk-templates":
            fields.setdefault("ipolicy", {})["disk-templates"] = _split(text)
        elif name == "--ipolicy-std-specs":
            fields.setdefault("ipolicy", {})["std"] = {key: int(value) for key, value in _pairs(text)}
        elif name == "--ipolicy-bounds-specs":
            fields.setdefault("ipolicy", {})["minmax"] = text if text == "default" else _bounds(text)
        elif name in _SINGLES:
            item = _SINGLES[name]
            fields[item.opcode or item.path[0]] = _single(item.type, text)
        else:
            raise ArgumentsError(f"no option {name}")
    return fields


def _bounds(text: str) -> list[Tree]:
    made = []
    for pair in text.split("//"):
        halves = dict(half.partition(":")[::2] for half in pair.split("/"))
        made.append({bound: {key: int(value) for key, value in _pairs(halves[bound])} for bound in ("min", "max")})
    return made


def _split(text: str) -> list[str]:
    """Split at commas that no backslash stands before."""
    parts, current, escaped = list[str](), "", False
    for letter in text:
        if escaped:
            current, escaped = current + letter, False
        elif letter == "\\":
            escaped = True
        elif letter == ",":
            parts, current = [*parts, current], ""
        else:
            current += letter
    return [*parts, current]


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for part in _split(text):
        key, equals, value = part.partition("=")
        if not equals:
            raise ArgumentsError(f"{part!r} has no value")
        pairs.append((key, value))
    return pairs


def _key_values(path: Path, text: str) -> Tree:
    return {key: _typed((*path, key), value) for key, value in _pairs(text)}


def _typed(path: Path, text: str) -> Any:
    parameter = parameter_at(path)
    if parameter is None:
        raise ArgumentsError(f"no parameter {'.'.join(path)}")
    return text if text == "default" and path[0] != "hvparams" else _value(parameter.type, text)


def _value(kind: Type, text: str) -> Any:
    match kind:
        case Type.INT | Type.SIZE | Type.MIB:
            return int(text)
        case Type.FLOAT:
            return float(text)
        case Type.BOOL:
            return {"true": True, "false": False, "yes": True, "no": False}[text]
    return text


def _single(kind: Type, text: str) -> Any:
    if kind in (Type.LIST, Type.SET):
        return text.split(",") if text else []
    return _value(kind, text)
