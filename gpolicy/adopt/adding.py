"""Adopt into a policy that is there: the groups and nodes of the cluster that no document mentions yet.

What the policy says already stays, drift too. Values that a declared object has and its document lacks are not new:
nobody wants to manage them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from pathlib import Path

from gpolicy.adopt.adopting import Adoption, adoption_of
from gpolicy.adopt.soundness import Place, file_names
from gpolicy.cluster.state import ClusterState
from gpolicy.drift.unit_writer import How, Proof, Unit, UnitWriter, WayToWrite, look
from gpolicy.drift.units import NODES, set_nodes
from gpolicy.plan.change import MEMBERSHIP, NAME
from gpolicy.plan.part import Key
from gpolicy.policy.model import Policy
from gpolicy.policy.yaml_reader import read_yaml
from gpolicy.printable import free_name
from gpolicy.resolve.desired import Desired, members, resolve
from gpolicy.writing.documents import SCHEMA_FILE
from gpolicy.writing.value_edits import Draft, ValuePlace
from gpolicy.writing.yaml_text import NotWritten


@dataclass(frozen=True, slots=True)
class Addition:
    """New and changed texts by name, what was added (group/NAME, node/NAME), and what could not be, with its reason."""

    texts: Mapping[str, str] = field(default_factory=dict)
    added: tuple[str, ...] = ()
    left_out: tuple[NotWritten, ...] = ()


def adopt_new(policy: Policy, state: ClusterState, today: date, others: Sequence[Policy] = ()) -> Addition:
    """Return what the policy, which has no errors beside `state`, lacks of the cluster's groups and nodes.

    `others` are policies that may take values from the same files; they must not change.
    """
    adding = _Adding(policy, state)
    units = list(adding.units())
    proof = Proof(look(policy, state, today), state, today, others=others, in_bases=False)
    writer = UnitWriter(proof, Draft(policy.files))
    writer.write(units)
    added = sorted({name for name, _ in writer.written})
    refused = [NotWritten(name, "", reason) for (name, _), reason in sorted(writer.reasons.items())]
    left_out = [item for item in adding.left_out if item.object in added]
    return Addition(writer.draft.texts, tuple(added), (*refused, *left_out))


class _Adding:
    def __init__(self, policy: Policy, state: ClusterState) -> None:
        self._policy = policy
        self._state = state
        self._desired = resolve(policy, state)
        self._root = policy.root or Path()
        self._excluded: Mapping[Place, str] = adoption_of(state)[1]
        self._has_schema = (self._root / SCHEMA_FILE).is_file()
        self.left_out: list[NotWritten] = []

    def units(self) -> Iterator[Unit]:
        """Yield what to add, each part for itself."""
        groups = [name for name in self._state.groups if name not in self._desired.current_groups]
        new = frozenset(groups)
        free: dict[str, list[str]] = {}
        for name in sorted(self._state.nodes):
            wanted = self._desired.nodes.get(name)
            if wanted is None or wanted.group is None:
                free.setdefault(self._state.nodes[name].group, []).append(name)
        taken = {str(Path(name)) for name in self._policy.files}
        for name, file in sorted(file_names(groups).items()):
            yield self._group(name, _unused(self._root / "groups", file, taken), free.get(name, []))
        for name, nodes in sorted(free.items()):
            group = self._desired.current_groups.get(name)
            if name not in new and group is not None and group.nodes is not None:
                for node in nodes:
                    write = partial(set_nodes, group=group, node=node, is_in=True)
                    way = WayToWrite(How.IN_PLACE, write, frozenset({(group.label, NODES)}))
                    yield Unit(frozenset({(f"node/{node}", MEMBERSHIP)}), (way,))
        yield from self._node_sets(taken)

    def _group(self, name: str, file: str, nodes: list[str]) -> Unit:
        label = f"group/{name}"
        adoption = Adoption(self._state, self._excluded)
        text = adoption.group(self._state.groups[name], nodes)
        self.left_out += adoption.left_out
        keys = frozenset[Key]({(label, NAME), *((f"node/{node}", MEMBERSHIP) for node in nodes)})
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
        documents = read_yaml(text, "nodes.yaml").documents
        described = [node for document in documents for node in document.root["nodes"]]
        labels = {(f"node-set/{document.root['name']}", ()) for document in documents}
        way = self._new_file(_unused(self._root, "nodes", taken), text, labels)
        yield Unit(frozenset((f"node/{node}", ()) for node in described), (way,))

    def _new_file(self, name: str, text: str, labels: Iterable[Key]) -> WayToWrite:
        lines = text.splitlines(keepends=True)
        if not self._has_schema:  # lines for editors, which name it
            lines = [line for line in lines if not (line.startswith("# ") and "$schema" in line)]

        def write(draft: Draft) -> ValuePlace:
            draft.create(name, "".join(lines))
            return (name, 0), ()

        return WayToWrite(How.IN_PLACE, write, frozenset(labels))


def _unused(directory: Path, name: str, taken: Collection[str]) -> str:
    """Return the path of a YAML file that is not there yet."""
    free = free_name(name, lambda text: str(path := directory / f"{text}.yaml") in taken or path.exists())
    return str(directory / f"{free}.yaml")
