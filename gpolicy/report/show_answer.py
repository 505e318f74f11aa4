"""The effective policy as an answer and as JSON (`schemas/output/show.json`): values, and where they come from."""

from collections.abc import Iterator
from typing import Any, Final

from gpolicy.ganeti.amounts import format_size
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.vocabulary import MINMAX, SPEC_PARAMETERS, Path, Value
from gpolicy.json_values import ANYTHING, PLACE, Document, Key, Maybe, Shape, version_key
from gpolicy.policy.kinds import LEVELS
from gpolicy.printable import count
from gpolicy.report.answer import Answer, Cell, Entries, Entry, Name, Section, Table
from gpolicy.show.effective_policy import Declaration, EffectiveObject, EffectivePolicy, EffectiveValue, Origin
from gpolicy.writing.yaml_text import YamlNode, flow, scalar, written_value

_SIZES: Final = (("hardware", "memory"), ("hardware", "pv_size"))


def show_answer(view: EffectivePolicy, *, origin: bool = False) -> Answer:
    """Return the view as an answer: tables of values for each object; `origin` adds the places."""
    verdict = f"{count(len(view.objects), 'object')} of a policy for Ganeti {view.version}"
    own = Section("own", "", [Entries("object", [_own(item) for item in view.objects])], brief_only=True)
    sections = (_section(item, place, view.version, origin=origin) for place, item in enumerate(view.objects))
    return Answer(verb="show", title="Effective policy", name="", verdict=verdict, sections=(own, *sections))


def _own(item: EffectiveObject) -> Entry:
    """Return the values that an object declares itself, on one line."""
    own = [value for value in item.values if value.state is Declaration.EXPLICIT and value.origin]
    told = [f"{'.'.join(value.path)} {_brief(value.path, value.origin.value)}" for value in own if value.origin]
    told += [f"tags {' '.join(item.tags)}"] if item.tags else []
    name = f"{item.label} in {item.group}" if item.group is not None else item.label
    return Entry(", ".join(told) or "no values of its own", name=name)


def _section(item: EffectiveObject, number: int, version: str, *, origin: bool) -> Section:
    named = {"nodes": item.nodes, "tags": item.tags}
    words = [f"{word} {', '.join(of)}" if of else f"no {word}" for word, of in named.items() if of is not None]
    tables = [_value_table(item, origin=origin), _specs(item), *([_overridden(item)] if origin else [])]
    summary = "; ".join(words if item.values else [*words, "no values"])
    return Section(f"object-{number}", _title(item, version), tables, summary=summary, never_cut=True)


def _value_table(item: EffectiveObject, *, origin: bool) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for value in item.values:
        place = (str(value.origin.span) if value.origin else "",) if origin else ()
        shown = _brief(value.path, value.origin.value) if value.origin else "not known from the policy"
        rows.append((Name(".".join(value.path)), shown, *place, _note(value, item)))
    headings = ("parameter", "value", *(("declared at",) if origin else ()), "from")
    return Table("Values", "values", headings, rows)


def _specs(item: EffectiveObject) -> Table:
    """Return the specs that are the object's own; those that it inherits stand with the object that they are from."""
    own = [value for value in item.values if value.path == MINMAX and value.state is Declaration.EXPLICIT]
    rows = [row for value in own if value.origin for row in _spec_rows(value.origin)]
    return Table("Sizes", "sizes", ("size", *SPEC_PARAMETERS), rows, most=max(len(rows), 1))


def _overridden(item: EffectiveObject) -> Table:
    """Return where values are declared to be inherited, and what the own ones override."""
    rows = [(Name(".".join(value.path)), *cells) for value in item.values for cells in _others(value)]
    headings = ("parameter", "value", "declared at", "of")
    return Table("Inherited and overridden", "values", headings, rows, most=max(len(rows), 1))


def _others(value: EffectiveValue) -> Iterator[tuple[str, str, str]]:
    if value.state is Declaration.INHERIT and value.span is not None:
        yield "inherit", str(value.span), ""
    for other in value.overrides:
        yield _brief(value.path, other.value), str(other.span), other.base or other.object


def _title(item: EffectiveObject, version: str) -> str:
    if item.kind == "Cluster":
        return f"cluster {item.name} (Ganeti {version})"
    return f"{item.label} (nodes in group {item.group})" if item.group is not None else item.label


def _brief(path: Path, value: Value) -> str:
    """Return a value on one line, as a policy would write it."""
    written = _written_value(path, value)
    if path == MINMAX and isinstance(written, list):
        return count(len(written), "size")
    return flow(written) if isinstance(written, list | dict) else scalar(written)


def _written_value(path: Path, value: Value) -> YamlNode:
    parameter = parameter_at(path)
    if path in _SIZES:
        return [format_size(item) for item in value] if isinstance(value, list) else format_size(value)  # type: ignore[arg-type]
    if parameter is None or value == "inherit":
        return value
    return written_value(parameter, value)


def _spec_rows(origin: Origin) -> Iterator[tuple[Cell, ...]]:
    pairs: Any = _written_value(MINMAX, origin.value)
    for number, pair in enumerate(pairs):
        name = origin.pair_names[number] if number < len(origin.pair_names) else None
        low, high = pair["min"], pair["max"]
        ranges = (f"{low[key]}" if low[key] == high[key] else f"{low[key]}..{high[key]}" for key in SPEC_PARAMETERS)
        yield Name(name or f"size {number + 1}"), *ranges


def _note(value: EffectiveValue, item: EffectiveObject) -> str:
    if value.state is Declaration.UNMANAGED:
        source = value.origin.object if value.origin else ""
        parameter = parameter_at(value.path)
        can_be_own = parameter is not None and LEVELS[item.kind] in parameter.levels
        return f"from {source}{', if it has none of its own' if can_be_own else ''}"
    if value.state is Declaration.INHERIT:
        return f"inherited from {value.origin.object}" if value.origin else "inherited"
    above = [other for other in value.overrides if other.object != item.label]
    own = f"own (from {value.origin.base})" if value.origin and value.origin.base is not None else "own"
    if not above:
        return own
    same = value.origin is not None and above[-1].value == value.origin.value
    what = "the same as" if same else f"over {_brief(value.path, above[-1].value)} of"
    return f"{own}, {what} {above[-1].object}"


_WRITTEN_AT: Final = Key(Maybe(PLACE), "span", inline=True)
_VALUE: Final = Shape(EffectiveValue, "value").with_keys(
    path=Key(str, lambda value: ".".join(value.path)),
    state="state",
    own=Key(
        ANYTHING, lambda value: {Declaration.INHERIT: "inherit", Declaration.EXPLICIT: value.value}.get(value.state)
    ),
    effective="value",
    **{"from": Key(str | None, lambda value: value.origin and value.origin.object)},
    base=Key(str | None, lambda value: value.origin and value.origin.base),
    place=Key(Maybe(PLACE), lambda value: value.origin.span if value.origin else value.span, inline=True),
    overrides=Shape(Origin, "override").with_keys("object base value place", place=_WRITTEN_AT),
)
SHOW_DOCUMENT: Final = Document(
    "gpolicy show --format json",
    Shape(EffectivePolicy).with_keys(
        format_version=version_key("1.1"),
        ganeti_version="version",
        objects=Shape(EffectiveObject, "object").with_keys(
            "object kind name group place nodes tags values effective",
            object="label",
            kind={"enum": list(LEVELS)},
            place=_WRITTEN_AT,
            values=_VALUE,
            effective=Key({"type": "object"}, lambda item: item.effective),
        ),
    ),
)
