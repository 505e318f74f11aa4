"""GP81x: the tests of a policy."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Same, When, error, hit, see, warning
from gpolicy.findings import Located, Role, copied
from gpolicy.ganeti.vocabulary import ALLOWED_TEMPLATES, ENABLED_TEMPLATES, EXCLUSIVE_STORAGE
from gpolicy.guessing import MOST_GUESSES, MOST_KNOWN, did_you_mean_one_of, name_meant
from gpolicy.policy.model import GroupPolicy, Hardware, is_glob, matches, promised_nodes, unlikely, written_out
from gpolicy.policy.scenario import Action, ExpectedNumber, Scenario, SimulatedGroup
from gpolicy.printable import count, listed, some
from gpolicy.rules.node_lists import almost_in_group, nodes_like
from gpolicy.rules.shared import forgotten_base, of_cluster, repeated, sizes_of, unknown_group, unknown_spec

_BY_SPEC: Final = (("specs",), ("tiered",), ("binding",), ("lost_allocations",))
_taken: Final = ("group", "node", "nodes", "lost_allocations", "disk_left")


def _label(scenario: Scenario) -> str:
    return f"test/{scenario.name.value}"


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
    given = [(item.sizes, part.group) for part in simulated for item in part.instances]
    given += [(edit.add.sizes, only) for edit in scenario.stage.edits if edit.add is not None]
    given += [(scenario.sizes, asked)] if scenario.sizes is not None else []
    yield from ((sizes.group or group, sizes.spec) for sizes, group in given if sizes.spec is not None)
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
        nodes = _nodes_of_test(context, scenario)
        for node in _named_nodes(scenario) if nodes is not None else ():
            if nodes is not None and node.value not in nodes:
                hint = did_you_mean_one_of(node.value, "nodes", nodes) if nodes else "simulate the node"
                message = f"the cluster of this test has no node {node.value!r}"
                is_promised = scenario.stage.promised
                missing = nodes_like(node.value) if is_promised else f"node {node.value} of {scenario.name.value}"
                related = almost_in_group(context, node.value) if is_promised else ()
                yield hit(_label(scenario), message, node.span, hint, related, missing=missing)


def _nodes_of_test(context: Context, scenario: Scenario) -> set[str] | None:
    """Return the nodes of the test's cluster; None where they are not known without reading it."""
    if scenario.stage.snapshot is not None:
        return None
    if scenario.stage.simulated:
        return {node.name for part in scenario.stage.simulated for node in part.nodes}
    return context.once(_promised_names)


def _promised_names(context: Context) -> set[str] | None:
    """Return the nodes of all groups; None where they are not known by name."""
    promised = [promised_nodes(group) for group in context.groups]
    return None if not promised or None in promised else {name for names in promised for name in names or ()}


def _named_nodes(scenario: Scenario) -> Iterator[Located[str]]:
    instances = [item for part in scenario.stage.simulated for item in part.instances]
    instances += [edit.add for edit in scenario.stage.edits if edit.add is not None]
    yield from (node for item in instances for node in item.nodes)
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
        if asked and not slips and all(_missing(context, group) or promised_nodes(group) is None for group in asked):
            forgotten = forgotten_base(context, asked[0]) if len(asked) == 1 else ""
            lacking = f"is {forgotten} missing? Else " if forgotten else ""
            hint = f"{lacking}say in `on` what to simulate, or declare the hardware and the nodes of the group"
            missing = forgotten or f"hardware of {sorted(group.name for group in asked)}"
            message = f"no cluster to run on: {_lacks(context, asked)}"
            yield hit(_label(scenario), message, scenario.span, hint, missing=missing)


def _lacks(context: Context, groups: list[GroupPolicy]) -> str:
    patterns = [entry.value for group in groups for entry in group.nodes or () if written_out(entry.value) is None]
    if patterns and all(group.hardware is not None for group in groups):
        return f"{patterns[0]} does not tell how many nodes there are"
    best = min(groups, key=lambda group: len(_missing(context, group)))
    return f"group {best.name} does not say {listed(_missing(context, best)) or 'its nodes'}"


def _missing(context: Context, group: GroupPolicy) -> list[str]:
    """Return which figures of the hardware a group does not promise: of volumes where its disks lie on nodes."""
    known = group.hardware or Hardware(span=group.span)
    figures: dict[str, object] = {"memory": known.memory, "cpus": known.cpus}
    allowed = context.effective(group, ALLOWED_TEMPLATES)
    if allowed is None or not {"plain", "drbd", "file"}.isdisjoint(allowed.texts):
        figures |= {"pv_count": known.volume_count, "pv_size": known.pv_sizes}
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


_MOST_ASKED: Final = 10
"""Other groups that a failing test is asked of."""


def asked_of(context: Context, scenario: Scenario) -> GroupPolicy | None:
    """Return the declared group that a test is about; None where that is not said, or it is not the policy's."""
    if scenario.stage.snapshot is not None:
        return None
    named = {part.group.value for part in scenario.stage.simulated if part.group is not None}
    if scenario.group is not None:
        named = {scenario.group.value}
    asked = [group for group in context.groups if not named or group.name in named]
    return asked[0] if len(named or asked) == 1 and asked else None


@warning("GP817", When.MORE_WITH_STATE | When.WHOLE, unless_declared=(ENABLED_TEMPLATES,), role=Role.ASKS_TEMPLATE)
def test_template(context: Context) -> Iterator[Hit]:
    enabled = of_cluster(context, ENABLED_TEMPLATES)
    for scenario in context.policy.scenarios:
        given = scenario.sizes if scenario.sizes is not None else scenario.capacity
        template = given.template if given is not None else None
        if template is None or scenario.stage.snapshot is not None:
            continue
        asked = asked_of(context, scenario)
        homes = [asked] if asked is not None else context.cluster_and_groups
        lists = [context.effective(home, ALLOWED_TEMPLATES) for home in homes]
        wanted = {item.path: item.wanted for item in scenario.expectations}
        expects_refusal = wanted.get(("refused",)) is True
        if scenario.action is Action.CAPACITY:
            expects_refusal = not any(isinstance(item, ExpectedNumber) and item.least for item in wanted.values())
        if expects_refusal or (scenario.sizes is not None and scenario.sizes.ignore_ipolicy):
            continue  # that may be what it shows
        name, label = template.value, _label(scenario)
        if name == "diskless" and scenario.sizes is not None and scenario.sizes.disks:
            message = "diskless instances have no disks, and this one has"
            yield hit(label, message, template.span, "write disks: [], or name another template")
        elif enabled is not None and name not in enabled.texts:
            message = f"{name} is not enabled on the cluster"
            yield hit(label, message, template.span, "name another template", missing=f"enabled {name}")
        elif lists and lists[0] and all(allowed is not None and name not in allowed.texts for allowed in lists):
            message = f"{name} is not allowed in {homes[0].title}"
            hint = f"is {listed(lists[0].texts, 'or')} meant? Else allow {name} there"
            yield hit(label, message, template.span, hint, missing=f"{name} in {lists[0].span}")


@warning("GP818", When.WHOLE)
def test_spindles(context: Context) -> Iterator[Hit]:
    for scenario in context.policy.scenarios:
        group = asked_of(context, scenario)
        if group is None or context.exclusive(group):
            continue
        leaf = context.effective(group, EXCLUSIVE_STORAGE)
        said = "is off" if leaf is not None else "is not declared"
        with_spindles = (sizes for sizes in sizes_of(scenario) if any(disk.spindles for disk in sizes.disks or ()))
        for sizes in islice(with_spindles, 1):
            message = f"the disk has spindles, but exclusive storage {said} in {group.title}"
            forgotten = forgotten_base(context, group)
            hint = "write ndparams: {exclusive_storage: true} in the group, or leave spindles out"
            hint = f"is {forgotten} missing? Else {hint}" if forgotten else hint
            related = see(leaf.span, "it is off here") if leaf is not None else ()
            missing = forgotten or f"exclusive storage of {group.label}"
            yield hit(f"test/{scenario.name.value}", message, sizes.span, hint, related, missing=missing)


@warning("GP825", when=When.WHOLE)
def test_node_misspelt(context: Context) -> Iterator[Hit]:
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
                    yield hit(f"test/{scenario.name.value}", message, node.span, f"Did you mean `{meant}`?")


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


@warning("GP826")
def test_instance_elsewhere(context: Context) -> Iterator[Hit]:
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
                    yield hit(f"test/{scenario.name.value}", message, node.span, f"{_name(part)} has {some(nodes, 8)}")


def _name(part: SimulatedGroup) -> str:
    return f"group {part.group.value}" if part.group else "the group"


@warning(
    "GP819",
    When.WHOLE | When.LAST,
    role=Role.RESULT,
    silent_after=tuple(f"GP{family}" for family in "123456"),
    better=((Same.LABEL, ("GP811", "GP812", "GP814", "GP815", "GP816", "GP817", "GP818")),),
)
def test_never_passes(context: Context) -> Iterator[Hit]:
    scenarios = {scenario.name.value: scenario for scenario in reversed(context.policy.scenarios)}
    said = False  # what a second test lacks follows from the same
    for outcome in context.forecast.outcomes(context.policy) if scenarios else ():
        scenario, label = scenarios[outcome.name], f"test/{outcome.name}"
        forgotten = "" if outcome.ok else forgotten_base(context, asked_of(context, scenario))
        lacking = f"is {forgotten} missing? Else " if forgotten else ""
        if outcome.error is not None:
            message, hint = f"the test cannot run: {outcome.error}", f"{lacking}{outcome.hint or ''}"
            yield hit(label, message, outcome.place or outcome.span, hint, missing=forgotten)
        for wrong in outcome.failures[:1]:
            why = f" ({wrong.detail})" if wrong.detail else ""
            message = f"the test fails: {wrong.title} is {wrong.found}{why}, but {wrong.expected} is expected"
            hint = f"{lacking}correct the policy; if it is as it should be, correct the test"
            asked, other = scenario.group, "" if forgotten or said else _group_meant(context, scenario)
            said = True
            hint += f": what it expects, or its group, since in group {other} it passes" if other else ""
            related = see(asked.span, "the test names this group") if asked and other else ()
            yield hit(label, message, wrong.span, hint, related, missing=forgotten)


def _group_meant(context: Context, scenario: Scenario) -> str:
    """Return the only other group with which a failing test of the sizes of an instance would pass; nothing if none."""
    sizes, asked = scenario.sizes, scenario.group
    others = [group.name for group in context.groups if asked is not None and group.name != asked.value]
    if sizes is None or asked is None or not scenario.stage.promised or len(others) > _MOST_ASKED:
        return ""
    named = (Located(name, asked.span) for name in others)
    tried = [replace(scenario, name=group, sizes=replace(sizes, group=group)) for group in named]
    outcomes = context.forecast.outcomes(replace(context.policy, scenarios=(*tried,)))
    passing = [item.name for item in outcomes if item.ok]
    return passing[0] if len(passing) == 1 else ""


@warning("GP820", When.WHOLE)
def test_never_fails(context: Context) -> Iterator[Hit]:
    for scenario in context.policy.scenarios:
        for expectation in scenario.expectations:
            wanted = expectation.wanted
            most = wanted.most if isinstance(wanted, ExpectedNumber) and (wanted.least or 0) <= 0 else 0
            if most is None or most >= 100_000:  # no cluster holds more instances
                bound = "at least 0" if most is None else f"at most {most:,}"
                message = f"{expectation.title} is {bound} in any case"
                yield hit(f"test/{scenario.name.value}", message, expectation.span, "expect a number, or 1 or more")
    edits = any(scenario.stage.edits for scenario in context.policy.scenarios)
    for scenario, edit in context.forecast.idle_edits(context.policy) if edits else ():
        message = "this edit leaves the cluster of the test as it was"
        yield hit(f"test/{scenario.name.value}", message, edit.span, "correct what it names, or remove the edit")
    first = {scenario.name.value: scenario for scenario in reversed(context.policy.scenarios)}
    for (name, _), (same, _) in repeated(_contents(context), lambda written: written[1]):
        copy, original = first.get(name), first.get(same)
        if same != name and copy is not None and original is not None:
            message, related = f"it asks and expects the same as {same!r}", see(original.span, f"{same!r} is here")
            yield hit(f"test/{name}", f"the test {name!r}: {message}", copy.span, "change or remove it", related)


def _contents(context: Context) -> Iterator[tuple[str, str]]:
    """Yield the name of each test with all else that is written of it."""
    for document in context.policy.documents:
        root = document.root
        tests = root.get("tests") if isinstance(root, dict) and root.get("kind") == "Test" else None
        for test in tests if isinstance(tests, list) else ():
            if isinstance(test, dict):
                yield str(test.get("name")), repr(sorted((key, value) for key, value in test.items() if key != "name"))
