"""Suggested sizes as JSON: what `gpolicy suggest --format json` promises (`schemas/output/suggest.json`)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from gpolicy.analysis.counted_cluster import Fit
from gpolicy.json_shape import COUNT, FROM_ONE, Document, Key, Many, Shape
from gpolicy.report.capacity_json import LIMITS, SPEC, UNKNOWN, WHAT_IF, head
from gpolicy.suggest.suggestion import (
    Choice,
    Mix,
    NodeHardware,
    NodeKind,
    OldPair,
    Size,
    Suggestion,
    SuggestReport,
    Waste,
)

FORMAT_VERSION: Final = "2.0"

_BINDING_TEXT: Final = "The binding resource: why no more fit."
_WORDS_TEXT: Final = "The same in words."
_BY_SIZE: Final = Key("Numbers by the name of the size.", COUNT)
_NAME: Final = "Name of the size."
_FIT: Final = Shape(Fit, "fit", "How many fit, and what keeps out the next one.").with_keys(
    fits=Key("Instances that fit.", COUNT),
    binding=Key(_BINDING_TEXT, of="binding.cause.key"),
    explanation=Key(_WORDS_TEXT, of="binding.cause.sentence"),
)
_NOW: Final = Key("Beside the instances that are there, under today's policy.", _FIT)
_THEN: Final = Key("Beside the instances that are there, under the suggested policy.", _FIT)
_MIN: Final = Key("Lower bound.", SPEC, "pair.min")
_MAX: Final = Key("Upper bound.", SPEC, "pair.max")
_NODE: Final = Shape(NodeHardware).with_keys(
    name="Name of the node.",
    room="What instances may use of it if it is empty.",
    memory_total=Key("Memory of the node, MiB.", COUNT, "total_memory"),
    memory_kept=Key("Memory that the node keeps for itself, MiB.", COUNT, "kept_memory"),
    cpus_total=Key("CPUs of the node.", COUNT, "total_cpus"),
    cpus_kept=Key("CPUs that the node keeps for itself.", COUNT, "kept_cpus"),
)
_SIZE: Final = Shape(Size).with_keys(
    name=_NAME,
    divisor=Key("The size is this part of a node: 2 for half of it.", FROM_ONE),
    min=_MIN,
    max=_MAX,
    a_node=Key("How many fill an empty node, by kind.", COUNT),
    now=_NOW,
    then=_THEN,
    empty=Key("Without the instances that are there, under the suggested policy.", _FIT),
)
MIX: Final = Shape(Mix).with_keys(
    weights=_BY_SIZE,
    n1="Whether each placement keeps N+1 (hail does not test it on exclusive storage).",
    mixes=Key("How many whole mixes fit.", COUNT),
    placed=_BY_SIZE,
    limit="The size that there was no room for in the next mix.",
    binding=Key(_BINDING_TEXT, str | None, lambda mix: mix.binding and mix.binding.cause.key),
    explanation=Key(_WORDS_TEXT, str | None, lambda mix: mix.binding and mix.binding.cause.sentence),
    best=_BY_SIZE,
    more=_BY_SIZE,
    left="What is left then.",
)
_CHOICE: Final = Shape(Choice).with_keys(
    sizes="The sizes by name.",
    weights=Key("Instances by the smallest size that holds them.", COUNT),
    outside=Key("Instances that no size holds.", COUNT),
    placed=Key("What fills the empty group in these proportions until no size fits.", COUNT),
    unused="The share of the room of the group that no instance needs then, by resource.",
    mean_unused="The mean of these shares.",
)
_GROUP: Final = Shape(Suggestion, "group").with_keys(
    group="Name of the group.",
    template="Disk template of the instances.",
    exclusive_storage=Key("Whether storage is exclusive.", of="exclusive"),
    bounds="Whether the sizes are fixed or ranges.",
    vcpu_ratio="The suggested vcpu-ratio.",
    pv_size=Key("The smallest physical volume.", of="volume"),
    kinds=Key(
        "Nodes by their hardware.",
        Shape(NodeKind).with_keys(
            room="What instances may use of an empty one.", nodes=Key("Nodes with this hardware.", _NODE)
        ),
    ),
    measure="The node of which the sizes are parts.",
    sizes=Key("Biggest first. Counts are of instances at the maximum.", _SIZE),
    today=Key(
        "The pairs of today's policy.",
        Shape(OldPair).with_keys(
            name=Key("Name of the pair of today's policy.", str, lambda pair: str(pair.place)),
            min=_MIN,
            max=_MAX,
            now=_NOW,
            then=_THEN,
        ),
    ),
    stranded=Key(
        "What stays unused on a node of that kind that one size fills.",
        Shape(Waste).with_keys(
            kind=Key("Which hardware, by its number in `kinds`.", COUNT),
            size=Key(_NAME, of="name"),
            count=Key("Instances of this size on a node.", COUNT),
            left="What stays unused.",
            share="Greatest share of a resource of the node that stays unused, 0 to 1.",
        ),
    ),
    std=Key(
        "The size that the cluster's std lies in, and a std that lies in the smallest.",
        Shape(Suggestion).with_keys(
            inside=Key("Name of the size that it lies in; null if it lies in none.", of="std_in"),
            suggested=Key("A std that lies in the smallest size.", SPEC, "std"),
        ),
        lambda item: item,
    ),
    instances=Key("Instances that are there already.", COUNT),
    newly_forbidden="Instances that are legal today and would violate the sizes.",
    mixes=Key("How often the wanted mix fits.", Many(MIX), lambda item: [] if item.mix is None else [item.mix]),
    choices=Key(
        "The best sets of sizes for the instances that exist, with --real-mix; the first is suggested.",
        _CHOICE,
    ),
    document="The NodeGroup document (YAML).",
    notes="Remarks on what was counted, for people.",
)
SUGGEST_DOCUMENT: Final = Document(
    "gpolicy suggest --format json",
    "Sizes that tile the nodes of a group, what they give, and the document that declares them. Memory and disk are"
    " MiB. Minor versions may add keys.",
    head(FORMAT_VERSION),
    Shape(SuggestReport, optional="basis what_if unknown limits").with_keys(
        basis="",
        groups=Key("A suggestion for each group.", _GROUP),
        passed_over="Why there is nothing for other groups, by name.",
        what_if=WHAT_IF,
        unknown=UNKNOWN,
        limits=replace(
            LIMITS,
            text="The limits that groups have beyond those that htools knows, under which sizes are chosen with"
            " --real-mix.",
        ),
    ),
)


def suggest_data(report: SuggestReport) -> dict[str, Any]:
    """Return the report as JSON's own types. Memory and disk are MiB."""
    return SUGGEST_DOCUMENT.data(report, report)
