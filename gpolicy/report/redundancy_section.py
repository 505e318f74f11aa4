"""Redundancy before and after: the losses of nodes that each group can absorb, and why it cannot absorb others."""

import math
from collections.abc import Iterable
from typing import Final

from gpolicy.analysis.losses import Loss
from gpolicy.analysis.node_losses import GroupRedundancy
from gpolicy.analysis.shown_score import Score
from gpolicy.impact.impact import GroupRedundancyChange, RedundancyChange
from gpolicy.printable import count
from gpolicy.report.answer import NOTHING, Cell, Name, Number, Section, Table, Weight, names, section_of_tables, size

TITLE: Final = "Node failures"
_LOSS_HEADINGS: Final = ("group", "instance", "nodes lost", "missing", "figures", "since")


def redundancy_section(change: RedundancyChange) -> Section:
    """Return the effect of the changes on redundancy and the cluster score."""
    fallen = [item for item in change.groups if _fallen(item) or item.newly_lost]
    wanting = [item for item in change.groups if item.after and (item.after.not_absorbed or item.after.shortages)]
    weak = [item for item in change.groups if _differs(item) or item in wanting]
    tables = (
        Table(
            f"Losses of up to {count(change.failures, 'node')} at once, whichever they are",
            "groups",
            ("group", Number("nodes"), Number("survives today"), Number("survives after")),
            list(map(_row, weak)),
            weight=Weight.WORSE if fallen else Weight.CHANGED,
        ),
        _losses("Losses that cannot be absorbed", change, strained=False),
        _losses("Instances that find room after a loss, but only against the policy", change, strained=True),
        _shortages(change.groups),
        _score(change.score_before, change.score_after),
    )
    unknown = [
        f"not known for group {item.group}: {item.after.unavailable}"
        for item in change.groups
        if item.after is not None and item.after.unavailable
    ]
    said = {"summary": _summary(change, fallen), "worse": _worse(fallen), "unknown": tuple(unknown)}
    return section_of_tables("redundancy", TITLE, tables, change.notes, **said)


def _survives(group: GroupRedundancy | None) -> str:
    return NOTHING if group is None else f"{group.survives} of {group.asked}"


def _row(item: GroupRedundancyChange) -> tuple[Cell, ...]:
    there = item.after or item.before
    nodes = f"{there.nodes:,}" if there else NOTHING
    return (Name(item.group), nodes, _survives(item.before), _survives(item.after))


def _fallen(item: GroupRedundancyChange) -> bool:
    """Return whether a group survives fewer failures; one without nodes has nothing to lose."""
    now, then = item.before, item.after
    return now is not None and then is not None and then.survives < now.survives and then.nodes > 0


def _differs(item: GroupRedundancyChange) -> bool:
    now, then = item.before, item.after
    if now is None or then is None:
        return any(side.nodes for side in (now, then) if side is not None)
    if not then.nodes:
        return False
    return (now.survives, _lost_sets(now)) != (then.survives, _lost_sets(then))


def _lost_sets(group: GroupRedundancy) -> list[tuple[str, ...]]:
    return [loss.nodes for loss in group.not_absorbed]


def _losses(title: str, change: RedundancyChange, *, strained: bool) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for item in change.groups:
        for loss in item.after.losses if item.after else ():
            since = _since(item, loss, strained=strained)
            for homeless in loss.strained if strained else loss.homeless:
                why = (f"{homeless.key}: {homeless.explanation}", homeless.detail)
                rows.append((Name(item.group), Name(homeless.instance), names(loss.nodes), *why, since))
    new = any(row[-1] == "newly" for row in rows)
    weight = Weight.SAME if not new else Weight.CHANGED if strained else Weight.WORSE
    if rows and not strained:
        weight = max(weight, Weight.CHANGED)  # wrong, be it as before
    if weight is Weight.SAME:
        title += ", as before"
    return Table(title, "instances", _LOSS_HEADINGS, rows, weight=weight, grouped=1)


def _since(item: GroupRedundancyChange, loss: Loss, *, strained: bool) -> str:
    for old in item.before.losses if item.before else ():
        if old.nodes == loss.nodes and (old.strained if strained else old.homeless):
            return "as before"
    return "with other nodes" if item.of_other_nodes(loss) else "newly"


def _shortages(groups: Iterable[GroupRedundancyChange]) -> Table:
    rows = []
    for item in groups:
        known = {shortage.node for shortage in item.before.shortages} if item.before else set()
        for shortage in item.after.shortages if item.after else ():
            since = "as before" if shortage.node in known else "newly"
            rows.append((Name(item.group), Name(shortage.node), size(shortage.reserved), size(shortage.free), since))
    headings = ("group", "node", Number("needed"), Number("free"), "since")
    new = any(row[-1] == "newly" for row in rows)
    title = "Nodes that keep too little memory for the instances they are secondary of"
    return Table(title, "nodes", headings, rows, weight=Weight.WORSE if new else Weight.CHANGED)


def _score(now: Score, then: Score) -> Table:
    """Return the components that change, and the score that is their sum."""
    same = now.total == then.total or (math.isnan(now.total) and math.isnan(then.total))
    before = {item.name: item for item in now.components}
    after = {item.name: item for item in then.components}
    rows: list[tuple[Cell, ...]] = []
    if not same:
        rows.append(("cluster score", now.shown, then.shown))
        rows.append(("theoretical minimum", now.shown_minimum, then.shown_minimum))
        for name in before | after:
            shown = [items[name].shown[2] if name in items else NOTHING for items in (before, after)]
            if shown[0] != shown[1]:
                rows.append((name, *shown))
    title = "Cluster score as htools computes it (smaller is better balanced)"
    return Table(title, "components", ("component, weighted", Number("today"), Number("after")), rows)


def _worse(fallen: list[GroupRedundancyChange]) -> str:
    if not fallen:
        return ""
    more = f" and {count(len(fallen) - 1, 'more group')}" if len(fallen) > 1 else ""
    return f"{_fallen_words(fallen[0])}{more}"


def _fallen_words(item: GroupRedundancyChange) -> str:
    now, then = (group.survives if group else 0 for group in (item.before, item.after))
    lost = f", {count(len(item.newly_lost), 'loss', 'losses')} newly cannot be absorbed" if item.newly_lost else ""
    today, after = (count(number, "node") if number else "no node" for number in (now, then))
    return f"today group {item.group} survives the loss of {today}, after of {after}{lost}"


def _summary(change: RedundancyChange, fallen: list[GroupRedundancyChange]) -> str:
    parts = list(map(_fallen_words, fallen))
    others = [item for item in change.groups if item not in fallen and item.after]
    risen = [item for item in others if item.before and item.after and item.after.survives > item.before.survives]
    parts += map(_fallen_words, risen)
    weak = [item for item in others if item not in risen and item.after and item.after.not_absorbed]
    if weak:
        some = ", ".join(item.group for item in weak[:3]) + (" and others" if len(weak) > 3 else "")
        parts.append(f"as before, not every loss of a node can be absorbed in {some}")
    elsewhere = "in the other groups " if change.unavailable else ""
    return (
        "; ".join(parts)
        or f"{elsewhere}every loss of up to {count(change.failures, 'node')} that is absorbed today is absorbed after"
    )
