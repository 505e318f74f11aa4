"""The terms of a policy for one cluster (`gpolicy.cluster.terms`), with globs and node sets resolved."""

from __future__ import annotations

from typing import Any

from gpolicy.cluster.terms import COUNTED, HYPERVISORS, VOLUME_GROUP, GroupTerms, Limits, Promise, Terms, VolumeTerms
from gpolicy.ganeti.vocabulary import Values
from gpolicy.policy.model import INHERIT, ClusterPolicy, Declared, Hardware, Policy, Settings
from gpolicy.resolve.desired import Desired

_MOST_VOLUMES = 1000


def terms_of(policy: Policy, desired: Desired) -> Terms:
    """Return what `policy` says of the resources of a cluster beyond what Ganeti stores or shows."""
    cluster = policy.cluster
    limits = cluster.limits if cluster else {}
    groups = [group for group in policy.groups.values() if group.removed is None]
    declared = [(item.label, item.leaves) for item in (*([cluster] if cluster else []), *groups)]
    declared += [(f"node/{name}", node.leaves) for name, node in desired.nodes.items()]
    counted = (*COUNTED, *HYPERVISORS, *VOLUME_GROUP)
    values: dict[str, Values] = {}
    for label, leaves in declared:
        found = {path: leaf.value for path, leaf in leaves.items() if path[0] in counted and leaf.value is not INHERIT}
        values |= {label: found} if found else {}
    return Terms(
        groups={
            group.name: GroupTerms(
                limits=_limits({**limits, **group.limits}),
                volumes=volume_terms(cluster, group),
                promise=Promise() if group.hardware is None else promise_of(group.hardware),
            )
            for group in groups
        },
        others=GroupTerms(limits=_limits(limits), volumes=volume_terms(cluster)),
        values=values,
        release=cluster.ganeti_version if cluster else None,
    )


def promise_of(hardware: Hardware) -> Promise:
    """Return the promised hardware as plain numbers."""
    sizes, count = [size.value for size in hardware.pv_sizes], hardware.volume_count
    volumes = None
    if sizes and count is not None:
        volumes = tuple(sizes) if len(sizes) == count else None
        if len(sizes) == 1:
            volumes = (sizes[0],) * min(count, _MOST_VOLUMES)
    return Promise(
        memory=hardware.memory.value if hardware.memory else None,
        cpus=hardware.cpus.value if hardware.cpus else None,
        volumes=volumes,
    )


def _limits(written: Settings) -> Limits:
    return Limits(**{key: item.value for key, item in written.items()})


def volume_terms(cluster: ClusterPolicy | None, group: Declared | None = None) -> VolumeTerms:
    """Return what counts of the physical volumes of `group`, whose own keys go before those of `cluster`."""
    written = {**(cluster.physical_volumes if cluster else {}), **(group.physical_volumes if group else {})}

    def read(key: str, value: Any) -> Any:
        match key:
            case "exclude":
                return tuple(value)
            case "volume_groups":
                return {name: tuple(patterns) for name, patterns in value.items()}
        return float(value.rstrip("% ")) / 100

    return VolumeTerms(**{key: read(key, item.value) for key, item in written.items()})
