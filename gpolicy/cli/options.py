"""The options that several verbs have."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from gpolicy.cluster.sources import SCHEMES, SourceOptions
from gpolicy.errors import UsageError
from gpolicy.report.forms import COMMENT_BUDGET, LEAST_BUDGET, Look, forms_of

if TYPE_CHECKING:
    from gpolicy.plan.signature import Signers

_SRC_HELP: Final = f"Where the cluster's state comes from: {'; '.join(SCHEMES.values())}."

PolicyPath = Annotated[Path, typer.Argument(help="The policy: a directory of YAML files, or one file.")]
State = Annotated[str, typer.Option("--state", "-s", metavar="SRC", help=_SRC_HELP)]
MaybeState = Annotated[str | None, typer.Option("--state", "-s", metavar="SRC", help=_SRC_HELP)]
Budget = Annotated[
    int | None,
    typer.Option(
        "--budget",
        metavar="BYTES",
        help="Most bytes of --format markdown; what is least important is cut. Default: 65536, what a comment holds.",
    ),
]
Credentials = Annotated[
    Path | None,
    typer.Option("--rapi-credentials", metavar="FILE", help="File with RAPI user and password, readable by you alone."),
]
Authority = Annotated[
    Path | None,
    typer.Option("--rapi-ca", metavar="FILE", help="Certificate (PEM) to trust RAPI by, instead of the system's."),
]
AllowedSigners = Annotated[
    Path | None,
    typer.Option(
        "--signers",
        metavar="FILE",
        help="Take only a plan that one of these has signed (the file is as `ssh-keygen` wants its allowed signers).",
    ),
]
Signature = Annotated[
    Path | None, typer.Option("--signature", metavar="FILE", help="The signature of the plan; default: PLAN.JSON.sig.")
]
Insecure = Annotated[
    bool, typer.Option("--insecure-rapi", help="Do NOT verify RAPI's certificate: anybody could answer in its place.")
]
Volumes = Annotated[
    bool,
    typer.Option(
        "--physical-volumes",
        help="Read the nodes' physical volumes as well. Ganeti runs jobs for that, which wait for the nodes' locks.",
    ),
]

MaxNodeFailures = Annotated[
    int | None,
    typer.Option(
        "--max-node-failures",
        metavar="K",
        min=1,
        max=5,
        help="So many nodes of a group may fail at once; default: `limits` of the policy.",
    ),
]
Oversubscription = Annotated[
    float | None,
    typer.Option(
        "--oversubscription",
        metavar="RATIO",
        help="The greatest memories of a node's instances may be RATIO times its memory for them, and each is "
        "guaranteed its least; default: `limits` of the policy.",
    ),
]
CpusAfterFailure = Annotated[
    bool | None,
    typer.Option(
        "--cpus-after-failure/--no-cpus-after-failure",
        help="Whether nodes that take over after a failure must keep their vcpu-ratio; default: `limits` of the "
        "policy.",
    ),
]


def form_option(verb: str) -> Any:
    """Return the option that chooses one of the forms of a verb."""
    return typer.Option("--format", "-f", metavar="|".join(forms_of(verb)), help="Form of the output.")


def look_of(verb: str, form: str, budget: int | None = None, *, every: bool = False) -> Look:
    """Return how to show a report. Raise UsageError for a form that the verb does not have, or a budget without use."""
    if form not in forms_of(verb):
        raise UsageError(f"unknown format {form!r}", hint=f"the formats are {', '.join(forms_of(verb))}")
    if budget is not None and form != "markdown":
        raise UsageError(
            f"--budget cuts --format markdown only, not {form}", hint="leave --budget out, or say --format markdown"
        )
    if budget is not None and budget < LEAST_BUDGET:
        raise UsageError(f"a budget of {budget} bytes is too small", hint=f"the least is {LEAST_BUDGET}")
    return Look(form=form, budget=COMMENT_BUDGET if budget is None else budget, every=every)


def signers_for(plan: Path, allowed: Path | None, signature: Path | None) -> Signers | None:
    """Return the required signer of `plan`, None if none is required."""
    from gpolicy.plan.signature import Signers  # noqa: PLC0415

    if allowed is None:
        if signature is not None:
            raise UsageError("--signature needs --signers", hint="say with --signers FILE whose signature counts")
        return None
    beside = plan.with_name(f"{plan.name}.sig")
    return Signers(allowed=allowed, signature=signature or beside, search_path=os.environ.get("PATH", os.defpath))


def source_options(
    credentials: Path | None, authority: Path | None, *, insecure: bool, volumes: bool = False
) -> SourceOptions:
    """Return how to read a cluster, from the options."""
    return SourceOptions(
        rapi_credentials=credentials, rapi_ca=authority, rapi_insecure=insecure, physical_volumes=volumes
    )
