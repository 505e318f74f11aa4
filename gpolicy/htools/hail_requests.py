"""What all kinds of hail's requests have in common."""

from __future__ import annotations

from gpolicy.errors import InputError
from gpolicy.htools.json_fields import Fields
from gpolicy.light_dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Protocol

    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.node import Node
    from gpolicy.allocator.request_options import RequestOptions
    from gpolicy.htools.iallocator import IallocatorDocument
    from gpolicy.htools.json_fields import Json

    class HailRequest(Protocol):
        """A request of any kind, names resolved to indices."""

        @property
        def existing(self) -> Sequence[int]:
            """The existing instances that the request is about."""

        @property
        def group_names(self) -> Sequence[str | None] | None:
            """The requested group of each new instance, None for any group; None if the request places nothing."""

        def shown(self, document: Mapping[str, Json]) -> str:
            """Return it as Haskell shows it; `document` is the request's own object (`-v`)."""

        def answer(self, cluster: Cluster, options: RequestOptions) -> HailAnswer:
            """Return hail's answer. Raises RequestError if the request cannot be granted."""


PREFIX = "invalid request dict: "


@dataclass(frozen=True, slots=True)
class HailAnswer:
    """The content of stdout, and the state of the cluster after the request."""

    info: str
    result: list[object] | str
    nodes: Mapping[int, Node]
    instances: Mapping[int, Instance]


def names_of(nodes: Mapping[int, Node], indices: Sequence[int]) -> list[str]:
    """Return the names of the nodes at `indices`."""
    return [nodes[index].facts.name for index in indices]


def parse_request(document: IallocatorDocument, cluster: Cluster) -> HailRequest:
    """Read the request; names are resolved in `cluster`, the document's own cluster."""
    fields = Fields(PREFIX, document.request)
    kind = fields.text("type")
    if kind in {"allocate", "multi-allocate"}:
        from gpolicy.htools.hail_placing import parse_placing  # noqa: PLC0415 - only what is needed

        return parse_placing(kind, fields, cluster)
    if kind in {"relocate", "node-evacuate", "change-group", "allocate-secondary"}:
        from gpolicy.htools.hail_moving import parse_moving  # noqa: PLC0415 - only what is needed

        return parse_moving(kind, fields, cluster)
    raise InputError(f"Invalid request type '{kind}'")
