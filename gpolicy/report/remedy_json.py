"""A remedy as JSON: what `gpolicy remedy --format json` promises (`schemas/output/remedy.json`)."""

from __future__ import annotations

from typing import Any, Final

from gpolicy.analysis.spec_pairs import PolicyViolation
from gpolicy.ganeti.commands import Command
from gpolicy.json_shape import COUNT, FROM_ONE, NUMBER, TEXTS, Document, Key, Maybe, Shape, fields_of
from gpolicy.plan.plan_json import rapi_shape
from gpolicy.remedy.faults import Fault
from gpolicy.remedy.legal_sizes import SizeCure
from gpolicy.remedy.remedy import Left, RemedyReport, RemedyStep
from gpolicy.remedy.saved_remedy import FORMAT_VERSION, SAVED, SavedRemedy
from gpolicy.report.capacity_json import UNKNOWN, WHAT_IF, head

_NOT_NEGATIVE: Final = {"type": "number", "minimum": 0}
_FAULT: Final = fields_of(Fault)
_COMMAND: Final = Shape(Command, "command").with_keys(
    argv=Key("The command; null if only RAPI can do it.", Maybe(TEXTS), lambda command: command.argv),
    rapi=Key(
        "The same as a request to Ganeti's remote API; null where it has none.",
        rapi_shape(body=Key("The body.", {"type": "object"})),
    ),
)
_STEP: Final = Shape(RemedyStep).with_keys(
    number=Key("Its place, from 1.", FROM_ONE),
    job_set=Key(
        "The set that it belongs to: jobs of a set may run side by side, the sets run one after the other.", FROM_ONE
    ),
    instance="The instance that moves.",
    nodes_before="Its primary node, and its secondary if it has one.",
    nodes_after="The same after the move.",
    commands=Key("The commands, one after the other.", _COMMAND),
    copied=Key("Disk to copy.", COUNT),
    seconds=Key("Time to copy it at `rate`.", _NOT_NEGATIVE),
    downtime=Key(
        "Why and when the instance does not run; null if it keeps running, or does not run anyway.",
        str | None,
        lambda step: step.downtime or None,
    ),
    cures=Key("The faults that it ends for good; none for a move that prepares a later one.", _FAULT),
    back=Key("The commands that undo it; none where nothing does.", _COMMAND),
    no_way_back=Key(
        "Why nothing undoes it; null where something does.", str | None, lambda step: step.no_way_back or None
    ),
    score=Key("The cluster score of htools after it; null where it is not a number.", NUMBER),
)
_VIOLATION: Final = Shape(PolicyViolation, optional="pair_name exclusive_storage").with_keys(
    group="The group with the policy.",
    pair="The spec pair that the commands lead to, from 1; the one that Ganeti names where none do.",
    pair_name="Its name in the policy.",
    breaches=Key("Each parameter outside of it.", {"type": "object"}),
    exclusive_storage="Whether the spindles of its disks count.",
)
_SIZE: Final = Shape(SizeCure).with_keys(
    instance="The instance.",
    violation=Key("What it violates, as in the impact of a plan.", _VIOLATION),
    commands=Key("What gives it the nearest legal size; none where nothing does.", _COMMAND),
    back=Key("What gives it its size of now; disks do not shrink again.", _COMMAND),
    reason=Key("Why no command does; null where one does.", str | None, lambda item: item.reason or None),
)
REMEDY_DOCUMENT: Final = Document(
    "gpolicy remedy --format json",
    "What is wrong with where instances are, the moves that cure it, and what nothing cures. Disk is MiB, time seconds."
    " Minor versions may add keys.",
    head(FORMAT_VERSION),
    SAVED,
    Shape(RemedyReport, optional="unknown").with_keys(
        basis="",
        what_if=WHAT_IF,
        unknown=UNKNOWN,
        faults=Key("All that is wrong before the moves.", _FAULT),
        steps=Key("The moves, in their order.", _STEP),
        left=Key(
            "The faults that no move cures.",
            Shape(Left).with_keys(fault=Key("", _FAULT, inline=True), reason="Why not."),
        ),
        new=Key("Faults that the moves bring; they end more.", _FAULT),
        sizes=Key("Instances whose size violates the policy.", _SIZE),
        score=Key(
            "The cluster score of htools.",
            Shape(RemedyReport).with_keys(
                before=Key("Before the moves.", NUMBER, "score_before.total"),
                after=Key("After them.", NUMBER, "score_after.total"),
            ),
            lambda report: report,
        ),
        rate=Key("MiB of disk that a job copies a second.", FROM_ONE),
        exhaustive="Whether the search ended by itself, not by its limits or for lack of time.",
        notes="What else there is to know.",
        summary=Key(
            "The figures.",
            Shape(RemedyReport).with_keys(
                faults=Key("Faults before the moves.", int, lambda report: len(report.faults)),
                moves=Key("Moves.", int, lambda report: len(report.steps)),
                cured="Faults that they end.",
                job_sets="Sets of jobs.",
                copied="Disk to copy.",
                seconds="Time for all sets, one after the other.",
            ),
            lambda report: report,
        ),
    ),
)


def remedy_data(report: RemedyReport, saved: SavedRemedy) -> dict[str, Any]:
    """Return the report as JSON's own types, with what apply needs of it. Disk is MiB, time seconds."""
    return REMEDY_DOCUMENT.data(report, saved, report)
