"""Take live values into a policy: at the place where each is declared, and nothing else.

Each edit is proven before a file is written (`gpolicy.drift.unit_writer`). What cannot be written is named with
its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

from gpolicy.checking.settings_tables import settings_for
from gpolicy.cluster.state import ClusterState
from gpolicy.drift.comparing import Drift, DriftReport, find_drift
from gpolicy.drift.unit_writer import How, Proof, Unit, UnitWriter, look
from gpolicy.drift.units import ObjectUnits, TagUnits, ValueUnits
from gpolicy.findings import Span
from gpolicy.plan.changes import MEMBERSHIP, NAME, TAGS, ChangeAction, Key, is_chosen
from gpolicy.policy.loading import load_policy
from gpolicy.policy.model import Policy
from gpolicy.resolve.desired import resolve
from gpolicy.writing.value_edits import Draft, ValuePlace

_WAIVED: Final = "a waiver accepts it until {}: remove that first"


@dataclass(frozen=True, slots=True)
class WrittenDrift:
    """Drift that was written into the policy: how, and where it stands now."""

    drift: Drift
    how: How
    span: Span


@dataclass(frozen=True, slots=True)
class UnwrittenDrift:
    """Drift that was to be written and was not, and why."""

    drift: Drift
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBack:
    """The outcome: `texts` are the new contents of files by name, `left` is the drift that remains.

    `changed_elsewhere` is what changes in other policies, which extend a base that was written to.
    """

    written: tuple[WrittenDrift, ...] = ()
    not_written: tuple[UnwrittenDrift, ...] = ()
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
        UnwrittenDrift(item.drift, _WAIVED.format(item.waiver.until))
        for item in report.accepted
        if selected and is_chosen(selected, item.drift.object, item.drift.path)
    ]
    if not chosen:
        return WriteBack(left=report.drift, not_written=tuple(waived))
    by_key = {item.key: item for item in report.drift}
    wanted = {item.key for item in chosen}
    neighbours, now, texts = others(), policy, dict[str, str]()
    places: dict[Key, tuple[How, ValuePlace]] = {}
    elsewhere: dict[str, None] = {}
    while True:  # what was written can make room for more: a base that others use no longer
        left = _drift_of(now, state, today)
        units = _units(now, state, left, [item for item in left if item.key in wanted], in_bases=in_bases)
        proof = Proof(look(now, state, today), state, today, others=neighbours, in_bases=in_bases)
        writer = UnitWriter(proof, Draft(now.files))
        writer.write(units)
        places |= writer.written
        elsewhere |= dict.fromkeys(writer.changed_elsewhere)
        if not writer.written:
            break
        texts |= writer.draft.texts
        now = load_policy(policy.root or Path(), texts)
        if not writer.reasons:
            break
    written: list[WrittenDrift] = []
    for key in [key for key in by_key if key in places]:
        how, ((file, number), pointer) = places[key]
        written.append(WrittenDrift(by_key[key], how, now.files[file].documents[number].value_span(pointer)))
    return WriteBack(
        written=tuple(written),
        not_written=(
            *(UnwrittenDrift(by_key[key], writer.reasons[key]) for key in by_key if key in writer.reasons),
            *waived,
        ),
        left=_drift_of(now, state, today),
        texts=texts,
        changed_elsewhere=tuple(elsewhere),
    )


def _drift_of(policy: Policy, state: ClusterState, today: date) -> tuple[Drift, ...]:
    return find_drift(policy, state, today=today, settings=settings_for(policy.root or Path())).drift


def _units(
    policy: Policy, state: ClusterState, drift: Sequence[Drift], chosen: Sequence[Drift], *, in_bases: bool
) -> list[Unit]:
    desired = resolve(policy, state)
    objects = ObjectUnits(policy, state, desired)
    missing = {item.object for item in drift if item.path == NAME and item.action is ChangeAction.CREATE}
    units = [objects.group(item, drift) for item in chosen if item.path == NAME]
    done = frozenset[Key]().union(*(unit.keys for unit in units))
    rest = [item for item in chosen if item.key not in done]
    gone = [item for item in rest if item.object in missing]
    units += [Unit(frozenset({item.key}), reason="the cluster has no such group") for item in gone]
    rest = [item for item in rest if item.object not in missing]
    units += objects.moves([item for item in rest if item.path == MEMBERSHIP])
    units += TagUnits(policy, state, desired).units([item for item in rest if item.path == TAGS])
    values = [item for item in rest if item.path not in (MEMBERSHIP, TAGS)]
    return [*units, *ValueUnits(policy, desired, in_bases=in_bases).units(values)]
