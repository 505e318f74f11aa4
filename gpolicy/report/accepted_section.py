"""What waivers, comments and the baseline accept, as a figure, a table and lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from gpolicy.findings import Accepted
from gpolicy.printable import hanging
from gpolicy.report.answer import Figure, Name, Section, Table, Weight

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
