from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from gpolicy.analysis.binding import Cause
from gpolicy.analysis.capacity import CapacityReport, capacity
from gpolicy.analysis.node_resources import MetadataRoom, NodeRoom
from gpolicy.analysis.shown_score import Score, ScoreComponent
from gpolicy.cluster.htools_sources import parse_text, read_text_file
from gpolicy.json_values import json_text
from gpolicy.printable import terminal_text
from gpolicy.report.answer import plain_text
from gpolicy.report.capacity_answer import _stranded, capacity_answer
from gpolicy.report.capacity_json import capacity_data
from tests.report.plan_samples import HOSTILE
from tests.report.rendered import Page, html_of, markdown_of, mentions, page_of_markdown, text_of

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "schemas/output/capacity.json").read_text(encoding="utf-8"))
VALIDATOR = Draft7Validator(SCHEMA)


def capacity_text(report: CapacityReport, *, score: bool = False, colour: bool = False) -> str:
    return text_of(capacity_answer(report, components=score), colour=colour)


@pytest.fixture(scope="module")
def report() -> CapacityReport:
    return capacity(read_text_file(ROOT / "tests/data/clusters/full/htools.data"), template="drbd")


def test_the_schema_is_a_schema_and_knows_every_cause() -> None:
    Draft7Validator.check_schema(SCHEMA)
    known = SCHEMA["definitions"]["binding"]["properties"]["binding"]["enum"]
    assert sorted(known) == sorted(cause.key for cause in Cause)


def test_the_contract(report: CapacityReport) -> None:
    data: dict[str, Any] = json.loads(json_text(capacity_data(report)))
    assert list(VALIDATOR.iter_errors(data)) == []
    assert data["format_version"] == "2.0"
    group = data["groups"][0]
    assert (group["group"], group["template"]) == ("default", "drbd")
    assert set(group["specs"][0]) >= {"name", "min", "max", "fits", "binding"}
    assert group["specs"][0]["max"]["memory-size"] == 32768
    assert (group["standard"]["fits"], group["standard"]["binding"]) == (47, "ipolicy.spindle-ratio")
    assert group["standard"]["reason"] == "FailDisk"
    assert math.isclose(group["score"], 2.32281467, abs_tol=1e-8)
    assert len(group["components"]) == 20
    assert data["cluster"]["nodes"] == 5


def test_one_group_has_no_cluster_beside_it(report: CapacityReport) -> None:
    data = capacity_data(replace(report, cluster=None))
    assert list(VALIDATOR.iter_errors(data)) == []
    assert data["cluster"] is None


def test_nan_is_null(report: CapacityReport) -> None:
    score = Score(math.nan, (ScoreComponent("spindles_cv", math.inf, 0.5),))
    odd = replace(report, groups=(replace(report.groups[0], score=score),), cluster=None)
    data = json.loads(json_text(capacity_data(odd)))
    assert list(VALIDATOR.iter_errors(data)) == []
    assert data["groups"][0]["score"] is None
    assert "NaN" in capacity_text(odd, score=True)


def test_the_table_comes_first_and_the_score_when_asked_for(report: CapacityReport) -> None:
    text = capacity_text(report)
    lines = text.splitlines()
    emptied, refused, taken = lines[1].split(". ")
    assert emptied == "Group gold takes no new drbd instance: nodes (too few online nodes)"
    assert refused.startswith("Requests that name no group are refused: the loss of node4 cannot be absorbed")
    assert taken == "Group default takes 47 standard instances, or 2 in a tiered run"
    assert lines[4].split() == ["group", "template", "size", "fits", "hspace", "at", "its", "largest", "bound", "by"]
    assert lines[5].split()[:4] == ["default", "drbd", "size", "1"]
    standard = next(line for line in lines if line.split()[:1] == ["standard"])
    assert standard.split() == [
        "standard",
        *("47", "47"),
        *("128M", "·", "1", "CPU", "·", "1G"),
        "ipolicy.spindle-ratio",
        "(FailDisk)",
    ]
    assert "ipolicy.spindle-ratio: spindles in use for each spindle of a node" in lines
    assert "free_mem_cv" not in text
    scored = capacity_text(report, score=True)
    assert scored.startswith(text.partition("\n\nabsorbed: ")[0])
    assert "Score of group default: 2.32281467" in scored
    assert scored.count("reserved_mem_rtotal") == 3


def test_markdown_has_every_figure_in_one_table(report: CapacityReport) -> None:
    answer = capacity_answer(report)
    page = page_of_markdown(markdown_of(answer))
    table = page.tables[0]
    assert table[0] == ["group", "template", "size", "fits", "hspace", "at its largest", "bound by"]
    shown = page.tables
    whole = [table for table in Page(html_of(answer)).tables if table[0][0] != "node"]  # but for the picture
    assert [row.pop() for row in whole[0]] == ["memory, on one scale", *([""] * len(table[1:]))]  # the bars
    assert [[list(filter(None, row)) for row in table] for table in shown] == [
        [row[len(row) - len(list(filter(None, brief))) :] for row, brief in zip(full, table, strict=True)]
        for full, table in zip(whole, shown, strict=True)
    ]
    wanted = []
    for item in (*report.groups, report.cluster):
        assert item is not None
        rows = [(f"size {spec.name}", spec.fits, spec.hspace, spec.binding.cause.key) for spec in item.specs]
        tiered, hspace = (sum(run.count for run in runs) for runs in (item.tiered, item.hspace_tiered))
        rows.append(("tiered", tiered, hspace, item.tiered_binding.cause.key))
        rows.append(("standard", item.standard.fits, item.hspace_standard, item.standard.binding.cause.key))
        nothing = not any(fits or others for _, fits, others, _ in rows) and len({cause for *_, cause in rows}) == 1
        wanted += [("every size", *rows[-1][1:])] if nothing else rows
    assert [
        (row[2], *(int(cell.replace(",", "")) for cell in row[3:5]), row[6].split(" (")[0]) for row in table[1:]
    ] == wanted
    assert [row[0] for row in table[1:] if row[0]] == [*(item.group for item in report.groups), "(cluster)"]


def test_markdown_keeps_its_budget_and_hostile_names_in_their_cells(report: CapacityReport) -> None:
    many = tuple(replace(report.groups[0], group=f"{name}{n}") for n in range(15) for name in HOSTILE)
    answer = capacity_answer(replace(report, groups=many, cluster_name=HOSTILE[0], notes=HOSTILE))
    text = markdown_of(answer, budget=10_000)
    assert len(text.encode()) <= 10_000
    page = page_of_markdown(text)
    assert mentions(page) == []
    assert "script" not in page.elements
    assert all(len({len(row) for row in table}) == 1 for table in page.tables)
    assert "left out" in text.lower()
    html = html_of(answer)
    page = Page(html)
    assert html.count("<script") == 1  # the page's own
    assert all(len({len(row) for row in table}) == 1 for table in page.tables)


def test_nothing_from_the_cluster_reaches_the_terminal_raw(report: CapacityReport) -> None:
    evil = replace(report.groups[0], group="a\x1b[2J")
    text = capacity_text(replace(report, groups=(evil,), cluster_name="\x1b]0;x", notes=("\x07",)), score=True)
    assert "\x1b" not in text
    assert "\x07" not in text


def test_colour_is_only_paint(report: CapacityReport) -> None:
    painted = terminal_text(capacity_text(report, score=True, colour=True))
    for code in ("\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[0m"):
        painted = painted.replace(code, "")
    assert painted == capacity_text(report, score=True)


def test_a_cluster_without_nodes_has_no_capacity_and_says_so() -> None:
    text = "g|u|preferred||\n\n\n\n\n|128,1,1024,1,1,1|128,1,1024,1,1,1;1024,2,10240,4,4,1|plain|4.0|32.0\n"
    empty = capacity(parse_text(text, where="x", source="text:x"))
    data = capacity_data(empty)
    assert list(VALIDATOR.iter_errors(data)) == []
    assert data["groups"][0]["standard"]["binding"] == "nodes"
    assert "too few online nodes" in capacity_text(empty, score=True)


def test_room_for_metadata_stands_beside_the_counts(report: CapacityReport) -> None:
    rooms = (
        MetadataRoom("default", "ssdvg", (NodeRoom("a", 1024, 8, True), NodeRoom("b", 512, 4, False))),
        MetadataRoom("other", "ssdvg", (), ("c",)),
    )
    shown = replace(report, metadata=rooms)
    data = json.loads(json_text(capacity_data(shown)))
    assert list(VALIDATOR.iter_errors(data)) == []
    assert [room["disks"] for room in data["metadata"]] == [4, None]
    assert data["metadata"][0]["nodes"][1] == {"node": "b", "free": 512, "disks": 4, "measured": False}
    lines = [line.split() for line in capacity_text(shown).splitlines()]
    assert ["default", "ssdvg", "512M", "to", "1G", "4", "measured", "and", "declared"] in lines
    assert ["other", "ssdvg", "-", "-", "nothing"] in lines
    assert "DRBD disks" not in capacity_text(report)


def test_the_longest_bar_is_that_of_most_memory(report: CapacityReport) -> None:
    tables = [table for section in capacity_answer(report).sections for table in section.tables if table.bars]
    for table in tables:
        lengths = [length for bar in table.bars for length in bar if length is not None]
        assert max(lengths) == 1.0
        assert min(lengths) >= 0.0
    assert tables


def test_only_groups_with_nodes_have_stranded_resources(report: CapacityReport) -> None:
    group = report.groups[0]
    assert [plain_text(row[0]) for row in _stranded([group]).rows] == [group.group]
    assert not _stranded([replace(group, nodes=0), replace(group, stranded=None)]).rows
