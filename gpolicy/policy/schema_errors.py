"""Explain the errors of a document that does not conform to the schema of its kind, with their places."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from posixpath import normpath
from typing import TYPE_CHECKING, Any, Final

from gpolicy.data import read_data
from gpolicy.findings import Finding, Fix
from gpolicy.ganeti.amounts import BOUNDS, parse_size_exact
from gpolicy.ganeti.parameters import PARAMETERS
from gpolicy.ganeti.vocabulary import FORMS, HYPERVISORS, PATHS
from gpolicy.guessing import closest, did_you_mean, surely_meant
from gpolicy.policy import edits, source_file
from gpolicy.policy.conformance import all_different, first_double, pattern_words, schema_of
from gpolicy.policy.kinds import KIND_NAMES
from gpolicy.policy.source_file import Pointer, YamlDocument, last_key, place_name
from gpolicy.printable import count, listed, some

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


_MISPLACED: Final = read_data("misplaced.toml")
"""What is said of keys that stand where they do not belong, and Ganeti's words for those of other places."""
_MOST_FINDINGS = 200  # of one document; with more it is another sort of file
_MOST_ERRORS = 1000  # of the validator; several may be one finding


def shape_findings(document: YamlDocument) -> list[Finding]:
    """Return findings about the shape of a document that does not conform, besides those of reading."""
    return _head_findings(document) or _explained(document)


def _explained(document: YamlDocument) -> list[Finding]:
    from jsonschema import Draft7Validator, validators  # noqa: PLC0415 (takes longer to import than most policies)

    schema = schema_of(document.root["kind"])
    extend: Any = validators.extend
    validator = extend(Draft7Validator, {"uniqueItems": _unique_items})
    errors = islice(validator(schema).iter_errors(document.root), _MOST_ERRORS)
    explained = _of_another_hypervisor(document)
    findings: dict[tuple[object, ...], Finding] = {item.sort_key(): item for item in explained.values()}
    everything = sorted(errors, key=lambda error: str(error.path))
    # what can be expected in a test depends on what is done
    unclear = {(*error.absolute_path, "expect") for error in everything if error.validator == "oneOf"}
    for error in everything:
        if any(tuple(error.absolute_path)[: len(pointer)] == pointer for pointer in (*unclear, *explained)):
            continue
        for finding in _SchemaFault(error, document).explain():
            findings[finding.sort_key()] = finding
            if len(findings) == _MOST_FINDINGS:
                return list(findings.values())
    return list(findings.values())


_NUMBERED: Final = re.compile(r"(\D*+)(\d{1,9})(.*+)", re.DOTALL)


def _next_in_series(names: list[Any], place: int) -> str:
    """Return the name with the next number if others of the list differ in numbers only, and none has it yet."""
    parts = [_NUMBERED.fullmatch(name) for name in names if isinstance(name, str)]
    own = _NUMBERED.fullmatch(str(names[place]))
    if own is None or sum(part is not None and part.group(1, 3) == own.group(1, 3) for part in parts) < 3:
        return ""
    following = f"{own[1]}{int(own[2]) + 1:0{len(own[2])}}{own[3]}"
    return "" if following in names else following


def _unique_items(_: Any, is_asked: bool, instance: Any, __: Any) -> Iterator[ValidationError]:  # noqa: FBT001
    """Ask for different items as jsonschema does, which compares each with each where it cannot sort them."""
    from jsonschema.exceptions import ValidationError as Error  # noqa: PLC0415 (as above)

    if is_asked and isinstance(instance, list) and not all_different(instance):
        yield Error("an item occurs twice")


def _head_findings(document: YamlDocument) -> list[Finding]:
    root = document.root
    if not isinstance(root, dict):
        message = f"a document of a policy is a mapping, this is {_describe(root)}"
        return [source_file.NOT_A_POLICY.finding(message, document.value_span(()), hint="begin with: gpolicy: v1")]
    version, kind = root.get("gpolicy"), root.get("kind")
    if version != "v1":
        message = "no `gpolicy: v1` in this document" if version is None else f"unknown version {_quote(version)}"
        hint = "write `gpolicy: v1`"
        if kind == "gpolicy-snapshot":
            message, hint = "this is a snapshot, not a policy", f"read it with `--state snapshot:{document.file}`"
        return [source_file.NOT_A_POLICY.finding(message, document.value_span(("gpolicy",)), hint=hint)]
    if kind not in KIND_NAMES:
        message = "the document has no kind" if kind is None else f"unknown kind {_quote(kind)}"
        hint = did_you_mean(str(kind), KIND_NAMES) or f"the kinds are {', '.join(KIND_NAMES)}"
        return [source_file.NOT_A_POLICY.finding(message, document.value_span(("kind",)), hint=hint)]
    return []


def _of_another_hypervisor(document: YamlDocument) -> dict[Pointer, Finding]:
    """Return a finding, instead of all others there, for each hypervisor with the parameters of another one."""
    given: Any = document.root.get("hvparams") if isinstance(document.root, dict) else None
    given = given if isinstance(given, dict) else {}
    found = {}
    for name, values in given.items():
        keys = set(values) if isinstance(values, dict) else set()
        if name not in _PARAMETERS_OF or len(keys - _PARAMETERS_OF[name]) < _MANY_UNKNOWN:
            continue
        meant = next((other for other in _PARAMETERS_OF if other not in given and keys <= _PARAMETERS_OF[other]), None)
        if meant is not None:
            pointer: Pointer = ("hvparams", name)
            unknown = some(sorted(keys - _PARAMETERS_OF[name]), 3)
            message = f"hvparams.{name} holds parameters of {meant}: {name} has no {unknown}"
            span, hint = document.key_span(pointer), f"Did you mean `{meant}`?"
            found[pointer] = source_file.UNKNOWN_KEY.finding(message, span, hint=hint)
    return found


_MANY_UNKNOWN: Final = 3
_PARAMETERS_OF: Final = {
    name: {item.path[2] for item in PARAMETERS if item.path[:2] == ("hvparams", name)} for name in HYPERVISORS
}


class _SchemaFault:
    """One error of the validator, with its place in the document."""

    def __init__(self, error: ValidationError, document: YamlDocument) -> None:
        self._error = error
        self._document = document
        self._keyword = error.validator
        self._instance: Any = error.instance
        self._pointer: Pointer = tuple(error.absolute_path)
        self._schema: dict[str, Any] = error.schema if isinstance(error.schema, dict) else {}
        self._known: dict[str, Any] = self._schema.get("properties", {})
        self._branches: list[dict[str, Any]] = self._schema.get("anyOf", [self._schema])

    def explain(self) -> Iterator[Finding]:
        document, pointer, keyword, instance = self._document, self._pointer, self._keyword, self._instance
        if document.value_span(pointer) in document.source.reported:
            return  # an alias that stands for nothing
        place = place_name(pointer) or "the document"
        if instance is None:
            hint = self._empty_hint()
            yield source_file.EMPTY_VALUE.finding(f"{place} has no value", document.key_span(pointer), hint=hint)
        elif keyword == "additionalProperties" and isinstance(instance, dict):
            meant = {key: surely_meant(key, self._known) for key in self._unknown}
            times = Counter(meant.values())
            for key, word in meant.items():
                yield self._unknown_key(key, word if times[word] == 1 else None)  # otherwise the meaning is ambiguous
        elif keyword == "required" and isinstance(instance, dict):
            wanted: Any = self._error.validator_value
            given = {*instance, *self._misspelt}
            missing = [name for name in wanted if name not in given]
            if missing and self._error.message.startswith(f"'{missing[0]}'"):  # one finding for all, not one each
                message, hint = f"{place} lacks {listed(missing)}", self._missing_hint(missing)
                yield source_file.MISSING_KEY.finding(message, document.key_span(pointer), hint=hint)
        elif keyword in ("anyOf", "oneOf"):
            yield from self._explain_branches()
        else:
            yield self._wrong_value(place)

    def _explain_branches(self) -> Iterator[Finding]:
        """Explain the branch that the author most likely meant: the one that got furthest, or fits the type."""
        pointer, instance = self._pointer, self._instance
        context = list(self._error.context or ())
        if self._keyword == "oneOf" and not isinstance(instance, dict):
            return  # each branch only asks for keys; that it is no mapping is an error of its own
        if self._keyword == "oneOf" and all(branch.validator == "required" for branch in context):
            options = [option["required"][0] for option in self._schema["oneOf"]]
            given = [name for name in options if name in instance]
            if given or self._misspelt.isdisjoint(options):
                what = f"has {listed(given)} at once" if given else "has none of them"
                message = f"exactly one of {listed(options, 'or')} belongs here; this {what}"
                yield source_file.WRONG_VALUE.finding(message, self._document.value_span(pointer))
            return
        deepest = max((len(branch.absolute_path) for branch in context), default=0)
        others = ("type", "const", "enum") if isinstance(instance, dict) else ("type", "const")
        meant = [branch for branch in context if branch.validator not in others]
        if deepest > len(pointer):
            meant = [branch for branch in context if len(branch.absolute_path) == deepest]
            meant = [branch for branch in context if branch.validator == "additionalProperties"] or meant
        elif len(meant) != 1 or meant[0].validator in ("enum", "pattern"):
            yield self._wrong_value(place_name(pointer))
            return
        for branch in meant:
            yield from _SchemaFault(branch, self._document).explain()

    def _unknown_key(self, key: str, meant: str | None) -> Finding:
        """Return the finding of an unknown key, a slip of `meant`; keys that lack one key above are one mistake."""
        document, pointer, known = self._document, self._pointer, self._known
        place = place_name(pointer)
        kind, parent = document.root["kind"], str(pointer[-1]) if pointer else ""
        where = f"in {place}" if place else f"in a {kind}"
        below, of_kind = (_MISPLACED[where].get(name, {}) for where, name in (("below", parent), ("in", kind)))
        elsewhere = below.get(key) or of_kind.get(key) or _MISPLACED["anywhere"].get(key, "")
        above = [name for name, schema in known.items() if key in schema.get("properties", {})]
        lost = f"it belongs below {listed(above, 'or')}" if above else ""
        if not lost and len(pointer) == 1 and key in schema_of(kind)["properties"]:
            lost = f"it belongs to the {kind} itself: write it at the left, as `kind` is"
        near = self._near(key)
        all_known = f"known here: {', '.join(known)}" if len(known) <= 12 else ""
        hint = elsewhere or lost or (f"Did you mean `{near}`?" if near else all_known)
        if re.fullmatch("[0-9]+[KMGTP]?", key):
            hint = "a comma separates two entries: write a decimal point, as in 1.5T"
        if ":" in key and key.partition(":")[0] in known:
            hint = f"write a blank after the colon: `{key.replace(':', ': ', 1)}`"
        if near and near in document.value(pointer) and not (elsewhere or lost):
            line = document.key_span((*pointer, near)).line
            hint = f"Did you mean `{near}`, which line {line} has already? Keep one of them"
        fix = None
        if meant and not elsewhere:
            fix = edits.fix(f"write {meant}", edits.rename_key(document, (*pointer, key), meant))
        message = f"unknown key {_quote(key)} {where}"
        is_one = (lost and not elsewhere) or key in below
        missing = f"a key in {document.value_span(pointer)}" if is_one and pointer else ""
        span = document.key_span((*pointer, key))
        return source_file.UNKNOWN_KEY.finding(message, span, hint=hint, fix=fix, missing=missing)

    @property
    def _unknown(self) -> Iterator[str]:
        return islice((str(key) for key in self._instance if key not in self._known), _MOST_FINDINGS)

    @property
    def _misspelt(self) -> set[str | None]:
        """The known keys that unknown keys of a mapping look like: those are reported, and not as missing, too."""
        return {self._near(key) for key in self._unknown}

    def _near(self, key: str) -> str | None:
        """Return the known key that an unknown one looks like, best one that is required and not there."""
        absent = [name for name in self._schema.get("required", ()) if name not in self._instance]
        if len(absent) == len(list(self._unknown)) == 1 and absent[0][:3] == key[:3]:
            return str(absent[0])
        return closest(key, absent) or closest(key, list(self._known))

    def _missing_hint(self, missing: list[str]) -> str:
        if self._pointer and self._pointer[-1] in ("min", "max"):
            return "Ganeti replaces the whole list: write each size, with all six parameters in min and max"
        forms = {name: pattern_words().get(self._known.get(name, {}).get("pattern", "")) for name in missing}
        keys = [f"`{name}:` with {form.expected}" if form else f"`{name}:`" for name, form in forms.items()]
        return f"add {listed(keys)}"

    def _empty_hint(self) -> str:
        if self._is_required():
            return "write the value"
        if self._pointer and isinstance(self._pointer[-1], int):
            return "write the value, or remove the item"
        choices = ["leave the key out (not managed)", "write the value"]
        choices += ["write `[]` for none"] if self._schema.get("type") == "array" else []
        patterns = [item.get("pattern", "") for item in self._branches if item.get("type") == "string"]
        choices += ['write `""` for none'] if any(re.search(pattern, "") for pattern in patterns) else []
        choices += ["write `inherit`"] if any(item.get("const") == "inherit" for item in self._branches) else []
        return f"{', '.join(choices[:-1])}, or {choices[-1]}"

    def _is_required(self) -> bool:
        schema = whole = schema_of(self._document.root["kind"])
        around: dict[str, Any] = {}
        for step in list(self._error.absolute_schema_path)[:-1]:  # the last one is the keyword that failed
            if "$ref" in schema and isinstance(schema["$ref"], str):  # else it is the name of a property
                schema = whole["definitions"][schema["$ref"].removeprefix("#/definitions/")]
            if step == "properties":
                around = schema
            if step != "$ref":  # only some releases of jsonschema put it in the path
                schema = schema[step]  # type: ignore[index]
        return bool(self._pointer) and self._pointer[-1] in around.get("required", ())

    def _wrong_value(self, place: str) -> Finding:
        instance, limit = self._instance, self._error.validator_value
        span = self._document.value_span(self._pointer)
        hint = self._value_hint()
        match self._keyword:
            case "minimum" | "exclusiveMinimum":
                bound = "above" if self._keyword == "exclusiveMinimum" else "at least"
                message = f"{place} is {instance}, it must be {bound} {limit}"
            case "maximum":
                message = f"{place} is {_quote(instance)}, it must be at most {limit}"
                hint = hint or ("no cluster has more" if last_key(self._pointer) in BOUNDS else "")
            case "maxItems":
                message = f"{place} has {count(len(instance), 'entry', 'entries')}, it may have {limit}"
            case "minItems" | "minLength" | "minProperties":
                message = f"{place} is empty"
                hint = hint or ("" if self._is_required() else "leave it out, or fill it")
            case "uniqueItems":
                double = first_double(instance)
                span = self._document.value_span((*self._pointer, double))
                meant = _next_in_series(instance, double) if last_key(self._pointer) == "nodes" else ""
                hint = hint or f"remove one of them{f', or is {meant} meant?' if meant else ''}"
                message = f"{place} names {_quote(instance[double])} twice"
            case _:
                expected = listed(list(map(_expected, self._branches)), "or")
                message = f"{place} cannot be {_quote(instance)}: expected {expected}"
        missing = hint if self._pointer[:1] == ("owns",) else ""  # all of a list are one mistake
        return source_file.WRONG_VALUE.finding(message, span, hint=hint, fix=self._value_fix(), missing=missing)

    def _value_hint(self) -> str:
        instance, pattern = self._instance, self._schema.get("pattern")
        if instance == "inherit" and self._document.root["kind"] == "Cluster":
            return "only a group or a node can inherit; leave the line out if a base has it, else write the value"
        if instance == "inherit":
            stays = self._is_required() or isinstance(self._pointer[-1], int)
            return "this is not inherited: write the value" + ("" if stays else ", or leave the key out")
        if isinstance(instance, str) and instance.endswith(":") and self._has_letters(instance.rstrip(":")):
            return f"write the prefix without its colon: {instance.rstrip(':')}"
        types = [schema.get("type") for schema in self._branches]
        if "boolean" in types and isinstance(instance, str) and instance.lower() in _BOOLEANS:
            return "YAML 1.2 and Ganeti write true and false"
        choices = self._choices
        if choices and isinstance(instance, int | float) and str(instance) in choices:
            return f'quote it: "{instance}"'
        choices += [str(schema["const"]) for schema in self._branches if "const" in schema]
        if isinstance(instance, str) and (word := _MISPLACED["words"].get(instance)) in choices:
            return f"Ganeti's word for it is {word}"
        if instance == "all" and last_key(self._pointer) == "cpu_mask":
            return 'write "" for all CPUs, or those that are meant, as in 0-15'
        if hint := self._shape_hint(types):
            return hint
        has_unit = isinstance(instance, str) and instance[-1:].isalpha() and not pattern
        if has_unit and "number" in types and self._document.root["kind"] == "Rule":
            with suppress(ValueError):
                return f"sizes are in MiB here: write {math.ceil(parse_size_exact(instance))}"
        is_number = isinstance(instance, str) and instance.isdigit() and pattern is None
        if is_number and self._document.written(self._pointer)[:1] in ('"', "'"):
            return "write the number without quotes"
        meant = did_you_mean(str(instance), choices)
        if meant or pattern not in PATHS or not isinstance(instance, str) or "://" in instance:
            return meant
        return f"write {normpath(instance)}" if instance.startswith("/") else "write the whole path, starting with /"

    def _shape_hint(self, types: list[str | None]) -> str:
        """Return the hint for a list, a mapping or a text where something else is expected."""
        match self._instance:
            case list() as words if types == ["string"]:
                return f'it is one text: is "{",".join(map(str, words))}" meant?'
            case float() as share if 0 < share < 1 and any("%" in item.get("pattern", "") for item in self._branches):
                return f"Did you mean `{100 * share:g}%`?"
            case str() as text if (amount := _AMOUNT.fullmatch(text)) and self._matches(f"{amount[1]}{amount[2]}"):
                return f"Did you mean `{amount[1]}{amount[2]}`?"
            case dict() if "array" in types:
                return "begin each item of the list with a dash: `- `"
            case dict() as entry if len(entry) == 1 and self._has_letters(word := ":".join(map(str, *entry.items()))):
                return f"write {word} without the blank"
            case str() as text if ":" in text and text.partition(":")[0] in self._known:
                return f"write a blank after the colon: `{text.replace(':', ': ', 1)}`"
            case str() as word if "array" in types and not closest(word, ["inherit"]):
                return f'write it as a list: `["{word}"]`'
        return ""

    @property
    def _choices(self) -> list[str]:
        return [str(choice) for schema in self._branches for choice in schema.get("enum", ())]

    def _has_letters(self, word: str) -> bool:
        """Return whether a word has the required letters and parts that another one lacks."""
        patterns = [schema["pattern"] for schema in self._branches if "pattern" in schema]
        return any(_only_letters(pattern) and re.match(pattern, word) for pattern in patterns)

    def _matches(self, word: str) -> bool:
        return any("pattern" in schema and re.search(schema["pattern"], word) for schema in self._branches)

    def _value_fix(self) -> Fix | None:
        """Return the fix of a word that can only mean one thing: a slip, a yes for true, quotes too few or too many."""
        document, pointer, instance, choices = self._document, self._pointer, self._instance, self._choices
        types = {str(schema.get("type")) for schema in self._branches}
        meant: str | None = None
        if isinstance(instance, str) and "boolean" in types:
            meant = _BOOLEANS.get(instance.lower())
        elif isinstance(instance, str) and types & {"integer", "number"} and _PLAIN_NUMBER.fullmatch(instance):
            meant = instance
        elif isinstance(instance, str) and choices:
            meant = surely_meant(instance, choices)
            meant = f'"{meant}"' if meant and not meant[:1].isalpha() else meant
        elif isinstance(instance, int | float) and document.written(pointer) in choices:
            meant = f'"{document.written(pointer)}"'
        return edits.fix(f"write {meant}", edits.replace_value(document, pointer, meant)) if meant is not None else None


_BOOLEANS = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
_AMOUNT: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?([KMGT])i?(?:[Bb](?:ytes?|its?)?)?(?:/s|ps)?")
_PLAIN_NUMBER: Final = re.compile("0|[1-9][0-9]{0,18}")


def _expected(schema: dict[str, Any]) -> str:
    if "const" in schema:
        return f"`{str(schema['const']).lower() if isinstance(schema['const'], bool) else schema['const']}`"
    if "enum" in schema:
        return "one of " + ", ".join(str(word) or '""' for word in schema["enum"])
    if "pattern" in schema:
        pattern: str = schema["pattern"]
        return _PATTERNS.get(pattern) or _only_letters(pattern) or f"text like {pattern}"
    names = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "string": "text"}
    names |= {"array": "a list", "object": "a mapping"}
    kind = schema.get("type", "")
    return listed([names.get(name, name) for name in ([kind] if isinstance(kind, str) else kind)], "or")


def _only_letters(pattern: str) -> str:
    """Return a pattern of tags in words; empty for another pattern."""
    found = re.match(r"\^\[A-Za-z0-9([^]]+)](\+\(:)?(?:\{1,([0-9]+)\})?", pattern)
    if found is None:
        return ""
    parted = ", parted by single colons" if found[2] else ""
    most = f", at most {found[3]} of them" if found[3] else ""
    return f"only the letters A-Z a-z, digits and {' '.join(found[1])}{parted}{most}"


_PATTERNS = {pattern: words.expected for pattern, words in pattern_words().items()} | FORMS


def _quote(value: Any) -> str:
    text = _describe(value) if isinstance(value, dict | list) else json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, float) and not math.isfinite(value):
        text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _describe(value: Any) -> str:
    words = ((dict, "a mapping"), (list, "a list"), (str, "text"), (type(None), "empty"))
    return next((word for kind, word in words if isinstance(value, kind)), "a single value")
