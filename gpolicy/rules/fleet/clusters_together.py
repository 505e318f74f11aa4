"""GP831 to GP836: what clusters of a fleet share by mistake, and what they say beside their base."""

from __future__ import annotations

import pathlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from gpolicy.checking.rule import Fleet, Hit, When, error, hit, information, place_of, real_file, see, warning
from gpolicy.checking.tags import share_nodes
from gpolicy.findings import Located, Severity, Span
from gpolicy.ganeti.vocabulary import Path
from gpolicy.guessing import closest
from gpolicy.policy.files import relative_path
from gpolicy.policy.kinds import Policy
from gpolicy.policy.model import INHERIT, Declared, Leaf, ends, is_glob, matches, written_out
from gpolicy.printable import listed, some
from gpolicy.rules.node_lists import nodes_like
from gpolicy.rules.shared import repeated

_MOST_PATTERNS: Final = 50
"""Patterns with * or ? that are compared with the names of other clusters."""
_MOST_MEANT: Final = 3
_DEFAULT_PREFIX: Final = "aa:00:00"
_POLICY_FAMILIES: Final = frozenset(
    {"ipolicy", "diskparams", "ndparams", "hv_state", "disk_state", "beparams", "hvparams", "enabled_disk_templates"}
)
"""What a fleet has in common, where a cluster does not say otherwise; devices, directories and the like it has not."""


@error("GP831", when=When.FLEET)
def cluster_named_twice(fleet: Fleet) -> Iterator[Hit]:
    clusters = [(number, policy.cluster) for number, policy in enumerate(fleet.policies) if policy.cluster]
    for later, first in repeated(clusters, lambda item: item[1].name.lower()):
        nodes = {number: [item.value for item in _named_nodes(fleet, [number])] for number, _ in (first, later)}
        (_, right), (number, wrong) = sorted(
            (first, later), key=lambda item: -_likeness(item[1].name, item[1].span.file, *nodes[item[0]])
        )
        if place_of(right.span) != place_of(wrong.span):
            message = f"another policy also describes the cluster {wrong.name}"
            hint = "put both into one directory, or correct the name"
            yield hit("cluster", message, wrong.span, hint, see(right.span, "the other"), policy=number)


def _likeness(name: str, *texts: str) -> int:
    """Return how many words of a name occur in what is written of a cluster."""
    words, written = (set(re.findall("[a-z]+", text.lower())) for text in (name, " ".join(texts)))
    return len(words & written)


@error("GP832", When.FLEET)
def node_in_two_clusters(fleet: Fleet) -> Iterator[Hit]:
    for members in fleet.with_one_base:
        first: dict[str, _NamedNodes] = {}
        wild: dict[str, list[_NamedNodes]] = defaultdict(list)  # by what each begins with
        lengths, compared = set[int](), 0  # of what they begin with, and how many they are
        left, lost = 200_000, dict[int, list[str]]()  # names that patterns are written out to
        for named in _named_nodes(fleet, members):
            written = written_out(named.value) if is_glob(named.value) and left > 0 else None
            names = written or [named.value]
            left -= len(names)
            others = [first.setdefault(name, named) for name in names]
            near = ((item, name) for length in lengths for name in names for item in wild.get(name[:length], ()))
            others += [item for item, name in near if matches(item.value, name)]
            if is_glob(named.value) and not written and compared < _MOST_PATTERNS:
                begin, compared = ends(named.value)[0], compared + 1
                lengths.add(len(begin))
                others += [item for name, item in first.items() if matches(named.value, name)]
                wild[begin].append(named)
            other = next((item for item in others if named.meets(item)), None)
            if other is not None:
                right, wrong = sorted(
                    (other, named), key=lambda item: -_likeness(item.value, item.span.file, fleet.name(item.policy))
                )
                what = "a pattern" if is_glob(right.value) else "a node"
                also = f"is also {what} of" if wrong.value == right.value else f"also means nodes of {right.value} in"
                message = f"{wrong.value} {also} {fleet.name(right.policy)}"
                if wrong.policy not in lost:
                    lost[wrong.policy] = [*islice(_in_no_group(fleet.policies[wrong.policy]), _MOST_MEANT)]
                meant = lost[wrong.policy]
                missing = nodes_like(meant[0]) if meant else ""  # as GP613 says
                hint = "write nodes of this cluster, or leave it in the cluster that has it"
                if len(meant) == 1:
                    hint = f"is {meant[0]} meant? A node set names it, and no group does"
                elif meant:
                    hint = f"are {listed(meant)} meant? Node sets name them, and no group does"
                related = see(right.span, "named here")
                yield hit(wrong.label, message, wrong.span, hint, related, missing=missing, policy=wrong.policy)


@dataclass(frozen=True, slots=True)
class _NamedNodes:
    """A name or pattern of nodes, with its policy and group."""

    policy: int
    label: str
    value: str
    span: Span

    def meets(self, other: _NamedNodes) -> bool:
        """Return whether another one is of another cluster, and not the same text of a base."""
        return self.policy != other.policy and place_of(self.span) != place_of(other.span)


def _in_no_group(policy: Policy) -> Iterator[str]:
    """Yield what node sets of a policy name and none of its groups; nothing of a large policy."""
    claimed = {entry.value for group in policy.groups.values() for entry in group.nodes or ()}
    named = (entry.value for nodes in policy.node_sets for entry in nodes.nodes)
    return (name for name in named if len(claimed) < _MOST_PATTERNS and not any(share_nodes(name, c) for c in claimed))


def _named_nodes(fleet: Fleet, members: Iterable[int]) -> Iterator[_NamedNodes]:
    """Yield the nodes that groups of these policies name, without patterns that are too wide, such as node*."""
    for number in members:
        for group in fleet.policies[number].groups.values():
            for node in group.nodes or ():
                if "." in node.value or not is_glob(node.value):
                    yield _NamedNodes(number, group.label, node.value, node.span)


@information("GP833", When.FLEET)
def mac_prefix_shared(fleet: Fleet) -> Iterator[Hit]:
    return _same_prefixes(fleet, are_copied=False)


@warning("GP836", When.FLEET)
def mac_prefix_copied(fleet: Fleet) -> Iterator[Hit]:
    return _same_prefixes(fleet, are_copied=True)


def _same_prefixes(fleet: Fleet, *, are_copied: bool) -> Iterator[Hit]:
    """Yield each cluster with the MAC prefix of an earlier one: a copied one, or the default or that of a base."""
    for members in fleet.with_one_base:
        first: dict[Any, tuple[int, Leaf]] = {}
        for number in members:
            cluster = fleet.policies[number].cluster
            leaf = cluster.leaves.get(("mac_prefix",)) if cluster else None
            if leaf is None:
                continue
            other, earlier = first.setdefault(leaf.value, (number, leaf))
            is_copied = leaf.value != _DEFAULT_PREFIX and leaf.span != earlier.span
            if other != number and is_copied is are_copied:
                verb = "has the mac_prefix of" if is_copied else "makes the same MAC addresses as"
                message = f"{fleet.name(number)} {verb} {fleet.name(other)}"
                related = see(earlier.span, "the same prefix") if earlier.span != leaf.span else ()
                hint = "give each cluster its own, if their networks are connected"
                yield hit("cluster", message, leaf.span, hint, related, policy=number)


@information("GP834", when=When.FLEET)
def fleet_drift(fleet: Fleet) -> Iterator[Hit]:
    for members in fleet.with_one_base:
        said: dict[Path, list[tuple[int, Leaf]]] = defaultdict(list)
        own = {number: {document.file for document in fleet.policies[number].documents} for number in members}
        for number in members:
            cluster = fleet.policies[number].cluster
            for path, leaf in cluster.leaves.items() if cluster else ():
                if path[0] in _POLICY_FAMILIES and leaf.value is not INHERIT:
                    said[path].append((number, leaf))
        for path, entries in said.items():
            is_of_base = any(leaf.overridden or leaf.document.file not in own[number] for number, leaf in entries)
            counts = Counter(repr(leaf.value) for _, leaf in entries)
            if is_of_base or len(counts) < 2:
                continue
            usual = counts.most_common(1)[0][0]
            other, example = next((number, leaf) for number, leaf in entries if repr(leaf.value) == usual)
            for number, leaf in entries:
                if repr(leaf.value) != usual:
                    message = f"{'.'.join(path)} differs from {fleet.name(other)}, which has the same base"
                    related = see(example.span, f"the value of {fleet.name(other)}")
                    hint = "put the common value into the base, and override it where a cluster must differ"
                    yield hit("cluster", message, leaf.span, hint, related, policy=number)
        yield from _tag_rules(fleet, members)
        yield from _forgotten_bases(fleet, members)
        yield from _renamed_groups(fleet, members)


def _forgotten_bases(fleet: Fleet, members: Sequence[int]) -> Iterator[Hit]:
    """Yield clusters and groups that extend nothing, where those of all others, two at least, extend a base of it.

    A base of groups has their name. A cluster may say for itself most of what its base would, a group what it will.
    """
    objects: dict[str, dict[int, Declared]] = defaultdict(dict)
    for number in members:
        policy = fleet.policies[number]
        objects[""].update({number: policy.cluster} if policy.cluster else {})
        for name, group in policy.groups.items():
            objects[name].update({number: group} if not group.removed else {})
    for name, each in objects.items():
        lacking = [number for number, declared in each.items() if not declared.extends]
        others = [declared for declared in each.values() if declared.extends]
        is_one = len(lacking) == 1 and len(others) > 1
        common = set.intersection(*map(_bases_named, others)) if is_one else set[str]()
        for base in sorted(base for base in common if base.endswith(f"#{name}") or not name):
            declared, (file, _, word) = each[lacking[0]], base.rpartition("#")
            of_base = {path for path, leaf in others[0].leaves.items() if real_file(leaf.document.file) == file}
            own = declared.leaves.keys()
            if (own or "hardware" in declared.document.root) if name else len(of_base - own) * 2 < len(of_base):
                continue
            written = f"{relative_path(file, pathlib.Path(declared.document.file).parent)}#{word}".removesuffix("#")
            message = f"{declared.title} extends nothing, but that of all other clusters extends {written}"
            message = message if name else f"this cluster extends nothing, but all others extend {written}"
            found = hit(declared, message, declared.span, f"add `extends: {written}`", policy=lacking[0])
            yield fleet_drift.named(found, Severity.WARNING)


def _renamed_groups(fleet: Fleet, members: Sequence[int]) -> Iterator[Hit]:
    """Yield groups that alone, or alone with almost its name, extend a group of a base, and lose its guards."""
    uses = {number: list(_about_groups(fleet.policies[number])) for number in members}
    about = {group.value: name for each in uses.values() for name, group in each if group}
    for number, own in uses.items() if about else ():
        groups = fleet.policies[number].groups
        bases = ((base, group) for group in groups.values() for base in _bases_named(group))
        missing = about.keys() - groups.keys()
        entries = [(base, group) for base, group in bases if base.rpartition("#")[2] in missing]
        times = Counter(base for base, _ in entries)
        near = Counter(base for base, group in entries if closest(group.name, [base.rpartition("#")[2]]))
        for base, group in entries:
            file, _, name = base.rpartition("#")
            is_slip = near[base] == 1 and closest(group.name, [name])
            lost = about[name] if times[base] == 1 or is_slip else None
            if lost and real_file(lost.span.file) == file and lost.value not in {item.value for item, _ in own}:
                message = f"{lost.value!r} of this base is about group {name}, and so not about {group.name}"
                hint = f"call it {name}, as other clusters do; or write the same for {group.name}"
                related = see(lost.span, "it is here")
                found = hit(group, message, group.document.value_span(("name",)), hint, related, policy=number)
                yield fleet_drift.named(found, Severity.WARNING)


def _about_groups(policy: Policy) -> Iterator[tuple[Located[str], Located[str] | None]]:
    """Yield the names of the guards and tests of a policy, with the groups that they are about."""
    yield from ((guard.name, guard.group) for guard in policy.guards)
    yield from ((scenario.name, scenario.group) for scenario in policy.scenarios)


def _bases_named(declared: Declared) -> set[str]:
    """Return what an object extends, as real paths of files with the names of documents."""
    entries = (entry.value.partition("#") for entry in declared.extends)
    home = pathlib.Path(declared.document.file).parent
    return {f"{real_file(str(home / file))}#{name}" for file, _, name in entries}


def _tag_rules(fleet: Fleet, members: Sequence[int]) -> Iterator[Hit]:
    """Yield the members whose tag rules differ from those that at least two others share."""
    rules = {number: fleet.policies[number].tag_rules for number in members}
    tags = {number: {tag.value: tag for item in each for tag in item.tags} for number, each in rules.items()}
    counts = Counter(frozenset(found) for found in tags.values() if found)
    usual, times = counts.most_common(1)[0] if counts else (frozenset[str](), 0)
    other = next((number for number, found in tags.items() if frozenset(found) == usual), 0)
    for number, found in tags.items() if times > 1 else ():
        if found and found.keys() != usual:
            more, less = sorted(found.keys() - usual), sorted(usual - found.keys())
            how = [f"has {some(more)}"] * bool(more) + [f"lacks {some(less)}"] * bool(less)
            message = f"its tag rules are not those of {fleet.name(other)}: it {' and '.join(how)}"
            span = found[more[0]].span if more else next(iter(found.values())).span
            hint = "write the same rules in each cluster that is to have them"
            yield hit("cluster", message, span, hint, policy=number)


@warning("GP835", when=When.FLEET)
def base_holds_nowhere(fleet: Fleet) -> Iterator[Hit]:
    if not all(policy.is_whole for policy in fleet.policies):
        return  # it may hold in what could not be read
    overridden: dict[tuple[Any, ...], list[tuple[int, Declared, Leaf]]] = defaultdict(list)
    leaves: dict[str, dict[int, Leaf]] = defaultdict(dict)  # each once: hundreds of groups may have one of a base
    for number, policy in enumerate(fleet.policies):
        for declared in policy.objects:
            for leaf in declared.leaves.values():
                leaves[leaf.document.file][id(leaf)] = leaf
                for below in leaf.overridden:
                    overridden[place_of(below.span)].append((number, declared, below))
    files = {place[0] for place in overridden}
    kept = [leaf for file, here in leaves.items() if real_file(file) in files for leaf in here.values()]
    holding = {place_of(leaf.span) for leaf in kept}
    for place, uses in overridden.items():
        if place in holding or len({number for number, _, _ in uses}) < 2:
            continue
        number, declared, leaf = uses[0]
        users = list(dict.fromkeys(fleet.name(user) for user, _, _ in uses))
        shown = f"{' and '.join(users[:2])}{f' and {len(users) - 2} more' if len(users) > 2 else ''}"
        verb = "overrides" if len(users) == 1 else "override"
        message = f"{leaf.dotted} of this base holds in no cluster: {shown} {verb} it"
        hint = "write the value that most clusters need into the base"
        yield hit(declared.label, message, leaf.span, hint, policy=number)
