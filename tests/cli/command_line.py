"""The real command line, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
CONFIG = ROOT / "tests" / "data" / "clusters" / "full" / "config.data"
STATE = f"config:{CONFIG}"
GOOD = "gpolicy: v1\nkind: Cluster\nname: cluster\nganeti_version: '3.0'\n"
FOUR_STEPS = """gpolicy: v1
kind: Cluster
name: cluster
ganeti_version: '3.0'
ipolicy: {vcpu-ratio: 7}
---
gpolicy: v1
kind: NodeGroup
name: platinum
alloc_policy: last_resort
nodes: [node1]
---
gpolicy: v1
kind: NodeSet
name: n
nodes: [node2]
ndparams: {spindle_count: 9}
"""
"""A policy with a change of the cluster, a new group, a move and a change of a node."""
HEEDING = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "from gpolicy.__main__ import main; sys.exit(main())"
)
"""gpolicy that can be interrupted, also where the tests are a background job and interrupts are ignored."""


def gpolicy(
    *arguments: str | Path, env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run gpolicy and return what it did; no run may show a traceback."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": "/nonexistent", **(env or {})}
    done = subprocess.run(
        [sys.executable, "-m", "gpolicy", *map(str, arguments)],
        env=environment,
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="surrogateescape",
        check=False,
        timeout=60,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def written_to(terminal: int) -> Iterator[bytes]:
    """Yield what is written to a pseudo-terminal, until nobody is left who could write to it."""
    with suppress(OSError):  # how Linux says so
        while piece := os.read(terminal, 65536):
            yield piece


def policy(directory: Path, text: str = "", name: str = "policy.yaml") -> Path:
    file = directory / name
    file.write_text(GOOD + text, encoding="utf-8")
    return file
