"""Make the model's objects from documents that conform to their schema."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any, Final, TypeVar

from gpolicy.findings import Finding, Located, Span
from gpolicy.ganeti.amounts import parse_bounded_size, parse_rate, round_size
from gpolicy.ganeti.expressible import LARGEST_UID
from gpolicy.ganeti.parameters import FAMILIES, as_word, canonical, parameter_at
from gpolicy.ganeti.vocabulary import SPEC_SIZES, TAG_FAMILIES, Level, Parameter, Path, Type, Value
from gpolicy.policy import edits, model, source_file
from gpolicy.policy.source_file import Pointer, YamlDocument, last_key, place_name

T = TypeVar("T")

TellFinding = Callable[[Finding], None]
LEAST_WITHOUT_UNIT: Final = 128
"""MiB. A smaller number has most likely lost its unit, and nobody knows which: Ganeti's own least memory is 128."""


class DocumentReader:
    """Reads the values of one document that conforms to its schema; findings about them go to `report`."""

    def __init__(self, document: YamlDocument, report: TellFinding) -> None:
        self.document = document
        self.root: dict[str, Any] = document.root
        self.report = report

    def at(self, pointer: Pointer) -> Span:
        """Return the place of a value."""
        return self.document.value_span(pointer)

    def wrong(self, message: str, pointer: Pointer, hint: str = "", *, of_key: bool = False) -> None:
        """Report a value, or its key, as wrong."""
        span = self.document.key_span(pointer) if of_key else self.at(pointer)
        self.report(source_file.WRONG_VALUE.finding(message, span, hint=hint))

    def amount(self, parse: Callable[[Any], T], written: str | float, pointer: Pointer) -> T | None:
        """Return the amount that somebody wrote; None, and a finding, where `parse` refuses it."""
        try:
            return parse(written)
        except ValueError as error:
            self.wrong(f"{place_name(pointer)}: {error}", pointer)
            return None

    def exact_size(self, written: str | float, pointer: Pointer) -> Fraction | int | None:
        """Return a size in MiB, unrounded; None, and a finding, if it is none or too large."""
        return self.amount(partial(parse_bounded_size, name=last_key(pointer)), written, pointer)


class Builder(DocumentReader):
    """Builds the objects of one document."""

    def cluster(self) -> model.ClusterPolicy:
        """Return the cluster that the document describes."""
        return model.ClusterPolicy(**self._common(Level.CLUSTER), ganeti_version=self.root.get("ganeti_version"))

    def group(self) -> model.GroupPolicy:
        """Return the group that the document describes."""
        return model.GroupPolicy(
            **self._common(Level.GROUP),
            renamed_from=self._located("renamed_from"),
            removed=self._located("removed"),
            nodes=self._texts("nodes") if "nodes" in self.root else None,
            hardware=self._hardware() if "hardware" in self.root else None,
        )

    def node_set(self) -> model.NodeSetPolicy:
        """Return the set of nodes that the document describes."""
        return model.NodeSetPolicy(**self._common(Level.NODE), nodes=self._texts("nodes"), groups=self._texts("groups"))

    def tag_rules(self) -> model.TagRulesPolicy:
        """Return the tag rules of the document, rendered to tags."""
        return model.TagRulesPolicy(
            span=self.document.value_span(()),
            document=self.document,
            owns=tuple(self._owned()),
            by_place=dict(self._rule_tags()),
        )

    def _common(self, level: Level) -> dict[str, Any]:
        extends = self.root.get("extends")
        return {
            "name": self._ascii_text(self.root["name"], ("name",)),
            "document": self.document,
            "span": self.at(("name",)),
            "leaves": self._build_leaves(level),
            "tags": self._texts("tags") if "tags" in self.root else None,
            "template": self.root.get("template", False),
            "extends": (self._located("extends"),) if isinstance(extends, str) else self._texts("extends"),
            "limits": self._settings("limits"),
            "physical_volumes": self._settings("physical_volumes"),
        }

    def _settings(self, family: str) -> model.WrittenTerms:
        """Return the written keys of something that Ganeti does not know."""
        found: dict[str, Located[Any]] = {}
        for key, value in self.root.get(family, {}).items():
            if isinstance(value, float) and not math.isfinite(value):
                self.wrong(f"{family}.{key} is {value}, which is not a ratio", (family, key))
            else:  # JSON Schema takes 2.0 for a whole number
                whole = isinstance(value, float) and key == "max_node_failures"
                found[key] = Located(int(value) if whole else value, self.at((family, key)))
        return found

    def _located(self, key: str) -> Located[Any] | None:
        if key not in self.root:
            return None
        value = self.root[key]
        return Located(self._ascii_text(value, (key,)) if isinstance(value, str) else value, self.at((key,)))

    def _texts(self, key: str) -> tuple[Located[str], ...]:
        items = enumerate(self.root.get(key, ()))
        return tuple(Located(self._ascii_text(item, (key, index)), self.at((key, index))) for index, item in items)

    def _ascii_text(self, value: str, pointer: Pointer) -> str:
        """Return `value`; report a character that breaks Ganeti's configuration."""
        if not (value.isascii() and value.isprintable()):
            bad = next(letter for letter in value if not (letter.isascii() and letter.isprintable()))
            message = f"{place_name(pointer)} contains {bad!a}, which is not printable ASCII"
            hint = "remove this character: with it, every later job of Ganeti fails"
            self.report(source_file.NOT_PLAIN_TEXT.finding(message, self.at(pointer), hint=hint))
        return value

    def _build_leaves(self, level: Level) -> model.Leaves:
        leaves: model.Leaves = {}
        for key, value in self.root.items():
            if key in FAMILIES or parameter_at((key,)) is not None:
                for path, below in self._walk((key,), value):
                    if (parameter := parameter_at(path)) is not None:
                        leaves[path] = model.Leaf(path, self._value(parameter, below, path, level), self.document, path)
        return leaves

    def _walk(self, path: Path, value: Any) -> Iterator[tuple[Path, Any]]:
        if isinstance(value, dict) and parameter_at(path) is None:
            for key, below in value.items():
                yield from self._walk((*path, self._ascii_text(key, (*path, key))), below)
        else:
            yield path, value

    def _value(self, parameter: Parameter, written: Any, path: Path, level: Level) -> Value | model.Inherit:
        if written == "inherit" and level is not Level.CLUSTER and path != ("alloc_policy",):
            return model.INHERIT
        match parameter.type:
            case Type.SIZE:
                return self._size_in_mib(written, path)
            case Type.MIB:
                return self._size_in_mib(written, path, rounded=False)
            case Type.MINMAX:
                pairs: list[Value] = [
                    {bound: self._build_spec(pair[bound], (*path, number, bound)) for bound in ("min", "max")}
                    for number, pair in enumerate(written)
                ]
                return canonical(path, pairs)
            case Type.UID_RANGES:
                return [self._uid_range(text, (*path, n)) for n, text in enumerate(written)]
            case Type.FLOAT if not math.isfinite(written):
                self.wrong(f"{parameter.name} is {written}, which is not a ratio", path)
                return parameter.default
            case Type.INT if isinstance(written, str):
                return self.amount(parse_rate, written, path) or 0
            case Type.STRING | Type.CHOICE:
                self._check_word(parameter, written, path)
            case Type.LIST | Type.SET:
                for index, item in enumerate(written):
                    self._ascii_text(item, (*path, index))
            case Type.DICT:
                words = {key: None if value is None else as_word(value) for key, value in written.items()}
                return canonical(path, {self._ascii_text(key, (*path, key)): value for key, value in words.items()})
        return canonical(path, written)

    def _check_word(self, parameter: Parameter, written: str, path: Path) -> None:
        self._ascii_text(written, path)
        if parameter.family == "hvparams" and written == "default":
            return  # an ordinary value of this parameter, such as kvm's disk_cache
        if written in ("inherit", "default") and parameter.type is Type.STRING:
            message = f"{parameter.name} cannot be the word {written!r}: Ganeti would store or reset by it"
            self.wrong(message, path, "at the cluster, write the value; a group or a node can `inherit`")

    def _build_spec(self, spec: dict[str, Any], pointer: Pointer) -> Value:
        return {
            name: self._size_in_mib(value, (*pointer, name)) if name in SPEC_SIZES else int(value)
            for name, value in spec.items()
        }

    def _size_in_mib(self, written: str | int, pointer: Pointer, *, rounded: bool = True) -> int:
        exact = self.exact_size(written, pointer) or 0
        if not rounded:
            return int(-(-exact // 1))
        size = round_size(exact)
        if size != exact:
            message = f"{written} is not a multiple of 4 MiB: Ganeti stores {size} MiB"
            hint = f"write {size}"
            fix = edits.fix(hint, edits.replace_value(self.document, pointer, str(size)))
            if exact < LEAST_WITHOUT_UNIT and not str(written)[-1:].isalpha():
                hint, fix = f"write {written}G, if GiB are meant; a number without a unit is in MiB", None
            self.report(source_file.SIZE_ROUNDED.finding(message, self.at(pointer), hint=hint, fix=fix))
        return size

    def _uid_range(self, written: str | float, pointer: Pointer) -> Value:
        text = written if isinstance(written, str) else str(int(written))
        low, _, high = text.partition("-")
        first, last = int(low), int(high or low)
        if last < first:
            self.wrong(f"{place_name(pointer)}: the range {text} ends before it begins", pointer)
        elif last > LARGEST_UID:
            message = f"{place_name(pointer)} goes up to {last}, which is not a user ID"
            self.wrong(message, pointer, f"the highest is {LARGEST_UID}")
        return [first, last]

    def _hardware(self) -> model.Hardware:
        written = self.root["hardware"]

        def size(value: Any, *pointer: str | int) -> Located[int] | None:
            place: Pointer = ("hardware", *pointer)
            exact = self.exact_size(value, place)  # hardware, not a setting: not rounded
            # a refused value counts as not written, so that no other rule reports it
            return None if exact is None else Located(int(exact), self.at(place))

        pv_size = written.get("pv_size", [])
        items = enumerate(pv_size) if isinstance(pv_size, list) else ()
        volumes = [size(item, "pv_size", index) for index, item in items]
        volumes += [] if isinstance(pv_size, list) else [size(pv_size, "pv_size")]
        known = tuple(volume for volume in volumes if volume is not None)
        counts = {key: int(written[key]) for key in ("cpus", "pv_count") if key in written}
        return model.Hardware(
            span=self.at(("hardware",)),
            memory=size(written["memory"], "memory") if "memory" in written else None,
            pv_sizes=known if len(known) == len(volumes) else (),  # of only some no sum would be right
            **{key: Located(number, self.at(("hardware", key))) for key, number in counts.items()},
        )

    def _owned(self) -> Iterator[Located[model.OwnedPrefix]]:
        for index, item in enumerate(self.root.get("owns", ())):
            is_family = isinstance(item, str)
            prefix, levels = (TAG_FAMILIES[item], ["cluster"]) if is_family else (item["prefix"], item["on"])
            yield Located(model.OwnedPrefix(prefix, frozenset(map(Level, levels))), self.at(("owns", index)))

    def _rule_tags(self) -> Iterator[tuple[Pointer, Located[str]]]:
        for family, pointer in model.RULES.items():
            items: Any = self.root
            for key in pointer:
                items = items.get(key, {})
            for index, item in enumerate(items):
                match item:
                    case {"raw": str(suffix)}:
                        pass
                    case {"from": source, "to": target}:
                        suffix = f"{source}::{target}"
                    case _:  # only with a closing colon does `service` mean the tags service:… and not services as well
                        suffix = f"{item.rstrip(':')}:" if family in ("iextags", "desiredlocation") else item
                place: Pointer = (*pointer, index)
                yield place, Located(self._ascii_text(f"{TAG_FAMILIES[family]}{suffix}", place), self.at(place))
