"""Examples of the rules about fleets: the first line of each document names its file."""

from __future__ import annotations

from typing import Final

BASE: Final = (
    "# base.yaml\ngpolicy: v1\nkind: Cluster\nname: fleet\ntemplate: true\ndiskparams:\n  drbd: {c-max-rate: 60M}\n"
)


def member(town: str, more: str = "") -> str:
    head = f"# {town}/cluster.yaml\ngpolicy: v1\nkind: Cluster\nname: {town}.example.org\n"
    return f"{head}extends: ../base.yaml#fleet\n{more}"


def group_of(town: str, nodes: str) -> str:
    return f"# {town}/group.yaml\ngpolicy: v1\nkind: NodeGroup\nname: main\nnodes: [{nodes}]\n"


def files(*files: str) -> str:
    return "---\n".join(files)


GOOD: Final = files(BASE, member("amsterdam"), member("berlin"))
