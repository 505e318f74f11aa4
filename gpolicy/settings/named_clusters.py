"""The tables `[clusters.NAME]` of the settings file: where each cluster is, and which policy it has.

The file may come from a pull request. So it can name no program and no password: an address of `local:` has no path,
files of states lie in the repository, and a password goes only to a host that its own source names
(`cluster/credentials.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpolicy.cluster.credentials import LOGIN
from gpolicy.cluster.sources import FILE_SCHEMES, SCHEMES
from gpolicy.errors import InputError, UsageError
from gpolicy.guessing import did_you_mean
from gpolicy.settings.settings_file import Place, SettingsFile, shown

KEYS: Final = {
    "policy": "The policy of the cluster: a directory or a file, relative to the directory of this file.",
    "state": "Where the cluster's state is read from, as for `--state`. Files are relative to the directory of this"
    " file.",
    "destination": "How `gpolicy apply` reaches the cluster, as for `--to`. Default: `state`, if it is one.",
    "ca": "File with the certificate (PEM) that the remote API must show, relative to the directory of this file."
    " Default: the system's authorities.",
    "credentials": "Where user and password for the remote API are: `netrc` (default), `netrc:FILE`, `environment` or"
    " `environment:NAME`. They go only to a host that is named there.",
    "labels": "Words to choose clusters by: `--label stage=canary`.",
}
"""The keys of the table of a cluster, each with its meaning."""

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
"""A cluster's name: it is also the name of its files."""

LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}", re.ASCII)
DESTINATIONS: Final = ("local", "ssh", "rapi")
"""The schemes of addresses that `apply` can reach."""
_MOST: Final = 10_000
_NAME_LABEL: Final = "name"


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

    def file(self, *parts: str) -> Path:
        """Return a path from the directory of the settings file."""
        return self.source.parent.joinpath(*parts)


def named_clusters(file: SettingsFile | None) -> dict[str, NamedCluster]:
    """Return the clusters that a settings file names, in its order. Raise InputError for what is wrong with them."""
    if file is None:
        return {}
    places = list(file.entries(file.table("clusters")))
    if len(places) > _MOST:
        raise file.error(places[_MOST], f"more than {_MOST:,} clusters", "use several repositories")
    label_names: dict[str, str] = {}
    return {place.path[-1]: _cluster(file, label_names, place) for place in places}


def _cluster(file: SettingsFile, label_names: dict[str, str], place: Place) -> NamedCluster:
    name = place.path[-1]
    if not NAME.fullmatch(name):
        raise file.error(place, f"a cluster cannot be called {shown(name)}", "use letters, digits, dots and dashes")
    given = file.keys_in(place, KEYS)
    texts = {key: _text(file, item) for key, item in given.items() if key != "labels"}
    if "state" not in given:
        raise file.error(place, "has no `state`", f"say where it is read from: {'; '.join(SCHEMES.values())}")
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


def _text(file: SettingsFile, place: Place) -> str:
    value = place.value
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise file.error(place, f"must be a text, not {shown(value)}", "write it in quotes, on one line")
    return value


def _state(file: SettingsFile, place: Place, text: str) -> str:
    scheme, colon, rest = text.partition(":")
    if not colon or scheme not in SCHEMES:
        known = "; ".join(SCHEMES.values())
        message = "no address of a cluster's state" if not colon else f"no such source: {shown(scheme[:20])}"
        raise file.error(place, message, did_you_mean(scheme[:20], SCHEMES, f"write one of: {known}"))
    if scheme == "local" and rest:  # the name of a directory with programs
        raise file.error(place, "`local:` has no path in a settings file", "write `local:`")
    if scheme in FILE_SCHEMES:
        return f"{scheme}:{file.path_in_tree(place, rest)}"
    _require_host(file, place, text)
    return text


def _require_host(file: SettingsFile, place: Place, address: str) -> None:
    """Raise InputError for an address of the remote API or of ssh that names no host, or has a password."""
    from gpolicy.cluster.master import parse_ssh_address  # noqa: PLC0415 (few settings files name clusters)
    from gpolicy.cluster.rapi_client import parse_address  # noqa: PLC0415

    try:
        if address.startswith("rapi:"):
            parse_address(address)
        elif address.startswith("ssh:"):
            parse_ssh_address(address, {})
    except UsageError as error:
        raise file.error(place, error.message, error.hint or "") from None


def _destination(file: SettingsFile, place: Place | None, text: str | None, state: str) -> str | None:
    if place is None or text is None:
        return state if state.partition(":")[0] in DESTINATIONS else None
    if text != "local:" and not text.startswith(("ssh://", "rapi://")):
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
        text = _text(file, item)
        if "," in text or not LABEL.fullmatch(text):
            raise file.error(item, f"a label cannot be {shown(text)}", "use letters, digits, dots and dashes")
        other = label_names.setdefault(name.lower(), name)
        if other != name:
            hint = f"`--label` knows the difference: write {other} everywhere"
            raise file.error(item, f"another cluster has the label {other}", hint)
        found[name] = text
    return found


def one_cluster(name: str, clusters: Mapping[str, NamedCluster]) -> NamedCluster:
    """Return the cluster of this name, among at least one. Raise InputError if there is none."""
    if name in clusters:
        return clusters[name]
    hint = did_you_mean(name, clusters, "`gpolicy clusters` lists them")
    raise InputError(f"there is no cluster {shown(name)} in {next(iter(clusters.values())).source}", hint=hint)
