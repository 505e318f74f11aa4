"""`check --fix` and `check --diff`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from difflib import Match, SequenceMatcher
from io import StringIO

from gpolicy.checking.checking import Checked, Checker, editable_files
from gpolicy.checking.fixing import CheckResult, fix_policy
from gpolicy.cli.terminal import working
from gpolicy.errors import ExitCode
from gpolicy.findings import Finding, by_place
from gpolicy.opening import FileToWrite
from gpolicy.printable import as_text, count, printable, write_diff
from gpolicy.writing.new_files import replace_files, replacements_of

_LONG = 500  # lines of a part that is cut
_COMMON = 20  # a line that occurs more often says nothing about where two texts agree


def fix(checker: Checker, *, aside: bool) -> list[Checked]:
    """Fix what can be fixed, write the files, report the fixes, and return the remaining findings.

    The report goes to standard output, or with `aside` to standard error.
    """
    run = _Run(checker)
    with working("fixing"):
        fixed = fix_policy(run.check)
    replace_files(replacements_of(fixed.texts, run.original, run.targets))
    out = sys.stderr if aside else sys.stdout
    out.write(as_text(map(_line, fixed.fixed)))
    files = f" in {count(len(fixed.texts), 'file')}" if fixed.texts else ": nothing has one safe answer"
    out.write(f"{len(fixed.fixed)} fixed{files}\n\n")
    with working("checking"):
        return run.checker.check()


def diff(checker: Checker) -> int:
    """Write the changes of `fix` as a unified diff; return 1 if there are any."""
    run = _Run(checker)
    with working("fixing"):
        fixed = fix_policy(run.check)
    for file in sorted(fixed.texts):
        write_diff(sys.stdout, unified_diff(file, run.original[file], fixed.texts[file]))
    if not fixed.texts:
        return int(ExitCode.FINE)
    sys.stdout.flush()
    files, left = count(len(fixed.texts), "file"), len(fixed.left.findings)
    rest = f"{count(left, 'finding')} that it cannot fix would remain" if left else "none would remain"
    sys.stderr.write(f"--fix would fix {count(len(fixed.fixed), 'finding')} in {files}; {rest}\n")
    return int(ExitCode.FINDINGS)


class _Run:
    """Checks the policies with changed texts, without writing them."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self.original: dict[str, str] = {}
        self.targets: dict[str, FileToWrite] = {}

    def check(self, texts: Mapping[str, str]) -> CheckResult:
        checked = self.checker.check(texts)
        files = {name: file for item in checked for name, file in item.policy.files.items()}
        if not texts:
            self.original = {name: file.text for name, file in files.items()}
            self.targets = editable_files(item.policy for item in checked)
        return CheckResult(
            findings=by_place(finding for item in checked for finding in item.findings),
            files=files,
            editable=frozenset(self.targets),
        )


def unified_diff(file: str, before: str, after: str) -> Iterator[str]:
    """Yield the lines of a diff that `patch -p0` takes. Only a line feed ends a line here."""
    old, new = list(StringIO(before)), list(StringIO(after))
    header = f"--- {printable(file)}\n+++ {printable(file)}\n"
    for hunk in _SharedLines(None, old, new).get_grouped_opcodes():
        (_, first, _, second, _), (_, _, end, _, stop) = hunk[0], hunk[-1]
        yield f"{header}@@ -{_range(first, end)} +{_range(second, stop)} @@\n"
        header = ""
        for kind, low, high, start, till in hunk:
            lines = [(" " if kind == "equal" else "-", line) for line in old[low:high]]
            lines += [("+", line) for line in new[start:till] if kind != "equal"]
            for sign, line in lines:
                yield f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _range(first: int, end: int) -> str:
    """Return lines of one text as a hunk names them: an empty range by the line before it."""
    count = end - first
    return f"{first + 1}" if count == 1 else f"{first + 1 if count else first},{count}"


class _SharedLines(SequenceMatcher[str]):
    """The common lines of two texts. A long part is split at a common line in its middle.

    difflib alone takes time by the square of the number of changes: minutes for a file with a change on each line.
    """

    a: list[str]
    b2j: dict[str, list[int]]  # the places of each line of the second text

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        if ahi is not None and bhi is not None and ahi - alo > _LONG and bhi - blo > _LONG:
            for step in range(ahi - alo):
                number = (alo + ahi + (step if step % 2 else -step)) // 2
                expected = blo + (number - alo) * (bhi - blo) // (ahi - alo)
                places = self.b2j.get(self.a[number], ())
                near = [place for place in places if blo <= place < bhi] if len(places) <= _COMMON else []
                if near:
                    return Match(number, min(near, key=lambda place: abs(place - expected)), 1)
        return super().find_longest_match(alo, ahi, blo, bhi)


def _line(finding: Finding) -> str:
    place = f"{finding.span}: " if finding.span else ""
    what = finding.fix.message if finding.fix else ""
    return f"{place}fixed {finding.code} {finding.name}: {what}"
