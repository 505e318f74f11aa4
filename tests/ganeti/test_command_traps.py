"""Traps in how Ganeti's commands are built: each test shows that the trap is there, and that we step around it."""

from __future__ import annotations

from typing import Any

import pytest

from gpolicy.ganeti.commands import (
    RapiCall,
    add_tags,
    assign_nodes,
    cluster_modify,
    group_add,
    group_rename,
    object_modify,
    remove_tags,
)
from gpolicy.ganeti.expressible import RESET, InexpressibleError
from gpolicy.ganeti.parameters import canonical
from gpolicy.ganeti.vocabulary import DATA_COLLECTORS, DEFAULT_MAX, DEFAULT_MIN, Level, Path, Value
from tests.ganeti.real_ganeti import RefusedError, needs_ganeti, real_ganeti, values_of

pytestmark = needs_ganeti

PAIR: dict[str, Value] = {"min": {**DEFAULT_MIN}, "max": {**DEFAULT_MAX}}
SMALL: dict[str, Value] = {"min": {**DEFAULT_MIN}, "max": {**DEFAULT_MAX, "cpu-count": 2}}


def parse(*argv: str) -> dict[str, Any]:
    return real_ganeti().parse(argv)


def cluster_argv(path: Path, value: Value) -> tuple[str, ...]:
    argv = cluster_modify({path: value}, version="3.0").argv
    assert argv is not None
    return argv


def test_t01_options_stand_before_the_name() -> None:
    with pytest.raises(RefusedError, match="wrong number of arguments"):
        parse("gnt-group", "modify", "g", "--alloc-policy=preferred")
    argv = object_modify(Level.GROUP, "g", {("alloc_policy",): "preferred"}).argv
    assert argv == ("gnt-group", "modify", "--alloc-policy=preferred", "g")


def test_t01_a_name_that_looks_like_an_option_stands_behind_two_dashes() -> None:
    with pytest.raises(RefusedError):
        parse("gnt-group", "remove", "-g")
    argv = object_modify(Level.GROUP, "-g", {("alloc_policy",): "preferred"}).argv
    assert argv == ("gnt-group", "modify", "--alloc-policy=preferred", "--", "-g")
    assert real_ganeti().parse(argv)["group_name"] == "-g"
    assert real_ganeti().parse(group_rename("-g", "--dry-run").argv)["new_name"] == "--dry-run"


def test_t02_one_argument_per_template_and_hypervisor() -> None:
    lost = parse("gnt-cluster", "modify", "-D", "drbd:metavg=a", "-D", "drbd:protocol=B")
    assert lost["diskparams"] == {"drbd": {"protocol": "B"}}
    wanted: dict[Path, Value] = {
        ("diskparams", "drbd", "metavg"): "a",
        ("diskparams", "plain", "stripes"): 2,
        ("diskparams", "drbd", "protocol"): "B",
        ("hvparams", "kvm", "acpi"): True,
        ("hvparams", "kvm", "vga"): "",
        ("hv_state", "kvm", "mem_node"): 1,
        ("hv_state", "kvm", "cpu_node"): 2,
    }
    argv = cluster_modify(wanted, version="3.0").argv
    assert argv is not None
    starts = [word.split(":")[0] for word in argv if ":" in word]
    assert len(starts) == len(set(starts)) == 4
    assert values_of(real_ganeti().parse(argv)) == wanted


def test_t02_one_argument_per_volume_group() -> None:
    with pytest.raises(RefusedError, match="TypeError"):
        parse(
            "gnt-node", "modify", "--disk-state", "plain/v:disk_total=1", "--disk-state", "plain/v:disk_reserved=1", "n"
        )
    wanted: dict[Path, Value] = {
        ("disk_state", "plain", "v", "disk_total"): 1,
        ("disk_state", "plain", "w", "disk_total"): 3,
        ("disk_state", "plain", "v", "disk_reserved"): 2,
    }
    assert values_of(real_ganeti().parse(object_modify(Level.NODE, "n", wanted).argv)) == wanted


def test_t03_parameter_lists_do_not_add_up() -> None:
    lost = parse("gnt-group", "modify", "--node-parameters=ovs=true", "--node-parameters=ssh_port=2", "g")
    assert lost["ndparams"] == {"ssh_port": 2}
    argv = object_modify(Level.GROUP, "g", {("ndparams", "ovs"): True, ("ndparams", "ssh_port"): 2}).argv
    assert argv == ("gnt-group", "modify", "--node-parameters=ovs=true,ssh_port=2", "g")


def test_t04_bounds_are_always_the_whole_list_with_all_six() -> None:
    with pytest.raises(RefusedError, match="Missing parameters in ipolicy spec"):
        parse("gnt-group", "modify", "--ipolicy-bounds-specs=min:cpu-count=1/max:cpu-count=2", "g")
    with pytest.raises(InexpressibleError, match="lacks"):
        object_modify(Level.GROUP, "g", {("ipolicy", "minmax"): [{"min": {"cpu-count": 1}, "max": {"cpu-count": 2}}]})
    fields = real_ganeti().parse(object_modify(Level.GROUP, "g", {("ipolicy", "minmax"): [PAIR, SMALL]}).argv)
    assert fields["ipolicy"]["minmax"] == [PAIR, SMALL]


def test_t05_std_is_partial_and_for_the_cluster_alone() -> None:
    fields = real_ganeti().parse(cluster_argv(("ipolicy", "std", "cpu-count"), 2))
    assert fields["ipolicy"] == {"std": {"cpu-count": 2}}
    with pytest.raises(RefusedError, match="no such option"):
        parse("gnt-group", "modify", "--ipolicy-std-specs=cpu-count=2", "g")
    with pytest.raises(InexpressibleError):
        object_modify(Level.GROUP, "g", {("ipolicy", "std", "cpu-count"): 2})


def test_t06_no_option_of_cluster_init_is_used() -> None:
    with pytest.raises(RefusedError, match="no such option"):
        parse("gnt-cluster", "modify", "--specs-cpu-count=min=1")
    wanted: dict[Path, Value] = {("ipolicy", "minmax"): [PAIR], ("ipolicy", "std", "cpu-count"): 1}
    argv = cluster_modify(wanted, version="3.0").argv
    assert argv is not None
    assert not [word for word in argv if word.startswith("--specs")]


def test_t07_bounds_and_std_go_in_one_command() -> None:
    high: dict[str, Value] = {"min": {**DEFAULT_MIN, "cpu-count": 4}, "max": {**DEFAULT_MAX}}
    bounds: dict[Path, Value] = {("ipolicy", "minmax"): [high]}
    with pytest.raises(RefusedError, match="Invalid std specifications"):
        real_ganeti().store(cluster_argv(("ipolicy", "minmax"), [high]), {})
    command = cluster_modify({**bounds, ("ipolicy", "std", "cpu-count"): 4}, version="3.0")
    assert command.argv is not None
    _, stored = real_ganeti().store(command.argv, {})
    assert (stored["ipolicy", "minmax"], stored["ipolicy", "std", "cpu-count"]) == ([high], 4)


def test_t08_sizes_are_those_that_both_routes_store_alike() -> None:
    assert parse("gnt-cluster", "modify", "--ipolicy-std-specs=memory-size=130")["ipolicy"]["std"] == {
        "memory-size": 132
    }
    by_rapi = RapiCall("PUT", "/2/modify", {"ipolicy": {"std": {"memory-size": 130}}})
    assert real_ganeti().receive(by_rapi)["ipolicy"]["std"] == {"memory-size": 130}
    with pytest.raises(InexpressibleError, match="rounds sizes up"):
        cluster_modify({("ipolicy", "std", "memory-size"): 130}, version="3.0")
    with pytest.raises(InexpressibleError, match="rounds sizes up"):
        object_modify(Level.GROUP, "g", {("ipolicy", "minmax"): [{**PAIR, "min": {**DEFAULT_MIN, "disk-size": 1}}]})


def test_t09_booleans_are_yes_and_no_in_options_and_true_and_false_in_lists() -> None:
    with pytest.raises(RefusedError, match="not a valid boolean"):
        parse("gnt-group", "modify", "--node-parameters=exclusive_storage=yes", "g")
    argv = object_modify(Level.GROUP, "g", {("ndparams", "exclusive_storage"): True, ("ndparams", "ovs"): False}).argv
    assert argv == ("gnt-group", "modify", "--node-parameters=exclusive_storage=true,ovs=false", "g")
    assert cluster_argv(("prealloc_wipe_disks",), value=True)[2:] == ("--prealloc-wipe-disks=yes",)
    assert cluster_argv(("modify_etc_hosts",), value=False)[2:] == ("--modify-etc-hosts=no",)


def test_t10_backslashes_and_commas_survive() -> None:
    assert parse("gnt-cluster", "modify", "--reserved-lvs=xenvg/a\\.b")["reserved_lvs"] == ["xenvg/a.b"]
    custom = "--c-max\\rate 1,2"
    for path, value in (
        (("reserved_lvs",), ["xenvg/a\\.b", "x{1,2}\\\\"]),
        (("diskparams", "drbd", "disk-custom"), custom),
        (("hvparams", "kvm", "kernel_args"), custom),
        (("ndparams", "oob_program"), custom),
        (("default_iallocator_params",), {"no_x": custom, "-y": "", "z": None, "-no_z": None}),
    ):
        assert values_of(real_ganeti().parse(cluster_argv(path, value)))[path] == value  # type: ignore[arg-type]


@pytest.mark.parametrize("template", ["rbd", "ext", "gluster"])
def test_t11_access_of_a_group_cannot_be_reset(template: str) -> None:
    path: Path = ("diskparams", template, "access")
    with pytest.raises(RefusedError, match="Invalid value of"):
        real_ganeti().store(("gnt-group", "modify", f"-D{template}:access=default", "g"), {path: "userspace"})
    with pytest.raises(InexpressibleError) as raised:
        object_modify(Level.GROUP, "g", {path: RESET})
    assert "cluster's value" in (raised.value.hint or "")
    assert object_modify(Level.GROUP, "g", {path: "kernelspace"}).argv


def test_t12_a_reset_of_one_disk_parameter_leaves_the_others() -> None:
    metavg: Path = ("diskparams", "drbd", "metavg")
    protocol: Path = ("diskparams", "drbd", "protocol")
    command = object_modify(Level.GROUP, "g", {metavg: RESET})
    assert command.argv is not None
    _, stored = real_ganeti().store(command.argv, {metavg: "a", protocol: "B"})
    assert stored == {("alloc_policy",): "preferred", protocol: "B"}


@pytest.mark.parametrize(
    ("path", "option"),
    [
        (("diskparams", "drbd", "metavg"), "--disk-parameters=drbd:metavg=default"),
        (("ndparams", "oob_program"), "--node-parameters=oob_program=default"),
    ],
)
def test_t13_the_cluster_stores_the_word_default_and_so_it_takes_no_reset(path: Path, option: str) -> None:
    _, stored = real_ganeti().store(("gnt-cluster", "modify", option), {})
    assert stored[path] == "default"
    with pytest.raises(InexpressibleError, match="nothing to inherit"):
        cluster_modify({path: RESET}, version="3.0")


def test_t13_state_of_the_cluster_goes_back_to_the_built_in_value() -> None:
    path: Path = ("hv_state", "kvm", "cpu_node")
    command = cluster_modify({path: RESET}, version="3.0")
    assert command.argv is not None
    _, stored = real_ganeti().store(command.argv, {path: 7})
    assert stored[path] == 1


def test_t14_a_new_group_knows_no_reset() -> None:
    fields = parse("gnt-group", "add", "-Ddrbd:metavg=default", "g")
    assert fields["diskparams"] == {"drbd": {"metavg": "default"}}
    with pytest.raises(InexpressibleError, match="nothing to reset"):
        group_add("g", {("diskparams", "drbd", "metavg"): RESET})


def test_t15_a_ratio_of_zero_is_never_sent() -> None:
    ratio: Path = ("ipolicy", "vcpu-ratio")
    _, stored = real_ganeti().store(("gnt-group", "modify", "--ipolicy-vcpu-ratio=0", "g"), {ratio: 2.0})
    assert ratio not in stored
    with pytest.raises(RefusedError, match="Can't unset"):
        real_ganeti().store(("gnt-cluster", "modify", "--ipolicy-vcpu-ratio=0"), {})
    for wanted in (0, 0.0, -0.0):
        with pytest.raises(InexpressibleError):
            object_modify(Level.GROUP, "g", {ratio: wanted})
        with pytest.raises(InexpressibleError):
            group_add("g", {ratio: wanted})


def test_t16_a_change_of_nothing_is_no_command() -> None:
    assert parse("gnt-group", "modify", "g") == {"OP_ID": "OP_GROUP_SET_PARAMS", "group_name": "g"}
    with pytest.raises(InexpressibleError, match="changes nothing"):
        object_modify(Level.GROUP, "g", {})
    with pytest.raises(InexpressibleError, match="changes nothing"):
        object_modify(Level.NODE, "n", {})
    with pytest.raises(InexpressibleError, match="changes nothing"):
        cluster_modify({}, version="3.0")


def test_t17_a_node_takes_no_disk_parameters_and_only_long_options() -> None:
    assert parse("gnt-node", "modify", "-D", "yes", "n")["drained"] is True
    with pytest.raises(InexpressibleError, match="a node cannot have"):
        object_modify(Level.NODE, "n", {("diskparams", "drbd", "metavg"): "a"})
    wanted: dict[Path, Value] = {("ndparams", "ovs"): True, ("hv_state", "kvm", "mem_hv"): 3}
    argv = object_modify(Level.NODE, "n", wanted).argv
    assert argv is not None
    assert all(word.startswith("--") for word in argv[2:-1])


def test_t18_lists_of_templates_hold_no_spaces() -> None:
    with pytest.raises(RefusedError, match="enabled_disk_templates"):
        parse("gnt-cluster", "modify", "--enabled-disk-templates=plain, drbd")
    assert cluster_argv(("enabled_disk_templates",), ["plain", "drbd"])[2:] == ("--enabled-disk-templates=plain,drbd",)
    assert cluster_argv(("ipolicy", "disk-templates"), ["plain", "drbd"])[2:] == (
        "--ipolicy-disk-templates=plain,drbd",
    )
    with pytest.raises(InexpressibleError):
        cluster_argv(("enabled_disk_templates",), ["plain", " drbd"])


def test_t19_disk_state_is_written_as_plain_and_the_volume_group() -> None:
    with pytest.raises(RefusedError, match="Invalid storage type"):
        real_ganeti().store(("gnt-node", "modify", "--disk-state=lvm/vg:disk_total=1", "n"), {})
    argv = object_modify(Level.NODE, "n", {("disk_state", "plain", "vg", "disk_total"): 1}).argv
    assert argv == ("gnt-node", "modify", "--disk-state=plain/vg:disk_total=1", "n")


def test_t24_ganeti_keeps_the_order_of_enabled_and_of_allowed_templates() -> None:
    order: list[Value] = ["plain", "ext", "drbd"]
    assert real_ganeti().parse(cluster_argv(("enabled_disk_templates",), order))["enabled_disk_templates"] == order
    for allowed in (order, order[::-1]):
        path = ("ipolicy", "disk-templates")
        for argv in (cluster_argv(path, allowed), object_modify(Level.GROUP, "g", {path: allowed}).argv):
            assert argv is not None
            _, after = real_ganeti().store(argv, {})
            assert after[path] == allowed


@pytest.mark.parametrize("name", ["install_image", "zeroing_image"])
def test_t32_images_are_never_emptied(name: str) -> None:
    with pytest.raises(RefusedError, match="must be an absolute path or a URL"):
        real_ganeti().store(("gnt-cluster", "modify", f"--{name.replace('_', '-')}="), {})
    with pytest.raises(InexpressibleError, match="cannot be emptied again"):
        cluster_modify({(name,): ""}, version="3.0")


@pytest.mark.parametrize("name", ["master_netdev", "master_netmask"])
def test_t32_the_network_of_the_master_is_never_sent_empty(name: str) -> None:
    with pytest.raises(InexpressibleError):
        cluster_modify({(name,): "" if name == "master_netdev" else 0}, version="3.0")


def test_t33_collectors_are_true_or_false_and_known() -> None:
    lost = parse("gnt-cluster", "modify", "--enabled-data-collectors=drbd=yes")
    assert lost["enabled_data_collectors"] == {"drbd": False}
    wanted: dict[Path, Value] = {("enabled_data_collectors", name): name != "lv" for name in DATA_COLLECTORS}
    assert values_of(real_ganeti().parse(cluster_modify(wanted, version="3.0").argv)) == wanted
    with pytest.raises(InexpressibleError, match="no such parameter"):
        cluster_modify({("enabled_data_collectors", "bogus"): True}, version="3.0")


def test_t34_the_interval_of_a_collector_goes_through_rapi_from_3_0_on() -> None:
    with pytest.raises(RefusedError, match="TypeError"):
        parse("gnt-cluster", "modify", "--data-collector-interval=drbd=5")
    wanted: dict[Path, Value] = {("data_collector_interval", "drbd"): 2500000}
    for version in ("3.0", "3.1", "3.0.2"):
        command = cluster_modify(wanted, version=version)
        assert command.argv is None
        assert values_of(real_ganeti().receive(command.rapi)) == wanted
    argv = cluster_modify(wanted, version="2.16").argv
    assert argv == ("gnt-cluster", "modify", "--data-collector-interval=drbd=2.5")


def test_t37_names_that_are_written_differ_from_those_that_are_read() -> None:
    wanted: dict[Path, Value] = {("volume_group_name",): "vg", ("drbd_usermode_helper",): "/bin/true"}
    command = cluster_modify(wanted, version="3.0")
    assert command.argv is not None
    assert command.rapi == RapiCall("PUT", "/2/modify", {"vg_name": "vg", "drbd_helper": "/bin/true"})
    assert values_of(real_ganeti().receive(command.rapi)) == wanted
    _, stored = real_ganeti().store(command.argv, {})
    assert stored["volume_group_name",] == "vg"
    with pytest.raises(RefusedError, match="HttpBadRequest"):
        real_ganeti().receive(RapiCall("PUT", "/2/modify", {"volume_group_name": "vg"}))


def test_t38_each_request_has_the_method_and_the_form_that_rapi_wants() -> None:
    assert add_tags(Level.NODE, "n", ["b:+", "a"]).rapi == RapiCall("PUT", "/2/nodes/n/tags?tag=a&tag=b%3A%2B")
    assert remove_tags(Level.GROUP, "g", ["a"]).rapi == RapiCall("DELETE", "/2/groups/g/tags?tag=a")
    assert add_tags(Level.CLUSTER, None, ["a"]).rapi == RapiCall("PUT", "/2/tags?tag=a")
    ovs: dict[Path, Value] = {("ndparams", "ovs"): True}
    body: Value = {"ndparams": {"ovs": True}}
    assert object_modify(Level.NODE, "n", ovs).rapi == RapiCall("POST", "/2/nodes/n/modify", body)
    assert object_modify(Level.GROUP, "g", ovs).rapi == RapiCall("PUT", "/2/groups/g/modify", body)
    assert group_add("g", ovs).rapi == RapiCall("POST", "/2/groups", {"group_name": "g", "ndparams": {"ovs": True}})
    assert assign_nodes("g", ["n"]).rapi == RapiCall("PUT", "/2/groups/g/assign-nodes", {"nodes": ["n"]})
    with pytest.raises(RefusedError, match="HttpForbidden"):
        real_ganeti().receive(RapiCall("PUT", "/2/modify", {"compression_tools": ["gzip"]}))
    assert cluster_modify({("compression_tools",): ["gzip"]}, version="3.0").rapi is None


def test_t38_rapi_decodes_no_name_in_a_path_and_so_such_an_object_has_no_request() -> None:
    for address in ("/2/groups/a%20b", "/2/groups/%C3%BC"):
        with pytest.raises(RefusedError, match="HttpNotFound"):
            real_ganeti().receive(RapiCall("DELETE", address))
    for name in ("a b", "a/b", "..", "a?b"):
        assert group_rename(name, "g").rapi is None
        assert real_ganeti().receive(group_rename("g", name).rapi)["new_name"] == name
        assert real_ganeti().receive(group_add(name, {}).rapi)["group_name"] == name


def test_t48_ratios_are_stored_as_floats_whatever_is_written() -> None:
    ratio: Path = ("ipolicy", "vcpu-ratio")
    for wanted in (4, 4.0):
        command = object_modify(Level.GROUP, "g", {ratio: wanted})
        assert command.argv is not None
        _, stored = real_ganeti().store(command.argv, {})
        assert stored[ratio] == canonical(ratio, 4)
    assert object_modify(Level.GROUP, "g", {ratio: 4}) == object_modify(Level.GROUP, "g", {ratio: 4.0})


def test_t59_values_have_the_type_that_rapi_checks_before_it_queues() -> None:
    with pytest.raises(RefusedError, match="HttpBadRequest"):
        real_ganeti().receive(RapiCall("PUT", "/2/modify", {"candidate_pool_size": "3"}))
    command = cluster_modify({("candidate_pool_size",): 3}, version="3.0")
    assert real_ganeti().receive(command.rapi)["candidate_pool_size"] == 3
    for path, value in ((("candidate_pool_size",), "3"), (("enabled_disk_templates",), ["lvm"])):
        with pytest.raises(InexpressibleError):
            cluster_modify({path: value}, version="3.0")  # type: ignore[dict-item]
    with pytest.raises(InexpressibleError):
        object_modify(Level.GROUP, "g", {("alloc_policy",): "never"})


def test_t60_no_node_named_is_never_a_command() -> None:
    assert parse("gnt-group", "assign-nodes", "g")["nodes"] == []  # which the master takes for every node
    with pytest.raises(InexpressibleError, match="every node of the cluster"):
        assign_nodes("g", [])
    with pytest.raises(InexpressibleError):
        assign_nodes("g", [""])
    assert assign_nodes("g", iter(["n1", "n2"])).argv == ("gnt-group", "assign-nodes", "g", "n1", "n2")
