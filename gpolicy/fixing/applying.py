"""Which fixes can be applied together, and the texts after them."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable

from gpolicy.findings import Edit, Finding
from gpolicy.policy.source_file import Files


def without_overlap(findings: Iterable[Finding]) -> list[Finding]:
    """Return of findings with a fix, in the order of their places, those whose edits do not meet an earlier one's.

    Two findings with the very same edits can be mended together.
    """
    taken: dict[str, list[tuple[tuple[int, int], tuple[int, int]]]] = {}
    known: set[Edit] = set()
    chosen = []
    for finding in sorted(findings, key=Finding.sort_key):
        edits = finding.fix.edits if finding.fix else ()
        fresh = [edit for edit in edits if edit not in known]
        if not edits or _overlap(fresh) or any(_meets(edit, taken.get(edit.span.file, [])) for edit in fresh):
            continue
        for edit in fresh:
            insort(taken.setdefault(edit.span.file, []), _range(edit))
        known.update(fresh)
        chosen.append(finding)
    return chosen


def applied(files: Files, findings: Iterable[Finding]) -> dict[str, str]:
    """Return the texts of the files that the fixes of findings change. The fixes must not overlap."""
    edits = {edit for finding in findings if finding.fix for edit in finding.fix.edits}
    changed: dict[str, list[Edit]] = {}
    for edit in edits:
        changed.setdefault(edit.span.file, []).append(edit)
    return {name: files[name].edited(edits) for name, edits in changed.items()}


def _range(edit: Edit) -> tuple[tuple[int, int], tuple[int, int]]:
    return (edit.span.line, edit.span.column), (edit.span.end_line, edit.span.end_column)


def _meets(edit: Edit, taken: list[tuple[tuple[int, int], tuple[int, int]]]) -> bool:
    """Return whether an edit touches one of the sorted places that are taken; ends may meet, insertions may not."""
    start, stop = _range(edit)
    number = bisect_right(taken, (start, stop))
    before = taken[number - 1] if number else None
    after = taken[number] if number < len(taken) else None
    if before is not None and (before[1] > start or before == (start, stop)):
        return True
    return after is not None and after[0] < stop


def _overlap(edits: list[Edit]) -> bool:
    places: dict[str, list[tuple[tuple[int, int], tuple[int, int]]]] = {}
    for edit in edits:
        if _meets(edit, places.get(edit.span.file, [])):
            return True
        insort(places.setdefault(edit.span.file, []), _range(edit))
    return False
