"""Capacity as JSON: the format that `gpolicy capacity --format json` promises (`schemas/output/capacity.json`)."""

from typing import Any, Final

from gpolicy.allocator.cluster_data import Spec
from gpolicy.analysis.basis import StateReport
from gpolicy.analysis.binding import Binding, Cause
from gpolicy.analysis.capacity import CapacityReport, GroupCapacity, PairCapacity, PlacedSize
from gpolicy.analysis.node_resources import MetadataRoom
from gpolicy.analysis.policy_limits import PolicyLimit
from gpolicy.analysis.shown_score import ScoreComponent
from gpolicy.cluster.terms import Limits, LimitsInForce
from gpolicy.growth.filling_up import GrowthReport, SizeForecast
from gpolicy.json_values import COUNT, FROM_ONE, NUMBER, Document, Key, Many, Maybe, Shape, fields_of, version_key

FORMAT_VERSION: Final = "2.0"


def head(version: str) -> Shape:
    """Return the shape of the first keys of each answer about the state of a cluster."""
    return Shape(StateReport).with_keys(
        "format_version cluster_name source snapshot", format_version=version_key(version)
    )


LIMITS: Final = Shape(LimitsInForce).with_keys("groups limits options", limits=Key(fields_of(Limits), inline=True))
"""The limits that groups have beyond those that htools knows."""
POLICY_LIMIT: Final = Shape(PolicyLimit).with_keys(
    "group spec fits would_fit",
    number="cause.key",
    instead=Key(str | None, lambda item: item.other and item.other.words),
    bound_by="then.key",
)
_SIZE_WORDS: Final = {"memory-size": "memory", "cpu-count": "cpus"}
SPEC: Final = Shape(Spec, "spec").with_keys(
    **_SIZE_WORDS,
    **{"disk-size": "disk_size", "disk-count": "disk_count", "nic-count": "nic_count", "spindle-use": "spindle_use"},
)
BINDING: Final = Shape(Binding, "binding").with_keys(
    "binding explanation reason detail",
    binding=Key({"enum": [cause.key for cause in Cause]}, "cause.key"),
    explanation="cause.sentence",
    failures=Key({"type": "object", "additionalProperties": FROM_ONE}, lambda binding: dict(binding.failures)),
)
_RUN: Final = Shape(PlacedSize, "run").with_keys(
    **_SIZE_WORDS, **{"disk-size": "disk", "spindles": "spindles"}, count=FROM_ONE
)
_SIZES: Final = Key(_RUN, "tiered")
_PAIR: Final = Shape(PairCapacity, "pair").with_keys(
    "name min max spindle_use",
    min=Key(SPEC, "pair.min"),
    max=Key(SPEC, "pair.max"),
    fits=COUNT,
    hspace=COUNT,
    after_moves=Maybe(COUNT),
    at_most=Maybe(COUNT),
    binding=Key(BINDING, inline=True),
    tiered=Shape(PairCapacity).with_keys(fits=Key(COUNT, lambda one: _total(one.tiered)), sizes=_SIZES),
)
CAPACITY: Final = Shape(GroupCapacity, "capacity").with_keys(
    "template nodes instances specs tiered standard stranded",
    nodes=COUNT,
    instances=COUNT,
    specs=_PAIR,
    tiered=Shape(GroupCapacity).with_keys(
        fits=Key(COUNT, "tiered_fit.fits"),
        hspace=Key(COUNT, lambda item: _total(item.hspace_tiered)),
        sizes=_SIZES,
        binding=Key(BINDING, "tiered_binding", inline=True),
    ),
    standard=Shape(GroupCapacity).with_keys(
        spec=Key(SPEC, "std"),
        fits=Key(COUNT, "standard.fits"),
        hspace=Key(COUNT, "hspace_standard"),
        binding=Key(BINDING, "standard.binding", inline=True),
    ),
    score=Key(NUMBER, "score.total"),
    score_minimum=Key(NUMBER, "score.minimum"),
    components=Key(
        Shape(ScoreComponent).with_keys(
            "name value weight product least excess", value=NUMBER, product=NUMBER, least=NUMBER, excess=NUMBER
        ),
        "score.components",
    ),
)
_COUNTS: Final = Shape(CapacityReport).with_keys(
    groups=Shape(GroupCapacity).with_keys(group=str, capacity=Key(CAPACITY, inline=True)),
    cluster=CAPACITY,
)
_FULL: Final = Shape(SizeForecast).with_keys("group spec bound_by resource room per_week low middle high")
_GROWTH: Final = Shape(GrowthReport).with_keys("span until horizon sizes notes", sizes=_FULL)
CAPACITY_DOCUMENT: Final = Document(
    "gpolicy capacity --format json",
    head(FORMAT_VERSION),
    Shape(CapacityReport).with_keys("basis limits", limits=LIMITS, counts=Key(_COUNTS, inline=True)),
    Shape(CapacityReport).with_keys(before=Maybe(_COUNTS)),
    Shape(GrowthReport).with_keys(growth=Maybe(_GROWTH)),
    Shape(CapacityReport).with_keys(
        "metadata policy_limits what_if unknown notes",
        metadata=Shape(MetadataRoom).with_keys("group volume_group disks nodes unknown"),
        policy_limits=POLICY_LIMIT,
        unknown="reasons",
    ),
)


def capacity_data(
    report: CapacityReport, before: CapacityReport | None = None, growth: GrowthReport | None = None
) -> dict[str, Any]:
    """Return the report as JSON's own types. Sizes are MiB; a number that is not finite is null.

    `before` is the capacity without what is supposed, `growth` says when groups are full.
    """
    return CAPACITY_DOCUMENT.data(report, report, before, growth, report)


_COMPARED: Final = Shape(tuple).with_keys(
    policy=Key(str, 0), capacity=Key({"type": "object"}, lambda pair: capacity_data(pair[1]))
)
COMPARED_DOCUMENT: Final = Document(
    "gpolicy capacity --compare --format json",
    head(FORMAT_VERSION),
    Shape(dict).with_keys(policies=Key(Many(_COMPARED), lambda reports: list(reports.items()))),
)


def _total(sizes: tuple[PlacedSize, ...]) -> int:
    return sum(size.count for size in sizes)
