"""The cluster of a test: a snapshot or a simulated cluster, with the policy applied and then the test's edits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gpolicy.analysis.pair_names import pair_names
from gpolicy.cluster.snapshot import parse_snapshot
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import GpolicyError
from gpolicy.findings import Severity
from gpolicy.opening import read_below, real_path, reason
from gpolicy.plan.projection import prospect
from gpolicy.policy.boundary import boundary
from gpolicy.policy.loading import LARGEST_SNAPSHOT
from gpolicy.policy.model import Policy
from gpolicy.policy.scenario import Stage, StageEdit
from gpolicy.policy.source_file import Located
from gpolicy.testing.instances import with_instances
from gpolicy.testing.outcome import CannotRunError, errors_at, known_name
from gpolicy.testing.paper_cluster import promised_cluster, simulated_cluster
from gpolicy.what_if.hardware import moved, without_node
from gpolicy.what_if.load import offline, without
from gpolicy.what_if.supposing import suppose
from gpolicy.what_if.words import WhatIf, read_more, read_upgrade


class Stages:
    """Makes the clusters of tests; `given` replaces the promised hardware for tests that name no cluster."""

    def __init__(self, policy: Policy, given: ClusterState | None = None) -> None:
        self._policy = policy
        self._given = given
        self._known: dict[str, ClusterState] = {}

    def cluster(self, stage: Stage, name: str) -> ClusterState:
        """Return the cluster of the test called `name`. Raise GpolicyError if it cannot be made."""
        state = self.before_edits(stage, name)
        for edit in stage.edits:
            state = edited(self._policy, state, edit)
        return state

    def before_edits(self, stage: Stage, name: str) -> ClusterState:
        """Return the cluster of a test without its edits. Raise GpolicyError if it cannot be made."""
        if stage.simulated:
            source = f"test {name!r}"
            return self._once(f"stage {id(stage)}", lambda: simulated_cluster(self._policy, stage.simulated, source))
        if stage.snapshot is not None:
            return self._once(stage.snapshot.value, lambda: self._read(stage.snapshot))
        if self._given is not None:
            given = self._given
            return self._once("", lambda: self._under_policy(given, None))
        return self._once("promised", lambda: promised_cluster(self._policy, "the promised hardware"))

    def _once(self, key: str, make: Callable[[], ClusterState]) -> ClusterState:
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def _read(self, snapshot: Located[str] | None) -> ClusterState:
        assert snapshot is not None  # noqa: S101 (asked by the caller)
        try:
            home = boundary(self._policy.root or Path()).home
            data = read_below(home, real_path(snapshot.value), LARGEST_SNAPSHOT)
            state = parse_snapshot(data, snapshot.value)
        except OSError as error:
            raise CannotRunError(f"{snapshot.value}: {reason(error)}", snapshot.span) from None
        except GpolicyError as error:
            raise CannotRunError(error.message, snapshot.span, hint=error.hint) from None
        return self._under_policy(state, snapshot)

    def _under_policy(self, state: ClusterState, snapshot: Located[str] | None) -> ClusterState:
        made = prospect(self._policy, state)
        wrong = next((item for item in made.difference.findings if item.severity is Severity.ERROR), None)
        if wrong is not None:
            message = f"the policy does not match the cluster: {wrong.message}"
            raise CannotRunError(message, snapshot.span if snapshot else wrong.span, hint=wrong.hint or None)
        return made.after


def edited(policy: Policy, state: ClusterState, edit: StageEdit) -> ClusterState:
    """Return `state` after an edit. Raise CannotRunError if the edit is impossible."""
    with errors_at(edit.span):
        if edit.add is not None:
            return with_instances(policy, state, edit.add)
        if edit.removed_instance is not None:
            return without(state, [known_name(edit.removed_instance, state.instances, "instance")])
        if edit.removed_node is not None:
            return without_node(state, known_name(edit.removed_node, state.nodes, "node"))
        if edit.instance is not None:
            instance = state.instances[known_name(edit.instance, state.instances, "instance")]
            changed = replace(instance, tags=(instance.tags - set(edit.remove_tags)) | set(edit.add_tags))
            return replace(state, instances={**state.instances, instance.name: changed})
        if edit.node is not None:
            return _changed_node(state, known_name(edit.node, state.nodes, "node"), edit)
        try:
            return suppose(state, _what_if(edit), pair_names(policy, state))
        except GpolicyError as error:  # options there are keys here
            raise CannotRunError(error.message.removeprefix("--"), edit.span, hint=error.hint) from None


def _changed_node(state: ClusterState, name: str, edit: StageEdit) -> ClusterState:
    if edit.group is not None:
        state = moved(state, name, known_name(edit.group, state.groups, "group"))
    if edit.offline:
        state = offline(state, [name])
    node = state.nodes[name]
    changed = replace(
        node,
        offline=node.offline if edit.offline is None else edit.offline,
        drained=node.drained if edit.drained is None else edit.drained,
        tags=(node.tags - set(edit.remove_tags)) | set(edit.add_tags),
    )
    return replace(state, nodes={**state.nodes, name: changed})


def _what_if(edit: StageEdit) -> WhatIf:
    return WhatIf(
        more=() if edit.more is None else (read_more(edit.more.value),),
        upgrades=() if edit.upgrade is None else (read_upgrade(edit.upgrade.value),),
        lost=() if edit.lost is None else (edit.lost.value,),
    )
