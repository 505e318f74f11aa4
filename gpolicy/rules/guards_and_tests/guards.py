"""GP80x, GP822 and GP823: the guards that a policy declares, and waivers that accept nothing or never end."""

from collections.abc import Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Final

from gpolicy.checking.accepting import DRIFT
from gpolicy.checking.context import Context
from gpolicy.checking.pairs import Pair
from gpolicy.checking.rule import Hit, Same, When, error, hit, see, warning
from gpolicy.findings import RuleParameter, copied
from gpolicy.ganeti.amounts import MOST_NODE_FAILURES
from gpolicy.ganeti.vocabulary import ALLOWED_TEMPLATES, ENABLED_TEMPLATES, VCPU_RATIO, Level
from gpolicy.guessing import closest, did_you_mean, did_you_mean_one_of
from gpolicy.policy.kinds import BUILT_IN, Guard, Measure, Waiver
from gpolicy.policy.model import GroupPolicy, promised_nodes
from gpolicy.printable import count, named
from gpolicy.rules.shared import ALLOC_POLICY, is_closed, of_cluster, repeated, unknown_group, unknown_spec
from gpolicy.rules.tags.domains import has_mirrors

_SOON: Final = 10  # years
_ANY_NODE: Final = "node/*"


def _label(guard: Guard) -> str:
    return f"guard/{guard.name.value}"


@error("GP801", when=When.MORE_WITH_STATE | When.WHOLE)
def guard_unknown_group(context: Context) -> Iterator[Hit]:
    for guard in context.policy.guards:
        if guard.group is not None:
            yield from unknown_group(context, _label(guard), guard.group, f"guard {guard.name.value}: ")


@error("GP802", when=When.MORE_WITH_STATE | When.WHOLE)
def guard_unknown_spec(context: Context) -> Iterator[Hit]:
    for guard in context.policy.guards:
        if guard.spec is not None:
            yield from unknown_spec(context, _label(guard), guard.group, guard.spec, f"guard {guard.name.value}: ")


@error("GP803")
def guard_named_twice(context: Context) -> Iterator[Hit]:
    for guard, earlier in repeated(context.policy.guards, lambda guard: guard.name.value):
        related = see(earlier.name.span, "the first is here")
        message, missing = f"a second guard {guard.name.value!r}", copied(guard.span, earlier.span)
        yield hit(_label(guard), message, guard.name.span, "give it another name", related, missing=missing)


@error("GP804")
def guard_name_taken(context: Context) -> Iterator[Hit]:
    for guard in context.policy.guards:
        if guard.name.value in BUILT_IN:
            message = f"gpolicy has its own guard {guard.name.value!r}"
            yield hit(_label(guard), message, guard.name.span, "give your guard another name")


@warning("GP805", When.WHOLE | When.MORE_WITH_STATE, better=((Same.LABEL, ("GP802",)),), explains=20)
def guard_never_passes(context: Context) -> Iterator[Hit]:
    for guard in context.policy.guards:
        if guard.measure is Measure.MAX_CHANGES and guard.limit == 0:
            message = f"guard {guard.name.value} stops every plan that changes anything"
            yield hit(_label(guard), message, guard.span, "write how many changes one plan may make")
        if guard.measure is Measure.NODE_FAILURES and guard.limit > MOST_NODE_FAILURES:
            lost = f"the loss of {guard.shown_limit} nodes at once"
            message = f"guard {guard.name.value} can never pass: no group survives {lost}"
            yield hit(_label(guard), message, guard.span, f"write at most {MOST_NODE_FAILURES}")
            continue
        reason = _impossible(context, guard)
        if reason:
            message = f"guard {guard.name.value} can never pass: it requires {guard.shown_limit}, but {reason}"
            asked = _groups_for(context, guard) if guard.measure is Measure.AT_LEAST else ()
            shut = next((item for item in asked if is_closed(context, item)), None)
            hint = "open the group, or remove the guard" if shut else "lower the number, or correct the hardware"
            closing = context.own(shut, ALLOC_POLICY) if shut else None
            found = hit(_label(guard), message, guard.span, hint)
            if closing is not None:  # one value, whatever the number of guards
                missing, related = f"instances in {closing.span}", see(guard.span, "the guard is here")
                found = hit(_label(guard), message, closing.span, hint, related, missing=missing)
                found = replace(found, finding=replace(found.finding, because=(closing.span,)))
            yield found


def _groups_for(context: Context, guard: Guard) -> list[GroupPolicy]:
    """Return the groups that a guard is about: one that names none is not about groups that take no instances."""
    if guard.group is not None:
        return [group for group in context.groups if group.name == guard.group.value]
    return [group for group in context.groups if not is_closed(context, group)]


def _impossible(context: Context, guard: Guard) -> str:
    """Return why a group can never give what a guard requires of it, or nothing."""
    return next(filter(None, (_unreachable(context, group, guard) for group in _groups_for(context, guard))), "")


@warning("GP808", When.MORE_WITH_STATE)
def guard_beyond_mirrors(context: Context) -> Iterator[Hit]:
    for guard in context.policy.guards:
        if guard.measure is not Measure.NODE_FAILURES or not 1 < guard.limit <= MOST_NODE_FAILURES:
            continue
        is_said = of_cluster(context, ENABLED_TEMPLATES) is not None
        known = (item for item in _groups_for(context, guard) if is_said or context.effective(item, ALLOWED_TEMPLATES))
        mirrored = [group.name for group in known if has_mirrors(context, group)]
        if mirrored and not _impossible(context, guard):
            groups = named("group", mirrored)
            message = f"guard {guard.name.value} can never hold for DRBD disks in {groups}, though it passes:"
            message += " an instance is lost with both of its nodes, and no longer counts"
            hint = "write 1, or accept it with a reason, if room for the others is what you ask for"
            yield hit(_label(guard), message, guard.span, hint)


def _unreachable(context: Context, group: GroupPolicy, guard: Guard) -> str:
    """Return why a group can never give what a guard requires of it, or nothing."""
    if guard.measure is Measure.AT_LEAST and guard.limit > 0 and is_closed(context, group):
        return f"group {group.name} is unallocable: nothing fits there"
    known = len(promised_nodes(group) or ())
    nodes = known or 500  # Ganeti is made for up to 200 nodes in a cluster; no group has more nodes than this
    hosts = {node.name for node in context.members.hosts_in(group)}
    is_used = context.state is None or any(item.primary_node in hosts for item in context.state.instances.values())
    if guard.measure is Measure.NODE_FAILURES and known and guard.limit >= nodes and is_used:
        return f"group {group.name} has {count(nodes, 'node')}"
    for pair in context.pairs(group) if guard.measure is Measure.AT_LEAST else ():
        if guard.spec is None or guard.spec.value == pair.word:
            for name, most in _most(context, group, pair):
                if guard.limit > most * nodes and most > 0:  # else GP211
                    of = f"{count(nodes, 'node')} of group {group.name}" + ("" if known else ", and no group has more")
                    return f"at most {most * nodes} of {pair.title} fit the {name} of {of}"
    return ""


def _most(context: Context, group: GroupPolicy, pair: Pair) -> Iterator[tuple[str, int]]:
    """Yield how many instances of the largest size of a pair one empty node can hold, by what it has."""
    hardware, largest = group.hardware, pair.maximum
    if hardware is None:
        return
    if hardware.memory and largest["memory-size"]:
        cluster = context.policy.cluster
        limits = {**(cluster.limits if cluster else {}), **group.limits}
        times = limits["oversubscription"].value if "oversubscription" in limits else 1
        yield "memory", int(hardware.memory.value * times // largest["memory-size"])
    ratio = context.effective(group, VCPU_RATIO)
    if hardware.cpus and ratio and largest["cpu-count"]:
        yield "CPUs", int(hardware.cpus.value * ratio.number // largest["cpu-count"])
    volumes = hardware.volume_count
    if context.exclusive(group) and volumes and largest["spindle-use"]:
        yield "physical volumes", volumes // largest["spindle-use"]


@warning("GP806", parameters=(RuleParameter("most", 10000, least=1),))
def guard_never_fails(context: Context, most: float) -> Iterator[Hit]:
    for guard in context.policy.guards:
        nothing = guard.measure.is_least and guard.limit == 0
        enough = most / 10 if guard.measure is Measure.NEWLY_VIOLATING else most
        everything = guard.limit >= (100 if guard.percent else enough) and not guard.measure.is_least
        if guard.percent and guard.limit > 100:
            continue  # an error
        if nothing or everything:
            message = f"guard {guard.name.value}: {guard.measure} {guard.shown_limit} lets every plan pass"
            yield hit(_label(guard), message, guard.span, "write a limit, or remove the guard")
        elif guard.measure is Measure.CAPACITY_LOSS and not guard.percent and guard.limit > 0:
            bound, where = min(_most_of_each(context, guard), default=(guard.limit + 1, ""))
            if guard.limit >= bound:
                loss = f"a loss of {guard.shown_limit} instances"
                message = f"guard {guard.name.value} allows {loss}, but only {bound} of {where}"
                hint = f"write fewer instances, or the share `{guard.shown_limit}%`, if that is meant"
                yield hit(_label(guard), message, guard.span, hint)


def _most_of_each(context: Context, guard: Guard) -> Iterator[tuple[int, str]]:
    """Yield how many instances of the maximum of each size fit at most in a group of a guard, where that is known."""
    for group in _groups_for(context, guard):
        nodes = len(promised_nodes(group) or ())
        for pair in context.pairs(group):
            if guard.spec is None or guard.spec.value == pair.word:
                most = nodes * min((most for _, most in _most(context, group, pair)), default=0)
                yield from [(most, f"{pair.title} fit in group {group.name}")] if most else []


@warning("GP807")
def guard_covered(context: Context) -> Iterator[Hit]:
    strictest: dict[tuple[object, ...], Guard] = {}
    for guard in context.policy.guards:
        if not guard.accepts(strictest.setdefault(guard.about, guard).limit):
            strictest[guard.about] = guard
    for guard in context.policy.guards:
        *measured, group, spec = guard.about
        wider = dict.fromkeys((*measured, each, every) for each in (None, group) for every in (None, spec))
        others = map(strictest.get, wider)
        stricter = next((one for one in others if one not in (None, guard) and guard.accepts(one.limit)), None)
        is_twin = stricter is not None and stricter.name.value == guard.name.value  # GP803
        if stricter is not None and not copied(guard.span, stricter.span if is_twin else None):
            message = f"guard {guard.name.value} never decides: {stricter.name.value} is at least as strict"
            mine, other = sorted((guard, stricter), key=lambda one: one.span.file not in context.policy.paths)
            near = mine.about == other.about and other.span.file not in context.policy.paths
            if near and closest(mine.name.value, [other.name.value]):
                hint = f"Did you mean `{other.name.value}`? A guard of the same name replaces that of the base"
                yield hit(_label(mine), message, mine.name.span, hint, see(other.name.span, "that of the base"))
                continue
            related = see(stricter.span, f"{stricter.name.value} is here")
            yield hit(_label(guard), message, guard.span, "correct what it measures, or remove the guard", related)


@warning("GP822")
def waiver_endless(context: Context) -> Iterator[Hit]:
    now = context.today.year
    for waiver in context.policy.waivers:
        year = waiver.until.partition("-")[0]
        message, hint = f"the waiver of {waiver.rule} lasts until {waiver.until}", ""
        meant = f"{year[:-2]}{year[-1:]}{year[-2:-1]}"  # with two digits exchanged: 2027 of 2072
        if year.isdigit() and int(year) >= 2100:
            hint = "write a day on which somebody should look again; ignore the rule in gpolicy.toml for good"
        elif year.isdigit() and int(year) > now + _SOON and now <= int(meant) <= now + _SOON:
            hint = f"Did you mean `{meant}{waiver.until[len(year) :]}`?"
        if hint:
            yield hit("", message, waiver.span, hint)


@warning("GP823", When.MORE_WITH_STATE | When.WHOLE)
def drift_waiver_idle(context: Context) -> Iterator[Hit]:
    first: dict[str, Waiver] = {}
    for waiver in context.policy.waivers:
        if waiver.rule not in (DRIFT.name, DRIFT.code):
            continue
        wrong = _mistake(context, waiver)
        if wrong is None and first.setdefault(waiver.where, waiver) is not waiver:
            wrong = f"another waiver accepts drift at {waiver.where!r} as well", "keep the one that is right"
        if wrong is not None:
            yield hit("", wrong[0], waiver.span, wrong[1])


def _mistake(context: Context, waiver: Waiver) -> tuple[str, str] | None:
    """Return what is wrong with the `where` of a waiver of drift, and a hint; None if it can accept something."""
    name, colon, path = waiver.where.partition(":")
    if not colon and any(fnmatchcase(file, f"*{waiver.where}") for file in context.policy.paths):
        return None
    objects = _objects(context)
    named = [label for label in objects if fnmatchcase(label, name)]
    if name.startswith("node/") and not named and _may_be_declared(context, name.removeprefix("node/"), path):
        named = [_ANY_NODE]
    if not named:
        known = sorted(label for label in objects if label != _ANY_NODE)
        return f"the policy declares nothing of {name!r}", did_you_mean_one_of(name, "objects", known)
    paths = {path for label in named for path in objects[label]}
    if colon and not any(fnmatchcase(declared, path) for declared in paths):
        hint = did_you_mean(path, paths, "name a value that it declares")
        return f"the policy does not declare {path} of {name}", hint
    return None


def _objects(context: Context) -> dict[str, set[str]]:
    """Return what can drift, as `where` names it, with the paths of its declared values."""
    of_nodes = {leaf.dotted for item in context.policy.node_sets for leaf in context.leaves(item).values()}
    of_nodes |= {"tags", "group"}
    found = {"cluster": {"tags"}, _ANY_NODE: of_nodes}
    for item in (context.policy.cluster, *context.policy.groups.values()):
        if item is not None:
            paths = {leaf.dotted for leaf in context.leaves(item).values()}
            found.setdefault(item.label, set()).update(paths, ("tags", "name", "removed"))
    return found | {f"node/{node}": of_nodes for node in context.observed.nodes}


def _may_be_declared(context: Context, node: str, path: str) -> bool:
    """Return whether the policy may say something of a node (a name or a glob), as far as one knows without state."""
    if context.state is not None:
        return False
    groups, sets = context.policy.groups.values(), context.policy.node_sets
    owned = any(Level.NODE in prefix.value.levels for rules in context.policy.tag_rules for prefix in rules.owns)
    is_open = (owned and path == "tags") or any(group.nodes is None for group in groups)
    names = [name.value for group in groups for name in group.nodes or ()]
    names += [name.value for item in sets for name in item.nodes or ()]
    return is_open or any(letter in node for letter in "*?[") or any(fnmatchcase(node, name) for name in names)
