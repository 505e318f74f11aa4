"""Small clusters on which a fast version once differed from the real hspace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.htools.recorded import DATA, Case, call

if TYPE_CHECKING:
    from pathlib import Path

CASES = {case["seed"]: case for case in map(json.loads, (DATA / "evacuation-edges.jsonl").read_text().splitlines())}


def answer(case: Case, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (folder / "c.data").write_text(case["data"])
    monkeypatch.chdir(folder)
    code, out, _ = call("hspace", *case["args"])
    assert code == 0
    return out


def test_seed_930000645_evacuation_to_an_offline_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copies of an evacuated node's instances may go to an offline node of the group."""
    case = CASES[930000645]
    assert answer(case, tmp_path, monkeypatch) == case["stdout"]


def test_seed_960000205_evacuation_of_file_instances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many evacuations of one cluster, whose greedy choices differ in the last bit of a score."""
    case = CASES[960000205]
    assert answer(case, tmp_path, monkeypatch) == case["stdout"]
