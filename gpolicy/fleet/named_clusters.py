"""The tables `[clusters.NAME]` and `[rollout]` of the settings file: where each cluster is, which policy it has, and in
which order `gpolicy apply --all` comes to them.

The file may come from a pull request. So it can name no program and no password: an address of `local:` has no path,
files of states lie in the repository, and a password goes only to a host that its own source names
(`cluster/credentials.py`). `check` tells what the file says of clusters and roll-outs that cannot be right, where other
verbs see one cluster.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gpolicy.cluster.credentials import LOGIN
from gpolicy.cluster.sources import ALL_SOURCES, FILE_SCHEMES, SCHEMES, check_host, destination_scheme, is_live
from gpolicy.errors import InputError, RequestError, argument
from gpolicy.guessing import did_you_mean
from gpolicy.opening import path_meant, real_path
from gpolicy.policy.settings_file import Place, SettingsFile, shown
from gpolicy.printable import some

KEYS: Final = ("policy", "state", "destination", "ca", "credentials", "labels")
"""The keys of the table of a cluster."""

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
"""A cluster's name: it is also the name of its files."""

LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}", re.ASCII)
_MOST: Final = 10_000
_NAME_LABEL: Final = "name"
_RELATIVE: Final = "write it relative to this file"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedCluster:
    """One cluster of the settings file. `labels` include its name, under `name`.

    `login` says where user and password for the remote API are. None for what the file does not say.
    """

    name: str
    state: str
    policy: Path | None
    destination: str | None
    authority: Path | None
    login: str
    labels: Mapping[str, str]
    source: Path


def named_clusters(file: SettingsFile | None) -> dict[str, NamedCluster]:
    """Return the clusters that a settings file names, in its order. Raise InputError for what is wrong with them."""
    if file is None:
        return {}
    places = list(file.entries(file.table("clusters")))
    if len(places) > _MOST:
        raise file.error(places[_MOST], f"more than {_MOST:,} clusters", "use several repositories")
    label_names: dict[str, str] = {}
    return {place.path[-1]: _named_cluster(file, label_names, place) for place in places}


def _named_cluster(file: SettingsFile, label_names: dict[str, str], place: Place) -> NamedCluster:
    name = place.path[-1]
    if not NAME.fullmatch(name):
        raise file.error(place, f"a cluster cannot be called {shown(name)}", "use letters, digits, dots and dashes")
    given = file.keys_in(place, KEYS)
    texts = {key: _read_setting(file, item) for key, item in given.items() if key != "labels"}
    if "state" not in given:
        raise file.error(place, "has no `state`", f"say where it is read from: {ALL_SOURCES}")
    state = _state(file, given["state"], texts["state"])
    return NamedCluster(
        name=name,
        state=state,
        policy=file.path_in_tree(given["policy"], texts["policy"]) if "policy" in given else None,
        destination=_destination(file, given.get("destination"), texts.get("destination"), state),
        authority=file.path.parent / texts["ca"] if "ca" in texts else None,
        login=_login(file, given["credentials"], texts["credentials"]) if "credentials" in given else "netrc",
        labels={_NAME_LABEL: name, **_labels(file, label_names, given.get("labels"))},
        source=file.path,
    )


def _read_setting(file: SettingsFile, place: Place) -> str:
    value = place.value
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise file.error(place, f"must be a text, not {shown(value)}", "write it in quotes, on one line")
    return value


def _state(file: SettingsFile, place: Place, text: str) -> str:
    scheme, colon, rest = text.partition(":")
    if not colon or scheme not in SCHEMES:
        message = "no address of a cluster's state" if not colon else f"no such source: {shown(scheme[:20])}"
        raise file.error(place, message, did_you_mean(scheme[:20], SCHEMES, f"write one of: {ALL_SOURCES}"))
    if scheme == "local" and rest:  # the name of a directory with programs
        raise file.error(place, "`local:` has no path in a settings file", "write `local:`")
    if scheme in FILE_SCHEMES:
        return f"{scheme}:{file.path_in_tree(place, rest)}"
    _require_host(file, place, text)
    return text


def _require_host(file: SettingsFile, place: Place, address: str) -> None:
    """Raise InputError for an address of the remote API or of ssh that names no host, or has a password."""
    try:
        check_host(address)
    except RequestError as error:
        raise file.error(place, error.message, error.marked_hint or "") from None


def _destination(file: SettingsFile, place: Place | None, text: str | None, state: str) -> str | None:
    if place is None or text is None:
        return state if destination_scheme(state) else None
    if not destination_scheme(text):
        raise file.error(place, "no destination", "write `local:`, `ssh://HOST` or `rapi://HOST`")
    _require_host(file, place, text)
    return text


def _login(file: SettingsFile, place: Place, text: str) -> str:
    if not LOGIN.fullmatch(text):
        hint = "write `netrc`, `netrc:FILE`, `environment` or `environment:NAME`; never the password itself"
        raise file.error(place, "does not say where a password is", hint)
    kind, _, rest = text.partition(":")
    return f"netrc:{file.path.parent / Path(rest).expanduser()}" if kind == "netrc" and rest else text


def _labels(file: SettingsFile, label_names: dict[str, str], place: Place | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in file.entries(place):
        name = item.path[-1]
        if not LABEL.fullmatch(name) or name == _NAME_LABEL:
            raise file.error(item, f"a label cannot be called {shown(name)}", "the label `name` is the name")
        text = _read_setting(file, item)
        if "," in text or not LABEL.fullmatch(text):
            raise file.error(item, f"a label cannot be {shown(text)}", "use letters, digits, dots and dashes")
        other = label_names.setdefault(name.lower(), name)
        if other != name:
            hint = f"`{argument('label')}` knows the difference: write {other} everywhere"
            raise file.error(item, f"another cluster has the label {other}", hint)
        found[name] = text
    return found


def one_cluster(name: str, clusters: Mapping[str, NamedCluster]) -> NamedCluster:
    """Return the cluster of this name, among at least one. Raise InputError if there is none."""
    if name in clusters:
        return clusters[name]
    hint = did_you_mean(name, clusters, "`gpolicy clusters` lists them")
    raise InputError(f"there is no cluster {shown(name)} in {next(iter(clusters.values())).source}", hint=hint)


ROLLOUT_KEYS: Final = ("waves", "pause")
"""The keys of the table."""

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
    given = file.keys_in(table, ROLLOUT_KEYS)
    if "waves" not in given:
        raise file.error(table, "has no `waves`", f"for example {_EXAMPLE}")
    labels = _wave_labels(file, given["waves"], list(clusters))
    place = given.get("pause", Place((), 0))
    pause = place.value
    if isinstance(pause, bool) or not isinstance(pause, int | float) or not 0 <= pause <= LONGEST_PAUSE:
        raise file.error(place, f"must be a number of seconds, not {shown(pause)}", f"from 0 to {LONGEST_PAUSE}")
    return RolloutSettings(file, labels, float(pause))


def _wave_labels(file: SettingsFile, place: Place, clusters: Sequence[NamedCluster]) -> tuple[str, ...]:
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


def _has(cluster: NamedCluster, label: str) -> bool:
    key, _, glob = label.partition("=")
    return key in cluster.labels and fnmatchcase(cluster.labels[key], glob)


def _wave_of(cluster: NamedCluster, labels: Sequence[str]) -> str | None:
    return next((label for label in labels if _has(cluster, label)), None)


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
    _refuse_one(file, clusters)
    if rollout is not None:
        waves_of(clusters, rollout)
    _refuse_shared_policies(file, clusters)


def _error(file: SettingsFile, cluster: NamedCluster, key: str, message: str, hint: str) -> InputError:
    return file.error(Place(("clusters", cluster.name, key), None), message, hint)


def _refuse_shared_policies(file: SettingsFile, clusters: Sequence[NamedCluster]) -> None:
    from gpolicy.policy.loading import declared_cluster  # noqa: PLC0415 (`check` alone asks)

    policies: dict[Path, str] = {}
    for cluster in clusters:
        if cluster.policy is None:
            continue
        other = policies.setdefault(real_path(cluster.policy), cluster.name)
        if other != cluster.name and (named := declared_cluster(cluster.policy)):
            message = f"it is the policy of {other} as well, and names one cluster: {named}"
            hint = "give each cluster a policy of its own; what they share belongs in a base (`extends`)"
            raise _error(file, cluster, "policy", message, hint)


def _refuse_one(file: SettingsFile, clusters: Sequence[NamedCluster]) -> None:
    """Raise InputError for a cluster whose policy or CA is not there, or with the address of another one."""
    addresses: dict[str, str] = {}
    for cluster in clusters:
        if cluster.policy is not None and not cluster.policy.exists():
            hint = (path_meant(cluster.policy) or _RELATIVE).replace(f"{file.path.parent}/", "")
            raise _error(file, cluster, "policy", "there is no such file or directory", hint)
        ca = cluster.authority  # one elsewhere may be on the machine that plans alone
        if ca is not None and ca.is_relative_to(file.path.parent) and not ca.exists():
            raise _error(file, cluster, "ca", "there is no such file", _RELATIVE)
        for key, address in (("state", cluster.state), ("destination", cluster.destination)):
            owners = [addresses.setdefault(name, cluster.name) for name in _places_of(address or "")]
            if (other := next((name for name in owners if name != cluster.name), None)) is not None:
                message = f"{shown(address)} is the address of the cluster {other}"
                hint = "each cluster has an address of its own, and one policy"
                raise _error(file, cluster, key, message, hint)


def _places_of(address: str) -> Iterator[str]:
    """Yield what no other cluster may share of an address: the whole, and of a live one a host with no port."""
    if address and not address.startswith("sim:"):
        yield address
    if is_live(address):
        parts = urlsplit(address)
        if parts.hostname and parts.port is None and not parts.hostname.startswith(("localhost", "127.", "::1")):
            yield parts.hostname
