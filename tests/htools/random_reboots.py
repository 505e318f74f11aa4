"""Random questions to hroller: a cluster, at times with a master node and much room, and options of all kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from tests.htools.random_clusters import RandomCluster

ROOM = 20_000


def with_master_and_room(rng: random.Random, cluster: RandomCluster) -> str:
    """Return the text of the cluster, at times with one or two master nodes, and with more memory (MiB) and disk."""
    lines = cluster.text.split("\n")
    rows = {place: line.split("|") for place, line in enumerate(lines) if line.startswith("node")}
    if rng.random() < 0.5:
        for row in rows.values():
            for column in (1, 3, 4, 5):
                row[column] = row[column] if row[column] == "?" else str(int(row[column]) + ROOM)
    able = [row for row in rows.values() if row[7] == "N"]
    if rng.random() < 0.7:
        for row in rng.sample(able, min(len(able), rng.choice([1] * 9 + [2]))):
            row[7] = "M"
    return "\n".join("|".join(rows[place]) if place in rows else line for place, line in enumerate(lines))


def rolling_options(rng: random.Random, cluster: RandomCluster) -> list[str]:
    """Return random options for hroller, without a source."""
    options = [rng.choice(["-f", "--force"])] if rng.random() < 0.85 else []
    if rng.random() < 0.2:
        options += ["-G", rng.choice(["g0", "uuid-0", f"g{rng.randrange(cluster.groups)}", "g9"])]
    if rng.random() < 0.2:
        tags = rng.sample(["power:a", "power:b", "rack:1", "hv:a", ""], rng.choice([1, 2, 3]))
        options.append(f"--node-tags={','.join(tags)}")
    for chance, option in (
        (0.1, "--skip-non-redundant"),
        (0.2, "--offline-maintenance"),
        (0.15, "--ignore-non-redundant"),
        (0.4, "--full-evacuation"),
        (0.7, "--print-moves"),
        (0.15, "--one-step-only"),
        (0.15, "--no-headers"),
        (0.05, "-q"),
        (0.02, "-qq"),
        (0.05, "--static-kvm-node-memory=100"),
    ):
        if rng.random() < chance:
            options.append(option)
    while rng.random() < 0.2:
        names = [rng.choice(cluster.nodes).name] * 9 + ["nobody", cluster.nodes[0].name.split(".")[0]]
        options += ["-O", rng.choice(names)]
    if rng.random() < 0.1:
        options += ["-S", "saved"]
    return [*options, *["-v"] * rng.choice([0, 0, 1, 2, 2, 3])]
