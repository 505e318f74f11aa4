"""GP819 and GP820: tests that fail, and tests that cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule, Same, SilentAfter
from gpolicy.findings import warning_rule
from gpolicy.policy.scenario import Number
from gpolicy.rules.examples import GROUP, bounds

if TYPE_CHECKING:
    from gpolicy.testing.outcome import Outcome

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
    silent_after = SilentAfter(  # values of the policy that are wrong: tests then fail or cannot run because of them
        errors=tuple(f"GP{family}" for family in "123456"),
        missing=True,
        codes=("GP114", "GP152", "GP212", "GP222", "GP226", "GP407", "GP413", "GP414", "GP419", "GP612"),
    )
    better = ((Same.LABEL, ("GP811", "GP812", "GP814", "GP815", "GP816", "GP817", "GP818")),)

    def check(self, context: Context) -> Iterator[Hit]:
        for outcome in context.forecast.outcomes(context.policy) if context.policy.scenarios else ():
            if not outcome.ok:
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
        edits = any(scenario.stage.edits for scenario in context.policy.scenarios)
        for scenario, edit in context.forecast.idle_edits(context.policy) if edits else ():
            message = "this edit leaves the cluster of the test as it was"
            yield self.hit(_label(scenario.name.value), message, edit.span, hint="remove it, or correct what it names")
