"""GP226: one figure that makes many specs unsuitable."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from gpolicy.checking.context import Context, number
from gpolicy.checking.in_force import in_force
from gpolicy.checking.node_limits import VCPU_RATIO, kept_by_node, kept_disk, promised_size
from gpolicy.checking.pairs import amount
from gpolicy.checking.rule import Explains, Hit, Rule
from gpolicy.findings import Finding, Related, Span, warning_rule
from gpolicy.policy.model import ClusterPolicy, GroupPolicy, Leaf, Policy
from gpolicy.policy.source_file import Located
from gpolicy.printable import named
from gpolicy.rules.examples import GROUP, bounds

_JUDGES: Final = ("GP211", "GP212", "GP223", "GP402", "GP404", "GP405", "GP415", "GP416")
"""The rules that compare specs with what a node gives."""
_SPINDLES_SHARED: Final = 32
"""Ganeti's default of spindle-ratio: the weights of instances are arbitrary, and 1 may be too little."""


@dataclass(frozen=True, slots=True)
class _Figure:
    """A number of the policy, and the policy of one group as it would be if the number took nothing from a node."""

    name: str
    span: Span
    without: Policy
    note: str = ""


@dataclass(slots=True)
class _Refusals:
    """What disappears without a figure: the groups, their number of specs, those that are refused, the findings."""

    figure: _Figure
    groups: list[GroupPolicy] = field(default_factory=list)
    specs: int = 0
    refused: set[tuple[str, Span]] = field(default_factory=set)
    findings: dict[Finding, None] = field(default_factory=dict)

    @property
    def decides(self) -> bool:
        """Whether more than one spec is refused, and most of all: of one, the spec is more likely wrong."""
        return len({span for _, span in self.refused}) > 1 and len(self.refused) * 2 > self.specs


def _sized(cpus: int) -> str:
    large, small = bounds("32G 64G", "4 16", "100G 1T"), bounds("8G 16G", "2 8", "10G 90G")
    head = f"{GROUP}hardware: {{memory: 128G, cpus: {cpus}, pv_count: 8, pv_size: 1T}}\nipolicy:\n  vcpu-ratio: 1\n"
    return f"{head}  minmax:\n    - name: large\n      {large}    - name: small\n      {small}"


class FigureRefusesSpecs(Rule):
    info = warning_rule("GP226", "figure-refuses-specs")(
        summary="By one figure most specs of a group do not fit the nodes.",
        rationale="Hardware, what a node keeps, a ratio below 1 and the reserve of volumes hold for all specs of a"
        " group. If most of them no longer fit, and all would without this figure, then it is wrong rather than the"
        " specs. What the rules of the single specs find is not reported beside it. It is an error if one of those is.",
        source="Partitioned Ganeti, Constrained instance sizes",
        bad=_sized(6),
        good=_sized(16),
    )
    explains = Explains(one_by_one=True)
    finds_more_with_state = runs_last = True

    def check_after(self, context: Context, found: Sequence[Finding]) -> Iterator[Hit]:
        """Yield the figures that decide most of what was found about specs."""
        about = [finding for finding in found if finding.code in _JUDGES]
        judges = [code for code in _JUDGES if any(finding.code == code for finding in about)]
        decided: dict[Span, _Refusals] = {}
        for group in _refused_groups(context, about)[:20]:
            for figure, gone in _deciding(context, group, judges, about):
                refusals = decided.setdefault(figure.span, _Refusals(figure))
                refusals.groups.append(group)
                refusals.specs += len(context.pairs(group))
                refusals.findings.update(dict.fromkeys(gone))
                refusals.refused.update((group.name, span) for span in _refused(_pairs(context, group), gone))
        said: set[Finding] = set()
        for span, refusals in decided.items():
            findings = [finding for finding in refusals.findings if finding not in said]
            if refusals.decides and findings:
                said.update(findings)
                yield self._hit(context, span, refusals, findings)

    def _hit(self, context: Context, span: Span, refusals: _Refusals, findings: list[Finding]) -> Hit:
        file = context.policy.files.get(span.file)
        value = f" is {file.written(span)}" if file is not None else ""
        what = f"{refusals.figure.name}{value}{refusals.figure.note}"
        first = min(findings, key=lambda finding: finding.severity.rank)
        names = [group.name for group in refusals.groups]
        which = named("group", names)
        message = (
            f"{what}: by it {len(refusals.refused)} of {refusals.specs} specs of {which} do not fit the"
            f" nodes as meant; {first.message}"
        )
        related = tuple(Related(finding.span, finding.message) for finding in findings if finding.span)
        return self.hit(
            refusals.groups[0], message, span, hint="correct this figure, or all these specs", related=related
        )


def _refused_groups(context: Context, about: Sequence[Finding]) -> list[GroupPolicy]:
    """Return the groups some of whose specs are refused; none if it is one spec alone."""
    refused: dict[int, set[Span]] = {}  # by the list of pairs, which groups may share
    for group in context.groups if len({finding.span for finding in about if finding.span}) > 1 else ():
        if id(context.pairs(group)) not in refused:
            refused[id(context.pairs(group))] = _refused(_pairs(context, group), about)
    several = len(set().union(*refused.values())) > 1
    return [group for group in context.groups if several and refused[id(context.pairs(group))]]


def _pairs(context: Context, group: GroupPolicy) -> list[Span]:
    """Return the places of a group's pairs in their order; none lies within another."""
    return sorted(pair.span for pair in context.pairs(group))


def _around(place: Span | None, pairs: Sequence[Span]) -> Span | None:
    """Return the pair that a place lies within."""
    number = 0 if place is None else bisect_right(pairs, (place.file, place.line, place.column), key=_start)
    pair = pairs[number - 1] if number else None
    return pair if place and pair and place.file == pair.file and place.lies_within(pair) else None


def _start(span: Span) -> tuple[str, int, int]:
    return span.file, span.line, span.column


def _refused(pairs: Sequence[Span], findings: Iterable[Finding]) -> set[Span]:
    """Return the pairs that the findings are about."""
    return {pair for finding in findings if (pair := _around(finding.span, pairs))}


def _deciding(
    context: Context, group: GroupPolicy, judges: Sequence[str], about: Sequence[Finding]
) -> Iterator[tuple[_Figure, list[Finding]]]:
    """Yield the figure of a group without which most of its specs fit, with the findings about these.

    Of what is taken from a node first; only where nothing of that decides, of what the node has. Where two figures
    do the same, neither decides.
    """
    pairs = _pairs(context, group)
    alone = _judged(context, replace(context.policy, groups={group.name: group}), judges)
    here = {(finding.span, finding.message) for finding in alone}
    own = [finding for finding in about if (finding.span, finding.message) in here]
    for figures in (_taking(context, group), _having(context, group)):
        gone: dict[int, list[_Figure]] = defaultdict(list)
        without: dict[Span, list[Finding]] = {}
        for figure in figures:
            still = _refused(pairs, _judged(context, figure.without, judges))
            cured = [finding for finding in own if (pair := _around(finding.span, pairs)) and pair not in still]
            without[figure.span] = cured
            gone[len(cured)].append(figure)
        most = max(gone, default=0)
        if most and len(gone[most]) == 1:
            figure = gone[most][0]
            yield figure, without[figure.span]
            return


def _judged(context: Context, policy: Policy, judges: Sequence[str]) -> list[Finding]:
    changed = replace(context, policy=policy)
    return [hit.finding for code in judges for hit in changed.found_by(code)]


def _taking(context: Context, group: GroupPolicy) -> Iterator[_Figure]:
    """Yield the figures that take something from what a node of the group has."""
    kept = (
        *kept_by_node(context, group, "mem_node", "mem_hv"),
        *kept_by_node(context, group, "cpu_node"),
        *kept_disk(context, group),
    )
    for leaf in kept:
        if number(leaf) > 0:
            yield _of_leaf(context, group, leaf, 0)
    for path, usual in ((VCPU_RATIO, 1), (("ipolicy", "spindle-ratio"), _SPINDLES_SHARED)):
        ratio = in_force(context, group, path)
        if ratio is not None and ratio.leaf is not None and ratio.number < 1:
            yield _of_leaf(context, group, ratio.leaf, usual)
    volume = promised_size(context, group, group.hardware) if group.hardware else None
    for key in ("margin", "reserve") if volume is not None and context.exclusive(group) else ():
        owners = (owner for owner in (group, context.policy.cluster) if owner and key in owner.physical_volumes)
        owner = next(owners, None)
        if owner is not None and volume is not None:
            rest = {name: value for name, value in owner.physical_volumes.items() if name != key}
            without = _changed(context.policy, group, owner, physical_volumes=rest)
            note = f" (of each {amount('disk-size', volume.smallest)} {amount('disk-size', volume.usable)} count)"
            yield _Figure(f"physical_volumes.{key}", owner.physical_volumes[key].span, without, note)


def _of_leaf(context: Context, group: GroupPolicy, leaf: Leaf, value: int) -> _Figure:
    owner = group if context.own(group, leaf.path) is leaf else context.policy.cluster or group
    leaves = {**owner.leaves, leaf.path: replace(leaf, value=value)}
    return _Figure(leaf.dotted, leaf.span, _changed(context.policy, group, owner, leaves=leaves))


def _having(context: Context, group: GroupPolicy) -> Iterator[_Figure]:
    """Yield the figures of the hardware that the group promises.

    But not the size of a volume: disks that do not make use of it are mostly wrong themselves.
    """
    hardware = group.hardware
    if hardware is None:
        return

    def with_hardware(name: str, span: Span, **fields: Any) -> _Figure:
        without = _changed(context.policy, group, group, hardware=replace(hardware, **fields))
        return _Figure(f"hardware.{name}", span, without)

    if hardware.memory:
        yield with_hardware("memory", hardware.memory.span, memory=_plenty(hardware.memory))
    if hardware.cpus:
        yield with_hardware("cpus", hardware.cpus.span, cpus=_plenty(hardware.cpus))
    if hardware.pv_count:
        yield with_hardware("pv_count", hardware.pv_count.span, pv_count=_plenty(hardware.pv_count))


def _plenty(figure: Located[int]) -> Located[int]:
    return replace(figure, value=figure.value * 1024)  # enough for any spec


def _changed(policy: Policy, group: GroupPolicy, owner: ClusterPolicy | GroupPolicy, **fields: Any) -> Policy:
    """Return the policy with `group` alone, and `owner` (the group, or the cluster) with other `fields`."""
    alone = replace(policy, groups={group.name: group})
    changed = replace(owner, **fields)
    if isinstance(changed, GroupPolicy):
        return replace(alone, groups={group.name: changed})
    return replace(alone, cluster=changed)
