"""Where an instance would go, and why: hail's answer, with every candidate and its reason.

The answer is hail's to a request of Ganeti to allocate the instance: the same groups, nodes, metric and tie-breaking,
with the global N+1 test, and with the parameters that the cluster passes to hail. For groups where every node has
exclusive storage the metric is the pair of lost allocations and remaining disk (design document "dedicated
allocation"), otherwise the cluster score.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from gpolicy.allocator.cluster_data import AllocPolicy, DiskTemplate, Group, Instance
from gpolicy.allocator.ghc_numbers import sorted_by_score
from gpolicy.allocator.merge import Cluster, ClusterData
from gpolicy.allocator.request_options import RequestOptions
from gpolicy.allocator.requests import GroupAnswer, Wanted, biggest_first
from gpolicy.analysis import place_report
from gpolicy.analysis.allocator_input import aside, merged, require
from gpolicy.analysis.basis import Settled, origin_of, settle
from gpolicy.analysis.binding import OF_POLICY, Cause
from gpolicy.analysis.hail import as_hail_reads, as_reported, decisive, not_tried, without_parameters
from gpolicy.analysis.loaded_state import basis_notes, guaranteed
from gpolicy.analysis.node_resources import smallest_volumes, what_if_shares
from gpolicy.analysis.place_report import Candidate, GroupTrial, Instead, PlaceReport
from gpolicy.analysis.place_search import PlaceSearch, under_limits, with_losses
from gpolicy.analysis.shown_score import other_weights
from gpolicy.analysis.wanted_instance import PlaceRequest, Unmade, unmade, wanted_group, wanted_instance, with_guarantee
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import NO_LIMITS, Limits, PairNames, VolumeSize, limited, limits_in_force, shared_limits
from gpolicy.errors import InputError
from gpolicy.ganeti.htools_reading import HailParameters


def place(
    state: ClusterState,
    request: PlaceRequest,
    *,
    names: PairNames | None = None,
    limits: Limits = NO_LIMITS,
    resource_model: bool = False,
    instead: bool = False,
    settled: Settled | None = None,
) -> PlaceReport:
    """Return where the instance of `request` would go on the cluster in `state`, and the result for each candidate.

    Nodes where Ganeti would refuse the spindles of its disks are refused, though hail accepts them: the answer is then
    hail's among the other nodes. So are candidates that would break the limits of their group, of which `limits` go
    before those of the policy. `names` are those of the policy's sizes, for the dedicated metric. `resource_model` is
    that of `settle`, and `settled` what it makes of the state, where that is known already. With `instead`, a report of
    an instance that goes nowhere says what would fit. The report says what the cluster's parameters for hail change.
    Raise RequestError for a request that is impossible on this cluster, and GpolicyError if a group that it names is
    not known, or no group is.
    """
    settled = settled or settle(state, resource_model=resource_model)
    report = _answer(
        _HailInput(state, settled, limits, resource_model=resource_model), request, names=names, instead=instead
    )
    plain = without_parameters(state)
    if plain is None:
        return report
    other = _answer(
        _HailInput(plain, settle(plain, resource_model=resource_model), limits, resource_model=resource_model), request
    )
    there = f"it would go to {' / '.join(other.nodes)}" if other.ok else "it would go nowhere"
    return replace(report, parameters=decisive(state, there if other.nodes != report.nodes else ""))


class _HailInput:
    """A cluster as hail reads it, converted once for all that is asked of it; `limits` go before the policy's."""

    def __init__(self, observed: ClusterState, settled: Settled, limits: Limits, *, resource_model: bool) -> None:
        self.observed, self.limits, self.resource_model = observed, limits, resource_model
        self.settled = replace(settled, state=limited(settled.state, limits))
        self._known: dict[bool, tuple[ClusterData, Cluster]] = {}

    def cluster(self, *, oversubscribed: bool) -> tuple[ClusterData, Cluster]:
        """Return the cluster as read and with all that is known of its nodes.

        `oversubscribed`: instances have the memory that is guaranteed.
        """
        if oversubscribed not in self._known:
            settled = self.settled
            data = as_hail_reads(settled.state, settled.data)
            data = guaranteed(data, settled.state) if oversubscribed else data
            self._known[oversubscribed] = data, merged(data, settled.resources, settled.hail.static_kvm_node_memory)
        return self._known[oversubscribed]


@dataclass(frozen=True, slots=True)
class _HailQuestion:
    """A request as hail is asked it. `refusals` are the nodes where Ganeti would make no disks of the instance."""

    request: PlaceRequest
    group: Group | None
    cluster: Cluster
    wanted: Wanted
    options: RequestOptions
    volumes: Mapping[str, VolumeSize]
    refusals: Mapping[str, Unmade]

    @property
    def instance(self) -> Instance:
        """The wanted instance."""
        return self.wanted.instance


@dataclass(frozen=True, slots=True)
class _HailChoice:
    """An answer of hail, with its search; the chosen nodes, every candidate, and notes on the way to them."""

    search: PlaceSearch
    answer: GroupAnswer
    nodes: tuple[str, ...]
    candidates: list[Candidate]
    notes: tuple[str, ...] = ()


def _answer(
    asked: _HailInput, request: PlaceRequest, *, names: PairNames | None = None, instead: bool = False
) -> PlaceReport:
    observed, settled, state, hail = asked.observed, asked.settled, asked.settled.state, asked.settled.hail
    require(observed, settled.unknown, named_groups := _named_groups(request, observed))
    question = _question(asked, request)
    of_hail = _by_hail(question, hail.failure)
    found = _within_limits(state, question, _where_disks_are_made(state, question, of_hail))
    cluster, instance, group, search = question.cluster, question.instance, question.group, found.search
    restriction = question.options.restriction
    group_name = group.name if group else None
    chosen = next((node.facts.group for node in cluster.nodes.values() if node.facts.name in found.nodes), None)
    measured = found.answer.group if chosen is None else chosen
    verdict = "successful" if of_hail.nodes else "failed"
    otherwise = (*place_report.unpoliced(cluster, request, instance), *other_weights(request.weights))
    return PlaceReport(
        **origin_of(state, otherwise),
        basis=settled.basis(node.name for node in state.nodes.values() if group_name in (None, node.group)),
        instance=instance,
        size=request.size,
        ok=bool(found.nodes),
        info=f"Request {verdict}: {', '.join(found.answer.messages)}",
        metric="lost-allocations" if search.dedicated else "score",
        sizes=_lost_size_names(cluster, names or PairNames(), measured, group) if search.dedicated else (),
        group=None if chosen is None else cluster.groups[chosen].name,
        nodes=found.nodes,
        reason=None
        if found.nodes
        else place_report.why_not(found.candidates, cluster, question.wanted, restriction, hail),
        groups=() if hail.failure else tuple(_group_trials(cluster, search, found.answer, group)),
        candidates=tuple(found.candidates),
        objections=tuple(place_report.objections(observed, cluster, request, instance, found.nodes)),
        notes=(
            *basis_notes(settled, cluster, group_name, resource_model=asked.resource_model),
            *found.notes,
            *not_tried(state),
            *place_report.of_closed_group(cluster, request, chosen),
            *what_if_shares(state, group_name),
            *place_report.metric_notes(cluster, request, found.nodes, dedicated=search.dedicated),
            *place_report.left_out(search.left_out, len(found.candidates)),
            *aside(settled.unknown if named_groups else {}),
        ),
        unchecked=tuple(place_report.unknown_volumes(cluster, instance, found.nodes, question.volumes)),
        unknown={} if named_groups else settled.unknown,
        limits=limits_in_force(observed, asked.limits, group_name),
        instead=None if found.nodes or hail.failure or not instead else _instead(asked, question),
    )


def _question(asked: _HailInput, request: PlaceRequest) -> _HailQuestion:
    settled, state = asked.settled, asked.settled.state
    group = wanted_group(request, settled.data)
    lifting = shared_limits(state, group.name if group else None)
    data, cluster = asked.cluster(oversubscribed=lifting.oversubscription is not None)
    instance = wanted_instance(request, group, state, data)
    volumes = smallest_volumes(state)
    return _HailQuestion(
        request=request,
        group=group,
        cluster=replace(cluster, nodes=as_reported(cluster.nodes, instance.template)),
        wanted=Wanted(instance, 2 if instance.template is DiskTemplate.DRBD else 1, group.name if group else None),
        options=_options(request, settled.hail, lifting),
        volumes=volumes,
        refusals=_unmade(cluster, request, instance, volumes),
    )


def _by_hail(question: _HailQuestion, failure: str) -> _HailChoice:
    """Return hail's answer, which may be that it fails at every request."""
    search = PlaceSearch(question.cluster, question.wanted, question.options)
    answer = GroupAnswer(None, (failure,), None, {}) if failure else search.answer()
    candidates = _marked(with_losses(search, search.candidates()), question.refusals)
    return _HailChoice(search, answer, _nodes_of_answer(question.cluster, answer), candidates)


def _where_disks_are_made(state: ClusterState, question: _HailQuestion, found: _HailChoice) -> _HailChoice:
    """Return hail's answer among the nodes where Ganeti makes the disks."""
    refusals = question.refusals.keys()
    if refusals.isdisjoint(found.nodes):
        return found
    note = (
        f"hail itself accepts this, on {' / '.join(found.nodes)}: it does not ask which disks Ganeti makes there, and"
        " Ganeti refuses them when it makes the instance"
    )
    refused = [item for item in found.candidates if not refusals.isdisjoint(item.nodes)]
    left = _allowed(state, question.options) - refusals
    again = PlaceSearch(question.cluster, question.wanted, replace(question.options, restriction=left))
    answer = again.answer() if left else replace(found.answer, placement=None)
    nodes, candidates = _nodes_of_answer(question.cluster, answer), [*with_losses(again, again.candidates()), *refused]
    if nodes:
        return _HailChoice(again, answer, nodes, candidates, (note,))
    return replace(found, nodes=(), candidates=candidates, notes=(note,))


def _within_limits(state: ClusterState, question: _HailQuestion, found: _HailChoice) -> _HailChoice:
    """Return the best answer that keeps the limits of the policy, with the candidates in hail's order."""
    sorted_ones = _best_first(question.cluster, found.candidates, found.nodes)
    permitted = under_limits(state, found.search, sorted_ones) if found.nodes else sorted_ones
    if permitted[:1] == sorted_ones[:1]:
        return replace(found, candidates=sorted_ones)
    note = f"hail itself would place it on {' / '.join(found.nodes)}: it does not know the limits of the policy"
    nodes = permitted[0].nodes if permitted[0].ok else ()
    return replace(found, nodes=nodes, candidates=permitted, notes=(*found.notes, note))


def _instead(asked: _HailInput, question: _HailQuestion) -> tuple[Instead, ...] | None:
    """Return what would fit in place of an instance that goes nowhere; None if that cannot be told."""
    request, instance, cluster, state = question.request, question.instance, question.cluster, asked.settled.state
    index = None if question.group is None else question.group.index
    facts = [node.facts for node in cluster.nodes.values() if index in (None, node.facts.group)]
    policies = list(dict.fromkeys((own.policy, own.exclusive) for own in facts))

    def takes(sized: Instance) -> tuple[str, ...]:
        changed = with_guarantee(sized, instance.memory, policies) if instance.maximum_memory else sized
        wanted = replace(question.wanted, instance=changed)
        there = _taking(state, PlaceSearch(cluster, wanted, question.options), request, question.volumes)
        unsure = changed.total_spindles != instance.total_spindles
        return () if unsure and place_report.unknown_volumes(cluster, changed, there, question.volumes) else there

    others: tuple[Instead, ...] | None = None
    with suppress(InputError):  # a group may be too large to tell whether something keeps its limits
        given = request.disks is not None and request.spindles_given
        others = (
            *_other_words(asked, request, instance, cluster),
            *place_report.other_sizes(place_report.whole_of(instance), policies, takes, spindles_given=given),
        )
    if others == () and request.template is not None:
        report = _answer(asked, replace(request, template=None), instead=True)
        template = f"template={report.instance.template.value}"
        return tuple(Instead(f"{template} {item.words}", item.nodes) for item in report.instead or ())
    return others


def _options(request: PlaceRequest, hail: HailParameters, limits: Limits) -> RequestOptions:
    """Return hail's options; where the limits ask for no node failure, N+1 is not tested."""
    named_nodes = None if request.nodes is None else frozenset(request.nodes)
    return RequestOptions(
        capacity_checks=hail.capacity_checks and limits.max_node_failures != 0,
        ignore_soft_errors=hail.ignore_soft_errors,
        restriction=named_nodes if hail.restriction is None else hail.restriction,
        weights=request.weights,
    )


def _allowed(state: ClusterState, options: RequestOptions) -> frozenset[str]:
    return frozenset(state.nodes) if options.restriction is None else options.restriction


def _named_groups(request: PlaceRequest, state: ClusterState) -> set[str]:
    """Return the groups that a request is about; none where it is about all."""
    named = {name for name, group in state.groups.items() if request.group in (name, group.identity.uuid)}
    return named | {state.nodes[node].group for node in request.nodes or () if node in state.nodes}


def _taking(
    state: ClusterState, search: PlaceSearch, request: PlaceRequest, volumes: Mapping[str, VolumeSize]
) -> tuple[str, ...]:
    """Return the nodes that take the instance of a search, as `place` answers; none if nothing takes it."""
    cluster, instance = search.cluster, search.wanted.instance
    refusals = _unmade(cluster, request, instance, volumes)
    if refusals:
        left = _allowed(state, search.options) - refusals.keys()
        search = PlaceSearch(cluster, search.wanted, replace(search.options, restriction=left))
    nodes = _nodes_of_answer(cluster, search.answer()) if len(refusals) < len(cluster.nodes) else ()
    if nodes and any(state.terms_of(group.name).limits.beyond_htools for group in cluster.groups.values()):
        found = under_limits(state, search, _best_first(cluster, search.candidates(), nodes))
        return found[0].nodes if found[0].ok else ()
    return nodes


def _other_words(asked: _HailInput, request: PlaceRequest, instance: Instance, cluster: Cluster) -> Iterator[Instead]:
    """Yield the words with which, or without which, the same instance fits.

    In a group that the request names hail may go by another metric, which does not ask for N+1.
    """
    same = replace(
        request,
        memory=instance.burst,
        minimum_memory=instance.memory,
        vcpus=instance.vcpus,
        disks=instance.disks,
        spindles_given=request.spindles_given and request.disks is not None,
        spindle_use=instance.spindle_use,
        template=instance.template.value,
    )
    chosen_by_group = request.group is not None and request.template is None
    used = {node.facts.group for node in cluster.nodes.values()}
    filled = [group for group in cluster.groups.values() if group.index in used]
    named = [group for group in filled if group.alloc_policy is not AllocPolicy.UNALLOCABLE]
    for group in named if request.group is None and len(used) > 1 else ():
        if (report := _answer(asked, replace(same, group=group.name))).ok:
            yield Instead(f"group={group.name}", report.nodes)
    tags = request.tags if len(request.tags) > 1 else ()
    fewer = ((tag, replace(same, tags=tuple(other for other in tags if other != tag))) for tag in tags)
    reports = ((tag, _answer(asked, other)) for tag, other in fewer)
    found = [Instead(f"without tags={tag}", report.nodes) for tag, report in reports if report.ok]
    yield from found
    for word, given, other in (
        ("group", request.group, replace(request if chosen_by_group else same, group=None)),
        ("nodes", request.nodes, replace(same, nodes=None)),
        ("tags", () if found else request.tags, replace(same, tags=())),
        ("template", request.template, replace(same, template=None)),
    ):
        if given and (report := _answer(asked, other)).ok:
            template = f"template={report.instance.template.value}, not {given}" if word == "template" else ""
            yield Instead(template or f"without {word}={given if word == 'group' else ','.join(given)}", report.nodes)


def _nodes_of_answer(cluster: Cluster, answer: GroupAnswer) -> tuple[str, ...]:
    return () if answer.placement is None else tuple(cluster.nodes[i].facts.name for i in answer.placement.nodes)


def _unmade(
    cluster: Cluster, request: PlaceRequest, instance: Instance, volumes: Mapping[str, VolumeSize]
) -> dict[str, Unmade]:
    """Return the nodes where Ganeti refuses a disk that hail accepts, by name, with the first refusal."""
    found: dict[str, Unmade] = {}
    given = request.disks is not None and request.spindles_given
    for node in cluster.nodes.values():
        name, exclusive = node.facts.name, node.facts.exclusive
        refusal = unmade(instance, exclusive=exclusive, volume=volumes.get(name), spindles_count=exclusive or given)
        if refusal is not None:
            found[name] = refusal
    return found


def _marked(candidates: list[Candidate], refused: Mapping[str, Unmade]) -> list[Candidate]:
    """Return the candidates, refused where Ganeti would refuse the disks."""
    marked = []
    for item in candidates:
        node = next((name for name in item.nodes if name in refused), None)
        for_want = item.reason not in {cause.key for cause in OF_POLICY}  # of room, which would not help
        if node is not None and (item.ok or (for_want and refused[node].cause is Cause.ONLY_PLAIN)):
            marked.append(item.refused(refused[node].cause, f"{node}: {refused[node].sentence}"))
        else:
            marked.append(item)
    return marked


def _best_first(cluster: Cluster, found: list[Candidate], chosen: tuple[str, ...]) -> list[Candidate]:
    """Sort as hail prefers: the chosen one, the other possible ones, the refused ones in the order of the nodes."""
    ranks = {group.name: group.alloc_policy.rank for group in cluster.groups.values()}
    possible = [item for item in reversed(found) if item.ok]  # of equal ones the later wins
    if any(item.lost_allocations is not None for item in possible):
        possible.sort(key=lambda item: (item.lost_allocations or (), item.disk_left or 0))
    else:
        possible = sorted_by_score(possible, lambda item: item.score or 0.0)
    possible.sort(key=lambda item: (item.nodes != chosen, ranks[item.group]))
    return [*possible, *(item for item in found if not item.ok)]


def _lost_size_names(cluster: Cluster, names: PairNames, measured: int | None, group: Group | None) -> tuple[str, ...]:
    """Return the names of the sizes of lost allocations in the requested or chosen group, the biggest disk first."""
    index = group.index if group is not None else measured
    if index is None:
        policies = {item.policy for item in cluster.groups.values()}
        if len(policies) != 1:
            return ()
        index = next(iter(cluster.groups))
    chosen = cluster.groups[index]
    shown = names.of(chosen.name, len(chosen.policy.minmax))
    return tuple(shown[place] for place in biggest_first(chosen.policy))


def _group_trials(cluster: Cluster, asked: PlaceSearch, answer: GroupAnswer, group: Group | None) -> list[GroupTrial]:
    tried = {cluster.nodes[item.members[0]].facts.group for item in asked.attempts}
    trials = []
    for item in cluster.groups.values():
        if group is not None and item.index != group.index:
            text = "not requested"
        elif not any(node.facts.group == item.index for node in cluster.nodes.values()):
            text = "has no nodes"
        else:
            text = answer.on_groups.get(item.index, ", ".join(answer.messages))
        trials.append(GroupTrial(item.name, item.alloc_policy.value, item.index in tried, text))
    return trials
