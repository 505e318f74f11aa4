"""Edits of text: the data is as expected, and all other comments stay."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from gpolicy.findings import Edit
from gpolicy.policy import edits
from gpolicy.policy.source_file import Pointer, SourceFile
from gpolicy.policy.yaml_reader import read_yaml
from tests.laws import examples


def applied(text: str, changes: tuple[Edit, ...]) -> str:
    """Return `text` after edits, the last one first."""
    for edit in sorted(changes, key=lambda edit: edit.span, reverse=True):
        text = SourceFile("f", text).edited([edit])
    return text


def read(text: str) -> Any:
    reading = read_yaml(text, "f")
    assert not reading.findings, (text, reading.findings)
    return [document.root for document in reading.documents]


def removed(text: str, *pointer: str | int, climb: bool = False) -> str | None:
    changes = edits.remove_entry(read_yaml(text, "f").documents[0], pointer, climb=climb)
    return None if changes is None else applied(text, changes)


def replaced(text: str, new: str, *pointer: str | int) -> str | None:
    changes = edits.replace_value(read_yaml(text, "f").documents[0], pointer, new)
    return None if changes is None else applied(text, changes)


def renamed(text: str, new: str, *pointer: str | int) -> str | None:
    changes = edits.rename_key(read_yaml(text, "f").documents[0], pointer, new)
    return None if changes is None else applied(text, changes)


# --- examples ------------------------------------------------------------------------------------------------------

BLOCK = """\
# head
gpolicy: v1
# about a
a: 1  # behind a
b:

  # about c
  c: x
  # deeper than c
   # much deeper

  d: [1, 2]

# about e
e: |  # header
  text
  # no comment

f: {x: 1, y: 2}
"""


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        (("gpolicy",), BLOCK.replace("gpolicy: v1\n", "")),
        (("a",), BLOCK.replace("# about a\na: 1  # behind a\n", "")),
        (("b",), BLOCK[: BLOCK.index("b:")] + BLOCK[BLOCK.index("\n# about e") :]),
        (("b", "c"), BLOCK.replace("  # about c\n  c: x\n", "").replace("   # much", "   # much")),
        (("b", "d"), BLOCK.replace("  d: [1, 2]\n\n", "")),
        (("b", "d", 0), BLOCK.replace("[1, 2]", "[2]")),
        (("b", "d", 1), BLOCK.replace("[1, 2]", "[1]")),
        (("e",), BLOCK.replace("# about e\ne: |  # header\n  text\n  # no comment\n\n", "")),
        (("f",), BLOCK.replace("f: {x: 1, y: 2}\n", "")),
        (("f", "x"), BLOCK.replace("x: 1, ", "")),
        (("f", "y"), BLOCK.replace(", y: 2", "")),
    ],
)
def test_an_entry_is_removed_with_its_comments(pointer: Pointer, expected: str) -> None:
    assert removed(BLOCK, *pointer) == expected


LINES = """\
f: {
  # about a
  a: 1,  # behind a
  # about b
  b: [2,
      3],
  # about c
  c: 4  # behind c
}
"""


def test_an_entry_of_a_mapping_in_braces_is_removed_with_its_lines() -> None:
    assert removed(LINES, "f", "a") == LINES.replace("  # about a\n  a: 1,  # behind a\n", "")
    assert removed(LINES, "f", "b") == LINES.replace("  # about b\n  b: [2,\n      3],\n", "")
    assert removed(LINES, "f", "b", 1) == LINES.replace(",\n      3", "")
    without_last = LINES.replace("],\n  # about c\n  c: 4  # behind c\n", "]\n")
    assert removed(LINES, "f", "c") == without_last


def test_items_of_a_list() -> None:
    text = "l:\n# one\n- a: 1\n  b: 2  # two\n- c\n-   d: 1\n"
    assert removed(text, "l", 0) == "l:\n- c\n-   d: 1\n"
    assert removed(text, "l", 1) == text.replace("- c\n", "")
    assert removed(text, "l", 0, "a") == text.replace("a: 1\n  b", "b")
    assert removed(text, "l", 0, "b") == text.replace("  b: 2  # two\n", "")
    assert removed(text, "l", 2) == text.replace("-   d: 1\n", "")


@pytest.mark.parametrize(
    ("text", "pointer"),
    [
        ("a: 1\n", ("a",)),  # the only one
        ("a: [1]\n", ("a", 0)),
        ("a: {b: &x 1, c: 2}\nd: *x\n", ("a", "b")),  # an anchor in it
        ("a: &x {b: 1, c: 2}\nd: *x\n", ("a", "b")),  # inside an anchor
        ("a: &x {b: 1, c: 2}\nd: *x\n", ("d", "b")),  # inside an alias
        ("a: {? b : 1, c: 2}\n", ("a", "b")),
        ("a: {b: 1, ? c : 2}\n", ("a", "b")),
        ("? a\n: 1\n? b\n: 2\n", ("a",)),
        ("a: [b: 1, c]\n", ("a", 0, "b")),
        ("a: {b: 1, # one\n  c: 2}\n", ("a", "b")),
        ("- - a\n  - b\n", (0, 0)),
        ("- a: 1  # one\n  b: 2\n", (0, "a")),
        ("a: 1\n", ("b",)),
        ("a: 1\n", ()),
        ("a: 1\n", ("a", "b")),
        ("a: [1, 2]\n", ("a", 2)),
        ("a: [1, 2]\n", ("a", -1)),
        ("a: [1, 2]\n", ("a", "x")),
        ("a: !!map {b: 1, c: 2}\n", ("a", "b")),
    ],
)
def test_an_entry_that_cannot_be_removed_safely_stays(text: str, pointer: Pointer) -> None:
    assert removed(text, *pointer) is None


def test_an_emptied_mapping_is_removed_on_request() -> None:
    text = "a: 1\n# all of b\nb:\n  c:\n    d: 1\n"
    assert removed(text, "b", "c", "d") is None
    assert removed(text, "b", "c", "d", climb=True) == "a: 1\n"
    assert removed("a:\n  b: 1\n", "a", "b", climb=True) is None
    assert removed("a: 1\nl:\n- b: 1\n- c: 1\n", "l", 0, "b", climb=True) is None  # an item may mean something empty


@pytest.mark.parametrize(
    ("text", "pointer", "expected"),
    [
        ("a: 1  # c\n", ("a",), "a: NEW  # c\n"),
        ("a: 'x # y'\n", ("a",), "a: NEW\n"),
        ("a:\nb: 1\n", ("a",), "a: NEW\nb: 1\n"),
        ("a:   # c\n", ("a",), "a: NEW   # c\n"),
        ("a: {b: }\n", ("a", "b"), "a: {b: NEW}\n"),
        ("a: {b, c: 1}\n", ("a", "c"), "a: {b, c: NEW}\n"),
        ("-\n- b\n", (0,), "- NEW\n- b\n"),
        ("a: [1, {b: 2}]\n", ("a",), "a: NEW\n"),
        ("a: &x 1\nb: *x\n", ("b",), "a: &x 1\nb: NEW\n"),
        ('a: "one\n  two"\n', ("a",), "a: NEW\n"),
        ("a: one\n  two\n", ("a",), "a: NEW\n"),
    ],
)
def test_a_value_is_replaced(text: str, pointer: Pointer, expected: str) -> None:
    assert replaced(text, "NEW", *pointer) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a: &x 1\nb: *x\n",
        "a: |\n  text\n",
        "a: !!str 1\n",
        "a: [1,  # one\n  2]\n",
        "a: [&x 1]\nb: *x\n",
        "a:\n  b: 1\n",
        "a:\n- 1\n",
    ],
)
def test_a_value_that_is_not_a_simple_entry_is_not_replaced(text: str) -> None:
    assert replaced(text, "NEW", "a") is None


def test_a_key_is_renamed() -> None:
    assert renamed("a: 1  # a\n", "b", "a") == "b: 1  # a\n"
    assert renamed("x: {'a': 1}\n", "b", "x", "a") == "x: {b: 1}\n"
    assert renamed("a: 1\nb: 2\n", "b", "a") is None
    assert renamed("&x a: 1\n", "b", "a") is None
    assert renamed("l: [1]\n", "b", "l", 0) is None
    assert renamed("a: &k key\nb: {*k : 1}\n", "b", "b", "key") is None


def test_a_fix_needs_edits() -> None:
    text = "a: 1\nb: 2\n"
    document = read_yaml(text, "f").documents[0]
    one = edits.replace_value(document, ("a",), "2")
    other = edits.replace_value(document, ("b",), "1")
    assert one
    assert other
    both = edits.fix("swap them", one + other)
    assert both is not None
    assert applied(text, both.edits) == "a: 2\nb: 1\n"
    assert edits.fix("swap them", None) is None
    assert edits.fix("nothing", ()) is None


# --- any document --------------------------------------------------------------------------------------------------


@dataclass
class Written:
    """A document that is being written: its lines, and which pointer each comment belongs to."""

    lines: list[str] = field(default_factory=list)
    comments: dict[str, Pointer] = field(default_factory=dict)

    def comment(self, pointer: Pointer) -> str:
        name = f"# comment {len(self.comments)}."
        self.comments[name] = pointer
        return name


SCALARS = ["1", "word", "'quoted # text'", '"two words"', "true", "", "2.5", "a#b"]
TREES = st.recursive(
    st.sampled_from(SCALARS),
    lambda below: st.one_of(
        st.tuples(
            st.sampled_from(["block", "flow", "lines"]),
            st.dictionaries(st.sampled_from("abcdef"), below, min_size=1, max_size=4),
        ),
        st.tuples(st.sampled_from(["block", "flow", "lines"]), st.lists(below, min_size=1, max_size=4)),
    ),
    max_leaves=12,
)


def flow(tree: Any) -> str:
    """Return a tree in one line, without comments."""
    if isinstance(tree, str):
        return tree or "~"
    _, content = tree
    if isinstance(content, dict):
        return "{" + ", ".join(f"{key}: {flow(value)}" for key, value in content.items()) + "}"
    return "[" + ", ".join(map(flow, content)) + "]"


def write(tree: Any, pointer: Pointer, indentation: int, out: Written, draw: Any) -> None:
    """Write the entries of a collection in block style, each with comments and blank lines about it."""
    _, content = tree
    is_mapping = isinstance(content, dict)
    entries = list(content.items()) if is_mapping else list(enumerate(content))
    spaces = " " * indentation
    for number, (step, value) in enumerate(entries):
        place = (*pointer, step)
        on_dash_line = number == 0 and out.lines and out.lines[-1].endswith("- \0")
        if not on_dash_line:
            if number or pointer:
                out.lines += [""] * draw(st.integers(0, 1))
            if pointer or number:
                out.lines += [f"{spaces}{out.comment(place)}" for _ in range(draw(st.integers(0, 2)))]
        head = f"{step}:" if is_mapping else "-"
        start = out.lines.pop()[:-1] + head if on_dash_line else spaces + head
        write_value(value, place, start, indentation, out, draw)


def write_value(value: Any, place: Pointer, start: str, indentation: int, out: Written, draw: Any) -> None:
    def behind() -> str:
        return f"  {out.comment(place)}" if draw(st.booleans()) else ""

    if isinstance(value, str) or value[0] == "flow":
        out.lines.append(f"{start} {flow(value)}".rstrip() + behind())
    elif value[0] == "lines":
        opening, closing = ("{", "}") if isinstance(value[1], dict) else ("[", "]")
        out.lines.append(f"{start} {opening}{behind()}")
        entries = list(value[1].items()) if isinstance(value[1], dict) else list(enumerate(value[1]))
        deeper = " " * (indentation + 4)
        for number, (step, below) in enumerate(entries):
            inside = (*place, step)
            out.lines += [f"{deeper}{out.comment(inside)}" for _ in range(draw(st.integers(0, 1)))]
            key = f"{step}: " if isinstance(value[1], dict) else ""
            comma = "," if number < len(entries) - 1 or draw(st.booleans()) else ""
            comment = f"  {out.comment(inside)}" if draw(st.booleans()) else ""
            out.lines.append(f"{deeper}{key}{flow(below)}{comma}{comment}")
        out.lines.append(f"{' ' * (indentation + 2)}{closing}{behind()}")
    elif start.endswith("-") and isinstance(value[1], dict) and draw(st.booleans()):
        out.lines.append(f"{start} \0")
        write(value, place, indentation + 2, out, draw)
    else:
        out.lines.append(start + behind())
        write(value, place, indentation + 2, out, draw)


@st.composite
def documents(draw: Any) -> tuple[str, dict[str, Pointer]]:
    out = Written()
    tree = ("block", {"gpolicy": "v1", **draw(st.dictionaries(st.sampled_from("abcd"), TREES, min_size=1))})
    if draw(st.booleans()):
        out.lines.append("# the head of the file")
    write(tree, (), 0, out, draw)
    text = "\n".join(out.lines)
    text = text.replace("\n", "\r\n") if draw(st.booleans()) else text
    return text + ("\n" if draw(st.booleans()) else ""), out.comments


def pointers(value: Any, pointer: Pointer = ()) -> list[Pointer]:
    steps = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    found = [(*pointer, step) for step in steps]
    return found + [below for step in steps for below in pointers(value[step], (*pointer, step))]


def comments(text: str) -> list[str]:
    return re.findall(r"# (?:comment [0-9]+\.|the head of the file)", text)


def parent_of(data: Any, pointer: Pointer) -> Any:
    for step in pointer[:-1]:
        data = data[step]
    return data


@settings(max_examples=examples(75), suppress_health_check=[HealthCheck.too_slow])
@given(documents(), st.data())
def test_a_removed_entry_takes_only_its_own_comments(
    written: tuple[str, dict[str, Pointer]], data: st.DataObject
) -> None:
    text, owners = written
    (root,) = read(text)
    pointer = data.draw(st.sampled_from(pointers(root)))
    changed = removed(text, *pointer)
    if len(parent_of(root, pointer)) == 1:
        assert changed is None
        return
    if changed is None:
        return
    expected = copy.deepcopy(root)
    del parent_of(expected, pointer)[pointer[-1]]
    assert read(changed) == [expected]
    kept = [name for name in comments(text) if name not in owners or owners[name][: len(pointer)] != pointer]
    assert comments(changed) == kept


@settings(max_examples=examples(75), suppress_health_check=[HealthCheck.too_slow])
@given(documents(), st.data())
def test_a_new_value_name_or_entry_changes_nothing_else(
    written: tuple[str, dict[str, Pointer]], data: st.DataObject
) -> None:
    text, _ = written
    (root,) = read(text)
    pointer = data.draw(st.sampled_from(pointers(root)))
    parent = parent_of(root, pointer)
    value = parent[pointer[-1]]
    changed = replaced(text, "[new, 1]", *pointer)
    assert changed is not None or isinstance(value, dict | list)
    if changed is not None:
        expected = copy.deepcopy(root)
        parent_of(expected, pointer)[pointer[-1]] = ["new", 1]
        assert read(changed) == [expected]
        assert comments(changed) == comments(text)
    if isinstance(parent, dict):
        changed = renamed(text, "new", *pointer)
        assert changed is not None
        expected = copy.deepcopy(root)
        parent_of(expected, pointer)["new"] = parent_of(expected, pointer).pop(pointer[-1])
        assert read(changed) == [expected]
        assert comments(changed) == comments(text)


DOCUMENTS = "a: 1\n---\n# about b\nb: 1\n# behind b\n\n---\nc: 1\n"


def without_document(text: str, number: int) -> str | None:
    changes = edits.remove_document(read_yaml(text, "f").documents[number])
    return None if changes is None else applied(text, changes)


def test_comments_behind_a_document_stay_unless_they_are_indented() -> None:
    waiver = "a: 1\n---\nkind: Waiver\nwaivers:\n  - {rule: GP101}  # why\n  # no more\n"
    assert without_document(f"{waiver}\n# keep sorted\n---\nc: 1\n", 1) == "a: 1\n# keep sorted\n---\nc: 1\n"
    assert without_document(f"{waiver}# keep sorted\n", 1) == "a: 1\n# keep sorted\n"
    assert without_document(f"{waiver}---\nc: 1\n", 1) == "a: 1\n---\nc: 1\n"


def test_a_document_is_removed_with_its_mark_and_comments() -> None:
    assert without_document(DOCUMENTS, 0) is None
    assert without_document(DOCUMENTS, 1) == "a: 1\n# behind b\n\n---\nc: 1\n"
    assert without_document(DOCUMENTS, 2) == DOCUMENTS.removesuffix("---\nc: 1\n")
    assert without_document("a: 1\n---\nb: 1", 1) == "a: 1\n"
    assert without_document("a: 1\n--- {b: 1}\n", 1) is None
    assert without_document("a: 1\n---\nb: 1\n...\n", 1) is None
