"""`check --fix` and `check --diff`."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpolicy.checking.checking import Checked
from gpolicy.checking.fixing import CheckResult, FixedPolicy, fix_policy
from gpolicy.checking.repository import Checker, editable_files
from gpolicy.cli.console import write_diff
from gpolicy.errors import ExitCode, GpolicyError
from gpolicy.findings import Finding, by_place
from gpolicy.opening import Target, read_below, reason
from gpolicy.policy.yaml_reader import MAX_BYTES
from gpolicy.printable import as_text, printable
from gpolicy.writing.replacing import Replacement, replace_files

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def fix(checker: Checker, *, aside: bool) -> list[Checked]:
    """Fix what can be fixed, write the files, say what was fixed, and return what is left.

    What is said goes to standard output, or to standard error if that is `aside`.
    """
    run = _Run(checker)
    fixed = fix_policy(run.check)
    replace_files(_replacements(fixed.texts, run))
    out = sys.stderr if aside else sys.stdout
    out.write(as_text(map(_line, fixed.fixed)))
    if fixed.fixed:
        files = "1 file" if len(fixed.texts) == 1 else f"{len(fixed.texts)} files"
        out.write(f"{len(fixed.fixed)} fixed in {files}\n\n")
    return run.checker.check()


def diff(checker: Checker) -> int:
    """Write what `fix` would change as a unified diff; return 1 if there is something."""
    run = _Run(checker)
    fixed = fix_policy(run.check)
    for file in sorted(fixed.texts):
        write_diff(sys.stdout, unified_diff(file, run.original[file], fixed.texts[file]))
    if not fixed.texts:
        return int(ExitCode.FINE)
    _say_how_many(fixed)
    return int(ExitCode.FINDINGS)


class _Run:
    """Looks at the policies as they would be with other texts, and keeps the texts as they are."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self.original: dict[str, str] = {}
        self.targets: dict[str, Target] = {}

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
    name = printable(file)
    for line in difflib.unified_diff(_lines(before), _lines(after), name, name):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _replacements(texts: Mapping[str, str], run: _Run) -> Iterator[Replacement]:
    for file, text in texts.items():
        target = run.targets[file]
        try:
            old = read_below(target.directory, target.directory / target.name, 2 * MAX_BYTES)
        except OSError as error:
            raise GpolicyError(f"{file}: {reason(error)}", hint="nothing was changed") from None
        mark = _BYTE_ORDER_MARK if old.startswith(_BYTE_ORDER_MARK) else b""
        if old != mark + run.original[file].encode():
            raise GpolicyError(f"{file}: it has changed since it was read", hint="nothing was changed; run it again")
        yield Replacement(Path(file), old, mark + text.encode(), target)


def _line(finding: Finding) -> str:
    place = f"{finding.span}: " if finding.span else ""
    what = finding.fix.message if finding.fix else ""
    return f"{place}fixed {finding.code} {finding.name}: {what}"


def _say_how_many(fixed: FixedPolicy) -> None:
    files = "1 file" if len(fixed.texts) == 1 else f"{len(fixed.texts)} files"
    sys.stdout.flush()
    left = len(fixed.left.findings)
    sys.stderr.write(f"{len(fixed.fixed)} can be fixed by --fix, in {files}; {left} will be left\n")
