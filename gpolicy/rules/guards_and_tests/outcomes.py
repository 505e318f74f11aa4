"""GP819 and GP820: tests that fail, and tests that cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Finding, Severity, warning_rule
from gpolicy.policy.scenario import Number
from gpolicy.rules.examples import GROUP, bounds
from gpolicy.rules.exclusive_storage.dedicated import NodeKeepsEverything
from gpolicy.rules.exclusive_storage.mode import TemplateNotExclusive
from gpolicy.rules.exclusive_storage.physical_volumes import VolumeCount
from gpolicy.rules.exclusive_storage.spindles import SpindlesWithoutExclusiveStorage
from gpolicy.rules.groups.nodes import PatternUnlikely
from gpolicy.rules.guards_and_tests.scenario_disks import SpindlesOfTest, TemplateOfTest
from gpolicy.rules.guards_and_tests.scenarios import (
    ContradictionTest,
    UnknownGroupTest,
    UnknownNodeTest,
    UnknownSpecTest,
    WithoutHardwareTest,
)
from gpolicy.rules.parameters.numbers import NumberUnlikely
from gpolicy.rules.parameters.ratios import RatioBelowOne
from gpolicy.rules.specs.figures import FigureRefusesSpecs
from gpolicy.rules.specs.hardware import HardwareUnlikely, SpecMaxBeyondHardware

if TYPE_CHECKING:
    from gpolicy.testing.outcome import Outcome

_BETTER: Final = (
    UnknownGroupTest,
    UnknownSpecTest,
    UnknownNodeTest,
    WithoutHardwareTest,
    ContradictionTest,
    TemplateOfTest,
    SpindlesOfTest,
)
"""Rules that say more exactly why a test fails or cannot run."""

_OF_VALUES: Final = "123456"
"""The families of rules about values, specs, templates, storage, tags and groups."""
_CAUSES: Final = frozenset(
    rule.info.code
    for rule in (
        NumberUnlikely,
        RatioBelowOne,
        SpecMaxBeyondHardware,
        HardwareUnlikely,
        VolumeCount,
        PatternUnlikely,
        FigureRefusesSpecs,
        NodeKeepsEverything,
        TemplateNotExclusive,
        SpindlesWithoutExclusiveStorage,
    )
)
"""Rules, beside those of errors, about values that cannot be meant."""

_GROUP: Final = (
    f"{GROUP}ipolicy:\n  disk-templates: [plain]\n  minmax:\n"
    "    - name: large\n      " + bounds("16G 64G", "4 16", "100G 1T") + "---\ngpolicy: v1\nkind: Test\ntests:\n"
)


def _test(memory: str) -> str:
    sizes = f"{{group: gold, memory-size: {memory}, cpu-count: 4, disks: [200G], disk-template: plain}}"
    return f"{_GROUP}  - {{name: a test, check_instance: {sizes}, expect: {{refused: false}}}}\n"


def _capacity(number: str) -> str:
    on = "{simulate: {group: gold, nodes: 2, memory: 256G, cpus: 32, disk: 4T}}"
    return f'{_GROUP}  - {{name: a test, "on": {on}, capacity: {{}}, expect: {{specs: {{large: {number}}}}}}}\n'


def _label(name: str) -> str:
    return f"test/{name}"


class NeverPassesTest(Rule):
    info = warning_rule("GP819", "test-never-passes")(
        summary="A test fails: what it expects is not so, or it cannot run.",
        rationale="gpolicy runs small tests while it checks, since they need nothing but the policy. Either the test is"
        " wrong, or the policy no longer allows what somebody relies on. Tests on snapshots, on many nodes or of many"
        " instances are left to `gpolicy test`. No test runs while a number or a name of the policy is an error, or"
        " makes no sense: the tests would fail for that reason.",
        source="gpolicy test; Partitioned Ganeti, Constrained instance sizes",
        bad=_test("640G"),
        good=_test("64G"),
    )
    needs_whole_policy = True
    runs_last = True

    def is_explained_by(self, found: Sequence[Finding]) -> bool:
        """Return whether values of the policy are wrong: tests then fail or cannot run because of them."""
        return any(
            finding.code in _CAUSES
            or (finding.code[2] in _OF_VALUES and (finding.severity is Severity.ERROR or finding.missing))
            for finding in found
        )

    def check(self, context: Context) -> Iterator[Hit]:
        if not context.policy.scenarios:
            return
        from gpolicy.testing.small_tests import run_small_tests  # noqa: PLC0415 (most policies have no tests)

        failed = [outcome for outcome in run_small_tests(context.policy) if not outcome.ok]
        alone = Context(context.policy, None, context.settings, context.today)  # small tests look at no cluster
        said = {hit.label for rule in _BETTER for hit in rule().check(alone)} if failed else set()
        for outcome in failed:
            if _label(outcome.name) not in said:
                yield self._failure(outcome)

    def _failure(self, outcome: Outcome) -> Hit:
        if outcome.error is not None:
            message = f"the test cannot run: {outcome.error}"
            return self.hit(_label(outcome.name), message, outcome.place or outcome.span, hint=outcome.hint or "")
        wrong = outcome.failures[0]
        why = f" ({wrong.detail})" if wrong.detail else ""
        message = f"the test fails: {wrong.title} is {wrong.found}{why}, but {wrong.expected} is expected"
        hint = "correct the question, or what is expected"
        return self.hit(_label(outcome.name), message, wrong.span, hint=hint)


_ANY: Final = 100_000
"""No cluster holds more instances."""


class NeverFailsTest(Rule):
    info = warning_rule("GP820", "test-never-fails")(
        summary="A test expects what holds whatever the policy says, or changes its cluster without effect.",
        rationale="Numbers are never below 0, and no cluster holds 100,000 instances: what expects it shows nothing. An"
        " edit that leaves the cluster as it was most likely means another node or instance.",
        source="gpolicy test",
        bad=_capacity("{at_least: 0}"),
        good=_capacity("{at_least: 1}"),
    )
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        for scenario in context.policy.scenarios:
            for expectation in scenario.expectations:
                wanted = expectation.wanted
                if (
                    isinstance(wanted, Number)
                    and (wanted.least or 0) <= 0
                    and (wanted.most is None or wanted.most >= _ANY)
                ):
                    bound = "at least 0" if wanted.most is None else f"at most {wanted.most:,}"
                    message = f"{expectation.title} is {bound} in any case"
                    hint = "expect a number, or 1 or more"
                    yield self.hit(_label(scenario.name.value), message, expectation.span, hint=hint)
        if not any(scenario.stage.edits for scenario in context.policy.scenarios):
            return
        from gpolicy.testing.small_tests import idle_edits  # noqa: PLC0415 (most policies have no tests)

        for scenario, edit in idle_edits(context.policy):
            message = "this edit leaves the cluster of the test as it was"
            yield self.hit(_label(scenario.name.value), message, edit.span, hint="remove it, or correct what it names")
