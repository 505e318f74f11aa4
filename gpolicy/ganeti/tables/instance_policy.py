"""Instance policy, backend parameters and the group's allocation policy.

Sources: partitioned Ganeti ("Constrained instance sizes"), resource model ("Policies").
"""

from __future__ import annotations

from typing import Any, Final

from gpolicy.ganeti.number_bounds import BOUNDS
from gpolicy.ganeti.parameter import CLUSTER, CLUSTER_GROUP, Level, Parameter, Path, TakesEffect, Type, Value
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
    new, capacity = TakesEffect.NEW_INSTANCES, TakesEffect.CAPACITY_ONLY
    pairs = (
        "The sizes that instances may have: pairs of bounds, biggest first. An instance is legal when it fits entirely"
        " inside at least one pair. Always replaced as a whole."
    )
    templates = (
        "Disk templates that instances may use; each must be enabled on the cluster. hspace counts instances of the"
        " first."
    )
    vcpus = "Most virtual CPUs per physical CPU of a node."
    spindles = "Most instance spindle use per node spindle (spindle_count); ignored under exclusive storage."
    return [
        _row(("minmax",), Type.MINMAX, _DEFAULT_MINMAX, new, pairs),
        _row(("disk-templates",), Type.LIST, list(DISK_TEMPLATES), new, templates, choices=DISK_TEMPLATES),
        _row(("vcpu-ratio",), Type.FLOAT, 4.0, capacity, vcpus, maximum=BOUNDS["vcpu-ratio"].most),
        _row(("spindle-ratio",), Type.FLOAT, 32.0, capacity, spindles, maximum=BOUNDS["spindle-ratio"].most),
        *(
            _row(
                ("std", name),
                Type.SIZE if name in SPEC_SIZES else Type.INT,
                DEFAULT_MIN[name],
                capacity,
                f"Standard instance for capacity estimates (hspace): {text}.",
                levels=CLUSTER,
                unit="MiB" if name in SPEC_SIZES else "",
                minimum=0,
                maximum=BOUNDS[name].most,
            )
            for name, text in SPEC_PARAMETERS.items()
        ),
    ]


def _row(keys: Path, kind: Type, default: Value, effect: TakesEffect, description: str, **more: Any) -> Parameter:
    return Parameter(
        path=("ipolicy", *keys),
        type=kind,
        default=default,
        takes_effect=effect,
        description=description,
        can_be_empty=False,
        **{"levels": CLUSTER_GROUP, **more},
    )


def beparams() -> list[Parameter]:
    """Return the rows of the backend parameters."""
    table: tuple[tuple[str, Type, Value, str], ...] = (
        ("minmem", Type.SIZE, 128, "Memory that an instance always has."),
        ("maxmem", Type.SIZE, 128, "Memory that an instance may grow to."),
        ("vcpus", Type.INT, 1, "Virtual CPUs."),
        ("auto_balance", Type.BOOL, True, "Let the allocator count the instance for redundancy."),
        ("always_failover", Type.BOOL, False, "Fail over instead of migrating."),
        ("spindle_use", Type.INT, 1, "Number of spindles that the instance counts as."),
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
            description=text,
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
