"""`fmt`: policies in one form; and the difference between two texts."""

import sys
from collections.abc import Iterable, Iterator
from difflib import Match, SequenceMatcher
from io import StringIO
from pathlib import Path

import gpolicy
from gpolicy.cli.terminal import complain, working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.policy.yaml_reader import MAX_BYTES
from gpolicy.printable import as_text, count, printable, write_diff
from gpolicy.use_cases.policy_texts import format_data

_LONG = 500  # lines of a part that is cut
_COMMON = 20  # a line that occurs more often says nothing about where two texts agree


def format_files(paths: list[Path], *, check: bool, diff: bool) -> int:
    """Format the files at `paths`, or report what would change, and return the exit code.

    1: a file would change (with `check` or `diff`), or one is broken and stays unchanged.
    """
    if Path("-") in paths:
        if len(paths) > 1:
            raise UsageError("- stands alone: standard input is one file")
        return _standard_input(check=check, diff=diff)
    done = gpolicy.format_policies(paths, working=working)
    broken = [_complain(item) for item in done]
    changed = [item for item in done if item.changed]
    if diff:
        _write_diffs(changed)
    left = 0
    if not check and not diff:
        for item in changed:
            if item.unwritable:
                complain(f"{item.name}: not formatted: {item.unwritable}", None)
        written = gpolicy.write_formatted(changed)
        left, changed = len(changed) - len(written), written
    _say(changed, done, would=check or diff, aside=diff, left=left)
    return int(ExitCode.FINDINGS if any(broken) or left or ((check or diff) and changed) else ExitCode.FINE)


def _standard_input(*, check: bool, diff: bool) -> int:
    """Format standard input to standard output; text that cannot be formatted is copied unchanged."""
    item = format_data(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input")
    broken = _complain(item)
    if diff:
        _write_diffs([item] if item.changed else [])
    elif not check:
        if sys.stdout.isatty():
            sys.stdout.write(item.formatted.text)
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(item.formatted.text.encode())
    return int(ExitCode.FINDINGS if broken or ((check or diff) and item.changed) else ExitCode.FINE)


def _complain(item: gpolicy.FormattedFile) -> bool:
    """Report why a file stays unchanged, if it does; return whether it is broken."""
    made = item.formatted
    for finding in made.broken[:1]:
        complain(f"{finding.span}: not formatted: {finding.message}", None)
    if made.reason and not made.broken:
        place = f":{made.line}" if made.line else ""
        complain(f"{item.name}{place}: not formatted: {made.reason}", None)
    return bool(made.broken)


def _write_diffs(changed: Iterable[gpolicy.FormattedFile]) -> None:
    for item in changed:
        write_diff(sys.stdout, unified_diff(item.name, item.text, item.formatted.text))
    sys.stdout.flush()


def _say(
    changed: list[gpolicy.FormattedFile], done: list[gpolicy.FormattedFile], *, would: bool, aside: bool, left: int
) -> None:
    out = sys.stderr if aside else sys.stdout
    word = "would be formatted" if would else "formatted"
    if not aside:
        out.write(as_text(f"{word}: {item.name}" if would else f"formatted {item.name}" for item in changed))
    files = f"{count(len(changed), 'file')} {word}"
    if changed or left:
        out.write(f"{files}, {len(done) - len(changed)} left as they are\n")
        return
    refused = sum(bool(item.formatted.reason) for item in done)
    if len(done) == 1:
        out.write("the file was not formatted\n" if refused else "the file is already formatted\n")
    elif refused:
        out.write(f"{refused} of {len(done)} files left as they are, the others are already formatted\n")
    else:
        out.write(f"all {len(done)} files are already formatted\n")


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
