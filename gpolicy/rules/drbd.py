"""GP12x: the disk parameters of drbd (resource model, "Disk parameters")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.findings import Related, RuleInfo, Severity
from gpolicy.ganeti.parameter import Path
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.rules.context import Context, number
from gpolicy.rules.parameters import CLUSTER
from gpolicy.rules.rule import Hit, Rule

_SOURCE: Final = "Resource model, Disk parameters"


def _path(name: str) -> Path:
    return ("diskparams", "drbd", name)


def _drbd(text: str) -> str:
    return f"{CLUSTER}diskparams:\n  drbd: {{{text}}}\n"


class DynamicResyncOff(Rule):
    """The resync controller is on and off at once."""

    info = RuleInfo(
        code="GP120",
        name="dynamic-resync-without-plan",
        severity=Severity.ERROR,
        summary="dynamic-resync is on, but c-plan-ahead is 0.",
        rationale="With dynamic-resync, c-plan-ahead must be non-zero: 0 turns DRBD's controller off, and Ganeti fails"
        " when it sets up the device.",
        source=_SOURCE,
        bad=_drbd("dynamic-resync: true, c-plan-ahead: 0"),
        good=_drbd("dynamic-resync: true, c-plan-ahead: 20"),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, (dynamic, plan) in context.combined(_path("dynamic-resync"), _path("c-plan-ahead")):
            if dynamic.value is True and plan.value == 0:
                message = "c-plan-ahead 0 turns off the controller that dynamic-resync turns on"
                place, related = context.own_first(declared, plan, dynamic)
                hint = "write c-plan-ahead in tenths of a second (DRBD's default is 20), or dynamic-resync: false"
                yield self.hit(declared, message, place.span, hint=hint, related=related)


class ResyncRatesReversed(Rule):
    """c-min-rate above c-max-rate."""

    info = RuleInfo(
        code="GP121",
        name="resync-rates-reversed",
        severity=Severity.ERROR,
        summary="The least resync rate is above the greatest.",
        rationale="The controller cannot hold both bounds. Ganeti does not check it.",
        source=_SOURCE,
        bad=_drbd("dynamic-resync: true, c-min-rate: 100M, c-max-rate: 60M"),
        good=_drbd("dynamic-resync: true, c-min-rate: 4M, c-max-rate: 60M"),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, (low, high) in context.combined(_path("c-min-rate"), _path("c-max-rate")):
            if number(low) > number(high):
                message = f"c-min-rate {low.value} KiB/s is above c-max-rate {high.value} KiB/s"
                place, related = context.own_first(declared, low, high)
                yield self.hit(declared, message, place.span, hint="swap the two", related=related)


class ResyncParameterIgnored(Rule):
    """A resync parameter of the controller that is not in use."""

    info = RuleInfo(
        code="GP122",
        name="resync-parameter-ignored",
        severity=Severity.INFO,
        summary="A resync parameter that the chosen controller does not read.",
        rationale="With dynamic-resync DRBD uses the c-* parameters, without it only resync-rate.",
        source=_SOURCE,
        bad=_drbd("dynamic-resync: false, c-max-rate: 90M"),
        good=_drbd("dynamic-resync: false, resync-rate: 60M"),
    )
    _DYNAMIC: Final = ("c-plan-ahead", "c-fill-target", "c-delay-target", "c-min-rate", "c-max-rate")

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared in context.cluster_and_groups:
            dynamic = context.effective(declared, _path("dynamic-resync"))
            if dynamic is None:
                continue
            for name in ("resync-rate",) if dynamic.value is True else self._DYNAMIC:
                leaf = context.own(declared, _path(name))
                parameter = parameter_at(_path(name))
                is_default = leaf is not None and parameter is not None and leaf.value == parameter.default
                if leaf is not None and not is_default:  # a default that is written out says nothing new
                    related = (Related(dynamic.span, "dynamic-resync is here"),)
                    message = f"{name} is not used: dynamic-resync is {str(dynamic.value).lower()}"
                    yield self.hit(declared, message, leaf.span, related=related)


BARRIER_SETS: Final = ("n", "b", "d", "f", "bd", "bf", "df", "bdf")
"""What disk-barriers can be, letters in any order: barriers, drain, flushes; n disables nothing."""


class DrbdBarriers(Rule):
    """disk-barriers that DRBD does not know."""

    info = RuleInfo(
        code="GP123",
        name="drbd-barriers",
        severity=Severity.ERROR,
        summary="disk-barriers is neither n nor a subset of b, f and d.",
        rationale="Ganeti stores anything and fails when the device is assembled: disks cannot be created or started.",
        source=_SOURCE,
        bad=_drbd("disk-barriers: nb"),
        good=_drbd("disk-barriers: fb"),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf in context.explicit_at(_path("disk-barriers")):
            if "".join(sorted(set(str(leaf.value)))) not in BARRIER_SETS:
                message = f"disk-barriers cannot be {leaf.value!r}"
                hint = "write n (disable nothing), or some of b (barriers), f (flushes) and d (drain)"
                yield self.hit(declared, message, leaf.span, hint=hint)


class DrbdProtocol(Rule):
    """A replication protocol that DRBD does not have."""

    info = RuleInfo(
        code="GP124",
        name="drbd-protocol",
        severity=Severity.ERROR,
        summary="protocol is none of A, B and C.",
        rationale="Ganeti stores anything; the connection of the disk cannot be set up.",
        source=f"{_SOURCE}; drbdsetup(8)",
        bad=_drbd("protocol: c"),
        good=_drbd("protocol: C"),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf in context.explicit_at(_path("protocol")):
            if leaf.value not in ("A", "B", "C"):
                meant = str(leaf.value).upper()
                hint = f"did you mean {meant}?" if meant in ("A", "B", "C") else "write A, B or C"
                yield self.hit(declared, f"DRBD has no protocol {leaf.value!r}", leaf.span, hint=hint)


RANGES: Final = {
    "resync-rate": (1, 4 << 20, "KiB/s"),
    "c-plan-ahead": (0, 300, "tenths of a second"),
    "c-fill-target": (0, 1 << 20, "sectors"),
    "c-delay-target": (1, 100, "tenths of a second"),
    "c-min-rate": (0, 4 << 20, "KiB/s"),
    "c-max-rate": (250, 4 << 20, "KiB/s"),
}
"""Least and greatest value that DRBD 8.3 and 8.4 take (drbdsetup(8))."""


class DrbdRange(Rule):
    """A number that DRBD refuses."""

    info = RuleInfo(
        code="GP125",
        name="drbd-range",
        severity=Severity.ERROR,
        summary="A resync parameter outside what DRBD takes.",
        rationale="Ganeti checks only that it is a number; drbdsetup refuses it, and the disk cannot be activated.",
        source=f"{_SOURCE}; drbdsetup(8), DRBD 8.3 and 8.4",
        bad=_drbd("resync-rate: -1"),
        good=_drbd("resync-rate: 60M"),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for name, (low, high, unit) in RANGES.items():
            for declared, leaf in context.explicit_at(_path(name)):
                if not low <= number(leaf) <= high:
                    message = f"{name} is {leaf.value}: DRBD takes {low} to {high} ({unit})"
                    yield self.hit(declared, message, leaf.span, hint=f"write a number from {low} to {high}")


DRBD_RULES: Final = (
    DynamicResyncOff(),
    ResyncRatesReversed(),
    ResyncParameterIgnored(),
    DrbdBarriers(),
    DrbdProtocol(),
    DrbdRange(),
)
