"""Requests and suggestions as values (memory and disk are MiB), and minimums and maximums around sizes.

How much smaller than its size an instance may be: `fixed`: an instance is of one of the sizes, a few percent apart, as
for dedicated nodes. The minimum memory of a size is so close to its maximum that no additional instance fits on a node:
hail's dedicated metric counts minimum sizes. `ranges`: every memory size up to the largest is allowed; each pair begins
where the next smaller one ends. Both are ordered biggest first and never overlap. Sources: design documents
"partitioned Ganeti" (constrained instance sizes) and "dedicated allocation".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from gpolicy.allocator.cluster_data import DiskTemplate, InstancePolicy, Spec, SpecPair
from gpolicy.analysis.basis import StateReport
from gpolicy.analysis.binding import Binding
from gpolicy.analysis.capacity import spec_values
from gpolicy.analysis.counted_cluster import Fit
from gpolicy.cluster.terms import VolumeSize
from gpolicy.errors import RequestError, argument
from gpolicy.ganeti.amounts import SIZE_STEP_MIB as STEP, round_size
from gpolicy.ganeti.vocabulary import MAX_DISKS, MAX_NICS, Values
from gpolicy.suggest.tiling import Amounts, Ground, Tiling

BoundsKind = Literal["fixed", "ranges"]
"""fixed: an instance has one of the sizes, within a few percent. ranges: it may also be smaller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestRequest:
    """A request for sizes.

    `divisors` are the parts of a node (None: those that suit the hardware), `mix` the weight of each. `bounds` None:
    fixed under exclusive storage, else ranges. `vcpu_ratio` None: 1 under exclusive storage, else the group's. `volume`
    is the size of the smallest physical volume if the state does not show it. `margin` is what stays unused of the
    measured memory, which varies from boot to boot (%). `empty` counts the mix on nodes without instances. `real_mix`
    chooses the sizes by the instances that exist.
    """

    template: str | None = None
    divisors: tuple[int, ...] | None = None
    bounds: BoundsKind | None = None
    vcpu_ratio: float | None = None
    margin: float = 1.0
    volume: int | None = None
    mix: Mapping[int, int] | None = None
    empty: bool = False
    real_mix: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHardware:
    """One node: the resources (`room`) of all its instances together if it were empty, and their origin.

    `total_memory` and `total_cpus` are measured; `kept_memory` and `kept_cpus` are those of the node itself, measured
    or by hv_state, whichever is more. `spindle_use` is the limit of the spindle-ratio, None if disks are not on the
    nodes.
    """

    name: str
    room: Amounts
    total_memory: int
    kept_memory: int
    total_cpus: int
    kept_cpus: int
    spindle_use: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """Nodes of the same hardware; `room` is the least of each resource among them."""

    nodes: tuple[NodeHardware, ...]
    room: Amounts

    def allowed(self, spindle_use: int, copies: int) -> int | None:
        """Return how many instances of this spindle use a node may have; None: any number."""
        most = self.nodes[0].spindle_use
        return None if most is None or not spindle_use else math.floor(most / (spindle_use * copies))


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One suggested size: the pair of bounds, and how many instances at its maximum fit.

    `a_node` is the number that fills an empty node, by kind of node. `now` and `then` count beside existing instances,
    under today's policy and under the suggested one; `empty` counts under the suggested one without existing instances.
    All three are what hail accepts.
    """

    name: str
    divisor: int
    size: Amounts
    pair: SpecPair
    a_node: tuple[int, ...]
    now: Fit
    then: Fit
    empty: Fit


@dataclass(frozen=True, slots=True, kw_only=True)
class OldPair:
    """A pair of today's policy, by its place from 1: instances at its maximum, now and under the suggested policy."""

    place: int
    pair: SpecPair
    now: Fit
    then: Fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste:
    """The unused resources of a node of one kind (by its place) that is filled with `count` instances of size `name`.

    `share` is the greatest wasted share of a resource.
    """

    kind: int
    name: str
    count: int
    left: Amounts
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """How often the complete mix fits, and what remains.

    `placed` is the number of each size after `mixes` complete mixes; `limit` is the biggest size of the next mix that
    does not fit completely, `binding` tells why; `best` adds the part of the next mix that fits. `more` is how many of
    each size alone fit after the complete mixes. `left` is the sum of free resources then, with memory reserved for
    N+1. `n1`: whether N+1 is tested.
    """

    weights: Mapping[str, int]
    mixes: int
    placed: Mapping[str, int]
    limit: str | None
    binding: Binding | None
    best: Mapping[str, int]
    more: Mapping[str, int]
    left: Amounts
    n1: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One set of sizes for the instances that exist, and what fills the empty group.

    `weights` are the instances by the smallest size that holds them, `outside` those that no size holds; `placed` is
    what fills the group in these proportions. `unused` is the share of its room that no instance needs then, by
    resource: what sizes are larger than the instances, what is left over, and what N+1 keeps.
    """

    sizes: Mapping[str, Amounts]
    weights: Mapping[str, int]
    outside: int
    placed: Mapping[str, int]
    unused: Mapping[str, float]

    @property
    def mean_unused(self) -> float:
        """The mean share of all resources."""
        return sum(self.unused.values()) / len(self.unused)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Sizes for one group.

    `measure` is the node of which they are parts. `writes_ratio`: the document sets vcpu-ratio, otherwise today's
    stays. `values` are the own values of the group in it. `std_in` names the pair that allows the cluster's std,
    None if none does; `std` is one that the smallest pair allows. `choices` are the best sets of sizes for the
    instances that exist, if they were asked for: the first is this one. `newly_forbidden` are instances of the
    group that are allowed today but by none of the pairs. `document` is the NodeGroup as YAML.
    """

    group: str
    template: DiskTemplate
    exclusive: bool
    ground: Ground
    bounds: BoundsKind
    vcpu_ratio: float
    writes_ratio: bool
    values: Values
    volume: int | None
    kinds: tuple[NodeKind, ...]
    measure: Amounts
    sizes: tuple[Size, ...]
    today: tuple[OldPair, ...]
    stranded: tuple[Waste, ...]
    std_in: str | None
    std: Spec
    newly_forbidden: tuple[str, ...]
    instances: int
    mix: Mix | None
    choices: tuple[Choice, ...]
    document: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestReport(StateReport):
    """Suggestions for groups; `passed_over` maps skipped groups to the reason, `what_if` says what is supposed."""

    groups: tuple[Suggestion, ...]
    passed_over: Mapping[str, str]


MOST_PARTS: Final = 64
"""The greatest divisor with a name."""

_TO_TENTH: Final = ("full", "half", "third", "quarter", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_NAMES: Final = {**dict(enumerate(_TO_TENTH, start=1)), 12: "twelfth", 16: "sixteenth"}
_DIVISORS: Final = {name: divisor for divisor, name in _NAMES.items()}


def size_name(divisor: int) -> str:
    """Return the name of the size that is the `divisor`-th part of a node."""
    return _NAMES.get(divisor, f"part-{divisor}")


def divisor_of(name: str) -> int:
    """Return the divisor of `name`: full, half, …, part-7 or 1/7. Raise RequestError for an unknown name."""
    word = name.strip().lower()
    if word in _DIVISORS:
        return _DIVISORS[word]
    number = word.removeprefix("1/").removeprefix("part-")
    if number != word and number.isascii() and number.isdigit() and len(number) < 7 and 1 <= int(number) <= MOST_PARTS:
        return int(number)
    hint = f"sizes are {', '.join(_DIVISORS)}, or 1/N with N up to {MOST_PARTS}"
    raise RequestError(f"there is no size {name!r}", hint=hint)


def parse_sizes(text: str) -> tuple[int, ...]:
    """Return the divisors of `full,half,quarter`, biggest size first. Raise RequestError."""
    divisors = [divisor_of(name) for name in text.split(",")]
    if len(set(divisors)) < len(divisors):
        raise RequestError(f"{text!r} names a size twice")
    return tuple(sorted(divisors))


def parse_mix(text: str) -> dict[int, int]:
    """Return the weight by divisor of `full=2,half=3,quarter=10`. Raise RequestError."""
    weights: dict[int, int] = {}
    for item in text.split(","):
        name, equals, number = item.partition("=")
        count = number.strip()
        if not equals or not (count.isascii() and count.isdigit() and len(count) < 7 and int(count) > 0):
            hint = "write SIZE=N, N from 1 to 999999: full=2,half=3,quarter=10"
            raise RequestError(f"{item!r} is not a valid part of a mix", hint=hint)
        divisor = divisor_of(name)
        if divisor in weights:
            raise RequestError(f"the mix names size {name.strip()} twice")
        weights[divisor] = int(count)
    return dict(sorted(weights.items()))


_SLACK: Final = 0.04


def pairs(
    found: Tiling, bounds: BoundsKind, today: InstancePolicy, spindle_use: Mapping[int, int], volume: int | None
) -> dict[int, SpecPair]:
    """Return the pair of each size by its divisor, biggest first.

    `today` gives the values that do not depend on hardware: minimum sizes, network interfaces, and disk sizes if disks
    are not on the nodes. `spindle_use` is the maximum of each size; `volume` is the size of the smallest physical
    volume under exclusive storage. Raise RequestError if two sizes are too close.
    """
    sizes = found.sizes
    order = sorted(sizes)
    largest = [pair.max for pair in today.minmax]
    disks = _within(max((spec.disk_count for spec in largest), default=1), 1, MAX_DISKS)
    nics = _within(max((spec.nic_count for spec in largest), default=1), 1, MAX_NICS)
    largest_disk_today = max((spec.disk_size for spec in largest), default=today.std.disk_size)
    result: dict[int, SpecPair] = {}
    for place, divisor in enumerate(order):
        smaller = sizes[order[place + 1]] if place + 1 < len(order) else None
        size = sizes[divisor]
        if smaller is not None and not smaller.is_below(size):
            names = f"{size_name(divisor)} and {size_name(order[place + 1])}"
            hint = f"remove one from {argument('divisors')}"
            raise RequestError(f"{names} are too similar on these nodes", hint=hint)
        most = 1 if bounds == "fixed" else disks
        disk = largest_disk_today if size.disk is None else size.disk
        high = Spec(size.memory, size.cpus, disk, most, nics, spindle_use[divisor])
        if bounds == "fixed":
            low = _fixed(size, smaller, found.measure.memory // (divisor + 1), high, volume)
        else:
            low = _ranging(smaller, high, today)
        result[divisor] = SpecPair(low, high)
    return result


def _fixed(size: Amounts, smaller: Amounts | None, one_more: int, high: Spec, volume: int | None) -> Spec:
    """Return minimum values slightly below `high`, with more memory than `one_more`: else one more fits on a node."""
    memory = _coarse(round_size(round(size.memory * (1 - _SLACK))), size.memory)
    memory = max(memory, round_size(one_more + 1), smaller.memory + STEP if smaller else 0)
    disk, spindles = round_size(round(high.disk_size * (1 - _SLACK))), 1
    if volume is not None and size.disk is not None:
        fewer = VolumeSize(volume).largest_disk(VolumeSize(volume).needed(size.disk) - 1)
        disk, spindles = _coarse(max(round_size(fewer + 1), round_size(size.disk // 2)), size.disk), high.spindle_use
    return Spec(min(memory, high.memory), high.cpus, min(disk, high.disk_size), 1, 1, spindles)


def _ranging(smaller: Amounts | None, high: Spec, today: InstancePolicy) -> Spec:
    least = [pair.min for pair in today.minmax] or [today.std]
    disk = min(spec.disk_size for spec in least)
    if smaller is not None and smaller.volumes is not None and smaller.disk is not None:
        disk = smaller.disk + STEP
    return Spec(
        memory=smaller.memory + STEP if smaller else _within(min(spec.memory for spec in least), STEP, high.memory),
        cpus=_within(min(spec.cpus for spec in least), 1, high.cpus),
        disk_size=_within(disk, STEP, high.disk_size),
        disk_count=1,
        nic_count=_within(min(spec.nic_count for spec in least), 0, high.nic_count),
        spindle_use=smaller.volumes + 1 if smaller and smaller.volumes else 1,
    )


def standard(smallest: SpecPair) -> Spec:
    """Return a standard instance inside the smallest size: as large as possible, with one network interface."""
    high = smallest.max
    return Spec(high.memory, high.cpus, high.disk_size, 1, max(1, smallest.min.nic_count), smallest.min.spindle_use)


def holding(found: Sequence[SpecPair], spec: Spec) -> int | None:
    """Return the place of the first pair that allows `spec`."""
    for place, pair in enumerate(found):
        bounds = zip(*(spec_values(one).values() for one in (pair.min, spec, pair.max)), strict=True)
        if all(low <= value <= high for low, value, high in bounds):
            return place
    return None


def _within(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def _coarse(value: int, high: int) -> int:
    """Return `value` rounded up to a round number if the difference is small."""
    for grain in (1024, 256, 64):
        rounded = -(-value // grain) * grain
        if rounded <= high and rounded - value <= value // 100:
            return rounded
    return value
