"""What a placement is answered with: the instance, every candidate, the groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpolicy.allocator.ghc_numbers import fixed

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.cluster.state import Snapshot


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, or primary and secondary, and what came of trying it.

    `reason` is the policy's own word for what refuses it (`gpolicy.analysis.binding.Cause`'s key), `detail` says it in
    numbers, `htools_reason` is hail's name of it; all None where `ok`. `score` is the cluster score after it (None on
    dedicated nodes), `lost_allocations` the instances of each size that would fit no more, the size with the biggest
    disk first (None elsewhere). `disk_left` (MiB) is what its nodes have left afterwards, summed. Scores of refused
    candidates are given where they were computed.
    """

    group: str
    nodes: tuple[str, ...]
    ok: bool
    reason: str | None = None
    explanation: str | None = None
    detail: str | None = None
    htools_reason: str | None = None
    score: float | None = None
    lost_allocations: tuple[int, ...] | None = None
    disk_left: int | None = None

    @property
    def shown_score(self) -> str:
        """The score as htools prints it; a dash where there is none."""
        return "-" if self.score is None else fixed(self.score, 8)


@dataclass(frozen=True, slots=True)
class GroupTrial:
    """What came of one group: hail's own sentence, or why the group was not tried."""

    group: str
    alloc_policy: str
    tried: bool
    message: str


@dataclass(frozen=True, slots=True)
class PlaceReport:
    """Where the `instance` goes (`ok`, `group`, `nodes`), hail's own words for it (`info`), and the candidates.

    `candidates` are best first, then the refused ones: all, or of very many pairs the likely best.
    `metric` is "score" or "lost-allocations"; with the latter `sizes` names the sizes that `lost_allocations` counts.
    `reason` says in one sentence why it goes nowhere.
    `notes` tell what hail does not look at although Ganeti does.
    """

    source: str
    cluster_name: str
    instance: Instance
    ok: bool
    info: str
    metric: str
    sizes: tuple[str, ...]
    group: str | None = None
    nodes: tuple[str, ...] = ()
    reason: str | None = None
    groups: tuple[GroupTrial, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    notes: tuple[str, ...] = ()
    snapshot: Snapshot | None = None

    @property
    def chosen(self) -> Candidate | None:
        """The candidate that is taken."""
        return next((item for item in self.candidates if self.ok and item.nodes == self.nodes), None)
