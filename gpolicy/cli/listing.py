"""`clusters`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gpolicy.cli.checking import settings_mistakes
from gpolicy.cli.many_clusters import ProgressLines
from gpolicy.cli.options import Outputs
from gpolicy.cli.output import Report, show_report
from gpolicy.cli.targets import Target, all_clusters_near, as_named, report_file, target_of
from gpolicy.cluster.sources import Contact, contact
from gpolicy.colour import Tone
from gpolicy.errors import ExitCode, GpolicyError
from gpolicy.findings import Finding
from gpolicy.fleet.choosing import labelled_clusters
from gpolicy.fleet.workers import Failed, work_side_by_side
from gpolicy.json_values import json_text
from gpolicy.printable import count
from gpolicy.provenance import FORM, Provenance, age_words
from gpolicy.report.answer import NOTHING, Answer, Cell, Name, Section, Table

_AT_ONCE = 16
_MOST_TOLD = 5


_Seen = Contact | Failed | None
"""What one cluster answered, with the time when its state was read, or why it did not; None: it was not asked."""


def clusters(path: Path | None, labels: Sequence[str], shown: Outputs, *, seconds: float, offline: bool) -> int:
    """List the clusters of the settings file; return the exit code."""
    named = all_clusters_near(path)
    targets = [target_of(cluster, None, None) for cluster in labelled_clusters(named, labels)]
    seen = [None] * len(targets) if offline else _look(targets, seconds)
    pairs = zip(targets, seen, strict=True)
    silent = [f"{target.name}: {item.reason}" for target, item in pairs if isinstance(item, Failed)]
    mistake = next((_one_line(found) for found in settings_mistakes([path or Path()])), "")
    now = time.strftime(FORM, time.gmtime())
    verdict = count(len(targets), "cluster")
    if not offline:
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
        own={"json": lambda: json_text(_data(targets, seen) | {"settings_mistake": mistake or None})},
    )
    return show_report(report, shown.display, report_file(shown, "clusters"), also=shown.files)


def _one_line(found: Finding) -> str:
    return "; ".join(filter(None, (f"{found.span}: {found.message}", found.hint)))


def _look(targets: Sequence[Target], seconds: float) -> Sequence[_Seen]:
    progress = ProgressLines([target.name for target in targets], quiet=True)
    jobs = [partial(_seen, target, seconds) for target in targets]
    found = work_side_by_side(jobs, most=_AT_ONCE, seconds=seconds, watcher=progress.watcher)
    progress.close()
    return found


def _seen(target: Target, seconds: float) -> Contact | Failed:
    """Ask one cluster for its configuration, in another process."""
    try:
        found = contact(target.state or "", target.options_within(seconds))
    except (GpolicyError, OSError) as error:
        return Failed(error.message if isinstance(error, GpolicyError) else str(error))
    return found if found.taken_at is not None else replace(found, taken_at=time.strftime(FORM, time.gmtime()))


def _section(targets: Sequence[Target], seen: Sequence[_Seen], now: str, *, offline: bool) -> Section:
    labels = [key for key in dict.fromkeys(key for item in targets for key in item.labels) if key != "name"]
    asked = () if offline else ("answers", "cluster name", "Ganeti", "age")
    rows = [
        (
            Name(target.name),
            *(target.labels.get(key, NOTHING) for key in labels),
            _policy(target),
            Name(target.state or ""),
            *_answer(item, now),
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


def _answer(item: _Seen, now: str) -> tuple[str, ...]:
    if item is None:
        return ()
    if isinstance(item, Failed):
        return "no", NOTHING, NOTHING, NOTHING
    age = age_words(item.taken_at, now).removeprefix("state ").removeprefix("read ") if item.taken_at else "not known"
    return "yes", item.name or NOTHING, item.version or NOTHING, age


def _data(targets: Sequence[Target], seen: Sequence[_Seen]) -> dict[str, Any]:
    return {
        "format_version": "1.1",
        "clusters": [
            {
                "name": target.name,
                "labels": target.labels,
                "policy": str(target.policy) if target.named and target.named.policy else None,
                "state": target.state,
                "destination": target.named.destination if target.named else None,
                "cluster_name": (item.name or None) if isinstance(item, Contact) else None,
                "software_version": item.version if isinstance(item, Contact) else None,
                "state_read_at": (item.taken_at or None) if isinstance(item, Contact) else None,
                "error": item.reason if isinstance(item, Failed) else None,
            }
            for target, item in zip(targets, seen, strict=True)
        ],
    }
