"""The physical volumes of groups and of observed nodes, under the terms of the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpolicy.checking.in_force import in_force
from gpolicy.cluster.volume_pools import VolumePool, VolumePools, volume_pools
from gpolicy.fit.terms import volume_terms

if TYPE_CHECKING:
    from gpolicy.checking.context import Context
    from gpolicy.cluster.state import Node
    from gpolicy.cluster.terms import VolumeTerms
    from gpolicy.ganeti.parameter import Path
    from gpolicy.ganeti.volume_arithmetic import VolumeSize
    from gpolicy.policy.model import GroupPolicy, Hardware

VOLUME_GROUP: Path = ("volume_group_name",)
METAVG: Path = ("diskparams", "drbd", "metavg")


def terms_in(context: Context, group: GroupPolicy) -> VolumeTerms:
    """Return what counts of the volumes of a group."""
    return volume_terms(context.policy.cluster, group)


def promised_size(context: Context, group: GroupPolicy, hardware: Hardware) -> VolumeSize | None:
    """Return how the promised volumes of a group count; None where no size is promised, or nothing of it counts."""
    sizes = [size.value for size in hardware.pv_sizes]
    found = terms_in(context, group).volume_size(min(sizes)) if sizes else None
    return found if found is not None and found.usable > 0 else None


def pools_in(context: Context, group: GroupPolicy, node: Node) -> VolumePools | None:
    """Return the pools of a node that is to be in `group`; None if its volumes were not read."""
    if node.physical_volumes is None:
        return None
    own = in_force(context, context.policy.cluster or group, VOLUME_GROUP)
    name = own.value if own is not None and isinstance(own.value, str) else None
    return volume_pools(node.physical_volumes, terms_in(context, group), name)


def own_pool(context: Context, group: GroupPolicy, node: Node) -> VolumePool:
    """Return the volumes of a node in the cluster's volume group; an empty pool if they were not read."""
    pools = pools_in(context, group, node)
    return pools.own if pools is not None else VolumePool()
