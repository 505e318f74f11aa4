"""The resource model as tables: declared and reported numbers, and the effect on capacity."""

from __future__ import annotations

from typing import Final

from gpolicy.analysis.resource_models import NodeModel, ResourceModel
from gpolicy.impact.impact import ResourceModelChange
from gpolicy.printable import count
from gpolicy.report import answer

TITLE: Final = "Resource model"


def resource_model_section(change: ResourceModelChange) -> answer.Section:
    """Return the differences of both models of free resources after the changes."""
    weight = answer.Weight.SAME if change.before == change.after else answer.Weight.CHANGED
    then = change.after
    before = {group.group: group for group in change.before.groups}
    rows = []
    for group in then.groups:
        now = before[group.group].configured_fits if group.group in before else None
        figures = map(answer.number, (group.measured_fits, now, group.configured_fits))
        rows.append((answer.Name(group.group), *figures, group.configured_binding.cause.key))
    headings = ("group", *map(answer.Number, ("measured", "declared today", "declared after")), "bound by")
    title = "Standard instances that fit, by measured and by declared values"
    fits = answer.Table(title, "groups", headings, rows, weight=weight)
    tables = (fits, _declared(then, weight), _free(then, weight), _over_subscribed(then))
    return answer.section_of_tables("resource_model", TITLE, tables, then.notes, summary=_summary(change))


def _declared(model: ResourceModel, weight: answer.Weight) -> answer.Table:
    """Return the differences, with one row for all nodes with the same difference."""
    alike: dict[tuple[answer.Cell, ...], list[str]] = {}
    for node in model.nodes:
        for item in node.declared:
            if item.differs:
                reported = answer.NOTHING if item.reported is None else item.amount(item.reported)
                shown = (item.name, item.amount(item.declared), item.level, reported)
                alike.setdefault(shown, []).append(node.node)
    headings = ("value", answer.Number("declared"), "by", answer.Number("reported"), "nodes")
    rows = [(*shown, answer.names(nodes)) for shown, nodes in alike.items()]
    return answer.Table("Declared values that differ from what nodes report", "values", headings, rows, weight=weight)


def _free(model: ResourceModel, weight: answer.Weight) -> answer.Table:
    rows = []
    for node in model.nodes:
        sides = node.measured, node.configured
        figures = [side and (side.free_memory, side.free_disk) for side in sides]
        if figures[0] is not None and figures[0] != figures[1]:
            rows.append(
                (answer.Name(node.node), *(answer.rough_size(x) for pair in zip(*figures, strict=True) for x in pair))
            )
    kinds = ("memory, measured", "memory, declared", "disk, measured", "disk, declared")
    return answer.Table(
        "Free memory and disk, by both models", "nodes", ("node", *map(answer.Number, kinds)), rows, weight=weight
    )


def _over_subscribed(model: ResourceModel) -> answer.Table:
    title = "Nodes whose instances may together want more memory (maxmem) than there is"
    rows = []
    for node in _over(model):
        sizes = map(answer.size, (node.minimum_memory, node.maximum_memory, node.available_memory))
        rows.append((answer.Name(node.node), *sizes, f"{node.oversubscription:.2f}"))
    headings = ("node", *map(answer.Number, ("minmem", "maxmem", "memory", "ratio")))
    return answer.Table(title, "nodes", headings, rows, weight=answer.Weight.SAME)


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
