"""JSON from outside: what is read, and what is refused."""

from __future__ import annotations

import pytest

from gpolicy.cluster.json_input import parse_json
from gpolicy.errors import InputError

NESTED = b'{"a": {"b": [1, {"c": null}]}, "d": {}}'


def test_mappings_are_read() -> None:
    assert parse_json(NESTED, "x") == {"a": {"b": [1, {"c": None}]}, "d": {}}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b" \n", "x: empty"),
        (b'{"a": 1', "x:1:8: not valid JSON: .* (is the file complete?)"),
        (b'{"a" 1, "b": 2}', "x:1:6: not valid JSON: Expecting ':' delimiter"),
        (b'[{"a": 1, "b": 2, "a": 1}]', "x: holds the key 'a' twice in one mapping"),
        (b"[NaN]", "x: holds NaN, which is not a JSON number"),
        (b"[1e999]", "x: holds the number 1e999, which is too large"),
        (b"[" + b"1" * 5000 + b"]", "x: holds a number with thousands of digits"),
        (b'["\\ud800"]', "x: holds an unpaired surrogate, which is not valid text"),
        (b"[" * 5000 + b"]" * 5000, "x: nested too deeply"),
        (b"[" + b"[]," * 5_000_000 + b"[]]", "x: more than 10,000,000 values; no cluster has so many"),
    ],
)
def test_what_is_no_json_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_json(data, "x")
    begin, _, rest = message.partition(".*")
    assert caught.value.message.startswith(begin)
    assert caught.value.message.endswith(rest)
