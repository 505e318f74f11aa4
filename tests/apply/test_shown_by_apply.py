"""What `gpolicy apply` shows on a terminal of a plan and a cluster that hold control characters in their texts."""

from __future__ import annotations

import json
import re

import pytest

from tests.apply.bench import Bench
from tests.apply.pretend_ganeti import fails, then
from tests.apply.pretend_rapi import Server
from tests.apply.same_process import gpolicy

PAYLOAD = "\x1b[35mq\x1b]0;t\x07\x9b2J\x7f\u202e\u2066\u200b\u2028\x85\r\t\nforged"
OURS = re.compile(r"\x1b\[(?:[0-9;]*m|G|K)")


def on_a_terminal(bench: Bench, *more: str) -> str:
    """Return what was written without the paint that is ours."""
    env = {"TERM": "xterm", "LC_ALL": "C.UTF-8", **bench.env}
    said = gpolicy(*bench.call(*more), env=env, cwd=bench.directory, answer="yes").stdout
    assert "\x1b[35m" not in said
    return OURS.sub("", said)


def assert_clean(said: str) -> None:
    assert {letter for letter in said if not letter.isprintable()} <= {"\n"}, said
    assert not [line for line in said.split("\n") if line.startswith("forged")]


def test_messages_of_jobs_and_refusals(bench: Bench) -> None:
    def talk(there: object) -> None:
        server.ganeti.jobs[-1].log.append(f" - WARNING: {PAYLOAD}")

    server: Server = bench.server
    server.answers = [(500, {"code": 500, "message": f"Queue drained {PAYLOAD}", "explain": PAYLOAD})]
    server.ganeti.mishaps = [then(talk), fails(f"cursed {PAYLOAD}", "OpPrereqError")]
    said = on_a_terminal(bench)
    assert "WARNING: \\x1b[35mq" in said
    assert "cursed" in said
    assert_clean(said)
    assert_clean(on_a_terminal(bench, "--resume"))
    assert_clean(on_a_terminal(bench, "--rollback"))


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
    said = on_a_terminal(bench)
    assert said
    assert_clean(said)


TEXTS = {"message", "title", "name", "reason", "not_restored", "notes", "source", "taken_at", "cluster", "takes_effect"}
