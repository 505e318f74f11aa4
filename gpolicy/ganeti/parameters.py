"""The one table of what Ganeti knows of each policy parameter, and the values of parameters: normal form, inheritance.

Loader, schemas, rules, diff, commands and docs all read it; a new Ganeti release is a change here.
A parameter is found by its path, the keys that lead to it in Ganeti's own names:
`("diskparams", "drbd", "resync-rate")`, `("ndparams", "spindle_count")`, `("hv_state", "kvm", "mem_node")`.
A `*` in a path stands for a name that the administrator chooses (a volume group, an allocator option).

Sources: the constants of Ganeti 3.0.2, compared with 2.15, 2.16, 3.1; for 3.2 the source of 3.2.0~alpha1; the five
design documents (partitioned Ganeti, resource model) for what the parameters mean.
"""

import sys
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Final

from gpolicy.ganeti import tables
from gpolicy.ganeti.amounts import KIB_PER_SECOND, exact_size, rate_text
from gpolicy.ganeti.releases import release_key
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, Level, Parameter, Path, Reach, Type, Value, Values

PARAMETERS: Final[tuple[Parameter, ...]] = (
    *tables.cluster(),
    tables.ALLOC_POLICY,
    *tables.ipolicy(),
    *tables.DISKPARAMS,
    *tables.NDPARAMS,
    *tables.STATES,
    *tables.BEPARAMS,
    *tables.HVPARAMS,
    *tables.NICPARAMS,
    *tables.DATA_COLLECTOR_PARAMETERS,
)
"""All parameters, in the order in which gpolicy writes them."""

WORDS_SINCE: Final[dict[tuple[Path, str], str]] = {
    (("hvparams", "kvm", "disk_aio"), "io_uring"): "3.1",
    (("hvparams", "kvm", "scsi_controller_type"), "dc390"): "3.2",
    (("nicparams", "mode"), "ext"): "3.2",
}
"""Words that an earlier release does not know yet."""
WORDS_UNTIL: Final[dict[tuple[Path, str], str]] = {(("hvparams", "kvm", "disk_discard"), "default"): "3.1"}
"""Words that a later release no longer knows."""

_BY_PATH: Final = {parameter.path: parameter for parameter in PARAMETERS}
_POSITION: Final = {parameter.path: position for position, parameter in enumerate(PARAMETERS)}


def kvm(name: str) -> Path:
    """Return the path of a parameter of KVM."""
    return ("hvparams", "kvm", name)


def parameter_at(path: Path) -> Parameter | None:
    """Return the parameter that `path` names, or None if Ganeti (as this table knows it) has none there."""
    return _BY_PATH.get(path) or _BY_PATH.get(_pattern(path))


@lru_cache(maxsize=8192)  # every sorting of values asks for every path
def position(path: Path) -> tuple[int, Path]:
    """Return a sort key that puts paths into the order of the table; unknown ones come last."""
    return _POSITION.get(_pattern(path), len(PARAMETERS)), path


def _pattern(path: Path) -> Path:
    return (*path[:2], "*", path[3]) if len(path) == 4 and path[0] == "disk_state" else path


@cache
def parameters_of(level: Level) -> tuple[Parameter, ...]:
    """Return the parameters that can be set on an object of this level, in the table's order."""
    return tuple(parameter for parameter in PARAMETERS if level in parameter.levels)


def known_in(parameter: Parameter, version: str) -> bool:
    """Return whether the Ganeti release `version` ("3.0") knows the parameter."""
    if not parameter.since and not parameter.until:
        return True
    release = release_key(version)
    return not (
        (parameter.since and release < release_key(parameter.since))
        or (parameter.until and release >= release_key(parameter.until))
    )


def default_in(parameter: Parameter, version: str) -> Value:
    """Return Ganeti's built-in default of the parameter in the release `version`; None where there is none."""
    if parameter.new_default is not None and release_key(version) >= release_key(parameter.new_default[0]):
        return parameter.new_default[1]
    return parameter.default


def maximum_in(parameter: Parameter, version: str) -> int | None:
    """Return the largest number that the release `version` takes for the parameter; None where there is none."""
    if parameter.new_maximum is not None and release_key(version) >= release_key(parameter.new_maximum[0]):
        return parameter.new_maximum[1]
    return parameter.maximum


def reach_of(path: Path) -> Reach | None:
    """Return how the value at `path` reaches root on the nodes; None where it does not."""
    parameter = parameter_at(path)
    return None if parameter is None else parameter.reach


def spec_distance(outside: Iterable[tuple[int, int, int]]) -> float:
    """Return the distance of values from their ranges: each is a value (0 or more) with the least and the greatest one.

    What a value would have to change counts as a share of the larger of both: 4G from a range that begins at 8G is 0.5,
    as is 8G from a range that ends at 4G. The shares are added up. The nearest pair is the first with the least sum.
    """
    legal = ((value, min(max(value, low), high)) for value, low, high in outside)
    return sum(abs(value - nearest) / max(value, nearest) for value, nearest in legal if value != nearest)


FAMILIES: Final = frozenset(parameter.family for parameter in PARAMETERS if len(parameter.path) > 1)
"""Top-level keys whose values are nested; every other parameter is a leaf of its own."""
_FLOAT_BITS = sys.float_info.max_exp


def as_word(value: object) -> str:
    """Return a single value as text; flags are `true` and `false`, as in YAML and in Ganeti's commands."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def amount_text(path: Path, value: Value) -> str | None:
    """Return a size or rate with its unit (4G, 100M/s), and a ratio of 4.0 as 4; None for another value."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    parameter = parameter_at(path)
    if parameter is None or not isinstance(value, int) or isinstance(value, bool) or value < 0:
        return None
    if parameter.type in (Type.SIZE, Type.MIB):
        return exact_size(value)
    return rate_text(value) if parameter.unit == KIB_PER_SECOND else None


def canonical(path: Path, value: Value) -> Value:
    """Return `value` in the form in which two stored values of this parameter are equal or not.

    Ratios are floats (Ganeti stores 4 as 4.0), sets are sorted, sizes hold their six parameters in a fixed
    order and nothing else, an unset string is empty. A value of an unexpected shape comes back as it is: it can
    be shown and compared, and is never silently repaired.
    """
    parameter = parameter_at(path)
    if parameter is None:
        return value
    match parameter.type, value:
        case Type.FLOAT, bool():
            return value
        case Type.FLOAT, int() if value.bit_length() < _FLOAT_BITS:
            return float(value)
        case Type.INT | Type.SIZE | Type.MIB, float() if value.is_integer():
            return int(value)
        case Type.STRING, None:
            return ""
        case Type.SET, list() if all(isinstance(item, str) for item in value):
            return sorted(set(value))  # type: ignore[type-var]
        case Type.DICT, dict():
            return dict(sorted(value.items()))
        case Type.UID_RANGES, list():
            ranges = [list(item) if isinstance(item, list | tuple) else item for item in value]
            if all(isinstance(item, list) and all(isinstance(end, int) for end in item) for item in ranges):
                return sorted(ranges)  # type: ignore[type-var]  # as the command line does
            return ranges
        case Type.MINMAX, list():
            return [_canonical_pair(pair) for pair in value]
    return value


def _canonical_pair(pair: Value) -> Value:
    if not isinstance(pair, dict):
        return pair
    specs = {bound: pair[bound] for bound in ("min", "max") if bound in pair}
    return {
        bound: {name: spec[name] for name in SPEC_PARAMETERS if name in spec} if isinstance(spec, dict) else spec
        for bound, spec in specs.items()
    }


def flatten(tree: Mapping[str, Value]) -> Values:
    """Return the leaves of Ganeti's nested JSON (`{"ndparams": {"ssh_port": 22}}`) by path, in normal form.

    Empty containers mean "nothing set" to Ganeti and leave no leaf. Keys that the table does not know are kept:
    a newer Ganeti may have them.
    """
    values: Values = {}
    for key, value in tree.items():
        if key in FAMILIES:
            values.update((path, canonical(path, leaf)) for path, leaf in _leaves_below((key,), value))
        else:
            values[key,] = canonical((key,), value)
    return dict(sorted(values.items(), key=lambda item: position(item[0])))


def _leaves_below(path: Path, value: Value) -> Iterable[tuple[Path, Value]]:
    if isinstance(value, dict) and parameter_at(path) is None:
        for key, below in value.items():
            yield from _leaves_below((*path, str(key)), below)
    else:
        yield path, value


def unflatten(values: Mapping[Path, object]) -> dict[str, Any]:
    """Return the nested form of `values`: the inverse of `flatten`."""
    tree: dict[str, Any] = {}
    for path, value in values.items():
        below = tree
        for key in path[:-1]:
            step = below.setdefault(key, {})
            assert isinstance(step, dict), path  # noqa: S101 (paths of one table never run through a leaf)
            below = step
        below[path[-1]] = value
    return tree


INHERITED_FAMILIES = frozenset({"ipolicy", "diskparams", "ndparams"})
"""What a lower level gets from the one above; hv_state, disk_state and alloc_policy stand at each level alone."""


def fill(own: Mapping[Path, Value], above: Mapping[Path, Value], level: Level) -> Values:
    """Return the effective values at `level`: `own` over what is inherited from the filled level above.

    The ipolicy is filled per key and `std` per parameter, disk and node parameters per parameter, as Ganeti's
    own code does when it uses them (its group query merges disk parameters per template, which is why a query's
    merged value is not to be trusted).
    """
    values: Values = {}
    for path, value in above.items():
        if path[0] in INHERITED_FAMILIES and _holds_at(path, level):
            values[path] = value
    values.update(own)
    return dict(sorted(values.items(), key=lambda item: position(item[0])))


@lru_cache(maxsize=8192)  # asked for every value of every node
def _holds_at(path: Path, level: Level) -> bool:
    parameter = parameter_at(path)
    if parameter is None:
        return True
    if path == ("ndparams", "exclusive_storage") or (level is Level.GROUP and path[:2] == ("ipolicy", "std")):
        return True  # not settable there, but in force
    return level in parameter.levels
