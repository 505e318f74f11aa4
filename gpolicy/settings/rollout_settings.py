"""The table `[rollout]` of the settings file: in which order `gpolicy apply --all` comes to the clusters.

And what the file says of clusters and roll-outs that cannot be right: `check` tells, where other verbs see one cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gpolicy.guessing import did_you_mean
from gpolicy.opening import real_path
from gpolicy.printable import some
from gpolicy.settings.named_clusters import DESTINATIONS, NamedCluster, named_clusters
from gpolicy.settings.settings_file import Place, SettingsFile, shown

KEYS: Final = {
    "waves": "Labels `KEY=VALUE` in the order of a roll-out; VALUE may be a glob. The clusters of a label are a wave. A"
    ' cluster belongs to the first label that it has. `"name=*"` is for all others.',
    "pause": "Seconds between the end of a wave and the look at its clusters. Default: 0.",
}
"""The keys of the table, each with its meaning."""

LONGEST_PAUSE: Final = 86_400
_EXAMPLE: Final = 'waves = ["stage=canary", "name=*"]'


@dataclass(frozen=True, slots=True)
class RolloutWave:
    """Clusters that a roll-out comes to together: those with a label."""

    label: str
    clusters: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """The labels of the waves, in their order, and the pause after each, in seconds; `file` says so."""

    file: SettingsFile
    labels: tuple[str, ...]
    pause: float = 0.0


def rollout_settings(file: SettingsFile, clusters: Iterable[NamedCluster]) -> RolloutSettings | None:
    """Return what a settings file says of roll-outs, None for nothing. Raise InputError for what is wrong with it."""
    table = file.table("rollout")
    if table is None:
        return None
    given = file.keys_in(table, KEYS)
    if "waves" not in given:
        raise file.error(table, "has no `waves`", f"for example {_EXAMPLE}")
    labels = _labels(file, given["waves"], list(clusters))
    return RolloutSettings(file, labels, _pause(file, given["pause"]) if "pause" in given else 0.0)


def _labels(file: SettingsFile, place: Place, clusters: Sequence[NamedCluster]) -> tuple[str, ...]:
    value = place.value
    if not isinstance(value, list) or not value:
        raise file.error(place, f"must be a list of labels, not {shown(value)}", f"for example {_EXAMPLE}")
    for number, label in enumerate(value):
        if not isinstance(label, str):
            raise file.error(place, f"a label must be a text, not {shown(label)}", f"for example {_EXAMPLE}")
        key, separator, glob = label.partition("=")
        if not (separator and key and glob):
            raise file.error(place, f"{shown(label)} is not KEY=VALUE", f"for example {_EXAMPLE}", word=label)
        if label in value[:number]:
            raise file.error(place, f"{shown(label)} is there twice", "leave one of them out", word=label)
        if not any(_has(cluster, label) for cluster in clusters):
            known = {f"{key}={value}" for cluster in clusters for key, value in cluster.labels.items()}
            hint = did_you_mean(label, known, "`gpolicy clusters` lists the labels of all")
            raise file.error(place, f"no cluster has the label {shown(label)}", hint, word=label)
        taken = {_wave_of(cluster, value) for cluster in clusters if _has(cluster, label)}
        if label not in taken and len(taken) == 1:  # of several, it takes what comes later
            message = f"the wave {shown(label)} is always empty: {shown(*taken)} before it has all of its clusters"
            raise file.error(place, message, "write the most special label first", word=label)
    return tuple(value)


def _wave_of(cluster: NamedCluster, labels: Sequence[str]) -> str | None:
    """Return the first label that a cluster has."""
    return next((label for label in labels if _has(cluster, label)), None)


def _pause(file: SettingsFile, place: Place) -> float:
    value = place.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST_PAUSE:
        raise file.error(place, f"must be a number of seconds, not {shown(value)}", f"from 0 to {LONGEST_PAUSE}")
    return float(value)


def _has(cluster: NamedCluster, label: str) -> bool:
    key, _, glob = label.partition("=")
    return key in cluster.labels and fnmatchcase(cluster.labels[key], glob)


def waves_of(clusters: Sequence[NamedCluster], settings: RolloutSettings) -> tuple[RolloutWave, ...]:
    """Return these clusters in waves, without empty ones. Raise InputError for clusters that belong to none."""
    waves: dict[str | None, list[str]] = {label: [] for label in (*settings.labels, None)}
    for cluster in clusters:
        waves[_wave_of(cluster, settings.labels)].append(cluster.name)
    if left := waves.pop(None):
        place = Place(("rollout", "waves"), None)
        hint = 'write "name=*" as the last wave, for all others'
        raise settings.file.error(place, f"has no label of: {some(left)}", hint)
    return tuple(RolloutWave(str(label), tuple(names)) for label, names in waves.items() if names)


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
    from gpolicy.policy.loading import declared_cluster  # noqa: PLC0415 (`check` alone asks)

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
