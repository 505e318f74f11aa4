"""Options of gnt-cluster, gnt-group and gnt-node that carry assignments.

Always the long option with `=`: a value may then start with `-`, and `gnt-node modify -D` is "drained", not disk
parameters. One argument per template, hypervisor or volume group, since Ganeti keeps only the last of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from gpolicy.ganeti import grammar
from gpolicy.ganeti.expressible import DEFAULT_WORD, Assignments, Reset
from gpolicy.ganeti.parameter import Path, Type, Value
from gpolicy.ganeti.parameters import parameter_at, position

_PER_IDENT: Final = {
    "diskparams": "--disk-parameters",
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
    elif family == "disk_state":
        for ident, texts in _by_ident(values, depth=3):
            yield "--disk-state", grammar.ident_key_values(grammar.state_ident(*ident), texts)
    elif family in _PER_IDENT:
        for ident, texts in _by_ident(values, depth=2):
            yield _PER_IDENT[family], grammar.ident_key_values(ident[0], texts)
    elif family in _FLAT:
        yield _FLAT[family], grammar.key_values({path[1]: _text(path, value) for path, value in values.items()})
    else:
        yield from (_single(path, value) for path, value in values.items())


def _by_ident(values: Assignments, *, depth: int) -> Iterable[tuple[tuple[str, ...], Mapping[str, str]]]:
    """Return the parameters of each ident (the path's keys behind the family, up to `depth`) as text."""
    idents: dict[tuple[str, ...], dict[str, str]] = {}
    for path, value in values.items():
        idents.setdefault(path[1:depth], {})[path[-1]] = _text(path, value)
    return idents.items()


def _ipolicy(values: Assignments) -> Iterator[tuple[str, str]]:
    std = {path[2]: _text(path, value) for path, value in values.items() if path[1] == "std"}
    for path, value in values.items():
        if path[1] == "minmax":
            yield "--ipolicy-bounds-specs", _bounds(value)
        elif path[1] == "disk-templates":
            yield "--ipolicy-disk-templates", _items(path, value)
        elif path[1] != "std":
            yield f"--ipolicy-{path[1]}", _text(path, value)
    if std:
        yield "--ipolicy-std-specs", grammar.key_values(std)


def _bounds(value: Value | Reset) -> str:
    return DEFAULT_WORD if isinstance(value, Reset) else grammar.bounds(value)  # type: ignore[arg-type]


def _items(path: Path, value: Value | Reset) -> str:
    if isinstance(value, Reset):
        return DEFAULT_WORD
    assert isinstance(value, list)  # noqa: S101 (checked before)
    join = grammar.plain_list if path in _SPLIT_WITHOUT_ESCAPES else grammar.escaped_list
    return join([str(item) for item in value])


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
            return name, grammar.key_values(value)  # type: ignore[arg-type]
        case Type.UID_RANGES, list():
            return name, grammar.uid_ranges(value)  # type: ignore[arg-type]
    return name, _text(path, value)


def _text(path: Path, value: Value | Reset) -> str:
    """Return a value inside a parameter list; here booleans are true and false."""
    match value:
        case Reset():
            return DEFAULT_WORD
        case bool():
            return "true" if value else "false"
        case int() if path[0] == "data_collector_interval":
            return grammar.seconds(value)
    return str(value)
