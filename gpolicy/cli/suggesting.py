"""`suggest`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpolicy.cli.checking import read
from gpolicy.cli.output import write_report
from gpolicy.cli.terminal import working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.report.forms import Look

if TYPE_CHECKING:
    from pathlib import Path

    from gpolicy.cluster.sources import SourceOptions
    from gpolicy.suggest.suggestion import Bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What sizes are wanted, as it was written, and how to show them. Names as in `SuggestRequest`."""

    state: str
    options: SourceOptions
    group: str | None
    template: str | None
    sizes: str | None
    bounds: str | None
    vcpu_ratio: float | None
    margin: float
    pv_size: str | None
    mix: str | None
    empty: bool
    output: Path | None
    look: Look


def suggest(request: Request) -> int:
    """Print sizes that tile the nodes, and the document that declares them; return the exit code."""
    from gpolicy.report.suggest_answer import suggest_answer  # noqa: PLC0415
    from gpolicy.report.suggest_json import suggest_json  # noqa: PLC0415
    from gpolicy.suggest import suggesting  # noqa: PLC0415
    from gpolicy.suggest.document import documents  # noqa: PLC0415
    from gpolicy.suggest.size_names import parse_mix, parse_sizes  # noqa: PLC0415
    from gpolicy.suggest.suggestion import SuggestRequest as Wanted  # noqa: PLC0415

    wanted = Wanted(
        template=request.template,
        divisors=None if request.sizes is None else parse_sizes(request.sizes),
        bounds=_bounds(request.bounds),
        vcpu_ratio=request.vcpu_ratio,
        margin=request.margin,
        volume=None if request.pv_size is None else _volume(request.pv_size),
        mix=None if request.mix is None else parse_mix(request.mix),
        empty=request.empty,
    )
    state = read(request.state, request.options)
    with working("trying sizes"):
        report = suggesting.suggest(state, wanted, group=request.group)
    text = documents(report)
    if request.output is not None:
        from gpolicy.writing.new_files import write_new_file  # noqa: PLC0415

        write_new_file(request.output, text)
    write_report(
        request.look,
        lambda: suggest_answer(report, request.output),
        {"json": lambda: suggest_json(report), "yaml": lambda: text if request.output is None else ""},
    )
    return int(ExitCode.FINE)


def _bounds(name: str | None) -> Bounds | None:
    match name:
        case None | "fixed" | "ranges":
            return name
    raise UsageError(f"unknown bounds {name!r}", hint="fixed: the sizes alone; ranges: everything between as well")


def _volume(text: str) -> int:
    from gpolicy.ganeti.units import parse_size_exact  # noqa: PLC0415

    try:
        return int(parse_size_exact(text))
    except ValueError as error:
        raise UsageError(f"--pv-size {text!r}: {error}") from None
