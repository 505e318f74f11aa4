"""Exit codes of the command line; every error is one clear line."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from gpolicy.cli.running import run
from tests.cli.command_line import CONFIG, GOOD, HEEDING, ROOT, STATE, gpolicy, gpolicy_child, policy, written_to

FINE, FINDINGS, CHANGES, COULD_NOT_RUN = range(4)
CHANGE = "candidate_pool_size: 3\n"
UNSAFE = "master_netmask: 24\n"


def schema(name: str) -> jsonschema.Draft7Validator:
    written = json.loads((ROOT / "schemas" / "output" / name).read_text())
    jsonschema.Draft7Validator.check_schema(written)
    return jsonschema.Draft7Validator(written)


def one_line(text: str) -> bool:
    """Return whether standard error is one line, and at most one more with a hint."""
    lines = text.splitlines()
    return (
        1 <= len(lines) <= 2 and lines[0].startswith("gpolicy: ") and all(line.startswith("  ") for line in lines[1:])
    )


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("", [], FINE),
        ("", ["--detailed-exitcode"], FINE),
        (CHANGE, [], FINE),
        (CHANGE, ["--detailed-exitcode"], CHANGES),
        (UNSAFE, ["--detailed-exitcode"], FINDINGS),
        (UNSAFE, ["--allow", "master-network"], FINE),
        (UNSAFE, ["--allow", "master-network", "--detailed-exitcode"], CHANGES),
        (UNSAFE, ["--allow", "disks-stay"], FINDINGS),
        (UNSAFE, ["--allow", "bogus"], COULD_NOT_RUN),
        ("---\ngpolicy: v1\nkind: NodeSet\nname: s\nnodes: [nonode]\nndparams: {ovs: true}\n", [], FINDINGS),
        ("bogus: 1\n", [], FINDINGS),
    ],
)
def test_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, options: list[str], code: int) -> None:
    assert run(["plan", str(policy(tmp_path, text)), "--state", STATE, *options]) == code
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", CHANGE, UNSAFE, "---\ngpolicy: v1\nkind: NodeGroup\nname: new\ntags: [a]\n"])
def test_the_json_of_a_plan_is_as_its_schema_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    out = tmp_path / "plan.json"
    run(["plan", str(policy(tmp_path, text)), "--state", STATE, "--format", "json", "--save", str(out)])
    printed = capsys.readouterr().out
    kept = json.loads(out.read_text(encoding="utf-8"))
    schema("plan.json").validate(kept)
    assert kept.pop("answer")["verb"] == "plan"
    assert kept == json.loads(printed)
    schema("plan.json").validate(json.loads(printed))
    assert out.stat().st_mode & 0o777 == 0o600


def test_the_schema_of_plans_refuses_other_documents() -> None:
    validator = schema("plan.json")
    assert not validator.is_valid({})
    assert not validator.is_valid({"format_version": "2.0"})


@pytest.mark.parametrize(("text", "code"), [("", FINE), ("bogus: 1\n", FINDINGS)])
def test_check(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int) -> None:
    assert run(["check", str(policy(tmp_path, text)), "--format", "json"]) == code
    schema("check.json").validate(json.loads(capsys.readouterr().out))


def test_render(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made, script = tmp_path / "plan.json", tmp_path / "script.sh"
    run(["plan", str(policy(tmp_path, CHANGE)), "-s", STATE, "--save", str(made)])
    capsys.readouterr()
    assert run(["render", str(made)]) == FINE
    assert "gnt-cluster modify --candidate-pool-size=3" in capsys.readouterr().out
    assert run(["render", str(made), "--rollback", "--script", str(script)]) == FINE
    assert "gnt-cluster modify --candidate-pool-size=2" in script.read_text() or "undo" in script.read_text()
    assert script.stat().st_mode & 0o777 == 0o700
    run(["plan", str(policy(tmp_path, UNSAFE)), "-s", STATE, "--save", str(made)])
    capsys.readouterr()
    assert run(["render", str(made), "--script", str(tmp_path / "unsafe.sh")]) == FINDINGS
    assert one_line(capsys.readouterr().err)
    assert not (tmp_path / "unsafe.sh").exists()


BAD_POLICIES: dict[str, bytes] = {
    "binary": b"\x7fELF\x00\x01\xff\xfe",
    "not utf-8": GOOD.encode() + b"tags: [\xff]\n",
    "wrong kind": b"gpolicy: v1\nkind: Cloud\nname: x\n",
    "no kind": b"a: 1\n",
    "a list": b"- 1\n",
    "cyclic extends": b"gpolicy: v1\nkind: NodeGroup\nname: a\nextends: b\n---\n"
    b"gpolicy: v1\nkind: NodeGroup\nname: b\nextends: a\n",
    "nan": GOOD.encode() + b"ipolicy: {vcpu-ratio: .nan}\n",
    "infinite": GOOD.encode() + b"ipolicy: {vcpu-ratio: .inf}\n",
    "newline in a name": b'gpolicy: v1\nkind: NodeGroup\nname: "a\\nb"\n',
    "half a mapping": GOOD.encode() + b"ipolicy: {vcpu-ratio: ",
    "deep": b"[" * 100_000,
    "null byte": b"gpolicy: v1\0\n",
    "escape": b'gpolicy: v1\nkind: NodeGroup\nname: "\\e[31m"\n',
}


@pytest.mark.parametrize("bad", BAD_POLICIES.values(), ids=BAD_POLICIES)
@pytest.mark.parametrize("verb", ["check", "plan", "show"])
def test_bad_policies_are_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str], bad: bytes, verb: str) -> None:
    file = tmp_path / "p.yaml"
    file.write_bytes(bad)
    out = tmp_path / "out.json"
    more = ["--state", STATE, "--save", str(out)] if verb == "plan" else []
    code = run([verb, str(file), *more])
    said = capsys.readouterr()
    assert code in (FINDINGS, COULD_NOT_RUN)
    assert "Traceback" not in said.err
    assert said.err or said.out
    assert "\x1b" not in said.err + said.out
    assert not out.exists()


def test_a_name_with_quotes_is_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = policy(tmp_path, '---\ngpolicy: v1\nkind: NodeGroup\nname: "o\'neil $(x)"\n')
    out = tmp_path / "plan.json"
    assert run(["plan", str(file), "--state", STATE, "--save", str(out)]) == FINE
    assert run(["render", str(out)]) == FINE
    assert "gnt-group add 'o'\"'\"'neil $(x)'" in capsys.readouterr().out


@pytest.mark.parametrize(
    "state",
    [
        *("config:{dir}/cut", "config:{dir}", "config:{dir}/none", "config:{dir}/binary", "config:{dir}/empty"),
        *("snapshot:{dir}/cut", "text:{dir}/binary", "bogus:x", "bogus", "", "config:", "rapi://", "sim:", "ssh://"),
    ],
)
def test_bad_states_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], state: str) -> None:
    (tmp_path / "cut").write_bytes(CONFIG.read_bytes()[:5000])
    (tmp_path / "binary").write_bytes(b"\x7fELF\x00\xff")
    (tmp_path / "empty").write_bytes(b"")
    out = tmp_path / "out"
    source = state.format(dir=tmp_path)
    assert run(["plan", str(policy(tmp_path)), "--state", source, "--save", str(out)]) == COULD_NOT_RUN
    said = capsys.readouterr()
    assert one_line(said.err)
    assert said.out == ""
    assert run(["snapshot", "--state", source, "--save", str(out)]) == COULD_NOT_RUN
    assert not out.exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ["bogus"],
        ["plan", "--bogus"],
        ["plan"],
        ["check", "--format", "xml"],
        ["check", "/nonexistent"],
        ["check", "a\nb\x1b[31m"],
        ["render"],
        ["render", "/nonexistent"],
        ["render", "/"],
        ["explain", "GP999"],
        ["schema", "Cloud"],
        ["schema", "--save", "/dev/null"],
        ["snapshot", "--state", STATE, "--save", "/nonexistent/x"],
        ["snapshot", "--state", STATE, "--save", "/"],
        ["adopt", "--state", STATE, "--save", "/dev/null/x"],
        ["init", "/dev/null"],
    ],
)
def test_bad_command_lines_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert run(arguments) == COULD_NOT_RUN
    said = capsys.readouterr()
    assert one_line(said.err), said.err
    assert "\x1b" not in said.err


def test_no_arguments_show_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == COULD_NOT_RUN
    assert "Usage: gpolicy" in capsys.readouterr().err


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    file = policy(tmp_path, CHANGE)
    full = subprocess.run(
        ["sh", "-c", '"$0" -m gpolicy plan "$1" --state "$2" >/dev/full', sys.executable, str(file), STATE],
        env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (full.returncode, one_line(full.stderr)) == (COULD_NOT_RUN, True)
    closed = subprocess.run(
        ["sh", "-c", '"$0" -m gpolicy plan "$1" -s "$2" --detailed-exitcode >&-', sys.executable, str(file), STATE],
        env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (closed.returncode, closed.stderr) == (CHANGES, "")


@pytest.mark.parametrize("words", [["explain", "GP201"], ["--version"]])
def test_a_reader_that_closes_the_pipe(words: list[str]) -> None:
    call = [sys.executable, "-m", "gpolicy", *words]
    with subprocess.Popen(
        call, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=30) == FINE


def test_an_interrupt_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        state = f"rapi://127.0.0.1:{silent.getsockname()[1]}"
        call = [sys.executable, "-c", HEEDING, "snapshot", "--state", state, "--save", str(tmp_path / "out")]
        with subprocess.Popen(call, env={"PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE, text=True) as process:
            connection, _ = silent.accept()
            with connection:
                time.sleep(0.1)
                process.send_signal(signal.SIGINT)
                _, said = process.communicate(timeout=30)
    assert (process.returncode, one_line(said)) == (130, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_locale_works(tmp_path: Path, encoding: str) -> None:
    plan = ("plan", policy(tmp_path, CHANGE), "--state", STATE, "--no-impact")
    done = gpolicy_child(*plan, env={"PYTHONIOENCODING": encoding})
    assert (done.returncode, "→" in done.stdout) == (FINE, True)


@pytest.mark.parametrize(
    ("env", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": ""}, True)]
)
def test_colour_is_for_terminals(tmp_path: Path, env: dict[str, str], coloured: bool, warm_python: Path) -> None:
    import os
    import pty

    file = policy(tmp_path, CHANGE)
    ours, theirs = pty.openpty()
    environment = {"PYTHONPATH": str(ROOT), "TERM": "xterm", "GPOLICY_PAGER": "", **env}
    call = [str(warm_python), "-I", "-m", "gpolicy", "plan", str(file), "--state", STATE]
    with subprocess.Popen(call, env=environment, stdout=theirs, stderr=subprocess.DEVNULL):
        os.close(theirs)
        said = b"".join(written_to(ours))
    os.close(ours)
    assert (b"\x1b[" in said) is coloured
    assert b"candidate_pool_size" in said
    assert "\x1b" not in gpolicy("plan", file, "--state", STATE, env={"TERM": "xterm"}).stdout


def test_too_little_memory_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "lists.json").write_text("[" + "[]," * 4_000_000 + "[]]")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (300 * 2**20, 300 * 2**20));"
        "from gpolicy.cli.running import run; sys.exit(run(['capacity', '-s', 'snapshot:lists.json']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (COULD_NOT_RUN, "gpolicy: there is not enough memory for this\n")
