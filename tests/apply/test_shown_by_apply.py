"""What `gpolicy apply` shows on a terminal of a plan and a cluster that hold control characters in their texts."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apply import pretend_rapi
from tests.apply.pretend_ganeti import fails, then
from tests.apply.pretend_rapi import Server
from tests.apply.test_apply_verb import Bench, certificate  # noqa: F401 (a fixture)
from tests.cli.command_line import ROOT, written_to

PAYLOAD = "\x1b[35mq\x1b]0;t\x07\x9b2J\x7f\u202e\u2066\u200b\u2028\x85\r\t\nforged"
OURS = re.compile(rb"\x1b\[(?:[0-9;]*m|G|K)")


@pytest.fixture
def bench(tmp_path: Path, certificate: Path) -> Iterator[Bench]:  # noqa: F811
    with pretend_rapi.serve(certificate) as server:
        made = Bench(tmp_path, server, certificate)
        yield made
        made.lock().unlink(missing_ok=True)


def on_a_terminal(bench: Bench, *more: str) -> tuple[int, str]:
    """Return the exit code, and what was written without the paint that is ours."""
    ours, theirs = pty.openpty()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "TERM": "xterm",
        "LC_ALL": "C.UTF-8",
        **bench.env,
    }
    with subprocess.Popen(
        [sys.executable, "-m", "gpolicy", *bench.call(*more)],
        env=environment, stdin=theirs, stdout=theirs, stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        said, answered = b"", False
        for piece in written_to(ours):
            said += piece
            if b"yes is taken" in said and not answered:
                os.write(ours, b"yes\n")
                answered = True
        code = process.wait(60)
    os.close(ours)
    assert not re.search(rb"\x1b\[35m", said)
    return code, OURS.sub(b"", said).decode().replace("\r\n", "\n")


def assert_clean(said: str) -> None:
    assert {letter for letter in said if not letter.isprintable()} <= {"\n"}, said
    assert not [line for line in said.split("\n") if line.startswith("forged")]


def test_messages_of_jobs_and_refusals(bench: Bench) -> None:
    def talk(there: object) -> None:
        server.ganeti.jobs[-1].log.append(f" - WARNING: {PAYLOAD}")

    server: Server = bench.server
    server.answers = [(500, {"code": 500, "message": f"Queue drained {PAYLOAD}", "explain": PAYLOAD})]
    server.ganeti.mishaps = [then(talk), fails(f"cursed {PAYLOAD}", "OpPrereqError")]
    _, said = on_a_terminal(bench)
    assert "WARNING: \\x1b[35mq" in said
    assert "cursed" in said
    assert_clean(said)
    assert_clean(on_a_terminal(bench, "--resume")[1])
    assert_clean(on_a_terminal(bench, "--rollback")[1])


@pytest.mark.parametrize("key", ["guards", "unreadable", "steps", "changes", "notes", "source", "snapshot", "cluster"])
def test_texts_of_the_plan(bench: Bench, key: str) -> None:
    plan = json.loads(bench.plan.read_text())

    def evil(tree: object, name: str = "") -> object:
        if isinstance(tree, dict):
            return {word: evil(value, word) for word, value in tree.items()}
        if isinstance(tree, list):
            return [evil(value, name) for value in tree]
        return f"{tree}{PAYLOAD}" if isinstance(tree, str) and name in TEXTS else tree

    plan[key] = evil(plan[key], key) if key in plan else None
    bench.plan.write_text(json.dumps(plan))
    _, said = on_a_terminal(bench)
    assert said
    assert_clean(said)


TEXTS = {"message", "title", "name", "reason", "not_restored", "notes", "source", "taken_at", "cluster", "takes_effect"}
