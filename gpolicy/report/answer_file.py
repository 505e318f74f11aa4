"""An answer as JSON in a file of ours, so that any form of it can be shown later, without the cluster.

What is read is not trusted: every field must be of its type.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Final, get_args, get_origin, get_type_hints

from gpolicy.cluster.record import Record
from gpolicy.errors import InputError
from gpolicy.growth.filling_up import SizeForecast
from gpolicy.json_values import json_text
from gpolicy.plan.plan_json import ANSWER
from gpolicy.policy.source_file import SourceFile
from gpolicy.report.answer import Answer, Findings, Name, Number, Page, Picture, Table
from gpolicy.report.pictures import DomainKind, GroupPicture, SpecPicture

_WORDS: Final = {kind.__name__: kind for kind in (Name, Page, Number)}
_DRAWN: Final = {"specs": SpecPicture, "nodes": GroupPicture, "domains": DomainKind, "growth": SizeForecast}
"""What each macro draws."""
_hints = cache(get_type_hints)


class _MisfitError(Exception):
    """A value is not of its type."""


def kept_text(data: Mapping[str, Any], answer: Answer) -> str:
    """Return what is written to a file: its own JSON, and the answer that goes with it, for `gpolicy show`."""
    return json_text({**data, ANSWER: answer_data(answer)})


def answer_data(answer: Answer) -> dict[str, Any]:
    """Return an answer as JSON's own types: its pictures drawn, without fields that have their default."""
    data: dict[str, Any] = _data(answer)
    return data


def _data(value: Any) -> Any:
    match value:
        case Enum():
            return value.name
        case Name() | Number():
            return {"of": type(value).__name__, "word": str(value)}
        case list() | tuple():
            return [_data(item) for item in value]
        case Picture():
            return {"is": "Picture", "macro": value.macro, "draw": _data(value.draw())}
        case Findings():
            files = {item.span.file for item in value.findings if item.span}
            texts = {name: file.text for name, file in value.sources.items() if name in files}
            return {"is": "Findings", "findings": _data(value.findings), "sources": texts}
    if not dataclasses.is_dataclass(value):
        return value
    fields = {item.name: (getattr(value, item.name), item.default) for item in dataclasses.fields(value)}
    kept = {name: _data(inside) for name, (inside, default) in fields.items() if inside != default}
    return {"is": type(value).__name__} | kept


def read_answer(written: Record) -> Answer:
    """Return the answer that `answer_data` wrote. Raise InputError if it is damaged."""
    try:
        answer: Answer = _read_as(Answer, written.fields)
    except _MisfitError as error:
        raise InputError(f"{written.where}: the report in it is damaged: {error}") from None
    return answer


def _read_as(kind: Any, value: Any) -> Any:
    """Return a value of a type from what `_data` made of it. Raise _MisfitError if it is none."""
    outer, inner = get_origin(kind), get_args(kind)
    if outer is UnionType:
        for one in inner:
            with suppress(_MisfitError):
                return _read_as(one, value)
    match value:
        case list() if outer in (tuple, Sequence):
            kinds = inner if outer is tuple and inner[-1] is not ... else inner[:1] * len(value)
            if len(kinds) == len(value):
                return tuple(map(_read_as, kinds, value))
        case {"is": "Picture", "macro": str(macro), "draw": list(items)} if kind is Picture and macro in _DRAWN:
            drawn = [_read_as(_DRAWN[macro], item) for item in items]
            return Picture(macro, lambda: drawn)
        case dict() if outer is Mapping:
            return {name: SourceFile(name, _read_as(str, text)) for name, text in value.items()}
        case {"is": str(name)} if isinstance(kind, type) and name == kind.__name__:
            fields = {key: _read_as(_hints(kind)[key], inside) for key, inside in value.items() if key in _hints(kind)}
            with suppress(TypeError):  # a field is missing
                made = kind(**fields)
                if not isinstance(made, Table) or _is_sound(made):
                    return made
        case {"word": str(text), "of": str(word)} if kind in (str, Name) and word in _WORDS:
            return _WORDS[word](text)
        case str() if isinstance(kind, type) and issubclass(kind, Enum) and value in kind.__members__:
            return kind[value]
        case str() | int() | float() | None if kind is type(value) or (kind is float and type(value) is int):
            return value
    raise _MisfitError(f"{str(value)[:60]!r} is not of type {getattr(kind, '__name__', kind)}")


def _is_sound(table: Table) -> bool:
    """Return whether the parts of a table fit together, so that every form can show it."""
    counts = (table.most, table.grouped, table.brief)
    beside = all(len(items) in (0, len(table)) for items in (table.bars, table.tones))
    return beside and min(counts) >= 0 and all(len(row) == len(table.headings) > table.grouped for row in table.rows)
