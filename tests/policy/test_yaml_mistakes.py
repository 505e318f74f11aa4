"""Text that is not YAML: each mistake is named at its own place, with the correction."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.policy.files import boundary, read_files
from gpolicy.policy.yaml_reader import read_yaml

GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"

MISTAKES = {
    "a glob": ("nodes: [*.example.org]", (4, 9), "unquoted `*`", '"*.example.org"'),
    "a glob in a list of lines": ("nodes:\n  - *.example.org", (5, 5), "unquoted `*`", '"*.example.org"'),
    "a glob among others": ("nodes: [a, *.b, c]", (4, 12), "unquoted `*`", '"*.b"'),
    "a glob of letters": ("nodes:\n  - [ab]*.x", (5, 9), "unquoted `*`", "from its first character"),
    "an ampersand": ("description: & co", (4, 14), "unquoted `&`", '"& co"'),
    "an exclamation mark": ("description: !!", (4, 14), "unquoted `!`", '"!!"'),
    "an at sign": ("description: @home", (4, 14), "cannot begin with `@`", '"@home"'),
    "a backtick": ("description: `x`", (4, 14), "cannot begin with a backtick", '"`x`"'),
    "a percent sign": ("description: %x", (4, 14), "cannot begin with `%`", '"%x"'),
    "a comma": ("description: ,x", (4, 14), "cannot begin with `,`", '",x"'),
    "a greater sign": ("description: >= 3", (4, 14), "unquoted `>`", '">= 3"'),
    "a pipe": ("description: | x", (4, 14), "unquoted `|`", '"| x"'),
    "a tab": ("ipolicy:\n\tvcpu-ratio: 4", (5, 1), "a tab", "spaces"),
    "a tab further in": ("ipolicy:\n  vcpu-ratio: 4\n\tspindle-ratio: 4", (6, 1), "a tab", "spaces"),
    "an open double quote": ('description: "a\ntags: [a]', (4, 14), 'quote `"` that opens here', "end of the text"),
    "an open single quote": ("description: 'a\ntags: [a]", (4, 14), "quote `'` that opens here", "end of the text"),
    "an apostrophe": ("description: 'it's ours'", (4, 18), "goes on after its closing quote `'`", '"it\'s"'),
    "text behind quotes": ('description: "a" b', (4, 18), 'goes on after its closing quote `"`', "all of it in quotes"),
    "text behind braces": ("description: {a} b", (4, 18), "goes on after its closing `}`", '"{a} b"'),
    "an escape": ('description: "a\\d"', (4, 16), "`\\d` means nothing", "single quotes"),
    "an open list": ("nodes: [a, b\nalloc_policy: preferred", (4, 8), "`[` that opens here", "`]` after the last"),
    "an open list at the end": ("nodes: [a, b", (4, 8), "`[` that opens here", "`]` after the last"),
    "an open mapping": ("ipolicy: {vcpu-ratio: 4\ntags: [a]", (4, 10), "`{` that opens here", "`}` after the last"),
    "the wrong bracket": ("nodes: [a}", (4, 10), "`}` closes what `[` in line 4 has opened", "`]`"),
    "one bracket too many": ("nodes: [a]]", (4, 11), "`]` closes nothing", "take it out"),
    "no comma": ("ipolicy: {vcpu-ratio: 4 spindle-ratio: 4}", (4, 38), "a comma is missing", "`, `"),
    "no comma on lines": ("ipolicy: {\n  vcpu-ratio: 4\n  spindle-ratio: 4}", (6, 16), "a comma is missing", "`, `"),
    "no space after a colon": ("alloc_policy:preferred\ntags: [a]", (4, 13), "no space", "`alloc_policy: preferred`"),
    "no space in the last line": (
        "tags: [a]\nalloc_policy:preferred",
        (5, 13),
        "no space",
        "`alloc_policy: preferred`",
    ),
    "a colon in a text": ("description: nodes: all", (4, 19), "a colon and a space", 'description: "nodes: all"'),
    "a colon and a comment": ("description: a: b  # c", (4, 15), "a colon and a space", 'description: "a: b"'),
    "a no-break space": ("alloc_policy:\u00a0preferred", (4, 14), "looks like a space", "`alloc_policy: `"),
    "a lost quote": ('tags: ["a, "b"]', (4, 13), "a quote is missing", 'write `"` before and after'),
    "no colon": ("tags\nalloc_policy: preferred", (4, 5), "no colon after the key", "`tags: VALUE`"),
    "no colon over values": ("ipolicy\n  vcpu-ratio: 4", (4, 8), "no colon after the key", "`ipolicy:"),
    "too far in": ("alloc_policy: preferred\n  tags: [a]", (5, 3), "part of line 4", "indent it like line 4"),
    "between two levels": (
        "ipolicy:\n    vcpu-ratio: 4\n  spindle-ratio: 4",
        (6, 3),
        "by 2 spaces",
        "line 5 (4 spaces)",
    ),
    "an entry among keys": ("- a", (4, 1), "a list entry stands among keys", "take the `-` out"),
    "a list on the line of its key": ("nodes: - a", (4, 8), "cannot begin on the line of its key", "`[a]`"),
    "a conflict": ("<<<<<<< HEAD\ntags: [a]\n=======\ntags: [b]\n>>>>>>> b", (4, 1), "git left the marks", "resolve"),
    "a byte order mark": ("\ufefftags: [a]", (4, 2), "a byte order mark", "take it out"),
    "text behind the end": ("... x", (4, 5), "follows the end of a document", "`---`"),
    "an unknown alias": ("alloc_policy: *usual", (4, 15), "no anchor `&usual` above it", '"*usual"'),
    "a misspelt alias": ("tags: &usual [a]\nnodes: *usaul", (5, 8), "no anchor `&usaul`", "Did you mean `*usual`?"),
    "an anchor that occurs twice": (
        "tags: &a [b]\nnodes: &a [c]",
        (5, 8),
        "`&a` occurs twice, first in line 4",
        "another",
    ),
    "a tag": ("description: !x", (4, 14), "means nothing in a policy", "quote it"),
}


@pytest.mark.parametrize(("text", "place", "message", "hint"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_named_at_its_place(text: str, place: tuple[int, int], message: str, hint: str) -> None:
    finding = read_yaml(f"{GROUP}{text}\n", "f").findings[0]
    assert finding.span is not None
    assert message in finding.message
    assert hint in finding.hint
    assert (finding.span.line, finding.span.column) == place
    assert not any(word in finding.message for word in ("did not find", "while parsing", "while scanning"))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("%x\ngpolicy: v1\n", 1, "a line that begins with `%`"),
        ("%YAML 1.2\ngpolicy: v1\n", 1, "a directive needs a line `---`"),
        ("%YAML 2.0\n---\ngpolicy: v1\n", 1, "gpolicy reads YAML 1.2"),
        ("gpolicy:v1\nkind: Cluster\n", 1, "no space after the colon"),
    ],
)
def test_a_mistake_in_the_first_line(text: str, line: int, message: str) -> None:
    finding = read_yaml(text, "f").findings[0]
    assert finding.span is not None
    assert finding.span.line == line
    assert message in finding.message


def test_the_correction_that_a_hint_shows_is_yaml() -> None:
    for wrong, right in (
        ("nodes: [*.example.org]", 'nodes: ["*.example.org"]'),
        ("description: nodes: all", 'description: "nodes: all"'),
        ("alloc_policy:preferred", "alloc_policy: preferred"),
        ("description: 'it's ours'", 'description: "it\'s ours"'),
    ):
        assert read_yaml(f"{GROUP}{wrong}\n", "f").findings
        assert not read_yaml(f"{GROUP}{right}\n", "f").findings


@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (b"gpolicy: v1\nname: B\xe4r\n", (2, 8), "byte 0xe4"),
        (b"\xef\xbb\xbfname: \xff\n", (1, 7), "byte 0xff"),
        ("gpolicy: v1\n".encode("utf-16"), (1, 1), "UTF-16"),
    ],
)
def test_a_file_in_another_encoding(tmp_path: Path, data: bytes, place: tuple[int, int], message: str) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(data)
    found = read_files([file], boundary(tmp_path))
    (finding,) = found.findings
    assert finding.span is not None
    assert message in finding.message
    assert (finding.span.line, finding.span.column) == place
    assert "UTF-8" in finding.hint
    if place != (1, 1):
        assert found.files[str(file)].line(place[0])[place[1] - 1] == "\ufffd"


def test_a_byte_order_mark_at_the_beginning_is_no_mistake(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + GROUP.encode())
    assert read_files([file], boundary(tmp_path)).findings == []
