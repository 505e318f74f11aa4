"""GP414 to GP416 and GP419: whole nodes and parts of them, with exclusive storage and CPUs of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gpolicy.checking.context import EXCLUSIVE_STORAGE, MINMAX, Context, number
from gpolicy.checking.in_force import in_force
from gpolicy.checking.members import hosts_in
from gpolicy.checking.pairs import amount, comparable
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleInfo, Severity, Span
from gpolicy.ganeti.vocabulary import HYPERVISORS
from gpolicy.policy.model import GroupPolicy, Hardware
from gpolicy.rules.exclusive_storage.spindles import exclusive_groups
from gpolicy.rules.specs.overlap import bounds

_DEDICATED: Final = "Partitioned Ganeti, Dedicated CPUs and Dedicated RAM"
_SPINDLES: Final = "Partitioned Ganeti, Spindles as a resource"
_NAME: Final = "gpolicy: v1\nkind: NodeGroup\nname: dedicated\n"
_GROUP: Final = _NAME + "ndparams: {exclusive_storage: true}\n"
_HARDWARE: Final = "hardware: {memory: 256G, cpus: 32, pv_count: 12, pv_size: 1T}\n"
_HEAD: Final = "ipolicy:\n  vcpu-ratio: 1\n  disk-templates: [plain]\n  minmax:\n    - name: "
_FULL: Final = "full\n      " + bounds("248G 250G", "30 30", "11000G 11930G", "12 12")
_GOOD: Final = _GROUP + _HARDWARE + _HEAD + _FULL


class SpindlesWithoutExclusiveStorage(Rule):
    """Specs made of spindles, where disks do not have spindles of their own."""

    info = RuleInfo(
        code="GP414",
        name="spindles-without-exclusive-storage",
        severity=Severity.WARNING,
        summary="A spec asks for an exact number of spindles, but exclusive storage is not on.",
        rationale="Only under exclusive storage are they physical volumes of the instance's own. Without it disks share"
        " all volumes, and spindle-use is a number that instances say of themselves (1, if nothing is said).",
        source=_SPINDLES,
        bad=_NAME + _HARDWARE + _HEAD + _FULL,
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for group in context.groups:
            hardware, value = group.hardware, in_force(context, group, EXCLUSIVE_STORAGE)
            on = value is not None and value.value is True
            if on or hardware is None or hardware.volume_count is None or context.own(group, MINMAX) is None:
                continue
            for pair in comparable(context.pairs(group)):
                spindles = pair.minimum["spindle-use"]
                if 1 < spindles == pair.maximum["spindle-use"]:
                    said = "is off" if value is not None else "is not declared"
                    message = f"{pair.title} asks for exactly {spindles} spindles, but exclusive storage {said}"
                    leaf = value.leaf if value is not None else None
                    related = (Related(leaf.span, "it is off here"),) if leaf else ()
                    hint = "write ndparams: {exclusive_storage: true}, or do not bind spindle-use"
                    yield self.hit(group, message, pair.at("min", "spindle-use"), hint=hint, related=related)
                    break  # one mistake, whatever the number of specs


@dataclass(frozen=True, slots=True)
class Share:
    """What instances of a dedicated group can have of a node: `amount` of a parameter, less what the node keeps."""

    parameter: str
    amount: int
    kept: int
    span: Span


def shares(context: Context, group: GroupPolicy, hardware: Hardware) -> Iterator[Share]:
    """Yield what a node of a group gives to instances: memory, and CPUs where they are not shared."""
    if hardware.memory:
        kept = _kept(context, group, "mem_node") or 0
        yield Share("memory-size", hardware.memory.value - kept, kept, hardware.memory.span)
    ratio = context.effective(group, ("ipolicy", "vcpu-ratio"))
    if hardware.cpus and ratio is not None and number(ratio) <= 1:
        said = _kept(context, group, "cpu_node")
        kept = _observed_kept(context, group) if said is None else said
        yield Share("cpu-count", int((hardware.cpus.value - kept) * number(ratio)), kept, hardware.cpus.span)


def _kept(context: Context, group: GroupPolicy, name: str) -> int | None:
    """Return what hv_state says that a node keeps, None if it says nothing: the most of the hypervisors' numbers."""
    found = [context.effective(group, ("hv_state", hypervisor, name)) for hypervisor in HYPERVISORS]
    return max((int(number(leaf)) for leaf in found if leaf is not None), default=None)


class NothingForTheNode(Rule):
    """A spec that takes the whole node, with nothing left for the node itself."""

    info = RuleInfo(
        code="GP415",
        name="nothing-left-for-node",
        severity=Severity.WARNING,
        summary="Where exclusive storage is on, the largest instance of a spec leaves nothing for the node itself.",
        rationale="The node's own system needs memory and CPUs, and so does the hypervisor; a node that gives away"
        " everything is refused by hail and hspace, which want some memory to stay free. What a node keeps is what"
        " hv_state says (mem_node, cpu_node); without it, Ganeti counts one CPU.",
        source=_DEDICATED,
        bad=_GOOD.replace("max: {memory-size: 250G", "max: {memory-size: 256G"),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for group, _, hardware in exclusive_groups(context):
            for share in shares(context, group, hardware):
                whole = share.amount + share.kept
                for pair in comparable(context.pairs(group)):
                    wanted = pair.maximum[share.parameter]
                    nothing = wanted > share.amount or (share.parameter == "memory-size" and wanted == whole)
                    if nothing and wanted <= whole:  # more than that is GP212
                        keeps = f"the node keeps {amount(share.parameter, share.kept)}" if share.kept else "it has all"
                        message = (
                            f"{pair.title}: {share.parameter} {amount(share.parameter, wanted)} of"
                            f" {amount(share.parameter, whole)} leaves nothing for the node; {keeps}"
                        )
                        hint = f"lower the maximum to {amount(share.parameter, share.amount)} or less"
                        if not share.kept:
                            hint = "lower the maximum; say in hv_state what the node keeps (mem_node)"
                        related = (Related(share.span, "the hardware is promised here"),)
                        span = pair.at("max", share.parameter)
                        yield self.hit(group, message, span, hint=hint, related=related)


def _observed_kept(context: Context, group: GroupPolicy) -> int:
    """Return how many CPUs every node of the observed group keeps; without a cluster the 1 that Ganeti counts."""
    seen = [node.resources.cpu_node for node in hosts_in(context, group)]
    return min((cpus for cpus in seen if cpus is not None), default=1)


SHARES: Final = {"full": 1, "whole": 1, "half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8}
"""Names of specs that say how many of them a node is to hold."""


class ShareFitsLessOften(Rule):
    """A half that is more than a half."""

    info = RuleInfo(
        code="GP416",
        name="share-fits-less-often",
        severity=Severity.WARNING,
        summary="Where exclusive storage is on, a spec named as a part of a node fits less often than its name says.",
        rationale="Nodes are handed out whole, in halves or quarters. When the memory, CPUs or volumes of a half are"
        " more than half of what the node gives, it fits once, and the rest is left over.",
        source="Allocation for Partitioned Ganeti, Dedicated Allocation Metric",
        bad=_GROUP + _HARDWARE + _HEAD + "half\n      " + bounds("124G 125G", "16 16", "5000G 5965G", "6 6"),
        good=_GROUP + _HARDWARE + _HEAD + "half\n      " + bounds("124G 125G", "15 15", "5000G 5965G", "6 6"),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for group, _, hardware in exclusive_groups(context):
            given = [(item.parameter, item.amount, item.span) for item in shares(context, group, hardware)]
            if hardware.volume_count is not None:
                given.append(("spindle-use", hardware.volume_count, hardware.span))
            for pair in comparable(context.pairs(group)):
                times = SHARES.get((pair.name or "").lower(), 1)
                for name, left, place in given if times > 1 else ():
                    least = pair.minimum[name]
                    if least * times > left >= least:
                        message = (
                            f"{pair.title}: {times} times {name} {amount(name, least)} are more than a node gives"
                            f" ({amount(name, left)}): it fits {left // least} times"
                        )
                        related = (Related(place, "the hardware is promised here"),)
                        hint = f"a part of {times} is {amount(name, left // times)} at most"
                        yield self.hit(group, message, pair.at("min", name), hint=hint, related=related)


class NodeKeepsEverything(Rule):
    """Nothing is left for instances."""

    info = RuleInfo(
        code="GP419",
        name="node-keeps-everything",
        severity=Severity.WARNING,
        summary="hv_state lets nodes keep all the memory or CPUs that their group promises.",
        rationale="What a node and its hypervisor keep is not for instances; here nothing is left for them. Most often"
        " a unit is wrong.",
        source="Resource model, Node parameters (hv_state)",
        bad=f"{_NAME}{_HARDWARE}hv_state:\n  kvm: {{mem_node: 256G}}\n",
        good=f"{_NAME}{_HARDWARE}hv_state:\n  kvm: {{mem_node: 6G, mem_hv: 1G, cpu_node: 2}}\n",
    )
    _KEPT: Final = {"memory": ("mem_node", "mem_hv"), "cpus": ("cpu_node",)}

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        reported: set[Span] = set()
        for group in context.groups:
            hardware = group.hardware
            promised = {"memory": hardware.memory, "cpus": hardware.cpus} if hardware else {}
            for what, has in promised.items():
                for hypervisor in HYPERVISORS if has is not None else ():
                    found = [context.effective(group, ("hv_state", hypervisor, name)) for name in self._KEPT[what]]
                    kept = [leaf for leaf in found if leaf is not None]
                    total = int(sum(number(leaf) for leaf in kept))
                    if has is None or total < has.value or not kept or kept[0].span in reported:
                        continue
                    reported.add(kept[0].span)
                    name = "memory-size" if what == "memory" else "cpu-count"
                    message = (
                        f"{' and '.join(leaf.path[-1] for leaf in kept)} keep {amount(name, total)} of the"
                        f" {amount(name, has.value)} that nodes of {group.name} have: nothing is left"
                    )
                    related = (Related(has.span, "the hardware is promised here"),)
                    hint = "correct the unit, or the hardware"
                    yield self.hit(group, message, kept[0].span, hint=hint, related=related)


DEDICATED_RULES: Final = (
    SpindlesWithoutExclusiveStorage(),
    NothingForTheNode(),
    ShareFitsLessOften(),
    NodeKeepsEverything(),
)
