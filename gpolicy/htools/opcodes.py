"""The opcodes that hail proposes for moves, with their keys in Ganeti's order (htools, Cluster: `iMoveToJob`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpolicy.allocator.evacuation import Move, MoveKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpolicy.allocator.node import Node


def opcode(move: Move, nodes: Mapping[int, Node]) -> dict[str, object]:
    """Return the opcode of one move."""
    name = move.instance.name
    target = {} if move.target is None else {"target_node": nodes[move.target].facts.name}
    if move.kind is MoveKind.REPLACE_SECONDARY:
        return {
            "OP_ID": "OP_INSTANCE_REPLACE_DISKS",
            "instance_name": name,
            "early_release": False,
            "ignore_ipolicy": False,
            "mode": "replace_new_secondary",
            "disks": [],
            "remote_node": target["target_node"],
        }
    if move.instance.forthcoming:
        return {
            "OP_ID": "OP_INSTANCE_FAILOVER",
            "instance_name": name,
            "shutdown_timeout": 120,
            "ignore_consistency": False,
            **target,
            "ignore_ipolicy": False,
            "cleanup": False,
        }
    return {
        "OP_ID": "OP_INSTANCE_MIGRATE",
        "instance_name": name,
        **target,
        "allow_runtime_changes": False,
        "ignore_ipolicy": False,
        "cleanup": False,
        "allow_failover": True,
        "ignore_hvversions": True,
    }
