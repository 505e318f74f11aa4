"""GP213 and GP214: specs against what Ganeti allows any instance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import RuleInfo, Severity
from gpolicy.policy import edits
from gpolicy.rules.parameters.values import GROUP
from gpolicy.rules.specs.overlap import bounds

CEILINGS: Final = {"disk-count": 16, "nic-count": 8}
"""The most disks and network interfaces that an instance of Ganeti can have (its constants MAX_DISKS, MAX_NICS)."""

_SOURCE: Final = "Ganeti 3.0, MAX_DISKS and MAX_NICS"
_WORDS: Final = {"disk-count": "disks", "nic-count": "network interfaces"}
_PAIR: Final = f"{GROUP}ipolicy:\n  minmax:\n    - name: small\n      {bounds('1G 12G', '1 3', '10G 90G')}"
_MIN, _MAX = _PAIR.partition("      max:")[::2]


class SpecMinAboveCeiling(Rule):
    """A pair that asks for more than any instance can have."""

    info = RuleInfo(
        code="GP213",
        name="spec-min-above-ceiling",
        severity=Severity.ERROR,
        summary="A spec asks for more than 16 disks or 8 network interfaces.",
        rationale="No instance of Ganeti can have so many, whatever the policy says: the spec allows none.",
        source=_SOURCE,
        bad=_PAIR.replace("disk-count: 1", "disk-count: 17"),
        good=_PAIR.replace("disk-count: 1", "disk-count: 16"),
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, _, pairs in context.minmax():
            for pair in pairs:
                for name, most in CEILINGS.items():
                    least = pair.minimum[name]
                    if pair.possible and least > most:
                        message = f"{pair.title} allows no instance: it asks for {least} {_WORDS[name]} at least"
                        hint = f"an instance can have {most}: write {most} or less"
                        yield self.hit(declared, message, pair.at("min", name), hint=hint)


class SpecMaxAboveCeiling(Rule):
    """A bound that no instance can reach."""

    info = RuleInfo(
        code="GP214",
        name="spec-max-above-ceiling",
        severity=Severity.WARNING,
        summary="A spec's maximum is above 16 disks or 8 network interfaces.",
        rationale="Ganeti accepts the bound, but no instance reaches it: 16 disks and 8 interfaces are its own limits.",
        source=_SOURCE,
        bad=f"{_MIN}      max:{_MAX.replace('nic-count: 1', 'nic-count: 9')}",
        good=f"{_MIN}      max:{_MAX.replace('nic-count: 1', 'nic-count: 8')}",
        fix="Writes Ganeti's own limit: the spec allows the same instances as before.",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, _, pairs in context.minmax():
            for pair in pairs:
                for name, most in CEILINGS.items():
                    if pair.minimum[name] <= most < pair.maximum[name]:
                        message = f"{pair.title}: no instance has {pair.maximum[name]} {_WORDS[name]}"
                        hint = f"write {most}, which is Ganeti's own limit"
                        leaf, place = pair.leaf, (*pair.leaf.pointer, pair.index, "max", name)
                        edit = edits.replace_value(leaf.document, place, str(most))
                        fix = edits.fix(f"write {most}", edit)
                        yield self.hit(declared, message, pair.at("max", name), hint=hint, fix=fix)


CEILING_RULES: Final = (SpecMinAboveCeiling(), SpecMaxAboveCeiling())
