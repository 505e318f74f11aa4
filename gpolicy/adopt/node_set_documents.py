"""Node sets: nodes with the same own values and tags."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from gpolicy.ganeti.parameter import Path
from gpolicy.writing.documents import SCHEMA_FILE, head, modelines, sections
from gpolicy.writing.yaml_text import Node, comment_lines, entry

_LONGEST_NAME = 60
_MOST_TAGS_IN_NAME = 3

Described = Mapping[str, tuple[dict[Path, Node], list[str]]]
"""Written own values and tags of nodes, by name."""


def node_set_documents(described: Described, groups: Mapping[str, str], others: Iterable[str] = ()) -> list[str]:
    """Return the lines of one NodeSet document per set; `groups` says which group each node is in.

    `others` are names that other sets have.
    """
    lines: list[str] = []
    taken = set(others)
    for nodes in _sets(described):
        values, tags = described[nodes[0]]
        name = _free(_name(nodes, tags), taken)
        if lines:
            lines += ["---", *modelines(SCHEMA_FILE)[:1]]  # the YAML server looks at each document alone
        lines += head("NodeSet", name=name)
        within = sorted({groups[node] for node in nodes})
        if len(within) == 1:
            lines += comment_lines(f"in group {within[0]}")
        lines += entry("nodes", list(nodes), as_flow=True)
        lines += [line for line in sections(values, lambda _path, _node: "", titles=False) if line]
        if tags:
            lines += entry("tags", list(tags), as_flow=True)
    return lines


def _sets(described: Described) -> list[list[str]]:
    sets: dict[str, list[str]] = {}
    for name, (values, tags) in described.items():
        key = json.dumps([[list(path), value] for path, value in values.items()] + [tags], sort_keys=True)
        sets.setdefault(key, []).append(name)
    return list(sets.values())


def _name(nodes: list[str], tags: list[str]) -> str:
    """Return a descriptive name: that of the only node, or the tags that the nodes share."""
    if len(nodes) == 1:
        return nodes[0]
    text = " ".join(tags)
    return text if 0 < len(tags) <= _MOST_TAGS_IN_NAME and len(text) <= _LONGEST_NAME else "nodes"


def _free(name: str, taken: set[str]) -> str:
    """Return `name`, with a number if it is in use."""
    candidate, number = name, 1
    while candidate in taken:
        number += 1
        candidate = f"{name}-{number}"[-255:]
    taken.add(candidate)
    return candidate
