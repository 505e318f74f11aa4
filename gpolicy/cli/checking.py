"""What verbs ask of policies: `check`, and the checked policy of others."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import gpolicy
from gpolicy.cli.output import Report, base_of, looked_at, not_judged, repository_path, show_report
from gpolicy.cli.targets import Target, Targets, all_clusters_near, as_named, report_file, run_on, targets_of
from gpolicy.cli.terminal import StatusLine, in_options, wants_colour, working
from gpolicy.errors import ExitCode, InputError, UnreachableError, UsageError
from gpolicy.findings import Accepted, Finding
from gpolicy.json_values import json_text
from gpolicy.opening import real_path
from gpolicy.policy.files import only_root, policy_roots
from gpolicy.policy.source_file import SETTINGS_MISTAKE, Files
from gpolicy.printable import as_text, count, wrapped, write_diff
from gpolicy.report.forms import OWN_FORMS

if TYPE_CHECKING:
    from gpolicy.checking.checking import Checker, Examination, Examined, FleetMembers
    from gpolicy.checking.settings_tables import Overrides
    from gpolicy.cli.options import Clusters, Outputs
    from gpolicy.cluster.state import ClusterState


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """What to check, by which rules, and how to report the findings.

    `shown` is how to show them, `write_baseline` the file to keep what is found in; `accepted`: show also what is;
    `statistics`: count them by rule.
    """

    paths: list[Path]
    clusters: Clusters
    shown: Outputs
    overrides: Overrides
    fix: bool = False
    diff: bool = False
    write_baseline: Path | None = None
    accepted: bool = False
    statistics: bool = False


def settings_mistakes(paths: Iterable[Path]) -> list[Finding]:
    """Return of each settings file of `paths` the first thing that it says of clusters that cannot be right."""
    from gpolicy.policy.settings_file import SettingsError, settings_file  # noqa: PLC0415 (few repositories have one)

    files = {file.path: file for file in map(settings_file, paths) if file is not None}
    found = []
    for file in files.values():
        from gpolicy.fleet.named_clusters import refuse_contradictions  # noqa: PLC0415

        try:
            refuse_contradictions(file)
        except SettingsError as error:
            span = replace(error.span, file=str(as_named(Path(error.span.file))))
            found.append(SETTINGS_MISTAKE.finding(error.what, span, hint=in_options(error)[1] or ""))
    return found


def check(request: CheckRequest) -> int:
    """Check each policy, print the findings, fix them on request, and return the exit code."""
    _refuse_options_together(request)
    report_file(request.shown, "check")  # refuses --output FILE without a form
    path = request.paths[0] if request.paths else None
    targets = targets_of(request.clusters, path)
    if targets.several and (request.fix or request.diff or request.write_baseline):
        raise UsageError("--fix, --diff and --write-baseline are for named policies", hint="leave out --all")
    looks_at_settings = not (request.overrides.isolated or request.overrides.config)
    if looks_at_settings and (targets.several or request.fix or request.diff or request.write_baseline):
        for mistake in settings_mistakes(request.paths or [Path()]):
            raise InputError(f"{mistake.span}: {mistake.message}", hint=mistake.hint or None)
    if targets.several:
        work = partial(_check_one, request=request)
        return run_on(with_members(targets), work, request.shown, verb="check")
    (target,) = targets.targets
    if request.fix or request.diff:
        return _fix(request.paths or [target.policy], target, request)
    checker = _checker(request.paths or [target.policy], target, request)
    with working("checking"):
        examinations = checker.examinations()
    checked = run_examinations(examinations)
    if request.write_baseline is not None:
        return _write_baseline(checked, request.write_baseline, request)
    if looks_at_settings and checked:  # which other verbs would find later
        roots = {item.settings.source: item.policy.root or Path() for item in checked}  # one for each settings file
        mistakes = settings_mistakes(roots.values())
        checked = [replace(checked[0], findings=[*checked[0].findings, *mistakes]), *checked[1:]]
    checked = marked_since(base_of(request.clusters.changed_since), checked, checker.check)
    return show_report(_report(checked, request), request.shown.display, also=request.shown.files)


def _check_one(target: Target, request: CheckRequest) -> Report:
    """Check the policy of one of several clusters, against its state."""
    silent: UnreachableError | InputError | None = None
    try:
        checker = _checker([target.policy], target, request)
    except (UnreachableError, InputError) as error:  # what needs no cluster can be checked all the same
        silent, checker = error, _checker([target.policy], replace(target, address=None), request)
    report = _report(marked_since(base_of(request.clusters.changed_since), checker.check(), checker.check), request)
    if silent is None or report.answer is None:
        return report
    answer = replace(report.answer(), unknown=(f"the cluster was not read: {silent.message}",))
    return replace(report, exit_code=int(ExitCode.COULD_NOT_RUN), answer=lambda: answer)


_WithFindings = TypeVar("_WithFindings", "Examined", gpolicy.CheckedPolicy)


def marked_since(
    base: str, checked: list[_WithFindings], again: Callable[[Mapping[str, str]], list[_WithFindings]]
) -> list[_WithFindings]:
    """Return checked policies whose accepted findings say whether they are new since the base of the change, if known.

    `again` checks the same policies with the texts that their files had there.
    """
    from gpolicy.checking.checking import marked_new  # noqa: PLC0415
    from gpolicy.fleet.choosing import texts_before  # noqa: PLC0415

    places: list[str] = [known.place.file for item in checked for known in item.accepted if known.place]
    if not base or not places:
        return checked
    with suppress(gpolicy.GpolicyError):  # CI often has one commit only
        texts = texts_before({*places, *(name for item in checked for name in item.policy.files)}, base)
        pairs = zip(checked, again(texts) if texts else checked, strict=True)
        return [
            replace(now, accepted=marked_new(now.accepted, now.policy.files, old.accepted, old.policy.files))
            for now, old in pairs
        ]
    return checked


_FEW: Final = 20
"""So many policies are read for one of their clusters."""


def with_members(targets: Targets) -> Targets:
    """Return targets with the policies of all clusters, also of those that are left out, and what these show together.

    What cannot be read, the check of its cluster says. One of more than `_FEW` clusters is looked at alone.
    """
    from gpolicy.checking.checking import members_of  # noqa: PLC0415

    policies: dict[Path, gpolicy.Policy] = {}
    sources = {target.named.source for target in targets.targets if target.named}
    clusters = [cluster for source in sources for cluster in all_clusters_near(source.parent)]
    if not clusters or (len(clusters) > _FEW and not targets.several):
        return targets
    with working("reading the policies of all clusters"):
        for cluster in clusters:
            with suppress(gpolicy.GpolicyError, OSError):
                known = targets.policies.get(real_path(cluster.policy)) if cluster.policy else None
                if known is not None and len({os.path.dirname(name) for name in known.paths}) == 1:  # noqa: PTH120
                    policies[real_path(known.root or "")] = known  # a policy in one directory is one
                    continue
                for root in policy_roots(as_named(cluster.policy)) if cluster.policy else ():
                    policies[real_path(root)] = targets.policies.get(real_path(root)) or gpolicy.load_policy(root)
        members = members_of(list(policies), list(policies.values()))
    return replace(targets, targets=[replace(target, members=members) for target in targets.targets])


def _checker(paths: Sequence[Path], target: Target, request: CheckRequest) -> Checker:
    from gpolicy.forecast.bridge import make_checker  # noqa: PLC0415 (other verbs need no rules)

    roots, state = _roots_and_state(paths, target)
    baseline, today = request.write_baseline is None, reader_today()
    return make_checker(roots, state, request.overrides, today=today, baseline=baseline, members=target.members)


def _roots_and_state(paths: Sequence[Path], target: Target) -> tuple[list[Path], ClusterState | None]:
    named = [root for path in paths for root in policy_roots(path)]
    roots = list({real_path(root): root for root in reversed(named)}.values())[::-1]  # each once, by its first name
    return roots, read_for(roots, target)


def _fix(paths: Sequence[Path], target: Target, request: CheckRequest) -> int:
    """Fix what can be fixed, write the files, and report the fixes and what is left; or show the changes as a diff."""
    roots, state = _roots_and_state(paths, target)
    fixed = gpolicy.fix_policies(roots, state, today=reader_today(), overrides=request.overrides, working=working)
    files = count(len(fixed.texts), "file")
    if not request.diff:
        gpolicy.write_texts(fixed.texts, *fixed.policies)
        out = sys.stdout if request.shown.display.form == "text" else sys.stderr
        out.write(as_text(map(_fixed_line, fixed.fixed)))
        where = f" in {files}" if fixed.texts else ": nothing has one safe answer"
        out.write(f"{len(fixed.fixed)} fixed{where}\n\n")
        return show_report(_report([*fixed.left.checked], request, fixable=False), request.shown.display)
    from gpolicy.cli.formatting import unified_diff  # noqa: PLC0415 (most checks show no difference)

    for file in sorted(fixed.texts):
        write_diff(sys.stdout, unified_diff(file, fixed.before.files[file].text, fixed.texts[file]))
    if not fixed.texts:
        return int(ExitCode.FINE)
    sys.stdout.flush()
    left = len(fixed.left.findings)
    rest = f"{count(left, 'finding')} that it cannot fix would remain" if left else "none would remain"
    sys.stderr.write(f"--fix would fix {count(len(fixed.fixed), 'finding')} in {files}; {rest}\n")
    return int(ExitCode.FINDINGS)


def _fixed_line(finding: Finding) -> str:
    place = f"{finding.span}: " if finding.span else ""
    what = finding.fix.message if finding.fix else ""
    return f"{place}fixed {finding.code} {finding.name}: {what}"


def reader_today() -> date:
    """Return today's date, in local time, for the end of waivers."""
    return date.today()  # noqa: DTZ011


def _refuse_options_together(request: CheckRequest) -> None:
    """Raise UsageError for two options that exclude one another."""
    asked = {"--fix": request.fix, "--diff": request.diff, "--write-baseline": request.write_baseline is not None}
    names = [name for name, is_asked in asked.items() if is_asked]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} do not go together", hint="use one of them at a time")
    if request.write_baseline is not None and request.overrides.baseline is not None:
        raise UsageError("--write-baseline and --baseline do not go together", hint="leave out --baseline")
    if names and request.shown.files:
        raise UsageError(f"{names[0]} and --output FORM=FILE do not go together", hint="use one of them at a time")
    if request.statistics and (request.diff or request.shown.display.form != "text"):
        raise UsageError("--statistics counts in text only", hint="leave out --format and --diff")
    if request.diff and request.shown.display.form != "text":
        raise UsageError(f"--diff has no format {request.shown.display.form!r}", hint="leave out --format")


def _report(checked: list[Examined], request: CheckRequest, *, fixable: bool = True) -> Report:
    """Return the findings as a report."""
    from gpolicy.checking.checking import report_checks  # noqa: PLC0415
    from gpolicy.report import findings_text  # noqa: PLC0415

    report = report_checks(checked)
    findings, files, accepted, fails = report.findings, report.files, report.accepted, report.failing.__contains__
    count = report.fixable if fixable else 0
    colour = wants_colour(sys.stdout) and all(display.form != "text" for display, _ in request.shown.files)
    policies = [item.policy for item in checked]
    about, gap = looked_at(policies, files), not_judged(policies)

    def text() -> str:
        if request.statistics:
            return findings_text.statistics_text(findings)
        words = findings_text.accepted_words(accepted)
        told = findings_text.findings_text(
            findings,
            files,
            colour=colour,
            fixable=count,
            accepted=words if accepted and not request.accepted else "",
            looked_at=about,
            details=request.shown.display.details,
        )
        listed = [*findings_text.accepted_lines(accepted), f"accepted: {words}"] if request.accepted else []
        return told + as_text([*(wrapped(gap, 100) if gap else []), *listed])

    forms = ("json", *OWN_FORMS["check"])
    return Report(
        exit_code=int(ExitCode.FINDINGS if report.failing else ExitCode.FINE),
        answer=lambda: findings_text.findings_answer(
            findings, files, fails=fails, accepted=accepted, locate=repository_path
        ),
        own={form: partial(findings_in, form, findings, files, fails, accepted) for form in forms} | {"text": text},
        policy=tuple(request.paths),
    )


def findings_in(
    form: str,
    findings: list[Finding],
    sources: Files,
    fails: Callable[[Finding], bool],
    accepted: Sequence[Accepted] = (),
) -> str:
    """Return findings in a form for other programs. `accepted` are those that the repository accepts."""
    from gpolicy.report import findings_json, findings_text  # noqa: PLC0415

    file = min(sources, default="")
    match form:
        case "concise":
            return findings_text.findings_concise(findings, locate=repository_path)
        case "github":
            return findings_text.findings_github(findings, locate=repository_path)
        case "junit":
            from gpolicy.report.junit import findings_junit  # noqa: PLC0415

            return findings_junit(findings, sources, fails=fails, accepted=accepted, locate=repository_path)
        case "sarif":
            from gpolicy.checking.catalogue import CATALOGUE, house_rules_of  # noqa: PLC0415
            from gpolicy.data import read_data  # noqa: PLC0415

            rules = (*CATALOGUE, *house_rules_of(findings))
            mark = _fingerprints(findings, sources).__getitem__
            return findings_json.findings_sarif(
                findings,
                rules,
                read_data("reference.toml")["families"],
                homepage=gpolicy.HOMEPAGE,
                fingerprint=mark,
                locate=repository_path,
                without_place=file,
            )
        case "gitlab":
            mark = _fingerprints(findings, sources).__getitem__
            return findings_json.findings_gitlab(findings, fingerprint=mark, locate=repository_path, without_place=file)
        case _:
            return json_text(findings_json.findings_data(findings, accepted))


def _fingerprints(findings: list[Finding], sources: Files) -> dict[Finding, str]:
    from gpolicy.checking.baseline import unique_fingerprints  # noqa: PLC0415

    found = list(dict.fromkeys(findings))  # what two policies share is one finding
    return dict(zip(found, unique_fingerprints(found, sources, locate=repository_path), strict=True))


def _write_baseline(checked: list[Examined], path: Path, request: CheckRequest) -> int:
    """Write all findings to a baseline, or none; show those that cannot be accepted."""
    from gpolicy.checking.checking import new_baseline  # noqa: PLC0415
    from gpolicy.writing.new_files import Replacement, replace_files  # noqa: PLC0415

    baseline = new_baseline(checked, path)
    if not baseline.is_possible:
        show_report(_report(baseline.left, request), request.shown.display)
        sys.stderr.write("no baseline was written: fix these first, they cannot be accepted\n")
        return int(ExitCode.FINDINGS)
    replace_files([Replacement(path, None, baseline.text.encode())])
    what = "1 finding is" if baseline.count == 1 else f"{baseline.count} findings are"
    named = any(item.settings.baseline and real_path(item.settings.baseline) == real_path(path) for item in checked)
    to_name = f'next: baseline = "{path.name}" under [check] in gpolicy.toml, or --baseline {path}'
    sys.stderr.write(as_text([f"{path}: {what} accepted by it", *([] if named else [to_name])]))
    if request.shown.display.form == "text" and not any(item.findings for item in baseline.left):
        return int(ExitCode.FINE)
    return show_report(_report(baseline.left, request), request.shown.display)


def checked_policy(
    path: Path,
    state: ClusterState | None = None,
    members: FleetMembers | None = None,
    *,
    only_errors: bool = False,
    base: str = "",
) -> gpolicy.CheckedPolicy:
    """Return the one policy at `path` with what check finds in it. Raise RequestError if there are several.

    `members` are the policies that it is checked beside; `only_errors`: errors are all that is asked. `base` is the
    commit that the change is compared with, if it is known.
    """
    from gpolicy.checking.checking import member_policy  # noqa: PLC0415 (other verbs need no rules)

    root = only_root(path)
    with working(f"checking {path}"):
        member = (members or {}).get(real_path(root))
        together = member.together if member is not None else ()
        check_policy = partial(gpolicy.check_policy, state=state, together=together, only_errors=only_errors)

        def check_with(texts: Mapping[str, str] | None) -> gpolicy.CheckedPolicy:
            return check_policy(member_policy(members or {}, root, texts), today=reader_today(), texts=texts)

        (checked,) = marked_since(base, [check_with(None)], lambda texts: [check_with(texts)])
        return checked


def read_for(roots: Sequence[Path], target: Target) -> ClusterState | None:
    """Return the state of the target, if it has one. Raise UsageError if the policies are of several clusters."""
    state = None if target.address is None else target.read()
    if state is not None and len(roots) > 1:
        names = ", ".join(map(str, roots))
        raise UsageError(f"--state is of one cluster, these are {len(roots)} policies: {names}")
    return state


MANY_OBJECTS: Final = 2000
"""Of fewer groups and node sets, what the processes cost is more than what they save."""


def run_examinations(examinations: Sequence[Examination]) -> list[Examined]:
    """Return what is found in each policy, in the same order; show progress when that takes long."""
    objects = sum(len(item.policy.groups) + len(item.policy.node_sets) for item in examinations)
    processes = min(os.cpu_count() or 1, len(examinations))
    if processes > 1 and objects >= MANY_OBJECTS:
        return _side_by_side(examinations, processes)
    with working("checking"):
        return [item.run() for item in examinations]


def _side_by_side(examinations: Sequence[Examination], processes: int) -> list[Examined]:
    """Return the same, found by copies of this process: they have all policies already, and send back findings only."""
    from gpolicy.checking.checking import Examined  # noqa: PLC0415 (other verbs need no rules)
    from gpolicy.fleet.workers import Failed, Watcher, work_side_by_side  # noqa: PLC0415 (most checks are small)

    line = StatusLine()
    shown = f"checking {count(len(examinations), 'policy', 'policies')}"
    watcher = Watcher(ticks=lambda: line.show(shown))
    jobs = [partial(_findings, item) for item in examinations]
    answers = work_side_by_side(jobs, most=processes, seconds=math.inf, watcher=watcher)
    line.show("")
    return [  # what ended a process may not end this one
        Examined(item.policy, item.settings, *(_findings(item) if isinstance(answer, Failed) else answer))
        for item, answer in zip(examinations, answers, strict=True)
    ]


def _findings(examination: Examination) -> tuple[list[Finding], list[Accepted]]:
    checked = examination.run()
    return checked.findings, checked.accepted
