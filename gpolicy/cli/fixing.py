"""`check --fix` and `check --diff`: what changes the files of a policy so that nothing is found."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from gpolicy.checking.checking import Checked, Checker, editable_files
from gpolicy.checking.fixing import CheckResult, fix_policy
from gpolicy.cli.formatting import unified_diff
from gpolicy.cli.terminal import working
from gpolicy.errors import ExitCode
from gpolicy.findings import Finding, by_place
from gpolicy.opening import FileToWrite
from gpolicy.printable import as_text, count, write_diff
from gpolicy.writing.new_files import replace_files, replacements_of


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


def _line(finding: Finding) -> str:
    place = f"{finding.span}: " if finding.span else ""
    what = finding.fix.message if finding.fix else ""
    return f"{place}fixed {finding.code} {finding.name}: {what}"
