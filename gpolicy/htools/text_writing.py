"""Writing htools' text format (`-S`): all columns, all sections."""

from __future__ import annotations

from gpolicy.allocator.ghc_numbers import fixed, shown_float
from gpolicy.htools.backends import node_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpolicy.allocator.cluster_data import Group, Instance, InstancePolicy, Spec
    from gpolicy.allocator.node import Node


def format_cluster(
    groups: Iterable[Group],
    nodes: Mapping[int, Node],
    instances: Iterable[Instance],
    tags: Iterable[str],
    policy: InstancePolicy,
) -> str:
    """Return a cluster's state in the text format, all columns, as `-S` writes it."""
    groups = list(groups)
    group_by_index = {group.index: group for group in groups}
    lines = [
        "|".join((group.name, group.uuid, group.alloc_policy.value, ",".join(group.tags), ",".join(group.networks)))
        for group in groups
    ]
    lines.append("")
    lines += [_format_node(node, group_by_index[node.facts.group]) for node in nodes.values()]
    lines.append("")
    lines += [_format_instance(instance, nodes) for instance in instances]
    lines.append("")
    lines += list(tags)
    lines.append("")
    lines.append(_format_policy("", policy))
    lines += [_format_policy(group.name, group.policy) for group in groups]
    return "".join(f"{line}\n" for line in lines)


def _format_node(node: Node, group: Group) -> str:
    facts = node.facts
    flag = "Y" if facts.offline else "M" if facts.master else "N"
    return "|".join(
        (
            facts.name,
            whole(facts.total_memory),
            str(facts.node_memory),
            str(facts.reported_free_memory),
            whole(facts.total_disk),
            str(node.free_disk),
            whole(facts.total_cpus),
            flag,
            group.uuid,
            str(facts.spindles),
            ",".join(facts.tags),
            "Y" if facts.exclusive else "N",
            str(node.free_spindles),
            str(facts.node_cpus),
            shown_float(facts.cpu_speed),
        )
    )


def whole(value: float) -> str:
    """Return a double as `%.0f` prints it."""
    return fixed(value, 0)


def _format_instance(instance: Instance, nodes: Mapping[int, Node]) -> str:
    spindles = instance.total_spindles
    return "|".join(
        (
            instance.name,
            str(instance.memory),
            str(instance.disk),
            str(instance.vcpus),
            instance.status.value,
            "Y" if instance.auto_balance else "N",
            node_name(nodes, instance, instance.primary),
            node_name(nodes, instance, instance.secondary),
            instance.template.value,
            ",".join(instance.tags),
            str(instance.spindle_use),
            "-" if spindles is None else str(spindles),
            "Y" if instance.forthcoming else "N",
        )
    )


def _format_policy(owner: str, policy: InstancePolicy) -> str:
    specs = ";".join(f"{_format_spec(pair.min)};{_format_spec(pair.max)}" for pair in policy.minmax)
    templates = ",".join(template.value for template in policy.templates)
    ratios = f"{shown_float(policy.vcpu_ratio)}|{shown_float(policy.spindle_ratio)}"
    return f"{owner}|{_format_spec(policy.std)}|{specs}|{templates}|{ratios}"


def _format_spec(spec: Spec) -> str:
    return f"{spec.memory},{spec.cpus},{spec.disk_size},{spec.disk_count},{spec.nic_count},{spec.spindle_use}"
