"""Take live values into a policy: at the place where each is declared, and nothing else.

As many units of drift as possible are written into a draft, and each step is proven before the next: loaded again, the
policy says what it said, less the drift that was to be written. What cannot be written is named with its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from gpolicy.checking.settings_tables import settings_for
from gpolicy.cluster.state import ClusterState
from gpolicy.drift.comparing import Drift, DriftReport, find_drift
from gpolicy.drift.units import How, ObjectUnits, TagUnits, Unit, ValueUnits
from gpolicy.errors import GpolicyError
from gpolicy.findings import Finding, Severity, Span, told, values_of
from gpolicy.forecast.bridge import check_by_settings
from gpolicy.opening import real_path
from gpolicy.plan.changes import MEMBERSHIP, NAME, TAGS, ChangeAction, ChangeKey, key_of
from gpolicy.plan.diff import Difference, diff
from gpolicy.plan.part import check_words, is_chosen
from gpolicy.policy.files import policy_files
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_files, load_policy
from gpolicy.policy.model import GroupPolicy, NodeSetPolicy
from gpolicy.printable import some
from gpolicy.resolve.desired import Desired, resolve
from gpolicy.writing.value_edits import Draft, UnwritableError, ValuePlace

Said = Mapping[ChangeKey, object]
"""What a policy says, by the label of a document's object and the path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """A policy as it was loaded, how it differs from the cluster, and what check finds.

    `findings` are errors beside the cluster, and errors and warnings of the policy alone.
    """

    policy: Policy
    difference: Difference
    findings: tuple[Finding, ...]

    @property
    def drift(self) -> frozenset[ChangeKey]:
        """The keys of all differences, and of all that cannot be compared."""
        not_compared = ((item.object, item.path) for item in self.difference.not_compared)
        return frozenset((*map(key_of, self.difference.changes), *not_compared))


def look(policy: Policy, state: ClusterState, today: date) -> Looked:
    """Compare and check a policy."""
    beside = check_by_settings(policy, state, today=today).findings
    alone = check_by_settings(policy, None, today=today).findings
    bad = [item for item in beside if item.severity is Severity.ERROR]
    bad += [item for item in alone if item.severity in (Severity.ERROR, Severity.WARNING)]
    return Looked(policy=policy, difference=diff(policy, state), findings=tuple(bad))


class Proof:
    """Judges drafts of a policy. `others` are the other policies of the repository, which may read the same files.

    With `in_bases` a draft may change what takes its values from an edited base; `changed_elsewhere` are those.
    """

    def __init__(
        self, before: Looked, state: ClusterState, today: date, *, others: Sequence[Policy], in_bases: bool
    ) -> None:
        self._first, self._state, self._today = before, state, today
        self._others, self._in_bases = others, in_bases
        self.changed_elsewhere: tuple[str, ...] = ()

    def fault(self, draft: Draft, keys: frozenset[ChangeKey], may_change: frozenset[ChangeKey]) -> str:
        """Return what is wrong with a draft that writes the drift `keys`; nothing if it does that and no more."""
        if stray := draft.stray_change():
            return stray
        try:
            root = self._first.policy.root or Path()
            policy = load_files([*policy_files(root), *map(Path, draft.created)], root, draft.texts)
        except GpolicyError as error:
            return error.message
        after = look(policy, self._state, self._today)
        self.changed_elsewhere, fault = self._elsewhere(draft)
        return (
            _worse(self._first.findings, after.findings)
            or ("" if self._in_bases else self._other_change(after, keys, may_change))
            or self._other_drift(after, keys)
            or fault
        )

    def _other_change(self, after: Looked, keys: frozenset[ChangeKey], may_change: frozenset[ChangeKey]) -> str:
        before, now = (_said_of_nodes(item.difference.desired) for item in (self._first, after))
        changed = _without(_changes(_said(self._first.policy), _said(after.policy)), may_change)
        changed |= _without(_changes(before, now), keys)
        return f"{_named(changed)} would change as well" if changed else ""

    def _other_drift(self, after: Looked, keys: frozenset[ChangeKey]) -> str:
        if left := after.drift & keys:
            return f"{_named(left)} would still differ"
        if self._in_bases:
            return ""
        if more := after.drift - self._first.drift:
            return f"{_named(more)} would differ then"
        gone = self._first.drift - after.drift - keys
        return f"{_named(gone)} would be written as well" if gone else ""

    def _elsewhere(self, draft: Draft) -> tuple[tuple[str, ...], str]:
        """Return what changes in other policies, and that as a fault unless it may be."""
        edited = {real_path(name): text for name, text in draft.texts.items()}
        changed: list[str] = []
        for other in self._others:
            texts = {name: edited[real_path(name)] for name in other.files if real_path(name) in edited}
            if texts:
                then = load_policy(other.root or Path(), texts)
                keys = _changes(_said(other), _said(then))
                changed += [f"{_named(keys)} of {other.root}"] if keys else []
                if _errors(then) > _errors(other):
                    return (), f"{other.root} would have more errors"
        if changed and not self._in_bases:
            return (), f"{some(changed, 2)} would change as well: use --in-bases if that is meant"
        return tuple(changed), ""


def _without(keys: Iterable[ChangeKey], allowed: frozenset[ChangeKey]) -> frozenset[ChangeKey]:
    """Return the keys that are not allowed; (LABEL, ()) allows all of an object."""
    return frozenset(key for key in keys if key not in allowed and (key[0], ()) not in allowed)


def _errors(policy: Policy) -> int:
    return sum(item.severity is Severity.ERROR for item in policy.findings)


def _worse(before: Sequence[Finding], after: Sequence[Finding]) -> str:
    """Return the first finding of a kind of which there are more than before."""
    counts = Counter((item.key, item.severity) for item in told(after))
    counts.subtract((item.key, item.severity) for item in told(before))
    known = {(item.key, item.message) for item in told(before)}
    more = [item for item in told(after) if counts[item.key, item.severity] > 0]
    new = next((item for item in more if (item.key, item.message) not in known), more[0] if more else None)
    return f"check would find {new.code} {new.name}: {new.message}" if new else ""


def _changes(before: Said, after: Said) -> frozenset[ChangeKey]:
    return frozenset(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))


def _said(policy: Policy) -> Said:
    said: dict[ChangeKey, object] = {("cluster", TAGS): values_of(policy.cluster_tags)}
    for item in policy.objects:
        said |= {(item.label, path): leaf.value for path, leaf in item.leaves.items()}
        if item.label != "cluster":
            said[item.label, TAGS] = values_of(item.tags)
        if isinstance(item, GroupPolicy):
            said[item.label, ("nodes",)] = values_of(item.nodes)
            said[item.label, ("removed",)] = item.removed is not None
        if isinstance(item, NodeSetPolicy):
            said[item.label, ("nodes",)] = values_of(item.nodes)
            said[item.label, ("groups",)] = values_of(item.groups)
    return said


def _said_of_nodes(desired: Desired) -> Said:
    said: dict[ChangeKey, object] = {}
    for name, node in desired.nodes.items():
        said |= {(f"node/{name}", path): leaf.value for path, leaf in node.leaves.items()}
        said[f"node/{name}", TAGS] = None if node.tags is None else frozenset(node.tags)
        said[f"node/{name}", MEMBERSHIP] = node.group.value if node.group else None
    return said


def _named(keys: Iterable[ChangeKey]) -> str:
    return some(sorted(f"{name} {'.'.join(path)}" for name, path in keys), 3)


MOST_PROOFS = 200
"""How often one run checks the policy; each costs as much as `gpolicy check`."""

_NO_TIME = f"after {MOST_PROOFS} checks it was not tried: run it again"


class UnitWriter:
    """Writes units into a draft: many at once, or halves of them where the proof fails, down to single ones.

    One may be possible only after another (a least value above the old greatest one), or only with all of its object.
    So those that failed are tried again while others succeed.
    """

    def __init__(self, proof: Proof, draft: Draft) -> None:
        self.draft = draft
        self.written: dict[ChangeKey, tuple[How, ValuePlace]] = {}
        self.reasons: dict[ChangeKey, str] = {}
        self.changed_elsewhere: tuple[str, ...] = ()
        self._proof = proof
        self._proofs = 0
        self._keys: frozenset[ChangeKey] = frozenset()
        self._may_change: frozenset[ChangeKey] = frozenset()

    def write(self, units: Sequence[Unit]) -> None:
        """Write what can be written of the units."""
        self.reasons = {key: unit.reason for unit in units if not unit.attempts for key in unit.keys}
        todo = [unit for unit in units if unit.attempts]
        known: frozenset[ChangeKey] | None = None
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
        places: dict[ChangeKey, tuple[How, ValuePlace]] = {}
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
    selected: Sequence[str] = (),
    today: date,
    in_bases: bool = False,
    others: Callable[[], Sequence[Policy]] = tuple,
) -> WriteBack:
    """Return the texts of the policy's files with live values in place of the declared ones that drifted.

    `selected` are objects or values (OBJECT:PATH, globs; none: all). `others` returns the other policies that may take
    values from the same files; they must not change, but for what `in_bases` allows. By default none is known, and a
    base that is written to may change them: `lambda: other_policies(path)` gives those beside the policy at `path`.
    Raise RequestError for a word of `selected` that nothing has. `write_texts` writes the texts.
    """
    check_words("select", selected, policy, state)
    chosen = [item for item in report.drift if not selected or is_chosen(selected, item.object, item.path)]
    waived = [
        UnwrittenDrift(item.drift, f"a waiver accepts it until {item.waiver.until}: remove that first")
        for item in report.accepted
        if selected and is_chosen(selected, item.drift.object, item.drift.path)
    ]
    if not chosen:
        return WriteBack(left=report.drift, not_written=tuple(waived))
    by_key = {item.key: item for item in report.drift}
    wanted = {item.key for item in chosen}
    neighbours, now, texts = others(), policy, dict[str, str]()
    places: dict[ChangeKey, tuple[How, ValuePlace]] = {}
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
    done = frozenset[ChangeKey]().union(*(unit.keys for unit in units))
    rest = [item for item in chosen if item.key not in done]
    gone = [item for item in rest if item.object in missing]
    units += [Unit(frozenset({item.key}), reason="the cluster has no such group") for item in gone]
    rest = [item for item in rest if item.object not in missing]
    units += objects.moves([item for item in rest if item.path == MEMBERSHIP])
    units += TagUnits(policy, state, desired).units([item for item in rest if item.path == TAGS])
    values = [item for item in rest if item.path not in (MEMBERSHIP, TAGS)]
    return [*units, *ValueUnits(policy, desired, in_bases=in_bases).units(values)]
