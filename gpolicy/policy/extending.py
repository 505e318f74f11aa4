"""`extends`: an object takes missing values from other documents of its kind."""

from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from typing import Any, Final, TypeVar, cast

from gpolicy.findings import Finding, Located, Related
from gpolicy.ganeti.vocabulary import Path
from gpolicy.policy.kinds import KIND_NAMES
from gpolicy.policy.model import ClusterPolicy, Declared, GroupPolicy, Hardware, Leaf, Leaves, NodeSetPolicy
from gpolicy.policy.source_file import ALIAS_BOMB, EXTENDS_CONFLICT, EXTENDS_CYCLE, YamlDocument

Object = TypeVar("Object", bound=Declared)
_WithLeaves = TypeVar("_WithLeaves", bound=Declared | Hardware)
FindBase = Callable[[Declared, Located[str]], Declared | YamlDocument | None]
"""Returns the object that an `extends` entry names, its document if that is broken, or None if there is neither."""

TellUnknown = Callable[[Declared, Located[str]], Finding]
"""Returns what to say of an `extends` entry that names nothing."""

MAX_DEPTH = 32
"""The greatest number of documents in a chain of bases."""

MOST_TAKEN = 100_000
"""The greatest number of values that a policy may take from bases: a hundred groups with a thousand each."""


class Bases:
    """The objects of one place that others may extend, by kind and name, and the broken documents."""

    def __init__(self, objects: Iterable[Declared], broken: Iterable[YamlDocument]) -> None:
        self._broken = list(broken)
        self._kinds: dict[type[Declared], list[Declared]] = {}
        self._named: dict[tuple[type[Declared], str], list[Declared]] = {}
        for item in objects:
            self._kinds.setdefault(type(item), []).append(item)
            self._named.setdefault((type(item), item.name), []).append(item)

    def pick(self, declared: Declared, name: str | None) -> Declared | YamlDocument | None:
        """Return the object of this kind and name, or the only one, but `declared` itself last; else a broken one."""
        kind = type(declared)
        candidates = self._kinds.get(kind, []) if name is None else self._named.get((kind, name), [])
        others = [item for item in candidates if item.document is not declared.document]
        if others and (name is not None or len(others) == 1):
            return others[0]
        if candidates and name is not None:
            return candidates[0]  # an object that extends itself is a cycle, not unknown
        word = declared.document.root["kind"]
        return next((item for item in self._broken if _may_be(item, word, name)), None)

    def names(self, kind: type[Declared]) -> set[str]:
        """Return the names of the objects of a kind."""
        return {item.name for item in self._kinds.get(kind, ())}

    def kinds(self, name: str) -> list[str]:
        """Return the kinds of the objects of a name."""
        found = (self._named.get((kind, name), ()) for kind in self._kinds)
        return [item.document.root["kind"] for items in found for item in items]


def _may_be(broken: YamlDocument, kind: str, name: str | None) -> bool:
    """Return whether a broken document may be the one of this kind and name: what cannot be read may be anything."""
    if broken is broken.source.unfinished or not isinstance(broken.root, dict):
        return True
    written = broken.root.get("name")
    is_kind = broken.root.get("kind") == kind or broken.root.get("kind") not in KIND_NAMES
    return is_kind and (name is None or written == name or not isinstance(written, str))


class Extender:
    """Adds to each object, once, the values of all its bases; reports unknown, circular, conflicting, too long ones."""

    def __init__(self, find: FindBase, unknown: TellUnknown, report: Callable[[Finding], None]) -> None:
        self._find = find
        self._unknown = unknown
        self._report = report
        self._whole: dict[int, tuple[Declared, int]] = {}
        """The extended object, by its document's identity, and the length of its longest chain."""
        self._taken = 0

    def extend(self, declared: Object) -> Object:
        """Return `declared` with inherited values; unchanged if its chain is too long."""
        if (extended := self._extended(declared, ())) is not None:
            return extended[0]
        message = f"{declared.name} extends a chain of more than {MAX_DEPTH} documents"
        hint = "let documents extend one base, or a few, instead of one another"
        self._report(EXTENDS_CYCLE.finding(message, declared.extends[0].span, hint=hint))
        return declared

    def _extended(self, declared: Object, chain: tuple[Declared, ...]) -> tuple[Object, int] | None:
        """Return the extended object and the length of its chain; None if a chain is too long."""
        if (known := self._whole.get(id(declared.document))) is not None:
            return cast(tuple[Object, int], known)
        below: tuple[Declared, ...] = (*chain, declared)
        if len(below) > MAX_DEPTH:
            return None
        bases: list[Object] = []
        height = 0
        for name in declared.extends:
            base = self._base(declared, name, below)
            extended = self._extended(base, below) if base is not None else None
            if base is not None and extended is None:
                return None
            if extended is not None:
                bases.append(extended[0])
                height = max(height, extended[1])
        if height >= MAX_DEPTH:
            return None
        result = (self._merged(declared, bases) if declared.extends else declared, height + 1)
        self._whole[id(declared.document)] = result
        return result

    def _merged(self, declared: Object, bases: list[Object]) -> Object:
        """Return the object with the values of its bases; unchanged once the policy has reached the limit."""
        if self._taken > MOST_TAKEN:
            return declared
        merged = _merge(declared, bases, self._report)
        taken = (leaf.value for leaf in merged.leaves.values() if leaf.document is not declared.document)
        lists = ((merged.tags, declared.tags), (getattr(merged, "nodes", None), getattr(declared, "nodes", None)))
        self._taken += sum(map(_count, taken)) + sum(len(now or ()) for now, own in lists if now is not own)
        if self._taken <= MOST_TAKEN:
            return merged
        message = f"the documents of this policy take over more than {MOST_TAKEN:,} values by `extends`"
        hint = "no policy needs this; let fewer documents extend the long ones"
        self._report(ALIAS_BOMB.finding(message, declared.extends[0].span, hint=hint))
        return declared

    def _base(self, declared: Object, name: Located[str], below: tuple[Declared, ...]) -> Object | None:
        """Return the base that an entry of `extends` names; report an unknown base or a cycle."""
        base = self._find(declared, name)
        if isinstance(base, YamlDocument):
            return None  # its errors are reported already
        if not isinstance(base, type(declared)):
            self._report(self._unknown(declared, name))
        elif any(base.document is seen.document for seen in below):
            circle = " → ".join([*(seen.name for seen in below), base.name])
            around = below[next(place for place, item in enumerate(below) if item.document is base.document) :]
            blamed = next((item for item in around if item.document.root.get("template") is True), declared)
            ring = {id(item.document) for item in around}
            found = ((entry, self._find(blamed, entry)) for entry in ([name] if blamed is declared else blamed.extends))
            span = next(entry.span for entry, item in found if isinstance(item, Declared) and id(item.document) in ring)
            hint = "a base cannot extend what extends it: remove this, or name another base"
            self._report(EXTENDS_CYCLE.finding(f"{blamed.name} extends itself: {circle}", span, hint=hint))
        else:
            return base
        return None


_NEVER_TAKEN: Final = ("name", "document", "span", "leaves", "template", "extends", "renamed_from", "removed")
_TAKEN: Final[dict[type, list[tuple[str, Any]]]] = {
    kind: [(item.name, item.default) for item in fields(kind) if item.name not in _NEVER_TAKEN]
    for kind in (ClusterPolicy, GroupPolicy, NodeSetPolicy, Hardware)
}
"""What an object takes from its bases, each with its value where nothing is written."""


def _merge(declared: Object, bases: list[Object], report: Callable[[Finding], None]) -> Object:
    layers: dict[Path, _Layers] = {}
    conflicts: dict[Path, tuple[Leaf, Leaf]] = {}
    for base in bases:
        for path, leaf in base.leaves.items():
            below = layers.get(path)
            if below is None:
                layers[path] = _Layers(leaf)
                continue
            top = below.top
            overrides = any(item.document is top.document for item in leaf.overridden)
            if path not in declared.leaves and top.value != leaf.value and not overrides:
                conflicts[path] = (top, leaf)
            below.put(leaf)
    for one, other in conflicts.values():
        name = ".".join(one.path)
        message = f"the bases of {declared.name} disagree about {name}; the later one wins"
        related = (Related(one.span, "one base says this"), Related(other.span, "a later base says this"))
        hint = f"write {name} in {declared.name} itself, or in only one of its bases"
        report(EXTENDS_CONFLICT.finding(message, declared.extends[-1].span, hint=hint, related=related))
    leaves: Leaves = {}
    for path, leaf in declared.leaves.items():
        if path in layers:
            layers[path].put(leaf)
        else:
            leaves[path] = leaf
    is_as_base = len(bases) == 1 and not declared.leaves
    whole = bases[0].leaves if is_as_base else {path: item.leaf() for path, item in layers.items()} | leaves
    return _filled(declared, bases[::-1], leaves=whole)


def _filled(own: _WithLeaves, bases: list[_WithLeaves], **found: Any) -> _WithLeaves:
    """Return `own` with what is `found`, and with the values of its bases, the nearest first.

    In mappings of settings by key, else where its own is not written. What is the same as in a base is the same object.
    """
    for base in bases:
        for name, default in _TAKEN[type(own)]:
            value, below = found[name] if name in found else getattr(own, name), getattr(base, name)
            if name in ("limits", "physical_volumes"):
                found[name] = {**below, **value} if value else below
            elif name == "hardware" and value and below:
                found[name] = _filled(value, [below])
            elif value == default:
                found[name] = below
    return replace(own, **found)


class _Layers:
    """The layers of one value from bases; each document once, at its farthest distance."""

    def __init__(self, leaf: Leaf) -> None:
        self.top = leaf
        self._below: dict[int, Leaf] | None = None
        """The lower layers, the nearest last; None if they are those that the top overrides anyway."""

    def put(self, leaf: Leaf) -> None:
        """Put `leaf`, and the values that it overrides, on top."""
        if leaf.document is self.top.document:
            self.top, self._below = leaf, None
            return
        if self._below is None:
            self._below = {id(item.document): item for item in reversed(self.top.overridden)}
        for item in (self.top, *reversed(leaf.overridden)):
            self._below[id(item.document)] = item
        self._below.pop(id(leaf.document), None)
        self.top = leaf

    def leaf(self) -> Leaf:
        """Return the top value, with those that it overrides, nearest first."""
        if self._below is None:
            return self.top
        return replace(self.top, overridden=tuple(reversed(self._below.values())))


def _count(value: object) -> int:
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return 1 + sum(map(_count, below))
