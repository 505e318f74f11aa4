"""The guards that a policy declares, judged by what its plan does.

Every guard has a verdict, with the figures it was judged by. A guard that cannot be measured fails, and says why: a
silent pass would be a guess. Each can be passed alone, by its name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, TypeVar

from gpolicy.analysis.basis import BasisKind
from gpolicy.analysis.node_losses import GroupRedundancy
from gpolicy.analysis.size_words import size_title
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.amounts import exact_size
from gpolicy.ganeti.vocabulary import MINMAX
from gpolicy.impact.capacity_change import CapacityChange, FitChange, GroupCapacityChange, capacity_change
from gpolicy.impact.comparison import ViolationChange, load_sides, violators
from gpolicy.impact.impact import GroupRedundancyChange, Impact, RedundancyChange, measure_impact
from gpolicy.plan.built_in_guards import GuardResult
from gpolicy.plan.changes import NAME, Change, ChangeAction, NotCompared
from gpolicy.plan.part import LeftOut
from gpolicy.plan.plan import Plan
from gpolicy.plan.sides import Sides
from gpolicy.policy.kinds import ABOUT_GROUPS, Guard, Measure, Policy
from gpolicy.printable import count, some
from gpolicy.progress import Tell, silent

TAKES_INSTANCES: Final = "takes-instances"
_MOST_REASONS: Final = 4
_PARTS: Final = {
    Measure.AT_LEAST: "capacity",
    Measure.CAPACITY_LOSS: "capacity",
    Measure.NEWLY_VIOLATING: "violations",
    Measure.NODE_FAILURES: "redundancy",
}
"""The part of the impact that a guard limits."""


class _Figure(NamedTuple):
    """Whether a guard accepts one figure, what it is (`text`), and whether it could be measured."""

    is_accepted: bool
    text: str
    is_measured: bool = True


def _unmeasured(reason: str, where: str = "") -> _Figure:
    return _Figure(False, f"{where}cannot be measured: {reason}", is_measured=False)


_GroupsChange = TypeVar("_GroupsChange", CapacityChange, RedundancyChange)


@dataclass(frozen=True, slots=True)
class Extent:
    """What the guards of a part of a plan are judged by: the groups that it touches, with the names of their specs.

    `others` are the groups that it does not touch; None stands for any. `left_out` are the changes that the part leaves
    out: they may make what a guard names.
    """

    touched: Mapping[str, tuple[str | None, ...]]
    others: frozenset[str | None]
    left_out: Sequence[LeftOut]

    def nothing_for(self, guard: Guard) -> str:
        """Return in words that the part touches nothing that a guard measures; nothing if it does."""
        if guard.measure not in ABOUT_GROUPS:
            return ""
        group, spec = guard.group and guard.group.value, guard.spec and guard.spec.value
        about = [name for name in self.touched if group in (None, name)]
        if about:
            known = any(spec in self.touched[name] for name in about)
            without_sizes = any(item.path == MINMAX for item in self.left_out)
            found = f"leaves out the sizes, and with them {spec}" if spec and not known and without_sizes else ""
        elif f"group/{group}" in {item.object for item in self.left_out if item.path == NAME}:
            found = f"leaves out group {group}"
        else:
            found = f"does not touch {f'group {group}' if group else 'any group'}" if group in self.others else ""
        return found and f"this part of the plan {found}"

    def within(self, found: _GroupsChange) -> _GroupsChange:
        """Return a section of the impact with the groups that are touched only."""
        groups = tuple(item for item in found.groups if item.group in self.touched)
        unavailable = {name: why for name, why in found.unavailable.items() if name in self.touched}
        return replace(found, groups=groups, unavailable=unavailable)


def extent_of(left_out: Sequence[LeftOut], sides: Sides) -> Extent | None:
    """Return what a part of a plan touches; None for a plan that leaves nothing out: then every guard counts."""
    if not left_out:
        return None
    before, after = sides.before, sides.after
    touched = {
        name: sides.names.groups.get(name, ())
        for name, group in after.groups.items()
        if group != before.groups.get(name) or after.nodes_of(name) != before.nodes_of(name)
    }
    return Extent(touched, frozenset({None, *after.groups} - touched.keys()), left_out)


def declared_verdicts(
    guards: Sequence[Guard],
    changes: Sequence[Change],
    impact: Impact | None,
    *,
    allowed: frozenset[str] = frozenset(),
    extent: Extent | None = None,
    not_compared: Iterable[NotCompared] = (),
) -> tuple[GuardResult, ...]:
    """Return the verdict of every guard that a policy declares, in its order; those named in `allowed` pass.

    `impact` is what `changes` do; None where it was not computed, and then only `max_changes` can be judged. `extent`
    is that of a part of a plan, `not_compared` what the cluster's state does not show.
    """
    found, hidden = [], {item.object for item in not_compared if item.path == MINMAX}
    for guard in guards:
        figures = list(_figures(guard, changes, impact, extent, hidden))
        wrong = sorted((item for item in figures if not item.is_accepted), key=lambda item: not item.is_measured)
        shown = wrong or figures
        message = "; ".join(item.text for item in shown[:_MOST_REASONS]) or "nothing to measure"
        if len(shown) > _MOST_REASONS:
            message += f"; and {len(shown) - _MOST_REASONS} more"
        override = bool(wrong) and guard.name.value in allowed
        found.append(GuardResult(guard.name.value, not wrong or override, message, allowed=override))
    return tuple(found)


def guards_for(policy: Policy, left_out: Sequence[LeftOut]) -> tuple[Guard, ...]:
    """Return the guards of a policy for a plan: of a group that this does not rename, by its present name."""
    renames = {item.object.removeprefix("group/") for item in left_out if item.action is ChangeAction.RENAME}
    return tuple(
        replace(guard, group=policy.groups[guard.group.value].renamed_from)
        if guard.group and guard.group.value in renames
        else guard
        for guard in policy.guards
    )


def judge_declared(plan: Plan, sides: Sides, impact: Impact | None, allowed: frozenset[str]) -> tuple[GuardResult, ...]:
    """Return the verdicts of the declared guards of a plan, by what it does to the cluster."""
    guards, extent, hidden = plan.declared_guards, extent_of(plan.left_out, sides), plan.not_compared
    return declared_verdicts(guards, plan.changes, impact, allowed=allowed, extent=extent, not_compared=hidden)


def takes_instances(impact: Impact | None, allowed: frozenset[str]) -> tuple[GuardResult, ...]:
    """Return the verdict of the built-in guard against groups that take nothing any more, if it has one."""
    groups = impact.capacity.groups if impact and impact.capacity else ()
    reasons = [
        f"group {item.group} would take no new instance: {item.emptied} (today {item.most_before:,} fit)"
        for item in groups
        if item.emptied
    ]
    override = TAKES_INSTANCES in allowed
    return (GuardResult(TAKES_INSTANCES, override, "; ".join(reasons), allowed=override),) if reasons else ()


def judge_declared_again(
    plan: Plan, sides: Sides, allowed: frozenset[str], tell: Tell = silent
) -> tuple[GuardResult, ...]:
    """Return the verdicts on a plan that was made earlier: `sides` are now, or at its first step if it has begun."""
    guards, of_emptied = plan.declared_guards, _judges_emptied(plan)
    if not measures_nodes(plan):
        return declared_verdicts(guards, plan.changes, None, allowed=allowed)
    known = guard_impact(sides, guards, tell, of_emptied=of_emptied)
    return (*(takes_instances(known, allowed) if of_emptied else ()), *judge_declared(plan, sides, known, allowed))


def measures_nodes(plan: Plan) -> bool:
    """Return whether a guard of the plan can be judged again only with what nodes measure."""
    return _judges_emptied(plan) or need_impact(plan.declared_guards)


def _judges_emptied(plan: Plan) -> bool:
    return any(guard.name == TAKES_INSTANCES for guard in plan.guards)


def guard_impact(sides: Sides, guards: Sequence[Guard], tell: Tell = silent, *, of_emptied: bool = False) -> Impact:
    """Return what `guards` are judged by; `of_emptied`: also the built-in one against groups that take nothing."""
    parts = {_PARTS[guard.measure] for guard in guards if guard.measure in _PARTS}
    parts |= {"capacity"} if of_emptied else set()
    return measure_impact(sides, failures=failures_asked(guards), parts=parts, whole=False, tell=tell)


def verdicts_on(policy: Policy, sides: Sides) -> tuple[tuple[GuardResult, ...], tuple[GuardResult, ...]]:
    """Return the verdict of every guard of a policy, and that of `TAKES_INSTANCES`, if it has one."""
    guards, changes = policy.guards, sides.changes
    known = guard_impact(sides, guards) if need_impact(guards) else None
    built_in = takes_instances(_doubtful(sides) if changes else None, frozenset())
    return declared_verdicts(guards, changes, known, not_compared=sides.difference.not_compared), built_in


def _doubtful(sides: Sides) -> Impact | None:
    """Return the capacity of the groups that may take nothing any more; None if nothing is known."""
    try:
        loaded = load_sides(sides)
        counted = [one for one in loaded.groups if one.after and one.after.too_slow is None]
        found = [one for one in counted if one.before and one.after and not one.after.surely_takes_one]
        doubtful = replace(loaded, groups=tuple(found), whole=None)
        return Impact(capacity=capacity_change(doubtful, silent))
    except GpolicyError:
        return None


def need_impact(guards: Sequence[Guard]) -> bool:
    """Return whether any of `guards` measures more than the changes themselves."""
    return any(guard.measure in _PARTS for guard in guards)


def failures_asked(guards: Sequence[Guard]) -> int:
    """Return how many node failures at once redundancy must be examined for, so that every guard can be judged."""
    asked = [int(guard.limit) for guard in guards if guard.measure is Measure.NODE_FAILURES]
    return max([1, *asked])


def _figures(
    guard: Guard, changes: Sequence[Change], impact: Impact | None, extent: Extent | None, hidden: set[str]
) -> Iterator[_Figure]:
    if guard.measure is Measure.MAX_CHANGES:
        made = len(changes)
        yield _Figure(guard.accepts(made), f"{count(made, 'change')}, {_compared(made, guard)}")
        return
    if extent is not None and (reason := extent.nothing_for(guard)):
        yield _Figure(True, reason)
        return
    if impact is None:
        yield _unmeasured("the impact of the plan was not computed") if changes else _Figure(True, "nothing changes")
        return
    match guard.measure:
        case Measure.NEWLY_VIOLATING if impact.violations:
            yield from _newly_violating(guard, impact.violations)
        case Measure.NODE_FAILURES if impact.redundancy:
            redundancy = extent.within(impact.redundancy) if extent else impact.redundancy
            yield from _node_failures(guard, redundancy, impact.group_basis)
        case Measure.AT_LEAST | Measure.CAPACITY_LOSS if impact.capacity:
            capacity = extent.within(impact.capacity) if extent else impact.capacity
            yield from _capacity(guard, capacity, impact.group_basis, hidden)
        case _:
            part = _PARTS[guard.measure]
            reason = impact.unavailable.get(part, f"{part} is not known")
            yield _unmeasured(reason)


def _unmeasured_groups(unavailable: Mapping[str, str], wanted: str | None) -> Iterator[_Figure]:
    for name, reason in unavailable.items():
        if name and wanted in (None, name):
            yield _unmeasured(reason, f"group {name}: ")


def _compared(count: int, guard: Guard) -> str:
    words = ("fewer than", "at least") if guard.measure.is_least else ("more than", "at most")
    return f"{words[guard.accepts(count)]} {guard.shown_limit}"


def _capacity(
    guard: Guard, capacity: CapacityChange, basis: Mapping[str, BasisKind], hidden: set[str]
) -> Iterator[_Figure]:
    wanted = guard.group.value if guard.group else None
    yield from _unmeasured_groups(capacity.unavailable, wanted)
    groups = [item for item in capacity.groups if wanted in (None, item.group)]
    if not groups and wanted is not None and wanted not in capacity.unavailable:
        yield _unmeasured(f"there is no group {wanted}")
    measured = False
    for group in groups:
        for row in _rows(guard, group):
            figures = list(_fits(guard, group, row, basis.get(group.group or "")))
            measured = measured or bool(figures)
            yield from figures
    if groups and not measured and guard.spec is not None:
        where = f"group {wanted}" if wanted else "no group"
        why = f"{where} has {'no' if wanted else 'a'} {size_title(guard.spec.value)}"
        if hidden and (wanted is None or not hidden.isdisjoint(("cluster", f"group/{wanted}"))):
            why = f"the state does not show the own sizes of {f'group {wanted}' if wanted else 'groups'}, so that"
            why += f" {size_title(guard.spec.value)} is not compared: read the state from the cluster"
        yield _unmeasured(why)
    elif not measured and not capacity.unavailable and groups:
        yield _Figure(True, "no size to measure")
    elif guard.measure is Measure.CAPACITY_LOSS and measured and not any(group.most_before for group in groups):
        where = f"group {wanted}" if wanted else "any group"
        yield _Figure(False, f"measures nothing: nothing fits in {where} today, so nothing can be lost")


def _rows(guard: Guard, group: GroupCapacityChange) -> list[FitChange]:
    """Return the rows that a guard is about.

    Where none of those fits now, it has nothing to lose there: other sizes and the standard size tell the loss.
    """
    rows = [row for row in group.rows if guard.spec is None or guard.spec.value == row.name]
    if guard.measure is not Measure.CAPACITY_LOSS or any(row.before and row.before.fits for row in rows):
        return rows
    others = [row for row in (group.tiered, group.standard) if row.before and row.before.fits]
    return [*rows, *(row for row in others if rows and row.worst_after is not None)]


def _fits(guard: Guard, group: GroupCapacityChange, row: FitChange, basis: BasisKind | None) -> Iterator[_Figure]:
    """Yield what one row says: nothing for one that the guard is not about, and a lost old size as well."""
    what = f"{size_title(row.name)} at its largest" if row in group.rows else f"{row.name} instances"
    spec = f"group {group.group}, {what}"
    limits = group.after or group.before
    on = f"{', under its limits' if limits and limits.limits.beyond_htools else ''}{_on(basis)}"
    after = row.after.fits if row.after else None
    if guard.measure is Measure.AT_LEAST:
        if after is None:
            gone = "the group is removed" if group.after is None else "the size is removed"
            yield _Figure(guard.accepts(0), f"{spec}{on}: none fits after ({gone}), at least {guard.shown_limit}")
            return
        ok = guard.accepts(after)
        why = f" (bound by {row.after.binding.cause.key})" if row.after and not ok else ""
        resized = "" if ok else _resized(row)
        yield _Figure(ok, f"{spec}{on}: {after} fit after, {_compared(after, guard)}{why}{resized}")
        return
    if row.before is None:
        return  # a new spec: nothing can be lost
    old = row.old_size_after
    today = _size_words(row, 0).removeprefix(" of ")
    of_size = f"{spec}, today {today}{on}" if today else f"{spec}{on}"
    if after is None:
        yield _loss(guard, of_size, row.before.fits, old.fits if old else 0, " (the size is removed)")
        return
    sizes = (_size_words(row, 0), _size_words(row, 1)) if row.resized else ("", "")
    loss = _loss(guard, f"{spec}{on}", row.before.fits, after, sizes=sizes)
    yield loss if loss.is_accepted else _Figure(False, f"{loss.text}{_resized(row)}")
    if old is not None:
        why = f" (bound by {old.binding.cause.key})"
        of_old_size = _loss(guard, of_size, row.before.fits, old.fits, why)
        if not of_old_size.is_accepted:
            yield of_old_size


def _resized(row: FitChange) -> str:
    """Return in words that another size is counted than today, where all of today's size still fit; else nothing."""
    if not row.resized or row.is_loss or row.old_size_after is None:
        return ""
    return f"; the size that is counted changed: of today's size {row.old_size_after.fits} fit after"


def _loss(
    guard: Guard, title: str, before: int, then: int, why: str = "", *, sizes: tuple[str, ...] = ("", "")
) -> _Figure:
    lost = before - then
    ok = 100 * lost <= guard.limit * before if guard.percent else guard.accepts(lost)
    loss = "nothing is lost"
    if lost > 0:
        share = f"{100 * lost / before:.3g} %" if guard.percent else str(lost)
        loss = f"a loss of {share}, {'at most' if ok else 'more than'} {guard.shown_limit}"
    return _Figure(ok, f"{title}: {before}{sizes[0]} fit today, {then}{sizes[1]} after{why}, {loss}")


def _size_words(row: FitChange, side: int) -> str:
    """Return the size that is counted now (side 0) or after (1), in words that follow its number."""
    fit = (row.before, row.after)[side]
    size = fit.spec if fit else None
    template = f", {row.templates[side]}" if row.templates else ""
    if size is None:
        return ""
    disk = exact_size(size.disk_size * max(1, size.disk_count))
    return f" of {exact_size(size.memory)} · {size.cpus} CPU · {disk}{template}"


def _newly_violating(guard: Guard, violations: ViolationChange) -> Iterator[_Figure]:
    wanted = guard.group.value if guard.group else None
    instances = [item.instance for item in violations.newly if item.after and wanted in (None, item.after.group)]
    nodes = [item.node for item in violations.nodes_newly if wanted in (None, item.group)]
    names = f" ({some([*instances, *nodes])})" if instances or nodes else ""
    newly = len(instances) + len(nodes)
    who = violators(len(instances), len(nodes)) or "no instance and no node"
    where = f"group {wanted}: " if wanted else ""
    unknown = violations.uncertain(wanted)
    if not guard.accepts(newly) or guard.accepts(newly + len(unknown)):
        text = f"{where}{who} newly {'violate' if newly > 1 else 'violates'} the policy{names}"
        yield _Figure(guard.accepts(newly), f"{text}, {_compared(newly, guard)}")
    else:
        why = "; ".join(dict.fromkeys(unknown.values()))
        verb = "violate" if len(unknown) > 1 else "violates"
        yield _unmeasured(f"whether {some(list(unknown))} {verb} the policy is unknown: {why}", where)


def _node_failures(guard: Guard, redundancy: RedundancyChange, basis: Mapping[str, BasisKind]) -> Iterator[_Figure]:
    wanted = guard.group.value if guard.group else None
    yield from _unmeasured_groups(redundancy.unavailable, wanted)
    found = [item for item in redundancy.groups if wanted in (None, item.group) and item.after is not None]
    if not found and (wanted not in redundancy.unavailable if wanted else not redundancy.unavailable):
        missing = f"there is no group {wanted}" if wanted else "there is no group"
        yield _unmeasured(missing)
    for item in found:
        if item.after is not None and (item.after.nodes or wanted is not None):
            yield _survival(guard, item, item.after, basis.get(item.group))


def _survival(guard: Guard, change: GroupRedundancyChange, after: GroupRedundancy, basis: BasisKind | None) -> _Figure:
    title = f"group {change.group}{_on(basis)}"
    if not after.nodes:
        return _unmeasured("it has no nodes", f"{title}: ")
    then = f"{after.survives:,}" if change.before else count(after.survives, "node failure")
    today = f"{count(change.before.survives, 'node failure')} today, " if change.before else ""
    survives = f"{title}: survives {today}{then} after"
    if guard.accepts(after.survives):
        lost = f"; {count(after.unmirrored, 'instance')} without a mirror cannot fail over" if after.unmirrored else ""
        return _Figure(True, f"{survives}, at least {guard.shown_limit}{lost}")
    if after.unavailable is not None or (after.asked < guard.limit <= after.nodes and not after.not_absorbed):
        examined = f"{count(after.asked, 'failure')} at once {'was' if after.asked == 1 else 'were'} examined"
        return _unmeasured(after.unavailable or f"only {examined}", f"{title}: ")
    text = f"{survives}, fewer than {guard.shown_limit}"
    for loss in after.not_absorbed[:1]:
        first = loss.homeless[0]
        text += f": without {some(loss.nodes)} {first.instance} has no place ({first.key})"
    return _Figure(False, text)


def _on(basis: BasisKind | None) -> str:
    return f" ({basis.value})" if basis and basis is not BasisKind.MEASURED else ""
