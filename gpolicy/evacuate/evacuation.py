"""An evacuation as values: what is asked, the requests to hail, the moves, and what stays. Disk is MiB.

And the order in which nodes are rebooted or upgraded so that nothing stops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gpolicy.allocator.evacuation import EvacuationMode
from gpolicy.analysis.basis import StateReport
from gpolicy.analysis.binding import Cause
from gpolicy.analysis.place_report import Candidate
from gpolicy.cluster.state import ClusterState
from gpolicy.remedy.commands import Absence
from gpolicy.remedy.saved_remedy import CommandWords, Move

_SOFT: Final = {item.key for item in (Cause.TAGS, Cause.RESERVE, Cause.VCPU_RATIO, Cause.SPINDLE_RATIO)}


@dataclass(frozen=True, slots=True, kw_only=True)
class EvacuationRequest:
    """What is to be emptied: `nodes` (a list with commas, of globs) or a whole `group`.

    Instances stay in their group, unless a group is emptied or `targets` names other groups. With `mode` primary-only
    those leave that run on the nodes, with secondary-only those that are mirrored there. `ignore_soft_errors`: as
    `gnt-node evacuate --ignore-soft-errors`, against exclusion tags, ratios and memory reserved for N+1. With
    `resource_model` what hv_state and disk_state declare goes before measured figures, which no command of Ganeti does.
    `rate` is how many MiB of disk a job copies a second.
    """

    nodes: str | None = None
    group: str | None = None
    targets: tuple[str, ...] = ()
    mode: EvacuationMode = EvacuationMode.ALL
    ignore_soft_errors: bool = False
    resource_model: bool = False
    rate: int = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestToHail:
    """One request to hail, and its own words on it (`info`).

    `mode` is that of node-evacuate, None for change-group; `targets` are the groups of change-group, empty: any other.
    `drained` are nodes to be emptied that hail is told are drained, since it would use them otherwise: no instance of
    the request is there. `by_ganeti` is the command with which Ganeti itself asks the same, None if there is none.
    """

    mode: EvacuationMode | None
    instances: tuple[str, ...]
    targets: tuple[str, ...]
    drained: tuple[str, ...]
    info: str
    by_ganeti: tuple[str, ...] | None

    @property
    def kind(self) -> str:
        """The type of the request, as hail calls it."""
        return "change-group" if self.mode is None else "node-evacuate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job(Move):
    """One job: an instance that moves from its nodes to others.

    `copied` is the disk that goes over the network. `does` says what each command does.
    """

    template: str
    copied: int
    does: CommandWords

    @property
    def steps(self) -> tuple[tuple[str, CommandWords], ...]:
        """What each command does, and its words."""
        return tuple(zip(self.does, (command.argv or () for command in self.commands), strict=True))


def seconds_of(jobs: Iterable[Job], rate: int) -> float:
    """Return the time to copy the disk of jobs at `rate` MiB a second for each, one set after the other."""
    slowest: dict[int, int] = {}
    for job in jobs:
        slowest[job.job_set] = max(job.copied, slowest.get(job.job_set, 0))
    return sum(slowest.values()) / rate


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedInstance(Job):
    """A job of an evacuation. `request` is the place of its request, from 1.

    Jobs of one `job_set` touch no node `touched` by another of them, so they may run side by side. `candidates` are all
    that were possible, the best first, then the refused ones; None if they were too many to list.
    """

    request: int
    group: str
    touched: frozenset[str]
    candidates: tuple[Candidate, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StayingInstance:
    """An instance that stays on its nodes; `reason` is hail's. `candidates` were refused, each for its own reason.

    `request` is the place of the request, from 1.
    """

    instance: str
    template: str
    request: int
    nodes: tuple[str, ...]
    reason: str
    candidates: tuple[Candidate, ...] | None = ()


@dataclass(frozen=True, slots=True)
class OtherRequest:
    """What comes of the same request put otherwise: the jobs, and what stays."""

    leaving: tuple[str, ...]
    moved: tuple[MovedInstance, ...]
    stays: tuple[StayingInstance, ...]

    @property
    def copied(self) -> int:
        """The disk that all moves copy."""
        return sum(item.copied for item in self.moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvacuationReport(StateReport):
    """How `leaving` nodes (of `group`, if it is emptied as a whole) are emptied, as `asked`.

    `objections` tell why Ganeti would refuse what hail accepts. `exhaustive`: none stays for lack of time.
    `short_before` and `short_after` are the nodes that have too little memory to take over the instances that they
    mirror (N+1). `for_a_reboot` is the same of what runs on the nodes only, where all was asked for; `in_turn` the same
    for each of several nodes alone, as when they are rebooted one after the other; `without_soft_errors` the same if
    soft errors are ignored, where they keep instances. `breaks` says what the moves break, where soft errors are
    ignored; `master` is the master node, if it is to be emptied.
    """

    leaving: tuple[str, ...]
    asked: EvacuationRequest
    group: str | None
    requests: tuple[RequestToHail, ...]
    moved: tuple[MovedInstance, ...]
    stays: tuple[StayingInstance, ...]
    short_before: tuple[str, ...]
    short_after: tuple[str, ...]
    objections: tuple[str, ...] = ()
    exhaustive: bool = True
    notes: tuple[str, ...] = ()
    for_a_reboot: OtherRequest | None = None
    in_turn: tuple[OtherRequest, ...] = ()
    without_soft_errors: OtherRequest | None = None
    breaks: tuple[str, ...] = ()
    master: str = ""

    @property
    def to_other_nodes(self) -> bool:
        """Whether instances stay in their group."""
        return self.group is None and not self.asked.targets

    @property
    def kept_by_soft_errors(self) -> bool:
        """Whether an instance may stay for nothing but a soft error."""
        told = [item.candidates for item in self.stays]
        soft = any(of is None or any(one.reason in _SOFT for one in of) for of in told)
        return soft and not self.asked.ignore_soft_errors

    @property
    def copied(self) -> int:
        """The disk that all moves copy."""
        return sum(item.copied for item in self.moved)

    @property
    def seconds(self) -> float:
        """The time to copy it, one set after the other."""
        return seconds_of(self.moved, self.asked.rate)

    @property
    def job_sets(self) -> int:
        """The number of sets of jobs."""
        return max((item.job_set for item in self.moved), default=0)


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
