"""`place`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.output import write_report
from gpolicy.cli.terminal import working
from gpolicy.cli.under_policy import read_under
from gpolicy.errors import ExitCode
from gpolicy.report.forms import Look

if TYPE_CHECKING:
    from gpolicy.cluster.sources import SourceOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is to be placed, and how to show it. `policy`: on the cluster as it is once that policy is applied."""

    words: Sequence[str]
    state: str
    options: SourceOptions
    policy: Path | None
    look: Look


def place(request: Request) -> int:
    """Print where the instance would go; exit code 1 if nowhere."""
    from gpolicy.analysis.placing import place as find  # noqa: PLC0415
    from gpolicy.analysis.request_words import read_words  # noqa: PLC0415
    from gpolicy.report.place_answer import place_answer  # noqa: PLC0415
    from gpolicy.report.place_json import place_json  # noqa: PLC0415

    words = read_words(request.words)
    found = read_under(request.policy, request.state, request.options)
    if found is None:
        return int(ExitCode.FINDINGS)
    state, names = found
    with working("trying every node"):
        report = find(state, words.on(state, names), names=names)
    write_report(request.look, lambda: place_answer(report), {"json": lambda: place_json(report)})
    return int(ExitCode.FINE if report.ok else ExitCode.FINDINGS)
