"""Long text on a terminal goes through the user's pager; all else is written as it is."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command_line import ROOT, environment, gpolicy, policy, written_to

LONG, SHORT = ("explain",), ("explain", "GP201")
ROWS, COLUMNS = 100, 100
END = "GP915"

Run = Callable[..., tuple[int, str]]


@pytest.fixture(name="on_terminal")
def _on_terminal(warm_python: Path) -> Run:
    def run(*words: str, cwd: Path = ROOT, **variables: str) -> tuple[int, str]:
        """Run gpolicy on a terminal of its own; return the exit code and what is on the terminal."""
        mine, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        process = subprocess.Popen(
            [warm_python, "-I", "-m", "gpolicy", *words], stdin=its, stdout=its, stderr=its, cwd=cwd,
            env=environment({"TERM": "xterm", **variables}), start_new_session=True,
        )  # fmt: skip
        os.close(its)
        shown = b"".join(written_to(mine))
        os.close(mine)
        return process.wait(60), shown.decode().replace("\r\n", "\n")

    return run


@pytest.fixture(name="pager")
def _pager(tmp_path: Path) -> Path:
    """A pager that keeps what it gets, with its arguments and its environment, in files beside it."""
    program = tmp_path / "pager"
    program.write_text('#!/bin/sh\ncd "${0%/*}"\ncat > paged\necho "$@" > arguments\nenv > environment\necho PAGED\n')
    program.chmod(0o755)
    return program


def paged(pager: Path) -> str:
    file = pager.parent / "paged"
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize("variable", ["GPOLICY_PAGER", "PAGER"])
def test_long_text_goes_through_the_named_pager(on_terminal: Run, pager: Path, variable: str) -> None:
    code, shown = on_terminal(*LONG, **{variable: f"{pager} -x 'two words'"})
    assert (code, shown) == (0, "PAGED\n")
    assert paged(pager) == gpolicy(*LONG).stdout
    assert (pager.parent / "arguments").read_text() == "-x two words\n"


def test_help_goes_through_the_pager(on_terminal: Run, pager: Path) -> None:
    assert on_terminal("help", "plan", "--all", PAGER=str(pager)) == (0, "PAGED\n")
    assert "--detailed-exitcode" in paged(pager)


def test_its_own_variable_goes_first(on_terminal: Run, pager: Path) -> None:
    assert on_terminal(*LONG, PAGER="/nonexistent", GPOLICY_PAGER=str(pager)) == (0, "PAGED\n")


@pytest.mark.parametrize("off", [{"GPOLICY_PAGER": ""}, {"GPOLICY_PAGER": "cat"}, {"TERM": "dumb"}])
def test_a_pager_can_be_switched_off(on_terminal: Run, pager: Path, off: dict[str, str]) -> None:
    code, shown = on_terminal(*LONG, **({"PAGER": str(pager)} | off))
    assert code == 0
    assert END in shown
    assert paged(pager) == ""


def test_no_pager_is_an_option(on_terminal: Run, pager: Path) -> None:
    code, shown = on_terminal("--no-pager", *LONG, PAGER=str(pager))
    assert (code, END in shown, paged(pager)) == (0, True, "")
    code, shown = on_terminal(*LONG, "--no-pager", PAGER=str(pager))
    assert (code, "write it before the verb: `gpolicy --no-pager explain`" in shown) == (3, True)


def test_short_text_and_pipes_have_no_pager(on_terminal: Run, pager: Path) -> None:
    assert "GP201" in on_terminal(*SHORT, PAGER=str(pager))[1]
    assert END in gpolicy(*LONG, env={"PAGER": str(pager)}).stdout
    assert paged(pager) == ""


def test_a_pager_that_is_left_early_changes_no_exit_code(on_terminal: Run, tmp_path: Path) -> None:
    groups = "".join(
        f"---\ngpolicy: v1\nkind: NodeGroup\nname: g{n}\nbogus: 1\n" for n in range(1000)
    )  # more than a pipe holds
    code, shown = on_terminal("check", str(policy(tmp_path, groups)), PAGER="head -n 1")
    assert code == 1
    assert shown.count("\n") == 1


@pytest.mark.parametrize("named", ["/nonexistent --option", "'open"])
def test_a_pager_that_cannot_be_run_is_named_and_the_text_shown(on_terminal: Run, named: str) -> None:
    code, shown = on_terminal(*LONG, PAGER=named)
    assert code == 0
    assert " the pager: " in shown
    assert END in shown


def test_less_is_the_usual_pager(on_terminal: Run, pager: Path) -> None:
    pager.rename(pager.with_name("less"))
    code, shown = on_terminal(*LONG, PATH=f"{pager.parent}:{os.environ['PATH']}")
    assert (code, shown) == (0, "PAGED\n")
    assert (pager.parent / "arguments").read_text() == "-FRX\n"


def test_without_less_the_text_is_shown(on_terminal: Run, tmp_path: Path) -> None:
    code, shown = on_terminal(*LONG, PATH=str(tmp_path))
    assert code == 0
    assert shown == gpolicy(*LONG).stdout


def test_a_pager_gets_no_secrets(on_terminal: Run, pager: Path) -> None:
    on_terminal(*LONG, PAGER=str(pager), LESS="-S", GPOLICY_RAPI_PASSWORD="hunter2", LD_PRELOAD_LIKE="x")  # noqa: S106
    told = (pager.parent / "environment").read_text()
    assert "LESS=-S\n" in told
    assert "TERM=xterm\n" in told
    assert "hunter2" not in told
    assert "LD_PRELOAD_LIKE" not in told


def test_a_file_of_the_repository_cannot_set_it(on_terminal: Run, pager: Path, tmp_path: Path) -> None:
    file = policy(tmp_path)
    (tmp_path / "gpolicy.toml").write_text(f'pager = "{pager}"\n[check]\npager = "{pager}"\n')
    assert on_terminal("check", str(file), GPOLICY_PAGER="")[0] == 3
    assert paged(pager) == ""


def test_what_the_pager_gets_is_printable(on_terminal: Run, pager: Path, tmp_path: Path) -> None:
    groups = "".join(f'---\ngpolicy: v1\nkind: NodeGroup\nname: "g{n}\\e]0;t\\a"\n' for n in range(60))
    code, _ = on_terminal("check", str(policy(tmp_path, groups)), PAGER=str(pager))
    assert code == 1
    text = paged(pager)
    assert "\x1b[" in text  # our colours
    assert "\x1b]" not in text
    assert "\a" not in text
