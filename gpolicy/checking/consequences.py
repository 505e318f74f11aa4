"""One mistake, one finding: what most likely only follows from another finding is folded under that one.

A finding follows from one at its own place, or at a place that it compares with; a test that fails follows from a wrong
value of the policy; what a plan leads to follows from what is wrong with the values that it changes; all references to
one missing name are one finding. Rules say as data what their findings are to others (`Role`), which of them explain
others, after which they are silent, and which say the same better (`Rule`).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from gpolicy.checking.catalogue import CODES, RULES
from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule, Same
from gpolicy.findings import ALMOST, BASE_FILE, NODES_LIKE, Finding, Role, Severity, Span, told
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS

_EXPLAINS: Final = {rule.info.code: rule.explains for rule in RULES if rule.explains is not None}
"""The order of the rules whose findings explain others, by code (see `Rule`)."""
_ALONE, _JUDGES, _RESULTS, _USES = (CODES[role] for role in (Role.ALONE, Role.JUDGES, Role.RESULT, Role.USES))
_ONE_THING: Final = dict.fromkeys(("disk-size", "disk-count", "spindle-use"), "disks")
_OTHERS: Final = 99  # the order of rules that explain nothing; only what has 100 comes after them
_MOST_AT_ONE_PLACE: Final = 8  # findings that are looked at for a cause
_MOST_FOR_CHANGES: Final = 50  # the same, of what the plan changes


def folded(found: Sequence[Finding], context: Context) -> list[Finding]:
    """Return the findings that stand for themselves, each with those that only follow from it.

    What fails a check fails it still: a cause is as severe as the worst of what follows from it. But where the settings
    say how severe one of the two is, the worst stays beside the cause.
    """
    settings = context.settings
    causes = _Causes(found, context)
    following: dict[Finding, list[Finding]] = {}
    for finding in found:
        first = causes.first(finding)
        others = following.setdefault(first, [])
        if first is not finding:
            others.append(finding)
    result = []
    for cause, same in following.items():
        worst = min((cause, *same), key=lambda item: item.severity.rank)
        is_set = settings.severity_of(cause) or settings.severity_of(worst)
        severity = cause.severity if is_set else worst.severity
        result += [item for item in same if item.severity.rank < severity.rank]
        below = [item for item in same if item.severity.rank >= severity.rank]
        result.append(_with_more(replace(cause, severity=severity, consequences=()), below))
    return sorted(result, key=Finding.sort_key)


class _Causes:
    """From which of the others each finding follows. There may be thousands: what is asked for is kept by place."""

    def __init__(self, found: Sequence[Finding], context: Context) -> None:
        # the finding whose rule says itself that another one follows, by the other
        self._teller_of = {_what_it_says(item): finding for finding in found for item in finding.consequences}
        self._breaks = _breaks(found, context)
        self._sizes = _places_of_sizes(context) if any(finding.code in _JUDGES for finding in found) else {}
        self._on_line: dict[tuple[str, int], list[Finding]] = defaultdict(list)
        at: dict[object, list[Finding]] = defaultdict(list)
        for finding in found:
            if finding.span is not None and finding.severity is not Severity.INFO:
                self._on_line[finding.span.file, finding.span.line].append(finding)
            explained = finding.related if finding.code in CODES[Role.ALSO_RELATED] else ()
            for place in {*self._places_of_finding(finding), *(item.span for item in explained)}:
                at[place].append(finding)
        # the most likely causes that stand at a place, or explain what is there
        self._at = {place: sorted(several, key=_rank)[:_MOST_AT_ONE_PLACE] for place, several in at.items()}
        wrong = [item for item in found if item.code not in _RESULTS and _is_wrong(item)]
        # what a result of the whole policy follows from; where nothing is wrong, the first result of its rule
        self._worst = min(wrong, key=lambda item: item.severity.rank, default=None)
        self._first_result = {item.code: item for item in reversed(found) if item.code in _RESULTS}
        planned = [item for item in found if item.because]
        # the most likely causes of what the plan leads to; and those that the values of one plan show, once asked for
        self._for_changes = sorted((*planned, *wrong), key=_rank)[:_MOST_FOR_CHANGES] if planned else []
        self._within: dict[tuple[Span, ...], list[Finding]] = {}

    def first(self, finding: Finding) -> Finding:
        """Return the finding that another one follows from in the end; itself if it stands for itself."""
        seen = [finding]
        while (cause := self._cause(seen[-1])) is not None and cause is not seen[-1]:
            if cause in seen:  # a circle
                return min(seen[seen.index(cause) :], key=_rank)
            seen.append(cause)
        return seen[-1]

    def _cause(self, finding: Finding) -> Finding | None:
        return (
            self._teller(finding)
            or self._breaker(finding)
            or min(self._about_its_value(finding), key=_rank, default=None)
            or self._of_result(finding)
            or min(self._of_changes(finding), key=_rank, default=None)
        )

    def _teller(self, finding: Finding) -> Finding | None:
        """Return the finding whose rule says itself that this one follows from it."""
        teller = self._teller_of.get(_what_it_says(finding))
        return teller if teller is not None and (teller.code in _ALONE or _is_cause(teller, finding)) else None

    def _breaker(self, finding: Finding) -> Finding | None:
        """Return what makes the rest of a document mean something else, for a finding about the form of a part."""
        span = finding.span
        if span is None or finding.code not in CODES[Role.SHAPE] or span.file not in self._breaks:
            return None
        broken, document = self._breaks[span.file]
        return broken if span.lies_within(document) else None

    def _about_its_value(self, finding: Finding) -> Iterator[Finding]:
        """Yield what is said of the same value, of a part of it, or of a value that it is compared with."""
        rank = _rank(finding)
        here = (other for place in self._places_of_finding(finding) for other in self._at[place] if _rank(other) < rank)
        compared = (other for related in finding.related for other in self._at.get(related.span, ()))
        there = (other for other in compared if other.code in _EXPLAINS and finding.span not in _about(other))
        for other in (*here, *there, *self._of_parts(finding)):
            if other is not finding and _is_cause(other, finding):
                yield other

    def _of_parts(self, finding: Finding) -> Iterator[Finding]:
        """Yield what is wrong with a part of the value that a remark is about; a warning follows from errors only."""
        if finding.severity is Severity.ERROR:
            return
        about = _about(finding) if finding.code in CODES[Role.WEAK] else {finding.span}
        for span in (span for span in about if span is not None):
            for other in self._on_line.get((span.file, span.line), ())[:_MOST_AT_ONE_PLACE]:
                is_part = other.span is not None and other.span.lies_within(span)
                is_worse = other.severity is Severity.ERROR and other.span != span
                if is_part and (is_worse or finding.severity is Severity.INFO):
                    yield other

    def _of_result(self, finding: Finding) -> Finding | None:
        """Return what a result of the whole policy follows from: the worst, else the first result of this rule."""
        return (self._worst or self._first_result[finding.code]) if finding.code in _RESULTS else None

    def _of_changes(self, finding: Finding) -> Iterator[Finding]:
        """Yield what is wrong with the changed values that a finding is of, or is said of them all by the same rule."""
        because = finding.because
        if because and because not in self._within:  # a plan may change thousands, and each guard is of them all
            causes = (other for other in self._for_changes if not other.because or other.code in _EXPLAINS)
            places = {other: _about(other) for other in causes}
            self._within[because] = [
                other
                for other, about in places.items()
                if any(place.lies_within(around) for place in about if place for around in because)
            ]
        same = (other for other in self._for_changes if other.code == finding.code and other.because == because)
        for other in (*same, *self._within[because]) if because else ():
            if _is_cause(other, finding) and _rank(other) < _rank(finding):
                yield other

    def _places_of_finding(self, finding: Finding) -> Iterator[object]:
        """Yield where a finding is: its place, and what it compares with a node: memory, CPUs or disks of one pair."""
        if finding.span is not None:
            yield finding.span
            if finding.span in self._sizes and (finding.code in _JUDGES or finding.severity is Severity.INFO):
                yield self._sizes[finding.span]


def _what_it_says(finding: Finding) -> tuple[object, ...]:
    """Return what makes a finding the same as one that another rule tells."""
    return finding.key, finding.span, finding.message


def _breaks(found: Sequence[Finding], context: Context) -> dict[str, tuple[Finding, Span]]:
    """Return what breaks a document of each file, with the place of that document."""
    documents = [document.value_span(()) for document in context.policy.documents]
    breaks = {item.span: item for item in reversed(found) if item.span and item.code in CODES[Role.BREAKS]}
    return {  # of several in a file the first counts
        span.file: (item, place) for span, item in breaks.items() for place in documents if span.lies_within(place)
    }


def _places_of_sizes(context: Context) -> dict[Span, tuple[Span, str]]:
    """Return by the place of each number of a pair the pair, and which resource of it the number is of."""
    return {
        pair.at(end, name): (pair.span, _ONE_THING.get(name, name))
        for _, pair in context.each_pair()
        for end in ("min", "max")
        for name in SPEC_PARAMETERS
    }


def _about(finding: Finding) -> set[Span | None]:
    return {finding.span, *(item.span for item in finding.related)}


def _is_cause(other: Finding, finding: Finding) -> bool:
    """Return whether `finding` may follow from `other`: what one rule says twice of one place are two things."""
    is_same = (other.code, other.span) == (finding.code, finding.span)
    is_alone = other.code in _ALONE or finding.code in _ALONE
    return not is_same and not is_alone and other.code not in _RESULTS and other.severity is not Severity.INFO


def _is_wrong(finding: Finding) -> bool:
    """Return whether a value of the policy is wrong, or most likely is."""
    is_likely = finding.severity is Severity.WARNING and finding.code in CODES[Role.DECIDES]
    return is_likely or (finding.severity is Severity.ERROR and finding.code not in _ALONE)


def _rank(finding: Finding) -> tuple[object, ...]:
    """Return a key by which a cause comes before what follows from it."""
    order = _EXPLAINS.get(finding.code, _OTHERS)
    return (
        finding.code in CODES[Role.WEAK],  # that a size is rounded comes last: the number may be wrong
        finding.because != (),  # what a plan leads to
        finding.related != () and order >= _OTHERS,  # what compares two values: which is wrong, others may know
        finding.severity.rank if order else 0,
        finding.code not in CODES[Role.OF_TAG],
        order,
        finding.code,
        finding.sort_key(),
    )


def _with_more(finding: Finding, following: Iterable[Finding]) -> Finding:
    """Return a finding with more that follows from it."""
    more = {item.sort_key(): replace(item, consequences=()) for item in (*finding.consequences, *told(following))}
    return replace(finding, consequences=tuple(more[key] for key in sorted(more))) if more else finding


def is_said_better(rule: Rule, hit: Hit, context: Context) -> bool:
    """Return whether another rule says the same as a hit of `rule`, and more exactly."""
    for shared, codes in rule.better:
        asked = context.without_cluster if shared is Same.LABEL else context
        found = (other for code in codes for other in asked.found_by(code))
        others = [other for other in found if context.settings.counts(other.finding)]
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


def one_for_each_missing(*policies: Iterable[Finding]) -> dict[Finding, list[Finding]]:
    """Return the findings of policies, with those that each stands for: itself, or all of one missing name.

    The first of the worst severity stands for all; what tests, guards and node sets say comes last: they use the name.
    Each policy has names of its own; a base is missing to all together. A finding with a fix stands for itself: a word
    that is mistyped is corrected where it stands. What has a finding of the same name below it stands for all. Where
    several places use a name, the place that gives almost this name is more likely wrong.
    """
    together: dict[object, list[Finding]] = defaultdict(list)
    for number, findings in enumerate(policies):
        found = list(findings)
        carriers = {item.missing: finding for finding in found for item in finding.consequences if item.missing}
        for finding in found:
            carrier = carriers.get(finding.missing, finding)
            name = carrier.missing if carrier.fix is None else ""
            scope = -1 if name.startswith(BASE_FILE) else number
            together[(scope, name) if name else carrier].append(finding)
    result: dict[Finding, list[Finding]] = {}
    for same in together.values():
        first = min(same, key=lambda finding: (finding.severity.rank, finding.code in _USES))  # else by place
        given = next((item.span for item in first.related if item.message == ALMOST), None)
        if given is not None and len(uses := {item.span for item in same if item.span}) > 1 and first.span:
            name, file = first.missing.partition(" ")[2], first.span.file.rpartition("/")[2]
            name = f"{'a node ' if first.missing.startswith(NODES_LIKE) else ''}{name}"
            hint = f"is {name} meant? {file}:{first.span.line} and {len(uses) - 1} more name it"
            first = replace(first, span=given, hint=hint, related=())
        more = (item for item in told(same) if item != first)
        result.setdefault(_with_more(first, more), []).extend(same)  # policies that share a base share its findings
    return result
