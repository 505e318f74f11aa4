"""What the nodes of a group give: their volumes, and the bounds of specs that are above what the largest node has."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.pairs import Pair, amount, comparable
from gpolicy.cluster.state import LiveNode, Resources
from gpolicy.cluster.terms import VOLUME_GROUP, VolumeSize, VolumeTerms
from gpolicy.cluster.volume_pools import VolumePool, VolumePools, volume_pools
from gpolicy.findings import Located, Related, Role, Span
from gpolicy.ganeti.amounts import SIZE_STEP_MIB
from gpolicy.ganeti.htools_reading import hail_parameters
from gpolicy.ganeti.vocabulary import ALLOWED_TEMPLATES, ENABLED_HYPERVISORS, HYPERVISORS, VCPU_RATIO, Path
from gpolicy.policy.model import ClusterPolicy, GroupPolicy, Hardware, Leaf
from gpolicy.resolve.desired import volume_terms
from gpolicy.rules.shared import in_force, of_cluster

_TOLERANCE_PERCENT: Final = 3  # margin and reserve together: as exact as volumes of one size are
SHARES: Final = {"full": 1, "whole": 1, "half": 2, "third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8}
"""Names of specs that say how many of them a node is to hold."""

MOST_COMPARED: Final = 20_000
"""Of the specs that are compared with what nodes give, group by group."""
SPARED: Final = frozenset({"memory-size", "disk-size"})
"""Of these the allocator requires some to stay free."""
METAVG: Path = ("diskparams", "drbd", "metavg")


@dataclass(frozen=True, slots=True)
class NodeLimit:
    """The most of a spec's parameter that a node of a group gives to instances, after `kept` for itself.

    `span` is the place of the promise; None if it is what the observed nodes have. `ratio` has been multiplied in.
    `figures` are the values of the policy that decide it beside the promise.
    """

    parameter: str
    most: float
    kept: int
    span: Span | None
    ratio: float = 1
    figures: tuple[Leaf, ...] = ()

    @property
    def places(self) -> tuple[Related, ...]:
        """Where the policy says what decides the limit."""
        promised = (Related(self.span, "the hardware is promised here"),) if self.span is not None else ()
        return (*promised, *(Related(leaf.span, f"{leaf.path[-1]} is here") for leaf in self.figures))

    @property
    def whole(self) -> int:
        """What there is, with what the node keeps."""
        return int(self.most) + self.kept

    @property
    def usable(self) -> int:
        """The most that all instances of a node can have together."""
        return int(self.most) - (1 if self.parameter in SPARED else 0)


@dataclass(frozen=True, slots=True)
class Excess:
    """A bound of a pair (`min` or `max`) above a limit. `disks`: it is the size of so many disks together."""

    pair: Pair
    bound: str
    parameter: str
    wanted: int
    limit: NodeLimit
    disks: int = 1

    @property
    def place(self) -> Span:
        """Where the number stands that is too great."""
        return self.pair.at(self.bound, self.parameter)

    @property
    def missing(self) -> str:
        """What all groups lack whose nodes have less than the same number."""
        return f"room for {self.place}"

    def sentence(self, of_whom: str) -> str:
        """Return what is wrong: `spec big: memory-size 96G is more than a node has (64G)`."""
        name = self.limit.parameter
        what, verb = f"{self.parameter} {amount(name, self.wanted)}", "is"
        if self.disks > 1:
            what, verb = f"{self.disks} disks of {amount(name, self.wanted // self.disks)}", "are"
        kept, ratio = self.limit.kept, self.limit.ratio
        total = self.limit.most + kept
        cpus = f"{total / (ratio or 1):g} CPU{'' if total == ratio else 's'}"
        product = f"{cpus} times vcpu-ratio {ratio:g}" if ratio not in (0, 1) else ""
        keeps = (f"; {product}" if product else "") + (f"; it keeps {amount(name, kept)}" if kept else "")
        if self.limit.most <= 0 < kept:
            has = f"{total:g} ({product})" if product else amount(name, max(int(total), 0))
            gives = f"{of_whom} gives, which has {has} and keeps {amount(name, kept)}"
            return f"{self.pair.title}: {what} {verb} more than {gives}"
        if self.wanted == self.limit.most:
            return f"{self.pair.title}: {what} {verb} all that {of_whom} has{keeps}, and some must stay free"
        return f"{self.pair.title}: {what} {verb} more than {of_whom} has ({amount(name, int(self.limit.most))}{keeps})"

    def cure(self, context: Context, most: int) -> str:
        """Return what parts the number from a limit of `most`, so that no other rule is against it.

        A slip that makes sizes overlap is the likelier one.
        """
        slip = (item.finding.hint for item in context.found_with(Role.OVERLAP) if item.finding.span == self.place)
        size = writable(self.parameter, most // self.disks)
        bounds = "min and max" if self.pair.minimum[self.parameter] > size else "the maximum"
        lower = f"lower {bounds} to {amount(self.parameter, size)} or less" if size > 0 else "lower the maximum"
        return next(slip, lower)


def writable(parameter: str, most: int) -> int:
    """Return the greatest number up to `most` that Ganeti takes as it is; large sizes in whole GiB, to be read."""
    return most - most % (1 if parameter not in SPARED else 1024 if most >= 100 * 1024 else SIZE_STEP_MIB)


def excesses_by_group(context: Context) -> dict[str, tuple[Excess, ...]]:
    """Return the bounds of specs above what a group's largest node gives, by group; none beyond MOST_COMPARED specs."""
    found: dict[str, tuple[Excess, ...]] = {}
    compared = 0
    for group in context.groups:
        compared += len(context.pairs(group)) if group.hardware or context.members.hosts_in(group) else 0
        if compared > MOST_COMPARED:
            break
        like = context.alike[group.name] if context.state is None else group
        found[group.name] = tuple(_excesses(context, group)) if like is group else found[like.name]
    return found


def _excesses(context: Context, group: GroupPolicy) -> Iterator[Excess]:
    """Yield the bounds of a group's pairs that are above what its largest node gives; a max only if its min is not."""
    pairs = comparable(context.pairs(group))
    exclusive = context.exclusive(group) is not None
    volume = promised_size(context, group, group.hardware) if group.hardware else None
    too_many_cpus: list[Pair] = []
    for limit in limits(context, group) if pairs else ():
        name = limit.parameter
        for pair in pairs:
            disks = max(pair.minimum["disk-count"], 1) if name == "disk-size" else 1
            for bound, values in (("min", pair.minimum), ("max", pair.maximum)):
                wanted = values[name] * disks
                if name == "spindle-use" and bound == "min" and volume is not None:
                    wanted = max(wanted, pair.minimum["disk-count"] * volume.needed(pair.minimum["disk-size"]))
                full = wanted == limit.most and name in SPARED and (bound == "min" or not exclusive)  # else GP415
                if wanted > limit.most or full:
                    yield Excess(pair, bound, name, wanted, limit, disks)
                    if name == "cpu-count":
                        too_many_cpus.append(pair)
                    break
    yield from _beyond_cpus(context, group, [pair for pair in pairs if pair not in too_many_cpus])


def _beyond_cpus(context: Context, group: GroupPolicy, pairs: list[Pair]) -> Iterator[Excess]:
    """Yield pairs with more virtual CPUs than any node has CPUs: a ratio above 1 allows that, but these CPUs wait."""
    ratio = in_force(context, group, VCPU_RATIO)
    promised = group.hardware.cpus if group.hardware else None
    cpus = [node.resources.cpu_total or 0 for node in context.members.hosts_in(group)]
    has = promised.value if promised is not None else max(cpus) if cpus and all(cpus) else 0
    times = ratio.number if ratio is not None else 0
    for pair in pairs if has and times > 1 else ():
        if pair.maximum["cpu-count"] > has:
            limit = NodeLimit("cpu-count", has, 0, promised.span if promised is not None else None)
            yield Excess(pair, "max", "cpu-count", pair.maximum["cpu-count"], limit)


def limits(context: Context, group: GroupPolicy) -> Iterator[NodeLimit]:
    """Yield the limits of a group: of its hardware where it promises some, else of its observed nodes."""
    hardware = group.hardware
    nodes = context.members.hosts_in(group)
    exclusive = context.exclusive(group)
    ratio = in_force(context, group, VCPU_RATIO)
    times = ratio.number if ratio is not None else 0
    cpus_kept = kept_by_node(context, group, "cpu_node")
    cpus = total_of(cpus_kept)
    if hardware and hardware.memory:
        limit = memory_limit(context, group, hardware.memory)
        yield replace(limit, most=limit.whole, kept=0, figures=()) if exclusive else limit  # GP415 counts it there
    else:
        figures = kept_by_node(context, group, "mem_node", "mem_hv")
        memory = _kept_memory(context, figures)
        for limit in _observed("memory-size", nodes, lambda had: (had.memory_total, max(memory, had.memory_node or 0))):
            yield replace(limit, figures=figures)
    multiplied = (ratio.leaf,) if ratio is not None and ratio.leaf is not None and times != 1 else ()
    if hardware and hardware.cpus and times:
        limit = promised_limit("cpu-count", hardware.cpus, () if exclusive else cpus_kept, times)
        yield replace(limit, figures=(*multiplied, *limit.figures))
    elif times:
        for limit in _observed(
            "cpu-count", nodes, lambda had: (times * (had.cpu_total or 0), max(cpus, had.cpu_node or 0)), times
        ):
            yield replace(limit, figures=multiplied)
    allowed = context.effective(group, ALLOWED_TEMPLATES)
    if allowed is not None and {"plain", "drbd"}.isdisjoint(allowed.texts):
        return
    disk = total_disk(hardware, terms_in(context, group) if exclusive else None) if hardware else None
    disk_kept = () if exclusive else kept_disk(context, group)
    kept = total_of(disk_kept)
    if hardware and disk is not None:
        yield NodeLimit("disk-size", disk - kept, kept, hardware.pv_sizes[0].span, figures=disk_kept)
    elif not exclusive:
        yield from _observed("disk-size", nodes, lambda had: (had.disk_total, kept))
    if exclusive and hardware and hardware.volume_count is not None:
        yield NodeLimit("spindle-use", hardware.volume_count, 0, hardware.span, figures=(exclusive,))
    elif exclusive and nodes and all(node.physical_volumes for node in nodes):
        yield NodeLimit("spindle-use", max(own_pool(context, group, node).count for node in nodes), 0, None)


def promised_limit(parameter: str, promised: Located[int], kept: tuple[Leaf, ...], times: float = 1) -> NodeLimit:
    """Return the limit of what is promised, `times` over, less what is `kept` of it."""
    most = promised.value * times - total_of(kept)
    return NodeLimit(parameter, most, total_of(kept), promised.span, times, kept)


def memory_limit(context: Context, group: GroupPolicy, promised: Located[int]) -> NodeLimit:
    """Return what a node gives of the promised memory."""
    figures = kept_by_node(context, group, "mem_node", "mem_hv")
    kept = _kept_memory(context, figures)
    return NodeLimit("memory-size", promised.value - kept, kept, promised.span, figures=figures)


def _kept_memory(context: Context, declared: tuple[Leaf, ...]) -> int:
    """Return what a node keeps of its memory: what hv_state says, else what hail counts."""
    return total_of(declared) if declared else context.once(_counted_by_hail)


def _counted_by_hail(context: Context) -> int:
    """Return the MiB that hail counts as kept by each node: none but on KVM."""
    enabled = of_cluster(context, ENABLED_HYPERVISORS)
    if enabled is None or enabled.texts[:1] != ("kvm",):
        return 0
    given = of_cluster(context, ("default_iallocator_params",))
    return max(hail_parameters(given.value if given else None).static_kvm_node_memory, 0)


def _observed(
    parameter: str, nodes: list[LiveNode], gives: Callable[[Resources], tuple[float | None, int]], times: float = 1
) -> Iterator[NodeLimit]:
    """Yield the limit of the largest of the nodes; none if one of them was not measured."""
    found = [gives(node.resources) for node in nodes]
    if found and all(total for total, _ in found):
        most, kept = max(((total or 0) - kept, kept) for total, kept in found)
        yield NodeLimit(parameter, most, kept, None, times)


def total_disk(hardware: Hardware, exclusive: VolumeTerms | None = None) -> int | None:
    """Return the MiB of a node's volumes at most, less margin and reserve if `exclusive`; None where not said."""
    sizes = [size.value for size in hardware.pv_sizes]
    count = hardware.volume_count
    if not sizes or count is None:
        return None
    if exclusive is not None:
        return exclusive.volume_size(min(sizes)).largest_disk(count)
    return sum(sizes) if count == len(sizes) else count * max(sizes)


def promised_disk(hardware: Hardware) -> Located[int] | None:
    """Return the promised disk of a node, MiB: the sum of its volumes; None if they are not promised."""
    sizes, count = hardware.pv_sizes, hardware.volume_count
    if not sizes or count is None:
        return None
    total = sum(size.value for size in sizes) if len(sizes) > 1 else sizes[0].value * count
    return Located(total, sizes[0].span)


def total_of(leaves: tuple[Leaf, ...]) -> int:
    """Return what leaves of sizes or counts come to together."""
    return sum(int(leaf.number) for leaf in leaves)


def kept_by_node(context: Context, group: GroupPolicy, *names: str) -> tuple[Leaf, ...]:
    """Return what hv_state says that a node keeps: of the hypervisors, the one with the greatest sum."""
    if not any(path[0] == "hv_state" for path in context.declared_at):
        return ()
    paths = [[("hv_state", item, name) for name in names] for item in HYPERVISORS]
    found = [[context.effective(group, path) for path in of_one] for of_one in paths if context.declares(*of_one)]
    kept = (tuple(leaf for leaf in leaves if leaf is not None) for leaves in found)
    return max(kept, key=lambda kept: (total_of(kept), len(kept)), default=())


def volume_group(context: Context) -> str:
    """Return the cluster's volume group, or nothing where it is not known."""
    found = of_cluster(context, VOLUME_GROUP)
    return str(found.value) if found is not None else ""


def kept_disk(context: Context, group: GroupPolicy) -> tuple[Leaf, ...]:
    """Return how much disk_state keeps free, or gives to others, of the cluster's volume group."""
    paths = [("disk_state", "plain", volume_group(context), name) for name in ("disk_reserved", "disk_overhead")]
    return tuple(leaf for path in paths if (leaf := context.effective(group, path)) is not None)


def terms_in(context: Context, declared: ClusterPolicy | GroupPolicy) -> VolumeTerms:
    """Return what counts of the volumes of the cluster or a group."""
    return volume_terms(context.policy.cluster, declared)


def promised_size(context: Context, group: GroupPolicy, hardware: Hardware) -> VolumeSize | None:
    """Return how the promised volumes of a group count; None where no size is promised, or nothing of it counts."""
    sizes = [size.value for size in hardware.pv_sizes]
    found = terms_in(context, group).volume_size(min(sizes)) if sizes else None
    return found if found is not None and found.usable > 0 else None


def pools_in(context: Context, group: GroupPolicy, node: LiveNode) -> VolumePools | None:
    """Return the pools of a node that is to be in `group`; None if its volumes were not read."""
    if node.physical_volumes is None:
        return None
    return volume_pools(node.physical_volumes, terms_in(context, group), volume_group(context))


def own_pool(context: Context, group: GroupPolicy, node: LiveNode) -> VolumePool:
    """Return the volumes of a node in the cluster's volume group; an empty pool if they were not read."""
    pools = pools_in(context, group, node)
    return pools.own if pools is not None else VolumePool()


def is_whole(volume: VolumeSize, size: int) -> bool:
    usable = volume.largest_disk(volume.needed(size))
    return (usable - size) * 100 <= usable * _TOLERANCE_PERCENT


def shares(context: Context, group: GroupPolicy, hardware: Hardware) -> Iterator[NodeLimit]:
    """Yield what a node of a dedicated group gives: memory, disk, and CPUs where they are not shared."""
    if hardware.memory:
        yield memory_limit(context, group, hardware.memory)
    disk = total_disk(hardware, terms_in(context, group))
    if disk is not None:
        yield NodeLimit("disk-size", disk, 0, (hardware.smallest_volume or hardware).span)
    ratio = context.effective(group, VCPU_RATIO)
    if hardware.cpus and ratio is not None and 0 <= ratio.number <= 1:
        said = kept_by_node(context, group, "cpu_node")
        seen = [node.resources.cpu_node for node in context.members.hosts_in(group)]
        # without a cluster the 1 that Ganeti counts
        kept = total_of(said) if said else min((cpus for cpus in seen if cpus is not None), default=1)
        cpus = hardware.cpus.value
        allowed = int(cpus * ratio.number) + 1
        while allowed / cpus > ratio.number:  # as the allocator compares: a product may round the other way
            allowed -= 1
        multiplied = (ratio,) if ratio.number != 1 else ()
        yield NodeLimit("cpu-count", allowed - kept, kept, hardware.cpus.span, figures=(*multiplied, *said))


def most_of_size(context: Context, group: GroupPolicy, pair: Pair, name: str, usable: float) -> float:
    """Return the most that a size may have of what a node gives, `usable`: a share, if a dedicated size is named so."""
    if group.hardware is None or not context.exclusive(group):
        return usable
    given = (share.usable for share in shares(context, group, group.hardware) if share.parameter == name)
    return next(given, usable) / SHARES.get((pair.name or "").lower(), 1)
