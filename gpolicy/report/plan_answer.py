"""A plan as an answer: its first figures, changes, their cost, the commands, and the verdicts of guards."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from gpolicy.allocator.cluster_data import Node
from gpolicy.analysis.basis import node_uses
from gpolicy.errors import GpolicyError
from gpolicy.findings import Accepted, Severity
from gpolicy.ganeti.releases import unknown_release
from gpolicy.ganeti.vocabulary import MINMAX, TakesEffect
from gpolicy.impact.comparison import ViolationChange, load_sides
from gpolicy.impact.impact import Impact, LocationChange
from gpolicy.plan.built_in_guards import GuardResult, can_be_allowed
from gpolicy.plan.changes import MAY_VIOLATE, MEMBERSHIP, NAME, TAGS, Change, ChangeAction, Risk, words
from gpolicy.plan.plan import Plan
from gpolicy.plan.sides import Sides
from gpolicy.plan.step import Step
from gpolicy.policy.source_file import Files
from gpolicy.printable import Tone, count, named, some
from gpolicy.report import answer, values_text
from gpolicy.report.capacity_section import headline, headline_falls
from gpolicy.report.findings_text import accepted_figure, accepted_section
from gpolicy.report.impact_sections import impact_section, remedy_figures, unknown_in
from gpolicy.report.pictures import MEMORY, GroupPicture, domain_pictures, group_pictures, spec_pictures

_MOST_GUARDS: Final = 2
_WEIGHT_TONES: Final = {answer.Weight.WORSE: Tone.BAD, answer.Weight.CHANGED: Tone.PLAIN}
_MOST_OBJECTS: Final = 8
_SIGNS: Final = {ChangeAction.CREATE: "+", ChangeAction.REMOVE: "-"}
_TONES: Final = {"+": Tone.GOOD, "-": Tone.BAD, "~": Tone.CAREFUL, "": Tone.QUIET, " ": Tone.PLAIN}
_RISKS: Final = {Risk.HIGH: Tone.BAD, Risk.MEDIUM: Tone.CAREFUL}


def plan_answer(
    plan: Plan,
    *,
    impact: Impact | None = None,
    sides: Sides | None = None,
    sources: Files | None = None,
    locate: Callable[[str], str] = str,
    of: str = "",
    unmanaged: Sequence[str] = (),
    accepted: Sequence[Accepted] = (),
) -> answer.Answer:
    """Return the plan as an answer, with its impact and with pictures if known.

    `of` names the policy and says how much it holds. `sources` are its files, to show the lines of findings;
    `locate` turns the name of a file into its path in the repository. `unmanaged` are groups of the cluster that no
    document declares, `accepted` the findings that the repository accepts.
    """
    running = sides.before.software_version if sides else None
    unknown = unknown_release(running)
    has_effect = bool(plan.changes) or (sides is not None and sides.before.release != sides.after.release)
    known = impact if has_effect else None  # what is supposed, and limits, are told all the same
    cost = impact_section(known) if known else None
    sections = cost.sections if cost else ()
    worse = any(section.weight is answer.Weight.WORSE for section in sections)
    what_if, limits = (impact.what_if, impact.limits) if impact else ((), ())
    groups = "groups" if len(unmanaged) > 1 else "group"
    worst_first = sorted(plan.guards, key=lambda guard: (guard.ok, not guard.allowed))
    entries = answer.Entries("guard", list(map(_guard_entry, worst_first)))
    left_out = [
        answer.Entry(f"{item.object} {'.'.join(item.path)} ({item.action})", mark="?") for item in plan.left_out
    ]
    figures = plan_figures(plan, known or Impact(), sections) if has_effect else _warnings_figure(plan)
    specs, nodes, domains = _pictures(plan, known, sides) if sides and plan.changes else ([], [], [])
    guards = answer.Section(
        "guards", "Guards", [entries], weight=answer.Weight.CHANGED if plan.safe else answer.Weight.WORSE
    )
    return answer.Answer(
        verb="plan",
        title="Plan for cluster",
        name=plan.cluster or plan.source,
        title_end=f"(Ganeti {plan.version})" if not unknown else f"(Ganeti {running}, judged by {plan.version})",
        verdict=answer.supposing(what_if) + full_verdict(plan, known, sections),
        unknown=(*(unknown_in(known, sections) if has_effect else ()), *values_text.unseen(len(plan.not_compared))),
        tone=Tone.BAD if not plan.safe else Tone.CAREFUL if worse else Tone.GOOD,
        amount=amount(plan) if plan.changes else "",
        figures=(*figures, *accepted_figure(accepted)),
        looked_at=(
            f"policy: {of}" if of else "",
            f"not managed: {groups} {some(unmanaged, 4)}, which no document declares" if unmanaged else "",
            f"remedy: {remedy_figures(known.remedy)}" if known and known.remedy and known.remedy.new else "",
            _way_back(plan.steps),
        ),
        basis=(
            *what_if,
            impact.basis.sentence if impact and impact.basis else unknown,
            *(item.sentence for item in limits),
        ),
        sections=(
            answer.Section("findings", "Findings", [answer.Findings(plan.findings, sources or {}, locate)]),
            *(() if plan.safe else (guards,)),
            _changes_section(plan, known, specs),
            answer.Section(
                "left-out",
                f"Left out of this part: {count(len(left_out), 'change')}",
                [answer.Entries("change", left_out)],
            ),
            *((cost,) if cost else ()),
            values_text.not_compared(plan.not_compared, "wanted"),
            answer.Section("memory", MEMORY, nodes),
            answer.Section("domains", "Failure domains", domains),
            _steps_section(plan),
            *((guards,) if plan.safe else ()),
            accepted_section(accepted, locate),
        ),
        notes=tuple(plan.notes),
        source=plan.source,
        snapshot=plan.snapshot,
        facts=(("policy", plan.policy_digest), ("state", plan.state_digest)),
        provenance=plan.provenance,
    )


def verdict(plan: Plan) -> str:
    """Return in a few words whether the plan may be carried out."""
    errors = sum(item.severity is Severity.ERROR for item in plan.findings)
    if errors:
        return f"No plan: the policy has {count(errors, 'error')} for this cluster"
    failed = sum(not guard.ok for guard in plan.guards)
    if failed:
        return f"Not to be applied: {count(failed, 'guard')} of {len(plan.guards)} {'fails' if failed == 1 else 'fail'}"
    if plan.changes:
        allowed = sum(guard.allowed for guard in plan.guards)
        return f"Can be applied, {count(allowed, 'guard')} overridden" if allowed else "Can be applied"
    if plan.left_out:
        return f"No changes in this part of the plan: {count(len(plan.left_out), 'change')} left out"
    if plan.not_compared:
        return "No changes in what was compared"
    return "No changes: the cluster is what the policy declares"


def full_verdict(plan: Plan, impact: Impact | None, sections: Iterable[answer.Section]) -> str:
    """Return the verdict with what gets worse; `sections` are those of the impact."""
    change = impact.capacity if impact else None
    emptied = [item.group or "" for item in change.groups if item.emptied] if change else []
    told = [f"{named('group', emptied)} would take no new instance"] if emptied else []
    if not plan.safe:
        return "; ".join((verdict(plan), *told))
    worse = (item for item in sections if item.weight is answer.Weight.WORSE)
    told += [item.worse or _worse_rows(item) for item in worse if not (emptied and item.key == "capacity")]
    return verdict(plan) + (f", but worse: {'; '.join(told)}" if told else "")


def _worse_rows(section: answer.Section) -> str:
    """Return the title of the first table that is worse, with the name of its first row."""
    table = next((table for table in section.tables if table.weight is answer.Weight.WORSE), None)
    if table is None:
        return section.title.lower()
    name = next((answer.plain_text(cell, 1) for cell in table.rows[0] if isinstance(cell, answer.Name)), "")
    more = f" and {len(table) - 1:,} more" if len(table) > 1 else ""
    return f"{table.title[0].lower()}{table.title[1:]}: {name}{more}"


def amount(plan: Plan) -> str:
    """Return how much there is of the plan: 3 changes in 2 steps."""
    much = f"{count(len(plan.changes), 'change')} in {count(len(plan.steps), 'step')}"
    return f"{much}, {len(plan.left_out):,} left out" if plan.left_out else much


def _changes_section(plan: Plan, known: Impact | None, pictures: Iterable[answer.Picture]) -> answer.Section:
    """Return the changes by object, and the pictures of sizes; the summary names the objects that change most."""
    counts = Counter(change.object for change in plan.changes).most_common()
    shown = [f"{name} ({number})" for name, number in counts[:_MOST_OBJECTS]]
    more = len(counts) - len(shown)
    violations = known.violations if known else None
    none_newly = violations is not None and not violations.newly and not violations.unknown
    changes = [_change_entry(change, none_newly=none_newly) for change in plan.changes]
    return answer.Section(
        "changes",
        "What changes",
        [answer.Entries("change", changes, answer.Style.CHANGES), *pictures],
        weight=answer.Weight.DETAIL,
        summary=", ".join(shown) + (f" and {count(more, 'more object')}" if more else ""),
    )


def _change_entry(change: Change, *, none_newly: bool) -> answer.Entry:
    sign = _SIGNS.get(change.action, "~")
    items = pair_changes(change) if change.path == MINMAX else tag_changes(change) if change.path == TAGS else ()
    lines = [answer.Line(text, mark=mark.strip("#"), tone=_TONES[mark.strip("#")]) for mark, text in items]
    below = (*lines, *_remarks(change, none_newly=none_newly))
    return answer.Entry(change_words(change), mark=sign, tone=_TONES[sign], under=(change.object, ""), below=below)


def change_words(change: Change) -> str:
    """Return the change of one value, name, membership or set of tags."""
    match change.path, change.action:
        case path, ChangeAction.CREATE if path == NAME:
            return f"create group {change.object_name}"
        case path, ChangeAction.REMOVE if path == NAME:
            return f"remove group {change.before}"
        case path, _ if path == NAME:
            return f"rename from {change.before}"
        case path, _ if path == MEMBERSHIP:
            return f"move from group {change.before} to {change.after}"
        case path, _ if path == MINMAX and change.before is None and change.effective_before is not None:
            return "ipolicy.minmax: own sizes in place of the cluster's"
        case path, _ if path == MINMAX and change.after is None:
            return "ipolicy.minmax: the cluster's sizes in place of its own"
        case path, _ if path in (MINMAX, TAGS):
            return ".".join(path)
    path, name = change.path, ".".join(change.path)
    before, after = values_text.value_text(path, change.before), values_text.value_text(path, change.after)
    if change.before is None and change.effective_before is not None:
        before = f"{values_text.value_text(path, change.effective_before)} (inherited)"
    if change.after is None:
        after = f"inherit ({values_text.value_text(path, change.effective_after)})"
    return f"{name}: {before} → {after}"


def tag_changes(change: Change) -> Iterator[tuple[str, str]]:
    """Yield each tag that is removed or added, with its sign."""
    before, after = words(change.before), words(change.after)
    yield from (("-", tag) for tag in before if tag not in after)
    yield from (("+", tag) for tag in after if tag not in before)


def pair_changes(change: Change) -> Iterator[tuple[str, str]]:
    """Yield the lines of effective sizes with their sign: -, +, a space for one that stays, # for a remark."""
    old = values_text.pair_lines(change.effective_before if change.before is None else change.before)
    new = values_text.pair_lines(change.effective_after if change.after is None else change.after)
    yield from (("-", line) for line in old if line not in new)
    yield from ((" ", line) if line in old else ("+", line) for line in new)
    if old != new and sorted(old) == sorted(new):
        yield "#", "same sizes, other order"


def _remarks(change: Change, *, none_newly: bool) -> Iterator[answer.Line]:
    """Yield what there is to say of a change; `none_newly`: no existing instance newly violates the policy."""
    if change.takes_effect is not TakesEffect.AT_ONCE and change.path != TAGS:
        yield answer.Line(f"takes effect: {change.takes_effect}")
    if change.affects:
        yield answer.Line(f"also in {some(change.affects, 4)}, which inherit it")
    if change.reason:
        newly = "; none newly does" if none_newly and change.reason == MAY_VIOLATE else ""
        yield answer.Line(f"{change.risk} risk: {change.reason}{newly}", tone=_RISKS.get(change.risk, Tone.QUIET))


def _pictures(plan: Plan, known: Impact | None, sides: Sides) -> tuple[list[answer.Picture], ...]:
    """Return the pictures of sizes, of nodes, and of failure domains."""
    renames = (item for item in plan.changes if item.path == NAME and item.action is ChangeAction.RENAME)
    renamed = {str(item.after): str(item.before) for item in renames}
    violations, location = (known.violations, known.location) if known else (None, None)
    kinds = (("still", violations.still), ("newly", violations.newly)) if violations else ()
    verdicts = {item.instance: kind for kind, items in kinds for item in items}
    return (
        [answer.Picture("specs", lambda: spec_pictures(sides, renamed, verdicts))],
        [answer.Picture("nodes", lambda: _memory(sides, renamed))],
        [answer.Picture("domains", lambda: domain_pictures(sides, location))],
    )


def _memory(sides: Sides, renamed: Mapping[str, str]) -> list[GroupPicture]:
    """Return the nodes before and after; without figures where nothing is counted."""
    before: Iterable[Node] = ()
    after: Iterable[Node] = ()
    with suppress(GpolicyError):
        loaded = load_sides(sides)
        before, after = (side.whole.cluster.nodes.values() for side in (loaded.before, loaded.after))
    return group_pictures(node_uses(sides.before, before), node_uses(sides.after, after), renamed)


def _steps_section(plan: Plan) -> answer.Section:
    entries = []
    for number, step in enumerate(plan.steps, start=1):
        lost = (answer.Line(f"cannot be undone: {reason}", tone=Tone.CAREFUL) for reason in step.inverse.not_restored)
        entries.append(answer.Entry(step.title, mark=f"{number:>2}.", below=(answer.command_line(step.command), *lost)))
    return answer.Section(
        "steps",
        "Steps",
        [answer.Entries("step", entries, answer.Style.COMMANDS if plan.safe else answer.Style.REFUSED)],
        weight=answer.Weight.DETAIL,
        summary="" if plan.safe or not entries else "not to be run: a guard stops the plan",
    )


def _way_back(steps: Sequence[Step]) -> str:
    if not (lost := [step for step in steps if step.inverse.not_restored]):
        what = "the step" if len(steps) == 1 else f"all {len(steps):,} steps"
        return f"way back: {what} can be undone" if steps else ""
    return f"no full way back: {count(len(lost), 'step')} of {len(steps)} cannot be undone ({lost[0].title})"


def override_of(guard: GuardResult) -> tuple[str, ...]:
    """Return how to override a guard that fails; nothing for one that passes, or that nobody can override."""
    return (f"override it with --allow {guard.name}, if you must",) if can_be_allowed(guard) else ()


def _guard_entry(guard: GuardResult) -> answer.Entry:
    mark, tone = "passes", Tone.GOOD
    if not guard.ok:
        mark, tone = "FAILS", Tone.BAD
    elif guard.allowed:
        mark, tone = "overridden", Tone.CAREFUL
    lines = tuple(map(answer.Line, override_of(guard)))
    return answer.Entry(mark=mark, tone=tone, name=guard.name, text=guard.message, below=lines)


def plan_figures(plan: Plan, impact: Impact, sections: Iterable[answer.Section]) -> tuple[answer.Figure, ...]:
    """Return the figures of a plan with its impact; what is not known says why. `sections` are those of it.

    Location has one where there are conflicts, now or then.
    """
    known = {section.key: section for section in sections}
    middle: Mapping[str, tuple[str, Callable[[Impact, answer.Section], answer.Figure]]] = {
        "violations": ("newly violating", _violations_figure),
        "capacity": ("capacity", partial(_capacity_figure, in_verdict=plan.safe)),
        "redundancy": ("node failures", _redundancy_figure),
    }
    figures = [
        figure(impact, known[part])
        if part in known
        else answer.Figure(
            name, "?", f"not known: {impact.unavailable.get(part, 'not computed')}", Tone.QUIET, "impact"
        )
        for part, (name, figure) in middle.items()
    ]
    if impact.location is not None and any(map(any, impact.location.numbers)):
        figures.append(_location_figure(impact, impact.location, known["location"]))
    worse = any(section.weight is answer.Weight.WORSE for section in known.values())
    return (_changes_figure(plan), *figures, _guards_figure(plan, worse=worse))


def _tone(section: answer.Section) -> Tone:
    tone = _WEIGHT_TONES.get(section.weight, Tone.GOOD)
    return Tone.CAREFUL if section.unknown and tone is not Tone.BAD else tone


def _warnings_figure(plan: Plan) -> tuple[answer.Figure, ...]:
    """Return the figure of warnings, where nothing changes; none where there are none."""
    warnings = sum(item.severity is Severity.WARNING for item in plan.findings)
    figure = answer.Figure("warnings", f"{warnings:,}", "gpolicy check shows them", Tone.CAREFUL, "findings")
    return (figure,) if warnings else ()


def _changes_figure(plan: Plan) -> answer.Figure:
    detail = [f"in {count(len(plan.steps), 'step')} on {count(len({item.object for item in plan.changes}), 'object')}"]
    warnings = sum(item.severity is not Severity.ERROR for item in plan.findings)
    detail += [f"{len(plan.not_compared):,} not compared"] if plan.not_compared else []
    detail += [count(warnings, "warning")] if warnings else []
    return answer.Figure("changes", f"{len(plan.changes):,}", ", ".join(detail), about="changes")


def _violations_figure(impact: Impact, section: answer.Section) -> answer.Figure:
    change = impact.violations or ViolationChange()
    newly = len(change.newly) + len(change.nodes_newly)
    tone = Tone.BAD if newly else Tone.CAREFUL if section.weight is answer.Weight.WORSE else _tone(section)
    value = "?" if not newly and section.unknown else f"{newly:,}"
    return answer.Figure("newly violating", value, section.worse or section.summary, tone, section.key)


def _capacity_figure(impact: Impact, section: answer.Section, *, in_verdict: bool) -> answer.Figure:
    """Return the figure of capacity, with the row that is worse unless the verdict names it."""
    value, detail = headline(impact.capacity) if impact.capacity else ("?", "")
    worse = [f"worse: {section.worse}"] if section.worse and not in_verdict else []
    tone = _tone(section)
    if tone is Tone.BAD and impact.capacity and not headline_falls(impact.capacity):
        tone = Tone.CAREFUL
    return answer.Figure("capacity", value, "; ".join((*section.unknown, *worse, detail)), tone, section.key)


def _redundancy_figure(impact: Impact, section: answer.Section) -> answer.Figure:
    groups = impact.redundancy.groups if impact.redundancy else ()
    sides = ([item.before for item in groups], [item.after for item in groups])
    now, then = (min((one.survives for one in side if one and one.nodes), default=0) for side in sides)
    value = count(then, "node") if now == then else f"{now} → {count(then, 'node')}"
    parts = [f"of each {'known ' if section.unknown else ''}group may fail", section.summary]
    unmirrored, split = (sum(getattr(item, what) for item in sides[1] if item) for what in ("unmirrored", "split"))
    if split:
        verb = "counts" if split == 1 else "count"
        parts.insert(1, f"{count(split, 'instance')} with the mirror in another group {verb} as if without")
    if unmirrored:
        parts.insert(1, f"{unmirrored:,} without a mirror {'stays' if unmirrored == 1 else 'stay'} down")
    detail = "; ".join((section.summary, *parts[:-1]) if section.worse else parts)
    return answer.Figure("node failures", value, detail, _tone(section), section.key)


def _location_figure(impact: Impact, change: LocationChange, section: answer.Section) -> answer.Figure:
    new = sum(number for number, _, _ in change.numbers)
    cure = f"; remedy: {remedy_figures(impact.remedy)}" if new and impact.remedy and impact.remedy.new else ""
    return answer.Figure("location conflicts", f"{new:,} new", f"{section.summary}{cure}", _tone(section), section.key)


def _guards_figure(plan: Plan, *, worse: bool) -> answer.Figure:
    """Return how many guards fail, whose reasons are a section; else how many pass, and which are overridden."""
    failed = [guard for guard in plan.guards if not guard.ok]
    overridden = [guard for guard in plan.guards if guard.ok and guard.allowed]
    told = [f"{guard.name}: {guard.message}" for guard in overridden]
    more = [f"and {len(told) - _MOST_GUARDS} more"] if len(told) > _MOST_GUARDS else []
    all_of_them = len(plan.guards)
    word = "fails" if len(failed) == 1 else "fail" if failed else "pass"
    value = f"{len(failed) or all_of_them - len(overridden)} of {all_of_them} {word}" if all_of_them else "none"
    detail = "; ".join([*(f"overridden: {text}" for text in told[:_MOST_GUARDS]), *more])
    tone = Tone.BAD if failed else Tone.CAREFUL if overridden else Tone.PLAIN if worse else Tone.GOOD
    in_the_way = "none of them stops it" if worse else "nothing is in the way"
    otherwise = in_the_way if all_of_them else "the policy declares none"
    said = "" if failed else detail or otherwise
    return answer.Figure("guards", value, said, tone if all_of_them else Tone.PLAIN, "guards")
