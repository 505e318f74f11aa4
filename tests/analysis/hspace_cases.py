"""Recorded clusters with hspace's answers, and the means to ask hspace about any other."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from gpolicy.allocator.merge import ClusterData, merge
from gpolicy.analysis.capacity import GroupCapacity
from gpolicy.cluster.htools_sources import parse_text
from gpolicy.cluster.state import ClusterState
from gpolicy.htools.text_format import format_cluster

DATA = Path(__file__).parent.parent / "data"
FULL = (DATA / "clusters" / "full" / "htools.data").read_text()


def from_text(text: str) -> ClusterState:
    return parse_text(text, where="x", source="text:x")


def text_of(*sections: list[str]) -> str:
    """Return the text of a cluster: groups, nodes, instances, tags, policies."""
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in sections)


def recorded_cases(file: str = "hspace-hail-score.jsonl.gz") -> list[dict[str, Any]]:
    with gzip.open(DATA / "allocator" / file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def hspace_keys(lines: list[str]) -> dict[str, str]:
    return {key: value.strip("'") for key, _, value in (line.partition("=") for line in lines)}


def tiered(item: GroupCapacity) -> str:
    """Return hspace's tiered sizes as it prints them."""
    sizes = (f"{size.memory},{size.disk},{size.cpus},{size.spindles}={size.count}" for size in item.hspace_tiered)
    return " ".join(sizes)


def hspace_text(data: ClusterData) -> str:
    """Return `data` as hspace would save it."""
    cluster = merge(data)
    return format_cluster(cluster)
