"""The order in which nodes are rebooted or upgraded so that nothing stops, as values. Disk is MiB."""

from __future__ import annotations

from dataclasses import dataclass

from gpolicy.analysis.basis import StateReport
from gpolicy.cluster.state import ClusterState
from gpolicy.evacuate.evacuation import EvacuationRequest, Job
from gpolicy.remedy.commands import Absence


@dataclass(frozen=True, slots=True, kw_only=True)
class HaltedInstance:
    """An instance that must be shut down with its `node`, and why."""

    instance: str
    template: str
    node: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave(Absence):
    """Nodes that go together: `out` clears them, then they are rebooted, and `back` fills them.

    `halted` is shut down before, and started after. `waits` says why the first of them does not go in the wave before.
    `before` is the cluster before the wave, `cleared` before the moves back, `returned` after them.
    """

    out: tuple[Job, ...]
    back: tuple[Job, ...]
    halted: tuple[HaltedInstance, ...]
    waits: str
    before: ClusterState
    cleared: ClusterState
    returned: ClusterState

    @property
    def moves(self) -> tuple[Job, ...]:
        """The moves out and back."""
        return (*self.out, *self.back)

    @property
    def copied(self) -> int:
        """The disk that the moves copy: all of them out."""
        return sum(job.copied for job in self.out)


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What migration tags say of an upgrade: instances may go from nodes tagged `old` to `new` ones, not back."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WavesReport(StateReport):
    """In which waves the nodes `asked` for go, and what stops.

    `upgrade` is what the migration tags say of one; None: the nodes are rebooted. `hint` says
    what to do if they are to be upgraded nevertheless. `hroller` is the number of groups
    that hroller makes of the same nodes, None if it makes none, for the reason `hroller_fails`. `halted_softly` is how
    many instances stop if soft errors are ignored; None where that is no question. `exhaustive`: the search was not
    ended early.
    """

    asked: EvacuationRequest
    waves: tuple[Wave, ...]
    upgrade: Upgrade | None
    hint: str
    master: str
    hroller: int | None
    hroller_fails: str
    halted_softly: int | None
    exhaustive: bool
    notes: tuple[str, ...]

    @property
    def leaving(self) -> tuple[str, ...]:
        """The nodes of all waves."""
        return tuple(name for wave in self.waves for name in wave.nodes)

    @property
    def halted(self) -> tuple[HaltedInstance, ...]:
        """What must be shut down, in all waves."""
        return tuple(item for wave in self.waves for item in wave.halted)

    @property
    def copied(self) -> int:
        """The disk that all moves copy."""
        return sum(wave.copied for wave in self.waves)
