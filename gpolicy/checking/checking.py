"""Check one policy: findings about its structure and of the rules, less those that something accepts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Final

from gpolicy.checking.accepting import Suppressions, Waivers, refusal
from gpolicy.checking.baseline import Baseline
from gpolicy.checking.catalogue import CATALOGUE, FLEET_RULES, RULES, find_rule, rules_named
from gpolicy.checking.consequences import folded, is_said_better
from gpolicy.checking.context import NO_FORECAST, Context, Forecast
from gpolicy.checking.rule import Fleet, Hit, When
from gpolicy.checking.settings import DEFAULT, Settings, idle_globs
from gpolicy.cluster.state import ClusterState
from gpolicy.findings import HOUSE, HOUSE_CODE, WAIVER, Accepted, Finding, Severity, Span, by_place
from gpolicy.ganeti.releases import release_of
from gpolicy.policy.model import Policy

_ALWAYS_RUN: Final = frozenset(info.code for info in CATALOGUE if info.code.startswith("GP0"))
ACCEPTABLE: Final = frozenset(info.code for info in CATALOGUE if not refusal(info))
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
        """Return findings of structure and rules, less the accepted. Exceptions in a rule are faults of gpolicy."""
        settings = self.settings
        if self.state is not None and settings.ganeti_version is None:
            settings = replace(settings, ganeti_version=release_of(self.state.software_version))
        context = Context(
            self.policy, self.state, settings, self.today, self.forecast, {rule.info.code: rule for rule in RULES}
        )
        sieve = _Sieve.of(context)
        found = self._with_idle(context, sieve, self._run_rules(context, sieve))
        if not self.to_accept:
            found = folded(found, context)  # of what is accepted nothing follows
        accepted = sorted(sieve.accepted, key=lambda item: item.finding.sort_key())
        return Checked(self.policy, settings, found, accepted)

    def _run_rules(self, context: Context, sieve: _Sieve) -> frozenset[str]:
        """Sift what is found; return the codes of the rules that ran and could find all that they are for."""
        sieve.take(_structure_hits(self.policy))
        codes = set(_ALWAYS_RUN - context.settings.ignored)
        for rule in sorted(RULES, key=lambda rule: When.LAST in rule.when):
            said_elsewhere = self.to_plan and When.NO_PLAN in rule.when
            is_silent = rule.silent_after != () and any(
                item.severity is Severity.ERROR and item.code.startswith(rule.silent_after) for item in sieve.kept
            )
            unfit = (When.STATE if context.state is None else When.NO_STATE) in rule.when
            unfit = unfit or (When.WHOLE in rule.when and not context.whole)
            unfit = unfit or (When.ASKED in rule.when and rule.info.code not in context.settings.asked)
            if said_elsewhere or is_silent or unfit or not context.settings.can_count(rule.info):
                continue
            code = rule.info.code
            hits = rule.check(context, tuple(sieve.kept)) if When.LAST in rule.when else context.found_by(code)
            sieve.take(hit for hit in hits if not is_said_better(rule, hit, context))
            if rule.knows_enough(context):
                codes.add(code)
        sieve.take(self.fleet)
        return frozenset(codes)

    def _with_idle(self, context: Context, sieve: _Sieve, codes: frozenset[str]) -> list[Finding]:
        """Return what is left with its severity, and what is found about waivers, comments, globs and the baseline."""
        policy, settings, baseline = self.policy, context.settings, self.baseline

        def ran(key: str) -> bool:
            is_house = key.startswith(HOUSE)
            return HOUSE_CODE in codes and key not in settings.ignored if is_house else key in codes

        def counting(findings: Iterable[Finding]) -> Iterator[Finding]:
            return (settings.with_severity(finding) for finding in findings if settings.counts(finding))

        is_whole = context.whole and not policy.is_part  # else what is accepted may be found in the rest
        about = [*sieve.waivers.findings, *sieve.suppressions.findings, *idle_globs(settings, policy)]
        if is_whole:
            labels = {item.label: item.name for item in policy.objects}
            idle = [*sieve.waivers.unused(ran, labels, policy.paths), *sieve.suppressions.unused(ran)]
            if any(item.severity is Severity.ERROR for item in sieve.kept):
                hint = "correct the errors first: they may hide what it accepts"
                idle = [replace(item, fix=None, hint=hint) if item.fix else item for item in idle]
            about += idle
        found = by_place((*map(settings.with_severity, sieve.kept), *counting(about)))
        if baseline is not None:
            found, old, met = baseline.split(found, policy.files, ACCEPTABLE)
            sieve.accepted += old
            found += counting(baseline.stale(met, policy.paths, ran) if is_whole else ())
            found.sort(key=Finding.sort_key)
        return found


def check_fleet(policies: Sequence[Policy]) -> list[list[Hit]]:
    """Return for each policy the findings that only several policies together show."""
    found: list[list[Hit]] = [[] for _ in policies]
    fleet = Fleet(policies)
    for rule in FLEET_RULES if len(policies) > 1 else ():
        for hit in rule.check_fleet(fleet):
            found[hit.policy].append(hit)
    return found


@dataclass(slots=True)
class _Sieve:
    """Sorts what is found into what counts and is `kept`, and what something accepts."""

    settings: Settings
    suppressions: Suppressions
    waivers: Waivers
    kept: list[Finding] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)

    @classmethod
    def of(cls, context: Context) -> _Sieve:
        policy, house_rules = context.policy, frozenset(rule.word for rule in context.policy.house_rules)
        waivers = Waivers(policy.waivers, partial(find_rule, house_rules=house_rules), context.today)
        return cls(context.settings, Suppressions(policy, partial(rules_named, house_rules=house_rules)), waivers)

    def take(self, hits: Iterable[Hit]) -> None:
        for hit in hits:
            finding = hit.finding
            if not self.settings.counts(finding):
                continue
            found = self.suppressions.accepting(finding) if finding.code in ACCEPTABLE else None
            waiver = self.waivers.covering(hit)  # asked in any case: a waiver that only repeats a comment is in use
            if waiver is not None:
                found = Accepted(finding, WAIVER, waiver.span, waiver.reason, waiver.until)
            if found is None:
                self.kept.append(finding)
            else:
                self.accepted.append(replace(found, finding=self.settings.with_severity(finding)))


def _structure_hits(policy: Policy) -> Iterator[Hit]:
    """Yield the findings about structure, each with the object in whose document it stands."""
    documents: dict[str, list[tuple[Span, str]]] = defaultdict(list)
    for declared in policy.objects:
        documents[declared.document.file].append((declared.document.value_span(()), declared.label))
    for finding in policy.findings:
        place = finding.span
        around = documents[place.file] if place and finding.code in ACCEPTABLE else []
        inside = (label for span, label in around if place and place.lies_within(span))
        yield Hit(next(inside, ""), finding)
