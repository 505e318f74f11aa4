"""Reports of one verb on many clusters: a table of all, then each cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gpolicy.colour import Tone
from gpolicy.errors import ExitCode
from gpolicy.findings import Severity
from gpolicy.json_values import fields
from gpolicy.printable import count, printable, some
from gpolicy.provenance import Provenance
from gpolicy.report import answer_html, answer_markdown, answer_text
from gpolicy.report.answer import NOTHING, Answer, Figure, Findings, Name, Page, Section, Table
from gpolicy.report.forms import LEAST_BUDGET, Display, render
from gpolicy.report.markdown import CLOSE, code, folded, prose
from gpolicy.report.prometheus import Samples

_WORST_FIRST: Final = (ExitCode.COULD_NOT_RUN, ExitCode.FINDINGS, ExitCode.CHANGES)
_MOST_NAMES: Final = 8
_MOST_ASIDE: Final = 5
_DETAILS: Final = "Add --details to see each cluster."
_CUT: Final = "<sub>The reports of {} are left out, since a comment must be short: {}</sub>"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterReport:
    """The report of a verb on one cluster. `answer` is None if there is none; then `error` says why.

    `data` is its JSON, `page` its HTML, `metrics` are its samples, each only where that form was asked for. `aside` is
    what the verb would have written to standard error.
    """

    name: str
    labels: Mapping[str, str]
    exit_code: int
    answer: Answer | None = None
    data: Any = None
    page: str = ""
    metrics: Samples | None = None
    error: str = ""
    hint: str = ""
    aside: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The verdict, or why there is none."""
        return self.answer.first_line if self.answer else self.error

    @property
    def tone(self) -> Tone:
        """How good it is."""
        if self.answer is None or self.exit_code in (ExitCode.COULD_NOT_RUN, ExitCode.FINDINGS):
            return Tone.BAD
        return self.answer.colour

    @property
    def only_unknown(self) -> bool:
        """Whether nothing is wrong with it but that something was not looked at."""
        return self.answer is not None and self.tone is Tone.CAREFUL and self.answer.tone is not Tone.CAREFUL

    @property
    def is_quiet(self) -> bool:
        """Whether there is no more to say than the verdict."""
        answer = self.answer
        return answer is not None and self.tone in (Tone.GOOD, Tone.PLAIN) and not (answer.amount or answer.figures)


def worst_exit_code(reports: Sequence[ClusterReport]) -> int:
    """Return the worst exit code: it could not run (3), then the answer is no (1), then changes are pending (2)."""
    codes = {report.exit_code for report in reports}
    return int(next((code for code in _WORST_FIRST if code in codes), ExitCode.FINE))


def fleet_answer(verb: str, reports: Sequence[ClusterReport], provenance: Provenance) -> Answer:
    """Return the table of all clusters, with a verdict that names those with trouble."""
    named = (tuple(figure.name for figure in item.answer.figures) for item in reports if item.answer)
    headings = max(named, key=len, default=())
    rows = []
    for item in reports:
        verdict = item.verdict if item.answer else f"could not run: {item.error}"
        verdict += f" · {item.answer.amount}" if item.answer and item.answer.amount else ""
        values = {figure.name: figure.value for figure in item.answer.figures} if item.answer else {}
        name = Page(item.name) if item.page else Name(item.name)
        rows.append((name, verdict, *(values.get(heading, NOTHING) for heading in headings)))
    row_tones = tuple(item.tone for item in reports)
    table = Table(
        "Clusters",
        "clusters",
        ("cluster", "verdict", *headings),
        rows,
        tones=row_tones,
        most=len(rows),
        brief=20,
        aside=headings,
    )
    aside = tuple(f"{item.name}: {line}" for item in reports for line in item.aside)
    worst = next((tone for tone in (Tone.BAD, Tone.CAREFUL) if tone in row_tones), Tone.GOOD)
    return Answer(
        verb=verb,
        title=f"{verb.capitalize()} of {count(len(reports), 'cluster')}",
        name="",
        verdict=_verdict(verb, reports),
        tone=worst,
        figures=_totals(reports),
        sections=(Section("clusters", "Clusters", (table,), never_cut=True),),
        notes=aside,
        next=(*_errors(reports), *aside)[:_MOST_ASIDE],
        provenance=provenance,
    )


def _errors(reports: Sequence[ClusterReport]) -> Iterator[str]:
    """Yield the first error of each cluster; what several have, once."""
    told: dict[str, list[str]] = {}
    for item in reports:
        parts = [part for section in (item.answer.sections if item.answer else ()) for part in section.parts]
        findings = [finding for part in parts if isinstance(part, Findings) for finding in part.findings]
        errors = [finding for finding in findings if finding.severity is Severity.ERROR]
        for first in errors[:1]:
            place = f"{first.span}: " if first.span else ""
            more = f" (and {count(len(errors) - 1, 'more error')})" if len(errors) > 1 else ""
            told.setdefault(f"{place}{first.code} {first.message}{more}", []).append(item.name)
    for text, names in told.items():
        yield f"{some(names, 3)}: {text}"


_CAREFUL: Final = {
    "check": ("has warnings", "have warnings"),
    "capacity": ("takes nothing in some group", "take nothing in some group"),
}
"""What it means that a cluster needs a look, by verb."""


def _verdict(verb: str, reports: Sequence[ClusterReport]) -> str:
    kinds: tuple[tuple[str, str, ExitCode | Tone], ...] = (
        ("could not be looked at", "could not be looked at", ExitCode.COULD_NOT_RUN),
        ("has a problem", "have problems", ExitCode.FINDINGS),
        (*_CAREFUL.get(verb, ("gets worse", "get worse")), Tone.CAREFUL),
        ("has drifted", "have drifted", Tone.BAD),
        ("is known in part", "are known in part", Tone.QUIET),
    )
    left, told = list(reports), list[str]()
    for one, more, kind in kinds:
        names = [item.name for item in left if kind in (item.exit_code, Tone.QUIET if item.only_unknown else item.tone)]
        left = [item for item in left if item.name not in names]
        if names:
            told.append(f"{len(names)} {one if len(names) == 1 else more}: {some(names, _MOST_NAMES)}")
    fine = f"{len(left)} {'is' if len(left) == 1 else 'are'} fine"
    return "; ".join([*told, fine] if left or not told else told)


def _totals(reports: Sequence[ClusterReport]) -> tuple[Figure, ...]:
    """Return how many clusters there are, and how many of them are in each state."""
    tones = [item.tone for item in reports if item.answer and not item.only_unknown]
    unknown = sum(item.only_unknown for item in reports)
    states = (
        ("get worse", tones.count(Tone.CAREFUL), Tone.CAREFUL),
        *((("known in part", unknown, Tone.CAREFUL),) if unknown else ()),
        ("with problems", tones.count(Tone.BAD), Tone.BAD),
        ("not looked at", sum(item.answer is None for item in reports), Tone.BAD),
    )
    fine = len(reports) - sum(number for _, number, _ in states)
    return (
        Figure("clusters", f"{len(reports):,}"),
        *(
            Figure(name, f"{number:,}", tone=tone if number else Tone.PLAIN)
            for name, number, tone in (("fine", fine, Tone.GOOD), *states)
        ),
    )


# --- forms -----------------------------------------------------------------------------------------------------------


def fleet_text(index: Answer, reports: Sequence[ClusterReport], display: Display) -> str:
    """Return the table as text, then, with details, each cluster that has more to say than its verdict."""
    if not display.details:
        more = "" if display.quiet or index.notes or all(item.is_quiet for item in reports) else f"{_DETAILS}\n"
        return f"{render(index, display)}{more}"
    parts = [answer_text.render(index, display)]
    for item in reports:
        if item.answer is None:
            hint = f"\n  {printable(item.hint)}" if item.hint else ""
            parts.append(f"{printable(item.name)}: {printable(item.error)}{hint}\n")
        elif not item.is_quiet:
            parts.append(answer_text.render(_called(item, item.answer), display))
    return "\n".join(parts)


def fleet_markdown(index: Answer, reports: Sequence[ClusterReport], display: Display) -> str:
    """Return the table as Markdown, then each cluster folded, within `display.budget` bytes.

    The worst clusters come first. Each may take an equal part of what is left; the last ones are only named.
    """
    text = answer_markdown.render(index, display)
    left = display.budget - _bytes(text) - len(_CUT) - 1000
    loud = sorted((item for item in reports if not item.is_quiet), key=lambda item: _RANKS.get(item.tone, 2))
    blocks, cut = [], []
    for number, item in enumerate(loud):
        share = left // max(min(len(loud) - number, left // LEAST_BUDGET), 1)
        block = _block(item, share)
        if _bytes(block) > left:
            cut.append(item.name)
            continue
        blocks.append(block)
        left -= _bytes(block)
    if cut:
        what = count(len(cut), "cluster")
        blocks.append("\n" + _CUT.format(what, ", ".join(code(name, 100) for name in cut[:_MOST_NAMES])) + "\n")
    return text + "".join(blocks)


_RANKS: Final = {Tone.BAD: 0, Tone.CAREFUL: 1}


def _block(item: ClusterReport, budget: int) -> str:
    head = "\n".join((*folded(f"<b>{code(item.name, 100)}</b>: {prose(item.verdict, 300)}"), ""))
    tail = "\n".join(CLOSE)
    if item.answer is None:
        inner = f"{prose(item.error)} {prose(item.hint)}".strip()
    else:
        room = max(budget - _bytes(head) - _bytes(tail) - 10, LEAST_BUDGET)
        # without the marker of a comment of its own
        inner = answer_markdown.render(_called(item, item.answer), Display(budget=room)).partition("\n")[2]
    return f"{head}\n{inner}\n{tail}\n"


def _bytes(text: str) -> int:
    return len(text.encode())


def fleet_pages(index: Answer, reports: Sequence[ClusterReport]) -> dict[str, str]:
    """Return the pages by file name: the index with the table, and one of each cluster that has an answer."""
    return {
        index_page(reports): answer_html.render(index, Display(form="html")),
        **{f"{item.name}.html": item.page for item in reports if item.page},
    }


def index_page(reports: Sequence[ClusterReport]) -> str:
    """Return the file name of the index, which no cluster has: a cluster named `index` keeps its page."""
    name = "index"
    while any(item.name == name for item in reports):
        name = f"_{name}"
    return f"{name}.html"


def _called(item: ClusterReport, answer: Answer) -> Answer:
    """Return an answer with the cluster's name in the settings file, if it is another."""
    return answer if item.name in (answer.name, "") else replace(answer, title=f"{item.name}: {answer.title}")


def fleet_data(verb: str, reports: Sequence[ClusterReport]) -> dict[str, Any]:
    """Return all reports as one JSON document."""
    return {
        "format_version": "1.0",
        "verb": verb,
        "clusters": [
            {
                **fields(item, "name", "labels", "exit_code", "verdict"),
                "error": item.error or None,
                "hint": item.hint or None,
                "report": item.data,
            }
            for item in reports
        ],
        "summary": {
            "clusters": len(reports),
            "exit_code": worst_exit_code(reports),
            **{
                word: [item.name for item in reports if item.exit_code == code]
                for word, code in zip(("could_not_run", "findings", "changes"), _WORST_FIRST, strict=True)
            },
        },
    }
