"""Every regular expression of the product, on texts that make a bad one take time by the square of their length."""

from __future__ import annotations

import ast
import functools
import importlib
import itertools
import re
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import sre_parse

import gpolicy

PACKAGE: Final = Path(gpolicy.__file__).parent
SIZES: Final = {False: (15_000, 0.08, 8), True: (30_000, 0.15, 24)}
"""Letters of a text, the most seconds of processor time, and how many letters take part.

A pass over the text takes half of the time at most, one from each letter ten times as long."""
METHODS: Final = ("match", "fullmatch", "search", "findall", "finditer", "sub", "split")
Use = tuple[str, str, int]


@functools.cache
def uses() -> dict[Use, str]:
    """Return how patterns are used (text, method, flags), and where."""
    return {use: where for where, use in _uses()}


def _uses() -> Iterator[tuple[str, Use]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if (
            path.name == "__main__.py"
            or "native" in parts
            or not re.search(r"\bre\.|_compile", text := path.read_text(encoding="utf-8"))
        ):
            continue
        module = importlib.import_module(".".join(parts).removesuffix(".__init__"))
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
                for pattern in patterns(node, module):
                    where = f"{'/'.join(parts[1:])}:{node.lineno}"
                    yield where, (pattern.pattern, node.func.attr, pattern.flags & ~re.UNICODE.value)


def patterns(node: ast.Call, module: Any) -> Iterator[re.Pattern[str]]:
    """Yield the pattern of a call, where its text stands in the source."""
    assert isinstance(node.func, ast.Attribute)
    holder = node.func.value
    if not isinstance(holder, ast.Name):
        return
    if holder.id == "re":
        if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            flags = [eval(ast.unparse(word.value), {"re": re}) for word in node.keywords if word.arg == "flags"]  # noqa: S307
            yield re.compile(node.args[0].value, *flags)
    elif isinstance(found := getattr(module, holder.id, None), re.Pattern) and isinstance(found.pattern, str):
        yield found


def letters(pattern: str, flags: int) -> list[str]:
    """Return the letters that a pattern speaks of, and some that most patterns have words for."""
    found = {ord(letter) for letter in " \ta0-\n"}

    def look(parsed: Any) -> None:
        for code, argument in parsed:
            name = str(code)
            if name in {"LITERAL", "NOT_LITERAL"}:
                found.add(argument)
            elif name == "RANGE":
                found.update(argument)
            elif name == "IN":
                look(argument)
            else:
                for inner in [argument] if not isinstance(argument, tuple | list) else argument:
                    if isinstance(inner, sre_parse.SubPattern):
                        look(inner)
                    elif isinstance(inner, list):
                        for branch in inner:
                            look(branch)

    look(sre_parse.parse(pattern, flags))
    return sorted({chr(number) for number in found if number < 0x110000})


def texts(pattern: str, flags: int, length: int, most: int, *, all_ends: bool) -> Iterator[str]:
    """Yield letters, pairs of letters, and the pattern's own words, many times over, with an end that fits none."""
    known = letters(pattern, flags)
    known = known[:: -(-len(known) // most)]
    words = re.findall(r"[A-Za-z#:-]{2,}", pattern)
    for unit in (*known, *map("".join, itertools.permutations(known, 2)), *words, *(word + " " for word in words)):
        long = unit * (length // len(unit))
        yield f"{long}\0"
        if all_ends or len(unit) != 2:
            yield long
        if len(unit) == 1:
            yield f"{known[-1]}{long}!\0"
            for other in known:
                yield unit * (length // 2) + other * (length // 2) + "\0"


def took(pattern: re.Pattern[str], method: str, text: str) -> float:
    began = time.process_time()
    if method == "finditer":
        for _ in pattern.finditer(text):
            pass
    elif method == "sub":
        pattern.sub("", text)
    else:
        getattr(pattern, method)(text)
    return time.process_time() - began


def slow(pattern: re.Pattern[str], method: str, *, large: bool = False) -> str:
    length, most, count = SIZES[large]
    for text in texts(pattern.pattern, pattern.flags & ~re.UNICODE.value, length, count, all_ends=large):
        if took(pattern, method, text) > most and took(pattern, method, text) > most:
            return f"{text[:12]!r}… {text[-3:]!r}"
    return ""


def test_the_patterns_are_found() -> None:
    assert len(uses()) > 80
    assert {method for _, method, _ in uses()} >= {"search", "findall", "finditer", "sub", "split", "fullmatch"}


def test_a_slow_pattern_is_detected() -> None:
    assert slow(re.compile(r"[a-z]+!"), "search")
    assert slow(re.compile(r"\s+$"), "search")
    assert not slow(re.compile(r"\s++x"), "match")


@pytest.mark.parametrize("large", [False, pytest.param(True, marks=pytest.mark.full)])
def test_each_pattern_takes_one_pass(large: bool) -> None:
    found = {
        f"{where} {method}": slow(re.compile(text, flags), method, large=large)
        for (text, method, flags), where in uses().items()
    }
    assert {where: text for where, text in found.items() if text} == {}
