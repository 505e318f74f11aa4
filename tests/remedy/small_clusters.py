"""Random small clusters that are nearly full, and all that any moves of theirs reach."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpolicy.analysis.loaded_state import load_state
from gpolicy.cluster.htools_sources import parse_text
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import PairNames
from gpolicy.progress import Stop, silent
from gpolicy.remedy.faults import Layout
from gpolicy.remedy.moving import MoveTrial
from gpolicy.remedy.remedy import Beginning, begin_remedy
from gpolicy.remedy.room import Hail, Want, read_want
from gpolicy.remedy.search import RemedySearch

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)

POLICY = "128,1,1024,1,1,1|64,1,256,1,1,1;32768,8,1048576,4,8,8|drbd,plain,sharedfile|{ratio}|8.0"


def small_cluster(seed: int) -> tuple[ClusterState, str]:
    """Return a cluster of 3 or 4 nodes with 3 to 6 instances, and what is wanted there."""
    rng = random.Random(f"room {seed}")
    template = rng.choice(["drbd", "drbd", "plain", "sharedfile"])
    count = 3 if template == "drbd" and rng.random() < 0.7 else rng.choice([3, 4])
    total, disk, cpus = 8192, rng.choice([20480, 40960]), rng.choice([4, 8])
    free = [{"memory": total, "disk": disk, "cpus": cpus} for _ in range(count)]
    rows = []
    for number in range(rng.randrange(3, 7 if template != "drbd" or count == 3 else 6)):
        memory, size = rng.choice([512, 1024, 2048, 3072]), rng.choice([1024, 4096, 8192])
        own = rng.sample(range(count), 2 if template == "drbd" else 1)
        if free[own[0]]["memory"] <= memory or (template != "sharedfile" and any(free[i]["disk"] <= size for i in own)):
            continue
        free[own[0]]["memory"] -= memory
        for index in own if template != "sharedfile" else ():
            free[index]["disk"] -= size
        secondary = f"node{own[1]}" if len(own) > 1 else ""
        state = rng.choice(["running"] * 6 + ["ADMIN_down"])
        if state == "ADMIN_down":
            free[own[0]]["memory"] += memory
        tags = "svc:a" if rng.random() < 0.2 else ""
        balanced = "N" if rng.random() < 0.1 else "Y"
        rows.append(
            f"inst{number}|{memory}|{size}|{rng.choice([1, 1, 2])}|{state}|{balanced}|node{own[0]}|{secondary}|"
            f"{template}|{tags}|1|-|N"
        )
    nodes = [
        f"node{i}|{total}|0|{free[i]['memory']}|{disk}|{free[i]['disk']}|{cpus}|N|uuid-0|1|||N|0|0|1.0".replace(
            "||N", "|N"
        )
        for i in range(count)
    ]
    lines = ["g0|uuid-0|preferred||", "", *nodes, "", *rows, "", "htools:iextags:svc", ""]
    lines += [f"{owner}|{POLICY.format(ratio=rng.choice([1.0, 2.0, 4.0]))}" for owner in ("", "g0")]
    wanted = rng.choice([1024, 2048, 3072, 4096])
    size = rng.choice([1, 4, 8])
    tags = " tags=svc:a" if rng.random() < 0.2 else ""
    words = f"memory={wanted}M vcpus={rng.choice([1, 2])} disk={size}G template={template}{tags}"
    return parse_text("\n".join(lines) + "\n", where="a text", source="text:random"), words


@dataclass(frozen=True)
class Question:
    """A small cluster, and one more wanted instance, or two, than fit there now."""

    state: ClusterState
    beginning: Beginning
    hail: Hail
    want: Want

    def search(self) -> RemedySearch:
        return RemedySearch(self.beginning.before.layout, self.beginning.movers, Stop(), silent)


def question(seed: int) -> Question:
    state, words = small_cluster(seed)
    beginning = begin_remedy(state, load_state(state))
    start = beginning.before.layout
    want = read_want(words)
    hail = Hail(beginning.loaded, want.words.on(state, PairNames()), start)
    now = len(hail.place(start, 50).placed)
    return Question(state, beginning, hail, replace(want, count=now + random.Random(seed).choice([1, 1, 2])))


Places = tuple[tuple[int, int], ...]


def places_of(layout: Layout) -> Places:
    return tuple((item.primary, item.secondary) for _, item in sorted(layout.instances.items()))


def all_reached(asked: Question, most: int) -> Iterator[tuple[int, int, Layout]]:
    """Yield every layout that at most so many safe moves reach: the number, the least disk with it, the layout.

    None of them brings a fault.
    """
    movers, start = asked.beginning.movers, asked.beginning.before.layout
    wrong = set(asked.beginning.before.faults)
    here: dict[Places, tuple[int, Layout]] = {places_of(start): (0, start)}
    yield 0, 0, start
    for number in range(1, most + 1):
        after: dict[Places, tuple[int, Layout]] = {}
        for copied, layout in here.values():
            for index in layout.instances:
                for move in movers.moves(layout, index):
                    trial = movers.try_move(layout, move)
                    if isinstance(trial, MoveTrial) and trial.gain.units >= 0:
                        there = layout.after(trial.moved)
                        key = places_of(there)
                        cost = copied + trial.copied
                        if key in after and cost >= after[key][0]:
                            continue
                        if movers.is_safe(layout, trial) and wrong.issuperset(movers.places.faults(there)):
                            after[key] = cost, there
        here = after
        for copied, layout in here.values():
            yield number, copied, layout
