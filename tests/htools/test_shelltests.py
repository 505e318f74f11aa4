"""Ganeti's own shelltests of hspace, hail, hbal and hroller, as Debian's ganeti-testsuite installs them, run with ours.

`GPOLICY_SHELLTESTS` names another directory that holds `shelltests/` and `data/htools/` at the same places.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SUITE = Path(os.environ.get("GPOLICY_SHELLTESTS") or "/usr/share/ganeti/testsuite") / "test"
PROGRAMS = {"hspace", "hail", "hbal", "hroller"}
EXCLUSIVE = ("alloc-drbd", "reloc-drbd", "node-evac", "change-group", "alloc-twodisks", "alloc-invalid-twodisks")

pytestmark = [
    pytest.mark.htools,
    pytest.mark.skipif(not SUITE.exists(), reason="Debian's ganeti-testsuite is not installed"),
]


@dataclass(frozen=True)
class ShellTest:
    """A command, what it must print on stdout and stderr, and its exit code.

    That is a text, or a pattern between slashes, with `!` one that must not occur.
    """

    command: str
    stdout: str
    stderr: str
    code: str


def shelltests() -> list[ShellTest]:
    """Return the tests that run these programs, and nothing else of Ganeti."""
    found = []
    for path in sorted((SUITE / "hs" / "shelltests").glob("*.test")) if SUITE.exists() else []:
        text = "".join(line for line in path.read_text().splitlines(keepends=True) if not line.startswith("#"))
        for match in re.finditer(r"^(?P<head>[^>\n].*\n(?:.*\n)*?)>>>=(?P<code>.*)\n", text, re.MULTILINE):
            command, *parts = re.split(r"^>>>", match["head"], flags=re.MULTILINE)
            if set(re.findall(r"\./test/hs/(\w+)", command)) <= PROGRAMS and "/hs/" in command:
                expected = {part[:1] == "2": part.removeprefix("2").strip() for part in parts}
                found.append(
                    ShellTest(
                        command.strip(), expected.get(False, ""), expected.get(True, ""), match["code"].strip() or "0"
                    )
                )
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the programs, and the files that the suite's own script derives from its data."""
    folder = tmp_path_factory.mktemp("shelltests")
    programs = folder / "test" / "hs"
    programs.mkdir(parents=True)
    for name in sorted(PROGRAMS):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gpolicy htools {name} "$@"\n')
        (programs / name).chmod(0o755)
    data = SUITE / "data" / "htools"
    for name in (*EXCLUSIVE, "alloc-spindles"):
        text = (data / f"hail-{name}.json").read_text()
        text = re.sub(r'"exclusive_storage": *false', '"exclusive_storage": true', text)
        (folder / f"hail-{name}.json.excl-stor").write_text(text)
        without = "".join(line for line in text.splitlines(keepends=True) if '"spindles"' not in line)
        (folder / f"hail-{name}.json.fail-excl-stor").write_text(without)
    text = (data / "hail-node-evac.json").read_text()
    for mode in ("primary-only", "secondary-only", "all"):
        (folder / f"hail-node-evac.json.{mode}").write_text(
            text.replace('"evac_mode": "all"', f'"evac_mode": "{mode}"')
        )
    group = ("--simulate", "p,4,8T,64g,16")
    for name, groups in (("simu-rebal-merged", 1), ("simu-onegroup", 1), ("simu-twogroups", 2)):
        options = [*group * groups, "--disk-template", "drbd", "-l", "8", "-S", name]
        subprocess.run([str(programs / "hspace"), *options], cwd=folder, check=True, capture_output=True)
    for phase in ("standard", "tiered"):
        head, nodes, *rest = (folder / f"simu-onegroup.{phase}").read_text().split("\n\n")
        # as many nodes again, empty: there is something to balance
        empty = "\n".join(f"new-{node}|65536|0|65536|8388608|8388608|16|N|fake-uuid-01|1" for node in range(4))
        (folder / f"simu-rebal.{phase}").write_text("\n\n".join([head, f"{nodes}\n{empty}", *rest]))
        # a test saves this as well, another one reads it, maybe alone
        options = ["-t", f"simu-rebal.{phase}", "-G", "group-01", "-C", "-S", f"simu-rebal.{phase}"]
        subprocess.run([str(programs / "hbal"), *options], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize(
    "test",
    [pytest.param(test, marks=[pytest.mark.slow] if place % 5 else []) for place, test in enumerate(shelltests())],
    ids=lambda test: str(test.command)[:60],
)
def test_ganetis_shelltests_pass(test: ShellTest, folder: Path) -> None:
    data = SUITE / "data" / "htools"
    environment = {
        **os.environ,
        "T": str(folder),
        "TESTDATA_DIR": str(data),
        "BACKEND_BAL_STD": f"-t{folder}/simu-rebal.standard",
        "BACKEND_BAL_TIER": f"-t{folder}/simu-rebal.tiered",
        "BACKEND_DYNU": f"-t{folder}/simu-onegroup.standard",
        "BACKEND_EXCL": f"-t{folder}/simu-onegroup.standard",
        "RAPI_URL": f"file://{data}/rapi",
    }
    done = subprocess.run(
        ["sh", "-c", test.command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if test.code.startswith("!"):
        assert done.returncode != int(test.code[1:])
    else:
        assert done.returncode == int(test.code), done.stderr
    for expected, found in ((test.stdout, done.stdout), (test.stderr, done.stderr)):
        if expected.startswith("!/"):
            assert not re.search(expected.strip("!/"), found, re.MULTILINE), found
        elif expected.startswith("/"):
            assert re.search(expected.strip("/"), found, re.MULTILINE), found
        elif expected:
            assert found.strip() == expected


def test_all_shelltests_are_included() -> None:
    assert len(shelltests()) >= 158
