"""Declared resources (hv_state, disk_state) against those that nodes report, and what the difference does.

`resource_model(state) -> ResourceModel` compares within one state;
`resource_model_change(before, after, *, observer=None) -> ResourceModelChange` does so for two.

Ganeti stores hv_state and disk_state and computes nothing from them; htools reads what nodes measure. Here a node's
value is its own, else its group's, else the cluster's (Ganeti itself inherits none of them). What is not declared is
taken as reported, mem_total 0 and the CPU numbers that Ganeti fills in by itself count as not declared.

    free memory = mem_total - mem_node - mem_hv - sum of the instances
    free disk   = disk_total - disk_overhead - sum of the instances

Source: design document "Resource model".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpolicy.impact.binding import Binding


@dataclass(frozen=True, slots=True)
class Declared:
    """One declared number beside the reported one (None where nodes report no such thing). MiB or CPUs.

    `level` is where it is declared: node, group or cluster. `name` is Ganeti's: mem_total, disk_overhead, …
    """

    name: str
    declared: int
    level: str
    reported: int | None

    @property
    def differs(self) -> bool:
        """Whether the node reports another number."""
        return self.reported is not None and self.reported != self.declared


@dataclass(frozen=True, slots=True)
class Model:
    """Free memory and disk (MiB) and CPUs for instances of a node under one of the two models."""

    free_memory: int
    free_disk: int
    cpus: int


@dataclass(frozen=True, slots=True)
class NodeModel:
    """One node: what is declared for it, and what is free under either model.

    `minimum_memory` and `maximum_memory` are the sums of minmem and maxmem of its primaries that are not
    ADMIN_offline, `available_memory` what the node has for instances (total less what it keeps for itself).
    """

    node: str
    group: str
    declared: tuple[Declared, ...]
    measured: Model
    configured: Model
    available_memory: int
    minimum_memory: int
    maximum_memory: int

    @property
    def oversubscription(self) -> float | None:
        """Sum of maxmem over memory for instances; above 1 not all can burst at once. None without memory."""
        return self.maximum_memory / self.available_memory if self.available_memory > 0 else None


@dataclass(frozen=True, slots=True)
class GroupModel:
    """Standard instances of a group that fit under either model, and what binds."""

    group: str
    measured_fits: int
    measured_binding: Binding
    configured_fits: int
    configured_binding: Binding


@dataclass(frozen=True, slots=True)
class ResourceModel:
    """Both models of one state. `groups` are those with a node for which something is declared."""

    nodes: tuple[NodeModel, ...]
    groups: tuple[GroupModel, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourceModelChange:
    """Both models before and after."""

    before: ResourceModel
    after: ResourceModel
