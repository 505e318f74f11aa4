"""YAML text for users: scalars that every reader reads alike, flow collections, comments on one line.

Our own reader follows YAML 1.2, but many other tools follow 1.1. So a text that either version would read as something
else (`no`, `1:30`, `010`, `2024-01-01`) is quoted.
"""

from __future__ import annotations

import re
from typing import Final

from gpolicy.policy.yaml_reader import resolve

Scalar = bool | int | float | str | None
Node = Scalar | list["Node"] | dict[str, "Node"]

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


def flow(node: Node) -> str:
    """Return `node` on one line: `{a: 1, b: [x, y]}`."""
    match node:
        case dict():
            return "{" + ", ".join(f"{scalar(key, flow=True)}: {flow(below)}" for key, below in node.items()) + "}"
        case list():
            return "[" + ", ".join(flow(item) for item in node) + "]"
    return scalar(node, flow=True)


def entry(key: str, node: Node, *, indent: int = 0, comment: str = "", as_flow: bool = False) -> list[str]:
    """Return the lines of `key: node`.

    Lists and mappings are on one line if `as_flow` is set and they fit, or if they are empty, otherwise in a block.
    `comment` goes behind the key's line.
    """
    margin, name = " " * indent, scalar(key)
    if not isinstance(node, dict | list):
        return [_commented(f"{margin}{name}: {scalar(node)}", comment)]
    line = _commented(f"{margin}{name}: {flow(node)}", comment)
    if not node or (as_flow and len(line) <= WIDTH):
        return [line]
    if isinstance(node, dict):
        below = [line for key, value in node.items() for line in entry(key, value, indent=indent + 2, as_flow=True)]
    else:
        below = [f"{margin}  - {_on_line(item)}" for item in node]
    return [_commented(f"{margin}{name}:", comment), *below]


def _on_line(node: Node) -> str:
    return flow(node) if isinstance(node, dict | list) else scalar(node)


def block_entry(key: str, node: Node, *, indent: int) -> list[str]:
    """Return the lines of `key: node`; lists of spec pairs with min and max on lines of their own."""
    if isinstance(node, dict) and node:
        below = [block_entry(name, value, indent=indent + 2) for name, value in node.items()]
    elif isinstance(node, list) and any(isinstance(item, dict) for item in node):
        below = [block_item(item, indent=indent + 2) for item in node]
    else:
        return entry(key, node, indent=indent, as_flow=True)
    return [f"{' ' * indent}{scalar(key)}:", *(line for lines in below for line in lines)]


def block_item(node: Node, *, indent: int) -> list[str]:
    """Return the lines of an item of a list; a spec pair has two."""
    margin = " " * indent
    if isinstance(node, dict) and node.keys() == {"min", "max"}:
        return [f"{margin}- min: {flow(node['min'])}", f"{margin}  max: {flow(node['max'])}"]
    return [f"{margin}- {_on_line(node)}"]


def _commented(line: str, comment: str) -> str:
    return f"{line}  # {one_line(comment)}" if comment else line


def comment_lines(text: str, *, indent: int = 0, hanging: str = "") -> list[str]:
    """Return `text` as comment lines of at most WIDTH columns; all but the first begin with `hanging`."""
    room = WIDTH - indent - 2
    lines: list[str] = []
    current = ""
    for word in one_line(text).split(" "):
        longer = f"{current} {word}" if current else word
        if current and len(longer) > room:
            lines.append(current)
            longer = f"{hanging}{word}"
        current = longer
    return [f"{' ' * indent}# {line}".rstrip() for line in (*lines, current)]


def one_line(text: str) -> str:
    """Return `text` fit for a comment: printable, on one line."""
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in text)
