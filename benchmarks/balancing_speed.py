"""hbal beside the real one in one run: whole processes, CPU seconds, start-up included.

    python benchmarks/balancing_speed.py               all clusters; the real program takes some twenty minutes
    python benchmarks/balancing_speed.py --most 60     end the real program after a minute (a lower bound)
    python benchmarks/balancing_speed.py --only ext    only the clusters whose name contains this

Clusters have two generations of hardware, racks and rooms as failure domains, and services whose instances exclude each
other; their nodes are filled unevenly. Output is Markdown. Of three runs of ours the fastest counts; the real program
runs once.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from allocator_speed import OURS, beside_the_real, print_rows

GENERATIONS = ((131072, 4194304, 32), (262144, 8388608, 64))
SIZES = ((4096, 65536, 2), (8192, 131072, 2), (16384, 262144, 4), (32768, 524288, 8), (65536, 524288, 8))
TAGS = ("htools:iextags:service", "htools:nlocation:rack", "htools:nlocation:room")


@dataclass(frozen=True, slots=True)
class Balance:
    """A cluster of `nodes` nodes, and the options beside it."""

    nodes: int
    template: str = "drbd"
    options: tuple[str, ...] = ("-l", "20")
    equal: bool = False

    @property
    def name(self) -> str:
        """What it is called in the table."""
        alike = ", all alike" if self.equal else ""
        return f"{self.nodes} nodes, {self.template}{alike}, `{' '.join(self.options)}`"


def build(nodes: int, template: str, *, equal: bool = False) -> str:
    """Return a cluster; with `equal` all nodes and all instances have one size, and half of the nodes are empty."""
    rng = random.Random(nodes)  # noqa: S311 - no secrets here
    hardware = [GENERATIONS[0 if equal else number % 2] for number in range(nodes)]
    memory, disk, cpus = [0] * nodes, [0] * nodes, [0] * nodes
    rows = list[str]()
    while sum(memory) < 0.6 * sum(total for total, _, _ in hardware) / (2 if equal else 1):
        size = SIZES[2] if equal else rng.choice(SIZES)
        primary, secondary = rng.sample(range(nodes // 2 if equal else nodes), 2)
        mirrored = template == "drbd"
        places = (primary, secondary) if mirrored else (primary,)
        if memory[primary] + size[0] > 0.8 * hardware[primary][0]:
            continue
        memory[primary] += size[0]
        cpus[primary] += size[2]
        for place in places:
            disk[place] += size[1] if mirrored else 0
        tags = f"service:{rng.randrange(nodes)}" if not equal and rng.random() < 0.5 else ""
        mate = f"node{secondary}.example.com" if mirrored else ""
        rows.append(
            f"inst{len(rows)}.example.com|{size[0]}|{size[1]}|{size[2]}|running|Y|node{primary}.example.com|{mate}|"
            f"{template}|{tags}|1|-"
        )
    lines = []
    for node, (total, space, cores) in enumerate(hardware):
        tags = "" if equal else f"rack:{node // 8},room:{node // 32}"
        lines.append(
            f"node{node}.example.com|{total}|2048|{total - 2048 - memory[node]}|{space}|{space - disk[node]}|{cores}|N|"
            f"uuid-0|4|{tags}|N|0"
        )
    return "\n".join(["g0|uuid-0|preferred||", "", *lines, "", *rows, "", *([] if equal else TAGS)]) + "\n\n"


BALANCES = (
    Balance(5),
    Balance(10),
    Balance(20),
    Balance(20, options=()),
    Balance(40),
    Balance(80, options=("-l", "1")),
    Balance(80),
    Balance(20, equal=True),
    Balance(40, template="ext"),
    Balance(160, template="ext"),
    Balance(40, options=("-l", "20", "--evac-mode", "-O", "node0", "-O", "node1")),
)


def row(balance: Balance, folder: Path, most: float) -> str:
    """Measure one cluster and return its row."""
    text = build(balance.nodes, balance.template, equal=balance.equal)
    (folder / "c.data").write_text(text)
    instances = len(text.split("\n\n")[2].splitlines())
    arguments = ["-t", "c.data", "-C", *balance.options]
    _, cells = beside_the_real([*OURS, "hbal", *arguments], ["hbal", *arguments], folder, most, program="hbal")
    return f"| {balance.name} | {instances} | {cells}"


if __name__ == "__main__":
    rows = {balance.name: partial(row, balance) for balance in BALANCES}
    print_rows(__doc__, "| cluster | instances | gpolicy | real hbal | ratio | equal |", rows)
