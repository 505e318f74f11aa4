"""GP81x: the tests of a policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, error, hit, see, warning
from gpolicy.findings import copied
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.policy.model import GroupPolicy, Hardware, promised_nodes
from gpolicy.policy.node_patterns import unlikely, written_out
from gpolicy.policy.scenario import Action, Existing, Scenario, Sizes
from gpolicy.policy.source_file import Located
from gpolicy.printable import count, listed
from gpolicy.rules.shared import forgotten_base, nodes_like, repeated, unknown_group, unknown_spec

_BY_SPEC: Final = (("specs",), ("tiered",), ("binding",), ("lost_allocations",))
_taken: Final = ("group", "node", "nodes", "lost_allocations", "disk_left")


def _label(scenario: Scenario) -> str:
    return f"test/{scenario.name.value}"


def _instances(scenario: Scenario) -> Iterator[Existing]:
    for part in scenario.stage.simulated:
        yield from part.instances
    yield from (edit.add for edit in scenario.stage.edits if edit.add is not None)


def _groups(scenario: Scenario) -> Iterator[Located[str]]:
    """Yield every place in which a test names a group."""
    yield from (part.group for part in scenario.stage.simulated if part.group is not None)
    yield from (edit.group for edit in scenario.stage.edits if edit.group is not None)
    if scenario.group is not None:
        yield scenario.group
    for expectation in scenario.expectations:
        if expectation.path == ("group",) and isinstance(expectation.wanted, str):
            yield Located(expectation.wanted, expectation.span)


@error("GP811", when=When.MORE_WITH_STATE | When.WHOLE)
def test_unknown_group(context: Context) -> Iterator[Hit]:
    for scenario in context.policy.scenarios:
        for group in _groups(scenario) if scenario.stage.snapshot is None else ():
            yield from unknown_group(context, _label(scenario), group)


@error("GP812", when=When.MORE_WITH_STATE | When.WHOLE)
def test_unknown_spec(context: Context) -> Iterator[Hit]:
    only = context.groups[0].name if len(context.groups) == 1 else None
    for scenario in context.policy.scenarios:
        for group, spec in _specs(scenario):
            yield from unknown_spec(context, _label(scenario), group or only, spec)


def _specs(scenario: Scenario) -> Iterator[tuple[Located[str] | None, Located[str]]]:
    """Yield every spec that a test names, with the group that it is of where that is said."""
    simulated = scenario.stage.simulated
    only = simulated[0].group if len(simulated) == 1 else None
    asked = scenario.group or only

    def of(sizes: Sizes, group: Located[str] | None) -> Iterator[tuple[Located[str] | None, Located[str]]]:
        if sizes.spec is not None:
            yield sizes.group or group, sizes.spec

    for part in simulated:
        for existing in part.instances:
            yield from of(existing.sizes, part.group)
    for edit in scenario.stage.edits:
        if edit.add is not None:
            yield from of(edit.add.sizes, only)
    if scenario.sizes is not None:
        yield from of(scenario.sizes, asked)
    for expectation in scenario.expectations:
        path, wanted = expectation.path, expectation.wanted
        if path == ("pair",) and isinstance(wanted, str):
            yield asked, Located(wanted, expectation.span)
        elif path[-2:-1] in _BY_SPEC and path[-2:] != ("binding", "standard"):
            yield asked, Located(path[-1], expectation.span)


@error("GP813")
def test_named_twice(context: Context) -> Iterator[Hit]:
    for scenario, earlier in repeated(context.policy.scenarios, lambda scenario: scenario.name.value):
        related = see(earlier.span, "the first is here")
        message, missing = f"a second test {scenario.name.value!r}", copied(scenario.span, earlier.span)
        yield hit(_label(scenario), message, scenario.span, "give it another name", related, missing=missing)


@error("GP814", when=When.WHOLE)
def test_unknown_node(context: Context) -> Iterator[Hit]:
    for scenario in context.policy.scenarios:
        nodes = _nodes(context, scenario)
        for node in _named_nodes(scenario) if nodes is not None else ():
            if nodes is not None and node.value not in nodes:
                hint = did_you_mean_one_of(node.value, "nodes", nodes) if nodes else "simulate the node"
                message = f"the cluster of this test has no node {node.value!r}"
                is_promised = scenario.stage.promised
                missing = nodes_like(node.value) if is_promised else f"node {node.value} of {scenario.name.value}"
                yield hit(_label(scenario), message, node.span, hint, missing=missing)


def _nodes(context: Context, scenario: Scenario) -> set[str] | None:
    """Return the nodes of the test's cluster; None where they are not known without reading it."""
    if scenario.stage.snapshot is not None:
        return None
    if scenario.stage.simulated:
        return {node.name for part in scenario.stage.simulated for node in part.nodes}
    return context.once(_promised)


def _promised(context: Context) -> set[str] | None:
    """Return the nodes of all groups; None where they are not known by name."""
    promised = [promised_nodes(group) for group in context.groups]
    if not promised or any(names is None for names in promised):
        return None
    return {name for names in promised for name in names or ()}


def _named_nodes(scenario: Scenario) -> Iterator[Located[str]]:
    for existing in _instances(scenario):
        yield from existing.nodes
    for edit in scenario.stage.edits:
        yield from (node for node in (edit.node, edit.removed_node) if node is not None)
    for expectation in scenario.expectations:
        path, wanted = expectation.path, expectation.wanted
        if path[0] == "candidates":
            yield Located(path[1], expectation.span)
        elif path == ("node",) and isinstance(wanted, str):
            yield Located(wanted, expectation.span)
        elif path[0] in ("nodes", "preference", "failing") and isinstance(wanted, tuple):
            for item in wanted:
                for name in (item if isinstance(item, str) else item[0]).split(" + "):  # nodes that fail at once
                    yield Located(name, expectation.span)


@warning("GP815", when=When.WHOLE)
def test_without_hardware(context: Context) -> Iterator[Hit]:
    groups = {group.name: group for group in context.groups}
    for scenario in context.policy.scenarios:
        if scenario.action is Action.CHECK_INSTANCE or not scenario.stage.promised:
            continue
        named = groups if scenario.group is None else groups.keys() & {scenario.group.value}
        asked = [groups[name] for name in named]
        slips = any(unlikely(node.value) for group in asked for node in group.nodes or ())
        if asked and not slips and all(_missing(group) or promised_nodes(group) is None for group in asked):
            hint = "say in `on` what to simulate, or declare the hardware and the nodes of the group"
            missing = f"hardware of {sorted(group.name for group in asked)}"
            if len(asked) == 1 and (forgotten := forgotten_base(context, asked[0])):
                hint, missing = f"is {forgotten} missing? Else {hint}", forgotten
            yield hit(_label(scenario), f"no cluster to run on: {_lacks(asked)}", scenario.span, hint, missing=missing)


def _lacks(groups: list[GroupPolicy]) -> str:
    patterns = [entry.value for group in groups for entry in group.nodes or () if written_out(entry.value) is None]
    if patterns and all(group.hardware is not None for group in groups):
        return f"{patterns[0]} does not tell how many nodes there are"
    best = min(groups, key=lambda group: len(_missing(group)))
    return f"group {best.name} does not say {listed(_missing(best)) or 'its nodes'}"


def _missing(group: GroupPolicy) -> list[str]:
    """Return which figures of the hardware a group does not promise."""
    known = group.hardware or Hardware(span=group.span)
    figures = {"memory": known.memory, "cpus": known.cpus, "pv_count": known.volume_count, "pv_size": known.pv_sizes}
    return [f"hardware.{name}" for name, figure in figures.items() if not figure]


@warning("GP824", when=When.WHOLE)
def test_loses_all(context: Context) -> Iterator[Hit]:
    for scenario in context.policy.scenarios:
        asked = scenario.redundancy
        if asked is None or asked.failures is None or not scenario.stage.promised:
            continue
        groups = [item for item in context.groups if asked.group is None or item.name == asked.group.value]
        for group in groups if len(groups) == 1 else ():
            nodes = promised_nodes(group)
            if nodes is not None and asked.failures == len(nodes):  # more: GP819
                message = f"the test loses {count(asked.failures, 'node')}, but group {group.name} has {len(nodes)}"
                yield hit(_label(scenario), message, asked.span, f"is 1 meant? At most {len(nodes) - 1} can fail")


@error("GP816")
def test_contradiction(context: Context) -> Iterator[Hit]:
    for scenario in context.policy.scenarios:
        found = {item.path[0]: item for item in scenario.expectations}
        flag = found.get("refused") or found.get("survives")
        if flag is None:
            continue
        refused = flag.wanted is True if flag.path == ("refused",) else flag.wanted is False
        wrong = ("because",) if not refused else _taken if scenario.action is Action.PLACE else ()
        if flag.path == ("survives",):
            wrong = () if refused else ("failing",)
        for key in wrong:
            if key in found and found[key].wanted != ():
                message = f"{key} cannot be expected if {flag.title} is {str(flag.wanted).lower()}"
                related = see(flag.span, "this is expected as well")
                hint = f"correct {flag.title}, or leave {key} out"
                yield hit(_label(scenario), message, found[key].span, hint, related)
