"""What a command does, leaf by leaf and in full, for whoever has to agree to it. Escape it before printing."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from gpolicy.ganeti.parameter import Path, Value
from gpolicy.ganeti.reach import reach_of
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS
from gpolicy.plan.change import MEMBERSHIP, NAME, TAGS
from gpolicy.plan.effects import Effect

_LONGEST: Final = 4000  # characters of one value; what is cut is said
_MINMAX: Final[Path] = ("ipolicy", "minmax")


def effect_words(effect: Effect) -> str:
    """Return what becomes of one leaf: the object, the leaf, its value before and after, and whom the value reaches."""
    match effect.path:
        case path if path == NAME and effect.before is None:
            return f"{effect.object}: made"
        case path if path == NAME and effect.after is None:
            return f"{effect.object}: removed"
        case path if path == NAME:
            return f"{effect.object}: renamed to {value_words(path, effect.after)}"
        case path if path == MEMBERSHIP:
            return (
                f"{effect.object}: from group {value_words(path, effect.before)} to {value_words(path, effect.after)}"
            )
        case path if path[:1] == TAGS:
            return f"{effect.object}: tag {value_words(path, path[1])} {'added' if effect.after else 'removed'}"
    reach = reach_of(effect.path)
    values = f"{value_words(effect.path, effect.before)} → {value_words(effect.path, effect.after)}"
    return f"{effect.object} {'.'.join(effect.path)}: {values}{f'  ! {reach}' if reach else ''}"


def value_words(path: Path, value: Value) -> str:
    """Return a value as JSON, spec pairs by parameter. One that is too long is cut, and says so."""
    if value is None:
        return "not set"
    text = _pairs(value) if path == _MINMAX else json.dumps(value, ensure_ascii=False)
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[:_LONGEST]}… (cut: {len(text) - _LONGEST} more characters are in the plan; sha256 of all {digest}…)"


def _pairs(value: Value) -> str:
    try:
        return "; ".join(_pair(pair) for pair in value)  # type: ignore[union-attr]
    except (TypeError, KeyError):
        return json.dumps(value, ensure_ascii=False)


def _pair(pair: Value) -> str:
    low, high = pair["min"], pair["max"]  # type: ignore[index,call-overload]
    return ", ".join(f"{name} {json.dumps(low[name])}..{json.dumps(high[name])}" for name in SPEC_PARAMETERS)  # type: ignore[index,call-overload]
