"""The answer to a request for a placement: the instance, every candidate, the groups, and what would fit in its place.

Other values of the request are tried with the allocator, each in turn. Notes say what hail does not look at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpolicy.allocator.cluster_data import AllocPolicy, Disk, FailReason, Instance, InstancePolicy, Node, Spec, SpecPair
from gpolicy.allocator.cluster_score import WEIGHTS
from gpolicy.allocator.ghc_numbers import fixed
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.policy_check import check_ipolicy, check_pair
from gpolicy.allocator.requests import Wanted, allocation_vector, biggest_first, sample_instances
from gpolicy.analysis.allocator_input import charged_space
from gpolicy.analysis.basis import StateReport
from gpolicy.analysis.binding import Cause, pair_distance
from gpolicy.analysis.hail import no_disk_words
from gpolicy.analysis.wanted_instance import NEW, PlaceRequest
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import VolumeSize
from gpolicy.ganeti.amounts import SIZE_STEP_MIB as STEP, exact_size
from gpolicy.ganeti.htools_reading import HailParameters
from gpolicy.printable import count, named, some


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node, or a primary and secondary, and the result of trying it.

    `reason` is why it is refused (the key of `gpolicy.analysis.binding.Cause`), `detail` gives the numbers,
    `htools_reason` is hail's name of it; all None if `ok`. `score` is the cluster score after the placement (None on
    dedicated nodes), `lost_allocations` the numbers of instances of each size that would no longer fit, the size with
    the biggest disk first (None on ordinary nodes). `disk_left` (MiB) is the sum that its nodes have left. Refused
    candidates have a score if it was computed.
    """

    group: str
    nodes: tuple[str, ...]
    ok: bool
    reason: str | None = None
    explanation: str | None = None
    detail: str | None = None
    htools_reason: str | None = None
    score: float | None = None
    lost_allocations: tuple[int, ...] | None = None
    disk_left: int | None = None

    def refused(self, cause: Cause, detail: str) -> Candidate:
        """Return the candidate refused for a reason that hail does not know."""
        return replace(self, ok=False, reason=cause.key, explanation=cause.sentence, detail=detail)

    @property
    def shown_score(self) -> str:
        """The score as htools prints it, or a dash."""
        return "-" if self.score is None else fixed(self.score, 8)


@dataclass(frozen=True, slots=True)
class GroupTrial:
    """The result for one group: hail's own sentence, or why the group was not tried."""

    group: str
    alloc_policy: str
    tried: bool
    message: str


@dataclass(frozen=True, slots=True)
class Instead:
    """What fits in place of what was asked for: the words to change in the request, and where it then goes."""

    words: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlaceReport(StateReport):
    """Where the `instance` goes (`ok`, `group`, `nodes`), hail's own words for it (`info`), and the candidates.

    `candidates` are the possible ones, the best first, then the refused ones; of very many pairs only those that are
    likely the best. `metric` is "score" or "lost-allocations"; with the latter `sizes` names the sizes that
    `lost_allocations` counts. `reason` is a sentence that tells why no candidate takes it. `objections` tell
    why Ganeti would refuse what hail accepts. `instead` is what would fit, if that was asked for and the instance goes
    nowhere; None if it was not. `what_if` says what the answer leaves out of account on request; `size` is what
    people call the instance's size.
    """

    instance: Instance
    ok: bool
    info: str
    metric: str
    sizes: tuple[str, ...]
    group: str | None = None
    nodes: tuple[str, ...] = ()
    reason: str | None = None
    groups: tuple[GroupTrial, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    objections: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    instead: tuple[Instead, ...] | None = None
    size: str = ""

    @property
    def accepted(self) -> bool:
        """Whether both hail and Ganeti take it."""
        return self.ok and not self.objections

    @property
    def chosen(self) -> Candidate | None:
        """The chosen candidate."""
        return next((item for item in self.candidates if self.ok and item.nodes == self.nodes), None)


WhoTakes = Callable[[Instance], tuple[str, ...]]
"""Where the allocator places an instance: the names of its nodes, none if nowhere."""

_MOST_SPINDLES = 64


@dataclass(frozen=True, slots=True)
class _RequestValue:
    """One value of the request: how to change it, what it is, the least that the policy allows, and its unit."""

    change: Callable[[Instance, int], Instance]
    wanted: int
    least: int
    step: int = 1


def other_sizes(
    instance: Instance, policies: Sequence[tuple[InstancePolicy, bool]], takes: WhoTakes, *, spindles_given: bool
) -> tuple[Instead, ...]:
    """Return other sizes of a refused instance that fit, within the nearest size of the policy of which some fit.

    If the pair does not allow the instance: the nearest size that it allows. If there is no room for that: for each
    value the greatest that fits while the others stay. If no value is enough alone: the greatest memory while the
    others are at the minimum, then the greatest CPUs, and so on. `policies` are those of the groups in question, each
    with whether the group has exclusive storage. `spindles_given`: the request itself says those of the disks.
    """
    for pair, exclusive in _nearest_pairs(instance, policies):
        nearest = _allowed(instance, pair, exclusive=exclusive, takes=takes)
        values = _values(nearest, pair, exclusive=exclusive)
        if takes(nearest):
            found = [nearest]
        else:
            found = [item for value in values if (item := _greatest(nearest, value, takes)) is not None]
            found = found or list(_greatest_of_all(nearest, values, takes))
        if found:
            return tuple(Instead(_words(instance, item, spindles_given=spindles_given), takes(item)) for item in found)
    return ()


def nearest_allowed(instance: Instance, policy: InstancePolicy, *, exclusive: bool) -> tuple[Instance, str] | None:
    """Return an existing instance in the nearest size that the policy allows, and what changes; None if a disk is too
    large, which Ganeti does not shrink, or if its disks do not go with the policy."""
    for pair, _ in _nearest_pairs(instance, [(policy, exclusive)]):
        found = _allowed(instance, pair, exclusive=False, takes=lambda _changed: ("",))
        grown = [new.size >= old.size for new, old in zip(found.disks, instance.disks, strict=False)]
        if len(found.disks) == len(instance.disks) and all(grown):
            if not any(new.size > old.size for new, old in zip(found.disks, instance.disks, strict=True)):
                found = replace(found, disks=instance.disks, disk=instance.disk)
            if check_ipolicy(policy, found, exclusive=exclusive) is None:
                return found, _words(instance, found, spindles_given=False)
    return None


def _nearest_pairs(instance: Instance, policies: Sequence[tuple[InstancePolicy, bool]]) -> list[tuple[SpecPair, bool]]:
    """Return the sizes, the nearest first."""
    if instance.ignores_policy:
        size, count = max((disk.size for disk in instance.disks), default=1), len(instance.disks)
        most = Spec(instance.memory, instance.vcpus, size, count, 0, instance.spindle_use)
        return [(SpecPair(Spec(1, 1, 1, count, 0, 0), most), False)]
    found = dict.fromkeys((pair, exclusive) for policy, exclusive in policies for pair in policy.minmax)
    return sorted(found, key=lambda item: pair_distance(item[0], instance, exclusive=item[1]))


def _allowed(instance: Instance, pair: SpecPair, *, exclusive: bool, takes: WhoTakes) -> Instance:
    """Return the instance with each value that the pair does not allow at the nearest that it allows.

    Under exclusive storage with the fewest spindles on which it fits, if there are some.
    """
    low, high = pair.min, pair.max
    disks = instance.disks[: high.disk_count] + instance.disks[-1:] * (low.disk_count - len(instance.disks))
    sized = [replace(disk, size=nearest_within(disk.size, low.disk_size, high.disk_size, STEP)) for disk in disks]
    found = replace(
        _with_disks(instance, sized),
        memory=nearest_within(instance.memory, low.memory, high.memory, STEP),
        vcpus=nearest_within(instance.vcpus, low.cpus, high.cpus),
    )
    if not exclusive or not disks:
        found = _with_disks(found, [replace(disk, spindles=None) for disk in found.disks])
        return replace(found, spindle_use=nearest_within(instance.spindle_use, low.spindle_use, high.spindle_use))
    numbers = range(max(low.spindle_use, len(disks)), min(high.spindle_use, _MOST_SPINDLES) + 1)
    tried = (_on_spindles(found, number) for number in numbers)
    return found if takes(found) else next((item for item in tried if takes(item)), found)


def _values(instance: Instance, pair: SpecPair, *, exclusive: bool) -> list[_RequestValue]:
    low = pair.min
    values = [
        _RequestValue(lambda item, number: replace(item, memory=number), instance.memory, low.memory, STEP),
        _RequestValue(lambda item, number: replace(item, vcpus=number), instance.vcpus, low.cpus),
    ]
    if exclusive and instance.disks:
        values.append(_RequestValue(_on_spindles, instance.total_spindles or low.spindle_use, low.spindle_use))
    if instance.disks:
        values.append(_RequestValue(_at_most(instance), max(disk.size for disk in instance.disks), low.disk_size, STEP))
    return values


def _greatest(instance: Instance, value: _RequestValue, takes: WhoTakes) -> Instance | None:
    """Return the instance with the greatest number, below the wanted one, with which it fits; None if there is none."""
    fits, not_fits = -(-value.least // value.step), -(-value.wanted // value.step)

    def changed(number: int) -> Instance:
        return value.change(instance, number * value.step)

    if fits >= not_fits or not takes(changed(fits)):
        return None
    while not_fits - fits > 1:
        middle = (fits + not_fits) // 2
        if takes(changed(middle)):
            fits = middle
        else:
            not_fits = middle
    return changed(fits)


def _greatest_of_all(instance: Instance, values: Sequence[_RequestValue], takes: WhoTakes) -> Iterator[Instance]:
    for value in values:
        instance = value.change(instance, -(-value.least // value.step) * value.step)
    if takes(instance):
        for value in values:
            wanted = value.change(instance, value.wanted)
            instance = wanted if takes(wanted) else _greatest(instance, value, takes) or instance
        yield instance


def _at_most(instance: Instance) -> Callable[[Instance, int], Instance]:
    """Return a change that makes the disks of `instance` no larger than a size."""

    def change(item: Instance, size: int) -> Instance:
        pairs = zip(item.disks, instance.disks, strict=True)
        return _with_disks(item, [replace(disk, size=min(wanted.size, size)) for disk, wanted in pairs])

    return change


def _on_spindles(instance: Instance, number: int) -> Instance:
    each, rest = divmod(number, len(instance.disks))
    disks = enumerate(instance.disks)
    return _with_disks(instance, [replace(disk, spindles=each + (place < rest)) for place, disk in disks])


def _with_disks(instance: Instance, disks: Sequence[Disk]) -> Instance:
    space = charged_space(instance.template, [disk.size for disk in disks])
    return replace(instance, disks=tuple(disks), disk=space)


def nearest_within(number: int, low: int, high: int, step: int = 1) -> int:
    """Return `number` if it is from `low` to `high`, else the nearest multiple of `step` that is."""
    return -(-low // step) * step if number < low else high // step * step if number > high else number


def _words(asked: Instance, found: Instance, *, spindles_given: bool) -> str:
    """Return how to ask for `found`: what differs from the instance that was asked for."""
    words = []
    if found.memory != asked.memory:
        words.append(f"memory={exact_size(found.memory)}")
    if found.vcpus != asked.vcpus:
        words.append(f"vcpus={found.vcpus}")
    without_spindles = not spindles_given and all(disk.spindles is None for disk in found.disks)
    same = [disk.size for disk in found.disks] == [disk.size for disk in asked.disks]
    if found.disks != asked.disks and not (same and without_spindles):
        spindles = ("" if disk.spindles is None else f":{disk.spindles}" for disk in found.disks)
        words += [f"disk={exact_size(disk.size)}{more}" for disk, more in zip(found.disks, spindles, strict=True)]
    if found.spindle_use != asked.spindle_use:
        words.append(f"spindle-use={found.spindle_use}")
    return " ".join(words)


def metric_notes(cluster: Cluster, request: PlaceRequest, nodes: tuple[str, ...], *, dedicated: bool) -> list[str]:
    """Return what is to be said of the metric of an answer with these nodes; `dedicated`: it is lost allocations."""
    if not dedicated and request.group is not None:
        return [f"the score is that of group {request.group}"] if nodes and len(cluster.groups) > 1 else []
    if not dedicated:
        return [*_score_on_dedicated(cluster)]
    if request.weights != WEIGHTS:
        return ["the weights do not count here: the metric is lost allocations, not the cluster score"]
    chosen = (node for node in cluster.nodes.values() if node.facts.name in nodes[:1])
    return [note for node in chosen for note in _ignored_spindles(node)]


def _score_on_dedicated(cluster: Cluster) -> Iterator[str]:
    """Yield a note if some groups have exclusive storage and others not: hail then uses the score for all."""
    exclusive: dict[str, bool] = {}
    for node in cluster.nodes.values():
        group = cluster.groups[node.facts.group]
        if group.alloc_policy is not AllocPolicy.UNALLOCABLE:
            exclusive[group.name] = exclusive.get(group.name, True) and node.facts.exclusive
    if named := [name for name, every in exclusive.items() if every]:
        yield (
            "hail goes by the cluster score here, not by lost allocations, since not all groups have exclusive storage"
            f" (only {', '.join(named)}); name a group: group={named[0]}"
        )


def _ignored_spindles(node: Node) -> Iterator[str]:
    """Yield a note if lost allocations count sizes for which a node has too few spindles: hail does not look."""
    policy, samples = node.facts.policy, sample_instances(node.facts.policy)
    if any(item.memory <= 0 and item.disk <= 0 and item.vcpus <= 0 for item in samples):
        return
    specs = [policy.minmax[place].min for place in biggest_first(policy)]
    disks = [(Disk(spec.disk_size, spec.spindle_use),) for spec in specs]
    real = [replace(item, disks=disk) for item, disk in zip(samples, disks, strict=True)]
    counted, true = allocation_vector(node, samples), allocation_vector(node, real)
    if counted != true:
        shown, enough = (", ".join(map(str, vector)) for vector in (counted, true))
        yield (
            f"lost allocations do not count spindles (as hail's): on {node.facts.name} they count room for {shown} of"
            f" the sizes, and its spindles are enough for {enough}"
        )


def unpoliced(cluster: Cluster, request: PlaceRequest, instance: Instance) -> tuple[str, ...]:
    """Return what is supposed of a request that ignores the policy."""
    if not request.ignore_ipolicy:
        return ()
    policed = replace(whole_of(instance), ignores_policy=False)
    policies = {(node.facts.policy, node.facts.exclusive) for node in cluster.nodes.values()}
    allowed = all(check_ipolicy(policy, policed, exclusive=exclusive) is None for policy, exclusive in policies)
    said = "--ignore-ipolicy: its size and disk template are not compared with the policy"
    if allowed and any(_too_many_interfaces(request, instance, item, exclusive=own) for item, own in policies):
        return (f"{said}, and neither are its {_interfaces(request)} network interfaces, which it does not allow",)
    if allowed:
        return (f"{said}, which allows them anyway",)
    said += (
        ". hail itself refuses it: Ganeti ignores the policy only where the nodes are named (gnt-instance add"
        " --ignore-ipolicy -n NODE), and does not tell an iallocator. The policy's ratios and N+1 count here; with"
        " named nodes nobody looks at them"
    )
    return (said,)


def unknown_volumes(
    cluster: Cluster, instance: Instance, nodes: tuple[str, ...], volumes: Mapping[str, VolumeSize]
) -> list[str]:
    """Return that nothing is known of the spindles of the chosen nodes, where that is so."""
    exclusive = {node.facts.name for node in cluster.nodes.values() if node.facts.exclusive}
    unknown = [name for name in nodes if name in exclusive and name not in volumes]
    if not unknown or not instance.disks:
        return []
    return [f"spindles not checked: the size of the physical volumes of {' and '.join(unknown)} is not known"]


def left_out(pairs: int, listed: int) -> Iterator[str]:
    """Yield how many pairs of nodes the list of candidates leaves out, where it does."""
    if pairs:
        total = f"{pairs + listed:,}"
        yield f"the answer considers all {total} pairs of nodes; the list shows {listed:,} that are likely the best"


def objections(
    state: ClusterState, cluster: Cluster, request: PlaceRequest, instance: Instance, nodes: tuple[str, ...]
) -> Iterator[str]:
    """Yield why Ganeti would refuse the chosen nodes, in what hail does not check."""
    if request.name != NEW and request.name in state.instances:
        yield f"an instance {request.name} exists already: Ganeti refuses a second one of that name"
    chosen = [node.facts for node in cluster.nodes.values() if node.facts.name in nodes]
    group = cluster.groups[chosen[0].group] if chosen and not request.ignore_ipolicy else None
    exclusive = any(facts.exclusive for facts in chosen)
    if group and _too_many_interfaces(request, instance, group.policy, exclusive=exclusive):
        yield f"hail does not count network interfaces; Ganeti refuses {_interfaces(request)} in group {group.name}"


def whole_of(instance: Instance) -> Instance:
    """Return an instance with its greatest memory, which Ganeti and its policy mean."""
    return replace(instance, memory=instance.burst, maximum_memory=None)


def _interfaces(request: PlaceRequest) -> int | None:
    return request.nic_count if request.nic_count is not None else len(request.networks) or None


def _too_many_interfaces(request: PlaceRequest, instance: Instance, policy: InstancePolicy, *, exclusive: bool) -> bool:
    """Whether every size of `policy` that allows the rest of an instance forbids the number of its interfaces."""
    nics, policed = _interfaces(request), replace(whole_of(instance), ignores_policy=False)
    pairs = [pair for pair in policy.minmax if check_pair(pair, policed, exclusive=exclusive) is None]
    return nics is not None and bool(pairs) and not any(p.min.nic_count <= nics <= p.max.nic_count for p in pairs)


def of_closed_group(cluster: Cluster, request: PlaceRequest, chosen: int | None) -> Iterator[str]:
    """Yield that only a request by name gets into the chosen group, where that is so."""
    group = None if chosen is None else cluster.groups[chosen]
    if request.group is not None and group and group.alloc_policy is AllocPolicy.UNALLOCABLE:
        yield f"group {group.name} is unallocable: it takes the instance only because the request names it"


def why_not(
    found: list[Candidate], cluster: Cluster, wanted: Wanted, restriction: frozenset[str] | None, hail: HailParameters
) -> str:
    """Return a sentence that tells why the instance does not fit."""
    if hail.failure:
        return f"hail refuses every request, by default_iallocator_params: {hail.failure}"
    if not found:
        nodes = [node.facts for node in cluster.nodes.values()]
        online = Counter(cluster.groups[facts.group].name for facts in nodes if not facts.offline)
        there = online[wanted.group_name] if wanted.group_name is not None else max(online.values(), default=0)
        if there < wanted.count:
            needs = f"{wanted.instance.template.value} needs {count(wanted.count, 'online node')}"
            where = "no group" if wanted.group_name is None else f"group {wanted.group_name}"
            return f"{needs}, and {where} has {'so many' if wanted.group_name is None else there or 'none'}"
        return _no_candidate(cluster, wanted, restriction, hail)
    (first, number), *others = Counter(item.reason or "" for item in found).most_common()
    more = "".join(f", {key} ({number:,})" for key, number in others)
    by_n1 = any(item.htools_reason == FailReason.N1.title for item in found)
    told = no_disk_words(wanted.instance.template) if by_n1 else ""
    return f"refused by {first} ({count(number, 'candidate')}){more}{told}"


def _no_candidate(cluster: Cluster, wanted: Wanted, restriction: frozenset[str] | None, hail: HailParameters) -> str:
    """Return why no candidate is left of the nodes that the request, or the cluster for all requests, names."""
    names = "the request names" if hail.restriction is None else "restrict-allocation-to names"
    nodes = [node.facts for node in cluster.nodes.values() if restriction is None or node.facts.name in restriction]
    groups = sorted({cluster.groups[facts.group].name for facts in nodes})
    needs = f"{wanted.instance.template.value} needs {count(wanted.count, 'online node')} of one group"
    if not nodes:
        return f"{needs}, and {names} no node of this cluster by its full name"
    if wanted.group_name is not None and wanted.group_name not in groups:
        return f"the named nodes are in {named('group', groups)}, not in {wanted.group_name}"
    offline = [facts.name for facts in nodes if facts.offline]
    of_them = f", of which {some(offline)} take no instance" if offline else ""
    return f"{needs}, and {names} {count(len(nodes), 'node')} in {named('group', groups)}{of_them}"
