from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpolicy.cluster.state import ClusterState, LiveDisk
from gpolicy.cluster.state_files import parse_config, read_config_file
from gpolicy.errors import InputError
from gpolicy.ganeti.parameters import parameters_of
from gpolicy.ganeti.vocabulary import Level
from tests.cluster import recorded


def parse(config: Any) -> ClusterState:
    return parse_config(json.dumps(config).encode(), where="config.data", source="config:config.data")


@pytest.fixture
def config() -> Any:
    return recorded.load("full", "config.data")


def test_cluster_groups_nodes_and_instances_are_read() -> None:
    state = recorded.from_config("full")
    assert (state.name, state.software_version) == ("cluster", "3.0")
    assert list(state.groups) == ["default", "empty", "gold"]
    assert [node.name for node in state.nodes_of("gold")] == ["node4", "node5"]
    assert [node.name for node in state.nodes.values() if node.master] == ["node1"]
    assert [node.name for node in state.nodes.values() if node.drained] == ["node5"]
    assert state.cluster.tags >= {"htools:iextags:service"}
    assert state.nodes["node1"].tags == {"power:p1"}
    assert state.unreadable == ()
    assert any("no live data" in note for note in state.notes)


def test_every_parameter_that_this_release_knows_of_the_cluster_has_a_value() -> None:
    own = recorded.from_config("full").cluster.own
    no_value = {"hv_state", "disk_state"}  # only for hypervisors and volume groups in use
    later = {("diskparams", "rbd", "user-id")}
    missing = {item.path for item in parameters_of(Level.CLUSTER) if item.family not in no_value} - own.keys() - later
    assert missing == set()


def test_states_collectors_and_uid_ranges() -> None:
    own = recorded.from_config("full").cluster.own
    assert own["hv_state", "fake", "mem_node"] == 2048
    assert own["enabled_data_collectors", "drbd"] is False
    assert own["data_collector_interval", "drbd"] == 5_000_000
    assert own["uid_pool",] == [[4000, 4019], [5000, 5000]]
    assert own["beparams", "maxmem"] == 128
    assert own["nicparams", "mode"] == "bridged"


def test_t20_own_values_of_a_group_are_apart_from_what_it_inherits() -> None:
    gold = recorded.from_config("full").groups["gold"]
    assert ("ndparams", "cpu_speed") not in gold.own
    assert gold.effective["ndparams", "cpu_speed"] == 1.5
    assert gold.own["disk_state", "plain", "xenvg", "disk_reserved"] == 1024
    assert gold.own["alloc_policy",] == "last_resort"


def test_t12_disk_parameters_of_a_group_are_filled_one_by_one() -> None:
    gold = recorded.from_config("full").groups["gold"]
    assert gold.effective["diskparams", "drbd", "resync-rate"] == 90000
    assert gold.effective["diskparams", "drbd", "protocol"] == "C"


def test_t49_an_emptied_template_leaves_nothing() -> None:
    stored = [
        group for group in recorded.load("full", "config.data")["nodegroups"].values() if group["name"] == "empty"
    ]
    assert stored[0]["diskparams"] == {"drbd": {}}
    assert recorded.from_config("full").groups["empty"].own == {("alloc_policy",): "preferred"}


def test_t50_null_is_not_set(config: Any) -> None:
    for group in config["nodegroups"].values():
        group["ipolicy"] = {"minmax": None, "vcpu-ratio": None}
    assert ("ipolicy", "minmax") not in parse(config).groups["gold"].own


def test_t53_unknown_parameters_in_a_known_family_are_kept_and_unknown_keys_of_the_cluster_are_not(config: Any) -> None:
    config["cluster"]["ndparams"]["new_one"] = 3
    config["cluster"]["diskparams"]["rbd"]["user-id"] = "me"
    config["cluster"]["unheard_of"] = "x"
    config["cluster"]["rsahostkeypub"] = "key"
    own = parse(config).cluster.own
    assert own["ndparams", "new_one"] == 3
    assert own["diskparams", "rbd", "user-id"] == "me"
    assert not {"unheard_of", "rsahostkeypub", "candidate_certs", "osparams", "master_ip"} & {path[0] for path in own}


def test_templates_and_secondaries_follow_from_disks() -> None:
    instances = recorded.from_config("full").instances
    assert instances["inst2"].disk_template == "drbd"
    assert instances["inst2"].secondary_nodes == ("node3",)
    assert instances["inst2"].disks == (LiveDisk(size=20480, template="drbd"), LiveDisk(size=5120, template="drbd"))
    assert instances["inst4"].disk_template == "diskless"
    assert instances["inst6"].nic_count == 2
    assert (instances["inst6"].admin_state, instances["inst4"].admin_state) == ("offline", "down")


def test_disks_of_several_templates_are_mixed_and_a_drbd_child_gives_a_secondary(config: Any) -> None:
    drbd, plain, around = (_disk(config, template) for template in ("drbd", "plain", "file"))
    around["children"] = [drbd]
    plain["spindles"] = 3
    instance = next(item for item in config["instances"].values() if item["name"] == "inst2")
    instance["disks"] = [plain["uuid"], around["uuid"]]
    read = parse(config).instances["inst2"]
    assert read.disk_template == "mixed"
    assert {disk.template for disk in read.disks} == {"plain", "file"}
    assert read.disks[0].spindles == 3
    assert set(read.secondary_nodes) == {_node_name(config, uuid) for uuid in drbd["logical_id"][:2]} - {
        read.primary_node
    }


def _disk(config: Any, template: str) -> Any:
    return next(disk for disk in config["disks"].values() if disk["dev_type"] == template)


def _node_name(config: Any, uuid: str) -> Any:
    return config["nodes"][uuid]["name"]


def test_backend_parameters_are_filled_from_the_cluster() -> None:
    inst3 = recorded.from_config("full").instances["inst3"]
    assert (inst3.minmem, inst3.maxmem, inst3.spindle_use, inst3.auto_balance) == (1024, 2048, 3, False)
    assert inst3.always_failover is False


def test_a_forthcoming_instance_without_a_node_is_skipped_with_a_note(config: Any) -> None:
    instance = next(item for item in config["instances"].values() if item["name"] == "inst1")
    instance.update(forthcoming=True, primary_node=None)
    state = parse(config)
    assert "inst1" not in state.instances
    assert any("1 forthcoming" in note for note in state.notes)


def test_a_node_s_exclusive_storage_is_dropped_as_ganeti_does(config: Any) -> None:
    for node in config["nodes"].values():
        node["ndparams"]["exclusive_storage"] = True
    assert ("ndparams", "exclusive_storage") not in parse(config).nodes["node1"].own


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"\x7fELF\x00\x01", "not text|not valid JSON"),
        (b"\xff\xfe\x00", "not text"),
        (b"[]", "should be a mapping, but is a list"),
        (b"{}", "not a config.data"),
        (b'{"cluster": {}, "nodegroups": {}}', "cluster_name should be text, but is missing"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "thousands of digits"),
        (b"[" * 200_000, "nested too deeply"),
        (b"[" * 101 + b"]" * 101, "nested too deeply"),
        (b'{"a": "\\ud800"}', "surrogate"),
    ],
)
def test_an_invalid_config_data_is_one_clear_error(content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_config(content, where="the file", source="config:x")
    assert caught.value.message.startswith("the file")
    assert "\n" not in caught.value.message


def test_a_truncated_file_says_that_it_may_be_incomplete() -> None:
    data = recorded.path("full", "config.data").read_bytes()
    for end in range(1, len(data) - 2, 997):
        with pytest.raises(InputError):
            parse_config(data[:end], where="config.data", source="config:x")
    with pytest.raises(InputError, match="complete"):
        parse_config(data[:-3], where="config.data", source="config:x")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_config_file(tmp_path / "nothing")
    with pytest.raises(InputError, match="is a directory"):
        read_config_file(tmp_path)
    with pytest.raises(InputError, match="not a file name"):
        read_config_file(Path("a\0b"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: c["cluster"]["ndparams"].update(spindle_count="many"),
            "ndparams.spindle_count should be of type int",
        ),
        (lambda c: c["cluster"].update(ndparams=[1]), "ndparams: should be a mapping"),
        (lambda c: c["cluster"]["diskparams"].update(drbd=3), "diskparams.drbd should be a mapping"),
        (lambda c: c["cluster"]["ipolicy"].update(minmax=[{"min": {}}]), "ipolicy.minmax"),
        (lambda c: c["nodes"].clear(), "on an unknown node"),
        (lambda c: c["nodegroups"].clear(), "in an unknown group"),
        (lambda c: c["disks"].clear(), "has an unknown disk"),
        (lambda c: [node.update(name="same") for node in c["nodes"].values()], "'same' occurs twice"),
    ],
)
def test_wrong_shapes_are_named(config: Any, change: Any, message: str) -> None:
    change(config)
    with pytest.raises(InputError, match=message):
        parse(config)


@pytest.mark.parametrize(
    "content", [b"{}", b'{"cluster": {}}', b'{"nodegroups": {}}', b'{"cluster": 1, "nodegroups": {}}']
)
def test_a_file_that_lacks_the_cluster_or_the_groups_is_no_configuration(content: bytes) -> None:
    with pytest.raises(InputError, match=r"x: not a config\.data of Ganeti"):
        parse_config(content, where="x", source="config:x")


@pytest.mark.parametrize(
    ("beside", "release"),
    [
        (None, "3.1"),
        (b"3.1.1\n", "3.1.1"),
        (b"3.1.0~rc2\n", "3.1.0~rc2"),
        (b"3.0.2\n", "3.1"),  # of another release than the configuration
        (b"\xff\n", "3.1"),
        (b"3.1.1\x1b[31m\n", "3.1"),
    ],
)
def test_the_file_beside_the_configuration_says_which_release(
    config: Any, tmp_path: Path, beside: bytes | None, release: str
) -> None:
    config["version"] = 3_010_000
    (tmp_path / "config.data").write_text(json.dumps(config))
    if beside is not None:
        (tmp_path / "ssconf_release_version").write_bytes(beside)
    assert read_config_file(tmp_path / "config.data").software_version == release
