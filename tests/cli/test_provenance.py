"""When, from which commit and from how old a state a plan was made: in every form, in its file, script and page."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from gpolicy.cli.output import provenance_of
from gpolicy.cli.running import run
from gpolicy.cluster.sources import provenance_words
from gpolicy.cluster.state import Snapshot
from gpolicy.provenance import Provenance
from tests.cli.command_line import ROOT

MADE = "2026-11-23T09:00:00Z"


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a policy in a repository with one commit, at a fixed time."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795424400")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CI_MERGE_REQUEST_IID", "CI_COMMIT_SHA", "GITHUB_EVENT_PATH"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "work tree"
    folder.mkdir()
    text = (ROOT / "policies/two-groups.snapshot.json").read_text(encoding="utf-8")
    taken = json.loads(text) | {"taken_at": "2026-11-20T08:00:00Z"}
    (tmp_path / "state.json").write_text(json.dumps(taken), encoding="utf-8")
    (folder / "cluster.yaml").write_text(
        "gpolicy: v1\nkind: Cluster\nname: ganeti.example.org\nganeti_version: '3.0'\nipolicy: {spindle-ratio: 16}\n"
    )
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def git(folder: Path, *arguments: str) -> str:
    author = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    command = ["git", *author, "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def planned(policy: Path, *options: str) -> int:
    return run(["plan", str(policy), "--state", f"snapshot:{policy.parent / 'state.json'}", "--no-impact", *options])


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_form_of_a_plan_says_it(policy: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    commit = git(policy, "rev-parse", "HEAD")
    words = f"made 2026-11-23 09:00:00 UTC, policy at commit {commit[:12]}, state 3 days old"
    assert planned(policy, "--format", form, "--details") == 0
    assert words in capsys.readouterr().out
    (policy / "more.yaml").touch()
    assert planned(policy, "--format", form, "--details") == 0
    assert f"commit {commit[:12]} with uncommitted changes, state" in capsys.readouterr().out


def test_the_plan_file_keeps_it_and_the_script_shows_it(policy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = policy.parent / "plan.json"
    assert planned(policy, "--save", str(file)) == 0
    kept = json.loads(file.read_text(encoding="utf-8"))
    commit = git(policy, "rev-parse", "HEAD")
    assert [kept[key] for key in ("made_at", "policy_commit", "policy_dirty", "state_read_at")] == [
        *(MADE, commit, False, "2026-11-20T08:00:00Z")
    ]
    capsys.readouterr()
    assert run(["render", str(file)]) == 0
    assert (
        f"# made 2026-11-23 09:00:00 UTC, policy at commit {commit[:12]}, state 3 days old" in capsys.readouterr().out
    )
    for key, wrong in (
        *(("made_at", "yesterday"), ("policy_commit", "HEAD; id"), ("policy_dirty", "no")),
        ("snapshot", kept["snapshot"] | {"taken_at": "2026-02-30T00:00:00Z"}),
    ):
        file.write_text(json.dumps(kept | {key: wrong}), encoding="utf-8")
        assert run(["render", str(file)]) == 3
        assert key in capsys.readouterr().err


@pytest.mark.parametrize("verb", [["check"], ["show"], ["test"]])
def test_pages_of_other_verbs_say_it(policy: Path, verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    run([*verb, str(policy), "--format", "html"])
    assert (
        f"made 2026-11-23 09:00:00 UTC, policy at commit {git(policy, 'rev-parse', 'HEAD')[:12]}"
        in capsys.readouterr().out
    )


def test_outside_of_git_and_without_git_there_is_no_commit(
    policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert provenance_of([tmp_path / "state.json"]) == Provenance(MADE)
    assert provenance_of([]) == Provenance(MADE)
    assert provenance_of([policy]).commit
    monkeypatch.setenv("PATH", str(tmp_path))
    assert provenance_of([policy]) == Provenance(MADE)


def test_changes_elsewhere_in_the_repository_do_not_count(policy: Path) -> None:
    inner = policy / "inner"
    inner.mkdir()
    (inner / "a.yaml").touch()
    git(policy, "add", ".")
    git(policy, "commit", "-qm", "two")
    (policy / "plan.md").touch()
    (policy / "plans").mkdir()
    (policy / "plans" / "plan.json").touch()  # what gpolicy writes is no change of the policy
    assert provenance_of([policy]).dirty is False
    (policy / "plans" / "b.yaml").touch()
    assert provenance_of([inner / "a.yaml"]).dirty is False
    assert provenance_of([policy]).dirty is True


def test_a_repository_runs_nothing(policy: Path, tmp_path: Path) -> None:
    """Neither a hook for file systems, nor the configuration of a bare repository among the files of a policy."""
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    hook.chmod(0o755)
    git(policy, "config", "core.fsmonitor", str(hook))
    assert provenance_of([policy]).commit
    bare = policy / "bare"
    git(policy, "clone", "-q", "--bare", ".", "bare")
    git(bare, "config", "core.fsmonitor", str(hook))
    git(bare, "config", "core.worktree", str(bare))
    assert provenance_of([bare]).commit == git(policy, "rev-parse", "HEAD")  # its files are those of the policy
    assert not (tmp_path / "ran").exists()


def test_who_asks_is_the_last_commit_unless_files_differ_from_it(policy: Path) -> None:
    git(policy, "commit", "-qm", "more room\n\nbecause", "--allow-empty", "--author=Ann B <a@example.org>")
    assert provenance_of([policy]).asked == ("Ann B", "more room", "")
    (policy / "more.yaml").touch()
    assert provenance_of([policy]).asked is None


PULL = {"pull_request": {"user": {"login": "ann"}, "title": "room", "html_url": "https://github.com/o/r/pull/3"}}
PUSH = {"head_commit": {"author": {"name": "Ann"}, "message": "room\n\nwhy", "url": "https://github.com/o/r/commit/a"}}


@pytest.mark.parametrize(
    ("event", "asked"),
    [
        (PULL, ("ann", "room", "https://github.com/o/r/pull/3")),
        (PUSH, ("Ann", "room", "https://github.com/o/r/commit/a")),
        ({"pull_request": {"user": 3}}, ("a", "one", "")),
        ("no event", ("a", "one", "")),
    ],
)
def test_who_asks_on_github(
    policy: Path, monkeypatch: pytest.MonkeyPatch, event: object, asked: tuple[str, str, str]
) -> None:
    (policy.parent / "event.json").write_text(event if isinstance(event, str) else json.dumps(event), encoding="utf-8")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(policy.parent / "event.json"))
    assert provenance_of([policy]).asked == asked


def test_who_asks_on_gitlab(policy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in (
        ("CI_COMMIT_SHA", "abc"),
        ("CI_COMMIT_AUTHOR", "Ann <a@example.org>"),
        ("CI_COMMIT_TITLE", "more <room>"),
        ("CI_PROJECT_URL", "https://git.example.org/o/r"),
    ):
        monkeypatch.setenv(name, value)
    link = "https://git.example.org/o/r/-/commit/abc"
    assert provenance_of([policy]).asked == ("Ann", "more <room>", link)
    assert planned(policy, "--format", "html") == 0
    assert f'Ann: <a href="{link}" rel="noreferrer">more &lt;room&gt;</a>' in capsys.readouterr().out
    for name, value in (
        ("CI_MERGE_REQUEST_IID", "7"),
        ("GITLAB_USER_NAME", "Ben"),
        ("CI_MERGE_REQUEST_TITLE", "room"),
        ("CI_MERGE_REQUEST_PROJECT_URL", "https://git.example.org/o/r"),
    ):
        monkeypatch.setenv(name, value)
    assert provenance_of([policy]).asked == ("Ben", "room", "https://git.example.org/o/r/-/merge_requests/7")


@pytest.mark.parametrize(
    ("source", "taken", "words"),
    [
        ("local:", "not a snapshot", "state read just before"),
        ("config:/x", "not a snapshot", "age of the state not known"),
        ("local:", None, "age of the state not known"),
        ("local:", "2026-11-23T08:59:00Z", "state 1 minute old"),
        ("rapi://x", "2026-11-23T07:00:01Z", "state 1 hour old"),
        ("rapi://x", "2025-11-23T09:00:00Z", "state 365 days old"),
        ("rapi://x", "2026-11-24T09:00:00Z", "state read at 2026-11-24T09:00:00Z, in the future"),
    ],
)
def test_the_age_of_a_state(source: str, taken: str | None, words: str) -> None:
    snapshot = None if taken == "not a snapshot" else Snapshot(file="x", taken_at=taken)
    assert provenance_words(Provenance(MADE), source, snapshot)[-1] == words
    assert provenance_words(Provenance(), source, snapshot) == []
