"""Stored values in one short line each."""

from __future__ import annotations

import pytest

from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN, Path, Value
from gpolicy.report.values_text import pair_lines, value_text

ANY: Path = ("ndparams", "ovs_name")


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (ANY, True, "true"),
        (ANY, "", '""'),
        (ANY, None, "not set"),
        (ANY, [], "(none)"),
        (ANY, ["a", True, ""], 'a, true, ""'),
        (ANY, {}, "(none)"),
        (ANY, {"a": 1, "b": None}, "a=1, b"),
        (("uid_pool",), [[1, 2], [5, 9]], "1-2, 5-9"),
        (("uid_pool",), [[1, 2], "x"], "1-2"),
        (("beparams", "maxmem"), 4096, "4G"),
    ],
)
def test_a_value(path: Path, value: Value, text: str) -> None:
    assert value_text(path, value) == text


def test_a_long_value_is_cut() -> None:
    assert len(value_text(ANY, "x" * 72)) == 72
    assert value_text(ANY, "x" * 73) != "x" * 73
    assert len(value_text(ANY, "x" * 500)) <= 72


def test_a_spec_pair_has_ranges_where_its_bounds_differ() -> None:
    low: Value = {**DEFAULT_MIN, "memory-size": 1024, "cpu-count": 2, "disk-size": 2048}
    high: Value = {**DEFAULT_MAX, "memory-size": 4096, "cpu-count": 2, "disk-size": 2048}
    (line,) = pair_lines([{"min": low, "max": high}])
    assert "mem 1G..4G " in line
    assert "cpu 2 " in line
    assert "disk 2G " in line
    assert pair_lines("x") == []
    assert pair_lines([{"min": 1, "max": high}, "y"])[1] == "y"
    assert pair_lines([{"min": low}])[0].startswith("{'min': ")
