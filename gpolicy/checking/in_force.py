"""The values that hold once the policy is applied, observed ones included: for rules that compare several values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from gpolicy.checking.context import Context, name_of
from gpolicy.findings import Related, Span
from gpolicy.ganeti.parameter import Level, Path, Type, Value
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.policy.model import INHERIT, ClusterPolicy, Declared, GroupPolicy, Leaf, NodeSetPolicy, promised_nodes
from gpolicy.policy.node_patterns import written_out

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
    related = tuple(
        Related(item.leaf.span, f"{item.path[-1]} is here") for item in values if item.leaf and item is not own
    )
    observed = [item for item in values if item.leaf is None]
    note = "".join(f"; {item.path[-1]} is what {name_of(declared)} has now" for item in observed)
    return own.span, related, note


def declared_for(context: Context, node: str, path: Path) -> Leaf | None:
    """Return the declared value that counts for an observed node: of its sets, else its group, else the cluster."""
    wanted = context.desired.nodes.get(node)
    leaf = wanted.leaves.get(path) if wanted else None
    if leaf is not None and leaf.value is not INHERIT:
        return leaf
    group = context.policy.groups.get(context.members.group_of.get(node, ""))
    return (context.own(group, path) if group else None) or context.cluster_leaf(path)


def groups_where(context: Context, declared: Declared, leaf: Leaf) -> list[GroupPolicy]:
    """Return the groups for whose nodes a leaf counts that a cluster, a group or a node set declares."""
    if isinstance(declared, GroupPolicy):
        return [declared]
    if not isinstance(declared, NodeSetPolicy):
        return [group for group in context.groups if context.own(group, leaf.path) is None]
    homes = context.once(_groups_of_nodes)
    names = {group.value for group in declared.groups}
    for entry in declared.nodes:
        names.update(home for name in written_out(entry.value) or () for home in homes.get(name, ()))
    return [group for group in context.groups if group.name in names]


def _groups_of_nodes(context: Context) -> dict[str, list[str]]:
    """Return the nodes that groups surely name, each with those groups: one, or the policy is wrong."""
    homes: dict[str, list[str]] = {}
    for group in context.groups:
        for name in promised_nodes(group) or ():
            homes.setdefault(name, []).append(group.name)
    return homes
