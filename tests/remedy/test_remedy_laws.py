"""Remedies of random broken clusters: each step is possible and safe, and no list of hbal's cures more."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from itertools import pairwise

import pytest

from gpolicy.allocator.balancing import Goal, balance, engine_search
from gpolicy.allocator.cluster_data import NO_NODE, FailReason
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind, apply_move, is_split
from gpolicy.allocator.native.library import ANY_MOVE
from gpolicy.analysis.health import CONFLICTS, LocationFacts
from gpolicy.analysis.loaded_state import load_state
from gpolicy.analysis.node_losses import group_redundancy
from gpolicy.analysis.violations import node_verdicts
from gpolicy.cluster.state import ClusterState
from gpolicy.remedy.faults import RATIOS, Fault, FaultKind, Layout, Places
from gpolicy.remedy.moving import Movers, MoveTrial
from gpolicy.remedy.remedy import RemedyReport
from tests.remedy.broken_clusters import ImpossibleError, broken, remedied, remedy_of

OF_TAGS = {"exclusion", "exclusion-domain", "failure-domain", "migration"}


def layout_of(state: ClusterState) -> Layout:
    loaded = load_state(state)
    cpus = {
        group.index: loaded.groups[group.name].limits.cpus_after_failure is not False
        for group in loaded.settled.data.groups
    }
    return Layout(loaded.whole.cluster.nodes, loaded.whole.cluster.instances, cpus, frozenset())


def moved(state: ClusterState, report: RemedyReport) -> ClusterState:
    instances = dict(state.instances)
    for step in report.steps:
        primary, *secondary = step.nodes_after
        instances[step.instance] = replace(
            instances[step.instance], primary_node=primary, secondary_nodes=tuple(secondary)
        )
    return replace(state, instances=instances)


def wrong(faults: tuple[Fault, ...]) -> tuple[int, int]:
    """Return how many faults there are but for nodes above a ratio, and how many of these."""
    above = sum(fault.kind in RATIOS for fault in faults)
    return len(faults) - above, above


def lost(layout: Layout) -> tuple[int, int]:
    return len(layout.homeless), sum(map(len, layout.homeless.values()))


def replayed(layout: Layout, report: RemedyReport) -> list[Layout]:
    """Return the layout after each step, by hbal's own moves without force; the nodes are those that are reported."""
    names = {item.name: index for index, item in layout.instances.items()}
    nodes = {node.facts.name: index for index, node in layout.nodes.items()}
    found = [layout]
    for step in report.steps:
        here = found[-1]
        item = here.instances[names[step.instance]]
        wanted = tuple(nodes[name] for name in step.nodes_after)
        moves = (
            apply_move(here.nodes, InstanceMove(kind, item, target), force=False)
            for kind in MoveKind
            for target in ([NO_NODE] if kind is MoveKind.FAILOVER else wanted)
            if (kind is MoveKind.FAILOVER_TO) == (item.secondary == NO_NODE)
            if target not in {item.primary, item.secondary} or target == NO_NODE
        )
        taken = [
            move
            for move in moves
            if not isinstance(move, FailReason)
            and tuple(i for i in (move.instance.primary, move.instance.secondary) if i != NO_NODE) == wanted
        ]
        assert taken, f"{step.instance} cannot move to {step.nodes_after}"
        found.append(here.after(taken[0]))
    return found


def check_that_faults_are_those_of_the_impact(seed: int) -> None:
    state = broken(seed)
    layout = layout_of(state)
    faults = Places(layout.nodes).faults(layout)
    facts = LocationFacts(state, {})
    for kind in OF_TAGS:
        found = [fault for fault in faults if fault.kind.value == kind]
        assert len(found) == len(list(CONFLICTS[kind](facts))), kind
    above = {(name, breach.parameter) for name, verdict in node_verdicts(state).items() for breach in verdict.breaches}
    offline = {node.facts.name for node in layout.nodes.values() if node.facts.offline}
    found_above = {(fault.key[0], fault.kind.value) for fault in faults if fault.kind in RATIOS}
    assert found_above == {breach for breach in above if breach[0] not in offline}
    groups = [group_redundancy(item, 1) for item in load_state(state).groups.values()]
    if not any(fault.kind is FaultKind.TWO_GROUPS for fault in faults):
        losses = {loss.nodes for group in groups for loss in group.not_absorbed}
        assert {fault.key for fault in faults if fault.kind is FaultKind.LOSS} == losses
        short = {(item.node,) for group in groups for item in group.shortages}
        assert {fault.key for fault in faults if fault.kind is FaultKind.RESERVE} == short


def check_that_each_step_is_possible_and_keeps_redundancy(seed: int) -> None:
    state, report = broken(seed), remedy_of(seed)
    layouts = replayed(layout_of(state), report)
    for before, after in pairwise(layouts):
        assert lost(after)[0] <= lost(before)[0]
        assert lost(after)[1] <= lost(before)[1]
        for index, node in after.nodes.items():
            assert node.facts.offline or before.nodes[index].fails_n1 or not node.fails_n1
    places = Places(layouts[0].nodes)
    assert set(places.faults(layouts[-1])) == set(report.faults_after)
    assert {left.fault for left in report.left} | set(report.new) == set(report.faults_after)
    assert wrong(report.faults_after) <= wrong(report.faults)
    assert sum(len(step.cures) for step in report.steps) == report.cured
    facts = LocationFacts(moved(state, report), {})
    for kind in OF_TAGS:
        count = sum(fault.kind.value == kind for fault in report.faults_after)
        assert count == len(list(CONFLICTS[kind](facts))), kind


def check_that_hbal_cures_no_more(seed: int) -> None:
    """Of hbal's list in each group, the longest beginning counts whose moves keep redundancy."""
    state = broken(seed)
    start = layout_of(state)
    places = Places(start.nodes)
    least = wrong(remedy_of(seed).faults_after)
    silent = {index for index, node in start.nodes.items() if not state.nodes[node.facts.name].is_measured}
    movers = Movers(places, {}, frozenset(silent))
    for group in sorted({node.facts.group for node in start.nodes.values()}):
        own = {index: node for index, node in start.nodes.items() if node.facts.group == group}
        instances = {number: item for number, item in start.instances.items() if item.primary in own}
        if any(item.secondary not in {NO_NODE, *own} for item in instances.values()):
            continue
        movable = [
            number
            for number, item in instances.items()
            if item.template.balanced
            and state.instances[item.name].auto_balance
            and not item.forthcoming
            and not is_split(item, start.nodes)
        ]
        layout = start
        search = engine_search(own, instances, movable, ANY_MOVE)
        for done in balance(own, instances, ANY_MOVE, Goal(float("-inf"), 60, min_gain=0.0), search):
            trial = movers.try_move(layout, done.move)
            if not isinstance(trial, MoveTrial) or not movers.is_safe(layout, trial):
                break
            layout = layout.after(trial.moved)
            assert least <= wrong(places.faults(layout))


def check_laws(seed: int) -> None:
    check_that_faults_are_those_of_the_impact(seed)
    check_that_each_step_is_possible_and_keeps_redundancy(seed)
    check_that_hbal_cures_no_more(seed)


@pytest.mark.parametrize("seed", range(25))
def test_laws_of_remedies(seed: int) -> None:
    try:
        check_laws(seed)
    except ImpossibleError as error:
        pytest.skip(str(error))


@pytest.mark.full
def test_laws_of_many_remedies() -> None:
    for seed in range(25, 1_000):
        with contextlib.suppress(ImpossibleError):
            check_laws(seed)


@pytest.mark.parametrize("seed", [3, 5, 14])
def test_the_same_input_has_the_same_answer(seed: int) -> None:
    assert remedied(broken(seed)) == remedy_of(seed)
