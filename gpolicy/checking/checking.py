"""Check policies: findings about their structure and of the rules, less those that something accepts.

Each is checked by the settings of its repository, and several together, less what its baseline accepts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cache, partial
from os.path import relpath
from pathlib import Path
from typing import Final

from gpolicy.checking.accepting import Suppressions, Waivers
from gpolicy.checking.baseline import Baseline, baseline_text, fingerprint, key_of, read_baseline
from gpolicy.checking.catalogue import CATALOGUE, CODES, FLEET_RULES, RULES, find_rule, rules_named
from gpolicy.checking.consequences import folded, is_said_better, one_for_each_missing
from gpolicy.checking.context import NO_FORECAST, Context, Forecast
from gpolicy.checking.rule import Fleet, Hit, Rule, When
from gpolicy.checking.settings import DEFAULT, Settings, idle_globs
from gpolicy.checking.settings_tables import NONE, Overrides, settings_for, settings_of_each
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import InputError, RequestError
from gpolicy.findings import HOUSE, HOUSE_CODE, WAIVER, Accepted, Finding, Role, Severity, Span, by_place, told
from gpolicy.ganeti.releases import release_of
from gpolicy.guessing import did_you_mean
from gpolicy.opening import FileToWrite, real_path, tree_around
from gpolicy.policy.files import boundary, policy_files, policy_roots, read_files
from gpolicy.policy.kinds import KINDS, Policy
from gpolicy.policy.loading import load_policy
from gpolicy.policy.source_file import FILE_NOT_READ, Files, SourceFile, YamlDocument
from gpolicy.resolve.desired import Desired

ACCEPTABLE: Final = frozenset(info.code for info in CATALOGUE if not info.refusal)
"""Codes of the rules whose findings a waiver, a comment or a baseline may accept."""


@dataclass(frozen=True, slots=True)
class Examined:
    """One examined policy: its settings, the findings, and the accepted findings. Both are sorted by place.

    `desired` is what the policy wants of the cluster's state, if one was given.
    """

    policy: Policy
    settings: Settings
    findings: list[Finding]
    accepted: list[Accepted]
    desired: Desired | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """One policy that was read, and by what it is examined. Examinations need nothing from one another.

    Rules run on what could be read; those that judge by what is absent only when everything could. With `state`
    the rules that need a cluster run as well, and in place of their twins that can do without. `today` decides which
    waivers are still in force. `together` is what this policy shows only beside `others`. `forecast` tells what its
    tests find and what its plan would do; without it the rules about these find nothing. With `to_plan` the caller
    makes a plan or compares: what its guards say is not said here. With `to_accept` the caller accepts all that is
    found, also what only follows from other findings.
    """

    policy: Policy
    today: date
    state: ClusterState | None = None
    settings: Settings = DEFAULT
    baseline: Baseline | None = None
    together: Iterable[Hit] = ()
    others: Sequence[Policy] = ()
    forecast: Forecast = NO_FORECAST
    to_plan: bool = False
    to_accept: bool = False

    def run(self) -> Examined:
        """Return findings of structure and rules, less the accepted. Exceptions in a rule are faults of gpolicy."""
        settings = self.settings
        if self.state is not None and settings.ganeti_version is None:
            settings = replace(settings, ganeti_version=release_of(self.state.software_version))
        rules = {rule.info.code: rule for rule in RULES}
        context = Context(self.policy, self.state, settings, self.today, self.forecast, rules, self.others)
        sieve = _Sieve.of(context)
        found = self._with_idle(context, sieve, self._run_rules(context, sieve))
        if not self.to_accept:
            found = folded(found, context)  # of what is accepted nothing follows
        accepted = sorted(sieve.accepted, key=lambda item: item.finding.sort_key())
        return Examined(self.policy, settings, found, accepted, context.desired if self.state is not None else None)

    def _run_rules(self, context: Context, sieve: _Sieve) -> frozenset[str]:
        """Sift what is found; return the codes of the rules that ran and could find all that they are for."""
        sieve.take(_structure_hits(self.policy))
        codes = set(CODES[Role.STRUCTURE] - context.settings.ignored)
        unfit = When.STATE if context.state is None else When.NO_STATE
        if not context.whole:
            unfit |= When.WHOLE
        if self.to_plan:
            unfit |= When.NO_PLAN
        for rule, is_last in _rules_without(RULES, unfit, context.settings.asked):
            is_silent = rule.silent_after != () and any(
                item.severity is Severity.ERROR and item.code.startswith(rule.silent_after) for item in sieve.kept
            )
            if is_silent or not context.settings.can_count(rule.info):
                continue
            code = rule.info.code
            hits = rule.check(context, tuple(sieve.kept)) if is_last else context.found_by(code)
            sieve.take(hit for hit in hits if not is_said_better(rule, hit, context))
            if rule.knows_enough(context):
                codes.add(code)
        sieve.take(self.together)
        return frozenset(codes)

    def _with_idle(self, context: Context, sieve: _Sieve, codes: frozenset[str]) -> list[Finding]:
        """Return what is left with its severity, and what is found about waivers, comments, globs and the baseline."""
        policy, settings, baseline = self.policy, context.settings, self.baseline

        def ran(key: str) -> bool:
            if key.startswith(HOUSE):  # house rules run under one code
                return HOUSE_CODE in codes and key not in settings.ignored
            return key in codes

        def counting(findings: Iterable[Finding]) -> Iterator[Finding]:
            return (settings.with_severity(finding) for finding in findings if settings.counts(finding))

        is_whole = context.whole and not policy.is_part  # else what is accepted may be found in the rest
        about = [*sieve.waivers.findings, *sieve.suppressions.findings, *idle_globs(settings, policy, sieve.kept)]
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


@cache  # for hundreds of policies the answer is the same
def _rules_without(rules: tuple[Rule, ...], unfit: When, asked: frozenset[str]) -> list[tuple[Rule, bool]]:
    """Return those rules that run at none of these times, and not those to be asked for that are not; at the end those
    that run last, for which the second value is true.
    """
    fit = [rule for rule in rules if not rule.when & unfit and (When.ASKED not in rule.when or rule.info.code in asked)]
    return sorted(((rule, When.LAST in rule.when) for rule in fit), key=lambda pair: pair[1])


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
    for declared in policy.objects if policy.findings else ():
        documents[declared.document.file].append((declared.document.value_span(()), declared.label))
    for finding in policy.findings:
        place = finding.span
        around = documents[place.file] if place and finding.code in ACCEPTABLE else []
        inside = (label for span, label in around if place and place.lies_within(span))
        yield Hit(next(inside, ""), finding)


_MOST_UNREAD: Final = 1000  # files that are looked at


class Checker:
    """Checks the policies at `roots` as often as is needed; settings and baselines are read once.

    Without `baseline` nothing is accepted by one: a new one is to be written. `members` are the policies that others
    are checked beside; without it, what these show together counts.
    """

    def __init__(
        self,
        roots: Sequence[Path],
        state: ClusterState | None,
        overrides: Overrides = NONE,
        *,
        today: date,
        baseline: bool = True,
        members: FleetMembers | None = None,
        forecast: Forecast = NO_FORECAST,
    ) -> None:
        self._roots = roots
        self._members = members
        self._examination = partial(Examination, state=state, today=today, forecast=forecast, to_accept=not baseline)
        self._settings = settings_of_each(roots, overrides)
        files = dict.fromkeys(settings.baseline for settings in self._settings if settings.baseline and baseline)
        self._read = partial(read_baseline, named=overrides.baseline is not None)
        self._baselines = {path: self._read(path) for path in files}

    def check(self, texts: Mapping[str, str] | None = None) -> list[Examined]:
        """Return what is found in each policy, with `texts` in place of what is in the files of these names."""
        return [item.run() for item in self.examinations(texts)]

    def examinations(self, texts: Mapping[str, str] | None = None) -> list[Examination]:
        """Return what `check` does once all policies are read. RequestError for a house rule that none has."""
        policies = [member_policy(self._members or {}, root, texts) for root in self._roots]
        known = {rule.word for policy in policies for rule in policy.house_rules}
        unknown = sorted(set[str]().union(*(settings.kept for settings in self._settings)) - known)
        if unknown and not any(policy.is_part for policy in policies):  # it would hide all findings
            hint = did_you_mean(unknown[0], known, "write the name of a Rule document behind house/")
            raise RequestError(f"`select` names {unknown[0]}, and no policy here has this house rule", hint=hint)
        members = members_of(self._roots, policies) if self._members is None else self._members
        unread = list(_read_by_none(self._roots, policies)) if self._members is None else []
        replaced = {path: text for path in self._baselines if (text := (texts or {}).get(str(path))) is not None}
        baselines = self._baselines | {path: self._read(path, text=text) for path, text in replaced.items()}
        return [
            self._examination(
                policy=policy,
                settings=settings,
                baseline=baselines.get(settings.baseline) if settings.baseline else None,
                together=(
                    *(members[real_path(root)].together if real_path(root) in members else ()),
                    *(unread if root == self._roots[0] else ()),
                ),
                others=[member.policy for member in members.values()],
            )
            for root, policy, settings in zip(self._roots, policies, self._settings, strict=True)
        ]


def _read_by_none(roots: Sequence[Path], policies: Sequence[Policy]) -> Iterator[Hit]:
    """Yield the files of a repository without objects, such as rules and guards, that none of its policies reads.

    What is about objects may wait for somebody to extend it. Where only some policies are checked, nothing is found.
    """
    tree = tree_around(real_path(roots[0])) if len(roots) > 1 else None
    read = {real_path(name) for policy in policies for name in policy.files}
    with suppress(InputError):
        left = [file for file in policy_files(tree) if real_path(file) not in read] if tree is not None else []
        files = read_files(left[:_MOST_UNREAD], boundary(tree)).files.values() if tree is not None else ()
        idle = [file.name for file in files if file.documents and not any(map(_may_be_base, file.documents))]
        if tree and idle and set(map(real_path, policy_roots(tree))) == set(map(real_path, roots)):
            message = "no policy reads this file: it is in none of their directories, and nothing extends it"
            hint = "move its documents into a file that the policies extend, or into the directory of a policy"
            for name in idle if roots[0].is_absolute() else map(relpath, idle):
                yield Hit("", FILE_NOT_READ.finding(message, Span(name, 1, 1, 1, 1), hint=hint))


def _may_be_base(document: YamlDocument) -> bool:
    kind = KINDS.get(str(document.root.get("kind"))) if isinstance(document.root, dict) else None
    return kind is None or kind.about is not None


@dataclass(frozen=True, slots=True)
class FleetMember:
    """The policy of one of several clusters, and what it shows only beside the others."""

    policy: Policy
    together: Sequence[Hit]


FleetMembers = Mapping[Path, FleetMember]
"""Members of a fleet by the real paths of their roots."""


def members_of(roots: Sequence[Path], policies: Sequence[Policy]) -> FleetMembers:
    """Return the policies at these roots, with what only several of them together show."""
    return dict(zip(map(real_path, roots), map(FleetMember, policies, check_fleet(policies)), strict=True))


def member_policy(members: FleetMembers, root: Path, texts: Mapping[str, str] | None = None) -> Policy:
    """Return the policy at `root`: of a member if it was read by this name; else, or with other `texts`, read anew."""
    member = None if texts else members.get(real_path(root))
    return member.policy if member is not None and member.policy.root == root else load_policy(root, texts)


def check_by_settings(
    policy: Policy,
    state: ClusterState | None,
    *,
    today: date,
    forecast: Forecast,
    together: Sequence[Hit] = (),
    only_errors: bool = False,
    texts: Mapping[str, str] | None = None,
) -> Examined:
    """Return what is found, by the settings of its repository, in a policy from disk that other verbs work with.

    `texts` may hold another text of its baseline, `together` is what it shows beside others.
    `only_errors`: the caller asks for errors alone. Rules that need a forecast only warn, unless the settings say
    otherwise.
    """
    settings = settings_for(policy.root or Path())
    if only_errors and not settings.severities:
        forecast = NO_FORECAST
    path = settings.baseline
    baseline = read_baseline(path, named=False, text=(texts or {}).get(str(path))) if path else None
    checked = Examination(
        policy=policy,
        state=state,
        today=today,
        settings=settings,
        baseline=baseline,
        together=together,
        forecast=forecast,
        to_plan=True,
    ).run()
    return replace(checked, findings=list(one_for_each_missing(checked.findings)))


def marked_new(now: Sequence[Accepted], files: Files, before: Sequence[Accepted], old: Files) -> list[Accepted]:
    """Return the accepted findings of a policy, each with whether it is new beside those of its base."""
    known = Counter(_identity(item.finding, old) for item in before)
    keys = [_identity(item.finding, files) for item in now]
    known.subtract(keys)
    return [replace(item, new=known[key] < 0) for item, key in zip(now, keys, strict=True)]


def _identity(finding: Finding, files: Files) -> tuple[str, str, str]:
    return finding.key, finding.span.file if finding.span else "", fingerprint(finding, files)


def editable_files(policies: Iterable[Policy]) -> dict[str, FileToWrite]:
    """Return the files that a fix may be written to, with their places.

    Those of the policies that were named, not the bases of theirs that lie elsewhere; not what a link leads to, and of
    two names of one file the first.
    """
    names: dict[FileToWrite, str] = {}
    for policy in policies:
        within = boundary(policy.root or Path())
        for name in policy.paths:
            with suppress(OSError):
                names.setdefault(within.target(name), name)
    return {name: target for target, name in names.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What the checks of several policies came to: each finding once, by place.

    `failing` are those that make the check fail, `fixable` is how many `check --fix` could fix.
    """

    findings: list[Finding]
    files: Files
    failing: frozenset[Finding]
    accepted: list[Accepted]
    fixable: int


def report_checks(checked: Sequence[Examined]) -> CheckReport:
    """Return what was found in one or several policies, each finding once."""
    found = one_for_each_missing(*(item.findings for item in checked))
    failing = {one for item in checked for one in item.findings if item.settings.fails(one)}
    findings = by_place(found)
    edited = [{edit.span.file for edit in finding.fix.edits} for finding in told(findings) if finding.fix is not None]
    editable = frozenset(editable_files(item.policy for item in checked) if edited else ())
    return CheckReport(
        findings=findings,
        files=_files(checked),
        failing=frozenset(one for one, same in found.items() if not failing.isdisjoint(same)),
        accepted=list(dict.fromkeys(known for item in checked for known in item.accepted)),
        fixable=sum(files <= editable for files in edited),
    )


def _files(checked: Sequence[Examined]) -> dict[str, SourceFile]:
    return {name: file for item in checked for name, file in item.policy.files.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBaseline:
    """The text of a baseline that accepts `count` findings, and what is `left` since no baseline can accept it."""

    text: str
    count: int
    left: list[Examined]

    @property
    def is_possible(self) -> bool:
        """Whether no error is left."""
        return not any(finding.severity is Severity.ERROR for item in self.left for finding in item.findings)


def new_baseline(checked: Sequence[Examined], path: Path) -> NewBaseline:
    """Return the baseline for the file `path` that accepts what was found. RequestError if it may not be there."""
    files = _files(checked)
    _refuse_other_file(path, files)
    findings = by_place(finding for item in checked for finding in item.findings)
    taken = [finding for finding in findings if finding.code in ACCEPTABLE]
    left = [replace(item, findings=[one for one in item.findings if one.code not in ACCEPTABLE]) for item in checked]
    text = baseline_text((finding, key_of(finding, files, path)) for finding in taken)
    return NewBaseline(text=text, count=len(taken), left=left)


def _refuse_other_file(path: Path, files: Files) -> None:
    """Raise RequestError where a baseline would replace something else: a file of the policy, or of anybody."""
    if not path.is_file():
        return  # nothing is there, or nothing that can be replaced
    if any(Path(file).is_file() and path.samefile(file) for file in files):
        raise RequestError(f"{path} is a file of the policy, it cannot be its baseline", hint="name another file")
    if path.stat().st_size == 0:
        return
    try:
        read_baseline(path)
    except InputError as error:
        reason = error.message.removeprefix(f"{path}: ")
        hint = "name another file, or remove this one first"
        raise RequestError(f"{path} exists and is not a baseline: {reason}", hint=hint) from None
