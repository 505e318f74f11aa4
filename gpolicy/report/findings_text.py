"""Findings of `gpolicy check`: for a terminal, as an answer, and as annotations on GitHub; the accepted ones with them.

For a terminal: the source line with carets under the error, and what to write instead. Annotations are GitHub's
"Workflow commands for GitHub Actions": `::error file=…,line=…,title=…::message`. All of them are in the log.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.findings import Accepted, Finding, Severity, Span, told
from gpolicy.policy.source_file import Files
from gpolicy.printable import Painter, Tone, as_text, columns, hanging, no_command, printable, without_colour
from gpolicy.report.answer import Answer, Figure, Findings, Name, Section, Table, Weight
from gpolicy.report.findings_json import summary

NO_REASON: Final = "no reason is given"
_WIDTH: Final = 100  # columns


def accepted_words(accepted: Sequence[Accepted]) -> str:
    """Return how many findings are accepted, and where a base is known how many of them are new."""
    if not accepted or any(item.new is None for item in accepted):
        return f"{len(accepted):,}"
    return f"{len(accepted):,}, {sum(item.new is True for item in accepted):,} of them new"


def accepted_figure(accepted: Sequence[Accepted]) -> tuple[Figure, ...]:
    """Return the figure of accepted findings; none where nothing is accepted."""
    by = ", ".join(f"{number:,} by {what}" for what, number in Counter(item.by for item in accepted).items())
    return (Figure("accepted", accepted_words(accepted), by, about="accepted"),) if accepted else ()


def accepted_lines(accepted: Sequence[Accepted]) -> Iterator[str]:
    """Yield what is accepted, by place, with what accepts it below."""
    for item in accepted:
        finding = item.finding
        head = f"{finding.span or 'the policy'}: {finding.severity} {finding.code} {finding.name}"
        yield from hanging(f"{head}: {finding.message}", _WIDTH)
        until, new = f" until {item.until}" if item.until else "", ", new" if item.new else ""
        told = f"accepted by {item.by}{until}{new} ({item.place}): {item.reason or NO_REASON}"
        yield from hanging(told, _WIDTH, "  ")


def accepted_section(accepted: Sequence[Accepted], locate: Callable[[str], str] = str) -> Section:
    """Return a table of what is accepted, the new ones first."""
    rows = [
        (
            item.finding.key,
            Name(f"{locate(item.finding.span.file)}:{item.finding.span.line}" if item.finding.span else "-"),
            item.finding.message,
            f"{item.by}{' (new)' if item.new else ''}",
            Name(f"{locate(item.place.file)}:{item.place.line}" if item.place else "-"),
            item.until or "-",
            item.reason or NO_REASON,
        )
        for item in sorted(accepted, key=lambda item: item.new is not True)
    ]
    headings = ("rule", "where", "what", "accepted by", "at", "until", "reason")
    table = Table("What accepts which finding", "findings", headings, rows, weight=Weight.DETAIL, most=len(rows))
    return Section(
        "accepted", "Accepted", [table], weight=Weight.DETAIL, summary=accepted_words(accepted) if rows else ""
    )


MOST_SHOWN: Final = 1000
"""The greatest number of findings that are shown, the worst first; the others are counted."""

WIDTH: Final = 100
"""The columns of a line: a longer sentence is broken, a longer source line is clipped around the error."""

_ALSO: Final = 2  # what follows from a finding and is shown without details
_TAB: Final = " " * 4
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
    writer = _FindingsWriter(sources, colour=colour, width=max(width, 40), details=details)
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


class _FindingsWriter:
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
            verb, what = ("follows", "it") if len(more) == most + 1 else ("follow", "them")
            yield f"  and {len(more) - most} more that {verb} from this; --details shows {what}"

    def _wrapped(self, head: str, text: str, indent: str = "") -> Iterator[str]:
        """Yield the lines of a text behind a head, which is not broken: editors look for it."""
        together = "x" * columns(without_colour(printable(head)))
        first, *more = hanging(f"{together} {text}", self._width, indent)
        yield first.replace(together, head, 1).rstrip()
        yield from more

    def _excerpt(self, span: Span, tone: Tone) -> Iterator[str]:
        """Yield the line that `span` begins on, and a line of carets; nothing if the file is not at hand."""
        source = self._sources.get(span.file)
        if source is None or not 0 < span.line <= source.line_count:
            return
        line = source.line(span.line)
        end = span.end_column if span.end_line == span.line else len(line) + 1
        near = _NEAR * self._width
        cut = max(min(span.column - 1, len(line)) - near, 0)  # a line may be megabytes long, with thousands of findings
        piece = line[cut : cut + 2 * near]
        is_plain = piece.isascii() and piece.isprintable()  # most are: then each letter is one column
        cells = list(piece) if is_plain else [_TAB if letter == "\t" else printable(letter) for letter in piece]
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


MOST_ANNOTATIONS: Final = 10
"""Annotations of one level that GitHub shows for a step. It drops the rest without a word: the last says how many."""

Locate = Callable[[str], str]

_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotation:
    """One message, beside a line or without a place. Equal ones are counted by `kind`."""

    severity: Severity
    kind: str
    title: str
    message: str
    span: Span | None = None


def findings_github(findings: Iterable[Finding], *, locate: Locate = str) -> str:
    """Return findings as workflow commands, worst first, and a line for the log with the counts.

    `locate` turns the name of a file into its path in the repository.
    """
    findings = list(findings)
    return github([finding_annotation(finding) for finding in findings], summary_line(findings), locate=locate)


def finding_annotation(finding: Finding) -> Annotation:
    """Return a finding as an annotation."""
    message = finding.message + finding.more + (f"\nhint: {finding.hint}" if finding.hint else "")
    kind = f"{finding.code} {finding.name}"
    return Annotation(severity=finding.severity, kind=kind, title=kind, message=message, span=finding.span)


def github(annotations: Iterable[Annotation], summary: str, *, locate: Locate = str) -> str:
    """Return `annotations` as workflow commands, worst first, then `summary` as a plain line of the log."""
    ordered = sorted(annotations, key=lambda item: item.severity.rank)
    lines = [line for severity in Severity for line in _level([a for a in ordered if a.severity is severity], locate)]
    return "".join(f"{line}\n" for line in (*lines, _without_commands(summary)))


def _level(items: list[Annotation], locate: Locate) -> Iterator[str]:
    shown = items if len(items) <= MOST_ANNOTATIONS else items[: MOST_ANNOTATIONS - 1]
    yield from (_command(item, locate) for item in shown)
    rest = items[len(shown) :]
    if not rest:
        return
    kinds = ", ".join(f"{kind} ({count})" for kind, count in Counter(item.kind for item in rest).most_common())
    level = _LEVELS[rest[0].severity]
    title = f"{len(rest)} more of this level"
    yield f"::{level} title={_property(title)}::{_data(f'{kinds}. GitHub shows ten; all are in the log of this step.')}"
    for item in rest:  # plain lines, which GitHub leaves in the log
        place = f"{item.span}: " if item.span else ""
        yield _without_commands(f"{place}{level}: {item.title}: {item.message}")


def _command(item: Annotation, locate: Locate) -> str:
    properties = {"file": "", "line": "", "endLine": "", "col": "", "endColumn": "", "title": item.title}
    span = item.span
    if span is not None:
        properties |= {"file": locate(span.file), "line": str(span.line), "endLine": str(span.end_line)}
        if span.end_line == span.line:  # GitHub takes columns within one line only
            properties |= {"col": str(span.column), "endColumn": str(max(span.end_column - 1, span.column))}
    text = ",".join(f"{key}={_property(value)}" for key, value in properties.items() if value)
    return f"::{_LEVELS[item.severity]} {text}::{_data(item.message)}"


def _data(text: str) -> str:
    return "%0A".join(printable(line).replace("%", "%25") for line in text.split("\n"))


def _property(text: str) -> str:
    return printable(text).replace("%", "%25").replace(":", "%3A").replace(",", "%2C")


def _without_commands(text: str) -> str:
    return no_command(printable(text))
