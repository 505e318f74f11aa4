"""How many more instances fit, by group and spec pair, and why the next one does not.

Each group is counted as a cluster of its own: the numbers are those of `hspace` on such a cluster (`group_data`).
`CapacityReport.cluster` is the result of `hspace` for the whole cluster. Both use hspace's defaults: N+1 must hold, and
if a node breaks it already, nothing may be added.

For a spec pair alone, an instance at the pair's maximum is placed repeatedly (`hspace --standard-alloc`); tiered
allocation uses all pairs in the order of the policy and shrinks what no longer fits. An instance has one disk, and the
spindle use of `std` or the nearest value that the pair allows. Sources: design documents "partitioned Ganeti" and
"resource model"; hspace(1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import filterfalse

from gpolicy.allocator.cluster_data import Instance, Spec, SpecPair
from gpolicy.allocator.cluster_score import WEIGHTS, Weights
from gpolicy.allocator.engines import is_redundant
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.analysis.basis import StateReport
from gpolicy.analysis.binding import Binding, Cause
from gpolicy.analysis.counted_cluster import CountedCluster, Fit, each_cluster
from gpolicy.analysis.dedicated_counting import placed_by_hail_only
from gpolicy.analysis.disk_templates import enabled_templates, wanted_template
from gpolicy.analysis.extended_capacity import ExtendedCapacity, extended_capacity, extended_fit
from gpolicy.analysis.loaded_state import basis_notes, check_group, counted_on_primary, load_state, split_instances
from gpolicy.analysis.metadata_room import MetadataRoom, metadata_rooms
from gpolicy.analysis.pair_names import PairNames, pair_title
from gpolicy.analysis.policy_limits import PolicyLimit, declared_limit_of, limit_of
from gpolicy.analysis.score_weights import other_weights
from gpolicy.analysis.shown_score import Score, score_of
from gpolicy.analysis.stranded import Stranded, room
from gpolicy.analysis.volume_sizes import smallest_volumes, unknown_volumes, what_if_shares
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.state import Instance as Observed
from gpolicy.cluster.terms import NO_LIMITS, Limits, limited, limits_in_force
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS

Observer = Callable[[str], None]
"""Gets messages about the progress of the count."""


@dataclass(frozen=True, slots=True)
class PlacedSize:
    """The size of placed instances (MiB of memory and disk, virtual CPUs, spindles) and their number."""

    memory: int
    disk: int
    cpus: int
    spindles: int
    count: int


@dataclass(frozen=True, slots=True)
class SpecCapacity:
    """One spec pair: `fits` instances at its maximum fit on the present cluster, `tiered` ones in the tiered run."""

    name: str
    pair: SpecPair
    spindle_use: int
    fits: int
    binding: Binding
    tiered: tuple[PlacedSize, ...]

    @property
    def fit(self) -> Fit:
        """The number of instances that fit at its maximum."""
        return Fit(self.fits, self.binding, self.pair.max)


@dataclass(frozen=True, slots=True)
class GroupCapacity:
    """The capacity of a group, or of the whole cluster if `group` is None.

    `template` is None if no enabled template is allowed. `tiered` are runs of equal sizes in the order of placement;
    `tiered_binding` tells why they ended. `not_made` are what hspace places in the tiered run beside them, and Ganeti
    does not make there. `stranded` are resources that no allowed instance can use, `extended` the
    capacity under the group's limits beyond those of htools (None: it has none).
    """

    group: str | None
    template: DiskTemplate | None
    nodes: int
    instances: int
    specs: tuple[SpecCapacity, ...]
    tiered: tuple[PlacedSize, ...]
    tiered_binding: Binding
    std: Spec
    standard: Fit
    score: Score
    not_made: tuple[PlacedSize, ...] = ()
    stranded: Stranded | None = None
    extended: ExtendedCapacity | None = None

    @property
    def tiered_fit(self) -> Fit:
        """The number of instances that fit in the tiered run."""
        return Fit(sum(size.count for size in self.tiered), self.tiered_binding)

    @property
    def most_fits(self) -> int:
        """The greatest number of instances that fit, of one spec, of the standard size or in the tiered run."""
        return max([self.standard.fits, self.tiered_fit.fits, *(spec.fits for spec in self.specs)])

    @property
    def differences(self) -> Iterator[str]:
        """What hspace counts differently: it does not ask which disks Ganeti makes with exclusive storage."""
        fits = [(pair_title(spec.name), spec.binding) for spec in self.specs] + [("standard", self.standard.binding)]
        for name, why in fits:
            if why.detail is not None:
                yield f"{name}: {why.detail}"
        for name, why in fits[:-1]:
            if why.cause in (Cause.TOO_FEW_SPINDLES, Cause.ONLY_PLAIN):
                yield f"{name} is left out of the tiered run"
        count = sum(size.count for size in self.not_made)
        if count:
            yield f"tiered: hspace itself counts {count:,} more, which Ganeti does not make there"

    def called(self, group: str | None, names: PairNames) -> GroupCapacity:
        """Return a copy for `group`, whose spec pairs have the names `names`."""
        shown = names.of(group, len(self.specs))
        return replace(self.renamed(dict(enumerate(shown))), group=group)

    def renamed(self, names: Mapping[int, str]) -> GroupCapacity:
        """Return a copy with new names for the spec pairs at these places."""
        specs = tuple(replace(spec, name=names.get(place, spec.name)) for place, spec in enumerate(self.specs))
        extended = self.extended and self.extended.called([spec.name for spec in specs])
        return replace(self, specs=specs, extended=extended)


@dataclass(frozen=True, slots=True)
class CapacityReport(StateReport):
    """The capacity of each group, and of the whole cluster as hspace counts it (None for a request of one group).

    `what_if` says what is counted otherwise than by Ganeti on request, `policy_limits` what other values of the policy
    would give where its numbers limit (on request).
    """

    groups: tuple[GroupCapacity, ...]
    cluster: GroupCapacity | None
    notes: tuple[str, ...] = ()
    metadata: tuple[MetadataRoom, ...] = ()
    policy_limits: tuple[PolicyLimit, ...] = ()


def capacity(  # noqa: PLR0913 (each is a choice of its own)
    state: ClusterState,
    *,
    group: str | None = None,
    template: str | None = None,
    names: PairNames | None = None,
    limits: Limits = NO_LIMITS,
    declared: bool = False,
    weights: Weights = WEIGHTS,
    other_values: bool = False,
    observer: Observer | None = None,
) -> CapacityReport:
    """Count the instances that fit on the cluster in `state`, in all groups or in `group`.

    `template` is the disk template of the instances, by default the first enabled one that the group allows. `names`
    are the names of the spec pairs. Each group that has limits beyond those of htools is also counted under them;
    `limits` replace those that the policy declares. `declared` counts with what hv_state and disk_state declare also
    where it is measured. `weights` are those of the score. With `other_values`, what a number of the policy limits is
    counted with another value as well. Raise UsageError for an unknown group or a template that is not enabled, and
    GpolicyError if the state lacks needed figures.
    """
    check_group(state, group)
    wanted = wanted_template(template, enabled_templates(state)) if template else None
    in_force = limits_in_force(state, limits, group)
    state = limited(state, limits)
    loaded = load_state(state, template=wanted, declared=declared, group=group)
    if weights != WEIGHTS:
        loaded = loaded.with_weights(weights)
    notes = basis_notes(loaded.settled, loaded.whole.cluster, group, declared=declared)
    for item in loaded.data.groups:
        if group in (None, item.name):
            notes += map(counted_on_primary, split_instances(loaded.data, item.index))
    notes += unknown_volumes(state, smallest_volumes(state), group)
    notes += what_if_shares(state, group)
    tell, called = observer or (lambda _what: None), names or PairNames()
    chosen = {name: cluster for name, cluster in loaded.groups.items() if group in (None, name)}
    titles = {cluster: f"group {name}: " for name, cluster in chosen.items()}
    whole = {loaded.whole: "the whole cluster: "} if group is None else {}
    found = each_cluster(whole | titles, lambda cluster, title: count_cluster(cluster, prefixed(tell, title)))
    strict = {cluster: title for cluster, title in titles.items() if cluster.limits.beyond_htools}
    under = each_cluster(
        strict, lambda cluster, title: extended_capacity(cluster, state.instances, prefixed(tell, title))
    )
    found |= {cluster: replace(found[cluster], extended=under[cluster]) for cluster in under}
    groups = tuple(found[cluster].called(name, called) for name, cluster in chosen.items())
    as_a_whole = None
    if group is None:
        same = groups[0] if loaded.whole in titles else found[loaded.whole].called(None, called)
        as_a_whole = replace(same, group=None, extended=None)
    metadata = metadata_rooms(state, group)
    empty = {name: cluster for name, cluster in chosen.items() if not found[cluster].most_fits}
    filled = {name: cluster for name, cluster in chosen.items() if found[cluster].most_fits}
    notes += filter(None, (refused_by_hail(cluster, name) for name, cluster in filled.items()))
    notes += filter(None, (placed_by_hail_only(cluster, name) for name, cluster in empty.items()))
    notes += [said for item in groups for room in metadata if (said := _beyond(item, room))]
    numbers: list[PolicyLimit] = []
    for one, cluster in zip(groups if other_values else (), chosen.values(), strict=False):
        tell(f"group {one.group}: what other numbers of the policy would give")
        numbers += policy_limits(one, cluster, state.instances)
    return CapacityReport(
        source=state.source,
        cluster_name=state.name,
        basis=loaded.basis(group),
        groups=groups,
        cluster=as_a_whole,
        notes=tuple(notes),
        snapshot=state.snapshot,
        metadata=metadata,
        policy_limits=tuple(numbers),
        limits=in_force,
        what_if=(*state.supposed, *other_weights(weights)),
    )


def policy_limits(
    item: GroupCapacity, counted: CountedCluster, instances: Mapping[str, Observed]
) -> Iterator[PolicyLimit]:
    """Yield what other values would give where a number of the policy limits a count of the group `item`."""
    group, std = item.group or "", SpecPair(item.std, item.std)
    rows = [(pair_title(one.name), one.pair, one.fit) for one in item.specs]
    for title, pair, fit in (*rows, ("standard", std, item.standard)):
        if found := limit_of(group, title, counted, counted.largest(pair), fit):
            yield found
    if item.extended is None:
        return
    under = zip((*rows, ("standard", std, item.standard)), item.extended.fits, strict=False)
    for (title, pair, _), one in under:
        use = counted.spindle_use(pair)
        fit, count = Fit(one.fits, one.binding), partial(extended_fit, pair=pair, spindle_use=use, instances=instances)
        if found := declared_limit_of(group, f"{title} under the limits", counted, fit, count):
            yield found


def refused_by_hail(counted: CountedCluster, group: str) -> str | None:
    """Return the note on a group where hspace counts instances, if hail refuses each: it asks for more (GlobalN1.hs).

    hspace skips offline nodes, and tests N+1 of mirrored instances only for many at once, as long as that holds. hail
    tests it for each one, except where all nodes have exclusive storage.
    """
    cluster = counted.cluster
    dedicated = all(node.facts.exclusive for node in cluster.nodes.values())
    if dedicated or is_redundant(cluster.nodes, cluster.instances, CapacityRules()):
        return None
    away = any(node.facts.offline and (node.primaries or node.secondaries) for node in cluster.nodes.values())
    why = (
        "a node that is offline or drained has instances for which there is no room elsewhere"
        if away
        else "the loss of a node cannot be absorbed even now (`gpolicy place` names the node and the instance)"
    )
    return f"group {group}: hspace counts these, but hail refuses every new instance there now (n1-capacity): {why}"


def _beyond(item: GroupCapacity, room: MetadataRoom) -> str | None:
    """Return what to say where more DRBD disks are counted than have room for their metadata."""
    if room.group != item.group or item.template is not DiskTemplate.DRBD:
        return None
    if room.disks is None or room.disks >= item.most_fits:
        return None
    return (
        f"group {room.group}: volume group {room.volume_group} has room for the metadata of {room.disks:,} more DRBD"
        " disks, fewer than are counted: no count looks at it"
    )


def spec_values(spec: Spec) -> dict[str, int]:
    """Return a spec by Ganeti's names (sizes in MiB)."""
    values = (spec.memory, spec.cpus, spec.disk_size, spec.disk_count, spec.nic_count, spec.spindle_use)
    return dict(zip(SPEC_PARAMETERS, values, strict=True))


def prefixed(tell: Observer, prefix: str) -> Observer:
    """Return an observer that passes messages to `tell`, with `prefix` before them."""
    return lambda what: tell(f"{prefix}{what}")


def count_cluster(counted: CountedCluster, tell: Observer) -> GroupCapacity:
    """Count on one cluster; the names of its spec pairs are their places."""
    policy, std = counted.policy, counted.policy.std
    state = counted.initial
    sizes, refused = [], None
    # counts that continue the tiered run come first: the engine forgets it when another count begins
    for number, pair in enumerate(policy.minmax, start=1):
        tell(f"spec pair {number} of {len(policy.minmax)}")
        before = len(state.placed)
        refused = counted.refusal(counted.largest(pair))
        if refused is None:
            state = counted.tiered(state, pair.max, std.spindle_use)
        sizes.append(_sizes(filter(counted.is_made, reversed(state.placed[: len(state.placed) - before]))))
    last = policy.minmax[-1].max if policy.minmax else std
    tiered_binding = counted.find_tiered_binding(state, last, std.spindle_use)
    if refused is not None and state is counted.initial:  # no pair was tried
        tiered_binding = Binding(refused.cause, detail=refused.sentence)
    stranded = Stranded(room(counted.initial.nodes.values()), room(counted.fill_with_minimums(state).nodes.values()))
    tell("standard instances")
    specs = []
    for number, (pair, placed) in enumerate(zip(policy.minmax, sizes, strict=True), start=1):
        use = counted.spindle_use(pair)
        fit = counted.standard(pair.max, use)
        specs.append(SpecCapacity(str(number), pair, use, fit.fits, fit.binding, placed))
    return GroupCapacity(
        group=None,
        template=counted.template,
        nodes=len(counted.data.nodes),
        instances=len(counted.data.instances),
        specs=tuple(specs),
        tiered=_sizes(filter(counted.is_made, reversed(state.placed))),
        tiered_binding=tiered_binding,
        not_made=_sizes(filterfalse(counted.is_made, reversed(state.placed))),
        std=std,
        standard=counted.standard(std, std.spindle_use),
        score=score_of(counted.initial.nodes.values(), counted.weights),
        stranded=stranded,
    )


def _sizes(placed: Iterable[Instance]) -> tuple[PlacedSize, ...]:
    """Return runs of equal sizes in the order of placement."""
    runs: list[PlacedSize] = []
    for instance in placed:
        size = PlacedSize(instance.memory, instance.disk, instance.vcpus, instance.total_spindles or 0, 1)
        if runs and replace(runs[-1], count=1) == size:
            runs[-1] = replace(size, count=runs[-1].count + 1)
        else:
            runs.append(size)
    return tuple(runs)
