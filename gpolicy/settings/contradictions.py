"""What the settings file says of clusters that cannot be right: `check` tells, where other verbs see one cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from gpolicy.opening import real_path
from gpolicy.policy.loading import declared_cluster
from gpolicy.settings.named_clusters import DESTINATIONS, NamedCluster, named_clusters
from gpolicy.settings.rollout_settings import rollout_settings, waves_of
from gpolicy.settings.settings_file import Place, SettingsFile, shown


def refuse_contradictions(file: SettingsFile) -> None:
    """Raise InputError for a mistake in what a settings file says of clusters and roll-outs.

    A policy or a CA that is not there, an address of two clusters, a cluster in no wave, and a policy that names a
    cluster and is given to two are mistakes, too.
    """
    clusters = list(named_clusters(file).values())
    rollout = rollout_settings(file, clusters)
    _raise_first(file, _about_one(file, clusters))
    if rollout is not None:
        waves_of(clusters, rollout)
    _raise_first(file, _shared_policies(clusters))


_Mistake = tuple[NamedCluster, str, str, str]  # the cluster, its key, what is wrong, what to do


def _raise_first(file: SettingsFile, mistakes: Iterator[_Mistake]) -> None:
    for cluster, key, message, hint in mistakes:
        raise file.error(Place(("clusters", cluster.name, key), None), message, hint)


def _shared_policies(clusters: Sequence[NamedCluster]) -> Iterator[_Mistake]:
    policies: dict[Path, str] = {}
    for cluster in clusters:
        if cluster.policy is None:
            continue
        other = policies.setdefault(real_path(cluster.policy), cluster.name)
        if other != cluster.name and (named := declared_cluster(cluster.policy)):
            message = f"it is the policy of {other} as well, and names one cluster: {named}"
            hint = "give each cluster a policy of its own; what they share belongs in a base (`extends`)"
            yield cluster, "policy", message, hint


def _about_one(file: SettingsFile, clusters: Sequence[NamedCluster]) -> Iterator[_Mistake]:
    """Yield clusters whose policy or CA is not there, or with the live address of another one."""
    addresses: dict[str, str] = {}
    for cluster in clusters:
        if cluster.policy is not None and not cluster.policy.exists():
            yield cluster, "policy", "there is no such file or directory", "write it relative to this file"
        ca = cluster.authority  # one elsewhere may be on the machine that plans alone
        if ca is not None and ca.is_relative_to(file.path.parent) and not ca.exists():
            yield cluster, "ca", "there is no such file", "write it relative to this file"
        for key, address in (("state", cluster.state), ("destination", cluster.destination)):
            owners = [addresses.setdefault(name, cluster.name) for name in _places_of(address or "")]
            other = next((name for name in owners if name != cluster.name), None)
            if other is not None:
                hint = "each cluster has an address of its own, and one policy"
                yield cluster, key, f"{shown(address)} is the address of the cluster {other}", hint


def _places_of(address: str) -> Iterator[str]:
    """Yield what no other cluster may share of a live address: the whole, and its host, which is one cluster's master.

    A host with a port, or this machine, may lead to several clusters.
    """
    if address.partition(":")[0] in DESTINATIONS:
        yield address
        parts = urlsplit(address)
        if parts.hostname and parts.port is None and not parts.hostname.startswith(("localhost", "127.", "::1")):
            yield parts.hostname
