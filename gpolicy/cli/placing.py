"""`place`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpolicy.cli.output import write_report
from gpolicy.cli.terminal import working
from gpolicy.cli.under_policy import read_under
from gpolicy.errors import ExitCode
from gpolicy.report.forms import Look

if TYPE_CHECKING:
    from gpolicy.analysis.pair_names import PairNames
    from gpolicy.analysis.wanted_instance import PlaceRequest
    from gpolicy.cluster.sources import SourceOptions
    from gpolicy.cluster.state import ClusterState


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
    from gpolicy.cli.place_words import read_words  # noqa: PLC0415
    from gpolicy.report.place_answer import place_answer  # noqa: PLC0415
    from gpolicy.report.place_json import place_json  # noqa: PLC0415

    words = read_words(request.words)
    found = read_under(request.policy, request.state, request.options)
    if found is None:
        return int(ExitCode.FINDINGS)
    state, names = found
    wanted = words.request if words.spec is None else _of_spec(words.request, words.spec, names, state)
    with working("trying every node"):
        report = find(state, wanted, names=names)
    write_report(request.look, lambda: place_answer(report), {"json": lambda: place_json(report)})
    return int(ExitCode.FINE if report.ok else ExitCode.FINDINGS)


def _of_spec(request: PlaceRequest, spec: str, names: PairNames, state: ClusterState) -> PlaceRequest:
    """Return the request with the least size of the spec pair for what it does not say.

    The template is then one that the pair's group allows: a size of another group says nothing about it.
    """
    from gpolicy.analysis.allocator_input import policy_of  # noqa: PLC0415
    from gpolicy.analysis.disk_templates import enabled_templates, first_allowed  # noqa: PLC0415
    from gpolicy.analysis.pair_names import find_pair  # noqa: PLC0415
    from gpolicy.analysis.wanted_instance import of_size  # noqa: PLC0415

    pair, group = find_pair(spec, names, state, request.group)
    nodes = state.nodes_of(group)
    exclusive = any(state.has_exclusive_storage(node) for node in nodes)
    if request.template is None:
        template = first_allowed(enabled_templates(state), policy_of(state.groups[group].effective, f"group {group}"))
        request = replace(request, template=template.value if template else None)
    return of_size(request, pair.min, exclusive=exclusive)
