"""Drift as metrics, for the textfile collector of Prometheus' node exporter.

The series that tell of a run (`gpolicy_drift_up` and the time of the run) are written each time. All others are those
of the last run that could compare, and stay when a later one cannot: an alert about drift must not resolve itself
because the cluster stopped answering. Format: the text exposition format of Prometheus, version 0.0.4.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from gpolicy.drift.comparing import DriftReport
from gpolicy.ganeti.parameter import Level

PREFIX: Final = "gpolicy_drift_"
LARGEST_BYTES: Final = 16 * 1024**2

_Labels = dict[str, str]
_HELP: Final = {
    "up": "1 if the last run could compare the cluster with the policy, 0 if not.",
    "last_run_timestamp_seconds": "When the last run ended, whether it could compare or not.",
    "last_success_timestamp_seconds": "When the last run ended that could compare. All series below are of that run.",
    "info": "Always 1; the cluster that was compared.",
    "differences": "Number of values that are not as declared and that no waiver accepts, by kind of object.",
    "accepted": "Number of differences that a waiver accepts.",
    "unreadable": "Number of declared values that the source cannot show, so that drift in them cannot be seen.",
    "waiver_findings": "Number of waivers of drift that ended (waiver-expired) or accept nothing (waiver-unused).",
    "difference": "Always 1; one series for each difference that is not accepted.",
    "object_modified_timestamp_seconds": "Last write to an object with a difference: it has been so since then at the"
    " latest.",
}
"""All metrics, in the order in which they are written. Names are a contract: alerts use them."""

_OF_A_RUN: Final = ("up", "last_run_timestamp_seconds")
_WAIVER_FINDINGS: Final = ("waiver-expired", "waiver-unused")
_LINE: Final = re.compile(rf"(?:# (?:HELP|TYPE) )?{PREFIX}(?P<name>[a-z_]+?)(?=[ {{])")


def drift_metrics(report: DriftReport, *, policy: str, now: float) -> str:
    """Return the metrics of a run that compared. `policy` tells runs apart; `now` is in seconds since 1970."""
    own = {"policy": policy}
    differing = Counter(drift.object.partition("/")[0] for drift in report.drift)
    waivers = Counter(finding.name for finding in report.findings)
    modified = {drift.object: drift.since.mtime for drift in report.drift if drift.since.mtime is not None}
    samples: dict[str, list[tuple[_Labels, float]]] = {
        "up": [(own, 1)],
        "last_run_timestamp_seconds": [(own, now)],
        "last_success_timestamp_seconds": [(own, now)],
        "info": [({**own, "cluster": report.cluster}, 1)],
        "differences": [({**own, "kind": level.value}, differing[level.value]) for level in Level],
        "accepted": [(own, len(report.accepted))],
        "unreadable": [(own, len(report.unreadable))],
        "waiver_findings": [({**own, "rule": rule}, waivers[rule]) for rule in _WAIVER_FINDINGS],
        "difference": [({**own, "object": drift.object, "path": drift.name}, 1) for drift in report.drift],
        "object_modified_timestamp_seconds": [({**own, "object": obj}, when) for obj, when in modified.items()],
    }
    return "".join(line for name in _HELP for line in _family(name, samples[name]))


def failure_metrics(before: str | None, *, policy: str, now: float) -> str:
    """Return the metrics of a run that could not compare; `before` is what the file holds from earlier runs."""
    own = {"policy": policy}
    head = [*_family("up", [(own, 0)]), *_family("last_run_timestamp_seconds", [(own, now)])]
    return "".join([*head, *_kept(before or "")])


def _kept(before: str) -> Iterator[str]:
    """Yield the lines of an earlier file that tell of the last comparison; nothing of what is not ours."""
    for line in before.split("\n"):
        found = _LINE.match(line)
        if found and found["name"] in _HELP and found["name"] not in _OF_A_RUN:
            yield f"{line}\n"


def _family(name: str, samples: list[tuple[_Labels, float]]) -> Iterator[str]:
    yield f"# HELP {PREFIX}{name} {_HELP[name]}\n"
    yield f"# TYPE {PREFIX}{name} gauge\n"
    for labels, value in samples:
        text = ",".join(f'{key}="{_escaped(word)}"' for key, word in labels.items())
        yield f"{PREFIX}{name}{{{text}}} {_number(value)}\n"


def _escaped(word: str) -> str:
    """Return a label's value in the format; an unpaired surrogate (of a file name) becomes a question mark."""
    text = word.encode("utf-8", "replace").decode("utf-8")
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
