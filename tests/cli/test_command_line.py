"""The ways in which tests run gpolicy: all answer alike, and a run in this process leaves nothing of itself."""

from __future__ import annotations

import gc
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.command_line import GOOD, STATE, environment, gpolicy, gpolicy_child, policy

SETTINGS = """[clusters.one]
policy = "policy.yaml"
state = "snapshot:absent.json"
[clusters.two]
policy = "policy.yaml"
state = "snapshot:absent.json"
"""


def test_this_process_a_child_and_a_warm_python_answer_alike(tmp_path: Path, warm_python: Path) -> None:
    policy(tmp_path, "candidate_pool_size: 3\n")
    (tmp_path / "gpolicy.toml").write_text(SETTINGS)
    variables = {"GPOLICY_STATE": STATE, "SOURCE_DATE_EPOCH": "1767225600"}
    for words, given in (
        (["plan", "policy.yaml", "--no-impact"], ""),  # says on stderr which state it is
        (["plan", "--all", "--jobs", "1", "--snapshots", "absent"], ""),  # each cluster in a process of its own
        (["fmt", "-"], GOOD),
        (["nonsense"], ""),
    ):
        here = gpolicy(*words, env=variables, cwd=tmp_path, stdin=given)
        child = gpolicy_child(*words, env=variables, cwd=tmp_path, stdin=given)
        warm = subprocess.run(
            [warm_python, "-I", "-m", "gpolicy", *words],
            env=environment(variables), cwd=tmp_path, input=given, capture_output=True, text=True, check=False,
        )  # fmt: skip
        answers = {
            (done.returncode, done.stdout, re.sub(r"\([0-9.]+ s\)", "", done.stderr)) for done in (here, child, warm)
        }
        assert len(answers) == 1, answers
        assert here.stdout + here.stderr


def test_a_run_in_this_process_leaves_nothing(tmp_path: Path) -> None:
    def now() -> tuple[object, ...]:
        handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        return dict(os.environ), Path.cwd(), sys.stdin, sys.stdout, sys.stderr, gc.get_threshold(), handlers

    before = now()
    gpolicy("check", policy(tmp_path), env={"GPOLICY_STATE": STATE}, cwd=tmp_path)
    gpolicy("apply", "absent.json", "--to", "local:", "--yes", cwd=tmp_path)
    assert now() == before
