"""Findings for a terminal: the source line with carets under the error, and what to write instead; and as an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from gpolicy.findings import Accepted, Finding, Severity, Span, told
from gpolicy.policy.source_file import Files
from gpolicy.printable import Painter, Tone, as_text, columns, hanging, printable, without_colour
from gpolicy.report.accepted_section import accepted_figure, accepted_section, accepted_words
from gpolicy.report.answer import Answer, Figure, Findings, Section
from gpolicy.report.findings_json import summary

MOST_SHOWN: Final = 1000
"""The greatest number of findings that are shown, the worst first; the others are counted."""

WIDTH: Final = 100
"""The columns of a line: a longer sentence is broken, a longer source line is clipped around the error."""

_ALSO: Final = 2  # what follows from a finding and is shown without details
_TAB: Final = 4
_ELLIPSIS: Final = "…"
_NEAR: Final = 4  # widths of a line, before and after the place: text farther away is never shown
TONES: Final = {Severity.ERROR: Tone.BAD, Severity.WARNING: Tone.CAREFUL, Severity.INFO: Tone.NOTED}


def findings_text(
    findings: Iterable[Finding],
    sources: Files,
    *,
    colour: bool = False,
    width: int = WIDTH,
    fixable: int = 0,
    accepted: str = "",
    looked_at: str = "",
    details: bool = True,
) -> str:
    """Return findings as text, ending in a summary line. `sources` holds the files by name.

    `looked_at` says what was checked: `4 files, 2 groups`, `accepted` how many more are accepted, `fixable` is how many
    of them `check --fix` can fix, `width` is in columns. Without `details`, what only informs is counted.
    """
    found = sorted(findings, key=lambda finding: (finding.severity.rank, not finding.consequences))  # causes first
    shown = [item for item in found if details or item.severity is not Severity.INFO]
    hides = not details and any(item.severity is Severity.INFO for item in told(found))
    notes = ["--details shows what only informs"] if hides else []
    notes += [f"{fixable} can be fixed by --fix"] if fixable else []
    notes += [f"accepted: {accepted} (--accepted shows them)"] if accepted else []
    summary = f"{looked_at}: {summary_line(found)}" if looked_at else summary_line(found)
    writer = _Writer(sources, colour=colour, width=max(width, 40), details=details)
    return as_text(writer.lines(shown, notes, summary))


def findings_concise(findings: Iterable[Finding], *, locate: Callable[[str], str] = str) -> str:
    """Return findings as compilers write them, one line each, by place."""
    places = ((f"{replace(item.span, file=locate(item.span.file))}: " if item.span else "", item) for item in findings)
    return as_text(
        f"{place}{item.severity} {item.code} {item.name}: {item.message}{item.more}" for place, item in places
    )


def statistics_text(findings: Iterable[Finding]) -> str:
    """Return how many findings there are of each rule, the most frequent first, and a summary line."""
    found = list(findings)
    counts = Counter((item.code, item.name, str(item.severity)) for item in found)
    rows = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    lines = [f"{number:5,}  {code} {name} ({severity})" for (code, name, severity), number in rows]
    return as_text([*lines, summary_line(found)])


def summary_line(findings: Iterable[Finding]) -> str:
    """Return the counts in words: `1 error, 2 warnings`, or `no mistakes`."""
    counts = [(count, severity) for severity, count in summary(findings).items() if count]
    words = [
        f"{count} {severity if count == 1 or severity == 'info' else severity + 's'}" for count, severity in counts
    ]
    return ", ".join(words) or "no mistakes"


class _Writer:
    def __init__(self, sources: Files, *, colour: bool, width: int, details: bool) -> None:
        self._sources = sources
        self._paint = Painter(colour)
        self._width = width
        self._details = details

    def lines(self, findings: list[Finding], notes: list[str], summary: str) -> Iterator[str]:
        for finding in findings[:MOST_SHOWN]:
            yield from self._finding(finding)
            yield ""
        if len(findings) > MOST_SHOWN:
            yield f"{len(findings) - MOST_SHOWN} more are not shown here; --format json has all of them"
            yield ""
        yield from self._wrapped(self._paint(Tone.STRONG, summary + ";" * bool(notes)), "; ".join(notes))

    def _finding(self, finding: Finding) -> Iterator[str]:
        tone = TONES[finding.severity]
        head = self._paint(tone, f"{finding.severity} {finding.code} {finding.name}")
        place = f"{self._paint(Tone.STRONG, str(finding.span))}: " if finding.span else ""
        yield from self._wrapped(f"{place}{head}:", finding.message)
        if finding.span:
            yield from self._excerpt(finding.span, tone)
        for related in finding.related:
            yield from self._wrapped(f"{related.span}:", related.message, "  ")
            yield from self._excerpt(related.span, Tone.QUIET)
        if finding.hint:
            yield from self._wrapped(self._paint(Tone.STRONG, "hint:"), finding.hint, "  ")
        more = [item for item in finding.consequences if self._details or item.severity is not Severity.INFO]
        most = len(more) if self._details else _ALSO
        for item in more[:most]:
            here = item.span is not None and finding.span is not None and item.span.file == finding.span.file
            place = f" {item.span if not here else f'line {item.span.line}'}," if item.span else ""
            yield from self._wrapped(f"{self._paint(Tone.STRONG, 'also:')}{place} {item.code}:", item.message, "  ")
        if len(more) > most:
            yield f"  and {len(more) - most} more that follow from this; --details shows them"

    def _wrapped(self, head: str, text: str, indent: str = "") -> Iterator[str]:
        """Yield the lines of a text behind a head, which is not broken: editors look for it."""
        together = "x" * columns(without_colour(printable(head)))
        first, *more = hanging(f"{together} {text}", self._width, indent)
        yield first.replace(together, head, 1).rstrip()
        yield from more

    def _excerpt(self, span: Span, tone: Tone) -> Iterator[str]:
        """Yield the line that `span` begins on, and a line of carets; nothing if the file is not at hand."""
        line = self._line(span.file, span.line)
        if line is None:
            return
        end = span.end_column if span.end_line == span.line else len(line) + 1
        near = _NEAR * self._width
        cut = max(min(span.column - 1, len(line)) - near, 0)  # a line may be megabytes long, with thousands of findings
        piece = line[cut : cut + 2 * near]
        is_plain = piece.isascii() and piece.isprintable()  # most are: then each letter is one column
        cells = list(piece) if is_plain else [_cell(letter) for letter in piece]
        wide = [1] * len(cells) if is_plain else [columns(cell) for cell in cells]
        start = min(span.column - 1 - cut, len(cells))
        stop = max(min(end - 1 - cut, len(cells)), start)
        gutter = f"  {span.line} | "
        first, last = _window(wide, start, stop, self._width - len(gutter) - 2 * len(_ELLIPSIS))
        before = sum(wide[first:start])
        under = sum(wide[start : min(stop, last)])
        left = _ELLIPSIS if cut + first else ""
        right = _ELLIPSIS if cut + last < len(line) else ""
        yield f"{gutter}{left}{''.join(cells[first:last])}{right}".rstrip()
        carets = "^" * max(under, 1)
        yield f"{' ' * (len(gutter) - 2)}| {' ' * (len(left) + before)}{self._paint(tone, carets)}"

    def _line(self, file: str, number: int) -> str | None:
        source = self._sources.get(file)
        return source.line(number) if source and 0 < number <= source.line_count else None


def _cell(letter: str) -> str:
    """Return how one character of a source line is shown."""
    return " " * _TAB if letter == "\t" else printable(letter)


def _window(widths: list[int], start: int, stop: int, width: int) -> tuple[int, int]:
    """Return the range of characters to show: all if they fit, else the error with some text before it."""
    if sum(widths) <= width:
        return 0, len(widths)
    first = start
    room = max(width - sum(widths[start:stop]), width // 3) // 2
    while first > 0 and room >= widths[first - 1]:
        first -= 1
        room -= widths[first]
    last, left = first, width
    while last < len(widths) and left >= widths[last]:
        left -= widths[last]
        last += 1
    return first, last


def findings_answer(
    findings: Iterable[Finding],
    sources: Files,
    *,
    fails: Callable[[Finding], bool],
    accepted: Sequence[Accepted] = (),
    locate: Callable[[str], str] = str,
) -> Answer:
    """Return findings as an answer, the worst first. `fails` says which of them make the check fail."""
    found = tuple(sorted(findings, key=lambda finding: finding.severity.rank))
    warnings = any(finding.severity is not Severity.INFO for finding in found)
    return Answer(
        verb="check",
        title="gpolicy check",
        name="",
        verdict="; ".join([summary_line(found), *([f"accepted: {accepted_words(accepted)}"] if accepted else [])]),
        tone=Tone.BAD if any(map(fails, found)) else Tone.CAREFUL if warnings else Tone.GOOD,
        figures=(
            *(
                Figure(word, f"{number:,}", tone=TONES[Severity(word)] if number else Tone.GOOD, about="findings")
                for word, number in summary(found).items()
            ),
            *accepted_figure(accepted),
        ),
        sections=(
            Section("findings", "Findings", (Findings(found, sources, locate),)),
            accepted_section(accepted, locate),
        ),
    )
