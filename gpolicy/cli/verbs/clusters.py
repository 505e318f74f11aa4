"""The verbs that read a cluster: adopt, snapshot, drift."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpolicy.cli.options import (
    Authority,
    Credentials,
    Insecure,
    PolicyOption,
    PolicyPath,
    State,
    Volumes,
    display_of,
    form_option,
    policy_path,
    source_options,
)

verbs = typer.Typer()


@verbs.command("adopt")
def adopt(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Directory to write; must be empty.")],
    state: State = None,
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    insecure_rapi: Insecure = False,
) -> int:
    """Write the policy that a cluster has now. A plan of it on that cluster is empty."""
    from gpolicy.cli import writing  # noqa: PLC0415

    return writing.adopt(state, output, source_options(rapi_credentials, rapi_ca, insecure=insecure_rapi))


@verbs.command("snapshot")
def snapshot(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")],
    state: State = None,
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    physical_volumes: Volumes = False,
    insecure_rapi: Insecure = False,
) -> int:
    """Save one consistent state of a cluster, to plan against offline.

    The file is private (0600).
    """
    from gpolicy.cli import writing  # noqa: PLC0415

    options = source_options(rapi_credentials, rapi_ca, insecure=insecure_rapi, volumes=physical_volumes)
    return writing.snapshot(state, output, options)


@verbs.command("drift")
def drift(
    path: PolicyPath = None,
    policy: PolicyOption = None,
    state: State = None,
    form: Annotated[str, form_option("drift")] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write; default: standard output.")
    ] = None,
    rapi_credentials: Credentials = None,
    rapi_ca: Authority = None,
    *,
    insecure_rapi: Insecure = False,
) -> int:
    """Show where the cluster differs from the policy, and since when. Changes nothing.

    Exit code 2 when there is drift, 1 when the policy has an error, 3 when nothing could be compared.
    """
    from gpolicy.cli import drift as comparing  # noqa: PLC0415

    options = source_options(rapi_credentials, rapi_ca, insecure=insecure_rapi)
    return comparing.drift(
        comparing.DriftRequest(
            path=policy_path(path, policy),
            state=state,
            options=options,
            display=display_of("drift", form),
            output=output,
        )
    )
