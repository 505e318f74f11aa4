"""Take live values into a policy: at the place where each is declared, and nothing else.

Each edit is proven before a file is written (`gpolicy.drift.proof`). What cannot be written is named with its reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

from gpolicy.checking.overrides import settings_of
from gpolicy.cluster.state import ClusterState
from gpolicy.drift.comparing import Drift, DriftReport, find_drift
from gpolicy.drift.object_units import ObjectUnits
from gpolicy.drift.proof import Proof, look
from gpolicy.drift.tag_units import TagUnits
from gpolicy.drift.unit_writer import UnitWriter
from gpolicy.drift.units import How, Unit
from gpolicy.drift.value_units import ValueUnits
from gpolicy.findings import Span
from gpolicy.fit.desired import Desired, resolve
from gpolicy.plan.change import MEMBERSHIP, NAME, TAGS, ChangeAction
from gpolicy.plan.part import Key, is_chosen
from gpolicy.policy.loading import load_policy
from gpolicy.policy.model import Policy
from gpolicy.writing.draft import Draft

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
    units = _units(policy, state, report.drift, chosen, in_bases=in_bases)
    proof = Proof(look(policy, state, today), state, today, others=others(), in_bases=in_bases)
    writing = UnitWriter(proof, Draft(policy.files))
    writing.write(units)
    by_key = {(item.object, item.path): item for item in report.drift}
    written = {key: found for key, found in writing.written.items() if key in by_key}
    return WriteBack(
        written=tuple(WrittenDrift(by_key[key], *written[key]) for key in by_key if key in written),
        not_written=(
            *(UnwrittenDrift(by_key[key], writing.reasons[key]) for key in by_key if key in writing.reasons),
            *waived,
        ),
        left=_drift_after(policy, state, today, writing.draft.texts)
        if in_bases
        else tuple(item for key, item in by_key.items() if key not in written),
        texts=writing.draft.texts,
        changed_elsewhere=writing.changed_elsewhere,
    )


def _drift_after(policy: Policy, state: ClusterState, today: date, texts: Mapping[str, str]) -> tuple[Drift, ...]:
    """Return what has drifted from the new texts: a base may have changed others of the same policy."""
    root = policy.root or Path()
    return find_drift(load_policy(root, texts), state, today=today, settings=settings_of(root)).drift


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
