"""Fix a policy round by round: apply the fixes of findings, check again, keep what made the policy better."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, starmap
from typing import Final

from gpolicy.checking.catalogue import CODES
from gpolicy.checking.checking import Examined
from gpolicy.findings import Edit, Finding, Role, Severity, Span, by_place, told
from gpolicy.policy.kinds import Policy
from gpolicy.policy.source_file import Files

MOST_CHECKS: Final = 200
"""Checks that fixing one policy may take; each costs as much as `gpolicy check`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRound:
    """What a check in a round finds: findings, all files by name, and those to edit. `checked` is each policy."""

    findings: list[Finding]
    files: Files
    editable: frozenset[str]
    checked: Sequence[Examined] = ()

    @classmethod
    def of(cls, checked: Sequence[Examined], editable: Iterable[str]) -> CheckRound:
        """Return the round of a check of one or several policies."""
        findings = by_place(finding for item in checked for finding in item.findings)
        files = {name: file for item in checked for name, file in item.policy.files.items()}
        return cls(findings=findings, files=files, editable=frozenset(editable), checked=checked)


CheckTexts = Callable[[Mapping[str, str]], CheckRound]
"""Checks the policy as it would be with these texts in place of what is in the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPolicy:
    """The changed texts by file, the findings that were fixed, and what was found before and is still found."""

    texts: dict[str, str]
    fixed: list[Finding]
    before: CheckRound
    left: CheckRound

    @property
    def policies(self) -> list[Policy]:
        """The policies as they are in their files."""
        return [item.policy for item in self.before.checked]


def fix_policy(check: CheckTexts) -> FixedPolicy:
    """Apply the fixes of what `check` finds, and of what it finds then, until nothing changes.

    After each round the policy is checked again. A fix after which a file cannot be read, or there are more errors, is
    not kept; neither is one that would bring back a text that was there before.
    """
    return _Rounds(check).run()


@dataclass(slots=True)
class _Rounds:
    check: CheckTexts
    checks: int = 0
    original: Mapping[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    fixed: list[Finding] = field(default_factory=list)
    refused: set[tuple[object, ...]] = field(default_factory=set)
    seen: set[frozenset[tuple[str, str]]] = field(default_factory=set)

    def run(self) -> FixedPolicy:
        before = now = self.check({})
        self.original = {name: file.text for name, file in now.files.items()}
        self.seen.add(frozenset())
        while self.checks < MOST_CHECKS:
            batch = without_overlap(finding for finding in told(now.findings) if self._is_wanted(finding, now))
            if not batch:
                break
            now = self._accept(batch, now) or now
        return FixedPolicy(texts=self.texts, fixed=self.fixed, before=before, left=now)

    def _is_wanted(self, finding: Finding, now: CheckRound) -> bool:
        files = {edit.span.file for edit in finding.fix.edits} if finding.fix else set()
        can_be_edited = bool(files) and files <= now.editable and files <= now.files.keys()
        return can_be_edited and _key_of_fix(finding) not in self.refused

    def _accept(self, batch: list[Finding], now: CheckRound) -> CheckRound | None:
        """Apply as many of a batch as make the policy no worse, and return what is found then; None for none of it."""
        pending = [batch]
        while pending and self.checks < MOST_CHECKS:
            part = pending.pop()
            every = self.texts | applied(now.files, part)
            texts = {file: text for file, text in every.items() if text != self.original.get(file)}
            state = frozenset(texts.items())
            if state not in self.seen:
                self.checks += 1
                then = self.check(texts)
                before, after = _errors(now), _errors(then)
                # what becomes readable as a whole may show errors that nobody could see before
                if after[0] <= before[0] and after[1:] <= before[1:]:
                    self.seen.add(state)
                    self.texts = texts
                    self.fixed += part
                    return then
            if len(part) == 1:
                self.refused.add(_key_of_fix(part[0]))
            else:
                middle = len(part) // 2
                pending += [part[middle:], part[:middle]]
        return None


def _key_of_fix(finding: Finding) -> tuple[object, ...]:
    """Return what a fix is known by in the next round, when lines have moved."""
    edits: tuple[Edit, ...] = finding.fix.edits if finding.fix else ()
    return (finding.code, finding.message, *(edit.text for edit in edits))


def _errors(look: CheckRound) -> tuple[int, ...]:
    """Return how many findings say that a file cannot be read, that its structure is wrong, and all errors."""
    errors = (item for item in told(look.findings) if item.severity is Severity.ERROR)
    codes = [item.code for item in errors if all(more.severity is not Severity.ERROR for more in item.consequences)]
    return (*(sum(map(CODES[role].__contains__, codes)) for role in (Role.UNREADABLE, Role.STRUCTURE)), len(codes))


def without_overlap(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings by place whose edits meet no earlier one's; two with the very same edits go together."""
    taken: list[Span] = []
    known: set[Edit] = set()
    chosen = []
    for finding in sorted(findings, key=Finding.sort_key):
        edits = finding.fix.edits if finding.fix else ()
        fresh = sorted(edit.span for edit in edits if edit not in known)
        if edits and not any(starmap(_meet, pairwise(fresh))) and all(_is_free(span, taken) for span in fresh):
            for span in fresh:
                insort(taken, span)
            known.update(edits)
            chosen.append(finding)
    return chosen


def applied(files: Files, findings: Iterable[Finding]) -> dict[str, str]:
    """Return the texts of the files that the fixes of findings change. The fixes must not overlap."""
    edits = {edit for finding in findings if finding.fix for edit in finding.fix.edits}
    changed: dict[str, list[Edit]] = {}
    for edit in edits:
        changed.setdefault(edit.span.file, []).append(edit)
    return {name: files[name].edited(edits) for name, edits in changed.items()}


def _is_free(span: Span, taken: list[Span]) -> bool:
    """Return whether a place meets none of the sorted places that are taken."""
    number = bisect_right(taken, span)
    return not any(starmap(_meet, pairwise((*taken[number - 1 : number], span, *taken[number : number + 1]))))


def _meet(first: Span, second: Span) -> bool:
    """Return whether two places, in their order, have text in common; ends may meet, insertions may not."""
    end = (first.file, first.end_line, first.end_column)
    return first == second or (second.file, second.line, second.column) < end
