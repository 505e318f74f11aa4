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

import re
from typing import Final

from gpolicy.cluster.state import ClusterObject, ClusterState, LiveGroup, LiveNode, Resources
from gpolicy.errors import UsageError
from gpolicy.ganeti.htools_formats import ALLOC_POLICIES, MIB, bytes_of, group_name, node_name, specification_in
from gpolicy.ganeti.number_ranges import BOUNDS
from gpolicy.ganeti.parameter import Level, Values
from gpolicy.ganeti.parameters import INHERITED_FAMILIES, canonical, default_in, fill, known_in, parameters_of
from gpolicy.ganeti.releases import DEFAULT_VERSION

MOST_NODES: Final = 10_000
"""Nodes of one simulated cluster."""

_HTOOLS_ORDER: Final = ("diskless", "file", "sharedfile", "plain", "blockdev", "drbd", "rbd", "ext", "gluster")
_BLANKS: Final = " \t\n\r\f\v"
_SIZE: Final = re.compile(r"([0-9]{1,20})\s*([a-zA-Z]*)", re.ASCII)
_HINT: Final = "write policy,count,disk,memory,cpus[,spindles[,exclusive storage]], as in sim:p,20,2t,64g,16,4"


def simulated_state(text: str, *, source: str | None = None) -> ClusterState:
    """Return the cluster that `text`, one specification or several, describes. Raise UsageError if it is wrong."""
    described = [_parse(part) for part in text.split(";")]
    total = sum(count for _, count, _, _ in described)
    if total > MOST_NODES:
        raise UsageError(f"sim: {total} nodes; at most {MOST_NODES} can be simulated")
    cluster = built_in_values()
    groups: dict[str, LiveGroup] = {}
    nodes: dict[str, LiveNode] = {}
    for number, (policy, count, exclusive, resources) in enumerate(described, start=1):
        own: Values = {("alloc_policy",): policy}
        if exclusive:
            own["ndparams", "exclusive_storage"] = True
        name = group_name(number)
        groups[name] = LiveGroup(name=name, own=own, effective=fill(own, cluster, Level.GROUP), position=number - 1)
        for place in range(1, count + 1):
            node = node_name(number, place)
            nodes[node] = LiveNode(
                name=node,
                group=name,
                own={("ndparams", "spindle_count"): resources.spindles_total},
                master=not nodes,
                resources=resources,
                position=len(nodes),
            )
    return ClusterState(
        source=source or f"sim:{text}",
        name="",
        software_version=None,
        cluster=ClusterObject(own=cluster),
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


def _parse(text: str) -> tuple[str, int, bool, Resources]:
    """Return the policy of a group, how many nodes it has, whether their storage is exclusive, and what each has."""
    sections, found = specification_in(text)
    if found is None:
        raise UsageError(f"sim: {sections} sections in {_shown(text)}", hint=_HINT)
    policy = ALLOC_POLICIES.get(found.policy, found.policy)
    if policy not in ALLOC_POLICIES.values():
        known = ", ".join(f"{short} ({name})" for short, name in ALLOC_POLICIES.items())
        raise UsageError(f"sim: no such allocation policy: {_shown(found.policy)}", hint=f"known: {known}")
    if found.exclusive not in ("True", "False"):
        raise UsageError(f"sim: exclusive storage is True or False, not {_shown(found.exclusive)}", hint=_HINT)
    cpus = _whole("CPUs", found.cpus)
    if cpus < 1:
        raise UsageError("sim: nodes without a CPU: htools would never stop counting on them", hint=_HINT)
    memory = _size("memory", found.memory)
    spindles = _whole("spindles", found.spindles)
    if not memory or not spindles:
        what = "a spindle" if memory else "memory"
        raise UsageError(f"sim: nodes without {what}: the score of such a cluster is not a number", hint=_HINT)
    count, disk = _whole("node count", found.node_count), _size("disk", found.disk)
    resources = Resources(
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
        raise UsageError(f"sim: {what} should be a whole number, not {_shown(text)}", hint=_HINT)
    return _bounded(what, text, int(text))


def _size(what: str, text: str) -> int:
    match = _SIZE.fullmatch(text.lstrip(_BLANKS))
    unit = bytes_of(match[2]) if match else None
    if match is None or unit is None:
        raise UsageError(f"sim: {what} should be a size, not {_shown(text)}", hint="MiB, or with m, g or t")
    return _bounded(what, text, int(match[1]) * unit // MIB)


def _bounded(what: str, text: str, number: int) -> int:
    bound = BOUNDS.get(what.lower())  # the nodes are counted over all specifications
    if bound is not None and (refusal := bound.refusal(number)):
        raise UsageError(f"sim: {what} {_shown(text)}: {refusal}")
    return number


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}…")
