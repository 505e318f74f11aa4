"""Suggest sizes for a group: those that tile its nodes, their capacity, and a document that declares them.

The allocator counts the capacity on the observed state with the suggested values, so a plan of the document shows the
same numbers. The document has comments that explain each number (`templates/sizes.yaml.j2`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from gpolicy.allocator.cluster_data import DiskTemplate, Instance, InstancePolicy, SpecPair
from gpolicy.allocator.configured_resources import with_configured_resources
from gpolicy.allocator.ghc_numbers import DivisionError
from gpolicy.allocator.merge import ClusterData
from gpolicy.analysis.basis import origin_of
from gpolicy.analysis.capacity import spec_values
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.hail import as_hail_reads
from gpolicy.analysis.loaded_state import check_group, group_data, guaranteed, load_state
from gpolicy.analysis.violations import allowed_sizes, verdict_on
from gpolicy.analysis.wanted_instance import enabled_templates, wanted_template
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import NO_LIMITS, Limits, VolumeSize, limited, limits_in_force
from gpolicy.data import text_templates
from gpolicy.errors import ArgumentError, GpolicyError, RequestError, about, argument
from gpolicy.ganeti.amounts import exact_size, format_size
from gpolicy.ganeti.parameters import fill, parameter_at
from gpolicy.ganeti.vocabulary import DRBD_METADATA, MINMAX, Level, Values
from gpolicy.printable import count, some
from gpolicy.progress import Stop, Tell, silent
from gpolicy.suggest import suggestion
from gpolicy.suggest.grounds import ALIKE, Grounds
from gpolicy.suggest.mixes import RealMix, count_mix, needs_of, under_policy
from gpolicy.suggest.tiling import Amounts, Ground, Tiling, fitting, left_over, wasted
from gpolicy.writing.documents import SCHEMA_FILE, modelines
from gpolicy.writing.yaml_text import YamlNode, comment_lines, entry, flow, name_complaint, one_line, written_value

if TYPE_CHECKING:
    from jinja2 import Template


_MOST_MARGIN: Final = 50.0


def suggest(
    state: ClusterState,
    request: suggestion.SuggestRequest,
    *,
    group: str | None = None,
    limits: Limits = NO_LIMITS,
    stop: Stop | None = None,
    tell: Tell = silent,
) -> suggestion.SuggestReport:
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
    found: list[suggestion.Suggestion] = []
    passed_over: dict[str, str] = {}
    for item in data.groups:
        if group is not None and item.name != group:
            continue
        try:
            alone = group_data(data, item.index)
            if state.terms_of(item.name).limits.oversubscription is not None:
                alone = guaranteed(alone, state)
            maker = _maker(state, request, alone, loaded.groups[item.name])
            found.append(maker.suggest(stop, tell))
        except GpolicyError as error:
            if group is not None or len(data.groups) == 1:
                raise
            passed_over[item.name] = error.message
    if not found:
        reasons = "; ".join(dict.fromkeys(passed_over.values()))
        raise GpolicyError(about(state.address, f"no group to suggest sizes for: {reasons}"))
    return suggestion.SuggestReport(
        **origin_of(state),
        basis=settled.basis(node.name for node in state.nodes.values() if group in (None, node.group)),
        groups=tuple(found),
        passed_over=passed_over,
        unknown={} if group else settled.unknown,
        limits=limits_in_force(observed, limits, group),
    )


def _check(state: ClusterState, request: suggestion.SuggestRequest, group: str | None) -> None:
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
        real = argument("real_mix")
        raise ArgumentError(f"mix and {real} exclude one another", hint=f"{real} takes the instances that exist")
    if request.mix and request.divisors and not set(request.mix) <= set(request.divisors):
        strange = ", ".join(suggestion.size_name(divisor) for divisor in request.mix if divisor not in request.divisors)
        raise RequestError(f"the mix has sizes that are not among {argument('divisors')}: {strange}")


def _maker(
    state: ClusterState, request: suggestion.SuggestRequest, alone: ClusterData, counted: CountedCluster
) -> _SuggestionMaker:
    name = alone.groups[0].name
    if reason := name_complaint(name, pattern=False):
        raise GpolicyError(f"group {name!r} cannot be declared in a policy: {reason}")
    grounds = Grounds(state, request, alone)
    now = replace(counted, template=grounds.template)
    return _SuggestionMaker(grounds, now, replace(now, data=grounds.empty, resources={}))


@dataclass(frozen=True, slots=True)
class _SuggestionMaker:
    """Makes the suggestion for one group: `now` counts it with the template of the sizes, `empty` without instances."""

    grounds: Grounds
    now: CountedCluster
    empty: CountedCluster

    @property
    def bounds(self) -> suggestion.BoundsKind:
        """Whether an instance has one of the sizes, or any between them."""
        return self.grounds.request.bounds or ("fixed" if self.grounds.exclusive else "ranges")

    def suggest(self, stop: Stop, tell: Tell) -> suggestion.Suggestion:
        """Return the sizes that leave the least unused, or suit the instances of the group, and what they change."""
        grounds, request, ground = self.grounds, self.grounds.request, self.grounds.ground
        choices: tuple[suggestion.Choice, ...] = ()
        tiles = grounds.tiles()
        if request.real_mix:
            needs = needs_of(grounds.data, ground, local=grounds.template.local)
            best = self._chosen_tiles(RealMix(grounds.kinds, ground, needs, self._filled_with, stop, tell))
            tiles, choices = best[0][1], tuple(choice for choice, _ in best)
        found, policy = self._made_of(tiles)
        then, empty_then = under_policy(self.now, policy), under_policy(self.empty, policy)
        sizes = tuple(
            _size(divisor, size, found[divisor], grounds.kinds, ground, self.now, then, empty_then)
            for divisor, size in tiles.sizes.items()
        )
        order, writes_ratio = list(found.values()), grounds.exclusive or request.vcpu_ratio is not None
        ratio = grounds.ratio if writes_ratio else None
        values = declared_values(grounds.template, ratio, order, exclusive=grounds.exclusive)
        inside, newly_forbidden = suggestion.holding(order, grounds.data.policy.std), self._newly_forbidden(values)
        made = suggestion.Suggestion(
            group=grounds.group,
            template=grounds.template,
            exclusive=grounds.exclusive,
            ground=ground,
            bounds=self.bounds,
            vcpu_ratio=grounds.ratio,
            writes_ratio=writes_ratio,
            values=values,
            volume=grounds.volume,
            kinds=grounds.kinds,
            measure=tiles.measure,
            sizes=sizes,
            today=tuple(_old_pairs(grounds.data.policy.minmax, self.now, then)),
            stranded=_stranded(grounds.kinds, sizes, ground),
            std_in=None if inside is None else sizes[inside].name,
            std=suggestion.standard(order[-1]),
            newly_forbidden=newly_forbidden,
            instances=len(grounds.data.instances),
            mix=self._mix(empty_then if request.empty else then, sizes),
            choices=choices,
            document="",
            notes=(*grounds.notes, *self._held_up(sizes, newly_forbidden)),
        )
        return replace(made, document=document(made, request, grounds.state.read_from))

    def _made_of(self, tiles: Tiling) -> tuple[dict[int, SpecPair], InstancePolicy]:
        """Return the pairs of sizes, by divisor, and the policy of the group with them."""
        grounds, today = self.grounds, self.grounds.data.policy
        found = suggestion.pairs(tiles, self.bounds, today, grounds.spindle_use(tiles), grounds.volume)
        templates = (DiskTemplate.PLAIN,) if grounds.exclusive else today.templates
        return found, replace(today, minmax=tuple(found.values()), vcpu_ratio=grounds.ratio, templates=templates)

    def _filled_with(self, tiles: Tiling) -> tuple[CountedCluster, dict[int, Instance]]:
        """Return the empty group under the policy of these sizes, and the largest instance of each, by divisor."""
        found, policy = self._made_of(tiles)
        counted = under_policy(self.empty, policy)
        return counted, {divisor: counted.largest(pair) for divisor, pair in found.items()}

    def _held_up(self, sizes: Iterable[suggestion.Size], newly_forbidden: Sequence[str]) -> Iterator[str]:
        """Yield why sizes that an empty group takes do not fit, where instances that violate them are in the way."""
        stuck = [size for size in sizes if not size.then.fits and size.empty.fits]
        if newly_forbidden and stuck and self.grounds.template is not DiskTemplate.DRBD:
            yield (
                "N+1 restarts the instances of a lost node under the policy: while instances violate the sizes, hail"
                " accepts no others (the column empty shows the capacity without them)"
            )

    def _chosen_tiles(self, mix: RealMix) -> list[tuple[suggestion.Choice, Tiling]]:
        """Return the sets of sizes that suit the instances of the group, the best first."""
        group = f"group {self.grounds.group}"
        if not mix.needs:
            hint = f"leave out {argument('real_mix')}"
            raise GpolicyError(f"{group} has no instances to choose sizes by", hint=hint)
        best, exhaustive = mix.choices(self.grounds.request.divisors)
        if not exhaustive:
            ended = "the search ended early, by --seconds or Ctrl-C: other sizes may leave less unused"
            self.grounds.notes.append(ended)
        if not best and not exhaustive:
            hint = f"give it longer: {argument('stop')}"
            raise GpolicyError(f"{group}: no sizes were compared in time", hint=hint)
        if not best:
            raise GpolicyError(f"{group}: no part of its nodes holds one of its instances")
        return best

    def _mix(self, counted: CountedCluster, sizes: tuple[suggestion.Size, ...]) -> suggestion.Mix | None:
        if not self.grounds.request.mix:
            return None
        instances = {size.name: counted.largest(size.pair) for size in sizes}
        weights = {
            size.name: self.grounds.request.mix[size.divisor]
            for size in sizes
            if size.divisor in self.grounds.request.mix
        }
        return count_mix(counted, instances, weights)

    def _newly_forbidden(self, values: Values) -> tuple[str, ...]:
        """Return the instances of the group that conform to its policy today but not to the suggested one."""
        state, group = self.grounds.state, self.grounds.state.groups[self.grounds.group]
        after = fill({**group.own, **values}, state.cluster.own, Level.GROUP)
        nodes, instances = state.nodes, state.instances.values()
        members = [instance for instance in instances if nodes[instance.primary_node].group == group.name]
        allowed = [allowed_sizes(item, group.name, ()) for item in (group.effective, after) if members]
        found = []
        for instance in members:
            exclusive = state.on_exclusive_storage(instance)
            verdicts = (verdict_on(instance, item, exclusive=exclusive, memory=instance.maxmem) for item in allowed)
            if [verdict.violation is None for verdict in verdicts] == [True, False]:
                found.append(instance.name)
        return tuple(sorted(found))


def _size(
    divisor: int,
    size: Amounts,
    pair: SpecPair,
    kinds: Sequence[suggestion.NodeKind],
    ground: Ground,
    *counted: CountedCluster,
) -> suggestion.Size:
    instance = counted[1].largest(pair)
    use, copies = instance.spindle_use, 2 if ground.mirrored else 1
    now, then, empty = (cluster.fit(instance) for cluster in counted)
    return suggestion.Size(
        name=suggestion.size_name(divisor),
        divisor=divisor,
        size=size,
        pair=pair,
        a_node=tuple(fitting(kind.room, size, ground, kind.allowed(use, copies)) for kind in kinds),
        now=now,
        then=then,
        empty=empty,
    )


def _old_pairs(pairs: Sequence[SpecPair], now: CountedCluster, then: CountedCluster) -> Iterator[suggestion.OldPair]:
    for place, pair in enumerate(pairs, start=1):
        instance = now.largest(pair)
        with suppress(DivisionError):  # instances without memory cannot be counted
            yield suggestion.OldPair(place=place, pair=pair, now=now.fit(instance), then=then.fit(instance))


def _stranded(
    kinds: tuple[suggestion.NodeKind, ...], sizes: tuple[suggestion.Size, ...], ground: Ground
) -> tuple[suggestion.Waste, ...]:
    return tuple(
        suggestion.Waste(
            kind=place,
            name=size.name,
            count=(count := size.a_node[place]),
            left=left_over(kind.room, size.size, count, ground),
            share=wasted(kind.room, size.size, ground, count),
        )
        for place, kind in enumerate(kinds)
        for size in sizes
    )


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
    values[MINMAX] = [{"min": dict(spec_values(pair.min)), "max": dict(spec_values(pair.max))} for pair in pairs]
    return values


def documents(report: suggestion.SuggestReport) -> str:
    """Return all suggested documents as one file."""
    return "---\n".join(item.document for item in report.groups)


def document(made: suggestion.Suggestion, request: suggestion.SuggestRequest, source: str) -> str:
    """Return the document as text."""

    def written(*path: str) -> Any:
        parameter = parameter_at(path)
        assert parameter is not None  # noqa: S101 (it is in the table)
        return written_value(parameter, made.values[path])

    def value(*path: str, comment: str = "") -> str:
        return "\n".join(entry(path[-1], written(*path), indent=2, comment=comment, as_flow=True))

    sizes = spec_values(made.std).items()
    std: dict[str, YamlNode] = {key: exact_size(size) if key.endswith("-size") else size for key, size in sizes}
    return _sizes_template().render(
        made=made,
        modelines="\n".join(modelines(f"../{SCHEMA_FILE}")),
        source=one_line(source),
        name="\n".join(entry("name", made.group)),
        hardware="\n".join(entry("hardware", found, as_flow=True)) if (found := _hardware(made)) else "",
        value=value,
        margin=f"{request.margin:g}",
        metadata=DRBD_METADATA,
        sizes=list(zip(made.sizes, written(*MINMAX), strict=True)),
        standard=std,
    )


@cache
def _sizes_template() -> Template:
    def comment(text: str, indent: int = 0) -> str:
        return "".join(f"{line}\n" for line in comment_lines(text.strip().replace("\n", " "), indent=indent))

    environment = text_templates()  # texts of others are only in comments and in entries
    environment.filters |= {"comment": comment, "flow": flow, "size": exact_size, "count": count}
    environment.filters["names"] = lambda kind: one_line(some([node.name for node in kind.nodes], 6))
    environment.filters["usable"] = lambda volume: VolumeSize(volume).usable
    return environment.get_template("sizes.yaml.j2")


def _hardware(made: suggestion.Suggestion) -> dict[str, YamlNode]:
    """Return the hardware that all nodes share: the least memory, and equal counts."""
    nodes = [node for kind in made.kinds for node in kind.nodes]
    found: dict[str, YamlNode] = {}
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


def _written_size(size: int) -> YamlNode:
    text = format_size(size)
    return int(text) if text.isdigit() else text
