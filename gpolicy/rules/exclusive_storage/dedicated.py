"""GP406, GP410, GP415, GP416 and GP419: nodes that are handed out whole or in parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from gpolicy.checking.context import EXCLUSIVE_STORAGE, MINMAX, Context, name_of, number
from gpolicy.checking.node_limits import kept_by_node, kept_disk, terms_in, total_disk, total_of
from gpolicy.checking.pairs import amount, comparable
from gpolicy.checking.rule import Explains, Hit, Rule
from gpolicy.findings import Related, Span, info_rule, warning_rule
from gpolicy.policy.model import GroupPolicy, Hardware, Leaf
from gpolicy.rules.examples import DEDICATED, EXCLUSIVE, FULL, HARDWARE, WHOLE_NODES, bounds
from gpolicy.rules.shapes import MoreWithState
from gpolicy.rules.shared import exclusive_groups, exclusive_hit

_GOOD: Final = EXCLUSIVE + HARDWARE + WHOLE_NODES + FULL
SHARES: Final = {"full": 1, "whole": 1, "half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8}
"""Names of specs that say how many of them a node is to hold."""
_COMPUTING: Final = "    - name: computing\n      " + bounds("100G 120G", "16 16", "100G 200G")
_STORAGE: Final = "    - name: storage\n      " + bounds("10G 20G", "4 4", "1T 2T")


@dataclass(frozen=True, slots=True)
class Share:
    """What instances of a dedicated group can have of a node: `amount` of a parameter, less what the node keeps.

    `spare` (MiB) has to stay free beside them: the allocator refuses an instance that takes the last of it.
    """

    parameter: str
    amount: int
    kept: int
    span: Span
    spare: int = 0
    figures: tuple[Leaf, ...] = ()

    @property
    def places(self) -> tuple[Related, ...]:
        """Where the policy says what a node has, and what it keeps."""
        kept = (Related(leaf.span, f"{leaf.path[-1]} is here") for leaf in self.figures)
        return (Related(self.span, "the hardware is promised here"), *kept)

    @property
    def most(self) -> int:
        """The most that all instances of a node can have together."""
        return self.amount - self.spare


def shares(context: Context, group: GroupPolicy, hardware: Hardware) -> Iterator[Share]:
    """Yield what a node of a group gives to instances: memory, disk, and CPUs where they are not shared."""
    if hardware.memory:
        said = kept_by_node(context, group, "mem_node", "mem_hv")
        left = hardware.memory.value - total_of(said)
        yield Share("memory-size", left, total_of(said), hardware.memory.span, spare=1, figures=said)
    disk = total_disk(hardware, terms_in(context, group))
    if disk is not None:
        yield Share("disk-size", disk, 0, hardware.pv_sizes[0].span, spare=1)
    ratio = context.effective(group, ("ipolicy", "vcpu-ratio"))
    if hardware.cpus and ratio is not None and 0 <= number(ratio) <= 1:
        said = kept_by_node(context, group, "cpu_node")
        kept = total_of(said) if said else _observed_kept(context, group)
        cpus = hardware.cpus.value
        allowed = int(cpus * number(ratio)) + 1
        while allowed / cpus > number(ratio):  # as the allocator compares: a product may round the other way
            allowed -= 1
        multiplied = (ratio,) if number(ratio) != 1 else ()
        yield Share("cpu-count", allowed - kept, kept, hardware.cpus.span, figures=(*multiplied, *said))


class NothingForTheNode(MoreWithState):
    info = warning_rule("GP415", "nothing-left-for-node")(
        summary="With exclusive storage, the largest instance of a spec leaves nothing for the node itself.",
        rationale="The node's own system and the hypervisor need memory and CPUs. hail and hspace refuse a node that"
        " gives everything away, since some memory must stay free. hv_state says what a node keeps (mem_node,"
        " cpu_node); without it, Ganeti counts one CPU.",
        source="Partitioned Ganeti, Dedicated CPUs and Dedicated RAM",
        bad=_GOOD.replace("max: {memory-size: 250G", "max: {memory-size: 256G"),
        good=_GOOD,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group, _, hardware in exclusive_groups(context):
            for share in shares(context, group, hardware):
                whole = share.amount + share.kept
                for pair in comparable(context.pairs(group)):
                    wanted = pair.maximum[share.parameter]
                    if share.most < wanted <= whole:  # more than that is GP212
                        message = f"{pair.title}: {share.parameter} {amount(share.parameter, wanted)} of"
                        message += f" {amount(share.parameter, whole)} leaves nothing {_for_whom(share, wanted)}"
                        below = "less than " if share.spare else ""
                        hint = f"lower the maximum to {below}{amount(share.parameter, share.amount)}"
                        hint += "" if share.spare else " or less"
                        if not share.kept and share.parameter == "memory-size":
                            hint = "lower the maximum; say in hv_state what the node keeps (mem_node)"
                        yield self.hit(group, message, pair.at("max", share.parameter), hint=hint, related=share.places)


def _for_whom(share: Share, wanted: int) -> str:
    if share.parameter == "disk-size":
        return "free: the allocator requires some free disk"
    if not share.kept:
        return "for the node; hv_state keeps nothing for it"
    keeps = f"the node keeps {amount(share.parameter, share.kept)}"
    return (
        f"free: {keeps}, and the allocator requires some more" if wanted == share.amount else f"for the node; {keeps}"
    )


def _observed_kept(context: Context, group: GroupPolicy) -> int:
    """Return how many CPUs every node of the observed group keeps; without a cluster the 1 that Ganeti counts."""
    seen = [node.resources.cpu_node for node in context.members.hosts_in(group)]
    return min((cpus for cpus in seen if cpus is not None), default=1)


def times_in_words(number: int) -> str:
    """Return `once`, `2 times`, …"""
    return "once" if number == 1 else f"{number} times"


class ShareFitsLessOften(MoreWithState):
    info = warning_rule("GP416", "share-fits-less-often")(
        summary="With exclusive storage, a spec named after a part of a node fits less often than its name says.",
        rationale="Nodes are given away whole, in halves or in quarters. If a half needs more than half of the memory,"
        " CPUs or disk that a node gives, it fits once and the rest stays unused. The allocator wants some memory and"
        " some disk to stay free: two halves of 32G do not fit in 64G.",
        source="Allocation for Partitioned Ganeti, Dedicated Allocation Metric",
        bad=EXCLUSIVE + HARDWARE + WHOLE_NODES + "half\n      " + bounds("124G 125G", "16 16", "5000G 5965G", "6 6"),
        good=EXCLUSIVE + HARDWARE + WHOLE_NODES + "half\n      " + bounds("124G 125G", "15 15", "5000G 5965G", "6 6"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group, _, hardware in exclusive_groups(context):
            given = list(shares(context, group, hardware))
            if hardware.volume_count is not None:
                given.append(Share("spindle-use", hardware.volume_count, 0, hardware.span))
            for pair in comparable(context.pairs(group)):
                times = SHARES.get((pair.name or "").lower(), 1)
                for share in given if times > 1 else ():
                    name, left = share.parameter, share.amount
                    bound = next((end for end in ("min", "max") if pair.bound(end)[name] * times > share.most), "min")
                    size = pair.bound(bound)[name]
                    if size * times > share.most >= size:
                        more = "all" if size * times == left else "more than"
                        message = f"{pair.title}: {times} times {name} {amount(name, size)} are {more} a node gives"
                        message += f" ({amount(name, left)}): it fits {times_in_words(share.most // size)}"
                        message += ", since some must stay free" if more == "all" else ""
                        below = "less than" if share.spare and left % times == 0 else "at most"
                        hint = f"one of {times} equal parts is {below} {amount(name, left // times)}"
                        yield self.hit(group, message, pair.at(bound, name), hint=hint, related=share.places)


class NodeKeepsEverything(MoreWithState):
    info = warning_rule("GP419", "node-keeps-everything")(
        summary="Nodes keep all or most of the memory or CPUs that their group promises, or all of the disk.",
        rationale="Instances do not get what hv_state and disk_state keep, so little or nothing is left for them."
        " Most likely a unit or a digit is wrong.",
        source="Resource model, Node parameters (hv_state, disk_state)",
        bad=f"{DEDICATED}{HARDWARE}hv_state:\n  kvm: {{mem_node: 256G}}\n",
        good=f"{DEDICATED}{HARDWARE}hv_state:\n  kvm: {{mem_node: 6G, mem_hv: 1G, cpu_node: 2}}\n",
    )
    explains = Explains(order=6, also_related=True)

    def check(self, context: Context) -> Iterator[Hit]:
        reported: set[Span] = set()
        for group in context.groups:
            for name, total, place, kept in _kept(context, group):
                left = total - total_of(kept)
                enough = left > 0 if name == "disk-size" else left * 2 >= total  # other volumes may be for much else
                if enough or kept[0].span in reported:
                    continue
                reported.add(kept[0].span)
                verb = "keeps" if len(kept) == 1 else "keep"
                message = (
                    f"{' and '.join(leaf.path[-1] for leaf in kept)} {verb} {amount(name, total_of(kept))} of the"
                    f" {amount(name, total)} that nodes of {group.name} have:"
                    f" {'less than half' if left > 0 else 'nothing'} is left"
                )
                related = (Related(place, "the hardware is promised here"),)
                yield self.hit(group, message, kept[0].span, hint="correct the unit, or the hardware", related=related)


def _kept(context: Context, group: GroupPolicy) -> Iterator[tuple[str, int, Span, tuple[Leaf, ...]]]:
    """Yield of what nodes of a group keep the spec parameter, what the group promises of it, where, and the values."""
    hardware = group.hardware
    if hardware is None:
        return
    disk = total_disk(hardware)
    if hardware.memory and (memory := kept_by_node(context, group, "mem_node", "mem_hv")):
        yield "memory-size", hardware.memory.value, hardware.memory.span, memory
    if hardware.cpus and (cpus := kept_by_node(context, group, "cpu_node")):
        yield "cpu-count", hardware.cpus.value, hardware.cpus.span, cpus
    if disk is not None and not context.exclusive(group) and (disks := kept_disk(context, group)):
        yield "disk-size", disk, hardware.pv_sizes[0].span, disks


class DedicatedCpuRatio(Rule):
    info = info_rule("GP406", "dedicated-vcpu-ratio")(
        summary="vcpu-ratio is above 1, but exclusive storage is on.",
        rationale="A partitioned node gives each instance its own hardware. With more virtual than physical CPUs the"
        " instances share them. Exclusive disks with shared CPUs are possible, if that is what you want.",
        source="Partitioned Ganeti, Dedicated CPUs",
        bad=f"{EXCLUSIVE}ipolicy: {{vcpu-ratio: 4}}\n",
        good=f"{EXCLUSIVE}ipolicy: {{vcpu-ratio: 1}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, (exclusive, ratio) in context.combined(EXCLUSIVE_STORAGE, ("ipolicy", "vcpu-ratio")):
            if exclusive.value is True and number(ratio) > 1:
                message = f"{name_of(declared)} shares its CPUs: vcpu-ratio is {ratio.value:g}"
                hint = "write vcpu-ratio: 1 if each instance is to have CPUs of its own"
                yield exclusive_hit(self, context, declared, ratio, exclusive, message, hint)


class DedicatedOrder(Rule):
    info = warning_rule("GP410", "dedicated-order")(
        summary="With exclusive storage, specs are not in descending order of their minimum disk size.",
        rationale="hail's dedicated metric sorts specs by the minimum of disk-size, biggest first; hspace uses the"
        " order of the list. If the two differ, placement protects another size than capacity counts. With equal"
        " minimums the metric's order is undefined.",
        source="Allocation for Partitioned Ganeti, Dedicated Allocation Metric",
        bad=f"{EXCLUSIVE}ipolicy:\n  minmax:\n{_COMPUTING}{_STORAGE}",
        good=f"{EXCLUSIVE}ipolicy:\n  minmax:\n{_STORAGE}{_COMPUTING}",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, (exclusive, _) in context.combined(EXCLUSIVE_STORAGE, MINMAX):
            if exclusive.value is not True:
                continue
            pairs = comparable(context.pairs(declared))
            for first, second in pairwise(pairs):
                low, high = second.minimum["disk-size"], first.minimum["disk-size"]
                if low < high:
                    continue
                how = "the same min disk-size as" if low == high else "a greater min disk-size than"
                message = f"{second.title} has {how} {first.title} before it"
                hint = "list the specs by descending min disk-size, and let no two be equal"
                related = (Related(first.at("min", "disk-size"), f"{first.title} is here"),)
                yield self.hit(declared, message, second.at("min", "disk-size"), hint=hint, related=related)
