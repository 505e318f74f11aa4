"""config.data, the configuration file of Ganeti's master: the only source that shows all own values.

Its collections are keyed by UUID. The disk template and the secondary nodes of an instance are not written
there; they follow from its disks, as in Ganeti itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path as FilePath

from gpolicy.cluster import assembly
from gpolicy.cluster.json_input import parse_json, read_bytes
from gpolicy.cluster.record import Record, kind_of
from gpolicy.cluster.state import ClusterObject, ClusterState, Identity, LiveDisk, LiveInstance, LiveNode
from gpolicy.errors import InputError
from gpolicy.ganeti.releases import RELEASE_FILE, is_release, release_of
from gpolicy.ganeti.vocabulary import Level, Value, Values

_OLD_TYPES = {"lvm": "plain", "drbd8": "drbd"}  # in configurations of old releases
_DEEPEST_DISK = 10


def read_config_file(path: FilePath, *, source: str | None = None) -> ClusterState:
    """Return the state in the file config.data at `path`. Raise InputError if it is not one."""
    state = parse_config(read_bytes(path), where=str(path), source=source or f"config:{path}")
    try:
        said = read_bytes(path.with_name(RELEASE_FILE)).decode(errors="replace")
    except InputError:
        return state  # a copy of config.data alone
    return with_release(state, said)


def parse_config(data: bytes, *, where: str, source: str) -> ClusterState:
    """Return the state in `data`, the content of config.data. Raise InputError, which begins with `where`."""
    config = Record.of(parse_json(data, where), where)
    if not isinstance(config.fields.get("cluster"), dict) or "nodegroups" not in config.fields:
        raise InputError(f"{where}: not a config.data of Ganeti (it has no cluster and node groups)")
    cluster = config.record("cluster")
    own = _cluster_own(cluster)
    groups = {uuid: assembly.filled_group(group.name("name"), _own(group, Level.GROUP), own, group)
              for uuid, group in config.records("nodegroups")}  # fmt: skip
    group_names = {uuid: group.name for uuid, group in groups.items()}
    node_names = {uuid: node.name("name") for uuid, node in config.records("nodes")}
    master = cluster.text_or_none("master_node")
    nodes = [_node(node, group_names, is_master=uuid == master) for uuid, node in config.records("nodes")]
    instances, forthcoming = _instances(config, cluster, node_names)
    version = config.whole_or_none("version")  # 3000000 is 3.0
    state = ClusterState(
        source=source,
        name=cluster.name("cluster_name"),
        software_version=None if version is None else f"{version // 1_000_000}.{version // 10_000 % 100}",
        cluster=ClusterObject(own=own, tags=cluster.tags(), identity=assembly.read_part(Identity, cluster)),
        groups=assembly.by_name(groups.values(), f"{where}: node groups"),
        nodes=assembly.by_name(nodes, f"{where}: nodes"),
        instances=assembly.by_name(instances, f"{where}: instances"),
        notes=(assembly.NO_RUN_TIME, *forthcoming_note(forthcoming)),
    )
    return assembly.checked(state, where)


def with_release(state: ClusterState, said: str) -> ClusterState:
    """Return the state with the release that the master says it runs: config.data says only 3.1 of 3.1.1.

    What is of another release than the configuration, or no release, is passed over.
    """
    release = said.strip()
    same = is_release(release) and release_of(release) == state.software_version
    return replace(state, software_version=release) if same else state


def forthcoming_note(count: int) -> tuple[str, ...]:
    """Return a note on forthcoming instances that are skipped because they have no node yet."""
    return (f"skipped: {count} forthcoming instances that have no name or no node yet",) if count else ()


def _cluster_own(cluster: Record) -> Values:
    collectors = list(cluster.records("data_collectors"))
    return assembly.cluster_values(
        cluster,
        {
            **{family: cluster.record(family).fields for family in ("ipolicy", "diskparams", "ndparams", "hvparams")},
            **_states(cluster),
            "beparams": assembly.default_of(cluster, "beparams"),
            "nicparams": assembly.default_of(cluster, "nicparams"),
            "enabled_data_collectors": {name: collector.fields.get("active") for name, collector in collectors},
            "data_collector_interval": {name: collector.fields.get("interval") for name, collector in collectors},
        },
    )


def _own(record: Record, level: Level) -> Values:
    families: dict[str, Value] = {"ndparams": record.record("ndparams").fields, **_states(record)}
    if level is Level.GROUP:
        families |= {family: record.record(family).fields for family in ("ipolicy", "diskparams")}
        families["alloc_policy"] = record.text("alloc_policy")
    own = assembly.own_values(families, record.where)
    if level is Level.NODE:
        own.pop(("ndparams", "exclusive_storage"), None)  # Ganeti drops it, with a warning, when it loads the file
    return own


def _states(record: Record) -> dict[str, Value]:
    return {family: record.record(f"{family}_static").fields for family in ("hv_state", "disk_state")}


def _node(node: Record, group_names: dict[str, str], *, is_master: bool) -> LiveNode:
    group = node.text("group")
    if group not in group_names:
        raise InputError(f"{node.where}: is in an unknown group: {group!r}")
    return LiveNode(
        name=node.name("name"),
        group=group_names[group],
        own=_own(node, Level.NODE),
        tags=node.tags(),
        identity=assembly.read_part(Identity, node),
        offline=node.flag("offline", default=False),
        drained=node.flag("drained", default=False),
        master=is_master,
        master_candidate=node.flag_or_none("master_candidate"),
        master_capable=node.flag_or_none("master_capable"),
        vm_capable=node.flag("vm_capable", default=True),
    )


def _instances(config: Record, cluster: Record, node_names: dict[str, str]) -> tuple[list[LiveInstance], int]:
    """Return the instances, and how many forthcoming ones (from 2.16 on) have no name or place yet."""
    beparams = Record.of(assembly.default_of(cluster, "beparams"), f"{cluster.where}: beparams")
    all_disks = dict(config.records("disks"))
    instances: list[LiveInstance] = []
    left_out = 0
    for _, record in config.records("instances"):
        if record.fields.get("forthcoming") is True and not (
            record.fields.get("name") and record.fields.get("primary_node")
        ):
            left_out += 1
        else:
            instances.append(_instance(record, beparams, all_disks, node_names))
    return instances, left_out


def _instance(
    record: Record, cluster_beparams: Record, all_disks: dict[str, Record], node_names: dict[str, str]
) -> LiveInstance:
    where, primary = record.where, record.text("primary_node")
    beparams = Record(where, {**cluster_beparams.fields, **record.record("beparams").fields})
    disks = [_disk(item, all_disks, where) for item in record.items("disks")]
    templates = {_template(disk) for disk in disks}
    mirrors = dict.fromkeys(uuid for disk in disks for uuid in _mirror_nodes(disk) if uuid != primary)
    return assembly.instance_of(
        record,
        beparams,
        primary_node=_node_name(primary, node_names, where),
        secondary_nodes=tuple(_node_name(uuid, node_names, where) for uuid in mirrors),
        disk_template=(record.text_or_none("disk_template") or "diskless")
        if not templates
        else (templates.pop() if len(templates) == 1 else "mixed"),
        disks=tuple(
            LiveDisk(size=disk.whole("size"), template=_template(disk), spindles=disk.whole_or_none("spindles"))
            for disk in disks
        ),
        nic_count=len(record.items("nics")),
    )


def _disk(item: Value, all_disks: dict[str, Record], where: str) -> Record:
    """Return the disk that an instance names by its UUID; old releases wrote it inside the instance."""
    if isinstance(item, str):
        if item not in all_disks:
            raise InputError(f"{where}: has an unknown disk: {item!r}")
        return all_disks[item]
    if isinstance(item, dict):
        return Record(f"{where}: disks", item)
    raise InputError(f"{where}: disks should hold UUIDs, but holds {kind_of(item)}")


def _template(disk: Record) -> str:
    kind = disk.name("dev_type")
    return _OLD_TYPES.get(kind, kind)


def _mirror_nodes(disk: Record, depth: int = 0) -> Iterator[str]:
    """Yield the UUIDs of both nodes of every DRBD device in the disk, children included."""
    if depth > _DEEPEST_DISK:
        raise InputError(f"{disk.where}: nested too deeply")
    if _template(disk) == "drbd":
        ends = disk.items("logical_id")[:2]
        if len(ends) != 2 or not all(isinstance(end, str) for end in ends):
            raise InputError(f"{disk.where}: logical_id of a DRBD disk should begin with two nodes")
        yield from (str(end) for end in ends)
    for child in disk.objects("children"):
        yield from _mirror_nodes(child, depth + 1)


def _node_name(uuid: str, names: dict[str, str], where: str) -> str:
    if uuid not in names:
        raise InputError(f"{where}: is on an unknown node: {uuid!r}")
    return names[uuid]
