"""The effective policy as text in columns, as an answer for Markdown and HTML, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from gpolicy.colour import Painter, Tone
from gpolicy.ganeti.parameter import Level, Path, Value
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS
from gpolicy.json_values import fields, place
from gpolicy.printable import as_text, printable
from gpolicy.report.answer import Answer, Cell, Name, Section, Table, count
from gpolicy.show.effective_policy import Declaration, EffectiveObject, EffectivePolicy, EffectiveValue, Origin
from gpolicy.writing.written import written_value
from gpolicy.writing.yaml_text import Node, flow, scalar

FORMAT_VERSION: Final = "1.0"

_WIDEST_COLUMN: Final = 60
_MINMAX: Final = ("ipolicy", "minmax")
_LEVELS: Final = {"Cluster": Level.CLUSTER, "NodeGroup": Level.GROUP, "NodeSet": Level.NODE}


def effective_text(view: EffectivePolicy, *, origin: bool = False, colour: bool = False) -> str:
    """Return the view for people: one line a value, with what it follows or overrides; `origin` adds the places."""
    writer = _Text(origin=origin, colour=colour)
    blocks = [as_text(writer.block(item, view.version)) for item in view.objects]
    return "\n".join(blocks) or "the policy describes no object\n"


def effective_answer(view: EffectivePolicy, *, origin: bool = False) -> Answer:
    """Return the view as an answer: a table of values for each object; `origin` adds the places."""
    return Answer(
        verb="show",
        title="Effective policy",
        name="",
        verdict=f"{count(len(view.objects), 'object')} of a policy for Ganeti {view.version}",
        sections=tuple(_section(item, number, view.version, origin=origin) for number, item in enumerate(view.objects)),
    )


def _section(item: EffectiveObject, number: int, version: str, *, origin: bool) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for value in item.values:
        lines = list(_spec_lines(value.origin)) if value.path == _MINMAX and value.origin else []
        shown = "; ".join((_shown(value), *lines))
        places = (_place_of(value), "; ".join(_overridden(value))) if origin else ()
        rows.append((Name(".".join(value.path)), shown, *places, _note(value, item)))
    words = (("nodes", item.nodes), ("tags", item.tags))
    return Section(
        key=f"object-{number}",
        title=_title(item, version),
        summary="; ".join(f"{word}: {_words(listed)}" for word, listed in words if listed is not None),
        parts=(
            Table(
                title="Values",
                of="values",
                headings=("parameter", "value", *(("declared at", "also") if origin else ()), "from"),
                rows=tuple(rows),
            ),
        )
        if rows
        else (),
    )


class _Text:
    def __init__(self, *, origin: bool, colour: bool) -> None:
        self._origin, self._paint = origin, Painter(colour)

    def block(self, item: EffectiveObject, version: str) -> Iterator[str]:
        yield self._paint(Tone.STRONG, _title(item, version))
        if item.nodes is not None:
            yield f"  nodes: {_words(item.nodes)}"
        if item.tags is not None:
            yield f"  tags: {_words(item.tags)}"
        rows = [[printable(cell) for cell in self._columns(value, item)] for value in item.values]
        widths = [min(max(map(len, column), default=0), _WIDEST_COLUMN) for column in zip(*rows, strict=True)]
        for value, row in zip(item.values, rows, strict=True):
            cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
            line = f"  {'  '.join(cells)}".rstrip()
            yield self._paint(Tone.QUIET, line) if value.state is not Declaration.EXPLICIT else line
            yield from self._specs(value)
            if self._origin:
                yield from (f"      {text}" for text in _overridden(value))

    def _columns(self, value: EffectiveValue, item: EffectiveObject) -> tuple[str, ...]:
        place = (_place_of(value),) if self._origin else ()
        return (".".join(value.path), _shown(value), *place, _note(value, item))

    def _specs(self, value: EffectiveValue) -> Iterator[str]:
        if value.path == _MINMAX and value.origin is not None:
            for text in _spec_lines(value.origin):
                yield f"      {text}"


def _place_of(value: EffectiveValue) -> str:
    return str(value.origin.span) if value.origin is not None else ""


def _overridden(value: EffectiveValue) -> Iterator[str]:
    """Yield where the value is inherited, and what it overrides."""
    if value.state is Declaration.INHERIT and value.span is not None:
        yield f"inherit: {value.span}"
    for other in value.overrides:
        yield f"over {_brief(value.path, other.value)}: {other.span}{_through(other) or f' ({other.object})'}"


def _title(item: EffectiveObject, version: str) -> str:
    if item.kind == "Cluster":
        return f"cluster {item.name} (Ganeti {version})"
    return f"{item.label} (nodes in group {item.group})" if item.group is not None else item.label


def _words(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"


def _through(origin: Origin) -> str:
    return f" (from {origin.base})" if origin.base is not None else ""


def _shown(value: EffectiveValue) -> str:
    return "not known from the policy" if value.origin is None else _brief(value.path, value.origin.value)


def _brief(path: Path, value: Value) -> str:
    """Return a value on one line, as a policy would write it."""
    written = _written(path, value)
    if path == _MINMAX and isinstance(written, list):
        return f"{len(written)} specs" if len(written) != 1 else "1 spec"
    return flow(written) if isinstance(written, list | dict) else scalar(written)


def _written(path: Path, value: Value) -> Node:
    parameter = parameter_at(path)
    if parameter is None or value == "inherit":
        return value  # type: ignore[return-value]
    return written_value(parameter, value)


def _spec_lines(origin: Origin) -> Iterator[str]:
    pairs = _written(_MINMAX, origin.value)
    for number, pair in enumerate(pairs if isinstance(pairs, list) else [], 1):
        names = origin.pair_names
        name = names[number - 1] if len(names) >= number else None
        yield f"{name or f'spec {number}'}: {_ranges(pair)}"


def _ranges(pair: Any) -> str:
    low, high = pair["min"], pair["max"]
    return ", ".join(
        f"{name} {low[name]}" if low[name] == high[name] else f"{name} {low[name]}..{high[name]}"
        for name in SPEC_PARAMETERS
    )


def _note(value: EffectiveValue, item: EffectiveObject) -> str:
    if value.state is Declaration.UNMANAGED:
        source = value.origin.object if value.origin else ""
        return f"from {source}, if it has none of its own" if _settable(value.path, item) else f"from {source}"
    if value.state is Declaration.INHERIT:
        return f"inherited from {value.origin.object}" if value.origin else "inherited"
    if item.kind == "Cluster":
        return _through(value.origin).strip() if value.origin else ""
    above = [other for other in value.overrides if other.object != item.label]
    own = "own" + (_through(value.origin) if value.origin else "")
    if not above:
        return own
    same = value.origin is not None and above[-1].value == value.origin.value
    what = "the same as" if same else f"over {_brief(value.path, above[-1].value)} of"
    return f"{own}, {what} {above[-1].object}"


def _settable(path: Path, item: EffectiveObject) -> bool:
    parameter = parameter_at(path)
    return parameter is None or _LEVELS[item.kind] in parameter.levels


def effective_data(view: EffectivePolicy) -> dict[str, Any]:
    """Return the view in JSON's own types; its schema is schemas/output/show.json."""
    return {
        "format_version": FORMAT_VERSION,
        "ganeti_version": view.version,
        "objects": [_object(item) for item in view.objects],
    }


def _object(item: EffectiveObject) -> dict[str, Any]:
    return {
        "object": item.label,
        **fields(item, "kind", "name", "group"),
        **place(item.span),
        **fields(item, "nodes", "tags"),
        "values": [_value(value) for value in item.values],
    }


def _value(value: EffectiveValue) -> dict[str, Any]:
    own: Value = None
    if value.state is Declaration.INHERIT:
        own = "inherit"
    elif value.state is Declaration.EXPLICIT:
        own = value.value
    origin = value.origin
    return {
        "path": ".".join(value.path),
        "state": value.state.value,
        "own": own,
        "effective": value.value,
        "from": origin.object if origin else None,
        "base": origin.base if origin else None,
        **place(origin.span if origin else value.span),
        "overrides": [{**fields(other, "object", "base", "value"), **place(other.span)} for other in value.overrides],
    }
