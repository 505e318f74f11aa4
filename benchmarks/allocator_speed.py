"""The allocator's growth with the number of nodes; and how whole processes are measured beside the real programs.

    python benchmarks/allocator_speed.py              from 10 to 2,000 nodes
    python benchmarks/allocator_speed.py --each       as hspace counts, and with each placement tested

Whole processes are timed (CPU seconds, start-up included), on the clusters of `realistic.py`. Output is Markdown.
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
from realistic import realistic

from gpolicy.allocator.cluster_data import DiskTemplate, Instance
from gpolicy.allocator.compiled_allocation import CompiledAllocator
from gpolicy.allocator.merge import merge
from gpolicy.allocator.placement import candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.allocator.repeated_allocation import AllocationState
from gpolicy.htools.text_format import parse_cluster
from tests.htools.random_requests import document

OURS = [sys.executable, "-c", "import sys; from gpolicy.__main__ import main; sys.exit(main())", "htools"]


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


def curve(folder: Path, most: float, largest: int) -> None:
    print("| nodes, drbd | existing instances | placed | gpolicy | per placement | peak memory | one hail |")
    print("|---|---|---|---|---|---|---|")
    for count in (10, 20, 50, 100, 200, 500, 1000, 2000):
        if count > largest:
            break
        text = realistic(count, 0.4, 11)
        (folder / "c.data").write_text(text)
        (folder / "r.json").write_text(document_of(text, allocation()))
        ours = timed([*OURS, "hspace", "-t", "c.data", "--machine-readable"], folder, most)
        hail = timed([*OURS, "hail", "r.json"], folder, most)
        last = "" if not hail.finished else f"{hail.processor:.2f} s, {hail.memory} MiB"
        begin = f"| {count:,} | {len(parse_cluster(text).instances):,} |"
        if not ours.finished:
            print(f"{begin} | over {ours.processor:.0f} s | | | {last} |", flush=True)
            continue
        placed = instances(ours)
        each = 1000 * ours.processor / placed
        time_of = f"{ours.processor:.2f} s | {each:.2f} ms | {ours.memory} MiB"
        print(f"{begin} {placed:,} | {time_of} | {last} |", flush=True)


def each_placement(only: str) -> None:
    """Count each size of the policy in one process: as hspace does, and with N+1 tested for each placement."""
    print("| cluster | size | placed | as hspace counts | placed | each tested | ratio |")
    print("|---|---|---|---|---|---|---|")
    for count, template in ((1000, "drbd"), (200, "plain"), (40, "plain")):
        name = f"{count:,} nodes, {template}"
        if only not in name:
            continue
        where = merge(parse_cluster(realistic(count, 0.4, 11, template)))
        candidates = candidate_nodes(where.groups, where.nodes, 2 if template == "drbd" else 1)
        for pair in where.groups[0].policy.minmax:
            wanted = Instance.wanted(pair.max, DiskTemplate(template), 1)
            cells, took = "", list[float]()
            for each in (False, True):
                allocator = CompiledAllocator(candidates, CapacityRules(), capacity_checks=True, each=each)
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
        "memory": 16384,
        "vcpus": 4,
        "disks": [{"size": 204800}],
        "disk_space_total": 204928,
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
    parser.add_argument("--most", type=float, default=3600, help="seconds that a run may take")
    parser.add_argument("--each", action="store_true", help="only N+1 tested for each placement")
    parser.add_argument("--largest", type=int, default=2000, help="largest number of nodes of the curve")
    parser.add_argument("--only", default="", help="with --each: only the clusters whose name contains this")
    options = parser.parse_args()
    if options.each:
        each_placement(options.only)
        return
    with tempfile.TemporaryDirectory() as folder:
        curve(Path(folder), options.most, options.largest)


if __name__ == "__main__":
    main()
