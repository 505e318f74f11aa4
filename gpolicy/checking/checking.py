"""Check one policy: findings about its structure and of the rules, less those that something accepts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from gpolicy.checking.baseline import Baseline
from gpolicy.checking.catalogue import CATALOGUE, FLEET_RULES, RULES, find_rule
from gpolicy.checking.consequences import without_consequences
from gpolicy.checking.context import Context
from gpolicy.checking.fleet import Fleet
from gpolicy.checking.forecast import Forecast
from gpolicy.checking.idle_globs import idle_globs
from gpolicy.checking.rule import Hit, Rule, Same
from gpolicy.checking.selection import KnownRules
from gpolicy.checking.settings import DEFAULT, Settings
from gpolicy.checking.suppressing import Suppressions
from gpolicy.checking.waiving import Waivers, can_be_waived
from gpolicy.cluster.state import ClusterState
from gpolicy.findings import HOUSE, HOUSE_CODE, Accepted, Finding, Span, by_place
from gpolicy.ganeti.releases import release_of
from gpolicy.policy.model import Policy

WAIVER, COMMENT, BASELINE = "waiver", "comment", "baseline"
"""What may accept a finding."""
NO_FORECAST: Final = Forecast()
_ALWAYS_RUN: Final = frozenset(info.code for info in CATALOGUE if info.code.startswith("GP0"))
ACCEPTABLE: Final = frozenset(info.code for info in CATALOGUE if can_be_waived(info))
"""Codes of the rules whose findings a waiver, a comment or a baseline may accept."""


@dataclass(frozen=True, slots=True)
class Checked:
    """One checked policy: its settings, the findings, and the accepted findings. Both are sorted by place."""

    policy: Policy
    settings: Settings
    findings: list[Finding]
    accepted: list[Accepted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """One policy that was read, and by what it is examined. Examinations need nothing from one another.

    Rules run on what could be read; those that judge by what is absent only when everything could. With `state`
    the rules that need a cluster run as well, and in place of their twins that can do without. `today` decides which
    waivers are still in force. `fleet` is what this policy shows only beside others. `forecast` tells what its tests
    find and what its plan would do; without it the rules about these find nothing. With `to_plan` the caller makes a
    plan or compares: what its guards say is not said here. With `to_accept` the caller accepts all that is found, also
    what only follows from other findings.
    """

    policy: Policy
    today: date
    state: ClusterState | None = None
    settings: Settings = DEFAULT
    baseline: Baseline | None = None
    fleet: Iterable[Hit] = ()
    forecast: Forecast = NO_FORECAST
    to_plan: bool = False
    to_accept: bool = False

    def run(self) -> Checked:
        """Return findings about the structure of the policy and of the rules, less those that something accepts.

        An exception in a rule is a fault of gpolicy and not caught.
        """
        policy, settings, baseline = self.policy, self.settings, self.baseline
        if self.state is not None and settings.ganeti_version is None:
            settings = replace(settings, ganeti_version=release_of(self.state.software_version))
        by_code = {rule.info.code: rule for rule in RULES}
        context = Context(policy, self.state, settings, self.today, self.forecast, by_code)
        rules = [rule for rule in RULES if _runs_in(rule, context) and not (self.to_plan and rule.said_by_plan)]
        known = KnownRules(rule.word for rule in policy.house_rules)
        waivers = Waivers(policy.waivers, known.find, self.today)
        suppressions = Suppressions(policy, known.named, can_be_waived)
        sieve = _Sieve(settings, suppressions, waivers)
        sieve.take(_structure_hits(policy))
        for rule in sorted(rules, key=lambda rule: rule.runs_last):
            last = rule.runs_last
            if last and any(map(rule.silent_after.silences, sieve.kept)):
                rules.remove(rule)
                continue
            hits = rule.check_after(context, tuple(sieve.kept)) if last else context.found_by(rule.info.code)
            sieve.take(hit for hit in hits if not _is_said_better(rule, hit, context))
        sieve.take(self.fleet)
        accepted = sieve.accepted
        codes = {rule.info.code for rule in rules if rule.knows_enough(context)} | _ALWAYS_RUN - settings.ignored

        def ran(key: str) -> bool:
            is_house = key.startswith(HOUSE)
            return HOUSE_CODE in codes and key not in settings.ignored if is_house else key in codes

        about = [*waivers.findings, *suppressions.findings, *idle_globs(settings, policy)]
        if context.whole and not policy.is_part:  # else what is accepted may be found in the rest
            labels = [item.label for item in policy.objects]
            about += [*waivers.unused(ran, labels, policy.paths), *suppressions.unused(ran)]
        counting = (finding for finding in about if settings.counts(finding))
        found = by_place(settings.with_severity(finding) for finding in (*sieve.kept, *counting))
        if baseline is not None:
            found, old, met = baseline.split(found, policy.files, ACCEPTABLE)
            accepted += [Accepted(finding, BASELINE) for finding in old]
            if context.whole and not policy.is_part:
                stale = baseline.stale(met, policy.paths, ran)
                found += [settings.with_severity(finding) for finding in stale if settings.counts(finding)]
                found.sort(key=Finding.sort_key)
        if not self.to_accept:
            found = without_consequences(found, settings)  # of what is accepted nothing follows
        return Checked(policy, settings, found, sorted(accepted, key=lambda item: item.finding.sort_key()))


def check_policy(
    policy: Policy,
    *,
    today: date,
    state: ClusterState | None = None,
    settings: Settings = DEFAULT,
    fleet: Iterable[Hit] = (),
    forecast: Forecast = NO_FORECAST,
) -> list[Finding]:
    """Return everything that is wrong with `policy` and not accepted, sorted by place. See `Examination`."""
    examination = Examination(
        policy=policy, today=today, state=state, settings=settings, fleet=fleet, forecast=forecast
    )
    return examination.run().findings


def check_fleet(policies: Sequence[Policy]) -> list[list[Hit]]:
    """Return for each policy the findings that only several policies together show."""
    found: list[list[Hit]] = [[] for _ in policies]
    fleet = Fleet(policies)
    for rule in FLEET_RULES if len(policies) > 1 else ():
        for item in rule.check(fleet):
            found[item.policy].append(item.hit)
    return found


def _is_said_better(rule: Rule, hit: Hit, context: Context) -> bool:
    """Return whether another rule says the same as a hit of `rule`, and more exactly."""
    for shared, codes in rule.better:
        asked = context.without_cluster if shared is Same.LABEL else context
        others = [other for code in codes for other in asked.found_by(code)]
        match shared:
            case Same.LABEL:
                is_said = hit.label in {other.label for other in others}
            case Same.PLACE:
                is_said = hit.finding.span in {other.finding.span for other in others} - {None}
            case guard:
                is_said = hit.guard == guard and others != []
        if is_said:
            return True
    return False


def _runs_in(rule: Rule, context: Context) -> bool:
    if not context.settings.can_count(rule.info):
        return False
    fits_state = not (rule.needs_state if context.state is None else rule.only_without_state)
    return fits_state and (context.whole or not rule.needs_whole_policy)


class _Sieve:
    """Sorts what is found into what counts and is `kept`, and what something accepts."""

    def __init__(self, settings: Settings, suppressions: Suppressions, waivers: Waivers) -> None:
        self._settings = settings
        self._suppressions = suppressions
        self._waivers = waivers
        self.kept: list[Finding] = []
        self.accepted: list[Accepted] = []

    def take(self, hits: Iterable[Hit]) -> None:
        for hit in hits:
            finding = hit.finding
            if not self._settings.counts(finding):
                continue
            reason = self._suppressions.reason(finding) if _can_be_accepted(finding) else None
            waiver = self._waivers.covering(hit)  # asked in any case: a waiver that only repeats a comment is in use
            if waiver is not None:
                self.accepted.append(Accepted(self._settings.with_severity(finding), WAIVER, waiver.reason))
            elif reason is not None:
                self.accepted.append(Accepted(self._settings.with_severity(finding), COMMENT, reason))
            else:
                self.kept.append(finding)


def _structure_hits(policy: Policy) -> Iterator[Hit]:
    """Yield the findings about structure, each with the object in whose document it stands."""
    documents: dict[str, list[tuple[Span, str]]] = defaultdict(list)
    for declared in policy.objects:
        documents[declared.document.file].append((declared.document.value_span(()), declared.label))
    for finding in policy.findings:
        place = finding.span
        around = documents[place.file] if place and _can_be_accepted(finding) else []
        inside = (label for span, label in around if place and place.lies_within(span))
        yield Hit(next(inside, ""), finding)


def _can_be_accepted(finding: Finding) -> bool:
    """Return whether a waiver could name the rule of this finding."""
    info, _ = find_rule(finding.code)
    return info is not None and can_be_waived(info)
