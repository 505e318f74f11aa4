"""Clusters that exist on paper only: `sim:` with the specifications of htools' `--simulate`.

A specification is one group: `policy,count,disk,memory,cpus[,spindles[,exclusive]]`, with the allocation policy as a
word or as p, a, u (preferred, last_resort, unallocable), sizes in MiB or with a unit, and True or False for exclusive
storage. Several groups are parted by `;`. Groups are named group-01, group-02, … and nodes node-01-001, node-01-002, …
as htools names them; the first specification is group-01 here, while hspace gives that name to the last `--simulate`.

Units are those of htools: m, g and t are powers of 1024, and so are MiB, GiB and TiB; M, G, T and MB, GB, TB are
decimal (rounded down to whole MiB).

The cluster has Ganeti's built-in values; no template is preferred and no hypervisor known, as for hspace. Nodes have
nothing in use. The physical volumes of a node are all free, where hspace counts none as free under exclusive storage
and so finds room for nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from gpolicy.cluster.state import ClusterObject, ClusterState, Group, Node, Resources
from gpolicy.errors import UsageError
from gpolicy.ganeti.bounds import BOUNDS
from gpolicy.ganeti.parameter import Level, Values
from gpolicy.ganeti.parameters import DEFAULT_VERSION, default_in, known_in, parameters_of
from gpolicy.ganeti.values import INHERITED_FAMILIES, canonical, fill

MOST_NODES: Final = 10_000
"""Nodes of one simulated cluster."""

_POLICIES: Final = {"p": "preferred", "a": "last_resort", "u": "unallocable"}
_DECIMAL: Final = Fraction(1000, 1024) ** 2
_EXACT_UNITS: Final = {"": 1, "m": 1, "g": 1024, "t": 1024**2, "mib": 1, "gib": 1024, "tib": 1024**2}
_DECIMAL_UNITS: Final = {"m": _DECIMAL, "g": _DECIMAL * 1000, "t": _DECIMAL * 1000**2}
_BLANKS: Final = " \t\n\r\f\v"
_SIZE: Final = re.compile(r"([0-9]{1,20})\s*([a-zA-Z]*)", re.ASCII)
_HINT: Final = "write policy,count,disk,memory,cpus[,spindles[,exclusive storage]], as in sim:p,20,2t,64g,16,4"


@dataclass(frozen=True, slots=True)
class _Specification:
    policy: str
    count: int
    disk: int
    memory: int
    cpus: int
    spindles: int
    exclusive: bool


def simulated_state(text: str, *, source: str | None = None) -> ClusterState:
    """Return the cluster that `text`, one specification or several, describes. Raise UsageError if it is wrong."""
    specifications = [_parse(part) for part in text.split(";")]
    total = sum(specification.count for specification in specifications)
    if total > MOST_NODES:
        raise UsageError(f"sim: {total} nodes are more than the {MOST_NODES} that can be simulated")
    cluster = built_in_values()
    groups: dict[str, Group] = {}
    nodes: dict[str, Node] = {}
    for number, specification in enumerate(specifications, start=1):
        own: Values = {("alloc_policy",): specification.policy}
        if specification.exclusive:
            own["ndparams", "exclusive_storage"] = True
        name = f"group-{number:02d}"
        groups[name] = Group(name=name, own=own, effective=fill(own, cluster, Level.GROUP), position=number - 1)
        for place in range(1, specification.count + 1):
            node = f"node-{number:02d}-{place:03d}"
            nodes[node] = Node(
                name=node,
                group=name,
                own={("ndparams", "spindle_count"): specification.spindles},
                master=not nodes,
                resources=_resources(specification),
                position=len(nodes),
            )
    return ClusterState(
        source=source or f"sim:{text}",
        name="simulated.example.org",
        software_version=None,
        cluster=ClusterObject(own=cluster),
        groups=groups,
        nodes=nodes,
        instances={},
    )


def built_in_values(version: str = DEFAULT_VERSION) -> Values:
    """Return the instance policy, disk and node parameters that a new cluster of the release `version` has."""
    return {
        parameter.path: canonical(parameter.path, default)
        for parameter in parameters_of(Level.CLUSTER)
        if parameter.family in INHERITED_FAMILIES
        and known_in(parameter, version)
        and (default := default_in(parameter, version)) is not None
    }


def _resources(specification: _Specification) -> Resources:
    return Resources(
        memory_total=specification.memory,
        memory_node=0,
        memory_free=specification.memory,
        disk_total=specification.disk,
        disk_free=specification.disk,
        cpu_total=specification.cpus,
        cpu_node=1,  # htools takes one virtual CPU for the node itself
        spindles_total=specification.spindles,
        spindles_free=specification.spindles,
    )


def _parse(text: str) -> _Specification:
    parts = text.split(",")
    if not 5 <= len(parts) <= 7:
        raise UsageError(f"sim: {len(parts)} sections in {_shown(text)}", hint=_HINT)
    policy = _POLICIES.get(parts[0], parts[0])
    if policy not in _POLICIES.values():
        known = ", ".join(f"{short} ({name})" for short, name in _POLICIES.items())
        raise UsageError(f"sim: no such allocation policy: {_shown(parts[0])}", hint=f"known: {known}")
    exclusive = parts[6] if len(parts) > 6 else "False"
    if exclusive not in ("True", "False"):
        raise UsageError(f"sim: exclusive storage is True or False, not {_shown(exclusive)}", hint=_HINT)
    if _whole("CPUs", parts[4]) < 1:
        raise UsageError("sim: nodes without a CPU: htools would never stop counting on them", hint=_HINT)
    memory = _size("memory", parts[3])
    spindles = _whole("spindles", parts[5]) if len(parts) > 5 else 1
    if not memory or not spindles:
        what = "a spindle" if memory else "memory"
        raise UsageError(f"sim: nodes without {what}: the score of such a cluster is no number", hint=_HINT)
    return _Specification(
        policy=policy,
        count=_whole("node count", parts[1]),
        disk=_size("disk", parts[2]),
        memory=memory,
        cpus=_whole("CPUs", parts[4]),
        spindles=spindles,
        exclusive=exclusive == "True",
    )


def _whole(what: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text.strip(_BLANKS), re.ASCII):
        raise UsageError(f"sim: {what} should be a whole number, not {_shown(text)}", hint=_HINT)
    return _bounded(what, text, int(text))


def _size(what: str, text: str) -> int:
    match = _SIZE.fullmatch(text.lstrip(_BLANKS))
    factor: Fraction | int | None = None
    if match:
        unit = match[2]
        factor = _EXACT_UNITS.get(unit) or _EXACT_UNITS.get(unit.lower() if len(unit) == 3 else unit)
        decimal = unit.lower() if len(unit) == 1 else unit.lower().removesuffix("b") if len(unit) == 2 else ""
        factor = factor or _DECIMAL_UNITS.get(decimal)
    if match is None or factor is None:
        raise UsageError(f"sim: {what} should be a size, not {_shown(text)}", hint="MiB, or with m, g or t")
    return _bounded(what, text, int(int(match[1]) * factor))


def _bounded(what: str, text: str, number: int) -> int:
    bound = BOUNDS.get(what.lower())  # the nodes are counted over all specifications
    if bound is not None and (refusal := bound.refusal(number)):
        raise UsageError(f"sim: {what} {_shown(text)}: {refusal}")
    return number


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}…")
