"""The one table of what Ganeti knows of each policy parameter.

Loader, schemas, rules, diff, commands and docs all read it; a new Ganeti release is a change here.
A parameter is found by its path, the keys that lead to it in Ganeti's own names:
`("diskparams", "drbd", "resync-rate")`, `("ndparams", "spindle_count")`, `("hv_state", "kvm", "mem_node")`.
A `*` in a path stands for a name that the administrator chooses (a volume group, an allocator option).

Sources: the constants of Ganeti 3.0.2, compared with 2.15, 2.16, 3.1; for 3.2 the source of 3.2.0~alpha1; the five
design documents (partitioned Ganeti, resource model) for what the parameters mean.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Final

from gpolicy.ganeti.parameter import Level, Parameter, Path, Reach, Value
from gpolicy.ganeti.releases import release_key
from gpolicy.ganeti.tables import cluster, hypervisors

PARAMETERS: Final[tuple[Parameter, ...]] = (
    *cluster.cluster(),
    cluster.ALLOC_POLICY,
    *cluster.ipolicy(),
    *cluster.diskparams(),
    *cluster.ndparams(),
    *cluster.states(),
    *cluster.beparams(),
    *hypervisors.hvparams(),
    *cluster.nicparams(),
    *cluster.data_collectors(),
)
"""All parameters, in the order in which gpolicy writes them."""

WORDS_SINCE: Final[dict[tuple[Path, str], str]] = {
    (("hvparams", "kvm", "disk_aio"), "io_uring"): "3.1",
    (("hvparams", "kvm", "scsi_controller_type"), "dc390"): "3.2",
    (("nicparams", "mode"), "ext"): "3.2",
}
"""Words that an earlier release does not know yet."""
WORDS_UNTIL: Final[dict[tuple[Path, str], str]] = {(("hvparams", "kvm", "disk_discard"), "default"): "3.1"}
"""Words that a later release no longer knows."""

_BY_PATH: Final = {parameter.path: parameter for parameter in PARAMETERS}
_POSITION: Final = {parameter.path: position for position, parameter in enumerate(PARAMETERS)}


def kvm(name: str) -> Path:
    """Return the path of a parameter of KVM."""
    return ("hvparams", "kvm", name)


def parameter_at(path: Path) -> Parameter | None:
    """Return the parameter that `path` names, or None if Ganeti (as this table knows it) has none there."""
    return _BY_PATH.get(path) or _BY_PATH.get(_pattern(path))


@lru_cache(maxsize=8192)  # every sorting of values asks for every path
def position(path: Path) -> tuple[int, Path]:
    """Return a sort key that puts paths into the order of the table; unknown ones come last."""
    return _POSITION.get(_pattern(path), len(PARAMETERS)), path


def _pattern(path: Path) -> Path:
    if len(path) == 4 and path[0] == "disk_state":
        return (*path[:2], "*", path[3])
    return path


@cache
def parameters_of(level: Level) -> tuple[Parameter, ...]:
    """Return the parameters that can be set on an object of this level, in the table's order."""
    return tuple(parameter for parameter in PARAMETERS if level in parameter.levels)


def known_in(parameter: Parameter, version: str) -> bool:
    """Return whether the Ganeti release `version` ("3.0") knows the parameter."""
    if not parameter.since and not parameter.until:
        return True
    release = release_key(version)
    return not (
        (parameter.since and release < release_key(parameter.since))
        or (parameter.until and release >= release_key(parameter.until))
    )


def default_in(parameter: Parameter, version: str) -> Value:
    """Return Ganeti's built-in default of the parameter in the release `version`; None where there is none."""
    if parameter.new_default is not None and release_key(version) >= release_key(parameter.new_default[0]):
        return parameter.new_default[1]
    return parameter.default


def maximum_in(parameter: Parameter, version: str) -> int | None:
    """Return the largest number that the release `version` takes for the parameter; None where there is none."""
    if parameter.new_maximum is not None and release_key(version) >= release_key(parameter.new_maximum[0]):
        return parameter.new_maximum[1]
    return parameter.maximum


def reach_of(path: Path) -> Reach | None:
    """Return how the value at `path` reaches root on the nodes; None where it does not."""
    parameter = parameter_at(path)
    return None if parameter is None else parameter.reach
