"""The schema for editors is written once for a repository, and every file leads to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpolicy.writing.documents import SCHEMA_FILE, led_to, schema_for, starter_files
from gpolicy.writing.new_files import write_policy


def make_root(top: Path, mark: str) -> None:
    top.mkdir(parents=True, exist_ok=True)
    if mark == "gpolicy.toml":
        (top / mark).touch()
    elif mark == ".git":
        (top / mark).mkdir()
        (top / mark / "HEAD").touch()


def leads_to(directory: Path) -> set[Path]:
    """Return the schemas to which the lines for editors of all files lead."""
    return {
        (file.parent / path).resolve()
        for file in directory.rglob("*.yaml")
        for path in re.findall(r"\$schema[=:] ?(\S+)", file.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("mark", [".git", "gpolicy.toml"])
def test_two_policies_of_a_repository_share_a_schema(tmp_path: Path, mark: str) -> None:
    make_root(tmp_path, mark)
    for name in ("ham", "ber"):
        write_policy(starter_files(f"{name}.example.org"), tmp_path / "policies" / name)
    assert list(tmp_path.rglob("policy.json")) == [tmp_path / SCHEMA_FILE]
    assert leads_to(tmp_path) == {tmp_path / SCHEMA_FILE}


@pytest.mark.parametrize("mark", [".git", ""])
def test_the_schema_lies_in_the_policy_that_is_the_root_or_has_none(tmp_path: Path, mark: str) -> None:
    make_root(tmp_path / "ham", mark)
    files = starter_files("ham.example.org")
    write_policy(files, tmp_path / "ham")
    assert (tmp_path / "ham" / "cluster.yaml").read_text(encoding="utf-8") == files["cluster.yaml"]
    assert leads_to(tmp_path) == {tmp_path / "ham" / SCHEMA_FILE}


def test_a_schema_that_is_there_is_used_and_stays(tmp_path: Path) -> None:
    make_root(tmp_path, ".git")
    own = tmp_path / "policies" / SCHEMA_FILE
    own.parent.mkdir(parents=True)
    own.write_text("{}", encoding="utf-8")
    write_policy(starter_files("ham.example.org"), tmp_path / "policies" / "ham")
    assert schema_for(tmp_path / "policies" / "ham") == own
    assert list(tmp_path.rglob("policy.json")) == [own]
    assert own.read_text(encoding="utf-8") == "{}"


def test_without_a_schema_the_lines_are_left_out(tmp_path: Path) -> None:
    text = starter_files("ham.example.org")["cluster.yaml"]
    assert led_to(None, text, tmp_path / "cluster.yaml") == text.split("\n", 2)[2]
