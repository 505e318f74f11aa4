"""The JSON Schema of the terms: what a policy says of resources that Ganeti has no parameter for."""

from __future__ import annotations

from gpolicy.ganeti.number_ranges import GREATEST_OVERSUBSCRIPTION, MOST_NODE_FAILURES
from gpolicy.policy.schema_parameters import NAME, SHARE_PATTERN, Schema, described, flag, object_of, whole


def node_failures(text: str, *, least: int = 0) -> Schema:
    """Return the schema of a number of nodes that fail at once."""
    return whole(text, least=least, most=MOST_NODE_FAILURES)


def oversubscription(text: str) -> Schema:
    """Return the schema of a ratio of over-subscription."""
    return {"type": "number", "exclusiveMinimum": 0, "maximum": GREATEST_OVERSUBSCRIPTION, "description": text}


def term_properties(of: str) -> Schema:
    """Return the keys that Ganeti does not know (`gpolicy.cluster.terms`)."""
    share: Schema = {"type": "string", "pattern": SHARE_PATTERN}
    names: Schema = {"type": "array", "items": NAME, "uniqueItems": True, "minItems": 1}
    return {
        "limits": object_of(
            {
                "max_node_failures": node_failures(
                    "How many nodes of a group may fail at once, and every instance still has its"
                    " place. Ganeti's own tools: 1."
                ),
                "oversubscription": oversubscription(
                    "The greatest memories of a node's instances together may be this many times"
                    " its memory for instances; each instance is guaranteed its least."
                ),
                "cpus_after_failure": flag(
                    "True: nodes that take over must keep their vcpu-ratio after as many failures as"
                    " may be. Default: true for redundancy and guards, false for capacity and place (as hspace and"
                    " hail count)."
                ),
            },
            f"Limits of capacity of {of}, beyond those that Ganeti knows. All verbs that count honour"
            " them; no command of Ganeti is made of them.",
            minimum=1,
        ),
        "physical_volumes": object_of(
            {
                "exclude": described(
                    names,
                    "Volumes that instances never get: names or globs (/dev/sda*), such as the one"
                    " of the root file system.",
                ),
                "volume_groups": {
                    "type": "object",
                    "additionalProperties": names,
                    "minProperties": 1,
                    "description": "Volumes (names or globs) by the volume group that they are in. Others are in"
                    " the cluster's own.",
                },
                "margin": described(
                    share, "How far the sizes of volumes may differ under exclusive storage. Ganeti: 1%."
                ),
                "reserve": described(
                    share, "Share of each volume that is not counted under exclusive storage. Ganeti: 2%."
                ),
            },
            f"What counts of the physical volumes of {of}. Ganeti shows all volumes of a node and does"
            " not say which are in which volume group.",
            minimum=1,
        ),
    }
