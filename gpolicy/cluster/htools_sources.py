"""Simulated clusters: `sim:` with the specifications of htools' `--simulate`.

A specification is one group: `policy,count,disk,memory,cpus[,spindles[,exclusive]]`, with the allocation policy as a
word or as p, a, u (preferred, last_resort, unallocable), sizes in MiB or with a unit, and True or False for exclusive
storage. `;` separates groups. Groups are named group-01, group-02, … and nodes node-01-001, node-01-002, …
as htools names them; the first specification is group-01 here, while hspace gives that name to the last `--simulate`.

Units are those of htools: m, g and t are powers of 1024, and so are MiB, GiB and TiB; M, G, T and MB, GB, TB are
decimal (rounded down to whole MiB).

The cluster has Ganeti's built-in values; the first template is diskless and no hypervisor known, as for hspace. Nodes
have nothing in use. The physical volumes of a node are all free, where hspace counts none as free under exclusive
storage and so finds room for nothing.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Final

from gpolicy.cluster import state
from gpolicy.cluster.assembly import by_name, checked, own_values
from gpolicy.cluster.json_input import decode_text, read_bytes
from gpolicy.cluster.record import shown
from gpolicy.data import read_data
from gpolicy.errors import InputError, RequestError
from gpolicy.ganeti import htools_formats
from gpolicy.ganeti.amounts import BOUNDS
from gpolicy.ganeti.parameters import INHERITED_FAMILIES, canonical, default_in, fill, known_in, parameters_of
from gpolicy.ganeti.releases import DEFAULT_VERSION
from gpolicy.ganeti.vocabulary import DISK_TEMPLATES, DRBD_METADATA, SPEC_PARAMETERS, Level, Value, Values

MOST_NODES: Final = 10_000
"""Nodes of one simulated cluster."""

_HTOOLS_ORDER: Final = ("diskless", "file", "sharedfile", "plain", "blockdev", "drbd", "rbd", "ext", "gluster")
_BLANKS: Final = " \t\n\r\f\v"
_SIZE: Final = re.compile(r"([0-9]{1,20})\s*([a-zA-Z]*)", re.ASCII)
_HINT: Final = "write policy,count,disk,memory,cpus[,spindles[,exclusive storage]], as in sim:p,20,2t,64g,16,4"


def simulated_state(text: str, *, source: str | None = None) -> state.ClusterState:
    """Return the cluster that `text`, one specification or several, describes. Raise RequestError if it is wrong."""
    described = [_parse(part) for part in text.split(";")]
    total = sum(count for _, count, _, _ in described)
    if total > MOST_NODES:
        raise RequestError(f"sim: {total} nodes; at most {MOST_NODES} can be simulated")
    cluster = built_in_values()
    groups: dict[str, state.LiveGroup] = {}
    nodes: dict[str, state.LiveNode] = {}
    for number, (policy, count, exclusive, resources) in enumerate(described, start=1):
        own: Values = {("alloc_policy",): policy}
        if exclusive:
            own["ndparams", "exclusive_storage"] = True
        name = htools_formats.group_name(number)
        effective = fill(own, cluster, Level.GROUP)
        groups[name] = state.LiveGroup(name=name, own=own, effective=effective, position=number - 1)
        for place in range(1, count + 1):
            spindles: Values = {("ndparams", "spindle_count"): resources.spindles_total}
            called = htools_formats.node_name(number, place)
            node = state.LiveNode(name=called, group=name, own=spindles, resources=resources)
            nodes[called] = replace(node, master=not nodes, position=len(nodes))
    return state.ClusterState(
        source=source or f"sim:{text}",
        name="",
        software_version=None,
        cluster=state.ClusterObject(own=cluster),
        groups=groups,
        nodes=nodes,
        instances={},
    )


def built_in_values(version: str = DEFAULT_VERSION) -> Values:
    """Return the instance policy, disk and node parameters that a new cluster of the release `version` has.

    The disk templates are in htools' order: Ganeti itself writes them in any.
    """
    built_in = {
        parameter.path: canonical(parameter.path, default)
        for parameter in parameters_of(Level.CLUSTER)
        if parameter.family in INHERITED_FAMILIES
        and known_in(parameter, version)
        and (default := default_in(parameter, version)) is not None
    }
    return built_in | {("ipolicy", "disk-templates"): [*_HTOOLS_ORDER]}


def _parse(text: str) -> tuple[str, int, bool, state.Resources]:
    """Return the policy of a group, how many nodes it has, whether their storage is exclusive, and what each has."""
    count, found = htools_formats.specification_in(text)
    if found is None:
        raise RequestError(f"sim: {count} sections in {_shown(text)}", hint=_HINT)
    policy = htools_formats.ALLOC_POLICIES.get(found.policy, found.policy)
    if policy not in htools_formats.ALLOC_POLICIES.values():
        known = ", ".join(f"{short} ({name})" for short, name in htools_formats.ALLOC_POLICIES.items())
        raise RequestError(f"sim: no such allocation policy: {_shown(found.policy)}", hint=f"known: {known}")
    if found.exclusive not in ("True", "False"):
        raise RequestError(f"sim: exclusive storage is True or False, not {_shown(found.exclusive)}", hint=_HINT)
    cpus = _whole("CPUs", found.cpus)
    if cpus < 1:
        raise RequestError("sim: nodes without a CPU: htools would never stop counting on them", hint=_HINT)
    memory = _read_size("memory", found.memory)
    spindles = _whole("spindles", found.spindles)
    if not memory or not spindles:
        what = "a spindle" if memory else "memory"
        raise RequestError(f"sim: nodes without {what}: the score of such a cluster is not a number", hint=_HINT)
    count, disk = _whole("node count", found.node_count), _read_size("disk", found.disk)
    resources = state.Resources(
        **dict.fromkeys(("memory_total", "memory_free"), memory),
        **dict.fromkeys(("disk_total", "disk_free"), disk),
        **dict.fromkeys(("spindles_total", "spindles_free"), spindles),
        memory_node=0,
        cpu_total=cpus,
        cpu_node=1,  # htools takes one virtual CPU for the node itself
    )
    return policy, count, found.exclusive == "True", resources


def _whole(what: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text.strip(_BLANKS), re.ASCII):
        raise RequestError(f"sim: {what} should be a whole number, not {_shown(text)}", hint=_HINT)
    return _bounded(what, text, int(text))


def _read_size(what: str, text: str) -> int:
    match = _SIZE.fullmatch(text.lstrip(_BLANKS))
    unit = htools_formats.bytes_of(match[2]) if match else None
    if match is None or unit is None:
        raise RequestError(f"sim: {what} should be a size, not {_shown(text)}", hint="MiB, or with m, g or t")
    return _bounded(what, text, int(match[1]) * unit // htools_formats.MIB)


def _bounded(what: str, text: str, number: int) -> int:
    bound = BOUNDS.get(what.lower())  # the nodes are counted over all specifications
    if bound is not None and (refusal := bound.refusal(number)):
        raise RequestError(f"sim: {what} {_shown(text)}: {refusal}")
    return number


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}…")


_LARGEST = 2**63

_STATES: dict[str, tuple[str, bool | None]] = {
    "running": ("up", True),
    "ADMIN_down": ("down", False),
    "ADMIN_offline": ("offline", False),
    "ERROR_up": ("down", True),
    "ERROR_down": ("up", False),
    "ERROR_wrongnode": ("up", True),
    "ERROR_nodedown": ("up", None),
    "ERROR_nodeoffline": ("up", None),
    "USER_down": ("up", False),
}
"""The admin state and whether the instance runs, by Ganeti's status of an instance."""


@dataclass(frozen=True, slots=True)
class _LineColumns:
    """The columns of a line by name, its place, and its number of columns."""

    where: str
    words: Any  # a GroupLine, NodeLine, InstanceLine or PolicyLine
    count: int

    @classmethod
    def read(cls, kind: Any, numbered_line: tuple[int, str], where: str) -> _LineColumns:
        """Return a line. Raise InputError if it has too few or too many columns."""
        number, text = numbered_line
        words, count = htools_formats.columns_of(kind, text)
        most = len(kind._fields)
        if words is None or count > most:
            least = most - len(kind._field_defaults)
            raise InputError(f"{where}:{number}: has {count} columns, not {least} to {most}")
        return cls(f"{where}:{number}", words, count)

    def whole(self, name: str) -> int:
        """Return a size or count; htools prints some as `65536.0`."""
        number = self.number(name)
        if not number.is_integer():
            raise InputError(f"{self._column(name)} should be a whole number, but is {getattr(self.words, name)!r}")
        return int(number)

    def number(self, name: str) -> float:
        return _read_number(getattr(self.words, name), self._column(name))

    def is_yes(self, name: str) -> bool:
        found: str = getattr(self.words, name)
        if found not in ("Y", "N"):
            raise InputError(f"{self._column(name)} should be Y or N, but is {found!r}")
        return found == "Y"

    def _column(self, name: str) -> str:
        return f"{self.where}: column {self.words._fields.index(name) + 1}"


def read_text_file(path: FilePath, *, source: str | None = None) -> state.ClusterState:
    """Return the state in the htools text file at `path`. Raise InputError if it is not one."""
    text = decode_text(read_bytes(path), str(path))
    return parse_text(text, where=str(path), source=source or f"text:{path}")


def parse_text(text: str, *, where: str, source: str) -> state.ClusterState:
    """Return the state that `text` describes, of a cluster without a name: the format holds none.

    Raise InputError, which begins with `where` and the line's number.
    """
    found = htools_formats.sections([line.removesuffix("\r") for line in text.split("\n")])
    if len(found) < 4:
        message = f"{where}: not a text file of htools: {len(found)} sections, not 4 or more"
        raise InputError(message, hint="hscan and hspace -S write such files")
    group_lines, node_lines, instance_lines, tag_lines, policy_lines = [*found, []][:5]
    groups = [_LineColumns.read(htools_formats.GroupLine, line, where) for line in group_lines]
    uuids = {line.words.uuid: line.words.name for line in groups}
    nodes = (_LineColumns.read(htools_formats.NodeLine, line, where) for line in node_lines)
    instances = (_LineColumns.read(htools_formats.InstanceLine, line, where) for line in instance_lines)
    policies = _policies([_LineColumns.read(htools_formats.PolicyLine, line, where) for line in policy_lines], uuids)
    cluster = policies.get("", {})
    described = state.ClusterState(
        source=source,
        name="",
        software_version=None,
        cluster=state.ClusterObject(own=cluster, tags=frozenset(line.partition("|")[0] for _, line in tag_lines)),
        groups=by_name((_group_from_line(line, policies) for line in groups), f"{where}: groups", in_order=True),
        nodes=by_name((_node_from_line(line, uuids) for line in nodes), f"{where}: nodes", in_order=True),
        instances=by_name(map(_instance, instances), f"{where}: instances", in_order=True),
        unreadable=state.hidden_in_text(cluster_policy=bool(cluster)),
        notes=tuple(read_data("known_words.toml")["words"]["notes_on_text_files"]),
    )
    return checked(described, where)


def _group_from_line(line: _LineColumns, policies: dict[str, Values]) -> state.LiveGroup:
    words = line.words
    own = own_values({"alloc_policy": words.alloc_policy}, line.where)
    return state.LiveGroup(
        name=words.name,
        own=own,
        effective={**own, **policies.get(words.name, _BUILT_IN)},
        tags=frozenset(filter(None, words.tags.split(","))),
        identity=state.Identity(uuid=words.uuid or None),
        networks=tuple(words.networks.split(",")) if words.networks else (),
    )


def _node_from_line(line: _LineColumns, uuids: dict[str, str]) -> state.LiveNode:
    words = line.words
    if words.group not in uuids:
        raise InputError(f"{line.where}: is in an unknown group: {words.group!r}")
    exclusive, cpu_speed = line.is_yes("exclusive_storage"), line.number("cpu_speed")
    shown: dict[str, Value] = {"spindle_count": line.whole("spindles"), "cpu_speed": cpu_speed}
    if line.count >= 12:
        shown["exclusive_storage"] = exclusive
    return state.LiveNode(
        name=words.name,
        group=uuids[words.group],
        own={("ndparams", key): value for key, value in shown.items()},
        tags=frozenset(filter(None, words.tags.split(","))),
        offline=htools_formats.is_silent(words) or words.role == "Y",
        master=words.role == "M",
        resources=state.Resources() if htools_formats.is_silent(words) else _resources(line, exclusive=exclusive),
    )


def _resources(line: _LineColumns, *, exclusive: bool) -> state.Resources:
    return state.Resources(
        memory_total=line.whole("total_memory"),
        memory_node=line.whole("node_memory"),
        memory_free=line.whole("free_memory"),
        disk_total=line.whole("total_disk"),
        disk_free=line.whole("free_disk"),
        cpu_total=line.whole("total_cpus"),
        cpu_node=line.whole("node_cpus"),
        spindles_total=line.whole("spindles") if exclusive else None,
        spindles_free=line.whole("free_spindles") if exclusive and line.count >= 13 else None,
    )


def _instance(line: _LineColumns) -> state.LiveInstance:
    words, memory = line.words, line.whole("memory")
    forthcoming = line.is_yes("forthcoming")
    template = words.template
    if words.status not in _STATES:
        raise InputError(f"{line.where}: no such instance status: {words.status!r}")
    if template not in DISK_TEMPLATES:
        raise InputError(f"{line.where}: no such disk template: {template!r}")
    summed = line.whole("disk")
    size = max(summed - DRBD_METADATA, 0) if template == "drbd" else summed
    if words.primary == words.secondary:
        raise InputError(f"{line.where}: has the same primary and secondary node: {words.primary!r}")
    spindles = None if words.spindles in ("", "-") else line.whole("spindles")
    admin_state, running = _STATES[words.status]
    return state.LiveInstance(
        name=words.name,
        primary_node=words.primary,
        secondary_nodes=(words.secondary,) if words.secondary else (),
        disk_template=template,
        disks=() if template == "diskless" else (state.LiveDisk(size=size, template=template, spindles=spindles),),
        minmem=memory,
        maxmem=memory,
        vcpus=line.whole("vcpus"),
        spindle_use=line.whole("spindle_use"),
        auto_balance=line.is_yes("auto_balance"),
        admin_state=admin_state,
        status=words.status,
        running=running,
        tags=frozenset(filter(None, words.tags.split(","))),
        forthcoming=forthcoming,
        summed_disk=state.LiveDisk(size=summed, template=template, spindles=spindles),
    )


def _policies(lines: list[_LineColumns], uuids: dict[str, str]) -> dict[str, Values]:
    """Return the effective policies by the name of the group; the cluster's is under the empty name."""
    policies: dict[str, Values] = {}
    for line in lines:
        words = line.words
        owner = uuids.get(words.owner, words.owner)
        if owner and owner not in uuids.values():
            raise InputError(f"{line.where}: a policy of an unknown group: {owner!r}")
        specs = [_read_spec(text, line.where) for text in words.minmax.split(";")]
        if len(specs) % 2:
            raise InputError(f"{line.where}: column 3 should hold min and max in turn, but holds an odd number")
        ipolicy: dict[str, Value] = {
            "minmax": [{"min": low, "max": high} for low, high in zip(specs[::2], specs[1::2], strict=True)],
            "std": _read_spec(words.std, line.where),
            "disk-templates": [name for name in words.templates.split(",") if name],
            "vcpu-ratio": line.number("vcpu_ratio"),
            "spindle-ratio": line.number("spindle_ratio"),
        }
        policies[owner] = own_values({"ipolicy": ipolicy}, line.where)
    return policies


def _read_spec(text: str, where: str) -> dict[str, Value]:
    numbers = [_read_number(number, where) for number in text.split(",")]
    if len(numbers) != len(SPEC_PARAMETERS) or not all(number.is_integer() for number in numbers):
        raise InputError(f"{where}: a spec is six whole numbers, but this is {text[:60]!r}")
    return {name: int(number) for name, number in zip(SPEC_PARAMETERS, numbers, strict=True)}


def _read_number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise InputError(f"{where}: should be a number, but is {text[:60]!r}")
    if abs(number) >= _LARGEST:
        raise InputError(f"{where}: is {shown(text)}: no cluster has such an amount")
    return number


_BUILT_IN: Values = {path: value for path, value in built_in_values().items() if path[0] == "ipolicy"}
"""The policy of a group without a policy line: htools' defaults, not the cluster's policy."""
