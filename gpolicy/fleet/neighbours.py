"""The other policies of a repository, whose documents may extend those of one policy."""

from __future__ import annotations

from pathlib import Path

from gpolicy.opening import real_path
from gpolicy.policy.boundary import boundary
from gpolicy.policy.files import policy_roots
from gpolicy.policy.loading import load_policy
from gpolicy.policy.model import Policy
from gpolicy.settings.named_clusters import named_clusters
from gpolicy.settings.settings_file import settings_file


def other_policies(path: Path) -> list[Policy]:
    """Return the policies beside the one at `path`: those of the clusters that the settings file names.

    If it names none, those that are found in the work tree, or around `path` where there is none. Raise InputError if
    one cannot be read.
    """
    named = [cluster.policy for cluster in named_clusters(settings_file(path)).values() if cluster.policy is not None]
    own = real_path(path)
    roots = named or policy_roots(boundary(path).root)
    known = {real_path(root): root for root in roots}
    return [load_policy(root) for real, root in known.items() if not own.is_relative_to(real)]
