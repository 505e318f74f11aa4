"""`fmt`: policies in one form; and the difference between two texts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from io import StringIO
from pathlib import Path

from gpolicy.cli.terminal import complain, working
from gpolicy.errors import ExitCode, InputError, UsageError
from gpolicy.formatting.formatting import Formatted, format_text
from gpolicy.opening import reason
from gpolicy.policy.files import Boundary, boundary, policy_files
from gpolicy.policy.yaml_reader import MAX_BYTES
from gpolicy.printable import as_text, count, printable, write_diff
from gpolicy.writing.new_files import Replacement, replace_files

_LONG = 500  # lines of a part that is cut
_COMMON = 20  # a line that occurs more often says nothing about where two texts agree


_STANDARD_INPUT = Path("-")


@dataclass(frozen=True, slots=True)
class _Done:
    """One file: its content, and its new one."""

    path: Path
    text: str
    formatted: Formatted
    within: Boundary | None = None

    @property
    def changed(self) -> bool:
        return self.formatted.text != self.text


def format_files(paths: list[Path], *, check: bool, diff: bool) -> int:
    """Format the files at `paths`, or report what would change, and return the exit code.

    1: a file would change (with `check` or `diff`), or one is broken and stays unchanged.
    """
    if _STANDARD_INPUT in paths:
        if len(paths) > 1:
            raise UsageError("- stands alone: standard input is one file")
        return _standard_input(check=check, diff=diff)
    files = {file: within for path in reversed(paths) for file in policy_files(path) for within in (boundary(path),)}
    with working("formatting") as tell:
        done = []
        for path, within in sorted(files.items()):
            tell(str(path))
            done.append(_format(path, _read(path, within), within))
    broken = [_complain(item) for item in done]
    changed = [item for item in done if item.changed]
    if diff:
        _write_diffs(changed)
    left = 0
    if not check and not diff:
        written = _write(changed)
        left, changed = len(changed) - len(written), written
    _say(changed, done, would=check or diff, aside=diff, left=left)
    return int(ExitCode.FINDINGS if any(broken) or left or ((check or diff) and changed) else ExitCode.FINE)


def _standard_input(*, check: bool, diff: bool) -> int:
    """Format standard input to standard output; text that cannot be formatted is copied unchanged."""
    item = _format(_STANDARD_INPUT, sys.stdin.buffer.read(MAX_BYTES + 1))
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


def _read(path: Path, within: Boundary) -> bytes:
    try:
        return within.read(path, MAX_BYTES)
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}", hint="nothing was changed") from None


def _format(path: Path, data: bytes, within: Boundary | None = None) -> _Done:
    if len(data) > MAX_BYTES:
        raise InputError(f"{_name(path)}: larger than {MAX_BYTES // 1024**2} MiB", hint="nothing was changed")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{_name(path)}: not UTF-8 text (byte {error.start})", hint="nothing was changed") from None
    return _Done(path, text, format_text(text, _name(path)), within)


def _name(path: Path) -> str:
    return "standard input" if path == _STANDARD_INPUT else str(path)


def _complain(item: _Done) -> bool:
    """Report why a file stays unchanged, if it does; return whether it is broken."""
    made = item.formatted
    for finding in made.broken[:1]:
        complain(f"{finding.span}: not formatted: {finding.message}", None)
    if made.reason and not made.broken:
        place = f":{made.line}" if made.line else ""
        complain(f"{_name(item.path)}{place}: not formatted: {made.reason}", None)
    return bool(made.broken)


def _write(changed: list[_Done]) -> list[_Done]:
    """Write the files except those behind links, which are reported; return the written ones."""
    replacements, written = [], []
    for item in changed:
        assert item.within is not None  # noqa: S101 (standard input is not written)
        try:
            target = item.within.target(item.path)
        except OSError as error:
            complain(f"{item.path}: not formatted: {reason(error)}", None)
            continue
        replacements.append(Replacement(item.path, item.text.encode(), item.formatted.text.encode(), target))
        written.append(item)
    replace_files(replacements)
    return written


def _write_diffs(changed: Iterable[_Done]) -> None:
    for item in changed:
        write_diff(sys.stdout, unified_diff(_name(item.path), item.text, item.formatted.text))
    sys.stdout.flush()


def _say(changed: list[_Done], done: list[_Done], *, would: bool, aside: bool, left: int) -> None:
    out = sys.stderr if aside else sys.stdout
    word = "would be formatted" if would else "formatted"
    if not aside:
        out.write(as_text(f"{word}: {item.path}" if would else f"formatted {item.path}" for item in changed))
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
