"""GP825 and GP826: simulated nodes of tests that are not those which their writer means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import warning_rule
from gpolicy.fit.desired import is_glob, matches
from gpolicy.guessing import MOST_KNOWN
from gpolicy.policy.misspelt import MOST_GUESSES, name_meant
from gpolicy.policy.promised import written_out
from gpolicy.policy.scenario import SimulatedGroup
from gpolicy.printable import some
from gpolicy.rules.examples import GROUP

_HARDWARE: Final = "memory: 64G, cpus: 8, disk: 1T"
_GROUPS: Final = (
    f'{GROUP}nodes: ["node[1-4].example.org"]\n---\ngpolicy: v1\nkind: NodeGroup\nname: silver\n---\n'
    "gpolicy: v1\nkind: Test\ntests:\n  - name: a test\n"
)
_ASKED: Final = "    redundancy: {group: gold}\n    expect: {survives: true}\n"


def _simulated(first: str, second: str) -> str:
    nodes = f"nodes: [{{name: {first}}}, {{name: {second}}}]"
    return f'{_GROUPS}    "on": {{simulate: {{group: gold, {_HARDWARE}, {nodes}}}}}\n{_ASKED}'


def _on(node: str) -> str:
    sizes = "memory-size: 1G, cpu-count: 1, disks: [1G], disk-template: plain"
    instances = f"instances: [{{name: web, nodes: [{node}], {sizes}}}]"
    gold, silver = (f"{{group: {name}, nodes: 2, {_HARDWARE}" for name in ("gold", "silver"))
    return f'{_GROUPS}    "on": {{simulate: [{gold}}}, {silver}, {instances}}}]}}\n{_ASKED}'


class SimulatedNodeMisspelt(Rule):
    info = warning_rule("GP825", "test-node-misspelt")(
        summary="The name of a simulated node is almost that of a node of the policy, and others of the test are such.",
        rationale="A simulated node has the tags and values of node sets by its name. Under another name it has none,"
        " and the test shows nothing about them.",
        bad=_simulated("node1.example.org", "node2.example.com"),
        good=_simulated("node1.example.org", "node2.example.org"),
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        lists = [*(group.nodes or () for group in context.groups), *(nodes.nodes for nodes in context.policy.node_sets)]
        entries = list(dict.fromkeys(entry.value for entries in lists for entry in entries))
        plain = {entry for entry in entries if not is_glob(entry)}
        globs = [entry for entry in entries if is_glob(entry)]
        is_named = cache(lambda name: name in plain or _is_named(name, globs))
        guesses = MOST_GUESSES
        for scenario in context.policy.scenarios if entries else ():
            there = {node.name for part in scenario.stage.simulated for node in part.nodes}
            for part in scenario.stage.simulated:
                known = [node.name for node in part.nodes if is_named(node.name)]
                others = (node for node in part.nodes if known and not is_named(node.name) and not node.tags)
                for node in others:
                    guesses -= 1
                    meant = _meant(node.name, known, entries) if guesses >= 0 else None
                    if meant is not None and meant not in there:
                        message = f"no group and no node set names {node.name}, unlike {known[0]}"
                        hint = f"Did you mean `{meant}`?"
                        yield self.hit(f"test/{scenario.name.value}", message, node.span, hint=hint)


def _is_named(name: str, entries: Sequence[str]) -> bool:
    return any(matches(entry, name) for entry in entries)


def _meant(name: str, known: Sequence[str], entries: Sequence[str]) -> str | None:
    """Return the node that a name is most likely meant for: the same host in the domain of others, or one slip away."""
    host = name.partition(".")[0]
    domains = dict.fromkeys(other.partition(".")[2] for other in known)
    moved = (f"{host}.{domain}" for domain in domains if domain)
    found = next((other for other in moved if _is_named(other, entries)), None)
    names = [other for entry in entries for other in written_out(entry) or ()] if found is None else []
    return name_meant(name, names) if found is None and len(names) <= MOST_KNOWN else found


class InstanceElsewhere(Rule):
    info = warning_rule("GP826", "test-instance-elsewhere")(
        summary="A test lists an instance in one simulated group, and puts it on a node of another.",
        rationale="An instance is in the group of its node. The numbers of counted nodes go on from group to group:"
        " with `nodes: 2` in two groups, the second has node-3 and node-4.",
        bad=_on("node-1"),
        good=_on("node-3"),
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for scenario in context.policy.scenarios:
            parts = scenario.stage.simulated
            home = {node.name: part for part in parts for node in part.nodes}
            for part in parts if len(parts) > 1 else ():
                for existing in part.instances:
                    homes = ((item, home.get(item.value, part)) for item in existing.nodes)
                    node = next((item for item, there in homes if _name(there) != _name(part)), None)
                    if node is not None:
                        whose = f"{_name(home[node.value])}, and the instance in {_name(part)}"
                        message = f"the node {node.value} of {existing.name.value} is in {whose}"
                        nodes = [item.name for other in parts if _name(other) == _name(part) for item in other.nodes]
                        hint = f"{_name(part)} has {some(nodes, 8)}"
                        yield self.hit(f"test/{scenario.name.value}", message, node.span, hint=hint)


def _name(part: SimulatedGroup) -> str:
    return f"group {part.group.value}" if part.group else "the group"
