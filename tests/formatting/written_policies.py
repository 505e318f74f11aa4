"""Policies as users write them: keys in any order, any layout, and comments with known targets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from gpolicy.policy.source_file import Pointer, YamlMapping, YamlSequence

BEFORE, BEHIND, AFTER, ON = "before", "behind", "after", "goes on"

KEYS: dict[Pointer, tuple[str, ...]] = {
    (): ("tags", "nodes", "ipolicy", "diskparams", "hardware", "ndparams", "alloc_policy", "x-own", "description"),
    ("ipolicy",): ("vcpu-ratio", "std", "minmax", "disk-templates", "other"),
    ("ipolicy", "minmax", 0): ("max", "min", "name"),
    ("ipolicy", "minmax", 1): ("min", "max", "name"),
    ("diskparams",): ("plain", "drbd", "unknown"),
    ("hardware",): ("pv_size", "cpus", "memory"),
}
_SCALARS = (
    *("1", "4.0", "0o17", "1e3", "true", "~", "null", "12G", "plain", "a b c", "x:y", "http://x", "no", "on", "yes"),
    *('"quoted"', "'single'", '"3.0"', "'it''s'", r'"a\tb\u00e9"', "'a\"b'", '""', "'no'", '"on"', "'node[1-4]'", "é"),
    *('"- x"', "'# no comment'", "a#b", '"x: y"', "-1", "a-b", "'1:30'", "2026-01-31", '"a, b"', "'*'", '"{}"'),
)
_FLOW_SCALARS = tuple(word for word in _SCALARS if word not in ("http://x", "a#b"))


@dataclass
class Written:
    """The text, and for each of its comments whether it is before, behind or after what."""

    text: str = ""
    owners: dict[str, tuple[str, Pointer]] = field(default_factory=dict)


class _Writer:
    def __init__(self, draw: DrawFn, number: int) -> None:
        self.draw = draw
        self.number = number
        self.lines: list[str] = []
        self.owners: dict[str, tuple[str, Pointer]] = {}

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(0, one_in - 1)) == one_in - 1  # the simplest is no

    def comment(self, where: str, pointer: Pointer) -> str:
        words = self.draw(st.sampled_from(["note", "a: b", "- x", "{", '"', "it's", "#"]))
        name = f"# d{self.number}c{len(self.owners)} {words}"
        self.owners[name] = (where, pointer)
        return name

    def blank(self) -> None:
        for _ in range(self.draw(st.sampled_from([0, 0, 0, 0, 1, 2]))):
            self.lines.append(self.draw(st.sampled_from(["", " "])))

    def before(self, pointer: Pointer, column: int) -> None:
        self.blank()
        while self.chance(5):
            self.lines.append(f"{' ' * column}{self.comment(BEFORE, pointer)}")
            self.blank()

    def behind(self, line: str, pointer: Pointer) -> None:
        end = ""
        if self.chance(5):
            end = f"{' ' * self.draw(st.sampled_from([1, 2, 8]))}{self.comment(BEHIND, pointer)}"
        self.lines.append(f"{line}{end}{self.draw(st.sampled_from(['', '', '  ']))}")
        is_text = line.endswith(("|", "|-"))
        while end.startswith(" " * 8) and not is_text and self.chance(4):  # the comment goes on below itself
            self.lines.append(f"{' ' * (len(line) + 8)}{self.comment(ON, pointer)}")

    def after(self, pointer: Pointer, column: int) -> None:
        if column and self.chance(6):
            self.blank()
            self.lines.append(f"{' ' * column}{self.comment(AFTER, pointer)}")

    def mapping(self, pointer: Pointer, column: int, depth: int, first: str = "") -> None:
        """Write a mapping; its first line begins with `first`, what stands before it in that line."""
        known = KEYS.get(pointer, ("k1", "k2", "k3"))
        keys = self.draw(st.lists(st.sampled_from(known), min_size=1, max_size=len(known), unique=True))
        if pointer == ():
            keys = self.draw(st.permutations([*keys, "gpolicy", "kind", "name"]))
        for key in keys:
            here = (*pointer, key)
            if not first:
                self.before(here, column)
            self.entry(first or " " * column, key, here, column, depth)
            first = ""
        self.after(pointer, column)

    def entry(self, margin: str, key: str, pointer: Pointer, column: int, depth: int) -> None:
        shown = f'"{key}"' if self.chance(8) else key
        line = f"{margin}{shown}:"
        fixed = {"gpolicy": "v1", "kind": "NodeGroup"}.get(key) if len(pointer) == 1 else None
        if fixed is not None:
            self.behind(f"{line} {fixed}", pointer)
        elif pointer == ("ipolicy", "minmax"):
            self.behind(line, pointer)
            self.sequence(pointer, column, depth - 1, of_mappings=True)
        elif pointer in KEYS or (depth > 0 and self.chance(4)):
            self.behind(line, pointer)
            self.mapping(pointer, column + self.draw(st.integers(1, 4)), depth - 1)
        elif depth > 0 and self.chance(4):
            self.behind(line, pointer)
            self.sequence(pointer, column, depth - 1)
        else:
            self.leaf(line, pointer, column)

    def sequence(self, pointer: Pointer, column: int, depth: int, *, of_mappings: bool = False) -> None:
        inside = column + self.draw(st.integers(0, 3))
        for number in range(self.draw(st.integers(1, 2 if of_mappings else 3))):
            here = (*pointer, number)
            self.before(here, inside)
            dash = f"{' ' * inside}-{' ' * self.draw(st.integers(1, 3))}"
            if of_mappings or (depth > 0 and self.chance(3)):
                self.mapping(here, len(dash), depth - 1, dash)
            else:
                self.leaf(dash.rstrip(), here, inside)
        if inside > column:
            self.after(pointer, inside)

    def leaf(self, line: str, pointer: Pointer, column: int) -> None:
        match self.draw(st.integers(0, 12)):
            case 0:
                self.behind(line, pointer)
            case 1:
                self.behind(f"{line} |{self.draw(st.sampled_from(['', '-']))}", pointer)
                inside = " " * (column + self.draw(st.integers(1, 4)))
                self.lines += [f"{inside}text # of {len(self.lines)}", "", f"{inside}  more "]
            case 2:
                self.lines.append(f"{line} several words")
                self.behind(f"{' ' * (column + 3)}on two lines", pointer)
            case 3 | 4 | 5:
                self.flow(line, pointer, column)
            case _:
                self.behind(f"{line} {self.draw(st.sampled_from(_SCALARS))}", pointer)

    def flow(self, line: str, pointer: Pointer, column: int) -> None:
        if not self.chance(4):
            self.behind(f"{line} {self.draw(FLOW)}", pointer)
            return
        self.lines.append(f"{line} [")
        margin = " " * (column + 2)
        for number in range(self.draw(st.integers(1, 3))):
            here = (*pointer, number)
            self.before(here, column + 2)
            self.behind(f"{margin}{self.draw(FLOW)},", here)
        self.behind(f"{margin}]", pointer)


def _flow_text(node: Any) -> str:
    if isinstance(node, dict):
        return "{" + ", ".join(f"{key}: {_flow_text(value)}" for key, value in node.items()) + "}"
    if isinstance(node, list):
        return "[" + ", ".join(map(_flow_text, node)) + "]"
    return str(node)


FLOW = st.recursive(
    st.sampled_from(_FLOW_SCALARS),
    lambda below: (
        st.lists(below, max_size=4)
        | st.dictionaries(st.sampled_from(["spindle-use", "memory-size", "name", "k"]), below, max_size=3)
    ),
    max_leaves=12,
).map(_flow_text)


@st.composite
def written_policies(draw: DrawFn) -> Written:
    """Return a file of one to three documents."""
    texts: list[str] = []
    owners: dict[str, tuple[str, Pointer]] = {}
    for number in range(draw(st.integers(1, 3))):
        writer = _Writer(draw, number)
        writer.mapping((), 0, 3)
        texts.append("".join(f"{line}\n" for line in writer.lines))
        owners |= {name: (where, (number, *pointer)) for name, (where, pointer) in writer.owners.items()}
    text = draw(st.sampled_from(["", "---\n", "--- # top\n", "\n\n"])) + "---\n".join(texts)
    if "# top" in text:
        owners["# top"] = (BEFORE, (0,))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return Written(text, owners)


def pointers_by_line(roots: list[Any]) -> dict[int, list[Pointer]]:
    """Return which keys and items begin on each line, with the number of the document first."""
    found: dict[int, list[Pointer]] = {}
    for number, root in enumerate(roots):
        for line, pointer in _places(root, (number,)):
            found.setdefault(line, []).append(pointer)
    return found


def _places(node: Any, pointer: Pointer) -> Iterator[tuple[int, Pointer]]:
    if isinstance(node, YamlMapping):
        for key, value in node.items():
            yield node.key_marks[key][0], (*pointer, key)
            yield from _places(value, (*pointer, key))
    elif isinstance(node, YamlSequence):
        for place, value in enumerate(node):
            yield node.marks[place][0], (*pointer, place)
            yield from _places(value, (*pointer, place))


def shown(value: Any) -> str:
    """Return a value such that equal texts mean equal values of equal types."""
    return json.dumps(value, sort_keys=True, default=str)
