"""The options of hspace, hail, hbal and hroller under htools' names, and their values."""

from __future__ import annotations

from functools import partial

import gpolicy
from gpolicy.allocator.cluster_data import Spec
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.errors import InputError
from gpolicy.ganeti.htools_reading import (
    HAIL_OPTIONS,
    Option,
    Takes,
    named,
    parse,
    parse_choice,
    parse_float,
    parse_int,
    parse_size,
    split,
    usage,
)
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

COMPATIBLE_VERSION = "3.0.2"
"""The htools version whose answers are reproduced."""


@dataclass(frozen=True, slots=True)
class Options:
    """The values of all options under their names; the defaults are htools'."""

    print_nodes: tuple[str, ...] | None = None
    text_data: str | None = None
    disk_template: DiskTemplate | None = None
    spindle_use: int | None = None
    simulate: tuple[str, ...] = ()
    master: str | None = None
    luxi: str | None = None
    ialloc_src: str | None = None
    verbosity: int = 1
    independent_groups: bool = False
    accept_existing_errors: bool = False
    offline: tuple[str, ...] = ()
    no_capacity_checks: bool = False
    machine_readable: bool = False
    max_cpu: float | None = None
    max_length: int = -1
    min_disk: float = 0.0
    standard_alloc: Spec | None = None
    tiered_alloc: Spec | None = None
    save: str | None = None
    static_kvm_node_memory: int = 4096
    ignore_dynu: bool = False
    ignore_soft_errors: bool = False
    restrict_allocation_to: tuple[str, ...] | None = None
    print_instances: bool = False
    print_commands: str | None = None
    evac_mode: bool = False
    restricted_migration: bool = False
    exec: bool = False
    first_job_group: bool = False
    reason: str | None = None
    group: str | None = None
    min_score: float = 1e-9
    min_gain: float = 0.01
    min_gain_limit: float = 0.1
    no_disk_moves: bool = False
    no_instance_moves: bool = False
    select_instances: tuple[str, ...] = ()
    exclude_instances: tuple[str, ...] = ()
    dynu_file: str | None = None
    mond: bool = False
    mond_data: str | None = None
    mond_xen: bool = False
    exit_on_missing_mond_data: bool = False
    exclusion_tags: tuple[str, ...] = ()
    priority: str | None = None
    offline_maintenance: bool = False
    no_headers: bool = False
    node_tags: tuple[str, ...] | None = None
    print_moves: bool = False
    full_evacuation: bool = False
    skip_non_redundant: bool = False
    ignore_non_redundant: bool = False
    force: bool = False
    one_step_only: bool = False

    @property
    def limit(self) -> int | None:
        """The greatest number of instances to place, or of steps to take; None for no limit."""
        return None if self.max_length < 0 else self.max_length


@dataclass(frozen=True, slots=True)
class Stop:
    """The command line only asks for a text, or is wrong: print and exit with the code."""

    code: int
    stdout: str = ""
    stderr: str = ""


def _with_value(short: str, long: str, argument: str, completion: str, text: str) -> Option:
    return Option(long, text, short, Takes.REQUIRED, argument, completion)


_PRINT, _SAVE, _TEXT, _SIMULATE, _VERBOSE, _IGNORE_LOADS, _IGNORE_SOFT, _NO_CAPACITY, *_OTHERS = HAIL_OPTIONS
_, _MOND, _MOND_XEN, _STATIC_KVM, *_COMMON = _OTHERS
_MASTER = _with_value("m", "master", "ADDRESS", "host", "collect data via RAPI at the given ADDRESS")
_LUXI = Option(
    "luxi",
    "collect data via Luxi, optionally using the given SOCKET path [/var/run/ganeti/socket/ganeti-query]",
    *("L", Takes.OPTIONAL, "SOCKET", "file"),
)
_IALLOCATOR = _with_value("I", "ialloc-src", "FILE", "file", "Specify an iallocator spec as the cluster data source")
_QUIET = Option("quiet", "decrease the verbosity level", "q")
_OFFLINE = _with_value("O", "offline", "NODE", "onenode", "set node as offline")
_MAX_CPU = _with_value(
    *("", "max-cpu", "RATIO", "float"),
    "maximum virtual-to-physical cpu ratio for nodes (from 0 upwards) [default read from cluster]",
)
_MAX_LENGTH = _with_value(
    *("l", "max-length", "N", "integer"),
    "cap the solution at this many balancing or allocation rounds (useful for very unbalanced clusters or"
    " empty clusters)",
)
_GROUP = _with_value("G", "group", "ID", "onegroup", "the target node group (name or UUID)")
_MIN_DISK = _with_value("", "min-disk", "RATIO", "float", "minimum free disk space for nodes (between 0 and 1) [0]")

HSPACE_OPTIONS = (
    *(_PRINT, _TEXT),
    _with_value(
        *("", "disk-template", "TEMPLATE", "choices=" + ",".join(template.value for template in DiskTemplate)),
        "select the desired disk template",
    ),
    _with_value(
        *("", "spindle-use", "SPINDLES", "float"),
        "select how many virtual spindle instances use [default read from cluster]",
    ),
    *(_SIMULATE, _MASTER, _LUXI, _IALLOCATOR, _VERBOSE, _QUIET),
    Option("independent-groups", "Consider groups independently"),
    Option("accept-existing-errors", "Accept existing N+1 violations; just don't add new ones"),
    *(_OFFLINE, _NO_CAPACITY),
    Option(
        "machine-readable",
        "enable machine readable output (pass either 'yes' or 'no' to explicitly control the flag, or without"
        " an argument defaults to yes)",
        *("", Takes.OPTIONAL, "CHOICE", "choices=yes,no"),
    ),
    *(_MAX_CPU, _MAX_LENGTH, _MIN_DISK),
    _with_value("", "standard-alloc", "STDSPEC", "string", "enable standard specs allocation, given as 'disk,ram,cpu'"),
    _with_value("", "tiered-alloc", "TSPEC", "string", "enable tiered specs allocation, given as 'disk,ram,cpu'"),
    *(_SAVE, _STATIC_KVM, *_COMMON),
)

HBAL_OPTIONS = (
    _PRINT,
    Option("print-instances", "print the final instance map"),
    Option(
        "print-commands",
        "print the ganeti command list for reaching the solution, if an argument is passed then write the commands"
        " to a file named as such",
        *("C", Takes.OPTIONAL, "FILE"),
    ),
    _TEXT,
    Option(
        "evac-mode",
        "enable evacuation mode, where the algorithm only moves instances away from offline and drained nodes",
        "E",
    ),
    Option(
        "restricted-migration",
        "disallow replace-primary moves (aka frf-moves); in evacuation mode, this will ensure that the only"
        " migrations are off the drained nodes",
    ),
    *(_MASTER, _LUXI, _IALLOCATOR),
    Option("exec", "execute the suggested moves via Luxi (only available when using it for data gathering)", "X"),
    Option("first-job-group", "only execute the first group of jobs"),
    _with_value("", "reason", "REASON", "none", "The reason to pass to the submitted jobs"),
    _GROUP,
    *(_MAX_LENGTH, _VERBOSE, _QUIET, _OFFLINE, _STATIC_KVM),
    _with_value("e", "min-score", "EPSILON", "float", "mininum excess to the N+1 limit to aim for"),
    *(_MAX_CPU, _MIN_DISK),
    _with_value("g", "min-gain", "DELTA", "float", "minimum gain to aim for in a balancing step before giving up"),
    _with_value(
        *("", "min-gain-limit", "SCORE", "float"), "minimum cluster score for which we start checking the min-gain"
    ),
    Option(
        "no-disk-moves",
        "disallow disk moves from the list of allowed instance changes, thus allowing only the 'cheap'"
        " failover/migrate operations",
    ),
    _with_value("", "select-instances", "INSTS", "manyinstances", "only select given instances for any moves"),
    Option(
        "no-instance-moves",
        "disallow instance (primary node) moves from the list of allowed, instance changes, thus allowing only"
        " slower, but sometimes safer, drbd secondary changes",
    ),
    _IGNORE_SOFT,
    _with_value("U", "dynu-file", "FILE", "file", "Import dynamic utilisation data from the given FILE"),
    _IGNORE_LOADS,
    _MOND,
    _with_value("", "mond-data", "FILE", "file", "Import data provided by MonDs from the given FILE"),
    Option("exit-on-missing-mond-data", "abort if the data available from the monitoring daemons is incomplete"),
    _MOND_XEN,
    _with_value("", "exclusion-tags", "TAG,...", "string", "Enable instance exclusion based on given tag prefix"),
    _with_value("", "exclude-instances", "INSTS", "manyinstances", "exclude given instances from any moves"),
    _SAVE,
    _with_value("", "priority", "PRIO", "choices=low,normal,high", "set the priority of submitted jobs"),
    *_COMMON,
)

HROLLER_OPTIONS = (
    *(_LUXI, _MASTER, _TEXT, _IALLOCATOR, _OFFLINE),
    Option("offline-maintenance", "Schedule offline maintenance, i.e., pretend that all instance are offline."),
    *(_VERBOSE, _QUIET),
    Option("no-headers", "do not show a header line"),
    _with_value("", "node-tags", "TAG,...", "string", "Restrict to nodes with the given tags"),
    *(_SAVE, _GROUP),
    Option("print-moves", "print the moves of the instances"),
    Option("full-evacuation", "fully evacuate the nodes to be rebooted"),
    Option("skip-non-redundant", "Skip nodes that host a non-redundant instance"),
    Option("ignore-non-redundant", "Pretend that there are no non-redundant instances in the cluster"),
    Option("force", "force the execution of this program, even if warnings would otherwise prevent it", "f"),
    Option("one-step-only", "Only do the first step"),
    *(_STATIC_KVM, *_COMMON),
)

PROGRAMS: Mapping[str, Sequence[Option]] = {
    "hspace": HSPACE_OPTIONS,
    "hail": HAIL_OPTIONS,
    "hbal": HBAL_OPTIONS,
    "hroller": HROLLER_OPTIONS,
}
"""The programs and their options."""


def read_options(program: str, argv: Sequence[str]) -> tuple[Options, tuple[str, ...]] | Stop:
    """Return the values and the positional arguments, or what to print before the program ends."""
    options = PROGRAMS[program]
    parsed = parse(options, argv)
    header = f"{program} (gpolicy) version {gpolicy.__version__}"
    text = f"{header}\nUsage: {program} [OPTION...]\n{usage(options)}"
    if parsed.errors:
        return Stop(2, stderr=f"Command line error: {''.join(parsed.errors)}\n{text}")
    values = Options()
    for name, value in parsed.options:
        try:
            values = _with(values, name, value)
        except InputError as error:
            return Stop(1, stderr=f"Error while parsing command line arguments:\n{error}\n")
    names = [name for name, _ in parsed.options]
    if "help" in names:
        return Stop(0, stdout=text)
    if "version" in names:
        return Stop(0, stdout=f"{header}\nanswers as htools {COMPATIBLE_VERSION}\n")
    if "help-completion" in names:
        lines = [
            f"{','.join(([f'-{option.short}'] if option.short else []) + [f'--{option.long}'])} {option.completion}\n"
            for option in options
        ]
        arguments = "file 1 1\n" if program == "hail" else ""
        return Stop(0, stdout="".join(lines) + arguments)
    return values, parsed.arguments


def _size(kind: str, value: str) -> Spec:
    parts = split(",", value)
    if not 3 <= len(parts) <= 4:
        raise InputError(f"Invalid {kind} specification: '{value}', expected disk,ram,cpu")
    disk, memory = parse_size(f"{kind} specs disk", parts[0]), parse_size(f"{kind} specs memory", parts[1])
    cpus = parse_int(f"{kind} specs cpus", parts[2])
    spindles = parse_int(f"{kind} specs spindles", parts[3]) if len(parts) > 3 else 1
    return Spec(memory, cpus, disk, disk_count=1, nic_count=1, spindle_use=spindles)


def _max_cpu(text: str) -> float:
    ratio = parse_float("parsing max-cpu", text)
    if ratio <= 0:
        raise InputError("Invalid value of the max-cpu ratio, expected >0")
    return ratio


def _spindle_use(text: str) -> int:
    use = parse_int("parsing spindle-use", text)
    if use < 0:
        raise InputError("Invalid value of the spindle-use (expected >= 0)")
    return use


def _priority(text: str) -> str:
    if text not in {"low", "normal", "high"}:
        raise InputError(f"Unknown priority '{text}'")
    return text


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(split(",", text or ""))


_READERS: Mapping[str, Callable[[Any], object]] = {
    **dict.fromkeys(("print-nodes", "restrict-allocation-to", "select-instances", "exclude-instances"), _names),
    **dict.fromkeys(("exclusion-tags", "node-tags"), _names),
    **dict.fromkeys(("machine-readable", "mond"), parse_choice),
    **{name: partial(parse_float, name.replace("-", " ")) for name in ("min-score", "min-gain", "min-gain-limit")},
    "min-disk": partial(parse_float, "min free disk space"),
    "max-length": partial(parse_int, "max solution length"),
    "static-kvm-node-memory": partial(parse_int, "static node memory"),
    "disk-template": partial(named, DiskTemplate),
    "spindle-use": _spindle_use,
    "max-cpu": _max_cpu,
    "standard-alloc": partial(_size, "standard"),
    "tiered-alloc": partial(_size, "tiered"),
    "luxi": lambda text: text or "/var/run/ganeti/socket/ganeti-query",
    "print-commands": lambda text: text or "-",
    "priority": _priority,
}
"""How the arguments of options are read that are no plain texts."""


def _with(values: Options, name: str, text: str | None) -> Options:
    """Return the values with one more option. Raises InputError."""
    match name:
        case "verbose" | "quiet":
            return replace(values, verbosity=values.verbosity + (1 if name == "verbose" else -1))
        case "simulate":
            return replace(values, simulate=(*values.simulate, text or ""))
        case "offline":
            return replace(values, offline=(text or "", *values.offline))
        case "help" | "version" | "help-completion":
            return values
    given: dict[str, Any] = {
        name.replace("-", "_"): _READERS[name](text) if name in _READERS else True if text is None else text
    }
    return replace(values, **given)
