"""Putting the parts of a cluster together after any source has read them, and checking that they fit.

Values of our own files, also of plans and remedies, are read along the shapes that write them (`read`).
Own values are read as Ganeti stores or sends them: by the paths of the parameter table, with checked types. Every
number is held against the bounds in `gpolicy.ganeti.amounts`.
"""

import sys
from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from enum import StrEnum
from functools import cache, partial
from typing import Any, Final, TypeVar

from gpolicy.cluster.record import Record, kind_of, shown
from gpolicy.cluster.state import ClusterState, Identity, LiveGroup, LiveInstance, LiveNode, Resources
from gpolicy.errors import InputError
from gpolicy.findings import Located, Span
from gpolicy.ganeti.amounts import BOUNDED_FAMILIES, BOUNDS
from gpolicy.ganeti.parameters import FAMILIES, fill, flatten, parameter_at, parameters_of
from gpolicy.ganeti.vocabulary import ALLOC_POLICIES, Level, Path, Type, Value, Values
from gpolicy.json_values import Checked, Key, Many, Maybe, Shape, fields_of
from gpolicy.printable import some

_T = TypeVar("_T")
_Listed = TypeVar("_Listed", LiveGroup, LiveNode, LiveInstance)


def by_name(objects: Iterable[_Listed], where: str, *, in_order: bool = False) -> dict[str, _Listed]:
    """Return the objects by name; `in_order` with their positions, for a source whose order matters.

    Raise InputError when two have the same name.
    """
    named: dict[str, _Listed] = {}
    for position, item in enumerate(objects):
        if item.name in named:
            raise InputError(f"{where}: {item.name!r} occurs twice")
        named[item.name] = replace(item, position=position) if in_order else item
    return dict(sorted(named.items()))


def filled_group(name: str, own: Values, cluster: Values, record: Record) -> LiveGroup:
    """Return a group with its effective values filled from those of the cluster."""
    effective = fill(own, cluster, Level.GROUP)
    return LiveGroup(name=name, own=own, effective=effective, tags=record.tags(), identity=read(Identity, record))


def instance_of(record: Record, beparams: Record, **more: Any) -> LiveInstance:
    """Return an instance with its backend parameters; `more` are its nodes, its disks, and what else a source has."""
    return LiveInstance(
        name=record.name("name"),
        minmem=beparams.whole("minmem"),
        maxmem=beparams.whole("maxmem"),
        vcpus=beparams.whole("vcpus"),
        spindle_use=beparams.whole("spindle_use"),
        auto_balance=beparams.flag("auto_balance"),
        always_failover=beparams.flag_or_none("always_failover"),
        admin_state=record.text("admin_state"),
        hypervisor=record.text_or_none("hypervisor"),
        tags=record.tags(),
        identity=read(Identity, record),
        forthcoming=record.flag("forthcoming", default=False),
        **more,
    )


def checked(state: ClusterState, where: str) -> ClusterState:
    """Return the state. Raise InputError, which begins with `where`, if its parts do not fit or a number cannot be."""
    check_references(state, where)
    check_numbers(state, where)
    return state


def check_references(state: ClusterState, where: str) -> None:
    """Raise InputError if a node names an unknown group, or an instance an unknown node."""
    for node in state.nodes.values():
        if node.group not in state.groups:
            raise InputError(f"{where}: node {node.name!r} is in an unknown group: {node.group!r}")
    for instance in state.instances.values():
        if instance.primary_node in instance.secondary_nodes:  # the allocator would not end
            raise InputError(f"{where}: instance {instance.name!r} has its primary node as secondary node, too")
        for name in (instance.primary_node, *instance.secondary_nodes):
            if name not in state.nodes:
                raise InputError(f"{where}: instance {instance.name!r} is on an unknown node: {name!r}")


NODE_FIELDS: Final = {
    "mtotal": "memory_total",
    "mnode": "memory_node",
    "mfree": "memory_free",
    "dtotal": "disk_total",
    "dfree": "disk_free",
    "ctotal": "cpu_total",
    "cnos": "cpu_node",
    "sptotal": "spindles_total",
    "spfree": "spindles_free",
}
"""Ganeti's names of the live fields of a node, and ours."""

NO_RUN_TIME: Final = (
    "no live data: this source shows neither measurements of nodes (memory, disk, CPUs) nor whether instances run"
)


def resources(node: Record) -> Resources:
    """Return the live fields of a node; Ganeti sends null for missing ones."""
    return Resources(**{ours: node.whole_or_none(ganetis) for ganetis, ours in NODE_FIELDS.items()})


def missing_notes(state: ClusterState) -> tuple[str, ...]:
    """Return notes on nodes that should have sent measurements and did not.

    The node daemon of Ganeti 3.0.2 fails when it measures a volume group under exclusive storage (it compares a number
    with text), and then sends no figures of memory either.
    """
    asked = [node for node in state.nodes.values() if node.is_measured]
    silent = [node for node in asked if None in (node.resources.memory_total, node.resources.disk_total)]
    if not silent:
        return ()
    notes = [f"no live data from {some([node.name for node in silent])}: their free memory and disk are unknown"]
    key = ("ndparams", "exclusive_storage")
    if exclusive := [node.name for node in silent if state.effective_of_node(node).get(key) is True]:
        names = some(exclusive)
        notes.append(f"exclusive_storage is on for {names}: the node daemon of Ganeti 3.0 cannot measure such a node")
    return tuple(notes)


_CORRECT: Final = "correct it at its source"
_OF_INSTANCE: Final = ("minmem", "maxmem", "vcpus", "spindle_use", "oper_ram", "nic_count")
_OF_DISK: Final = ("size", "spindles")
_OF_VOLUME: Final = ("size", "free", "used")


def check_numbers(state: ClusterState, where: str) -> None:
    """Raise InputError, which begins with `where`, if the state has a number that no cluster can have."""
    _check_values(state.cluster.own, f"{where}: cluster")
    for group in state.groups.values():
        _check_values(group.own, f"{where}: group {shown(group.name)}")
        _check_values(group.effective, f"{where}: group {shown(group.name)}")
    for node in state.nodes.values():
        _check_node(node, f"{where}: node {shown(node.name)}")
    for instance in state.instances.values():
        _check_instance(instance, f"{where}: instance {shown(instance.name)}")


def _check_node(node: LiveNode, where: str) -> None:
    _check_values(node.own, where)
    _check_all(where, node.resources, Resources.__slots__)
    for name in ("disk", "spindles"):
        total, free = getattr(node.resources, f"{name}_total"), getattr(node.resources, f"{name}_free")
        if None not in (total, free) and free > total + 1:  # figures are rounded
            raise InputError(f"{where}: {name}_free is {free}, but {name}_total {total}", hint=_CORRECT)
    for volume in node.physical_volumes or ():
        _check_all(f"{where}: physical volume {shown(volume.name)}", volume, _OF_VOLUME)
        if volume.free > volume.size + 1:  # LVM's figures are rounded
            message = f"physical volume {shown(volume.name)} has {volume.free} MiB free of {volume.size} MiB"
            raise InputError(f"{where}: {message}", hint=_CORRECT)
    listed = Counter(volume.name for volume in node.physical_volumes or ())
    # LVM calls each volume that is gone "[unknown]"
    twice = next((name for name, times in listed.items() if times > 1 and "unknown" not in name), None)
    if twice is not None:
        raise InputError(f"{where}: physical volume {shown(twice)} is listed twice", hint=_CORRECT)
    if "" in listed:
        raise InputError(f"{where}: a physical volume has no name", hint=_CORRECT)


def _check_instance(instance: LiveInstance, where: str) -> None:
    _check_all(where, instance, _OF_INSTANCE)
    for place, disk in enumerate(instance.disks):
        _check_all(where, disk, _OF_DISK, f" of disk {place}")
    if instance.summed_disk:
        _check_all(where, instance.summed_disk, _OF_DISK, " of all disks")


def _check_values(values: Values, where: str) -> None:
    for path, value in values.items():
        if path == ("ipolicy", "minmax"):
            for place, pair in enumerate(value if isinstance(value, list) else [], start=1):
                for end, spec in (pair if isinstance(pair, dict) else {}).items():
                    for name, number in (spec if isinstance(spec, dict) else {}).items():
                        _check(where, f"ipolicy.minmax: {end} of size {place}: {name}", name, number)
        elif path[0] in BOUNDED_FAMILIES and path[-1] in BOUNDS:
            _check(where, ".".join(map(shown, path)), path[-1], value)


def _check_all(where: str, item: object, names: Iterable[str], of: str = "") -> None:
    for name in names:
        _check(where, f"{name}{of}", name, getattr(item, name))


def _check(where: str, field: str, name: str, number: Value) -> None:
    """Refuse a number, which the message calls `field`, outside the bound of `name`, if there is one."""
    bound = BOUNDS.get(name)
    if bound is None or not isinstance(number, int | float) or isinstance(number, bool):
        return
    if refusal := bound.refusal(number):
        unit = f" {bound.unit}" if bound.unit else ""
        message = f"{where}: {field} is {shown(str(number))}{unit}: {refusal}"
        raise InputError(message, hint=f"{_CORRECT}: computing with such a number would not end")


CLUSTER_SINGLES: Final = tuple(item.name for item in parameters_of(Level.CLUSTER) if item.family not in FAMILIES)
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
        if parameter and not _fits_type(path, parameter.type, value):
            name = shown(".".join(path))
            raise InputError(f"{where}: {name} should be of type {parameter.type}, but is {kind_of(value)}")
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


def _fits_type(path: Path, kind: Type, value: Value) -> bool:
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
            return isinstance(value, list) and all(
                isinstance(pair, dict)
                and pair.keys() == {"min", "max"}
                and all(isinstance(spec, dict) and _are_whole(spec.values()) for spec in pair.values())
                for pair in value
            )


def _are_whole(values: Iterable[Value]) -> bool:
    return all(_is_whole(value) for value in values)


def _is_whole(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _read_sizes(record: Record, key: str) -> tuple[int, ...]:
    sizes = record.items(key)
    whole = [size for size in sizes if isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**63]
    if len(whole) != len(sizes):
        record.refuse(key, "a list of sizes")
    return tuple(whole)


def _read_names(record: Record, key: str) -> tuple[str | None, ...]:
    names = [item for item in record.items(key) if isinstance(item, str | None)]
    if len(names) != len(record.items(key)):
        record.refuse(key, "a list of names")
    return tuple(names)


_ReadField = Callable[[Record, str], object]

_MAPPINGS: Final = ("dict", "Mapping")
_READERS: dict[str, _ReadField] = {
    "str": Record.text,
    "int": Record.whole,
    "float": Record.number_or_none,
    "bool": Record.flag,
    "frozenset[str]": lambda record, key: frozenset(record.texts(key)),
    "tuple[str, ...]": Record.texts,
    "Path": Record.texts,
    "CommandWords": Record.texts,
    "tuple[int, ...]": _read_sizes,
    "tuple[str | None, ...]": _read_names,
    "Value": lambda record, key: record.fields.get(key),
    "Values": lambda record, key: own_values(record.record(key).fields, record.where),
    "Located[str]": lambda record, key: Located(record.text(key), Span(record.where, 1, 1, 1, 1)),
}
"""The reader of a field, by its type in the model; `_reader` makes one of parts, and of what may be none."""


def held(value: _T, form: Checked, record: Record, key: str) -> _T:
    """Return the value of a field. Raise InputError if it, or an item of a list, is not what `form` wants."""
    items = value if isinstance(value, tuple) and not isinstance(form.form, Many) else (value,)
    for item in items:
        if not form.is_right(item):
            record.refuse(key, form.wanted, f"is {shown(item)!r}" if isinstance(item, str) else "")
    return value


def _reader(written: str, form: Any, names: Mapping[str, Any]) -> _ReadField:
    """Return the reader of a field with a form, whose type is `written` so where things have these `names`."""
    if written.endswith(" | None"):
        inner = _reader(written.removesuffix(" | None"), form, names)
        return lambda record, key: None if record.fields.get(key) is None else inner(record, key)
    if isinstance(form, Checked):
        bare = _reader(written, form.form, names)
        return lambda record, key: held(bare(record, key), form, record, key)
    if written in _READERS:
        return _READERS[written]
    while isinstance(form, Many | Maybe):
        form = form.form
    outer, _, inside = written.removesuffix("]").partition("[")
    one = inside.removeprefix("str, ").removesuffix(", ...") or outer
    if outer in _MAPPINGS and (each := _READERS.get(one)):
        return lambda record, key: {name: each(record.record(key), name) for name in record.record(key).fields}
    part: Any = form if isinstance(form, Shape) else names.get(one)
    if isinstance(part, type) and issubclass(part, StrEnum):
        return lambda record, key: record.choice(key, part)
    make = (part.reader if isinstance(part, Shape) else None) or partial(read, part)
    if outer in _MAPPINGS:
        return lambda record, key: {name: make(item) for name, item in record.records(key)}
    if outer == "tuple":
        return lambda record, key: tuple(map(make, record.objects(key)))
    return lambda record, key: make(record.record(key))


@cache
def _reading(kind: Any) -> tuple[Any, list[tuple[str, str, _ReadField]]]:
    """Return the type, and the attributes that are read, each with its key and its reader."""
    shape = kind if isinstance(kind, Shape) else fields_of(kind)
    kinds = {item.name: item.type for item in fields(shape.kind)}  # text, unless their module evaluates annotations
    types = {name: item.__name__ if isinstance(item, type) else str(item) for name, item in kinds.items()}
    names = ChainMap(*(vars(sys.modules[base.__module__]) for base in shape.kind.__mro__))
    found: list[tuple[str, str, _ReadField]] = []
    nested: dict[str, dict[str, Key]] = {}
    for key, item in shape.keys.items():
        if not isinstance(item.of, str) or item.inline:
            continue
        name, _, below = (item.of or key).partition(".")
        if below:
            nested.setdefault(name, {})[key] = replace(item, of=below)
        elif name in types:
            reader = _reader(types[name], item.form, names)
            found.append((sys.intern(name), sys.intern(key), reader))  # Python finds arguments faster
    for name, keys in nested.items():
        part = Shape(names[types[name].removesuffix(" | None")]).with_keys(**keys)
        found.append((name, "", partial(_read_here, part)))
    return shape.kind, found


def _read_here(part: Shape, record: Record, _: str) -> object:
    return read(part, record)


def read(kind: type[_T] | Shape, record: Record, /, **known: object) -> _T:
    """Return a value from a record; `known` are attributes that are already read.

    A shape says which keys of the record are read, and what is checked: those that hold an attribute, or an attribute
    of one (`provenance.made_at`), by its type. Of a dataclass, each field is a key. Raise InputError, which names the
    place.
    """
    plain: Any = kind
    make, attributes = _reading(plain)
    found: _T = make(**known, **{name: get(record, key) for name, key, get in attributes if name not in known})
    return found
