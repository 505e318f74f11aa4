"""GP83x: several policies checked together: what one of them alone cannot show.

Policies are of one fleet where their documents extend the same base. Names of clusters are compared in any case.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, Final

from gpolicy.checking.rule import Hit
from gpolicy.findings import Related, RuleInfo, Severity, Span
from gpolicy.fit.desired import is_glob
from gpolicy.ganeti.parameter import Path
from gpolicy.policy.model import INHERIT, Declared, Leaf, Policy
from gpolicy.policy.source_file import YamlDocument

_BASE: Final = (
    "# base.yaml\ngpolicy: v1\nkind: Cluster\nname: fleet\ntemplate: true\ndiskparams:\n  drbd: {c-max-rate: 60M}\n"
)


def _member(town: str, more: str = "") -> str:
    head = f"# {town}/cluster.yaml\ngpolicy: v1\nkind: Cluster\nname: {town}.example.org\n"
    return f"{head}extends: ../base.yaml#fleet\n{more}"


def _group(town: str, nodes: str) -> str:
    return f"# {town}/group.yaml\ngpolicy: v1\nkind: NodeGroup\nname: main\nnodes: [{nodes}]\n"


def _files(*files: str) -> str:
    return "---\n".join(files)


_GOOD: Final = _files(_BASE, _member("amsterdam"), _member("berlin"))

CLUSTER_TWICE: Final = RuleInfo(
    code="GP831",
    name="cluster-named-twice",
    severity=Severity.ERROR,
    summary="Two policies are for a cluster of the same name.",
    rationale="Each plans the cluster back to what it says: whichever is applied last wins, until the other is.",
    source="gpolicy",
    bad=_files(_member("amsterdam"), _member("amsterdam").replace("# amsterdam", "# berlin"), _BASE),
    good=_GOOD,
)
NODE_IN_TWO_CLUSTERS: Final = RuleInfo(
    code="GP832",
    name="node-in-two-clusters",
    severity=Severity.ERROR,
    summary="Two clusters of a fleet name the same node.",
    rationale="A node is in exactly one cluster. One of the two plans can never be made: the cluster has no such node.",
    source="Ganeti's data model",
    bad=_files(
        _BASE, _member("amsterdam"), _group("amsterdam", "n1, n2"), _member("berlin"), _group("berlin", "n2, n3")
    ),
    good=_files(
        _BASE, _member("amsterdam"), _group("amsterdam", "n1, n2"), _member("berlin"), _group("berlin", "n3, n4")
    ),
)
MAC_PREFIX_SHARED: Final = RuleInfo(
    code="GP833",
    name="mac-prefix-shared",
    severity=Severity.INFO,
    summary="Clusters of a fleet make MAC addresses with the same prefix.",
    rationale="Each cluster only makes sure that its own addresses differ. On a network that both reach two instances"
    " may get the same one. Where the clusters share no network there is nothing to do.",
    source="Ganeti's documentation, gnt-cluster(8) init --mac-prefix",
    bad=_files(_BASE, *(_member(town, 'mac_prefix: "aa:00:00"\n') for town in ("amsterdam", "berlin"))),
    good=_files(
        _BASE, *(_member(town, f'mac_prefix: "aa:00:0{n}"\n') for n, town in enumerate(("amsterdam", "berlin"), 1))
    ),
)
FLEET_DRIFT: Final = RuleInfo(
    code="GP834",
    name="fleet-drift",
    severity=Severity.INFO,
    summary="Clusters that share a base say different things of which the base says nothing.",
    rationale="What is written in each cluster's own document drifts apart unseen. Put the common value into the base,"
    " and override it where a cluster is meant to differ: an override of a base is not reported.",
    source="gpolicy",
    bad=_files(
        _BASE, *(_member(town, f"ipolicy: {{vcpu-ratio: {n}}}\n") for town, n in (("amsterdam", 4), ("berlin", 8)))
    ),
    good=_files(
        _BASE + "ipolicy: {vcpu-ratio: 4}\n", _member("amsterdam"), _member("berlin", "ipolicy: {vcpu-ratio: 8}\n")
    ),
)
BASE_HOLDS_NOWHERE: Final = RuleInfo(
    code="GP835",
    name="base-holds-nowhere",
    severity=Severity.WARNING,
    summary="A value of a base is overridden by every cluster that shares it.",
    rationale="Whoever reads the base, or changes it, believes that it says what holds. It holds in none of the"
    " clusters that were checked.",
    source="gpolicy",
    bad=_files(
        _BASE,
        *(_member(town, "diskparams:\n  drbd: {c-max-rate: 200M}\n") for town in ("amsterdam", "berlin")),
    ),
    good=_files(_BASE, _member("amsterdam"), _member("berlin", "diskparams:\n  drbd: {c-max-rate: 200M}\n")),
)
FLEET_RULES: Final = (CLUSTER_TWICE, NODE_IN_TWO_CLUSTERS, MAC_PREFIX_SHARED, FLEET_DRIFT, BASE_HOLDS_NOWHERE)

_POLICY_FAMILIES: Final = frozenset(
    {"ipolicy", "diskparams", "ndparams", "hv_state", "disk_state", "beparams", "hvparams", "enabled_disk_templates"}
)
"""What a fleet has in common, where a cluster does not say otherwise; devices, directories and the like it has not."""


@dataclass(frozen=True, slots=True)
class FleetHit:
    """A finding about several policies, and the one in whose files it stands (by its place in the list)."""

    policy: int
    hit: Hit


def fleet_hits(policies: Sequence[Policy]) -> list[FleetHit]:
    """Return what is wrong with several policies together; nothing for a single one."""
    if len(policies) < 2:
        return []
    return [
        *_named_twice(policies),
        *_shared_nodes(policies),
        *_shared_mac_prefix(policies),
        *_drift(policies),
        *_holds_nowhere(policies),
    ]


def _hit(
    policy: int, rule: RuleInfo, label: str, message: str, span: Span, hint: str, related: tuple[Related, ...] = ()
) -> FleetHit:
    return FleetHit(policy, Hit(label, rule.finding(message, span, hint=hint, related=related)))


# --- names -------------------------------------------------------------------------------------------------------


def _named_twice(policies: Sequence[Policy]) -> Iterator[FleetHit]:
    first: dict[str, Span] = {}
    for number, policy in enumerate(policies):
        if policy.cluster is None:
            continue
        name, span = policy.cluster.name, policy.cluster.span
        earlier = first.setdefault(name.lower(), span)
        if _place(earlier) != _place(span):
            message = f"another policy is for the cluster {name} as well"
            hint = "put both into one directory, or correct the name"
            related = (Related(earlier, "the first"),)
            yield _hit(number, CLUSTER_TWICE, "cluster", message, span, hint, related)


def _shared_nodes(policies: Sequence[Policy]) -> Iterator[FleetHit]:
    for members in _fleets(policies):
        first: dict[str, tuple[int, Span]] = {}
        for number in members:
            for group in policies[number].groups.values():
                for node in group.nodes or ():
                    other, place = first.setdefault(node.value, (number, node.span))
                    is_base = _place(place) == _place(node.span)
                    if other != number and not is_glob(node.value) and not is_base:
                        message = f"{node.value} is also a node of {_name(policies[other])}"
                        related = (Related(place, "named here"),)
                        hint = "leave it in the cluster that has it"
                        yield _hit(number, NODE_IN_TWO_CLUSTERS, group.label, message, node.span, hint, related)


def _shared_mac_prefix(policies: Sequence[Policy]) -> Iterator[FleetHit]:
    path: Path = ("mac_prefix",)
    for members in _fleets(policies):
        first: dict[Any, tuple[int, Leaf]] = {}
        for number in members:
            cluster = policies[number].cluster
            leaf = cluster.leaves.get(path) if cluster else None
            if leaf is None:
                continue
            other, earlier = first.setdefault(leaf.value, (number, leaf))
            if other != number:
                message = f"{_name(policies[number])} makes the same MAC addresses as {_name(policies[other])}"
                related = (Related(earlier.span, "the same prefix"),) if earlier.span != leaf.span else ()
                hint = "give each cluster its own, if their networks are connected"
                yield _hit(number, MAC_PREFIX_SHARED, "cluster", message, leaf.span, hint, related)


# --- what a fleet shares -----------------------------------------------------------------------------------------


def _drift(policies: Sequence[Policy]) -> Iterator[FleetHit]:
    for members in _fleets(policies):
        said: dict[Path, list[tuple[int, Leaf]]] = defaultdict(list)
        for number in members:
            cluster = policies[number].cluster
            for path, leaf in cluster.leaves.items() if cluster else ():
                if path[0] in _POLICY_FAMILIES and leaf.value is not INHERIT:
                    said[path].append((number, leaf))
        for path, entries in said.items():
            is_of_base = any(leaf.overridden or not _is_own(policies[number], leaf) for number, leaf in entries)
            counts = Counter(repr(leaf.value) for _, leaf in entries)
            if is_of_base or len(counts) < 2:
                continue
            usual = counts.most_common(1)[0][0]
            other, example = next((number, leaf) for number, leaf in entries if repr(leaf.value) == usual)
            for number, leaf in entries:
                if repr(leaf.value) != usual:
                    message = f"{'.'.join(path)} is not what {_name(policies[other])} has, which shares a base"
                    related = (Related(example.span, f"{_name(policies[other])} says this"),)
                    hint = "put the common value into the base, and override it where that is meant"
                    yield _hit(number, FLEET_DRIFT, "cluster", message, leaf.span, hint, related)


def _holds_nowhere(policies: Sequence[Policy]) -> Iterator[FleetHit]:
    holding: set[tuple[Any, ...]] = set()
    overridden: dict[tuple[Any, ...], list[tuple[int, Declared, Leaf]]] = defaultdict(list)
    for number, policy in enumerate(policies):
        for declared in policy.objects:
            for leaf in declared.leaves.values():
                holding.add(_place(leaf.span))
                for below in leaf.overridden:
                    overridden[_place(below.span)].append((number, declared, below))
    for place, uses in overridden.items():
        clusters = {number for number, _, _ in uses}
        if place in holding or len(clusters) < 2:
            continue
        number, declared, leaf = uses[0]
        users = list(dict.fromkeys(_name(policies[user]) for user, _, _ in uses))
        shown = f"{' and '.join(users[:2])}{f' and {len(users) - 2} more' if len(users) > 2 else ''}"
        verb = "overrides" if len(users) == 1 else "override"
        message = f"{'.'.join(leaf.path)} of this base holds nowhere: {shown} {verb} it"
        hint = "write into the base what most clusters are to have"
        yield _hit(number, BASE_HOLDS_NOWHERE, declared.label, message, leaf.span, hint)


def _fleets(policies: Sequence[Policy]) -> list[list[int]]:
    """Return the policies, by their places in the list, that share a base, directly or through others."""
    fleet = list(range(len(policies)))
    bases = [_bases(policy) for policy in policies]
    for one, other in combinations(range(len(policies)), 2):
        if bases[one] & bases[other]:
            joined, gone = fleet[one], fleet[other]
            fleet = [joined if item == gone else item for item in fleet]
    members = defaultdict(list)
    for number, leader in enumerate(fleet):
        members[leader].append(number)
    return [found for found in members.values() if len(found) > 1]


def _bases(policy: Policy) -> set[tuple[Any, ...]]:
    """Return the documents outside of a policy's own that its objects take values from."""
    own = {_real(document.file) for document in policy.documents}
    found = {
        (_real(leaf.document.file), leaf.document.mark)
        for declared in policy.objects
        for top in declared.leaves.values()
        for leaf in (top, *top.overridden)
    }
    return {(file, mark) for file, mark in found if file not in own}


def _is_own(policy: Policy, leaf: Leaf) -> bool:
    own: tuple[YamlDocument, ...] = policy.documents
    return any(leaf.document.file == document.file for document in own)


def _name(policy: Policy) -> str:
    return policy.cluster.name if policy.cluster else ", ".join(policy.paths[:1])


def _place(span: Span) -> tuple[Any, ...]:
    """Return a key of a place that is the same for each policy that reads the file."""
    return (_real(span.file), span.line, span.column)


@lru_cache(maxsize=4096)
def _real(file: str) -> str:
    return os.path.realpath(file)
