"""`clusters`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What one cluster answered, and when; or why it did not."""

    contact: Contact | None = None
    error: str | None = None
    at: str | None = None

    @property
    def read_at(self) -> str | None:
        """When its state was read, None if that is not known."""
        if self.contact is None or self.contact.taken_at is None:
            return self.at
        return self.contact.taken_at or None


def clusters(path: Path | None, labels: Sequence[str], shown: Outputs, *, seconds: float, offline: bool) -> int:
    """List the clusters of the settings file; return the exit code."""
    named = all_clusters_near(path)
    targets = [target_of(cluster, None, None) for cluster in labelled_clusters(named, labels)]
    seen = [_Seen()] * len(targets) if offline else _look(targets, seconds)
    silent = [item for item in seen if item.error is not None]
    mistake = next((_one_line(found) for found in settings_mistakes([path or Path()])), "")
    now = time.strftime(FORM, time.gmtime())
    verdict = count(len(targets), "cluster")
    if not offline:
        verdict += f", {len(silent)} of them without an answer" if silent else ", all answer"
    silence = [f"{target.name}: {item.error}" for target, item in zip(targets, seen, strict=True) if item.error]
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
            next=(*silence, mistake)[:_MOST_TOLD],
            notes=(*silence, mistake),
            provenance=Provenance(made_at=now),
        ),
        own={"json": lambda: json_text(_data(targets, seen) | {"settings_mistake": mistake or None})},
    )
    return show_report(report, shown.display, report_file(shown, "clusters"), also=shown.files)


def _one_line(found: Finding) -> str:
    return "; ".join(filter(None, (f"{found.span}: {found.message}", found.hint)))


def _look(targets: Sequence[Target], seconds: float) -> list[_Seen]:
    progress = ProgressLines([target.name for target in targets], quiet=True)
    jobs = [partial(_seen, target, seconds) for target in targets]
    found = work_side_by_side(jobs, most=_AT_ONCE, seconds=seconds, watcher=progress.watcher)
    progress.close()
    return [_Seen(error=item.reason) if isinstance(item, Failed) else item for item in found]


def _seen(target: Target, seconds: float) -> _Seen:
    """Ask one cluster for its configuration, in a process of its own."""
    try:
        found = contact(target.state or "", target.options_within(seconds))
    except (GpolicyError, OSError) as error:
        return _Seen(error=error.message if isinstance(error, GpolicyError) else str(error))
    return _Seen(contact=found, at=time.strftime(FORM, time.gmtime()))


def _section(targets: Sequence[Target], seen: Sequence[_Seen], now: str, *, offline: bool) -> Section:
    labels = [key for key in dict.fromkeys(key for item in targets for key in _labels(item)) if key != "name"]
    asked = () if offline else ("answers", "cluster name", "Ganeti", "age")
    rows = [
        (
            Name(target.name),
            *(_labels(target).get(key, NOTHING) for key in labels),
            _policy(target),
            Name(target.state or ""),
            *(() if offline else _answer(item, now)),
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
    if item.contact is None:
        return "no", NOTHING, NOTHING, NOTHING
    age = age_words(item.read_at, now).removeprefix("state ").removeprefix("read ") if item.read_at else "not known"
    return "yes", item.contact.name or NOTHING, item.contact.version or NOTHING, age


def _labels(target: Target) -> dict[str, str]:
    return dict(target.named.labels) if target.named else {}


def _data(targets: Sequence[Target], seen: Sequence[_Seen]) -> dict[str, Any]:
    return {
        "format_version": "1.1",
        "clusters": [
            {
                "name": target.name,
                "labels": _labels(target),
                "policy": str(target.policy) if target.named and target.named.policy else None,
                "state": target.state,
                "destination": target.named.destination if target.named else None,
                "cluster_name": (item.contact.name or None) if item.contact else None,
                "software_version": item.contact.version if item.contact else None,
                "state_read_at": item.read_at,
                "error": item.error,
            }
            for target, item in zip(targets, seen, strict=True)
        ],
    }
