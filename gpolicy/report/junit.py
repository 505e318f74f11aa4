"""JUnit reports: XML as CI services read it. ASCII only: all else becomes a character reference.

It has only the elements and attributes that Jenkins' xUnit plugin accepts (its schema junit-10.xsd). So the class name
and the text of a case tell its place, and only suites count skipped cases.

A suite is a file, a case a test or a finding. A finding that makes the check fail is a failed case, any other a skipped
one, which services show without calling the run a failure. A file where nothing makes the check fail has a case that
passes. Names hold no line: services compare two runs by them, and a finding that only moved is not a new one.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, indent, tostring  # it only writes here; nothing is parsed

from gpolicy.findings import Accepted, Finding
from gpolicy.printable import printable
from gpolicy.report.findings_text import NO_REASON, accepted_lines, accepted_words
from gpolicy.report.outcomes_answer import reasons
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
    suites = []
    for file, found in sorted(by_file.items()):
        failed = sum(map(fails, found))
        suite = _suite(file, len(found) + (not failed), failed, skipped=len(found) - failed)
        _add_findings(suite, file, found, fails)
        suites.append(suite)
    return _document([*suites, *_accepted_suite(accepted, locate)])


def _accepted_suite(accepted: Sequence[Accepted], locate: Callable[[str], str]) -> list[Element]:
    """Return a suite with a skipped case for each accepted finding; none if there is none."""
    suite = _suite("accepted", len(accepted), 0, skipped=len(accepted))
    for item in accepted:
        finding = item.finding
        case = _case(suite, _title(finding), locate(finding.span.file) if finding.span else "policy")
        _add_element(case, "skipped", item.reason or NO_REASON, accepted_lines([item]))
    SubElement(suite, "system-out").text = f"accepted: {accepted_words(accepted)}"
    return [suite] if accepted else []


def _add_findings(suite: Element, file: str, findings: list[Finding], fails: Callable[[Finding], bool]) -> None:
    seen: Counter[str] = Counter()
    for finding in findings:
        name = _title(finding)
        seen[name] += 1
        case = _case(suite, name if seen[name] == 1 else f"{name} ({seen[name]})", file)
        lines = [f"{finding.severity} {name}"]
        lines += [str(finding.span)] if finding.span else []
        lines += [f"{related.span}: {related.message}" for related in finding.places]
        lines += [f"hint: {finding.hint}"] if finding.hint else []
        _add_element(case, "failure" if fails(finding) else "skipped", finding.message, lines)
    if not any(map(fails, findings)):
        _case(suite, CLEAN, file)


def _title(finding: Finding) -> str:
    return f"{finding.code} {finding.name}: {finding.message}"


def outcomes_junit(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as an XML document, ASCII only."""
    suites = []
    for file, tests in groupby(outcomes, key=lambda outcome: outcome.span.file):
        together = list(tests)
        found = tally(together)
        suites.append(_suite(file, found.tests, found.failed, found.errors))
        for outcome in together:
            case = _case(suites[-1], outcome.name, file)
            lines = [line.text for line in reasons(outcome)]
            if outcome.error is not None:
                _add_element(case, "error", outcome.error, lines)
            elif not outcome.ok:
                _add_element(case, "failure", outcome.failures[0].sentence, lines)
    return _document(suites)


def _document(suites: Sequence[Element]) -> str:
    """Return the whole report, with the sums of its suites."""
    counts = {what: sum(int(suite.get(what, "")) for suite in suites) for what in ("tests", "failures", "errors")}
    root = Element("testsuites", {what: str(number) for what, number in counts.items()})
    root.extend(suites)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, "us-ascii").decode()}\n'


def _suite(name: str, tests: int, failures: int, errors: int = 0, *, skipped: int | None = None) -> Element:
    counts = {"tests": tests, "failures": failures, "errors": errors}
    counts |= {} if skipped is None else {"skipped": skipped}
    return Element("testsuite", {"name": printable(name), **{what: str(number) for what, number in counts.items()}})


def _case(suite: Element, name: str, file: str) -> Element:
    """Return a new case of a suite, about a file. Without an element in it, all is well."""
    return SubElement(suite, "testcase", classname=printable(file), name=printable(name))


def _add_element(case: Element, name: str, message: str, lines: Iterable[str]) -> None:
    """Add an element that says in a few words and in full what is wrong."""
    text = (printable(line) for item in lines for line in item.split("\n"))
    SubElement(case, name, message=printable(message)).text = "\n".join(text)
