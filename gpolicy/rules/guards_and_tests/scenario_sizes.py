"""GP819: tests of instances that the policy itself cannot let pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context, name_of
from gpolicy.checking.pairs import Pair, amount
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import RuleInfo, Severity
from gpolicy.policy.model import ClusterPolicy, GroupPolicy
from gpolicy.policy.scenario import Action, Scenario, Sizes
from gpolicy.rules.examples import GROUP, bounds

_GROUP: Final = (
    f"{GROUP}ipolicy:\n  disk-templates: [plain]\n  minmax:\n"
    "    - name: large\n      " + bounds("16G 64G", "4 16", "100G 1T") + "---\ngpolicy: v1\nkind: Test\ntests:\n"
)
_TAKEN: Final = frozenset({"node", "nodes", "group", "lost_allocations", "disk_left", "preference"})


def _test(memory: str) -> str:
    sizes = f"{{group: gold, memory-size: {memory}, cpu-count: 4, disks: [200G], disk-template: plain}}"
    return f"{_GROUP}  - {{name: a test, check_instance: {sizes}, expect: {{refused: false}}}}\n"


class NeverPassesTest(Rule):
    info = RuleInfo(
        code="GP819",
        name="test-never-passes",
        severity=Severity.WARNING,
        summary="A test expects that an instance is accepted, but the policy of its group refuses it.",
        rationale="`gpolicy test` will fail. Either a size in the test is wrong, or the specs no longer allow an"
        " instance that somebody relies on.",
        source="gpolicy; Partitioned Ganeti, Constrained instance sizes",
        bad=_test("640G"),
        good=_test("64G"),
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        for scenario in context.policy.scenarios:
            sizes = scenario.sizes
            if sizes is None or sizes.ignore_ipolicy or not _is_to_be_taken(scenario):
                continue
            asked = _asked(context, scenario)
            reasons = [_refusal(context, item, sizes) for item in asked]
            if reasons and all(reasons):
                where = name_of(asked[0]) if len(asked) == 1 else "every group"
                message = f"{where} refuses this instance: {reasons[0]}"
                hint = "correct the instance, or expect that it is refused"
                yield self.hit(f"test/{scenario.name.value}", message, sizes.span, hint=hint)


def _is_to_be_taken(scenario: Scenario) -> bool:
    expected = {expectation.path[0]: expectation.wanted for expectation in scenario.expectations}
    if scenario.action is Action.CHECK_INSTANCE:
        return expected.get("refused") is False
    return scenario.action is Action.PLACE and expected.get("refused") is not True and not _TAKEN.isdisjoint(expected)


def _asked(context: Context, scenario: Scenario) -> list[ClusterPolicy | GroupPolicy]:
    """Return whose policy may hold for the instance: the named group's, else any group's and the cluster's."""
    named = {part.group.value for part in scenario.stage.simulated if part.group is not None}
    only = scenario.group.value if scenario.group else next(iter(named)) if len(named) == 1 else None
    if only is None:
        return context.cluster_and_groups
    groups = [group for group in context.groups if group.name == only]
    return [*groups] if groups else [item for item in context.cluster_and_groups if isinstance(item, ClusterPolicy)]


def _refusal(context: Context, declared: ClusterPolicy | GroupPolicy, sizes: Sizes) -> str:
    """Return why a policy refuses an instance, as far as its declared sizes tell; nothing if it need not."""
    pairs = context.pairs(declared)
    if not pairs or sizes.spec is not None:
        return ""
    found = [_outside(pair, sizes) for pair in pairs]
    return min(found, key=len)[0] if all(found) else ""


def _outside(pair: Pair, sizes: Sizes) -> list[str]:
    """Return what of an instance lies outside of a pair."""
    disks = sizes.disks
    wanted = [("memory-size", sizes.memory), ("memory-size", sizes.minmem), ("cpu-count", sizes.cpus)]
    wanted += [("disk-size", disk.size) for disk in disks or ()]
    wanted += [("disk-count", len(disks))] if disks else []
    wanted += [("nic-count", sizes.nic_count)]
    return [
        f"{name} {amount(name, value)} is outside of {pair.title}"
        for name, value in wanted
        if value is not None and not pair.minimum[name] <= value <= pair.maximum[name]
    ]
