"""The basis of the sizes of one group: template, hardware, and divisors."""

from __future__ import annotations

from dataclasses import dataclass

from gpolicy.allocator.cluster_data import ClusterData, InstancePolicy
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.allocator.merge import merge
from gpolicy.analysis.declared_resources import known_states
from gpolicy.analysis.disk_templates import enabled_templates, first_allowed, wanted_template
from gpolicy.cluster.state import ClusterState, LiveGroup
from gpolicy.errors import GpolicyError, UsageError
from gpolicy.ganeti.units import rough_size
from gpolicy.printable import count, some
from gpolicy.suggest.node_hardware import kinds_of, node_hardware, smallest_volume, usable_volume
from gpolicy.suggest.size_names import size_name
from gpolicy.suggest.suggestion import NodeKind, SuggestRequest
from gpolicy.suggest.tiling import Ground, Tiling, part, tiling


@dataclass(frozen=True, slots=True)
class Grounds:
    """Finds the basis of the sizes. `data` is the group alone, as the allocator's input."""

    state: ClusterState
    request: SuggestRequest
    data: ClusterData

    def dedicated(self) -> bool:
        """Return whether the nodes have exclusive storage; all nodes of a group should agree."""
        flags = {node.exclusive_storage for node in self.data.nodes if not node.offline}
        if len(flags) > 1:
            name = self.data.groups[0].name
            raise GpolicyError(
                f"group {name}: exclusive storage is on for only some of its nodes", hint="split the group"
            )
        return flags == {True}

    def template(self, group: LiveGroup, today: InstancePolicy, *, exclusive: bool) -> DiskTemplate:
        """Return the disk template of the sizes. Raise UsageError for one that the group does not allow."""
        enabled = enabled_templates(self.state)
        if exclusive:
            if self.request.template not in (None, DiskTemplate.PLAIN.value):
                raise UsageError(f"group {group.name} has exclusive storage, which is for plain disks only")
            return wanted_template(DiskTemplate.PLAIN.value, enabled)
        if self.request.template is None:
            found = first_allowed(enabled, today, exclusive=False)
            if found is None:
                raise GpolicyError(f"group {group.name}: no enabled disk template is allowed by its policy")
            return found
        template = wanted_template(self.request.template, enabled)
        if template not in today.templates:
            names = ", ".join(item.value for item in today.templates)
            raise UsageError(f"group {group.name} does not allow {template.value}", hint=f"it allows {names}")
        return template

    def ground(self, template: DiskTemplate, notes: list[str], *, exclusive: bool) -> tuple[Ground, int | None]:
        """Return the properties of all nodes, and the size of the smallest physical volume if volumes count."""
        nodes = [node for node in self.data.nodes if not node.offline]
        name = self.data.groups[0].name
        if not nodes:
            raise GpolicyError(f"group {name}: no node is online, so there is nothing to measure")
        mirrored = template is DiskTemplate.DRBD
        threads = min(int(node.total_cpus) for node in nodes)
        if mirrored and len(nodes) == 1:
            hint = "for instances without a mirror: --template plain"
            raise UsageError(f"group {name}: drbd needs two nodes, but only one is online", hint=hint)
        left_out = [node.name for node in self.data.nodes if node.offline]
        if left_out:
            notes.append(f"skipped, since offline or drained: {', '.join(left_out)}")
        if not known_states(self.state):
            notes.append("the source does not show hv_state and disk_state: the reserve of nodes is the measured one")
        if not exclusive:
            return Ground(mirrored, len(nodes), threads), None
        smallest = smallest_volume(self.state, [node.name for node in nodes], self.request.volume, notes)
        return Ground(mirrored, len(nodes), threads, usable_volume(smallest)), smallest

    def kinds(self, empty: ClusterData, template: DiskTemplate, ratio: float, notes: list[str]) -> tuple[NodeKind, ...]:
        """Return the kinds of nodes that have room for instances. Raise GpolicyError if none has."""
        kinds = kinds_of(node_hardware(empty, self.state, template, ratio, self.request))
        useless = [node.name for kind in kinds for node in kind.nodes if not (node.room.memory and node.room.cpus)]
        if useless:
            notes.append(f"no memory or no CPUs for instances: {', '.join(useless)}")
        usable = tuple(kind for kind in kinds if kind.room.memory and kind.room.cpus)
        if not usable:
            raise GpolicyError(
                f"group {self.data.groups[0].name}: its nodes have no memory or no CPUs for instances"
                f" ({_room(kinds[0])})",
                hint="compare vcpu-ratio and hv_state with the nodes' own reserve",
            )
        if len(usable) > 1:
            alike = len({kind.room for kind in usable}) < len(usable)
            kinds_told = "; ".join(
                f"{some([node.name for node in kind.nodes])} ({_room(kind)}{_spindles(kind) if alike else ''})"
                for kind in usable
            )
            notes.append(f"there are {len(usable)} kinds of nodes: {kinds_told}")
        return usable

    def tiles(self, kinds: tuple[NodeKind, ...], ground: Ground) -> Tiling:
        """Return the requested sizes, or suitable ones. Raise UsageError or GpolicyError if there is none."""
        divisors = self.request.divisors or (tuple(sorted(self.request.mix)) if self.request.mix else None)
        rooms = [(kind.room, len(kind.nodes)) for kind in kinds]
        found = tiling(rooms, ground, divisors)
        if found is not None:
            return found
        name = self.data.groups[0].name
        room = f"the largest node has {_room(kinds[0])}"
        for divisor in divisors or ():
            if not any(part(kind.room, divisor, ground) for kind in kinds):
                hint = "name other --sizes"
                raise UsageError(f"group {name}: there is no {size_name(divisor)} of its nodes: {room}", hint=hint)
        raise GpolicyError(f"group {name}: its nodes are too small for any instance: {room}")

    def spindle_use(self, tiles: Tiling, template: DiskTemplate) -> dict[int, int]:
        """Return the greatest spindle use of each size: its volumes, or its share of the spindle-ratio."""
        nodes = merge(self.data).nodes.values()
        most = min(node.facts.high_spindles for node in nodes if not node.facts.offline)
        copies = 2 if template is DiskTemplate.DRBD else 1
        return {
            divisor: size.volumes if size.volumes is not None else max(1, int(most // (divisor * copies)))
            for divisor, size in tiles.sizes.items()
        }


def _spindles(kind: NodeKind) -> str:
    most = kind.nodes[0].spindle_use
    return "" if most is None else f", {most:g} of spindle use"


def _room(kind: NodeKind) -> str:
    room = kind.room
    parts = [f"{rough_size(room.memory)} memory", count(room.cpus, "virtual CPU")]
    if room.disk is not None:
        parts.append(f"{rough_size(room.disk)} disk")
    if room.volumes is not None:
        parts.append(count(room.volumes, "physical volume"))
    return f"{', '.join(parts)} for instances"
