"""Nodes against the ratios of their group's policy: hbal's own rule for "policy-violating nodes".

A node violates the policy with more virtual CPUs than its CPUs times `vcpu-ratio` (those of the node itself count, and
those of its primary instances unless they are ADMIN_offline), or with more spindles in use than its `spindle_count`
times `spindle-ratio` (`spindle_use` of plain and DRBD instances, also as a secondary; none under exclusive storage).
Exactly as many are no violation. Offline nodes count, too; one that does not answer has no CPUs. Ganeti itself never
looks at the ratios. Seen with hbal 3.0.2, which does not count nodes that fail N+1 (its "bad nodes").
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Final

from gpolicy.allocator.cluster_data import Node
from gpolicy.analysis.allocator_input import merged
from gpolicy.analysis.basis import MEMORY_AND_CPUS, Settled, settle_readable
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import GpolicyError
from gpolicy.printable import count

VCPU_RATIO: Final = "vcpu-ratio"
SPINDLE_RATIO: Final = "spindle-ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioBreach:
    """A ratio that a node exceeds: it has more in use than its own number times the ratio."""

    parameter: str
    """The ratio."""
    used: int
    """Virtual CPUs, those of the node itself included, or spindles in use."""
    own: int
    """The CPUs of the node, or its spindle_count."""
    ratio: float
    """The value of the ratio."""

    @property
    def beyond(self) -> int:
        """How many virtual CPUs or spindles are too many."""
        return max(1, ceil(self.used - self.own * self.ratio))

    @property
    def sentence(self) -> str:
        """The breach in numbers."""
        used, own = (
            ("virtual CPU", count(self.own, "CPU"))
            if self.parameter == VCPU_RATIO
            else ("spindle", f"spindle_count {self.own}")
        )
        most = f"{self.own * self.ratio:g} allowed: {own} times {self.parameter} {self.ratio:g}"
        return f"{count(self.used, used)} in use, {most}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVerdict:
    """The ratios that a node of `group` exceeds, and those of which that is unknown, with the `reason`."""

    group: str
    breaches: tuple[RatioBreach, ...] = ()
    unknown: tuple[str, ...] = ()
    reason: str = ""


def node_verdicts(state: ClusterState, settled: Settled | None = None) -> dict[str, NodeVerdict]:
    """Return the verdict on each node by name, by measured figures and, where they are missing, declared ones.

    What cannot be counted is unknown. `settled` is what `settle_readable` makes of the state, if it is known.
    """
    both = (VCPU_RATIO, SPINDLE_RATIO)
    try:
        counted = settled or settle_readable(state)
    except GpolicyError as error:
        reasons = dict.fromkeys(state.groups, error.message)
    else:
        reasons = {group: item.reason for group, item in counted.unknown.items()}
    found = {
        node.name: NodeVerdict(group=node.group, unknown=both, reason=reasons[node.group])
        for node in state.nodes.values()
        if node.group in reasons
    }
    if len(found) == len(state.nodes):
        return found
    for node in merged(counted.data, counted.resources).nodes.values():
        name = node.facts.name
        observed, breaches = state.nodes[name], ratio_breaches(node)
        figures = counted.figures.get(name)
        if figures is None or MEMORY_AND_CPUS in (*figures.measured, *figures.declared):
            found[name] = NodeVerdict(group=observed.group, breaches=breaches)
        else:
            known, reason = tuple(item for item in breaches if item.parameter != VCPU_RATIO), "its CPUs are not known"
            found[name] = NodeVerdict(group=observed.group, breaches=known, unknown=(VCPU_RATIO,), reason=reason)
    return found


def ratio_breaches(node: Node) -> tuple[RatioBreach, ...]:
    """Return the ratios that a node exceeds."""
    facts, found = node.facts, []
    if node.exceeds_vcpu_ratio:
        cpus = int(facts.total_cpus)
        found.append(RatioBreach(parameter=VCPU_RATIO, used=node.used_cpus, own=cpus, ratio=facts.vcpu_ratio))
    if node.exceeds_spindle_ratio:
        used, ratio = int(node.instance_spindles), facts.policy.spindle_ratio
        found.append(RatioBreach(parameter=SPINDLE_RATIO, used=used, own=facts.spindles, ratio=ratio))
    return tuple(found)
