"""In which waves nodes are rebooted, or upgraded, so that nothing stops.

Each wave takes nodes one after the other as long as what runs on all of them leaves live (`gpolicy.evacuate.clearing`),
in the order of hroller's groups. Then the next wave begins, from where the cluster is after it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final

from gpolicy.allocator.cluster_data import NO_NODE, Instance
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind
from gpolicy.allocator.merge import ALLOW_MIGRATION_PREFIX, MIGRATION_PREFIX, Cluster, tagged_values, tags_of
from gpolicy.allocator.placement import Nodes
from gpolicy.analysis.allocator_input import require
from gpolicy.analysis.basis import origin_of
from gpolicy.analysis.health import LocationFacts
from gpolicy.analysis.loaded_state import basis_notes, load_state
from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.errors import InputError
from gpolicy.evacuate.clearing import Cleared, Clearing, Refused
from gpolicy.evacuate.evacuating import commands_of, named_nodes
from gpolicy.evacuate.evacuation import EvacuationRequest, HaltedInstance, Job, Upgrade, Wave, WavesReport
from gpolicy.htools.hbal_commands import job_sets
from gpolicy.htools.hroller import colour_nodes, fewest_colours, find_conflicts, split_groups
from gpolicy.htools.program_options import Options
from gpolicy.printable import some
from gpolicy.progress import Stop, Tell, silent
from gpolicy.remedy.moving import copied_by
from gpolicy.remedy.remedy import begin_remedy
from gpolicy.remedy.saved_remedy import CommandWords
from gpolicy.what_if.load import elsewhere

_OF_MIGRATION: Final = (MIGRATION_PREFIX, ALLOW_MIGRATION_PREFIX)
_ENDED: Final = "the search ended early"
_MOST_IN_VAIN: Final = 8  # nodes in a row that do not go with a wave, where each takes long
_MASTER_LAST: Final = "it is the master: gnt-cluster master-failover first"


def find_waves(
    state: ClusterState, request: EvacuationRequest, tell: Tell = silent, stop: Stop | None = None
) -> WavesReport:
    """Return in which order the nodes of `request` (none named: all that are online) go so that nothing stops.

    After a `stop` the nodes that are left go one by one. Raise RequestError for an unknown node or group, GpolicyError
    if figures of its nodes are missing.
    """
    stop = stop or Stop()
    loaded = load_state(state, resource_model=request.resource_model)
    chosen, notes = list(state.nodes), list(loaded.notes)
    named = set[str]()
    if request.nodes is not None or request.group is not None:
        chosen = named_nodes(state, request)
        named = {state.nodes[name].group for name in chosen}
    require(state, loaded.settled.unknown, named)
    if offline := [name for name in chosen if state.nodes[name].offline]:
        notes.append(f"{some(offline)} {'is' if len(offline) == 1 else 'are'} offline: left out")
    indices = {node.facts.name: index for index, node in loaded.whole.cluster.nodes.items()}
    chosen = [name for name in chosen if name in indices and name not in offline]
    upgrade, hint = _find_upgrade(state, chosen)
    if upgrade is not None:
        others = [name for name in chosen if not _is_old(state, name, upgrade)]
        notes += [f"{some(others)}: not tagged {upgrade.old}, left out"] if others else []
        chosen = [name for name in chosen if name not in others]
    groups, fails = _hroller_groups(loaded.whole.cluster, [indices[name] for name in chosen])
    order = dict.fromkeys(chain(*sorted(groups, key=len, reverse=True), (indices[name] for name in chosen)))
    waves = _find_waves(state, request, list(order), upgrade, tell, stop)
    softly, exhaustive = None, not stop.is_over()
    if any(wave.halted for wave in waves) and not request.ignore_soft_errors:
        # a second search, as long as the first: whether --ignore-soft-errors would stop fewer
        forced = _find_waves(state, replace(request, ignore_soft_errors=True), list(order), upgrade, tell, stop)
        softly = sum(len(wave.halted) for wave in forced)
    return WavesReport(
        **origin_of(state),
        basis=loaded.basis(),
        asked=request,
        waves=tuple(waves),
        upgrade=upgrade,
        hint=hint,
        master=next((name for name in chosen if state.nodes[name].master), ""),
        hroller=len(groups) or None,
        hroller_fails=fails,
        halted_softly=softly,
        exhaustive=exhaustive,
        notes=(*basis_notes(loaded.settled, loaded.whole.cluster, resource_model=request.resource_model), *notes),
        unknown=loaded.settled.unknown,
    )


def _hroller_groups(cluster: Cluster, chosen: Iterable[int]) -> tuple[list[list[int]], str]:
    """Return hroller's groups of those of the nodes that it takes; why it has none."""
    nodes = {index: cluster.nodes[index] for index in sorted(chosen) if not cluster.nodes[index].facts.offline}
    if not nodes:
        return [], "it takes no drained nodes"
    colours = fewest_colours(colour_nodes(find_conflicts(Options(), cluster, cluster.nodes, nodes)))
    try:
        groups = split_groups(
            cluster.nodes, cluster.instances, colours, ignore_non_redundant=False, full_evacuation=False
        )
    except InputError as error:
        return [], error.message
    found = [[index for index in group.nodes if index in nodes] for group in groups]
    return [group for group in found if group], ""


def _find_upgrade(state: ClusterState, chosen: Sequence[str]) -> tuple[Upgrade | None, str]:
    """Return the upgrade whose old nodes are most of the `chosen` ones; None if there are none, perhaps with a hint.

    Source: Ganeti design document "Improving location awareness of Ganeti", Migration tags.
    """
    cluster_tags = tuple(state.cluster.tags)
    pairs = {tuple(value.split("::")) for value in tagged_values(cluster_tags, ALLOW_MIGRATION_PREFIX)}
    one_way = [pair for pair in pairs if len(pair) == 2 and pair[::-1] not in pairs]
    known = (pair for pair in one_way if len(tags_of(MIGRATION_PREFIX, cluster_tags, pair)) == 2)
    ways = [Upgrade(*pair) for pair in sorted(known)]
    numbers = {way: sum(_is_old(state, name, way) for name in chosen) for way in ways}
    if any(numbers.values()):
        return max(ways, key=lambda way: numbers[way]), ""
    untagged = [name for name in chosen if not _migration_tags(state, name)]
    for way in ways if untagged else ():
        if any(way.new in _migration_tags(state, name) for name in state.nodes):
            tag = f"gnt-node add-tags NODE {way.old}"
            return None, f"if this is an upgrade to {way.new}: tag the old nodes first ({tag})"
    return None, ""


def _migration_tags(state: ClusterState, name: str) -> tuple[str, ...]:
    return tags_of(MIGRATION_PREFIX, tuple(state.cluster.tags), tuple(state.nodes[name].tags))


def _is_old(state: ClusterState, name: str, upgrade: Upgrade) -> bool:
    tags = _migration_tags(state, name)
    return upgrade.old in tags and upgrade.new not in tags


def _find_waves(
    state: ClusterState,
    request: EvacuationRequest,
    left: Sequence[int],
    upgrade: Upgrade | None,
    tell: Tell,
    stop: Stop,
) -> list[Wave]:
    """Return the waves of the nodes that are `left`, the master's at the end."""
    waves: list[Wave] = []
    why: dict[int, str] = {}
    old = frozenset(left if upgrade else ())
    clearing = _begin_clearing(state, request, old, stop)
    masters = [index for index in left if state.nodes[clearing.name(index)].master]
    left = [index for index in left if index not in masters]
    while left or masters:
        if not left:
            left, masters, why = masters, [], dict.fromkeys(masters, _MASTER_LAST)
        first = _first(clearing, left)
        here, refused = _fill_wave(clearing, first, left)
        wave = _wave(state, clearing, here, why.get(first, ""), upgrade)
        waves.append(wave)
        left, why = [index for index in left if index not in here.closed], refused
        old -= here.closed
        if upgrade or len(wave.back) < len(wave.out):
            # tags have changed, or not all came back; else the cluster is as before, and `clearing` remembers much
            state = wave.returned
            clearing = _begin_clearing(state, request, old, stop)
        tell(f"{len(waves)} waves, {len(left)} nodes left")
    return waves


def _first(clearing: Clearing, left: Sequence[int]) -> int:
    """Return the node that a wave begins with: in an upgrade the cheapest, as the others may cost less later."""
    if not clearing.old or clearing.stop.is_over():
        return left[0]
    for index in left:
        if clearing.cost(index) == (0, 0):
            return index
    return min(left, key=clearing.cost)


def _fill_wave(clearing: Clearing, first: int, left: Iterable[int]) -> tuple[Cleared, dict[int, str]]:
    """Return as many of the nodes as go together with the first one, and why the others do not.

    N+1 is looked at in the end. If it is worse then, it is looked at again after each node; where instances may go to
    any node, which takes long, after so many nodes at once as it allowed before, and no more after some were in vain.
    """
    left = [index for index in left if index != first]
    here, refused = _join(clearing, clearing.clear_alone(first), left, careful=False)
    if len(here.closed) == 1 or clearing.judge_redundancy(here) is None:
        return here, refused
    here, refused = clearing.clear_alone(first), dict[int, str]()
    most, in_vain = 1, 0  # how many are tried at once; how many in a row were refused
    while left:
        part = left[:most]
        there, these = _join(clearing, here, part, careful=len(part) == 1)
        if len(part) > 1 and clearing.judge_redundancy(there) is not None:
            most = len(part) // 2  # fewer of the same may be allowed
            continue
        here, left, refused = there, left[len(part) :], {**refused, **these}
        if clearing.start.unmirrored:
            most, in_vain = (1, in_vain + 1) if these else (2 * most, 0)
        if in_vain == _MOST_IN_VAIN:
            why = f"N+1, as for {clearing.name(part[-1])}"
            return here, {**refused, **dict.fromkeys(left, why)}
    return here, refused


def _join(clearing: Clearing, here: Cleared, left: Iterable[int], *, careful: bool) -> tuple[Cleared, dict[int, str]]:
    """Return those of the nodes cleared as well that can be, and why the others cannot."""
    refused: dict[int, str] = {}
    for index in left:
        found = Refused(_ENDED) if clearing.stop.is_over() else clearing.join(here, index, careful=careful)
        if isinstance(found, Refused):
            refused[index] = found.reason
        else:
            here = found
    return here, refused


def _begin_clearing(state: ClusterState, request: EvacuationRequest, old: Collection[int], stop: Stop) -> Clearing:
    """Return the cluster in `state` with all nodes up, whose `old` nodes an upgrade makes new."""
    tags = frozenset(tag for tag in state.cluster.tags if not tag.startswith(_OF_MIGRATION))
    nodes = {name: replace(node, drained=False) for name, node in state.nodes.items()}
    bare = replace(state, cluster=replace(state.cluster, tags=tags), nodes=nodes)
    beginning = begin_remedy(bare, load_state(bare, resource_model=request.resource_model))
    layout = beginning.before.layout
    places = [(index, state.nodes[node.facts.name]) for index, node in layout.nodes.items()]
    observed = [(item, state.instances[item.name]) for item in layout.instances.values() if not item.forthcoming]
    up = {
        item.index: instance.admin_state == "up" if instance.running is None else instance.running
        for item, instance in observed
    }
    return Clearing(
        start=layout,
        movers=beginning.movers,
        tags=LocationFacts(state, {}),
        running=frozenset(number for number, runs in up.items() if runs),
        pinned={item.index: why for item, instance in observed if (why := _why_pinned(item, instance))},
        shut={index: node.why_unusable for index, node in places if not node.is_usable},
        old=frozenset(old),
        force=request.ignore_soft_errors,
        stop=stop,
    )


def _why_pinned(item: Instance, instance: LiveInstance) -> str:
    """Return why nothing moves an instance live, if it runs: `item` is the allocator's view of it; else empty."""
    if instance.disk_template != item.template.value:
        return "its nodes are in groups of which one is left out"
    if item.secondary == NO_NODE and not item.template.externally_mirrored:
        return f"nothing moves {instance.disk_template} disks live"
    if not item.status.running:
        return f"it runs, but is marked as {instance.admin_state}: its memory is not counted"
    return "always_failover: Ganeti stops it, and starts it on the other node" if instance.always_failover else ""


def _wave(state: ClusterState, clearing: Clearing, here: Cleared, waits: str, upgrade: Upgrade | None) -> Wave:
    start = clearing.start
    names = [clearing.name(index) for index in sorted(here.closed)]
    out = _jobs(state, here.moved.values(), start.nodes)
    cleared, commands = state, list[CommandWords]()
    if upgrade is not None:
        nodes = dict(state.nodes)
        for name in names:
            nodes[name] = replace(nodes[name], tags=nodes[name].tags - {upgrade.old} | {upgrade.new})
            commands += [("gnt-node", "remove-tags", name, upgrade.old), ("gnt-node", "add-tags", name, upgrade.new)]
        cleared = replace(state, nodes=nodes)
    cleared = elsewhere(cleared, {move.instance: move.nodes_after for move in out})
    tags = clearing.tags if upgrade is None else LocationFacts(cleared, {})
    back = _jobs(cleared, clearing.moves_back(here, tags), start.nodes)
    halted = [
        HaltedInstance(
            instance=start.instances[number].name,
            template=start.instances[number].template.value,
            node=clearing.name(start.instances[number].primary),
            reason=reason,
        )
        for number, reason in here.halted.items()
    ]
    return Wave(
        nodes=tuple(names),
        out=out,
        back=back,
        first=tuple(("gnt-instance", "shutdown", item.instance) for item in halted),
        last=(*commands, *(("gnt-instance", "startup", item.instance) for item in halted)),
        halted=tuple(halted),
        waits=waits,
        before=state,
        cleared=cleared,
        returned=elsewhere(cleared, {move.instance: move.nodes_after for move in back}),
    )


def _jobs(state: ClusterState, moves: Iterable[InstanceMove], nodes: Nodes) -> tuple[Job, ...]:
    found = []
    for move in moves:
        parts, item = [move], move.instance
        if move.kind is MoveKind.REPLACE_AND_FAILOVER:
            parts = [InstanceMove(MoveKind.REPLACE_SECONDARY, item, move.target), InstanceMove(MoveKind.FAILOVER, item)]
        does, commands = zip(*commands_of(parts, nodes), strict=True)
        observed = state.instances[item.name]
        job = Job(
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
