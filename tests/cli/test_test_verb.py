"""`gpolicy test`."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.command_line import GOOD, ROOT, STATE, gpolicy

TEST = "---\ngpolicy: v1\nkind: Test\ntests:\n"
LEGAL = "  - {name: legal, check_instance: {memory-size: 1G, disk-template: plain}, expect: {refused: false}}\n"
ILLEGAL = "  - {name: illegal, check_instance: {memory-size: 1T, disk-template: plain}, expect: {refused: false}}\n"


def written(directory: Path, *tests: str) -> Path:
    file = directory / "policy.yaml"
    file.write_text(GOOD + TEST + "".join(tests), encoding="utf-8")
    return file


def test_passing_tests(tmp_path: Path) -> None:
    done = gpolicy("test", written(tmp_path, LEGAL), "--details")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Tests of the policy\n1 test, all passed\n")
    assert done.stdout.endswith("  ok     legal\n")


def test_a_failing_test_is_exit_code_1(tmp_path: Path) -> None:
    file = written(tmp_path, LEGAL, ILLEGAL)
    done = gpolicy("test", file)
    assert done.returncode == 1
    assert f"{file}:10:" in done.stdout
    assert "refused: expected false, found true" in " ".join(done.stdout.split())
    assert gpolicy("test", file, "-k", "LEGAL").returncode == 1
    (other := tmp_path / "other").mkdir()
    assert gpolicy("test", written(other, LEGAL), "--name", "leg").returncode == 0


def test_a_test_that_cannot_run_is_exit_code_1(tmp_path: Path) -> None:
    test = "  - {name: t, capacity: {}, expect: {standard: 1}}\n"
    done = gpolicy("test", written(tmp_path, test), "--details")
    assert done.returncode == 1
    assert "no cluster to count on" in done.stdout
    assert "1 could not run" in done.stdout
    text = f"text:{ROOT / 'tests' / 'data' / 'clusters' / 'full' / 'htools.data'}"
    assert "expected 1, found" in gpolicy("test", tmp_path, "--state", text, "--details").stdout


def test_json_and_junit(tmp_path: Path) -> None:
    file = written(tmp_path, LEGAL, ILLEGAL)
    data = json.loads(gpolicy("test", file, "--format", "json").stdout)
    assert data["summary"] == {"passed": 1, "failed": 1, "error": 0}
    root = ET.fromstring(gpolicy("test", file, "-f", "junit").stdout)  # noqa: S314 (our own output)
    assert root.attrib["failures"] == "1"


def test_a_mistake_in_a_test_is_a_finding(tmp_path: Path) -> None:
    done = gpolicy("test", written(tmp_path, LEGAL.replace("refused", "refusd")))
    assert (done.returncode, done.stdout) == (1, "")
    assert "Did you mean `refused`?" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-k", "nothing"], "no test has 'nothing' in its name"),
        (["-f", "markdwn"], "unknown format"),
        (["--state", "sim:x"], "sim: 1 sections"),
    ],
)
def test_errors_before_the_tests_are_exit_code_3(arguments: list[str], message: str, tmp_path: Path) -> None:
    done = gpolicy("test", written(tmp_path, LEGAL), *arguments)
    assert (done.returncode, done.stdout) == (3, "")
    assert message in done.stderr


def test_a_policy_without_tests_has_nothing_to_fail(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(GOOD)
    done = gpolicy("test", tmp_path)
    assert (done.returncode, done.stdout) == (0, "Tests of the policy\n0 tests: there is no document of kind Test\n")


def test_all_policies_of_a_directory_are_tested() -> None:
    done = gpolicy("test", ROOT / "policies")
    assert done.returncode == 0, done.stdout
    assert done.stdout.rstrip().endswith("all passed")
    done = gpolicy("test", ROOT / "policies", "--state", STATE)
    assert (done.returncode, "--state is of one cluster" in done.stderr) == (3, True)
