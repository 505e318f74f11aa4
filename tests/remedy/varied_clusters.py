"""Random small clusters of many kinds that are nearly full, and the cheapest safe moves after which hail takes more."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import chain

from gpolicy.analysis.loaded_state import load_state
from gpolicy.cluster.htools_sources import parse_text
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import PairNames
from gpolicy.remedy.faults import Layout
from gpolicy.remedy.moving import MoveTrial
from gpolicy.remedy.remedy import begin_remedy
from gpolicy.remedy.room import Hail, most_that_fit, read_want
from tests.remedy.small_clusters import Question, places_of

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

KINDS = ("drbd", "drbd", "plain", "sharedfile", "mixed", "mixed", "exclusive")
POLICY = "128,1,1024,1,1,1|64,1,256,1,1,1;32768,8,1048576,4,8,8|drbd,plain,sharedfile|{cpus}|{spindles}"
MOST_TRIED = 600
"""How many layouts are looked at for one cluster. Where there are more, the cheapest list is not known."""


@dataclass
class _Node:
    """What a node has, and has left."""

    memory: int
    disk: int
    cpus: int
    spindles: int
    group: int
    exclusive: bool
    offline: bool = False

    def __post_init__(self) -> None:
        self.free_memory, self.free_disk, self.free_spindles = self.memory, self.disk, self.spindles


def varied_cluster(seed: int) -> tuple[ClusterState, str]:
    """Return a cluster of 2 to 5 nodes with 2 to 7 instances, and the size of what is wanted there.

    Instances are mirrored, plain, on shared storage, or of several templates. There are clusters with two groups,
    exclusion tags, failure domains, exclusive storage, nodes that are offline or drained, and tight ratios.
    """
    rng = random.Random(f"varied {seed}")
    kind = rng.choice(KINDS)
    count = rng.choice([2, 3, 3, 4, 4, 5])
    groups = 2 if count > 3 and rng.random() < 0.3 else 1
    nodes = list(_nodes(rng, count, groups, exclusive=kind == "exclusive"))
    rows = list(_instances(rng, nodes, kind))
    if count > 2 and rng.random() < 0.12:
        nodes[rng.randrange(count)].offline = True
    domains = rng.random() < 0.15
    lines = [
        f"node{no}|{node.memory}|0|{node.free_memory}|{node.disk}|{node.free_disk}|{node.cpus}|"
        f"{'Y' if node.offline else 'N'}|uuid-{node.group}|{node.spindles}|{f'rack:{no % 3}' if domains else ''}|"
        f"{'Y' if node.exclusive else 'N'}|{node.free_spindles if node.exclusive else 0}|0|1.0"
        for no, node in enumerate(nodes)
    ]
    heads = [
        f"g{group}|uuid-{group}|{rng.choice(['preferred', 'preferred', 'last_resort'])}||" for group in range(groups)
    ]
    ratios = {"cpus": rng.choice([1.0, 1.5, 2.0, 4.0]), "spindles": rng.choice([2.0, 4.0, 8.0, 32.0])}
    policies = [f"{owner}|{POLICY.format(**ratios)}" for owner in ("", *(f"g{group}" for group in range(groups)))]
    tags = ["htools:iextags:svc", *(["htools:nlocation:rack"] if domains else [])]
    text = "\n".join([*heads, "", *lines, "", *rows, "", *tags, "", *policies]) + "\n"
    state = parse_text(text, where="a text", source="text:random")
    if rng.random() < 0.12:
        name = rng.choice([*state.nodes])
        state = replace(state, nodes={**state.nodes, name: replace(state.nodes[name], drained=True)})
    template = {"mixed": rng.choice(["drbd", "plain"]), "exclusive": "plain"}.get(kind, kind)
    disk = f"{rng.choice([4, 8])}G{':2' if kind == 'exclusive' else ''}"
    tag = " tags=svc:a" if rng.random() < 0.2 else ""
    memory = rng.choice([1024, 2048, 3072])
    return state, f"memory={memory}M vcpus={rng.choice([1, 2])} disk={disk} template={template}{tag}"


def _nodes(rng: random.Random, count: int, groups: int, *, exclusive: bool) -> Iterator[_Node]:
    equal = rng.random() < 0.6
    memory, disk, cpus = rng.choice([4096, 6144, 8192]), rng.choice([20480, 40960]), rng.choice([2, 4, 8])
    for number in range(count):
        share = 1.0 if equal else rng.choice([0.5, 1.0, 1.5])
        group = number * groups // count
        yield _Node(int(memory * share), disk, cpus, 8 if exclusive else rng.choice([1, 2]), group, exclusive)


def _instances(rng: random.Random, nodes: list[_Node], kind: str) -> Iterator[str]:
    tight = rng.random() < 0.7
    for number in range(rng.randrange(2, 8)):
        template = {"mixed": rng.choice(["drbd", "plain"]), "exclusive": "plain"}.get(kind, kind)
        memory, size = rng.choice([512, 1024, 1536, 2048, 3072]), rng.choice([1024, 4096, 8192])
        primary = rng.randrange(len(nodes))
        mates = [no for no, node in enumerate(nodes) if no != primary and node.group == nodes[primary].group]
        if template == "drbd" and not mates:
            continue
        own = [primary, *([rng.choice(mates)] if template == "drbd" else [])]
        state = rng.choice(["running"] * 7 + ["ADMIN_down"])
        takes_disk = own if template != "sharedfile" else []
        keeps = 0 if tight else 1024
        if nodes[primary].free_memory <= memory + keeps or any(nodes[no].free_disk <= size for no in takes_disk):
            continue
        if kind == "exclusive" and nodes[primary].free_spindles < 2:
            continue
        nodes[primary].free_memory -= memory if state == "running" else 0
        nodes[primary].free_spindles -= 2
        for no in takes_disk:
            nodes[no].free_disk -= size
        yield (
            f"inst{number}|{memory}|{size}|{rng.choice([1, 1, 2])}|{state}|{'N' if rng.random() < 0.1 else 'Y'}|"
            f"node{primary}|{f'node{own[1]}' if len(own) > 1 else ''}|{template}|"
            f"{rng.choice(['svc:a', 'svc:b']) if rng.random() < 0.25 else ''}|1|{2 if kind == 'exclusive' else '-'}|N"
        )


def varied_question(seed: int) -> Question:
    """Return such a cluster, and one to four more wanted instances than fit there now."""
    state, words = varied_cluster(seed)
    beginning = begin_remedy(state, load_state(state))
    start = beginning.before.layout
    want = read_want(words)
    hail = Hail(beginning.loaded, want.words.on(state, PairNames()), start)
    now = len(hail.place(start, 50).placed)
    more = random.Random(seed).choice([1, 1, 1, 2, 2, 3, 4])
    most = max(now + 1, most_that_fit(start, hail, beginning.movers.fixed))  # more cannot fit
    return Question(state, beginning, hail, replace(want, count=min(now + more, most)))


@dataclass(frozen=True)
class Cheapest:
    """The least disk (MiB) to copy, and the fewest moves with it, after which hail takes what is wanted.

    `moves` is None where there is none. Where not all cheaper layouts were looked at, `copied` is what each list copies
    at least, and it is not `known`.
    """

    copied: int
    moves: int | None
    known: bool = True


def find_cheapest(asked: Question, most: int = MOST_TRIED) -> Cheapest:
    """Return the cheapest of all lists of safe moves that bring no fault, of any length.

    What is down with its node stays: after it has moved it takes memory that it does not take now.
    """
    movers, start, count = asked.beginning.movers, asked.beginning.before.layout, asked.want.count
    movable = [index for index, item in start.instances.items() if item.primary not in movers.silent]
    wrong = set(asked.beginning.before.faults)
    settled, number = set[tuple[tuple[int, int], ...]](), 0
    queue: list[tuple[int, int, int, Layout, MoveTrial | None]] = [(0, 0, 0, start, None)]
    while queue:
        copied, moves, _, layout, trial = heappop(queue)
        if trial is not None:
            key = places_of(layout.after(trial.moved))
            if key in settled or not movers.is_safe(layout, trial):
                continue
            layout = layout.after(trial.moved)
            if not wrong.issuperset(movers.places.faults(layout)):
                continue
        settled.add(places_of(layout))
        if len(asked.hail.place(layout, count).placed) >= count:
            return Cheapest(copied, moves)
        if len(settled) >= most:
            return Cheapest(copied, None, known=False)
        for move in chain.from_iterable(movers.moves(layout, index) for index in movable):
            found = movers.try_move(layout, move)
            if isinstance(found, MoveTrial) and found.gain.units >= 0:
                number += 1
                if places_of(layout.after(found.moved)) not in settled:
                    heappush(queue, (copied + found.copied, moves + 1, number, layout, found))
    return Cheapest(0, None)


def most_on_walks(asked: Question, walks: int = 4, steps: int = 10) -> int:
    """Return the most wanted instances that hail takes on a layout of random walks; their moves need not be safe."""
    rng, movers = random.Random(str(asked.want)), asked.beginning.movers
    movable = [
        index for index, item in asked.beginning.before.layout.instances.items() if item.primary not in movers.silent
    ]
    most = 0
    for _ in range(walks):
        layout = asked.beginning.before.layout
        for _ in range(steps):
            moves = [move for index in movable for move in movers.moves(layout, index)]
            rng.shuffle(moves)
            trials = (movers.try_move(layout, move) for move in moves)
            trial = next((found for found in trials if isinstance(found, MoveTrial)), None)
            if trial is None:
                break
            layout = layout.after(trial.moved)
            most = max(most, len(asked.hail.place(layout, 50).placed))
    return most
