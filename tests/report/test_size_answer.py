"""How many more fit at today's mix: sizes that read the same are told apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpolicy.allocator.cluster_data import Disk, DiskTemplate
from gpolicy.analysis.basis import Basis, BasisKind
from gpolicy.analysis.binding import Binding, Cause
from gpolicy.report.answer import plain_text
from gpolicy.report.size_answer import full_answer
from gpolicy.what_if.filling import FullReport, MixPart
from tests.allocator.helpers import instance

ONE = instance(1024, 10240, 1, DiskTemplate.DRBD)
TWO_DISKS = replace(ONE, disks=(Disk(4096, 1), Disk(6144, 1)), spindle_use=2)
NO_SPINDLES = replace(ONE, disks=(Disk(10240, None),))


def _report(*parts: MixPart, binding: Binding | None = None) -> FullReport:
    return FullReport(
        source="config:x",
        cluster_name="c",
        basis=Basis(BasisKind.MEASURED, {}),
        group="g",
        parts=parts,
        failures=1,
        binding=binding,
        left_out=0,
    )


def _rows(*parts: MixPart) -> list[list[str]]:
    section = full_answer(_report(*parts)).sections[0]
    return [[plain_text(cell) for cell in row] for row in section.tables[0].rows]


def test_sizes_with_the_same_words_have_details() -> None:
    rows = _rows(MixPart(ONE, 3, 2), MixPart(TWO_DISKS, 1000, 0), MixPart(replace(ONE, memory=2048), 1, 1))
    assert [row[1:] for row in rows] == [["drbd", "3", "2"], ["drbd", "1,000", "0"], ["drbd", "1", "1"]]
    alike, words = rows[0][0].partition(" (")[0], [row[0].partition(" (")[2] for row in rows]
    assert rows[1][0].startswith(f"{alike} (")
    assert words == ["10G on 1 spindle, spindle use 1)", "4G + 6G on 2 spindles, spindle use 2)", ""]
    assert _rows(MixPart(ONE, 1, 1), MixPart(NO_SPINDLES, 1, 1))[1][0].endswith(" (10G, spindle use 1)")


def test_another_template_is_no_same_size() -> None:
    rows = _rows(MixPart(ONE, 1, 1), MixPart(replace(TWO_DISKS, template=DiskTemplate.PLAIN), 1, 1))
    assert not any("(" in row[0] for row in rows)


def test_the_verdict_and_its_notes() -> None:
    report = _report(MixPart(ONE, 3, 2), MixPart(TWO_DISKS, 1, 1), binding=Binding(Cause.MEMORY))
    answer = full_answer(report)
    assert answer.verdict == "Group g takes 3 more instances like its 4, with N+1 redundancy"
    assert [figure.value for figure in answer.figures] == ["3", "4"]
    limit = f"the limit is memory: {Cause.MEMORY.sentence}"
    assert answer.sections[0].notes == (limit,)
    said = "left out: 2 instances whose size or template the policy does not allow"
    assert full_answer(replace(report, left_out=2)).sections[0].notes == (limit, said)
    assert full_answer(replace(report, binding=None)).sections[0].notes == ("counting stopped at 3: more may fit",)


@pytest.mark.parametrize(("failures", "said"), [(0, ""), (3, ", and any 3 nodes may fail at once")])
def test_the_verdict_says_which_failures_are_absorbed(failures: int, said: str) -> None:
    verdict = full_answer(replace(_report(MixPart(ONE, 1, 1)), failures=failures)).verdict
    assert verdict == f"Group g takes 1 more instance like its 1{said}"
