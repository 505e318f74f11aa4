"""GP12x: the disk parameters of drbd (resource model, "Disk parameters")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context, number
from gpolicy.checking.in_force import InForce, in_force, places, together
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, error_rule, warning_rule
from gpolicy.ganeti.parameter import Path
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.policy import edits
from gpolicy.policy.model import Declared
from gpolicy.rules.examples import CLUSTER
from gpolicy.rules.shared import RANGES

_SOURCE: Final = "Resource model, Disk parameters"
BARRIER_SETS: Final = ("n", "b", "d", "f", "bd", "bf", "df", "bdf")
"""What disk-barriers can be, letters in any order: barriers, drain, flushes; n disables nothing."""


def _path(name: str) -> Path:
    return ("diskparams", "drbd", name)


def _drbd(text: str) -> str:
    return f"{CLUSTER}diskparams:\n  drbd: {{{text}}}\n"


class DynamicResyncOff(Rule):
    info = error_rule("GP120", "dynamic-resync-without-plan")(
        summary="dynamic-resync is on, but c-plan-ahead is 0.",
        rationale="With dynamic-resync, c-plan-ahead must not be 0: 0 turns DRBD's controller off, and Ganeti fails"
        " when it sets up the device.",
        source=_SOURCE,
        bad=_drbd("dynamic-resync: true, c-plan-ahead: 0"),
        good=_drbd("dynamic-resync: true, c-plan-ahead: 20"),
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, (dynamic, plan) in together(context, _path("dynamic-resync"), _path("c-plan-ahead")):
            if dynamic.value is True and plan.value == 0:
                place, related, note = places(context, declared, plan, dynamic)
                message = f"c-plan-ahead 0 turns off the controller that dynamic-resync turns on{note}"
                hint = "write c-plan-ahead in tenths of a second (DRBD's default is 20), or dynamic-resync: false"
                yield self.hit(declared, message, place, hint=hint, related=related)


class ResyncRatesReversed(Rule):
    info = error_rule("GP121", "resync-rates-reversed")(
        summary="The minimum resync rate is above the maximum.",
        rationale="DRBD's controller cannot keep both bounds. Ganeti does not check them.",
        source=_SOURCE,
        bad=_drbd("dynamic-resync: true, c-min-rate: 100M, c-max-rate: 60M"),
        good=_drbd("dynamic-resync: true, c-min-rate: 4M, c-max-rate: 60M"),
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, (low, high) in together(context, _path("c-min-rate"), _path("c-max-rate")):
            if low.number > high.number:
                place, related, note = places(context, declared, low, high)
                message = f"c-min-rate {low.value} KiB/s is above c-max-rate {high.value} KiB/s{note}"
                hint = "declare both" if note else "swap the two"
                yield self.hit(declared, message, place, hint=hint, related=related)


class ResyncParameterIgnored(Rule):
    info = warning_rule("GP122", "resync-parameter-ignored")(
        summary="A resync parameter is set that DRBD's controller does not read.",
        rationale="With dynamic-resync, DRBD uses the c-* parameters; without it, only resync-rate. Of the"
        " controller's two targets, c-delay-target counts only if c-fill-target is 0.",
        source=_SOURCE,
        bad=_drbd("dynamic-resync: false, c-max-rate: 90M"),
        good=_drbd("dynamic-resync: false, resync-rate: 60M"),
    )
    finds_more_with_state = True
    _DYNAMIC: Final = ("c-plan-ahead", "c-fill-target", "c-delay-target", "c-min-rate", "c-max-rate")

    def check(self, context: Context) -> Iterator[Hit]:
        for declared in context.cluster_and_groups:
            dynamic = in_force(context, declared, _path("dynamic-resync"))
            if dynamic is None:
                static = context.own(declared, _path("resync-rate"))
                for name in self._DYNAMIC if static is not None else ():
                    cause = InForce(_path("resync-rate"), "set", static)
                    reason = "resync-rate is for the other mode, and nothing says which"
                    yield from self._ignored(context, declared, name, cause, reason)
                continue
            on = dynamic.value is True
            for name in ("resync-rate",) if on else self._DYNAMIC:
                reason = f"dynamic-resync is {str(dynamic.value).lower()}"
                yield from self._ignored(context, declared, name, dynamic, reason)
            target = in_force(context, declared, _path("c-fill-target"))
            if on and target is not None and target.number > 0:
                reason = f"c-fill-target is {target.value}; the delay counts only if it is 0"
                yield from self._ignored(context, declared, "c-delay-target", target, reason)

    def _ignored(self, context: Context, declared: Declared, name: str, cause: InForce, reason: str) -> Iterator[Hit]:
        leaf = context.own(declared, _path(name))
        parameter = parameter_at(_path(name))
        is_default = leaf is not None and parameter is not None and leaf.value == parameter.default
        if leaf is not None and not is_default:  # a default that is written out says nothing new
            related = (Related(cause.leaf.span, f"{cause.path[-1]} is here"),) if cause.leaf else ()
            yield self.hit(declared, f"{name} is not used: {reason}", leaf.span, related=related)


class DrbdBarriers(Rule):
    info = error_rule("GP123", "drbd-barriers")(
        summary="disk-barriers is neither n nor a combination of b, f and d.",
        rationale="Ganeti stores any text and fails when it assembles the device: disks cannot be created or started.",
        source=_SOURCE,
        bad=_drbd("disk-barriers: nb"),
        good=_drbd("disk-barriers: fb"),
        fix="Writes the letters in lower case. gpolicy does not guess what another value means.",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(_path("disk-barriers")):
            if "".join(sorted(set(str(leaf.value)))) not in BARRIER_SETS:
                message = f"disk-barriers cannot be {leaf.value!r}"
                hint = "write n (disable nothing), or some of b (barriers), f (flushes) and d (drain)"
                lower = str(leaf.value).lower()
                is_case = "".join(sorted(set(lower))) in BARRIER_SETS
                fix = edits.replace_word(context.policy, leaf.span, str(leaf.value), lower) if is_case else None
                yield self.hit(declared, message, leaf.span, hint=hint, fix=fix)


class DrbdProtocol(Rule):
    info = error_rule("GP124", "drbd-protocol")(
        summary="protocol is not A, B or C.",
        rationale="Ganeti stores any text, but the disk cannot connect to its peer.",
        source=f"{_SOURCE}; drbdsetup(8)",
        bad=_drbd("protocol: c"),
        good=_drbd("protocol: C"),
        fix="Writes the letter in upper case.",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(_path("protocol")):
            if leaf.value not in ("A", "B", "C"):
                meant = str(leaf.value).upper()
                is_case = meant in ("A", "B", "C")
                hint = f"Did you mean `{meant}`?" if is_case else "write A, B or C"
                fix = edits.replace_word(context.policy, leaf.span, str(leaf.value), meant) if is_case else None
                yield self.hit(declared, f"DRBD has no protocol {leaf.value!r}", leaf.span, hint=hint, fix=fix)


class DrbdRange(Rule):
    info = error_rule("GP125", "drbd-range")(
        summary="A resync parameter is outside the range that DRBD accepts.",
        rationale="Ganeti checks only that it is a number. drbdsetup refuses it, and the disk cannot be activated.",
        source=f"{_SOURCE}; drbdsetup(8), DRBD 8.3 and 8.4",
        bad=_drbd("resync-rate: -1"),
        good=_drbd("resync-rate: 60M"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for name, (low, high, unit) in RANGES.items():
            for declared, leaf in context.explicit_at(_path(name)):
                if not low <= number(leaf) <= high:
                    message = f"{name} is {leaf.value}: DRBD takes {low} to {high} ({unit})"
                    yield self.hit(declared, message, leaf.span, hint=f"write a number from {low} to {high}")


class DrbdNoWriteOrder(Rule):
    info = warning_rule("GP132", "drbd-no-write-order")(
        summary="disk-barriers disables barriers, flushes and drain: nothing keeps writes in order.",
        rationale="DRBD uses the first of the three methods that is left. With none, a crash may leave the peer's disk"
        " with later writes but without earlier ones, unless the storage never reorders writes. For a battery-backed"
        " cache write `bf`, which leaves drain.",
        source=f"{_SOURCE}; drbdsetup(8), write ordering method none",
        bad=_drbd("disk-barriers: bfd"),
        good=_drbd("disk-barriers: bf"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(_path("disk-barriers")):
            if "".join(sorted(set(str(leaf.value)))) == "bdf":
                message = "with barriers, flushes and drain disabled DRBD does not keep writes in order"
                yield self.hit(declared, message, leaf.span, hint="write bf, which leaves drain on")


class DrbdProtocolA(Rule):
    info = warning_rule("GP133", "drbd-protocol-a")(
        summary="protocol is A: a failover loses the last writes.",
        rationale="With A a write counts as done before the other node has it, so a failover loses the writes that were"
        " on their way. B waits until the other node has it in memory, C until it is on its disk. Instances migrate"
        " with each of them: Ganeti connects their disks with protocol C for that time.",
        source=f"{_SOURCE}; drbdsetup(8), protocol; Ganeti 3.0.2, how it connects disks",
        bad=_drbd("protocol: A"),
        good=_drbd("protocol: C"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(_path("protocol")):
            if leaf.value == "A":
                message = "with protocol A a failover loses the writes that the other node does not have yet"
                yield self.hit(declared, message, leaf.span, hint="write C or B, unless this is what you want")
