"""One mistake, one finding.

What only follows from a number or a text that is most likely mistyped is left out; all references to one missing name
are one finding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from gpolicy.findings import BASE_FILE, Finding, Related, Severity, Span
from gpolicy.printable import count

_CAUSES: Final = ("GP191", "GP612", "GP616", "GP152", "GP222", "GP419")
"""Rules that tell what is most likely mistyped. Of two at one place, the first counts."""
_KEPT_BY_NODE: Final = "GP419"
"""Its cause may also be the hardware, which it names as well."""
_FOLLOWING: Final = ("GP1", "GP2", "GP4", "GP6")
"""Families of rules whose findings may follow from a cause; structure, clusters, guards and tests speak of others."""
_TAGS: Final = "GP5"
"""The family that knows more of a tag than that it is mistyped."""


def without_consequences(found: Sequence[Finding]) -> list[Finding]:
    """Return the findings without those that follow from another one at their place, or at a place that they name.

    Of those that follow from one cause the first of the worst stays if it is an error, or worse than the cause: what
    fails a check fails it still. A cause at the very place of an error, or of what is said of a tag, says less, and is
    left out itself.
    """
    rank = {code: place for place, code in enumerate(_CAUSES)}
    causes: dict[Span, Finding] = {}
    for finding in sorted(found, key=lambda finding: rank.get(finding.code, len(rank))):
        if finding.code in rank and finding.span is not None:
            about = (related.span for related in finding.related) if finding.code == _KEPT_BY_NODE else ()
            for span in (finding.span, *about):
                causes.setdefault(span, finding)
    better = {finding.span for finding in found if finding.severity is Severity.ERROR or finding.code.startswith(_TAGS)}
    left_out: set[Finding] = set()
    following: dict[Finding, list[Finding]] = defaultdict(list)
    for finding in found:
        cause = _cause(finding, causes)
        if cause is not None and cause is not finding:
            following[cause].append(finding)
        elif finding.code in rank and finding.severity is not Severity.ERROR and finding.span in better:
            left_out.add(finding)
    for cause, same in following.items():
        worst = min(same, key=lambda finding: finding.severity.rank)
        stays = worst.severity is Severity.ERROR or worst.severity.rank < cause.severity.rank
        left_out.update(finding for finding in same if not (stays and finding is worst))
    return [finding for finding in found if finding not in left_out]


def _cause(finding: Finding, causes: dict[Span, Finding]) -> Finding | None:
    """Return the finding that another one follows from; itself if it is a cause, None if it stands for itself."""
    if not finding.code.startswith(_FOLLOWING):
        return None
    spans = (finding.span, *(related.span for related in finding.related))
    found = [causes[span] for span in spans if span in causes]
    return min(found, key=lambda cause: _CAUSES.index(cause.code), default=None)


MOST_PLACES: Final = 50
"""The greatest number of places that one finding shows; the others are counted."""


def one_for_each_missing(*policies: Iterable[Finding]) -> dict[Finding, list[Finding]]:
    """Return the findings of policies, with those that each stands for: itself, or all of one missing name.

    The first of the worst severity stands for all, and shows the places of the others. Each policy has names of its
    own; a base is missing to all together. A finding with a fix stands for itself: a word that is mistyped is
    corrected where it stands.
    """
    together: dict[object, list[Finding]] = defaultdict(list)
    for number, found in enumerate(policies):
        for finding in found:
            name = finding.missing if finding.fix is None else ""
            scope = -1 if name.startswith(BASE_FILE) else number
            together[(scope, name) if name else finding].append(finding)
    result: dict[Finding, list[Finding]] = {}
    for same in together.values():
        result.setdefault(_one(same), []).extend(same)  # policies that share a base share its findings
    return result


def _one(same: list[Finding]) -> Finding:
    first = min(same, key=lambda finding: finding.severity.rank)  # of equal ones the first by place
    others = [finding for finding in same if finding is not first and finding.span not in (None, first.span)]
    if not others:
        return first
    more = f"the same at {count(len(others), 'more place')}"
    hint = "; ".join(filter(None, (first.hint, more))).replace("?; the", "? The")
    related = tuple(Related(item.span, item.message) for item in others[:MOST_PLACES] if item.span)
    return replace(first, hint=hint, related=(*first.related, *related))
