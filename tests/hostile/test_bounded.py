"""The harness itself: it tells a fault of each kind, and goes on with the inputs behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.bounded import Feeder
from tests.hostile.promises import BrokenError, check_form, fault

TOLD = {
    b"endless": "took more than 0.1 s of processor time",
    b"waiting": "took more than 600 s",
    b"raising": "KeyError",
    b"leaving": "SystemExit",
    b"vanishing": "ended with 0",
    b"growing": "MemoryError",
    b"crashing": "ended with -11",
}


def test_each_fault_is_told(feeder: Feeder, tmp_path: Path) -> None:
    inputs = [b"well", *(one for name in TOLD for one in (name, b"well"))]
    fed = feeder.feed("faulty", inputs, tmp_path, seconds=0.1)
    assert fed.answers == [None if one in TOLD else "well" for one in inputs]
    for told, (name, words) in zip(fed.faults, TOLD.items(), strict=True):
        assert name.decode() in told
        assert words in told
    assert "in _faulty" in fed.faults[0]  # where it was


@pytest.mark.parametrize(
    ("code", "said", "complaints"),
    [
        (99, "", ""),
        (-9, "", ""),
        (0, "", "Traceback (most recent call last)"),
        (3, "", "gpolicy: MemoryError"),
        (3, "", "no line of ours"),
        (1, "", "\x1b[2J"),
        (0, "a" * (64 * 1024**2 + 1), ""),
        (0, "", "a" * 1_000_001),
    ],
)
def test_a_broken_promise_is_told(code: int, said: str, complaints: str) -> None:
    assert fault(code, said, complaints)


def test_a_kept_promise_is_no_fault() -> None:
    assert not fault(0, "well\n", "")
    assert not fault(3, "", "gpolicy: no such file\n")


@pytest.mark.parametrize(("form", "said"), [("json", "{"), ("json", "NaN"), ("junit", "<a>"), ("text", "\x07")])
def test_an_answer_of_a_wrong_form_is_told(form: str, said: str) -> None:
    with pytest.raises((BrokenError, ValueError, SyntaxError)):
        check_form(said, form)
