"""The options of hspace, hail and hbal under htools' names, and their values."""

from __future__ import annotations

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

COMPATIBLE_VERSION = "3.0.2"
"""The htools version whose answers are reproduced."""


@dataclass(frozen=True, slots=True)
class Options:
    """Everything a command line may set; the defaults are htools'."""

    print_nodes: tuple[str, ...] | None = None
    text_file: str | None = None
    template: DiskTemplate | None = None
    spindle_use: int | None = None
    simulate: tuple[str, ...] = ()
    rapi: str | None = None
    luxi: str | None = None
    iallocator_file: str | None = None
    verbosity: int = 1
    independent_groups: bool = False
    accept_existing: bool = False
    offline: tuple[str, ...] = ()
    capacity_checks: bool = True
    machine_readable: bool = False
    max_cpu: float | None = None
    max_length: int = -1
    min_disk: float = 0.0
    standard: Spec | None = None
    tiered: Spec | None = None
    save: str | None = None
    static_kvm_node_memory: int = 4096
    ignore_load: bool = False
    ignore_soft_errors: bool = False
    restriction: tuple[str, ...] | None = None
    print_instances: bool = False
    commands: str | None = None
    evacuation: bool = False
    restricted_migration: bool = False
    execute: bool = False
    first_job_set: bool = False
    group: str | None = None
    min_score: float = 1e-9
    min_gain: float = 0.01
    min_gain_limit: float = 0.1
    disk_moves: bool = True
    instance_moves: bool = True
    selected: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    load_file: str | None = None
    monitored: bool = False
    monitored_file: str | None = None
    monitored_xen: bool = False
    monitored_required: bool = False
    exclusion_tags: tuple[str, ...] = ()

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


def _with_value(long: str, text: str, argument: str, completion: str = "none", *, short: str = "") -> Option:
    """Return an option that must have a value."""
    return Option(long, text, short, Takes.REQUIRED, argument, completion)


_PRINT, _SAVE, _TEXT, _SIMULATE, _VERBOSE, _IGNORE_LOADS, _IGNORE_SOFT, _NO_CAPACITY, *_OTHERS = HAIL_OPTIONS
_, _MOND, _MOND_XEN, _STATIC_KVM, *_COMMON = _OTHERS
_MASTER = _with_value("master", "collect data via RAPI at the given ADDRESS", "ADDRESS", "host", short="m")
_LUXI = Option(
    "luxi",
    "collect data via Luxi, optionally using the given SOCKET path [/var/run/ganeti/socket/ganeti-query]",
    "L",
    Takes.OPTIONAL,
    "SOCKET",
    "file",
)
_IALLOCATOR = _with_value(
    "ialloc-src", "Specify an iallocator spec as the cluster data source", "FILE", "file", short="I"
)
_QUIET = Option("quiet", "decrease the verbosity level", "q")
_OFFLINE = _with_value("offline", "set node as offline", "NODE", "onenode", short="O")
_MAX_CPU = _with_value(
    "max-cpu",
    "maximum virtual-to-physical cpu ratio for nodes (from 0 upwards) [default read from cluster]",
    "RATIO",
    "float",
)
_MAX_LENGTH = _with_value(
    "max-length",
    "cap the solution at this many balancing or allocation rounds (useful for very unbalanced clusters or"
    " empty clusters)",
    "N",
    "integer",
    short="l",
)
_MIN_DISK = _with_value("min-disk", "minimum free disk space for nodes (between 0 and 1) [0]", "RATIO", "float")

HSPACE_OPTIONS = (
    _PRINT,
    _TEXT,
    _with_value(
        "disk-template",
        "select the desired disk template",
        "TEMPLATE",
        "choices=" + ",".join(template.value for template in DiskTemplate),
    ),
    _with_value(
        "spindle-use", "select how many virtual spindle instances use [default read from cluster]", "SPINDLES", "float"
    ),
    _SIMULATE,
    _MASTER,
    _LUXI,
    _IALLOCATOR,
    _VERBOSE,
    _QUIET,
    Option("independent-groups", "Consider groups independently"),
    Option("accept-existing-errors", "Accept existing N+1 violations; just don't add new ones"),
    _OFFLINE,
    _NO_CAPACITY,
    Option(
        "machine-readable",
        "enable machine readable output (pass either 'yes' or 'no' to explicitly control the flag, or without"
        " an argument defaults to yes)",
        takes=Takes.OPTIONAL,
        argument="CHOICE",
        completion="choices=yes,no",
    ),
    _MAX_CPU,
    _MAX_LENGTH,
    _MIN_DISK,
    _with_value("standard-alloc", "enable standard specs allocation, given as 'disk,ram,cpu'", "STDSPEC", "string"),
    _with_value("tiered-alloc", "enable tiered specs allocation, given as 'disk,ram,cpu'", "TSPEC", "string"),
    _SAVE,
    _STATIC_KVM,
    *_COMMON,
)

HBAL_OPTIONS = (
    _PRINT,
    Option("print-instances", "print the final instance map"),
    Option(
        "print-commands",
        "print the ganeti command list for reaching the solution, if an argument is passed then write the commands"
        " to a file named as such",
        "C",
        Takes.OPTIONAL,
        "FILE",
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
    _MASTER,
    _LUXI,
    _IALLOCATOR,
    Option("exec", "execute the suggested moves via Luxi (only available when using it for data gathering)", "X"),
    Option("first-job-group", "only execute the first group of jobs"),
    _with_value("reason", "The reason to pass to the submitted jobs", "REASON"),
    _with_value("group", "the target node group (name or UUID)", "ID", "onegroup", short="G"),
    _MAX_LENGTH,
    _VERBOSE,
    _QUIET,
    _OFFLINE,
    _STATIC_KVM,
    _with_value("min-score", "mininum excess to the N+1 limit to aim for", "EPSILON", "float", short="e"),
    _MAX_CPU,
    _MIN_DISK,
    _with_value(
        "min-gain", "minimum gain to aim for in a balancing step before giving up", "DELTA", "float", short="g"
    ),
    _with_value("min-gain-limit", "minimum cluster score for which we start checking the min-gain", "SCORE", "float"),
    Option(
        "no-disk-moves",
        "disallow disk moves from the list of allowed instance changes, thus allowing only the 'cheap'"
        " failover/migrate operations",
    ),
    _with_value("select-instances", "only select given instances for any moves", "INSTS", "manyinstances"),
    Option(
        "no-instance-moves",
        "disallow instance (primary node) moves from the list of allowed, instance changes, thus allowing only"
        " slower, but sometimes safer, drbd secondary changes",
    ),
    _IGNORE_SOFT,
    _with_value("dynu-file", "Import dynamic utilisation data from the given FILE", "FILE", "file", short="U"),
    _IGNORE_LOADS,
    _MOND,
    _with_value("mond-data", "Import data provided by MonDs from the given FILE", "FILE", "file"),
    Option("exit-on-missing-mond-data", "abort if the data available from the monitoring daemons is incomplete"),
    _MOND_XEN,
    _with_value("exclusion-tags", "Enable instance exclusion based on given tag prefix", "TAG,...", "string"),
    _with_value("exclude-instances", "exclude given instances from any moves", "INSTS", "manyinstances"),
    _SAVE,
    _with_value("priority", "set the priority of submitted jobs", "PRIO", "choices=low,normal,high"),
    *_COMMON,
)

PROGRAMS: Mapping[str, Sequence[Option]] = {"hspace": HSPACE_OPTIONS, "hail": HAIL_OPTIONS, "hbal": HBAL_OPTIONS}
"""The programs and their options."""


def read_options(
    program: str, options: Sequence[Option], completion_tail: str, argv: Sequence[str]
) -> tuple[Options, tuple[str, ...]] | Stop:
    """Return the values and the positional arguments, or what to print before the program ends.

    `completion_tail` is the last line of `--help-completion`: the arguments of the program.
    """
    parsed = parse(options, argv)
    header = f"{program} (gpolicy) version {gpolicy.__version__}"
    text = f"{header}\nUsage: {program} [OPTION...]\n{usage(options)}"
    if parsed.errors:
        return Stop(2, stderr=f"Command line error: {''.join(parsed.errors)}\n{text}")
    values = Options()
    for name, value in parsed.options:
        try:
            values = _SETTERS[name](values, value) if name in _SETTERS else values
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
        return Stop(0, stdout="".join(lines) + completion_tail)
    return values, parsed.arguments


def _size(kind: str, value: str) -> Spec:
    parts = split(",", value)
    if not 3 <= len(parts) <= 4:
        raise InputError(f"Invalid {kind} specification: '{value}', expected disk,ram,cpu")
    disk, memory = parse_size(f"{kind} specs disk", parts[0]), parse_size(f"{kind} specs memory", parts[1])
    cpus = parse_int(f"{kind} specs cpus", parts[2])
    spindles = parse_int(f"{kind} specs spindles", parts[3]) if len(parts) > 3 else 1
    return Spec(memory, cpus, disk, disk_count=1, nic_count=1, spindle_use=spindles)


def _max_cpu(options: Options, value: str | None) -> Options:
    ratio = parse_float("parsing max-cpu", value or "")
    if ratio <= 0:
        raise InputError("Invalid value of the max-cpu ratio, expected >0")
    return replace(options, max_cpu=ratio)


def _spindle_use(options: Options, value: str | None) -> Options:
    use = parse_int("parsing spindle-use", value or "")
    if use < 0:
        raise InputError("Invalid value of the spindle-use (expected >= 0)")
    return replace(options, spindle_use=use)


def _print_nodes(options: Options, value: str | None) -> Options:
    return replace(options, print_nodes=tuple(split(",", value or "")))


def _priority(options: Options, value: str | None) -> Options:
    if value not in {"low", "normal", "high"}:
        raise InputError(f"Unknown priority '{value}'")
    return options


_SETTERS: Mapping[str, Callable[[Options, str | None], Options]] = {
    "print-nodes": _print_nodes,
    "text-data": lambda o, v: replace(o, text_file=v),
    "disk-template": lambda o, v: replace(o, template=named(DiskTemplate, v or "")),
    "spindle-use": _spindle_use,
    "simulate": lambda o, v: replace(o, simulate=(*o.simulate, v or "")),
    "master": lambda o, v: replace(o, rapi=v),
    "luxi": lambda o, v: replace(o, luxi=v or "/var/run/ganeti/socket/ganeti-query"),
    "ialloc-src": lambda o, v: replace(o, iallocator_file=v),
    "verbose": lambda o, _: replace(o, verbosity=o.verbosity + 1),
    "quiet": lambda o, _: replace(o, verbosity=o.verbosity - 1),
    "independent-groups": lambda o, _: replace(o, independent_groups=True),
    "accept-existing-errors": lambda o, _: replace(o, accept_existing=True),
    "offline": lambda o, v: replace(o, offline=(v or "", *o.offline)),
    "no-capacity-checks": lambda o, _: replace(o, capacity_checks=False),
    "machine-readable": lambda o, v: replace(o, machine_readable=parse_choice(v)),
    "max-cpu": _max_cpu,
    "max-length": lambda o, v: replace(o, max_length=parse_int("max solution length", v or "")),
    "min-disk": lambda o, v: replace(o, min_disk=parse_float("min free disk space", v or "")),
    "standard-alloc": lambda o, v: replace(o, standard=_size("standard", v or "")),
    "tiered-alloc": lambda o, v: replace(o, tiered=_size("tiered", v or "")),
    "save": lambda o, v: replace(o, save=v),
    "static-kvm-node-memory": lambda o, v: replace(o, static_kvm_node_memory=parse_int("static node memory", v or "")),
    "ignore-dynu": lambda o, _: replace(o, ignore_load=True),
    "ignore-soft-errors": lambda o, _: replace(o, ignore_soft_errors=True),
    "restrict-allocation-to": lambda o, v: replace(o, restriction=tuple(split(",", v or ""))),
    "print-instances": lambda o, _: replace(o, print_instances=True),
    "print-commands": lambda o, v: replace(o, commands=v or "-"),
    "evac-mode": lambda o, _: replace(o, evacuation=True),
    "restricted-migration": lambda o, _: replace(o, restricted_migration=True),
    "exec": lambda o, _: replace(o, execute=True),
    "first-job-group": lambda o, _: replace(o, first_job_set=True),
    "group": lambda o, v: replace(o, group=v),
    "min-score": lambda o, v: replace(o, min_score=parse_float("min score", v or "")),
    "min-gain": lambda o, v: replace(o, min_gain=parse_float("min gain", v or "")),
    "min-gain-limit": lambda o, v: replace(o, min_gain_limit=parse_float("min gain limit", v or "")),
    "no-disk-moves": lambda o, _: replace(o, disk_moves=False),
    "no-instance-moves": lambda o, _: replace(o, instance_moves=False),
    "select-instances": lambda o, v: replace(o, selected=tuple(split(",", v or ""))),
    "exclude-instances": lambda o, v: replace(o, excluded=tuple(split(",", v or ""))),
    "dynu-file": lambda o, v: replace(o, load_file=v),
    "mond": lambda o, v: replace(o, monitored=parse_choice(v)),
    "mond-data": lambda o, v: replace(o, monitored_file=v),
    "mond-xen": lambda o, _: replace(o, monitored_xen=True),
    "exit-on-missing-mond-data": lambda o, _: replace(o, monitored_required=True),
    "exclusion-tags": lambda o, v: replace(o, exclusion_tags=tuple(split(",", v or ""))),
    "priority": _priority,
}
