"""Placement as JSON: the format that `gpolicy place --format json` promises (`schemas/output/place.json`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from gpolicy.allocator.cluster_data import Disk, Instance
from gpolicy.allocator.enumerations import AllocPolicy
from gpolicy.analysis.place_report import Candidate, GroupTrial, Instead, PlaceReport
from gpolicy.json_shape import COUNT, NUMBER, TEXTS, Document, Key, Shape
from gpolicy.report.capacity_json import LIMITS, UNKNOWN, head

FORMAT_VERSION: Final = "1.4"

_NODES: Final = {**TEXTS, "maxItems": 2}
_METRIC: Final = Shape(Candidate).with_keys(
    lost_allocations=Key(
        'How many instances of each size fit no more (design document "dedicated allocation").', sparse=True
    ),
    score=Key(
        "Cluster score (in an evacuation: of the group) with the instance there, the smaller the better; null where"
        " it is not a number.",
        NUMBER,
        sparse=True,
    ),
    disk_left=Key("Free disk of its nodes afterwards, summed.", sparse=True),
)
CANDIDATE: Final = Shape(Candidate, "candidate").with_keys(
    group="Group of the nodes.",
    nodes=Key("Primary node, and secondary node if there is one.", _NODES, lambda item: item.nodes),
    ok="Whether the instance could go there.",
    reason="What refuses it: the policy's key (ipolicy.vcpu-ratio), memory, n1-reserve, disk, spindles, n1-capacity,"
    " exclusion-tags, migration-tags, alloc_policy.",
    explanation="What the reason means.",
    detail="The reason in numbers, with the node.",
    htools_reason="What hail counts it as: FailMem, FailDisk, …",
    metric=Key("", _METRIC, lambda item: item, inline=True),
)
_INSTANCE: Final = Shape(Instance).with_keys(
    name="Name of the instance.",
    memory=Key("Memory, MiB.", COUNT, "burst"),
    vcpus=Key("Virtual CPUs.", COUNT),
    disks=Key(
        "Its disks.",
        Shape(Disk).with_keys(
            size=Key("Size of the disk, MiB.", COUNT), spindles="Physical volumes of the disk; null where not given."
        ),
    ),
    disk=Key("Space charged on each of its nodes, DRBD's metadata included.", COUNT),
    spindle_use=Key("Spindle use.", COUNT),
    template="Disk template.",
    tags="Tags of the instance.",
)
_INSTEAD: Final = Shape(Instead).with_keys(
    words="The words of the request to change: memory=16G, or without nodes=a.",
    nodes=Key("Where the instance then goes.", _NODES, lambda item: item.nodes),
)
_GROUP: Final = Shape(GroupTrial).with_keys(
    group="Name of the group.",
    alloc_policy=Key("Allocation policy of the group.", {"enum": [item.value for item in AllocPolicy]}),
    tried="Whether its nodes were tried.",
    message="What hail says of the group, or why it was not tried.",
)
PLACE_DOCUMENT: Final = Document(
    "gpolicy place --format json",
    "Where an instance would go, as hail answers Ganeti, and what every candidate says to it. Sizes are MiB. Minor"
    " versions may add keys.",
    head(FORMAT_VERSION),
    Shape(PlaceReport).with_keys(
        instance=Key("The instance that was tried; what was not asked for is filled in.", _INSTANCE),
        basis="",
        ok="Whether the instance can be placed.",
        group="The group it goes to.",
        nodes=Key(
            "Its primary node, and its secondary where it has one; none where it goes nowhere.",
            _NODES,
            lambda report: report.nodes,
        ),
        reason="Why it goes nowhere, in one sentence.",
        info="The info line of hail's answer.",
        metric=Key(
            "What candidates are compared by, and its value for the chosen one.",
            Shape(PlaceReport).with_keys(
                name=Key(
                    "lost-allocations where every node has exclusive storage.",
                    {"enum": ["score", "lost-allocations"]},
                    "metric",
                ),
                sizes="The spec pairs that lost_allocations counts, biggest disk first; none where groups differ in"
                " them.",
                chosen=Key("", _METRIC, inline=True),
            ),
            lambda report: report,
        ),
        instead=Key(
            "What would fit, each alone with the rest of the request as it is; null where the instance fits (from"
            " 1.3 on).",
            _INSTEAD,
        ),
        groups=Key("The groups that were looked at.", _GROUP),
        candidates=Key(
            "Every node, or pair of primary and secondary, of the groups that were tried: possible ones first, best"
            " first. hail tests N+1 from the best on until one passes: what stands behind the chosen one is not"
            " tested for it.",
            CANDIDATE,
        ),
        what_if="What is supposed of the cluster, what the answer leaves out of account, or counts otherwise than"
        " Ganeti, on request (from 1.2 on).",
        unknown=replace(UNKNOWN, text=f"{UNKNOWN.text[:-1]} (from 1.4 on)."),
        limits=replace(LIMITS, text="The limits that groups have beyond those that hail knows (from 1.2 on)."),
        notes=Key(
            "Nodes that were not tried, and what Ganeti would say although hail does not.",
            TEXTS,
            lambda report: [*report.objections, *report.parameters, *report.notes],
        ),
    ),
)


def place_data(report: PlaceReport) -> dict[str, Any]:
    """Return the report as JSON's own types. Sizes are MiB; a score that is not finite is null."""
    return PLACE_DOCUMENT.data(report, report)
