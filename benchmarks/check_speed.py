"""Time `gpolicy check` on 10,000 lines, side by side with yamllint and check-jsonschema, as ratios in one run.

Run `scripts/venv dev && .venv/bin/python benchmarks/check_speed.py`, or any Python that has the dependencies: the
checkout itself need not be installed, and a tool that is not there is left out. All are whole processes, as a user
waits for them, by turns; the figures are seconds of processor time, which another job on the machine disturbs least,
and of the clock. yamllint reads the same file and knows nothing of Ganeti. check-jsonschema reads the same documents
as one JSON list (it takes one document a file), so it has no YAML to read, and finds no place.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import checkout  # noqa: F401
from measuring import run
from start_up import CLUSTER, GROUP, one_document_each

LINES = 10_000
RUNS = 5


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        policy = directory / "policy.yaml"
        text = CLUSTER + "".join(GROUP.format(number=number) for number in range(LINES // GROUP.count("\n")))
        policy.write_text(text, encoding="utf-8")
        check = [sys.executable, "-m", "gpolicy", "check", str(policy)]
        commands = {"gpolicy check": check, "gpolicy check --format sarif": [*check, "--format", "sarif"]}
        peers = {
            "yamllint (rules relaxed)": [sys.executable, "-m", "yamllint", "-d", "relaxed", str(policy)],
            "check-jsonschema (as JSON)": one_document_each([policy], directory),
        }
        commands |= {title: command for title, command in peers.items() if find_spec(command[2])}
        turns = [{title: run(command) for title, command in commands.items()} for _ in range(RUNS)]
        print(
            f"{text.count(chr(10)):,} lines, {len(text):,} bytes; {RUNS} runs by turns, Python {sys.version.split()[0]}"
        )
        print(f"{'':30} {'processor, best':>16} {'median':>8} {'clock, best':>12} {'median':>8}  to gpolicy check")
        ours = statistics.median(turn["gpolicy check"].processor for turn in turns)
        for title in commands:
            processor, clock = zip(*((turn[title].processor, turn[title].clock) for turn in turns), strict=True)
            middle = statistics.median(processor)
            figures = f"{min(processor):15.2f}s {middle:7.2f}s {min(clock):11.2f}s"
            print(f"{title:30} {figures} {statistics.median(clock):7.2f}s {middle / ours:9.1f}x", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
