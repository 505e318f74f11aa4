"""GP817 to GP820, GP825 and GP826: what tests ask for, against what the policy has, and tests that fail or cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import Final

from gpolicy.checking.context import DISK_TEMPLATES, ENABLED_TEMPLATES, EXCLUSIVE_STORAGE, Context, name_of, texts
from gpolicy.checking.in_force import of_cluster
from gpolicy.checking.rule import Hit, Same, When, hit, see, warning
from gpolicy.guessing import MOST_GUESSES, MOST_KNOWN, name_meant
from gpolicy.policy.model import GroupPolicy
from gpolicy.policy.node_patterns import is_glob, matches, written_out
from gpolicy.policy.scenario import Action, Number, Scenario, SimulatedGroup
from gpolicy.policy.source_file import Located
from gpolicy.printable import some
from gpolicy.rules.shared import forgotten_base, repeated, sizes_of

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


@warning("GP817", when=When.MORE_WITH_STATE, unless_declared=(ENABLED_TEMPLATES,))
def test_template(context: Context) -> Iterator[Hit]:
    enabled = of_cluster(context, ENABLED_TEMPLATES)
    for scenario in context.policy.scenarios:
        given = scenario.sizes if scenario.sizes is not None else scenario.capacity
        template = given.template if given is not None else None
        if template is None or scenario.stage.snapshot is not None:
            continue
        declared = asked_of(context, scenario) or context.policy.cluster
        allowed = context.effective(declared, DISK_TEMPLATES) if declared else None
        wanted = {item.path: item.wanted for item in scenario.expectations}
        expects_refusal = wanted.get(("refused",)) is True or scenario.action is Action.CAPACITY
        if expects_refusal or (scenario.sizes is not None and scenario.sizes.ignore_ipolicy):
            continue  # that may be what it shows
        name, message, missing, hint = template.value, "", "", "name another template"
        if name == "diskless" and scenario.sizes is not None and scenario.sizes.disks:
            message = "diskless instances have no disks, and this one has"
            hint = "write disks: [], or name another template"
        elif enabled is not None and name not in enabled.texts:
            message, missing = f"{name} is not enabled on the cluster", f"enabled {name}"
        elif declared is not None and allowed is not None and name not in texts(allowed):
            message, missing = f"{name} is not allowed in {name_of(declared)}", f"{name} in {allowed.span}"
        if message:
            yield hit(f"test/{scenario.name.value}", message, template.span, hint, missing=missing)


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
            message = f"the disk has spindles, but exclusive storage {said} in {name_of(group)}"
            forgotten = forgotten_base(context, group)
            hint = "write ndparams: {exclusive_storage: true} in the group, or leave spindles out"
            hint = f"is {forgotten} missing? Else {hint}" if forgotten else hint
            related = see(leaf.span, "it is off here") if leaf is not None else ()
            yield hit(f"test/{scenario.name.value}", message, sizes.span, hint, related, missing=forgotten)


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
    follows=True,
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
            most = wanted.most if isinstance(wanted, Number) and (wanted.least or 0) <= 0 else 0
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
