"""What is told before a count that takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpolicy.cli.terminal import complain

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState


def tell_why_slow(state: ClusterState) -> None:
    """Say on standard error why counting on this cluster takes minutes, and what its score means; if it does."""
    from gpolicy.impact.without_spindles import nodes_without_spindles  # noqa: PLC0415

    names = nodes_without_spindles(state)
    if names:
        more = f" and {len(names) - 1} more nodes have" if len(names) > 1 else " has"
        complain(
            f"{names[0]}{more} spindle_count 0: htools divides by it, so the score is no number, no placement is better"
            " than another, and counting goes the long way, which may take minutes",
            "set ndparams.spindle_count to 1 or more",
        )
