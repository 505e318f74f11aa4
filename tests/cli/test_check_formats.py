from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from command_line import GOOD, gpolicy, policy

BAD = "nonsense: 1\n"


def test_a_check_as_junit(tmp_path: Path) -> None:
    policy(tmp_path, BAD)
    (tmp_path / "b.yaml").write_text("gpolicy: v1\nkind: NodeGroup\nname: b\n", encoding="utf-8")
    run = gpolicy("check", tmp_path, "-f", "junit", cwd=tmp_path)
    assert run.returncode == 1
    root = ET.fromstring(run.stdout)  # noqa: S314 (our own)
    assert [suite.get("name") for suite in root] == ["b.yaml", "policy.yaml"]
    assert int(root.get("failures", "")) == len(root.findall("testsuite[@name='policy.yaml']//failure")) == 1


@pytest.mark.parametrize("variable", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
def test_files_are_named_from_the_top_of_the_checkout(tmp_path: Path, variable: str) -> None:
    (tmp_path / "below").mkdir()
    bad = policy(tmp_path / "below", BAD)
    assert GOOD in bad.read_text(encoding="utf-8")
    run = gpolicy("check", bad, "-f", "junit", env={variable: str(tmp_path)})
    assert '<testsuite name="below/policy.yaml"' in run.stdout


def test_a_check_as_sarif_is_one_run_for_several_policies(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        policy(tmp_path / name, BAD)
    run = gpolicy("check", "one", "two", "-f", "sarif", cwd=tmp_path)
    assert run.returncode == 1
    (only,) = json.loads(run.stdout)["runs"]
    uris = [result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in only["results"]]
    assert uris == ["one/policy.yaml", "two/policy.yaml"]
    prints = {tuple(result["partialFingerprints"].values()) for result in only["results"]}
    assert len(prints) == 2
    assert gpolicy("check", tmp_path / "one", tmp_path / "two", "-f", "sarif", cwd=tmp_path).stdout == run.stdout


def test_a_check_as_gitlab_code_quality(tmp_path: Path) -> None:
    policy(tmp_path, BAD)
    run = gpolicy("check", "-f", "gitlab", cwd=tmp_path)
    (entry,) = json.loads(run.stdout)
    assert entry["location"] == {"path": "policy.yaml", "lines": {"begin": 5}}
    assert entry["check_name"] == "GP011 unknown-key"
    assert gpolicy("check", "-f", "gitlab", cwd=policy(tmp_path).parent).stdout == "[]\n"
