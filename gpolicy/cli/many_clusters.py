"""A verb about many clusters side by side: one report of all."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from gpolicy.cli.output import Report, display_on, report_text
from gpolicy.cli.provenance import provenance_of
from gpolicy.cli.targets import Target, Targets, Work
from gpolicy.cli.terminal import StatusLine, write_long
from gpolicy.cluster.record import Record
from gpolicy.errors import ExitCode, GpolicyError, UsageError
from gpolicy.fleet.workers import Failed, Watcher, work_side_by_side
from gpolicy.json_values import json_text
from gpolicy.opening import write_private
from gpolicy.printable import as_text, count, some
from gpolicy.provenance import UNKNOWN
from gpolicy.report.answer import Answer, Picture
from gpolicy.report.fleet_report import (
    ClusterReport,
    fleet_answer,
    fleet_data,
    fleet_markdown,
    fleet_pages,
    fleet_text,
    index_page,
    read_parts,
    worst_exit_code,
)
from gpolicy.report.forms import ANSWER_FORMS, Display, render

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
        _write_pages(targets.pages, fleet_answer(verb, reports, provenance, every=True), reports)
    show_fleet(fleet_answer(verb, reports, provenance), reports, display, verb, also, shard=targets.shard)
    return worst_exit_code(reports)


def reports_of(work: Work, targets: Targets, forms: Collection[str]) -> list[ClusterReport]:
    """Do the work for all clusters in other processes; return their reports, for these forms, in the targets' order."""
    if not targets.targets:
        sys.stderr.write("no cluster is left to look at: nothing has changed\n")
        return []
    progress = ProgressLines([target.name for target in targets.targets])
    found = work_side_by_side(
        [partial(_report_of, target, work, forms, pages=targets.pages is not None) for target in targets.targets],
        most=targets.jobs,
        seconds=targets.seconds,
        watcher=progress.watcher,
    )
    progress.close()
    return [
        _failure(target, item.reason) if isinstance(item, Failed) else item
        for target, item in zip(targets.targets, found, strict=True)
    ]


def _refuse_form(display: Display, targets: Targets, verb: str) -> None:
    if display.form not in _FORMS:
        hint = f"choose one of {', '.join(_FORMS)}, or run `gpolicy {verb}` for one cluster at a time"
        raise UsageError(f"--format {display.form} is for one cluster", hint=hint)
    if display.form == "html" and targets.pages is None:
        raise UsageError("several clusters have several pages", hint="say --pages DIR, without --format html")


def _report_of(target: Target, work: Work, forms: Collection[str], *, pages: bool) -> ClusterReport:
    """Do the work for one cluster, in another process. What it says aside goes into the report."""
    aside = io.StringIO()
    with redirect_stderr(aside), redirect_stdout(io.StringIO()):
        try:
            report = work(target)
            answer = report.answer() if report.answer is not None else None
            data = json.loads(report.own["json"]()) if "json" in forms and answer is not None else None
            page = _page(answer, report) if pages and answer is not None else ""
            metrics = report.metrics() if "prometheus" in forms and report.metrics is not None else None
        except (GpolicyError, OSError) as error:
            return _failure(target, _message(error), getattr(error, "hint", None))
    return ClusterReport(
        name=target.name,
        labels=target.labels,
        exit_code=report.exit_code,
        answer=None if answer is None else _portable(answer),
        data=data,
        page=page,
        metrics=metrics,
        error="" if answer is not None else _errors(report),
        aside=tuple(line.removeprefix("gpolicy: ") for line in aside.getvalue().splitlines()),
    )


def _errors(report: Report) -> str:
    """Return what prevents an answer, in one line."""
    told = [f"{item.code} {f'{item.span}: ' if item.span else ''}{item.message}" for item in report.errors]
    return f"the policy has {count(len(told), 'error')}: {some(told, 3)}"


def _portable(answer: Answer) -> Answer:
    """Return an answer that can pass to another process: without pictures, which only pages show."""
    sections = []
    for section in answer.sections:
        parts = tuple(part for part in section.parts if not isinstance(part, Picture))
        sections.append(replace(section, parts=parts))
    return replace(answer, sections=tuple(sections))


def _page(answer: Answer, report: Report) -> str:
    return report_text(Display(form="html"), lambda: answer, {}, report.policy)


def _message(error: Exception) -> str:
    if isinstance(error, GpolicyError):
        return error.message
    name = getattr(error, "filename", None)
    return f"{name}: {getattr(error, 'strerror', None) or error}" if name else str(error)


def _failure(target: Target, reason: str, hint: str | None = None) -> ClusterReport:
    return ClusterReport(
        name=target.name, labels=target.labels, exit_code=int(ExitCode.COULD_NOT_RUN), error=reason, hint=hint or ""
    )


def show_parts(parts: Sequence[Record], display: Display, also: Sequence[tuple[Display, Path]]) -> int:
    """Show JSON reports of parts of many clusters as one; return the exit code of a run about all, 3 without a part."""
    verb, reports, missing = read_parts(parts)
    provenance = next((item.answer.provenance for item in reports if item.answer), UNKNOWN)
    show_fleet(replace(fleet_answer(verb, reports, provenance), unknown=missing), reports, display, verb, also)
    return int(ExitCode.COULD_NOT_RUN) if missing else worst_exit_code(reports)


def show_fleet(
    index: Answer,
    reports: Sequence[ClusterReport],
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
                return json_text(fleet_data(verb, reports, shard))
            case "markdown":
                return fleet_markdown(index, reports, display)
            case "html":
                return render(index, display)
            case _:
                return fleet_text(index, reports, display)

    for form, file in also:
        write_private(file, in_form(form).encode())
    write_long(in_form(display_on(sys.stdout, display)))


def _write_pages(directory: Path, index: Answer, reports: Sequence[ClusterReport]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    pages = fleet_pages(index, reports)
    for name, text in pages.items():
        write_private(directory / name, text.encode())
    sys.stderr.write(as_text([f"wrote {count(len(pages), 'page')}: begin with {directory / index_page(reports)}"]))


class ProgressLines:
    """Tells on standard error how far many clusters are: a line for each that ends, and on a terminal what runs.

    With `quiet` only a terminal is told.
    """

    def __init__(self, names: Sequence[str], *, quiet: bool = False) -> None:
        self.names = names
        self.watcher = Watcher(self._begins, self._ends, self._ticks)
        self._quiet = quiet
        self._running: dict[int, float] = {}
        self._done = 0
        self._line = StatusLine()

    def _begins(self, number: int) -> None:
        self._running[number] = time.monotonic()

    def _ends(self, number: int, seconds: float) -> None:
        self._running.pop(number, None)
        self._done += 1
        if self._quiet:
            return
        self._line.say(f"{self._done}/{len(self.names)} {self.names[number]} ({seconds:.1f} s)")

    def _ticks(self) -> None:
        now = time.monotonic()
        names = [f"{self.names[number]} {now - began:.0f} s" for number, began in self._running.items()]
        self._line.show(f"{self._done} of {len(self.names)} clusters; {some(names, _MOST_RUNNING)}" if names else "")

    def close(self) -> None:
        """Erase the line that changes."""
        self._line.show("")
