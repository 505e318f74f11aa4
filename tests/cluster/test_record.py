"""Fields of foreign records: each has the kind that is asked for, or is refused by its name."""

from __future__ import annotations

import pytest

from gpolicy.cluster.record import Record
from gpolicy.errors import InputError
from gpolicy.ganeti.vocabulary import Value


@pytest.mark.parametrize(("value", "number"), [(1, 1.0), (2.5, 2.5), (-3, -3.0), (None, None)])
def test_a_number(value: Value, number: float | None) -> None:
    assert Record.of({"x": value}, "file").number_or_none("x") == number
    assert Record.of({}, "file").number_or_none("x") is None


@pytest.mark.parametrize("value", ["1", True, [1], 1e300, -(10**30)])
def test_what_is_no_number(value: Value) -> None:
    with pytest.raises(InputError, match="x should be a number"):
        Record.of({"x": value}, "file").number_or_none("x")


@pytest.mark.parametrize("value", ["1", True, 1.5, None])
def test_what_is_no_whole_number(value: Value) -> None:
    with pytest.raises(InputError, match="x should be a whole number"):
        Record.of({"x": value}, "file").whole("x")


def test_flags() -> None:
    record = Record.of({"yes": True, "no": False, "null": None, "text": "true"}, "file")
    assert (record.flag("yes"), record.flag("no"), record.flag("null", default=True)) == (True, False, True)
    assert record.flag("missing", default=False) is False
    for key in ("null", "text", "missing"):
        with pytest.raises(InputError, match=f"{key} should be true or false"):
            record.flag(key)
    with pytest.raises(InputError):
        record.flag("text", default=True)
