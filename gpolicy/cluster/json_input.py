"""Text and JSON from files, programs and servers, read with bounds.

Every error is an `InputError` with the place. Input is never trusted: `Record` (`record.py`) checks the type of each
field.
"""

import json
import math
from pathlib import Path

from gpolicy.cluster.record import LARGEST_FILE, LONGEST_QUOTE, refuse_too_many_values, shown
from gpolicy.errors import InputError
from gpolicy.ganeti.vocabulary import Value
from gpolicy.opening import OutsideError, path_meant, read_named, reason

_DEEPEST = 100  # levels; Ganeti's own JSON has a dozen


def read_bytes(path: Path, *, limit: int = LARGEST_FILE) -> bytes:
    """Return the content of the file. Raise InputError if it cannot be read or has more than `limit` bytes."""
    try:
        return read_named(path, limit)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", hint=path_meant(path)) from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a directory, not a file") from None
    except PermissionError:
        raise InputError(f"{path}: permission denied", hint="read it as the user that owns it") from None
    except OutsideError as error:
        raise InputError(f"{path}: {error}", hint="name its target instead if you trust it") from None
    except OSError as error:
        said = "not a file name" if "\0" in str(path) else reason(error)
        raise InputError(f"{str(path)!r}: {said}") from None


def decode_text(data: bytes, where: str) -> str:
    """Return `data` as text. Raise InputError if it is binary, or has more than MOST_VALUES values."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not text (byte {error.start} is not UTF-8)") from None
    if "\0" in text:
        raise InputError(f"{where}: not text (null byte at {text.index(chr(0))})")
    refuse_too_many_values(text, where)
    return text


def parse_json(data: bytes, where: str) -> Value:
    """Return the JSON value that `data` holds. Raise InputError that begins with `where`.

    NaN, infinite numbers, numbers with thousands of digits, excessive nesting and text that cannot be printed are
    refused, and a mapping with a duplicate key: another reader may take the other value.
    """
    text = decode_text(data, where)
    if not text.strip():
        raise InputError(f"{where}: empty")
    try:
        value: Value = json.loads(text, parse_constant=_finite, parse_float=_finite, object_pairs_hook=_unique)
        if "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        cut = " (is the file complete?)" if error.pos >= len(text.rstrip()) - 1 else ""
        raise InputError(f"{where}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}{cut}") from None
    except RecursionError:
        raise InputError(f"{where}: nested too deeply") from None
    except UnicodeEncodeError:
        raise InputError(f"{where}: holds an unpaired surrogate, which is not valid text") from None
    except ValueError as error:
        reason = str(error) if isinstance(error, _BadJsonError) else "holds a number with thousands of digits"
        raise InputError(f"{where}: {reason}") from None
    if _is_deeper_than(_DEEPEST, value):
        raise InputError(f"{where}: nested too deeply")
    return value


_NESTED = frozenset({dict, list})


def _is_deeper_than(limit: int, value: Value) -> bool:
    """Return whether lists and mappings are nested in more than `limit` levels. If not, recursion is safe."""
    level = [value]
    for _ in range(limit):  # of what the parser made, each is of one of its own types
        below: list[Value] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        level = [item for item in below if item.__class__ in _NESTED]
        if not level:
            return False
    return True


class _BadJsonError(ValueError):
    """Raised by the hooks of `json.loads`; the message says why."""


def _unique(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for key, value in pairs:
        if key in found:
            raise _BadJsonError(f"holds the key {shown(key)!r} twice in one mapping")
        found[key] = value
    return found


def _finite(text: str) -> float:
    number = float(text)
    if text in ("NaN", "Infinity", "-Infinity"):
        raise _BadJsonError(f"holds {text}, which is not a JSON number")
    if not math.isfinite(number):
        raise _BadJsonError(f"holds the number {text[:LONGEST_QUOTE]}, which is too large")
    return number
