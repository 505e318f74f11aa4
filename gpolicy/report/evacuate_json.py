"""An evacuation as JSON: what `gpolicy evacuate --format json` promises (`schemas/output/evacuate.json`)."""

from __future__ import annotations

from typing import Any, Final

from gpolicy.evacuate.evacuation import EvacuationReport, MovedInstance, RequestToHail, StayingInstance
from gpolicy.json_shape import COUNT, FROM_ONE, TEXTS, Document, Key, Many, Shape
from gpolicy.report.capacity_json import UNKNOWN, WHAT_IF, head
from gpolicy.report.place_json import CANDIDATE

FORMAT_VERSION: Final = "1.1"

_INSTANCE: Final = "The instance."
_TEMPLATE: Final = "Its disk template."
_REQUEST: Final = Key("Place of its request in `requests`, from 1.", FROM_ONE)
_NODES: Final = "Primary node, and secondary node if there is one."
_CANDIDATES: Final = Key(
    "Every node, or pair of primary and secondary, that hail tries: possible ones first, best first. Null where there"
    " are too many to list them.",
    CANDIDATE,
)
_HAILS_REQUEST: Final = Shape(RequestToHail).with_keys(
    kind=Key("Type of the request.", {"enum": ["node-evacuate", "change-group"]}),
    mode="Mode of node-evacuate.",
    instances="The instances, in the order of the request.",
    targets="Target groups of change-group; empty: any other.",
    drained="Nodes to be emptied that hail is told are drained, so that it does not use them.",
    info="What hail says of the request.",
    by_ganeti="The command with which Ganeti itself asks the same; null if there is none, or if it would move nothing.",
)
_MOVED: Final = Shape(MovedInstance).with_keys(
    instance=_INSTANCE,
    template=_TEMPLATE,
    request=_REQUEST,
    job_set=Key("Number of its set: jobs of one set touch different nodes and may run side by side.", FROM_ONE),
    group="Group of its new primary node.",
    before=_NODES,
    after=_NODES,
    copied=Key("Disk that is copied to other nodes.", COUNT),
    steps=Key(
        "The commands of the job, in order.",
        Many(
            Shape(tuple).with_keys(
                what=Key("What it does.", {"enum": ["migrate", "fail over", "copy disks"]}, lambda step: step[0]),
                argv=Key("The command.", TEXTS, lambda step: step[1]),
            )
        ),
        lambda item: list(item.steps),
    ),
    candidates=_CANDIDATES,
)
_STAYS: Final = Shape(StayingInstance).with_keys(
    instance=_INSTANCE,
    template=_TEMPLATE,
    request=_REQUEST,
    nodes=_NODES,
    reason="What hail says.",
    candidates=_CANDIDATES,
)
EVACUATE_DOCUMENT: Final = Document(
    "gpolicy evacuate --format json",
    "How nodes or a group are emptied: what moves where in which order, and what stays. Disk is MiB. Minor versions may"
    " add keys.",
    head(FORMAT_VERSION),
    Shape(EvacuationReport, optional="unknown").with_keys(
        basis="",
        what_if=WHAT_IF,
        unknown=UNKNOWN,
        ok=Key("Whether no instance stays.", bool, lambda report: not report.stays),
        leaving="The nodes to be emptied.",
        group="The group that is emptied as a whole; null for nodes.",
        mode=Key("Which instances leave the nodes.", of="asked.mode"),
        ignore_soft_errors=Key(
            "Whether instances move also against exclusion tags, ratios and memory reserved for N+1.",
            of="asked.ignore_soft_errors",
        ),
        requests=Key("The requests to hail, each on the cluster as it is after the one before.", _HAILS_REQUEST),
        moved=Key("The jobs, in order. An instance may move twice.", _MOVED),
        stays=Key("The instances that hail cannot move.", _STAYS),
        copied=Key("Disk that all jobs copy.", COUNT),
        job_sets=Key("Number of sets of jobs.", COUNT),
        exhaustive="Whether the search ended by itself: no instance stays for lack of time.",
        short_before="Nodes that cannot take over all the instances that they mirror (N+1), now.",
        short_after="The same, afterwards.",
        notes=Key(
            "What Ganeti would refuse although hail accepts it, and what there is to know of the figures.",
            TEXTS,
            lambda report: [*report.objections, *report.parameters, *report.notes],
        ),
    ),
)


def evacuate_data(report: EvacuationReport) -> dict[str, Any]:
    """Return the report as JSON's own types. Disk is MiB."""
    return EVACUATE_DOCUMENT.data(report, report)
