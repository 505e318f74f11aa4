"""Own values in the form of a policy; each is loaded again to check that it means the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gpolicy.ganeti.expressible import InexpressibleError, checked
from gpolicy.ganeti.parameter import Level, Parameter, Path, Type, Value
from gpolicy.ganeti.parameters import RATE_UNIT, canonical, parameter_at, position, unflatten
from gpolicy.ganeti.units import format_size
from gpolicy.ganeti.vocabulary import SPEC_SIZES
from gpolicy.policy.conformance import conforms
from gpolicy.policy.kinds import KINDS, LEVELS
from gpolicy.policy.model import Declared
from gpolicy.policy.yaml_reader import read_yaml
from gpolicy.writing.yaml_text import Node, Scalar, entry

_KINDS: Final = {level: kind for kind, level in LEVELS.items()}
_LONGEST_SHOWN: Final = 80
_ORDINARY_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9.-]{0,200}", re.ASCII)  # needs no check
_GLOB: Final = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class NotWritten:
    """Something of the cluster that is not in the policy. `object` is cluster, group/NAME or node/NAME."""

    object: str
    what: str
    reason: str

    def __str__(self) -> str:
        return f"{self.object}: {self.what}: {self.reason}" if self.what else f"{self.object}: {self.reason}"


class Writer:
    """Turns own values into the form of a policy for Ganeti `version`. Each distinct value is checked once."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._known: dict[tuple[Level, Path, str], tuple[Node | None, str]] = {}

    def write(self, own: Mapping[Path, Value], level: Level, label: str) -> tuple[dict[Path, Node], list[NotWritten]]:
        """Return the written form of the values in `own`, and what cannot be written, for the object `label`."""
        written: dict[Path, Node] = {}
        left_out: list[NotWritten] = []
        for path in sorted(own, key=position):
            key = (level, path, json.dumps(own[path], sort_keys=True, default=str))
            if key not in self._known:
                self._known[key] = self._try(path, own[path], level)
            node, reason = self._known[key]
            if node is None:
                left_out.append(NotWritten(label, ".".join(path), reason))
            else:
                written[path] = node
        return written, left_out

    def _try(self, path: Path, value: Value, level: Level) -> tuple[Node | None, str]:
        """Return the written form of a value, or None and why it cannot be written."""
        parameter = parameter_at(path)
        if parameter is None:
            return None, f"this gpolicy does not know the parameter (its value: {_shown(value)})"
        try:
            checked(path, value, level, version=self.version)
        except InexpressibleError as error:
            return None, f"no policy can ask for {_shown(value)}: {error.reason}"
        normal = canonical(path, value)
        node = written_value(parameter, normal)
        loaded = _load(level, ["name: x", *entry(*unflatten({path: node}).popitem())])
        if not isinstance(loaded, str):
            same = list(loaded.leaves) == [path] and loaded.leaves[path].value == normal
            loaded = "" if same else "it would be read as something else"
        return (None, f"a policy cannot say {_shown(value)}: {loaded}") if loaded else (node, "")


def written_value(parameter: Parameter, value: Value) -> Node:
    """Return a stored value (in normal form, and expressible) as users write it: sizes and rates with units."""
    items: Any = value
    match parameter.type, value:
        case ((Type.SIZE | Type.MIB), int()):
            return _size(value)
        case Type.INT, int() if parameter.unit == RATE_UNIT:
            return _rate(value)
        case Type.MINMAX, list():
            return [{bound: _spec(pair[bound]) for bound in ("min", "max")} for pair in items]
        case Type.UID_RANGES, list():
            return [str(low) if low == high else f"{low}-{high}" for low, high in items]
    return value


def _spec(spec: Any) -> Node:
    return {name: _size(value) if name in SPEC_SIZES else value for name, value in spec.items()}


def _size(mib: int) -> Scalar:
    text = format_size(mib)
    if not text.isdigit():
        return text
    return f"{mib}M" if 0 < mib < 1024 else mib  # else check would doubt that MiB are meant (GP152)


def _rate(kib: int) -> Scalar:
    if kib > 0 and kib % 1024**2 == 0:
        return f"{kib // 1024**2}G"
    return f"{kib // 1024}M" if kib > 0 and kib % 1024 == 0 else kib


def name_complaint(name: str, *, pattern: bool) -> str:
    """Return why a policy cannot name an object `name`; empty if it can. `pattern`: `*?[` would match other names."""
    if pattern and _GLOB & set(name):
        return "its name would be read as a pattern"
    if _ORDINARY_NAME.fullmatch(name):
        return ""
    loaded = _load(Level.GROUP, entry("name", name))
    return loaded if isinstance(loaded, str) else ""


def _load(level: Level, lines: list[str]) -> Declared | str:
    """Return the object of a document with these lines, or the first error."""
    text = "\n".join(["gpolicy: v1", f"kind: {_KINDS[level]}", *lines])
    reading = read_yaml(f"{text}\n", "adopted")
    findings = list(reading.findings)
    if any(not conforms(document) for document in reading.documents):
        from gpolicy.policy.schema_errors import shape_findings  # noqa: PLC0415 (few objects have such values)

        findings = findings or [item for document in reading.documents for item in shape_findings(document)]
    if not findings and len(reading.documents) == 1:
        declared: list[Declared] = [*KINDS[_KINDS[level]].read(reading.documents[0], findings.append)]
        if not findings:
            return declared[0]
    return findings[0].message if findings else "it is not a YAML document"


def _shown(value: Value) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
