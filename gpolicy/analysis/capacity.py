"""How many more instances fit, by group and size, and why the next one does not.

What fits is what hail accepts, one instance after the other, with its N+1 test and the limits of the policy: in each
group by requests that name the group, in the whole cluster by requests that name none. The figures of `hspace`, for
which each group is a cluster of its own (`group_data`), stand beside them.

For a size alone, an instance at the pair's maximum is placed repeatedly; tiered allocation uses all pairs in the
order of the policy and shrinks what no longer fits. An instance has one disk, and the spindle use of `std` or the
nearest value that the pair allows. Sources: design documents "partitioned Ganeti", "dedicated allocation" and
"resource model"; hspace(1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from gpolicy.allocator.cluster_data import DiskTemplate, Instance, Spec, SpecPair
from gpolicy.allocator.cluster_score import WEIGHTS, Weights
from gpolicy.allocator.engines import TooLongError, is_redundant
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.analysis import loaded_state
from gpolicy.analysis.allocator_input import Unknown
from gpolicy.analysis.basis import Settled, StateReport, node_uses, origin_of
from gpolicy.analysis.binding import Binding, Cause, Stranded, room
from gpolicy.analysis.counted_cluster import CountedCluster, Fit
from gpolicy.analysis.hail import as_reported, reports_disk
from gpolicy.analysis.loaded_state import LoadedState
from gpolicy.analysis.node_resources import MetadataRoom, groups_of_unknown_volumes, metadata_rooms, what_if_shares
from gpolicy.analysis.policy_limits import OF_HTOOLS, Cure, PolicyLimit, declared_limit_of, find_cure, limit_of
from gpolicy.analysis.shown_score import Score, other_weights, score_of
from gpolicy.analysis.side_by_side import each_cluster, side_by_side
from gpolicy.analysis.size_words import pair_title
from gpolicy.analysis.wanted_instance import enabled_templates, wanted_template
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import NO_LIMITS, Limits, PairNames, limited, limits_in_force
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS
from gpolicy.progress import Tell, silent

_LIMITS_DIFFER = "the whole cluster is not counted: its groups have different limits"


@dataclass(frozen=True, slots=True)
class PlacedSize:
    """The size of placed instances (MiB of memory and disk, virtual CPUs, spindles) and their number."""

    memory: int
    disk: int
    cpus: int
    spindles: int
    count: int


@dataclass(frozen=True, slots=True)
class PairCapacity:
    """One size: `fits` instances at its maximum fit on the present cluster, `tiered` ones in the tiered run.

    `hspace` is how many hspace counts at its maximum. Where moves were looked for, `after_moves` fit after those that
    were found, and `at_most` are never exceeded, whatever instances move.
    """

    name: str
    pair: SpecPair
    spindle_use: int
    fits: int
    binding: Binding
    tiered: tuple[PlacedSize, ...]
    hspace: int
    after_moves: int | None = None
    at_most: int | None = None

    @property
    def fit(self) -> Fit:
        """The number of instances that fit at its maximum."""
        return Fit(self.fits, self.binding, self.pair.largest)


@dataclass(frozen=True, slots=True)
class GroupCapacity:
    """The capacity of a group, or of the whole cluster if `group` is None.

    `least` are instances at the minimums of the pairs that fit after the tiered run.

    `template` is None if no enabled template is allowed. `tiered` are runs of equal sizes in the order of placement;
    `tiered_binding` tells why they ended. `hspace_tiered` and `hspace_standard` are hspace's numbers. `stranded` are
    resources that no allowed instance can use; `limits` are those of the policy, which all figures but hspace's keep.
    `cure` is what makes a group take instances that takes none, where something is found.
    """

    group: str | None
    template: DiskTemplate | None
    nodes: int
    instances: int
    specs: tuple[PairCapacity, ...]
    tiered: tuple[PlacedSize, ...]
    tiered_binding: Binding
    least: Fit
    std: Spec
    standard: Fit
    score: Score
    hspace_tiered: tuple[PlacedSize, ...]
    hspace_standard: int
    stranded: Stranded | None = None
    limits: Limits = NO_LIMITS
    cure: Cure | None = None

    @property
    def tiered_fit(self) -> Fit:
        """The number of instances that fit in the tiered run."""
        memory = sum(size.count * size.memory for size in self.tiered)
        return Fit(sum(size.count for size in self.tiered), self.tiered_binding, run_memory=memory)

    @property
    def figures(self) -> list[tuple[str, Fit, int]]:
        """What fits of each size, in the tiered run and of the standard size, by name, and hspace's number."""
        hspace = sum(size.count for size in self.hspace_tiered)
        rest = [("tiered", self.tiered_fit, hspace), ("standard", self.standard, self.hspace_standard)]
        return [*((size.name, size.fit, size.hspace) for size in self.specs), *rest]

    @property
    def most_fits(self) -> int:
        """The greatest number of instances that fit: of a size, standard or least ones, or in the tiered run."""
        return max(self.least.fits, *(fit.fits for _, fit, _ in self.figures))

    @property
    def is_closed(self) -> bool:
        """Whether it takes nothing on purpose: it is unallocable."""
        return self.least.binding.cause is Cause.CLOSED

    @property
    def refusal(self) -> Binding | None:
        """Why it takes no new instance at all; None if it takes one, or is closed on purpose."""
        if self.most_fits or not self.nodes or self.is_closed:
            return None
        found = [self.least.binding, self.tiered_binding, *(size.binding for size in self.specs), self.standard.binding]
        return next((one for one in found if one.cause is Cause.BROKEN), found[0])

    @property
    def refusal_words(self) -> str:
        """Why it takes no new instance, and what would cure that; empty if it takes one."""
        why = self.refusal
        if why is None:
            return ""
        said = why.detail or f"{why.cause.key} ({why.cause.sentence})"
        if self.cure is None:
            moves = reports_disk(self.template)
            way_out = "gpolicy remedy may find moves" if moves else "name the node (gnt-instance add -n)"
            return f"{said}; {way_out}" if why.cause is Cause.BROKEN else said
        counts = zip(self.specs, self.cure.fits, strict=True)
        fits = ", or ".join(f"{fits:,} {pair_title(size.name)}" for size, fits in counts if fits)
        return f"{said}. With {', '.join(self.cure.changes)}: {fits or f'{self.cure.standard:,} standard'}"

    def called(self, group: str | None, names: PairNames) -> GroupCapacity:
        """Return a copy for `group`, whose sizes have the names `names`."""
        shown = names.of(group, len(self.specs))
        return replace(self.renamed(dict(enumerate(shown))), group=group)

    def renamed(self, names: Mapping[int, str]) -> GroupCapacity:
        """Return a copy with new names for the sizes at these places."""
        specs = tuple(replace(size, name=names.get(place, size.name)) for place, size in enumerate(self.specs))
        return replace(self, specs=specs)


@dataclass(frozen=True, slots=True)
class CapacityReport(StateReport):
    """The capacity of each known group, and of the whole cluster as hspace counts it.

    `cluster` is None for a request of one group, and where a group is not known or groups have different limits.

    `what_if` says what is counted otherwise than by Ganeti on request, `policy_limits` what other values of the policy
    would give where its numbers limit (on request). Of the groups `unchecked`, no spindles are checked. In the groups
    `without_disk`, hail refuses a request for the template, since Ganeti tells it of no disk; here disk counts.
    """

    groups: tuple[GroupCapacity, ...]
    cluster: GroupCapacity | None
    notes: tuple[str, ...] = ()
    metadata: tuple[MetadataRoom, ...] = ()
    policy_limits: tuple[PolicyLimit, ...] = ()
    unchecked: tuple[str, ...] = ()
    without_disk: tuple[str, ...] = ()


_UNCHECKED = (
    "the size of its physical volumes is not known, so the spindles of disks are not checked; read them (gpolicy"
    " snapshot --physical-volumes), or write pv_size and pv_count in the group's hardware"
)


def capacity(  # noqa: PLR0913 (each is a choice of its own)
    state: ClusterState,
    *,
    group: str | None = None,
    template: str | None = None,
    names: PairNames | None = None,
    limits: Limits = NO_LIMITS,
    resource_model: bool = False,
    weights: Weights = WEIGHTS,
    other_values: bool = False,
    settled: Settled | None = None,
    tell: Tell = silent,
) -> CapacityReport:
    """Count the instances that fit on the cluster in `state`, in all groups or in `group`.

    `template` is the disk template of the instances, by default the first of the policy that is enabled. `names` are
    the names of the sizes. `limits` replace those that the policy declares. With `resource_model`, what hv_state and
    disk_state declare goes before measured figures. `weights` are those of the score. With `other_values`, what a
    number of the policy limits is counted with another value as well. `settled` is what `settle` makes of the state,
    where that is known already. Raise RequestError for an unknown group or a template that is not
    enabled, and GpolicyError if nothing is known of the group, or of any, or counting takes minutes.
    """
    in_force = limits_in_force(state, limits, group)
    state = limited(state, limits)
    settled = settled and replace(settled, state=limited(settled.state, limits))
    loaded_state.check_group(state, group)
    wanted = wanted_template(template, enabled_templates(state)) if template else None
    loaded = loaded_state.load_state(
        state, template=wanted, resource_model=resource_model, group=group, weights=weights, settled=settled
    )
    unchecked = [name for name in groups_of_unknown_volumes(state, group) if name not in loaded.settled.unknown]
    notes = _notes(state, loaded, group, unchecked, resource_model=resource_model)
    groups, unknown, whole = _count_groups(loaded, group, names or PairNames(), tell)
    if isinstance(whole, TooLongError):
        notes.append(f"the whole cluster is not counted: {whole.message}")
    metadata = metadata_rooms(state, group)
    notes += [said for item in groups.values() for room in metadata if (said := _beyond(item, room))]
    numbers = _other_values(loaded, groups, tell, notes) if other_values else ()
    return CapacityReport(
        **origin_of(state, other_weights(weights)),
        basis=loaded.basis(group),
        groups=tuple(groups.values()),
        cluster=whole if isinstance(whole, GroupCapacity) else None,
        notes=tuple(notes),
        metadata=metadata,
        policy_limits=tuple(numbers),
        unchecked=tuple(unchecked),
        without_disk=tuple(name for name in groups if _hail_refuses(loaded.groups[name])),
        limits=in_force,
        unknown=unknown,
        nodes_before=node_uses(state, (loaded.groups[group] if group else loaded.whole).cluster.nodes.values(), group),
    )


def _notes(
    state: ClusterState, loaded: LoadedState, group: str | None, unchecked: Iterable[str], *, resource_model: bool
) -> list[str]:
    """Return what is to be said of the figures that a count rests on, and of what it leaves out."""
    settled = loaded.settled
    notes = loaded_state.basis_notes(settled, loaded.whole.cluster, group, resource_model=resource_model)
    for item in settled.data.groups:
        if group in (None, item.name):
            notes += map(loaded_state.counted_on_primary, loaded_state.split_instances(settled.data, item.index))
    notes += [f"group {name}: {_UNCHECKED}" for name in unchecked]
    notes += what_if_shares(state, group)
    return [*notes, _LIMITS_DIFFER] if group is None and loaded.limits_differ else notes


def _count_groups(
    loaded: LoadedState, group: str | None, names: PairNames, tell: Tell
) -> tuple[dict[str, GroupCapacity], dict[str, Unknown], GroupCapacity | TooLongError | None]:
    """Return what fits in each group, or in `group` alone; why other groups do not count; what fits in the cluster.

    The whole cluster is counted if all its groups are, and have the same limits. Raise TooLongError if no group is
    counted in time.
    """
    chosen = {name: cluster for name, cluster in loaded.groups.items() if group in (None, name)}
    unknown = {} if group else dict(loaded.settled.unknown)
    too_slow = {name: cluster.too_slow for name, cluster in chosen.items() if cluster.too_slow}
    titles = {cluster: f"group {name}: " for name, cluster in chosen.items() if name not in too_slow}
    with_whole = group is None and not unknown and not too_slow and not loaded.limits_differ
    if with_whole:
        titles = {loaded.whole: "the whole cluster: ", **titles}  # a group that is the whole cluster counts once
    found = each_cluster(titles, partial(count_in_time, tell))
    results = {name: found[cluster] for name, cluster in chosen.items() if name not in too_slow}
    groups = {name: item.called(name, names) for name, item in results.items() if isinstance(item, GroupCapacity)}
    too_long = {name: item for name, item in results.items() if isinstance(item, TooLongError)}
    if chosen and not groups:
        raise [*too_slow.values(), *too_long.values()][-1]
    unknown |= {name: Unknown(f"under its limits {why.message}", why.hint or "") for name, why in too_slow.items()}
    unknown |= {name: Unknown(why.message, why.hint or "") for name, why in too_long.items()}
    whole = found[loaded.whole] if with_whole and not unknown else None
    if isinstance(whole, GroupCapacity):
        only = next((name for name, cluster in chosen.items() if cluster is loaded.whole), None)
        whole = whole.called(None, names) if only is None else replace(groups[only], group=None)
    return groups, unknown, whole


def _hail_refuses(counted: CountedCluster) -> bool:
    """Whether hail refuses requests for the template, and that only for what Ganeti tells it of disk."""
    if reports_disk(counted.template) or counted.asked_for or not counted.rules.failures or counted.loss is not None:
        return False
    nodes = as_reported(counted.cluster.nodes, counted.template)
    return not is_redundant(nodes, counted.cluster.instances, counted.rules)


def _other_values(
    loaded: LoadedState, groups: Mapping[str, GroupCapacity], tell: Tell, notes: list[str]
) -> list[PolicyLimit]:
    """Return what other values of the policy would give; `notes` get what could not be tried."""
    found: list[PolicyLimit] = []
    for name, item in groups.items():
        tell(f"group {name}: what other numbers of the policy would give")
        try:
            found += policy_limits(item, loaded.groups[name])
        except TooLongError as error:
            notes.append(f"group {name}: not all other values of the policy are tried: {error.message}")
    return found


def policy_limits(item: GroupCapacity, counted: CountedCluster) -> Iterator[PolicyLimit]:
    """Yield what other values would give where a number of the policy limits a count of the group `item`."""
    group, std = item.group or "", SpecPair(item.std, item.std)
    rows = [(pair_title(one.name), one.pair, one.fit, one.spindle_use) for one in item.specs]
    for title, pair, fit, use in (*rows, ("standard", std, item.standard, item.std.spindle_use)):
        if fit.binding.cause is Cause.BOUNDS:  # the standard size is often none that the group allows
            continue
        if fit.binding.cause in OF_HTOOLS:
            found = limit_of(group, title, counted, counted.largest(pair, use), fit)
        else:
            found = declared_limit_of(group, title, counted, fit, pair, use)
        if found:
            yield found


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


def count_in_time(tell: Tell, counted: CountedCluster, title: str) -> GroupCapacity | TooLongError:
    """Count on one cluster, whose title begins each message to `tell`, or return why that takes too long."""
    try:
        return count_cluster(counted, lambda what: tell(f"{title}{what}"))
    except TooLongError as error:
        return error


def count_cluster(counted: CountedCluster, tell: Tell) -> GroupCapacity:
    """Count on one cluster; the names of its sizes are their places."""
    policy, std, hspace = counted.policy, counted.policy.std, counted.as_hspace
    tasks = [partial(_count, counted, tell), partial(_count, hspace, silent)]
    ours, theirs = [task() for task in tasks] if hspace.as_tested else side_by_side(tasks)
    standard, fits, final, sizes = ours
    hspace_standard, hspace_fits, hspace_final, _ = theirs
    filled, why_full = counted.fill_with_minimums(final)
    stranded = Stranded(room(counted.initial.nodes.values()), room(filled.nodes.values()))
    counts = zip(policy.minmax, fits, sizes, hspace_fits, strict=True)
    specs = [
        PairCapacity(str(number), pair, counted.spindle_use(pair), fit.fits, fit.binding, placed, as_hspace.fits)
        for number, (pair, fit, placed, as_hspace) in enumerate(counts, start=1)
    ]
    last = policy.minmax[-1] if policy.minmax else SpecPair(std, std)
    found = GroupCapacity(
        group=None,
        template=counted.template,
        nodes=len(counted.data.nodes),
        instances=len(counted.data.instances),
        specs=tuple(specs),
        tiered=_runs_of_sizes(filter(counted.is_made, reversed(final.placed))),
        tiered_binding=counted.find_tiered_binding(final, last),
        least=Fit(len(filled.placed) - len(final.placed), why_full),
        hspace_tiered=_runs_of_sizes(reversed(hspace_final.placed)),
        hspace_standard=hspace_standard.fits,
        std=std,
        standard=standard,
        score=score_of(hspace.initial.nodes.values(), counted.weights),
        stranded=stranded,
        limits=counted.limits,
    )
    broken = found.refusal is not None and found.refusal.cause is Cause.BROKEN
    return replace(found, cure=find_cure(counted)) if broken else found


_GroupCounts = tuple[Fit, tuple[Fit, ...], AllocationState, list[tuple[PlacedSize, ...]]]
"""The standard instances that fit, those at the maximum of each pair, the state after the tiered run, its sizes."""


def _count(counted: CountedCluster, tell: Tell) -> _GroupCounts:
    policy = counted.policy
    final, sizes = tiered_run(counted, tell)
    tell("standard instances")
    specs = tuple(counted.fit_pair(pair) for pair in policy.minmax)
    return counted.standard(policy.std, policy.std.spindle_use), specs, final, sizes


def tiered_run(counted: CountedCluster, tell: Tell) -> tuple[AllocationState, list[tuple[PlacedSize, ...]]]:
    """Return the state after the tiered run, and the sizes that were placed for each pair."""
    policy, state, sizes = counted.policy, counted.initial, []
    for number, pair in enumerate(policy.minmax, start=1):
        tell(f"size {number} of {len(policy.minmax)}")
        before = len(state.placed)
        if counted.refusal(counted.largest(pair)) is None:
            state = counted.tiered(state, pair)
        sizes.append(_runs_of_sizes(filter(counted.is_made, reversed(state.placed[: len(state.placed) - before]))))
    return state, sizes


def _runs_of_sizes(placed: Iterable[Instance]) -> tuple[PlacedSize, ...]:
    """Return runs of equal sizes in the order of placement."""
    sizes = ((one.burst, sum(disk.size for disk in one.disks), one.vcpus, one.total_spindles or 0) for one in placed)
    return tuple(PlacedSize(*size, sum(1 for _ in same)) for size, same in groupby(sizes))
