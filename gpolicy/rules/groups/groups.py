"""GP601, GP604 to GP610, GP614 to GP618 and GP620: groups, the bases that they extend, their limits, and node sets."""

import re
from collections.abc import Iterator
from os.path import normpath
from pathlib import PurePath
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.pairs import comparable
from gpolicy.checking.rule import Hit, When, error, hit, see, warning
from gpolicy.findings import AMBIGUOUS, BASE_FILE, NO_PLAN, Located, Related
from gpolicy.ganeti.vocabulary import ALLOWED_TEMPLATES, ENABLED_TEMPLATES, MINMAX, Path
from gpolicy.policy.files import SUFFIXES
from gpolicy.policy.model import Declared, GroupPolicy, Leaf, NodeSetPolicy, is_glob, matches, promised_nodes
from gpolicy.policy.source_file import YamlDocument
from gpolicy.printable import count, listed
from gpolicy.resolve.desired import RENAME_CLASH
from gpolicy.rules.shared import ALLOC_POLICY, CLOSED, is_closed, lost_at, of_cluster, unknown_group

_HINT: Final = "write `template: true` if it is no group of its own"
_FAILURES: Final = "max_node_failures"


@error("GP601")
def uuid_shaped_name(context: Context) -> Iterator[Hit]:
    for group in context.groups:
        if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", group.name.lower()):
            yield hit(group, f"{group.name} looks like a UUID", group.span, "name the group with a word")


@warning("GP616", When.MORE_WITH_STATE, explains=3)
def group_name_unlikely(context: Context) -> Iterator[Hit]:
    first: dict[str, GroupPolicy] = {}
    for group in context.groups:
        other = first.setdefault(_plain(group.name), group)
        if "/" in group.name or group.name != group.name.strip():
            what = "a slash" if "/" in group.name else "a blank at its end"
            yield hit(group, f"{group.name!r} has {what}", group.span, "write letters, digits, - and _")
        elif other is not group:
            related = see(other.span, f"{other.name} is declared here")
            message = f"{group.name} and {other.name} are almost the same name"
            yield hit(group, message, group.span, "rename one of the two groups", related)
    live = {_plain(name): name for name in context.observed.groups}
    for group in context.groups:
        near = live.get(_plain(group.name), group.name)
        is_other = near not in context.policy.groups and near not in context.old_names
        if is_other and group.renamed_from:  # else GP728
            message = f"the cluster also has a group {near}, which is almost the name of {group.name}"
            yield hit(group, message, group.document.value_span(("name",)), "choose another name, or rename that group")
        old = group.renamed_from
        taken = first.get(_plain(old.value)) if old else None
        if old is not None and taken is not None and taken is not group and old.value != taken.name:
            related = see(taken.span, f"{taken.name} is declared here")
            message = f"{group.name} is to be renamed from {old.value}, which is almost the name of {taken.name}"
            yield hit(group, message, old.span, "write the old name as the cluster has it", related)


def _plain(name: str) -> str:
    return name.lower().replace("_", "-").strip()


@error("GP608", When.MORE_WITH_STATE, stays=NO_PLAN)
def rename_impossible(context: Context) -> Iterator[Hit]:
    # said already
    clashes = {finding.span for finding in context.desired.findings if finding.code == RENAME_CLASH.code}
    renamed = {group.name: group for group in context.groups if group.renamed_from}
    first: dict[str, GroupPolicy] = {}
    for group, old in ((group, group.renamed_from) for group in renamed.values() if group.renamed_from):
        earlier = first.setdefault(old.value, group)
        other = context.policy.groups.get(old.value)
        if old.span in clashes:
            continue
        if old.value == group.name:
            message = f"{group.name} is to be renamed from itself"
            yield hit(group, message, old.span, "write the old name, or leave renamed_from out")
        elif other is not None and other.removed is not None:
            message = f"{old.value} is to be removed, but {group.name} is to be renamed from it"
            hint = "a rename needs no removal: remove this document"
            yield hit(other, message, other.removed.span, hint, see(old.span, f"{group.name} is renamed here"))
        elif other is not None and other.renamed_from is None:
            left = [*context.observed.groups.keys() - context.policy.groups.keys() - context.old_names.keys()]
            hint = f"is {left[0]} meant, which the policy leaves out?" if len(left) == 1 else "remove one of the two"
            related = see(other.span, f"{old.value} is declared here")
            yield _but(group, old, f"the policy also declares {old.value}", hint, related)
        elif earlier is not group:
            related = see(earlier.span, f"{earlier.name} is also renamed from it")
            yield _but(group, old, f"so is {earlier.name}", "only one group can be the old one", related)
        elif (circle := _circle(group, renamed)) and circle[0] is group:
            takers = [item for item in circle if item is not group]
            names = [(item.name, item.renamed_from.value) for item in takers if item.renamed_from]
            rest = "".join(f", {name} from {source}" for name, source in names[1:])
            reason = f"{names[0][0]} is to be renamed from {names[0][1]}{rest}"
            also = tuple(Related(item.span, f"{item.name} is declared here") for item in takers)
            hint = "names cannot be swapped: rename one of the groups to a third name first"
            yield _but(group, old, reason, hint, also)


def _but(group: GroupPolicy, old: Located[str], reason: str, hint: str, related: tuple[Related, ...]) -> Hit:
    return hit(group, f"{group.name} is to be renamed from {old.value}, but {reason}", old.span, hint, related)


def _circle(group: GroupPolicy, renamed: dict[str, GroupPolicy]) -> list[GroupPolicy]:
    """Return the groups that take one another's names in a circle, the first declared first; none if they do not."""
    chain = [group]
    while (old := chain[-1].renamed_from) and old.value in renamed and len(chain) <= len(renamed):
        if old.value == group.name:
            return sorted(chain, key=list(renamed.values()).index)
        chain.append(renamed[old.value])
    return []


@error("GP609")
def removed_with_content(context: Context) -> Iterator[Hit]:
    for group in context.policy.groups.values():
        leaf = next(iter(group.leaves.values()), None)
        own = (*(group.nodes or ())[:1], leaf, *(group.tags or ())[:1], group.renamed_from)
        place = next((item.span for item in own if item is not None), None)
        if group.removed is not None and place:
            message = f"{group.name} is to be removed, but its document has other keys"
            related, hint = see(group.removed.span, "to be removed"), "keep only name and removed"
            hint = f"move its nodes to another group, and {hint}" if group.nodes else hint
            yield hit(group, message, place, hint, related, missing=f"group {group.name}")


@warning("GP610", When.MORE_WITH_STATE | When.WHOLE, explains=16)
def unallocable_without_home(context: Context) -> Iterator[Hit]:
    is_closed_one = any(leaf.value == CLOSED for _, leaf in context.explicit_at(ALLOC_POLICY))
    if not is_closed_one or context.members.has_undeclared_groups:
        return  # they may take anything
    open_groups = [group for group in context.groups if not is_closed(context, group)]
    elsewhere = [comparable(context.pairs(group)) for group in open_groups]
    if any(not pairs for pairs in elsewhere):
        return  # what that group takes is not known
    homes = [pair for pairs in elsewhere for pair in pairs]
    for group in context.groups:
        leaf = context.own(group, ALLOC_POLICY)
        if leaf is None or leaf.value != CLOSED:
            continue
        pairs = comparable(context.pairs(group))
        homeless = [pair for pair in pairs if all(pair.overlap(home) is None for home in homes)]
        is_special = context.own(group, MINMAX) is not None
        if (homeless and not is_special) or not open_groups:
            names = ", ".join(pair.title for pair in homeless[:5]) or "any size"
            where = "no other group takes" if open_groups else "there is no other group for"
            hint = "write last_resort to keep it for those, or let another group take them"
            wanted = context.desired.groups.get(group.name)
            live = context.observed.groups.get(wanted.current) if wanted and wanted.current else None
            if live is not None and (today := live.own.get(ALLOC_POLICY, CLOSED)) != CLOSED:
                hint = f"is {today} meant, as today? Else let another group take them"
            message, missing = f"group {group.name} takes no new instances, and {where} {names}", f"a home for {names}"
            related: tuple[Related, ...] = ()
            for other in () if "meant" in hint else open_groups:  # that it is closed is new
                lost = {pair.name for pair in context.lost_pairs(other)}
                sizes = context.own(other, MINMAX) if context.exclusive(other) is None else None
                if sizes and homeless and {pair.name for pair in homeless} <= lost:
                    as_well = listed(pair.word for pair in homeless)
                    hint += f"; or write {as_well} in the list of {other.title}, which replaces the inherited one"
                    missing, related = lost_at(sizes), see(sizes.span, "its sizes are here")
            yield hit(group, message, leaf.span, hint, related, missing=missing)


@warning("GP614", when=When.WHOLE)
def base_unused(context: Context) -> Iterator[Hit]:
    if not context.policy.objects:
        return  # a file of bases for other policies
    documents = [item for item in context.policy.documents if isinstance(item.root, dict)]
    first: dict[tuple[str, str], YamlDocument] = {}
    for document in documents:
        root = document.root
        if root.get("template") is not True:
            continue
        twin = first.setdefault((root["kind"], root["name"]), document)
        is_hidden = twin is not document and twin.file == document.file
        is_extended = any(_extends(other, document, is_first=twin is document) for other in documents)
        if is_hidden or not (is_extended or _extending(context, document)):
            message = f"no {root['kind']} extends {root['name']}: its values reach no cluster"
            hint = "leave `template` out to make it an object of its own, or extend it"
            if twin is not document:
                message = f"a second template {root['name']}: what extends this name takes the values of the first"
                hint = "give one of the two another name, or put the values of both into one document"
            label = {"Cluster": "cluster", "NodeGroup": f"group/{root['name']}"}
            subject = label.get(root["kind"], f"node-set/{root['name']}")
            related = see(twin.value_span(("name",)), "the first is here") if twin is not document else ()
            yield hit(subject, message, document.value_span(("name" if related else "template",)), hint, related)


def _extending(context: Context, base: YamlDocument) -> list[Declared]:
    """Return the objects of other policies of the run that extend a base by its file."""
    objects = (item for policy in context.others for item in policy.objects)
    return [item for item in objects if _extends(item.document, base, is_first=False)]


@warning("GP618", when=When.MORE_WITH_STATE | When.WHOLE)
def base_taken_for_group(context: Context) -> Iterator[Hit]:
    paths = set(context.policy.paths)
    for group in context.groups:
        documents = {id(leaf.document): leaf.document for leaf in group.leaves.values()}
        for base in (document for document in documents.values() if document.file not in paths):
            is_group = base.root["kind"] == "NodeGroup" and "nodes" not in base.root
            if is_group and base.root.get("template") is not True:
                message = f"group {base.root['name']} has no nodes, and {group.title} of another file extends it"
                missing = f"{BASE_FILE}{base.file}#template {base.root['name']}"
                yield hit(group, message, base.value_span(("name",)), _HINT, missing=missing)
    cluster = context.policy.cluster
    roots = [item.root for item in context.policy.documents if isinstance(item.root, dict)]
    is_base = not context.policy.groups and any(root.get("template") is True for root in roots)
    if cluster and is_base and (users := _extending(context, cluster.document)):
        message = f"cluster {cluster.name} has no groups, and is extended by {listed(item.name for item in users[:5])}"
        yield hit(cluster, message, cluster.span, "add `template: true`")
    bare = [group for group in context.groups if group.nodes is None and group.renamed_from is None]
    if len(bare) != 1 or bare[0].name in context.observed.groups:
        return
    others = [group.document for group in context.groups if group is not bare[0]]
    if any(_extends(other, bare[0].document) for other in others):
        yield hit(bare[0], f"group {bare[0].name} has no nodes, and other groups extend it", bare[0].span, _HINT)


def _extends(document: YamlDocument, base: YamlDocument, *, is_first: bool = True) -> bool:
    """Return whether a document names `base`: by its name, if it is the first with it, or by its file."""
    if document is base or document.root["kind"] != base.root["kind"]:
        return False
    written = document.root.get("extends", ())
    for word in [written] if isinstance(written, str) else written:
        file, _, name = str(word).partition("#")
        if not file.endswith(SUFFIXES):
            file, name = "", word
        here = is_first if not file else normpath(PurePath(document.file).parent / file) == normpath(base.file)
        if here and name in ("", base.root["name"]):
            return True
    return False


@warning("GP615", When.MORE_WITH_STATE)
def limits_never_hold(context: Context) -> Iterator[Hit]:
    for group in context.groups:
        own = group.limits.get(_FAILURES)
        failures = own or (context.policy.cluster.limits.get(_FAILURES) if context.policy.cluster else None)
        nodes = _node_count(context, group) if failures is not None else None
        policy = context.own(group, ALLOC_POLICY)
        is_spare = own is None and policy is not None and policy.value == CLOSED
        if failures is not None and nodes and failures.value >= nodes and not is_spare:
            has = f"{group.title} has {count(nodes, 'node')}"
            hint = f"write at most {nodes - 1}" if own else f"lower it, or give {group.title} limits of its own"
            yield hit(group, f"max_node_failures is {failures.value}, and {has}: none is left", failures.span, hint)


@warning("GP617", When.MORE_WITH_STATE)
def mirrors_without_partner(context: Context) -> Iterator[Hit]:
    enabled, of_all = of_cluster(context, ENABLED_TEMPLATES), context.cluster_leaf(ALLOWED_TEMPLATES)
    for group in context.groups:
        own = context.own(group, ALLOWED_TEMPLATES)
        leaf = own or of_all
        templates = {*leaf.texts} if leaf else {*enabled.texts} if enabled else set()
        is_meant = own is not None or not templates - {"drbd", "diskless"}  # else the others are there for it
        if "drbd" in templates and is_meant and _node_count(context, group) == 1:
            message = f"{group.title} has one node: no instance with DRBD disks can be created there"
            hint = "allow templates that need no second node, or add nodes"
            yield hit(group, message, own.span if own else group.span, hint)


def _node_count(context: Context, group: GroupPolicy) -> int | None:
    """Return how many nodes of a group can have instances; None where nobody knows."""
    if context.state is not None:
        return len(context.members.hosts_in(group))
    names = promised_nodes(group)
    return None if names is None else len(names)


@warning("GP604")
def node_set_empty(context: Context) -> Iterator[Hit]:
    for nodes in context.policy.node_sets:
        if not nodes.nodes and not nodes.groups:
            yield hit(nodes, f"the node set {nodes.name} has no nodes", nodes.span, "add `nodes:` or `groups:`")
        elif not nodes.leaves and nodes.tags is None:
            message = f"the node set {nodes.name} has no values and no tags"
            yield hit(nodes, message, nodes.span, "add what its nodes are to have, or remove it")


@warning("GP620")
def node_set_hides_group(context: Context) -> Iterator[Hit]:
    for nodes in context.policy.node_sets:
        leaves = [leaf for leaf in context.leaves(nodes).values() if context.declares(leaf.path)]
        for group in context.groups if leaves else ():
            for leaf in leaves:
                hidden = context.own(group, leaf.path)
                is_own = hidden is not None and hidden.document is group.document and hidden.value != leaf.value
                if is_own and hidden is not None and _takes_in(nodes, group):
                    message = f"{leaf.dotted} of {nodes.title} is set for every node of {group.title}"
                    related = see(hidden.span, f"the value of {group.title}, which no node has")
                    yield hit(nodes, message, leaf.span, "narrow the set, or set the value in the group alone", related)


def _takes_in(nodes: NodeSetPolicy, group: GroupPolicy) -> bool:
    """Return whether a set surely has every node of a group, and the group has several."""
    names = promised_nodes(group) or ()
    if group.name in [item.value for item in nodes.groups]:
        return len(names) != 1
    return len(names) > 1 and all(any(matches(entry.value, name) for entry in nodes.nodes) for name in names)


@error("GP605", when=When.MORE_WITH_STATE | When.WHOLE)
def node_set_unknown_group(context: Context) -> Iterator[Hit]:
    for nodes in context.policy.node_sets:
        for group in nodes.groups:
            yield from unknown_group(context, nodes, group)


@error("GP607", when=When.NO_STATE, stays=AMBIGUOUS)
def node_set_conflict(context: Context) -> Iterator[Hit]:
    first: dict[tuple[str, str, Path], tuple[NodeSetPolicy, Leaf]] = {}
    reported: set[tuple[str, str, Path]] = set()
    for nodes in context.policy.node_sets:
        named = [("node", node.value) for node in nodes.nodes if not is_glob(node.value)]
        named += [("group", group.value) for group in nodes.groups]
        for leaf in context.leaves(nodes).values():
            for kind, name in named:
                other, its = first.setdefault((kind, name, leaf.path), (nodes, leaf))
                key = (other.name, nodes.name, leaf.path)
                if its.value != leaf.value and key not in reported:
                    reported.add(key)
                    where = name if kind == "node" else f"group {name}"
                    message = f"the node set {other.name} sets another {leaf.path[-1]} for {where}"
                    related = see(its.span, f"{other.name} sets it here")
                    yield hit(nodes, message, leaf.span, "remove the node from one of the sets", related)
