"""What several rules share: the values that hold once the policy is applied, observed ones included; examples, shapes,
parameters, forms of texts, groups with exclusive storage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeVar, cast

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, hit, see
from gpolicy.data import read_data
from gpolicy.findings import ALMOST, Located, Related, Role, Span
from gpolicy.ganeti.parameters import PARAMETERS, default_in, parameter_at
from gpolicy.ganeti.vocabulary import EXCLUSIVE_STORAGE, MINMAX, Level, Path, Reach, Type, Value
from gpolicy.guessing import did_you_mean_one_of, name_meant
from gpolicy.light_dataclasses import dataclass
from gpolicy.policy import model
from gpolicy.policy.model import ClusterPolicy, Declared, GroupPolicy, Leaf, NodeSetPolicy
from gpolicy.policy.scenario import Scenario, Sizes
from gpolicy.printable import listed, named

_GroupKey = TypeVar("_GroupKey")
_Item = TypeVar("_Item")
ALLOC_POLICY: Final[Path] = ("alloc_policy",)
CLOSED: Final = "unallocable"
_KINDS: Final[dict[Type, type | tuple[type, ...]]] = {
    **dict.fromkeys((Type.INT, Type.SIZE, Type.MIB, Type.FLOAT), (int, float)),
    **dict.fromkeys((Type.STRING, Type.CHOICE), str),
    **dict.fromkeys((Type.LIST, Type.SET), list),
    Type.BOOL: bool,
}


@dataclass(frozen=True, slots=True)
class InForce:
    """A value that will hold: of the policy (`leaf`), or what the cluster has, where the policy says nothing."""

    path: Path
    value: Value
    leaf: Leaf | None = None

    @property
    def number(self) -> float:
        """The value of a numeric parameter."""
        return cast(float, self.value)

    @property
    def texts(self) -> tuple[str, ...]:
        """The words of a list."""
        return tuple(map(str, cast(list[Value], self.value)))

    @property
    def span(self) -> Span | None:
        """Where the policy declares it."""
        return self.leaf.span if self.leaf is not None else None


def value_of(leaf: Leaf) -> InForce:
    """Return the value that a leaf declares."""
    return InForce(leaf.path, cast(Value, leaf.value), leaf)


def in_force(context: Context, declared: Declared, path: Path) -> InForce | None:
    """Return what holds at `path` for the cluster or a group once the policy is applied; None where nobody knows.

    A group's own value comes before the cluster's; what is declared before what is observed. Ganeti's defaults are
    never assumed: an observed cluster shows its own. What is declared and could not be read is not known.
    """
    if context.state is None and path not in context.declared_at:
        return None
    if declared.level is not Level.GROUP:
        return of_cluster(context, path)
    leaf = context.own(declared, path)
    if leaf is not None or context.is_unknown(declared, path):
        return value_of(leaf) if leaf is not None else None
    wanted = context.desired.groups.get(declared.name)
    group = context.observed.groups.get((wanted.current if wanted else declared.name) or "")
    inherits = path in context.leaves(declared)  # else it would have a value of its own
    observed = _readable(path, group.own.get(path)) if group and not inherits else None
    return of_cluster(context, path) if observed is None else InForce(path, observed)


def of_cluster(context: Context, path: Path) -> InForce | None:
    """Return what holds at `path` for the cluster once the policy is applied; None where nobody knows."""
    leaf = context.cluster_leaf(path)
    if leaf is not None or context.is_unknown(context.policy.cluster, path):
        return value_of(leaf) if leaf is not None else None
    value = _readable(path, context.observed.cluster.own.get(path))
    return None if value is None else InForce(path, value)


def is_exclusive(context: Context, declared: Declared) -> bool:
    """Return whether exclusive storage is known to be on for a cluster or group once the policy is applied."""
    exclusive = in_force(context, declared, EXCLUSIVE_STORAGE)
    return exclusive is not None and exclusive.value is True


def is_closed(context: Context, group: GroupPolicy) -> bool:
    """Return whether hail and hspace put nothing into a group."""
    policy = in_force(context, group, ALLOC_POLICY)
    return policy is not None and policy.value == CLOSED


def _readable(path: Path, value: Value) -> Value:
    """Return an observed value if it is of its parameter's type; a cluster may hold anything."""
    parameter = parameter_at(path)
    kind = _KINDS.get(parameter.type, ()) if parameter else ()
    return value if isinstance(value, kind) and isinstance(value, bool) == (kind is bool) else None


def together(context: Context, *paths: Path) -> Iterator[tuple[ClusterPolicy | GroupPolicy, tuple[InForce, ...]]]:
    """Yield cluster and groups with what holds at all `paths`, where it is known and one is declared there."""
    for declared in context.cluster_and_groups if context.declares(*paths) else ():
        if not any(context.own(declared, path) for path in paths):
            continue
        values = tuple(in_force(context, declared, path) for path in paths)
        if all(values):
            yield declared, cast(tuple[InForce, ...], values)


def places(context: Context, declared: Declared, *values: InForce) -> tuple[Span | None, tuple[Related, ...], str]:
    """Return of contradicting values the place of the first that the object declares itself, the places of the others,
    and what a message must add about those that only the cluster has (or nothing).

    What its own document says is the first, before what it extends.
    """
    declares = [item for item in values if item.leaf and context.own(declared, item.path) is not None]
    written = [item for item in declares if item.leaf and item.leaf.document is declared.document]
    own = next(iter([*written, *declares, *values]))
    others = [item.leaf for item in values if item.leaf and item is not own]
    related = tuple(Related(leaf.span, f"{leaf.path[-1]} is here") for leaf in others)
    observed = [item for item in values if item.leaf is None]
    return own.span, related, "".join(f"; {item.path[-1]} is what {declared.title} has now" for item in observed)


def declared_for(context: Context, node: str, path: Path) -> Leaf | None:
    """Return the declared value that counts for an observed node: of its sets, else its group, else the cluster."""
    wanted = context.desired.nodes.get(node)
    leaf = wanted.leaves.get(path) if wanted else None
    if leaf is not None and leaf.value is not model.INHERIT:
        return leaf
    group = context.policy.groups.get(context.members.group_of.get(node, ""))
    return (context.own(group, path) if group else None) or context.cluster_leaf(path)


def groups_where(context: Context, declared: Declared, leaf: Leaf) -> list[GroupPolicy]:
    """Return the groups for whose nodes a leaf counts that a cluster, a group or a node set declares."""
    if isinstance(declared, GroupPolicy):
        return [declared]
    if not isinstance(declared, NodeSetPolicy):
        return [group for group in context.groups if context.own(group, leaf.path) is None]
    homes = context.once(groups_of_nodes)
    names = {group.value for group in declared.groups}
    for entry in declared.nodes:
        names.update(home for name in model.written_out(entry.value) or () for home in homes.get(name, ()))
    return [group for group in context.groups if group.name in names]


def groups_of_nodes(context: Context) -> dict[str, list[str]]:
    """Return the nodes that groups surely name, each with those groups: one, or the policy is wrong."""
    return grouped((name, group.name) for group in context.groups for name in model.promised_nodes(group) or ())


FILES: Final = tuple(parameter.path for parameter in PARAMETERS if parameter.reach in (Reach.FILE, Reach.PROGRAM))
MOST_BITS: Final = 128  # of an IPv6 address
STRIPES: Final[tuple[Path, ...]] = (
    ("diskparams", "plain", "stripes"),
    ("diskparams", "drbd", "data-stripes"),
    ("diskparams", "drbd", "meta-stripes"),
)
HELPER: Final[Path] = ("drbd_usermode_helper",)
IMAGES: Final[tuple[Path, ...]] = (("install_image",), ("zeroing_image",))
RANGES: Final[dict[str, tuple[int, int, str]]] = read_data("drbd.toml")["ranges"]
"""Least and greatest value that DRBD 8.3 and 8.4 take (drbdsetup(8))."""
_LONGEST: Final = 4096
_WORD: Final = re.compile(r"[\w.-]++")


def conflict(context: Context, declared: ClusterPolicy | GroupPolicy, message: str, hint: str, *values: InForce) -> Hit:
    """Return a hit at the first of contradicting values that the object declares itself; the others are related."""
    place, related, note = places(context, declared, *values)
    return hit(declared, f"{message}{note}", place, hint, related)


def grouped(items: Iterable[tuple[_GroupKey, _Item]]) -> dict[_GroupKey, list[_Item]]:
    """Return the items of each key, keys and items in their order."""
    found: dict[_GroupKey, list[_Item]] = {}
    for key, item in items:
        found.setdefault(key, []).append(item)
    return found


def repeated(items: Iterable[_Item], key: Callable[[_Item], object]) -> Iterator[tuple[_Item, _Item]]:
    """Yield the items whose key another one before them has, each with the first of these."""
    first: dict[object, _Item] = {}
    for item in items:
        earlier = first.setdefault(key(item), item)
        if earlier is not item:
            yield item, earlier


def forms_of(code: str) -> dict[Path, dict[str, Any]]:
    """Return what a rule holds texts against, by their path: `templates/forms.toml`, by the rule's code."""
    return {tuple(place.split(".")): form for place, form in read_data("forms.toml")[code].items()}


def misformed(context: Context, code: str) -> Iterator[Hit]:
    """Yield the declared texts that do not have the form of their path, by a rule's code."""
    forms = forms_of(code)
    for declared, leaf in context.explicit_at(*forms):
        form, text = forms[leaf.path], str(leaf.value)[:_LONGEST]
        between, pattern = form.get("between", ""), form["pattern"]
        words = [word.strip() for word in text.split(between)] if between and text else [text]
        is_list = len(words) > 1
        wrong = next((word for word in words if not re.fullmatch(pattern, word) or (is_list and not word)), None)
        if wrong is not None:
            verb = "cannot be" if len(words) == 1 else "has"
            yield hit(declared, f"{leaf.dotted} {verb} {wrong!r}", leaf.span, f"write {form['wanted']}")


def unknown_group(context: Context, subject: Declared | str, group: Located[str], who: str = "") -> Iterator[Hit]:
    """Yield a finding if neither the policy nor the cluster has the group. `who: ` names it stands before it.

    What refers to one missing name is one finding.
    """
    if group.value in context.known_groups:
        return
    if group.value in context.policy.groups:
        message, hint = f"{who}group {group.value!r} is to be removed", "name another group, or keep this one"
    elif new := context.old_names.get(group.value):
        message, hint = f"{who}group {group.value} is renamed to {new}", f"write {new}"
    else:
        known, lacks = context.known_groups, "neither the policy nor the cluster has a"
        message = f"{who}{lacks if context.state else 'the policy has no'} group {group.value!r}"
        hint = did_you_mean_one_of(group.value, "groups", known) if known else "declare the group"
    given = {item.name: item.document.value_span(("name",)) for item in context.groups}
    yield hit(subject, message, group.span, hint, _almost(context, group.value, given), missing=f"group {group.value}")


def unknown_spec(
    context: Context, subject: Declared | str, of_group: Located[str] | str | None, spec: Located[str], who: str = ""
) -> Iterator[Hit]:
    """Yield a finding if the group (None: any group) has no such spec; none if the group is not known either.

    The sizes of this group come first; another group that has the spec comes after them.
    """
    group = of_group.value if isinstance(of_group, Located) else of_group
    known = context.spec_names(group) if group is None or group in context.known_groups else None
    if known is None or spec.value in known:
        return
    message = f"{who}{f'group {group}' if group else 'no group'} has {'no' if group else 'a'} size {spec.value!r}"
    if group is not None and group not in context.policy.groups:
        message += ", since the policy does not declare the group: it has the sizes of the cluster"
    why = _why_unknown(context, of_group, spec.value, known)
    yield hit(subject, message, spec.span, why.hint, why.related, missing=why.missing)


class _Why(NamedTuple):
    """An explanation of a name that a group does not have: what to do, what is missing, and the place of that."""

    hint: str
    missing: str
    related: tuple[Related, ...]


def _why_unknown(context: Context, of_group: Located[str] | str | None, spec: str, known: Collection[str]) -> _Why:
    """Return why a group (None: any group) has only the `known` specs: of the explanations the first that applies."""
    name = of_group.value if isinstance(of_group, Located) else of_group
    group = context.policy.groups.get(name or "")
    cure = did_you_mean_one_of(spec, "specs", tuple(known)) if known else "name the sizes in `minmax`"
    leaf = context.effective(group, MINMAX) if group else None
    inherited = [pair.name or "" for pair in context.lost_pairs(group)] if group else []
    lost = inherited if spec in inherited else []
    as_well = f"write {listed(lost)} in the list of group {name} as well" if lost else ""
    at = [leaf.span] if leaf and lost else [item.finding.span for item in context.found_with(Role.SAME_NAME)]
    sizes = tuple(Related(span, "its sizes are here") for span in at if span and leaf and span.lies_within(leaf.span))
    if forgotten := forgotten_base(context, group):
        return _Why(f"is {forgotten} missing? Else {as_well or cure}", forgotten, sizes)
    usable = [item for item in context.groups if not (lost and is_closed(context, item))]
    having = [item.name for item in usable if spec in [pair.name for pair in context.pairs(item)]]
    elsewhere = f"; {named('group', having[:3])} {'has' if len(having) == 1 else 'have'} it" if having else ""
    other = of_group.span if isinstance(of_group, Located) and group is not None and len(having) == 1 else None
    if other is not None:
        elsewhere = f"; or is group {having[0]} meant, which has it?"
    pairs = (pair for home in ([group] if group else context.cluster_and_groups) for pair in context.pairs(home))
    given = {pair.name: pair.leaf.at(pair.index, "name") for pair in pairs if pair.name}
    related = sizes or _almost(context, spec, given)
    if name is not None and group is None:
        near = name_meant(name, context.policy.groups)
        if near is None:
            return _Why(f"{cure}{elsewhere}", f"group {name}", related)
        declared = see(context.policy.groups[near].document.value_span(("name",)), "declared here")
        misspelt = f"the policy declares {near}: one of the two names is misspelt"
        return _Why(f"{misspelt}{elsewhere}", f"group {name}", declared)
    if lost and leaf:
        inherited_meant = f"if the inherited {'one is' if len(lost) == 1 else 'ones are'} meant, {as_well}"
        return _Why(f"{cure}; {inherited_meant}{elsewhere}", lost_at(leaf), related)
    return _Why(f"{cure}{elsewhere}", f"another group at {other}" if other else f"size {spec}", related)


def _almost(context: Context, name: str, given: Mapping[str, Span]) -> tuple[Related, ...]:
    """Return where almost the same name is given, if it stands nowhere else in the policy."""
    near = name_meant(name, given)
    uses = [_WORD.findall(file.text).count(near) for file in context.policy.files.values() if near]
    return see(given[near], ALMOST) if near and sum(uses) == 1 else ()


def forgotten_base(context: Context, group: Declared | None) -> str:
    """Return the `extends` that a group lacks and all others, two at least, have; nothing where they have none."""
    others = [item for item in context.groups if item is not group]
    if group is None or group.extends or len(others) < 2:
        return ""
    common = set[str].intersection(*({entry.value for entry in item.extends} for item in others))
    base = next((entry.value for entry in others[0].extends if entry.value in common), "")
    return f"`extends: {base}` in {group.title}" if base else ""


def lost_at(leaf: Leaf) -> str:
    """Return what is missing where a list of sizes replaces those that it would inherit."""
    return f"sizes lost at {leaf.span}"


def lost_sizes(context: Context, declared: Declared, sizes: Mapping[str, int], what: str) -> Hit | None:
    """Return a hit at a list of sizes if it replaces an inherited one that takes an instance of these sizes."""
    leaf, lost = context.effective(declared, MINMAX), context.lost_pairs(declared)
    if leaf is None or all(pair.outside(sizes.items()) for pair in lost):
        return None
    names = listed(pair.word for pair in lost)
    message = f"this list replaces the inherited one: {names} {'is' if len(lost) == 1 else 'are'} no longer allowed"
    hint = f"write {names} in this list as well, if they are meant; else correct std"
    return hit(declared, f"{message} here, and {what}", leaf.span, hint, see(lost[0].leaf.span, "the inherited list"))


def moved(context: Context, nodes: Iterable[str]) -> tuple[Related, ...]:
    """Return where the policy moves the first of these nodes into another group, if it does."""
    homes = ((name, node.group) for name in nodes if (node := context.desired.nodes.get(name)))
    old = {name: context.desired.name_after(context.observed.nodes[name].group) for name in nodes}
    places = (see(home.span, f"{name} is moved here") for name, home in homes if home and home.value != old[name])
    return next(places, ())


def exclusive_hit(
    context: Context, declared: Declared, leaf: Leaf, exclusive: Leaf, message: str, hint: str, place: Span
) -> Hit:
    """Return a hit at what the object says itself, a leaf (at `place`) or exclusive storage; the other is related."""
    if context.own(declared, leaf.path) is not None:
        return hit(declared, message, place, hint, see(exclusive.span, "exclusive storage is on"))
    return hit(declared, message, exclusive.span, hint, see(place, "inherited from the cluster"))


def sizes_of(scenario: Scenario) -> Iterator[Sizes]:
    """Yield the sizes of the instance that a test asks for, and of those that it simulates."""
    yield from () if scenario.sizes is None else (scenario.sizes,)
    yield from (item.sizes for part in scenario.stage.simulated for item in part.instances)


def exclusive_groups(context: Context) -> Iterator[tuple[GroupPolicy, Leaf, model.Hardware]]:
    """Yield the groups that promise hardware and are known to have exclusive storage on."""
    for group in context.groups if context.declares(EXCLUSIVE_STORAGE) else ():
        exclusive = context.exclusive(group)
        if exclusive is not None and group.hardware is not None:
            yield group, exclusive, group.hardware


def with_lost_digit(context: Context, number: InForce) -> str:
    """Return the beginning of a hint for a tenth of what the cluster has, or of Ganeti's default; or nothing."""
    known = context.observed.cluster.own.get(number.path), default_of(context, number.path)
    return f"is {10 * number.number:g} meant? Else " if number.leaf and 10 * number.number in known else ""


def default_of(context: Context, path: Path) -> Any:
    """Return Ganeti's default of a parameter in the release that is checked for."""
    parameter = parameter_at(path)
    return default_in(parameter, context.version) if parameter is not None else None
