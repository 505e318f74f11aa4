"""Drift as an answer and as JSON (`schemas/output/drift.json`): found and declared values, and the last write."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from gpolicy.cluster.state import Identity, describe_source
from gpolicy.drift.comparing import AcceptedDrift, Drift, DriftReport
from gpolicy.drift.units import How
from gpolicy.drift.write_back import UnwrittenDrift, WriteBack, WrittenDrift
from gpolicy.findings import Finding, Span
from gpolicy.ganeti.vocabulary import MINMAX
from gpolicy.json_values import LENGTH, TEXTS, Document, Key, Maybe, Shape, version_key
from gpolicy.plan.changes import MEMBERSHIP, NAME, TAGS, ChangeAction, NotCompared, words
from gpolicy.policy.kinds import Waiver
from gpolicy.policy.source_file import Files
from gpolicy.printable import Tone, count
from gpolicy.report.answer import Answer, Entries, Entry, Figure, Findings, Line, Section, Style, Weight
from gpolicy.report.findings_json import FINDING
from gpolicy.report.values_text import not_compared, pair_lines, unseen, value_text

_WHO: Final = "Who changed it is not known: Ganeti keeps only when an object was last written."


def drift_answer(report: DriftReport, sources: Files, *, of: str, wrote: WriteBack | None = None) -> Answer:
    """Return the report as an answer. `of` names the policy.

    `sources` are its files, to show the lines that findings are about. With `wrote`, which says what was written into
    the policy, `report` is what is left.
    """
    summary, source = count(len(report.drift), "difference"), describe_source(report.source, report.snapshot)
    summary += f", {len(report.accepted)} accepted" if report.accepted else ""
    none = "None: the cluster is as declared"
    if report.accepted:
        ends = sorted(str(item.waiver.until) for item in report.accepted)
        none = f"{count(len(ends), 'difference')}, accepted until {ends[0]}"
        none += " and later" if ends[-1] != ends[0] else ""
    if wrote is not None:
        summary = f"{count(len(wrote.written), 'value')} written; left: {summary}"
    tone = Tone.BAD if report.drift else Tone.GOOD
    return Answer(
        verb="drift",
        title="Drift of cluster",
        name=report.cluster or report.source,
        title_end="from its policy",
        verdict=summary if report.drift or wrote is not None else none,
        unknown=unseen(len(report.not_compared)),
        tone=tone,
        figures=(
            Figure("differences", f"{len(report.drift):,}", tone=tone, about="drift"),
            Figure("objects that differ", f"{len({item.object for item in report.drift}):,}", about="drift"),
            Figure("accepted for a time", f"{len(report.accepted):,}", about="accepted"),
            Figure("not compared", f"{len(report.not_compared):,}", about="unreadable"),
            Figure("findings", f"{len(report.findings):,}", about="findings"),
        ),
        basis=report.grounds,
        looked_at=(f"compared: {of} with {count(report.compared, 'object')} of {source}",),
        sections=(
            *(() if wrote is None else _wrote(wrote)),
            Section("findings", "Findings", [Findings(report.findings, sources)]),
            Section(
                "drift",
                "Differences",
                [Entries("difference", list(map(_entry, report.drift)), Style.CHANGES)],
                (_WHO if report.drift else "",),
            ),
            Section("accepted", "Accepted for a time", [_accepted(report)], weight=Weight.DETAIL),
            not_compared(report.not_compared, "declared"),
        ),
        notes=tuple(note for note in report.notes if note not in report.grounds),
        source=report.source,
        snapshot=report.snapshot,
    )


def _wrote(wrote: WriteBack) -> Iterator[Section]:
    """Yield what was written into the policy, and what was not."""
    entries = []
    for item in wrote.written:
        where = Line(f"{'written at' if item.how is How.IN_PLACE else 'an override at'} {item.span}")
        entries.append(Entry(f"{item.drift.object} {item.drift.name}: {_live(item.drift)}", below=(where,)))
    others = tuple(f"this changes as well: {item}" for item in wrote.changed_elsewhere)
    yield Section("written", "Written into the policy", [Entries("value", entries)], others)
    refused = [
        Entry(f"{item.drift.object} {item.drift.name}", below=(Line(item.reason, tone=Tone.BAD),))
        for item in wrote.not_written
    ]
    yield Section("not-written", "Not written", [Entries("value", refused)])


def _live(drift: Drift) -> str:
    """Return what was found, in a few words."""
    match drift.path:
        case path if path == NAME:
            return "there is no such group" if drift.found is None else str(drift.found)
        case path if path == MEMBERSHIP:
            return str(drift.found)
        case path if path == TAGS:
            return ", ".join(words(drift.found)) or "none"
        case ("ipolicy", "minmax"):
            return "; ".join(pair_lines(drift.found)) or "no own sizes"
    return "no own value" if drift.found is None else value_text(drift.path, drift.found)


def since_text(since: Identity) -> str:
    """Return the date of the last write, as exactly as Ganeti keeps it."""
    serial = "" if since.serial_no is None else f" (serial {since.serial_no})"
    when = utc(since.mtime)
    if when is None:
        return f"when it was changed is not known{serial}"
    return f"last changed no later than {when}{serial}"


def utc(seconds: float | None) -> str | None:
    """Return seconds since 1970 as date and time in UTC; None without a time or for an impossible one."""
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return None


def _entry(drift: Drift) -> Entry:
    items: tuple[Line, ...] = ()
    if drift.path == MINMAX:
        missing = "(no own sizes: the cluster's hold)" if drift.inherits else "(none)"
        items = _sides(pair_lines(drift.found) or ["(no own sizes)"], pair_lines(drift.declared) or [missing])
    elif drift.path == TAGS:
        found, declared = words(drift.found), words(drift.declared)
        items = _sides([x for x in found if x not in declared], [x for x in declared if x not in found])
    text = drift.name if drift.path in (MINMAX, TAGS) else _sentence(drift)
    return Entry(text, under=(drift.object, since_text(drift.since)), below=(*items, *_remarks(drift)))


def _sides(found: Iterable[str], declared: Iterable[str]) -> tuple[Line, ...]:
    return (
        *(Line(f"found     {text}", mark="-", tone=Tone.BAD) for text in found),
        *(Line(f"declared  {text}", mark="+", tone=Tone.GOOD) for text in declared),
    )


def _remarks(drift: Drift) -> Iterator[Line]:
    if drift.action in (ChangeAction.SET, ChangeAction.RESET) and drift.inherits:
        effective = f"in effect: {value_text(drift.path, drift.effective_found)}"
        yield Line(f"{effective}; inherited: {value_text(drift.path, drift.effective_declared)}")
    if drift.span is not None:
        yield Line(f"declared at {drift.span!s}")


def _accepted(report: DriftReport) -> Entries:
    entries = []
    for item in report.accepted:
        until = Line(f"until {item.waiver.until}: {item.waiver.reason}")
        entries.append(Entry(f"{item.drift.object} {_sentence(item.drift)}", below=(until,)))
    return Entries("difference", entries)


def _sentence(drift: Drift) -> str:
    match drift.path, drift.action:
        case path, ChangeAction.CREATE if path == NAME:
            return "is declared; the cluster has no such group"
        case path, ChangeAction.REMOVE if path == NAME:
            return f"is declared removed; the cluster has group {drift.found}"
        case path, _ if path == NAME:
            return f"name: found {drift.found}, declared {drift.declared}"
        case path, _ if path == MEMBERSHIP:
            return f"group: found in {drift.found}, declared in {drift.declared}"
        case path, _ if path == TAGS:
            found, declared = words(drift.found), words(drift.declared)
            extra = [f"found {tag}, not declared" for tag in found if tag not in declared]
            return f"tags: {'; '.join([*extra, *(f'{tag} is missing' for tag in declared if tag not in found)])}"
    if drift.inherits:
        return f"{drift.name}: found {_live(drift)}, declared inherit"
    sizes = drift.path == MINMAX
    own = "; ".join(pair_lines(drift.declared)) if sizes else value_text(drift.path, drift.declared)
    return f"{drift.name}: found {_live(drift)}, declared {own}"


_OBJECT: Final = {"type": "string", "pattern": "^(cluster$|(group|node)/)"}
_LINE: Final = Key(Maybe(Shape(Span).with_keys("file line")), "span", inline=True)
_KEY: Final = Key(Shape(Drift).with_keys(object=_OBJECT, path="name"), "drift", inline=True)
_DRIFT: Final = Shape(Drift, "drift").with_keys(
    "object path action declared inherits found effective_declared effective_found since_at_latest serial_no place",
    object=_OBJECT,
    path="name",
    since_at_latest=Key(str | None, lambda drift: utc(drift.since.mtime)),
    serial_no="since.serial_no",
    place=_LINE,
)
_WRITTEN: Final = Shape(WriteBack).with_keys(
    "values not_written files changed_elsewhere left",
    values=Key(Shape(WrittenDrift).with_keys("drift how place", drift=_KEY, place=_LINE), "written"),
    not_written=Shape(UnwrittenDrift).with_keys("drift reason", drift=_KEY),
    files=Key(TEXTS, lambda wrote: sorted(wrote.texts)),
    left=LENGTH,
)
DRIFT_DOCUMENT: Final = Document(
    "gpolicy drift --format json",
    Shape(DriftReport).with_keys("format_version cluster source snapshot", format_version=version_key("1.2")),
    Shape(float).with_keys(compared_at=Key(str | None, utc)),
    Shape(DriftReport).with_keys(
        drift=_DRIFT,
        accepted=Shape(AcceptedDrift).with_keys(
            drift=Key(_DRIFT, inline=True), waiver=Shape(Waiver).with_keys("where reason until place", place=_LINE)
        ),
        unreadable=Key(
            Shape(NotCompared).with_keys(
                object=_OBJECT, path=Key(str, lambda item: ".".join(item.path)), declared="wanted", place=_LINE
            ),
            "not_compared",
        ),
        findings=Shape(Finding).with_keys(
            **FINDING.keys
            | {"code": {"enum": ["GP901", "GP902"]}, "name": {"enum": ["waiver-expired", "waiver-unused"]}}
        ),
    ),
    Shape(WriteBack).with_keys(written=Maybe(_WRITTEN)),
    Shape(DriftReport).with_keys(
        "notes",
        summary=Shape(DriftReport).with_keys(drift=LENGTH, accepted=LENGTH, unreadable=Key(LENGTH, "not_compared")),
    ),
)


def drift_data(report: DriftReport, *, compared_at: float, wrote: WriteBack | None = None) -> dict[str, Any]:
    """Return the report as JSON's own types. `compared_at` is in seconds since 1970; `wrote` what became of it."""
    return DRIFT_DOCUMENT.data(report, compared_at, report, wrote, report)
