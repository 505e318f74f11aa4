"""stderr with `-v`, `-v -v`, `-v -v -v` and `-p` equals that of the real programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.htools.recorded import Case, call, load_cases, unpack

if TYPE_CHECKING:
    from pathlib import Path

CASES = {
    (name, case["seed"]): case
    for name in ("hspace-hail-score.jsonl.gz", "evacuation.jsonl.gz")
    for case in load_cases(name)
}


@pytest.mark.parametrize(
    "recorded", load_cases("verbose.jsonl.gz"), ids=lambda recorded: f"{recorded['program']}-{recorded['seed']}"
)
def test_stderr_is_the_recorded_one(recorded: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(CASES[recorded["cases"], recorded["seed"]], tmp_path)
    monkeypatch.chdir(tmp_path)
    code, _, err = call(recorded["program"], *recorded["args"])
    assert (code, err) == (recorded["code"], recorded["stderr"])
