"""The answer to a request for a placement: the instance, every candidate, the groups."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpolicy.allocator.cluster_data import Instance
from gpolicy.allocator.ghc_numbers import fixed
from gpolicy.analysis.basis import StateReport
from gpolicy.analysis.binding import Cause


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, or a primary and secondary, and the result of trying it.

    `reason` is why it is refused (the key of `gpolicy.analysis.binding.Cause`), `detail` gives the numbers,
    `htools_reason` is hail's name of it; all None if `ok`. `score` is the cluster score after the placement (None on
    dedicated nodes), `lost_allocations` the numbers of instances of each size that would no longer fit, the size with
    the biggest disk first (None on ordinary nodes). `disk_left` (MiB) is the sum that its nodes have left. Refused
    candidates have a score if it was computed.
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

    def refused(self, cause: Cause, detail: str) -> Candidate:
        """Return the candidate refused for a reason that hail does not know."""
        return replace(self, ok=False, reason=cause.key, explanation=cause.sentence, detail=detail)

    @property
    def shown_score(self) -> str:
        """The score as htools prints it, or a dash."""
        return "-" if self.score is None else fixed(self.score, 8)


@dataclass(frozen=True, slots=True)
class GroupTrial:
    """The result for one group: hail's own sentence, or why the group was not tried."""

    group: str
    alloc_policy: str
    tried: bool
    message: str


@dataclass(frozen=True, slots=True)
class Instead:
    """What fits in place of what was asked for: the words to change in the request, and where it then goes."""

    words: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlaceReport(StateReport):
    """Where the `instance` goes (`ok`, `group`, `nodes`), hail's own words for it (`info`), and the candidates.

    `candidates` are the possible ones, the best first, then the refused ones; of very many pairs only those that are
    likely the best. `metric` is "score" or "lost-allocations"; with the latter `sizes` names the sizes that
    `lost_allocations` counts. `reason` is a sentence that tells why no candidate takes it. `objections` tell
    why Ganeti would refuse what hail accepts. `instead` is what would fit, if that was asked for and the instance goes
    nowhere; None if it was not. `what_if` says what the answer leaves out of account on request.
    """

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
    objections: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    instead: tuple[Instead, ...] | None = None

    @property
    def accepted(self) -> bool:
        """Whether both hail and Ganeti take it."""
        return self.ok and not self.objections

    @property
    def chosen(self) -> Candidate | None:
        """The chosen candidate."""
        return next((item for item in self.candidates if self.ok and item.nodes == self.nodes), None)
