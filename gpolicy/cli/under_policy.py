"""The cluster as it is, or as it is once a policy is applied, for the verbs that ask what fits on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.checking import read, sound_policy
from gpolicy.cli.output import show_errors

if TYPE_CHECKING:
    from gpolicy.analysis.pair_names import PairNames
    from gpolicy.cluster.sources import SourceOptions
    from gpolicy.cluster.state import ClusterState


def read_under(policy: Path | None, src: str, options: SourceOptions) -> tuple[ClusterState, PairNames] | None:
    """Return the state that `src` names, under the policy at a path if one is given, and the names of its spec pairs.

    None, with the errors on standard error, where the policy has errors or does not fit the cluster.
    """
    from gpolicy.analysis.pair_names import PairNames, pair_names  # noqa: PLC0415
    from gpolicy.plan.diff import diff  # noqa: PLC0415
    from gpolicy.plan.projection import projected  # noqa: PLC0415

    state = read(src, options)
    if policy is None:
        return state, PairNames()
    loaded = sound_policy(policy, state)
    if loaded is None:
        return None
    difference = diff(loaded, state)
    errors = [finding for finding in difference.findings if finding.severity == "error"]
    if errors:
        show_errors(errors, loaded.files)
        return None
    after = projected(state, difference.changes)
    return after, pair_names(loaded, after)
