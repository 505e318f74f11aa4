"""The JSON Schema of Guards documents: each guard, and its one measure."""

from __future__ import annotations

from gpolicy.policy.guard import Measure
from gpolicy.policy.schema_parameters import NAME, PERCENT_PATTERN, Schema, whole


def guard_properties() -> Schema:
    """Return the properties of a Guards document."""
    percent = {"type": "string", "pattern": PERCENT_PATTERN}
    return {
        "name": {**NAME, "description": "Name of these guards, for people."},
        "guards": {
            "type": "array",
            "minItems": 1,
            "description": "Each guard has a name and one measure.",
            "items": {
                "type": "object",
                "properties": {
                    "name": {**NAME, "description": "Name of the guard; overridden by this name."},
                    "group": {**NAME, "description": "Only this group (default: each group)."},
                    "spec": {**NAME, "description": "Only this named spec pair (default: each)."},
                    "at_least": whole("Least number of instances of the spec that must still fit."),
                    "capacity_loss": {
                        "type": "object",
                        "description": "How much capacity a change may cost: how many fit of the largest size of"
                        " each spec, and of today's size where the change sets another. Standard and tiered"
                        " instances do not count.",
                        "properties": {
                            "at_most": {
                                "anyOf": [percent, {"type": "integer", "minimum": 0}],
                                "description": "Greatest loss: a share (5%) or a number of instances.",
                            }
                        },
                        "required": ["at_most"],
                        "additionalProperties": False,
                    },
                    "newly_violating": whole(
                        "Most instances and nodes that may newly violate the policy: instances that it does not allow,"
                        " and nodes above vcpu-ratio or spindle-ratio."
                    ),
                    "node_failures": whole(
                        "Node failures that the group must survive; nodes that take over must keep"
                        " their vcpu-ratio, unless cpus_after_failure of the group's limits is false."
                    ),
                    "max_changes": whole("Most changes that one plan may make."),
                },
                "required": ["name"],
                "oneOf": [{"required": [str(measure)]} for measure in Measure],
                "additionalProperties": False,
            },
        },
    }
