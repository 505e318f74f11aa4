"""GP211, GP212, GP222 and GP223: specs against what a node of the group can give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from gpolicy.checking.context import Context, name_of, number
from gpolicy.checking.in_force import groups_where, in_force
from gpolicy.checking.pairs import amount, comparable
from gpolicy.checking.rule import Explains, Hit, Rule
from gpolicy.findings import Related, RuleParameter, error_rule, warning_rule
from gpolicy.ganeti.parameter import Level, Path
from gpolicy.policy.model import Declared, GroupPolicy
from gpolicy.printable import count as in_words
from gpolicy.rules.examples import GROUP, SIZES, bounds
from gpolicy.rules.shapes import MoreWithState

_GROUP: Final = f"{GROUP}hardware: {{memory: 64G, cpus: 16, pv_count: 2, pv_size: 1T}}\n"
_MANY_VOLUMES: Final = 4
"""With fewer, a volume may be an array of many disks."""
_ONE_DIGIT_MORE: Final = (8, 12)
"""How many times as large a number is that has a digit too many, roughly."""
_GIB: Final = 1024
_REPORTED: Final = 0.95
"""The share of its memory that Linux shows of a machine, at the least."""
_MEMORIES: Final = tuple(sorted(odd << power for odd in (1, 3, 5, 7, 9, 15) for power in range(2, 14)))
"""In GiB: what memory modules of usual sizes make."""
_SMALL_NODE: Final = 16 * 1024
"""MiB of memory: with less, a node is a virtual one for tests, or a small board."""
_COUNT: Final[Path] = ("ndparams", "spindle_count")


def _spec(memory: str, cpus: str = "1 16", disk: str = "10G 100G") -> str:
    return f"{_GROUP}ipolicy:\n  vcpu-ratio: 1\n  minmax:\n    - name: big\n      {bounds(memory, cpus, disk)}"


class SpecBeyondHardware(MoreWithState):
    info = error_rule("GP211", "spec-beyond-hardware")(
        summary="The smallest instance of a spec is larger than a node of the group.",
        rationale="No node of the group can hold such an instance, so the spec allows nothing.",
        source=SIZES,
        bad=_spec("96G 128G"),
        good=_spec("16G 60G"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            for excess in context.excesses.get(group.name, ()):
                by_spindles = context.exclusive(group) and excess.parameter in ("disk-size", "spindle-use")  # GP405
                if excess.bound == "min" and excess.limit.span is not None and not by_spindles:
                    hint = "make the spec smaller, or correct the hardware"
                    message = f"{excess.sentence('a node')}: no instance of it fits"
                    yield self.hit(group, message, excess.place, hint=hint, related=excess.limit.places)


class SpecMaxBeyondHardware(MoreWithState):
    info = warning_rule("GP212", "spec-max-beyond-hardware")(
        summary="The largest instance of a spec is larger than a node of the group.",
        rationale="The policy allows instances that no node can hold. Tiered allocation starts with the maximum and"
        " has to shrink it first, so it counts instances of another size than the policy means.",
        source=SIZES,
        bad=_spec("16G 96G"),
        good=_spec("16G 60G"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group in context.groups:
            for excess in context.excesses.get(group.name, ()):
                if excess.bound == "max" and excess.limit.span is not None:
                    hint = "lower the maximum to what a node can give"
                    message, related = excess.sentence("a node"), excess.limit.places
                    yield self.hit(group, message, excess.place, hint=hint, related=related)
        if left_out := [group for group in context.groups if group.name not in context.excesses]:
            message = f"the specs of {in_words(len(left_out), 'group')} are not compared with what nodes have"
            hint = "the policy has too many groups and specs for that: split it"
            yield self.hit(left_out[0], message, left_out[0].span, hint=hint)


class HardwareUnlikely(Rule):
    info = warning_rule("GP222", "hardware-unlikely")(
        summary="The promised memory is far too much or too little for the promised CPUs, machines have other numbers,"
        " a volume has no size, or spindle_count is many times the volumes.",
        rationale="Most likely a unit is wrong, or two digits are exchanged (526G for 256G). Specs, tests and"
        " suggestions are compared with the promise: if it is too large, they find no mistake.",
        bad=_GROUP.replace("memory: 64G", "memory: 64T"),
        good=_GROUP,
        parameters=(
            RuleParameter(
                name="least",
                default=512,
                summary="Report less memory for each CPU, in MiB; below 16G of memory and 16 CPUs a fifth.",
                least=0,
            ),
            RuleParameter(
                name="most",
                default=256 * 1024,
                summary="Report more memory for each CPU, in MiB.",
                least=1,
                most=1024**3,
            ),
        ),
    )
    explains = Explains(order=5)

    def check(self, context: Context) -> Iterator[Hit]:
        least, most = (context.settings.parameter(self.info, name) for name in ("least", "most"))
        yield from self._spindles(context)
        for group in context.groups:
            hardware = group.hardware
            for size in hardware.pv_sizes if hardware else ():
                if size.value == 0:
                    yield self.hit(group, "a physical volume of size 0", size.span, hint="write its size")
            yield from self._exchanged(group)
            if hardware is None or hardware.memory is None or hardware.cpus is None:
                continue
            each = hardware.memory.value / hardware.cpus.value
            is_small = hardware.memory.value < _SMALL_NODE and hardware.cpus.value < 16
            if not (least / 5 if is_small else least) <= each <= most:
                memory, cpus = amount("memory-size", hardware.memory.value), hardware.cpus.value
                message = (
                    f"{memory} of memory for {in_words(cpus, 'CPU')} is far too {'much' if each > most else 'little'}"
                )
                related = (Related(hardware.cpus.span, "the CPUs are here"),)
                hint = "correct the unit, or exchange the two numbers"
                yield self.hit(group, message, hardware.memory.span, hint=hint, related=related)

    def _spindles(self, context: Context) -> Iterator[Hit]:
        """Yield a spindle_count with a digit more than there are volumes; it may also be a weight of any size."""
        for declared, spindles in context.explicit_at(_COUNT):
            for group in groups_where(context, declared, spindles):
                volumes = group.hardware.pv_count if group.hardware else None
                times = number(spindles) / volumes.value if volumes is not None and volumes.value else 0
                if volumes and volumes.value >= _MANY_VOLUMES and _ONE_DIGIT_MORE[0] <= times <= _ONE_DIGIT_MORE[1]:
                    message = (
                        f"spindle_count is {spindles.value}, but nodes of {name_of(group)} have {volumes.value} volumes"
                    )
                    related = (Related(volumes.span, "they are promised here"),)
                    yield self.hit(declared, message, spindles.span, hint="correct one of them", related=related)
                    break

    def _exchanged(self, group: GroupPolicy) -> Iterator[Hit]:
        """Yield memory in GiB and CPUs that no machine has, but one with two digits exchanged."""
        memory, cpus = (group.hardware.memory, group.hardware.cpus) if group.hardware else (None, None)
        if memory is not None and memory.value % _GIB == 0:
            gib = memory.value // _GIB
            if meant := _exchanged_digits(gib, _is_usual_memory):
                yield self.hit(
                    group, f"hardly any machine has {gib}G of memory", memory.span, hint=f"Did you mean `{meant}G`?"
                )
        if cpus is not None and (meant := _exchanged_digits(cpus.value, _is_usual_cpus)):
            yield self.hit(
                group, f"hardly any machine has {cpus.value} CPUs", cpus.span, hint=f"Did you mean `{meant}`?"
            )


def _exchanged_digits(figure: int, is_usual: Callable[[int], bool]) -> int:
    """Return the usual figure that one is with two neighbouring digits exchanged; 0 if it is usual, or none is."""
    digits = str(figure)
    if is_usual(figure) or not 2 <= len(digits) <= 4:
        return 0
    exchanged = (digits[:at] + digits[at + 1] + digits[at] + digits[at + 2 :] for at in range(len(digits) - 1))
    return next((int(word) for word in exchanged if word[0] != "0" and is_usual(int(word))), 0)


def _is_usual_memory(gib: int) -> bool:
    """Return whether machines have so much memory, or Linux shows so much of it."""
    if gib < 8:
        return True
    return any(_REPORTED * size <= gib <= size for size in _MEMORIES)


def _is_usual_cpus(cpus: int) -> bool:
    if cpus < 8 or cpus in {84, 168}:  # rare numbers that there are: AMD EPYC 9634 has 84 cores
        return True
    odd = cpus // (cpus & -cpus)  # without its factors of 2
    return cpus % 2 == 0 and odd <= 15


class SpindleUseBeyondRatio(MoreWithState):
    info = warning_rule("GP223", "spindle-use-beyond-ratio")(
        summary="A spec requires or allows more spindle-use than spindle-ratio allows on a node.",
        rationale="All instances of a node together may use spindle-ratio times its spindle_count. hail and hspace"
        " refuse even the first instance that uses more and report FailDisk, however much disk is free.",
        source="Resource model, Instance policies; allocation of Ganeti 3.0",
        bad=f"{GROUP}ndparams: {{spindle_count: 2}}\nipolicy:\n  spindle-ratio: 2\n  minmax:\n    - name: busy\n      "
        + bounds("1G 12G", "1 3", "10G 90G", "6 8"),
        good=f"{GROUP}ndparams: {{spindle_count: 2}}\nipolicy:\n  spindle-ratio: 4\n  minmax:\n    - name: busy\n      "
        + bounds("1G 12G", "1 3", "10G 90G", "6 8"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        sets = [number(leaf) for declared, leaf in context.explicit_at(_COUNT) if declared.level is Level.NODE]
        for declared in context.cluster_and_groups:
            ratio, count = (in_force(context, declared, path) for path in (("ipolicy", "spindle-ratio"), _COUNT))
            if ratio is None or count is None or count.number < 1 or context.exclusive(declared):  # GP107
                continue
            spindles = max([count.number, *sets, *self._observed(context, declared)])
            limit = ratio.number * spindles
            for pair in comparable(context.pairs(declared)):
                bound = next((end for end in ("min", "max") if pair.bound(end)["spindle-use"] > limit), None)
                if bound is not None:
                    verb = "requires" if bound == "min" else "allows"
                    message = (
                        f"{pair.title} {verb} a spindle-use of {pair.bound(bound)['spindle-use']}, but a node takes"
                        f" {limit:g} (spindle_count {spindles:g}, ratio {ratio.number:g})"
                    )
                    related = tuple(
                        Related(item.leaf.span, f"{item.path[1]} is here") for item in (ratio, count) if item.leaf
                    )
                    hint = "raise spindle-ratio or spindle_count, or lower the bound"
                    yield self.hit(declared, message, pair.at(bound, "spindle-use"), hint=hint, related=related)

    def _observed(self, context: Context, declared: Declared) -> Iterator[float]:
        """Yield the own counts of the observed nodes of a group."""
        for node in context.members.hosts_in(declared) if isinstance(declared, GroupPolicy) else ():
            count = node.own.get(_COUNT)
            if isinstance(count, int | float):
                yield count
