"""Damage to texts: of bytes, of lines, of words, and of the tree that a JSON text holds. Each by a seed."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

LONGEST: Final = 200_000
"""Bytes of an input; files that are larger are bounded by size before anybody reads them."""

_BYTES: Final = (
    b"\x00", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xc2\x85", b"\xe2\x80\xa8", b"\r", b"\r\n",
    b"\t", b"\x1b[31m", b"\xe2\x80\xae", b"\x7f", b"%", b"'", b'"', b"\\", b"#", b"|", b">", b"&a ", b"*a",
    b"!!str ", b"<<: *a", b"? ", b": ", b"- ", b"---\n", b"...\n", b"{", b"}", b"[", b"]", b",", b"\n", b"\n\n",
    b"  ", b"%YAML 1.1\n---\n", b"!!binary ", b"!!python/object/apply:os.system ", b"%TAG ! tag:x,2000:\n", b"@",
    b"`", b"=", b"~", b"\xf0\x9f\x90\xb3",
)  # fmt: skip
_NUMBERS: Final = (
    b"0", b"-1", b"1", b"2", b"0.0", b"-0.0", b"1e308", b"1e999", b"-1e999", b".inf", b"-.inf", b".nan", b"NaN",
    b"Infinity", b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"-9223372036854775809",
    b"1" * 40, b"9" * 400, b"9" * 5000, b"0x7fffffff", b"0o777", b"1_000", b"1:30", b"4294967296", b"2147483648",
    b"65536", b"1e-320", b"0.1", b"1G", b"1e5G", b"999999999999999T", b"0.0000001M", b"1.5.5", b"+1", b"5%", b"-5%",
    b"100000000%", b"101%", b"1e9%",
)  # fmt: skip
_WORDS: Final = (
    b"null", b"true", b"false", b"yes", b"on", b"inherit", b"default", b"''", b'""', b"[]", b"{}", b"[[]]",
    b"[null]", b"{a: b}", b"2026-01-01", b"2026-02-30", b"0000-00-00", b"*", b"?", b"[", b"[!a]", b"**", b"../",
    b"/dev/zero", b".", b"a" * 300, b"a.b.c", b"\xc3\xa9", b"-x", b"$(id)", b"a b", b"file.yaml#a", b"#", b"~",
)  # fmt: skip
_ODD: Final[tuple[Any, ...]] = (
    None, True, False, -1, 0, 1, 2, 2**31, 2**63, 2**64, 10**400, 1.5, -1e300, 1e308, float("nan"), float("inf"),
    "", "x", "\ud800", "é\n\x1b", "a" * 300, "inherit", "default", "plain", "drbd", [], [[]], [None], {}, {"": {}},
    {"min": 1}, "1/2/3", "../..", "node1.example.org", "0", "-1", "1e9",
)  # fmt: skip

Damage = Callable[[bytes, random.Random, Sequence[bytes]], bytes]


def damaged(data: bytes, seed: int, seeds: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """Return `data` with one to six damages; `seeds` are other texts to take pieces from, `words` fit the grammar."""
    chance = random.Random(seed)
    tree = data.lstrip()[:1] in (b"{", b"[") and chance.random() < 0.7
    for _ in range(min(chance.choice((1, 1, 1, 2, 2, 3, 4, 6)), 6)):
        if tree:
            data = _tree(data, chance)
        else:
            data = chance.choice(_DAMAGES)(data, chance, seeds if chance.random() < 0.3 else words)
    if chance.random() < 0.02:
        data = _deep(data, chance)
    return data[:LONGEST]


def _span(data: bytes, chance: random.Random, most: int) -> tuple[int, int]:
    begin = chance.randint(0, len(data))
    return begin, min(len(data), begin + chance.randint(0, most))


def _odd_bytes(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    begin, end = _span(data, chance, 3)
    return data[:begin] + chance.choice(_BYTES) + data[end:]


def _removed(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    begin, end = _span(data, chance, chance.choice((1, 8, 200)))
    return data[:begin] + data[end:]


def _doubled(data: bytes, chance: random.Random, _: Sequence[bytes]) -> bytes:
    begin, end = _span(data, chance, chance.choice((8, 80, 800)))
    return data[:end] + data[begin:end] * chance.choice((1, 1, 1, 20)) + data[end:]


def _other(data: bytes, chance: random.Random, words: Sequence[bytes]) -> bytes:
    begin, end = _span(data, chance, 40)
    piece = chance.choice(words) if words else b""
    first, last = _span(piece, chance, 400) if len(piece) > 60 else (0, len(piece))
    return data[:begin] + piece[first:last] + data[end:]


def _word(data: bytes, chance: random.Random, words: Sequence[bytes]) -> bytes:
    """Replace one word or number by another."""
    begin = chance.randint(0, len(data))
    while begin < len(data) and not data[begin : begin + 1].isalnum():
        begin += 1
    while begin and data[begin - 1 : begin].isalnum():
        begin -= 1
    end = begin
    while end < len(data) and (data[end : end + 1].isalnum() or data[end : end + 1] in b"_.-"):
        end += 1
    choice = chance.choice((_NUMBERS, _NUMBERS, _WORDS, words or _WORDS))
    return data[:begin] + chance.choice(choice)[:6000] + data[end:]


def _line(data: bytes, chance: random.Random, words: Sequence[bytes]) -> bytes:
    """Remove, double, move, indent or exchange a line."""
    lines = data.split(b"\n")
    place, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(6):
        case 0:
            del lines[place]
        case 1:
            lines.insert(other, lines[place])
        case 2:
            lines[place], lines[other] = lines[other], lines[place]
        case 3:
            lines[place] = b"  " * chance.randint(1, 3) + lines[place]
        case 4:
            lines[place] = lines[place].removeprefix(b"  ")
        case _:
            lines.insert(place, chance.choice(words or _WORDS)[:2000])
    return b"\n".join(lines)


def _deep(data: bytes, chance: random.Random) -> bytes:
    """Nest without end, or let aliases multiply."""
    depth = chance.choice((60, 200, 3000, 60_000))
    bombs = (
        b"[" * depth, b"{a: " * depth, b"- " * depth, b"[" * depth + b"]" * depth,
        b'{"a":' * depth + b"1" + b"}" * depth, b"\n".join(b" " * n + b"a:" for n in range(min(depth, 400))),
        b"a0: &a0 [x]\n" + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12)),  # noqa: E501
        b"a: &a [*a]\n", b"a: &a {b: *a}\n", b"#" * depth, b"\n" * depth, b" " * depth, b"a" * depth, b"'" * depth,
        b"? " * depth, b"!" * depth, b"&a " * depth, b",".join([b"x"] * depth), b"---\n" * min(depth, 5000),
    )  # fmt: skip
    begin = chance.randint(0, len(data))
    return data[:begin] + chance.choice(bombs) + data[begin:]


def _tree(data: bytes, chance: random.Random) -> bytes:
    """Replace, remove, double or exchange a place of a JSON text; bytes of one that is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return chance.choice(_DAMAGES)(data, chance, ())
    holder: Any = [value]
    key: Any = 0
    top = holder
    for _ in range(chance.randint(1, 12)):
        below = holder[key]
        if not isinstance(below, dict | list) or not below:
            break
        holder, key = below, chance.choice(list(below) if isinstance(below, dict) else range(len(below)))
    match chance.randrange(6):
        case 0 if isinstance(holder, dict):
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.append(holder[key])
        case 2 if isinstance(holder, dict):
            holder[str(chance.choice(_ODD))[:50]] = holder[key]
        case 3 if isinstance(holder[key], int) and not isinstance(holder[key], bool):
            holder[key] = holder[key] * chance.choice((-1, 0, 2, 1000, 2**40)) + chance.choice((-1, 0, 1))
        case 4 if isinstance(holder, dict):
            holder[key] = chance.choice(list(holder.values()))
        case _:
            holder[key] = chance.choice(_ODD)
    return json.dumps(top[0]).encode("utf-8", "surrogatepass")


_DAMAGES: Final[tuple[Damage, ...]] = (_odd_bytes, _removed, _doubled, _other, _word, _word, _word, _line, _line)
