"""The theoretical minimum of the cluster score, by hand and as the real hbal takes it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from gpolicy.allocator.merge import merge
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.capacity import capacity
from gpolicy.analysis.shown_score import Score, score_of
from gpolicy.report.capacity_answer import capacity_answer
from gpolicy.report.capacity_json import capacity_data
from gpolicy.report.forms import Display, render
from tests.analysis.hail_cases import HSPACE
from tests.analysis.hspace_cases import from_text, text_of

NODES = [f"n{n}|8192|0|{8192 - 1024 * (n == 0)}|102400|90000|8|N|u|8||N|0|0|1.0" for n in range(3)]
MIRRORED = "i|1024|10240|1|running|Y|n0|n1|drbd||1|-|N"
POLICY = "1024,1,10240,1,1,1|1024,1,10240,1,1,1;4096,4,20480,1,1,8|drbd,plain|4.0|32.0"


def text(*instances: str, nodes: int = 3) -> str:
    return text_of(["g|u|preferred||"], NODES[:nodes], [*instances], [], [f"|{POLICY}", f"g|{POLICY}"])


def score(*instances: str, nodes: int = 3) -> Score:
    return score_of(merge(cluster_data(from_text(text(*instances, nodes=nodes)))).nodes.values())


def test_the_minimum_by_hand() -> None:
    """1024 MiB mirrored on 24576 in all, 16384 without the largest: 0.25 * (1024/16384 - 1024/24576) = 0.25/48."""
    found = score(MIRRORED)
    assert found.minimum == pytest.approx(0.25 / 48)
    reserved = found.components[-1]
    assert (reserved.name, reserved.value) == ("reserved_mem_rtotal", 0.125)
    assert reserved.least == pytest.approx(1 / 48)
    assert reserved.excess == pytest.approx(0.25 * (1 / 8 - 1 / 48))
    assert sum(item.excess for item in found.components) == pytest.approx(found.total - found.minimum)


def test_without_mirrored_instances_or_other_nodes_it_is_zero() -> None:
    assert score().minimum == 0
    assert score("i|1024|10240|1|running|Y|n0||plain||1|-|N", nodes=1).minimum == 0


def test_reports_say_it() -> None:
    report = capacity(from_text(text(MIRRORED)))
    shown = render(capacity_answer(report, components=True), Display(form="text", details=True))
    assert "theoretical minimum: 0.00520833, as hbal takes it; the score could fall at most by" in shown
    assert "could fall by" in shown
    data = capacity_data(report)["groups"][0]
    assert data["score_minimum"] == pytest.approx(0.25 / 48)
    assert data["components"][-1]["excess"] == pytest.approx(0.25 * (1 / 8 - 1 / 48))


@pytest.mark.htools
@pytest.mark.skipif(HSPACE is None, reason="no htools here")
def test_the_real_hbal_takes_the_same(tmp_path: Path) -> None:
    (tmp_path / "c.data").write_text(text(MIRRORED), encoding="utf-8")
    command = ["hbal", "-t", str(tmp_path / "c.data"), "-e", "1000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = re.search(r"optimum score due to N\+1 reservations ([^,]*),", done.stdout)
    assert said is not None
    assert float(said[1]) == pytest.approx(score(MIRRORED).minimum, rel=1e-6)
