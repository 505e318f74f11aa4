"""Suggest sizes for a group: those that tile its nodes, their capacity, and a document that declares them.

The allocator counts the capacity on the observed state with the suggested values, so a plan of the document shows the
same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from gpolicy.allocator.cluster_data import DiskTemplate, Instance, InstancePolicy, SpecPair
from gpolicy.allocator.configured_resources import with_configured_resources
from gpolicy.allocator.ghc_numbers import DivisionError
from gpolicy.allocator.merge import ClusterData
from gpolicy.analysis.basis import origin_of
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.hail import as_hail_reads
from gpolicy.analysis.loaded_state import check_group, group_data, guaranteed, load_state
from gpolicy.analysis.violations import allowed_sizes, verdict_on
from gpolicy.analysis.wanted_instance import enabled_templates, wanted_template
from gpolicy.cluster.state import ClusterState, LiveGroup
from gpolicy.cluster.terms import NO_LIMITS, Limits, limited, limits_in_force
from gpolicy.errors import ArgumentError, GpolicyError, RequestError, about
from gpolicy.ganeti.parameter import Level, Values
from gpolicy.ganeti.parameters import fill
from gpolicy.progress import Tell, silent
from gpolicy.stopping import Stop
from gpolicy.suggest.document import declared_values, document
from gpolicy.suggest.grounds import Grounds, emptied
from gpolicy.suggest.mixes import RealMix, count_mix, needs_of, under_policy
from gpolicy.suggest.suggestion import (
    Bounds,
    Choice,
    Mix,
    NodeKind,
    OldPair,
    Size,
    Suggestion,
    SuggestReport,
    SuggestRequest,
    Waste,
    holding,
    pairs,
    size_name,
    standard,
)
from gpolicy.suggest.tiling import Amounts, Ground, Tiling, fitting, left_over, wasted
from gpolicy.writing.yaml_text import name_complaint

_MOST_MARGIN: Final = 50.0


def suggest(
    state: ClusterState,
    request: SuggestRequest,
    *,
    group: str | None = None,
    limits: Limits = NO_LIMITS,
    stop: Stop | None = None,
    tell: Tell = silent,
) -> SuggestReport:
    """Return suggestions for `group`, or for every group that has nodes.

    `limits` go before those of the policy. After a `stop`, or with Ctrl-C, the best of the sizes that were compared
    are the answer. Raise RequestError for an impossible request, GpolicyError if nothing is known of the group, or no
    size fits.
    """
    _check(state, request, group)
    stop, observed = stop or Stop(), state
    loaded = load_state(limited(state, limits), group=group)
    settled, state = loaded.settled, loaded.settled.state
    data = with_configured_resources(as_hail_reads(state, settled.data), settled.resources)
    found: list[Suggestion] = []
    passed_over: dict[str, str] = {}
    for item in data.groups:
        if group is not None and item.name != group:
            continue
        try:
            alone = group_data(data, item.index)
            if state.terms_of(item.name).limits.oversubscription is not None:
                alone = guaranteed(alone, state)
            found.append(_Maker(state, request, alone, loaded.groups[item.name], stop, tell).suggestion())
        except GpolicyError as error:
            if group is not None or len(data.groups) == 1:
                raise
            passed_over[item.name] = error.message
    if not found:
        reasons = "; ".join(dict.fromkeys(passed_over.values()))
        raise GpolicyError(about(state.address, f"no group to suggest sizes for: {reasons}"))
    return SuggestReport(
        **origin_of(state),
        basis=settled.basis(node.name for node in state.nodes.values() if group in (None, node.group)),
        groups=tuple(found),
        passed_over=passed_over,
        what_if=state.supposed,
        unknown={} if group else settled.unknown,
        limits=limits_in_force(observed, limits, group),
    )


def _check(state: ClusterState, request: SuggestRequest, group: str | None) -> None:
    check_group(state, group)
    if request.template is not None:
        wanted_template(request.template, enabled_templates(state))
    if request.vcpu_ratio is not None and not 0 < request.vcpu_ratio < 10_000:
        raise RequestError(f"a vcpu-ratio of {request.vcpu_ratio:g} makes no sense", hint="write one from 0.1 to 100")
    if not 0 <= request.margin <= _MOST_MARGIN:
        raise RequestError(f"a margin of {request.margin:g} % is out of range", hint=f"0 to {_MOST_MARGIN:g}")
    if request.volume is not None and request.volume < 1:
        raise RequestError("a physical volume has at least 1 MiB")
    if request.mix and request.real_mix:
        raise ArgumentError("mix and --real-mix exclude one another", hint="--real-mix takes the instances that exist")
    if request.mix and request.divisors and not set(request.mix) <= set(request.divisors):
        strange = ", ".join(size_name(divisor) for divisor in request.mix if divisor not in request.divisors)
        raise RequestError(f"the mix has sizes that are not among --sizes: {strange}")


@dataclass(slots=True)
class _Maker:
    """Makes the suggestion for one group: `data` as the allocator's input, `counted` ready for counting."""

    state: ClusterState
    request: SuggestRequest
    data: ClusterData
    counted: CountedCluster
    stop: Stop
    tell: Tell

    def suggestion(self) -> Suggestion:
        name = self.data.groups[0].name
        group = self.state.groups[name]
        reason = name_complaint(name, pattern=False)
        if reason:
            raise GpolicyError(f"group {name!r} cannot be declared in a policy: {reason}")
        today = self.data.policy
        grounds = Grounds(self.state, self.request, self.data)
        dedicated = grounds.dedicated()
        template = grounds.template(group, today, exclusive=dedicated)
        ratio = self.request.vcpu_ratio or (1.0 if dedicated else today.vcpu_ratio)
        notes: list[str] = []
        ground, volume = grounds.ground(template, notes, exclusive=dedicated)
        empty = emptied(self.data, ground.volume)
        kinds = grounds.kinds(empty, template, ratio, notes)
        bounds: Bounds = self.request.bounds or ("fixed" if dedicated else "ranges")
        tiles = grounds.tiles(kinds, ground)
        choices: tuple[Choice, ...] = ()
        now = replace(self.counted, template=template)
        without_instances = replace(now, data=empty, resources={})

        def made_of(tiles: Tiling) -> tuple[dict[int, SpecPair], InstancePolicy]:
            found = pairs(tiles, bounds, today, grounds.spindle_use(tiles, template), volume)
            templates = (DiskTemplate.PLAIN,) if dedicated else today.templates
            return found, replace(today, minmax=tuple(found.values()), vcpu_ratio=ratio, templates=templates)

        def filled_with(tiles: Tiling) -> tuple[CountedCluster, dict[int, Instance]]:
            found, policy = made_of(tiles)
            counted = under_policy(without_instances, policy)
            return counted, {divisor: counted.largest(pair) for divisor, pair in found.items()}

        if self.request.real_mix:
            needs = needs_of(self.data, ground, local=template.local)
            if not needs:
                raise GpolicyError(f"group {name} has no instances to choose sizes by", hint="leave out --real-mix")
            mix = RealMix(kinds, ground, needs, filled_with, self.stop, self.tell)
            best, exhaustive = mix.choices(self.request.divisors)
            if not exhaustive:
                notes.append("the search ended early, by --seconds or Ctrl-C: other sizes may leave less unused")
            if not best and not exhaustive:
                raise GpolicyError(f"group {name}: no sizes were compared in time", hint="give it longer: --seconds")
            if not best:
                raise GpolicyError(f"group {name}: no part of its nodes holds one of its instances")
            tiles, choices = best[0][1], tuple(choice for choice, _ in best)
        found, policy = made_of(tiles)
        then, empty_then = under_policy(now, policy), under_policy(without_instances, policy)
        sizes = tuple(
            _size(divisor, size, found[divisor], kinds, ground, now, then, empty_then)
            for divisor, size in tiles.sizes.items()
        )
        order, writes_ratio = list(found.values()), dedicated or self.request.vcpu_ratio is not None
        inside = holding(order, today.std)
        values = declared_values(template, ratio if writes_ratio else None, order, exclusive=dedicated)
        newly_forbidden = self._newly_forbidden(group, values)
        stuck = [size for size in sizes if not size.then.fits and size.empty.fits]
        if newly_forbidden and stuck and template is not DiskTemplate.DRBD:
            notes.append(
                "N+1 restarts the instances of a lost node under the policy: while instances violate the sizes, hail"
                " accepts no others (the column empty shows the capacity without them)"
            )
        made = Suggestion(
            group=name,
            template=template,
            exclusive=dedicated,
            ground=ground,
            bounds=bounds,
            vcpu_ratio=ratio,
            writes_ratio=writes_ratio,
            values=values,
            volume=volume,
            kinds=kinds,
            measure=tiles.measure,
            sizes=sizes,
            today=tuple(_old_pairs(today.minmax, now, then)),
            stranded=_stranded(kinds, sizes, ground),
            std_in=None if inside is None else sizes[inside].name,
            std=standard(order[-1]),
            newly_forbidden=newly_forbidden,
            instances=len(self.data.instances),
            mix=self._mix(empty_then if self.request.empty else then, sizes),
            choices=choices,
            document="",
            notes=tuple(notes),
        )
        return replace(made, document=document(made, self.request, self.state.read_from))

    # --- capacity ------------------------------------------------------------------------------------------------

    def _mix(self, counted: CountedCluster, sizes: tuple[Size, ...]) -> Mix | None:
        if not self.request.mix:
            return None
        instances = {size.name: counted.largest(size.pair) for size in sizes}
        weights = {size.name: self.request.mix[size.divisor] for size in sizes if size.divisor in self.request.mix}
        return count_mix(counted, instances, weights)

    def _newly_forbidden(self, group: LiveGroup, values: Values) -> tuple[str, ...]:
        """Return the instances of the group that conform to its policy today but not to the suggested one."""
        after = with_values(self.state, group.name, values).groups[group.name]
        nodes, instances = self.state.nodes, self.state.instances.values()
        members = [instance for instance in instances if nodes[instance.primary_node].group == group.name]
        allowed = [allowed_sizes(item.effective, group.name, ()) for item in (group, after) if members]
        found = []
        for instance in members:
            exclusive = self.state.on_exclusive_storage(instance)
            verdicts = (verdict_on(instance, item, exclusive=exclusive, memory=instance.maxmem) for item in allowed)
            if [verdict.violation is None for verdict in verdicts] == [True, False]:
                found.append(instance.name)
        return tuple(sorted(found))


def _size(
    divisor: int, size: Amounts, pair: SpecPair, kinds: Sequence[NodeKind], ground: Ground, *counted: CountedCluster
) -> Size:
    instance = counted[1].largest(pair)
    use, copies = instance.spindle_use, 2 if ground.mirrored else 1
    now, then, empty = (cluster.fit(instance) for cluster in counted)
    return Size(
        name=size_name(divisor),
        divisor=divisor,
        size=size,
        pair=pair,
        a_node=tuple(fitting(kind.room, size, ground, kind.allowed(use, copies)) for kind in kinds),
        now=now,
        then=then,
        empty=empty,
    )


def _old_pairs(pairs: Sequence[SpecPair], now: CountedCluster, then: CountedCluster) -> Iterator[OldPair]:
    for place, pair in enumerate(pairs, start=1):
        instance = now.largest(pair)
        with suppress(DivisionError):  # instances without memory cannot be counted
            yield OldPair(place=place, pair=pair, now=now.fit(instance), then=then.fit(instance))


def with_values(state: ClusterState, group: str, values: Values) -> ClusterState:
    """Return `state` with `values` as own values of `group`."""
    old = state.groups[group]
    own = {**old.own, **values}
    groups = {**state.groups, group: replace(old, own=own, effective=fill(own, state.cluster.own, Level.GROUP))}
    return replace(state, groups=groups)


def _stranded(kinds: tuple[NodeKind, ...], sizes: tuple[Size, ...], ground: Ground) -> tuple[Waste, ...]:
    return tuple(
        Waste(
            kind=place,
            name=size.name,
            count=(count := size.a_node[place]),
            left=left_over(kind.room, size.size, count, ground),
            share=wasted(kind.room, size.size, ground, count),
        )
        for place, kind in enumerate(kinds)
        for size in sizes
    )
