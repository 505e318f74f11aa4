"""Completion, as the shells themselves ask for it: real bash, zsh and fish load the script and press the tabulator."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from gpolicy.analysis.size_words import KEYS
from gpolicy.cli.app import VERBS
from gpolicy.cli.completing import FILES, SHELLS, complete
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS
from tests.cli.command_line import ROOT, gpolicy, written_to

POLICY = ROOT / "policies" / "two-groups"
SNAPSHOT = ROOT / "policies" / "two-groups.snapshot.json"

_BASH = """
eval "$(gpolicy completion bash)"
COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
COMP_LINE=$1 COMP_POINT=${#1}
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
compopt() { echo "compopt $*"; }
_gpolicy gpolicy
printf '%s\\n' "${COMPREPLY[@]}"
"""


def values(before: list[str], word: str = "") -> list[str]:
    return [value for value, _ in complete(before, word)]


def test_verbs_and_options() -> None:
    assert values([]) == [*VERBS, "help"]
    assert values([], "pl") == ["plan", "place"]
    assert values(["help"], "pl") == ["plan", "place"]
    assert values([], "--v") == ["--version"]
    assert "--allow" in values(["plan"], "--")
    assert values(["plan", "--allow", "x"], "--allo") == ["--allow"]  # which can be repeated
    assert values(["plan", "--state", "x"], "--sta") == []
    assert values(["nosuch"]) == []
    assert values(["htools"]) == ["hspace", "hail", "hbal", "hroller"]
    assert values(["htools", "hbal"], "--evac") == ["--evac-mode"]
    assert values(["htools", "hspace"], "--disk-t") == ["--disk-template"]


@pytest.mark.parametrize(
    ("before", "word", "expected"),
    [
        (["plan", "-s"], "s", {"ssh://", "snapshot:", "sim:"}),
        (["plan", f"{POLICY}", "-f"], "m", {"markdown"}),
        (["plan", f"{POLICY}"], "--format=m", {"--format=markdown"}),
        (["plan", f"{POLICY}", "--allow"], "no-s", {"no-shrink", "no-surprise"}),
        (["plan", "-p", f"{POLICY}", "--allow"], "disks", {"disks-stay"}),
        (["apply", "plan.json", "--to"], "", {"local:", "ssh://", "rapi://"}),
        (["capacity", f"{POLICY}", "-g"], "s", {"shared"}),
        (["capacity", "-s", f"snapshot:{SNAPSHOT}", "-g"], "de", {"dedicated", "default"}),
        (["capacity", "-t"], "dr", {"drbd"}),
        (["capacity", "--weight"], "n1", {"n1_cnt="}),
        (["place", "-p", f"{POLICY}"], "hal", {"half"}),
        (["place", "-p", f"{POLICY}", "half"], "group=sh", {"group=shared"}),
        (["place", "-s", f"snapshot:{SNAPSHOT}"], "nodes=node1", {"nodes=node1.example.org"}),
        (["place"], "mem", {"memory="}),
        (["plan", f"{POLICY}", "--only"], "group/s", {"group/shared"}),
        (
            ["evacuate", "-s", f"snapshot:{SNAPSHOT}"],
            "node1.example.org,node2",
            {"node1.example.org,node2.example.org"},
        ),
        (["place", "-p", f"{POLICY}"], "", {"full", "half", "quarter", "large", "small", *(f"{key}=" for key in KEYS)}),
        (["suggest", "--bounds"], "", {"fixed", "ranges"}),
        (["suggest", "--sizes"], "full,h", {"full,half"}),
        (["check", "--select"], "spec-over", {"spec-overlap"}),
        (["check", "--ignore"], "GP101,spec-over", {"GP101,spec-overlap"}),
        (["check", "--severity"], "spec-overlap=w", {"spec-overlap=warning"}),
        (["check", "--fail-on"], "n", {"never"}),
        (["schema"], "Node", {"NodeGroup", "NodeSet"}),
        (["explain"], "spec-over", {"spec-overlap"}),
        (["explain"], "disks-s", {"disks-stay"}),
        (["explain"], "reserved_l", {"reserved_lvs"}),
        (["explain"], "ipolicy.st", {"ipolicy.std", *(f"ipolicy.std.{key}" for key in SPEC_PARAMETERS)}),
        (["size", "-p", f"{POLICY}", "--want"], "10x la", {"10x large"}),
        (["size", "-p", f"{POLICY}", "--want"], "10x memory=4G d", {"10x memory=4G disk="}),
        (["capacity", "-p", f"{POLICY}", "--with"], "10x memory=4G la", set()),
        (["capacity", "-p", f"{POLICY}", "--with"], "10x large in s", {"10x large in shared"}),
        (["capacity", "-s", f"snapshot:{SNAPSHOT}", "--with"], "2x like:node1", {"2x like:node1.example.org"}),
        (["size", "-s", f"snapshot:{SNAPSHOT}", "--like"], "node1", {"node1.example.org"}),
        (["completion"], "", set(SHELLS)),
        (["plan"], "pol", {FILES}),
        (["plan", "-s"], "snapshot:pol", {FILES}),
        (["plan", "--save"], "", {FILES}),
        (["plan", "-s"], "ssh://h", set()),
        (["plan", "--max-node-failures"], "", set()),
    ],
)
def test_values_of_options_and_arguments(before: list[str], word: str, expected: set[str]) -> None:
    assert set(values(before, word)) == expected


def test_the_policy_is_that_of_the_directory_or_the_state_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(POLICY)
    assert set(values(["plan", "--allow"], "no-")) == {"no-shrink", "no-surprise"}
    monkeypatch.chdir(tmp_path)
    assert values(["plan", "--allow"], "no-") == []
    monkeypatch.setenv("GPOLICY_STATE", f"snapshot:{SNAPSHOT}")
    assert values(["capacity", "-g"], "def") == ["default"]


BROKEN = {
    "a tab": b"gpolicy: v1\nkind: NodeGroup\nname: gold\n---\ngpolicy: v1\n\tkind: x\n",
    "not UTF-8": b"gpolicy: v1\nkind: NodeGroup\nname: \xff\n",
    "another shape": b"gpolicy: v1\nkind: NodeGroup\nname: [gold]\nipolicy: 3\nguards: {}\n",
    "a list": b"- gpolicy\n",
    "control characters": b'gpolicy: v1\nkind: NodeGroup\nname: "a\\e[31m\\n@files"\n',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_broken_policies_are_silent(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_bytes(text)
    for line in ("gpolicy capacity -g ", "gpolicy place ", "gpolicy plan --allow ", "gpolicy test -k ", "gpolicy x '"):
        for shell in SHELLS:
            done = gpolicy("__complete", shell, line, "", cwd=tmp_path, env={"GPOLICY_STATE": "snapshot:p.yaml"})
            assert (done.returncode, done.stderr) == (0, "")
            assert "\x1b" not in done.stdout
            assert FILES not in done.stdout or "NodeGroup" not in done.stdout
    gold = gpolicy("__complete", "bash", "gpolicy capacity -g ", "", cwd=tmp_path).stdout
    assert gold == ("gold\n" if b"\t" in text else "")


def test_a_large_directory_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = "gpolicy: v1\nkind: NodeGroup\nname: group{}\n---\n"
    for number in range(20):
        (tmp_path / f"{number:02}.yaml").write_text("".join(document.format(number) for _ in range(200)))
    monkeypatch.setattr("gpolicy.cli.completing._SECONDS", 0.0)
    assert values(["capacity", f"{tmp_path}", "-g"]) == []


# --- the shells themselves -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory, warm_python: Path) -> str:
    """A search path on which `gpolicy` is this one."""
    bin_directory = tmp_path_factory.mktemp("bin")
    program = bin_directory / "gpolicy"
    program.write_text(f'#!/bin/sh\nexec "{warm_python}" -I -m gpolicy "$@"\n')
    program.chmod(0o755)
    return f"{bin_directory}{os.pathsep}{os.environ['PATH']}"


def _shell(name: str, *arguments: str, path: str, stdin: str = "") -> str:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run(
        [name, *arguments], input=stdin, env={"PATH": path, "HOME": path.partition(os.pathsep)[0], "TERM": "dumb"},
        cwd=ROOT / "policies", capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gpolicy", "sna"], ["snapshot"]),
        (["gpolicy", "plan", "two-groups", "--allow", "no-s"], ["no-surprise", "no-shrink"]),
        (["gpolicy", "plan", "-s", "snap"], ["compopt -o nospace", "snapshot:"]),
        (["gpolicy", "plan", "-s", "snapshot", ":", "two"], ["compopt -o default"]),
        (["gpolicy", "plan", "-s", "snapshot", ":"], ["compopt -o default"]),
        (["gpolicy", "place", "-p", "two-groups", "group", "=", "sh"], ["shared"]),
        (["gpolicy", "plan", "--format", "=", "mark"], ["markdown"]),
        (["gpolicy", "test", "two-groups", "-k", "a\\ half\\ fits"], []),
    ],
)
def test_bash(words: list[str], expected: list[str], path: str) -> None:
    line = ""
    for word in words:  # as they were typed: `:` and `=` without blanks around them
        line += word if not line or word in ":=" or line[-1] in ":=" else f" {word}"
    said = _shell("bash", "--norc", "-c", _BASH, "bash", line, *words, path=path)
    assert sorted(filter(None, said.splitlines())) == sorted(expected)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gpolicy sna", ["snapshot"]),
        ("gpolicy plan two-groups --allow no-s", ["no-shrink", "no-surprise"]),
        ("gpolicy plan -s snap", ["snapshot:"]),
        ("gpolicy plan -s snapshot:two-groups.s", ["snapshot:two-groups.snapshot.json"]),
        ("gpolicy place -p two-groups group=sh", ["group=shared"]),
        ("gpolicy check two-groups --select spec-over", ["spec-overlap"]),
    ],
)
def test_fish(line: str, expected: list[str], path: str) -> None:
    said = _shell("fish", "--no-config", "-c", f"gpolicy completion fish | source; complete -C '{line}'", path=path)
    assert sorted(item.split("\t")[0] for item in said.splitlines()) == expected


def _typed(shell: list[str], load: str, lines: Iterable[str], path: str) -> list[str]:
    """Type lines on a terminal, with the tabulator behind each, and return the lines as the shell made them."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ROOT / "policies")
        environment = {"PATH": path, "HOME": path.partition(os.pathsep)[0], "TERM": "dumb", "PS1": "> "}
        os.execvpe(shell[0], shell, environment)  # noqa: S606 (a shell is what is asked for)
    try:
        os.write(terminal, f"{load}\n".encode())
        return [_completed(terminal, line) for line in lines]
    finally:
        os.close(terminal)
        os.waitpid(child, 0)


def _completed(terminal: int, line: str) -> str:
    """Type a line and the tabulator; make what becomes of it the argument of an echo, and return that."""
    os.write(terminal, f"{line}\t\x01echo @BEGIN@\x05@END@\n".encode())
    said = ""
    for piece in written_to(terminal):
        said += piece.decode(errors="replace")
        if found := re.search(r"[\r\n]@BEGIN@(.*?)@END@", said):
            return found[1].strip().removesuffix("/")  # which zsh takes back
    raise AssertionError(said)


TYPED = {
    "gpolicy sna": "gpolicy snapshot",
    "gpolicy plan -s snap": "gpolicy plan -s snapshot:",
    "gpolicy plan -s snapshot:two-groups.s": "gpolicy plan -s snapshot:two-groups.snapshot.json",
    "gpolicy plan two-groups --allow no-sh": "gpolicy plan two-groups --allow no-shrink",
    "gpolicy place -p two-groups group=sh": "gpolicy place -p two-groups group=shared",
    "gpolicy plan --format=mark": "gpolicy plan --format=markdown",
    "gpolicy check two-groups/gr": "gpolicy check two-groups/groups",
}


def test_typed_in_bash(path: str) -> None:
    load = 'eval "$(gpolicy completion bash)"'
    assert _typed(["bash", "--norc", "-i"], load, TYPED, path) == list(TYPED.values())


def test_typed_in_zsh(path: str) -> None:
    load = 'bindkey -e; autoload -Uz compinit; compinit -D -u; eval "$(gpolicy completion zsh)"'
    assert _typed(["zsh", "-f", "-i"], load, TYPED, path) == list(TYPED.values())


def test_the_scripts_are_sound(path: str) -> None:
    for shell, check in (("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")):
        script = gpolicy("completion", shell)
        assert script.returncode == 0
        if shutil.which(shell):
            _shell(shell, check, path=path, stdin=script.stdout)
    assert gpolicy("completion", "bsh").stderr.endswith("Did you mean `bash`?\n")
