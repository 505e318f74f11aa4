"""The order in which nodes are rebooted or upgraded so that nothing stops, as values. Disk is MiB, time seconds."""

from __future__ import annotations

from dataclasses import dataclass

from gpolicy.analysis.basis import StateReport
from gpolicy.cluster.state import ClusterState
from gpolicy.evacuate.evacuation import EvacuationRequest
from gpolicy.remedy.saved_remedy import Move, Words


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveMove(Move):
    """One job of a wave. `copied` is the disk that goes over the network; `does` says what each command does."""

    template: str
    copied: int
    does: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class HaltedInstance:
    """An instance that must be shut down with its `node`, and why. `soft`: only soft errors stand against a move."""

    instance: str
    template: str
    node: str
    reason: str
    soft: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Nodes that go together: `out` clears them, then they are rebooted, and `back` fills them.

    `halted` is shut down before, and started after. `alone` says why a node goes alone; empty where several go.
    `before` is the cluster before the wave, `cleared` before the moves back, `returned` after them.
    """

    nodes: tuple[str, ...]
    out: tuple[WaveMove, ...]
    back: tuple[WaveMove, ...]
    halted: tuple[HaltedInstance, ...]
    alone: str
    before: ClusterState
    cleared: ClusterState
    returned: ClusterState

    @property
    def moves(self) -> tuple[WaveMove, ...]:
        """The moves out and back."""
        return (*self.out, *self.back)

    @property
    def copied(self) -> int:
        """The disk that all moves copy."""
        return sum(move.copied for move in self.moves)

    def seconds(self, rate: int) -> float:
        """Return the time to copy it at `rate` MiB a second for each job, one set after the other."""
        slowest: dict[tuple[bool, int], int] = {}
        for place, move in enumerate(self.moves):
            key = place < len(self.out), move.job_set
            slowest[key] = max(move.copied, slowest.get(key, 0))
        return sum(slowest.values()) / rate


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What migration tags say of an upgrade: instances may go from nodes tagged `old` to `new` ones, not back."""

    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WavesReport(StateReport):
    """In which waves the nodes `asked` for go, and what stops.

    `upgrade` is what the migration tags say of one; None: the nodes are rebooted. `hroller` is the number of groups
    that hroller makes of the same nodes, None if it makes none, for the reason `hroller_fails`; `apart` says why nodes
    of one of its groups do not go together. `halted_softly` is how many instances stop if soft errors are ignored; None
    where that is no question. `exhaustive`: the search was not ended early.
    """

    asked: EvacuationRequest
    waves: tuple[Wave, ...]
    upgrade: Upgrade | None
    master: str
    hroller: int | None
    hroller_fails: str
    apart: tuple[str, ...]
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

    @property
    def seconds(self) -> float:
        """The time to copy it."""
        return sum(wave.seconds(self.asked.rate) for wave in self.waves)
