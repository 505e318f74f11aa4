"""Groups, nodes, instances and requests in the form of the Haskell original's `show`.

One error message and hail's `-v` and `-v -v` contain them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from operator import attrgetter

from gpolicy.allocator.cluster_data import AllocPolicy, Disk, DiskTemplate, Instance, Load, Node
from gpolicy.allocator.ghc_numbers import shown_argument, shown_float, shown_ints, shown_peers, shown_string
from gpolicy.allocator.instance_moves import is_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.requests import Wanted
    from gpolicy.htools.json_fields import Json

_ODD_NAMES = {"drbd": "Drbd8", "openvswitch": "OpenVSwitch"}
_PREFIXES = {DiskTemplate: "DT", AllocPolicy: "Alloc"}


def shown(value: Any) -> str:
    """Return a value as Haskell shows it. A tuple is a list; records are those of `_records`."""
    if isinstance(value, str):
        return shown_string(value)
    if isinstance(value, float):
        return shown_float(value)
    if isinstance(value, Enum):
        return f"{_PREFIXES.get(type(value), '')}{_constructor(value.name)}"
    if isinstance(value, tuple):
        return f"[{','.join(map(shown, value))}]"
    if isinstance(value, frozenset):
        return f"fromList {shown(tuple(sorted(value)))}"
    if isinstance(value, Mapping):
        return _map({_show_key(key): shown(item) for key, item in sorted(value.items())})
    if isinstance(value, Disk):
        return _record(value, dskSpindles=_maybe(value.spindles, shown_argument))
    return _record(value) if type(value).__name__ in _records() else str(value)


def shown_cluster(cluster: Cluster, hypervisor: str | None, entries: Mapping[str, Json]) -> str:
    """Return a whole cluster as Haskell shows it.

    `entries` are the instances of the iallocator document, since `Instance` lacks their network interfaces; empty for a
    cluster from another source.
    """
    forth: dict[int, tuple[list[int], list[int]]] = {index: ([], []) for index in cluster.nodes}
    for index, instance in cluster.instances.items():
        for node, place in ((instance.primary, 0), (instance.secondary, 1)):
            if node in forth:
                forth[node][place].insert(0, index)
    shown_hypervisor = _maybe(hypervisor, _constructor)
    nodes = {str(index): _node_record(node, *forth[index], shown_hypervisor) for index, node in cluster.nodes.items()}
    instances = {
        str(index): _instance_record(
            item,
            item.name.removesuffix(cluster.common_suffix),
            entries.get(item.name, {}),
            split=is_split(item, cluster.nodes),
        )
        for index, item in cluster.instances.items()
    }
    return (
        f"ClusterData {{cdGroups = {shown(cluster.groups)}, cdNodes = {_map(nodes)}, cdInstances = {_map(instances)},"
        f" cdTags = {shown(cluster.tags)}, cdIPolicy = {shown(cluster.policy)}}}"
    )


def shown_wanted(wanted: Wanted, entry: Mapping[str, Json]) -> tuple[str, str]:
    """Return a new instance and the details of its request as Haskell shows them; `entry` is the instance's object."""
    details = f"AllocDetails {shown_argument(wanted.count)} {shown_maybe(wanted.group_name)}"
    return _instance_record(wanted.instance, wanted.instance.name, entry), details


def shown_maybe(value: object | None) -> str:
    """Return an optional value as Haskell shows it as an argument."""
    return "Nothing" if value is None else f"(Just {shown(value)})"


def _instance_record(instance: Instance, alias: str, entry: Mapping[str, Json], *, split: bool = False) -> str:
    """Return an instance, which `entry` is the document's object of.

    One that is `split` between two groups is not moved (htools, Loader: `disableSplitMoves`).
    """
    new = {"pNode": "0", "sNode": "0"} if instance.index < 0 else {}
    return _record(
        instance,
        alias=shown_string(alias),
        util=_load_record(instance.load),
        movable=str(instance.template.balanced and not split),
        arPolicy="ArNotEnabled",
        nics=f"[{','.join(map(_nic, entry.get('nics', [])))}]",
        **new,
    )


def _node_record(node: Node, primaries: list[int], secondaries: list[int], hypervisor: str) -> str:
    return _record(
        node,
        pListForth=shown_ints(primaries),
        sListForth=shown_ints(secondaries),
        peers=shown_peers(node.peers),
        failN1Forth="True",
        rMemForth="0",
        pRemForth="0.0",
        utilPool=_load_record((1.0, 1.0, 1.0, 1.0)),
        utilLoad=_load_record(node.load),
        utilLoadForth=_load_record(node.forth_load),
        hypervisor=hypervisor,
    )


def _nic(entry: Mapping[str, Json]) -> str:
    shows = dict.fromkeys(("mac", "ip", "mode", "link", "bridge", "network"), shown_string) | {"mode": _constructor}
    return _fields("Nic", {key: _maybe(entry.get(key), show) for key, show in shows.items()})


def _constructor(name: str) -> str:
    """Return the constructor of a name: XenPvm for `xen-pvm`."""
    return _ODD_NAMES.get(name.lower()) or "".join(map(str.capitalize, name.lower().replace("_", "-").split("-")))


def _load_record(load: Load) -> str:
    names = ("cpuWeight", "memWeight", "dskWeight", "netWeight")
    return _fields("DynUtil", dict(zip(names, map(shown, load), strict=True)))


@cache
def _records() -> Mapping[str, str]:
    """Return the constructor and the fields of each class, by its name (`templates/haskell_records.toml`)."""
    from gpolicy.data import read_data  # noqa: PLC0415 - only what is needed

    return read_data("haskell_records.toml")


def _record(value: object, **texts: str) -> str:
    """Return a record of `_records`; `texts` are fields in their shown form."""
    kind, *columns = _records()[type(value).__name__].split()
    pairs = (column.partition("=") for column in columns)
    return _fields(
        kind, {name: texts.get(name) or shown(attrgetter(attribute or name)(value)) for name, _, attribute in pairs}
    )


def _fields(kind: str, texts: Mapping[str, str]) -> str:
    return f"{kind} {{{', '.join(f'{name} = {text}' for name, text in texts.items())}}}"


def _maybe(value: Any, show: Callable[[Any], str]) -> str:
    return "Nothing" if value is None else f"Just {show(value)}"


def _map(texts: Mapping[str, str]) -> str:
    return f"fromList [{','.join(f'({key},{text})' for key, text in texts.items())}]"


def _show_key(key: object) -> str:
    return f"({','.join(map(shown, key))})" if isinstance(key, tuple) else shown(key)
