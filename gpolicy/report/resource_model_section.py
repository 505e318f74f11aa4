"""The resource model as tables: declared and reported numbers, and the effect on capacity."""

from __future__ import annotations

from typing import Final

from gpolicy.analysis.resource_models import GroupModel, NodeModel, ResourceModel
from gpolicy.impact.impact import ResourceModelChange
from gpolicy.printable import count
from gpolicy.report.answer import (
    NOTHING,
    Cell,
    Name,
    Section,
    Table,
    Weight,
    heaviest,
    names,
    rough_size,
    size,
    with_rows,
)

TITLE: Final = "Resource model"
_RIGHT: Final = frozenset(
    {
        "declared",
        "reported",
        "memory, measured",
        "memory, declared",
        "disk, measured",
        "disk, declared",
        "measured",
        "declared now",
        "declared then",
        "minmem",
        "maxmem",
        "memory",
        "ratio",
    }
)


def resource_model_section(change: ResourceModelChange) -> Section:
    """Return the differences of both models of free resources after the changes."""
    weight = Weight.SAME if change.before == change.after else Weight.CHANGED
    then = change.after
    tables = with_rows(
        _groups(change, weight),
        _declared(then, weight),
        _free(then, weight),
        _over_subscribed(then),
    )
    return Section(
        key="resource_model",
        title=TITLE,
        weight=heaviest(tables),
        summary=_summary(change),
        parts=tables,
        notes=then.notes,
    )


def _groups(change: ResourceModelChange, weight: Weight) -> Table:
    before = {group.group: group for group in change.before.groups}
    return Table(
        title="Standard instances that fit, by measured and by declared values",
        of="groups",
        headings=("group", "measured", "declared now", "declared then", "bound by"),
        rows=tuple(_group(group, before.get(group.group)) for group in change.after.groups),
        right=_RIGHT,
        weight=weight,
    )


def _group(then: GroupModel, now: GroupModel | None) -> tuple[Cell, ...]:
    before = NOTHING if now is None else f"{now.configured_fits:,}"
    measured = NOTHING if then.measured_fits is None else f"{then.measured_fits:,}"
    figures = (measured, before, f"{then.configured_fits:,}")
    return (Name(then.group), *figures, then.configured_binding.cause.key)


def _declared(model: ResourceModel, weight: Weight) -> Table:
    """Return the differences, with one row for all nodes with the same difference."""
    alike: dict[tuple[Cell, ...], list[str]] = {}
    for node in model.nodes:
        for item in node.declared:
            if item.differs:
                shown = (
                    item.name,
                    item.amount(item.declared),
                    item.level,
                    NOTHING if item.reported is None else item.amount(item.reported),
                )
                alike.setdefault(shown, []).append(node.node)
    return Table(
        title="Declared values that differ from what nodes report",
        of="values",
        headings=("value", "declared", "by", "reported", "nodes"),
        rows=tuple((*shown, names(nodes)) for shown, nodes in alike.items()),
        right=_RIGHT,
        weight=weight,
    )


def _free(model: ResourceModel, weight: Weight) -> Table:
    rows = [
        (
            Name(node.node),
            rough_size(node.measured.free_memory),
            rough_size(node.configured.free_memory),
            rough_size(node.measured.free_disk),
            rough_size(node.configured.free_disk),
        )
        for node in model.nodes
        if node.measured is not None
        and (node.measured.free_memory, node.measured.free_disk)
        != (node.configured.free_memory, node.configured.free_disk)
    ]
    return Table(
        title="Free memory and disk, by both models",
        of="nodes",
        headings=("node", "memory, measured", "memory, declared", "disk, measured", "disk, declared"),
        rows=tuple(rows),
        right=_RIGHT,
        weight=weight,
    )


def _over_subscribed(model: ResourceModel) -> Table:
    return Table(
        title="Nodes whose instances may together want more memory (maxmem) than there is",
        of="nodes",
        headings=("node", "minmem", "maxmem", "memory", "ratio"),
        rows=tuple(
            (
                Name(node.node),
                size(node.minimum_memory),
                size(node.maximum_memory),
                size(node.available_memory),
                f"{node.oversubscription:.2f}",
            )
            for node in _over(model)
            if node.oversubscription is not None
        ),
        right=_RIGHT,
        weight=Weight.SAME,
    )


def _over(model: ResourceModel) -> list[NodeModel]:
    return [node for node in model.nodes if node.oversubscription is not None and node.oversubscription > 1]


def _summary(change: ResourceModelChange) -> str:
    then = change.after
    stated = any(node.declared for node in then.nodes)
    parts = [] if stated else ["nothing is declared"]
    odd = [node for node in then.nodes if any(item.differs for item in node.declared)]
    if odd:
        parts.append(f"{count(len(odd), 'node')} with declared values that differ from reported ones")
    parts += [
        f"by declaration {group.configured_fits:,} standard instances fit in {group.group},"
        f" by measurement {group.measured_fits:,}"
        for group in then.groups
        if group.measured_fits is not None and group.configured_fits != group.measured_fits
    ]
    over = _over(then)
    if over:
        parts.append(f"{count(len(over), 'node')} over-subscribed in memory")
    compared = any(item.reported is not None for node in then.nodes for item in node.declared)
    agreed = "declared values agree with what nodes report" if compared else "nodes report nothing to compare with"
    return "; ".join(parts) or agreed
