"""The report of a roll-out: a table of its clusters, and each that has trouble."""

from collections.abc import Sequence
from typing import Final

from gpolicy.errors import ExitCode
from gpolicy.json_values import DIGEST, FROM_ONE, Document, Key, Shape, version_key
from gpolicy.printable import Tone, count, some
from gpolicy.provenance import Provenance
from gpolicy.report.answer import Answer, Entries, Entry, Name, Section, Table
from gpolicy.report.fleet_report import ClusterReport
from gpolicy.rollout.rollout_run import COMPLETE, LookResult, PlanStage, RolledOut, RunResult

_RUN: Final = Shape(RunResult).with_keys(
    exit_code="exit_code",
    message=Key(str | None, lambda run: run.message or None),
    hint=Key(str | None, lambda run: run.hint or None),
)
APPLY_DOCUMENT: Final = Document(
    "`report` of one cluster in gpolicy apply --all --format json",
    Shape(RolledOut).with_keys(
        "format_version wave stage plan plan_digest journal run look",
        format_version=version_key("1.0"),
        plan_digest=DIGEST,
        run=Key(_RUN, "outcome"),
        look=Shape(LookResult).with_keys("troubles notes failed_jobs", failed_jobs=FROM_ONE),
    ),
)


def rollout_report(item: RolledOut, *, back: bool) -> ClusterReport:
    """Return the report of a cluster. With `back` the roll-out was taken back."""
    is_right = item.is_finished(back=back)
    troubles = item.troubles
    code = item.outcome.exit_code if item.outcome else int(ExitCode.FINE)
    if not code and (troubles or not is_right):
        code = int(ExitCode.FINDINGS)
    looked = ""
    if not troubles and not back and item.stage in COMPLETE:
        looked = "; looked at, all is well" if item.look else ", not looked at"
    reason = "" if not troubles else f"{', but' if is_right else ':'} {troubles[0]}"
    entries = [Entry(text, mark="!", tone=Tone.BAD) for text in troubles[1:]]
    hint = item.outcome.hint if item.outcome and item.outcome.exit_code else ""
    answer = Answer(
        verb="apply",
        title="Roll-out to",
        name=item.name,
        verdict=f"{item.stage}{reason}{looked}",
        tone=Tone.BAD if troubles else Tone.GOOD if is_right else Tone.PLAIN,
        sections=(Section("troubles", "Troubles", [Entries("trouble", entries)]),),
        notes=(hint, *(item.look.notes if item.look else ())),
    )
    return ClusterReport(
        name=item.name, labels=item.labels, exit_code=code, answer=answer, data=APPLY_DOCUMENT.data(item)
    )


def rollout_index(
    clusters: Sequence[RolledOut],
    reports: Sequence[ClusterReport],
    provenance: Provenance,
    notes: Sequence[str],
    *,
    back: bool,
) -> Answer:
    """Return the table of all clusters, with a verdict on the whole. `notes` say how to go on."""
    rows = tuple((Name(item.name), item.wave, report.verdict) for item, report in zip(clusters, reports, strict=True))
    table = Table("Clusters", "clusters", ("cluster", "wave", "verdict"), rows, most=len(rows), brief=20)
    good = not any(report.exit_code for report in reports)
    return Answer(
        verb="apply",
        title=f"{'Rollback' if back else 'Roll-out'} of {count(len(clusters), 'plan')}",
        name="",
        verdict=_verdict(clusters, back=back),
        tone=Tone.GOOD if good else Tone.BAD,
        sections=(Section("clusters", "Clusters", (table,), never_cut=True),),
        notes=tuple(notes),
        next=tuple(notes),
        provenance=provenance,
    )


def _verdict(clusters: Sequence[RolledOut], *, back: bool) -> str:
    troubled = [item.name for item in clusters if item.troubles]
    told = [f"trouble with {some(troubled)}"] if troubled else []
    stages = [item.stage for item in clusters]
    told += [f"{stages.count(stage)} {stage}" for stage in PlanStage if stage in stages]
    whole = not troubled and all(item.is_finished(back=back) for item in clusters)
    return f"{'taken back' if back else 'done'}: {', '.join(told)}" if whole else ", ".join(told)
