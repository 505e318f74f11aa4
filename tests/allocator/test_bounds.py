"""The engine needs little stack, time and memory even for deep searches; each case runs in a child process."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from gpolicy.allocator.balancing import Goal, balance, engine_search
from gpolicy.allocator.cluster_data import Disk, DiskTemplate, SpecPair as Pair
from gpolicy.allocator.engines import compiled_attempt, compiled_dedicated, compiled_redundancy, engine_cluster
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.native.library import Leaving, MoveRules, Unlisted
from gpolicy.allocator.placement import candidate_nodes
from gpolicy.allocator.redundancy import CapacityRules
from gpolicy.errors import GpolicyError
from tests import sanitizers
from tests.allocator.helpers import allocator, cluster, instance, node, policy, spec, start

TESTS = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(bool(sanitizers.ACTIVE), reason="sanitizers need stack and memory of their own")
STACKS = ["1024", "2048", "4096", "unlimited"]  # KiB, as `ulimit -s` takes them


def crowded(count: int, kind: DiskTemplate) -> int:
    """Fill three nodes of which one has `count` instances that have to find room elsewhere; return how many fit."""
    room = policy(Pair(spec(64, 1, 256), spec(900_000, 8, 900_000)))
    used, disk = 64 * count, 10_000_000
    residents = [instance(64, 300, 1, kind, index=number, name=f"i{number}", primary=0) for number in range(count)]
    nodes = [
        node(0, used + 200, disk, float(8 * count), free_memory=200, free_disk=disk - 300 * count),
        *(node(other, used * 6 // 10, disk, float(8 * count)) for other in (1, 2)),
    ]
    where = cluster([replace(item, spindles=count) for item in nodes], residents, group_policy=room)
    wanted = replace(instance(300, 400, 1, kind), disks=(Disk(400, 1),))
    return len(allocator(where, 1).tiered(start(where), wanted, None).placed)


def shrunk(memory: int, disk: int, cpus: int, kind: DiskTemplate) -> str:
    """Shrink from a size that fits nowhere; return the number of placed instances, or the error."""
    huge = policy(Pair(spec(64, 1, 256), spec(memory, cpus, disk)))
    where = cluster([node(place, 16_384, 204_800) for place in range(4)], group_policy=huge)
    wanted = replace(instance(memory, disk, cpus, kind), disks=(Disk(disk, 1),))
    try:
        return str(
            len(allocator(where, 2 if kind is DiskTemplate.DRBD else 1).tiered(start(where), wanted, None).placed)
        )
    except GpolicyError as error:
        return str(error)


def ring(count: int, *, exclusive: bool = False) -> Cluster:
    """Return mirrored instances, most of them in a ring of equal nodes."""
    pairs = [(number, (number + 1) % count) for number in range(count)] + [(0, mate) for mate in range(2, 6)]
    mirrored = [
        instance(512, 1024, 1, DiskTemplate.DRBD, index=number, name=f"i{number}", primary=pair[0], secondary=pair[1])
        for number, pair in enumerate(pairs)
    ]
    sizes = policy(*(Pair(spec(64 * size, 1, 256 * size), spec(900_000, 8, 900_000)) for size in range(1, 10)))
    spindles = {"exclusive": exclusive, "spindles": count, "free_spindles": count - 7}
    nodes = [node(place, 65_536, 1_000_000, **spindles) for place in range(count)]
    return cluster(nodes, mirrored, group_policy=sizes)


def balanced(count: int) -> int:
    """Balance a ring; return how many moves it takes."""
    where = ring(count)
    search = engine_search(where.nodes, where.instances, list(where.instances), MoveRules(0))
    return len(list(balance(where.nodes, where.instances, MoveRules(0), Goal(optimum=0.0, limit=5), search)))


CROWDED = {600: 26, 4000: 170}
"""Instances of the crowded node, and how many more fit."""


@cache
def answers() -> list[str]:
    """Return what each entry point of the engine answers: on many nodes, and where one node has many instances."""
    kinds = DiskTemplate.PLAIN, DiskTemplate.EXT
    found: list[object] = [[crowded(count, kind) for count in CROWDED] for kind in kinds]
    where = ring(150)
    pairs = candidate_nodes(where.groups, where.nodes, 2)
    wanted = instance(700, 3000, 2, DiskTemplate.DRBD, index=len(where.instances))
    for checked in (False, True):
        run = allocator(where, 2, checks=checked)
        found += [
            compiled_attempt(where.nodes, where.instances, wanted, pairs, CapacityRules(failures=int(checked))),
            run.standard(start(where), replace(wanted, index=-1), 5).placed,
            run.tiered(start(where), replace(wanted, index=-1, memory=2**40), 5).placed,
        ]
    exclusive = ring(150, exclusive=True)
    found += [
        compiled_redundancy(where.nodes, where.instances, CapacityRules(failures=failures)) for failures in (1, 2)
    ]
    found.append(compiled_dedicated(exclusive.nodes, wanted, pairs, force=False))
    engine = engine_cluster(where.nodes, where.instances)
    assert engine is not None
    found.append(engine.targets([0, 1, 2]))
    for number, leaving in enumerate(Leaving):
        candidates = range(number + 2, 150)
        found.append(engine.move(where.instances[number], leaving, Unlisted(0), candidates, force=False))
    assert None not in found  # which means that the law has to answer
    return [str(item) for item in [*found, balanced(150)]]


def in_child(call: str, stack: str = "8192", *, memory: int = 2**40, seconds: int = 600) -> tuple[str, float]:
    """Return the result of a call of this module and the MiB that it took, under limits of bytes and seconds."""
    code = (
        "import json, resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_CPU, ({seconds}, {seconds}))\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))\n"
        "from tests.allocator.test_bounds import *\n"
        f"found = {call}\n"
        # what getrusage tells would be the most of the process that this one was forked from
        "used = next(line for line in open('/proc/self/status') if line.startswith('VmHWM:'))\n"
        "json.dump([str(found), int(used.split()[1]) / 1024], sys.stdout)"
    )
    done = subprocess.run(
        ["/bin/sh", "-c", f'ulimit -S -s {stack} && exec "$@"', "sh", sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode}: {done.stderr[-2000:]}"
    found, took = json.loads(done.stdout)
    return found, took


@pytest.mark.parametrize("stack", STACKS)
def test_a_small_stack_is_enough(stack: str) -> None:
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    if hard != resource.RLIM_INFINITY and (stack == "unlimited" or int(stack) * 1024 > hard):
        pytest.skip("this system limits the stack")
    assert answers()[:2] == [str([*CROWDED.values()])] * 2
    assert in_child("answers()", stack)[0] == str(answers())


SIZES = [(1024, 1024, 30_000_000), (2**40, 1024, 1), (1024, 2**40, 1), (2**40, 2**40, 2**40)]
"""Memory, disk and CPUs that no node has."""


@pytest.mark.parametrize("kind", [DiskTemplate.PLAIN, DiskTemplate.DRBD], ids=lambda kind: kind.value)
def test_shrinking_from_any_size_takes_seconds_and_little_memory(kind: DiskTemplate) -> None:
    call = f"[shrunk(*size, DiskTemplate.{kind.name}) for size in SIZES]"
    _, took = in_child(call, memory=2**30, seconds=10)
    assert took < 200


def test_balancing_equal_nodes_takes_seconds_and_little_memory() -> None:
    moves, took = in_child("balanced(300)", "1024", memory=2**30, seconds=10)
    assert (moves, took < 200) == ("5", True)


@pytest.mark.parametrize("kind", [DiskTemplate.PLAIN, DiskTemplate.DRBD], ids=lambda kind: kind.value)
@pytest.mark.parametrize(("memory", "disk", "cpus"), [(1024, 1024, 300), (1024, 1024, 4097), (20_000, 3000, 65)])
def test_shrinking_by_cpus_ends_as_step_by_step(memory: int, disk: int, cpus: int, kind: DiskTemplate) -> None:
    huge = policy(Pair(spec(64, 1, 256), spec(memory, cpus, disk)))
    where = cluster([node(place, 4096, 20_480, 4.0) for place in range(3)], group_policy=huge)
    wanted = replace(instance(memory, disk, cpus, kind), disks=(Disk(disk, 1),))
    fast, law = (
        allocator(where, 2 if kind is DiskTemplate.DRBD else 1, checks=False, reference=reference).tiered(
            start(where), wanted, None
        )
        for reference in (False, True)
    )
    assert fast == law
