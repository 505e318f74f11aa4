"""`gpolicy clusters --pages`: each cluster is read once, and becomes a page and a row of the index."""

import os
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import gpolicy
from gpolicy.analysis.health import cluster_health
from gpolicy.cli.checking import checked_policy, reader_today
from gpolicy.cli.many_clusters import Seen, age_of, failure_of, reports_of, write_pages
from gpolicy.cli.output import Report, policy_title, provenance_of
from gpolicy.cli.targets import Target, Targets
from gpolicy.cluster.sources import Contact, is_live, state_read_at
from gpolicy.errors import ExitCode, GpolicyError
from gpolicy.fleet.choosing import snapshots_of
from gpolicy.fleet.workers import Failed
from gpolicy.json_values import json_text
from gpolicy.opening import write_public
from gpolicy.printable import Tone
from gpolicy.provenance import FORM
from gpolicy.report.answer import Answer
from gpolicy.report.cluster_answer import CountedReports, cluster_answer, clusters_answer
from gpolicy.report.drift_answer import drift_answer
from gpolicy.report.fleet_report import fleet_pages

_OURS: Final = b'<a class="up" href="'  # in the page of a cluster
_Result = TypeVar("_Result")


def write_cluster_pages(
    targets: Sequence[Target],
    named: Collection[str],
    *,
    directory: Path,
    history: Path | None,
    most: float,
    offline: bool,
) -> list[Seen]:
    """Write the page of each cluster, and the index last; return what each cluster says of itself.

    `history` has snapshots of them, of which the newest are read if `offline`; `most` is the time for each, in seconds.
    A cluster that cannot be read keeps its page. Pages of clusters that are not `named` any more are removed.
    """
    live = [item for item in targets if offline and is_live(item.address or "")]
    kept = [replace(item, snapshots=history) for item in live if history and snapshots_of(history, item.name)]
    asked = [*(item for item in targets if item not in live), *kept]
    sites = Targets(targets=asked, several=True, pages=directory, jobs=2 * (os.cpu_count() or 2), seconds=most)
    found = {item.name: item for item in reports_of(partial(_report, history=history), sites, {"json"})}
    reports = [found.get(target.name) or failure_of(target, "not contacted (--offline)") for target in targets]
    made, old = provenance_of(()), dict[str, str]()
    for item in reports:
        file = directory / f"{item.name}.html"
        if item.answer is None and file.exists():
            written = time.strftime(FORM, time.gmtime(file.stat().st_mtime))
            old[item.name] = age_of(written, made.made_at or written)
    pages = fleet_pages(clusters_answer(reports, old, made), reports)
    write_pages(directory, pages, write_public)
    for file in directory.glob("*.html"):
        if file.stem not in named and file.name not in pages and file.is_file() and _OURS in file.read_bytes():
            file.unlink()
    return [
        (Failed(item.error) if item.answer is None else Contact(**item.data)) if item.name in found else None
        for item in reports
    ]


def _report(target: Target, history: Path | None) -> Report:
    """Return the report of one cluster, in another process. Its JSON is what the cluster says of itself."""
    state, made = target.read(), provenance_of(())
    now, read_at = made.made_at or "", state_read_at(made, state.source, state.snapshot)

    def count() -> CountedReports:
        cluster, growth = gpolicy.open_cluster(state), None
        capacity = gpolicy.count_capacity(cluster)
        if history is not None:
            own = history / target.name
            growth = gpolicy.forecast_capacity(cluster, capacity, own, state=state, at=read_at or now)
        return capacity, cluster_health(state), growth

    def compare() -> Answer:
        checked = checked_policy(target.policy, state)
        report = gpolicy.find_drift(checked, state, today=reader_today())
        return drift_answer(report, checked.policy.files, of=policy_title(target.policy, checked.policy))

    drift = _or_why(compare) if target.named and target.named.policy else None
    answer = cluster_answer(target.name, state, age_of(read_at, now), _or_why(count), drift)
    says = {"name": state.name, "version": state.software_version, "taken_at": read_at or ""}
    return Report(
        exit_code=int(ExitCode.FINDINGS if answer.tone is Tone.BAD else ExitCode.FINE),
        answer=lambda: answer,
        own={"json": lambda: json_text(says)},
        policy=(target.policy,) if drift else (),
    )


def _or_why(find: Callable[[], _Result]) -> _Result | str:
    """Return what is found, or why it cannot be."""
    try:
        return find()
    except GpolicyError as error:
        return error.message
