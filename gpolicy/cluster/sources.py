"""Where a cluster's state comes from: one address, one function."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gpolicy.errors import ArgumentError, InputError, RequestError, argument
from gpolicy.guessing import closest
from gpolicy.provenance import Provenance, age_words

if TYPE_CHECKING:
    from gpolicy.cluster.master import LocalMaster, SshMaster
    from gpolicy.cluster.rapi_client import Client
    from gpolicy.cluster.state import ClusterState, Snapshot


class Scheme(NamedTuple):
    """A kind of source: how its addresses start, what follows, and what it is; `is_live`: it is a running cluster."""

    start: str
    follows: str
    about: str
    is_live: bool = False

    def __str__(self) -> str:
        """Return how an address is written, and what it is."""
        return f"{self.start}{self.follows}, {self.about}"


SCHEMES: Final = {
    "rapi": Scheme("rapi://", "HOST[:PORT]", "Ganeti's remote API", is_live=True),
    "local": Scheme("local:", "", "this machine, when it is the master", is_live=True),
    "ssh": Scheme("ssh://", "[USER@]HOST[:PORT]", "the master over ssh", is_live=True),
    "config": Scheme("config:", "FILE", "Ganeti's config.data"),
    "text": Scheme("text:", "FILE", "the text format of htools"),
    "snapshot": Scheme("snapshot:", "FILE", "written by gpolicy snapshot"),
    "sim": Scheme("sim:", "SPEC", "simulated hardware as for hspace --simulate"),
}
ALL_SOURCES: Final = "; ".join(map(str, SCHEMES.values()))
DESTINATIONS: Final = {scheme: SCHEMES[scheme] for scheme in ("local", "ssh", "rapi")}
"""Where a plan can be applied, the nearest first."""
FILE_SCHEMES: Final = frozenset(name for name, scheme in SCHEMES.items() if scheme.follows == "FILE")
"""The schemes that a path follows."""
_LIVE: Final = tuple(scheme.start for scheme in SCHEMES.values() if scheme.is_live)


def is_live(address: str) -> bool:
    """Return whether an address is that of a running cluster."""
    return address.startswith(_LIVE)


def state_read_at(made: Provenance, source: str, snapshot: Snapshot | None) -> str | None:
    """Return when the state was read: from a cluster, as it was `made`; from a file, what this says, or None."""
    if snapshot is not None:
        return snapshot.taken_at
    return made.made_at if is_live(source) else None


def provenance_words(made: Provenance, source: str, snapshot: Snapshot | None) -> list[str]:
    """Return when a plan or page was made, the commit of the policy, and the age of the state, as far as known."""
    if made.made_at is None:
        return []
    words = [f"made {made.made_at.removesuffix('Z').replace('T', ' ')} UTC"]
    if made.commit:
        words.append(f"policy at commit {made.commit[:12]}{' with uncommitted changes' if made.dirty else ''}")
    if source and not source.startswith("sim:"):
        words.append(age_words(state_read_at(made, source, snapshot), made.made_at))
    return words


def destination_scheme(address: str) -> str:
    """Return the scheme of an address where a plan can be applied; nothing for another address."""
    found = (name for name, scheme in DESTINATIONS.items() if address.startswith(scheme.start))
    return next((name for name in found if address == SCHEMES[name].start or SCHEMES[name].follows), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """How to read a source.

    `rapi_credentials` is a file with user and password, `rapi_ca` one with the certificate to trust;
    `rapi_insecure` trusts any server. `timeout` is in seconds for each answer. `environ` is that of the process by
    default. `physical_volumes` also reads those of the nodes, for which Ganeti runs jobs. `login` says where user and
    password are for an address from a settings file (`credentials.find_login`).
    """

    rapi_credentials: Path | None = None
    login: str | None = None
    rapi_ca: Path | None = None
    rapi_insecure: bool = False
    timeout: float = 60.0
    environ: Mapping[str, str] | None = None
    physical_volumes: bool = False


_VOLUMES: Final = 4  # times the time limit of one answer: jobs wait for the nodes' locks


def read_state(src: str, options: SourceOptions | None = None) -> ClusterState:
    """Return the state that `src` names. Raise RequestError for an unknown scheme, and the errors of the source.

    The modules of a source are imported only when it is used.

    For example, `read_state("snapshot:berlin.json").groups` are the groups of the cluster in a file.
    """
    options = options or SourceOptions()
    scheme, colon, rest = src.partition(":")
    match scheme if colon else "":
        case "rapi" if rest.startswith("//"):
            from gpolicy.cluster import rapi, volume_pools  # noqa: PLC0415

            client = open_rapi(src, options)
            state = rapi.read_rapi(client, insecure=options.rapi_insecure)
            seconds = _VOLUMES * options.timeout
            return volume_pools.from_rapi(state, client, seconds=seconds) if options.physical_volumes else state
        case "local" | "ssh" if scheme == "local" or rest.startswith("//"):
            from gpolicy.cluster import master, volume_pools  # noqa: PLC0415

            reached = open_master(src, options)
            state = master.read_master(reached)
            return volume_pools.from_master(state, reached) if options.physical_volumes else state
        case "config" | "snapshot" if rest:
            from gpolicy.cluster.state_files import read_config_file, read_snapshot  # noqa: PLC0415

            state = read_config_file(Path(rest), source=src) if scheme == "config" else read_snapshot(Path(rest))
        case "text" | "sim" if rest:
            from gpolicy.cluster.htools_sources import read_text_file, simulated_state  # noqa: PLC0415

            if scheme == "sim":
                return simulated_state(rest, source=src)
            state = read_text_file(Path(rest), source=src)
        case _:
            raise _unknown(src, scheme if colon else "")
    if options.physical_volumes and all(node.physical_volumes is None for node in state.nodes.values()):
        from gpolicy.cluster.volume_pools import NOT_FROM_HERE  # noqa: PLC0415

        state = replace(state, notes=(*state.notes, NOT_FROM_HERE))
    return state


@dataclass(frozen=True, slots=True)
class Contact:
    """What a cluster says of itself: name and release. `taken_at` is when a file was written, None for a live cluster.

    A time is YYYY-MM-DDThh:mm:ssZ (UTC), empty if the file does not say.
    """

    name: str
    version: str | None
    taken_at: str | None = None


def contact(src: str, options: SourceOptions) -> Contact:
    """Return what the cluster that `src` names says of itself, at little cost: no node is asked. Raise as `read_state`.

    The remote API needs no password for it.
    """
    if src.startswith("rapi://"):
        info = open_rapi(src, options).get("/2/info")
        known = info if isinstance(info, dict) else {}
        name, version = known.get("name"), known.get("software_version")
        if not isinstance(name, str) or not (version is None or isinstance(version, str)):
            raise InputError(f"{src}: does not answer as Ganeti's remote API does")
        return Contact(name, version)
    if src.startswith(("local:", "ssh://")):
        from gpolicy.cluster.master import read_master_configuration  # noqa: PLC0415

        state = read_master_configuration(open_master(src, options))
    else:
        state = read_state(src, options)  # the time of another file says when it was copied
    taken_at = None if is_live(src) else (state.snapshot and state.snapshot.taken_at) or ""
    return Contact(state.name, state.software_version, taken_at)


def check_host(address: str) -> None:
    """Raise RequestError for an address of the remote API or of ssh that names no host, or has a password."""
    if address.startswith("rapi:"):
        from gpolicy.cluster.rapi_client import parse_address  # noqa: PLC0415

        parse_address(address)
    elif address.startswith("ssh:"):
        from gpolicy.cluster.master import parse_ssh_address  # noqa: PLC0415

        parse_ssh_address(address, {})


def open_rapi(address: str, options: SourceOptions) -> Client:
    """Return a client of the remote API at `rapi://…`, without connecting. Raise RequestError for another address."""
    from gpolicy.cluster.credentials import find_credentials, find_login  # noqa: PLC0415
    from gpolicy.cluster.rapi_client import Client, make_trust, parse_address  # noqa: PLC0415

    host, port = parse_address(address)
    environ = _environ(options)
    if options.login is not None:
        credentials = find_login(host, options.login, environ)
    else:
        credentials = find_credentials(host, file=options.rapi_credentials, environ=environ)
    trust = make_trust(ca_file=options.rapi_ca, insecure=options.rapi_insecure)
    return Client(host, port, trust, credentials, options.timeout)


def open_master(address: str, options: SourceOptions) -> LocalMaster | SshMaster:
    """Return the master at `local:…` or `ssh://…`, without connecting. Raise RequestError for an invalid address."""
    from gpolicy.cluster.master import LocalMaster, parse_ssh_address  # noqa: PLC0415

    environ, timeout = _environ(options), options.timeout
    if address.startswith("local:"):
        return LocalMaster(environ, path=address.removeprefix("local:"), timeout=timeout, source=address)
    return parse_ssh_address(address, environ, timeout=timeout)


def _environ(options: SourceOptions) -> Mapping[str, str]:
    return os.environ if options.environ is None else options.environ


def _unknown(src: str, scheme: str) -> RequestError:
    if not scheme and src.endswith((".json", ".data")):
        kind = "config" if Path(src).name == "config.data" else "snapshot" if src.endswith(".json") else "text"
        return ArgumentError("state does not say what kind of source it is", hint=f"Did you mean `{kind}:{src}`?")
    if not scheme and src and "\0" not in src and Path(src).exists():
        if Path(src).is_dir():
            here = f"{argument('state')} says where the cluster is read from"
            hint = f"the policy is an argument without an option; {here}"
            return ArgumentError(f"state {src!r}: a directory, not a cluster", hint=hint)
        hint = "name its kind: config:FILE, text:FILE or snapshot:FILE"
        return RequestError(f"{src!r}: a file, but of unknown kind", hint=hint)
    if (known := scheme or src) in SCHEMES:
        hint = "Did you mean `local:`?" if src == "local" else f"write {SCHEMES[known]}"
        return ArgumentError(f"state {known}: incomplete", hint=hint)
    if not scheme:
        meant = f"Did you mean `rapi://{src}` or `ssh://{src}`?" if _HOST.fullmatch(src) else ""
        hint = meant or f"write one of: {ALL_SOURCES}"
        return ArgumentError("state does not say what kind of source it is", hint=hint)
    shown = f"{scheme[:20]!r}"  # the rest of a wrong address may hold a password
    near = closest(scheme[:20], SCHEMES)
    hint = f"Did you mean `{near}:`?" if near else f"write one of: {ALL_SOURCES}"
    if scheme in ("http", "https"):
        hint = "Did you mean `rapi://`, Ganeti's remote API?"
    return RequestError(f"no such source of a cluster's state: {shown}", hint=hint)


_HOST: Final = re.compile(r"[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63}){1,10}", re.ASCII)
