"""Requests of every kind to hspace and hail, beside the real programs in one run: whole processes, CPU seconds.

    python benchmarks/allocator_requests.py               all requests; the real program may take an hour for each
    python benchmarks/allocator_requests.py --most 60     end the real program after a minute (a lower bound)
    python benchmarks/allocator_requests.py --only hail   only the requests whose name contains this

Output is Markdown. Of several runs of ours the fastest counts; the real program runs once.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from allocator_speed import OURS, allocation, beside_the_real, build, document_of, print_rows

REAL = Path(shutil.which("hspace") or "hspace").resolve()  # one program: its name or HTOOLS says which
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """A program, what it reads, and the options beside that; `make` returns the text of the input."""

    name: str
    program: str
    make: Callable[[], str]
    options: tuple[str, ...] = ()


def varied(text: str) -> str:
    """Return a cluster file in which no two nodes are equal any more."""
    rng = random.Random(1)  # noqa: S311 - no secrets here
    lines = []
    for line in text.splitlines():
        cells = line.split("|")
        if len(cells) >= 11 and line.startswith("node"):
            for most, places in ((26214, (1, 3)), (500000, (4, 5))):
                more = rng.randrange(most)
                for place in places:
                    cells[place] = str(int(cells[place]) + more)
        lines.append("|".join(cells))
    return "\n".join(lines) + "\n"


def without_spindles(text: str) -> str:
    """Return a cluster file in which the first node has no spindles."""
    return text.replace("|N|uuid-0|4|", "|N|uuid-0|0|", 1)


def hail(nodes: int, change: Callable[[Document], None], template: str = "drbd", groups: int = 1) -> str:
    """Return a request on a cluster with three instances a node."""
    made: Document = json.loads(document_of(build(nodes, 3, "drbd"), allocation()))
    if template != "drbd":
        for instance in made["instances"].values():
            instance.update(nodes=instance["nodes"][:1], disk_template=template)
        made["request"].update(required_nodes=1, disk_template=template)
    made["nodegroups"]["uuid-0"]["ipolicy"]["disk-templates"] = [template]
    divide(made, groups)
    change(made)
    return json.dumps(made)


def divide(made: Document, groups: int) -> None:
    """Put the nodes into as many groups; instances between groups go."""
    first = made["nodegroups"]["uuid-0"]
    made["nodegroups"] = {f"uuid-{number}": {**first, "name": f"g{number}"} for number in range(groups)}
    for place, node in enumerate(made["nodes"].values()):
        node["group"] = f"uuid-{place * groups // len(made['nodes'])}"
    group_of = {name: node["group"] for name, node in made["nodes"].items()}
    made["instances"] = {
        name: instance
        for name, instance in made["instances"].items()
        if len({group_of[node] for node in instance["nodes"]}) == 1
    }


def dedicated(made: Document) -> None:
    """Give all nodes exclusive storage, without instances, and the policy three sizes."""
    low = {"disk-count": 1, "nic-count": 1, "spindle-use": 1}
    sizes = (
        (16384, 4, 524288, 32768, 8, 1048576),
        (4096, 2, 131072, 8192, 4, 262144),
        (1024, 1, 32768, 2048, 2, 65536),
    )
    made["nodegroups"]["uuid-0"]["ipolicy"]["minmax"] = [
        {
            "min": {**low, "memory-size": a, "cpu-count": b, "disk-size": c},
            "max": {**low, "memory-size": d, "cpu-count": e, "disk-size": f, "spindle-use": 4},
        }
        for a, b, c, d, e, f in sizes
    ]
    for node in made["nodes"].values():
        node.update(total_spindles=8, free_spindles=8, free_disk=node["total_disk"])
        node.update(free_memory=node["total_memory"] - node["reserved_memory"])
        node["ndparams"].update(spindle_count=8, exclusive_storage=True)
    made["instances"] = {}
    made["request"]["disks"] = [{"size": 131072, "mode": "rw", "spindles": 1}]


def evacuate(mode: str, count: int) -> Callable[[Document], None]:
    def change(made: Document) -> None:
        names = list(made["instances"])[:count]
        made["request"] = {"type": "node-evacuate", "instances": names, "evac_mode": mode}

    return change


def change_group(made: Document) -> None:
    names = list(made["instances"])[:3]
    made["request"] = {"type": "change-group", "instances": names, "target_groups": []}


def allocate_many(made: Document) -> None:
    wanted = {key: value for key, value in made["request"].items() if key != "type"}
    made["request"] = {"type": "multi-allocate", "instances": [{**wanted, "name": f"new{n}"} for n in range(20)]}


def relocate(made: Document) -> None:
    name, instance = next(iter(made["instances"].items()))
    made["request"] = {"type": "relocate", "name": name, "required_nodes": 1, "relocate_from": instance["nodes"][1:]}


def allocate_secondary(made: Document) -> None:
    made["request"] = {"type": "allocate-secondary", "name": next(iter(made["instances"]))}


def as_it_is(made: Document) -> None:
    """Allocate one instance."""


REQUESTS = (
    Request("hspace, 10 DRBD nodes", "hspace", lambda: build(10, 3.5, "drbd")),
    Request("hspace, 10 DRBD nodes, one without spindles", "hspace", lambda: without_spindles(build(10, 3.5, "drbd"))),
    Request("hspace, 1,000 DRBD nodes, none equal", "hspace", lambda: varied(build(1000, 3.203, "drbd"))),
    Request(
        "hspace, 200 plain nodes, unchecked", "hspace", lambda: build(200, 3.5, "plain"), ("--no-capacity-checks",)
    ),
    Request(
        "hspace, 200 plain nodes, unchecked, independent groups",
        "hspace",
        lambda: build(200, 3.5, "plain"),
        ("--no-capacity-checks", "--independent-groups"),
    ),
    Request("hail allocate, 10 nodes", "hail", lambda: hail(10, as_it_is)),
    Request("hail allocate, 200 nodes", "hail", lambda: hail(200, as_it_is)),
    Request("hail allocate, 1,000 nodes in 20 groups", "hail", lambda: hail(1000, as_it_is, groups=20)),
    Request("hail allocate, plain, 100 nodes", "hail", lambda: hail(100, as_it_is, "plain")),
    Request("hail allocate, dedicated, 1,000 nodes", "hail", lambda: hail(1000, dedicated, "plain")),
    Request("hail multi-allocate, 20 instances, 100 nodes", "hail", lambda: hail(100, allocate_many)),
    Request("hail allocate-secondary, plain, 200 nodes", "hail", lambda: hail(200, allocate_secondary, "plain")),
    Request("hail relocate, 200 nodes", "hail", lambda: hail(200, relocate)),
    Request("hail node-evacuate all, 2 instances, 160 nodes", "hail", lambda: hail(160, evacuate("all", 2))),
    Request("hail node-evacuate primary-only, 50 instances", "hail", lambda: hail(200, evacuate("primary-only", 50))),
    Request(
        "hail node-evacuate secondary-only, 50 instances", "hail", lambda: hail(200, evacuate("secondary-only", 50))
    ),
    Request("hail node-evacuate, shared storage, 50 instances", "hail", lambda: hail(200, evacuate("all", 50), "ext")),
    Request("hail change-group, 200 nodes in 4 groups", "hail", lambda: hail(200, change_group, groups=4)),
)


def row(request: Request, folder: Path, most: float) -> str:
    (folder / "input").write_text(request.make())
    arguments = ["-t", "input", "--machine-readable"] if request.program == "hspace" else ["input"]
    arguments += request.options
    program = request.program
    _, cells = beside_the_real([*OURS, program, *arguments], [str(REAL), *arguments], folder, most, program=program)
    return f"| {request.name} | {cells}"


if __name__ == "__main__":
    rows = {request.name: partial(row, request) for request in REQUESTS}
    print_rows(__doc__, "| request | gpolicy | real program | ratio | equal |", rows)
