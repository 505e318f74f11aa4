"""Where everything goes when nodes or a group are emptied: hail's own evacuation, asked as Ganeti asks it.

Instances that stay in their group leave in up to three requests, each on the state after the one before: both nodes of
mirrored instances that have no other (mode all), then what runs on the nodes (primary-only), then the copies there
(secondary-only). So most mirrored instances are copied once, where mode all alone copies each of them twice. To other
groups they move in one request (change-group).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, Group, InstanceStatus
from gpolicy.allocator.evacuation import (
    Departure,
    EvacuationError,
    EvacuationMode,
    EvacuationResult,
    Observer,
    change_group,
    evacuate_nodes,
)
from gpolicy.allocator.ghc_numbers import sorted_by_score
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.placement import Nodes
from gpolicy.allocator.request_options import RequestOptions
from gpolicy.analysis.allocator_input import Unknown, aside, cluster_data, require
from gpolicy.analysis.basis import node_uses, origin_of, settle
from gpolicy.analysis.binding import of_move
from gpolicy.analysis.hail import decisive, hails_cluster, not_tried, without_parameters
from gpolicy.analysis.loaded_state import basis_notes, load_state
from gpolicy.analysis.place_report import Candidate
from gpolicy.analysis.wanted_instance import unmade
from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.errors import ArgumentError, RequestError, argument
from gpolicy.evacuate import evacuation
from gpolicy.ganeti.commands import Command
from gpolicy.ganeti.expressible import check_name
from gpolicy.ganeti.htools_reading import HailParameters
from gpolicy.htools.hbal_commands import job_sets
from gpolicy.printable import count, some
from gpolicy.progress import Stop, Tell, silent
from gpolicy.remedy.moving import copied_by
from gpolicy.remedy.saved_remedy import AS_HAIL, CommandWords, command_of
from gpolicy.what_if.load import elsewhere, offline
from gpolicy.what_if.supposing import matching, one_of

_MOST_WORK: Final = 3_000_000  # about microseconds; instances whose candidates would take longer have none listed
_EXPLAINED: Final = 0.5  # of the time: what moves is worth more than why
_MIRRORED: Final = DiskTemplate.DRBD.value


def find_evacuation(
    state: ClusterState, request: evacuation.EvacuationRequest, tell: Tell = silent, stop: Stop | None = None
) -> evacuation.EvacuationReport:
    """Return how the nodes or the group of `request` are emptied. After a `stop`, or with Ctrl-C, the rest stays.

    The report says what the cluster's parameters for hail change. A node that is to be emptied and does not answer
    counts as offline. Raise RequestError for a request that makes no sense on this cluster, and GpolicyError if a group
    that it is about is not known.
    """
    stop = stop or Stop()

    def other(cluster: ClusterState = state, **words: Any) -> evacuation.OtherRequest:
        return _ask_hail(cluster, replace(request, **words), tell, stop).outcome()

    report = _ask_hail(state, request, tell, stop).report()
    if report.to_other_nodes:
        whole = request.mode is EvacuationMode.ALL and report.requests
        report = replace(
            report,
            for_a_reboot=other(mode=EvacuationMode.PRIMARY) if whole else None,
            in_turn=tuple(other(nodes=name) for name in report.leaving if len(report.leaving) > 1),
            without_soft_errors=other(ignore_soft_errors=True) if report.kept_by_soft_errors else None,
        )
    plain = without_parameters(state)
    if plain is None:
        return report
    unlike = _ends(report) ^ _ends(other(plain)) if report.exhaustive else ()
    elsewhere = {} if stop.ended else dict(unlike)
    otherwise = f"{count(len(elsewhere), 'instance')} would end up elsewhere" if elsewhere else ""
    return replace(report, parameters=decisive(state, otherwise))


def _ends(found: evacuation.EvacuationReport | evacuation.OtherRequest) -> set[tuple[str, tuple[str, ...]]]:
    return {(item.instance, item.nodes_after) for item in found.moved} | {(i.instance, i.nodes) for i in found.stays}


def _ask_hail(state: ClusterState, request: evacuation.EvacuationRequest, tell: Tell, stop: Stop) -> _Evacuation:
    """Return the evacuation after all requests to hail."""
    group = None if request.group is None else one_of("group", request.group, state.groups, "group")
    leaving = named_nodes(state, request)
    targets = [name for word in request.targets for name in matching("to", word, state.groups, "group")]
    state, unknown = _known(state, frozenset(leaving), targets, resource_model=request.resource_model)
    to = tuple(dict.fromkeys(targets))
    made = _Evacuation(state, state, request, frozenset(leaving), group, to, tell, stop, unknown)
    for mode in made.modes():
        made.ask(mode)
    return made


def named_nodes(state: ClusterState, request: evacuation.EvacuationRequest) -> list[str]:
    """Return the nodes that a request names, or those of its group. Raise RequestError if there is no such one."""
    if request.group is not None:
        group = one_of("group", request.group, state.groups, "group")
        return [node.name for node in state.nodes_of(group)]
    if request.nodes in state.groups and request.nodes not in state.nodes:
        hint = f"write `{argument('group')} {request.nodes}`"
        raise RequestError(f"{request.nodes!r} is a group, not a node", hint=hint)
    return matching("", request.nodes or "", state.nodes, "node")


def _known(
    state: ClusterState, leaving: frozenset[str], targets: Sequence[str], *, resource_model: bool
) -> tuple[ClusterState, dict[str, Unknown]]:
    """Return what is known of `state` with those of the nodes `leaving` offline that lack figures, and what is not."""
    found = [
        item
        for item in settle(state, resource_model=resource_model).unknown.values()
        if leaving.intersection(item.silent)
    ]
    names = [name for item in found for name in item.silent if name in leaving]
    if names:
        mark = f"mark it so first (gnt-node modify --offline yes {names[0]}), for hail needs no figures of it then"
        why = f"{'; '.join(item.reason for item in found)}; {mark}"
        state = replace(offline(state, names), supposed=(*state.supposed, f"{some(names)} offline: {why}"))
    settled = settle(state, resource_model=resource_model)
    touched = [item for item in state.instances.values() if leaving & {item.primary_node, *item.secondary_nodes}]
    nodes = leaving.union(*({item.primary_node, *item.secondary_nodes} for item in touched))
    require(state, settled.unknown, {*targets, *(state.nodes[name].group for name in nodes)})
    return settled.state, dict(settled.unknown)


@dataclass(slots=True)
class _Evacuation:
    """The requests so far: `observed` is the cluster before them, `state` after them."""

    observed: ClusterState
    state: ClusterState
    asked: evacuation.EvacuationRequest
    leaving: frozenset[str]
    group: str | None
    targets: tuple[str, ...]
    tell: Tell
    stop: Stop
    unknown: dict[str, Unknown]
    requests: list[evacuation.RequestToHail] = field(default_factory=list)
    moved: list[evacuation.MovedInstance] = field(default_factory=list)
    stays: dict[str, evacuation.StayingInstance] = field(default_factory=dict)
    objections: dict[str, None] = field(default_factory=dict)
    work: int = 0

    @property
    def to_groups(self) -> bool:
        return self.group is not None or bool(self.targets)

    def modes(self) -> tuple[EvacuationMode | None, ...]:
        """Return the modes of the requests, None for change-group. Raise RequestError if there is no group to go to."""
        if self.to_groups:
            self._check_targets()
            return (None,)
        if self.asked.mode is EvacuationMode.SECONDARY:
            return (EvacuationMode.SECONDARY,)
        first = (EvacuationMode.ALL, EvacuationMode.PRIMARY)
        return first if self.asked.mode is EvacuationMode.PRIMARY else (*first, EvacuationMode.SECONDARY)

    def _check_targets(self) -> None:
        if self.group in self.targets:
            raise ArgumentError(f"to: group {self.group} is the one to be emptied", hint="name another group")
        wanted = self._wanted(None)
        for name in wanted:
            if (home := self._homes([name]).pop()) in self.targets:
                raise ArgumentError(f"to: {name}, which is to move, runs in group {home}", hint="name another group")
        homes = self._homes(wanted)
        filled = {node.group for node in self.state.nodes.values()} - homes
        if not filled & set(self.targets or self.state.groups):
            hint = "name nodes instead: their instances stay in their group"
            raise RequestError("no other group has nodes", hint=hint)

    def ask(self, mode: EvacuationMode | None) -> None:
        """Ask hail to move what a request of this mode moves, None for change-group; go on from the state after it."""
        names = self._wanted(mode)
        if not names:
            return
        drained = self._to_drain(mode, names)
        nodes = {name: replace(self.state.nodes[name], drained=True) for name in drained}
        state = replace(self.state, nodes={**self.state.nodes, **nodes})
        settled, cluster = hails_cluster(state, resource_model=self.asked.resource_model, asked=True)
        by_name = {item.name: index for index, item in cluster.instances.items()}
        known: dict[str, tuple[Candidate, ...] | None] = {}

        def observe(asked: Departure) -> None:
            self.tell(asked.instance.name)
            self.work += work_of(asked)
            few = self.work <= _MOST_WORK and not self.stop.is_over(_EXPLAINED)
            known[asked.instance.name] = explained(asked, cluster.groups) if few else None

        failure = settled.hail.failure
        result = self._answer(cluster, settled.hail, mode, [by_name[name] for name in names], observe)
        self.requests.append(
            evacuation.RequestToHail(
                mode=mode,
                instances=tuple(names),
                targets=self.targets if mode is None else (),
                drained=tuple(drained),
                info=f"Request failed: {failure}" if failure else f"Request successful: {result.words}",
                by_ganeti=None
                if drained or result.failed or self.stays or self.asked.resource_model
                else self._by_ganeti(mode),
            )
        )
        for instance, reason in result.failed:
            observed = self.state.instances[instance.name]
            self.stays[instance.name] = evacuation.StayingInstance(
                instance=instance.name,
                template=instance.template.value,
                request=len(self.requests),
                nodes=(observed.primary_node, *observed.secondary_nodes),
                reason=reason,
                candidates=known.get(instance.name, ()),
            )
        self._keep(result, cluster, known)

    def _answer(
        self, cluster: Cluster, hail: HailParameters, mode: EvacuationMode | None, wanted: list[int], observer: Observer
    ) -> EvacuationResult:
        if hail.failure:
            reason = f"hail refuses every request, by default_iallocator_params: {hail.failure}"
            return EvacuationResult((), tuple((cluster.instances[index], reason) for index in wanted), cluster)
        if mode is not None:
            force, stop = self.asked.ignore_soft_errors or hail.ignore_soft_errors, self.stop
            return evacuate_nodes(cluster, mode, wanted, force=force, observer=observer, stop=stop)
        targets = [group.index for name in self.targets for group in cluster.groups.values() if group.name == name]
        return change_group(
            cluster,
            wanted,
            targets,
            RequestOptions(hail.capacity_checks, hail.ignore_soft_errors, hail.restriction),
            show_groups=lambda groups: ", ".join(group.name for group in groups),
            observer=observer,
            stop=self.stop,
        )

    def _keep(self, result: EvacuationResult, cluster: Cluster, known: dict[str, tuple[Candidate, ...] | None]) -> None:
        placed: dict[str, tuple[str, ...]] = {}
        for instance, group, where, moves in result.moved:
            observed = self.state.instances[instance.name]
            after = tuple(cluster.nodes[index].facts.name for index in where)
            does, commands = zip(*commands_of(moves, cluster.nodes), strict=True)
            touched = {i for move in moves for i in (move.instance.primary, move.instance.secondary, move.target)}
            placed[instance.name] = after
            moved = evacuation.MovedInstance(
                instance=instance.name,
                template=instance.template.value,
                request=len(self.requests),
                group=cluster.groups[group].name,
                nodes_before=(observed.primary_node, *observed.secondary_nodes),
                nodes_after=after,
                does=does,
                commands=commands,
                copied=sum(map(copied_by, moves)),
                touched=frozenset(cluster.nodes[index].facts.name for index in touched - {NO_NODE}),
                candidates=known.get(instance.name),
            )
            self.moved.append(moved)
            self.objections |= dict.fromkeys(self._objections(moved))
        self.state = elsewhere(self.state, placed)

    def _objections(self, moved: evacuation.MovedInstance) -> Iterator[str]:
        """Yield why Ganeti would refuse a move that hail accepts."""
        for name in moved.nodes_after:
            node = self.state.nodes[name]
            if name == moved.nodes_after[0] != moved.nodes_before[0] and not node.is_usable:
                why = "offline" if node.offline else "drained"
                yield f"Ganeti moves no instance to {name}, which is {why}: {moved.instance}"
            if name not in moved.nodes_before:
                instance, exclusive = self.state.instances[moved.instance], self.state.has_exclusive_storage(node)
                refusal = unmade(instance, exclusive=exclusive, volume=None, spindles_count=exclusive)
                if refusal is not None:
                    yield f"{moved.instance} on {name}: {refusal.sentence}"

    def _wanted(self, mode: EvacuationMode | None) -> list[str]:
        """Return the instances of a request in the order of the cluster."""
        instances = self.state.instances.values()
        chosen = {item.name for item in instances if _concerns(item, mode, self.leaving)} - self.stays.keys()
        return [item.name for item in cluster_data(self.state).instances if item.name in chosen]

    def _to_drain(self, mode: EvacuationMode | None, names: Iterable[str]) -> list[str]:
        """Return the nodes to be emptied that hail would use: those that no instance of the request is to leave."""
        used = set[str]()
        for item in map(self.state.instances.__getitem__, names):
            used |= {item.primary_node} if mode is not EvacuationMode.SECONDARY else set()
            used |= {*item.secondary_nodes} if mode is not EvacuationMode.PRIMARY else set()
        if mode is None:
            homes = self._homes(names)
            used = {name for name, node in self.state.nodes.items() if node.group in homes}
        return [name for name, node in self.state.nodes.items() if name in self.leaving - used and node.is_usable]

    def _homes(self, names: Iterable[str]) -> set[str]:
        return {self.state.nodes[self.state.instances[name].primary_node].group for name in names}

    def _by_ganeti(self, mode: EvacuationMode | None) -> tuple[str, ...] | None:
        hail = ("--iallocator", "hail")
        if mode is None:
            to = (word for name in self.targets for word in ("--to", name))
            return None if self.group is None else ("gnt-group", "evacuate", *hail, *to, self.group)
        if len(self.leaving) > 1 or mode is EvacuationMode.ALL:
            return None  # Ganeti empties one node at a time, and refuses the mode all
        soft = ("--ignore-soft-errors",) if self.asked.ignore_soft_errors else ()
        return "gnt-node", "evacuate", "--force", *soft, f"--{mode.value}", *hail, *self.leaving

    def _breaks(self) -> tuple[str, ...]:
        """Return what is wrong after the moves, and was not before."""
        from gpolicy.remedy.remedy import begin_remedy  # noqa: PLC0415

        before, after = (
            {fault.key: fault.sentence for fault in begin_remedy(state, load_state(state)).before.faults}
            for state in (self.observed, self.state)
        )
        return tuple(sentence for key, sentence in after.items() if key not in before)

    def outcome(self) -> evacuation.OtherRequest:
        return evacuation.OtherRequest(tuple(sorted(self.leaving)), tuple(self.moved), tuple(self.stays.values()))

    def report(self) -> evacuation.EvacuationReport:
        before, cluster_before = hails_cluster(self.observed, resource_model=self.asked.resource_model, asked=False)
        _, cluster_after = hails_cluster(self.state, resource_model=self.asked.resource_model, asked=False)
        sets = job_sets(self.moved, lambda item: item.touched)
        numbered = [replace(item, job_set=number) for number, jobs in enumerate(sets, 1) for item in jobs]
        moved = [item.with_way_back(self.observed.nodes) for item in numbered]
        homes = {self.observed.nodes[name].group for name in self.leaving}
        return evacuation.EvacuationReport(
            **origin_of(self.observed),
            basis=before.basis(
                name for name, node in self.observed.nodes.items() if self.to_groups or node.group in homes
            ),
            leaving=tuple(name for name in self.observed.nodes if name in self.leaving),
            asked=self.asked,
            group=self.group,
            requests=tuple(self.requests),
            moved=tuple(moved),
            stays=tuple(self.stays.values()),
            short_before=_short_of_memory(cluster_before),
            short_after=_short_of_memory(cluster_after),
            objections=tuple(self.objections),
            breaks=self._breaks() if self.asked.ignore_soft_errors or before.hail.ignore_soft_errors else (),
            master=next((name for name in self.leaving if self.observed.nodes[name].master), ""),
            exhaustive=not self.stop.ended,
            notes=(
                *basis_notes(before, cluster_before, resource_model=self.asked.resource_model),
                *not_tried(self.observed),
                *aside({} if self.to_groups else self.unknown),
            ),
            unknown=self.unknown if self.to_groups else {},
            nodes_before=node_uses(self.observed, cluster_before.nodes.values()),
            nodes_after=node_uses(self.state, cluster_after.nodes.values()),
        )


def _concerns(instance: LiveInstance, mode: EvacuationMode | None, leaving: frozenset[str]) -> bool:
    runs = instance.primary_node in leaving
    mirrored = instance.disk_template == _MIRRORED and not leaving.isdisjoint(instance.secondary_nodes)
    match mode:
        case None:
            return runs or mirrored
        case EvacuationMode.ALL:
            return runs and mirrored
        case EvacuationMode.PRIMARY:
            return runs and not mirrored
    return mirrored


def _short_of_memory(cluster: Cluster) -> tuple[str, ...]:
    return tuple(node.facts.name for node in cluster.nodes.values() if node.fails_n1 and not node.facts.offline)


def commands_of(moves: Sequence[InstanceMove], nodes: Nodes) -> Iterator[tuple[str, Command]]:
    """Yield what each move does, and its command: the opcode that hail gives to Ganeti for it."""
    for move in moves:
        instance = check_name("instance", move.instance.name)
        to = () if move.target == NO_NODE else ("-n", check_name("node", nodes[move.target].facts.name))
        running = move.instance.status is InstanceStatus.RUNNING and not nodes[move.instance.primary].facts.offline
        words: CommandWords = ("migrate", "-f", *AS_HAIL)
        what = "fail over"  # Ganeti makes a failover of the migration of one that is down
        if move.kind is MoveKind.REPLACE_SECONDARY:
            what, words = "copy disks", ("replace-disks",)
        elif move.instance.forthcoming:
            words = ("failover", "-f")
        elif running:
            what = "migrate"
        yield what, command_of(("gnt-instance", *words, *to, instance))


def work_of(asked: Departure) -> int:
    """Return the work of explaining all candidates, in about microseconds."""
    number, group = len(asked.candidates), sum(node.facts.group == asked.group for node in asked.nodes.values())
    return number * (number - 1) * (_CHAIN + group) if asked.by_pairs else number * group


_CHAIN: Final = 200  # microseconds that the moves of one pair take


def explained(asked: Departure, groups: Mapping[int, Group]) -> tuple[Candidate, ...]:
    """Return the candidates of one instance: the possible ones, the best first, then the refused ones."""
    chosen: Candidate | None = None
    possible, refused = [], []
    for where, moved in asked.trials():
        nodes = tuple(asked.nodes[index].facts.name for index in where)
        group = groups[asked.nodes[where[0]].facts.group].name
        if not isinstance(moved, EvacuationError):
            left, score = sum(moved.nodes[index].free_disk for index in where), asked.score(moved)
            possible.append(Candidate(group, nodes, ok=True, score=score, disk_left=left))
            if chosen is None or not (chosen.score or 0.0) < score:  # as hail: of equal ones the later, or NaN
                chosen = possible[-1]
            continue
        assert moved.refused is not None  # noqa: S101
        why = of_move(*moved.refused, force=asked.force)
        asked_of = Candidate(group, nodes, ok=False, htools_reason=why.reason.title)
        refused.append(asked_of.refused(why.cause, why.detail))
    best_first = sorted_by_score(possible[::-1], lambda item: item.score or 0.0)
    best_first.sort(key=lambda item: item is not chosen)
    return (*best_first, *refused)
