"""Write units of drift into a draft, as many as possible, and prove each step before the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gpolicy.drift.proof import Proof
from gpolicy.plan.part import Key
from gpolicy.writing.draft import Draft, UnwritableError, ValuePlace

MOST_PROOFS: Final = 200
"""How often one run checks the policy; each costs as much as `gpolicy check`."""

_NO_TIME: Final = f"after {MOST_PROOFS} checks it was not tried: run it again"


class How(StrEnum):
    """How the live state was written into the policy."""

    IN_PLACE = "in-place"  # where the policy declares it
    OVERRIDE = "override"  # in the document of the object alone, over what that takes from others


@dataclass(frozen=True, slots=True)
class WayToWrite:
    """One way to write a unit: `write` edits a draft and returns the place of what it wrote.

    `may_change` are the declared values that this changes, by the labels of their documents.
    """

    how: How
    write: Callable[[Draft], ValuePlace]
    may_change: frozenset[Key]


@dataclass(frozen=True, slots=True)
class Unit:
    """Drift that is written together, or not at all.

    The attempts are tried in their order, then the `parts` each for itself. Without either, `reason` says why.
    """

    keys: frozenset[Key]
    attempts: tuple[WayToWrite, ...] = ()
    parts: tuple[Unit, ...] = ()
    reason: str = ""


class UnitWriter:
    """Writes units into a draft: many at once, or halves of them where the proof fails, down to single ones.

    One may be possible only after another (a least value above the old greatest one), or only with all of its object.
    So those that failed are tried again while others succeed.
    """

    def __init__(self, proof: Proof, draft: Draft) -> None:
        self.draft = draft
        self.written: dict[Key, tuple[How, ValuePlace]] = {}
        self.reasons: dict[Key, str] = {}
        self.changed_elsewhere: tuple[str, ...] = ()
        self._proof = proof
        self._proofs = 0
        self._keys: frozenset[Key] = frozenset()
        self._may_change: frozenset[Key] = frozenset()

    def write(self, units: Sequence[Unit]) -> None:
        """Write what can be written of the units."""
        self.reasons = {key: unit.reason for unit in units if not unit.attempts for key in unit.keys}
        todo = [unit for unit in units if unit.attempts]
        known: frozenset[Key] | None = None
        while todo and known != self._keys:
            known = self._keys
            failed = self._halves(todo)
            together: dict[str, list[Unit]] = {}
            for unit in failed:
                together.setdefault(min(unit.keys)[0], []).append(unit)
            todo = [unit for part in together.values() if len(part) == 1 or self._try(part, 0) for unit in part]
        self.reasons = {key: reason for key, reason in self.reasons.items() if key not in self.written}

    def _halves(self, units: Sequence[Unit]) -> list[Unit]:
        """Write units, as many as possible; return those that failed."""
        if len(units) == 1:
            return self._one(units[0])
        if not self._try(units, 0):
            return []
        middle = len(units) // 2
        return [*self._halves(units[:middle]), *self._halves(units[middle:])]

    def _one(self, unit: Unit) -> list[Unit]:
        """Write one unit by the first attempt that succeeds, else its parts; return what failed."""
        for number in range(len(unit.attempts)):
            fault = self._try([unit], number)
            if not fault:
                return []
            self.reasons |= dict.fromkeys(unit.keys, fault)
        failed = [item for part in unit.parts for item in self._one(part)]
        return failed if len(failed) < len(unit.parts) else [unit]

    def _try(self, units: Sequence[Unit], number: int) -> str:
        """Write units by their attempts of this number, all or none; return why none was written."""
        if self._proofs >= MOST_PROOFS:
            return _NO_TIME
        draft = self.draft.copy()
        places: dict[Key, tuple[How, ValuePlace]] = {}
        keys, may_change = self._keys, self._may_change
        for unit in units:
            attempt = unit.attempts[number]
            try:
                places |= dict.fromkeys(unit.keys, (attempt.how, attempt.write(draft)))
            except UnwritableError as error:
                return str(error)
            keys |= unit.keys
            may_change |= attempt.may_change
        self._proofs += 1
        fault = self._proof.fault(draft, keys, may_change)
        if not fault:
            self.draft, self._keys, self._may_change = draft, keys, may_change
            self.written |= places
            self.changed_elsewhere = self._proof.changed_elsewhere
        return fault
