"""Time runs over a whole repository of many clusters, in one run.

Run `scripts/venv dev && .venv/bin/python benchmarks/repository_speed.py [CLUSTERS]`. The repository is that of
`large_repository.py`, 500 clusters on one shared base with a snapshot of each, in git. All are whole processes. Figures
are seconds of the processor (of the process and those that it starts), seconds by the clock, and the memory of the
largest process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import checkout  # noqa: F401
from large_repository import CLUSTERS, GROUPS, write_repository, write_snapshots
from measuring import run

CHANGED = 50
JOBS = ("--jobs", str(len(os.sched_getaffinity(0))))


def main() -> int:
    clusters = int(sys.argv[1]) if len(sys.argv) > 1 else CLUSTERS
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_repository(directory, clusters)
        write_snapshots(directory, clusters)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "all"]):
            who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
            subprocess.run(["git", *who, *words], cwd=directory, check=True)
        print(f"{clusters} clusters, {GROUPS} groups each; {JOBS[1]} processors")
        print(f"{'command':44} {'processor':>10} {'a cluster':>10} {'clock':>8} {'memory':>9}")
        _measure(directory, clusters, "check", ".")
        _measure(directory, clusters, "check", "--all", *JOBS)
        _measure(directory, clusters, "plan", "--all", *JOBS)
        _change(directory, 1)
        _measure(directory, clusters, "check", "--all", "--changed-since", "HEAD", *JOBS)
        _change(directory, min(CHANGED, clusters))
        _measure(directory, clusters, "plan", "--all", "--save", "plans", *JOBS)
    return 0


def _change(directory: Path, number: int) -> None:
    """Lower a value in so many clusters."""
    for home in sorted((directory / "clusters").iterdir())[:number]:
        file = home / "groups.yaml"
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("{spindle-ratio: 24}", "{spindle-ratio: 20}", 1), encoding="utf-8")


def _measure(directory: Path, clusters: int, *words: str) -> None:
    found = run([sys.executable, "-m", "gpolicy", *words], directory, codes=(0, 1))
    figures = f"{found.processor:9.2f}s {found.processor / clusters:9.3f}s {found.clock:7.2f}s {found.memory:5.0f} MiB"
    print(f"{' '.join(words):44} {figures}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
