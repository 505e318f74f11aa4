"""The suggestion as a NodeGroup document, with comments that explain each number (`templates/sizes.yaml.j2`)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from gpolicy.allocator.cluster_data import DiskTemplate, SpecPair
from gpolicy.analysis.capacity import spec_values
from gpolicy.data import data_directory
from gpolicy.ganeti.amounts import exact_size, format_size
from gpolicy.ganeti.parameter import Values
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.vocabulary import DRBD_METADATA
from gpolicy.ganeti.volume_arithmetic import VolumeSize
from gpolicy.printable import count, some
from gpolicy.suggest.grounds import ALIKE
from gpolicy.suggest.suggestion import Suggestion, SuggestReport, SuggestRequest
from gpolicy.writing.documents import SCHEMA_FILE, modelines
from gpolicy.writing.yaml_text import Node, comment_lines, entry, flow, one_line, written_value

if TYPE_CHECKING:
    from jinja2 import Template

_NODES_SHOWN: Final = 6
_MINMAX: Final = ("ipolicy", "minmax")


def declared_values(
    template: DiskTemplate, ratio: float | None, pairs: Iterable[SpecPair], *, exclusive: bool
) -> Values:
    """Return the own values of the group in the document; `ratio` None: its vcpu-ratio stays."""
    values: Values = {}
    if exclusive:
        values["ndparams", "exclusive_storage"] = True
        values["ipolicy", "disk-templates"] = [template.value]
    if ratio is not None:
        values["ipolicy", "vcpu-ratio"] = float(ratio)
    values[_MINMAX] = [{"min": dict(spec_values(pair.min)), "max": dict(spec_values(pair.max))} for pair in pairs]
    return values


def documents(report: SuggestReport) -> str:
    """Return all suggested documents as one file."""
    return "---\n".join(item.document for item in report.groups)


def document(made: Suggestion, request: SuggestRequest, source: str) -> str:
    """Return the document as text."""

    def written(*path: str) -> Any:
        parameter = parameter_at(path)
        assert parameter is not None  # noqa: S101 (it is in the table)
        return written_value(parameter, made.values[path])

    def value(*path: str, comment: str = "") -> str:
        return "\n".join(entry(path[-1], written(*path), indent=2, comment=comment, as_flow=True))

    std: dict[str, Node] = {
        name: exact_size(number) if name.endswith("-size") else number for name, number in spec_values(made.std).items()
    }
    return _template().render(
        made=made,
        modelines="\n".join(modelines(f"../{SCHEMA_FILE}")),
        source=one_line(source),
        name="\n".join(entry("name", made.group)),
        hardware="\n".join(entry("hardware", found, as_flow=True)) if (found := _hardware(made)) else "",
        value=value,
        margin=f"{request.margin:g}",
        metadata=DRBD_METADATA,
        sizes=list(zip(made.sizes, written(*_MINMAX), strict=True)),
        standard=std,
    )


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (only rendering needs it)

    def comment(text: str, indent: int = 0) -> str:
        lines = comment_lines(text.strip().replace("\n", " "), indent=indent)
        return "".join(f"{line}\n" for line in lines)

    environment = Environment(
        loader=FileSystemLoader(data_directory("templates"), encoding="utf-8"),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,  # noqa: S701 (YAML: texts of others are only in comments and in entries)
    )
    environment.filters |= {"comment": comment, "flow": flow, "size": exact_size, "count": count}
    environment.filters["names"] = lambda kind: one_line(some([node.name for node in kind.nodes], _NODES_SHOWN))
    environment.filters["usable"] = lambda volume: VolumeSize(volume).usable
    return environment.get_template("sizes.yaml.j2")


def _hardware(made: Suggestion) -> dict[str, Node]:
    """Return the hardware that all nodes share: the least memory, and equal counts."""
    nodes = [node for kind in made.kinds for node in kind.nodes]
    found: dict[str, Node] = {}
    least, most = (end(node.total_memory for node in nodes) for end in (min, max))
    if least >= ALIKE * most:
        found["memory"] = _written_size(least)
    cpus = {node.total_cpus for node in nodes}
    if len(cpus) == 1 and cpus != {0}:
        found["cpus"] = cpus.pop()
    if made.volume is not None:
        volumes = {node.room.volumes for node in nodes}
        if len(volumes) == 1:
            found["pv_count"] = volumes.pop() or 0
        found["pv_size"] = _written_size(made.volume)
    return found


def _written_size(size: int) -> Node:
    text = format_size(size)
    return int(text) if text.isdigit() else text
