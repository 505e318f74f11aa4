"""A policy is written as a whole or not at all."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from gpolicy.errors import GpolicyError, RequestError
from gpolicy.writing import new_files as writing
from gpolicy.writing.new_files import Replacement, replace_files, write_files

FILES = {"cluster.yaml": "a: 1\n", "groups/default.yaml": "b: ü\n", ".gpolicy/policy.json": "{}\n"}


def contents(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): path.read_text("utf-8") for path in directory.rglob("*") if path.is_file()
    }


def test_a_new_directory_is_made_with_its_parents(tmp_path: Path) -> None:
    written = write_files(FILES, tmp_path / "a" / "b")
    assert contents(tmp_path / "a" / "b") == FILES
    assert written == [tmp_path / "a" / "b" / name for name in FILES]
    assert list((tmp_path / "a").iterdir()) == [tmp_path / "a" / "b"]


def test_an_empty_directory_is_filled_also_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_files(FILES, Path())
    assert contents(tmp_path) == FILES
    assert contents(Path()) == FILES


def test_a_fresh_git_repository_counts_as_empty(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    write_files(FILES, tmp_path)
    assert contents(tmp_path) == FILES


def test_a_directory_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(RequestError, match="not empty"):
        write_files(FILES, tmp_path)
    assert contents(tmp_path) == {"mine.txt": "keep"}


def test_a_file_instead_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "policy").write_text("keep")
    with pytest.raises(RequestError, match="not a directory"):
        write_files(FILES, tmp_path / "policy")
    with pytest.raises(RequestError, match="not a directory"):
        write_files(FILES, tmp_path / "policy" / "below")


@pytest.mark.parametrize("there_already", [False, True])
def test_nothing_is_left_of_a_run_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there_already: bool
) -> None:
    target = tmp_path / "policy"
    if there_already:
        target.mkdir()
    fill = writing._fill

    def full_disk(directory: Path, files: Mapping[str, str]) -> None:
        fill(directory, dict(list(files.items())[:1]))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "_fill", full_disk)
    with pytest.raises(GpolicyError, match="No space left"):
        write_files(FILES, target)
    assert list(tmp_path.rglob("*")) == ([target] if there_already else [])


def test_a_failed_move_undoes_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def one_fails(self: Path, target: Path) -> Path:
        if self.name == "groups":
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", one_fails)
    with pytest.raises(GpolicyError, match="Input/output error"):
        write_files(FILES, tmp_path)
    assert list(tmp_path.iterdir()) == []


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_files_are_replaced_and_keep_their_mode(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    one.chmod(0o640)
    replace_files([Replacement(one, b"1", b"11"), Replacement(two, None, b"22")])
    assert (one.read_bytes(), two.read_bytes()) == (b"11", b"22")
    assert stat.S_IMODE(one.stat().st_mode) == 0o640
    assert names(tmp_path) == ["one", "two"]


def test_a_new_file_is_written(tmp_path: Path) -> None:
    replace_files([Replacement(tmp_path / "new", None, b"x")])
    assert (tmp_path / "new").read_bytes() == b"x"
    with pytest.raises(GpolicyError, match="No such file"):
        replace_files([Replacement(tmp_path / "gone", b"", b"x")])
    assert names(tmp_path) == ["new"]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real/file")
    with pytest.raises(GpolicyError, match="it is a symbolic link"):
        replace_files([Replacement(tmp_path / "link", b"old", b"new")])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "file").read_bytes() == b"old"
    assert names(tmp_path / "real") == ["file"]


@pytest.mark.parametrize("bad", ["changed", "gone", "directory", "no-directory/file"])
def test_nothing_is_written_if_one_cannot_be(bad: str, tmp_path: Path) -> None:
    for name in ("a", "changed", "z"):
        (tmp_path / name).write_bytes(b"old")
    (tmp_path / "directory").mkdir()
    (tmp_path / "changed").write_bytes(b"by somebody else")
    before = names(tmp_path)
    changes = [Replacement(tmp_path / name, b"old", b"new") for name in ("a", bad, "z")]
    with pytest.raises(GpolicyError) as caught:
        replace_files(changes)
    assert str(tmp_path / bad) in caught.value.message
    assert (tmp_path / "a").read_bytes() == (tmp_path / "z").read_bytes() == b"old"
    assert names(tmp_path) == before


def test_replaced_files_are_restored_if_a_later_one_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"old")
    (tmp_path / "a").chmod(0o600)
    real = os.rename

    def rename(old: str, new: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        if new == "b":
            raise OSError(28, "No space left on device")
        real(old, new, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", rename)
    with pytest.raises(GpolicyError, match="No space left"):
        replace_files([Replacement(tmp_path / name, b"old", b"new") for name in ("a", "b")])
    with pytest.raises(GpolicyError, match="No space left"):
        replace_files([Replacement(tmp_path / "new", None, b"x"), Replacement(tmp_path / "b", b"old", b"new")])
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == b"old"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_file_or_directory_that_may_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o444)
    with pytest.raises(GpolicyError, match="Permission denied"):
        replace_files([Replacement(tmp_path / "a", b"old", b"new")])
    (tmp_path / "a").chmod(0o644)
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(GpolicyError, match="Permission denied"):
            replace_files([Replacement(tmp_path / "a", b"old", b"new")])
    finally:
        tmp_path.chmod(0o755)
