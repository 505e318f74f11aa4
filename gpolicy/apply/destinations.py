"""Where a plan goes: one address, one runner."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from gpolicy.errors import UsageError

if TYPE_CHECKING:
    from gpolicy.apply.runner import Patience, Runner, StopRequests
    from gpolicy.cluster.sources import SourceOptions

DESTINATIONS: Final = {
    "local": "local:, this machine, when it is the master",
    "ssh": "ssh://[USER@]HOST[:PORT], the master over ssh",
    "rapi": "rapi://HOST[:PORT], Ganeti's remote API",
}


def open_runner(destination: str, options: SourceOptions, patience: Patience, stop: StopRequests) -> Runner:
    """Return the runner for `destination`, without connecting. Raise UsageError for an invalid destination."""
    environ = os.environ if options.environ is None else options.environ
    scheme, _, rest = destination.partition(":")
    if destination == "local:":
        from gpolicy.apply.command_runner import CommandRunner  # noqa: PLC0415
        from gpolicy.cluster.master import LocalMaster  # noqa: PLC0415

        return CommandRunner(LocalMaster(environ, timeout=options.timeout), patience, stop)
    if scheme == "ssh" and rest.startswith("//"):
        from gpolicy.apply.command_runner import CommandRunner  # noqa: PLC0415
        from gpolicy.cluster.master import parse_ssh_address  # noqa: PLC0415

        return CommandRunner(parse_ssh_address(destination, environ, timeout=options.timeout), patience, stop)
    if scheme == "rapi" and rest.startswith("//"):
        from gpolicy.apply.rapi_runner import RapiRunner  # noqa: PLC0415
        from gpolicy.cluster.credentials import find_credentials  # noqa: PLC0415
        from gpolicy.cluster.rapi_client import open_client, parse_address  # noqa: PLC0415

        host, _ = parse_address(destination)
        credentials = find_credentials(host, file=options.rapi_credentials, environ=environ)
        insecure = options.rapi_insecure
        client = open_client(
            destination, credentials, ca_file=options.rapi_ca, insecure=insecure, timeout=options.timeout
        )
        return RapiRunner(client, insecure, patience, stop)
    shown = f"{scheme[:20]!r}" if scheme else "this"  # the rest of a wrong address may hold a password
    raise UsageError(f"a plan cannot be applied to {shown}", hint=f"known: {'; '.join(DESTINATIONS.values())}")
