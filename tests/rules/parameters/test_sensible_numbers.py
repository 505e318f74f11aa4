"""Numbers that Ganeti takes and that make no sense: found whatever the parameter; unusual ones are left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.findings import Finding, Severity
from gpolicy.ganeti.parameters import PARAMETERS
from gpolicy.ganeti.vocabulary import Parameter, Type
from tests.rules.policy_texts import CLUSTER, GROUP, bounds
from tests.rules.run_rules import check
from tests.rules.test_slips_between_documents import bad

NUMBERS = (Type.INT, Type.SIZE, Type.MIB, Type.FLOAT)
WITHOUT_RANGE = {
    "ssh_port", "port", "migration_port", "serial_speed", "spice_ip_version", "virtio_net_queues",
    "disk-count", "nic-count",
}  # fmt: skip
"""Ports, speeds and versions; and numbers that Ganeti itself limits to a few."""


def unlikely(text: str, directory: Path) -> list[Finding]:
    return [finding for finding in check(text, directory) if finding.code == "GP152"]


def test_every_number_has_a_sensible_range_or_none_for_a_reason() -> None:
    without = {item.path[-1] for item in PARAMETERS if item.type in NUMBERS and item.sensible is None}
    assert without == WITHOUT_RANGE


@pytest.mark.parametrize("parameter", [item for item in PARAMETERS if item.sensible], ids=lambda item: item.name)
def test_ganetis_own_defaults_make_sense(parameter: Parameter) -> None:
    sensible, default = parameter.sensible, parameter.default
    assert sensible is not None
    assert not isinstance(default, int | float) or sensible.takes(default)
    unit = parameter.unit
    assert unit in ("", "cores", sensible.unit) or (unit, sensible.unit) == ("0.1 s", "tenths of a second")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("hv_state:\n  kvm: {mem_total: 64}", "write 64G, if 64 GiB are meant"),
        ("hv_state:\n  kvm: {mem_node: 4194304}", "write 4G, if 4194304 KiB are meant"),
        ("disk_state:\n  plain:\n    xenvg: {disk_total: 4}", "write 4G, if 4 GiB are meant"),
        ("beparams: {maxmem: 4}", "write 4G, if 4 GiB are meant"),
        ("diskparams:\n  drbd: {resync-rate: 60}", "write 60M, if 60 MiB/s are meant"),
        (
            "diskparams:\n  drbd: {c-plan-ahead: 2}",
            "write 20, if 2 s are meant; Ganeti's default is 20 tenths of a second",
        ),
        ("diskparams:\n  drbd: {c-min-rate: 4}", "write 4M, if 4 MiB/s are meant"),
        ("diskparams:\n  plain: {stripes: 64}", "correct the number; Ganeti's default is 1"),
        ("data_collector_interval: {lv: 5}", "write 5000000, if 5 s are meant; Ganeti's default is 5000000 µs"),
        ("data_collector_interval: {lv: 5000}", "write 5000000, if 5000 ms are meant; Ganeti's default is 5000000 µs"),
        ("hvparams:\n  kvm: {migration_downtime: 1}", "write 1000, if 1 s is meant; Ganeti's default is 30 ms"),
        (
            "hvparams:\n  kvm: {migration_downtime: 100000}",
            "write 100, if 100000 µs are meant; Ganeti's default is 30 ms",
        ),
        (
            "hvparams:\n  kvm: {migration_bandwidth: 1048576}",
            "write 1024, if 1048576 KiB/s are meant; Ganeti's default is 32 MiB/s",
        ),
        ("hvparams:\n  lxc: {startup_timeout: 30000}", "write 30, if 30000 ms are meant; Ganeti's default is 30 s"),
        ("hvparams:\n  xen-pvm: {cpu_cap: 4}", "write 400, if 4 CPUs are meant"),
        ("ndparams: {cpu_speed: 2400}", "correct the number; Ganeti's default is 1"),
        ("ndparams: {spindle_count: 4096}", "correct the number; Ganeti's default is 1"),
        ("ipolicy: {vcpu-ratio: 400}", "correct the number; Ganeti's default is 4"),
        ("max_running_jobs: 20000", "correct the number; Ganeti's default is 20"),
    ],
)
def test_a_wrong_unit_is_named(text: str, hint: str, tmp_path: Path) -> None:
    [found] = unlikely(f"{CLUSTER}{text}\n", tmp_path)
    assert found.hint == hint


def test_a_promise_in_a_wrong_unit(tmp_path: Path) -> None:
    found = unlikely(f"{GROUP}hardware: {{memory: 64, cpus: 8000, pv_size: 4, pv_count: 4000}}\n", tmp_path)
    assert len(found) == 4


def spec(low: str, high: str, disks: str = "10G 100G") -> str:
    return f"{GROUP}ipolicy:\n  minmax:\n    - name: some\n      {bounds(f'{low} {high}', '1 8', disks)}"


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        (spec("16", "32G"), ["size some: min memory-size"]),
        (spec("4G", "64G", "100 1T"), ["size some: min disk-size"]),
        (spec("4G", "64G", "10 100"), ["size some: min disk-size", "size some: max disk-size"]),
        (spec("100", "200G"), ["size some: min memory-size"]),
        (f"{CLUSTER}ipolicy:\n  std: {{memory-size: 4G, disk-size: 200}}\n", ["ipolicy.std.disk-size"]),
        (f"{GROUP}disk_state:\n  plain:\n    vg: {{disk_total: 4T, disk_reserved: 200}}\n", [
            "disk_state.plain.vg.disk_reserved"
        ]),
    ],
)  # fmt: skip
def test_a_size_without_a_unit_beside_others_that_have_one(text: str, titles: list[str], tmp_path: Path) -> None:
    assert [finding.message.partition(" is ")[0] for finding in unlikely(text, tmp_path)] == titles


@pytest.mark.parametrize(
    "text",
    [
        spec("128", "32G"),  # Ganeti's own default
        spec("512", "12T", "100M 200T").replace("cpu-count: 8", "cpu-count: 96"),
        spec("100M", "64G", "200M 1T"),
        spec("100", "1000", "200 1000"),  # nothing has a unit
        spec("100", "64G").replace("cpu-count: 8", "cpu-count: 99999").replace("100,", "128,"),
        f"{GROUP}hv_state:\n  kvm: {{mem_total: 64G, mem_node: 100}}\n",  # 100G would be more than there is
        f"{GROUP}ipolicy: {{vcpu-ratio: 1000, spindle-ratio: 99999}}\n",
        f"{CLUSTER}hvparams:\n  kvm: {{migration_bandwidth: 47684, migration_downtime: 5000}}\n",
        f"{CLUSTER}diskparams:\n  drbd: {{c-max-rate: 4G, c-min-rate: 0, c-plan-ahead: 0, c-fill-target: 0}}\n",
        f"{GROUP}hardware: {{memory: 512M, cpus: 2, pv_size: 4G, pv_count: 1}}\n",
        f"{GROUP}hardware: {{memory: 12T, cpus: 896, pv_size: 100T, pv_count: 90}}\n",
    ],
)
def test_unusual_numbers_are_left_alone(text: str, tmp_path: Path) -> None:
    assert [item for item in check(text, tmp_path) if item.severity is not Severity.INFO] == []


@pytest.mark.parametrize(
    ("memory", "cpus", "bound"),
    [
        ("64 64G", "16 16", "min is 64M of memory for 16 CPUs"),
        ("1G 16T", "4 16", "max is 16T of memory for 16 CPUs"),
        ("64 256G", "1 4", "min is 64M of memory for 1 CPU"),
    ],
)
def test_memory_that_does_not_go_with_the_cpus(memory: str, cpus: str, bound: str, tmp_path: Path) -> None:
    text = f"{GROUP}ipolicy:\n  minmax:\n    - name: some\n      {bounds(memory, cpus, '10G 90G')}"
    [found] = [finding for finding in check(text, tmp_path) if finding.severity is not Severity.INFO]
    assert (found.code, found.message) == ("GP224", f"size some: {bound}")


@pytest.mark.parametrize(("text", "count"), [("{minmem: 2, maxmem: 2}", 1), ("{minmem: 2, maxmem: 3}", 2)])
def test_one_slip_in_two_values_of_a_mapping_is_one_finding(text: str, count: int, tmp_path: Path) -> None:
    found = bad(f"{CLUSTER}beparams: {text}\n", tmp_path)
    assert [(item.code, item.hint) for item in found][:1] == [("GP152", "write 2G, if 2 GiB are meant")]
    assert len(found) == count
