"""Instances and nodes against the policy as tables: who newly violates it, by which parameter and by how much."""

from collections.abc import Iterable, Sized
from typing import Final

from gpolicy.analysis.violations import ParameterBreach, PolicyViolation
from gpolicy.ganeti.vocabulary import SPEC_SIZES
from gpolicy.impact import comparison
from gpolicy.printable import count, some
from gpolicy.report.answer import Cell, Name, Section, Table, Weight, section_of_tables, size

TITLE: Final = "Violations"
_MINMEM_NEWLY: Final = "minmem newly outside: gnt-instance modify will refuse without --ignore-ipolicy"
_HEADINGS: Final = ("instance", "primary node", "group", "what", "size")


def violations_section(change: comparison.ViolationChange) -> Section:
    """Return what the changes do to instances and nodes that are there."""
    tables = (
        _table("Newly violating", change.newly, Weight.WORSE),
        _node_table("Newly policy-violating nodes", change.nodes_newly, Weight.WORSE),
        _table("No longer violating", change.no_longer, Weight.CHANGED),
        _node_table("No longer policy-violating nodes", change.nodes_no_longer, Weight.CHANGED),
        _unknown(change.unknown),
        _unknown_nodes(change.nodes_unknown),
        _table(_MINMEM_NEWLY, change.minmem_newly, Weight.WORSE),
        _table("minmem no longer outside", change.minmem_no_longer, Weight.CHANGED),
        _table("Violating as before", change.still, Weight.SAME),
        _node_table("Policy-violating nodes as before", change.nodes_still, Weight.SAME),
        _table("minmem outside as before", change.minmem_still, Weight.SAME),
    )
    cures = {
        "commands that make their sizes legal": change.newly,
        "moves that end what nodes have too much of": change.nodes_newly,
    }
    notes = tuple(f"`gpolicy remedy PLAN.JSON` names the {cure}, or says why none do" for cure in cures if cures[cure])
    said = {"summary": _summary(change), "worse": _worse(change), "unknown": _not_judged(change)}
    return section_of_tables("violations", TITLE, tables, notes, **said)


def _not_judged(change: comparison.ViolationChange) -> tuple[str, ...]:
    """Return the sentence that names the instances and nodes that cannot be judged."""
    names = [*(item.instance for item in change.unknown), *(item.node for item in change.nodes_unknown)]
    verb = "violates" if len(names) == 1 else "violate"
    return (f"not known whether {some(names, 2)} {verb} the policy",) if names else ()


def breach_words(breach: ParameterBreach) -> str:
    """Return in words what lies outside, and by how much."""
    if breach.parameter == "spindles":
        return "a disk has no spindle count"
    if breach.parameter == "disk-templates":
        return f"disk template {breach.value} is not allowed ({', '.join(breach.allowed)})"
    subject = breach.parameter if breach.disk is None else f"{breach.parameter} of disk {breach.disk}"
    if not isinstance(breach.value, int) or breach.minimum is None or breach.maximum is None:
        return f"{subject} {breach.value}"
    above = breach.value > breach.maximum
    limit = breach.maximum if above else breach.minimum
    numbers = (breach.value, limit, abs(breach.beyond or 0))
    shown, bound, by = (size(one) if breach.parameter in SPEC_SIZES else f"{one:,}" for one in numbers)
    return f"{subject} {shown} is {by} {'above' if above else 'below'} {bound}"


def pair_words(violation: PolicyViolation) -> str:
    """Return how the size of a violation is called."""
    return violation.pair_name or f"size {violation.pair}"


def _table(title: str, items: Iterable[comparison.InstanceViolation], weight: Weight) -> Table:
    rows = [_row(item, violation) for item in items if (violation := item.after or item.before)]
    return Table(title, "instances", _HEADINGS, rows, weight=weight)


def _row(item: comparison.InstanceViolation, violation: PolicyViolation) -> tuple[Cell, ...]:
    what = "; ".join(map(breach_words, violation.breaches))
    return (Name(item.instance), Name(item.primary_node), Name(violation.group), what, Name(pair_words(violation)))


def _node_table(title: str, items: Iterable[comparison.NodeViolation], weight: Weight) -> Table:
    rows = [
        (Name(item.node), Name(item.group), "; ".join(breach.sentence for breach in item.after or item.before))
        for item in items
    ]
    return Table(title, "nodes", ("node", "group", "what"), rows, weight=weight)


def _unknown_nodes(items: Iterable[comparison.UnknownNodeViolation]) -> Table:
    rows = [(Name(item.node), Name(item.group), ", ".join(item.parameters), item.reason) for item in items]
    title = "Nodes that may newly violate a stricter ratio: not known"
    return Table(title, "nodes", ("node", "group", "ratio", "why"), rows)


def _unknown(items: Iterable[comparison.UnknownViolation]) -> Table:
    rows = []
    for item in items:
        known = item.after.violation
        so_far = "; ".join(map(breach_words, known.breaches)) if known else "nothing speaks against it"
        rows.append((Name(item.instance), Name(item.primary_node), ", ".join(item.parameters), so_far))
    headings = ("instance", "primary node", "not shown", "known so far")
    return Table("Not known, since the source does not show what decides", "instances", headings, rows)


def _summary(change: comparison.ViolationChange) -> str:
    parts: list[str] = []

    def tell(when: str, instances: Sized, nodes: Sized, after: str = "") -> None:
        policy = "it" if parts else "the policy"
        who = comparison.violators(len(instances), len(nodes))
        verb = "violates" if len(instances) + len(nodes) == 1 else "violate"
        parts.extend([f"{who} {when}{verb} {policy}{after}"] if who else [])

    tell("newly ", change.newly, change.nodes_newly)
    tell("no longer ", change.no_longer, change.nodes_no_longer)
    if change.minmem_newly:
        parts.append(f"the minmem of {count(len(change.minmem_newly), 'instance')} is newly outside")
    tell("", change.still, change.nodes_still, " as before")
    other = "other " if change.unknown or change.nodes_unknown else ""
    return "; ".join(parts) or f"no {other}instance and no node begins or ceases to violate the policy"


def _worse(change: comparison.ViolationChange) -> str:
    known = [*(item.instance for item in change.newly), *(item.node for item in change.nodes_newly)]
    newly = known or [item.instance for item in change.minmem_newly]
    if not newly:
        return ""
    more = f" and {len(newly) - 1} more newly violate" if len(newly) > 1 else " newly violates"
    return f"{newly[0]}{more} the policy{'' if known else ' with minmem'}"
