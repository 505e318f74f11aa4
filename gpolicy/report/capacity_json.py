"""Capacity as JSON: the format that `gpolicy capacity --format json` promises (`schemas/output/capacity.json`)."""

from __future__ import annotations

from typing import Any, Final

from gpolicy.allocator.cluster_data import Spec
from gpolicy.analysis.basis import StateReport
from gpolicy.analysis.binding import Binding, Cause
from gpolicy.analysis.capacity import CapacityReport, GroupCapacity, PlacedSize, SpecCapacity
from gpolicy.analysis.metadata_room import MetadataRoom
from gpolicy.analysis.policy_limits import PolicyLimit
from gpolicy.analysis.shown_score import ScoreComponent
from gpolicy.cluster.terms import Limits, LimitsInForce
from gpolicy.json_shape import COUNT, FROM_ONE, NUMBER, Document, Key, Maybe, Shape, fields_of, version_key

FORMAT_VERSION: Final = "2.0"
WHAT_IF: Final = "What is supposed of the cluster, on request."
UNKNOWN: Final = Key("The groups that could not be counted, with the reason.", of="reasons")
_NUMBER: Final = Key(form=NUMBER)


def head(version: str) -> Shape:
    """Return the shape of the first keys of each answer about the state of a cluster."""
    return Shape(StateReport).with_keys(
        format_version=version_key(version),
        cluster_name="Name of the cluster; empty where the state does not name it (text:, sim:).",
        source="Where the state was read from; of a snapshot: where that was taken.",
        snapshot="The snapshot that the state was read from, null where there was none.",
    )


LIMITS: Final = Key(
    "The limits that groups have beyond those that htools knows.",
    Shape(LimitsInForce).with_keys(groups="", limits=Key("", fields_of(Limits), inline=True), options=""),
)
POLICY_LIMIT: Final = Shape(PolicyLimit).with_keys(
    group="The group.",
    spec="What is counted.",
    fits="How many fit.",
    would_fit="How many fit with it.",
    number=Key("The number of the policy that limits the count.", of="cause.key"),
    instead=Key(
        "The value that lets most in, in words; null where no other value lets more in.",
        str | None,
        lambda item: item.other and item.other.words,
    ),
    bound_by=Key("What is the limit beyond it.", of="then.key"),
)
SPEC: Final = Shape(Spec, "spec").with_keys(
    {
        "memory-size": Key("Memory, MiB.", of="memory"),
        "cpu-count": Key("Virtual CPUs.", of="cpus"),
        "disk-size": Key("Size of each disk, MiB.", of="disk_size"),
        "disk-count": Key("Number of disks.", of="disk_count"),
        "nic-count": Key("Number of network interfaces.", of="nic_count"),
        "spindle-use": Key("Spindles used.", of="spindle_use"),
    }
)
BINDING: Final = Shape(Binding, "binding", optional="detail").with_keys(
    binding=Key("What keeps out the next instance.", {"enum": [cause.key for cause in Cause]}, "cause.key"),
    explanation=Key("Why no more fit, in words.", of="cause.sentence"),
    reason="htools' name of the most frequent failure: FailMem, …",
    detail="What is in the way: the loss of nodes that cannot be absorbed, disks that Ganeti does not make; null where"
    " there is no more to say.",
    failures=Key(
        "Candidates (nodes, or pairs of nodes) by failure.",
        {"type": "object", "additionalProperties": FROM_ONE},
        lambda binding: dict(binding.failures),
    ),
)
_RUN: Final = Shape(PlacedSize, "run").with_keys(
    {
        "memory-size": Key("Memory of each, MiB.", of="memory"),
        "cpu-count": Key("Virtual CPUs of each.", of="cpus"),
        "disk-size": Key("Disk of each, MiB.", of="disk"),
        "spindles": Key("Spindles of each."),
        "count": Key("How many of this size.", FROM_ONE),
    }
)
_FITS_TEXT: Final = "How many of each size fit."
_SIZES: Final = Key("Runs of equal instances in the order of placement.", _RUN, "tiered")
_PAIR: Final = Shape(
    SpecCapacity, "pair", "A size; `fits` counts instances at its largest, alone, with one disk."
).with_keys(
    name="What the policy calls the size; its place, from 1, where it has no name.",
    min=Key("Lower bound.", SPEC, "pair.min"),
    max=Key("Upper bound.", SPEC, "pair.max"),
    spindle_use="Spindle use of the counted instances.",
    fits=Key("Instances at its largest that fit alone.", COUNT),
    hspace=Key("How many of these hspace counts.", COUNT),
    binding=Key("", BINDING, inline=True),
    tiered=Key(
        "Instances that tiered allocation places.",
        Shape(SpecCapacity).with_keys(fits=Key(_FITS_TEXT, COUNT, lambda spec: _total(spec.tiered)), sizes=_SIZES),
        lambda spec: spec,
    ),
)
CAPACITY: Final = Shape(GroupCapacity, "capacity", optional="stranded score_minimum").with_keys(
    template="Disk template of the instances; null where no enabled one is allowed.",
    nodes=Key("Number of nodes.", COUNT),
    instances=Key("Instances that are there already.", COUNT),
    specs=Key("Sizes in the order of the policy.", _PAIR),
    tiered=Key(
        "All sizes in turn, each shrunk to what still fits.",
        Shape(GroupCapacity).with_keys(
            fits=Key(_FITS_TEXT, COUNT, "tiered_fit.fits"),
            hspace=Key("How many hspace counts.", COUNT, lambda item: _total(item.hspace_tiered)),
            sizes=_SIZES,
            binding=Key("", BINDING, "tiered_binding", inline=True),
        ),
        lambda item: item,
    ),
    standard=Key(
        "Instances of the policy's std.",
        Shape(GroupCapacity).with_keys(
            spec=Key("Size of the standard instance.", SPEC, "std"),
            fits=Key("Standard instances that still fit.", COUNT, "standard.fits"),
            hspace=Key("How many hspace counts.", COUNT, "hspace_standard"),
            binding=Key("", BINDING, "standard.binding", inline=True),
        ),
        lambda item: item,
    ),
    stranded="What online nodes have for instances, summed: free now, and left when nothing more fits that the policy"
    " allows. Null where it was not counted.",
    score=Key("Cluster score of htools; null where it is not a number.", NUMBER, "score.total"),
    score_minimum=Key("Its theoretical minimum, to which hbal's minimum score is relative.", NUMBER, "score.minimum"),
    components=Key(
        "The twenty components of the score in htools' order; none where no node is online.",
        Shape(ScoreComponent, optional="least excess").with_keys(
            name="", value=_NUMBER, weight="", product=_NUMBER, least=_NUMBER, excess=_NUMBER
        ),
        "score.components",
    ),
)
_COUNTS: Final = Shape(CapacityReport).with_keys(
    groups=Key(
        "Each group counted alone, with the group's policy and limits.",
        Shape(GroupCapacity).with_keys(
            group=Key("Name of the group.", str), capacity=Key("", CAPACITY, lambda item: item, inline=True)
        ),
    ),
    cluster=Key(
        "The whole cluster, as hail answers requests that name no group; null where one group was asked for, or one"
        " could not be counted.",
        CAPACITY,
    ),
)
_METADATA: Final = Shape(MetadataRoom).with_keys(group="", volume_group="", disks="", nodes="", unknown="")
CAPACITY_DOCUMENT: Final = Document(
    "gpolicy capacity --format json",
    "How many more instances hail accepts, one after another, by group and size, and why it refuses the next one."
    " Sizes are MiB. Minor versions may add keys.",
    head(FORMAT_VERSION),
    Shape(CapacityReport).with_keys(basis="", limits=LIMITS, counts=Key("", _COUNTS, lambda item: item, inline=True)),
    Shape(CapacityReport).with_keys(
        before=Key("The same without what is supposed, null where nothing is.", Maybe(_COUNTS), lambda before: before)
    ),
    Shape(CapacityReport).with_keys(
        metadata=Key(
            "Room for the metadata of DRBD disks, of each group whose metavg is another volume group than the"
            " cluster's own. A limit of its own: no count looks at it.",
            _METADATA,
        ),
        policy_limits=Key("What other values would give where a number of the policy limits a count.", POLICY_LIMIT),
        what_if="What is supposed of the cluster, or counted otherwise than by Ganeti, on request.",
        unknown=UNKNOWN,
        notes="Remarks on what was counted, for people.",
    ),
)


def capacity_data(report: CapacityReport, before: CapacityReport | None = None) -> dict[str, Any]:
    """Return the report as JSON's own types. Sizes are MiB; a number that is not finite is null.

    `before` is the capacity without what is supposed.
    """
    return CAPACITY_DOCUMENT.data(report, report, before, report)


def _total(sizes: tuple[PlacedSize, ...]) -> int:
    return sum(size.count for size in sizes)
