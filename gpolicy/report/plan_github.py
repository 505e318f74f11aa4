"""A plan as annotations of a pull request: findings and guards where they stand, and what gets worse."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from gpolicy.findings import Severity, Span
from gpolicy.ganeti.vocabulary import Level
from gpolicy.impact.comparison import ViolationChange
from gpolicy.impact.impact import Impact
from gpolicy.plan.plan import Plan
from gpolicy.report.answer import Answer, Section, Weight
from gpolicy.report.findings_text import Annotation, finding_annotation, github
from gpolicy.report.plan_answer import override_of
from gpolicy.report.violations_section import breach_words

_SIZES: Final = ("minmax", "disk-templates")
"""What instances violate of an ipolicy."""


def plan_github(
    plan: Plan,
    answer: Answer,
    *,
    impact: Impact | None = None,
    guard_places: Mapping[str, Span] | None = None,
    locate: Callable[[str], str] = str,
) -> str:
    """Return the plan as workflow commands, worst first, ending in the verdict as a line of the log.

    `answer` is that of the plan. `guard_places` says where the policy declares a guard, by its name; `locate` turns the
    name of a file into its path in the repository.
    """
    annotations = [*map(finding_annotation, plan.findings)]
    if answer.unknown:
        title, message = "Not everything was looked at", "\n".join(answer.unknown)
        annotations.insert(0, Annotation(severity=Severity.WARNING, kind="not known", title=title, message=message))
    annotations += _guards(plan, guard_places or {})
    if impact is not None and plan.changes:
        annotations += _violations(plan, impact)
    annotations += _sections(below for section in answer.sections for below in section.sections)
    much = f" ({answer.amount})" if answer.amount else ""
    return github(annotations, f"{answer.first_line}{much}", locate=locate)


def _guards(plan: Plan, places: Mapping[str, Span]) -> Iterator[Annotation]:
    for guard in plan.guards:
        if guard.ok and not guard.allowed:
            continue
        yield Annotation(
            severity=Severity.WARNING if guard.ok else Severity.ERROR,
            kind="guards overridden" if guard.ok else "guards that fail",
            title=f"guard {guard.name} {'is overridden' if guard.ok else 'fails'}",
            message="\n".join((guard.message, *override_of(guard))),
            span=places.get(guard.name),
        )


def _violations(plan: Plan, impact: Impact) -> Iterator[Annotation]:
    """Yield a warning for each newly violating instance and node, beside the change that causes it."""
    change = impact.violations or ViolationChange()
    for item in change.newly:
        violation = item.after
        words = "; ".join(map(breach_words, violation.breaches)) if violation else ""
        yield Annotation(
            severity=Severity.WARNING,
            kind="instances newly violate the policy",
            title=f"{item.instance} newly violates the policy",
            message=words or "it violates the policy",
            span=_cause(plan, violation.group, _SIZES) if violation else None,
        )
    for node in change.nodes_newly:
        yield Annotation(
            severity=Severity.WARNING,
            kind="nodes newly violate the policy",
            title=f"{node.node} newly violates the policy",
            message="; ".join(breach.sentence for breach in node.after),
            span=_cause(plan, node.group, [breach.parameter for breach in node.after]),
        )


def _cause(plan: Plan, group: str, keys: Collection[str]) -> Span | None:
    """Return where the policy changes one of `keys` of the ipolicy of `group`: in the group itself, or the cluster."""
    paths = {("ipolicy", key) for key in keys}
    changes = [change for change in plan.changes if change.path in paths and change.span is not None]
    own = [change.span for change in changes if change.level is Level.GROUP and change.object_name == group]
    common = [change.span for change in changes if change.level is Level.CLUSTER]
    return next(iter([*own, *common]), None)


def _sections(sections: Iterable[Section]) -> Iterator[Annotation]:
    for section in sections:
        if section.weight is Weight.WORSE or section.key == "capacity":
            severity = Severity.WARNING if section.weight is Weight.WORSE else Severity.INFO
            yield Annotation(severity=severity, kind="impact", title=section.title, message=section.summary)
