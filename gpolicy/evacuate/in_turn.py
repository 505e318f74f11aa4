"""In which waves nodes are rebooted, or upgraded, so that nothing stops.

Each wave takes nodes one after the other as long as what runs on all of them leaves live (`gpolicy.evacuate.clearing`).
The first order is that of hroller's groups; then whole waves change places, which never makes more of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.allocator.cluster_data import NO_NODE, NodeData
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind
from gpolicy.allocator.merge import (
    ALLOW_MIGRATION_PREFIX,
    MIGRATION_PREFIX,
    Cluster,
    receivable_tags,
    tagged_values,
    tags_of,
)
from gpolicy.allocator.placement import Nodes
from gpolicy.analysis.allocator_input import require
from gpolicy.analysis.basis import node_uses, origin_of
from gpolicy.analysis.loaded_state import basis_notes, load_state
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import InputError, RequestError
from gpolicy.evacuate.clearing import Cleared, Clearing, Refused
from gpolicy.evacuate.evacuating import commands_of
from gpolicy.evacuate.evacuation import EvacuationRequest
from gpolicy.evacuate.waves import HaltedInstance, Upgrade, Wave, WaveMove, WavesReport
from gpolicy.htools.hbal_commands import job_sets
from gpolicy.htools.hroller import colour_nodes, fewest_colours, find_conflicts, split_groups
from gpolicy.htools.program_options import Options
from gpolicy.printable import some
from gpolicy.progress import Stop, Tell, silent
from gpolicy.remedy.moving import copied_by
from gpolicy.remedy.remedy import Beginning, begin_remedy
from gpolicy.what_if.load import elsewhere
from gpolicy.what_if.supposing import matching, one_of

_ROUNDS: Final = 6
"""How often whole waves change places."""
_MOST_WORK: Final = 400
"""How many nodes are tried in other orders, all in all."""
_MOST_TOLD: Final = 3


def find_waves(
    state: ClusterState, request: EvacuationRequest, tell: Tell = silent, stop: Stop | None = None
) -> WavesReport:
    """Return in which order the nodes of `request` (none named: all that are online) go so that nothing stops.

    After a `stop` the nodes that are left go one by one. Raise RequestError for an unknown node or group, GpolicyError
    if figures of its nodes are missing.
    """
    loaded = load_state(state, declared=request.declared)
    chosen, left_out = _chosen(state, request)
    named = {state.nodes[name].group for name in chosen} if request.nodes or request.group else set()
    require(state, loaded.settled.unknown, named)
    beginning = begin_remedy(state, loaded)
    cluster = loaded.whole.cluster
    indices = {node.facts.name: index for index, node in cluster.nodes.items()}
    chosen = [name for name in chosen if name in indices]
    upgrade = _find_upgrade(state, chosen)
    if upgrade is not None:
        left_out += [f"{some(done)}: not tagged {upgrade.old}" for done in [_others(state, chosen, upgrade)] if done]
        chosen = [name for name in chosen if _is_old(state, name, upgrade)]
    nodes = [indices[name] for name in chosen]
    clearing = _clearing(state, beginning, request, nodes, upgrade)
    master = next((name for name in chosen if state.nodes[name].master), "")
    search = _Search([index for index in nodes if index != indices.get(master)], stop or Stop(), tell)
    groups, fails = _hroller_groups(cluster, nodes)
    found = search.find(clearing, groups)
    if master:
        here = found[-1].following if found else clearing
        found.append(
            _Found(here, here.clear_first(indices[master]), "it is the master: gnt-cluster master-failover first")
        )
    waves, at = [], state
    for item in found:
        waves.append(_wave(at, item, upgrade))
        at = waves[-1].returned
    extra = len(waves) > len(groups) > 0
    softly = None
    if any(item.cleared.halted for item in found) and not request.ignore_soft_errors:
        forced = replace(clearing, force=True, _alone={}, _first={})
        softly = sum(len(forced.clear_alone(index).halted) for index in nodes)
    return WavesReport(
        **origin_of(state),
        basis=loaded.basis(),
        asked=request,
        waves=tuple(waves),
        upgrade=upgrade,
        master=master,
        hroller=len(groups) or None,
        hroller_fails=fails,
        apart=tuple(search.reasons_apart(clearing, groups)) if extra else (),
        halted_softly=softly,
        exhaustive=not search.stopped,
        notes=(*basis_notes(loaded.settled, cluster, declared=request.declared), *loaded.notes, *left_out),
        what_if=state.supposed,
        unknown=loaded.settled.unknown,
        nodes_before=node_uses(state, cluster.nodes.values()),
        nodes_after=node_uses(state, cluster.nodes.values()),
    )


def _chosen(state: ClusterState, request: EvacuationRequest) -> tuple[list[str], list[str]]:
    """Return the nodes that go, and what is to be said of others."""
    if request.group is not None:
        names = [node.name for node in state.nodes_of(one_of("group", request.group, state.groups, "group"))]
    elif request.nodes is not None:
        if request.nodes in state.groups and request.nodes not in state.nodes:
            raise RequestError(f"{request.nodes!r} is a group, not a node", hint=f"write `--group {request.nodes}`")
        names = matching("", request.nodes, state.nodes, "node")
    else:
        names = list(state.nodes)
    offline = [name for name in names if state.nodes[name].offline]
    said = [f"{some(offline)} {'is' if len(offline) == 1 else 'are'} offline: left out"] if offline else []
    return [name for name in names if name not in offline], said


# --- upgrades -------------------------------------------------------------------------------------------------------


def _find_upgrade(state: ClusterState, chosen: Iterable[str]) -> Upgrade | None:
    """Return the upgrade whose old nodes are most of the `chosen` ones; None if all directions lead back.

    Source: Ganeti design document "Improving location awareness of Ganeti", Migration tags.
    """
    cluster_tags = tuple(state.cluster.tags)
    pairs = {tuple(value.split("::")) for value in tagged_values(cluster_tags, ALLOW_MIGRATION_PREFIX)}
    tags = Counter(tag for name in chosen for tag in _migration_tags(state, name))
    found = [pair for pair in pairs if len(pair) == 2 and pair[::-1] not in pairs and tags[pair[0]]]
    known = {tag for pair in found for tag in tags_of(MIGRATION_PREFIX, cluster_tags, pair)}
    ways = [Upgrade(*pair) for pair in found if known.issuperset(pair)]
    return min(ways, key=lambda way: (-tags[way.old], way.old, way.new), default=None)


def _migration_tags(state: ClusterState, name: str) -> tuple[str, ...]:
    return tags_of(MIGRATION_PREFIX, tuple(state.cluster.tags), tuple(state.nodes[name].tags))


def _is_old(state: ClusterState, name: str, upgrade: Upgrade) -> bool:
    tags = _migration_tags(state, name)
    return upgrade.old in tags and upgrade.new not in tags


def _others(state: ClusterState, chosen: Iterable[str], upgrade: Upgrade) -> list[str]:
    return [name for name in chosen if not _is_old(state, name, upgrade)]


def _upgraded(state: ClusterState, names: Iterable[str], upgrade: Upgrade) -> ClusterState:
    nodes = {
        name: replace(state.nodes[name], tags=state.nodes[name].tags - {upgrade.old} | {upgrade.new}) for name in names
    }
    return replace(state, nodes={**state.nodes, **nodes})


def _facts_after(facts: NodeData, upgrade: Upgrade, cluster_tags: tuple[str, ...]) -> NodeData:
    own = facts.migration_tags - {upgrade.old} | {upgrade.new}
    return replace(facts, migration_tags=own, receivable_tags=receivable_tags(cluster_tags, own))


# --- what is to be cleared ------------------------------------------------------------------------------------------


def _clearing(
    state: ClusterState,
    beginning: Beginning,
    request: EvacuationRequest,
    chosen: Iterable[int],
    upgrade: Upgrade | None,
) -> Clearing:
    layout, cluster = beginning.before.layout, beginning.loaded.whole.cluster
    facts = {index: node.facts for index, node in layout.nodes.items()}
    after = {**facts}
    if upgrade is not None:
        after |= {index: _facts_after(facts[index], upgrade, cluster.tags) for index in chosen}
    nodes, closed_to_all = {}, {}
    for index, node in layout.nodes.items():
        observed = state.nodes[node.facts.name]
        silent = not observed.is_measured  # one that is drained answers
        judged = replace(node.facts, migration_tags=frozenset(), receivable_tags=frozenset(), offline=silent)
        nodes[index] = node if judged == node.facts else node.with_facts(judged)
        if not observed.is_usable:
            closed_to_all[index] = (
                "offline" if observed.offline else "drained" if observed.drained else "not vm_capable"
            )
    running, pinned = set(), {}
    for index, item in layout.instances.items():
        instance = state.instances[item.name]
        if (instance.admin_state == "up" if instance.running is None else instance.running) and not item.forthcoming:
            running.add(index)
        if instance.disk_template != item.template.value:
            pinned[index] = "its nodes are in groups of which one is left out"
        elif item.secondary == NO_NODE and not item.template.externally_mirrored:
            pinned[index] = f"nothing moves {instance.disk_template} disks live"
        elif not item.status.running:
            pinned[index] = f"it runs, but is marked as {instance.admin_state}: its memory is not counted"
        elif instance.always_failover:
            pinned[index] = "always_failover: Ganeti stops it, and starts it on the other node"
    return Clearing(
        start=layout.reached(nodes, layout.instances),
        movers=beginning.movers,
        facts=facts,
        after=after,
        running=frozenset(running),
        pinned=pinned,
        closed_to_all=closed_to_all,
        force=request.ignore_soft_errors,
        copies=upgrade is not None,
    )


def _hroller_groups(cluster: Cluster, chosen: Iterable[int]) -> tuple[list[list[int]], str]:
    """Return hroller's groups of those of the nodes that it takes; why it has none."""
    nodes = {index: cluster.nodes[index] for index in sorted(chosen) if not cluster.nodes[index].facts.offline}
    if not nodes:
        return [], ""
    colours = fewest_colours(colour_nodes(find_conflicts(Options(), cluster, cluster.nodes, nodes)))
    try:
        groups = split_groups(
            cluster.nodes, cluster.instances, colours, ignore_non_redundant=False, full_evacuation=False
        )
    except InputError as error:
        return [], error.message
    found = [[index for index in group.nodes if index in nodes] for group in groups]
    return [group for group in found if group], ""


# --- the search -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Found:
    """Nodes that go together, from where the cluster was then; why one goes alone."""

    clearing: Clearing
    cleared: Cleared
    alone: str = ""

    @property
    def following(self) -> Clearing:
        """What is to be cleared after it."""
        return self.clearing.fill_again(self.cleared)[1]


@dataclass(slots=True)
class _Search:
    """The search for the fewest waves of `nodes`."""

    nodes: Sequence[int]
    stop: Stop
    tell: Tell
    stopped: bool = False

    def find(self, clearing: Clearing, groups: Sequence[Sequence[int]]) -> list[_Found]:
        """Return the waves, in the best of some orders, the first of which is that of `groups`."""
        order = [index for group in sorted(groups, key=len, reverse=True) for index in group]
        best = self._fill(clearing, [index for index in dict.fromkeys((*order, *self.nodes)) if index in {*self.nodes}])
        for number in range(min(_ROUNDS, _MOST_WORK // max(1, len(self.nodes)))):
            waves = [found.cleared.closed for found in best]
            waves = sorted(waves, key=len, reverse=number % 2 == 1) if number % 3 else waves[::-1]
            if len(waves) < 3 or self.stopped:
                break
            found = self._fill(clearing, [index for wave in waves for index in sorted(wave)])
            best = min(best, found, key=_halted_and_waves)
        return best

    def _fill(self, clearing: Clearing, order: Sequence[int]) -> list[_Found]:
        found: list[_Found] = []
        left, why = list(order), dict[int, str]()
        while left:
            here, refused = self._wave(clearing, left)
            reasons = Counter(refused.values()).most_common(1)
            left = [index for index in left if index not in here.closed]
            alone = reasons[0][0] if reasons else why.get(min(here.closed), "")
            found.append(_Found(clearing, here, alone if len(here.closed) == 1 else ""))
            why |= refused
            clearing = found[-1].following
            self.tell(f"{len(found)} waves, {len(left)} nodes left")
        return found

    def _wave(self, clearing: Clearing, left: Sequence[int]) -> tuple[Cleared, dict[int, str]]:
        """Return as many of the nodes as go together with the first one, and why the others do not."""
        first = left[0]
        if clearing.copies:  # what is in the way of one node may go with another one
            easy = (index for index in left if clearing.clear_alone(index).is_best)
            first = next(easy, first)
        for carefully in (False, True):
            here, refused = clearing.clear_first(first), dict[int, str]()
            for index in left:
                self.stopped = self.stopped or self.stop.is_over()
                if index == first or self.stopped:
                    continue
                found = clearing.join(here, index)
                if carefully and isinstance(found, Cleared) and (reason := clearing.newly_homeless(found)):
                    found = Refused(reason)
                if isinstance(found, Refused):
                    refused[index] = found.reason
                else:
                    here = found
            if carefully or len(here.closed) == 1 or not clearing.newly_homeless(here):
                break
        return here, refused

    def reasons_apart(self, clearing: Clearing, groups: Sequence[Sequence[int]]) -> list[str]:
        """Return why nodes of hroller's groups do not go together."""
        found = []
        for group in groups:
            own = [index for index in group if index in self.nodes]
            here, refused = self._wave(clearing, own) if len(own) > 1 else (clearing.nothing, {})
            for index, reason in list(refused.items())[:1]:
                others = some([clearing.facts[other].name for other in sorted(here.closed)], 3)
                found.append(f"{clearing.facts[index].name} does not go with {others}: {reason}")
        return found[:_MOST_TOLD]


def _halted_and_waves(found: Sequence[_Found]) -> tuple[int, int]:
    return sum(len(item.cleared.halted) for item in found), len(found)


# --- as values ------------------------------------------------------------------------------------------------------


def _wave(state: ClusterState, found: _Found, upgrade: Upgrade | None) -> Wave:
    clearing, here = found.clearing, found.cleared
    names = [clearing.facts[index].name for index in sorted(here.closed)]
    out = _jobs(state, clearing.moves_out(here), clearing.start.nodes)
    cleared = _moved(state if upgrade is None else _upgraded(state, names, upgrade), out)
    back = _jobs(cleared, clearing.fill_again(here)[0], clearing.start.nodes)
    halted = [
        HaltedInstance(
            instance=clearing.start.instances[number].name,
            template=clearing.start.instances[number].template.value,
            node=clearing.facts[clearing.start.instances[number].primary].name,
            reason=refused.reason,
            soft=refused.soft,
        )
        for number, refused in here.halted.items()
    ]
    return Wave(
        nodes=tuple(names),
        out=out,
        back=back,
        halted=tuple(halted),
        alone=found.alone,
        before=state,
        cleared=cleared,
        returned=_moved(cleared, back),
    )


def _moved(state: ClusterState, moves: Iterable[WaveMove]) -> ClusterState:
    placed = {move.instance: move.nodes_after for move in moves}
    return elsewhere(state, placed) if placed else state


def _jobs(state: ClusterState, moves: Sequence[InstanceMove], nodes: Nodes) -> tuple[WaveMove, ...]:
    found = []
    for move in moves:
        parts, item = [move], move.instance
        if move.kind is MoveKind.REPLACE_AND_FAILOVER:
            parts = [InstanceMove(MoveKind.REPLACE_SECONDARY, item, move.target), InstanceMove(MoveKind.FAILOVER, item)]
        does, commands = zip(*commands_of(parts, nodes), strict=True)
        observed = state.instances[item.name]
        job = WaveMove(
            instance=item.name,
            template=item.template.value,
            nodes_before=(observed.primary_node, *observed.secondary_nodes),
            nodes_after=(),
            commands=commands,
            does=does,
            copied=copied_by(move),
        )
        found.append(replace(job, nodes_after=job.places[-1]))
    sets = job_sets(found, lambda job: {*job.nodes_before, *job.nodes_after})
    numbered = [replace(job, job_set=number) for number, jobs in enumerate(sets, 1) for job in jobs]
    return tuple(job.with_way_back(state.nodes) for job in numbered)
