"""Write the policy that a cluster has now (its plan is empty, users can read and edit it), or add to one that is there.

Our own loader reads it back, and it passes check. It leaves out, and lists in comments, what the source cannot show,
what a policy cannot say, what Ganeti's commands could not restore, and what no policy should ask for.

A policy that is there gets the groups and nodes that no document mentions yet. What it says already stays, drift too.
Values that a declared object has and its document lacks are not new: nobody wants to manage them.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial

from gpolicy.adopt.soundness import UnsoundPlace, file_names, unsound_places, with_guards, without_defaults
from gpolicy.cluster.state import ClusterState, LiveGroup
from gpolicy.drift.units import NODES, How, Unit, WayToWrite, set_nodes
from gpolicy.drift.write_back import Proof, UnitWriter, look
from gpolicy.ganeti.commands import TAG
from gpolicy.ganeti.releases import DEFAULT_VERSION, release_of, unknown_release
from gpolicy.ganeti.vocabulary import TAG_FAMILIES, Level, Path, Values
from gpolicy.plan.changes import MEMBERSHIP, NAME, ChangeKey
from gpolicy.plan.diff import TOOL_TAGS
from gpolicy.policy.kinds import Policy
from gpolicy.policy.yaml_reader import read_yaml
from gpolicy.printable import free_name, listed
from gpolicy.resolve.desired import Desired, members, resolve
from gpolicy.writing import documents, yaml_text
from gpolicy.writing.value_edits import Draft, ValuePlace

_MOST_ROUNDS = 20  # each leaves out new errors: std after minmax, one parameter after another
_LONGEST_NAME = 60
_MOST_TAGS_IN_NAME = 3

_Described = dict[str, tuple[dict[Path, yaml_text.YamlNode], list[str]]]
"""Written own values and tags of nodes, by name."""


@dataclass(frozen=True, slots=True)
class Adopted:
    """A policy as text by relative path, and what it leaves out of the cluster."""

    files: dict[str, str]
    left_out: tuple[yaml_text.NotWritten, ...] = ()


def adopt_cluster(state: ClusterState) -> Adopted:
    """Return the policy that the cluster of `state` has now. Its plan for the same state is empty, its guards pass.

    For example, `write_policy(adopt_cluster(state).files, Path("policies/berlin"))`.
    """
    adopted = adoption_of(state)[0]
    return replace(adopted, files=with_guards(adopted.files, state))


def adoption_of(state: ClusterState) -> tuple[Adopted, Mapping[UnsoundPlace, str]]:
    """Return the same, and what no policy should declare of it, with the reasons."""
    excluded: dict[UnsoundPlace, str] = {}
    for _ in range(_MOST_ROUNDS):
        adopted = Adoption(state, excluded).run()
        unsound = {place: why for place, why in unsound_places(adopted.files, state).items() if place not in excluded}
        if not unsound:
            break
        # those of the lowest level first: without a group's value, the cluster's may be correct
        levels = ([place for place in unsound if place[0].startswith(of)] for of in ("node/", "group/", "cluster"))
        excluded |= {place: unsound[place] for place in next(filter(None, levels))}
    return adopted, excluded


class Adoption:
    """Writes the documents of a cluster, without what is `excluded`."""

    def __init__(self, state: ClusterState, excluded: Mapping[UnsoundPlace, str]) -> None:
        self.state = state
        self.excluded = excluded
        self.version = release_of(state.software_version)
        self.release = self.version or DEFAULT_VERSION
        self.writer = yaml_text.Writer(self.release)
        self.files: dict[str, str] = {}
        self.left_out: list[yaml_text.NotWritten] = []

    def run(self) -> Adopted:
        """Return the policy of the whole cluster."""
        rules = yaml_text.rule_tags(self._tags_to_keep("cluster", self.state.cluster.tags))
        groups: list[str] = []
        for name in self.state.groups:
            reason = yaml_text.name_complaint(name, pattern=False) or self.excluded.get((f"group/{name}", ""), "")
            if not self._leaves_out(f"group/{name}", "", f"it cannot be declared: {reason}" if reason else ""):
                groups.append(name)
        self.files["cluster.yaml"] = self._write_cluster(rules.others)
        for name, file in sorted(file_names(groups).items()):
            members = sorted(node.name for node in self.state.nodes.values() if node.group == name)
            self.files[f"groups/{file}.yaml"] = self.group(self.state.groups[name], members)
        nodes = self.nodes()
        if rules.families:
            self.files["tags.yaml"] = self._tag_rules(rules, nodes)
        self.files[documents.SCHEMA_FILE] = documents.schema_text()
        return Adopted(self.files, tuple(self.left_out))

    def _write_cluster(self, tags: list[str]) -> str:
        name = self.state.name
        reason = yaml_text.name_complaint(name, pattern=False) if name else "the source does not tell it"
        if self._leaves_out("cluster", "name", f"{reason}; write it in place of `unnamed`" if reason else ""):
            name = "unnamed"
        worth_writing, at_default = without_defaults(self.state.cluster.own, self.release)
        values = self._write(worth_writing, Level.CLUSTER, "cluster")
        lines = [
            *self._top(
                Level.CLUSTER,
                "The cluster as it is. A value that is not Ganeti's default says what the default is. What is not"
                " written here is not managed: gpolicy never touches it.",
            ),
            *documents.head("Cluster", name=name),
        ]
        if unknown := unknown_release(self.state.software_version):
            lines += yaml_text.comment_lines(f"{unknown[0].upper()}{unknown[1:]}.")
        unsaid = [f'# ganeti_version: "{DEFAULT_VERSION}"  # the source does not say which release it is']
        lines += unsaid if self.version is None else yaml_text.entry("ganeti_version", self.version)
        comment = documents.compared_with(None, "Ganeti's default", version=self.release)
        lines += documents.sections(values, comment, titles=True)
        if at_default:
            lines += ["", *yaml_text.comment_lines(f"At Ganeti's defaults, and not managed: {listed(at_default)}.")]
        if tags:
            text = "Tags without a rule of their own (those of htools are in tags.yaml)."
            lines += ["", *yaml_text.comment_lines(text)]
            lines += yaml_text.entry("tags", list(tags))
        return documents.file_text(lines)

    def _write(self, own: Values, level: Level, label: str) -> dict[Path, yaml_text.YamlNode]:
        """Return the readable own values in written form. What cannot be written is noted."""
        wanted: Values = {}
        for path, value in own.items():
            name = ".".join(path)
            is_left_out = self._leaves_out(label, name, self.excluded.get((label, name), ""))
            if not is_left_out and self.state.readable(level, path):
                wanted[path] = value
        values, left_out = self.writer.write(wanted, level, label)
        self.left_out += left_out
        return values

    def _top(
        self, level: Level, about: str, left_out_before: int = 0, schema: str = documents.SCHEMA_FILE
    ) -> list[str]:
        """Return the comments at the top of a file: its schema, what it is about, and what is not in it."""
        lines = [*documents.modelines(schema), *yaml_text.comment_lines(about)]
        left_out = self.left_out[left_out_before:]
        lines += ["# Left out:"] if left_out else []
        for item in left_out:
            text = str(item) if level is Level.NODE or not item.what else f"{item.what}: {item.reason}"
            lines += yaml_text.comment_lines(f"- {text}", hanging="  ")
        gaps = [".".join(gap.prefix) or "any own value" for gap in self.state.unreadable if gap.level is level]
        if gaps:
            lines += yaml_text.comment_lines(f"The source does not show {listed(gaps)}: nothing is declared of these.")
        return lines

    def _tags_to_keep(self, label: str, tags: Iterable[str]) -> list[str]:
        """Return the tags that a policy can declare; the others are noted."""
        kept: list[str] = []
        for tag in sorted(tags):
            reason = self.excluded.get((label, f"tag {tag}"), "")
            if tag.startswith(TOOL_TAGS):
                reason = "Ganeti's own tools set and remove it"
            elif not reason and not TAG.fullmatch(tag):
                reason = "tags that can be handled safely have 1 to 128 of the characters A-Z a-z 0-9 _.+*/:@-"
            if not self._leaves_out(label, f"tag {tag}", reason):
                kept.append(tag)
        return kept

    def _leaves_out(self, label: str, what: str, reason: str) -> bool:
        """Note what is left out, where there is a reason; return whether there is one."""
        self.left_out += [yaml_text.NotWritten(label, what, reason)] if reason else []
        return reason != ""

    def group(self, group: LiveGroup, members: list[str]) -> str:
        """Return the text of a group's file, with these nodes."""
        label = f"group/{group.name}"
        before = len(self.left_out)
        values = self._write(group.own, Level.GROUP, label)
        complaints = {node: yaml_text.name_complaint(node, pattern=True) for node in members}
        nodes: list[yaml_text.YamlNode] = [
            node for node, reason in complaints.items() if not self._leaves_out(label, f"node {node}", reason)
        ]
        tags = self._tags_to_keep(label, group.tags)
        lines = [
            *self._top(
                Level.GROUP,
                "What is not written here follows the cluster and is not managed; write `inherit` to insist on it.",
                before,
                f"../{documents.SCHEMA_FILE}",
            ),
            *documents.head("NodeGroup", name=group.name),
            *documents.sections(
                values,
                documents.compared_with(self.state.cluster.own, "cluster", "own value, as the cluster's"),
                titles=False,
                nodes=nodes,
            ),
        ]
        if tags:
            lines += ["", *yaml_text.entry("tags", list(tags))]
        return documents.file_text(lines)

    def nodes(self, taken: Iterable[str] = ()) -> set[str]:
        """Write the node sets, by names not `taken`. Return tags of declared nodes that no policy can declare."""
        before = len(self.left_out)
        undeclared: set[str] = set()
        described: _Described = {}
        for node in sorted(self.state.nodes.values(), key=lambda node: node.name):
            label = f"node/{node.name}"
            reason = yaml_text.name_complaint(node.name, pattern=True)
            if self._leaves_out(label, "", f"it cannot be declared: {reason}" if reason else ""):
                continue
            values = self._write(node.own, Level.NODE, label)
            tags = self._tags_to_keep(label, node.tags)
            undeclared |= node.tags - set(tags)
            if values or tags:
                described[node.name] = (values, tags)
        if described or len(self.left_out) > before:
            about = "Nodes with values or tags of their own; those that have the same are one set."
            lines = [
                *self._top(Level.NODE, about, before),
                *_node_set_documents(described, {name: self.state.nodes[name].group for name in described}, taken),
            ]
            self.files["nodes.yaml"] = documents.file_text(lines)
        return undeclared

    def _tag_rules(self, rules: yaml_text.RuleTags, undeclared: set[str]) -> str:
        owned = [prefix for prefix in rules.node_prefixes if not any(tag.startswith(prefix) for tag in undeclared)]
        left = self.state.cluster.tags - {*rules.declared}
        families = [name for name in rules.families if not any(tag.startswith(TAG_FAMILIES[name]) for tag in left)]
        owns: list[yaml_text.YamlNode] = [*families]
        owns += [{"prefix": prefix, "on": ["node"]} for prefix in owned]
        lines = [
            *documents.modelines(documents.SCHEMA_FILE),
            *yaml_text.comment_lines(
                "What htools reads from tags. `owns` says what gpolicy may remove once it is declared no longer: the"
                " cluster tags of these families, and the node tags that these rules give a meaning to, on nodes"
                " whose tags are declared."
            ),
            *documents.head("TagRules"),
            *yaml_text.entry("owns", owns),
        ]

        def part(key: str, family: str, indent: int = 0) -> list[str]:
            return yaml_text.entry(key, rules.items[family], indent=indent) if rules.items[family] else []

        migration = [*part("domains", "migration", 2), *part("allow", "allowmigration", 2)]
        table = (
            (part("exclusion", "iextags"), "Instances that share such a tag (`service`: service:…) keep apart."),
            (part("failure_domains", "nlocation"), "Nodes that share such a tag may fail together."),
            (
                ["migration:", *migration] if migration else [],
                "Migration needs the same tags on the target; `allow` are one-way exceptions.",
            ),
            (part("desired_location", "desiredlocation"), "Instance tags that name where the instance should be."),
        )
        for written, about in table:
            lines += ["", *yaml_text.comment_lines(about), *written] if written else []
        return documents.file_text(lines)


def _node_set_documents(described: _Described, groups: Mapping[str, str], others: Iterable[str] = ()) -> list[str]:
    """Return the lines of a NodeSet document per set, from the groups of nodes, under names not among `others`."""
    lines: list[str] = []
    taken = set(others)
    sets: dict[str, list[str]] = {}
    for name, (values, tags) in described.items():
        key = json.dumps([[list(path), value] for path, value in values.items()] + [tags], sort_keys=True)
        sets.setdefault(key, []).append(name)
    for nodes in sets.values():
        values, tags = described[nodes[0]]
        text = " ".join(tags)
        is_short = 0 < len(tags) <= _MOST_TAGS_IN_NAME and len(text) <= _LONGEST_NAME
        wanted = nodes[0] if len(nodes) == 1 else text if is_short else "nodes"  # so that it describes them
        name = free_name(wanted, taken.__contains__)
        taken.add(name)
        if lines:
            # the YAML server looks at each document alone
            lines += ["---", *documents.modelines(documents.SCHEMA_FILE)[:1]]
        lines += documents.head("NodeSet", name=name)
        within = sorted({groups[node] for node in nodes})
        if len(within) == 1:
            lines += yaml_text.comment_lines(f"in group {within[0]}")
        lines += yaml_text.entry("nodes", list(nodes), as_flow=True)
        lines += [line for line in documents.sections(values, lambda _path, _node: "", titles=False) if line]
        if tags:
            lines += yaml_text.entry("tags", list(tags), as_flow=True)
    return lines


@dataclass(frozen=True, slots=True)
class Addition:
    """New and changed texts by name, what was added (group/NAME, node/NAME), and what could not be, with its reason."""

    texts: Mapping[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    left_out: tuple[yaml_text.NotWritten, ...] = ()


def adopt_new(policy: Policy, state: ClusterState, today: date, others: Sequence[Policy] = ()) -> Addition:
    """Return what the policy, which has no errors beside `state`, lacks of the cluster's groups and nodes.

    `others` are policies that may take values from the same files (`other_policies`); they must not change.
    """
    adding = _Adding(policy, state)
    units = list(adding.units())
    proof = Proof(look(policy, state, today), state, today, others=others, in_bases=False)
    writer = UnitWriter(proof, Draft(policy.files))
    writer.write(units)
    added = sorted({name for name, _ in writer.written})
    refused = [yaml_text.NotWritten(name, "", reason) for (name, _), reason in sorted(writer.reasons.items())]
    left_out = [item for item in adding.left_out if item.object in added]
    return Addition(writer.draft.texts, tuple(added), (*refused, *left_out))


class _Adding:
    def __init__(self, policy: Policy, state: ClusterState) -> None:
        self._policy = policy
        self._state = state
        self._desired = resolve(policy, state)
        self._root = policy.root or pathlib.Path()
        self._excluded: Mapping[UnsoundPlace, str] = adoption_of(state)[1]
        self._schema = documents.schema_for(self._root)
        self.left_out: list[yaml_text.NotWritten] = []

    def units(self) -> Iterator[Unit]:
        groups = [name for name in self._state.groups if name not in self._desired.current_groups]
        new = frozenset(groups)
        free: dict[str, list[str]] = {}
        for name in sorted(self._state.nodes):
            wanted = self._desired.nodes.get(name)
            if wanted is None or wanted.group is None:
                free.setdefault(self._state.nodes[name].group, []).append(name)
        taken = {str(pathlib.Path(name)) for name in self._policy.files}
        for name, file in sorted(file_names(groups).items()):
            yield self._group_unit(name, _unused(self._root / "groups", file, taken), free.get(name, []))
        for name, nodes in sorted(free.items()):
            group = self._desired.current_groups.get(name)
            if name not in new and group is not None and group.nodes is not None:
                for node in nodes:
                    write = partial(set_nodes, group=group, node=node, is_in=True)
                    way = WayToWrite(How.IN_PLACE, write, frozenset({(group.label, NODES)}))
                    yield Unit(frozenset({(f"node/{node}", MEMBERSHIP)}), (way,))
        yield from self._node_sets(taken)

    def _group_unit(self, name: str, file: str, nodes: list[str]) -> Unit:
        label = f"group/{name}"
        adoption = Adoption(self._state, self._excluded)
        text = adoption.group(self._state.groups[name], nodes)
        self.left_out += adoption.left_out
        keys = frozenset[ChangeKey]({(label, NAME), *((f"node/{node}", MEMBERSHIP) for node in nodes)})
        return Unit(keys, (self._new_file(file, text, {(label, ())}),))

    def _node_sets(self, taken: Collection[str]) -> Iterator[Unit]:
        scratch = Desired(groups=self._desired.groups, nodes=self._desired.nodes)
        known = frozenset[str]().union(*(members(item, self._state, scratch) for item in self._policy.node_sets))
        free = ((name, node) for name, node in self._state.nodes.items() if name not in known)
        nodes = {name: node for name, node in free if node.own or node.tags}
        if not nodes:
            return
        adoption = Adoption(replace(self._state, nodes=nodes), self._excluded)
        adoption.nodes([item.name for item in self._policy.node_sets])
        text = adoption.files.get("nodes.yaml")
        self.left_out += adoption.left_out
        if text is None:
            return
        written = read_yaml(text, "nodes.yaml").documents
        described = [node for document in written for node in document.root["nodes"]]
        labels = {(f"node-set/{document.root['name']}", ()) for document in written}
        way = self._new_file(_unused(self._root, "nodes", taken), text, labels)
        yield Unit(frozenset((f"node/{node}", ()) for node in described), (way,))

    def _new_file(self, name: str, text: str, labels: Iterable[ChangeKey]) -> WayToWrite:
        text = documents.led_to(self._schema if self._schema.is_file() else None, text, pathlib.Path(name))

        def write(draft: Draft) -> ValuePlace:
            draft.create(name, text)
            return (name, 0), ()

        return WayToWrite(How.IN_PLACE, write, frozenset(labels))


def _unused(directory: pathlib.Path, name: str, taken: Collection[str]) -> str:
    """Return the path of a YAML file that is not there yet."""
    free = free_name(name, lambda text: str(path := directory / f"{text}.yaml") in taken or path.exists())
    return str(directory / f"{free}.yaml")
