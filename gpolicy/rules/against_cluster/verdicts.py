"""GP724, GP725, GP741 to GP743 and GP748 to GP750: what nodes have, and what guards and tags say of the plan."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from gpolicy.checking.context import Context
from gpolicy.checking.pairs import amount
from gpolicy.checking.rule import Hit, Same, When, error, hit, see, warning
from gpolicy.findings import NO_PLAN, Finding, Located, Role, RuleParameter, Severity, Span
from gpolicy.ganeti.vocabulary import ALLOWED_TEMPLATES, EXCLUSIVE_STORAGE, MINMAX, Level, Path
from gpolicy.policy.kinds import BUILT_IN, Guard, Measure
from gpolicy.printable import count, named, some
from gpolicy.rules.node_limits import excesses_by_group, own_pool, promised_disk
from gpolicy.rules.shared import grouped, moved
from gpolicy.rules.tags.domains import two_sides

if TYPE_CHECKING:
    from gpolicy.analysis.violations import ParameterBreach, PolicyViolation
    from gpolicy.checking.tags import Tag
    from gpolicy.cluster.state import LiveInstance
    from gpolicy.impact.comparison import ViolationChange
    from gpolicy.impact.impact import LocationChange
    from gpolicy.plan.built_in_guards import GuardResult
    from gpolicy.plan.changes import Objection
    from gpolicy.plan.sides import Sides
    from gpolicy.policy.model import Declared, Hardware

_CAUSES: Final = {"disk-templates": ALLOWED_TEMPLATES, "spindles": EXCLUSIVE_STORAGE}
"""What says that a value is not allowed, by the name of the value; of all others the sizes do."""
_PLANNED: Final = When.STATE | When.WHOLE | When.NO_PLAN
"""When rules about the plan that a policy leads to run."""
_BETTER_THAN_GUARDS: Final = (
    ("expressible", ("GP101", "GP102")),
    ("templates-enabled", ("GP301", "GP308")),
    ("templates-in-use", ("GP309",)),
    ("std-in-bounds", ("GP205", "GP206")),
    ("groups-empty", ("GP721", "GP722")),
    ("storage-set-up", ("GP304", "GP305", "GP311")),
    ("exclusive-storage", ("GP412", "GP417", "GP418")),
)


def _sides(context: Context) -> Sides | None:
    """Return the observed cluster before and after the plan that the policy leads to, if that can be told."""
    return context.forecast.sides(context.policy, context.state, context.desired) if context.state else None


def _all_verdicts(context: Context) -> tuple[tuple[GuardResult, ...], tuple[GuardResult, ...]]:
    sides = context.once(_sides)
    return context.forecast.verdicts(context.policy, sides) if sides else ((), ())


def _verdicts(context: Context) -> list[tuple[Guard, GuardResult]]:
    """Return the guards of the policy, each with its verdict on the plan."""
    declared, _ = context.once(_all_verdicts)
    return list(zip(context.policy.guards, declared, strict=False))


@warning("GP748", _PLANNED | When.LAST, silent_after=("GP",), role=Role.WEAK | Role.USES)
def guard_stops_plan(context: Context) -> Iterator[Hit]:
    for guard, verdict in context.once(_verdicts):
        if not verdict.ok and not (guard.measure is Measure.NEWLY_VIOLATING and context.once(_violating)):  # GP749
            name = guard.name.value
            meant = f"if that is meant, change its limit, or override it with gpolicy plan --allow {name}"
            hint = f"{verdict.message}; {meant}"
            about = guard.group.value if guard.group else ""
            missing = f"group {about}" if about and about not in context.policy.groups else ""
            found = hit(f"guard/{name}", f"guard {name} would stop the plan", guard.span, hint, missing=missing)
            is_counted = guard.measure is Measure.MAX_CHANGES  # no wrong value makes them many
            yield found if is_counted else _because(context, found, guard.group)
    _, built_in = context.once(_all_verdicts)
    for verdict in built_in:
        hint = f"if that is meant, override the guard with gpolicy plan --allow {verdict.name}"
        places = {span for _, span in context.once(_changed)}
        place = places.pop() if len(places) == 1 else None
        found = hit("cluster", f"guard {verdict.name} would stop the plan: {verdict.message}", place, hint)
        yield _because(context, found)


def _changed(context: Context) -> list[tuple[str | None, Span]]:
    """Return where the policy says what the plan changes, with the group whose change it is, if it is one."""
    sides = context.once(_sides)
    places: dict[tuple[str | None, Span], None] = {}
    for change in sides.changes if sides is not None else ():
        name = change.object_name if change.level is Level.GROUP else None
        group = context.policy.groups.get(name or "") if change.path == ("name",) else None
        span = change.span if group is None else group.document.value_span(())
        places.update({(name, span): None} if span is not None else {})
    return list(places)


def _because(context: Context, found: Hit, group: Located[str] | None = None) -> Hit:
    """Return what the plan leads to, with the changes that it comes from: that at its place, or those of its group."""
    place, changed = found.finding.span, context.once(_changed)
    around = [span for _, span in changed if place is not None and place.lies_within(span)]
    others = [span for name, span in changed if group is None or name in (None, group.value)]
    return replace(found, finding=replace(found.finding, because=tuple(dict.fromkeys(around or others))))


@warning("GP749", _PLANNED | When.LAST, explains=20, silent_after=("GP",), role=Role.DECIDES)
def instances_violate(context: Context) -> Iterator[Hit]:
    violating = context.once(_violating)
    about = [item for item in context.once(_verdicts) if item[0].measure is Measure.NEWLY_VIOLATING]
    stopping = [guard.name.value for guard, verdict in about if not verdict.ok]
    if about and not stopping:
        return
    meant = ", or write a guard newly_violating that says how many are meant"
    if stopping:
        allowed = " ".join(f"--allow {name}" for name in stopping)
        meant = f"; if that is meant, override {named('guard', stopping)} with gpolicy plan {allowed}"
    for item in violating:
        yield _because(context, replace(item, finding=replace(item.finding, hint=f"{item.finding.hint}{meant}")))
    known = context.once(_violations) if not about else None
    if known and (why := "; ".join(f"{name}: {why}" for name, why in known.uncertain().items())):
        note = hit("cluster", f"whether the plan makes anything violate the policy is not known: {why}", None)
        yield instances_violate.named(note, Severity.INFO)


def _violations(context: Context) -> ViolationChange | None:
    """Return what the plan changes about the instances and nodes that violate the policy; None without a change."""
    sides = context.once(_sides)
    if sides is None or not sides.changes:
        return None
    return context.forecast.impact(sides, "violations").violations


def _violating(context: Context) -> list[Hit]:
    known = context.once(_violations)
    return [*_refused(context, known), *_above_ratios(context, known)] if known is not None else []


def _above_ratios(context: Context, known: ViolationChange) -> Iterator[Hit]:
    """Yield the groups whose nodes would be above a ratio that they keep now."""
    breaches = ((item, breach) for item in known.nodes_newly for breach in item.after)
    at_ratio = (((item.group, breach.parameter), f"{item.node} ({breach.sentence})") for item, breach in breaches)
    for (group, parameter), nodes in sorted(grouped(at_ratio).items()):
        declared = context.policy.groups.get(group) or context.policy.cluster
        leaf = context.effective(declared, ("ipolicy", parameter)) if declared else None
        message = f"group {group} would have nodes above its {parameter}: {some(nodes, 2)}"
        cure = f"raise {parameter}, or move instances away first"
        yield hit(context.policy.groups.get(group, "cluster"), message, leaf.span if leaf else None, cure)


class _Cause(NamedTuple):
    """What would no longer allow instances of a group: a value of its policy, of sizes one by its number (else 0)."""

    group: str
    path: Path
    pair: int


@dataclass(frozen=True, slots=True)
class _Affected:
    """What a cause would no longer allow: parameters or templates by instance, and the amounts that these need."""

    place: Span | None
    parameters: dict[str, list[str]]
    wanted: set[str]


def _refused(context: Context, known: ViolationChange) -> Iterator[Hit]:
    """Yield the groups that would no longer allow instances, at the values that do not."""
    for cause, refused in sorted(_causes_of(context, known).items()):
        names = [f"{name} ({', '.join(words)})" for name, words in refused.parameters.items()]
        message = f"group {cause.group} would no longer allow {some(names)}"
        what, missing = "their sizes", ""
        if cause.path == ALLOWED_TEMPLATES:
            what, missing = "their disk templates", f"{next(iter(refused.parameters.values()))[0]} in {refused.place}"
        elif cause.path == MINMAX and len(refused.wanted) == 1:
            what = next(iter(refused.wanted)) or what
        group = context.policy.groups.get(cause.group, "cluster")
        yield hit(group, message, refused.place, f"allow {what}", missing=missing)


def _causes_of(context: Context, known: ViolationChange) -> dict[_Cause, _Affected]:
    """Return what would no longer allow instances of the group in which they stay.

    Instances between two sizes count for the one that most of the group are nearest to.
    """
    groups, state = context.policy.groups, context.observed
    current = {name: group.current for name, group in context.desired.groups.items()}
    refused: list[tuple[LiveInstance, Declared, PolicyViolation, Sequence[PolicyViolation]]] = []
    for name, after in [(item.instance, item.after) for item in known.newly if item.after is not None]:
        instance, declared = state.instances[name], groups.get(after.group) or context.policy.cluster
        before = state.nodes[instance.primary_node].group
        if declared is not None and current.get(after.group, after.group) == before:  # else its node moves: GP723
            pairs = [(pair.minimum, pair.maximum) for pair in context.pairs(declared)]
            nearest = context.forecast.breached_pairs(pairs, state.groups[before], instance, after) or (after,)
            refused.append((instance, declared, after, nearest))
    uses = Counter((item.group, item.pair) for _, _, _, nearest in refused for item in nearest)
    found: dict[_Cause, _Affected] = {}
    for instance, owner, after, nearest in refused:
        own = max(nearest, key=lambda item: uses[item.group, item.pair])
        switched = after.exclusive_storage != state.on_exclusive_storage(instance)
        breaches = [breach for breach in after.breaches if breach.beyond is None]
        for breach in (*breaches, *(breach for breach in own.breaches if breach.beyond is not None)):
            is_switch = switched and breach.parameter == "spindle-use"
            path = EXCLUSIVE_STORAGE if is_switch else _CAUSES.get(breach.parameter, MINMAX)
            cause = _Cause(after.group, path, own.pair if path == MINMAX else 0)
            if cause not in found:
                found[cause] = _Affected(_place(context, owner, path, own.pair, breach), {}, set())
            parameter = str(instance.disk_template) if path == ALLOWED_TEMPLATES else breach.parameter
            found[cause].parameters.setdefault(instance.name, []).append(parameter)
            number = breach.value if isinstance(breach.value, int) else 0
            found[cause].wanted.add(f"{breach.parameter} {amount(breach.parameter, number)}" if number else "")
    return found


def _place(context: Context, declared: Declared, path: Path, pair: int, breach: ParameterBreach) -> Span | None:
    """Return where the policy says what an instance would no longer conform to; `pair` is the number of its size."""
    pairs = context.pairs(declared) if path == MINMAX else ()
    if breach.beyond is not None and pair <= len(pairs):
        return pairs[pair - 1].at("min" if breach.beyond < 0 else "max", breach.parameter)
    leaves = (context.effective(declared, each) for each in (path, MINMAX, ALLOWED_TEMPLATES))
    return next((leaf.span for leaf in leaves if leaf is not None), None)


@warning(
    "GP750",
    _PLANNED | When.LAST | When.TOLD,
    better=((Same.PLACE, ("GP507", "GP518", "GP519")),),
    silent_after=("GP",),
)
def placed_against_tags(context: Context, found: Sequence[Finding]) -> Iterator[Hit]:
    if not context.tags and not context.policy.owned:
        return
    sides = context.once(_sides)
    known = context.forecast.impact(sides, "location").location if sides else None
    at_place: dict[tuple[str, Span | None], dict[str, list[_Wrong]]] = defaultdict(lambda: defaultdict(list))
    rules = [tag for tag in context.tags if tag.level is Level.CLUSTER and tag.family and tag.suffix]
    for wrong in _newly_wrong(known) if known else ():
        at_place[_place_of_tag(context, rules, wrong)][wrong.words].append(wrong)
    stopped = tuple(item for item in found if item.because and item.code == guard_stops_plan.info.code)
    for (label, span), kinds in at_place.items():
        hint = "correct the tags; if they are right, gpolicy plan shows the moves that cure it"
        message = "; ".join(_sentence(words, items) for words, items in kinds.items())
        said = _because(context, hit(label, message, span, hint))
        # what cannot be moved takes the room for others: guards of capacity and of node losses follow from it
        yield replace(said, finding=replace(said.finding, consequences=stopped if _STRANDED in kinds else ()))


_STRANDED: Final = "no other node would take {names} (for want of {tags})"


@dataclass(frozen=True, slots=True)
class _Wrong:
    """What is newly wrong with the place of instances: a sentence about them, the tags, and nodes with these tags.

    `domain`: the failure domain whose values are too few.
    """

    words: str
    instances: tuple[str, ...]
    tags: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    domain: str | None = None


def _newly_wrong(change: LocationChange) -> Iterator[_Wrong]:
    for shared in change.shared_domains.new:
        words = "both nodes of {names} would be in one failure domain ({tags})"
        yield _Wrong(words, (shared.instance,), shared.tags, (shared.primary_node, shared.secondary_node))
    for on_node in change.exclusion_conflicts.new:
        words = "{names} would each be on a node with another of its exclusion tag ({tags})"
        yield _Wrong(words, on_node.instances, (on_node.tag,))
    for conflict in change.domain_conflicts.new:
        if len(conflict.nodes) > 1:  # else they are on one node
            words = "{names} would each be in a failure domain with another of its exclusion tag ({tags})"
            yield _Wrong(words, conflict.instances, (conflict.domain, conflict.tag), conflict.nodes)
    for excess in change.unsatisfiable.new:
        places = "nodes" if excess.domain_kind is None else f"values of {excess.domain_kind}"
        words = f"group {excess.group} would have too few {places} to keep all with {{tags}} apart ({{names}})"
        yield _Wrong(words, excess.instances, (excess.tag,), domain=excess.domain_kind)
    for stranded in change.stranded.new:
        lacking = sorted({tag for _, tags in stranded.targets for tag in tags})
        yield _Wrong(_STRANDED, (stranded.instance,), tuple(lacking), (stranded.primary_node,))
    for missing in change.desired_missing.new:
        words = f"no node of group {missing.group} would be where {{names}} should be ({{tags}})"
        yield _Wrong(words, (missing.instance,), (missing.tag,))


def _sentence(words: str, items: list[_Wrong]) -> str:
    names = some(sorted({name for item in items for name in item.instances}))
    tags = some(sorted({tag for item in items for tag in item.tags}), 3)
    return words.replace("{names}", names).replace("{tags}", tags)


def _place_of_tag(context: Context, rules: Sequence[Tag], wrong: _Wrong) -> tuple[str, Span | None]:
    """Return the object and the place of the tag that makes it wrong: a new one of the cluster, else of a node."""
    old = context.observed.cluster.tags
    tags = (*wrong.tags, *([f"{wrong.domain}:"] if wrong.domain else []))
    about = [rule for rule in rules if any(tag.startswith(rule.suffix) or tag in two_sides(rule) for tag in tags)]
    about.sort(key=lambda rule: rule.text in old)
    if about and about[0].text not in old:
        return about[0].label, about[0].span
    for node in (node for nodes in context.tagged_nodes.values() for node in nodes if node.name in wrong.nodes):
        for tag in wrong.tags:
            place = node.tags.get(tag)
            if place is not None and tag not in context.observed.nodes[node.name].tags:
                return place
    return (about[0].label, about[0].span) if about else ("cluster", None)


def _said_by_guards(context: Context, hint: str, *, overridable: bool) -> Iterator[Hit]:
    if context.desired.findings:
        return  # what the plan would be is not known before these are mended
    for name, raised in context.once(_objections).items():
        for objection in raised if BUILT_IN[name] is overridable else ():
            yield replace(hit("", f"{name}: {objection.text}", objection.span, hint.format(name)), guard=name)


def _objections(context: Context) -> Mapping[str, Sequence[Objection]]:
    """Return what the built-in guards have against the plan for the observed cluster."""
    sides = context.once(_sides)
    return context.forecast.objections(context.policy, context.state, sides) if sides and context.state else {}


@error("GP741", _PLANNED, stays=NO_PLAN, better=_BETTER_THAN_GUARDS, explains=15)
def plan_impossible(context: Context) -> Iterator[Hit]:
    return _said_by_guards(context, "change what the policy says, or the cluster, first", overridable=False)


@warning("GP742", _PLANNED, better=_BETTER_THAN_GUARDS, silent_after=("GP",))
def plan_unsafe(context: Context) -> Iterator[Hit]:
    hint = "correct the policy; if it is meant, override the guard with gpolicy plan --allow {}"
    return _said_by_guards(context, hint, overridable=True)


@warning("GP724", When.STATE, explains=25)
def spec_beyond_nodes(context: Context) -> Iterator[Hit]:
    for group in context.groups:
        for excess in context.once(excesses_by_group).get(group.name, ()):
            if excess.limit.span is None:
                hint = excess.cure(context, excess.limit.usable) if excess.bound == "max" else "make the size smaller"
                message = excess.sentence(f"any node of {group.title}")
                yield hit(group, message, excess.place, hint, excess.limit.places, missing=excess.missing)


@warning(
    "GP725", When.STATE, parameters=(RuleParameter("tolerance", 5, most=100),), explains=22, role=Role.BROKEN_PROMISE
)
def hardware_not_as_promised(context: Context, tolerance: float) -> Iterator[Hit]:
    share = 1 - tolerance / 100
    for group, hardware in ((group, group.hardware) for group in context.groups if group.hardware):
        lacking: dict[str, list[tuple[str, str, str, Span]]] = {}
        for node in context.members.hosts_in(group):
            had = node.resources
            volumes = [volume.size for volume in own_pool(context, group, node).allocatable]
            spindles = had.spindles_total if context.observed.has_exclusive_storage(node) else None
            number = len(volumes) or spindles or _volumes_seen(hardware, had.disk_total or 0, share)
            disk = promised_disk(hardware) if not volumes else None
            if disk and number and hardware.pv_count and number < hardware.pv_count.value:  # which is wrong already
                disk = replace(disk, value=disk.value * number // hardware.pv_count.value)
            promised = (
                ("memory", "memory-size", hardware.memory, had.memory_total or None, share),
                ("CPUs", "cpu-count", hardware.cpus, had.cpu_total or None, 1.0),
                ("physical volumes", "disk-count", hardware.pv_count, number or None, 1.0),
                ("disk", "disk-size", disk, had.disk_total or None, share),
                ("a physical volume of", "disk-size", hardware.smallest_volume, min(volumes, default=None), share),
            )
            for what, kind, item, size, part in promised:
                if item is not None and size is not None and size < item.value * part:
                    less = (node.name, amount(kind, size), amount(kind, item.value), item.span)
                    lacking.setdefault(what, []).append(less)
        for what, found in lacking.items():
            name, has, wanted, span = found[0]
            several = f"{name} and {count(len(found) - 1, 'more node')} of {group.title} have"
            who = several if len(found) > 1 else f"{name} in {group.title} has"
            message = f"{who} less than promised: {what} {has}, not {wanted}"
            hint = "correct the promise, or put nodes that differ into another group"
            is_of_all = len(found) == len(context.members.hosts_in(group)) and {item[1] for item in found} == {has}
            if has.isdecimal() and is_of_all:
                hint = f"is {has} meant, as the nodes have? Else {hint}"
            related = (*see(hardware.span, "promised here"), *moved(context, [name]))
            yield hit(group, message, span, hint, related, missing=f"promise at {hardware.span}")


def _volumes_seen(hardware: Hardware, disk: int, share: float) -> int:
    """Return how many volumes of the promised size make the disk of a node, if pv_count is a slip of that; else 0."""
    size, count = hardware.pv_sizes[0].value if len(hardware.pv_sizes) == 1 else 0, hardware.pv_count
    number = round(disk / size) if size else 0
    is_whole = number > 0 and share <= disk / (number * size) <= 1 / share
    written = str(count.value) if count else ""
    is_slip = sorted(written) == sorted(str(number)) or written.startswith(str(number))
    return number if is_whole and is_slip else 0
