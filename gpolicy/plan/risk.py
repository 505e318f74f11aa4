"""How risky a change is, and why."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.parameter import Level, Path, TakesEffect, Value
from gpolicy.ganeti.parameters import parameter_at, reach_of
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS
from gpolicy.plan.change import ChangeAction, Risk, words
from gpolicy.printable import count

RISK_OF_ACTION = {ChangeAction.REMOVE: Risk.HIGH, ChangeAction.MOVE: Risk.MEDIUM}
"""The risk of changes of names and membership, if it is not low."""

MOVE_UNCHECKED = "Ganeti checks neither the policy nor the node parameters of the new group"
MOVE_CHANGES = "its node parameters change with it: "
MAY_VIOLATE = "existing instances may violate the new policy; Ganeti warns, and refuses to modify them later"
STANDS_IN = "Ganeti cannot remove this value; it is set to what would be inherited"
_POOL_GROWS = (
    "Ganeti promotes nodes, in no given order, with this job or a later one; on 3.0.2 the job that does may end in"
    " `Corrupt configuration file`, and succeeds when it is run again"
)
_NETWORK = frozenset({("master_netdev",), ("master_netmask",)})


def risk_of(
    state: ClusterState, level: Level, name: str | None, path: Path, before: Value, after: Value
) -> tuple[Risk, str]:
    """Return the risk of changing the effective value at `path` of an object, and the reason in a few words."""
    users = len(instances_with(state, path[1], level, name)) if redirects_disks(path) and before != after else 0
    return risk_with(path, before, after, users)


def risk_with(path: Path, before: Value, after: Value, users: int) -> tuple[Risk, str]:
    """Return the same where `users` instances have disks that the value at `path` redirects."""
    if before == after:
        return Risk.LOW, ""
    risk, reason = _risk(path, before, after, users)
    reach = reach_of(path)
    if reach is None:
        return risk, reason
    return Risk.MEDIUM if risk is Risk.LOW else risk, f"{reason}; {reach}" if reason else str(reach)


def risk_when_new(path: Path) -> tuple[Risk, str]:
    """Return the risk of a value of a new group: nobody uses the group yet, but the value may reach root."""
    reach = reach_of(path)
    return (Risk.MEDIUM, str(reach)) if reach else (Risk.LOW, "")


def redirects_disks(path: Path) -> bool:
    """Return whether Ganeti looks for existing disks somewhere else after a change of the value at `path`."""
    parameter = parameter_at(path)
    return parameter is not None and parameter.takes_effect is TakesEffect.EXISTING_DISKS_AT_ONCE


def _risk(path: Path, before: Value, after: Value, users: int) -> tuple[Risk, str]:
    if redirects_disks(path):
        if users:
            who = f"{count(users, 'instance')} {'has' if users == 1 else 'have'} {path[1]} disks"
            return Risk.HIGH, f"{who}, which are looked for in the new place at once"
        return Risk.LOW, f"no instance has {path[1]} disks"
    if path == ("ndparams", "exclusive_storage"):
        return Risk.HIGH, "converts no existing disk; Ganeti checks neither disks nor physical volumes"
    if path in _NETWORK:
        return Risk.HIGH, "takes the master address down and up; connections to it break"
    return _ordinary(path, before, after)


def _ordinary(path: Path, before: Value, after: Value) -> tuple[Risk, str]:
    match path:
        case ("ipolicy", "minmax") | ("ipolicy", "disk-templates"):
            return (Risk.LOW, "") if _allows_as_much(before, after) else (Risk.MEDIUM, MAY_VIOLATE)
        case ("enabled_disk_templates",):
            gone = sorted(set(words(before)) - set(words(after)))
            return (Risk.MEDIUM, f"disables {', '.join(gone)}") if gone else (Risk.LOW, "")
        case ("enabled_hypervisors",):
            return Risk.MEDIUM, "Ganeti verifies the hypervisors on every node"
        case ("candidate_pool_size",) if isinstance(before, int) and isinstance(after, int):
            if after > before:
                return Risk.MEDIUM, _POOL_GROWS
            return Risk.LOW, "Ganeti demotes no node"
        case ("volume_group_name",) | ("drbd_usermode_helper",):
            return Risk.MEDIUM, "must fit on every node"
        case ("ndparams", "ssh_port"):
            return Risk.MEDIUM, "ssh to the node must already answer on the new port"
    return Risk.LOW, ""


def _allows_as_much(before: Value, after: Value) -> bool:
    """Return whether an instance that `before` allows (spec pairs or disk templates) is surely allowed by `after`."""
    if not isinstance(before, list) or not isinstance(after, list):
        return False
    return all(any(_contains(new, old) for new in after) for old in before)


def _contains(outer: Value, inner: Value) -> bool:
    """Return whether a disk template is the same, or every size of a spec pair is one of another pair."""
    if not isinstance(outer, dict) or not isinstance(inner, dict):
        return outer == inner
    low, high = ([_spec(pair, bound) for pair in (outer, inner)] for bound in ("min", "max"))
    return all(
        low[0].get(name, inf) <= low[1].get(name, -inf) and high[1].get(name, inf) <= high[0].get(name, -inf)
        for name in SPEC_PARAMETERS
    )


def _spec(pair: Mapping[str, Value], bound: str) -> dict[str, int]:
    """Return the numbers of one bound of a pair."""
    spec = pair.get(bound)
    return {name: value for name, value in spec.items() if isinstance(value, int)} if isinstance(spec, dict) else {}


def instances_with(state: ClusterState, template: str, level: Level, name: str | None) -> list[str]:
    """Return the instances with disks of `template` on the nodes of an object (cluster, group or node)."""
    return sorted(
        instance.name
        for instance in state.instances.values()
        if any(disk.template == template for disk in instance.disks)
        and (
            level is Level.CLUSTER
            or (level is Level.NODE and instance.primary_node == name)
            or (level is Level.GROUP and group_of(state, instance.primary_node) == name)
        )
    )


def group_of(state: ClusterState, node: str) -> str | None:
    """Return the group that a node is in now, None for an unknown node."""
    known = state.nodes.get(node)
    return known.group if known else None
