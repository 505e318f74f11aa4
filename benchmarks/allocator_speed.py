"""The allocator against the real hspace, side by side in one run, and its growth with the number of nodes.

    python benchmarks/allocator_speed.py              both tables (the real program takes the better part of an hour)
    python benchmarks/allocator_speed.py --most 60    end the real program after a minute (CPU time as a lower bound)
    python benchmarks/allocator_speed.py --curve      only ours, from 10 to 2,000 nodes
    python benchmarks/allocator_speed.py --each       only ours: as hspace counts, and with each placement tested

Whole processes are timed (CPU seconds, start-up included). Output is Markdown.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import checkout  # noqa: F401
from measuring import Run, run

from gpolicy.allocator.cluster_data import Instance
from gpolicy.allocator.compiled_allocation import make_allocator
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.allocator.merge import merge
from gpolicy.allocator.placement import candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.htools.text_format import parse_cluster
from tests.htools.random_requests import document

OURS = [sys.executable, "-c", "import sys; from gpolicy.__main__ import main; sys.exit(main())", "htools"]
MEMORY, DISK, CPUS = 131072, 4194304, 32
PAIRS = (
    ("16384,4,524288,1,1,1", "32768,8,1048576,4,4,4"),
    ("4096,2,131072,1,1,1", "8192,4,262144,4,4,2"),
    ("1024,1,32768,1,1,1", "2048,2,65536,4,4,1"),
)
SIZES = ((16384, 524288, 8), (8192, 262144, 4), (4096, 131072, 2), (2048, 65536, 2))
BIG_SIZES = ((16384, 393216, 4), (24576, 524288, 4), (20480, 262144, 4))


def build(count: int, per_node: float, template: str, *, exclusive: bool = False, full: bool = False) -> str:
    """Return a cluster of `count` nodes with three spec pairs; `full`: most of the memory is in use."""
    rng = random.Random(count)  # noqa: S311 - no secrets here
    sizes = BIG_SIZES if full else SIZES
    memory, disk, spindles = [0] * count, [0] * count, [0] * count
    kept: list[dict[int, int]] = [{} for _ in range(count)]
    rows = []
    for number in range(int(count * per_node)):
        size = rng.choice(sizes)
        primary = min(rng.sample(range(count), min(16 if full else 4, count)), key=lambda node: memory[node])
        others = [node for node in rng.sample(range(count), min(16, count)) if node != primary]
        secondary = min(others, key=lambda node: (kept[node].get(primary, 0), disk[node], memory[node]))
        memory[primary] += size[0]
        disk[primary] += size[1]
        spindles[primary] += 1
        mirrored = template == "drbd"
        if mirrored:
            disk[secondary] += size[1]
            kept[secondary][primary] = kept[secondary].get(primary, 0) + size[0]
        rows.append(
            f"inst{number}.example.com|{size[0]}|{size[1]}|{size[2]}|running|Y|node{primary}.example.com|"
            f"{f'node{secondary}.example.com' if mirrored else ''}|{template}||1|{1 if exclusive else '-'}"
        )
    nodes = [
        f"node{node}.example.com|{MEMORY}|2048|{MEMORY - 2048 - memory[node]}|"
        f"{DISK}|{DISK - disk[node]}|{CPUS}|N|uuid-0|{8 if exclusive else 4}||"
        f"{'Y' if exclusive else 'N'}|{8 - spindles[node] if exclusive else 0}"
        for node in range(count)
    ]
    specs = ";".join(f"{low};{high}" for low, high in PAIRS)
    std = "8192,4,262144,1,1,1" if full else "2048,2,65536,1,1,1"
    policies = [f"{owner}|{std}|{specs}|{template}|4.0|32.0" for owner in ("", "g0")]
    return "\n".join(["g0|uuid-0|preferred||", "", *nodes, "", *rows, "", "", *policies]) + "\n"


def timed(command: list[str], folder: Path, most: float, program: str = "hspace") -> Run:
    """Run a command, for `most` seconds at most. `program` is what the real htools are to be."""
    return run(command, folder, most=most, environ={"HTOOLS": program, "LC_ALL": "C.UTF-8"})


def beside_the_real(
    ours: list[str], real: list[str], folder: Path, most: float, *, program: str = "hspace", runs: int = 3
) -> tuple[Run | None, str]:
    """Return the fastest of some runs of ours, None if none answers within `most` seconds; and the cells of a row.

    The real program runs once. The cells are the two times, the ratio, and whether both say the same.
    """
    best = min((timed(ours, folder, most) for _ in range(runs)), key=lambda one: (not one.finished, one.processor))
    if not best.finished:
        return None, f"over {best.processor:.0f} s | | | |"
    if shutil.which(real[0]) is None:
        return best, f"{best.processor:.2f} s | not installed | | |"
    theirs = timed(real, folder, most, program)
    ratio = theirs.processor / best.processor
    if not theirs.finished:
        return best, f"{best.processor:.2f} s | over {theirs.processor:.0f} s | over {ratio:,.0f} | |"
    equal = "yes" if theirs.output == best.output else "NO"
    return best, f"{best.processor:.2f} s | {theirs.processor:.2f} s | {ratio:,.1f} | {equal} |"


def print_rows(description: str | None, head: str, rows: Mapping[str, Callable[[Path, float], str]]) -> None:
    """Print the rows whose names the command line asks for, each from a folder and the seconds a program may take."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, default=3600, help="seconds that a program may take")
    parser.add_argument("--only", default="", help="only the rows whose name contains this")
    options = parser.parse_args()
    print(f"{head}\n{'|---' * head.count(' | ')}|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, row in rows.items():
            if options.only in name:
                print(row(Path(folder), options.most), flush=True)


def instances(found: Run) -> int:
    """Return how many instances a run placed, tiered and standard."""
    keys = dict(line.split("=", 1) for line in found.output.splitlines())
    placed = int(keys["HTS_TRL_INST_CNT"]) - int(keys["HTS_INI_INST_CNT"])
    return placed + int(keys["HTS_ALLOC_INSTANCES"])


def ratios(folder: Path, most: float, only: str) -> None:
    print("| cluster | instances placed | gpolicy | real hspace | ratio | equal |")
    print("|---|---|---|---|---|---|")
    cases = [
        ("10 nodes, drbd", build(10, 3.5, "drbd")),
        ("20 nodes, drbd", build(20, 3.5, "drbd")),
        ("40 nodes, drbd", build(40, 3.5, "drbd")),
        ("20 nodes, exclusive storage", build(20, 3.5, "plain", exclusive=True)),
        ("40 nodes, exclusive storage", build(40, 3.5, "plain", exclusive=True)),
        ("20 nodes, plain, capacity checks", build(20, 3.5, "plain")),
        ("40 nodes, plain, capacity checks", build(40, 3.5, "plain")),
    ]
    for name, text in cases:
        if only not in name:
            continue
        (folder / "c.data").write_text(text)
        arguments = ["-t", "c.data", "--machine-readable"]
        ours, cells = beside_the_real([*OURS, "hspace", *arguments], ["hspace", *arguments], folder, most, runs=1)
        print(f"| {name} | {'' if ours is None else instances(ours)} | {cells}", flush=True)


def curve(folder: Path, most: float, largest: int) -> None:
    print("| nodes, drbd | existing instances | placed | gpolicy | per placement | peak memory | one hail |")
    print("|---|---|---|---|---|---|---|")
    for count in (10, 20, 50, 100, 200, 500, 1000, 2000):
        if count > largest:
            break
        text = build(count, 4, "drbd", full=True)
        (folder / "c.data").write_text(text)
        (folder / "r.json").write_text(document_of(text, allocation()))
        ours = timed([*OURS, "hspace", "-t", "c.data", "--machine-readable"], folder, most)
        hail = timed([*OURS, "hail", "r.json"], folder, most)
        last = "" if not hail.finished else f"{hail.processor:.2f} s, {hail.memory} MiB"
        if not ours.finished:
            print(f"| {count:,} | {4 * count:,} | | over {ours.processor:.0f} s | | | {last} |", flush=True)
        else:
            placed = instances(ours)
            each = 1000 * ours.processor / placed
            print(
                f"| {count:,} | {4 * count:,} | {placed:,} | {ours.processor:.2f} s | {each:.2f} ms | {ours.memory} MiB"
                f" | {last} |",
                flush=True,
            )


def each_placement(only: str) -> None:
    """Count each size of the policy in one process: as hspace does, and with N+1 tested for each placement."""
    print("| cluster | size | placed | as hspace counts | placed | each tested | ratio |")
    print("|---|---|---|---|---|---|---|")
    for count, template in ((1000, "drbd"), (200, "plain"), (40, "plain"), (100, "rbd")):
        name = f"{count:,} nodes, {template}"
        if only not in name:
            continue
        where = merge(parse_cluster(build(count, 3, template)))
        candidates = candidate_nodes(where.groups, where.nodes, 2 if template == "drbd" else 1)
        for pair in where.groups[0].policy.minmax:
            wanted = Instance.wanted(pair.max, DiskTemplate(template), 1)
            cells, took = "", list[float]()
            for each in (False, True):
                allocator = make_allocator(candidates, CapacityRules(), capacity_checks=True, each=each)
                begin = time.process_time()
                placed = allocator.standard(AllocationState(where.nodes, where.instances), wanted, None).placed
                took.append(time.process_time() - begin)
                cells += f" | {len(placed):,} | {took[-1]:.2f} s"
            print(f"| {name} | {wanted.memory} MiB{cells} | {took[1] / took[0]:.1f} |", flush=True)


def allocation() -> dict[str, object]:
    """Return a request for one mirrored instance."""
    return {
        "type": "allocate",
        "name": "new.example.com",
        "memory": 4096,
        "vcpus": 2,
        "disks": [{"size": 131072}],
        "disk_space_total": 131200,
        "disk_template": "drbd",
        "spindle_use": 1,
        "tags": [],
        "nics": [],
        "required_nodes": 2,
    }


def document_of(text: str, request: dict[str, object]) -> str:
    """Return an iallocator document for the cluster and a request."""
    return json.dumps(document(random.Random(1), parse_cluster(text), request))  # noqa: S311 - no secrets here


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=float, default=3600, help="seconds that the real program may take")
    parser.add_argument("--curve", action="store_true", help="only ours, over the number of nodes")
    parser.add_argument("--each", action="store_true", help="only ours, N+1 tested for each placement")
    parser.add_argument("--largest", type=int, default=2000, help="largest number of nodes of the curve")
    parser.add_argument("--only", default="", help="only the clusters whose name contains this")
    options = parser.parse_args()
    if options.each:
        each_placement(options.only)
        return
    with tempfile.TemporaryDirectory() as folder:
        if not options.curve:
            ratios(Path(folder), options.most, options.only)
            print()
        if not options.only:
            curve(Path(folder), options.most, options.largest)


if __name__ == "__main__":
    main()
