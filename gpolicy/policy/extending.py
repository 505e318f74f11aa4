"""`extends`: an object takes what it does not say itself from other documents of its kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from gpolicy.findings import Finding, Related
from gpolicy.policy.model import ClusterPolicy, Declared, GroupPolicy, Hardware, Leaf, Leaves, Located, NodeSetPolicy
from gpolicy.policy.structure import EXTENDS_CONFLICT, EXTENDS_CYCLE, EXTENDS_UNKNOWN

Object = TypeVar("Object", bound=Declared)
Find = Callable[[Declared, Located[str]], Declared | None]
"""Returns the document that an object's `extends` entry names, or None."""

MAX_DEPTH = 32


def extend(declared: Object, find: Find, report: Callable[[Finding], None]) -> Object:
    """Return `declared` with what it inherits from its bases, and theirs. Unknown bases and circles are reported."""
    return _extend(declared, find, report, ())


def _extend(declared: Object, find: Find, report: Callable[[Finding], None], chain: tuple[Declared, ...]) -> Object:
    if not declared.extends:
        return declared
    below: tuple[Declared, ...] = (*chain, declared)
    bases: list[Object] = []
    for name in declared.extends:
        base = find(declared, name)
        if not isinstance(base, type(declared)):
            kind = declared.document.root["kind"]
            hint = "name a document of the same kind, or a relative path: base.yaml#NAME"
            report(EXTENDS_UNKNOWN.finding(f"there is no {kind} {name.value!r} to extend", name.span, hint=hint))
        elif any(base.document is seen.document for seen in below) or len(below) > MAX_DEPTH:
            circle = " → ".join([*(seen.name for seen in below), base.name])
            report(EXTENDS_CYCLE.finding(f"{declared.name} extends itself: {circle}", name.span))
        else:
            bases.append(_extend(base, find, report, below))
    return _merge(declared, bases, report)


def _merge(declared: Object, bases: list[Object], report: Callable[[Finding], None]) -> Object:
    leaves: Leaves = {}
    for base in bases:
        for path, leaf in base.leaves.items():
            below = leaves.get(path)
            if below is not None and path not in declared.leaves and _disagree(below, leaf):
                _report_conflict(declared, below, leaf, report)
            leaves[path] = _over(leaf, below)
    for path, leaf in declared.leaves.items():
        leaves[path] = _over(leaf, leaves.get(path))
    merged = replace(declared, leaves=leaves, tags=_first([declared.tags, *(base.tags for base in reversed(bases))]))
    return _merge_kind(merged, bases)


def _disagree(earlier: Leaf, later: Leaf) -> bool:
    """Return whether two bases contradict each other: not where the later one has overridden the earlier itself."""
    return earlier.value != later.value and earlier.span not in {leaf.span for leaf in later.overridden}


def _over(leaf: Leaf, below: Leaf | None) -> Leaf:
    """Return `leaf` with what it wins over, each place once: where several ways lead to it, behind all of them."""
    if below is None or below.span == leaf.span:
        return leaf
    places = {item.span: item for item in reversed((*leaf.overridden, below, *below.overridden))}
    return replace(leaf, overridden=tuple(item for span, item in reversed(places.items()) if span != leaf.span))


def _merge_kind(merged: Object, bases: list[Object]) -> Object:
    nearest = list(reversed(bases))
    if isinstance(merged, ClusterPolicy):
        versions = [
            merged.ganeti_version,
            *(base.ganeti_version for base in nearest if isinstance(base, ClusterPolicy)),
        ]
        return replace(merged, ganeti_version=_first(versions))
    if isinstance(merged, GroupPolicy):
        groups = [base for base in nearest if isinstance(base, GroupPolicy)]
        hardware = merged.hardware
        for base in groups:
            hardware = _merge_hardware(hardware, base.hardware)
        return replace(merged, nodes=_first([merged.nodes, *(base.nodes for base in groups)]), hardware=hardware)
    if isinstance(merged, NodeSetPolicy):
        sets = [base for base in nearest if isinstance(base, NodeSetPolicy)]
        nodes = next((item.nodes for item in (merged, *sets) if item.nodes), ())
        groups_named = next((item.groups for item in (merged, *sets) if item.groups), ())
        return replace(merged, nodes=nodes, groups=groups_named)
    return merged


def _merge_hardware(own: Hardware | None, base: Hardware | None) -> Hardware | None:
    if own is None or base is None:
        return own or base
    return Hardware(
        span=own.span,
        memory=own.memory or base.memory,
        cpus=own.cpus or base.cpus,
        pv_sizes=own.pv_sizes or base.pv_sizes,
        pv_count=own.pv_count or base.pv_count,
    )


def _report_conflict(declared: Declared, one: Leaf, other: Leaf, report: Callable[[Finding], None]) -> None:
    name = ".".join(one.path)
    message = f"the bases of {declared.name} disagree about {name}; the later one holds"
    related = (Related(one.span, "one base says this"), Related(other.span, "a later base says this"))
    hint = f"write {name} in {declared.name} itself, or in only one of its bases"
    report(EXTENDS_CONFLICT.finding(message, declared.extends[-1].span, hint=hint, related=related))


Item = TypeVar("Item")


def _first(items: list[Item | None]) -> Item | None:
    return next((item for item in items if item is not None), None)
