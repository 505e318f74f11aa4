"""Exclusive storage: what it finds on the nodes, and what turning it on or off does to each instance.

Under exclusive storage a physical volume is a spindle, and each disk has whole ones of its own (design document
"partitioned Ganeti"). Five numbers are called spindles, and are kept apart here: the backend parameter `spindle_use`,
the spec parameter `spindle-use`, the node parameter `spindle_count`, the `spindles` of a disk, and the policy's
`spindle-ratio`. Beside them stands the number of physical volumes that a node has.

What the fields mean, with their units, `scripts/reference/output_texts.toml` says.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from gpolicy.analysis.node_resources import smallest_volume
from gpolicy.analysis.violations import bounds_of
from gpolicy.cluster.state import ClusterState, LiveDisk, LiveInstance, LiveNode
from gpolicy.cluster.terms import SpindleFault, VolumeSize, VolumeTerms, spindle_refusal
from gpolicy.cluster.volume_pools import GANETIS, VolumePools, VolumesFrom, own_group, pools_of
from gpolicy.ganeti.releases import release_numbers
from gpolicy.plan.sides import Sides
from gpolicy.policy.model import Hardware


class Turn(Enum):
    """What becomes of exclusive storage on the nodes of an instance."""

    ON = "on"
    OFF = "off"
    STAYS = "stays"


class DiskTrouble(Enum):
    """What is wrong with a disk under exclusive storage, as `(key, sentence)`; the key is short and stable."""

    key: str
    sentence: str

    NOT_PLAIN = ("not-plain", "only plain disks can have exclusive storage; verify reports this one as an error")
    NO_SPINDLES = ("no-spindles", "it has no spindle count, so that the instance violates every policy")
    TOO_FEW_SPINDLES = ("too-few-spindles", "its size needs more physical volumes than it has spindles")
    SHARED_VOLUMES = ("shared-volumes", "it was made without volumes of its own, and nothing moves it to such")
    SPINDLES_LEFT = ("spindles-left", "its spindle count means nothing any more; its volumes may be shared from now on")

    def __init__(self, key: str, sentence: str) -> None:
        self.key, self.sentence = key, sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFinding:
    """One disk with what is wrong."""

    disk: int
    trouble: DiskTrouble
    size: int
    template: str
    spindles: int | None
    needed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SpindleNumbers:
    """All numbers called spindles that concern one instance; None where nothing is known or recorded."""

    spindle_use: int
    disk_spindles: int | None
    compared: int | None
    spec_spindle_use: tuple[tuple[int, int], ...]
    spindle_count: int | None
    physical_volumes: int | None
    spindle_ratio: float | None
    in_use: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceEffect:
    """What exclusive storage means for one instance after the changes."""

    instance: str
    primary_node: str
    group: str
    turn: Turn
    disks: tuple[DiskFinding, ...]
    before: SpindleNumbers
    after: SpindleNumbers
    exclusive_nodes: tuple[str, ...]
    unsuitable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartlyUsedVolume:
    """A physical volume of which disks use a part."""

    node: str
    volume: str
    size: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVolumes:
    """The volumes of one volume group on a node."""

    node: str
    count: int
    empty: int
    size: int
    free: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeGroup:
    """The measured volumes of one volume group on the nodes of a group.

    The cluster's own has all volumes that the policy does not exclude or assign to another.
    """

    name: str | None
    own: bool
    smallest: int | None
    largest: int | None
    nodes: tuple[NodeVolumes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVolumes:
    """The physical volumes of a group that has exclusive storage after the changes; None where nothing is known."""

    group: str
    known_from: VolumesFrom
    smallest: int | None = None
    largest: int | None = None
    smallest_on: str | None = None
    largest_on: str | None = None
    differ: bool | None = None
    differ_on: tuple[str, ...] = ()
    usable: int | None = None
    counts: tuple[tuple[str, int], ...] = ()
    partly_used: tuple[PartlyUsedVolume, ...] = ()
    unusable_free: int | None = None
    not_measured: tuple[str, ...] = ()
    volume_groups: tuple[VolumeGroup, ...] = ()
    excluded: tuple[tuple[str, int], ...] = ()
    terms: VolumeTerms = GANETIS


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusiveStorageChange:
    """Exclusive storage after the changes."""

    groups: tuple[GroupVolumes, ...] = ()
    turned_on: tuple[str, ...] = ()
    turned_off: tuple[str, ...] = ()
    instances: tuple[InstanceEffect, ...] = ()
    not_reported: tuple[str, ...] = ()


_TROUBLES = {
    SpindleFault.SHARED: DiskTrouble.SPINDLES_LEFT,
    SpindleFault.MISSING: DiskTrouble.NO_SPINDLES,
    SpindleFault.TOO_FEW: DiskTrouble.TOO_FEW_SPINDLES,
}

_FIRST_DEFECT = (3, 0)  # before, Python compared a number with text without complaint


def exclusive_storage_change(sides: Sides, promised: Mapping[str, Hardware]) -> ExclusiveStorageChange:
    """Return what exclusive storage is after the changes; hardware is `promised` by group, by the name afterwards.

    Volumes are those that were measured, else those that the policy promises, else not known.
    """
    before, after = sides.before, sides.after
    had, has = _exclusive_nodes(before), _exclusive_nodes(after)
    on, off = sorted(has - had), sorted(had - has)
    names = [name for name in after.groups if any(node.name in has for node in after.nodes_of(name))]
    now, then = _View(before, had, {}), _View(after, has, promised)
    instances = sorted(after.instances.values(), key=lambda instance: instance.name)
    version = release_numbers(after.software_version)
    return ExclusiveStorageChange(
        groups=tuple(_volumes(then, name, on) for name in names),
        turned_on=tuple(on),
        turned_off=tuple(off),
        instances=tuple(effect for instance in instances for effect in _effects(instance, now, then)),
        not_reported=tuple(sorted(has)) if version is None or version >= _FIRST_DEFECT else (),
    )


def _exclusive_nodes(state: ClusterState) -> set[str]:
    return {node.name for node in state.nodes.values() if state.has_exclusive_storage(node)}


@dataclass(frozen=True, slots=True)
class _View:
    """One state of the cluster, the nodes with exclusive storage, and what hardware is promised by group."""

    state: ClusterState
    exclusive: set[str]
    hardware: Mapping[str, Hardware]

    def volume_size(self, node: LiveNode) -> VolumeSize | None:
        """Return the size of the smallest volume of a node, which Ganeti computes with; None if it is not known."""
        known, sizes = smallest_volume(self.state, node), self.promised_sizes(node.group)
        return self.terms(node.group).volume_size(min(sizes)) if sizes and known is None else known

    def count(self, node: LiveNode) -> int | None:
        """Return how many volumes a node has: counted by Ganeti, or listed, or promised."""
        if node.name in self.exclusive and node.resources.spindles_total is not None:
            return node.resources.spindles_total
        pools = pools_of(self.state, node)
        if pools is not None:
            return pools.own.count
        promised = self.hardware.get(node.group)
        return promised.volume_count if promised else None

    def terms(self, group: str) -> VolumeTerms:
        """Return what counts of the volumes of a group."""
        return self.state.terms_of(group).volumes

    def promised_sizes(self, group: str) -> list[int]:
        """Return the sizes of the volumes that are promised of the nodes of a group."""
        promised = self.hardware.get(group)
        return [size.value for size in promised.pv_sizes] if promised else []


def _volumes(view: _View, group: str, turned_on: Sequence[str]) -> GroupVolumes:
    nodes = sorted(view.state.nodes_of(group), key=lambda node: node.name)
    nodes = [node for node in nodes if node.name in view.exclusive]
    measured = {node.name: found for node in nodes if (found := pools_of(view.state, node)) is not None}
    pools = {name: found.own for name, found in measured.items()}
    on_nodes = [(volume.size, name) for name, pool in pools.items() for volume in pool.allocatable]
    sizes = [size for size, _ in on_nodes] or view.promised_sizes(group)
    hardware, terms, names = view.hardware.get(group), view.terms(group), tuple(node.name for node in nodes)
    count = hardware.volume_count if hardware else None
    if not sizes and count is None:
        return GroupVolumes(group=group, known_from=VolumesFrom.UNKNOWN, not_measured=names)
    known = GroupVolumes(
        group=group,
        known_from=VolumesFrom.PROMISED,
        smallest=min(sizes, default=None),
        largest=max(sizes, default=None),
        differ=terms.sizes_differ(min(sizes), max(sizes)) if sizes else None,
        usable=terms.volume_size(min(sizes)).usable if sizes else None,
        counts=() if count is None else tuple((name, count) for name in names),
        not_measured=names,
        terms=terms,
    )
    if not on_nodes:
        return known
    partly = [
        PartlyUsedVolume(node=name, volume=volume.name, size=volume.size, free=volume.free)
        for name, pool in pools.items()
        for volume in pool.partly_used
    ]
    return replace(
        known,
        known_from=VolumesFrom.MEASURED,
        smallest_on=min(on_nodes)[1],
        largest_on=next(name for size, name in on_nodes if size == known.largest),
        differ_on=tuple(name for name, pool in pools.items() if pool.differs),
        counts=tuple((name, pool.count) for name, pool in pools.items()),
        partly_used=tuple(volume for volume in partly if volume.node in turned_on),
        unusable_free=sum(volume.free for volume in partly),
        not_measured=tuple(node.name for node in nodes if not node.physical_volumes),
        volume_groups=tuple(_volume_groups(view, group, measured)),
        excluded=tuple((name, len(found.excluded)) for name, found in measured.items() if found.excluded),
    )


def _volume_groups(view: _View, group: str, measured: Mapping[str, VolumePools]) -> Iterator[VolumeGroup]:
    """Give the volume groups of a group, the cluster's own first."""
    own = own_group(view.state)
    by_name = {own: {name: found.own for name, found in measured.items()}} | {
        other: {name: found.others[other] for name, found in measured.items()}
        for other in view.terms(group).volume_groups
        if other != own
    }
    for name, pools in by_name.items():
        yield VolumeGroup(
            name=name,
            own=name == own,
            smallest=min((pool.smallest for pool in pools.values() if pool.smallest is not None), default=None),
            largest=max((pool.largest for pool in pools.values() if pool.largest is not None), default=None),
            nodes=tuple(
                NodeVolumes(node=node, count=pool.count, empty=len(pool.empty), size=pool.size, free=pool.free)
                for node, pool in pools.items()
            ),
        )


def _effects(instance: LiveInstance, now: _View, then: _View) -> Iterator[InstanceEffect]:
    """Give the one effect on an instance, if there is anything to say."""
    nodes = {instance.primary_node, *instance.secondary_nodes}
    exclusive, was = nodes & then.exclusive, nodes & now.exclusive
    if not exclusive and not was:
        return
    turn = Turn.STAYS if exclusive and was else Turn.ON if exclusive else Turn.OFF
    primary = then.state.nodes[instance.primary_node]
    findings = tuple(
        finding
        for number, disk in enumerate(instance.disks)
        for finding in _disk_findings(number, disk, turn, then.volume_size(primary))
    )
    unsuitable = bool(exclusive) and {disk.template for disk in instance.disks} != {"plain"}
    if findings or unsuitable or turn is not Turn.STAYS:
        yield InstanceEffect(
            instance=instance.name,
            primary_node=instance.primary_node,
            group=primary.group,
            turn=turn,
            disks=findings,
            before=_numbers(instance, now, exclusive=bool(was)),
            after=_numbers(instance, then, exclusive=bool(exclusive)),
            exclusive_nodes=tuple(sorted(exclusive)),
            unsuitable=unsuitable,
        )


def _disk_findings(number: int, disk: LiveDisk, turn: Turn, volume: VolumeSize | None) -> Iterator[DiskFinding]:
    counts = turn is not Turn.OFF and volume is not None and volume.usable > 0
    needed = volume.needed(disk.size) if counts and volume else None

    def finding(trouble: DiskTrouble) -> DiskFinding:
        return DiskFinding(
            disk=number, trouble=trouble, size=disk.size, template=disk.template, spindles=disk.spindles, needed=needed
        )

    plain = disk.template == "plain"
    refusal = spindle_refusal(disk.size, disk.spindles, exclusive=turn is not Turn.OFF, volume=volume)
    if turn is not Turn.OFF and not plain:
        yield finding(DiskTrouble.NOT_PLAIN)
    if refusal is not None and (plain or refusal.fault is not SpindleFault.TOO_FEW):
        yield finding(_TROUBLES[refusal.fault])
    if plain and turn is Turn.ON:
        yield finding(DiskTrouble.SHARED_VOLUMES)


def _numbers(instance: LiveInstance, view: _View, *, exclusive: bool) -> SpindleNumbers:
    node = view.state.nodes[instance.primary_node]
    policy = view.state.groups[node.group].effective
    total, key = instance.disk_spindles, "spindle-use"
    count, ratio = view.state.in_force(node, ("ndparams", "spindle_count")), policy.get(("ipolicy", "spindle-ratio"))
    return SpindleNumbers(
        spindle_use=instance.spindle_use,
        disk_spindles=total,
        compared=total if exclusive else instance.spindle_use,
        spec_spindle_use=tuple(
            (low[key], high[key])
            for low, high in bounds_of(policy.get(("ipolicy", "minmax")))
            if key in low and key in high
        ),
        spindle_count=count if isinstance(count, int) else None,
        physical_volumes=view.count(node),
        spindle_ratio=float(ratio) if isinstance(ratio, int | float) else None,
        in_use=not exclusive,
    )
