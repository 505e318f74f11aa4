"""Where a plan goes: one address, one runner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpolicy.cluster.sources import SCHEMES, open_master, open_rapi
from gpolicy.errors import UsageError
from gpolicy.guessing import closest

if TYPE_CHECKING:
    from gpolicy.apply.runner import Patience, Runner, StopRequests
    from gpolicy.cluster.sources import SourceOptions

DESTINATIONS: Final = {scheme: SCHEMES[scheme] for scheme in ("local", "ssh", "rapi")}


def open_runner(destination: str, options: SourceOptions, patience: Patience, stop: StopRequests) -> Runner:
    """Return the runner for `destination`, without connecting. Raise UsageError for an invalid destination."""
    scheme, _, rest = destination.partition(":")
    if destination == "local:" or (scheme == "ssh" and rest.startswith("//")):
        from gpolicy.apply.command_runner import CommandRunner  # noqa: PLC0415

        return CommandRunner(open_master(destination, options), patience, stop)
    if scheme == "rapi" and rest.startswith("//"):
        from gpolicy.apply.rapi_runner import RapiRunner  # noqa: PLC0415

        return RapiRunner(open_rapi(destination, options), options.rapi_insecure, patience, stop)
    shown = f"{scheme[:20]!r}" if scheme else "this"  # the rest of a wrong address may hold a password
    near = closest(scheme[:20], DESTINATIONS)
    known = DESTINATIONS[near] if near else f"one of: {'; '.join(DESTINATIONS.values())}"
    raise UsageError(f"a plan cannot be applied to {shown}", hint=f"write {known}")
