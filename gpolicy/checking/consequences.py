"""One mistake, one finding.

What only follows from a number, a text or a switch that is most likely wrong is left out, and what another rule says
more exactly; all references to one missing name are one finding. Rules say as data what their findings explain, after
which they are silent, and which say the same better (`Rule`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from gpolicy.checking.catalogue import RULES
from gpolicy.checking.context import Context
from gpolicy.checking.rule import Explains, Hit, Rule, Same
from gpolicy.checking.settings import Settings
from gpolicy.findings import BASE_FILE, Finding, Related, Severity, Span
from gpolicy.printable import count

_EXPLAINS: Final = {rule.info.code: rule.explains for rule in RULES if rule.explains is not None}
"""How the findings of some rules explain others, by code."""
_ORDER: Final = {code: explains.order for code, explains in _EXPLAINS.items() if explains.order is not None}
_FOLLOWING: Final = ("GP1", "GP2", "GP4", "GP6", *(rule.info.code for rule in RULES if rule.follows))
"""Families of rules whose findings may follow from a cause, and rules of others that say so of themselves."""
_UNREAD: Final = ("GP012", "GP016")  # rules whose findings are at a value that does not hold what was meant
_USING: Final = "GP8"  # the family of guards and tests, which use what others declare
_TAGS: Final = "GP5"  # the family that knows more of a tag than that it is mistyped
_ByPlace = dict[Span | None, Finding]
_ByName = dict[tuple[Span | None, str], Finding]
MOST_PLACES: Final = 50
"""The greatest number of places that one finding shows; the others are counted."""


def without_consequences(found: Sequence[Finding], settings: Settings) -> list[Finding]:
    """Return the findings without those that follow from another one: at its place, at one that it names, or by name.

    What fails a check fails it still: a cause is as severe as the worst of what follows from it, and then names that.
    But where the settings say how severe one of the two is, the worst stays beside the cause.
    A cause at the very place of an error, or of what is said of a tag, says less, and is left out itself.
    So is whatever else is said of a value that could not be read.
    """
    unread = {finding.span for finding in found if finding.code in _UNREAD and finding.span is not None}
    found = [finding for finding in found if finding.code in _UNREAD or finding.span not in unread]
    causes = _causes_by_place(found)
    better = {finding.span for finding in found if finding.severity is Severity.ERROR or finding.code.startswith(_TAGS)}
    named: _ByName = {
        (related.span, related.message): finding
        for finding in found
        if _explains(finding).one_by_one
        for related in finding.related
    }
    left_out: set[Finding] = set()
    following: dict[Finding, list[Finding]] = defaultdict(list)
    for finding in found:
        cause = _first_cause(finding, causes, named)
        if cause is not None:
            following[cause].append(finding)
        elif finding.code in _ORDER and finding.severity is not Severity.ERROR and finding.span in better:
            left_out.add(finding)
    raised: dict[Finding, Finding] = {}
    for cause, same in following.items():
        worst = min(same, key=lambda finding: finding.severity.rank)
        left_out.update(same)
        if worst.severity.rank < cause.severity.rank:
            if cause in left_out or settings.severity_of(cause) or settings.severity_of(worst):
                left_out.remove(worst)
            else:
                bad = (item for item in same if item.severity is worst.severity)
                more = (Related(item.span, item.message) for item in bad if item.span)
                places = [place for place in more if place not in cause.related][:MOST_PLACES]
                raised[cause] = replace(cause, severity=worst.severity, related=(*cause.related, *places))
    return [raised.get(finding, finding) for finding in found if finding not in left_out]


def _causes_by_place(found: Iterable[Finding]) -> _ByPlace:
    """Return the findings that explain others at their place, or at one that they name: the first in order of each."""
    causes: _ByPlace = {}
    for finding in sorted((item for item in found if item.code in _ORDER), key=lambda item: _ORDER[item.code]):
        if finding.span is not None:
            about = (related.span for related in finding.related) if _explains(finding).also_related else ()
            for span in (finding.span, *about):
                causes.setdefault(span, finding)
    return causes


def is_said_better(rule: Rule, hit: Hit, context: Context) -> bool:
    """Return whether another rule says the same as a hit of `rule`, and more exactly."""
    for shared, codes in rule.better:
        asked = context.without_cluster if shared is Same.LABEL else context
        others = [other for code in codes for other in asked.found_by(code)]
        match shared:
            case Same.LABEL:
                is_said = any(hit.label == other.label for other in others)
            case Same.PLACE:
                is_said = hit.finding.span in {other.finding.span for other in others} - {None}
            case guard:
                is_said = hit.guard == guard and others != []
        if is_said:
            return True
    return False


def _first_cause(finding: Finding, causes: _ByPlace, named: _ByName) -> Finding | None:
    """Return the finding that another one follows from in the end; None if it stands for itself."""
    seen = [finding]
    while (cause := _cause(seen[-1], causes, named)) is not None and cause not in seen:
        seen.append(cause)
    return seen[-1] if len(seen) > 1 else None


def _cause(finding: Finding, causes: _ByPlace, named: _ByName) -> Finding | None:
    """Return the finding that another one follows from; itself if it is a cause, None if it stands for itself."""
    if _explains(finding).one_by_one:
        return causes.get(finding.span)
    figure = named.get((finding.span, finding.message))
    if figure is not None:
        return _cause(figure, causes, named) or figure
    if not finding.code.startswith(_FOLLOWING):
        return None
    spans = (finding.span, *(related.span for related in finding.related))
    found = [causes[span] for span in spans if span in causes]
    cause = min(found, key=lambda cause: _ORDER[cause.code], default=None)
    may_be_meant = cause is not None and _explains(cause).may_be_meant
    return None if may_be_meant and finding.severity is Severity.INFO else cause


def _explains(finding: Finding) -> Explains:
    return _EXPLAINS.get(finding.code, Explains())


def one_for_each_missing(*policies: Iterable[Finding]) -> dict[Finding, list[Finding]]:
    """Return the findings of policies, with those that each stands for: itself, or all of one missing name.

    The first of the worst severity stands for all, and shows the places of the others; what tests and guards say comes
    last, since they only use the name. Each policy has names of its own; a base is missing to all together. A finding
    with a fix stands for itself: a word that is mistyped is corrected where it stands.
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
    first = min(same, key=lambda finding: (finding.severity.rank, finding.code.startswith(_USING)))  # else by place
    others = [finding for finding in same if finding is not first and finding.span is not None]
    elsewhere = [finding for finding in others if finding.span != first.span]
    here = (related for finding in others if finding.span == first.span for related in finding.related)
    places = [*here, *(Related(item.span, item.message) for item in elsewhere if item.span)]
    related = tuple(dict.fromkeys((*first.related, *places[:MOST_PLACES])))
    more = f"the same at {count(len(elsewhere), 'more place')}" if elsewhere else ""
    hint = "; ".join(filter(None, (first.hint, more))).replace("?; the", "? The")
    return replace(first, hint=hint, related=related)
