"""Waves of nodes carried out step by step on the observed cluster, each constraint looked at anew there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from gpolicy.allocator.cluster_data import DiskTemplate
from gpolicy.allocator.merge import EXCLUSION_PREFIX, tagged_values
from gpolicy.analysis.health import LocationFacts
from gpolicy.analysis.loaded_state import load_state
from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.evacuate.evacuation import EvacuationRequest, Job, Wave, WavesReport
from gpolicy.evacuate.in_turn import find_waves
from gpolicy.remedy.faults import Fault, FaultKind, Layout
from gpolicy.remedy.remedy import begin_remedy
from gpolicy.what_if.load import elsewhere

ON_NODES = {FaultKind.RESERVE, FaultKind.VCPU_RATIO, FaultKind.SPINDLE_RATIO}


def without_migration_tags(state: ClusterState) -> ClusterState:
    """Return the state as N+1 sees it: a lost instance starts anew, on a node with any tags."""
    tags = frozenset(tag for tag in state.cluster.tags if "migration:" not in tag)
    nodes = {name: replace(node, drained=False) for name, node in state.nodes.items()}
    return replace(state, cluster=replace(state.cluster, tags=tags), nodes=nodes)


def faults(state: ClusterState) -> tuple[Fault, ...]:
    state = without_migration_tags(state)
    return begin_remedy(state, load_state(state)).before.faults


def crowds(state: ClusterState) -> set[tuple[str, str, str]]:
    """Return each instance on a node with another one of the same exclusion tag."""
    prefixes = tuple(tagged_values(tuple(state.cluster.tags), EXCLUSION_PREFIX))
    places = [
        (item.primary_node, tag, item.name)
        for item in state.instances.values()
        for tag in item.tags
        if tag.startswith(prefixes) and prefixes
    ]
    counts = Counter(place[:2] for place in places)
    return {place for place in places if counts[place[:2]] > 1}


def runs(item: LiveInstance) -> bool:
    up = item.admin_state == "up" if item.running is None else item.running
    return up and not item.forthcoming


def check_waves(state: ClusterState, report: WavesReport) -> None:
    """Raise AssertionError if the waves break a constraint, or do not have each node once."""
    online = [node.name for node in state.nodes.values() if not node.offline]
    old = [name for name in online if report.upgrade and report.upgrade.old in state.nodes[name].tags]
    if report.asked.nodes is None and report.asked.group is None and not report.upgrade:
        assert sorted(report.leaving) == sorted(online)
    assert len(set(report.leaving)) == len(report.leaving)
    assert not report.upgrade or set(report.leaving) <= set(old)
    if report.master:
        assert report.waves[-1].nodes == (report.master,)
    here = state
    for wave in report.waves:
        assert wave.before.instances.keys() == here.instances.keys()
        halted = {item.instance for item in wave.halted}
        start = here
        crowded = crowds(start)
        for move in wave.out:
            here = moved(here, move, ways=(start,))
            assert not set(move.nodes_after[:1]) & set(wave.nodes)
            assert not halted & {move.instance}
            assert crowds(here) <= crowded
            assert state.nodes[move.nodes_after[0]].is_usable
        for item in here.instances.values():
            assert item.primary_node not in wave.nodes or not runs(item) or item.name in halted, item.name
        check_redundancy(start, wave, here)
        if report.upgrade:
            here = tagged(here, wave.nodes, report)
        for move in wave.back:
            here = moved(here, move, ways=(here,))
        if not report.upgrade and all(state.nodes[name].is_usable for name in wave.nodes):
            assert places(here) == places(start)


def check_redundancy(start: ClusterState, wave: Wave, cleared: ClusterState) -> None:
    """Check N+1 of the nodes that are left while those of a wave are down.

    What the absence of each of them alone does cannot be helped, nor that what left it finds no third node.
    """
    known = {fault.key for fault in faults(start) if fault.kind in ON_NODES}
    for fault in faults(cleared):
        assert fault.kind not in ON_NODES or fault.key in known or fault.key[0] in wave.nodes, fault
    allowed = homeless(start, ())
    for node in wave.nodes:
        allowed |= homeless(start, (node,))
        own = {name for name, item in start.instances.items() if item.primary_node == node}
        if len(wave.nodes) > 1 and not homeless(cleared, wave.nodes) <= allowed:
            (alone,) = find_waves(start, EvacuationRequest(nodes=node)).waves
            own &= homeless(alone.cleared, (node,))
        allowed |= own
    assert homeless(cleared, wave.nodes) <= allowed, (wave.nodes, homeless(cleared, wave.nodes) - allowed)


def homeless(state: ClusterState, down: Collection[str]) -> set[str]:
    """Return the instances that find no node if one more node is lost beside those that are `down`."""
    state = without_migration_tags(state)
    nodes = {name: replace(state.nodes[name], offline=True) for name in down}
    state = replace(state, nodes={**state.nodes, **nodes})
    layout = begin_remedy(state, load_state(state)).before.layout
    gone = {index for index, node in layout.nodes.items() if node.facts.name in down}
    left = {index: node.copy() for index, node in layout.nodes.items()}
    for index, node in left.items():
        on = (number for number in node.primaries if index not in gone)
        node.primaries = tuple(number for number in on if layout.instances[number].secondary not in gone)
    there = Layout(left, layout.instances, layout.cpus, layout.unprotected)
    return {item.instance for items in there.homeless.values() for item in items}


def moved(state: ClusterState, move: Job, ways: tuple[ClusterState, ...]) -> ClusterState:
    item = state.instances[move.instance]
    assert (item.primary_node, *item.secondary_nodes) == move.nodes_before
    assert runs(item)
    assert not item.always_failover
    template = DiskTemplate(item.disk_template)
    if template is DiskTemplate.DRBD:
        assert move.copied or set(move.nodes_after) == set(move.nodes_before)
    else:
        assert template.externally_mirrored
        assert not move.copied
    source, target = (state.nodes[name] for name in (move.nodes_before[0], move.nodes_after[0]))
    assert source.group == target.group or template is DiskTemplate.DRBD
    for way in ways:
        facts = LocationFacts(way, {})
        assert facts.migration[source.name] <= facts.receivable[target.name]
    return elsewhere(state, {move.instance: move.nodes_after})


def tagged(state: ClusterState, names: Collection[str], report: WavesReport) -> ClusterState:
    assert report.upgrade
    new = {report.upgrade.new}
    nodes = {
        name: replace(state.nodes[name], tags=state.nodes[name].tags - {report.upgrade.old} | new) for name in names
    }
    return replace(state, nodes={**state.nodes, **nodes})


def places(state: ClusterState) -> dict[str, tuple[str, ...]]:
    return {name: (item.primary_node, *item.secondary_nodes) for name, item in state.instances.items()}
