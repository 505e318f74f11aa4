"""Time `gpolicy check` on 10,000 lines, side by side with yamllint and check-jsonschema, as ratios in one run.

Run `scripts/venv dev && .venv/bin/python benchmarks/check_speed.py`, or any Python that has the dependencies: the
checkout itself need not be installed, and a tool that is not there is left out. All are whole processes, as a user
waits for them, by turns; the figures are seconds of processor time, which another job on the machine disturbs least,
and of the clock. yamllint reads the same file and knows nothing of Ganeti. check-jsonschema reads the same documents
as one JSON list (it takes one document a file), so it has no YAML to read, and finds no place.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from checkout import ROOT
from start_up import CLUSTER, GROUP, one_document_each

LINES = 10_000
RUNS = 5


@dataclass
class Timed:
    command: list[str]
    processor: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)

    def run(self) -> None:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        start = time.perf_counter()
        done = subprocess.run(self.command, cwd=ROOT, capture_output=True, text=True, check=False)
        self.clock.append(time.perf_counter() - start)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert done.returncode == 0, (self.command, done.stdout[-2000:], done.stderr[-2000:])


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        policy = directory / "policy.yaml"
        text = CLUSTER + "".join(GROUP.format(number=number) for number in range(LINES // GROUP.count("\n")))
        policy.write_text(text, encoding="utf-8")
        check = [sys.executable, "-m", "gpolicy", "check", str(policy)]
        runs = {
            "gpolicy check": Timed(check),
            "gpolicy check --format sarif": Timed([*check, "--format", "sarif"]),
        }
        peers = {
            "yamllint (rules relaxed)": [sys.executable, "-m", "yamllint", "-d", "relaxed", str(policy)],
            "check-jsonschema (as JSON)": one_document_each([policy], directory),
        }
        runs |= {title: Timed(command) for title, command in peers.items() if find_spec(command[2])}
        for _ in range(RUNS):
            for timed in runs.values():
                timed.run()
        print(f"{text.count(chr(10)):,} lines, {len(text):,} bytes; {RUNS} runs by turns, {_machine()}")
        print(f"{'':30} {'processor, best':>16} {'median':>8} {'clock, best':>12} {'median':>8}  to gpolicy check")
        ours = statistics.median(runs["gpolicy check"].processor)
        for title, timed in runs.items():
            middle = statistics.median(timed.processor)
            figures = f"{min(timed.processor):15.2f}s {middle:7.2f}s {min(timed.clock):11.2f}s"
            print(f"{title:30} {figures} {statistics.median(timed.clock):7.2f}s {middle / ours:9.1f}x", flush=True)
    return 0


def _machine() -> str:
    return f"Python {sys.version.split()[0]}"


if __name__ == "__main__":
    sys.exit(main())
