"""Drift as metrics."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from gpolicy.ganeti.vocabulary import Level
from gpolicy.report.prometheus import Metric, MetricSet, Samples

if TYPE_CHECKING:
    from gpolicy.drift.comparing import DriftReport

METRICS: Final = MetricSet(
    "gpolicy_drift_",
    ("policy", "target"),
    {
        "info": Metric("Always 1; the cluster that was compared.", "cluster"),
        "differences": Metric("Values that are not as declared and that no waiver accepts, by kind of object.", "kind"),
        "accepted": Metric("Differences that a waiver accepts."),
        "unreadable": Metric("Declared values that the source cannot show, so that drift in them cannot be seen."),
        "waiver_findings": Metric("Waivers that ended (waiver-expired) or accept nothing (waiver-unused).", "rule"),
        "difference": Metric("Always 1; one series for each difference that is not accepted.", "object", "path"),
        "object_modified_timestamp_seconds": Metric(
            "Last write to an object with a difference: it has been so since then at the latest.", "object"
        ),
    },
)
_WAIVER_FINDINGS: Final = ("waiver-expired", "waiver-unused")


def drift_metrics(report: DriftReport) -> Samples:
    """Return the metrics of a comparison."""
    differing = Counter(drift.object.partition("/")[0] for drift in report.drift)
    waivers = Counter(finding.name for finding in report.findings)
    modified = {drift.object: drift.since.mtime for drift in report.drift if drift.since.mtime is not None}
    return {
        "info": [({"cluster": report.cluster}, 1)],
        "differences": [({"kind": level.value}, differing[level.value]) for level in Level],
        "accepted": [({}, len(report.accepted))],
        "unreadable": [({}, len(report.unreadable))],
        "waiver_findings": [({"rule": rule}, waivers[rule]) for rule in _WAIVER_FINDINGS],
        "difference": [({"object": drift.object, "path": drift.name}, 1) for drift in report.drift],
        "object_modified_timestamp_seconds": [({"object": obj}, when) for obj, when in modified.items()],
    }
