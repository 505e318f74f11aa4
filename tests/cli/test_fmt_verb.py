from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.command_line import GOOD, gpolicy, gpolicy_child

LOOSE = "# top\nname:   'c'   \nkind: Cluster\ngpolicy: v1\n\n\nipolicy: {vcpu-ratio: 4}  # why\n"
IN_FORM = "# top\ngpolicy: v1\nkind: Cluster\nname: c\n\nipolicy: {vcpu-ratio: 4}  # why\n"


def test_files_below_a_directory_are_formatted_and_named(tmp_path: Path) -> None:
    (tmp_path / "groups").mkdir()
    loose, good = tmp_path / "groups/a.yaml", tmp_path / "b.yml"
    loose.write_text(LOOSE, encoding="utf-8")
    good.write_text(IN_FORM, encoding="utf-8")
    run = gpolicy("fmt", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "formatted groups/a.yaml\n1 file formatted, 1 left as they are\n"
    assert loose.read_text(encoding="utf-8") == IN_FORM
    again = gpolicy("fmt", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, "all 2 files are already formatted\n")


def test_check_names_and_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(LOOSE, encoding="utf-8")
    run = gpolicy("fmt", "--check", cwd=tmp_path)
    assert run.returncode == 1
    assert run.stdout == "would be formatted: a.yaml\n1 file would be formatted, 0 left as they are\n"
    assert file.read_text(encoding="utf-8") == LOOSE
    file.write_text(IN_FORM, encoding="utf-8")
    assert gpolicy("fmt", "--check", "a.yaml", cwd=tmp_path).returncode == 0


@pytest.mark.skipif(shutil.which("patch") is None, reason="no patch")
def test_a_diff_that_patch_takes(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(LOOSE, encoding="utf-8")
    run = gpolicy("fmt", "--diff", "a.yaml", cwd=tmp_path)
    assert run.returncode == 1
    assert file.read_text(encoding="utf-8") == LOOSE
    subprocess.run(["patch", "-p0"], input=run.stdout, text=True, cwd=tmp_path, check=True, capture_output=True)
    assert file.read_text(encoding="utf-8") == IN_FORM


def test_modes_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + LOOSE.replace("\n", "\r\n").encode())
    file.chmod(0o640)
    assert gpolicy("fmt", file).returncode == 0
    assert file.read_bytes() == IN_FORM.encode()
    assert file.stat().st_mode & 0o777 == 0o640


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.yaml"
    real.write_text(LOOSE)
    link.symlink_to(real)
    run = gpolicy("fmt", link)
    assert (run.returncode, run.stdout) == (1, "0 files formatted, 1 left as they are\n"), run.stderr
    assert "link.yaml: not formatted: it is a symbolic link" in run.stderr
    assert (link.is_symlink(), real.read_text()) == (True, LOOSE)
    assert gpolicy("fmt", "--check", link).returncode == 1


def test_standard_input_to_standard_output() -> None:
    run = gpolicy_child("fmt", "-", stdin=LOOSE)
    assert (run.returncode, run.stdout, run.stderr) == (0, IN_FORM, "")
    assert gpolicy("fmt", "-", "--check", stdin=LOOSE).returncode == 1
    assert gpolicy("fmt", "-", "--check", stdin=IN_FORM).returncode == 0


def test_a_broken_file_is_passed_on_as_it_is() -> None:
    broken = "name: [\r\n"
    run = gpolicy("fmt", "-", stdin=broken)
    assert (run.returncode, run.stdout) == (1, broken)
    assert "standard input:1:" in run.stderr
    assert "not formatted" in run.stderr


def test_a_broken_file_does_not_keep_others_from_being_formatted(tmp_path: Path) -> None:
    broken, loose = tmp_path / "a.yaml", tmp_path / "b.yaml"
    broken.write_text(GOOD + "name: twice\n", encoding="utf-8")
    loose.write_text(LOOSE, encoding="utf-8")
    run = gpolicy("fmt", tmp_path)
    assert run.returncode == 1
    assert f"{broken}:5:1: not formatted: the key 'name' occurs twice here" in run.stderr
    assert loose.read_text(encoding="utf-8") == IN_FORM


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name: x\n", "not a policy document"),
        ("- a\n", ":1: not formatted: a document is not a policy document"),
        ("%YAML 1.1\n---\ngpolicy: v1\n", "it has a %directive"),
        ("gpolicy: v1\n? kind\n: Cluster\n", ":2: not formatted: it has YAML that gpolicy does not format"),
        ("gpolicy: v1\nx: |2\n    y\n", ":2: not formatted: a block of text has an indentation indicator"),
        ("gpolicy: v1\ntags: &t [a]\nnodes: *t\n", "an anchor would come behind its alias"),
        ("gpolicy: v1\nx: &a !!str\n  y\n--- ~\n", "not a policy document"),
        ("gpolicy: v1\nx: {a: &b , c: 1}\n", ":2: not formatted: an anchor or a tag has no value"),
        ("gpolicy: v1\rx: a\n", "a line ends in CR"),
    ],
)
def test_a_file_that_cannot_be_formatted_safely_is_named_without_an_error(
    tmp_path: Path, text: str, reason: str
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(text, encoding="utf-8")
    run = gpolicy("fmt", "a.yaml", cwd=tmp_path)
    assert run.returncode == 0
    assert reason in run.stderr
    assert run.stdout == "the file was not formatted\n"
    check = gpolicy("fmt", "--check", "a.yaml", cwd=tmp_path)
    assert (check.returncode, check.stdout) == (0, "the file was not formatted\n")
    (tmp_path / "b.yaml").write_text(IN_FORM, encoding="utf-8")
    others = gpolicy("fmt", "--check", cwd=tmp_path)
    assert others.stdout == "1 of 2 files left as they are, the others are already formatted\n"
    assert file.read_bytes() == text.encode()


def test_an_unreadable_file_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(LOOSE, encoding="utf-8")
    (tmp_path / "b.yaml").write_bytes(b"name: \xff\n")
    run = gpolicy("fmt", cwd=tmp_path)
    assert run.returncode == 3
    assert "b.yaml: not UTF-8 text (byte 6)" in run.stderr
    assert (tmp_path / "a.yaml").read_text(encoding="utf-8") == LOOSE
    assert gpolicy("fmt", "-", "a.yaml", cwd=tmp_path).returncode == 3
    assert gpolicy("fmt", "missing", cwd=tmp_path).returncode == 3
