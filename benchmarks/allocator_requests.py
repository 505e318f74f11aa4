"""Requests of every kind to hspace, hail, hbal and hroller, beside the real programs: whole processes, CPU seconds.

    python benchmarks/allocator_requests.py               all requests; the real program may take an hour for each
    python benchmarks/allocator_requests.py --most 60     end the real program after a minute (a lower bound)
    python benchmarks/allocator_requests.py --only hail   only the requests whose name contains this

The clusters are those of `realistic.py`. Output is Markdown. Of three runs of ours the fastest counts; the real program
runs once.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from allocator_speed import OURS, allocation, beside_the_real, document_of, print_rows
from realistic import realistic

from gpolicy.allocator.cluster_data import Instance
from gpolicy.htools.text_format import parse_cluster

REAL = Path(shutil.which("hspace") or "hspace").resolve()  # one program: its name or HTOOLS says which


@dataclass(frozen=True, slots=True)
class Request:
    """A question to a program, the cluster that it is asked of, and the options beside that."""

    program: str
    what: str
    nodes: int
    template: str = "drbd"
    options: tuple[str, ...] = ()
    exclusive: bool = False
    groups: int = 1
    ask: Callable[[list[Instance]], dict[str, Any]] | None = None

    @property
    def name(self) -> str:
        """What it is called in the table."""
        groups = f" in {self.groups} groups" if self.groups > 1 else ""
        storage = ", exclusive storage" if self.exclusive else ""
        options = f" `{' '.join(self.options)}`" if self.options else ""
        return f"{self.program}{self.what}{options}, {self.nodes:,} nodes{groups}, {self.template}{storage}"

    def text(self) -> str:
        """Return the cluster."""
        count = self.nodes // self.groups
        return realistic(count, 0.4, 11, self.template, exclusive=self.exclusive, groups=self.groups)


def allocate(template: str = "drbd") -> Callable[[list[Instance]], dict[str, Any]]:
    return lambda _: {**allocation(), "disk_template": template, "required_nodes": 2 if template == "drbd" else 1}


def allocate_many(_: list[Instance]) -> dict[str, Any]:
    wanted = [{**allocation(), "name": f"new{number}"} for number in range(20)]
    return {"type": "multi-allocate", "instances": wanted}


def allocate_secondary(instances: list[Instance]) -> dict[str, Any]:
    return {"type": "allocate-secondary", "name": instances[0].name}


def relocate(instances: list[Instance]) -> dict[str, Any]:
    first = instances[0]
    node = f"node{first.secondary:04}.example.org"
    return {"type": "relocate", "name": first.name, "required_nodes": 1, "relocate_from": [node]}


def evacuate(mode: str, count: int) -> Callable[[list[Instance]], dict[str, Any]]:
    return lambda instances: {
        "type": "node-evacuate", "instances": [item.name for item in instances[:count]], "evac_mode": mode,
    }  # fmt: skip


def change_group(instances: list[Instance]) -> dict[str, Any]:
    names = [item.name for item in instances[:3]]
    return {"type": "change-group", "instances": names, "target_groups": []}


DRBD = ("--disk-template=drbd",)
TWENTY = ("-l", "20")
REQUESTS = (
    Request("hspace", "", 10, options=DRBD),
    Request("hspace", "", 1000, options=DRBD),
    Request("hspace", "", 1000),
    Request("hspace", "", 1000, "plain"),
    Request("hspace", "", 1000, "mixed"),
    Request("hspace", "", 1000, "plain", exclusive=True),
    Request("hspace", "", 999, options=DRBD, groups=3),
    Request("hspace", "", 999, "plain", groups=3),
    Request("hspace", "", 999, "mixed", groups=3),
    *(Request("hail", " allocate", nodes, ask=allocate()) for nodes in (10, 200, 1000)),
    Request("hail", " allocate", 1000, "plain", ask=allocate("plain")),
    Request("hail", " allocate", 1000, "plain", exclusive=True, ask=allocate("plain")),
    Request("hail", " allocate", 1000, groups=20, ask=allocate()),
    Request("hail", " multi-allocate of 20", 200, ask=allocate_many),
    Request("hail", " allocate-secondary", 1000, "plain", ask=allocate_secondary),
    Request("hail", " relocate", 1000, ask=relocate),
    Request("hail", " node-evacuate all of 2", 200, ask=evacuate("all", 2)),
    Request("hail", " node-evacuate primary-only of 50", 1000, ask=evacuate("primary-only", 50)),
    Request("hail", " node-evacuate secondary-only of 50", 200, ask=evacuate("secondary-only", 50)),
    Request("hail", " change-group of 3", 200, groups=4, ask=change_group),
    *(Request("hbal", "", nodes, options=TWENTY) for nodes in (5, 10, 40, 200, 1000)),
    Request("hbal", "", 200, "mixed", options=TWENTY),
    *(Request("hroller", "", nodes, template) for nodes in (10, 200, 1000) for template in ("drbd", "plain")),
    *(Request("hroller", "", nodes, options=("--full-evacuation",)) for nodes in (200, 1000)),
)


def row(request: Request, folder: Path, most: float) -> str:
    """Measure a request and return its row."""
    text = request.text()
    usual = {
        "hspace": ("-t", "input", "--machine-readable"),
        "hbal": ("-t", "input", "-C"),
        "hroller": ("-t", "input", "-f", "--print-moves", "-v", "-v"),
    }
    arguments = [*usual.get(request.program, ("input",)), *request.options]
    if request.ask is not None:
        text = document_of(text, request.ask(list(parse_cluster(text).instances)))
    (folder / "input").write_text(text)
    program = request.program
    _, cells = beside_the_real([*OURS, program, *arguments], [str(REAL), *arguments], folder, most, program=program)
    return f"| {request.name} | {cells}"


if __name__ == "__main__":
    rows = {request.name: partial(row, request) for request in REQUESTS}
    print_rows(__doc__, "| request | gpolicy | real program | ratio | equal |", rows)
