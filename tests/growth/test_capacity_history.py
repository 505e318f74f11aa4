"""`gpolicy capacity --history`: what it says in each form, of one cluster and of many."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

from gpolicy.growth.filling_up import GrowthReport, SizeForecast
from gpolicy.report.answer import Answer, Picture
from gpolicy.report.growth_section import full_words, with_growth
from tests.cli.command_line import gpolicy
from tests.report.rendered import Page

ROOT = Path(__file__).resolve().parents[2]
GROWING = ROOT / "policies/growing"
SCHEMA = json.loads((ROOT / "schemas/output/capacity.json").read_text(encoding="utf-8"))
LINE = "Group default: full in 11 to 20 weeks (size 1, n1-reserve)"
SIZE = SizeForecast("g", "1", "memory", "memory", 9, 1.0, 35.0, 40.0, 55.0, ())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "full in 5 to 8 weeks"),
        ({"low": 0.5, "high": 9.2}, "full in 0 to 10 days"),
        ({"low": 35.0, "high": 35.0}, "full in 5 weeks"),
        ({"low": 100.0, "high": 700.0}, "full in 3 to 23 months"),
        ({"high": None}, "full in 5 weeks at the earliest"),
        ({"low": None, "middle": None, "high": None}, "not full within 5 years"),
        ({"room": 0}, "full now"),
        ({"per_week": -1.0, "low": None, "high": None}, "not full at this growth"),
        (
            {"per_week": 0.0, "middle": None, "high": None},
            "not full at this growth, but perhaps in 5 weeks at the earliest",
        ),
    ],
)
def test_words(change: dict[str, object], words: str) -> None:
    assert full_words(replace(SIZE, **change), 5 * 365.25) == words  # type: ignore[arg-type]


def test_the_first_size_that_fits_now_leads() -> None:
    late, now, other = (
        replace(SIZE, spec="2", middle=90.0),
        replace(SIZE, room=0),
        replace(SIZE, group="h", middle=50.0),
    )
    report = GrowthReport(70.0, "2026-01-01T00:00:00Z", 700.0, (now, SIZE, other, late), ())
    answer = with_growth(Answer(verb="capacity", title="", name="", verdict="It fits"), report)
    assert answer.verdict == "It fits. Group g: full in 5 to 8 weeks (size 1, memory)"
    picture = next(part for part in answer.sections[0].parts if isinstance(part, Picture))
    assert picture.draw() == [SIZE, other]


def test_text_page_and_markdown_say_when() -> None:
    """Without a state the newest snapshot is counted."""
    text = gpolicy("capacity", "--history", GROWING).stdout
    assert LINE in " ".join(text.split())
    assert "default  size 1    full in 11 to 20 weeks  n1-reserve" in text
    assert LINE in gpolicy("capacity", "--history", GROWING, "--format", "markdown").stdout
    page = gpolicy("capacity", "--history", GROWING, "--format", "html").stdout
    assert any("2026-07-30" in row for table in Page(page).tables for row in table)
    assert page.count('<polyline class="use"') == page.count('<polygon class="range"') == 1


def test_json_keeps_its_contract() -> None:
    told = json.loads(gpolicy("capacity", "--history", GROWING, "--format", "json").stdout)
    assert list(Draft7Validator(SCHEMA).iter_errors(told)) == []
    assert [size["spec"] for size in told["growth"]["sizes"]] == ["1", "standard"]
    state = f"snapshot:{GROWING / '20260420T040000Z.json'}"
    assert json.loads(gpolicy("capacity", "--state", state, "--format", "json").stdout)["growth"] is None


def test_metrics_have_the_days() -> None:
    lines = gpolicy("capacity", "--history", GROWING, "--format", "prometheus").stdout.splitlines()
    found = [
        line.partition("group=")[2] for line in lines if line.startswith("gpolicy_capacity_group_days_until_full{")
    ]
    assert '"default",kind="pair",spec="1",bound="middle"} 101.8' in found
    assert len(found) == 6


def test_many_clusters_have_one_list_with_the_earliest_first(tmp_path: Path) -> None:
    """One that has no history yet is counted all the same."""
    for name, files in {"first": 7, "second": 8, "young": 2}.items():
        (tmp_path / "kept" / name).mkdir(parents=True)
        for path in sorted(GROWING.iterdir())[:files]:
            shutil.copy(path, tmp_path / "kept" / name)
    settings = "".join(f'[clusters.{name}]\nstate = "snapshot:none"\n' for name in ("young", "second", "first"))
    (tmp_path / "gpolicy.toml").write_text(settings, encoding="utf-8")
    done = gpolicy("capacity", "--all", "--snapshots", "kept", "--history", "kept", cwd=tmp_path)
    assert done.returncode == 0
    lines = done.stdout.partition("When it is full")[2].splitlines()
    told = [line.split()[0] for line in lines if "/" in line]
    assert told == ["first/default", "second/default"]
    assert "No forecast of group default from 2 snapshots of 7 days" in " ".join(done.stdout.split())


def test_forecasts_are_not_compared() -> None:
    done = gpolicy("capacity", "--history", GROWING, "--compare", "a", "--compare", "b")
    assert done.returncode == 3
    assert "scores and forecasts are those of one" in done.stderr
