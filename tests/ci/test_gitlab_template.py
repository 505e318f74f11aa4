"""The GitLab template: the scripts of its jobs run here, against a server that speaks as GitLab does."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from comment_server import TOKEN, Comments
from services import (
    BROKEN,
    FAILING,
    ROOT,
    SECRETS,
    STANDING_IN,
    STATE,
    TEMPLATE,
    declared_guards,
    environments,
    repository,
    run_job,
)


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A repository whose installation takes no time."""
    return repository(tmp_path_factory.mktemp("source"), {"ci/install": STANDING_IN})


def job(
    name: str, workspace: Path, server: Comments, source: dict[str, str], **variables: str
) -> subprocess.CompletedProcess[str]:
    environ = {
        "CI_API_V4_URL": server.base,
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_PROJECT_DIR": str(workspace),
        "GPOLICY_GITLAB_TOKEN": TOKEN,
        "GPOLICY_PATH": "policy",
        "HOME": str(workspace.parent),
    }
    return run_job(name, workspace, environ | source | variables)


def test_findings_become_reports(workspace: Path, server: Comments, source: dict[str, str]) -> None:
    (workspace / "policy" / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    done = job("gpolicy:check", workspace, server, source)
    assert done.returncode == 1
    reports = TEMPLATE["gpolicy:check"]["artifacts"]["reports"]
    quality = json.loads((workspace / reports["codequality"]).read_text(encoding="utf-8"))
    assert any(entry["location"]["path"] == "policy/broken.yaml" for entry in quality)
    findings, tests = (workspace / name for name in reports["junit"])
    cases = ET.parse(findings).iter("testcase")  # noqa: S314 (our own output)
    assert any(case.find("failure") is not None for case in cases)
    assert not tests.exists()


def test_a_sound_policy_passes(workspace: Path, server: Comments, source: dict[str, str]) -> None:
    done = job("gpolicy:check", workspace, server, source)
    assert done.returncode == 0, done.stderr
    quality = json.loads((workspace / "gpolicy-code-quality.json").read_text(encoding="utf-8"))
    assert {entry["severity"] for entry in quality} <= {"info"}


def test_a_test_of_the_policy_that_fails_fails_the_job(
    workspace: Path, server: Comments, source: dict[str, str]
) -> None:
    report = workspace / TEMPLATE["gpolicy:check"]["artifacts"]["reports"]["junit"][1]
    for failed, code in ((0, 0), (1, 1)):
        done = job("gpolicy:check", workspace, server, source)
        assert done.returncode == code
        cases = list(ET.parse(report).iter("testcase"))  # noqa: S314 (our own output)
        assert (len(cases), sum(case.find("failure") is not None for case in cases)) == (2 + failed, failed)
        with (workspace / "policy" / "tests.yaml").open("a", encoding="utf-8") as file:
            file.write(FAILING)
    assert "3 tests, 1 failed" in done.stdout


def test_the_plan_is_one_note(workspace: Path, server: Comments, source: dict[str, str]) -> None:
    for _ in range(2):
        done = job("gpolicy:plan", workspace, server, source, GPOLICY_STATE=STATE)
        assert done.returncode == 1, done.stderr  # a guard fails
    assert len(server.comments) == 1
    assert "dedicated" in server.comments[0]["body"]
    names = declared_guards(workspace / "policy")
    done = job("gpolicy:plan", workspace, server, source, GPOLICY_STATE=STATE, GPOLICY_ALLOW=names)
    assert done.returncode == 0, done.stderr
    assert len(server.comments) == 1
    assert json.loads((workspace / "gpolicy-plan.json").read_text(encoding="utf-8"))["steps"]


def test_a_broken_policy_does_not_leave_an_old_plan_standing(
    workspace: Path, server: Comments, source: dict[str, str]
) -> None:
    job("gpolicy:plan", workspace, server, source, GPOLICY_STATE=STATE)
    (workspace / "policy" / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    done = job("gpolicy:plan", workspace, server, source, GPOLICY_STATE=STATE)
    assert done.returncode == 1
    assert len(server.comments) == 1
    assert "vcpu-ration" in server.comments[0]["body"]


def test_the_note_says_what_could_not_be_done(workspace: Path, server: Comments, source: dict[str, str]) -> None:
    done = job("gpolicy:plan", workspace, server, source, GPOLICY_STATE="snapshot:none.json")
    assert done.returncode == 3
    note = server.comments[0]["body"]
    assert note.endswith("\n\n❌ The plan could not be made: see the job's log.")
    assert "could not be checked" not in note
    done = job("gpolicy:plan", workspace, server, source, GPOLICY_STATE=STATE, GPOLICY_PATH="elsewhere")
    assert done.returncode == 3
    assert "❌ The policy could not be checked: see the job's log." in server.comments[1]["body"]


def test_without_a_token_there_is_no_note(workspace: Path, server: Comments, source: dict[str, str]) -> None:
    done = job("gpolicy:plan", workspace, server, source, GPOLICY_STATE=STATE, GPOLICY_GITLAB_TOKEN="")
    assert "GPOLICY_GITLAB_TOKEN is not set" in done.stdout
    assert server.asked == []


@pytest.mark.parametrize("text", ['$(touch pwned)"; touch pwned; `touch pwned`', "--help"])
def test_a_variable_is_not_run_as_a_command(
    text: str, workspace: Path, server: Comments, source: dict[str, str]
) -> None:
    for name in ("GPOLICY_PATH", "GPOLICY_STATE", "GPOLICY_ALLOW"):
        job("gpolicy:plan", workspace, server, source, **{"GPOLICY_STATE": "sim:none", name: text})
        assert not list(workspace.parent.rglob("pwned"))
    job("gpolicy:check", workspace, server, source, GPOLICY_PATH=text)
    assert not list(workspace.parent.rglob("pwned"))


def test_the_installation_sees_no_secret(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {"ci/install": (ROOT / "ci" / "install").read_text(encoding="utf-8")})
    script = "\n".join(TEMPLATE[".gpolicy"]["before_script"])
    environ = {"CI_PROJECT_DIR": str(tmp_path), "GPOLICY_PATH": ".", "GPOLICY_RAPI_USER": "hush-90c1", **source}
    seen, by_git = environments(script, tmp_path, environ)
    assert min(seen.count("PATH="), by_git.count("PATH=")) > 2
    assert not [name for name in (*SECRETS, *SECRETS.values()) if name in seen]
    assert not [name for name in SECRETS if name.startswith("GPOLICY_") and name in by_git]  # it may need CI_JOB_TOKEN


@pytest.mark.parametrize("commit", ["", "main", "v0.1.0", "0123abc", "--upload-pack=x" + 25 * "a", 41 * "a"])
def test_the_version_to_install_is_required(
    commit: str, workspace: Path, server: Comments, source: dict[str, str]
) -> None:
    done = job("gpolicy:check", workspace, server, source | {"GPOLICY_COMMIT": commit})
    assert done.returncode == 3
    assert "GPOLICY_COMMIT" in done.stderr
    done = job("gpolicy:check", workspace, server, source | {"GPOLICY_SOURCE": ""})
    assert done.returncode != 0
    assert "GPOLICY_SOURCE" in done.stderr
