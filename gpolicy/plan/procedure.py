"""Steps for one cluster, with what they rest on: what apply carries out, be it a plan or a remedy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from gpolicy.cluster.state import Snapshot, Unreadable
from gpolicy.plan.change import NODES
from gpolicy.plan.contents import Observed
from gpolicy.plan.effects import Effect
from gpolicy.plan.step import Step
from gpolicy.provenance import UNKNOWN, Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """The steps, and the objects that they touch as they were read.

    `gaps` is what the source does not show of any object. `cluster_uuid` is None where the source does not show it.
    `digest` is over the file that the steps were read from, byte by byte; `signer` is who signed it.
    """

    noun: ClassVar[str]
    """What people call it."""

    cluster: str
    cluster_uuid: str | None = None
    source: str
    version: str
    observed: dict[str, Observed] = field(default_factory=dict)
    gaps: tuple[Unreadable, ...] = ()
    steps: tuple[Step, ...] = ()
    notes: tuple[str, ...] = ()
    snapshot: Snapshot | None = None
    provenance: Provenance = UNKNOWN
    digest: str = ""
    signer: str | None = None

    @property
    def outcome(self) -> tuple[Effect, ...]:
        """What the steps change in all: one effect for each leaf."""
        raise NotImplementedError

    @property
    def done_words(self) -> str:
        """What is there after the last step, in words."""
        raise NotImplementedError

    @property
    def moves_instances(self) -> bool:
        """Whether a step changes the nodes of an instance, so that a look has to show them."""
        return any(effect.path == NODES for step in self.steps for effect in step.command.effects)
