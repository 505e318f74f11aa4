"""Mend a policy round by round: apply fixes, check again, keep what made it better."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from gpolicy.findings import Edit, Finding, Severity
from gpolicy.fixing.applying import applied, without_overlap
from gpolicy.policy.source_file import Files

MOST_LOOKS: Final = 200
"""Checks that mending one policy may take; each costs as much as `gpolicy check`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a check finds: the findings, all files by name, and which files may be edited."""

    findings: list[Finding]
    files: Files
    editable: frozenset[str]


Check = Callable[[Mapping[str, str]], Look]
"""Checks the policy as it would be with these texts in place of what is in the files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """What mending came to: the changed texts by file, the findings that were mended, and what is still found."""

    texts: dict[str, str]
    fixed: list[Finding]
    left: Look


def mend(check: Check) -> Mended:
    """Apply the fixes of what `check` finds, and of what it finds then, until nothing changes.

    After each round the policy is checked again. A fix after which a file cannot be read, or there are more errors, is
    not kept; neither is one that would bring back a text that was there before.
    """
    return _Mending(check).run()


@dataclass(slots=True)
class _Mending:
    check: Check
    looks: int = 0
    original: Mapping[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    fixed: list[Finding] = field(default_factory=list)
    refused: set[tuple[object, ...]] = field(default_factory=set)
    seen: set[frozenset[tuple[str, str]]] = field(default_factory=set)

    def run(self) -> Mended:
        now = self.check({})
        self.original = {name: file.text for name, file in now.files.items()}
        self.seen.add(frozenset())
        while self.looks < MOST_LOOKS:
            batch = without_overlap(finding for finding in now.findings if self._is_wanted(finding, now))
            if not batch:
                break
            better = self._accept(batch, now)
            now = better or now
        return Mended(texts=self.texts, fixed=self.fixed, left=now)

    def _is_wanted(self, finding: Finding, now: Look) -> bool:
        files = {edit.span.file for edit in finding.fix.edits} if finding.fix else set()
        can_be_edited = bool(files) and files <= now.editable and files <= now.files.keys()
        return can_be_edited and _key(finding) not in self.refused

    def _accept(self, batch: list[Finding], now: Look) -> Look | None:
        """Apply as many of a batch as make the policy no worse, and return what is found then; None for none of it."""
        pending = [batch]
        while pending and self.looks < MOST_LOOKS:
            part = pending.pop()
            every = self.texts | applied(now.files, part)
            texts = {file: text for file, text in every.items() if text != self.original.get(file)}
            state = frozenset(texts.items())
            then = None
            if state not in self.seen:
                self.looks += 1
                then = self.check(texts)
            if then is not None and _is_no_worse(now, then):
                self.seen.add(state)
                self.texts = texts
                self.fixed += part
                return then
            if len(part) == 1:
                self.refused.add(_key(part[0]))
            else:
                middle = len(part) // 2
                pending += [part[middle:], part[:middle]]
        return None


def _key(finding: Finding) -> tuple[object, ...]:
    """Return what a fix is known by in the next round, when lines have moved."""
    edits: tuple[Edit, ...] = finding.fix.edits if finding.fix else ()
    return (finding.code, finding.message, *(edit.text for edit in edits))


def _is_no_worse(before: Look, after: Look) -> bool:
    """Return whether no file became unreadable and no errors were added.

    What becomes readable as a whole may show errors that nobody could see before.
    """
    unreadable, structure, errors = _errors(before)
    unreadable_then, structure_then, errors_then = _errors(after)
    if unreadable_then > unreadable:
        return False
    return structure_then < structure or (structure_then == structure and errors_then <= errors)


def _errors(look: Look) -> tuple[int, int, int]:
    """Return how many findings say that a file cannot be read, that its structure is wrong, and all errors."""
    errors = [finding.code for finding in look.findings if finding.severity is Severity.ERROR]
    return (
        sum(code.startswith("GP00") for code in errors),
        sum(code.startswith("GP0") for code in errors),
        len(errors),
    )
