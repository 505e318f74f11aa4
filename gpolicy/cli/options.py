"""The options that several verbs have, as the fields of dataclasses, and all options as defaults of parameters.

Our verbs write options as `Annotated`, which the Typer of Debian 12 (0.7) does not know; nor does it know `X | None`.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
from copy import copy
from dataclasses import asdict, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Union, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

import gpolicy
from gpolicy.cluster.sources import SourceOptions
from gpolicy.errors import UsageError
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.printable import as_text
from gpolicy.report.forms import COMMENT_BUDGET, LEAST_BUDGET, SUFFIXES, Display, forms_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpolicy.plan.trust import Signers
    from gpolicy.what_if.supposing import WhatIf


STATE_VARIABLE: Final = "GPOLICY_STATE"

PolicyPath = Annotated[Path | None, typer.Argument(..., metavar="[PATH]")]
PolicyOption = Annotated[Path | None, typer.Option("--policy", "-p", metavar="PATH")]
PolicyOptions = Annotated[list[Path] | None, typer.Option("--policy", "-p", metavar="PATH")]
AllowedSigners = Annotated[Path | None, typer.Option("--signers", metavar="FILE")]
Signature = Annotated[Path | None, typer.Option("--signature", metavar="FILE")]
Volumes = Annotated[bool, typer.Option("--physical-volumes")]


def size_of(option: str, text: str) -> int:
    """Return a size in whole MiB. Raise UsageError for text that is none."""
    from gpolicy.ganeti.amounts import parse_size_exact  # noqa: PLC0415 (few verbs have one)

    try:
        return int(parse_size_exact(text))
    except ValueError as error:
        raise UsageError(f"{option} {text!r}: {error}") from None


def seconds_option(name: str) -> Any:
    """Return an option that takes a number of seconds, at least 1."""
    return typer.Option(name, metavar="SECONDS", min=1, callback=_finite)


def _finite(seconds: float | None) -> float | None:
    """Return a number of seconds. Raise UsageError for `nan` and `inf`, which Python reads as numbers."""
    if seconds is not None and not math.isfinite(seconds):
        raise UsageError(f"{seconds} is no number of seconds", hint="write a number: 60")
    return seconds


Seconds = Annotated[float, seconds_option("--seconds")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RapiOptions:
    """How to reach the remote API of an address on the command line."""

    heading: ClassVar = "RAPI"

    rapi_credentials: Annotated[Path | None, typer.Option("--rapi-credentials", metavar="FILE")] = None
    rapi_ca: Annotated[Path | None, typer.Option("--rapi-ca", metavar="FILE")] = None
    insecure_rapi: Annotated[bool, typer.Option("--insecure-rapi")] = False


@dataclass(frozen=True, slots=True)
class Outputs:
    """How to show a report, and the `files` to write it to as well. `old` are files without a form, as in 1.0."""

    display: Display
    files: tuple[tuple[Display, Path], ...] = ()
    old: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How to show the answer of a verb."""

    heading: ClassVar = "Output"

    form: Annotated[str, typer.Option("--format", "-f", metavar="FORM")] = "text"
    output: Annotated[list[str] | None, typer.Option("--output", "-o", metavar="FORM=FILE")] = None
    details: Annotated[bool, typer.Option("--details")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q")] = False
    budget: Annotated[int | None, typer.Option("--budget", metavar="BYTES")] = None

    def outputs(self, verb: str, *, every: bool = False) -> Outputs:
        """Return how to show a report. Raise UsageError for a form that the verb has not, or a budget without use."""
        files, shown, old = list[tuple[str, Path]](), list[str](), list[Path]()
        for text in self.output or ():
            form, equals, file = text.partition("=")
            if equals and file in forms_of(verb) and form not in forms_of(verb):
                raise UsageError(f"--output {text}: the format comes first", hint=f"write --output {file}={form}")
            if equals and form.isalpha():
                files.append((form, Path(file)))
            elif form in forms_of(verb):
                shown.append(form)
            else:
                old.append(Path(text))
        if len(shown) > 1 or (shown and self.form not in ("text", shown[0])):
            both = " and ".join(dict.fromkeys((*(() if self.form == "text" else (self.form,)), *shown)))
            raise UsageError(f"{both} would both go to standard output", hint="write one of them to a file: FORM=FILE")
        form = shown[0] if shown else self.form
        if self.budget is not None and "markdown" not in (form, *(name for name, _ in files)):
            hint = "leave --budget out, or say --format markdown"
            raise UsageError(f"--budget cuts --format markdown only, not {form}", hint=hint)
        display = self._display(verb, form, every=every)
        return Outputs(display, tuple((self._display(verb, name), file) for name, file in files), tuple(old))

    def _display(self, verb: str, form: str, *, every: bool = False) -> Display:
        if form not in forms_of(verb):
            near = SUFFIXES.get(f".{form}")
            hint = f"Did you mean `{near}`?" if near else did_you_mean_one_of(form, "formats", forms_of(verb))
            raise UsageError(f"unknown format {form!r}", hint=hint)
        if self.budget is not None and self.budget < LEAST_BUDGET:
            raise UsageError(f"a budget of {self.budget} bytes is too small", hint=f"the minimum is {LEAST_BUDGET}")
        budget = COMMENT_BUDGET if self.budget is None else self.budget
        return Display(form=form, budget=budget, details=self.details, quiet=self.quiet, every=every)

    def saved(self, verb: str, save: Path | None) -> Path | None:
        """Return the file of --save; of --output FILE, as it was written in 1.0, with a note."""
        old = self.outputs(verb).old
        return renamed(save, old[0], "--save") if len(old) == 1 else save


def renamed(new: Path | None, old: Path | None, option: str) -> Path | None:
    """Return the file of `option`, or with a note that of --output, its name in 1.0. Raise UsageError for both."""
    if old is None:
        return new
    if new is not None:
        raise UsageError(f"{option} {new} and --output {old} are the same option", hint=f"leave --output {old} out")
    sys.stderr.write(as_text([f"note: --output {old} is now {option} {old}"]))
    return old


OldOutput = Annotated[Path | None, typer.Option("--output", "-o", hidden=True)]
"""The name that --save, or --script, had."""

Label = Annotated[list[str] | None, typer.Option("--label", metavar="KEY=VALUE")]

AllClusters = Annotated[bool, typer.Option("--all")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters(RapiOptions):
    """Which clusters a verb is about: the one of an address, or clusters of gpolicy.toml."""

    heading: ClassVar = "Many clusters"

    state: Annotated[str | None, typer.Option("--state", "-s", metavar="SRC")] = None
    label: Label = None
    changed_since: Annotated[str | None, typer.Option("--changed-since", metavar="REF")] = None
    shard: Annotated[str | None, typer.Option("--shard", metavar="N/M")] = None
    snapshots: Annotated[Path | None, typer.Option("--snapshots", metavar="DIR")] = None
    pages: Annotated[Path | None, typer.Option("--pages", metavar="DIR")] = None
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", metavar="N", min=1, max=256)] = None
    timeout: Annotated[float, seconds_option("--timeout")] = 300.0
    all_clusters: AllClusters = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledOutClusters(RapiOptions):
    """Which clusters `apply` is about, if several; and how many at once."""

    heading: ClassVar = "Many clusters"

    label: Label = None
    jobs: Annotated[int, typer.Option("--jobs", "-j", metavar="N", min=1, max=256)] = 1
    timeout: Annotated[float, seconds_option("--timeout")] = 300.0
    all_clusters: AllClusters = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MaybeClusters(Clusters):
    """The same, for verbs that need no cluster: they read one only if it is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppositions:
    """What to suppose of the cluster."""

    heading: ClassVar = "What if"

    more: Annotated[list[str] | None, typer.Option("--with", metavar="WORDS")] = None
    less: Annotated[list[str] | None, typer.Option("--without", metavar="NAME,...")] = None
    moves: Annotated[list[str] | None, typer.Option("--move", metavar="NODE,... to GROUP")] = None
    upgrades: Annotated[list[str] | None, typer.Option("--upgrade", metavar="NODE,... KEY=AMOUNT")] = None
    offline: Annotated[list[str] | None, typer.Option("--offline", metavar="NODE,...")] = None
    lost: Annotated[list[str] | None, typer.Option("--lost", metavar="NODE,...")] = None

    def read(self, group: str | None = None) -> WhatIf | None:
        """Return what is supposed, None for nothing. Raise UsageError for words that cannot be read.

        More instances are in `group`, the one that the run is about, where the words name no group.
        """
        if not any((self.more, self.less, self.moves, self.upgrades, self.offline, self.lost)):
            return None
        from gpolicy.what_if.supposing import WhatIf, read_more, read_move, read_upgrade  # noqa: PLC0415 (few ask)

        return WhatIf(
            more=tuple(map(read_more, self.more or ())),
            less=tuple(self.less or ()),
            moves=tuple(map(read_move, self.moves or ())),
            upgrades=tuple(map(read_upgrade, self.upgrades or ())),
            offline=tuple(self.offline or ()),
            lost=tuple(self.lost or ()),
        ).about(group)


ResourceModelOption = Annotated[bool, typer.Option("--resource-model")]
MaxNodeFailures = Annotated[int | None, typer.Option("--max-node-failures", metavar="K")]
CpusAfterFailure = Annotated[bool | None, typer.Option("--cpus-after-failure/--no-cpus-after-failure")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitOptions:
    """Limits of groups, in place of those of the policy."""

    heading: ClassVar = "Limits of groups"

    max_node_failures: MaxNodeFailures = None
    oversubscription: Annotated[float | None, typer.Option("--oversubscription", metavar="RATIO")] = None
    cpus_after_failure: CpusAfterFailure = None

    def read(self) -> gpolicy.Limits:
        """Return them for the count."""
        return gpolicy.Limits(**asdict(self))


def policy_path(path: Path | None, option: Path | None) -> Path | None:
    """Return the policy that is given as an argument or as an option, None for neither."""
    if path is not None and option is not None:
        raise UsageError(f"two policies are given: {path} and --policy {option}", hint="give one of them")
    return path or option


def signers_for(plan: Path, allowed: Path | None, signature: Path | None) -> Signers | None:
    """Return the required signer of `plan`, None if none is required."""
    from gpolicy.plan.trust import Signers  # noqa: PLC0415

    if allowed is None:
        if signature is not None:
            raise UsageError("--signature needs --signers", hint="say with --signers FILE whose signature counts")
        return None
    beside = plan.with_name(f"{plan.name}.sig")
    return Signers(allowed=allowed, signature=signature or beside, search_path=os.environ.get("PATH", os.defpath))


def source_options(rapi: RapiOptions, *, volumes: bool = False) -> SourceOptions:
    """Return how to read a cluster, from the options."""
    return SourceOptions(
        rapi_credentials=rapi.rapi_credentials,
        rapi_ca=rapi.rapi_ca,
        rapi_insecure=rapi.insecure_rapi,
        physical_volumes=volumes,
    )


_FIRST: Final = "state"


def with_typer_defaults(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Return `verb` with the Typer part of each `Annotated` parameter as the parameter's default.

    A parameter of a dataclass becomes one parameter for each field. In the help, the verb's own options follow the one
    for the state, and those that it shares with others come last.
    """
    hints = get_type_hints(verb, include_extras=True)
    shared: dict[str, Any] = {name: hint for name, hint in hints.items() if name != "return" and is_dataclass(hint)}
    own = [
        _with_default(item, hints[name])
        for name, item in inspect.signature(verb).parameters.items()
        if name not in shared
    ]
    common = [parameter for kind in shared.values() for parameter in _fields(kind)]
    parameters = sorted([*own, *common], key=lambda item: (item.name != _FIRST, item not in own))

    @wraps(verb)
    def run(**values: Any) -> Any:
        for name, kind in shared.items():
            values[name] = kind(**{item.name: values.pop(item.name) for item in fields(kind)})
        return verb(**values)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = inspect.Signature(parameters)
    return run


def _fields(kind: Any) -> list[inspect.Parameter]:
    """Return the fields of a dataclass as parameters, under its `heading` in the help."""
    hints = get_type_hints(kind, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    plain = (inspect.Parameter(item.name, keyword, default=item.default) for item in fields(kind))
    found = [_with_default(parameter, hints[parameter.name]) for parameter in plain]
    for parameter in found:
        owner = next(one for one in kind.__mro__ if parameter.name in vars(one).get("__annotations__", {}))
        parameter.default.rich_help_panel = None if parameter.name == _FIRST else owner.heading
    return found


def _with_default(parameter: inspect.Parameter, hint: Any) -> inspect.Parameter:
    if get_origin(hint) is not Annotated:
        return parameter.replace(kind=parameter.KEYWORD_ONLY, annotation=hint)
    kind, about = get_args(hint)
    about = copy(about)
    if isinstance(about, OptionInfo) and about.default is not ...:  # in `Annotated` the name of the option is first
        about.param_decls = (str(about.default), *(about.param_decls or ()))
    about.default = ... if parameter.default is parameter.empty else parameter.default
    if get_origin(kind) is UnionType:
        kind = Union[get_args(kind)]  # noqa: UP007 (what `kind` contains is not known before)
    return parameter.replace(kind=parameter.KEYWORD_ONLY, default=about, annotation=kind)
