"""What git knows of a work tree, without anything that its configuration, or that of the user, would start."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from gpolicy.cli.output import provenance_of
from gpolicy.cluster.process import ask_git
from gpolicy.errors import UnreachableError

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git")

Plant = Callable[["Tree"], None]


class Tree:
    """A work tree with one committed policy that has changed since, and a program that leaves a mark when it runs."""

    def __init__(self, path: Path) -> None:
        self.path, self.mark = path / "tree", path / "ran"
        self.program = path / "program"
        self.program.write_text(f"#!/bin/sh\ntouch {self.mark}\ncat\n")
        self.program.chmod(0o755)
        self.path.mkdir()
        self.git("init", "-q", "-b", "main")
        self.config("user.email", "a@example.org")
        self.config("user.name", "a")
        self.write("*.yaml filter=x diff=x\n", ".gitattributes")
        self.write("a: 1\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "first")
        self.write("a: 2\n")

    def write(self, text: str, name: str = "policy.yaml") -> None:
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_text(text)

    def git(self, *words: str, check: bool = True) -> str:
        environ = {**os.environ, "HOME": str(self.path.parent), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", "-C", self.path, *words], check=check, capture_output=True, text=True, env=environ, timeout=60
        )
        return done.stdout.strip()

    def config(self, key: str, value: str) -> None:
        self.git("config", key, value)

    @property
    def git_directory(self) -> Path:
        return self.path / ".git"


def a_filter(tree: Tree) -> None:
    tree.config("filter.x.clean", str(tree.program))


def a_filter_process(tree: Tree) -> None:
    tree.config("filter.x.process", str(tree.program))


def a_filter_of_the_user(tree: Tree) -> None:
    (tree.path.parent / ".gitconfig").write_text(f'[filter "x"]\n\tclean = {tree.program}\n')


def an_included_filter(tree: Tree) -> None:
    tree.write(f'[filter "x"]\n\tclean = {tree.program}\n', ".git/more")
    tree.config("include.path", "more")


def a_filter_of_one_work_tree(tree: Tree) -> None:
    tree.config("core.repositoryformatversion", "1")
    tree.config("extensions.worktreeConfig", "true")
    tree.write(f'[filter "x"]\n\tclean = {tree.program}\n', ".git/config.worktree")


def a_filter_by_its_own_attributes(tree: Tree) -> None:
    tree.write("*.yaml filter=y\n", ".git/info/attributes")
    tree.config("filter.y.clean", str(tree.program))


def other_text(tree: Tree) -> None:
    tree.config("diff.x.textconv", str(tree.program))


def another_diff(tree: Tree) -> None:
    tree.config("diff.external", str(tree.program))


def a_monitor(tree: Tree) -> None:
    tree.config("core.fsmonitor", str(tree.program))


def a_hook(tree: Tree) -> None:
    hooks = tree.path.parent / "hooks"
    hooks.mkdir()
    shutil.copy(tree.program, hooks / "post-index-change")
    tree.config("core.hooksPath", str(hooks))


def a_server_with_the_objects(tree: Tree) -> None:
    tree.program.write_text(f"#!/bin/sh\ntouch {tree.mark}\nexit 1\n")
    tree.config("core.repositoryformatversion", "1")
    tree.config("extensions.partialClone", "origin")
    tree.config("remote.origin.url", str(tree.path))
    tree.config("remote.origin.promisor", "true")
    tree.config("remote.origin.uploadpack", str(tree.program))
    lost = tree.git("rev-parse", "HEAD^{tree}")
    (tree.git_directory / "objects" / lost[:2] / lost[2:]).unlink()
    (tree.git_directory / "index").unlink()


def a_server_by_ssh(tree: Tree) -> None:
    a_server_with_the_objects(tree)
    tree.config("remote.origin.url", "ssh://nobody@invalid./x")
    tree.config("core.sshCommand", str(tree.program))


def a_submodule(tree: Tree) -> None:
    inner = tree.path / "inner"
    tree.git("init", "-q", str(inner))
    for words in (
        ("config", "user.email", "a@b"),
        ("config", "user.name", "a"),
        ("commit", "-q", "--allow-empty", "-m", "x"),
    ):
        tree.git("-C", str(inner), *words)
    tree.write("*.txt filter=x\n", "inner/.gitattributes")
    tree.write("1\n", "inner/a.txt")
    tree.git("-C", str(inner), "add", "-A")
    tree.git("-C", str(inner), "commit", "-qm", "y")
    tree.git("-c", "advice.addEmbeddedRepo=false", "add", "inner")
    tree.git("commit", "-qm", "inner", "--", "inner")
    tree.git("-C", str(inner), "config", "filter.x.clean", str(tree.program))
    tree.write("2\n", "inner/a.txt")


PLANTS: tuple[Plant, ...] = (
    a_filter,
    a_filter_process,
    a_filter_of_the_user,
    an_included_filter,
    a_filter_of_one_work_tree,
    a_filter_by_its_own_attributes,
    other_text,
    another_diff,
    a_monitor,
    a_hook,
    a_server_with_the_objects,
    a_server_by_ssh,
    a_submodule,
)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_nothing_is_started(tree: Tree, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tree)
    monkeypatch.setenv("HOME", str(tree.path.parent))
    commit = tree.git("rev-parse", "HEAD")
    found = provenance_of([tree.path / "policy.yaml"])
    for words in (("merge-base", "main", "HEAD"), ("diff", "--name-only", "HEAD"), ("ls-files", "--others")):
        ask_git(tree.path, *words, seconds=30, limit=2**20)
    assert not tree.mark.exists()
    if "objects" not in plant.__name__ and "ssh" not in plant.__name__:
        assert (found.commit, found.dirty) == (commit, True)
    for command in ("status", "diff", "add --all"):  # git itself runs the program
        tree.git(*command.split(), check=False)
    assert tree.mark.exists()


def test_a_linked_work_tree_has_a_commit_of_its_own(tree: Tree) -> None:
    other = tree.path.parent / "other"
    tree.git("worktree", "add", "-q", "-b", "branch", str(other))
    assert provenance_of([other / "policy.yaml"]).dirty is False
    (other / "policy.yaml").write_text("a: 3\n")
    tree.git("-C", str(other), "commit", "-qam", "second")
    (other / "new.yaml").write_text("a: 4\n")
    found = provenance_of([other / "policy.yaml"])
    assert (found.commit, found.dirty) == (tree.git("-C", str(other), "rev-parse", "HEAD"), True)
    assert found.commit != provenance_of([tree.path / "policy.yaml"]).commit


@pytest.mark.parametrize("words", [("gc", "-q"), ("pack-refs", "--all"), ("checkout", "-q", "--detach")])
def test_packed_repositories_are_read(tree: Tree, words: tuple[str, ...]) -> None:
    tree.git(*words)
    found = provenance_of([tree.path / "policy.yaml"])
    assert (found.commit, found.dirty) == (tree.git("rev-parse", "HEAD"), True)
    answer = ask_git(tree.path, "diff", "--name-only", "main", seconds=30, limit=2**20)
    assert answer.stdout == b"policy.yaml\n"


def test_what_the_user_ignores_is_not_new(tree: Tree) -> None:
    tree.git("checkout", "-q", "--", "policy.yaml")
    tree.write("*.bak\n", ".git/info/exclude")
    tree.write("a: 1\n", "old.bak")
    assert provenance_of([tree.path]).dirty is False


def test_repositories_with_long_hashes_and_shallow_ones(tree: Tree, tmp_path: Path) -> None:
    long, shallow = tmp_path / "long", tmp_path / "shallow"
    tree.git("init", "-q", "--object-format=sha256", str(long))
    (long / "a.yaml").write_text("a: 1\n")
    for words in (("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")):
        tree.git("-C", str(long), *words)
    assert len(provenance_of([long / "a.yaml"]).commit or "") == 64
    tree.git("commit", "-qam", "second")
    tree.git("clone", "-q", "--depth", "1", f"file://{tree.path}", str(shallow))
    found = provenance_of([shallow / "policy.yaml"])
    assert (found.commit, found.dirty) == (tree.git("rev-parse", "HEAD"), False)


def test_a_repository_that_cannot_be_read_is_said(tree: Tree) -> None:
    shutil.rmtree(tree.git_directory)
    with pytest.raises(UnreachableError, match="its git repository cannot be read"):
        ask_git(tree.path, "status", seconds=30, limit=2**20)
    assert provenance_of([tree.path / "policy.yaml"]).commit is None
