"""The files that hold a cluster's state: Ganeti's config.data, and gpolicy's snapshots; the digest of a state.

config.data, the configuration file of Ganeti's master, is the only source that shows all own values. Its collections
are keyed by UUID. The disk template and the secondary nodes of an instance are not written there; they follow from its
disks, as in Ganeti itself.

A snapshot has a cluster state, for plans without the cluster. The format is JSON, `format_version` 1.x: a reader
accepts every minor version of its own major version and ignores unknown keys. Own values are nested by Ganeti's names;
a group's `effective` is written only where it does not follow from own values.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path as FilePath

from gpolicy.cluster import assembly, state
from gpolicy.cluster.json_input import parse_json, read_bytes
from gpolicy.cluster.record import Record, kind_of, shown
from gpolicy.errors import GpolicyError, InputError, about
from gpolicy.ganeti.parameters import fill, position, unflatten
from gpolicy.ganeti.releases import RELEASE_FILE, is_release, release_of
from gpolicy.ganeti.vocabulary import Level, Value, Values
from gpolicy.json_values import Checked, Forms, OwnFile, Shape, fields_of, plain
from gpolicy.opening import write_private
from gpolicy.provenance import is_time

_OLD_TYPES = {"lvm": "plain", "drbd8": "drbd"}  # in configurations of old releases
_DEEPEST_DISK = 10


def read_config_file(path: FilePath, *, source: str | None = None) -> state.ClusterState:
    """Return the state in the file config.data at `path`. Raise InputError if it is not one."""
    observed = parse_config(read_bytes(path), where=str(path), source=source or f"config:{path}")
    try:
        said = read_bytes(path.with_name(RELEASE_FILE)).decode(errors="replace")
    except InputError:
        return observed  # a copy of config.data alone
    return with_release(observed, said)


def parse_config(data: bytes, *, where: str, source: str) -> state.ClusterState:
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
    nodes = [_node_from_record(node, group_names, is_master=uuid == master) for uuid, node in config.records("nodes")]
    instances, forthcoming = _instances(config, cluster, node_names)
    version = config.whole_or_none("version")  # 3000000 is 3.0
    observed = state.ClusterState(
        source=source,
        name=cluster.name("cluster_name"),
        software_version=None if version is None else f"{version // 1_000_000}.{version // 10_000 % 100}",
        cluster=state.ClusterObject(own=own, tags=cluster.tags(), identity=assembly.read(state.Identity, cluster)),
        groups=assembly.by_name(groups.values(), f"{where}: node groups"),
        nodes=assembly.by_name(nodes, f"{where}: nodes"),
        instances=assembly.by_name(instances, f"{where}: instances"),
        notes=(assembly.NO_RUN_TIME, *forthcoming_note(forthcoming)),
    )
    return assembly.checked(observed, where)


def with_release(observed: state.ClusterState, said: str) -> state.ClusterState:
    """Return the state with the release that the master says it runs: config.data says only 3.1 of 3.1.1.

    What is of another release than the configuration, or no release, is passed over.
    """
    release = said.strip()
    same = is_release(release) and release_of(release) == observed.software_version
    return replace(observed, software_version=release) if same else observed


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


def _node_from_record(node: Record, group_names: dict[str, str], *, is_master: bool) -> state.LiveNode:
    group = node.text("group")
    if group not in group_names:
        raise InputError(f"{node.where}: is in an unknown group: {group!r}")
    return state.LiveNode(
        name=node.name("name"),
        group=group_names[group],
        own=_own(node, Level.NODE),
        tags=node.tags(),
        identity=assembly.read(state.Identity, node),
        offline=node.flag("offline", default=False),
        drained=node.flag("drained", default=False),
        master=is_master,
        master_candidate=node.flag_or_none("master_candidate"),
        master_capable=node.flag_or_none("master_capable"),
        vm_capable=node.flag("vm_capable", default=True),
    )


def _instances(config: Record, cluster: Record, node_names: dict[str, str]) -> tuple[list[state.LiveInstance], int]:
    """Return the instances, and how many forthcoming ones (from 2.16 on) have no name or place yet."""
    beparams = Record.of(assembly.default_of(cluster, "beparams"), f"{cluster.where}: beparams")
    all_disks = dict(config.records("disks"))
    instances: list[state.LiveInstance] = []
    left_out = 0
    for _, record in config.records("instances"):
        has_place = record.fields.get("name") and record.fields.get("primary_node")
        if record.fields.get("forthcoming") is True and not has_place:
            left_out += 1
        else:
            instances.append(_instance(record, beparams, all_disks, node_names))
    return instances, left_out


def _instance(
    record: Record, cluster_beparams: Record, all_disks: dict[str, Record], node_names: dict[str, str]
) -> state.LiveInstance:
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
            state.LiveDisk(size=disk.whole("size"), template=_template(disk), spindles=disk.whole_or_none("spindles"))
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


def _nested(values: Values) -> dict[str, Value]:
    return unflatten(dict(sorted(values.items(), key=lambda item: position(item[0]))))


SNAPSHOT_FILE = OwnFile("gpolicy-snapshot", "1.3", "a snapshot of gpolicy")
TIME = Checked("YYYY-MM-DDThh:mm:ssZ", is_time)
TAKEN = fields_of(state.Snapshot, taken_at=TIME)

_FORMS: Forms = {dict: _nested, frozenset: sorted}  # of own values and tags
_GROUP, _NODE, _INSTANCE = (
    fields_of(kind, without={"name"}, forms=_FORMS) for kind in (state.LiveGroup, state.LiveNode, state.LiveInstance)
)
_SNAPSHOT = Shape(state.ClusterState, forms=_FORMS).with_keys(
    "format_version kind source taken_at name software_version notes unreadable cluster groups nodes instances",
    **SNAPSHOT_FILE.head,
    taken_at="snapshot.taken_at",
    groups=_GROUP,
    nodes=_NODE,
    instances=_INSTANCE,
)


def write_snapshot(observed: state.ClusterState, path: FilePath, *, taken_at: str | None = None) -> None:
    """Write the state to `path`, readable by its owner only. Raise GpolicyError, and change nothing, if that fails.

    `taken_at` is when the cluster was read, YYYY-MM-DDThh:mm:ssZ; a state from a snapshot keeps the time of the
    snapshot.
    """
    write_private(path, dump_snapshot(observed, taken_at=taken_at))


def dump_snapshot(observed: state.ClusterState, *, taken_at: str | None = None) -> bytes:
    """Return the state as the content of a snapshot file."""
    document = _SNAPSHOT(replace(observed, snapshot=observed.snapshot or state.Snapshot("", taken_at)))
    for name, group in observed.groups.items():
        if group.effective == fill(group.own, observed.cluster.own, Level.GROUP):
            del document["groups"][name]["effective"]
    try:
        return (json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    except ValueError:
        raise GpolicyError(about(observed.address, "holds a number or text that JSON cannot carry")) from None


_WRITE_ONE = "write one with: gpolicy snapshot --state SRC --save FILE"


def read_snapshot(path: FilePath) -> state.ClusterState:
    """Return the state in the snapshot at `path`. Raise InputError if it is not a snapshot."""
    return parse_snapshot(read_bytes(path), str(path))


def parse_snapshot(data: bytes, where: str) -> state.ClusterState:
    """Return the state in `data`, the content of a snapshot. Raise InputError, which begins with `where`."""
    try:
        document = Record.of(parse_json(data, where), where)
    except InputError as error:
        raise InputError(error.message, hint=error.hint or _WRITE_ONE) from None
    if (kind := document.fields.get("kind")) != SNAPSHOT_FILE.kind:
        found = f", but {shown(kind)}" if isinstance(kind, str) else ""
        raise InputError(f"{where}: not {SNAPSHOT_FILE.noun}{found}", hint=_WRITE_ONE)
    if not SNAPSHOT_FILE.reads(version := document.text("format_version")):
        raise InputError(f"{where}: is of format {version!r}, this gpolicy reads {SNAPSHOT_FILE.version}")
    cluster = assembly.read(state.ClusterObject, document.record("cluster"))
    observed: state.ClusterState = assembly.read(
        _SNAPSHOT,
        document,
        cluster=cluster,
        groups={name: _read_group(name, group, cluster.own) for name, group in document.records("groups")},
        nodes={name: assembly.read(_NODE, node, name=name) for name, node in document.records("nodes")},
        instances={
            name: assembly.read(_INSTANCE, item, name=name, forthcoming=item.flag("forthcoming", default=False))
            for name, item in document.records("instances")
        },
        snapshot=assembly.read(TAKEN, document, file=where),
    )
    return assembly.checked(observed, where)


def state_digest(observed: state.ClusterState, *, besides: Iterable[state.Unreadable] = ()) -> str:
    """Return "sha256:…" over what a plan depends on: own values, tags, membership, instances.

    Serial numbers, times, measurements, run-time states, order and the source itself do not count, so two reads of an
    unchanged cluster have the same digest. Values that the source cannot show do not count either. If `besides` names
    those of another source, both sources give one cluster the same digest.
    """
    gaps = (*observed.unreadable, *besides)

    def own(values: Values, level: Level) -> list[Value]:
        shown = (item for item in sorted(values.items()) if not any(gap.covers(level, item[0]) for gap in gaps))
        return [[list(path), value] for path, value in shown]

    content = {
        "name": observed.name,
        "cluster": [own(observed.cluster.own, Level.CLUSTER), sorted(observed.cluster.tags)],
        "groups": {name: [own(group.own, Level.GROUP), sorted(group.tags)] for name, group in observed.groups.items()},
        "nodes": {
            node.name: [
                own(node.own, Level.NODE), sorted(node.tags), node.group, node.offline, node.drained, node.vm_capable,
            ]
            for node in observed.nodes.values()
        },
        "instances": {
            name: {key: plain(getattr(item, key), _FORMS) for key in _IN_DIGEST}
            for name, item in observed.instances.items()
        },
    }  # fmt: skip
    return "sha256:" + hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


_NOT_IN_DIGEST = (
    *("identity", "status", "running", "hypervisor"),
    *("position", "oper_ram", "forthcoming", "summed_disk"),  # unknown to format 1.0: its digests must still match
)

_IN_DIGEST = tuple(item.name for item in fields(state.LiveInstance) if item.name not in {"name", *_NOT_IN_DIGEST})


def _read_group(name: str, record: Record, cluster: Values) -> state.LiveGroup:
    own = assembly.own_values(record.record("own").fields, record.where)
    known = {} if "effective" in record.fields else {"effective": fill(own, cluster, Level.GROUP)}
    return assembly.read(_GROUP, record, name=name, own=own, **known)
