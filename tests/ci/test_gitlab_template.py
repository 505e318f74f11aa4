"""The GitLab component: the script of its job runs here, against a server that speaks as GitLab does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from tests.ci.services import (
    BROKEN,
    FAILING,
    NO_PART,
    ROOT,
    SECRETS,
    STATE,
    component,
    declared_guards,
    environments,
    fleet_of,
    repository,
    run_job,
    standing_in,
    unchanging,
    workflow_of,
)
from tests.posting.comment_server import TOKEN, Comments

COMMIT = 40 * "c"
FORGED = '{"verb": "plan", "clusters": [], "shard": "1/1"}'


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory, warm_python: Path) -> dict[str, str]:
    """A repository whose installation takes no time."""
    return repository(tmp_path_factory.mktemp("source"), {"ci/install": standing_in(warm_python)})


def job(
    workspace: Path,
    server: Comments,
    inputs: dict[str, str],
    variables: Mapping[str, str] = MappingProxyType({}),
    *,
    token: str = TOKEN,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    environ = {
        "CI_API_V4_URL": server.base,
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_PROJECT_DIR": str(workspace),
        "CI_COMMIT_SHA": COMMIT,
        "GPOLICY_GITLAB_TOKEN": token,
        "HOME": str(workspace.parent),
        "SSL_CERT_FILE": os.devnull,  # plain HTTP needs none
        "SOURCE_DATE_EPOCH": "1790000000",
        **variables,
    }
    named = {name.replace("_", "-"): value for name, value in more.items()}
    return run_job(workspace, {"path": "policy", **inputs, **named}, environ)


def reports(inputs: dict[str, str]) -> Any:
    (only,) = component(inputs).values()
    return only["artifacts"]["reports"]


def test_findings_become_reports(workspace: Path, server: Comments, source: dict[str, str]) -> None:
    (workspace / "policy" / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    done = job(workspace, server, source)
    assert done.returncode == 1
    quality = json.loads((workspace / reports(source)["codequality"]).read_text(encoding="utf-8"))
    assert any(entry["location"]["path"] == "policy/broken.yaml" for entry in quality)
    findings, tests = (workspace / name for name in reports(source)["junit"])
    cases = ET.parse(findings).iter("testcase")  # noqa: S314 (our own output)
    assert any(case.find("failure") is not None for case in cases)
    assert not tests.exists()
    assert "vcpu-ration" in server.comments[0]["body"]


def test_a_sound_policy_passes_and_nothing_is_said(workspace: Path, server: Comments, source: dict[str, str]) -> None:
    done = job(workspace, server, source)
    assert done.returncode == 0, done.stderr
    quality = json.loads((workspace / "gpolicy-code-quality.json").read_text(encoding="utf-8"))
    assert {entry["severity"] for entry in quality} <= {"info"}
    assert server.comments == []
    assert "is not needed" in done.stderr


def test_a_test_of_the_policy_that_fails_fails_the_job(
    workspace: Path, server: Comments, source: dict[str, str]
) -> None:
    report = workspace / reports(source)["junit"][1]
    for failed, code in ((0, 0), (1, 1)):
        done = job(workspace, server, source)
        assert done.returncode == code
        cases = list(ET.parse(report).iter("testcase"))  # noqa: S314 (our own output)
        assert (len(cases), sum(case.find("failure") is not None for case in cases)) == (2 + failed, failed)
        with (workspace / "policy" / "tests.yaml").open("a", encoding="utf-8") as file:
            file.write(FAILING)
    assert "3 tests, 1 failed" in done.stdout
    assert "3 tests, 1 failed" in server.comments[0]["body"]


@pytest.mark.slow
def test_the_plan_is_one_note(workspace: Path, server: Comments, source: dict[str, str]) -> None:
    for _ in range(2):
        done = job(workspace, server, source, state=STATE)
        assert done.returncode == 1, done.stderr  # a guard fails
    assert len(server.comments) == 1
    assert server.comments[0]["body"].startswith("<!-- gpolicy: gpolicy -->\n")
    assert "dedicated" in server.comments[0]["body"]
    names = declared_guards(workspace / "policy")
    done = job(workspace, server, source, state=STATE, allow=names)
    assert done.returncode == 0, done.stderr
    assert len(server.comments) == 1
    assert json.loads((workspace / "gpolicy-plan.json").read_text(encoding="utf-8"))["steps"]


def test_a_plan_without_changes_begins_no_note_and_renews_one(
    workspace: Path, server: Comments, source: dict[str, str]
) -> None:
    shutil.copytree(workspace / "policy", workspace / "changed")
    unchanging(workspace / "policy")
    done = job(workspace, server, source, state=STATE)
    assert (done.returncode, server.comments) == (0, []), done.stderr
    job(workspace, server, source, path="changed", state=STATE)
    assert "dedicated" in server.comments[0]["body"]
    done = job(workspace, server, source, state=STATE)
    assert done.returncode == 0
    assert len(server.comments) == 1
    assert "no changes" in server.comments[0]["body"].lower()


def test_a_broken_policy_does_not_leave_an_old_plan_standing(
    workspace: Path, server: Comments, source: dict[str, str]
) -> None:
    job(workspace, server, source, state=STATE)
    (workspace / "policy" / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    done = job(workspace, server, source, state=STATE)
    assert done.returncode == 1
    assert len(server.comments) == 1
    assert "vcpu-ration" in server.comments[0]["body"]
    assert "broken.yaml" in server.comments[0]["body"]
    assert not (workspace / "gpolicy-plan.json").exists()


def test_the_note_says_what_could_not_be_done(workspace: Path, server: Comments, source: dict[str, str]) -> None:
    done = job(workspace, server, source, state="snapshot:none.json")
    assert done.returncode == 3
    note = server.comments[0]["body"]
    assert note.endswith("\n\n❌ The plan could not be made: see the job's log.")
    assert "could not be checked" not in note
    done = job(workspace, server, source, state=STATE, path="elsewhere", job="other")
    assert done.returncode == 3
    assert server.comments[1]["body"] == (
        "<!-- gpolicy: other -->\n❌ The policy could not be checked: see the job's log."
    )


def test_many_clusters_are_planned_from_snapshots(workspace: Path, server: Comments, source: dict[str, str]) -> None:
    fleet_of(workspace)
    done = job(workspace, server, source, path=".", clusters="all", snapshots="kept")
    assert done.returncode == 3, done.stderr  # one has no snapshot
    assert "Plan of 3 clusters" in server.comments[0]["body"]
    assert sorted(file.name for file in (workspace / "gpolicy-plans").iterdir()) == ["ber.json", "ham.json"]
    done = job(workspace, server, source, path=".", clusters="stage=prod name=ham", snapshots="kept")
    assert done.returncode == 1, done.stderr  # a guard fails
    assert "Plan of 1 cluster" in server.comments[0]["body"]


def run_pipeline(
    workspace: Path, server: Comments, source: dict[str, str], *, lost: str = "none", **more: str
) -> tuple[list[subprocess.CompletedProcess[str]], subprocess.CompletedProcess[str], Path]:
    """Run the pipeline of the page in several jobs, each in a checkout of its own: those of the parts, and the last.

    The artifacts of the part `lost` are lost on the way. The third value is the checkout of the last job.
    """
    pipeline = workflow_of("gitlab")
    part, joining = (included["inputs"] for included in pipeline["include"])
    assert pipeline[joining.get("job", "gpolicy")] == {"needs": [part["job"]], "when": "always"}
    (matrix,) = pipeline[part["job"]]["parallel"]["matrix"]
    last = shutil.copytree(workspace, workspace.parent / "last")
    runs = []
    for shard in matrix["SHARD"]:
        checkout = shutil.copytree(workspace, workspace.parent / f"part-{shard[0]}")
        runs.append(job(checkout, server, {**part, **source, **more}, {"SHARD": shard}))
        (kept,) = component({**part, **source}).values()
        for name in kept["artifacts"]["paths"]:
            if shard != lost and (checkout / name).exists():
                shutil.copytree(checkout / name, last / name, dirs_exist_ok=True)
    return runs, job(last, server, {**joining, **source, **more}), last


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clusters", "overridden", "code"), [("all", True, 3), ("name=[hb]*", False, 1), ("name=[hb]*", True, 0)]
)
def test_several_jobs_end_as_one_does(
    clusters: str, overridden: bool, code: int, workspace: Path, server: Comments, source: dict[str, str]
) -> None:
    """Of the four parts one is empty, and with `all` one cluster of them could not be looked at."""
    inputs = {"clusters": clusters, "snapshots": "kept"}
    inputs |= {"allow": declared_guards(workspace / "policy")} if overridden else {}
    fleet_of(workspace)
    alone = job(shutil.copytree(workspace, workspace.parent / "alone"), server, {**source, "path": ".", **inputs})
    assert alone.returncode == code, alone.stderr
    (comment,) = server.comments
    server.comments.clear()
    server.asked.clear()
    runs, joined, last = run_pipeline(workspace, server, source, **inputs)
    assert [run.returncode for run in runs] == [0, 0, 0, 0], [run.stderr for run in runs]
    assert joined.returncode == code, joined.stderr
    assert [re.sub("/(last|part-.)/", "/alone/", item["body"]) for item in server.comments] == [comment["body"]]
    assert [words.split()[0] for words in server.asked if "/notes" in words] == ["GET", "POST"]
    for checkout in (workspace.parent / "alone", last):
        assert sorted(file.name for file in (checkout / "gpolicy-plans").iterdir()) == ["ber.json", "ham.json"]


def test_a_part_that_is_missing_is_named_and_fails(workspace: Path, server: Comments, source: dict[str, str]) -> None:
    inputs = {"clusters": "name=[hb]*", "snapshots": "kept", "allow": declared_guards(workspace / "policy")}
    fleet_of(workspace)
    _, joined, _ = run_pipeline(workspace, server, source, lost="2/4", **inputs)
    assert joined.returncode == 3
    (note,) = server.comments
    assert "Plan of 1 cluster" in note["body"]
    assert "1 part of the clusters missing: 2/4" in note["body"]


def test_without_any_part_nothing_is_joined(workspace: Path, server: Comments, source: dict[str, str]) -> None:
    """A part that the checkout holds is none: it could say that all is well."""
    fleet_of(workspace)
    forged = workspace / "gpolicy-parts" / "part-1-of-1.json"
    forged.parent.mkdir()
    forged.write_text(FORGED, encoding="utf-8")
    done = job(workspace, server, source, path=".", join="gpolicy-parts")
    assert done.returncode == 3, done.stderr
    assert server.comments[0]["body"].endswith(
        "❌ No part of the plan is there: see the logs of the jobs that plan them."
    )
    (workspace / "gpolicy-parts" / COMMIT).mkdir(parents=True)
    (workspace / "gpolicy-parts" / COMMIT / "part-1-of-1.json").write_text(FORGED)
    done = job(workspace, server, source, path=".", join="gpolicy-parts")
    assert done.returncode == 0, done.stderr  # no commit holds its own name


@pytest.mark.parametrize(("inputs", "says"), NO_PART)
def test_a_job_that_writes_no_part_fails(
    inputs: dict[str, str], says: str, workspace: Path, server: Comments, source: dict[str, str]
) -> None:
    fleet_of(workspace)
    done = job(workspace, server, {**source, "path": ".", "snapshots": "kept", **inputs})
    assert done.returncode == 3
    assert says in done.stderr
    assert not (workspace / "gpolicy-parts").exists()
    assert server.asked == []


def test_without_a_token_there_is_no_note(workspace: Path, server: Comments, source: dict[str, str]) -> None:
    done = job(workspace, server, source, state=STATE, token="")
    assert "GPOLICY_GITLAB_TOKEN is not set" in done.stdout
    assert server.asked == []


@pytest.mark.parametrize("text", ['$(touch pwned)"; touch pwned; `touch pwned`', "--help"])
def test_an_input_is_not_run_as_a_command(text: str, workspace: Path, server: Comments, source: dict[str, str]) -> None:
    job(workspace, server, source, state="sim:none", path=text)
    job(workspace, server, source, state=text, allow=text, job=text)
    job(workspace, server, source, clusters=text, snapshots=text, changed_since=text)
    job(workspace, server, source, clusters="all", shard=f"1/1{text}")
    job(workspace, server, source, join=text)
    assert not list(workspace.parent.rglob("pwned"))


def test_inputs_reach_the_shell_as_variables_only(source: dict[str, str]) -> None:
    (only,) = component({**source, "path": "hush-90c1", "state": "hush-90c1", "job": "hush-90c1"}).values()
    assert "hush-90c1" not in str(only["before_script"]) + str(only["script"])


def test_packages_in_the_cache_are_plain_files_of_the_checkout(
    workspace: Path, server: Comments, source: dict[str, str]
) -> None:
    packages, secret = workspace / ".gpolicy-packages", workspace.parent / "secret.whl"
    packages.mkdir()
    secret.write_text("hush-90c1")
    (packages / "link.whl").symlink_to(secret)
    (packages / "plain.whl").write_text("plain")
    job(workspace, server, source)
    assert {file.name: file.read_text() for file in packages.iterdir()} == {"plain.whl": "plain"}
    shutil.rmtree(packages)
    packages.symlink_to(workspace.parent)
    job(workspace, server, source)
    assert not packages.is_symlink()
    assert list(packages.iterdir()) == []


def test_the_installation_sees_no_secret(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {"ci/install": (ROOT / "ci" / "install").read_text(encoding="utf-8")})
    (only,) = component(source).values()
    environ = {"CI_PROJECT_DIR": str(tmp_path), "GPOLICY_RAPI_USER": "hush-90c1"}
    environ |= {name: str(value) for name, value in only["variables"].items()}
    seen, by_git = environments("\n".join(only["before_script"]), tmp_path, environ)
    assert min(seen.count("PATH="), by_git.count("PATH=")) > 2
    assert not [name for name in (*SECRETS, *SECRETS.values()) if name in seen]
    assert not [name for name in SECRETS if name.startswith("GPOLICY_") and name in by_git]  # it may need CI_JOB_TOKEN


@pytest.mark.parametrize("commit", ["", "main", "v0.1.0", "0123abc", "--upload-pack=x" + 25 * "a", 41 * "a"])
def test_the_version_to_install_is_required(
    commit: str, workspace: Path, server: Comments, source: dict[str, str]
) -> None:
    done = job(workspace, server, source | {"commit": commit})
    assert done.returncode == 3
    assert "GPOLICY_COMMIT" in done.stderr
    done = job(workspace, server, source | {"source": ""})
    assert done.returncode != 0
    assert "GPOLICY_SOURCE" in done.stderr
