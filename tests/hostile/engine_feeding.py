"""Questions to the compiled engine, by seed.

Each seed is a cluster, as Python's values or as streams of numbers, sound or damaged, and some questions one after the
other on one engine. GPOLICY_SANITIZED names another library than the one that is installed (tests/sanitizers.py).
"""

from __future__ import annotations

import contextlib
import random
import signal
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import FrameType

from gpolicy.allocator.balancing import FindMove, Goal, balance as balance_nodes, engine_search, law_search
from gpolicy.allocator.cluster_data import DEFAULT_POLICY, NO_NODE
from gpolicy.allocator.compiled_allocation import CompiledAllocator
from gpolicy.allocator.engines import compiled_attempt, compiled_redundancy
from gpolicy.allocator.evacuation import EvacuationMode, evacuate_nodes
from gpolicy.allocator.ghc_numbers import DivisionError
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.native.library import (
    EngineQuestion,
    EngineStoppedError,
    Leaving,
    MoveRules,
    NativeEngine,
    Status,
    Unlisted,
    load,
)
from gpolicy.allocator.native.streams import ClusterNumbers, Numbers, UnfitError
from gpolicy.allocator.placement import Attempt, PairCandidates, try_allocate
from gpolicy.allocator.redundancy import CapacityRules, is_redundant, redundancy_predicate
from gpolicy.allocator.repeated_allocation import AllocationState, Allocator
from gpolicy.allocator.request_options import RequestOptions
from gpolicy.allocator.requests import Wanted, search_dedicated
from gpolicy.cluster.process import after
from gpolicy.errors import InputError
from tests import sanitizers
from tests.hostile.engine_inputs import Values, damaged, some_values
from tests.htools.three_ways import by_the_law

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

PATIENCE = 0.3  # seconds after which the engine is stopped: a question may be a long one
LONG = 1.0  # seconds of processor time after which nobody waits for the law

sanitizers.use()
LOADED = load()
assert LOADED.library is not None, LOADED.trouble
LIBRARY = LOADED.library


def fed(seed: int) -> list[str]:
    """Ask what belongs to a seed; return the names of the statuses."""
    rng = random.Random(seed)
    return by_values(rng) if rng.random() < 0.4 else by_streams(rng)


def streams_of(values: Values) -> tuple[Numbers, Numbers] | None:
    """Return the streams of cluster and wanted instance; None where Python says already that they do not fit."""
    try:
        known = ClusterNumbers(
            values.nodes, values.instances, values.candidates, replace(values.rules, force=values.force),
            wanted=values.wanted, capacity_checks=values.checked,
        )  # fmt: skip
        return known.numbers, known.instance(values.wanted)
    except UnfitError:
        return None


def by_streams(rng: random.Random) -> list[str]:
    """Open a cluster, most often a damaged one, and ask a few questions, most often about damaged instances."""
    one, two = streams_of(some_values(rng)), streams_of(some_values(rng))
    if one is None or two is None:
        return ["unfit"]
    cluster = damaged(rng, one[0], two[0]) if rng.random() < 0.6 else one[0]
    engine = NativeEngine(LIBRARY)
    statuses = [engine.open(cluster)]
    nodes = cluster.integers[0] if len(cluster.integers) else 0
    for _ in range(rng.choice([1, 2, 3, 6]) if statuses[0] is Status.DONE else 0):
        wanted = rng.choice([one[1], one[1], two[1]])
        wanted = damaged(rng, wanted, two[1]) if rng.random() < 0.5 else wanted
        statuses.append(ASK[rng.choice(list(ASK))](rng, engine, wanted, nodes))
    return [status.name for status in statuses]


def ask_about_instance(
    question: EngineQuestion, rng: random.Random, engine: NativeEngine, wanted: Numbers, nodes: int
) -> Status:
    """Ask one question about a wanted instance, and hold against the cluster what comes back."""
    before = engine.placed
    keep = rng.choice([0, 0, before, before // 2, before + 1, -1])
    limit = rng.choice([None, 0, 1, 3, 20, -1, 2**62, -(2**63)])
    with stopped_after(engine, PATIENCE):
        try:
            status, result = engine.ask(question, wanted, keep=keep, limit=limit, checked=rng.random() < 0.5)
        except EngineStoppedError:
            status, result = Status.STOPPED, None
    if status is not Status.DONE:
        assert engine.placed in {before, keep}, "a question without an answer leaves placements behind"
        return status
    assert result is not None
    assert 0 <= keep <= before
    assert all(count >= 0 for count in result.failures)
    assert -1 <= result.primary < nodes
    assert -1 <= result.secondary < nodes
    for primary, secondary, memory, least_disk, vcpus, _ in engine.placements(keep):
        assert 0 <= primary < nodes
        assert -1 <= secondary < nodes
        assert secondary != primary
        assert min(memory, vcpus, least_disk) >= 0
    return status


def move_away(rng: random.Random, engine: NativeEngine, wanted: Numbers, nodes: int) -> Status:
    """Move an instance away from whatever nodes its numbers name, to some others."""
    rows = [rng.choice([row, row, row - 1, -1, nodes, 2**62]) for row in range(nodes) if rng.random() < 0.7]
    count = rng.choice([len(rows)] * 8 + [len(rows) + 1, -1, 2**40])
    record = Numbers(wanted.integers + array("q", [count, *rows]), wanted.reals)
    with stopped_after(engine, PATIENCE):
        try:
            status, result = engine.move_away(
                record, rng.choice(list(Leaving)), Unlisted(rng.choice([0, 0, 1, 2, 3])), force=rng.random() < 0.5
            )
        except EngineStoppedError:
            return Status.STOPPED
    assert -1 <= result.primary < nodes
    assert -1 <= result.secondary < nodes
    return status


def lose(rng: random.Random, engine: NativeEngine, _wanted: Numbers, nodes: int) -> Status:
    """Lose some nodes, with the right number of instances or another one."""
    rows = [rng.choice([rng.randrange(-1, nodes + 1)] * 9 + [2**62]) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    with stopped_after(engine, PATIENCE):
        try:
            for residents in range(8):
                status, targets = engine.lose(rows, residents, cpus=rng.random() < 0.5)
                if status is Status.DONE:
                    assert all(-1 <= target < nodes for target in targets)
                    break
        except EngineStoppedError:
            return Status.STOPPED
    return status


def balance(rng: random.Random, engine: NativeEngine, _wanted: Numbers, nodes: int) -> Status:
    """Take a few moves of balancing, of instances that the cluster may have or not."""
    status = Status.DONE
    for _ in range(rng.choice([1, 1, 3])):
        slots = [slot for slot in range(rng.choice([0, 1, 3, 8])) if rng.random() < 0.9]
        slots += [rng.choice([*slots, -1, 2**62])] if rng.random() < 0.1 else []
        with stopped_after(engine, PATIENCE):
            try:
                status, move = engine.balance(slots, MoveRules(rng.choice([0, 0, rng.randrange(32)])))
            except EngineStoppedError:
                return Status.STOPPED
        assert move.slot == -1 or move.slot in slots
        assert -1 <= move.target < nodes
    return status


ASK = {
    **{
        question.name: lambda *given, question=question: ask_about_instance(question, *given)
        for question in EngineQuestion
    },
    "MOVE_AWAY": move_away,
    "LOSE": lose,
    "BALANCE": balance,
}
"""How to ask each question of the engine: a new one that needs other things gets an entry of its own."""


def stopped_after(engine: NativeEngine, seconds: float) -> contextlib.AbstractContextManager[None]:
    """Stop the engine if the block takes longer."""
    return after(seconds, engine.stop)


def by_values(rng: random.Random) -> list[str]:
    """Ask through the functions that the rest of gpolicy calls; hold what is soon answered against the law."""
    values = some_values(rng)
    match rng.randrange(6):
        case 5:
            mode, leaving = rng.choice(list(EvacuationMode)), _several(rng, values)
            return [
                _same(
                    "evacuate",
                    lambda: _evacuate(values, mode, leaving, law=True),
                    lambda: _evacuate(values, mode, leaving, law=False),
                )
            ]
        case 4:
            return [_same("dedicated", lambda: _dedicated(values, law=True), lambda: _dedicated(values, law=False))]
        case 3:
            return [_same("balance", lambda: _balance(values, law=True), lambda: _balance(values, law=False))]
        case 0:
            return [_same("attempt", lambda: _attempt_by_law(values), lambda: _attempt_by_engine(values))]
        case 1:
            return [
                _same(
                    "redundancy",
                    lambda: is_redundant(values.nodes, values.instances, values.rules),
                    lambda: compiled_redundancy(values.nodes, values.instances, values.rules),
                )
            ]
        case _:
            tiered, limit = rng.random() < 0.5, rng.choice([0, 1, 2])
            wanted = replace(values.wanted, index=-1)

            def run(*, reference: bool) -> object:
                checked = values.checked
                runner: Allocator = CompiledAllocator(values.candidates, values.rules, capacity_checks=checked)
                if reference:
                    runner = Allocator(runner.engine, checked)
                state = AllocationState(values.nodes, values.instances)
                return (runner.tiered if tiered else runner.standard)(state, wanted, limit)

            return [
                _same("tiered" if tiered else "standard", lambda: run(reference=True), lambda: run(reference=False))
            ]


def _balance(values: Values, *, law: bool) -> object:
    """Take up to three moves; without a goal, the last one is the last that improves the score."""
    nodes, instances = values.nodes, values.instances
    movable = [
        number
        for number, item in instances.items()
        if item.primary in nodes
        and item.template.balanced
        and (item.forthcoming or number in nodes[item.primary].primaries)
    ]
    if any(instances[number].secondary not in {NO_NODE, *nodes} for number in movable):
        return None
    given = (not values.checked, False, False, values.rules.cpus, values.force)
    rules = MoveRules(sum(rule for rule, wanted in zip(MoveRules, given, strict=True) if wanted))
    goal = Goal(optimum=-1e300, limit=3, min_gain=0.0)
    search: FindMove = law_search(movable, rules) if law else engine_search(nodes, instances, movable, rules)
    moves = balance_nodes(nodes, instances, rules, goal, search)
    return [(done.move.kind, done.instance.index, done.move.target, done.score) for done in moves]


def _several(rng: random.Random, values: Values) -> list[int]:
    """Return some instances that are where their records say."""
    nodes = values.nodes
    there = [
        number
        for number, item in values.instances.items()
        if item.primary in nodes and item.secondary in {NO_NODE, *nodes}
    ]
    chosen = rng.sample(there, min(len(there), rng.choice([1, 1, 2, 4])))
    return chosen + chosen[:1] if rng.random() < 0.2 else chosen


def _evacuate(values: Values, mode: EvacuationMode, wanted: list[int], *, law: bool) -> object:
    cluster = Cluster({}, values.nodes, values.instances, (), DEFAULT_POLICY, "")
    with by_the_law() if law else contextlib.nullcontext():
        found = evacuate_nodes(cluster, mode, wanted, force=values.force)
    return found.moved, found.failed


def _dedicated(values: Values, *, law: bool) -> object:
    """Place an instance by the lost allocations, on any candidates of one group."""
    options = RequestOptions(ignore_soft_errors=values.force)
    group = next(iter(values.nodes.values())).facts.group if values.nodes else 0
    members = [index for index, node in values.nodes.items() if node.facts.group == group]
    wanted = Wanted(values.wanted, 2 if isinstance(values.candidates, PairCandidates) else 1)
    with by_the_law() if law else contextlib.nullcontext():
        return search_dedicated(wanted, options, values.nodes, values.instances, members)


def _attempt_by_law(values: Values) -> object:
    predicate = redundancy_predicate(values.nodes, values.instances, CapacityRules()) if values.checked else None
    return try_allocate(values.nodes, values.wanted, values.candidates, force=values.force, predicate=predicate)


def _attempt_by_engine(values: Values) -> object:
    return compiled_attempt(
        values.nodes, values.instances, values.wanted, values.candidates,
        CapacityRules(failures=int(values.checked), force=values.force),
    )  # fmt: skip


def _same(what: str, law: Callable[[], object], engine: Callable[[], object]) -> str:
    """Run both; the engine may leave it to the law (None), and else has to say the same, or to refuse alike.

    Odd numbers can mean more steps than anybody would wait for: then nothing is compared.
    """
    try:
        with within(LONG):
            found = _answer(engine)
            if found is None:
                return f"{what} UNFIT"
            if "no cluster has " in str(found)[:200]:
                return f"{what} REFUSED"
            expected = _answer(law)
    except TooSlow:
        return f"{what} SLOW"
    except (ArithmeticError, ValueError) as error:  # numbers that not even the law was made for
        return f"{what} {type(error).__name__}"
    assert _short(found) == _short(expected), f"{what}: {_short(found):.900} instead of {_short(expected):.900}"
    if isinstance(found, AllocationState) and isinstance(expected, AllocationState):
        assert found.refused >= expected.refused, f"{what}: the law refused candidates, the engine none"
        found = replace(found, refused=expected.refused)
    assert repr(found) == repr(expected), f"{what}: other nodes after {_short(found):.900}"
    return f"{what} EQUAL"


def _short(answer: object) -> str:
    """Return what was decided, without the nodes after it."""
    if isinstance(answer, Attempt):
        found = answer.solution
        where = None if found is None else (found.nodes, found.score, found.instance.location_score)
        return repr((answer.failures, answer.successes, where))
    if isinstance(answer, AllocationState):
        placed = [(item.primary, item.secondary, item.memory, item.disk, item.vcpus) for item in answer.placed]
        return repr((answer.failures, answer.attempted, placed))
    return repr(answer)


def _answer(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except (InputError, DivisionError) as error:
        return f"{type(error).__name__}: {error}"


class TooSlow(BaseException):
    """An answer takes too long. Not an Exception, so that no handler catches it."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise `TooSlow` in the block when it takes longer (of processor time: machines are shared)."""

    def ring(_: int, __: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds} s")

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, 0.1)  # again: what it raised in a finalizer is lost
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
