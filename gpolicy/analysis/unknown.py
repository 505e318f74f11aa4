"""What cannot be counted of a cluster, and the part of it that can.

A group is not known where one of its nodes does not answer or shows too little, and where htools cannot read one of
its instances. The other groups are counted without it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.analysis.allocator_input import why_unreadable
from gpolicy.cluster.state import ClusterState, Resources
from gpolicy.errors import GpolicyError, about
from gpolicy.printable import count, named, some

_SILENT: Final = "does not answer"
_MOST_REASONS: Final = 3
_MOST_NAMES: Final = 5
_FIGURES: Final = {"memory": "memory_total", "disk": "disk_total", "CPUs": "cpu_total", "spindles": "spindles_total"}
_DECLARE: Final = "declare what nodes have: hv_state and disk_state, or the `hardware` of the group"
_OTHER_SOURCE: Final = (
    "read the running cluster (local:, ssh://, rapi:// for all but spindles) or a snapshot of it; or"
    f" {_DECLARE} (with --resource-model they count before what is measured)"
)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why a group cannot be counted, and what makes it known. `silent` are the nodes of which figures are missing."""

    reason: str
    way_out: str
    silent: tuple[str, ...] = ()


def groups_with_unreadable_instances(state: ClusterState) -> dict[str, Unknown]:
    """Return the groups where htools cannot read an instance that has its primary there."""
    found: dict[str, list[tuple[str, str]]] = {}
    for name, instance in state.instances.items():
        if (reason := why_unreadable(instance)) is not None:
            found.setdefault(state.nodes[instance.primary_node].group, []).append((name, reason))
    return {group: _of_instances([name for name, _ in odd], odd[0][1]) for group, odd in found.items()}


def _of_instances(names: list[str], reason: str) -> Unknown:
    more = f" (and {count(len(names) - 1, 'more instance')})" if len(names) > 1 else ""
    way_out = (
        f"hail refuses every request until it can read {some(names)}; leave the instance disks of one template"
        f" (`gnt-instance modify --disk N:remove {names[0]}`: Ganeti does not convert it), or suppose that it is gone"
        f" (`--without {','.join(names[:_MOST_NAMES])}`)"
    )
    return Unknown(f"{reason}{more}", way_out)


def groups_with_gaps(state: ClusterState, gaps: Mapping[str, tuple[str, ...]]) -> dict[str, Unknown]:
    """Return the groups of the nodes in `gaps`, which tells the missing figures of each."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, missing in gaps.items():
        found.setdefault(state.nodes[name].group, {})[name] = missing
    return {group: _of_group(state, group, missing) for group, missing in found.items()}


def _of_group(state: ClusterState, group: str, gaps: Mapping[str, tuple[str, ...]]) -> Unknown:
    some_answer = any(node.resources.memory_total is not None for node in state.nodes.values())
    silent = [name for name in gaps if some_answer and state.nodes[name].resources == Resources()]
    by_gap: dict[tuple[str, ...], list[str]] = {}
    for name, missing in gaps.items():
        by_gap.setdefault((_SILENT,) if name in silent else missing, []).append(name)
    known = [node.resources for node in state.nodes_of(group)]
    shown = {what for what, name in _FIGURES.items() if any(getattr(item, name) is not None for item in known)}
    of_the_nodes = all(name in silent or shown.issuperset(missing) for name, missing in gaps.items())
    return Unknown(
        reason="; ".join(_sentence(names, missing) for missing, names in by_gap.items()),
        way_out=_of_nodes(list(gaps), silent=bool(silent)) if of_the_nodes else _OTHER_SOURCE,
        silent=tuple(gaps),
    )


def _sentence(nodes: list[str], missing: tuple[str, ...]) -> str:
    several = len(nodes) > 1
    do = "do" if several else "does"
    if _SILENT in missing:
        return f"{some(nodes)} {do} not answer"
    figures = [what for what in missing if what in _FIGURES]
    if not figures:
        return f"{some(nodes)} {do} not show {', '.join(missing)}"
    return f"{some(nodes)} {'show' if several else 'shows'} no {', '.join(figures)}"


def _of_nodes(nodes: list[str], *, silent: bool) -> str:
    here = f"`--offline {','.join(nodes[:_MOST_NAMES])}` here"
    until = "; until then Ganeti asks no allocator" if silent else ""
    mark = f"mark it offline (`gnt-node modify --offline yes {nodes[0]}`; {here}){until}"
    return f"repair {some(nodes)}, or {mark}; or {_DECLARE}"


def not_known(reasons: Mapping[str, str]) -> tuple[str, ...]:
    """Return sentences that name the groups that are not known, with the reason of each."""
    groups: dict[str, list[str]] = {}
    for group, reason in reasons.items():
        groups.setdefault(reason, []).append(group)
    said = [f"not known for {named('group', names)}: {reason}" for reason, names in groups.items()]
    more = sum(map(len, list(groups.values())[_MOST_REASONS:]))
    return (*said[:_MOST_REASONS], *([f"and not for {more} more, for other reasons"] if more else []))


def aside(unknown: Mapping[str, Unknown]) -> tuple[str, ...]:
    """Return notes on groups that are not known, and that the question is not about: hail would have to read them."""
    return tuple(f"group {name}: {item.reason}; {item.way_out}" for name, item in unknown.items())


def require(state: ClusterState, unknown: Mapping[str, Unknown], groups: Collection[str | None] = ()) -> None:
    """Raise GpolicyError if one of `groups` is not known, or no group of `state` that has nodes."""
    filled = {node.group for node in state.nodes.values()}
    wanted = {name: item for name, item in unknown.items() if name in groups}
    if not wanted and filled and filled <= unknown.keys():
        wanted = dict(unknown)
    if wanted:
        said = "; ".join(not_known({name: item.reason for name, item in wanted.items()}))
        raise GpolicyError(about(state.address, said), hint=next(iter(wanted.values())).way_out)


def without_groups(state: ClusterState, groups: Collection[str]) -> tuple[ClusterState, tuple[str, ...]]:
    """Return `state` without `groups`, and the instances that lose their secondary node with it.

    An instance with its primary in one of them is left out, too.
    """
    if not groups:
        return state, ()
    nodes = {name: node for name, node in state.nodes.items() if node.group not in groups}
    here = {name: instance for name, instance in state.instances.items() if instance.primary_node in nodes}
    split = {name: item for name, item in here.items() if not nodes.keys() >= set(item.secondary_nodes)}
    here |= {name: replace(item, secondary_nodes=()) for name, item in split.items()}
    left = {name: group for name, group in state.groups.items() if name not in groups}
    return replace(state, groups=left, nodes=nodes, instances=here), tuple(split)
