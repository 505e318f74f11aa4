"""The options of hspace, hail, hbal and hroller under htools' names, and their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import gpolicy
from gpolicy.allocator.cluster_data import DiskTemplate, Spec
from gpolicy.errors import InputError
from gpolicy.ganeti import htools_reading as reading
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
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
class Exit:
    """The command line only asks for a text, or is wrong: print and exit with the code."""

    code: int
    stdout: str = ""
    stderr: str = ""


_flag = reading.Option


def _valued(
    long: str, argument: str, completion: str, short: str = "", takes: reading.Takes = reading.Takes.REQUIRED
) -> reading.Option:
    return reading.Option(long, short, takes, argument, completion)


_PRINT, _SAVE, _TEXT, _SIMULATE, _VERBOSE, _IGNORE_LOADS, _IGNORE_SOFT, _NO_CAPACITY, *_OTHERS = reading.HAIL_OPTIONS
_, _MOND, _MOND_XEN, _STATIC_KVM, *_COMMON = _OTHERS
_MASTER = _valued("master", "ADDRESS", "host", "m")
_LUXI = _valued("luxi", "SOCKET", "file", "L", reading.Takes.OPTIONAL)
_IALLOCATOR = _valued("ialloc-src", "FILE", "file", "I")
_QUIET = _flag("quiet", "q")
_OFFLINE = _valued("offline", "NODE", "onenode", "O")
_MAX_CPU = _valued("max-cpu", "RATIO", "float")
_MAX_LENGTH = _valued("max-length", "N", "integer", "l")
_GROUP = _valued("group", "ID", "onegroup", "G")
_MIN_DISK = _valued("min-disk", "RATIO", "float")

PROGRAMS: Mapping[str, Sequence[reading.Option]] = {
    "hspace": (
        *(_PRINT, _TEXT),
        _valued("disk-template", "TEMPLATE", f"choices={','.join(template.value for template in DiskTemplate)}"),
        _valued("spindle-use", "SPINDLES", "float"),
        *(_SIMULATE, _MASTER, _LUXI, _IALLOCATOR, _VERBOSE, _QUIET),
        *(_flag("independent-groups"), _flag("accept-existing-errors"), _OFFLINE, _NO_CAPACITY),
        _valued("machine-readable", "CHOICE", "choices=yes,no", takes=reading.Takes.OPTIONAL),
        *(_MAX_CPU, _MAX_LENGTH, _MIN_DISK),
        _valued("standard-alloc", "STDSPEC", "string"),
        _valued("tiered-alloc", "TSPEC", "string"),
        *(_SAVE, _STATIC_KVM, *_COMMON),
    ),
    "hail": reading.HAIL_OPTIONS,
    "hbal": (
        *(_PRINT, _flag("print-instances")),
        _valued("print-commands", "FILE", "none", "C", reading.Takes.OPTIONAL),
        *(_TEXT, _flag("evac-mode", "E"), _flag("restricted-migration"), _MASTER, _LUXI, _IALLOCATOR),
        *(_flag("exec", "X"), _flag("first-job-group")),
        _valued("reason", "REASON", "none"),
        *(_GROUP, _MAX_LENGTH, _VERBOSE, _QUIET, _OFFLINE, _STATIC_KVM),
        _valued("min-score", "EPSILON", "float", "e"),
        *(_MAX_CPU, _MIN_DISK),
        _valued("min-gain", "DELTA", "float", "g"),
        _valued("min-gain-limit", "SCORE", "float"),
        _flag("no-disk-moves"),
        _valued("select-instances", "INSTS", "manyinstances"),
        *(_flag("no-instance-moves"), _IGNORE_SOFT),
        _valued("dynu-file", "FILE", "file", "U"),
        *(_IGNORE_LOADS, _MOND),
        _valued("mond-data", "FILE", "file"),
        *(_flag("exit-on-missing-mond-data"), _MOND_XEN),
        _valued("exclusion-tags", "TAG,...", "string"),
        _valued("exclude-instances", "INSTS", "manyinstances"),
        _SAVE,
        _valued("priority", "PRIO", "choices=low,normal,high"),
        *_COMMON,
    ),
    "hroller": (
        *(_LUXI, _MASTER, _TEXT, _IALLOCATOR, _OFFLINE, _flag("offline-maintenance"), _VERBOSE, _QUIET),
        _flag("no-headers"),
        _valued("node-tags", "TAG,...", "string"),
        *(_SAVE, _GROUP, _flag("print-moves"), _flag("full-evacuation")),
        *(_flag("skip-non-redundant"), _flag("ignore-non-redundant"), _flag("force", "f"), _flag("one-step-only")),
        *(_STATIC_KVM, *_COMMON),
    ),
}
"""The programs and their options, without their meanings (`options_of`)."""


def options_of(program: str) -> tuple[reading.Option, ...]:
    """Return the options of a program with their meanings; none for an unknown program."""
    from gpolicy.data import read_data  # noqa: PLC0415 - few runs show them

    meanings = read_data("htools_options.toml")
    return tuple(replace(one, help=meanings[one.long]) for one in PROGRAMS.get(program, ()))


def read_options(program: str, argv: Sequence[str]) -> tuple[Options, tuple[str, ...]] | Exit:
    """Return the values and the positional arguments, or what to print before the program ends."""
    options = PROGRAMS[program]
    parsed = reading.parse(options, argv)
    header = f"{program} (gpolicy) version {gpolicy.__version__}"
    usage_begins = f"{header}\nUsage: {program} [OPTION...]\n"
    if parsed.errors:
        options = options_of(program)
        errors = "".join(reading.parse(options, argv).errors)
        return Exit(2, stderr=f"Command line error: {errors}\n{usage_begins}{reading.usage(options)}")
    values = Options()
    for name, value in parsed.options:
        try:
            values = _add_option(values, name, value)
        except InputError as error:
            return Exit(1, stderr=f"Error while parsing command line arguments:\n{error}\n")
    names = [name for name, _ in parsed.options]
    if "help" in names:
        return Exit(0, stdout=f"{usage_begins}{reading.usage(options_of(program))}")
    if "version" in names:
        return Exit(0, stdout=f"{header}\nanswers as htools {COMPATIBLE_VERSION}\n")
    if "help-completion" in names:
        lines = [
            f"{','.join(([f'-{option.short}'] if option.short else []) + [f'--{option.long}'])} {option.completion}\n"
            for option in options
        ]
        arguments = "file 1 1\n" if program == "hail" else ""
        return Exit(0, stdout="".join(lines) + arguments)
    if parsed.arguments and program != "hail":
        return Exit(1, stderr="Error: This program doesn't take any arguments.\n")
    return values, parsed.arguments


def _size_option(kind: str, value: str) -> Spec:
    parts = reading.split(",", value)
    if not 3 <= len(parts) <= 4:
        raise InputError(f"Invalid {kind} specification: '{value}', expected disk,ram,cpu")
    disk = reading.parse_size(f"{kind} specs disk", parts[0])
    memory = reading.parse_size(f"{kind} specs memory", parts[1])
    cpus = reading.parse_int(f"{kind} specs cpus", parts[2])
    spindles = reading.parse_int(f"{kind} specs spindles", parts[3]) if len(parts) > 3 else 1
    return Spec(memory, cpus, disk, disk_count=1, nic_count=1, spindle_use=spindles)


def _max_cpu(text: str) -> float:
    ratio = reading.parse_float("parsing max-cpu", text)
    if ratio <= 0:
        raise InputError("Invalid value of the max-cpu ratio, expected >0")
    return ratio


def _spindle_use(text: str) -> int:
    use = reading.parse_int("parsing spindle-use", text)
    if use < 0:
        raise InputError("Invalid value of the spindle-use (expected >= 0)")
    return use


def _priority(text: str) -> str:
    if text not in {"low", "normal", "high"}:
        raise InputError(f"Unknown priority '{text}'")
    return text


def _split_names(text: str | None) -> tuple[str, ...]:
    return tuple(reading.split(",", text or ""))


_READERS: Mapping[str, Callable[[Any], object]] = {
    **dict.fromkeys(("print-nodes", "restrict-allocation-to", "select-instances", "exclude-instances"), _split_names),
    **dict.fromkeys(("exclusion-tags", "node-tags"), _split_names),
    **dict.fromkeys(("machine-readable", "mond"), reading.parse_choice),
    **{
        name: partial(reading.parse_float, name.replace("-", " "))
        for name in ("min-score", "min-gain", "min-gain-limit")
    },
    "min-disk": partial(reading.parse_float, "min free disk space"),
    "max-length": partial(reading.parse_int, "max solution length"),
    "static-kvm-node-memory": partial(reading.parse_int, "static node memory"),
    "disk-template": partial(reading.named, DiskTemplate),
    "spindle-use": _spindle_use,
    "max-cpu": _max_cpu,
    "standard-alloc": partial(_size_option, "standard"),
    "tiered-alloc": partial(_size_option, "tiered"),
    "luxi": lambda text: text or "/var/run/ganeti/socket/ganeti-query",
    "print-commands": lambda text: text or "-",
    "priority": _priority,
}
"""How the arguments of options are read that are no plain texts."""


def _add_option(values: Options, name: str, text: str | None) -> Options:
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
