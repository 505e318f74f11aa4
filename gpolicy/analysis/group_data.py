"""One group as a cluster of its own."""

from __future__ import annotations

from dataclasses import replace

from gpolicy.allocator.cluster_data import ClusterData, Instance
from gpolicy.allocator.enumerations import NO_NODE, DiskTemplate


def group_data(data: ClusterData, index: int) -> tuple[ClusterData, list[str]]:
    """Return the cluster that group `index` is alone, and the names of instances that reach into another group.

    Such an instance keeps its primary and loses its secondary; where only its secondary is in the group, it is left
    out (its disk is no longer free there either way).
    """
    group = data.groups[index]
    nodes = [node for node in data.nodes if node.group == index]
    place = {node.index: number for number, node in enumerate(nodes)} | {NO_NODE: NO_NODE}
    instances: list[Instance] = []
    split = []
    for instance in data.instances:
        if instance.primary not in place:
            continue
        if instance.secondary not in place:
            split.append(instance.name)
            instance = replace(instance, secondary=NO_NODE, template=_without_mirror(instance.template))  # noqa: PLW2901
        primary, secondary = place[instance.primary], place[instance.secondary]
        instances.append(instance.at(len(instances), instance.name, primary, secondary, instance.location_score))
    alone = replace(
        data,
        groups=(replace(group, index=0),),
        nodes=tuple(replace(node, index=place[node.index], group=0) for node in nodes),
        instances=tuple(instances),
        policy=group.policy,
    )
    return alone, split


def _without_mirror(template: DiskTemplate) -> DiskTemplate:
    return DiskTemplate.PLAIN if template is DiskTemplate.DRBD else template
