"""Waivers accept findings for a time; the rules about waivers themselves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from datetime import date
from fnmatch import fnmatchcase
from typing import Final

from gpolicy.checking.rule import Hit
from gpolicy.findings import Finding, Fix, RuleInfo, error_rule, warning_rule
from gpolicy.guessing import MOST_GUESSES, did_you_mean
from gpolicy.policy import edits
from gpolicy.policy.model import Waiver

Find = Callable[..., tuple[RuleInfo | None, str]]
"""Returns the rule of a code or name; or None, and a hint, with a `guess` at what may have been meant."""

_GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\nndparams: {ssh_port: 2222}\n"
_EXCLUSIVE = """\
gpolicy: v1
kind: NodeGroup
name: gold
ndparams: {exclusive_storage: true}
ipolicy: {vcpu-ratio: 2, disk-templates: [plain]}
"""


def _waiver(rule: str, until: str, where: str = "group/gold") -> str:
    return (
        "---\ngpolicy: v1\nkind: Waiver\nwaivers:\n"
        f'  - {{rule: {rule}, where: {where}, reason: agreed with the owners, until: "{until}"}}\n'
    )


_GOOD: Final = _EXCLUSIVE + _waiver("dedicated-vcpu-ratio", "2099-12-31")

WAIVER_EXPIRED: Final = warning_rule("GP901", "waiver-expired")(
    summary="The last day of a waiver has passed.",
    rationale="The waiver no longer accepts the findings, and they are shown again.",
    bad=_GROUP + _waiver("spec-overlap", "2001-12-31"),
    good=_GOOD,
)
WAIVER_UNUSED: Final = warning_rule("GP902", "waiver-unused")(
    summary="A waiver accepts nothing, or what another one accepts already.",
    rationale="A waiver that outlives its reason would hide the next finding of that rule in that place.",
    bad=_GROUP + _waiver("spec-overlap", "2099-12-31"),
    good=_GOOD,
    fix="Removes the waiver, if the object or the file that it names exists.",
)
WAIVER_UNKNOWN_RULE: Final = error_rule("GP903", "waiver-unknown-rule")(
    summary="A waiver names a rule that does not exist.",
    rationale="It can never accept anything. Most likely the name is misspelt.",
    bad=_GROUP + _waiver("spec-overlaps", "2099-12-31"),
    good=_GOOD,
)
WAIVER_NOT_POSSIBLE: Final = error_rule("GP904", "waiver-not-possible")(
    summary="A waiver names a rule that cannot be waived.",
    rationale="A policy that cannot be read as a whole, or that Ganeti refuses, cannot be planned, whoever accepts it."
    " And waivers of findings about waivers would never end.",
    bad=_GROUP + _waiver("unknown-key", "2099-12-31"),
    good=_GOOD,
)
WAIVER_DATE: Final = error_rule("GP905", "waiver-date")(
    summary="The last day of a waiver is not a day of the calendar.",
    rationale="Nobody can say when the waiver ends, so gpolicy treats it as expired.",
    bad=_GROUP + _waiver("spec-overlap", "2027-02-30"),
    good=_GOOD,
)


class Waivers:
    """The waivers of one policy, matched with its findings; `findings` are about the waivers themselves."""

    def __init__(self, waivers: Iterable[Waiver], find: Find, today: date) -> None:
        self.findings: list[Finding] = []
        self._today = today
        self._find = find
        self._active: list[tuple[Waiver, RuleInfo]] = [
            (waiver, info) for waiver in waivers if (info := self._in_force(waiver)) is not None
        ]
        self._by_rule: dict[str, list[int]] = {}  # the places in `_active`
        for number, (_, info) in enumerate(self._active):
            self._by_rule.setdefault(info.key, []).append(number)
        self._used: set[int] = set()

    def covering(self, hit: Hit) -> Waiver | None:
        """Return the first waiver in force that accepts the finding, or None."""
        of_rule = {*self._by_rule.get(hit.finding.key, ()), *self._by_rule.get(hit.finding.code, ())}
        covering = [number for number in sorted(of_rule) if _is_there(self._active[number][0].where, hit)]
        self._used.update(covering)
        return self._active[covering[0]][0] if covering else None

    def unused(
        self, ran: Callable[[str], bool], labels: Collection[str] = (), files: Collection[str] = ()
    ) -> Iterator[Finding]:
        """Yield a finding for each waiver that covered nothing, if the rule it names (by its key) has run.

        Where its `where` names an object (one of `labels`) or one of `files`, it can go: nothing in it is misspelt.
        """
        first: dict[tuple[str, str], Waiver] = {}
        for number, (waiver, info) in enumerate(self._active):
            if number not in self._used and ran(info.key):
                message = f"{info.code} {info.name} finds nothing at {waiver.where!r}: the waiver is not needed"
                is_known = any(fnmatchcase(label, waiver.where) for label in labels) or any(
                    _names(waiver.where, file) for file in files
                )
                hint = "remove the waiver" if is_known else _guess(waiver.where, labels, files)
                yield WAIVER_UNUSED.finding(
                    message, waiver.span, hint=hint, fix=self._removal(waiver) if is_known else None
                )
            elif number in self._used and first.setdefault((info.key, waiver.where), waiver) is not waiver:
                message = f"another waiver accepts {info.code} {info.name} at {waiver.where!r} as well"
                hint = "keep the one that is right"
                yield WAIVER_UNUSED.finding(message, waiver.span, hint=hint, fix=self._removal(waiver))

    def _removal(self, waiver: Waiver) -> Fix | None:
        if waiver.document is None:
            return None
        removed = edits.remove_entry(waiver.document, waiver.pointer)
        if len(waiver.document.root["waivers"]) == 1:
            removed = edits.remove_document(waiver.document)
        return edits.fix("remove the waiver", removed)

    def _in_force(self, waiver: Waiver) -> RuleInfo | None:
        """Return the rule that the waiver names, or None (and a finding) if the waiver can waive nothing."""
        info, hint = self._find(waiver.rule, guess=len(self.findings) < MOST_GUESSES)
        last_day = None
        with suppress(ValueError):
            last_day = date.fromisoformat(waiver.until)
        if info is None:
            rule, message = WAIVER_UNKNOWN_RULE, f"there is no rule {waiver.rule!r}"
        elif not can_be_waived(info):
            reason = info.stays or "it is about what accepts findings"
            rule, message = WAIVER_NOT_POSSIBLE, f"{info.code} {info.name} cannot be waived: {reason}"
            hint = "fix what it finds"
        elif last_day is None:
            rule, message = WAIVER_DATE, f"{waiver.until} is not a day of the calendar"
            hint = "write the last day as YYYY-MM-DD"
        elif last_day < self._today:
            rule, message = WAIVER_EXPIRED, f"the waiver of {waiver.rule} ended on {waiver.until}"
            hint = "remove the waiver, or agree on a new last day"
        else:
            return info
        self.findings.append(rule.finding(message, waiver.span, hint=hint, missing="" if info else message))
        return None


def can_be_waived(info: RuleInfo) -> bool:
    """Return whether findings of the rule may be waived.

    Not errors that stay, not those about waivers, suppressions and the baseline (GP90x, GP91x).
    """
    return not info.stays and not info.code.startswith(("GP90", "GP91"))


def _is_there(where: str, hit: Hit) -> bool:
    """Return whether `where` names the object or the file of a finding; a file also by the end of its path."""
    return fnmatchcase(hit.label, where) or (hit.finding.span is not None and _names(where, hit.finding.span.file))


def _guess(where: str, labels: Collection[str], files: Collection[str]) -> str:
    """Return what a `where` that names nothing may mean; a bare name, the object of that name."""
    bare = [label for label in labels if label.partition("/")[2] == where]
    otherwise = "remove the waiver, or correct its `where`"
    return did_you_mean(bare[0] if bare else where, [*labels, *files], otherwise)


def _names(where: str, place: str) -> bool:
    return fnmatchcase(place, where) or fnmatchcase(place, f"*/{where}")
