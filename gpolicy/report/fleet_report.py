"""Reports of one verb on many clusters: a table of all, then each cluster."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import zip_longest
from typing import Any, Final

from gpolicy.cluster.record import Record
from gpolicy.errors import ExitCode, InputError
from gpolicy.findings import Finding, Severity
from gpolicy.json_values import COUNT, READY, TEXTS, Document, Key, Many, Shape, version_key
from gpolicy.plan.plan_json import ANSWER
from gpolicy.printable import Tone, count, printable, some
from gpolicy.provenance import Provenance
from gpolicy.report import answer_html, answer_markdown, answer_text
from gpolicy.report.answer import NOTHING, Answer, Cell, Figure, Findings, Name, Page, Section, SectionPart, Table
from gpolicy.report.answer_file import answer_data, read_answer
from gpolicy.report.forms import LEAST_BUDGET, Display, render
from gpolicy.report.growth_section import growth_of_all
from gpolicy.report.markdown import CLOSE, code, folded, prose
from gpolicy.report.prometheus import Samples

_WORST_FIRST: Final = (ExitCode.COULD_NOT_RUN, ExitCode.FINDINGS, ExitCode.CHANGES)
_MOST_NAMES: Final = 8
_MOST_FINE: Final = 20  # clusters that have a row though there is nothing to say of them
_MOST_ASIDE: Final = 5
_SHARD: Final = re.compile(r"([0-9]{1,5})/([0-9]{1,5})", re.ASCII)
_DETAILS: Final = "Add --details to see each cluster."
_CUT: Final = "<sub>The reports of {} are left out, since a comment must be short: {}</sub>"


class State(IntEnum):
    """How it stands with a cluster, the worst first."""

    NOT_LOOKED_AT = 0
    PROBLEM = 1
    WORSE = 2
    DRIFTED = 3
    PARTLY = 4
    CHANGES = 5
    FINE = 6


_WORDS: Final = {
    State.NOT_LOOKED_AT: ("not looked at", "could not be looked at", "could not be looked at", Tone.BAD),
    State.PROBLEM: ("with problems", "has a problem", "have problems", Tone.BAD),
    State.WORSE: ("get worse", "gets worse", "get worse", Tone.CAREFUL),
    State.DRIFTED: ("drifted", "has drifted", "have drifted", Tone.BAD),
    State.PARTLY: ("known in part", "is known in part", "are known in part", Tone.CAREFUL),
    State.CHANGES: ("change", "changes", "change", Tone.PLAIN),
    State.FINE: ("fine", "is fine", "are fine", Tone.GOOD),
}
"""The name of the figure of each state; what one cluster, or more, of it are; and its colour."""
_OWN: Final = {
    ("check", State.WORSE): ("with warnings", "has warnings", "have warnings"),
    ("clusters", State.WORSE): ("to look at", "needs a look", "need a look"),
    ("capacity", State.WORSE): ("taking nothing", "takes nothing in some group", "take nothing in some group"),
}
"""The same in other words of a verb."""


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
    def state(self) -> State:
        """How it stands with it. It is known in part if nothing is wrong but that something was not looked at."""
        if self.answer is None or self.exit_code == ExitCode.COULD_NOT_RUN:
            return State.NOT_LOOKED_AT
        if self.exit_code == ExitCode.FINDINGS:
            return State.PROBLEM
        if self.tone is Tone.CAREFUL:
            return State.WORSE if self.answer.tone is Tone.CAREFUL else State.PARTLY
        if self.tone is Tone.BAD:
            return State.DRIFTED
        return State.CHANGES if self.answer.amount else State.FINE

    @property
    def is_quiet(self) -> bool:
        """Whether there is no more to say than the verdict."""
        figures = self.answer.figures if self.answer else ()
        return self.state is State.FINE and all(figure.value == "0" for figure in figures)


def worst_exit_code(reports: Sequence[ClusterReport]) -> int:
    """Return the worst exit code: it could not run (3), then the answer is no (1), then changes are pending (2)."""
    codes = {report.exit_code for report in reports}
    return int(next((code for code in _WORST_FIRST if code in codes), ExitCode.FINE))


def fleet_answer(verb: str, reports: Sequence[ClusterReport], provenance: Provenance, *, every: bool = False) -> Answer:
    """Return the table of all clusters, the worst first, with a verdict that names those with trouble.

    Many clusters of which there is nothing to say are one row, unless `every` cluster is to have its own. What several
    clusters share is said here, once.
    """
    reports = sorted(reports, key=lambda item: item.state)
    quiet = [item for item in reports if item.is_quiet and not every]
    folded = quiet if len(quiet) > _MOST_FINE else []
    told = [item for item in reports if not (folded and item.is_quiet)]
    answers = [item.answer for item in reports if item.answer]
    headings = tuple(dict.fromkeys(figure.name for answer in answers for figure in answer.figures))
    rows, tones = [_cluster_row(item, headings) for item in told], [item.tone for item in told]
    if folded:
        verdicts = {item.verdict for item in folded}
        name = f"{len(folded):,} others" if told else f"all {len(folded):,}"
        rows.append((name, verdicts.pop() if len(verdicts) == 1 else "fine", *[NOTHING] * len(headings)))
        tones.append(Tone.GOOD)
    table = Table(
        "Clusters",
        "clusters",
        ("cluster", "verdict", *headings),
        rows,
        tones=tuple(tones),
        most=len(rows),
        brief=20,
        aside=headings,
    )
    shared = _shared_findings(reports)
    aside = tuple(f"{item.name}: {line}" for item in reports for line in item.aside)
    fine = Tone.GOOD if reports else Tone.PLAIN
    growth = growth_of_all((item.name, item.answer) for item in reports if item.answer)
    return Answer(
        verb=verb,
        title=f"{verb.capitalize()} of {count(len(reports), 'cluster')}",
        name="",
        verdict=_verdict_of_all(verb, reports),
        tone=next((tone for tone in (Tone.BAD, Tone.CAREFUL) if tone in tones), fine),
        figures=_totals(verb, reports),
        sections=(
            Section("clusters", "Clusters", (table,), never_cut=True),
            *((growth,) if growth.parts else ()),
            *((_shared_section(reports, shared),) if shared else ()),
        ),
        notes=aside,
        next=(*_worst_findings(reports, shared), *aside)[:_MOST_ASIDE],
        provenance=provenance,
    )


def _cluster_row(item: ClusterReport, headings: Sequence[str]) -> tuple[Cell, ...]:
    verdict = item.verdict if item.answer else f"could not run: {item.error}"
    verdict += f" · {item.answer.amount}" if item.answer and item.answer.amount else ""
    values = {figure.name: figure.value for figure in item.answer.figures} if item.answer else {}
    name = Page(item.name) if item.page else Name(item.name)
    return (name, verdict, *(values.get(heading, NOTHING) for heading in headings))


def _parts_with_findings(item: ClusterReport) -> list[Findings]:
    parts = (part for section in (item.answer.sections if item.answer else ()) for part in section.parts)
    return [part for part in parts if isinstance(part, Findings)]


def _findings_of(item: ClusterReport) -> dict[Finding, None]:
    return dict.fromkeys(finding for part in _parts_with_findings(item) for finding in part.findings)


def _shared_findings(reports: Sequence[ClusterReport]) -> dict[Finding, list[str]]:
    """Return the findings that several clusters have, as those of a base, with the names of these clusters.

    Each has what follows from it in any of them.
    """
    holders: dict[Finding, dict[str, Finding]] = defaultdict(dict)
    for item in reports:
        for finding in _findings_of(item):
            holders[finding][item.name] = finding
    shared = {}
    for finding in sorted(holders, key=Finding.sort_key):
        found = holders[finding]
        if len(found) > 1:
            following = dict.fromkeys(more for same in found.values() for more in same.consequences)
            shared[replace(finding, consequences=tuple(following))] = list(found)
    return shared


def _shared_section(reports: Sequence[ClusterReport], shared: Mapping[Finding, Sequence[str]]) -> Section:
    parts = [part for item in reports for part in _parts_with_findings(item)]
    told = [replace(finding, message=f"{finding.message} (in {some(names, 3)})") for finding, names in shared.items()]
    sources = {name: file for part in parts for name, file in part.sources.items()}
    title = f"What several clusters share: {count(len(told), 'finding')}"
    return Section("shared", title, [Findings(told, sources, parts[0].locate)])


def less_shared(reports: Sequence[ClusterReport]) -> list[ClusterReport]:
    """Return the reports without the findings that several of the clusters have."""
    shared = _shared_findings(reports)

    def less(part: SectionPart) -> SectionPart:
        if not isinstance(part, Findings):
            return part
        return replace(part, findings=[finding for finding in part.findings if finding not in shared])

    def of(item: ClusterReport) -> ClusterReport:
        sections = item.answer.sections if item.answer else ()
        kept = tuple(replace(section, parts=tuple(map(less, section.parts))) for section in sections)
        return replace(item, answer=item.answer and replace(item.answer, sections=kept))

    return list(map(of, reports)) if shared else list(reports)


def _worst_findings(reports: Sequence[ClusterReport], shared: Mapping[Finding, Sequence[str]]) -> Iterator[str]:
    """Yield the first error of each cluster, and the errors and warnings that several share, each once."""
    told: dict[Finding, tuple[Sequence[str], str]] = {}
    for item in reports:
        errors = [finding for finding in _findings_of(item) if finding.severity is Severity.ERROR]
        more = f" (and {count(len(errors) - 1, 'more error')})" if len(errors) > 1 else ""
        told |= {finding: ([item.name], more) for finding in errors[:1]}
    told |= {finding: (names, "") for finding, names in shared.items() if finding.severity is not Severity.INFO}
    for finding, (names, more) in sorted(told.items(), key=lambda item: item[0].severity.rank):
        place = f"{finding.span}: " if finding.span else ""
        yield f"{some(names, 3)}: {place}{finding.code} {finding.message}{more}"


def words_of(verb: str, state: State) -> tuple[str, str, str]:
    """Return the name of the figure of a state, and what one cluster, or more, of it are."""
    return _OWN.get((verb, state)) or _WORDS[state][:3]


def _verdict_of_all(verb: str, reports: Sequence[ClusterReport]) -> str:
    told = []
    for state in State:
        names = [item.name for item in reports if item.state is state]
        _, one, more = words_of(verb, state)
        who = "" if state is State.FINE else f": {some(names, _MOST_NAMES)}"
        told += [f"{len(names):,} {one if len(names) == 1 else more}{who}"] if names else []
    return "; ".join(told) or "no cluster was looked at"


def _totals(verb: str, reports: Sequence[ClusterReport]) -> tuple[Figure, ...]:
    """Return how many clusters there are, and how many of them are in each state."""
    counts = Counter(item.state for item in reports)
    shown = [State.FINE, *(state for state in State if state is not State.FINE and counts[state])]
    figures = (Figure(words_of(verb, state)[0], f"{counts[state]:,}", tone=_WORDS[state][-1]) for state in shown)
    return (Figure("clusters", f"{len(reports):,}"), *figures)


def fleet_text(index: Answer, reports: Sequence[ClusterReport], display: Display) -> str:
    """Return the table as text, then, with details, each cluster that has more to say than its verdict."""
    if not display.details:
        text = render(index, display)
        is_all = display.quiet or index.notes or "--details" in text or all(item.is_quiet for item in reports)
        return text if is_all else f"{text}{_DETAILS}\n"
    parts = [answer_text.render(index, display)]
    for item in less_shared(reports):
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
    notice = len(_CUT) + 1000  # with names
    text = answer_markdown.render(index, replace(display, budget=max(display.budget - notice, LEAST_BUDGET)))
    left = display.budget - _bytes(text) - notice
    loud = sorted((item for item in less_shared(reports) if not item.is_quiet), key=lambda item: item.state)
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
    """Return the pages by file name: one of each cluster that has an answer, then the index with the table."""
    return {
        **{f"{item.name}.html": item.page for item in reports if item.page},
        index_page([item.name for item in reports]): answer_html.render(index, Display(form="html")),
    }


def index_page(clusters: Collection[str]) -> str:
    """Return the file name of the index, which no cluster has: a cluster named `index` keeps its page."""
    name = "index"
    while name in clusters:
        name = f"_{name}"
    return f"{name}.html"


def _called(item: ClusterReport, answer: Answer) -> Answer:
    """Return an answer with the cluster's name in the settings file, if it is another."""
    return answer if item.name in (answer.name, "") else replace(answer, title=f"{item.name}: {answer.title}")


def is_of_many(written: Record) -> bool:
    """Return whether JSON is a report of many clusters."""
    return {"verb", "clusters"} <= written.fields.keys()


def read_parts(files: Sequence[Record]) -> tuple[str, list[ClusterReport], tuple[str, ...]]:
    """Return the verb of JSON reports of many clusters, the reports of all clusters in them, in the order of the
    settings file, and which parts are missing, in words.

    Raise InputError for a file that holds no such report, one of another verb, or a cluster that another one has.
    """
    verb, found, homes = "", list[list[ClusterReport]](), dict[str, str]()
    shards = {file.where: _shard_of(file) for file in files}
    for part in sorted(files, key=lambda file: shards[file.where]):
        where = part.where
        if not is_of_many(part):
            raise InputError(f"{where}: no report of many clusters", hint="`--all --format json` of a verb writes one")
        if verb not in ("", part.text("verb")):
            raise InputError(f"{where}: a report of {part.text('verb')}, the others are of {verb}")
        verb = part.text("verb")
        found.append([])
        for item in part.objects("clusters"):
            name = item.text("name")
            if name in homes:
                raise InputError(f"{where}: has the cluster {name}, as {homes[name]} has", hint="give each part once")
            homes[name] = where
            if item.whole("exit_code") not in (ExitCode.FINE, *_WORST_FIRST):
                item.refuse("exit_code", "an exit code of gpolicy")
            found[-1].append(
                ClusterReport(
                    name=name,
                    labels={key: item.record("labels").text(key) for key in item.record("labels").fields},
                    exit_code=item.whole("exit_code"),
                    answer=None if item.fields.get(ANSWER) is None else read_answer(item.record(ANSWER)),
                    data=item.fields.get("report"),
                    error=item.text_or_none("error") or "",
                    hint=item.text_or_none("hint") or "",
                )
            )
    in_order = [item for row in zip_longest(*found) for item in row if item is not None]  # a part has every Mth cluster
    there = set(shards.values())
    wanted = [(number, parts) for parts in sorted({parts for _, parts in there}) for number in range(1, parts + 1)]
    missing = [f"{number}/{parts}" for number, parts in wanted if (number, parts) not in there]
    words = (f"{count(len(missing), 'part')} of the clusters missing: {some(missing)}",) if missing else ()
    return verb, in_order, words


def _shard_of(part: Record) -> tuple[int, int]:
    """Return which part of how many a report is about; 0 of 0 for all clusters."""
    found = _SHARD.fullmatch(part.text_or_none("shard") or "")
    return (int(found[1]), int(found[2])) if found else (0, 0)


_CLUSTER: Final = Shape(ClusterReport).with_keys(
    "name labels exit_code verdict",
    error=Key(str | None, lambda item: item.error or None),
    hint=Key(str | None, lambda item: item.hint or None),
    report=Key(READY, "data"),
    answer=Key(READY, lambda item: None if item.answer is None else answer_data(item.answer)),
)
_SUMMARY: Final = Shape(list).with_keys(
    clusters=Key(COUNT, len),
    exit_code=Key(int, worst_exit_code),
    could_not_run=Key(TEXTS, lambda all_: [item.name for item in all_ if item.exit_code == ExitCode.COULD_NOT_RUN]),
    findings=Key(TEXTS, lambda all_: [item.name for item in all_ if item.exit_code == ExitCode.FINDINGS]),
    changes=Key(TEXTS, lambda all_: [item.name for item in all_ if item.exit_code == ExitCode.CHANGES]),
)
FLEET_DOCUMENT: Final = Document(
    "gpolicy VERB --all --format json",
    Shape(tuple).with_keys(
        format_version=version_key("1.1"),
        verb=Key(str, 0),
        shard=Key(str | None, 1),
        clusters=Key(Many(_CLUSTER), 2),
        summary=Key(_SUMMARY, 2),
    ),
)
