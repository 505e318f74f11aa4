"""An impact with every kind of fact in it, made by hand; `named` may turn each name into a hostile one."""

from __future__ import annotations

from collections.abc import Callable

from gpolicy.allocator.cluster_data import DiskTemplate, Spec, SpecPair
from gpolicy.analysis.basis import Basis, BasisKind
from gpolicy.analysis.binding import Binding, Cause, Room, Stranded
from gpolicy.analysis.capacity import GroupCapacity, PairCapacity, PlacedSize
from gpolicy.analysis.counted_cluster import Fit
from gpolicy.analysis.health import (
    DesiredLocationMissing,
    DomainConflict,
    ExclusionConflict,
    ExclusionUnsatisfiable,
    SharedDomain,
    Unmovable,
)
from gpolicy.analysis.losses import Homeless, Loss
from gpolicy.analysis.node_losses import GroupRedundancy, Shortage
from gpolicy.analysis.node_resources import DeclaredNumber
from gpolicy.analysis.resource_models import GroupModel, Model, NodeModel, ResourceModel
from gpolicy.analysis.shown_score import Score, ScoreComponent
from gpolicy.analysis.violations import ParameterBreach, PolicyViolation, RatioBreach, Verdict
from gpolicy.cluster.terms import VolumeTerms
from gpolicy.cluster.volume_pools import VolumesFrom
from gpolicy.impact.capacity_change import AllocationVectors, CapacityChange, FitChange, GroupCapacityChange
from gpolicy.impact.comparison import (
    InstanceViolation,
    NodeViolation,
    UnknownNodeViolation,
    UnknownViolation,
    ViolationChange,
)
from gpolicy.impact.exclusive_storage_change import (
    DiskFinding,
    DiskTrouble,
    ExclusiveStorageChange,
    GroupVolumes,
    InstanceEffect,
    NodeVolumes,
    PartlyUsedVolume,
    SpindleNumbers,
    Turn,
    VolumeGroup,
)
from gpolicy.impact.impact import (
    Compared,
    GroupRedundancyChange,
    Impact,
    KindChange,
    LocationChange,
    RedundancyChange,
    RemedyChange,
    ResourceModelChange,
)
from gpolicy.remedy.faults import FaultKind

Named = Callable[[str], str]

SMALL = SpecPair(Spec(1024, 1, 10240, 1, 1, 1), Spec(12288, 3, 92160, 4, 4, 2))
LARGE = SpecPair(Spec(16384, 4, 102400, 1, 1, 1), Spec(65536, 16, 1048576, 8, 8, 8))
OLD = SpecPair(Spec(128, 1, 1024, 1, 1, 1), Spec(32768, 8, 1048576, 16, 8, 12))
STANDARD = Spec(4096, 2, 40960, 1, 1, 1)
MEMORY = Binding(Cause.MEMORY, "FailMem", (("FailMem", 20),))
SPINDLES = Binding(Cause.SPINDLE_RATIO, "FailDisk", (("FailDisk", 12), ("FailMem", 8)))
SCORE = Score(2.25, (ScoreComponent("free_mem_cv", 0.25, 1.0), ScoreComponent("n1_cnt", 2.0, 1.0)))
BETTER = Score(1.25, (ScoreComponent("free_mem_cv", 0.25, 1.0), ScoreComponent("n1_cnt", 1.0, 1.0)))


def plain(name: str) -> str:
    return name


def remedy_change() -> RemedyChange:
    kinds = (KindChange(kind=FaultKind.DOMAIN, before=1, after=4, remedied=1),)
    return RemedyChange(kinds=kinds, new=3, cured=2, cured_old=1, moves=3, job_sets=2, copied=122_880, seconds=2048.0)


def full_impact(named: Named = plain) -> Impact:
    return Impact(
        violations=violations(named),
        capacity=capacity_change(named),
        redundancy=redundancy(named),
        location=location(named),
        remedy=remedy_change(),
        exclusive_storage=exclusive_storage(named),
        resource_model=resource_model(named),
        basis=Basis(BasisKind.MIXED, {"disk": (named("node1"), named("node2"))}),
        group_basis={named("shared"): BasisKind.MIXED},
        declares=True,
    )


def counted(
    group: str | None, pairs: tuple[tuple[str, SpecPair, int], ...], standard: int, score: Score
) -> GroupCapacity:
    return GroupCapacity(
        group=group,
        template=DiskTemplate.DRBD,
        nodes=5,
        instances=7,
        specs=tuple(
            PairCapacity(
                name,
                pair,
                1,
                fits,
                MEMORY,
                runs(pair, fits),
                fits,
            )
            for name, pair, fits in pairs
        ),
        tiered=(PlacedSize(65536, 1048576, 16, 0, 2), PlacedSize(12288, 92160, 3, 0, 5)),
        tiered_binding=MEMORY,
        least=Fit(0, MEMORY),
        hspace_tiered=(PlacedSize(65536, 1048576, 16, 0, 2),),
        hspace_standard=standard + 1,
        std=STANDARD,
        standard=Fit(standard, SPINDLES, STANDARD),
        score=score,
        stranded=Stranded(Room(100000, 2000000, 190, 12, None), Room(1024 + standard, 0, 4, 0, None)),
    )


def runs(pair: SpecPair, fits: int) -> tuple[PlacedSize, ...]:
    return (PlacedSize(pair.max.memory, pair.max.disk_size, pair.max.cpus, 0, fits),) if fits else ()


def capacity_change(named: Named = plain) -> CapacityChange:
    shared, small, large = named("shared"), named("small"), named("large")
    lost = GroupCapacityChange(
        group=shared,
        before=counted(named("default"), ((large, LARGE, 8), (small, SMALL, 40)), 48, SCORE),
        after=counted(shared, ((large, LARGE, 3), (small, SMALL, 40)), 30, BETTER),
        rows=(
            FitChange(large, Fit(8, MEMORY, LARGE.largest), Fit(3, SPINDLES, LARGE.largest)),
            FitChange(small, Fit(40, MEMORY, SMALL.largest), Fit(40, MEMORY, SMALL.largest)),
            FitChange("1", Fit(8, MEMORY, OLD.largest), None, Fit(0, Binding(Cause.BOUNDS), OLD.largest)),
            FitChange(
                named("resized"),
                Fit(9, MEMORY, OLD.largest),
                Fit(3, MEMORY, LARGE.largest),
                Fit(6, MEMORY, OLD.largest),
            ),
        ),
        tiered=FitChange("tiered", Fit(12, MEMORY), Fit(7, MEMORY)),
        standard=FitChange("standard", Fit(48, SPINDLES, STANDARD), Fit(30, SPINDLES, STANDARD)),
        renamed_from=named("default"),
    )
    dedicated = GroupCapacityChange(
        group=named("dedicated"),
        before=counted(named("dedicated"), (("1", OLD, 0),), 0, SCORE),
        after=counted(named("dedicated"), ((named("full"), LARGE, 1),), 0, SCORE),
        rows=(
            FitChange("1", Fit(0, MEMORY, OLD.largest), None, Fit(0, MEMORY, OLD.largest)),
            FitChange(named("full"), None, Fit(1, MEMORY, LARGE.largest)),
        ),
        tiered=FitChange("tiered", Fit(0, MEMORY), Fit(4, MEMORY)),
        standard=FitChange("standard", Fit(0, MEMORY, STANDARD), Fit(0, Binding(Cause.BOUNDS), STANDARD)),
        vectors=AllocationVectors(("1",), (12,), (10,), (named("full"), named("half")), (1, 3)),
    )
    same = GroupCapacityChange(
        group=named("spare"),
        before=counted(named("spare"), (("1", OLD, 4),), 20, SCORE),
        after=counted(named("spare"), (("1", OLD, 4),), 20, SCORE),
        rows=(FitChange("1", Fit(4, MEMORY, OLD.largest), Fit(4, MEMORY, OLD.largest)),),
        tiered=FitChange("tiered", Fit(4, MEMORY), Fit(4, MEMORY)),
        standard=FitChange("standard", Fit(20, MEMORY, STANDARD), Fit(20, MEMORY, STANDARD)),
    )
    new = GroupCapacityChange(
        group=named("fresh"),
        before=None,
        after=counted(named("fresh"), ((small, SMALL, 0),), 0, SCORE),
        rows=(FitChange(small, None, Fit(0, Binding(Cause.NO_NODES), SMALL.largest)),),
        tiered=FitChange("tiered", None, Fit(0, Binding(Cause.NO_NODES))),
        standard=FitChange("standard", None, Fit(0, Binding(Cause.NO_NODES), STANDARD)),
    )
    whole = GroupCapacityChange(
        group=None,
        before=counted(None, (("1", OLD, 8),), 68, SCORE),
        after=counted(None, ((large, LARGE, 4),), 50, BETTER),
        rows=(
            FitChange("1", Fit(8, MEMORY, OLD.largest), None, Fit(4, MEMORY, OLD.largest)),
            FitChange(large, None, Fit(4, MEMORY, LARGE.largest)),
        ),
        tiered=FitChange("tiered", Fit(12, MEMORY), Fit(11, MEMORY)),
        standard=FitChange("standard", Fit(68, SPINDLES, STANDARD), Fit(50, SPINDLES, STANDARD)),
    )
    unavailable = {named("remote"): f"node {named('node9')} has no measured memory"}
    return CapacityChange((dedicated, new, lost, same), whole, (f"instance {named('web')}: split",), unavailable)


def violations(named: Named = plain) -> ViolationChange:
    memory = ParameterBreach(parameter="memory-size", value=98304, minimum=16384, maximum=65536)
    disk = ParameterBreach(parameter="disk-size", value=5120, minimum=10240, maximum=92160, disk=1)
    template = ParameterBreach(parameter="disk-templates", value="file", allowed=("drbd", "plain"))
    unset = ParameterBreach(parameter="spindles")

    def broken(*breaches: ParameterBreach, pair: str | None = "large", exclusive: bool = False) -> PolicyViolation:
        name = named(pair) if pair else None
        return PolicyViolation(
            group=named("shared"), pair=1, pair_name=name, breaches=breaches, exclusive_storage=exclusive
        )

    def one(name: str, before: PolicyViolation | None, after: PolicyViolation | None) -> InstanceViolation:
        return InstanceViolation(instance=named(name), primary_node=named("node1"), before=before, after=after)

    def node(name: str, before: tuple[RatioBreach, ...], after: tuple[RatioBreach, ...]) -> NodeViolation:
        return NodeViolation(node=named(name), group=named("shared"), before=before, after=after)

    cpus = RatioBreach(parameter="vcpu-ratio", used=25, own=8, ratio=2.0)
    spindles = RatioBreach(parameter="spindle-ratio", used=66, own=1, ratio=16.0)
    unknown = UnknownViolation(
        instance=named("dark"),
        primary_node=named("node2"),
        parameters=("nic-count",),
        before=Verdict(),
        after=Verdict(violation=broken(memory), unknown=("nic-count",)),
    )
    return ViolationChange(
        newly=(one("web", None, broken(memory, disk)), one("db", None, broken(template))),
        still=(one("old", broken(disk, pair=None), broken(unset, exclusive=True)),),
        no_longer=(one("good", broken(memory), None),),
        unknown=(unknown,),
        minmem_newly=(
            one("thin", None, broken(ParameterBreach(parameter="memory-size", value=64, minimum=128, maximum=256))),
        ),
        minmem_still=(one("thin2", broken(memory), broken(memory)),),
        minmem_no_longer=(one("thin3", broken(memory), None),),
        nodes_newly=(node("node1", (), (cpus, spindles)),),
        nodes_still=(node("node2", (cpus,), (spindles,)),),
        nodes_no_longer=(node("node3", (spindles,), ()),),
        nodes_unknown=(
            UnknownNodeViolation(
                node=named("node4"), group=named("shared"), parameters=("vcpu-ratio",), reason="its CPUs are not known"
            ),
        ),
    )


def redundancy(named: Named = plain) -> RedundancyChange:
    hopeless = Homeless(
        named("web"), "memory", "free memory of the nodes", f"{named('node2')}: 4096 MiB free, 8192 needed"
    )
    tight = Homeless(named("db"), "ipolicy.vcpu-ratio", "virtual CPUs for each CPU of a node", "5.0 above 4.0")
    now = GroupRedundancy(named("default"), 5, 2, 1, (Loss((named("node1"), named("node2")), (hopeless,)),), (), 15)
    then = GroupRedundancy(
        named("shared"),
        5,
        2,
        0,
        (Loss((named("node1"),), (hopeless,), (tight,)), Loss((named("node2"),), (), (tight,))),
        (Shortage(named("node2"), 8192, 4096),),
        5,
        "more than 100,000 sets of 2 nodes",
    )
    alone = GroupRedundancy(named("spare"), 1, 2, 0, (), (), 1)
    return RedundancyChange(
        failures=2,
        groups=(
            GroupRedundancyChange(named("shared"), now, then, named("default")),
            GroupRedundancyChange(named("spare"), alone, alone),
            GroupRedundancyChange(named("gone"), alone, None),
            GroupRedundancyChange(named("fresh"), None, alone),
        ),
        score_before=SCORE,
        score_after=BETTER,
        notes=(f"instance {named('web')} is down",),
        unavailable={named("remote"): "no measured memory"},
    )


def location(named: Named = plain) -> LocationChange:
    def pair(name: str) -> SharedDomain:
        return SharedDomain(
            instance=named(name),
            primary_node=named("node1"),
            secondary_node=named("node3"),
            tags=(named("rack:a"), named("power:x")),
        )

    conflict = ExclusionConflict(tag=named("service:web"), node=named("node1"), instances=(named("web"), named("web2")))
    domain = DomainConflict(
        tag=named("service:db"),
        domain=named("rack:a"),
        nodes=(named("node1"), named("node3")),
        instances=(named("db"), named("db2")),
    )
    instances = (named("db"), named("db2"), named("db3"))
    racks = ExclusionUnsatisfiable(
        tag=named("service:db"),
        group=named("shared"),
        instances=instances,
        domain_kind="rack",
        places=(named("rack:a"),),
    )
    nodes = ExclusionUnsatisfiable(
        tag=named("service:db"), group=named("spare"), instances=instances, domain_kind=None, places=(named("node8"),)
    )
    stranded = Unmovable(
        instance=named("web"), primary_node=named("node1"), targets=((named("node2"), (named("cpu:new"),)),)
    )
    missing = DesiredLocationMissing(
        instance=named("web"), group=named("shared"), tag=named("room:cold"), elsewhere=(named("node7"),)
    )
    return LocationChange(
        shared_domains=Compared(new=(pair("web"),), still=(pair("db"),), gone=(pair("mail"),)),
        exclusion_conflicts=Compared(new=(conflict,)),
        domain_conflicts=Compared(still=(domain,)),
        unsatisfiable=Compared(new=(racks,), gone=(nodes,)),
        stranded=Compared(new=(stranded,)),
        desired_missing=Compared(gone=(missing,)),
    )


def exclusive_storage(named: Named = plain) -> ExclusiveStorageChange:
    before = SpindleNumbers(
        spindle_use=1,
        disk_spindles=None,
        compared=1,
        spec_spindle_use=((1, 12),),
        spindle_count=1,
        physical_volumes=12,
        spindle_ratio=32.0,
        in_use=True,
    )
    after = SpindleNumbers(
        spindle_use=1,
        disk_spindles=3,
        compared=3,
        spec_spindle_use=((12, 12), (6, 6)),
        spindle_count=1,
        physical_volumes=12,
        spindle_ratio=32.0,
        in_use=False,
    )
    disks = (
        DiskFinding(disk=0, trouble=DiskTrouble.NOT_PLAIN, size=10240, template="drbd", spindles=None),
        DiskFinding(disk=1, trouble=DiskTrouble.TOO_FEW_SPINDLES, size=3145728, template="plain", spindles=2, needed=4),
    )
    return ExclusiveStorageChange(
        groups=(
            GroupVolumes(
                group=named("dedicated"),
                known_from=VolumesFrom.MEASURED,
                smallest=1000000,
                largest=1048576,
                smallest_on=named("node6"),
                largest_on=named("node5"),
                unusable_free=1024,
                differ=True,
                differ_on=(named("node5"),),
                usable=970873,
                counts=((named("node5"), 12), (named("node6"), 11)),
                partly_used=(PartlyUsedVolume(node=named("node5"), volume=named("/dev/sdb"), size=1048576, free=1024),),
                not_measured=(named("node7"),),
                volume_groups=(
                    VolumeGroup(
                        name=named("xenvg"),
                        own=True,
                        smallest=1000000,
                        largest=1048576,
                        nodes=(
                            NodeVolumes(node=named("node5"), count=12, empty=3, size=12582912, free=3146752),
                            NodeVolumes(node=named("node6"), count=11, empty=0, size=11000000, free=0),
                        ),
                    ),
                    VolumeGroup(
                        name=named("ssdvg"),
                        own=False,
                        smallest=102400,
                        largest=102400,
                        nodes=(
                            NodeVolumes(node=named("node5"), count=1, empty=1, size=102400, free=102400),
                            NodeVolumes(node=named("node6"), count=0, empty=0, size=0, free=0),
                        ),
                    ),
                ),
                excluded=((named("node5"), 1), (named("node6"), 2)),
                terms=VolumeTerms(volume_groups={"ssdvg": ("/dev/nvme*",)}, margin=0.05),
            ),
            GroupVolumes(group=named("promised"), known_from=VolumesFrom.UNKNOWN),
        ),
        turned_on=(named("node5"),),
        turned_off=(named("node4"),),
        instances=(
            InstanceEffect(
                instance=named("db"),
                primary_node=named("node5"),
                group=named("dedicated"),
                turn=Turn.ON,
                disks=disks,
                before=before,
                after=after,
                exclusive_nodes=(),
                unsuitable=False,
            ),
            InstanceEffect(
                instance=named("web"),
                primary_node=named("node4"),
                group=named("shared"),
                turn=Turn.OFF,
                disks=(),
                before=after,
                after=before,
                exclusive_nodes=(named("node4"),),
                unsuitable=True,
            ),
        ),
        not_reported=(named("node5"),),
    )


def resource_model(named: Named = plain) -> ResourceModelChange:
    def model(declared: int) -> ResourceModel:
        node = NodeModel(
            node=named("node1"),
            group=named("shared"),
            declared=(
                DeclaredNumber("mem_node", declared, "cluster", 4096),
                DeclaredNumber("cpu_node", 2, "cluster", None),
            ),
            measured=Model(100000, 2000000, 48),
            configured=Model(100000 + 4096 - declared, 2000000, 46),
            available_memory=190000,
            minimum_memory=100000,
            maximum_memory=228000,
        )
        group = GroupModel(named("shared"), 30, MEMORY, 28 if declared > 4096 else 30, SPINDLES)
        return ResourceModel((node,), (group,), (f"node {named('node9')}: not measured",))

    return ResourceModelChange(model(4096), model(6144))
