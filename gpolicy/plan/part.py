"""A part of a plan: which changes it has, what these need, and what it leaves out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Final, NamedTuple

from gpolicy.cluster.state import ClusterState
from gpolicy.errors import ArgumentError, RequestError, argument
from gpolicy.ganeti.parameters import parameters_of
from gpolicy.ganeti.vocabulary import Level, Path
from gpolicy.guessing import did_you_mean
from gpolicy.plan.changes import MEMBERSHIP, NAME, TAGS, Change, ChangeAction, ChangeKey, key_of
from gpolicy.policy.kinds import Policy
from gpolicy.resolve.desired import Desired


@dataclass(frozen=True, slots=True)
class Part:
    """The changes to make: those that one of `only` names (none: all), without those that one of `exclude` names.

    Each is an object (cluster, group/NAME, node/NAME), or one of its values: OBJECT:PATH. Globs are allowed.
    """

    only: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return not self.only and not self.exclude


WHOLE: Final = Part()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A change that the policy asks for, and that this plan leaves out."""

    object: str
    path: Path
    action: ChangeAction


def check_words(option: str, words: Iterable[str], policy: Policy, state: ClusterState) -> None:
    """Raise RequestError for a word of an option that names no object of the policy or the cluster, or no value."""
    groups = {*state.groups, *policy.groups}
    known = ["cluster", *(f"group/{name}" for name in groups), *(f"node/{name}" for name in state.nodes)]
    for word in words:
        objects = [name for name in known if _is_object(word, name)]
        if not objects:
            bare = [name for name in known if name.partition("/")[2] == word]
            otherwise = "name cluster, group/NAME or node/NAME, with :PATH for one value"
            hint = f"Did you mean `{bare[0]}`?" if bare else did_you_mean(word, known, otherwise)
            raise ArgumentError(f"{option} {word[:100]!r} names no object of this cluster", hint=hint)
        _, colon, path = word.partition(":")
        values = {value for name in objects for value in _values_of(Level(name.partition("/")[0]))}
        if colon and not any(fnmatchcase(value, path) or fnmatchcase(path, value) for value in values):
            hint = did_you_mean(path, values, "write a path of Ganeti's names: ipolicy.vcpu-ratio, hvparams.kvm, tags")
            raise ArgumentError(f"{option} {word[:100]!r} names no value of {objects[0]}", hint=hint)


def without_change(part: Part, changes: Collection[Change]) -> tuple[str, ...]:
    """Return a sentence for each word of `part` that names no change."""
    options = [*(("--only", word) for word in part.only), *(("--exclude", word) for word in part.exclude)]
    futile = (item for item in options if not any(_is_named(change, item[1:]) for change in changes))
    return tuple(f"{option} {word} names nothing that changes" for option, word in futile)


@cache
def _values_of(level: Level) -> frozenset[str]:
    """Return the paths of the values that an object has, and what these begin with; `*` stands for any name."""
    paths = [*(parameter.path for parameter in parameters_of(level)), NAME, MEMBERSHIP, TAGS]
    return frozenset(".".join(path[:end]) for path in paths for end in range(1, len(path) + 1))


class Selection(NamedTuple):
    """The keys of the changes of a part and of those that they need, and why it has these as well (`taken_along`)."""

    keys: set[ChangeKey]
    taken_along: list[str]


def choose(policy: Policy, state: ClusterState, changes: Sequence[Change], part: Part) -> Selection:
    """Return which of the changes a part has. Raise RequestError also for words that name nothing here."""
    check_words("only", part.only, policy, state)
    check_words("exclude", part.exclude, policy, state)
    return select(changes, part)


def select(changes: Sequence[Change], part: Part) -> Selection:
    """Return which of the changes a part has.

    Raise RequestError where one of these is excluded.
    """
    if part.is_whole:  # nothing can be missing, and the rest compares each change with each
        return Selection({key_of(item) for item in changes}, [])
    wanted = [item for item in changes if not part.only or _is_named(item, part.only)]
    todo = [item for item in wanted if not _is_named(item, part.exclude)]
    keys = {key_of(item) for item in todo}
    along: list[str] = []
    while todo:
        change = todo.pop(0)
        for needed in changes:
            if needed is change or not _is_needed(needed, change) or key_of(needed) in keys:
                continue
            if _is_named(needed, part.exclude):
                message = f"{_words(change)} needs {_words(needed)}, which {argument('exclude')} leaves out"
                hint = f"exclude {change.object}{'' if change.path == NAME else ':' + '.'.join(change.path)} as well"
                raise RequestError(message, hint=hint)
            along.append(f"{_words(needed)} is taken along: {_words(change)} needs it")
            keys.add(key_of(needed))
            todo.append(needed)
    return Selection(keys, along)


def contradictions_of_part(part: Part, changes: Sequence[Change], missing: Collection[LeftOut]) -> Iterator[str]:
    """Yield why no plan of a part has these changes and leaves out the `missing` ones; nothing if one may."""
    if part.is_whole and missing:
        yield "a whole plan leaves nothing out"
    made = {key_of(change) for change in changes}
    both = (item for item in missing if (item.object, item.path) in made)
    yield from (f"{item.object} {'.'.join(item.path)} is changed and left out" for item in both)
    excluded = (change for change in changes if _is_named(change, part.exclude))
    yield from (f"{_words(change)} is changed, and --exclude leaves it out" for change in excluded)
    named = select(changes, part).keys
    others = (change for change in changes if key_of(change) not in named)
    yield from (f"{_words(change)} is changed, and --only does not name it" for change in others)


def changes_left_out(changes: Iterable[Change], keys: Collection[ChangeKey]) -> tuple[LeftOut, ...]:
    """Return the changes that are not among `keys`."""
    return tuple(LeftOut(*key_of(change), change.action) for change in changes if key_of(change) not in keys)


def without(desired: Desired, keys: Collection[ChangeKey]) -> Desired:
    """Return what a policy wants, less the values, tags, names and groups of nodes among `keys`."""
    groups = {}
    for name, item in desired.groups.items():
        label = f"group/{name}"
        if (label, NAME) in keys:
            continue  # a group that is not made, renamed or removed now has no other change either
        leaves = {path: leaf for path, leaf in item.policy.leaves.items() if (label, path) not in keys}
        tags = None if (label, TAGS) in keys else item.policy.tags
        groups[name] = replace(item, policy=replace(item.policy, leaves=leaves, tags=tags))
    missing = desired.groups.keys() - groups.keys()
    nodes = {}
    for name, node in desired.nodes.items():
        label = f"node/{name}"
        stays = (label, MEMBERSHIP) in keys or (node.group is not None and node.group.value in missing)
        nodes[name] = replace(
            node,
            group=None if stays else node.group,
            leaves={path: leaf for path, leaf in node.leaves.items() if (label, path) not in keys},
            tags=None if (label, TAGS) in keys else node.tags,
        )
    current = {item.current: item.policy for item in groups.values() if item.current is not None}
    return replace(desired, groups=groups, current_groups=current, nodes=nodes)


def _is_needed(other: Change, change: Change) -> bool:
    """Return whether Ganeti refuses a change without another one, or makes it of another object."""
    names_group = other.path == NAME and other.level is Level.GROUP and other.action is not ChangeAction.REMOVE
    if change.action is ChangeAction.REMOVE:  # a group is removed when its nodes are elsewhere
        return other.action is ChangeAction.MOVE and other.before == change.before
    if change.path == NAME:  # its name must be free
        return other.path == NAME and other.before is not None and other.before == change.after
    if change.action is ChangeAction.MOVE and names_group:
        return other.object_name == change.after
    return names_group and other.object == change.object


def _is_named(change: Change, words: Iterable[str]) -> bool:
    objects = {change.object}
    if change.action is ChangeAction.RENAME:
        objects.add(f"group/{change.before}")
    return any(is_chosen(words, name, change.path) for name in objects)


def is_chosen(words: Iterable[str], name: str, path: Path) -> bool:
    """Return whether one of the words (OBJECT or OBJECT:PATH, globs) names this value of an object."""
    dotted = ".".join(path)
    globs = (word.partition(":")[1:] for word in words if _is_object(word, name))
    return any(not colon or fnmatchcase(dotted, glob) or fnmatchcase(dotted, f"{glob}.*") for colon, glob in globs)


def _is_object(word: str, name: str) -> bool:
    return fnmatchcase(name, word.partition(":")[0])


def _words(change: Change) -> str:
    return f"{change.object} ({change.action})" if change.path == NAME else f"{change.object}:{'.'.join(change.path)}"
