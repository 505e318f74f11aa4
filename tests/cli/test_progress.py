"""What may take longer than a second shows on a terminal that it is at work."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpolicy.adopt import adopting
from gpolicy.checking import checking
from gpolicy.cli import terminal
from gpolicy.cli.running import run
from gpolicy.drift import comparing
from gpolicy.forecast import bridge
from gpolicy.formatting import formatting
from gpolicy.use_cases import changes
from tests.cli.command_line import STATE, policy


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def slow(work: Callable[..., Any], shown: Terminal, said: str) -> Callable[..., Any]:
    """Return the same work, which begins when `said` is shown, or after ten seconds."""

    def late(*values: Any, **options: Any) -> Any:
        end = time.monotonic() + 10
        while said not in shown.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
        return work(*values, **options)

    return late


COMPARING = "comparing the policy with the cluster …"


@pytest.mark.parametrize(
    ("words", "place", "name", "said"),
    [
        (["check"], checking.Checker, "examinations", "checking …"),
        (["check", "--fix"], checking.Checker, "check", "fixing …"),
        (["show"], bridge, "check_by_settings", "checking {policy} …"),
        (["test"], bridge, "check_by_settings", "checking {policy} …"),
        (["plan", "--state", STATE], bridge, "check_by_settings", "checking {policy} …"),
        (["plan", "--state", STATE], changes, "make_plan", COMPARING),
        (["drift", "--state", STATE], comparing, "find_drift", COMPARING),
        (["fmt", "--check"], formatting, "format_text", "formatting: {policy} …"),
    ],
)
def test_slow_work_on_a_policy_is_shown(
    words: list[str], place: Any, name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_PATIENCE_SECONDS", 0.05)
    file, shown = policy(tmp_path), Terminal()
    said = said.format(policy=file)
    monkeypatch.setattr(place, name, slow(getattr(place, name), shown, said))
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("COLUMNS", "500")
    run([*words, str(file)])
    assert said in shown.getvalue()


def test_adopt_shows_that_it_is_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_PATIENCE_SECONDS", 0.05)
    shown, said = Terminal(), "writing the policy of cluster …"
    monkeypatch.setattr(adopting, "adopt_cluster", slow(adopting.adopt_cluster, shown, said))
    monkeypatch.setattr(sys, "stderr", shown)
    assert run(["adopt", "--state", STATE, "--save", str(tmp_path / "adopted")]) == 0
    assert said in shown.getvalue()
