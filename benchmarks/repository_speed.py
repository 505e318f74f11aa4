"""Time runs over a whole repository of many clusters, beside the same verb about one of them, in one run.

Run `scripts/venv dev && .venv/bin/python benchmarks/repository_speed.py [RUNS]`. `check` is measured on the repository
of `large_repository.py`: 500 clusters with 40 groups each on one shared base. `plan --all` is measured on 50 policies
with the recorded cluster of five nodes as their snapshot. All are whole processes, by turns. Figures are seconds of the
processor (of the process and those that it starts), seconds by the clock, and the memory of the largest process. The
aim for `check` is 4 seconds by the clock on two processors; for `plan`, that one of many clusters takes no more of the
processor than a plan of it alone.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import checkout  # noqa: F401
from large_repository import CLUSTERS, GROUPS, write_repository
from measuring import Run, run
from plan_impact import recorded, tighten

from gpolicy.adopt.adopting import adopt
from gpolicy.cluster.snapshot import write_snapshot
from gpolicy.writing.new_files import write_files

PLANS = 50
AIM_CLOCK_SECONDS = 4.0


@dataclass
class Measured:
    """A command in a directory, about so many clusters, and its runs."""

    title: str
    directory: Path
    arguments: list[str]
    clusters: int
    runs: list[Run] = field(default_factory=list)

    def run(self) -> None:
        command = [sys.executable, "-m", "gpolicy", *self.arguments]
        self.runs.append(run(command, self.directory, codes=(0, 1)))  # a plan may be unsafe


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        many, plans = directory / "many", directory / "plans"
        for tree in (many, plans):
            (tree / ".git").mkdir(parents=True)
            (tree / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
        write_repository(many)
        _write_plans(plans)
        rows = [
            Measured("check, one cluster", many, ["check", "clusters/c0001"], 1),
            Measured(f"check, {CLUSTERS} clusters", many, ["check"], CLUSTERS),
            Measured("plan, one cluster", plans, ["plan", "--label", "name=c01"], 1),
            Measured(f"plan, {PLANS} clusters", plans, ["plan", "--all", "--jobs", "2"], PLANS),
        ]
        for _ in range(runs):
            for row in rows:
                row.run()
    print(f"{CLUSTERS * GROUPS:,} groups; {runs} runs by turns, {len(os.sched_getaffinity(0))} processors")
    print(f"{'medians':24} {'processor':>10} {'a cluster':>10} {'clock':>8} {'memory':>9}")
    for row in rows:
        middle, clock = (statistics.median(getattr(run, name) for run in row.runs) for name in ("processor", "clock"))
        most = max(run.memory for run in row.runs)
        print(f"{row.title:24} {middle:9.2f}s {middle / row.clusters:9.3f}s {clock:7.2f}s {most:5.0f} MiB")
    clock = statistics.median(run.clock for run in rows[1].runs)
    print(f"aim: {AIM_CLOCK_SECONDS:g} s by the clock for all; {'met' if clock < AIM_CLOCK_SECONDS else 'missed'}")
    return 0


def _write_plans(directory: Path) -> None:
    """Write policies that change the recorded cluster, all with its snapshot."""
    write_snapshot(recorded(), directory / "recorded.json")
    tables = []
    for number in range(PLANS):
        name = f"c{number:02}"
        write_files(adopt(recorded()).files, directory / name)
        tighten(directory / name)
        tables.append(f'[clusters.{name}]\npolicy = "{name}"\nstate = "snapshot:recorded.json"\n')
    (directory / "gpolicy.toml").write_text("\n".join(tables), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
