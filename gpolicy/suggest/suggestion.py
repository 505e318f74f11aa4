"""What is asked for and what is suggested: values only. Memory and disk are MiB."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from gpolicy.allocator.cluster_data import Spec, SpecPair
    from gpolicy.allocator.enumerations import DiskTemplate
    from gpolicy.analysis.binding import Binding
    from gpolicy.analysis.counted_cluster import Fit
    from gpolicy.cluster.state import Snapshot
    from gpolicy.suggest.tiling import Amounts, Ground

Bounds = Literal["fixed", "ranges"]
"""fixed: an instance is of one of the sizes, give or take a few percent. ranges: it may be smaller as well."""

DEFAULT_MARGIN = 1.0
"""Percent of the measured memory that is left alone: it differs a little from boot to boot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestRequest:
    """What sizes are wanted.

    `divisors` are the parts of a node (None: what suits the hardware), `mix` the weight of each. `bounds` None: fixed
    under exclusive storage, else ranges. `vcpu_ratio` None: 1 under exclusive storage, else the group's. `volume` is
    the size of the smallest physical volume where the state does not show it. `empty` counts the mix on nodes without
    instances.
    """

    template: str | None = None
    divisors: tuple[int, ...] | None = None
    bounds: Bounds | None = None
    vcpu_ratio: float | None = None
    margin: float = DEFAULT_MARGIN
    volume: int | None = None
    mix: Mapping[int, int] | None = None
    empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHardware:
    """One node: what instances may use together if it were empty, and how that came about.

    `total_memory` and `total_cpus` are measured; `kept_memory` and `kept_cpus` are not for instances: the node's own,
    by measure or by hv_state, whichever is more. `spindle_use` is what the spindle-ratio allows of it, None where disks
    do not lie on the nodes.
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
        """Return how many instances of so much spindle use a node may have, with as many copies; None: any number."""
        most = self.nodes[0].spindle_use
        return None if most is None or not spindle_use else math.floor(most / (spindle_use * copies))


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """One suggested size: the pair of bounds, and how many instances at its maximum fit.

    `a_node` is by kind of node: how many fill an empty one. `now` and `then` count beside what runs, under today's
    policy and under the suggested one; `empty` under the suggested one, as if nothing ran. All three as hspace does,
    which keeps N+1. `placeable` is `then` as hail places on dedicated nodes, without N+1; None elsewhere.
    """

    name: str
    divisor: int
    size: Amounts
    pair: SpecPair
    a_node: tuple[int, ...]
    now: Fit
    then: Fit
    empty: Fit
    placeable: Fit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OldPair:
    """A pair of today's policy, by its place from 1: instances at its maximum, now and under the suggested policy."""

    place: int
    pair: SpecPair
    now: Fit
    then: Fit


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste:
    """What nobody uses of a node of one kind (by its place) that `count` instances of size `name` fill.

    `share` is that of the resource of which most is wasted.
    """

    kind: int
    name: str
    count: int
    left: Amounts
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """How often the mix fits as a whole, and what then.

    `placed` is how many of each size there are after `mixes` full mixes, `limit` the biggest size of which there was no
    room for all of the next one and `binding` why; `best` adds what of the next mix still fits. `more` is how many of
    each size alone fit after the full mixes. `left` sums what is free on the nodes then, memory kept for N+1 included.
    `n1`: whether N+1 is kept.
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
class Suggestion:
    """Sizes for one group.

    `measure` is the node that they are parts of. `writes_ratio`: the document sets vcpu-ratio, else today's holds.
    `std_in` names the pair that holds the cluster's std, None if none does; `std` is one that lies in the smallest.
    `newly_forbidden` are instances of the group that are legal today and in none of the pairs. `document` is the
    NodeGroup as YAML.
    """

    group: str
    template: DiskTemplate
    exclusive: bool
    ground: Ground
    bounds: Bounds
    vcpu_ratio: float
    writes_ratio: bool
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
    mixes: tuple[Mix, ...]
    document: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SuggestReport:
    """Suggestions for each group that could be looked at; `passed_over` says by name why another could not."""

    source: str
    cluster_name: str
    groups: tuple[Suggestion, ...]
    passed_over: Mapping[str, str]
    snapshot: Snapshot | None = None
