"""Suggest spec pairs for a group: sizes that tile its nodes, what they give, and the document that declares them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState
    from gpolicy.impact.capacity import Observer
    from gpolicy.suggest.model import Request, SuggestReport


def suggest(
    state: ClusterState, request: Request, *, group: str | None = None, observer: Observer | None = None
) -> SuggestReport:
    """Return suggestions for `group`, or for every group that has nodes.

    Raise UsageError for what makes no sense, GpolicyError where nodes have no numbers or no size fits them.
    """
    raise NotImplementedError
