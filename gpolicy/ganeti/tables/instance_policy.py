"""Instance policy, backend parameters and the group's allocation policy.

Sources: partitioned Ganeti ("Constrained instance sizes"), resource model ("Policies").
"""

from __future__ import annotations

from typing import Final

from gpolicy.ganeti.bounds import BOUNDS
from gpolicy.ganeti.parameter import CLUSTER, CLUSTER_GROUP, Level, Parameter, TakesEffect, Type, Value
from gpolicy.ganeti.vocabulary import (
    ALLOC_POLICIES,
    DEFAULT_MAX,
    DEFAULT_MIN,
    DISK_TEMPLATES,
    SPEC_PARAMETERS,
    SPEC_SIZES,
)

_DEFAULT_MINMAX: Final[Value] = [{"min": {**DEFAULT_MIN}, "max": {**DEFAULT_MAX}}]


def ipolicy() -> list[Parameter]:
    """Return the rows of the instance policy."""
    effect = TakesEffect.NEW_INSTANCES
    table = [
        Parameter(
            path=("ipolicy", "minmax"),
            type=Type.MINMAX,
            levels=CLUSTER_GROUP,
            takes_effect=effect,
            default=_DEFAULT_MINMAX,
            can_be_empty=False,
            description="The sizes that instances may have: pairs of bounds, biggest first. An instance is legal when"
            " it fits entirely inside at least one pair. Always replaced as a whole.",
        ),
        Parameter(
            path=("ipolicy", "disk-templates"),
            type=Type.SET,
            choices=DISK_TEMPLATES,
            levels=CLUSTER_GROUP,
            takes_effect=effect,
            default=list(DISK_TEMPLATES),
            can_be_empty=False,
            description="Disk templates that instances may use; each must be enabled on the cluster.",
        ),
    ]
    table += [
        Parameter(
            path=("ipolicy", name),
            type=Type.FLOAT,
            levels=CLUSTER_GROUP,
            takes_effect=TakesEffect.CAPACITY_ONLY,
            default=default,
            maximum=BOUNDS[name].most,
            can_be_empty=False,
            description=text,
        )
        for name, default, text in (
            ("vcpu-ratio", 4.0, "Most virtual CPUs per physical CPU of a node."),
            (
                "spindle-ratio",
                32.0,
                "Most instance spindle use per node spindle (spindle_count); ignored under exclusive storage.",
            ),
        )
    ]
    table += [
        Parameter(
            path=("ipolicy", "std", name),
            type=Type.SIZE if name in SPEC_SIZES else Type.INT,
            unit="MiB" if name in SPEC_SIZES else "",
            levels=CLUSTER,
            takes_effect=TakesEffect.CAPACITY_ONLY,
            default=DEFAULT_MIN[name],
            can_be_empty=False,
            minimum=0,
            maximum=BOUNDS[name].most,
            description=f"Standard instance for capacity estimates (hspace): {text}.",
        )
        for name, text in SPEC_PARAMETERS.items()
    ]
    return table


def beparams() -> list[Parameter]:
    """Return the rows of the backend parameters."""
    table: tuple[tuple[str, Type, Value, str], ...] = (
        ("minmem", Type.SIZE, 128, "Memory that an instance is always to have."),
        ("maxmem", Type.SIZE, 128, "Memory that an instance may grow to."),
        ("vcpus", Type.INT, 1, "Virtual CPUs."),
        ("auto_balance", Type.BOOL, True, "Let the allocator count the instance for redundancy."),
        ("always_failover", Type.BOOL, False, "Fail over instead of migrating."),
        ("spindle_use", Type.INT, 1, "Spindles that the instance is thought to use."),
    )
    return [
        Parameter(
            path=("beparams", name),
            type=kind,
            unit="MiB" if kind is Type.SIZE else "",
            default=default,
            levels=CLUSTER,
            takes_effect=TakesEffect.NEW_INSTANCES,
            minimum=0 if name in BOUNDS else None,
            maximum=BOUNDS[name].most if name in BOUNDS else None,
            description=f"{text} Default of instances that do not say otherwise.",
        )
        for name, kind, default, text in table
    ]


ALLOC_POLICY: Final = Parameter(
    path=("alloc_policy",),
    type=Type.CHOICE,
    choices=ALLOC_POLICIES,
    default="preferred",
    levels=frozenset({Level.GROUP}),
    takes_effect=TakesEffect.CAPACITY_ONLY,
    can_be_empty=False,
    description="How willingly the allocator places instances in this group; not inherited.",
)
