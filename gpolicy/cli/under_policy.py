"""The cluster as it is once a policy is applied, for the verbs that ask what would be then."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.checking import sound_policy
from gpolicy.cli.terminal import wants_colour

if TYPE_CHECKING:
    from gpolicy.analysis.pair_names import PairNames
    from gpolicy.cluster.state import ClusterState


def under_policy(path: Path, state: ClusterState) -> tuple[ClusterState, PairNames] | None:
    """Return `state` under the policy at `path`, and the names of its spec pairs.

    None, with the errors on standard error, where the policy has errors or does not fit the cluster.
    """
    from gpolicy.analysis.pair_names import pair_names  # noqa: PLC0415
    from gpolicy.plan.diff import diff  # noqa: PLC0415
    from gpolicy.plan.projection import projected  # noqa: PLC0415
    from gpolicy.report.findings_text import findings_text  # noqa: PLC0415

    policy = sound_policy(path, state)
    if policy is None:
        return None
    difference = diff(policy, state)
    errors = [finding for finding in difference.findings if finding.severity == "error"]
    if errors:
        sys.stderr.write(findings_text(errors, policy.files, colour=wants_colour(sys.stderr)))
        return None
    after = projected(state, difference.changes)
    return after, pair_names(policy, after)
