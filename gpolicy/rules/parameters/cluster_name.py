"""GP164: the name by which a policy knows its cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import RuleInfo, Severity
from gpolicy.rules.parameters.values import CLUSTER

_HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*")


class ClusterName(Rule):
    """A name that no cluster can have."""

    info = RuleInfo(
        code="GP164",
        name="cluster-name-impossible",
        severity=Severity.WARNING,
        summary="The name of the cluster is no host name.",
        rationale="A cluster is named by the host name of its master address. A plan is only made for the cluster of"
        " this name (guard `right-cluster`): with another it is never made.",
        source="Ganeti 3.0, gnt-cluster(8) init",
        bad="gpolicy: v1\nkind: Cluster\nname: my cluster\n",
        good=CLUSTER,
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        cluster = context.policy.cluster
        if cluster is not None and not _HOST_NAME.fullmatch(cluster.name):
            message = f"no cluster can be called {cluster.name!r}: that is no host name"
            hint = "write what gnt-cluster info calls it"
            yield self.hit(cluster, message, cluster.span, hint=hint)


CLUSTER_NAME_RULES: Final = (ClusterName(),)
