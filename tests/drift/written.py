"""Drift written into policies of a few lines, and what was not written."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from gpolicy.cluster.state import ClusterState
from gpolicy.drift.comparing import find_drift
from gpolicy.drift.write_back import WriteBack, write_back
from gpolicy.ganeti.amounts import format_size
from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN, Value, Values
from gpolicy.plan.diff import diff
from gpolicy.policy.loading import load_policy
from tests.drift.test_comparing import TODAY
from tests.plan.planned import cluster

CLUSTER = """
    gpolicy: v1
    kind: Cluster
    name: cluster.example.org
"""
SPINDLES = ("ndparams", "spindle_count")
RULES = """
    gpolicy: v1
    kind: TagRules
    owns: [iextags, {prefix: "team:", "on": [cluster, group, node]}]
    exclusion:
      - service
      - db
"""


def files_of(directory: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text).lstrip(), encoding="utf-8", newline="")


def write(
    path: Path, state: ClusterState, *selected: str, others: tuple[Path, ...] = (), in_bases: bool = False
) -> WriteBack:
    """Write drift into the policy at `path`; whatever was not written is still the only difference."""
    policy = load_policy(path)
    report = find_drift(policy, state, today=TODAY)
    wrote = write_back(
        policy,
        state,
        report,
        selected=selected,
        today=TODAY,
        in_bases=in_bases,
        others=lambda: [load_policy(other) for other in others],
    )
    for name, text in wrote.texts.items():
        Path(name).write_text(text, encoding="utf-8", newline="")
    left = {(item.object, ".".join(item.path)) for item in diff(load_policy(path), state).changes}
    accepted = {(item.drift.object, item.drift.name) for item in report.accepted}
    if not in_bases:
        assert left - accepted == {(item.object, item.name) for item in wrote.left}
    return wrote


def reasons(wrote: WriteBack) -> dict[str, str]:
    return {f"{item.drift.object}:{item.drift.name}": item.reason for item in wrote.not_written}


def one_file(tmp_path: Path, text: str, state: ClusterState, *selected: str) -> str:
    """Return a policy of one file after drift was written; all that was selected must have been."""
    files_of(tmp_path, {"policy.yaml": text})
    wrote = write(tmp_path, state, *selected)
    assert reasons(wrote) == {}
    return (tmp_path / "policy.yaml").read_bytes().decode()


def gold(own: Values, nodes: dict[str, str] | None = None) -> ClusterState:
    return cluster(groups={"gold": own}, nodes=nodes)


def pair(low: int, high: int) -> dict[str, Value]:
    return {"min": {**DEFAULT_MIN, "memory-size": low}, "max": {**DEFAULT_MAX, "memory-size": high}}


def spec(memory: str, values: Mapping[str, int]) -> str:
    shown = {name: format_size(value) if name == "disk-size" else value for name, value in values.items()}
    rest = ", ".join(f"{name}: {value}" for name, value in shown.items() if name != "memory-size")
    return f"{{memory-size: {memory}, {rest}}}"


def pairs_text(*pairs: tuple[str, str, str]) -> str:
    text = "gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  minmax:\n"
    for name, low, high in pairs:
        first = f"    - name: {name}\n      min" if name else "    - min"
        text += f"{first}: {spec(low, DEFAULT_MIN)}\n      max: {spec(high, DEFAULT_MAX)}\n"
    return text


def with_nodes(values: Mapping[str, Values], tags: Mapping[str, set[str]] | None = None) -> ClusterState:
    state = cluster(nodes=dict.fromkeys(values, "default"))
    nodes = {
        name: replace(node, own=values[name], tags=frozenset((tags or {}).get(name, ())))
        for name, node in state.nodes.items()
    }
    return replace(state, nodes=nodes)


def group_with(name: str, nodes: str) -> str:
    return f"gpolicy: v1\nkind: NodeGroup\nname: {name}\n{nodes}"


def text_of(tmp_path: Path, name: str) -> str:
    return (tmp_path / name).read_text(encoding="utf-8")
