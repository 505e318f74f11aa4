"""The laws of formatting: the same values, the same comments at the same entries, and a fixed point."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings

from gpolicy.formatting.formatting import format_text
from gpolicy.policy.yaml_reader import read_yaml
from tests.formatting.written_policies import (
    AFTER,
    BEFORE,
    BEHIND,
    ON,
    Written,
    pointers_by_line,
    shown,
    written_policies,
)


def roots(text: str) -> list[Any]:
    reading = read_yaml(text, "x.yaml")
    assert reading.findings == []
    return [document.root for document in reading.documents]


def comments(text: str) -> Counter[str]:
    """Return all comments, found by the parser's tokens: what is not in one of them and begins with #."""
    text = text.replace("\r\n", "\n")
    rest, place = [], 0
    for token in yaml.scan(text, Loader=yaml.CSafeLoader):
        if not isinstance(token, yaml.BlockEndToken | yaml.BlockMappingStartToken | yaml.BlockSequenceStartToken):
            rest.append(text[place : token.start_mark.index])
            place = max(place, token.end_mark.index)
            if isinstance(token, yaml.ScalarToken) and token.style in ("|", ">"):
                rest.append(text[token.start_mark.index :].split("\n", 1)[0])
    rest.append(text[place:])
    return Counter(found.rstrip() for part in rest for found in re.findall("#.*", part))


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(written_policies())
def test_the_laws_of_formatting(written: Written) -> None:
    keeps_values_and_comments_and_is_a_fixed_point(written)
    each_comment_stays_with_its_entry(written)
    has_the_canonical_form(written)


def keeps_values_and_comments_and_is_a_fixed_point(written: Written) -> None:
    made = format_text(written.text, "x.yaml")
    assert made.reason == ""
    assert shown(roots(made.text)) == shown(roots(written.text))
    assert comments(made.text) == comments(written.text)
    assert sum(comments(made.text).values()) == len(written.owners)
    again = format_text(made.text, "x.yaml")
    assert again.text == made.text


def each_comment_stays_with_its_entry(written: Written) -> None:
    text = format_text(written.text, "x.yaml").text
    begin = pointers_by_line(roots(text))
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        found = re.search(r"# (?:d\d+c|top).*", line)
        if found is None:
            continue
        where, pointer = written.owners[found.group()]
        own_line = line.lstrip() == found.group()
        if where == BEHIND:
            assert not own_line
            here = _begun_at(number, begin, lines)
            assert pointer in here or _is_end_of(pointer, number, begin, lines), line
        elif where == ON:
            above = lines[number - 2]
            assert above.find("# d") == line.index("# d")
            assert written.owners[above[above.index("# d") :]][1] == pointer
        elif where == AFTER:
            assert own_line
            inside = [place for place, these in begin.items() for one in these if one[: len(pointer)] == pointer]
            assert max(inside) < number
            beyond = [place for place in begin if place > number]
            assert not beyond or all(one[: len(pointer)] != pointer for one in begin[min(beyond)])
        elif pointer != (0,):
            assert where == BEFORE
            assert own_line
            following = min(place for place in begin if place > number)
            assert pointer in _begun_at(following, begin, lines) or _is_head(number, pointer, begin), line


def _begun_at(number: int, begin: dict[int, list[Any]], lines: list[str]) -> list[Any]:
    """Return what begins on a line; where it is a dash alone, perhaps with a comment, also the item below it."""
    here = list(begin.get(number, []))
    if lines[number - 1].lstrip(" -")[:1] in ("", "#"):
        here += begin.get(min((place for place in begin if place > number), default=0), [])
    return here


def _is_head(number: int, pointer: tuple[Any, ...], begin: dict[int, list[Any]]) -> bool:
    """Return whether a comment is at the top of its document, where the first comments of a document stay."""
    return len(pointer) == 2 and not any(
        one[0] == pointer[0] for place in begin if place < number for one in begin[place]
    )


def _is_end_of(pointer: tuple[Any, ...], number: int, begin: dict[int, list[Any]], lines: list[str]) -> bool:
    """Return whether a value that begins above runs up to this line: plain text of several lines."""
    above = max((place for place in begin if place < number), default=0)
    return pointer in begin.get(above, []) and "several words" in lines[above - 1]


def has_the_canonical_form(written: Written) -> None:
    text = format_text(written.text, "x.yaml").text
    assert "\r" not in text
    assert text.endswith("\n")
    assert not text.startswith(("\n", "---"))
    assert not text.endswith("\n\n")
    assert "\n\n\n" not in text
    assert not re.search(r"^---\n\n", text, re.MULTILINE)
    assert not re.search(r"(?<!more) +$", text, re.MULTILINE)
    for root in roots(text):
        top = [key for key in root if key in ("gpolicy", "kind", "name", "nodes", "ipolicy", "diskparams", "tags")]
        order = ["gpolicy", "kind", "name", "nodes", "ipolicy", "diskparams", "tags"]
        assert top == [key for key in order if key in root]
        assert list(root)[:3] == ["gpolicy", "kind", "name"]
        if "tags" in root:  # a key that the schema does not know comes behind even that
            assert list(root).index("tags") == len(root) - 1 - ("x-own" in root)
