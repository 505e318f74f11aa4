"""What the JSON of every answer about the state of a cluster begins with, and what several of them have."""

from __future__ import annotations

from typing import Final

from gpolicy.analysis.basis import StateReport
from gpolicy.json_shape import Key, Shape, version_key


def head(version: str) -> Shape:
    """Return the shape of the first keys."""
    return Shape(
        "",
        StateReport,
        format_version=version_key(version),
        cluster_name="Name of the cluster; empty where the state does not name it (text:, sim:).",
        source="Where the state was read from; of a snapshot: where that was taken.",
        snapshot="The snapshot that the state was read from, null where there was none.",
    )


WHAT_IF: Final = "What is supposed of the cluster, on request."
UNKNOWN: Final = Key("The groups that could not be counted, with the reason.", of="reasons")
