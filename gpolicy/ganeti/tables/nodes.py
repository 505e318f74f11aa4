"""Node parameters, and the static resources hv_state and disk_state (resource model, "Node parameters")."""

from __future__ import annotations

from gpolicy.ganeti.number_bounds import BOUNDS
from gpolicy.ganeti.parameter import ALL_LEVELS, CLUSTER_GROUP, Parameter, Path, Reach, TakesEffect, Type, Value
from gpolicy.ganeti.vocabulary import DISK_STATE, HV_STATE, HYPERVISORS


def ndparams() -> list[Parameter]:
    """Return the rows of the node parameters."""
    at_once, add = TakesEffect.AT_ONCE, TakesEffect.NODE_ADD
    table: tuple[tuple[str, Type, Value, TakesEffect, str], ...] = (
        ("oob_program", Type.STRING, "", at_once, "Out-of-band helper program; empty for none."),
        (
            "spindle_count",
            Type.INT,
            1,
            TakesEffect.CAPACITY_ONLY,
            "Spindles of the node, for spindle-ratio; ignored under exclusive storage.",
        ),
        (
            "exclusive_storage",
            Type.BOOL,
            False,
            TakesEffect.NEW_DISKS,
            "Give each disk physical volumes of its own. One value per group; existing disks stay as they are.",
        ),
        ("ovs", Type.BOOL, False, add, "Use Open vSwitch."),
        ("ovs_name", Type.STRING, "switch1", add, "Name of the Open vSwitch bridge."),
        ("ovs_link", Type.STRING, "", add, "Network interface that the Open vSwitch bridge uses."),
        ("ssh_port", Type.INT, 22, at_once, "Port of the node's ssh daemon."),
        ("cpu_speed", Type.FLOAT, 1.0, TakesEffect.CAPACITY_ONLY, "Relative CPU speed, for placement."),
    )
    return [
        Parameter(
            path=("ndparams", name),
            type=kind,
            default=default,
            levels=CLUSTER_GROUP if name == "exclusive_storage" else ALL_LEVELS,
            takes_effect=effect,
            maximum=BOUNDS[name].most if name in BOUNDS else None,
            reach=Reach.PROGRAM if name == "oob_program" else None,
            example={"oob_program": "/usr/local/sbin/oob", "ovs_link": "eth1"}.get(name),
            description=text,
        )
        for name, kind, default, effect, text in table
    ]


def states() -> list[Parameter]:
    """Return the rows of hv_state and disk_state."""
    rows: list[tuple[Path, tuple[int, str, str]]] = [
        (("hv_state", kind, name), row) for kind in HYPERVISORS for name, row in HV_STATE.items()
    ]
    rows += [(("disk_state", "plain", "*", name), row) for name, row in DISK_STATE.items()]
    return [
        Parameter(
            path=path,
            type=Type.MIB if unit == "MiB" else Type.INT,
            unit=unit,
            default=default,
            levels=ALL_LEVELS,
            takes_effect=TakesEffect.NOTHING,
            minimum=0,
            maximum=BOUNDS[path[-1]].most,
            description=f"{text} gpolicy's own capacity model uses it.",
        )
        for path, (default, unit, text) in rows
    ]
