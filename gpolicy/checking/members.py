"""Which nodes of the observed cluster are in which group once the policy is applied."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.policy.model import GroupPolicy, Policy
from gpolicy.resolve.desired import Desired


@dataclass(frozen=True, eq=False)
class Members:
    """The groups of the observed cluster and their nodes, as the policy wants them; empty without a cluster."""

    policy: Policy
    state: ClusterState | None
    desired: Desired | None

    @cached_property
    def group_of(self) -> dict[str, str]:
        """The group that each observed node will be in."""
        if self.state is None or self.desired is None:
            return {}
        found = {}
        for name, node in self.state.nodes.items():
            wanted = self.desired.nodes.get(name)
            found[name] = wanted.group.value if wanted and wanted.group else self.desired.name_after(node.group)
        return found

    @cached_property
    def _by_group(self) -> dict[str, list[LiveNode]]:
        nodes = self.state.nodes if self.state else {}
        found: dict[str, list[LiveNode]] = {}
        for name, group in sorted(self.group_of.items()):
            found.setdefault(group, []).append(nodes[name])
        return found

    def nodes_in(self, group: GroupPolicy) -> list[LiveNode]:
        """Return the observed nodes that will be in a group, by name."""
        return self._by_group.get(group.name, [])

    def hosts_in(self, group: GroupPolicy) -> list[LiveNode]:
        """Return those of them that can have instances."""
        return [node for node in self.nodes_in(group) if node.vm_capable]

    @property
    def has_undeclared_groups(self) -> bool:
        """Whether the observed cluster has groups that the policy says nothing about."""
        groups = self.policy.groups.values()
        names = {group.name for group in groups} | {group.renamed_from.value for group in groups if group.renamed_from}
        return self.state is not None and not names.issuperset(self.state.groups)
