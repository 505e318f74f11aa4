"""GP724, GP725 and GP726: what the nodes of the observed cluster have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import EXCLUSIVE_STORAGE, Context, name_of
from gpolicy.checking.in_force import in_force
from gpolicy.checking.pairs import amount
from gpolicy.checking.rule import Hit, Rule
from gpolicy.checking.volumes import own_pool
from gpolicy.findings import Related, RuleParameter, Span, warning_rule
from gpolicy.ganeti.parameter import Level, Path
from gpolicy.policy.model import Hardware
from gpolicy.policy.source_file import Located
from gpolicy.printable import count
from gpolicy.rules.examples import GROUP, bounds

_SPINDLE_COUNT: Final[Path] = ("ndparams", "spindle_count")


def _size(memory: str) -> str:
    return f"{GROUP}ipolicy:\n  minmax:\n    - name: big\n      {bounds(memory, '1 4', '1G 10G')}"


class SpecBeyondNodes(Rule):
    info = warning_rule("GP724", "spec-beyond-nodes")(
        summary="The smallest or the largest instance of a spec is larger than every node of the group.",
        rationale="The spec is legal, but no instance of this size can be created until the group has larger nodes. If"
        " the group promises hardware, its specs are compared with that (GP211, GP212).",
        source="Partitioned Ganeti, Constrained instance sizes",
        bad=_size("96G 128G"),
        good=_size("16G 60G"),
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            for excess in context.excesses.get(group.name, ()):
                if excess.limit.span is None:
                    hint = "make the spec smaller" if excess.bound == "min" else "lower the maximum"
                    yield self.hit(group, excess.sentence(f"any node of {name_of(group)}"), excess.place, hint=hint)


class HardwareNotAsPromised(Rule):
    info = warning_rule("GP725", "hardware-not-as-promised")(
        summary="A node of the cluster has less than the hardware that its group promises.",
        rationale="gpolicy compares specs and tests with the promise, so their results are wrong for this node.",
        bad=f"{GROUP}hardware: {{memory: 128G, cpus: 16}}\n",
        good=f"{GROUP}hardware: {{memory: 64G, cpus: 16}}\n",
        parameters=(
            RuleParameter(
                name="tolerance",
                default=5,
                summary="Percent of the promised memory and volume size that may be missing, since the system keeps"
                " some.",
                most=100,
            ),
        ),
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        share = 1 - context.settings.parameter(self.info, "tolerance") / 100
        for group in context.groups:
            hardware = group.hardware
            if hardware is None:
                continue
            lacking: dict[str, list[tuple[str, str, str, Span]]] = {}
            for node in context.members.hosts_in(group):
                had = node.resources
                volumes = [volume.size for volume in own_pool(context, group, node).allocatable]
                promised = (
                    ("memory", "memory-size", hardware.memory, had.memory_total, share),
                    ("CPUs", "cpu-count", hardware.cpus, had.cpu_total, 1.0),
                    ("physical volumes", "disk-count", hardware.pv_count, len(volumes) or None, 1.0),
                    ("disk", "disk-size", None if volumes else _promised_disk(hardware), had.disk_total, share),
                )
                less = [
                    (what, amount(name, has), amount(name, item.value), item.span)
                    for what, name, item, has, part in promised
                    if item is not None and has and has < item.value * part
                ]
                smallest = min(hardware.pv_sizes, key=lambda size: size.value, default=None)
                if smallest is not None and volumes and min(volumes) < smallest.value * share:
                    sizes = [amount("disk-size", size) for size in (min(volumes), smallest.value)]
                    less.append(("a physical volume of", sizes[0], sizes[1], smallest.span))
                for what, has, wanted, span in less:
                    lacking.setdefault(what, []).append((node.name, has, wanted, span))
            for what, found in lacking.items():
                name, has, wanted, span = found[0]
                who = f"{name} in {name_of(group)} has"
                if len(found) > 1:
                    who = f"{name} and {count(len(found) - 1, 'more node')} of {name_of(group)} have"
                message = f"{who} less than promised: {what} {has}, not {wanted}"
                hint = "correct the promise, or put nodes that differ into another group"
                yield self.hit(group, message, span, hint=hint, related=(Related(hardware.span, "promised here"),))


def _promised_disk(hardware: Hardware) -> Located[int] | None:
    """Return the promised disk of a node, MiB: the sum of its volumes; None if they are not promised."""
    sizes, count = hardware.pv_sizes, hardware.volume_count
    if not sizes or count is None:
        return None
    total = sum(size.value for size in sizes) if len(sizes) > 1 else sizes[0].value * count
    return Located(total, sizes[0].span)


class NoSpindles(Rule):
    info = warning_rule("GP726", "no-spindles")(
        summary="Nodes of the cluster have a spindle_count of 0 or less.",
        rationale="htools divides by it, so the cluster's score is not a number: hbal and hail cannot tell a good"
        " placement from a bad one. With exclusive storage it is not read.",
        source="Resource model, Node parameters; Ganeti 3.0 stores it unchecked",
        bad=f"{GROUP}alloc_policy: preferred\n",
        good=f"{GROUP}ndparams: {{spindle_count: 1}}\n",
    )
    needs_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        if any(declared.level is Level.NODE for declared, _ in context.explicit_at(_SPINDLE_COUNT)):
            return  # the policy sees to it, node by node
        for group in context.groups:
            of_group, exclusive = (in_force(context, group, path) for path in (_SPINDLE_COUNT, EXCLUSIVE_STORAGE))
            if exclusive is not None and exclusive.value is True:
                continue
            inherited = of_group.value if of_group else None
            counts = {node.name: node.own.get(_SPINDLE_COUNT, inherited) for node in context.members.hosts_in(group)}
            without = [name for name, count in counts.items() if isinstance(count, int) and count <= 0]
            if without and (of_group is None or of_group.leaf is None or of_group.number > 0):  # else GP107 says it
                more = f" and {count(len(without) - 1, 'more node')} have" if len(without) > 1 else " has"
                message = f"{without[0]}{more} no spindles in {name_of(group)} (spindle_count 0 or less)"
                yield self.hit(group, message, group.span, hint="declare ndparams.spindle_count, 1 or more")
