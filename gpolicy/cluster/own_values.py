"""Reading own values as Ganeti stores or sends them: by the paths of the parameter table, with checked types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from gpolicy.cluster.record import Record, kind_of, shown
from gpolicy.errors import InputError
from gpolicy.ganeti.parameter import Level, Path, Type, Value, Values
from gpolicy.ganeti.parameters import parameter_at, parameters_of
from gpolicy.ganeti.values import FAMILIES, flatten
from gpolicy.ganeti.vocabulary import ALLOC_POLICIES

CLUSTER_SINGLES: Final = tuple(
    parameter.name for parameter in parameters_of(Level.CLUSTER) if parameter.family not in FAMILIES
)
"""Parameters of the cluster that are a key of their own. Every other key of the cluster, unless it is a family, is not
policy and may be a secret (host keys, certificates, OS parameters); it is never read."""

_DEPTH: Final = {"diskparams": 3, "hv_state": 3, "hvparams": 3, "disk_state": 4}  # the other families: 2


def own_values(stored: Mapping[str, Value], where: str) -> Values:
    """Return the own values in `stored`, nested JSON by family or single parameter.

    Null means "not set". Parameters that the table does not know are kept, since a newer Ganeti may have them. Raise
    InputError, which begins with `where`, when a known parameter has another type than in Ganeti, or when the
    allocation policy of a group is unknown.
    """
    values: Values = {}
    for path, value in flatten({key: value for key, value in stored.items() if value is not None}).items():
        if path[0] in FAMILIES and len(path) < _DEPTH.get(path[0], 3 if path == ("ipolicy", "std") else 2):
            raise InputError(f"{where}: {shown('.'.join(path))} should be a mapping, but is {kind_of(value)}")
        parameter = parameter_at(path)
        if value is None:
            continue
        if parameter and not _fits(path, parameter.type, value):
            raise InputError(
                f"{where}: {shown('.'.join(path))} should be of type {parameter.type}, but is {kind_of(value)}"
            )
        if path == ("alloc_policy",) and value not in ALLOC_POLICIES:  # the allocator needs a known policy
            raise InputError(f"{where}: alloc_policy should be {', '.join(ALLOC_POLICIES)}, but is {shown(str(value))}")
        values[path] = value
    return values


def cluster_values(cluster: Record, families: Mapping[str, Value]) -> Values:
    """Return the cluster's own values: the single parameters among the fields of `cluster`, and `families`."""
    singles = {name: cluster.fields[name] for name in CLUSTER_SINGLES if name in cluster.fields}
    return own_values({**singles, **families}, cluster.where)


def default_of(record: Record, key: str) -> Value:
    """Return the value under `default` of the field: there the cluster keeps its beparams and nicparams."""
    return record.record(key).record("default").fields


def _fits(path: Path, kind: Type, value: Value) -> bool:
    if path[0] == "hvparams":  # typed by each hypervisor, and differently from release to release
        return not isinstance(value, list | dict)
    match kind:
        case Type.INT | Type.SIZE | Type.MIB:
            return _is_whole(value)
        case Type.FLOAT:
            return isinstance(value, int | float) and not isinstance(value, bool)
        case Type.BOOL:
            return isinstance(value, bool)
        case Type.STRING | Type.CHOICE:
            return isinstance(value, str)
        case Type.LIST | Type.SET:
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case Type.DICT:
            return isinstance(value, dict) and not any(isinstance(item, list | dict) for item in value.values())
        case Type.UID_RANGES:
            return isinstance(value, list) and all(isinstance(item, list) and _are_whole(item) for item in value)
        case Type.MINMAX:
            return isinstance(value, list) and all(_is_pair(pair) for pair in value)


def _is_pair(pair: Value) -> bool:
    return (
        isinstance(pair, dict)
        and pair.keys() == {"min", "max"}
        and all(isinstance(spec, dict) and _are_whole(spec.values()) for spec in pair.values())
    )


def _are_whole(values: Iterable[Value]) -> bool:
    return all(_is_whole(value) for value in values)


def _is_whole(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
