"""JUnit reports: XML as CI services read it. ASCII only: all else becomes a character reference.

It has only the elements and attributes that Jenkins' xUnit plugin accepts (its schema junit-10.xsd). So the class name
and the text of a case tell its place, and only suites count skipped cases.

A suite is a file, a case a test or a finding. A finding that makes the check fail is a failed case, any other a skipped
one, which services show without calling the run a failure. A file where nothing makes the check fail has a case that
passes. Names hold no line: services compare two runs by them, and a finding that only moved is not a new one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr  # it only writes here; nothing is parsed

from gpolicy.findings import Accepted, Finding
from gpolicy.printable import printable
from gpolicy.report.accepted_section import NO_REASON, accepted_lines, accepted_words
from gpolicy.testing.outcome import Outcome, tally

CLEAN: str = "gpolicy check"
"""The case of a file in which nothing makes the check fail."""


def findings_junit(
    findings: Iterable[Finding],
    files: Iterable[str],
    *,
    fails: Callable[[Finding], bool],
    accepted: Sequence[Accepted] = (),
    locate: Callable[[str], str] = str,
) -> str:
    """Return findings as an XML document, ASCII only, with a suite of what is accepted.

    `files` are all files that were checked; `fails` says whether a finding makes the check fail; `locate` turns the
    name of a file into its path in the repository.
    """
    by_file: dict[str, list[Finding]] = defaultdict(list)
    for file in files:
        by_file[locate(file)] = []
    for finding in dict.fromkeys(findings):
        by_file[locate(finding.span.file) if finding.span else "policy"].append(finding)
    suites = {file: _cases(file, found, fails) for file, found in sorted(by_file.items())}
    failures = {file: sum(map(fails, found)) for file, found in by_file.items()}
    skipped = {file: len(found) - failures[file] for file, found in by_file.items()}
    return _document(
        _counts(sum(map(len, suites.values())) + len(accepted), sum(failures.values())),
        [
            _suite(file, f'{_counts(len(cases), failures[file])} skipped="{skipped[file]}"', cases)
            for file, cases in suites.items()
        ]
        + _accepted_suite(accepted, locate),
    )


def _accepted_suite(accepted: Sequence[Accepted], locate: Callable[[str], str]) -> list[str]:
    """Return a suite with a skipped case for each accepted finding; none if there is none."""
    cases = [
        _case(
            f"{item.finding.code} {item.finding.name}: {item.finding.message}",
            locate(item.finding.span.file) if item.finding.span else "policy",
            _element("skipped", item.reason or NO_REASON, "\n".join(accepted_lines([item]))),
        )
        for item in accepted
    ]
    told = f"    <system-out>accepted: {accepted_words(accepted)}</system-out>"
    counts = f'{_counts(len(cases), 0)} skipped="{len(cases)}"'
    return [_suite("accepted", counts, [*cases, told])] if cases else []


def _counts(tests: int, failures: int, errors: int = 0) -> str:
    return f'tests="{tests}" failures="{failures}" errors="{errors}"'


def _cases(file: str, findings: list[Finding], fails: Callable[[Finding], bool]) -> list[str]:
    cases = []
    seen: Counter[str] = Counter()
    for finding in findings:
        name = f"{finding.code} {finding.name}: {finding.message}"
        seen[name] += 1
        unique = name if seen[name] == 1 else f"{name} ({seen[name]})"
        cases.append(_case(unique, file, _inside(finding, failed=fails(finding))))
    return cases if any(map(fails, findings)) else [*cases, _case(CLEAN, file)]


def _inside(finding: Finding, *, failed: bool) -> str:
    lines = [f"{finding.severity} {finding.code} {finding.name}: {finding.message}"]
    lines += [str(finding.span)] if finding.span else []
    lines += [f"{related.span}: {related.message}" for related in finding.related]
    lines += [f"hint: {finding.hint}"] if finding.hint else []
    return _element("failure" if failed else "skipped", finding.message, "\n".join(map(printable, lines)))


def outcomes_junit(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as an XML document, ASCII only."""
    by_file = groupby(outcomes, key=lambda outcome: outcome.span.file)
    suites = [_test_suite(file, list(tests)) for file, tests in by_file]
    return _document(_test_counts(outcomes), suites)


def _test_counts(outcomes: Sequence[Outcome]) -> str:
    found = tally(outcomes)
    return _counts(found.tests, found.failed, found.errors)


def _test_suite(file: str, outcomes: Sequence[Outcome]) -> str:
    cases = [_case(outcome.name, file, _problem(outcome)) for outcome in outcomes]
    return _suite(file, _test_counts(outcomes), cases)


def _problem(outcome: Outcome) -> str:
    if outcome.ok:
        return ""
    if outcome.error is not None:
        text = f"{outcome.place or outcome.span}: {outcome.error}" + (f"\n{outcome.hint}" if outcome.hint else "")
        return _element("error", outcome.error, text)
    first = outcome.failures[0]
    lines = []
    for check in outcome.failures:
        lines.append(f"{check.span}: {check.title}: expected {check.expected}, found {check.found}")
        lines += [check.detail] if check.detail else []
    message = f"{first.title}: expected {first.expected}, found {first.found}"
    return _element("failure", message, "\n".join(lines))


# --- XML ---------------------------------------------------------------------------------------------------------


def _document(counts: str, suites: Iterable[str]) -> str:
    """Return the whole report. `counts` are the attributes of its root element."""
    body = "\n".join([f"<testsuites {counts}>", *suites, "</testsuites>"])
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def _suite(name: str, counts: str, cases: Iterable[str]) -> str:
    """Return one suite."""
    return "\n".join([f"  <testsuite name={_attribute(name)} {counts}>", *cases, "  </testsuite>"])


def _case(name: str, file: str, inside: str = "") -> str:
    """Return one case, about a file. `inside` is an element, or nothing when all is well."""
    head = f"    <testcase classname={_attribute(file)} name={_attribute(name)}"
    return f"{head}>\n      {inside}\n    </testcase>" if inside else f"{head}/>"


def _element(name: str, message: str, text: str) -> str:
    """Return an element that says in a few words and in full what is wrong."""
    body = "\n".join(escape(printable(line)) for line in text.split("\n"))
    return f"<{name} message={_attribute(message)}>{body}</{name}>"


def _attribute(text: str) -> str:
    """Return `text` as the quoted value of an attribute."""
    return quoteattr(printable(text))
