"""Requests and suggestions as values. Memory and disk are MiB."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from gpolicy.allocator.cluster_data import Spec, SpecPair
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.analysis.basis import StateReport
from gpolicy.analysis.binding import Binding
from gpolicy.analysis.counted_cluster import Fit
from gpolicy.ganeti.parameter import Values
from gpolicy.suggest.tiling import Amounts, Ground

Bounds = Literal["fixed", "ranges"]
"""fixed: an instance has one of the sizes, within a few percent. ranges: it may also be smaller."""

DEFAULT_MARGIN = 1.0
"""Percent of the measured memory that stay unused: the measured value varies from boot to boot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestRequest:
    """A request for sizes.

    `divisors` are the parts of a node (None: those that suit the hardware), `mix` the weight of each. `bounds` None:
    fixed under exclusive storage, else ranges. `vcpu_ratio` None: 1 under exclusive storage, else the group's. `volume`
    is the size of the smallest physical volume if the state does not show it. `empty` counts the mix on nodes without
    instances. `real_mix` chooses the sizes by the instances that exist.
    """

    template: str | None = None
    divisors: tuple[int, ...] | None = None
    bounds: Bounds | None = None
    vcpu_ratio: float | None = None
    margin: float = DEFAULT_MARGIN
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
    bounds: Bounds
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
