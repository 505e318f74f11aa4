"""GP748 and GP749: what the plan that a policy leads to does to instances, and whether the policy's guards pass it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from gpolicy.checking.context import DISK_TEMPLATES, EXCLUSIVE_STORAGE, MINMAX, Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Finding, Severity, Span, warning_rule
from gpolicy.fit.terms import terms_of
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.guard import Measure
from gpolicy.printable import some
from gpolicy.rules.examples import GROUP, bounds

if TYPE_CHECKING:
    from gpolicy.analysis.violations import ParameterBreach, PolicyViolation
    from gpolicy.impact.declared_guards import Prospect


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
        guards = context.policy.guards
        for guard, verdict in zip(guards, context.once(prospect_of).verdicts(), strict=True) if guards else ():
            if not verdict.ok:
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
        " within the policy. Where a guard limits `newly_violating`, the guard decides instead.",
        source="Ganeti 3.0, instance policies",
        bad=_sized("8G 16G"),
        good=_sized("1G 16G"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        policy, state, desired = context.policy, context.state, context.desired
        guarded = any(guard.measure is Measure.NEWLY_VIOLATING for guard in policy.guards)
        if state is None or desired is None or guarded or not context.declares(*_PATHS):
            return
        current = {name: group.current for name, group in desired.groups.items()}
        known = context.once(prospect_of).impact("violations").violations
        found: dict[tuple[str, Path], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        places: dict[tuple[str, Path], Span | None] = {}
        for item in known.newly if known else ():
            after = item.after
            if after is None or current.get(after.group, after.group) != state.nodes[item.primary_node].group:
                continue  # its node moves: GP723
            for breach in after.breaches:
                cause = (after.group, _CAUSES.get(breach.parameter, MINMAX))
                found[cause][item.instance].append(breach.parameter)
                if cause not in places:
                    places[cause] = _place(context, cause[1], after, breach)
        for (group, path), breaches in sorted(found.items()):
            names = [f"{name} ({', '.join(words)})" for name, words in breaches.items()]
            message = f"group {group} would no longer allow {some(names)}"
            hint = "allow their sizes, or write a guard newly_violating that says how many are meant"
            yield self.hit(policy.groups.get(group, "cluster"), message, places[group, path], hint=hint)


def _place(context: Context, path: Path, violation: PolicyViolation, breach: ParameterBreach) -> Span | None:
    """Return where the policy says what an instance would no longer conform to."""
    declared = context.policy.groups.get(violation.group) or context.policy.cluster
    if declared is None:
        return None
    pairs = context.pairs(declared) if path == MINMAX else ()
    if breach.beyond is not None and violation.pair <= len(pairs):
        return pairs[violation.pair - 1].at("min" if breach.beyond < 0 else "max", breach.parameter)
    leaves = (context.effective(declared, each) for each in (path, *_PATHS))
    return next((leaf.span for leaf in leaves if leaf is not None), None)
