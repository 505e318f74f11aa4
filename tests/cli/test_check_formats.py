from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.command_line import GOOD, ROOT, gpolicy, policy

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


def test_one_run_writes_several_forms(tmp_path: Path) -> None:
    file = policy(tmp_path, "nonsense: 1\n")
    names = {"sarif": "s", "junit": "j", "gitlab": "g", "github": "h", "json": "o", "markdown": "m", "text": "t"}
    words = [word for form, name in names.items() for word in ("--output", f"{form}={tmp_path / name}")]
    done = gpolicy("check", file, *words, "--output", "text")
    assert (done.returncode, done.stderr) == (1, "")
    wrote = f"wrote {', '.join(str(tmp_path / name) for name in names.values())}\n"
    assert done.stdout == gpolicy("check", file).stdout + wrote
    for form, name in names.items():
        alone = gpolicy("check", file, "--format", form)
        if form != "markdown":  # which says when it was made
            assert (tmp_path / name).read_text(encoding="utf-8") == alone.stdout, form
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "m").read_text(encoding="utf-8").startswith("<!-- gpolicy check -->")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--output", "text", "--output", "github"], "text and github would both go to standard output"),
        (["--format", "json", "--output", "sarif"], "json and sarif would both go to standard output"),
        (["--output", "xml=x"], "unknown format 'xml'"),
        (["--budget", "5000", "--output", "sarif=x"], "--budget cuts --format markdown only"),
        (["--fix", "--output", "sarif=x"], "--fix and --output FORM=FILE do not go together"),
        (["--output", "sarif="], "cannot be written"),
    ],
)
def test_outputs_that_cannot_be(words: list[str], message: str, tmp_path: Path) -> None:
    done = gpolicy("check", policy(tmp_path), *words, cwd=tmp_path)
    assert done.returncode == 3
    assert message in done.stderr
    assert [item.name for item in tmp_path.iterdir()] == ["policy.yaml"]


def test_tests_write_several_forms_and_a_budget_cuts_markdown(tmp_path: Path) -> None:
    report, page = tmp_path / "j.xml", tmp_path / "m.md"
    example = ROOT / "policies" / "two-groups"
    done = gpolicy("test", example, "--output", f"junit={report}", "--output", f"markdown={page}", "--budget", "4000")
    assert done.returncode == 0
    assert "2 tests, all passed" in done.stdout
    assert report.read_text(encoding="utf-8").count("<testcase") == 2
    assert len(page.read_bytes()) <= 4000
