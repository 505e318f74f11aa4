"""Groups, nodes, instances and requests in the form of the Haskell original's `show`.

One error message and hail's `-v` and `-v -v` contain them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from gpolicy.allocator.ghc_numbers import shown_float
from gpolicy.allocator.instance_moves import is_split
from gpolicy.htools.haskell_text import shown_argument, shown_ints, shown_peers, shown_string, shown_strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from gpolicy.allocator.cluster_data import Disk, Group, Instance, InstancePolicy, Load, Spec
    from gpolicy.allocator.enumerations import DiskTemplate
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.node import Node
    from gpolicy.htools.json_fields import Json

    Item = TypeVar("Item")

_FULL_LOAD = (1.0, 1.0, 1.0, 1.0)

_ODD_NAMES = {"drbd": "Drbd8", "openvswitch": "OpenVSwitch"}


def shown_groups(groups: Sequence[Group]) -> str:
    """Return a list of groups as Haskell shows it."""
    return _list(groups, _group)


def shown_cluster(cluster: Cluster, hypervisor: str | None, entries: Mapping[str, Json]) -> str:
    """Return a whole cluster as Haskell shows it.

    `entries` are the instances of the iallocator document, since `Instance` lacks their network interfaces; empty for a
    cluster from another source.
    """
    forth: dict[int, tuple[list[int], list[int]]] = {index: ([], []) for index in cluster.nodes}
    for index, instance in cluster.instances.items():
        if instance.primary in forth:
            forth[instance.primary][0].insert(0, index)
        if instance.secondary in forth:
            forth[instance.secondary][1].insert(0, index)
    shown = _maybe(None if hypervisor is None else _constructor(hypervisor), str)
    nodes = {index: _node(node, *forth[index], shown) for index, node in cluster.nodes.items()}
    instances = {
        index: shown_instance(
            item,
            item.name.removesuffix(cluster.common_suffix),
            entries.get(item.name, {}),
            split=is_split(item, cluster.nodes),
        )
        for index, item in cluster.instances.items()
    }
    return _record(
        "ClusterData",
        cdGroups=_map({index: _group(group) for index, group in cluster.groups.items()}, str),
        cdNodes=_map(nodes, str),
        cdInstances=_map(instances, str),
        cdTags=shown_strings(cluster.tags),
        cdIPolicy=shown_policy(cluster.policy),
    )


def shown_instance(instance: Instance, alias: str, entry: Mapping[str, Json], *, split: bool = False) -> str:
    """Return an instance as Haskell shows it; `entry` is its object in the document.

    An instance that is `split` between two groups is not moved (htools, Loader: `disableSplitMoves`).
    """
    new = instance.index < 0
    template = instance.template
    return _record(
        "Instance",
        name=shown_string(instance.name),
        alias=shown_string(alias),
        mem=instance.memory,
        dsk=instance.disk,
        disks=_list(instance.disks, _disk),
        vcpus=instance.vcpus,
        runSt=_constructor(instance.status.name),
        pNode=0 if new else instance.primary,
        sNode=0 if new else instance.secondary,
        idx=instance.index,
        util=_load(instance.load),
        movable=template.balanced and not split,
        autoBalance=instance.auto_balance,
        diskTemplate=_template(template),
        spindleUse=instance.spindle_use,
        allTags=shown_strings(instance.tags),
        exclTags=shown_strings(instance.exclusion_tags),
        dsrdLocTags=_set(instance.desired_tags),
        locationScore=instance.location_score,
        arPolicy="ArNotEnabled",
        nics=_list(entry.get("nics", []), _nic),
        forthcoming=instance.forthcoming,
    )


def shown_details(count: int, group: str | None) -> str:
    """Return the node count and the group of a request, as an argument, the way Haskell shows them."""
    return f"AllocDetails {shown_argument(count)} {shown_maybe(group, shown_string)}"


def shown_maybe(value: Item | None, show: Callable[[Item], str]) -> str:
    """Return an optional value as Haskell shows it as an argument."""
    return "Nothing" if value is None else f"({_maybe(value, show)})"


def _node(node: Node, primaries: Iterable[int], secondaries: Iterable[int], hypervisor: str) -> str:
    facts = node.facts
    return _record(
        "Node",
        name=shown_string(facts.name),
        alias=shown_string(facts.alias),
        tMem=facts.total_memory,
        nMem=facts.node_memory,
        iMem=node.instance_memory,
        fMem=facts.reported_free_memory,
        fMemForth=node.forth_free_memory,
        xMem=facts.unaccounted_memory,
        tDsk=facts.total_disk,
        fDsk=node.free_disk,
        fDskForth=node.forth_free_disk,
        tCpu=facts.total_cpus,
        tCpuSpeed=facts.cpu_speed,
        nCpu=facts.node_cpus,
        uCpu=node.used_cpus,
        uCpuForth=node.forth_used_cpus,
        tSpindles=facts.spindles,
        fSpindles=node.free_spindles,
        fSpindlesForth=node.forth_free_spindles,
        pList=shown_ints(node.primaries),
        pListForth=shown_ints(primaries),
        sList=shown_ints(node.secondaries),
        sListForth=shown_ints(secondaries),
        idx=facts.index,
        peers=shown_peers(node.peers),
        failN1=node.fails_n1,
        failN1Forth=True,
        rMem=node.reserved_memory,
        rMemForth=0,
        pMem=node.ratio_memory,
        pMemForth=node.forth_ratio_memory,
        pDsk=node.ratio_disk,
        pDskForth=node.forth_ratio_disk,
        pRem=node.ratio_reserved,
        pRemForth=0.0,
        pCpu=node.ratio_cpu,
        pCpuForth=node.forth_ratio_cpu,
        mDsk=facts.min_disk_ratio,
        loDsk=facts.low_disk,
        hiCpu=facts.high_cpus,
        hiSpindles=facts.high_spindles,
        instSpindles=node.instance_spindles,
        instSpindlesForth=node.forth_instance_spindles,
        offline=facts.offline,
        isMaster=facts.master,
        nTags=shown_strings(facts.tags),
        utilPool=_load(_FULL_LOAD),
        utilLoad=_load(node.load),
        utilLoadForth=_load(node.forth_load),
        pTags=_map(node.exclusion_tags, shown_string),
        group=facts.group,
        iPolicy=shown_policy(facts.policy),
        exclStorage=facts.exclusive,
        migTags=_set(facts.migration_tags),
        rmigTags=_set(facts.receivable_tags),
        locationTags=_set(facts.location_tags),
        locationScore=node.location_score,
        instanceMap=_map(node.location_exclusions, lambda pair: f"({shown_string(pair[0])},{shown_string(pair[1])})"),
        hypervisor=hypervisor,
    )


def _group(group: Group) -> str:
    return _record(
        "Group",
        name=shown_string(group.name),
        uuid=shown_string(group.uuid),
        idx=group.index,
        allocPolicy=f"Alloc{_constructor(group.alloc_policy.name)}",
        networks=shown_strings(group.networks),
        iPolicy=shown_policy(group.policy),
        allTags=shown_strings(group.tags),
    )


def shown_policy(policy: InstancePolicy) -> str:
    """Return an instance policy as Haskell shows it."""
    return _record(
        "IPolicy",
        iPolicyMinMaxISpecs=_list(
            policy.minmax,
            lambda pair: _record(
                "MinMaxISpecs", minMaxISpecsMinSpec=_spec(pair.min), minMaxISpecsMaxSpec=_spec(pair.max)
            ),
        ),
        iPolicyStdSpec=_spec(policy.std),
        iPolicyDiskTemplates=_list(policy.templates, _template),
        iPolicyVcpuRatio=policy.vcpu_ratio,
        iPolicySpindleRatio=policy.spindle_ratio,
    )


def _spec(spec: Spec) -> str:
    return _record(
        "ISpec",
        iSpecMemorySize=spec.memory,
        iSpecCpuCount=spec.cpus,
        iSpecDiskSize=spec.disk_size,
        iSpecDiskCount=spec.disk_count,
        iSpecNicCount=spec.nic_count,
        iSpecSpindleUse=spec.spindle_use,
    )


def _disk(disk: Disk) -> str:
    return _record("Disk", dskSize=disk.size, dskSpindles=_maybe(disk.spindles, shown_argument))


def _nic(entry: Mapping[str, Json]) -> str:
    texts = {key: _maybe(entry.get(key), shown_string) for key in ("mac", "ip", "link", "bridge", "network")}
    mode = _maybe(entry.get("mode"), _constructor)
    return _record("Nic", **{key: texts.get(key, mode) for key in ("mac", "ip", "mode", "link", "bridge", "network")})


def _template(template: DiskTemplate) -> str:
    return f"DT{_constructor(template.name)}"


def _constructor(name: str) -> str:
    """Return the constructor of a name: XenPvm for `xen-pvm`."""
    words = name.lower().replace("_", "-").split("-")
    return _ODD_NAMES.get(name.lower()) or "".join(map(str.capitalize, words))


def _load(load: Load) -> str:
    return _record("DynUtil", cpuWeight=load[0], memWeight=load[1], dskWeight=load[2], netWeight=load[3])


def _record(kind: str, **fields: str | bool | float) -> str:
    """Return a record; string values are already in their shown form."""
    shown = ((name, shown_float(value) if isinstance(value, float) else value) for name, value in fields.items())
    return f"{kind} {{{', '.join(f'{name} = {value}' for name, value in shown)}}}"


def _maybe(value: Item | None, show: Callable[[Item], str]) -> str:
    return "Nothing" if value is None else f"Just {show(value)}"


def _list(items: Iterable[Item], show: Callable[[Item], str]) -> str:
    return f"[{','.join(show(item) for item in items)}]"


def _set(items: Iterable[str]) -> str:
    return f"fromList {shown_strings(sorted(items))}"


def _map(items: Mapping[Any, object], show: Callable[[Any], str]) -> str:
    return f"fromList {_list(sorted(items.items()), lambda pair: f'({show(pair[0])},{pair[1]})')}"
