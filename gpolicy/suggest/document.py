"""The suggestion as a NodeGroup document, with comments that explain each number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from gpolicy.allocator.cluster_data import SpecPair
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.analysis.capacity import spec_values
from gpolicy.ganeti.amounts import exact_size, format_size
from gpolicy.ganeti.parameter import Path, Values
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.vocabulary import DRBD_METADATA
from gpolicy.ganeti.volume_arithmetic import VolumeSize
from gpolicy.printable import count, some
from gpolicy.suggest.grounds import ALIKE
from gpolicy.suggest.suggestion import NodeKind, Size, Suggestion, SuggestReport, SuggestRequest
from gpolicy.writing.documents import SCHEMA_FILE, file_text, modelines
from gpolicy.writing.yaml_text import Node, comment_lines, entry, flow, written_value

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


def document(suggestion: Suggestion, request: SuggestRequest, source: str) -> str:
    """Return the document as text."""
    return file_text(_lines(suggestion, request, source))


def _lines(made: Suggestion, request: SuggestRequest, source: str) -> Iterator[str]:
    yield from modelines(f"../{SCHEMA_FILE}")
    yield from comment_lines(
        f"Sizes that tile the nodes of group {made.group}, suggested from what {source} shows of them. What is not"
        " written here is not managed. The names of the sizes are for guards, tests and reports."
    )
    yield "gpolicy: v1"
    yield "kind: NodeGroup"
    yield from entry("name", made.group)
    yield ""
    for place, kind in enumerate(made.kinds, start=1):
        yield from comment_lines(_kind(place, kind, made))
    hardware = _hardware(made)
    if hardware:
        yield from entry("hardware", hardware, as_flow=True)
    values = made.values
    if made.exclusive:
        yield ""
        yield from comment_lines("The sizes below depend on it: a disk takes whole physical volumes, called spindles.")
        yield "ndparams:"
        yield from _leaf(("ndparams", "exclusive_storage"), values)
    yield ""
    yield from comment_lines(_memory(made, request))
    yield from comment_lines(_disk(made))
    yield from comment_lines(_bounds(made))
    yield "ipolicy:"
    yield "  minmax:"
    for size, pair in zip(made.sizes, _written(_MINMAX, values), strict=True):
        yield from comment_lines(_size(size, made), indent=4)
        yield f"    - name: {size.name}"
        yield f"      min: {flow(pair['min'])}"
        yield f"      max: {flow(pair['max'])}"
    if made.exclusive:
        yield from _leaf(("ipolicy", "disk-templates"), values, "exclusive storage is for plain disks only")
    if made.writes_ratio:
        why = "one CPU for each virtual CPU" if made.vcpu_ratio == 1 else "the sizes above depend on it"
        yield from _leaf(("ipolicy", "vcpu-ratio"), values, why)
    if made.std_in is None:
        yield from comment_lines(_std(made), indent=2)


def _leaf(path: Path, values: Values, comment: str = "") -> list[str]:
    return entry(path[-1], _written(path, values), indent=2, comment=comment, as_flow=True)


def _written(path: Path, values: Values) -> Any:
    parameter = parameter_at(path)
    assert parameter is not None  # noqa: S101 (it is in the table)
    return written_value(parameter, values[path])


def _kind(place: int, kind: NodeKind, made: Suggestion) -> str:
    names = [node.name for node in kind.nodes]
    node = min(kind.nodes, key=lambda node: node.room.memory)
    room = kind.room
    kept = f"{exact_size(node.kept_memory)} for the node itself or not free"
    parts = [
        f"of {exact_size(node.total_memory)} memory instances may use {exact_size(room.memory)} ({kept})",
        f"of {node.total_cpus} CPUs {made.vcpu_ratio:g} times, less {node.kept_cpus} for the node itself, {room.cpus}",
    ]
    if room.volumes is not None:
        parts.append(count(room.volumes, "physical volume"))
    elif room.disk is not None:
        parts.append(f"{exact_size(room.disk)} disk")
    which = f"Kind {place}: " if len(made.kinds) > 1 else ""
    return f"{which}{count(len(names), 'node')} ({some(names, _NODES_SHOWN)}): {'; '.join(parts)}."


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


def _memory(made: Suggestion, request: SuggestRequest) -> str:
    text = (
        f"Memory: measured, less {request.margin:g} % because it varies from boot to boot, divided and rounded down."
        " A node must keep some free memory, so the last MiB stay unused."
    )
    if not made.ground.mirrored:
        return text
    return (
        f"{text} With DRBD a node reserves memory for the instances that fail over from one other node (N+1): they"
        " count in the division, too."
    )


def _disk(made: Suggestion) -> str:
    if made.volume is not None:
        usable = VolumeSize(made.volume).usable
        return (
            f"Disk: Ganeti counts a physical volume of {exact_size(made.volume)} as floor({made.volume} / 1.03) ="
            f" {usable} MiB: less 1 % for differences between volumes and 2 % in reserve. A size has the"
            " whole volumes of its part of the node, and disks that fill them."
        )
    if made.measure.disk is None:
        return f"Disk: {made.template.value} disks are not on the nodes; their sizes are those of today's policy."
    if made.ground.mirrored:
        return (
            "Disk: divided by twice the number, since a node is secondary of as many instances as primary, less"
            f" {DRBD_METADATA} MiB of metadata for each disk."
        )
    return "Disk: the free space of the volume group without instances, divided and rounded down."


def _bounds(made: Suggestion) -> str:
    if made.bounds == "fixed":
        return (
            "Bounds: an instance has one of the sizes. The minimum of memory is so close to the maximum that not one"
            " more fits on a node. disk-size is that of each disk, so an instance has one disk."
        )
    return (
        "Bounds: every memory size up to the largest is allowed; a size begins where the next smaller one ends."
        " disk-size is that of each disk: an instance with several such disks takes more than its part of a node."
    )


def _size(size: Size, made: Suggestion) -> str:
    whole = size.size
    ground, room = made.ground, made.measure
    number = size.divisor
    kept = ground.kept(number)
    reserved = f" and {kept} x as much reserved for N+1" if kept else ""
    memory = f"{number} x {exact_size(whole.memory)} memory{reserved}"
    parts = [
        f"{memory} = {exact_size((number + kept) * whole.memory)} of {exact_size(room.memory)}",
        f"{number} x {count(whole.cpus, 'CPU')} = {number * whole.cpus} of {room.cpus}",
    ]
    if whole.volumes is not None and room.volumes is not None:
        parts.append(f"{number} x {whole.volumes} = {number * whole.volumes} of {count(room.volumes, 'volume')}")
    elif whole.disk is not None and room.disk is not None:
        times = 2 * number if ground.mirrored else number
        disk, all_disk = exact_size(whole.disk), exact_size(times * whole.disk)
        parts.append(f"{times} x {disk} disk = {all_disk} of {exact_size(room.disk)}")
    fill = "fills" if number == 1 else "fill"
    return f"{size.name}: {number} {fill} a node: {', '.join(parts)}."


def _std(made: Suggestion) -> str:
    values = spec_values(made.std).items()
    written: dict[str, Node] = {name: exact_size(n) if name.endswith("-size") else n for name, n in values}
    return (
        "The cluster's std, which groups cannot set, fits none of these sizes, so hspace will count no standard"
        f" instances here. One that fits: {flow(written)}"
    )
