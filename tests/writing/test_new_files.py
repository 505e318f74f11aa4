"""A policy is written as a whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gpolicy.errors import GpolicyError, UsageError
from gpolicy.writing import new_files as writing
from gpolicy.writing.new_files import write_files

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
    with pytest.raises(UsageError, match="not empty"):
        write_files(FILES, tmp_path)
    assert contents(tmp_path) == {"mine.txt": "keep"}


def test_a_file_instead_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "policy").write_text("keep")
    with pytest.raises(UsageError, match="not a directory"):
        write_files(FILES, tmp_path / "policy")
    with pytest.raises(UsageError, match="not a directory"):
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
