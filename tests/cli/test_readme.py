"""The examples of the README are gpolicy's output."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.command_line import ROOT, gpolicy

SNAPSHOT = f"snapshot:{ROOT / 'policies/two-groups.snapshot.json'}"
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_plan_in_the_readme_is_what_plan_prints(tmp_path: Path) -> None:
    change, picture = re.findall(r"```(?:yaml)?\n(.*?)```", README, re.DOTALL)[:2]
    assert gpolicy("adopt", "--state", SNAPSHOT, "--save", "prod", cwd=tmp_path).returncode == 0
    with (tmp_path / "prod/groups/default.yaml").open("a", encoding="utf-8") as file:
        file.write(f"\n{change}")
    command, *lines = picture.splitlines()
    assert command == "$ gpolicy plan prod --state rapi://ganeti.example.org"
    told = gpolicy("plan", "prod", "--state", SNAPSHOT, cwd=tmp_path)
    assert (told.returncode, told.stdout.splitlines()) == (0, lines)
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 25


def test_the_readme_is_narrow() -> None:
    wide = [line for line in README.splitlines() if len(line) > 100 and "memory-size" not in line]
    assert wide == []
