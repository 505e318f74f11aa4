"""Run schedules: `simulate.py --seed S` shows one with all that happened, `--seed S --count N` runs N from there on."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from tests.simulator.rollout_simulation import RolloutSimulation
from tests.simulator.simulation import ApplySimulation, Report, simulate

Schedule = Callable[..., Report]


def main() -> int:
    """Run what the command line asks for; exit code 1 if anything did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--count", type=int, default=0, help="how many seeds; without it the one seed is shown in full")
    parser.add_argument("--route", choices=["rapi", "local", "ssh"], help="one way to the cluster only")
    parser.add_argument("--roll-out", action="store_true", help="roll-outs of several clusters")
    parser.add_argument("--shrink", action="store_true", help="leave out all mischief that a violation does not need")
    options = parser.parse_args()
    kind = RolloutSimulation if options.roll_out else ApplySimulation
    schedule = partial(simulate, of=kind, route=options.route)
    if not options.count:
        return _one(schedule, str(options.seed), shrink=options.shrink)
    return _many(schedule, options.seed, options.count)


def _one(schedule: Schedule, seed: str, *, shrink: bool) -> int:
    without: list[int] = []
    report = schedule(seed)
    if shrink and report.violations:
        first = report.violations[0]
        for number in range(1, 9):
            tried = schedule(seed, without=[*without, number])
            if first in tried.violations:
                report, without = tried, [*without, number]
    for line in report.trace:
        sys.stdout.write(line.replace("\x1b", "?") + "\n")
    for text in report.violations:
        sys.stdout.write(f"VIOLATION {text}\n")
    return 1 if report.violations else 0


def _many(schedule: Schedule, first: int, count: int) -> int:
    begun, found = time.process_time(), list[Report]()
    happened, runs, jobs = Counter[str](), 0, 0
    for seed in range(first, first + count):
        report = schedule(str(seed))
        happened.update(report.happened)
        runs, jobs = runs + report.runs, jobs + report.jobs
        if report.violations:
            found.append(report)
            sys.stdout.write(f"seed {seed}: {'; '.join(report.violations)}\n")
            sys.stdout.flush()
    seconds = time.process_time() - begun
    sys.stdout.write(f"{count} schedules from seed {first}: {runs} runs, {jobs} jobs, {seconds:.0f} s of CPU\n")
    for kind, number in happened.most_common():
        sys.stdout.write(f"  {number:8} {kind}\n")
    sys.stdout.write(f"{len(found)} schedules in which something did not hold\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
