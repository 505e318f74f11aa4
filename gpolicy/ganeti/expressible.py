"""Which values Ganeti's commands can set: for any other value this module raises an error.

A command that Ganeti refuses is a nuisance; a command that stores another value is a fault. So a value is checked
against what Ganeti's option parsers, opcodes and merge functions do with it, and both ways of applying it (command
line, RAPI) must store the same value.
"""

import math
import re
from collections.abc import Mapping
from enum import Enum
from typing import Final, NoReturn

from gpolicy.errors import GpolicyError
from gpolicy.ganeti.amounts import SIZE_STEP_MIB
from gpolicy.ganeti.parameters import canonical, known_in, maximum_in, parameter_at
from gpolicy.ganeti.vocabulary import FORMS, SPEC_PARAMETERS, SPEC_SIZES, Level, Parameter, Path, Type, Value, is_access


class Reset(Enum):
    """The own value is removed (group, node), or goes back to the built-in one (cluster, hv_state/disk_state)."""

    RESET = "reset"


RESET: Final = Reset.RESET
Assignments = Mapping[Path, Value | Reset]
"""Own values to set or to reset, by path; values as `gpolicy.ganeti.parameters.canonical` has them."""

DEFAULT_WORD: Final = "default"
"""What Ganeti takes for "remove the own value" wherever a group or a node parameter can be reset."""

LARGEST_INT: Final = 2**53
"""What a JSON number carries exactly; sizes pass through a float on the command line."""
LARGEST_UID: Final = 2**32 - 1
"""The highest user ID in a pool (Ganeti's constant UIDPOOL_UID_MAX)."""
_MAC_PREFIX: Final = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){2}")
_IMAGE: Final = re.compile(r"/|(https?|ftps?)://")
_LONGEST_SHOWN: Final = 100


class InexpressibleError(GpolicyError):
    """Ganeti cannot store this value at this place. `hint` says what can be done instead."""

    def __init__(self, path: Path, value: object, reason: str, way_out: str) -> None:
        shown = repr(value.value if isinstance(value, Reset) else value)
        if len(shown) > _LONGEST_SHOWN:
            shown = f"{shown[:_LONGEST_SHOWN]}…"
        what = f"{'.'.join(path)} = {shown}" if path else shown
        super().__init__(f"Ganeti cannot express {what}: {reason}", hint=way_out)
        self.path = path
        self.value = value
        self.reason = reason


def checked(path: Path, value: Value | Reset, level: Level, *, version: str) -> Value | Reset:
    """Return `value` in normal form if Ganeti `version` can be told to hold it at this level.

    Raise InexpressibleError if not. That a value makes sense (a minimum above its maximum, a protocol that DRBD
    does not have) is the rules' matter, not this function's.
    """
    parameter = _known(path, value, level, version)
    if isinstance(value, Reset):
        _check_reset(parameter, path, level)
        return value
    value = canonical(path, value)
    match parameter.type:
        case Type.INT | Type.MIB | Type.SIZE:
            _check_int(parameter, path, value, version)
        case Type.FLOAT:
            _check_float(path, value)
        case Type.BOOL:
            if not isinstance(value, bool):
                _fail(path, value, "it is neither true nor false", "write true or false")
        case Type.STRING | Type.CHOICE:
            _check_string(parameter, path, value, level)
        case Type.LIST | Type.SET:
            _check_list(parameter, path, value)
        case Type.DICT:
            _check_dict(path, value)
        case Type.MINMAX:
            _check_pairs(path, value)
        case Type.UID_RANGES:
            return _sorted_ranges(path, value)
    return value


def check_text(path: Path, text: object, *, what: str = "it") -> str:
    """Return `text` if it is one and Ganeti survives it; raise InexpressibleError if not.

    Anything but printable ASCII would: Ganeti 3.0's configuration daemon takes a name or a value with an é, stores
    it, and answers every later read of the configuration with broken UTF-8. From then on every job dies (seen on
    3.0.2), the one that would take the character out again as well.
    """
    if not isinstance(text, str):
        _fail(path, text, f"{what} is not a text", "write a text")
    if not (text.isascii() and text.isprintable()):
        _fail(path, text, f"{what} holds a character that is not printable ASCII", "take it out: it stops the cluster")
    return text


def check_name(kind: str, name: object) -> str:
    """Return the name of an object of Ganeti; raise InexpressibleError if it can be none."""
    text = check_text((kind,), name, what="a name")
    if not text:
        _fail((kind,), name, "a name cannot be empty", f"name the {kind}")
    return text


def _fail(path: Path, value: object, reason: str, way_out: str) -> NoReturn:
    raise InexpressibleError(path, value, reason, way_out)


def _known(path: Path, value: object, level: Level, version: str) -> Parameter:
    parameter = parameter_at(path)
    if parameter is None:
        _fail(path, value, "there is no such parameter", "look for a typing error in its name")
    if level not in parameter.levels:
        others = " or ".join(f"the {other}" for other in Level if other in parameter.levels)
        _fail(path, value, f"a {level} cannot have a value of its own", f"set it on {others}")
    if not known_in(parameter, version):
        _fail(path, value, f"Ganeti {version} does not know it", "take it out of the policy of this cluster")
    if path[0] == "disk_state" and (not path[2] or {"/", ":"} & set(check_text(path, path[2]))):
        _fail(path, value, "no volume group has such a name", "name the volume group as LVM does")
    return parameter


def _check_reset(parameter: Parameter, path: Path, level: Level) -> None:
    if level is Level.CLUSTER and parameter.family not in {"hv_state", "disk_state"}:
        way_out = "write the value that it is to have"
        if parameter.default is not None:
            way_out += f"; Ganeti's own default is {parameter.default!r}"
        _fail(path, RESET, "the cluster has nothing to inherit from", way_out)
    if path == ("alloc_policy",):
        _fail(path, RESET, "it is not inherited", f"write the value; Ganeti's own default is {parameter.default!r}")
    if is_access(path):
        reason = "Ganeti refuses the word that resets it (it checks for an access mode first)"
        _fail(path, RESET, reason, "write the cluster's value, and change it when the cluster's changes")


def _check_int(parameter: Parameter, path: Path, value: Value, version: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        _fail(path, value, "it is not a whole number", "write a whole number")
    least = 1 if path == ("master_netmask",) else parameter.minimum  # Ganeti skips a netmask of 0 without a word
    if parameter.type is Type.SIZE:
        _check_size(path, value)
    if least is not None and value < least:
        _fail(path, value, f"it is below {least}", f"write {least} or more")
    most = maximum_in(parameter, version)
    if most is not None and value > most:
        _fail(path, value, f"it is above {most}", f"write {most} or less")
    if parameter.numbers and value not in parameter.numbers:
        _fail(path, value, "Ganeti does not know it", f"write one of {', '.join(map(str, parameter.numbers))}")
    if abs(value) > LARGEST_INT:
        _fail(path, value, "it is too large to be kept exactly", "write a smaller number")


def _check_size(path: Path, value: int) -> None:
    if value < 0:
        _fail(path, value, "a size cannot be negative", "write 0 or more")
    if value % SIZE_STEP_MIB:
        reason = f"the command line rounds sizes up to {SIZE_STEP_MIB} MiB, RAPI does not"
        _fail(path, value, reason, f"write a multiple of {SIZE_STEP_MIB} MiB")


def _check_float(path: Path, value: Value) -> None:
    if not isinstance(value, float):
        _fail(path, value, "it is not a number", "write a number")
    if not math.isfinite(value):
        _fail(path, value, "Ganeti's configuration cannot hold it", "write a finite number")
    if value == 0 and path[0] == "ipolicy":
        _fail(path, value, "Ganeti reads a ratio of 0 as a reset", "write a number above 0, or inherit")


def _check_string(parameter: Parameter, path: Path, value: Value, level: Level) -> None:
    text = check_text(path, value)
    if parameter.choices and text not in parameter.choices:
        _fail(path, value, "Ganeti does not know it", f"write one of {', '.join(parameter.choices)}")
    if parameter.form and not re.search(parameter.form, text):
        _fail(path, value, "Ganeti refuses its form", f"write {FORMS[parameter.form]}")
    if level is not Level.CLUSTER and text == DEFAULT_WORD:
        _fail(path, value, f"on a {level} the word resets the parameter", "inherit, or write another value")
    if not text and not parameter.can_be_empty:
        _fail(path, value, "it cannot be empty", "write a value")
    if path == ("mac_prefix",) and not _MAC_PREFIX.fullmatch(text):
        _fail(path, value, "it is not a prefix as Ganeti stores it", "write three lower-case octets, such as aa:00:00")
    if path in {("install_image",), ("zeroing_image",)} and not _IMAGE.match(text):
        reason = "an image is an absolute path or an http or ftp URL, and cannot be emptied again"
        _fail(path, value, reason, "write a path or URL, or leave it out of the policy")


def _check_list(parameter: Parameter, path: Path, value: Value) -> None:
    if not isinstance(value, list):
        _fail(path, value, "it is not a list", "write a list")
    if not value and not parameter.can_be_empty:
        _fail(path, value, "Ganeti takes an empty list for none given, or for a reset", "name at least one")
    for item in value:
        text = check_text(path, item, what="an item")
        if not text:
            _fail(path, value, "an item is empty", "take it out")
        if parameter.choices and text not in parameter.choices:
            _fail(path, text, "Ganeti does not know it", f"choose from {', '.join(parameter.choices)}")
        if path == ("compression_tools",) and "," in text:
            _fail(path, text, "the option that sets it is split at every comma", "rename the tool")


def _check_dict(path: Path, value: Value) -> None:
    if not isinstance(value, dict):
        _fail(path, value, "it is not a mapping", "write names and texts")
    for key, item in value.items():
        check_text(path, key, what="a name")
        if isinstance(item, str):
            check_text(path, item, what=f"the value of {key!r}")
        elif item is not None:
            reason = f"the value of {key!r} is neither a text nor null, so Ganeti fails to run any allocator"
            _fail(path, value, reason, "write a text, or null for an option without a value")
        if not key or "=" in key:
            _fail(path, key, "a name cannot be empty or hold '='", "rename it")


def _check_pairs(path: Path, value: Value) -> None:
    if not isinstance(value, list) or not value:
        _fail(path, value, "`minmax` is a list of at least one size", "write a size, or inherit")
    for number, pair in enumerate(value, 1):
        for bound in ("min", "max"):
            spec = pair.get(bound) if isinstance(pair, dict) else None
            if not isinstance(spec, dict) or spec.keys() != {*SPEC_PARAMETERS}:
                missing = ", ".join(name for name in SPEC_PARAMETERS if not isinstance(spec, dict) or name not in spec)
                _fail(path, pair, f"{bound} of size {number} lacks {missing}", "write all six in every min and max")
            for name, amount in spec.items():
                if type(amount) is int and 0 <= amount <= LARGEST_INT and not amount % SIZE_STEP_MIB:
                    continue  # most are: right for sizes and counts alike
                where = (*path, str(number), bound, name)
                if not isinstance(amount, int) or isinstance(amount, bool):
                    _fail(where, amount, "it is not a whole number", "write a whole number")
                if abs(amount) > LARGEST_INT:
                    _fail(where, amount, "it is too large to be kept exactly", "write a smaller number")
                if name in SPEC_SIZES:
                    _check_size(where, amount)


def _sorted_ranges(path: Path, value: Value) -> list[Value]:
    if not isinstance(value, list):
        _fail(path, value, "it is not a list", "write a list of [low, high]")
    ranges: list[tuple[int, int]] = []
    for item in value:
        match item:
            case [int() as low, int() as high] if 0 <= low <= high <= LARGEST_UID:
                ranges.append((low, high))
            case _:
                _fail(path, item, "it is not a range of user ids", "write [low, high], 0 to 4294967295")
    return [[low, high] for low, high in sorted(ranges)]  # as the command line sorts them
