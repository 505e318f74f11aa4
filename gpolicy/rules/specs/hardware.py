"""GP211, GP212, GP222 and GP223: specs against what a node of the group can give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context, number
from gpolicy.checking.pairs import Pair, amount, comparable
from gpolicy.checking.rule import Hit, Rule
from gpolicy.checking.volumes import terms_in
from gpolicy.cluster.terms import VolumeTerms
from gpolicy.findings import Related, RuleInfo, RuleParameter, Severity, Span
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import GroupPolicy, Hardware
from gpolicy.rules.examples import GROUP, bounds
from gpolicy.rules.specs.examples import SIZES

_GROUP: Final = f"{GROUP}hardware: {{memory: 64G, cpus: 16, pv_count: 2, pv_size: 1T}}\n"


def _spec(memory: str, cpus: str = "1 16", disk: str = "10G 100G") -> str:
    return f"{_GROUP}ipolicy:\n  vcpu-ratio: 1\n  minmax:\n    - name: big\n      {bounds(memory, cpus, disk)}"


def _limits(context: Context, group: GroupPolicy, hardware: Hardware) -> Iterator[tuple[str, float, Span]]:
    """Yield what a node can give at most to one instance: parameter, amount, and where it is promised."""
    if hardware.memory:
        yield "memory-size", hardware.memory.value, hardware.memory.span
    ratio = context.effective(group, ("ipolicy", "vcpu-ratio"))
    if hardware.cpus and ratio:
        yield "cpu-count", hardware.cpus.value * number(ratio), hardware.cpus.span
    exclusive = context.exclusive(group) is not None
    disk = total_disk(hardware, terms_in(context, group) if exclusive else None)
    if disk is not None:
        yield "disk-size", disk, hardware.pv_sizes[0].span


def total_disk(hardware: Hardware, exclusive: VolumeTerms | None = None) -> int | None:
    """Return the MiB of all physical volumes of a node together, at most; None where it is not said.

    Under exclusive storage the margin and reserve of its terms are taken off each volume.
    """
    sizes = [size.value for size in hardware.pv_sizes]
    count = hardware.volume_count
    if not sizes or count is None:
        return None
    if exclusive is not None:
        return exclusive.volume_size(min(sizes)).largest_disk(count)
    return sum(sizes) if count == len(sizes) else count * max(sizes)


def _beyond(context: Context, bound: str) -> Iterator[tuple[GroupPolicy, Pair, str, int, float, Span]]:
    """Yield where a `bound` (min or max) of a pair is above what a node of the group can give."""
    for group in context.groups:
        pairs = comparable(context.pairs(group)) if group.hardware else []
        for name, limit, place in _limits(context, group, group.hardware) if group.hardware and pairs else ():
            for pair in pairs:
                count = pair.minimum["disk-count"] if name == "disk-size" and bound == "min" else 1
                wanted = (pair.minimum if bound == "min" else pair.maximum)[name] * count
                full = bound == "min" and name != "cpu-count" and wanted == limit  # some must stay free
                if wanted > limit or full:
                    yield group, pair, name, wanted, limit, place


class SpecBeyondHardware(Rule):
    info = RuleInfo(
        code="GP211",
        name="spec-beyond-hardware",
        severity=Severity.ERROR,
        summary="The smallest instance of a spec is larger than a node of the group.",
        rationale="No node of the group can hold such an instance, so the spec allows nothing.",
        source=SIZES,
        bad=_spec("96G 128G"),
        good=_spec("16G 60G"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for group, pair, name, wanted, limit, place in _beyond(context, "min"):
            if name == "disk-size" and context.exclusive(group):
                continue  # counted in spindles there (GP405)
            message = f"{pair.title}: {_excess(name, wanted, limit)}: no instance of it fits"
            related = (Related(place, "the hardware is promised here"),)
            hint = "make the spec smaller, or correct the hardware"
            yield self.hit(group, message, pair.at("min", name), hint=hint, related=related)


class SpecMaxBeyondHardware(Rule):
    info = RuleInfo(
        code="GP212",
        name="spec-max-beyond-hardware",
        severity=Severity.WARNING,
        summary="The largest instance of a spec is larger than a node of the group.",
        rationale="The policy allows instances that no node can hold. Tiered allocation starts with the maximum and"
        " has to shrink it first, so it counts instances of another size than the policy means.",
        source=SIZES,
        bad=_spec("16G 96G"),
        good=_spec("16G 60G"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        none_fits = {(group.name, pair.index, name) for group, pair, name, *_ in _beyond(context, "min")}
        for group, pair, name, wanted, limit, place in _beyond(context, "max"):
            if (group.name, pair.index, name) not in none_fits:
                message = f"{pair.title}: {_excess(name, wanted, limit)}"
                related = (Related(place, "the hardware is promised here"),)
                hint = "lower the maximum to what a node can give"
                yield self.hit(group, message, pair.at("max", name), hint=hint, related=related)


def _excess(name: str, wanted: int, limit: float) -> str:
    if wanted == limit:
        return f"{name} {amount(name, wanted)} is all that a node has, and the allocator requires some to stay free"
    return f"{name} {amount(name, wanted)} is more than a node has ({amount(name, int(limit))})"


class HardwareUnlikely(Rule):
    info = RuleInfo(
        code="GP222",
        name="hardware-unlikely",
        severity=Severity.WARNING,
        summary="The promised memory is far too much or too little for the promised CPUs, or a volume has no size.",
        rationale="Most likely a unit is wrong. Specs, tests and suggestions are compared with the promise: if it is"
        " too large, they find no mistake.",
        bad=_GROUP.replace("memory: 64G", "memory: 64T"),
        good=_GROUP,
        parameters=(
            RuleParameter(name="least", default=100, summary="Report less memory for each CPU, in MiB.", least=0),
            RuleParameter(
                name="most",
                default=1024 * 1024,
                summary="Report more memory for each CPU, in MiB.",
                least=1,
                most=1024**3,
            ),
        ),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        least, most = (context.settings.parameter(self.info, name) for name in ("least", "most"))
        for group in context.groups:
            hardware = group.hardware
            for size in hardware.pv_sizes if hardware else ():
                if size.value == 0:
                    yield self.hit(group, "a physical volume of size 0", size.span, hint="write its size")
            if hardware is None or hardware.memory is None or hardware.cpus is None:
                continue
            each = hardware.memory.value / hardware.cpus.value
            if not least <= each <= most:
                memory, cpus = amount("memory-size", hardware.memory.value), hardware.cpus.value
                message = f"{memory} of memory for {cpus} CPUs is far too {'much' if each > most else 'little'}"
                related = (Related(hardware.cpus.span, "the CPUs are here"),)
                yield self.hit(group, message, hardware.memory.span, hint="correct the unit", related=related)


_SPINDLES: Final[Path] = ("ipolicy", "spindle-ratio")


class SpindleUseBeyondRatio(Rule):
    info = RuleInfo(
        code="GP223",
        name="spindle-use-beyond-ratio",
        severity=Severity.WARNING,
        summary="A spec requires more spindle-use than spindle-ratio allows on a node.",
        rationale="All instances of a node together may use spindle-ratio times its spindle_count. hail and hspace"
        " refuse even the first instance and report FailDisk, however much disk is free.",
        source="Resource model, Instance policies; allocation of Ganeti 3.0",
        bad=f"{GROUP}ndparams: {{spindle_count: 2}}\nipolicy:\n  spindle-ratio: 2\n  minmax:\n    - name: busy\n      "
        + bounds("1G 12G", "1 3", "10G 90G", "6 8"),
        good=f"{GROUP}ndparams: {{spindle_count: 2}}\nipolicy:\n  spindle-ratio: 4\n  minmax:\n    - name: busy\n      "
        + bounds("1G 12G", "1 3", "10G 90G", "6 8"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared in context.cluster_and_groups:
            ratio = context.effective(declared, _SPINDLES)
            count = context.effective(declared, ("ndparams", "spindle_count"))
            if ratio is None or count is None or context.exclusive(declared):
                continue
            limit = number(ratio) * number(count)
            for pair in comparable(context.pairs(declared)):
                least = pair.minimum["spindle-use"]
                if least > limit:
                    message = (
                        f"{pair.title} requires a spindle-use of {least}, but a node takes {limit:g}"
                        f" ({number(count):g} spindles, ratio {number(ratio):g})"
                    )
                    related = (
                        Related(ratio.span, "spindle-ratio is here"),
                        Related(count.span, "spindle_count is here"),
                    )
                    hint = "raise spindle-ratio or spindle_count, or lower the bound"
                    yield self.hit(declared, message, pair.at("min", "spindle-use"), hint=hint, related=related)
