"""A change that Ganeti cannot express is an error with a hint, never a wrong command."""

from __future__ import annotations

import math

import pytest

from gpolicy.ganeti.commands import (
    Command,
    Route,
    add_tags,
    assign_nodes,
    cluster_modify,
    group_add,
    group_remove,
    group_rename,
    object_modify,
    only_route,
    remove_tags,
)
from gpolicy.ganeti.expressible import RESET, InexpressibleError, Reset
from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN, Level, Path, Value

PAIR: dict[str, Value] = {"min": {**DEFAULT_MIN}, "max": {**DEFAULT_MAX}}


def modify(level: Level, path: Path, value: Value | Reset, version: str = "3.0") -> Command:
    if level is Level.CLUSTER:
        return cluster_modify({path: value}, version=version)
    return object_modify(level, "name", {path: value}, version=version)


CASES: list[tuple[Level, Path, Value | Reset, str]] = [
    (Level.CLUSTER, ("ipolicy", "vcpu-ratio"), 0, "reads a ratio of 0 as a reset"),
    (Level.GROUP, ("ipolicy", "vcpu-ratio"), 0.0, "reads a ratio of 0 as a reset"),
    (Level.GROUP, ("ipolicy", "spindle-ratio"), math.nan, "cannot hold it"),
    (Level.CLUSTER, ("ipolicy", "spindle-ratio"), math.inf, "cannot hold it"),
    (Level.NODE, ("ndparams", "cpu_speed"), -math.inf, "cannot hold it"),
    (Level.CLUSTER, ("ipolicy", "minmax"), [], "at least one size"),
    (Level.CLUSTER, ("ipolicy", "minmax"), [{"min": PAIR["min"]}], "max of size 1 lacks memory-size"),
    (Level.GROUP, ("ipolicy", "minmax"), [PAIR, {**PAIR, "min": {"cpu-count": 1}}], "min of size 2 lacks memory-size"),
    (Level.GROUP, ("ipolicy", "minmax"), [{**PAIR, "max": {**DEFAULT_MAX, "memory-size": 1023}}], "rounds sizes up"),
    (Level.CLUSTER, ("ipolicy", "minmax"), RESET, "nothing to inherit"),
    (Level.CLUSTER, ("ipolicy", "std", "disk-size"), 130, "rounds sizes up"),
    (Level.CLUSTER, ("ipolicy", "std", "disk-size"), -4, "cannot be negative"),
    (Level.GROUP, ("ipolicy", "std", "disk-size"), 128, "a group cannot have"),
    (Level.GROUP, ("ipolicy", "disk-templates"), [], "or for a reset"),
    (Level.GROUP, ("ipolicy", "disk-templates"), ["default"], "does not know it"),
    (Level.CLUSTER, ("ipolicy", "memory-ratio"), 1.0, "no such parameter"),
    (Level.CLUSTER, ("beparams", "maxmem"), 1, "rounds sizes up"),
    (Level.CLUSTER, ("enabled_disk_templates",), [], "none given"),
    (Level.CLUSTER, ("enabled_hypervisors",), [], "none given"),
    (Level.CLUSTER, ("enabled_hypervisors",), ["kvm", "qemu"], "does not know it"),
    (Level.CLUSTER, ("compression_tools",), [], "none given"),
    (Level.CLUSTER, ("compression_tools",), ["a,b"], "every comma"),
    (Level.CLUSTER, ("reserved_lvs",), ["x", ""], "an item is empty"),
    (Level.CLUSTER, ("reserved_lvs",), "x", "not a list"),
    (Level.CLUSTER, ("install_image",), "", "cannot be emptied again"),
    (Level.CLUSTER, ("zeroing_image",), "", "cannot be emptied again"),
    (Level.CLUSTER, ("zeroing_image",), "image", "an absolute path or"),
    (Level.CLUSTER, ("mac_prefix",), "AA:00:00", "not a prefix as Ganeti stores it"),
    (Level.CLUSTER, ("master_netdev",), "", "cannot be empty"),
    (Level.CLUSTER, ("master_netmask",), 0, "below 1"),
    (Level.CLUSTER, ("candidate_pool_size",), 0, "below 1"),
    (Level.CLUSTER, ("candidate_pool_size",), "3", "not a whole number"),
    (Level.CLUSTER, ("max_running_jobs",), 2**60, "too large"),
    (Level.CLUSTER, ("volume_group_name",), RESET, "nothing to inherit"),
    (Level.CLUSTER, ("ndparams", "oob_program"), RESET, "nothing to inherit"),
    (Level.CLUSTER, ("diskparams", "drbd", "metavg"), RESET, "nothing to inherit"),
    (Level.CLUSTER, ("ndparams", "oob_program"), "a\nb", "printable ASCII"),
    (Level.CLUSTER, ("file_storage_dir",), "/a\0", "printable ASCII"),
    (Level.CLUSTER, ("file_storage_dir",), "/\ud800", "printable ASCII"),
    (Level.CLUSTER, ("file_storage_dir",), "/é", "printable ASCII"),
    (Level.CLUSTER, ("prealloc_wipe_disks",), "yes", "neither true nor false"),
    (Level.CLUSTER, ("default_iallocator_params",), {"a=b": "c"}, "hold '='"),
    (Level.CLUSTER, ("default_iallocator_params",), {"a": 1}, "neither a text nor null"),
    (Level.CLUSTER, ("default_iallocator_params",), ["a"], "not a mapping"),
    (Level.CLUSTER, ("uid_pool",), [[5, 3]], "not a range"),
    (Level.CLUSTER, ("uid_pool",), [[-1, 3]], "not a range"),
    (Level.CLUSTER, ("uid_pool",), [3], "not a range"),
    (Level.CLUSTER, ("disk_state", "plain", "a/b", "disk_total"), 1, "no volume group"),
    (Level.NODE, ("disk_state", "plain", "a:b", "disk_total"), 1, "no volume group"),
    (Level.NODE, ("disk_state", "plain", "", "disk_total"), RESET, "no volume group"),
    (Level.NODE, ("disk_state", "lvm", "vg", "disk_total"), 1, "no such parameter"),
    (Level.CLUSTER, ("hv_state", "kvm", "mem_node"), -1, "below 0"),
    (Level.NODE, ("ndparams", "exclusive_storage"), True, "a node cannot have"),
    (Level.NODE, ("ndparams", "exclusive_storage"), RESET, "a node cannot have"),
    (Level.GROUP, ("alloc_policy",), RESET, "not inherited"),
    (Level.GROUP, ("alloc_policy",), "default", "does not know it"),
    (Level.GROUP, ("diskparams", "rbd", "access"), RESET, "checks for an access mode first"),
    (Level.GROUP, ("diskparams", "drbd", "metavg"), "default", "the word resets"),
    (Level.NODE, ("ndparams", "ovs_name"), "default", "the word resets"),
    (Level.GROUP, ("diskparams", "rbd", "user-id"), "x", "Ganeti 3.0 does not know it"),
    (Level.GROUP, ("enabled_disk_templates",), ["plain"], "a group cannot have"),
]


@pytest.mark.parametrize(("level", "path", "value", "reason"), CASES)
def test_unsupported_changes_are_refused_with_a_reason_and_a_hint(
    level: Level, path: Path, value: Value | Reset, reason: str
) -> None:
    with pytest.raises(InexpressibleError, match=reason) as raised:
        modify(level, path, value)
    assert raised.value.hint
    assert raised.value.path[: len(path)] == path
    assert "\n" not in raised.value.message


def test_a_parameter_of_another_release_is_refused() -> None:
    xen_cmd: Path = ("hvparams", "xen-pvm", "xen_cmd")
    assert modify(Level.CLUSTER, xen_cmd, "xl", version="3.0").argv
    with pytest.raises(InexpressibleError, match=r"Ganeti 3\.1 does not know it"):
        modify(Level.CLUSTER, xen_cmd, "xl", version="3.1")


def test_a_new_group_resets_nothing() -> None:
    with pytest.raises(InexpressibleError, match="nothing to reset"):
        group_add("g", {("ndparams", "ssh_port"): RESET})
    assert group_add("g", {}).argv == ("gnt-group", "add", "g")


@pytest.mark.parametrize("name", ["", "a\nb", "\0", "\udcff"])
def test_invalid_names_are_refused(name: str) -> None:
    with pytest.raises(InexpressibleError):
        group_add(name, {})
    with pytest.raises(InexpressibleError):
        object_modify(Level.GROUP, name, {("alloc_policy",): "preferred"})
    with pytest.raises(InexpressibleError):
        object_modify(Level.NODE, name, {("ndparams", "ovs"): True})
    with pytest.raises(InexpressibleError):
        group_rename("a", name)
    with pytest.raises(InexpressibleError):
        group_rename(name, "a")
    with pytest.raises(InexpressibleError):
        group_remove(name)
    with pytest.raises(InexpressibleError):
        assign_nodes("g", ["n1", name])


@pytest.mark.parametrize("tag", ["", "a b", "a,b", "a=b", "é", "a\n", "a" * 129, "#"])
def test_tags_outside_the_grammar_are_refused(tag: str) -> None:
    for make in (add_tags, remove_tags):
        with pytest.raises(InexpressibleError, match="no tag"):
            make(Level.GROUP, "g", ["ok", tag])


def test_tags_need_an_object_and_the_cluster_needs_none() -> None:
    with pytest.raises(InexpressibleError):
        add_tags(Level.NODE, None, ["a"])
    with pytest.raises(InexpressibleError):
        add_tags(Level.CLUSTER, "c", ["a"])
    with pytest.raises(InexpressibleError, match="at least one tag"):
        remove_tags(Level.CLUSTER, None, [])


def test_parameters_with_different_routes_need_two_commands() -> None:
    tools: dict[Path, Value] = {("compression_tools",): ["gzip"]}
    interval: dict[Path, Value] = {("data_collector_interval", "drbd"): 1000000}
    assert cluster_modify(tools, version="3.0").rapi is None
    assert cluster_modify(interval, version="3.0").argv is None
    with pytest.raises(InexpressibleError, match="through RAPI only"):
        cluster_modify({**tools, **interval}, version="3.0")
    assert cluster_modify({**tools, **interval}, version="2.16").argv is not None
    assert only_route(("compression_tools",), version="3.0") is Route.ARGV
    assert only_route(("data_collector_interval", "drbd"), version="3.1") is Route.RAPI
    assert only_route(("ndparams", "ovs"), version="3.0") is None


def test_a_command_too_long_for_a_process_goes_through_rapi_alone() -> None:
    command = cluster_modify({("ipolicy", "minmax"): [PAIR] * 1000}, version="3.0")
    assert command.argv is None
    assert command.rapi is not None
    with pytest.raises(InexpressibleError, match="too long for one command"):
        object_modify(Level.GROUP, "a b", {("ipolicy", "minmax"): [PAIR] * 1000})  # RAPI cannot address this one


def test_more_tags_than_a_request_holds_go_through_the_command_line_alone() -> None:
    tags = [f"{'x' * 120}{number}" for number in range(100)]
    assert add_tags(Level.CLUSTER, None, tags).rapi is None
    assert add_tags(Level.CLUSTER, None, tags[:50]).rapi is not None


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(InexpressibleError) as raised:
        cluster_modify({("file_storage_dir",): "x" * 10000 + "\n"}, version="3.0")
    assert len(raised.value.message) < 300
