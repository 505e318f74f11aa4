"""GP748 and GP749: what the plan that a policy leads to does to instances, and whether the policy's guards pass it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpolicy.checking.context import DISK_TEMPLATES, EXCLUSIVE_STORAGE, MINMAX, Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Finding, Severity, Span, warning_rule
from gpolicy.fit.terms import terms_of
from gpolicy.policy.guard import Measure
from gpolicy.printable import named, some
from gpolicy.rules.examples import GROUP, bounds

if TYPE_CHECKING:
    from gpolicy.analysis.violations import ParameterBreach, PolicyViolation
    from gpolicy.cluster.state import Group, Instance
    from gpolicy.ganeti.parameter import Path
    from gpolicy.impact.declared_guards import Prospect
    from gpolicy.plan.built_in_guards import GuardResult
    from gpolicy.policy.guard import Guard
    from gpolicy.policy.model import Declared


def prospect_of(context: Context) -> Prospect:
    """Return what the plan that the policy leads to would do to the observed cluster."""
    from gpolicy.impact.declared_guards import prospect  # noqa: PLC0415 (most checks look at no cluster)

    if context.state is None:
        raise ValueError("without a cluster there is no plan")
    return prospect(context.policy, context.state, terms_of(context.policy, context.state))


class PlanRule(Rule):
    """A rule about the plan that a policy leads to. It is not asked where an error stands in the way of a plan."""

    needs_state = True
    needs_whole_policy = True
    said_by_plan = True
    runs_last = True

    def is_explained_by(self, found: Sequence[Finding]) -> bool:
        """Return whether there is no plan."""
        return any(finding.severity is Severity.ERROR for finding in found)


def _verdicts(context: Context) -> list[tuple[Guard, GuardResult]]:
    """Return the guards of the policy, each with its verdict on the plan."""
    guards = context.policy.guards
    return list(zip(guards, context.once(prospect_of).verdicts(), strict=True)) if guards else []


def _guarded(most: int) -> str:
    group = f"{GROUP}alloc_policy: last_resort\nndparams: {{cpu_speed: 2}}\n---\n"
    return f"{group}gpolicy: v1\nkind: Guards\nguards:\n  - {{name: few, max_changes: {most}}}\n"


class GuardStopsPlan(PlanRule):
    info = warning_rule("GP748", "guard-stops-plan")(
        summary="A guard of the policy would stop the plan that the policy leads to.",
        rationale="`gpolicy plan` measures what its changes do to the cluster, and stops there unless `--allow`"
        " overrides the guard. A guard that fails without any change stops every plan.",
        source="gpolicy plan, guards of the policy",
        bad=_guarded(1),
        good=_guarded(5),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for guard, verdict in context.once(_verdicts):
            if not verdict.ok and not (guard.measure is Measure.NEWLY_VIOLATING and context.once(_refused)):  # GP749
                name = guard.name.value
                hint = f"{verdict.message}; if that is meant, override the guard with gpolicy plan --allow {name}"
                yield self.hit(f"guard/{name}", f"guard {name} would stop the plan", guard.span, hint=hint)


def _sized(memory: str) -> str:
    return f"{GROUP}ipolicy:\n  minmax:\n    - name: some\n      {bounds(memory, '1 16', '1G 1T', '1 8')}"


_PATHS: Final = (MINMAX, DISK_TEMPLATES)
_CAUSES: Final = {"disk-templates": DISK_TEMPLATES, "spindles": EXCLUSIVE_STORAGE}
"""What says that a value is not allowed, by the name of the value; of all others the spec pairs do."""


class InstancesViolate(PlanRule):
    info = warning_rule("GP749", "instances-violate")(
        summary="Instances that conform to their group's policy now would violate it.",
        rationale="They keep running, but Ganeti refuses to modify them without --ignore-ipolicy, and hail to move them"
        " within the policy. Where guards limit `newly_violating`, it is reported if one of them would stop the plan.",
        source="Ganeti 3.0, instance policies",
        bad=_sized("8G 16G"),
        good=_sized("1G 16G"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        refused = context.once(_refused)
        verdicts = context.once(_verdicts) if refused else []
        about = [
            (guard.name.value, verdict.ok) for guard, verdict in verdicts if guard.measure is Measure.NEWLY_VIOLATING
        ]
        stopping = [name for name, ok in about if not ok]
        if about and not stopping:
            return
        hint = "allow their sizes, or write a guard newly_violating that says how many are meant"
        if stopping:
            allowed = " ".join(f"--allow {name}" for name in stopping)
            guards = named("guard", stopping)
            hint = f"allow their sizes; if that is meant, override {guards} with gpolicy plan {allowed}"
        for group, span, names in refused:
            message = f"group {group} would no longer allow {some(names)}"
            yield self.hit(context.policy.groups.get(group, "cluster"), message, span, hint=hint)


def _refused(context: Context) -> list[tuple[str, Span | None, list[str]]]:
    """Return the groups that would no longer allow instances, the place of the value that does not, and the names."""
    policy, state, desired = context.policy, context.state, context.desired
    if state is None or desired is None or not context.declares(*_PATHS):
        return []
    current = {name: group.current for name, group in desired.groups.items()}
    known = context.once(prospect_of).impact("violations").violations
    found: dict[tuple[str, Path, int], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    places: dict[tuple[str, Path, int], Span | None] = {}
    for item in known.newly if known else ():
        after = item.after
        before = state.nodes[item.primary_node].group
        if after is None or current.get(after.group, after.group) != before:
            continue  # its node moves: GP723
        declared = policy.groups.get(after.group) or policy.cluster
        if declared is None:
            continue
        instance = state.instances[item.instance]
        switched = after.exclusive_storage != state.on_exclusive_storage(instance)
        own = _own_pair(context, declared, state.groups[before], instance, after) or after
        breaches = [breach for breach in after.breaches if breach.beyond is None]
        for breach in (*breaches, *(breach for breach in own.breaches if breach.beyond is not None)):
            is_switch = switched and breach.parameter == "spindle-use"
            path = EXCLUSIVE_STORAGE if is_switch else _CAUSES.get(breach.parameter, MINMAX)
            cause = (after.group, path, own.pair if path == MINMAX else 0)
            found[cause][item.instance].append(breach.parameter)
            if cause not in places:
                places[cause] = _place(context, declared, path, own, breach)
    return [
        (cause[0], places[cause], [f"{name} ({', '.join(words)})" for name, words in breaches.items()])
        for cause, breaches in sorted(found.items())
    ]


def _own_pair(
    context: Context, declared: Declared, group: Group, instance: Instance, after: PolicyViolation
) -> PolicyViolation | None:
    """Return what an instance breaches of the declared pair that now stands for the one it conforms to.

    Ganeti names the pair with the fewest breaches, which may be one that nobody changed.
    """
    from gpolicy.analysis.violations import AllowedSizes, bounds_of, verdict_on  # noqa: PLC0415 (as above)

    pairs, old = context.pairs(declared), bounds_of(group.effective.get(MINMAX))

    def breaches(bounds: tuple[Mapping[str, int], Mapping[str, int]]) -> PolicyViolation | None:
        alone = AllowedSizes(after.group, (bounds,), (), (None,))
        exclusive = after.exclusive_storage
        violation = verdict_on(instance, alone, exclusive=exclusive, memory=instance.maxmem).violation
        numbers = [breach for breach in violation.breaches if breach.beyond is not None] if violation else []
        return replace(violation, breaches=tuple(numbers)) if violation and numbers else None

    number = next((number for number, bounds in enumerate(old) if breaches(bounds) is None), None)
    if number is None or not pairs:
        return None
    was = old[number]

    def unlike(place: int) -> tuple[int, bool]:
        new = (pairs[place].minimum, pairs[place].maximum)
        return sum(was[end].get(name) != new[end][name] for end in (0, 1) for name in new[end]), place != number

    place = min(range(len(pairs)), key=unlike)
    found = breaches((pairs[place].minimum, pairs[place].maximum))
    return replace(found, pair=place + 1) if found is not None else None


def _place(
    context: Context, declared: Declared, path: Path, violation: PolicyViolation, breach: ParameterBreach
) -> Span | None:
    """Return where the policy says what an instance would no longer conform to."""
    pairs = context.pairs(declared) if path == MINMAX else ()
    if breach.beyond is not None and violation.pair <= len(pairs):
        return pairs[violation.pair - 1].at("min" if breach.beyond < 0 else "max", breach.parameter)
    leaves = (context.effective(declared, each) for each in (path, *_PATHS))
    return next((leaf.span for leaf in leaves if leaf is not None), None)
