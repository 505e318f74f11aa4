"""Take live values into a policy: at the place where each is declared, and nothing else.

Each edit is proven before a file is written (`gpolicy.drift.proof`). What cannot be written is named with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from gpolicy.cluster.state import ClusterState
from gpolicy.drift.comparing import Drift, DriftReport
from gpolicy.drift.object_units import ObjectUnits
from gpolicy.drift.proof import Proof, look
from gpolicy.drift.tag_units import TagUnits
from gpolicy.drift.units import How, Unit
from gpolicy.drift.value_units import ValueUnits
from gpolicy.findings import Span
from gpolicy.fit.desired import Desired, resolve
from gpolicy.plan.change import MEMBERSHIP, NAME, TAGS, ChangeAction
from gpolicy.plan.part import Key, is_chosen
from gpolicy.policy.model import Policy
from gpolicy.policy.source_file import Pointer
from gpolicy.writing.draft import Draft, Place, UnwritableError

MOST_PROOFS: Final = 200
"""How often one run checks the policy; each costs as much as `gpolicy check`."""

_WAIVED: Final = "a waiver accepts it until {}: remove that first"
_NO_TIME: Final = f"after {MOST_PROOFS} checks it was not tried: run it again"


@dataclass(frozen=True, slots=True)
class Written:
    """Drift that was written into the policy: how, and where it stands now."""

    drift: Drift
    how: How
    span: Span


@dataclass(frozen=True, slots=True)
class NotWritten:
    """Drift that was to be written and was not, and why."""

    drift: Drift
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBack:
    """The outcome: `texts` are the new contents of files by name, `left` is the drift that remains.

    `changed_elsewhere` is what changes in other policies, which extend a base that was written to.
    """

    written: tuple[Written, ...] = ()
    not_written: tuple[NotWritten, ...] = ()
    left: tuple[Drift, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    changed_elsewhere: tuple[str, ...] = ()


def write_back(
    policy: Policy,
    state: ClusterState,
    report: DriftReport,
    *,
    selected: Sequence[str],
    today: date,
    in_bases: bool,
    others: Callable[[], Sequence[Policy]],
) -> WriteBack:
    """Return the texts of the policy's files with live values in place of the declared ones that drifted.

    `selected` are objects or values (OBJECT:PATH, globs; none: all). `others` returns the other policies that may take
    values from the same files; they must not change, but for what `in_bases` allows.
    """
    chosen = [item for item in report.drift if not selected or is_chosen(selected, item.object, item.path)]
    waived = [
        NotWritten(item.drift, _WAIVED.format(item.waiver.until))
        for item in report.accepted
        if selected and is_chosen(selected, item.drift.object, item.drift.path)
    ]
    if not chosen:
        return WriteBack(left=report.drift, not_written=tuple(waived))
    units = _units(policy, state, report.drift, chosen, in_bases=in_bases)
    proof = Proof(look(policy, state, today), state, today, others=others(), in_bases=in_bases)
    writing = _Writing(proof, Draft(policy.files))
    writing.write(units)
    by_key = {(item.object, item.path): item for item in report.drift}
    written = {key: found for key, found in writing.written.items() if key in by_key}
    return WriteBack(
        written=tuple(Written(by_key[key], *written[key]) for key in by_key if key in written),
        not_written=(
            *(NotWritten(by_key[key], writing.reasons[key]) for key in by_key if key in writing.reasons),
            *waived,
        ),
        left=tuple(item for key, item in by_key.items() if key not in written),
        texts=writing.draft.texts,
        changed_elsewhere=writing.changed_elsewhere,
    )


def _units(
    policy: Policy, state: ClusterState, drift: Sequence[Drift], chosen: Sequence[Drift], *, in_bases: bool
) -> list[Unit]:
    desired: Desired = resolve(policy, state)
    objects = ObjectUnits(policy, state, desired)
    missing = {item.object for item in drift if item.path == NAME and item.action is ChangeAction.CREATE}
    units = [objects.group(item, drift) for item in chosen if item.path == NAME]
    done = frozenset[Key]().union(*(unit.keys for unit in units))
    rest = [item for item in chosen if (item.object, item.path) not in done]
    units += [
        Unit(frozenset({(item.object, item.path)}), reason="the cluster has no such group")
        for item in rest
        if item.object in missing
    ]
    rest = [item for item in rest if item.object not in missing]
    units += objects.moves([item for item in rest if item.path == MEMBERSHIP])
    units += TagUnits(policy, state, desired).units([item for item in rest if item.path == TAGS])
    values = [item for item in rest if item.path not in (MEMBERSHIP, TAGS)]
    return [*units, *ValueUnits(policy, desired, in_bases=in_bases).units(values)]


class _Writing:
    """Writes units into a draft: many at once, or halves of them where the proof fails, down to single ones.

    One may be possible only after another (a least value above the old greatest one), or only with all of its object.
    So those that failed are tried again while others succeed.
    """

    def __init__(self, proof: Proof, draft: Draft) -> None:
        self.draft = draft
        self.written: dict[Key, tuple[How, Span]] = {}
        self.reasons: dict[Key, str] = {}
        self.changed_elsewhere: tuple[str, ...] = ()
        self._proof = proof
        self._proofs = 0
        self._keys: frozenset[Key] = frozenset()
        self._may_change: frozenset[Key] = frozenset()
        self._places: dict[Key, tuple[How, Place, Pointer]] = {}

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
        self.written = {
            key: (how, self.draft.document(place).value_span(pointer))
            for key, (how, place, pointer) in self._places.items()
        }
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
        places: dict[Key, tuple[How, Place, Pointer]] = {}
        keys, may_change = self._keys, self._may_change
        for unit in units:
            attempt = unit.attempts[number]
            try:
                place, pointer = attempt.write(draft)
            except UnwritableError as error:
                return str(error)
            keys |= unit.keys
            may_change |= attempt.may_change
            places |= dict.fromkeys(unit.keys, (attempt.how, place, pointer))
        self._proofs += 1
        fault = self._proof.fault(draft, keys, may_change)
        if not fault:
            self.draft, self._keys, self._may_change = draft, keys, may_change
            self._places |= places
            self.changed_elsewhere = self._proof.changed_elsewhere
        return fault
