"""Where there is an engine, no question waits for the law."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn
from unittest.mock import patch

import pytest

from gpolicy.allocator import balancing, engines, evacuation, redundancy, requests
from gpolicy.allocator.repeated_allocation import ReferenceEngine
from gpolicy.cli.running import run
from tests.htools.random_requests import KINDS, make_case
from tests.htools.three_ways import ask_ours, write_files

POLICIES = Path(__file__).parents[2] / "policies"
STATE = ("--state", f"snapshot:{POLICIES / 'two-groups.snapshot.json'}")
_best = evacuation._best


def refuse(*_: object, **__: object) -> NoReturn:
    raise AssertionError("the law is asked")


def best_of_few(asked: evacuation.Departure) -> evacuation.Evacuated:
    """Let the law make the move that the engine has chosen, or the only one, or say why no node takes the instance."""
    found = _best(asked)
    most = 2 if asked.by_pairs else 1
    return found if len(list(asked._possible_targets())) <= most else refuse()


@contextmanager
def without_the_law() -> Iterator[None]:
    """Fail where the law would answer."""
    with (
        patch.object(ReferenceEngine, "attempt", refuse),
        patch.object(ReferenceEngine, "redundant", refuse),
        patch.object(engines, "try_allocate", refuse),
        patch.object(redundancy, "can_evacuate", refuse),
        patch.object(requests, "_search_all", refuse),
        patch.object(balancing, "law_search", lambda *_: refuse),
        patch.object(evacuation, "_best", best_of_few),
    ):
        yield


@pytest.mark.parametrize("kind", KINDS)
def test_htools(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for seed in range(30):
        case = make_case(kind, seed)
        if "c.mond" in case.files:  # shares of a node without CPUs in use are infinite, which the engine refuses
            continue
        write_files(case)
        with without_the_law():
            ask_ours(case)


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", POLICIES / "two-groups", *STATE),
        ("capacity", POLICIES / "two-groups", *STATE),
        ("suggest", *STATE, "--group", "default"),
        ("test", POLICIES / "two-groups"),
        *(
            ("place", "-p", POLICIES / "two-groups", *STATE, "memory=4G", "vcpus=2", "disk=20G", f"template={template}")
            for template in ("drbd", "plain")
        ),
    ],
    ids=lambda arguments: f"{arguments[0]} {arguments[-1]}".rpartition("/")[2],
)
def test_verbs(arguments: tuple[str | Path, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with without_the_law():
        code = run([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    assert code in (0, 1), shown.err
    assert "the law is asked" not in shown.err
    assert shown.out
