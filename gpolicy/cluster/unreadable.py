"""The values that each kind of source cannot show.

Seen on a real 3.0.2 cluster: only config.data has hv_state and disk_state; the remote API shows a node's own parameters
only to users with a password.
"""

from __future__ import annotations

from typing import Final

from gpolicy.cluster.state import Unreadable
from gpolicy.ganeti.parameter import Level
from gpolicy.ganeti.parameters import parameters_of

_STATES: Final = tuple(Unreadable(level=level, prefix=(key,)) for level in Level for key in ("hv_state", "disk_state"))

NODE_OWN: Final = Unreadable(level=Level.NODE)

RAPI: Final = (*_STATES, Unreadable(level=Level.CLUSTER, prefix=("modify_etc_hosts",)))
"""Values that the remote API never shows."""


def text(*, cluster_policy: bool) -> tuple[Unreadable, ...]:
    """Return what a text file of htools does not show; `cluster_policy`: it has a line for the cluster's ipolicy.

    It shows effective policies of groups, but of their own values only alloc_policy.
    """
    shown = {Level.CLUSTER: {"ipolicy"} if cluster_policy else set(), Level.GROUP: {"alloc_policy"}}
    hidden = tuple(
        Unreadable(level=level, prefix=(family,))
        for level in (Level.CLUSTER, Level.GROUP)
        for family in dict.fromkeys(parameter.family for parameter in parameters_of(level))
        if family not in shown[level]
    )
    return (*hidden, NODE_OWN)
