"""Sizes for the instances that exist: the least unused, under the limits of the group."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from gpolicy.cluster.sources import read_state
from gpolicy.cluster.state import LiveDisk, LiveInstance
from gpolicy.cluster.terms import NO_LIMITS, Limits
from gpolicy.errors import GpolicyError, RequestError
from gpolicy.progress import after
from gpolicy.suggest import mixes
from gpolicy.suggest.suggesting import suggest
from gpolicy.suggest.suggestion import Suggestion, SuggestRequest
from gpolicy.what_if.load import with_all
from tests.suggest.groups_of_nodes import Hardware, group

GIB = 1024
NODE = Hardware(memory=64 * GIB + 1024, kept=1024, disk=1024 * GIB, cpus=16, own_cpus=0)


Sizes = tuple[tuple[int, int, int, int], ...]
"""GiB of memory, CPUs and GiB of disk of instances, and how many there are of each."""


def instances(sizes: Sizes) -> Iterator[LiveInstance]:
    number = 0
    for memory, cpus, disk, count in sizes:
        for _ in range(count):
            yield LiveInstance(
                name=f"i{number}",
                primary_node=f"node{number % 4}",
                disk_template="plain",
                disks=(LiveDisk(size=disk * GIB, template="plain"),),
                minmem=memory * GIB,
                maxmem=memory * GIB,
                vcpus=cpus,
                spindle_use=1,
                status="running",
                running=True,
            )
            number += 1


def found(sizes: Sizes, limits: Limits = NO_LIMITS, divisors: tuple[int, ...] | None = None) -> Suggestion:
    empty = group(*[NODE] * 4, templates="plain", ratio=1.0)
    state = with_all(empty, list(instances(sizes)))
    request = SuggestRequest(real_mix=True, template="plain", margin=0, divisors=divisors)
    return suggest(state, request, limits=limits).groups[0]


def test_sizes_that_match_the_instances_are_chosen() -> None:
    third, ninth = found(((20, 5, 300, 4),)), found(((6, 1, 100, 8),))
    assert "third" in third.choices[0].sizes
    assert third.choices[0].weights["third"] == 4
    assert third.choices[0].outside == 0
    assert sum(ninth.choices[0].weights.values()) == 8
    assert max(size.divisor for size in ninth.sizes) > max(size.divisor for size in third.sizes)
    assert [size.name for size in third.sizes] == list(third.choices[0].sizes)
    assert "name: third" in third.document


def test_unused_is_what_no_instance_needs() -> None:
    """With room for the loss of a node, 3 of 4 nodes hold two halves each; the instances need 30 of their 31.9 GiB."""
    made = found(((30, 8, 500, 2),), divisors=(2,)).choices
    assert len(made) == 1
    room = 4 * (64 * GIB - 1)
    number = made[0].placed["half"]
    assert number == 6
    assert made[0].unused["memory"] == pytest.approx(1 - number * 30 * GIB / room)
    assert made[0].unused["CPUs"] == pytest.approx(1 - number * 8 / 64)


def test_a_stricter_limit_leaves_more_unused() -> None:
    text = ((30, 8, 500, 2), (15, 4, 200, 2))
    one, two = found(text), found(text, Limits(max_node_failures=2))
    assert one.choices[0].mean_unused < two.choices[0].mean_unused


def test_the_choice_is_the_best_of_all_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a small group all sets are tried; those that look best first, of which a few are nearly as good."""
    texts: list[Sizes] = [
        ((30, 8, 500, 2), (15, 4, 200, 3)),
        ((5, 1, 10, 12), (20, 4, 300, 1)),
        ((2, 2, 100, 9),),
    ]
    for text in texts:
        monkeypatch.undo()
        best = found(text).choices
        order = [(item.outside, item.mean_unused) for item in best]
        assert order == sorted(order)
        monkeypatch.setattr(mixes, "MOST_WORK", 0)
        few = found(text).choices[0]
        assert few.outside == best[0].outside
        assert best[0].mean_unused <= few.mean_unused <= best[0].mean_unused + 0.1


def test_an_instance_that_is_larger_than_a_node_is_in_none() -> None:
    assert found(((30, 8, 500, 2), (90, 8, 500, 1))).choices[0].outside == 1


def test_without_instances_there_is_no_mix() -> None:
    with pytest.raises(GpolicyError, match="group g has no instances to choose sizes by"):
        found(())
    with pytest.raises(GpolicyError, match="group g: no part of its nodes holds one of its instances"):
        found(((90, 8, 500, 1),))
    state = read_state("sim:p,3,2t,64g,16,4")
    with pytest.raises(RequestError, match="mix and real_mix exclude one another"):
        suggest(state, SuggestRequest(real_mix=True, mix={1: 1}))


def test_ctrl_c_leaves_the_best_so_far_and_says_so() -> None:
    state = with_all(group(*[NODE] * 4, templates="plain", ratio=1.0), list(instances(((30, 8, 500, 2),))))
    request = SuggestRequest(real_mix=True, template="plain", margin=0)
    told: list[str] = []

    def stop(what: str) -> None:
        told.append(what)
        if len(told) == 2:
            raise KeyboardInterrupt

    made = suggest(state, request, tell=stop).groups[0]
    assert len(made.choices) == 2
    assert any("the search ended early" in note for note in made.notes)
    assert not any("ended early" in note for note in suggest(state, request).groups[0].notes)
    with pytest.raises(GpolicyError, match="group g: no sizes were compared in time"):
        suggest(state, request, stop=after(-1))
