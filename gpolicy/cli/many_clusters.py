"""A verb about many clusters side by side: one report of all, its metrics, and the list of the clusters.

Clusters that could not be read have metrics too, for an alert to see.
"""

import io
import json
import pickle
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from gpolicy.cli.checking import settings_mistakes
from gpolicy.cli.options import Outputs
from gpolicy.cli.output import Report, display_on, provenance_of, report_text, show_errors, show_report
from gpolicy.cli.targets import Target, Targets, Work, all_clusters_near, as_named, report_file, target_of
from gpolicy.cli.terminal import StatusLine, complain, in_options, write_long
from gpolicy.cluster.record import Record
from gpolicy.cluster.sources import SCHEMES, Contact, contact
from gpolicy.errors import ExitCode, GpolicyError, UsageError
from gpolicy.fleet.choosing import labelled_clusters
from gpolicy.fleet.workers import Failed, Watcher, work_side_by_side
from gpolicy.json_values import Document, Key, Many, Maybe, Shape, json_text, version_key
from gpolicy.opening import file_to_write, read_below, write_private, write_public
from gpolicy.printable import Tone, as_text, count, some
from gpolicy.provenance import FORM, UNKNOWN, Provenance, age_words
from gpolicy.report import fleet_report
from gpolicy.report.answer import NOTHING, Answer, Cell, Name, Picture, Section, Table
from gpolicy.report.forms import ANSWER_FORMS, Display, render
from gpolicy.report.prometheus import LARGEST_BYTES, METRICS, Labels, MetricSet, MetricsRun, Samples, exposition

_FORMS: Final = ("json", *ANSWER_FORMS)
_MOST_RUNNING: Final = 4  # that the line of progress names


def run_all(
    work: Work, targets: Targets, display: Display, verb: str, also: Sequence[tuple[Display, Path]] = ()
) -> int:
    """Do the work for all clusters in other processes, and show one report of all; write it to the files of `also`."""
    forms = [display, *(form for form, _ in also)]
    for form in forms:
        _refuse_form(form, targets, verb)
    reports = reports_of(work, targets, {form.form for form in forms})
    if not reports and not any(form.form == "json" for form in forms):
        return int(ExitCode.FINE)  # other forms have nothing to say, but a part of JSON would be missing
    policies = [target.named.source for target in targets.targets[:1] if target.named]
    provenance = provenance_of(policies)
    if targets.pages is not None:
        index = fleet_report.fleet_answer(verb, reports, provenance, every=True)
        write_pages(targets.pages, fleet_report.fleet_pages(index, reports), write_private)
    show_fleet(fleet_report.fleet_answer(verb, reports, provenance), reports, display, verb, also, shard=targets.shard)
    return fleet_report.worst_exit_code(reports)


def reports_of(work: Work, targets: Targets, forms: Collection[str]) -> list[fleet_report.ClusterReport]:
    """Do the work for all clusters in other processes; return their reports, for these forms, in the targets' order."""
    if not targets.targets:
        why = f"part {targets.shard} has none of those that are asked for" if targets.shard else "nothing has changed"
        sys.stderr.write(f"no cluster is left to look at: {why}\n")
        return []
    names = [target.name for target in targets.targets]
    progress, index = ProgressLines(names), fleet_report.index_page(names) if targets.pages is not None else ""
    found = work_side_by_side(
        [partial(_pickled_report, target, work, forms, index) for target in targets.targets],
        most=targets.jobs,
        seconds=targets.seconds,
        watcher=progress.watcher,
    )
    return [
        failure_of(target, item.reason) if isinstance(item, Failed) else pickle.loads(item)  # noqa: S301 (our copies')
        for target, item in zip(targets.targets, found, strict=True)
    ]


def _refuse_form(display: Display, targets: Targets, verb: str) -> None:
    if display.form not in _FORMS:
        hint = f"choose one of {', '.join(_FORMS)}, or run `gpolicy {verb}` for one cluster at a time"
        raise UsageError(f"--format {display.form} is for one cluster", hint=hint)
    if display.form == "html" and targets.pages is None:
        raise UsageError("several clusters have several pages", hint="say --pages DIR, without --format html")


def _pickled_report(target: Target, work: Work, forms: Collection[str], index: str) -> bytes:
    """Do the work for one cluster, in another process. Its page leads to `index`. What it says aside is kept, too."""
    aside = io.StringIO()
    with redirect_stderr(aside), redirect_stdout(io.StringIO()):
        try:
            report = work(target)
            answer = report.answer() if report.answer is not None else None
            data = json.loads(report.own["json"]()) if "json" in forms and answer is not None else None
            page = ""
            if index and answer is not None:
                page = report_text(Display(form="html", index=index), lambda: answer, {}, report.policy)
            metrics = report.metrics() if "prometheus" in forms and report.metrics is not None else None
        except GpolicyError as error:
            return pickle.dumps(failure_of(target, *in_options(error)))
        except OSError as error:
            why = f"{error.filename}: {error.strerror or error}" if error.filename else str(error)
            return pickle.dumps(failure_of(target, why))
    told = [f"{item.code} {f'{item.span}: ' if item.span else ''}{item.message}" for item in report.errors]
    made = fleet_report.ClusterReport(
        name=target.name,
        labels=target.labels,
        exit_code=report.exit_code,
        answer=None if answer is None else _portable(answer),
        data=data,
        page=page,
        metrics=metrics,
        error="" if answer is not None else f"the policy has {count(len(told), 'error')}: {some(told, 3)}",
        aside=tuple(line.removeprefix("gpolicy: ") for line in aside.getvalue().splitlines()),
    )
    return pickle.dumps(made)  # as objects it takes four times the memory, which later processes copy


def _portable(answer: Answer) -> Answer:
    """Return an answer that can pass to another process: without pictures, which only pages show."""
    sections = []
    for section in answer.sections:
        parts = tuple(part for part in section.parts if not isinstance(part, Picture))
        sections.append(replace(section, parts=parts))
    return replace(answer, sections=tuple(sections))


def failure_of(target: Target, reason: str, hint: str | None = None) -> fleet_report.ClusterReport:
    """Return the report of a cluster that could not be looked at."""
    return fleet_report.ClusterReport(
        name=target.name, labels=target.labels, exit_code=int(ExitCode.COULD_NOT_RUN), error=reason, hint=hint or ""
    )


def show_parts(parts: Sequence[Record], display: Display, also: Sequence[tuple[Display, Path]]) -> int:
    """Show JSON reports of parts of many clusters as one; return the exit code of a run about all, 3 without a part."""
    verb, reports, missing = fleet_report.read_parts(parts)
    provenance = next((item.answer.provenance for item in reports if item.answer), UNKNOWN)
    show_fleet(
        replace(fleet_report.fleet_answer(verb, reports, provenance), unknown=missing), reports, display, verb, also
    )
    return int(ExitCode.COULD_NOT_RUN) if missing else fleet_report.worst_exit_code(reports)


def show_fleet(
    index: Answer,
    reports: Sequence[fleet_report.ClusterReport],
    display: Display,
    verb: str,
    also: Sequence[tuple[Display, Path]] = (),
    *,
    shard: str | None = None,
) -> None:
    """Write the report of many clusters to standard output, and to the files of `also`, each in its form."""

    def in_form(display: Display) -> str:
        match display.form:
            case "json":
                return json_text(fleet_report.FLEET_DOCUMENT.data((verb, shard, list(reports))))
            case "markdown":
                return fleet_report.fleet_markdown(index, reports, display)
            case "html":
                return render(index, display)
            case "text":
                return fleet_report.fleet_text(index, reports, display)
            case form:
                raise ValueError(f"no report of many clusters has the form {form}")

    for form, file in also:
        write_private(file, in_form(form).encode())
    write_long(in_form(display_on(sys.stdout, display)))


def write_pages(directory: Path, pages: Mapping[str, str], write: Callable[[Path, bytes], None]) -> None:
    """Write pages by file name, in this order, each at once; the last one is the index."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        write(directory / name, text.encode())
    sys.stderr.write(as_text([f"wrote {count(len(pages), 'page')}: begin with {directory / list(pages)[-1]}"]))


class ProgressLines:
    """Tells on standard error how far many clusters are: a line for each that ends, and on a terminal what runs.

    With `quiet` only a terminal is told.
    """

    def __init__(self, names: Sequence[str], *, quiet: bool = False) -> None:
        self.names = names
        self._quiet = quiet
        self._running: dict[int, float] = {}
        self._done = 0
        self._line = StatusLine()
        self.watcher = Watcher(self._begins, self._ends, self._ticks, partial(self._line.show, ""))

    def _begins(self, number: int) -> None:
        self._running[number] = time.monotonic()

    def _ends(self, number: int, seconds: float) -> None:
        self._running.pop(number, None)
        self._done += 1
        if self._quiet:
            self._line.show("")
        else:
            self._line.say(f"{self._done}/{len(self.names)} {self.names[number]} ({seconds:.1f} s)")

    def _ticks(self) -> None:
        now = time.monotonic()
        names = [f"{self.names[number]} {now - began:.0f} s" for number, began in self._running.items()]
        self._line.show(f"{self._done} of {len(self.names)} clusters; {some(names, _MOST_RUNNING)}" if names else "")


def run_metrics(work: Work, targets: Targets, verb: str, output: Path | None) -> int:
    """Do the work for each of the targets, write metrics to `output` or standard output, and return the exit code.

    The file is replaced as a whole, for the node exporter, which is another user. Clusters that could not be judged
    keep the metrics that it holds of them, but for `up` and the time of the run.
    """
    if not targets.several:
        return _run_one(work, targets.targets[0], verb, output)
    reports = reports_of(work, targets, {"prometheus"})
    if not reports:
        return int(ExitCode.FINE)
    found = [item.metrics for item in reports]
    _write(verb, targets.targets, found, output)
    for item in reports:
        if item.metrics is None:
            complain(f"{item.name}: {item.error}", item.hint or None)
    return fleet_report.worst_exit_code(reports)


def _run_one(work: Work, target: Target, verb: str, output: Path | None) -> int:
    try:
        report = work(target)
        samples = None if report.metrics is None else report.metrics()
    except (GpolicyError, OSError):
        try:
            _write(verb, [target], [None], output)
        except GpolicyError as error:  # never in place of the one that tells why
            complain(*in_options(error))
        raise
    if report.errors:
        show_errors(report.errors, report.files)
    _write(verb, [target], [samples], output)
    return report.exit_code


def _write(verb: str, targets: Sequence[Target], found: Sequence[Samples | None], output: Path | None) -> None:
    metrics = METRICS[verb]
    runs = [MetricsRun(_identity(metrics, target), samples) for target, samples in zip(targets, found, strict=True)]
    before = None if output is None else _written_before(output)
    text = exposition(metrics, runs, now=time.time(), before=before)
    if output is None:
        write_long(text)
    else:
        write_public(output, text.encode())


def _identity(metrics: MetricSet, target: Target) -> Labels:
    """Return the labels that tell a cluster from others: the same in runs that fail.

    The first of the two always stands there, the second only where it was asked for.
    """
    policy = target.given_policy or (target.named.policy if target.named else None) or Path()
    known = {"policy": str(policy.absolute()), "target": target.name or _without_user(target.address or "")}
    first, second = metrics.identity
    asked = {"policy": target.given_policy is not None, "target": bool(target.name)}
    return {first: known[first], **({second: known[second]} if asked[second] else {})}


def _without_user(address: str) -> str:
    """Return an address without its user, and nothing of what is none: it is written also where it is refused."""
    scheme, _, rest = address.partition(":")
    if scheme not in SCHEMES:
        return ""
    return f"{scheme}://{rest.rpartition('@')[2].lstrip('/')}" if "HOST" in SCHEMES[scheme].follows else address


def _written_before(file: Path) -> str | None:
    """Return the metrics of earlier runs; None if they cannot be read."""
    try:
        target = file_to_write(file)
        return read_below(target.directory, target.directory / target.name, LARGEST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


_AT_ONCE: Final = 16
_MOST_TOLD = 5

Seen = Contact | Failed | None
"""What one cluster answered, with the time when its state was read, or why it did not; None: it was not asked."""
Look = Callable[[Sequence[Target], Collection[str]], Sequence[Seen]]


def list_clusters(path: Path | None, labels: Sequence[str], shown: Outputs, look: Look | None, *, offline: bool) -> int:
    """List the clusters of the settings file, at which `look` looks (with the names of all); return the exit code."""
    named = all_clusters_near(path)
    targets = [target_of(cluster, None, None) for cluster in labelled_clusters(named, labels)]
    seen = look(targets, [cluster.name for cluster in named]) if look else [None] * len(targets)
    pairs = zip(targets, seen, strict=True)
    silent = [f"{target.name}: {item.reason}" for target, item in pairs if isinstance(item, Failed)]
    told = ((f"{found.span}: {found.message}", found.hint) for found in settings_mistakes([path or Path()]))
    mistake = next(("; ".join(filter(None, parts)) for parts in told), "")
    now = time.strftime(FORM, time.gmtime())
    verdict = count(len(targets), "cluster")
    if silent or not offline:
        verdict += f", {len(silent)} of them without an answer" if silent else ", all answer"
    verdict += "; the settings file has a mistake" if mistake else ""
    report = Report(
        exit_code=int(ExitCode.COULD_NOT_RUN if silent else ExitCode.FINE),
        answer=lambda: Answer(
            verb="clusters",
            title="Clusters of",
            name=str(as_named(named[0].source)),
            verdict=verdict,
            tone=Tone.BAD if silent or mistake else Tone.GOOD,
            sections=(_section(targets, seen, now, offline=offline),),
            next=(*silent, mistake)[:_MOST_TOLD],
            notes=(*silent, mistake),
            provenance=Provenance(made_at=now),
        ),
        own={"json": lambda: json_text(CLUSTERS_DOCUMENT.data((list(zip(targets, seen, strict=True)), mistake)))},
    )
    return show_report(report, shown.display, report_file(shown, "clusters"), also=shown.files)


def look_at(targets: Sequence[Target], _names: Collection[str], *, seconds: float) -> Sequence[Seen]:
    """Return what each cluster says of itself, within so many seconds."""
    progress = ProgressLines([target.name for target in targets], quiet=True)
    jobs = [partial(_seen, target, seconds) for target in targets]
    return work_side_by_side(jobs, most=_AT_ONCE, seconds=seconds, watcher=progress.watcher)


def _seen(target: Target, seconds: float) -> Contact | Failed:
    """Ask one cluster for its configuration, in another process."""
    try:
        found = contact(target.address or "", replace(target.options, timeout=seconds))
    except (GpolicyError, OSError) as error:
        return Failed(error.message if isinstance(error, GpolicyError) else str(error))
    return found if found.taken_at is not None else replace(found, taken_at=time.strftime(FORM, time.gmtime()))


def _section(targets: Sequence[Target], seen: Sequence[Seen], now: str, *, offline: bool) -> Section:
    labels = [key for key in dict.fromkeys(key for item in targets for key in item.labels) if key != "name"]
    asked = () if offline else ("answers", "cluster name", "Ganeti", "age")
    rows = [
        (
            Name(target.name),
            *(target.labels.get(key, NOTHING) for key in labels),
            _policy(target),
            Name(target.address or ""),
            *(_answer(item, now) if asked else ()),
        )
        for target, item in zip(targets, seen, strict=True)
    ]
    headings = ("cluster", *labels, "policy", "state", *asked)
    table = Table(
        title="Clusters",
        of="clusters",
        headings=headings,
        rows=tuple(rows),
        most=len(rows),
        brief=20,
        aside=("policy",),
    )
    return Section(key="clusters", title="", parts=(table,), never_cut=True)


def _policy(target: Target) -> Cell:
    if target.named is None or target.named.policy is None:
        return NOTHING
    path = str(target.policy)
    return Name(path) if Path(path).exists() else f"{path} (missing)"


def _answer(item: Seen, now: str) -> tuple[str, ...]:
    if item is None:
        return ()
    if isinstance(item, Failed):
        return "no", NOTHING, NOTHING, NOTHING
    return "yes", item.name or NOTHING, item.version or NOTHING, age_of(item.taken_at, now)


def age_of(read_at: str | None, now: str) -> str:
    """Return how old a state is, for a table; both are times, YYYY-MM-DDThh:mm:ssZ."""
    return age_words(read_at, now).removeprefix("state ").removeprefix("read ") if read_at else "not known"


_TARGET: Final = Shape(Target).with_keys(
    "name labels",
    policy=Key(str | None, lambda target: str(target.policy) if target.named and target.named.policy else None),
    state=Key(str, lambda target: target.address),
    destination=Key(str | None, lambda target: target.named.destination if target.named else None),
)
_CONTACT: Final = Shape(Contact).with_keys(
    cluster_name=Key(str, lambda contact: contact.name or None),
    software_version=Key(str, "version"),
    state_read_at=Key(str, lambda contact: contact.taken_at or None),
)
_LISTED: Final = Shape(tuple).with_keys(
    target=Key(_TARGET, 0, inline=True),
    contact=Key(Maybe(_CONTACT), 1, inline=True),
    failed=Key(Maybe(Shape(Failed).with_keys(error="reason")), 1, inline=True),
)
CLUSTERS_DOCUMENT: Final = Document(
    "gpolicy clusters --format json",
    Shape(tuple).with_keys(
        format_version=version_key("1.1"),
        clusters=Key(Many(_LISTED), 0),
        settings_mistake=Key(str | None, lambda pair: pair[1] or None),
    ),
)
