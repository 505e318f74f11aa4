"""The GitHub Action: its own shell run here, against a server that speaks as GitHub does."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.ci.services import (
    ACTION,
    BROKEN,
    FAILING,
    NO_PART,
    ROOT,
    SECRETS,
    STATE,
    STEPS,
    Run,
    declared_guards,
    environments,
    fleet_of,
    repository,
    resolved,
    run_action,
    unchanging,
    workflow_of,
)
from tests.posting.comment_server import GITEA, TOKEN, Comments

Act = Callable[..., Run]
COMMIT = 40 * "c"
PARTS = workflow_of("github")


@pytest.fixture
def act(tmp_path: Path, workspace: Path, server: Comments, warm_python: Path) -> Act:
    """A use of the action on a pull request."""
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}), encoding="utf-8")

    def use(
        *, checkout: Path = workspace, fork: bool = False, home: Path | None = None, gitea: str = "", **inputs: str
    ) -> Run:
        environ = {
            "GITHUB_API_URL": f"{server.base}/api/v1" if gitea else server.base,
            **({gitea: "true"} if gitea else {}),
            "GITHUB_REPOSITORY": "o/r",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_WORKSPACE": str(checkout),
            "GITHUB_SHA": COMMIT,
            "SOURCE_DATE_EPOCH": "1790000000",
            "HOME": str(tmp_path),
            "SSL_CERT_FILE": os.devnull,  # plain HTTP needs none
        }
        home = home or tmp_path / f"runner-{len(list(tmp_path.iterdir()))}"
        home.mkdir(exist_ok=True)
        given = {"path": "policy", "token": TOKEN}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        return run_action(home, checkout, given, environ, fork=fork, python=warm_python)

    return use


def test_a_sound_policy_is_planned_and_commented(act: Act, workspace: Path, server: Comments) -> None:
    done = act(state=STATE, allow=declared_guards(workspace / "policy"))
    assert done.ran == ["Check", "Test", "Plan", "Comment", "Verdict"], done.log
    assert done.code == 0, done.log
    assert done.outputs["check-exit-code"] == "0"
    assert done.outputs["test-exit-code"] == "0"
    assert "2 tests, all passed" in done.log
    assert done.outputs["plan-exit-code"] == "2"
    assert json.loads(Path(done.outputs["plan"]).read_text(encoding="utf-8"))["steps"]
    assert len(server.comments) == 1
    assert server.comments[0]["body"].startswith("<!-- gpolicy: policy -->\n")
    assert "dedicated" in server.comments[0]["body"]
    assert "dedicated" in done.summary


def test_the_comment_of_the_next_run_replaces_it(act: Act, workspace: Path, server: Comments) -> None:
    act(state=STATE)
    (workspace / "policy" / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    done = act(state=STATE)
    assert done.ran == ["Check", "Comment", "Verdict"]
    assert done.code == 1
    assert "::error::the policy has findings that fail" in done.log
    assert len(server.comments) == 1
    assert "vcpu-ration" in server.comments[0]["body"]


@pytest.mark.slow
def test_a_second_use_in_a_job_says_nothing_of_the_first(act: Act, tmp_path: Path, server: Comments) -> None:
    home = tmp_path / "runner-of-both"
    first = act(home=home, state=STATE)
    plan = Path(first.outputs["plan"]).with_name("plan.md").read_text(encoding="utf-8").strip()
    assert plan in server.comments[0]["body"]
    failed = act(home=home, state="snapshot:none.json", comment_name="second")
    assert failed.outputs["plan"] == ""
    assert plan not in server.comments[1]["body"]
    act(home=home, state=STATE)
    act(home=home, comment_name="third")
    assert len(server.comments) == 2
    assert sorted(file.name for file in (home / "gpolicy").iterdir()) == [
        "check.github", "check.md", "check.sarif", "venv",
    ]  # fmt: skip


@pytest.mark.slow
def test_nothing_is_said_when_nothing_changes(act: Act, workspace: Path, server: Comments) -> None:
    shutil.copytree(workspace / "policy", workspace / "changed")
    unchanging(workspace / "policy")
    done = act(state=STATE)
    assert done.code == 0, done.log
    assert done.outputs["plan-exit-code"] == "0"
    assert server.comments == []
    assert "is not needed" in done.log
    act(path="changed", comment_name="policy", state=STATE)
    assert "dedicated" in server.comments[0]["body"]
    act(state=STATE)
    assert len(server.comments) == 1
    assert "no changes" in server.comments[0]["body"].lower()


@pytest.mark.slow
def test_many_clusters_are_planned_from_snapshots(act: Act, workspace: Path, server: Comments) -> None:
    fleet_of(workspace)
    for fork in (False, True):
        done = act(path=".", clusters="all", snapshots="kept", fork=fork)
        assert done.outputs["plan-exit-code"] == "3", done.log  # one has no snapshot
        assert done.code == 3
        assert "Plan of 3 clusters" in server.comments[0]["body"]
        plans = Path(done.outputs["plan"])
        assert sorted(file.name for file in plans.iterdir()) == ["ber.json", "ham.json"]
    done = act(path=".", clusters="stage=prod name=ham", snapshots="kept")
    assert done.outputs["plan-exit-code"] == "1", done.log  # a guard fails
    assert "Plan of 1 cluster" in server.comments[0]["body"]


def run_jobs(act: Act, home: Path, *, lost: str = "", **inputs: str) -> tuple[list[Run], Run]:
    """Run the workflow of the page in several jobs: a run for each part, and that of the job that joins them.

    The artifacts whose names begin with `lost`, if it is given, are lost on the way.
    """
    (part, joining) = PARTS["jobs"]["part"], PARTS["jobs"]["gpolicy"]
    assert (joining["needs"], joining["if"]) == ("part", "always()")
    runs = []
    for shard in part["strategy"]["matrix"]["shard"]:
        given = {name: resolved(value, {"matrix.shard": shard}) for name, value in part["steps"][-1]["with"].items()}
        runs.append(act(**given | inputs))
    context = {"runner.temp": str(home)}
    download = joining["steps"][-2]["with"]
    for run in runs:
        for name, path in run.artifacts.items():
            if fnmatchcase(name, download["pattern"]) and not (lost and name.startswith(lost)):
                shutil.copytree(path, resolved(download["path"], context), dirs_exist_ok=True)
    given = {name: resolved(value, context) for name, value in joining["steps"][-1]["with"].items()}
    return runs, act(home=home, **given | inputs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clusters", "overridden", "code"), [("all", True, 3), ("name=[hb]*", False, 1), ("name=[hb]*", True, 2)]
)
def test_several_jobs_end_as_one_does(
    clusters: str, overridden: bool, code: int, act: Act, workspace: Path, tmp_path: Path, server: Comments
) -> None:
    """Of the four parts one is empty, and with `all` one cluster of them could not be looked at."""
    inputs = {"clusters": clusters, "snapshots": "kept"}
    inputs |= {"allow": declared_guards(workspace / "policy")} if overridden else {}
    fleet_of(workspace)
    alone = act(path=".", **inputs)
    assert alone.outputs["plan-exit-code"] == str(code), alone.log
    (comment,) = server.comments
    server.comments.clear()
    server.asked.clear()
    runs, joined = run_jobs(act, tmp_path / "runner-that-joins", **inputs)
    for run in runs:
        assert (run.code, run.ran, run.summary) == (0, ["Plan", "Verdict"], ""), run.log
    assert sorted(name for run in runs for name in run.artifacts) == [f"gpolicy-part-{n}-of-4" for n in range(1, 5)]
    assert joined.ran == ["Check", "Test", "Join the parts", "Comment", "Verdict"], joined.log
    assert (joined.code, joined.outputs["plan-exit-code"]) == (alone.code, str(code))
    assert joined.summary == alone.summary
    plans = [Path(run.outputs["plan"]) for run in (alone, joined)]
    names = [sorted(file.name for file in directory.iterdir()) for directory in plans]
    assert names[0] == names[1] == ["ber.json", "ham.json"]
    assert server.comments == [comment]
    assert [words.split()[0] for words in server.asked if "/comments" in words] == ["GET", "POST"]


def test_a_part_that_is_missing_is_named_and_fails(act: Act, workspace: Path, tmp_path: Path, server: Comments) -> None:
    inputs = {"clusters": "name=[hb]*", "snapshots": "kept", "allow": declared_guards(workspace / "policy")}
    fleet_of(workspace)
    _, joined = run_jobs(act, tmp_path / "runner-that-joins", lost="gpolicy-part-2-", **inputs)
    assert joined.code == 3
    assert joined.outputs["plan-exit-code"] == "3"
    assert "::error::the policy could not be planned" in joined.log
    (comment,) = server.comments
    for text in (comment["body"], joined.summary):
        assert "Plan of 1 cluster" in text
        assert "1 part of the clusters missing: 2/4" in text


def test_without_any_part_nothing_is_joined(act: Act, workspace: Path, server: Comments) -> None:
    """A part that the checkout holds is none: it could say that all is well."""
    fleet_of(workspace)
    forged = workspace / "parts" / "part-1-of-1.json"
    forged.parent.mkdir()
    forged.write_text('{"verb": "plan", "clusters": [], "shard": "1/1"}', encoding="utf-8")
    done = act(path=".", join="parts")
    assert (done.code, done.outputs["plan-exit-code"]) == (3, "3"), done.log
    assert server.comments[0]["body"].endswith(
        "❌ No part of the plan is there: see the logs of the jobs that plan them."
    )
    (workspace / "parts" / COMMIT).mkdir()
    shutil.copy(forged, workspace / "parts" / COMMIT)
    assert act(path=".", join="parts").code == 0  # no commit holds its own name


@pytest.mark.parametrize(("inputs", "says"), NO_PART)
def test_a_job_that_writes_no_part_fails(
    inputs: dict[str, str], says: str, act: Act, workspace: Path, server: Comments
) -> None:
    fleet_of(workspace)
    done = act(path=".", snapshots="kept", **inputs)
    assert done.code == 3
    assert f"::error::{says}" in done.log
    assert done.artifacts == {}
    assert server.asked == []


def test_only_changed_clusters_are_planned(act: Act, workspace: Path, server: Comments) -> None:
    fleet_of(workspace)
    before = repository(workspace, {})["commit"]

    def changed() -> Run:
        return act(path=".", clusters="all", snapshots="kept", changed_since=before)

    done = changed()
    assert (done.code, done.outputs["plan-exit-code"]) == (0, "0"), done.log
    assert "no cluster is left to look at" in done.log
    assert server.comments == []
    with (workspace / "ham" / "cluster.yaml").open("a", encoding="utf-8") as file:
        file.write("# new\n")
    done = changed()
    assert done.outputs["plan-exit-code"] == "1", done.log
    assert "Plan of 1 cluster" in server.comments[0]["body"]


def test_a_fork_reaches_no_clusters_by_their_names(act: Act, workspace: Path) -> None:
    fleet_of(workspace)
    for inputs in ({"clusters": "all"}, {"clusters": "all", "shard": "1/4"}, {"join": "parts"}):
        done = act(path=".", fork=True, **inputs)
        assert (done.code, done.outputs["plan-exit-code"]) == (0, ""), done.log
        assert done.artifacts == {}
        assert "no plan: the secrets that reach a cluster" in done.log


@pytest.mark.parametrize("variable", ["GITEA_ACTIONS", "FORGEJO_ACTIONS"])
def test_on_gitea_and_forgejo_there_is_one_comment_as_well(
    variable: str, act: Act, workspace: Path, server: Comments
) -> None:
    (page,) = re.findall(
        r"```yaml\n(# \.gitea/workflows/.*?)```", (ROOT / "docs/guides/ci.md").read_text(encoding="utf-8"), re.DOTALL
    )
    inputs = yaml.safe_load(page)["jobs"]["gpolicy"]["steps"][-1]["with"]
    done = act(gitea=variable, **inputs | {"path": "policy", "state": STATE})
    assert (done.code, done.outputs["plan-exit-code"]) == (1, "1"), done.log  # a guard fails
    (workspace / "policy" / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    assert act(gitea=variable, **inputs | {"path": "policy", "state": STATE}).code == 1
    (comment,) = server.comments
    assert comment["user"] == GITEA
    assert "vcpu-ration" in comment["body"]
    assert all(words.split()[1].startswith("/api/v1/") for words in server.asked)


def test_findings_are_marked_in_the_files(act: Act, workspace: Path) -> None:
    (workspace / "policy" / "broken.yaml").write_text(BROKEN, encoding="utf-8")
    done = act()
    assert re.search(r"^::error file=policy/broken.yaml,line=5", done.log, re.MULTILINE)
    assert "::error file=" not in act(annotations="false").log


def test_sarif_is_there_to_be_uploaded(act: Act, tmp_path: Path) -> None:
    act()
    (file,) = tmp_path.glob("runner-*/gpolicy/check.sarif")
    assert json.loads(file.read_text(encoding="utf-8"))["version"] == "2.1.0"
    upload = next(step for step in STEPS if "upload-sarif" in step.get("uses", ""))
    assert upload["with"]["sarif_file"].endswith("/gpolicy/check.sarif")


def test_a_guard_that_fails_fails_the_job_behind_its_comment(act: Act, server: Comments) -> None:
    done = act(state=STATE)
    assert done.outputs["plan-exit-code"] == "1"
    assert done.code == 1
    assert "::error::a guard of the plan fails" in done.log
    assert len(server.comments) == 1


@pytest.mark.parametrize("state", ["", STATE])
def test_a_test_of_the_policy_that_fails_fails_the_job(
    act: Act, state: str, tmp_path: Path, workspace: Path, server: Comments
) -> None:
    with (workspace / "policy" / "tests.yaml").open("a", encoding="utf-8") as file:
        file.write(FAILING)
    done = act(state=state, allow=declared_guards(workspace / "policy"))
    assert done.ran == ["Check", "Test", *(["Plan"] if state else []), "Comment", "Verdict"]
    assert done.outputs["test-exit-code"] == "1"
    assert done.code == 1
    assert "::error::a test of the policy fails" in done.log
    assert "3 tests, 1 failed" in done.log
    for text in (server.comments[0]["body"], done.summary):
        assert "3 tests, 1 failed" in text
        assert "two CPUs with 4 GiB are allowed" in text
    again = act(home=next(tmp_path.glob("runner-*")), path="elsewhere")
    assert again.outputs["test-exit-code"] == ""
    assert "two CPUs with 4 GiB are allowed" not in server.comments[1]["body"]


def test_a_fork_reaches_no_cluster_and_fails_nothing(act: Act, server: Comments) -> None:
    server.may_write = False
    done = act(fork=True, state="rapi://ganeti.example.org")
    assert done.code == 0, done.log
    assert "no plan: the secrets that reach a cluster" in done.log
    assert done.outputs["plan-exit-code"] == ""


def test_a_fork_is_planned_against_a_snapshot(act: Act, workspace: Path, server: Comments) -> None:
    server.may_write = False
    done = act(fork=True, state=STATE, allow=declared_guards(workspace / "policy"))
    assert done.outputs["plan-exit-code"] == "2"
    assert "no comment: the token does not allow it" in done.log
    assert done.code == 0
    assert "dedicated" in done.summary


def test_a_cluster_that_cannot_be_read_fails(act: Act, server: Comments) -> None:
    done = act(state="snapshot:none.json")
    assert done.code == 3
    assert "::error::the policy could not be planned" in done.log
    assert server.comments[0]["body"].endswith("\n\n❌ The plan could not be made: see the job's log.")
    assert "could not be made" in done.summary


def test_no_policy_there(act: Act, server: Comments) -> None:
    done = act(path="elsewhere")
    assert done.ran == ["Check", "Comment", "Verdict"]
    assert done.code == 3
    (comment,) = server.comments
    assert comment["body"] == "<!-- gpolicy: elsewhere -->\n❌ The policy could not be checked: see the job's log."


HOSTILE = ('$(touch pwned)"; touch pwned; `touch pwned`', "x' || touch pwned #", "a\nb=c")


@pytest.mark.parametrize("text", HOSTILE)
def test_an_input_is_not_run_as_a_command(act: Act, text: str, tmp_path: Path) -> None:
    for done in (
        act(path=text),
        act(state=text, allow=text, comment_name=text),
        act(clusters=text, snapshots=text, changed_since=text),
        act(clusters=text, snapshots=text, shard=text, comment_name=text),
        act(clusters="all", shard=f"1/1{text}"),
        act(join=text),
    ):
        assert done.code in {0, 1, 3}
        assert not list(tmp_path.rglob("pwned"))
        assert set(done.outputs) == {"check-exit-code", "test-exit-code", "plan-exit-code", "plan"}
        assert done.outputs["check-exit-code"] in {"0", "3"} or done.ran == ["Plan", "Verdict"]


def test_a_hostile_policy_writes_no_workflow_command(act: Act, workspace: Path) -> None:
    hostile = 'gpolicy: v1\nkind: NodeGroup\nname: "x\\n::set-output name=a::b\\n::error::owned"\nnonsense: 1\n'
    (workspace / "policy" / "hostile.yaml").write_text(hostile, encoding="utf-8")
    done = act()
    lines = done.log.splitlines()
    assert not [line for line in lines if line.startswith(("::set-output", "::error::owned"))]


def heeded(log: str) -> list[str]:
    """Return the lines of a log that the runner takes for workflow commands: `::` first, or `##[` anywhere."""
    found, token = [], ""
    for line in log.splitlines():
        if token:
            token = "" if line == f"::{token}::" else token
        elif line.startswith("::stop-commands::"):
            token = line.removeprefix("::stop-commands::")
        elif line.lstrip().startswith("::") or "##[" in line:
            found.append(line)
    assert not token
    return found


def test_names_and_texts_of_a_policy_are_no_workflow_commands(act: Act, workspace: Path) -> None:
    hostile = workspace / "policy" / "::warning::owned.yaml"
    hostile.write_text(BROKEN.replace("shared", "'##[warning]owned'"), encoding="utf-8")
    done = act(checkout=workspace / "policy", path=".", annotations="false")
    assert done.ran == ["Check", "Comment", "Verdict"]
    assert "/::warning::owned.yaml:" in done.log
    assert heeded(done.log) == ["::error::the policy has findings that fail"]
    hostile.unlink()
    state = "snapshot:##[warning]owned.json"
    done = act(state=state, annotations="false")
    assert "##[warning]owned.json" in done.log
    assert heeded(done.log) == ["::error::the policy could not be planned"]
    tokens = re.findall(r"^::stop-commands::(.*)$", done.log, re.MULTILINE)
    assert len(set(tokens)) == len(tokens) == 4
    assert all(re.fullmatch("[0-9a-f]{32}", token) for token in tokens)


def test_no_expression_reaches_a_shell() -> None:
    for step in STEPS:
        assert "${{" not in step.get("run", ""), step["name"]


def test_every_used_action_is_pinned() -> None:
    used = [step["uses"] for step in STEPS if "uses" in step]
    assert len(used) == 4
    assert all(re.fullmatch(r"[a-z-]+(/[a-z-]+)+@[0-9a-f]{40}", name) for name in used)


def test_the_installation_sees_no_secret(tmp_path: Path) -> None:
    install = next(step for step in STEPS if step.get("name") == "Install gpolicy")
    environ = {"RUNNER_TEMP": str(tmp_path), "SOURCE": str(ROOT)}
    seen, by_git = environments(install["run"], tmp_path, environ)
    assert seen.count("PATH=") > 3
    assert by_git == ""
    assert not [name for name in (*SECRETS, *SECRETS.values()) if name in seen]


def test_each_policy_has_a_category_of_its_own_in_code_scanning() -> None:
    upload = next(step for step in STEPS if "upload-sarif" in step.get("uses", ""))
    asked = [{"inputs.path": "a"}, {"inputs.path": "b"}, {"inputs.path": "a", "inputs.comment-name": "c"}]
    found = [resolved(upload["with"]["category"], inputs) for inputs in asked]
    assert found == ["gpolicy/a", "gpolicy/b", "gpolicy/c"]


def test_the_token_is_given_to_the_comment_alone() -> None:
    def mentions(step: dict[str, Any]) -> bool:
        return "inputs.token" in json.dumps(step)

    assert [step["name"] for step in STEPS if mentions(step)] == ["Comment"]
    assert ACTION["inputs"]["token"]["default"] == "${{ github.token }}"
