"""YAML text for users, and own values and tag rules in the form of a policy, each loaded again to check its meaning.

Scalars are such that every reader reads them alike. Our own reader follows YAML 1.2, but many other tools follow 1.1.
So a text that either version would read as something else (`no`, `1:30`, `010`, `2024-01-01`) is quoted.

A tag of those that htools reads becomes a rule only where the meaning is exact: `htools:iextags:service:` is `service`,
but `htools:iextags:service` also matches services:…, and becomes `raw`. A tag that no rule can express stays an
ordinary tag of the cluster.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from textwrap import TextWrapper
from typing import Any, Final

from gpolicy.ganeti.amounts import KIB_PER_SECOND, format_size
from gpolicy.ganeti.expressible import InexpressibleError, checked
from gpolicy.ganeti.parameters import canonical, parameter_at, position, unflatten
from gpolicy.ganeti.vocabulary import SPEC_SIZES, TAG_FAMILIES, Level, Parameter, Path, Type, Value, Values
from gpolicy.policy.kinds import LEVELS
from gpolicy.policy.loading import read_documents
from gpolicy.policy.model import RULES, Declared
from gpolicy.policy.yaml_reader import read_yaml, resolve

Scalar = bool | int | float | str | None
YamlNode = Scalar | list["YamlNode"] | dict[str, "YamlNode"]

WIDTH: Final = 120

# The order of keys in what is written or formatted: first the identity of a document, then its values, tags last.
TOP_LEVEL: Final = (
    *("gpolicy", "kind", "name", "description", "template", "extends", "renamed_from", "removed", "ganeti_version"),
    *("enabled_disk_templates", "enabled_hypervisors", "alloc_policy", "nodes", "groups", "hardware"),
    *("ndparams", "ipolicy", "diskparams", "hv_state", "disk_state", "beparams", "nicparams", "hvparams"),
    *("enabled_data_collectors", "data_collector_interval"),
)
"""The first keys of every kind. Others follow in the order of the schema."""

LAST: Final = "tags"

BELOW: Final = {
    "ipolicy": ("minmax", "std", "disk-templates", "vcpu-ratio", "spindle-ratio"),
    "hardware": ("memory", "cpus", "pv_count", "pv_size"),
}
"""The first keys inside some of the mappings."""

_PLAIN: Final = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+*-]*", re.ASCII)
_PLAIN_WITH_COLONS: Final = re.compile(rf"{_PLAIN.pattern}(?::+[A-Za-z0-9_./@+*-]+)*", re.ASCII)
_SIZE: Final = re.compile(r"[1-9][0-9]*[KMGT]", re.ASCII)
_WORDS_OF_YAML_1_1: Final = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
_EXACT_INTEGER: Final = 2**53


def scalar(value: Scalar, *, flow: bool = False) -> str:
    """Return the text of one value; `flow`: for a place between brackets or braces."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < _EXACT_INTEGER:
            return str(int(value))
        case int() | float():
            return repr(value)
    pattern = _PLAIN if flow else _PLAIN_WITH_COLONS
    is_ambiguous = value.lower() in _WORDS_OF_YAML_1_1 or not isinstance(resolve(value), str)
    return value if _SIZE.fullmatch(value) or (pattern.fullmatch(value) and not is_ambiguous) else quoted(value)


def is_ambiguous_word(text: str) -> bool:
    """Return whether YAML 1.2 reads an unquoted word as text and YAML 1.1 as something else: `on`, `no`."""
    return text.lower() in _WORDS_OF_YAML_1_1 and isinstance(resolve(text), str)


def quoted(text: str) -> str:
    """Return `text` in double quotes, with unprintable characters escaped, so that it stays on one line."""
    return f'"{"".join(_escaped(letter) for letter in text)}"'


def _escaped(letter: str) -> str:
    if letter in '"\\':
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    code = ord(letter)
    return f"\\x{code:02x}" if code < 2**8 else f"\\u{code:04x}" if code < 2**16 else f"\\U{code:08x}"


def flow(node: YamlNode) -> str:
    """Return `node` on one line: `{a: 1, b: [x, y]}`."""
    match node:
        case dict():
            return "{" + ", ".join(f"{scalar(key, flow=True)}: {flow(below)}" for key, below in node.items()) + "}"
        case list():
            return "[" + ", ".join(flow(item) for item in node) + "]"
    return scalar(node, flow=True)


def entry(key: str, node: YamlNode, *, indent: int = 0, comment: str = "", as_flow: bool = False) -> list[str]:
    """Return the lines of `key: node`.

    Lists and mappings are on one line if `as_flow` is set and they fit, or if they are empty, otherwise in a block.
    `comment` goes behind the key's line.
    """
    start, behind = f"{' ' * indent}{scalar(key)}:", f"  # {one_line(comment)}" if comment else ""
    line = f"{start} {_on_line(node)}{behind}"
    if not isinstance(node, dict | list) or not node or (as_flow and len(line) <= WIDTH):
        return [line]
    if isinstance(node, dict):
        below = [line for key, value in node.items() for line in entry(key, value, indent=indent + 2, as_flow=True)]
    else:
        below = [f"{' ' * indent}  - {_on_line(item)}" for item in node]
    return [f"{start}{behind}", *below]


def _on_line(node: YamlNode) -> str:
    return flow(node) if isinstance(node, dict | list) else scalar(node)


def block_entry(key: str, node: YamlNode, *, indent: int) -> list[str]:
    """Return the lines of `key: node`; lists of sizes with min and max on lines of their own."""
    if isinstance(node, dict) and node:
        below = [block_entry(name, value, indent=indent + 2) for name, value in node.items()]
    elif isinstance(node, list) and any(isinstance(item, dict) for item in node):
        below = [block_item(item, indent=indent + 2) for item in node]
    else:
        return entry(key, node, indent=indent, as_flow=True)
    return [f"{' ' * indent}{scalar(key)}:", *(line for lines in below for line in lines)]


def block_item(node: YamlNode, *, indent: int) -> list[str]:
    """Return the lines of an item of a list; a size has two."""
    margin = " " * indent
    if isinstance(node, dict) and node.keys() == {"min", "max"}:
        return [f"{margin}- min: {flow(node['min'])}", f"{margin}  max: {flow(node['max'])}"]
    return [f"{margin}- {_on_line(node)}"]


def comment_lines(text: str, *, indent: int = 0, hanging: str = "") -> list[str]:
    """Return `text` as comment lines of at most WIDTH columns; all but the first begin with `hanging`."""
    wrapper = TextWrapper(WIDTH - indent - 2, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
    return [f"{' ' * indent}# {line}".rstrip() for line in wrapper.wrap(one_line(text)) or [""]]


def one_line(text: str) -> str:
    """Return `text` fit for a comment: printable, on one line."""
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)


_KINDS: Final = {level: kind for kind, level in LEVELS.items()}
_LONGEST_SHOWN: Final = 80
_ORDINARY_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9.-]{0,200}", re.ASCII)  # needs no check
GLOB: Final = frozenset("*?[")  # patterns keep their quotes, which some of them need


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
        self._known: dict[tuple[Level, Path, str], tuple[YamlNode | None, str]] = {}

    def write(self, own: Values, level: Level, label: str) -> tuple[dict[Path, YamlNode], list[NotWritten]]:
        """Return the written form of the values in `own`, and what cannot be written, for the object `label`."""
        written: dict[Path, YamlNode] = {}
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

    def _try(self, path: Path, value: Value, level: Level) -> tuple[YamlNode | None, str]:
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


def written_value(parameter: Parameter, value: Value) -> YamlNode:
    """Return a stored value (in normal form, and expressible) as users write it: sizes and rates with units."""
    items: Any = value
    match parameter.type, value:
        case ((Type.SIZE | Type.MIB), int()):
            return _size_to_write(value)
        case Type.INT, int() if parameter.unit == KIB_PER_SECOND:
            return _rate(value)
        case Type.MINMAX, list():
            return [{bound: _spec_node(pair[bound]) for bound in ("min", "max")} for pair in items]
        case Type.UID_RANGES, list():
            return [str(low) if low == high else f"{low}-{high}" for low, high in items]
    return value


def _spec_node(spec: Any) -> YamlNode:
    return {name: _size_to_write(value) if name in SPEC_SIZES else value for name, value in spec.items()}


def _size_to_write(mib: int) -> Scalar:
    if 0 < mib < 1024:
        return f"{mib}M"  # else check would doubt that MiB are meant (GP152)
    text = format_size(mib)
    return mib if text.isdigit() else text


def _rate(kib: int) -> Scalar:
    if kib > 0 and kib % 1024**2 == 0:
        return f"{kib // 1024**2}G"
    return f"{kib // 1024}M" if kib > 0 and kib % 1024 == 0 else kib


def name_complaint(name: str, *, pattern: bool) -> str:
    """Return why a policy cannot name an object `name`; empty if it can. `pattern`: `*?[` would match other names."""
    if pattern and GLOB & set(name):
        return "its name would be read as a pattern"
    if _ORDINARY_NAME.fullmatch(name):
        return ""
    loaded = _load(Level.GROUP, entry("name", name))
    return loaded if isinstance(loaded, str) else ""


def _load(level: Level, lines: list[str]) -> Declared | str:
    """Return the object of a document with these lines, or the first error."""
    reading = read_yaml("\n".join(["gpolicy: v1", f"kind: {_KINDS[level]}", *lines, ""]), "adopted")
    findings = [*reading.findings]
    declared, _ = read_documents(reading.documents, findings, [])
    if findings:
        return findings[0].message
    return declared[0] if len(declared) == 1 else "it is not a YAML document"


def _shown(value: Value) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


_NAME: Final = re.compile(r"[A-Za-z0-9_.+*/@-]+(:[A-Za-z0-9_.+*/@-]+)*", re.ASCII)
_LONGEST_PREFIX: Final = 100


@dataclass(slots=True)
class RuleTags:
    """The tag rules in tags of a cluster: items by family; `others` are `declared` tags that no rule can express."""

    items: dict[str, list[YamlNode]] = field(default_factory=lambda: {family: [] for family in RULES})
    families: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    declared: list[str] = field(default_factory=list)

    @property
    def node_prefixes(self) -> list[str]:
        """Prefixes of node tags that the rules give a meaning to."""
        domains = dict.fromkeys(str(domain) for domain in (*self.items["nlocation"], *self.items["migration"]))
        return [f"{domain}:" for domain in domains if len(domain) < _LONGEST_PREFIX]


def rule_tags(tags: Iterable[str]) -> RuleTags:
    """Return the rules in `tags`, each of which must follow Ganeti's grammar."""
    rules = RuleTags(declared=sorted(tags))
    for tag in rules.declared:
        family = next((name for name, prefix in TAG_FAMILIES.items() if tag.startswith(prefix)), None)
        item = _item(family, tag.removeprefix(TAG_FAMILIES[family])) if family is not None else None
        if family is None or item is None:
            rules.others.append(tag)
        else:
            rules.items[family].append(item)
        if family is not None and family not in rules.families:
            rules.families.append(family)
    return rules


def _item(family: str, suffix: str) -> YamlNode:
    """Return the item of a rule that means a tag of a family; None if no rule can express it."""
    match family:
        case "iextags" | "desiredlocation":
            name = suffix.removesuffix(":")
            if suffix.endswith(":") and name and not name.endswith(":") and len(name) <= _LONGEST_PREFIX:
                return name
            return {"raw": suffix} if 0 < len(suffix) <= _LONGEST_PREFIX else None
        case "nlocation" | "migration" if _NAME.fullmatch(suffix):
            return suffix
        case "allowmigration":
            source, _, target = suffix.partition("::")
            return {"from": source, "to": target} if _NAME.fullmatch(source) and _NAME.fullmatch(target) else None
    return None
