"""Find drift: the comparison that a plan makes, seen from the other side, without what waivers accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

from gpolicy.checking.accepting import DRIFT, Waivers
from gpolicy.checking.catalogue import find_rule
from gpolicy.checking.rule import Hit
from gpolicy.checking.settings import DEFAULT, Settings
from gpolicy.cluster.state import ClusterState, Identity, Snapshot
from gpolicy.findings import Finding, Span
from gpolicy.ganeti.releases import unknown_release
from gpolicy.ganeti.vocabulary import Level, Path, Value
from gpolicy.plan.changes import Change, ChangeAction, ChangeKey, NotCompared
from gpolicy.plan.diff import diff
from gpolicy.plan.effects import identities
from gpolicy.policy.kinds import Policy, Waiver
from gpolicy.policy.model import INHERIT
from gpolicy.resolve.desired import Desired

UNKNOWN_SINCE = Identity()
"""The identity of an object that the cluster lacks, or whose source gives no date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """One value, name, membership or set of tags that differs from what the policy declares.

    `declared` is the own value that the policy asks for (None with `inherits`: none), `found` the cluster's own value
    (None: none); for a name or a membership the names, for tags all tags of the object. `since` is the last write to
    the object, whatever it wrote: what was found has held since then at least. Ganeti does not keep who wrote.
    """

    object: str
    path: Path
    action: ChangeAction
    declared: Value
    inherits: bool
    found: Value
    effective_declared: Value
    effective_found: Value
    since: Identity = UNKNOWN_SINCE
    span: Span | None = None

    @property
    def key(self) -> ChangeKey:
        """What tells it from other drift."""
        return self.object, self.path

    @property
    def name(self) -> str:
        """The path as reports write it."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class AcceptedDrift:
    """Drift that a valid waiver accepts."""

    drift: Drift
    waiver: Waiver


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """All drift of one cluster from one policy.

    `compared` is how many objects the policy says anything of: the cluster, groups, nodes. `not_compared` are declared
    values that the source cannot show: drift in them cannot be seen. `findings` are about waivers of drift that ended
    or accept nothing. `grounds` are those of the `notes` that say what the answer rests on.
    """

    cluster: str
    source: str
    compared: int
    drift: tuple[Drift, ...]
    accepted: tuple[AcceptedDrift, ...] = ()
    not_compared: tuple[NotCompared, ...] = ()
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    grounds: tuple[str, ...] = ()
    snapshot: Snapshot | None = None


def find_drift(
    policy: Policy, state: ClusterState, *, today: date, settings: Settings = DEFAULT, desired: Desired | None = None
) -> DriftReport:
    """Return the differences of `state` from `policy`. `today` decides which waivers are valid.

    Drift that the settings ignore is left out, with a note on its amount, so that nobody takes it for no drift.

    `policy` must have no errors and match the cluster: otherwise the comparison would be incomplete. `desired` is what
    it wants of this state, where that is known already.
    """
    difference = diff(policy, state, desired=desired)
    waivers, writes = _DriftWaivers(policy, today), identities(state)
    found: list[Drift] = []
    accepted: list[AcceptedDrift] = []
    ignored = 0
    for change in difference.changes:
        drift = _drift(change, writes, difference.desired)
        waiver = waivers.accepting(drift.object, drift.path, drift.span)
        if waiver is None and not settings.counts(DRIFT.finding("", drift.span)):
            ignored += 1
        elif waiver is None:
            found.append(drift)
        else:
            accepted.append(AcceptedDrift(drift, waiver))
    for item in difference.not_compared:  # a waiver of a hidden value is not unused
        waivers.accepting(item.object, item.path, item.span)
    release, left_out = unknown_release(state.software_version), ""
    if ignored:
        what = f"{ignored} value that drifted is" if ignored == 1 else f"{ignored} values that drifted are"
        left_out = f"{what} not shown: {settings.source or 'the settings'} ignores {DRIFT.code} {DRIFT.name} there"
    has_cluster = policy.cluster is not None or policy.cluster_tags is not None
    return DriftReport(
        cluster=state.name,
        source=state.source,
        compared=has_cluster + len(difference.desired.groups) + len(difference.desired.nodes),
        snapshot=state.snapshot,
        drift=tuple(found),
        accepted=tuple(accepted),
        not_compared=tuple(difference.not_compared),
        findings=tuple(waivers.findings()),
        notes=tuple(filter(None, (release, *state.notes, left_out))),
        grounds=tuple(filter(None, (release, left_out))),
    )


class _DriftWaivers:
    """The waivers that name the rule of drift; `gpolicy check` reports the others."""

    def __init__(self, policy: Policy, today: date) -> None:
        self._files = policy.paths
        named = [waiver for waiver in policy.waivers if find_rule(waiver.rule)[0] is DRIFT]
        self._each = [(waiver, Waivers([waiver], find_rule, today)) for waiver in named]

    def accepting(self, obj: str, path: Path, span: Span | None) -> Waiver | None:
        """Return the first waiver in force that accepts drift of a value; all that do so count as used."""
        finding = DRIFT.finding("", span)
        hits = (Hit(f"{obj}:{'.'.join(path)}", finding), Hit(obj, finding))
        accepting = [waiver for waiver, one in self._each if any(map(one.covering, hits))]
        return accepting[0] if accepting else None

    def findings(self) -> list[Finding]:
        """Return findings about the waivers, after all drift was compared with them."""
        unused = (item for _, one in self._each for item in one.unused(lambda _: True, {}, files=self._files))
        found = [*(item for _, one in self._each for item in one.findings), *unused]
        return sorted((replace(item, consequences=()) for item in found), key=Finding.sort_key)


def _drift(change: Change, writes: Mapping[str, Identity], desired: Desired) -> Drift:
    group = desired.groups.get(change.object_name or "") if change.level is Level.GROUP else None
    # a disk's `access` is set to what it is to inherit (T11)
    leaf = group.policy.leaves.get(change.path) if group else None
    inherits = change.action is ChangeAction.RESET or (leaf is not None and leaf.value is INHERIT)
    return Drift(
        object=change.object,
        path=change.path,
        action=change.action,
        declared=None if inherits else change.after,
        inherits=inherits,
        found=change.before,
        effective_declared=change.effective_after,
        effective_found=change.effective_before,
        since=writes.get(f"group/{group.current or ''}" if group else change.object, UNKNOWN_SINCE),
        span=change.span,
    )
