"""GP748 and GP749: what the plan that a policy leads to does to instances, and whether the policy's guards pass it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from gpolicy.checking.context import DISK_TEMPLATES, MINMAX, Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Finding, Severity, warning_rule
from gpolicy.fit.terms import terms_of
from gpolicy.policy.guard import Measure
from gpolicy.printable import some
from gpolicy.rules.examples import GROUP, bounds


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
        policy, state = context.policy, context.state
        if state is None or not policy.guards:
            return
        from gpolicy.impact.declared_guards import verdicts_on_plan  # noqa: PLC0415 (most checks look at no cluster)

        for guard, verdict in zip(policy.guards, verdicts_on_plan(policy, state, terms_of(policy, state)), strict=True):
            if not verdict.ok:
                name = guard.name.value
                hint = f"{verdict.message}; if that is meant, override the guard with gpolicy plan --allow {name}"
                yield self.hit(f"guard/{name}", f"guard {name} would stop the plan", guard.span, hint=hint)


def _sized(memory: str) -> str:
    return f"{GROUP}ipolicy:\n  minmax:\n    - name: some\n      {bounds(memory, '1 16', '1G 1T', '1 8')}"


_PATHS: Final = (MINMAX, DISK_TEMPLATES)


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
        from gpolicy.impact.declared_guards import instances_newly_violating  # noqa: PLC0415 (as above)

        current = {name: group.current for name, group in desired.groups.items()}
        found: dict[str, list[str]] = defaultdict(list)
        for item in instances_newly_violating(policy, state, terms_of(policy, state)):
            group = item.after.group if item.after else ""
            if current.get(group, group) == state.nodes[item.primary_node].group:  # else its node moves: GP723
                why = ", ".join(breach.parameter for breach in item.after.breaches) if item.after else ""
                found[group].append(f"{item.instance} ({why})")
        for group, names in sorted(found.items()):
            declared = policy.groups.get(group)
            at = [context.effective(declared, path) if declared else context.cluster_leaf(path) for path in _PATHS]
            span = next((leaf.span for leaf in at if leaf is not None), None)
            message = f"group {group} would no longer allow {some(names)}"
            hint = "allow their sizes, or write a guard newly_violating that says how many are meant"
            yield self.hit(declared or "cluster", message, span, hint=hint)
