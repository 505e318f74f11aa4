"""Moves beside real hbal's: `remedy --want`, and `evacuate --in-turn`, for clusters of 40, 200 and 1,000 nodes.

    python benchmarks/moves_speed.py [--only '40 nodes'] [--most SECONDS]

The clusters are as full as their N+1 lets them be (`full_cluster`), or half full of instances on shared storage, for
which any node may be the next (`shared_cluster`). hbal may make 20 moves; it would make thousands.
gpolicy ends its search after a minute (`--seconds`). Whole processes are timed (CPU seconds, start-up included), all in
one run. Output is Markdown.
"""

from __future__ import annotations

import random
import sys
from functools import partial
from pathlib import Path

import checkout  # noqa: F401
from allocator_speed import print_rows
from measuring import Run, run

GPOLICY = [sys.executable, "-m", "gpolicy"]
SHARED = "evacuate --in-turn, shared storage"
QUESTIONS = {
    "remedy --want": ["remedy", "--want", "memory=16G vcpus=1 disk=20G template=drbd"],
    "evacuate --in-turn": ["evacuate", "--in-turn"],
    SHARED: ["evacuate", "--in-turn"],
}
HBAL = ["hbal", "-l", "20", "-t"]
POLICY = "128,1,1024,1,1,1|64,1,256,1,1,1;65536,16,1048576,4,8,12|drbd,plain|8.0|64.0"
MEMORY, OWN_MEMORY, DISK, METADATA = 65536, 1024, 2 * 1024 * 1024, 128  # MiB
RESERVE = 17_000  # MiB


def full_cluster(count: int) -> str:
    """Return a cluster of mirrored instances, as text of htools: no node has more memory free than one more takes."""
    rng = random.Random(count)  # noqa: S311 (no secrets here)
    memory, disk, rows = [MEMORY - OWN_MEMORY] * count, [DISK] * count, list[str]()
    while True:
        near = rng.sample(range(count), min(count, 60))
        size, space = rng.choice([2048, 4096, 8192, 16384]), rng.choice([20480, 51200, 102400]) + METADATA
        primary = next((node for node in near if memory[node] - size > RESERVE), None)
        if primary is None:
            break
        mate = rng.choice([node for node in range(count) if node != primary])
        memory[primary] -= size
        for node in (primary, mate):
            disk[node] -= space
        own = f"node{primary}|node{mate}|drbd||1|-|N"
        rows.append(f"inst{len(rows)}|{size}|{space}|1|running|Y|{own}")
    nodes = [
        f"node{no}|{MEMORY}|{OWN_MEMORY}|{memory[no]}|{DISK}|{disk[no]}|32|N|u0|1||N|0|0|1.0" for no in range(count)
    ]
    heads = ["default|u0|preferred||", ""]
    return "\n".join([*heads, *nodes, "", *rows, "", "", f"|{POLICY}", f"default|{POLICY}"]) + "\n"


def shared_cluster(count: int) -> str:
    """Return a cluster of instances on shared storage that take half of each node's memory, as text of htools."""
    rng, rows, nodes = random.Random(count), list[str](), list[str]()  # noqa: S311 (no secrets here)
    for no in range(count):
        memory = MEMORY - OWN_MEMORY
        while memory > MEMORY // 2:
            size = rng.choice([2048, 4096, 8192])
            memory -= size
            rows.append(f"inst{len(rows)}|{size}|20480|1|running|Y|node{no}||rbd||1|-|N")
        nodes.append(f"node{no}|{MEMORY}|{OWN_MEMORY}|{memory}|{DISK}|{DISK}|32|N|u0|1||N|0|0|1.0")
    policy = POLICY.replace("drbd", "rbd")
    return "\n".join(["default|u0|preferred||", "", *nodes, "", *rows, "", "", f"|{policy}", f"default|{policy}", ""])


def row(count: int, question: str, folder: Path, most: float) -> str:
    """Return a row: our time by the processor and the clock, that of hbal, and the ratio."""
    file = folder / f"{count}.data"
    file.write_text(shared_cluster(count) if question == SHARED else full_cluster(count))
    ours = run([*GPOLICY, *QUESTIONS[question], "--state", f"text:{file}"], folder, codes=(0, 1))
    theirs = run([*HBAL, str(file)], folder, most=most)
    cells = [_shown(each) for each in (ours, theirs)]
    ratio = f"{ours.processor / theirs.processor:.1f}"
    return f"| {count:,} nodes, {question} | {cells[0]} | {ours.clock:.1f} s | {cells[1]} | {ratio} |"


def _shown(found: Run) -> str:
    return f"{'' if found.finished else 'over '}{found.processor:.2f} s"


def main() -> int:
    rows = {f"{n} nodes, {each}": partial(row, n, each) for each in QUESTIONS for n in (40, 200, 1000)}
    print_rows(__doc__, "| cluster, question | gpolicy | by the clock | hbal -l 20 | gpolicy / hbal |", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
