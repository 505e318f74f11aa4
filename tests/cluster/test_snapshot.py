from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from gpolicy.cluster.htools_sources import read_text_file
from gpolicy.cluster.state import (
    HIDDEN_BY_RAPI,
    ClusterObject,
    ClusterState,
    Identity,
    LiveDisk,
    LiveGroup,
    LiveInstance,
    LiveNode,
    PhysicalVolume,
    Resources,
    Unreadable,
)
from gpolicy.cluster.state_files import dump_snapshot, parse_snapshot, read_snapshot, state_digest, write_snapshot
from gpolicy.errors import GpolicyError, InputError
from gpolicy.ganeti.amounts import BOUNDED_FAMILIES, BOUNDS
from gpolicy.ganeti.parameters import canonical, fill, parameters_of
from gpolicy.ganeti.vocabulary import ALLOC_POLICIES, SPEC_PARAMETERS, Level, Parameter, Type, Value, Values
from tests.cli.command_line import ROOT, gpolicy as command_line
from tests.cluster import recorded

numbers = st.integers(0, 2**40)


def bounded(name: str) -> st.SearchStrategy[int]:
    """Give the numbers that a cluster can have in the field or parameter of this name."""
    return st.integers(BOUNDS[name].least, BOUNDS[name].most)


names = st.text(min_size=1, max_size=12)
maybe = st.one_of
tags = st.frozensets(names, max_size=3)
identities = st.builds(
    Identity,
    uuid=maybe(st.none(), names),
    serial_no=maybe(st.none(), numbers),
    mtime=maybe(st.none(), st.floats(0, 2e9)),
)
specs = st.fixed_dictionaries({name: bounded(name) for name in SPEC_PARAMETERS})
sizes = bounded("size")
volumes = st.builds(PhysicalVolume, name=names, size=sizes, free=sizes, used=sizes, allocatable=st.booleans()).map(
    lambda item: replace(item, free=min(item.size, item.free))
)
BY_TYPE: dict[Type, st.SearchStrategy[Any]] = {
    Type.INT: st.integers(-5, 2**30),
    Type.SIZE: numbers,
    Type.MIB: numbers,
    Type.FLOAT: st.floats(-10, 1e6),
    Type.BOOL: st.booleans(),
    Type.STRING: st.text(max_size=9),
    Type.CHOICE: names,
    Type.LIST: st.lists(names, max_size=3),
    Type.SET: st.lists(names, max_size=3),
    Type.DICT: st.dictionaries(names, names | st.none(), max_size=2),
    Type.MINMAX: st.lists(st.fixed_dictionaries({"min": specs, "max": specs}), max_size=2),
    Type.UID_RANGES: st.lists(st.lists(numbers, min_size=2, max_size=2), max_size=2),
}


@st.composite
def own(draw: st.DrawFn, level: Level) -> Values:
    chosen: list[Parameter] = draw(st.lists(st.sampled_from(parameters_of(level)), max_size=8))
    values: Values = {}
    for parameter in chosen:
        path = tuple(draw(names) if key == "*" else key for key in parameter.path)
        of_type = BY_TYPE[parameter.type]
        if path[0] in BOUNDED_FAMILIES and path[-1] in BOUNDS:
            of_type = bounded(path[-1]).map(float) if parameter.type is Type.FLOAT else bounded(path[-1])
        value: Value = draw(st.sampled_from(ALLOC_POLICIES) if path == ("alloc_policy",) else of_type)
        values[path] = canonical(path, value)
    if draw(st.booleans()):
        values["ndparams", "a new one"] = draw(numbers)
    return values


@st.composite
def states(draw: st.DrawFn) -> ClusterState:
    cluster = ClusterObject(own=draw(own(Level.CLUSTER)), tags=draw(tags), identity=draw(identities))
    groups: dict[str, LiveGroup] = {}
    for name in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        values = draw(own(Level.GROUP))
        effective = draw(maybe(st.just(fill(values, cluster.own, Level.GROUP)), own(Level.GROUP)))
        groups[name] = LiveGroup(name=name, own=values, effective=effective, tags=draw(tags), identity=draw(identities))
    nodes: dict[str, LiveNode] = {}
    flags = st.booleans()
    for name in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        figures = {key: draw(maybe(st.none(), bounded(key))) for key in Resources.__slots__}
        for kind in ("disk", "spindles"):
            total, free = figures[f"{kind}_total"], figures[f"{kind}_free"]
            if total is not None and free is not None:
                figures[f"{kind}_free"] = min(total, free)
        measured = Resources(**figures)
        nodes[name] = LiveNode(
            name=name,
            group=draw(st.sampled_from(sorted(groups))),
            own=draw(own(Level.NODE)),
            tags=draw(tags),
            offline=draw(flags),
            drained=draw(flags),
            master_candidate=draw(maybe(st.none(), flags)),
            vm_capable=draw(flags),
            resources=measured,
            physical_volumes=draw(
                maybe(st.none(), st.lists(volumes, max_size=2, unique_by=lambda item: item.name).map(tuple))
            ),
        )
    some_node = st.sampled_from(sorted(nodes))
    places = st.lists(some_node, min_size=1, max_size=2, unique=True)
    instances = {
        name: LiveInstance(
            name=name,
            primary_node=(place := draw(places))[0],
            secondary_nodes=tuple(place[1:]),
            disk_template=draw(names),
            disks=tuple(
                draw(
                    st.lists(
                        st.builds(LiveDisk, size=sizes, template=names, spindles=maybe(st.none(), bounded("spindles")))
                    )
                )
            )[:2],
            minmem=draw(bounded("minmem")),
            maxmem=draw(bounded("maxmem")),
            vcpus=draw(bounded("vcpus")),
            spindle_use=draw(bounded("spindle_use")),
            running=draw(maybe(st.none(), flags)),
            tags=draw(tags),
        )
        for name in draw(st.lists(names, max_size=3, unique=True))
    }
    return ClusterState(
        source=draw(names),
        name=draw(names),
        software_version=draw(maybe(st.none(), names)),
        cluster=cluster,
        groups=groups,
        nodes=nodes,
        instances=instances,
        unreadable=draw(st.sampled_from([(), HIDDEN_BY_RAPI, (Unreadable(level=Level.NODE),)])),
        notes=tuple(draw(st.lists(names, max_size=2))),
    )


@given(states())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_law_a_written_snapshot_reads_back(state: ClusterState) -> None:
    again = parse_snapshot(dump_snapshot(state), "file")
    assert again == state
    assert state_digest(again) == state_digest(state)
    assert dump_snapshot(again) == dump_snapshot(state)


@pytest.mark.parametrize("cluster", recorded.CLUSTERS)
def test_recorded_clusters_are_read_back(cluster: str, tmp_path: Path) -> None:
    state = recorded.from_config(cluster)
    write_snapshot(state, tmp_path / "state.json")
    assert read_snapshot(tmp_path / "state.json") == state
    shown = read_text_file(recorded.path("full", "htools.data"))
    assert parse_snapshot(dump_snapshot(shown), "file") == shown


def test_a_snapshot_of_rapi_keeps_what_was_unreadable() -> None:
    state = replace(recorded.from_config("full"), unreadable=HIDDEN_BY_RAPI)
    assert not parse_snapshot(dump_snapshot(state), "file").readable(Level.NODE, ("hv_state", "kvm", "mem_node"))


class TestFile:
    @pytest.fixture
    def state(self) -> ClusterState:
        return recorded.from_config("base")

    def test_only_the_owner_can_read_a_snapshot(self, state: ClusterState, tmp_path: Path) -> None:
        (tmp_path / "state.json").write_text("old")
        (tmp_path / "state.json").chmod(0o644)
        write_snapshot(state, tmp_path / "state.json")
        assert stat.S_IMODE((tmp_path / "state.json").stat().st_mode) == 0o600
        assert [file.name for file in tmp_path.iterdir()] == ["state.json"]

    def test_a_failure_keeps_the_old_snapshot(
        self, state: ClusterState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "state.json").write_text("old")

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(GpolicyError, match="No space left"):
            write_snapshot(state, tmp_path / "state.json")
        assert (tmp_path / "state.json").read_text() == "old"
        assert len(list(tmp_path.iterdir())) == 1

    def test_a_snapshot_is_not_written_through_a_link(self, state: ClusterState, tmp_path: Path) -> None:
        (tmp_path / "real").write_text("old")
        (tmp_path / "link").symlink_to("real")
        with pytest.raises(GpolicyError, match="is a symbolic link"):
            write_snapshot(state, tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "real").read_text() == "old"

    @pytest.mark.parametrize("name", ["", "missing/state.json", "a\0b"])
    def test_a_snapshot_that_cannot_be_written(self, state: ClusterState, tmp_path: Path, name: str) -> None:
        with pytest.raises(GpolicyError, match="cannot be written"):
            write_snapshot(state, tmp_path / name)

    def test_a_device_is_never_replaced(self, state: ClusterState) -> None:
        with pytest.raises(GpolicyError, match="not a regular file"):
            write_snapshot(state, Path("/dev/null"))

    def test_nan_is_not_written(self, state: ClusterState) -> None:
        own = {**state.cluster.own, ("ipolicy", "vcpu-ratio"): float("nan")}
        with pytest.raises(GpolicyError, match="cannot carry"):
            dump_snapshot(replace(state, cluster=ClusterObject(own=own)))


class TestReader:
    @pytest.fixture
    def document(self) -> Any:
        return json.loads(dump_snapshot(recorded.from_config("base")))

    def test_a_later_minor_version_with_more_keys_is_read(self, document: Any) -> None:
        document.update(format_version="1.7", more=1)
        document["cluster"]["more"] = 1
        assert parse_snapshot(json.dumps(document).encode(), "file") == recorded.from_config("base")

    @pytest.mark.parametrize(
        ("key", "value", "message"),
        [
            ("kind", "other", "not a snapshot"),
            ("format_version", "2.0", "is of format '2.0'"),
            ("format_version", 1, "format_version should be text"),
            ("unreadable", [{"level": "moon", "prefix": []}], "one of cluster, group, node"),
            ("groups", {}, "in an unknown group"),
            ("nodes", {}, "on an unknown node"),
            ("notes", [1], "notes should be a list of text"),
            ("instances", {"i": 3}, "instances: i: should be a mapping"),
        ],
    )
    def test_errors_of_a_snapshot_name_their_place(self, document: Any, key: str, value: Any, message: str) -> None:
        document[key] = value
        with pytest.raises(InputError, match=message):
            parse_snapshot(json.dumps(document).encode(), "file")

    def test_no_instance_has_one_node_twice(self, document: Any) -> None:
        instance = document["instances"]["inst2"]
        instance["secondary_nodes"] = [instance["primary_node"]]
        with pytest.raises(InputError, match="'inst2' has its primary node as secondary node, too"):
            parse_snapshot(json.dumps(document).encode(), "file")


class TestDigest:
    def test_versions_times_and_measurements_do_not_count(self) -> None:
        state = recorded.from_config("full")
        node = replace(state.nodes["node1"], resources=Resources(memory_free=1), identity=Identity(serial_no=99))
        instance = replace(state.instances["inst1"], running=False, status="x")
        other = replace(
            state,
            source="elsewhere",
            software_version="9",
            notes=("a note",),
            cluster=replace(state.cluster, identity=Identity(mtime=3.0)),
            nodes={**state.nodes, "node1": node},
            instances={**state.instances, "inst1": instance},
        )
        assert state_digest(other) == state_digest(state)
        reordered = replace(state, nodes=dict(reversed(state.nodes.items())))
        assert state_digest(reordered) == state_digest(state)

    def test_own_values_tags_membership_and_instances_count(self) -> None:
        state = recorded.from_config("full")
        group, node, instance = state.groups["gold"], state.nodes["node1"], state.instances["inst1"]
        others = [
            replace(state, cluster=replace(state.cluster, tags=frozenset())),
            replace(state, groups={**state.groups, "gold": replace(group, own={})}),
            replace(state, nodes={**state.nodes, "node1": replace(node, group="gold")}),
            replace(state, nodes={**state.nodes, "node1": replace(node, offline=True)}),
            replace(state, instances={**state.instances, "inst1": replace(instance, maxmem=1)}),
            replace(state, instances={}),
            replace(state, name="other"),
        ]
        digests = {state_digest(other) for other in [state, *others]}
        assert len(digests) == len(others) + 1
        assert all(digest.startswith("sha256:") for digest in digests)

    def test_values_that_a_source_cannot_show_do_not_count(self) -> None:
        state = recorded.from_config("full")
        blind = replace(state, unreadable=HIDDEN_BY_RAPI)
        assert state_digest(blind) != state_digest(state)
        assert state_digest(blind) == state_digest(state, besides=HIDDEN_BY_RAPI)


def test_fields_for_the_allocator_are_kept_and_do_not_count_in_the_digest() -> None:
    state = read_text_file(recorded.path("full", "htools.data"))
    again = parse_snapshot(dump_snapshot(state), "x")
    for kind in ("groups", "nodes", "instances"):
        before, after = getattr(state, kind), getattr(again, kind)
        assert {name: item.position for name, item in after.items()} == {
            name: item.position for name, item in before.items()
        }
    assert again.instances == state.instances
    assert again.instances["inst2"].summed_disk == LiveDisk(size=25856, template="drbd", spindles=None)
    bare = {
        name: replace(item, oper_ram=None, forthcoming=True, summed_disk=None, position=None)
        for name, item in state.instances.items()
    }
    assert state_digest(replace(state, instances=bare)) == state_digest(state)


def test_a_snapshot_of_format_1_0_is_still_read() -> None:
    document = json.loads(dump_snapshot(recorded.from_config("full")))
    document["format_version"] = "1.0"
    for kind in ("groups", "nodes", "instances"):
        for item in document[kind].values():
            for key in ("position", "networks", "oper_ram", "forthcoming", "summed_disk"):
                item.pop(key, None)
    assert parse_snapshot(json.dumps(document).encode(), "x") == recorded.from_config("full")


def test_the_hint_writes_a_snapshot(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        parse_snapshot(b"{}", "FILE")
    hint = caught.value.hint or ""
    given = {"SRC": f"snapshot:{ROOT}/policies/two-groups.snapshot.json", "FILE": str(tmp_path / "one")}
    words = [given.get(word, word) for word in hint.partition(": gpolicy ")[2].split()]
    assert command_line(*words).returncode == 0
    assert parse_snapshot((tmp_path / "one").read_bytes(), "one").nodes
