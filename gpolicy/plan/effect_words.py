"""The effects of a command, leaf by leaf and in full, for the user who approves it. Escape it before printing."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from gpolicy.ganeti.parameter import Path, Value
from gpolicy.ganeti.parameters import reach_of
from gpolicy.ganeti.units import exact_size
from gpolicy.ganeti.values import amount_text
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, SPEC_SIZES
from gpolicy.plan.change import MEMBERSHIP, NAME, NODES, TAGS, words
from gpolicy.plan.effects import Effect
from gpolicy.printable import count

_LONGEST: Final = 4000  # characters of one value; a longer one is marked as cut
_AROUND: Final = 40  # characters shown around the part in which two long values differ
_MINMAX: Final[Path] = ("ipolicy", "minmax")


def effect_words(effect: Effect) -> str:
    """Return the change of one leaf: the object, the leaf, its value before and after, and the affected objects."""
    match effect.path:
        case path if path == NAME and effect.before is None:
            return f"{effect.object}: created"
        case path if path == NAME and effect.after is None:
            return f"{effect.object}: removed"
        case path if path == NAME:
            return f"{effect.object}: renamed to {value_words(path, effect.after)}"
        case path if path == MEMBERSHIP:
            return (
                f"{effect.object}: from group {value_words(path, effect.before)} to {value_words(path, effect.after)}"
            )
        case path if path == NODES:
            return f"{effect.object}: from {', '.join(words(effect.before))} to {', '.join(words(effect.after))}"
        case path if path[:1] == TAGS:
            return f"{effect.object}: tag {value_words(path, path[1])} {'added' if effect.after else 'removed'}"
    reach = reach_of(effect.path)
    values = " → ".join(_both_words(effect))
    return f"{effect.object} {'.'.join(effect.path)}: {values}{f'  ! {reach}' if reach else ''}"


def value_words(path: Path, value: Value) -> str:
    """Return a size with its unit, spec pairs by parameter, others as JSON. A long one is cut, and says so."""
    return _cut(_words(path, value))


def _both_words(effect: Effect) -> tuple[str, str]:
    """Return the words of the value before and after; of long ones only the part in which they differ."""
    before, after = _words(effect.path, effect.before), _words(effect.path, effect.after)
    if max(len(before), len(after)) <= _LONGEST:
        return before, after
    start = _alike(before, after)
    end = max(0, _alike(before[start:][::-1], after[start:][::-1]) - _AROUND)
    start = max(0, start - _AROUND)
    return _part(before, start, end), _part(after, start, end)


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def _part(text: str, start: int, end: int) -> str:
    """Return `text` without its first `start` and its last `end` characters, which the other value has as well."""
    first = f"({count(start, 'character')} alike)…" if start else ""
    last = f"…({count(end, 'character')} alike)" if end else ""
    return f"{first}{_cut(text[start : len(text) - end])}{last}"


def _words(path: Path, value: Value) -> str:
    if value is None:
        return "not set"
    if (amount := amount_text(path, value)) is not None:
        return amount
    return _pairs(value) if path == _MINMAX else json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    half = _LONGEST // 2
    cut = f"cut: {len(text) - 2 * half} more characters are in the plan; sha256 of all {digest}…"
    return f"{text[:half]}… ({cut}) …{text[-half:]}"


def _pairs(value: Value) -> str:
    try:
        return "; ".join(_pair(pair) for pair in value)  # type: ignore[union-attr]
    except (TypeError, KeyError):
        return json.dumps(value, ensure_ascii=False)


def _pair(pair: Any) -> str:
    low, high = pair["min"], pair["max"]
    return ", ".join(f"{name} {_bound(name, low)}..{_bound(name, high)}" for name in SPEC_PARAMETERS)


def _bound(name: str, spec: Any) -> str:
    value = spec[name]
    is_size = name in SPEC_SIZES and isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return exact_size(value) if is_size else json.dumps(value)
