"""Nodes without spindles are told before the count that they make slow."""

from __future__ import annotations

import pytest

from gpolicy.cli.slow_counting import tell_why_slow
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.text import parse_text
from gpolicy.impact.without_spindles import nodes_without_spindles

HEAD = "g|uuid-1|preferred||\n\n"
NODE = "{name}|65536|1024|62464|1048576|1026048|16|{status}|uuid-1|{count}||{exclusive}|0|16|1.0\n"
TAIL = "\n\n\n"


def read(*nodes: tuple[str, str, int, str]) -> ClusterState:
    lines = "".join(
        NODE.format(name=name, status=status, count=count, exclusive=exclusive)
        for name, status, count, exclusive in nodes
    )
    return parse_text(f"{HEAD}{lines}{TAIL}", name="c", source="text:test", where="test")


def test_who_has_none() -> None:
    state = read(
        ("n3", "N", 0, "N"), ("n1", "N", -1, "N"), ("n2", "N", 1, "N"), ("n4", "Y", 0, "N"), ("n5", "N", 0, "Y")
    )
    assert nodes_without_spindles(state) == ["n1", "n3"]


@pytest.mark.parametrize(("count", "told"), [(0, True), (1, False)])
def test_it_is_told(count: int, told: bool, capsys: pytest.CaptureFixture[str]) -> None:
    tell_why_slow(read(("n1", "N", count, "N"), ("n2", "N", count, "N")))
    said = capsys.readouterr().err
    assert ("n1 and 1 more nodes have spindle_count 0" in said) is told
    assert ("the score is no number" in said) is told
