"""Each parameter that Ganeti's design documents name, with its levels, type and default, is in the one table.

Levels and types are the documents', defaults those of Ganeti 3 (the documents name few). Where Ganeti 3 differs from a
document, Ganeti 3 counts, and the line says so.
"""

from __future__ import annotations

import pytest

from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN, Level, Path, Type, Value

CLUSTER = frozenset({Level.CLUSTER})
GROUPS = frozenset({Level.CLUSTER, Level.GROUP})
NODES = frozenset(Level)
SIZES = {
    "memory-size": (Type.SIZE, 128, 32768),
    "cpu-count": (Type.INT, 1, 8),
    "disk-count": (Type.INT, 1, 16),
    "disk-size": (Type.SIZE, 1024, 1048576),
    "nic-count": (Type.INT, 1, 8),
    "spindle-use": (Type.INT, 1, 12),
}
DISK_PARAMETERS: dict[tuple[str, str], tuple[Type, Value, str]] = {
    ("plain", "stripes"): (Type.INT, 1, ""),
    ("drbd", "data-stripes"): (Type.INT, 1, ""),
    ("drbd", "metavg"): (Type.STRING, "xenvg", ""),
    ("drbd", "meta-stripes"): (Type.INT, 1, ""),
    ("drbd", "disk-barriers"): (Type.STRING, "n", ""),
    ("drbd", "meta-barriers"): (Type.BOOL, False, ""),
    ("drbd", "resync-rate"): (Type.INT, 61440, "KiB/s"),
    ("drbd", "dynamic-resync"): (Type.BOOL, False, ""),
    ("drbd", "c-plan-ahead"): (Type.INT, 20, "0.1 s"),  # document: 0
    ("drbd", "c-fill-target"): (Type.INT, 0, "sectors"),
    ("drbd", "c-delay-target"): (Type.INT, 1, "0.1 s"),
    ("drbd", "c-max-rate"): (Type.INT, 61440, "KiB/s"),
    ("drbd", "c-min-rate"): (Type.INT, 4096, "KiB/s"),
    ("drbd", "disk-custom"): (Type.STRING, "", ""),
    ("drbd", "net-custom"): (Type.STRING, "", ""),
}
HYPERVISOR_STATE: dict[str, tuple[Type, Value]] = {
    "mem_total": (Type.MIB, 0),
    "mem_node": (Type.MIB, 0),
    "mem_hv": (Type.MIB, 0),
    "cpu_total": (Type.INT, 1),
    "cpu_node": (Type.INT, 1),
}


def kind_and_default(path: Path, levels: frozenset[Level]) -> tuple[Type, Value]:
    parameter = parameter_at(path)
    assert parameter is not None
    assert parameter.levels == levels
    return parameter.type, parameter.default


@pytest.mark.parametrize("name", SIZES)
def test_a_size_of_instances(name: str) -> None:
    """`std` on the cluster; least and greatest are those of the built-in pair, which groups may replace."""
    kind, least, greatest = SIZES[name]
    assert kind_and_default(("ipolicy", "std", name), CLUSTER) == (kind, least)
    assert (DEFAULT_MIN[name], DEFAULT_MAX[name]) == (least, greatest)
    assert kind_and_default(("ipolicy", "minmax"), GROUPS) == (Type.MINMAX, [{"min": DEFAULT_MIN, "max": DEFAULT_MAX}])


def test_ratios() -> None:
    assert kind_and_default(("ipolicy", "vcpu-ratio"), GROUPS) == (Type.FLOAT, 4.0)  # document: 64
    assert kind_and_default(("ipolicy", "spindle-ratio"), GROUPS) == (Type.FLOAT, 32.0)


@pytest.mark.parametrize(("template", "name"), DISK_PARAMETERS)
def test_a_disk_parameter(template: str, name: str) -> None:
    kind, default, unit = DISK_PARAMETERS[template, name]
    parameter = parameter_at(("diskparams", template, name))
    assert parameter is not None
    assert (parameter.levels, parameter.type, parameter.default, parameter.unit) == (GROUPS, kind, default, unit)


@pytest.mark.parametrize("name", HYPERVISOR_STATE)
@pytest.mark.parametrize("hypervisor", ["kvm", "xen-pvm", "lxc"])
def test_a_figure_of_a_hypervisor(hypervisor: str, name: str) -> None:
    assert kind_and_default(("hv_state", hypervisor, name), NODES) == HYPERVISOR_STATE[name]


@pytest.mark.parametrize("name", ["disk_total", "disk_reserved", "disk_overhead"])
def test_a_figure_of_a_volume_group(name: str) -> None:
    assert kind_and_default(("disk_state", "plain", "xenvg", name), NODES) == (Type.MIB, 0)


def test_node_parameters_and_memory_of_instances() -> None:
    """Documents: exclusive_storage is a node parameter, but one for the group; max_memory is maxmem now."""
    assert kind_and_default(("ndparams", "exclusive_storage"), GROUPS) == (Type.BOOL, False)
    assert kind_and_default(("ndparams", "spindle_count"), NODES) == (Type.INT, 1)
    assert kind_and_default(("beparams", "minmem"), CLUSTER) == (Type.SIZE, 128)
    assert kind_and_default(("beparams", "maxmem"), CLUSTER) == (Type.SIZE, 128)
    assert kind_and_default(("beparams", "spindle_use"), CLUSTER) == (Type.INT, 1)
