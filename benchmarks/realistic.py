"""Clusters as people have them, as text of htools: two generations of hardware, three sizes of instances, a policy with
three spec pairs, racks and rooms as failure domains, services whose instances exclude each other.
"""

from __future__ import annotations

import random

SIZES = ((8192, 2, 102400), (16384, 4, 204800), (32768, 8, 409600))  # MiB of memory, CPUs, MiB of disk
HARDWARE = ((262144, 4096000, 48, 12), (393216, 6144000, 64, 16))  # MiB of memory and disk, CPUs, spindles
OWN_MEMORY = 4096  # MiB of the node itself
SERVICES = ("", "", "service:web", "service:db", "service:dns", "service:mail")
TAGS = ("htools:nlocation:rack", "htools:nlocation:room", "htools:iextags:service")
PAIRS = ";".join(
    f"{memory},{cpus},{disk},1,1,1;{memory},{cpus},{disk},4,2,{most}"
    for (memory, cpus, disk), most in zip(reversed(SIZES), (8, 4, 2), strict=True)
)


def realistic(
    count: int, fill: float, seed: int, template: str = "drbd", *, exclusive: bool = False, groups: int = 1
) -> str:
    """Return a cluster of `count` nodes in each group, with instances on the part `fill` of the memory.

    `template`: plain, drbd, or mixed, which is both. `exclusive`: nodes have exclusive storage.
    """
    nodes, instances = list[str](), list[str]()
    for group in range(groups):
        _add_group(group, count, fill, random.Random(seed + group), template, exclusive, nodes, instances)  # noqa: S311
    policy = f"8192,2,102400,1,1,1|{PAIRS}|plain,drbd|4.0|32.0"
    names = ["default", *(f"group{group}" for group in range(1, groups))]
    heads = [f"{name}|uuid-{number + 1}|preferred||" for number, name in enumerate(names)]
    policies = [f"{name}|{policy}" for name in ("", *names)]
    return "\n".join([*heads, "", *nodes, "", *instances, "", *TAGS, "", *policies]) + "\n"


def _add_group(
    group: int, count: int, fill: float, rng: random.Random, template: str, exclusive: bool,  # noqa: FBT001
    nodes: list[str], instances: list[str],
) -> None:  # fmt: skip
    hardware = [HARDWARE[place >= count * 2 // 3] for place in range(count)]
    memory = [total - OWN_MEMORY for total, *_ in hardware]  # what is free
    disk = [total for _, total, _, _ in hardware]
    spindles = [total for *_, total in hardware]
    cpus = [1] * count  # in use
    names = [f"node{group * count + place:04}.example.org" for place in range(count)]
    mirrored = template == "drbd"
    wanted, placed = sum(total for total, *_ in hardware) * fill / (2 if mirrored else 1), 0.0
    while placed < wanted:
        size, cores, space = rng.choice(SIZES)
        own = rng.choice(["plain", "drbd"]) if template == "mixed" else template
        primary = rng.randrange(count)
        mate = rng.choice([place for place in range(count) if place != primary]) if own == "drbd" else None
        on_spindles = max(1, space // 204800 + 1) if exclusive else 1
        fits = memory[primary] > size * 1.2 and disk[primary] > space * 2
        fits = fits and cpus[primary] + cores < hardware[primary][2] * 4
        fits = fits and (not exclusive or spindles[primary] >= on_spindles)
        fits = fits and (mate is None or (disk[mate] > space * 2 and memory[mate] > size * 3))
        placed += size / 4  # an instance that does not fit counts, too: the loop ends
        if not fits:
            continue
        placed += size * 3 / 4
        memory[primary] -= size
        disk[primary] -= space
        cpus[primary] += cores
        spindles[primary] -= on_spindles if exclusive else 0
        if mate is not None:
            disk[mate] -= space
        instances.append(
            f"inst{len(instances):05}.example.org|{size}|{space}|{cores}|running|Y|{names[primary]}|"
            f"{'' if mate is None else names[mate]}|{own}|{rng.choice(SERVICES)}|{on_spindles}|"
            f"{on_spindles if exclusive else '-'}"
        )
    for place, (total, space, cores, heads) in enumerate(hardware):
        place_of = f"rack:r{place % max(2, count // 8)},room:{'ab'[place % 2]}"
        storage = f"Y|{spindles[place]}" if exclusive else "N|0"
        nodes.append(
            f"{names[place]}|{total}|{OWN_MEMORY}|{memory[place]}|{space}|{disk[place]}|{cores}|N|uuid-{group + 1}|"
            f"{heads}|{place_of}|{storage}|1|1.0"
        )
