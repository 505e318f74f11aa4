"""Time the search for a remedy: made-up clusters of 100, 200 and 400 nodes (`benchmarks/large_cluster.py`).

Run `scripts/venv dev && .venv/bin/python benchmarks/remedy_speed.py [NODES...]`. Without a policy every second pair of
mirrored instances shares a power feed or has its twin there. Times are seconds of the processor, in this process.
"""

from __future__ import annotations

import sys
import time

import checkout  # noqa: F401
from large_cluster import cluster_of

from gpolicy.cluster.terms import PairNames
from gpolicy.remedy.remedy import find_remedy


def main() -> int:
    print(f"{'nodes':>6} {'instances':>10} {'faults':>7} {'cured':>6} {'moves':>6} {'CPU':>8}")
    for nodes in map(int, sys.argv[1:] or ["100", "200", "400"]):
        state = cluster_of(nodes)
        began = time.process_time()
        report = find_remedy(state, PairNames(), rate=60, tell=lambda _: None)
        took = time.process_time() - began
        numbers = f"{len(state.nodes):6} {len(state.instances):10} {len(report.faults):7} {report.cured:6}"
        print(f"{numbers} {len(report.steps):6} {took:7.2f}s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
