"""A digest of what a policy says, whatever its files, comments and order."""

from __future__ import annotations

import hashlib
import json

from gpolicy.policy.model import INHERIT, Declared, GroupPolicy, NodeSetPolicy, Policy


def policy_digest(policy: Policy) -> str:
    """Return `sha256:…` over the declared values, names, membership and tags of `policy`."""
    content = {
        "version": policy.version,
        "cluster": policy.cluster.name if policy.cluster else None,
        "objects": {declared.label: _content(declared) for declared in policy.objects},
        "cluster_tags": None if policy.cluster_tags is None else sorted({tag.value for tag in policy.cluster_tags}),
        "owned": sorted([owned.prefix, sorted(owned.levels)] for owned in policy.owned),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=str)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _content(declared: Declared) -> dict[str, object]:
    content: dict[str, object] = {
        "leaves": [[list(path), _state(leaf.value)] for path, leaf in sorted(declared.leaves.items())],
        "tags": None if declared.tags is None else sorted(tag.value for tag in declared.tags),
    }
    if isinstance(declared, GroupPolicy):
        content["nodes"] = None if declared.nodes is None else [node.value for node in declared.nodes]
        content["removed"] = declared.removed is not None
        content["renamed_from"] = declared.renamed_from.value if declared.renamed_from else None
    if isinstance(declared, NodeSetPolicy):
        content["nodes"] = [node.value for node in declared.nodes]
        content["groups"] = [group.value for group in declared.groups]
    return content


def _state(value: object) -> object:
    return {"inherit": True} if value is INHERIT else {"value": value}
