"""The guards that an adopted policy begins with: those that its cluster passes as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from gpolicy.adopt.file_names import file_names
from gpolicy.adopt.soundness import policy_of
from gpolicy.cluster.state import ClusterState
from gpolicy.findings import Finding
from gpolicy.plan.projection import prospect
from gpolicy.policy.guard import Measure, build_guards
from gpolicy.policy.yaml_reader import read_yaml
from gpolicy.printable import named
from gpolicy.writing.first_guards import FIRST_GUARDS, GUARDS_FILE, FirstGuard, guards_document

_ONE_NODE: Final = "it has one node"
_MOST_NODES: Final = 300
"""On more nodes only the guard against violations is judged: counting what fits takes long there. A cluster passes
`capacity_loss` as it is wherever anything fits."""


def with_guards(files: Mapping[str, str], state: ClusterState) -> dict[str, str]:
    """Return the files of an adopted policy with a document of guards, which the cluster of `state` passes.

    A guard is about all groups, or, where not all of them pass, about each that does. Comments name the others.
    """
    from gpolicy.impact.declared_guards import verdicts_on  # noqa: PLC0415 (the allocator comes with it)

    policy = policy_of(files)
    names = file_names(policy.groups)
    few = len(state.nodes) <= _MOST_NODES
    firsts = [guard for guard in FIRST_GUARDS if few or guard.measure[0] == Measure.NEWLY_VIOLATING]
    unjudged = [guard for guard in FIRST_GUARDS if not few and guard.measure[0] == Measure.CAPACITY_LOSS]
    wanted = [
        guard if group is None else replace(guard, name=f"{guard.name}-{names[group]}", group=group)
        for guard in firsts
        for group in (None, *policy.groups)
    ]
    findings: list[Finding] = []
    (document,) = read_yaml(guards_document(wanted), GUARDS_FILE).documents
    policy = replace(policy, guards=tuple(build_guards(document, findings.append)))
    verdicts, _ = verdicts_on(prospect(policy, state))
    guards: list[FirstGuard] = []
    failing: dict[tuple[str, str], list[str]] = {}
    for guard, verdict in zip(wanted, verdicts, strict=True):
        if guard.group is None:
            whole = verdict.ok
            guards += [guard] if whole else []
        elif not whole:
            said = verdict.message.replace(f"{state.address}: ", "")
            reason = "" if verdict.ok else re.sub(rf"^group {re.escape(guard.group)}( \(\w+\))?: ", "", said)
            if guard.measure[0] == Measure.NODE_FAILURES and len(state.nodes_of(guard.group)) == 1:
                reason = _ONE_NODE
            if reason:
                failing.setdefault((guard.measure[0], reason), []).append(guard.group)
            else:
                guards.append(guard)
    left_out = [f"{key} of {named('group', of)}: {reason}" for (key, reason), of in failing.items()]
    if not few:
        left_out.append(f"node_failures: not judged here, there are more than {_MOST_NODES:,} nodes")
    return {**files, GUARDS_FILE: guards_document([*guards, *unjudged], left_out)}
