"""Suggested sizes on known hardware: real figures, unusual figures, and impossible requests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.analysis.binding import Cause
from gpolicy.cluster.state import ClusterState, PhysicalVolume
from gpolicy.cluster.state_files import read_config_file, read_snapshot
from gpolicy.errors import GpolicyError, RequestError
from gpolicy.suggest.suggesting import suggest
from gpolicy.suggest.suggestion import Mix, Suggestion, SuggestRequest, divisor_of, parse_mix, parse_sizes, size_name
from tests.suggest.groups_of_nodes import Hardware, group

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "policies" / "two-groups.snapshot.json"
CONFIG = ROOT / "tests" / "data" / "clusters" / "full" / "config.data"
EVEN = Hardware(memory=262144, kept=2048, cpus=33, volumes=12, disk=12 * 1048576)


def one(state: ClusterState, request: SuggestRequest | None = None, name: str | None = None) -> Suggestion:
    (found,) = suggest(state, request or SuggestRequest(), group=name).groups
    return found


def named(found: Suggestion) -> list[str]:
    return [size.name for size in found.sizes]


# --- exclusive storage ---------------------------------------------------------------------------------------------


def test_full_half_and_quarter_of_a_real_node() -> None:
    """A volume of 1T counts as floor(1048576 / 1.03) = 1018034 MiB: three of them hold 2982G and a bit."""
    found = one(group(*[EVEN] * 4, exclusive=True))
    assert named(found) == ["full", "half", "quarter"]
    assert found.volume == 1048576
    highs = [size.pair.max for size in found.sizes]
    assert [high.spindle_use for high in highs] == [12, 6, 3]
    assert [high.cpus for high in highs] == [32, 16, 8]
    room = found.measure.memory
    assert room == (262144 - 2048) * 99 // 100
    assert [0 <= room - size.divisor * size.pair.max.memory <= room // 50 for size in found.sizes] == [True] * 3
    assert [high.disk_size // 1024 for high in highs] == [11930, 5965, 2982]
    assert [size.a_node for size in found.sizes] == [(1,), (2,), (4,)]
    assert found.vcpu_ratio == 1
    assert found.bounds == "fixed"


def test_hail_keeps_no_node_of_a_dedicated_group_free() -> None:
    found = one(group(*[EVEN] * 4, exclusive=True))
    assert [size.then.fits for size in found.sizes] == [4, 8, 16]
    assert {size.then.binding.cause for size in found.sizes} == {Cause.MEMORY}


def test_measured_volumes_count_instead_of_the_average() -> None:
    state = group(EVEN, EVEN, exclusive=True)
    volumes = tuple(PhysicalVolume(name=f"/dev/sd{letter}", size=1040000, free=1040000, used=0) for letter in "abc")
    nodes = {name: replace(node, physical_volumes=volumes) for name, node in state.nodes.items()}
    found = one(replace(state, nodes=nodes))
    assert found.volume == 1040000
    assert found.notes == ()
    assert one(state, SuggestRequest(volume=1000000)).volume == 1000000


def test_volumes_of_different_sizes_are_noted() -> None:
    odd = replace(EVEN, disk=12 * 1000000)
    assumed, note = one(group(EVEN, odd, exclusive=True)).notes[:2]
    assert "disk / spindles, at least 976.6G (or use" in assumed
    assert "physical volumes of 976.6G and 1T are too different" in note


@pytest.mark.parametrize(
    ("volumes", "cpus", "sizes"),
    [
        (1, 32, ["full"]),
        (2, 32, ["full", "half"]),
        (3, 33, ["full", "third"]),
        (5, 50, ["full", "fifth"]),
        (6, 60, ["full", "half", "sixth"]),
        (10, 60, ["full", "half", "tenth"]),
        (12, 48, ["full", "half", "quarter"]),
        (9, 45, ["full", "third", "ninth"]),
    ],
)
def test_the_sizes_divide_the_volumes(volumes: int, cpus: int, sizes: list[str]) -> None:
    node = Hardware(memory=524288, cpus=cpus, own_cpus=0, volumes=volumes, disk=volumes * 1048576)
    found = one(group(node, node, exclusive=True))
    assert named(found) == sizes
    whole = found.sizes[0]
    assert whole.pair.max.spindle_use == volumes


@pytest.mark.parametrize("cpus", [2, 3, 7, 13, 31, 61, 127])
def test_prime_numbers_of_cpus(cpus: int) -> None:
    node = Hardware(cpus=cpus, own_cpus=0)
    found = one(group(node, node, node, exclusive=True))
    for size in found.sizes:
        assert size.pair.max.cpus == cpus // size.divisor
        assert size.a_node == (size.divisor,)


# --- mirrors and shared nodes --------------------------------------------------------------------------------------


def test_with_drbd_the_division_of_memory_counts_fail_overs_of_one_node() -> None:
    node = Hardware(memory=102400, kept=0, disk=1048576, cpus=64)
    found = one(group(*[node] * 5), SuggestRequest(template="drbd", margin=0))
    parts = {size.name: 102399 // size.pair.max.memory for size in found.sizes}
    assert parts == {"full": 2, "half": 3, "quarter": 5}
    disks = {size.name: 1048575 // (2 * (size.pair.max.disk_size + 128)) for size in found.sizes}
    assert disks == {"full": 1, "half": 2, "quarter": 4}


def test_an_instance_has_no_more_virtual_cpus_than_a_node_has_cpus() -> None:
    found = one(group(*[Hardware(cpus=16)] * 3, ratio=8.0))
    assert max(size.pair.max.cpus for size in found.sizes) == 16


def test_ranges_follow_one_another_without_a_gap() -> None:
    found = one(group(*[Hardware()] * 3))
    assert found.bounds == "ranges"
    pairs = [size.pair for size in found.sizes]
    assert [big.min.memory for big in pairs[:-1]] == [small.max.memory + 4 for small in pairs[1:]]
    assert found.std_in == named(found)[-1]
    assert one(group(*[Hardware()] * 3), SuggestRequest(bounds="fixed")).std_in is None


def test_nodes_of_unlike_hardware_get_sizes_that_divide_both() -> None:
    large, small = Hardware(memory=403456, cpus=49, disk=6000000), Hardware(memory=270000, cpus=33, disk=4000000)
    found = one(group(large, large, small, small, small), SuggestRequest(template="plain", vcpu_ratio=1))
    assert [len(kind.nodes) for kind in found.kinds] == [3, 2]
    assert [size.a_node for size in found.sizes] == [(1, 1), (2, 3), (4, 6)]
    assert all(left.share < 0.02 for left in found.stranded if left.name != "full")


def test_memory_that_hv_state_reserves_is_not_given_to_instances() -> None:
    state = read_snapshot(DEMO)
    own = {**state.cluster.own, ("hv_state", "kvm", "mem_node"): 6144, ("hv_state", "kvm", "cpu_node"): 2}
    kept = replace(state, cluster=replace(state.cluster, own=own))
    before, after = (one(item, name="dedicated") for item in (state, kept))
    assert after.sizes[0].pair.max.cpus == before.sizes[0].pair.max.cpus - 1 == 30
    for kind in after.kinds:
        assert all(node.total_memory - node.room.memory > 6144 for node in kind.nodes)


def test_stored_sizes_are_what_the_command_line_would_store() -> None:
    for found in suggest(read_snapshot(DEMO), SuggestRequest()).groups:
        for size in found.sizes:
            for spec in (size.pair.min, size.pair.max):
                assert spec.memory % 4 == spec.disk_size % 4 == 0


# --- the mix -------------------------------------------------------------------------------------------------------


def mixed(mix: dict[int, int], *, exclusive: bool = True) -> Mix:
    request = SuggestRequest(template="plain", mix=mix, divisors=(1, 2, 4))
    found = one(group(*[EVEN] * 8, exclusive=exclusive), request).mix
    assert found is not None
    return found


def test_a_mix_fills_the_nodes() -> None:
    """One full, one half and two quarters are two nodes; with N+1 one of eight nodes stays free."""
    kept, all_of_it = (mixed({1: 1, 2: 1, 4: 2}, exclusive=exclusive) for exclusive in (False, True))
    assert (kept.n1, all_of_it.n1) == (True, False)
    assert all_of_it.mixes == 4
    assert all_of_it.placed == {"full": 4, "half": 4, "quarter": 8}
    assert all_of_it.best == all_of_it.placed
    assert set(all_of_it.more.values()) == {0}
    assert all_of_it.limit == "full"
    assert kept.mixes == 3


def test_the_rest_after_the_mixes_is_counted() -> None:
    """Two full and three halves are three and a half nodes: twice they leave one node, for one full of the third."""
    found = mixed({1: 2, 2: 3})
    assert found.mixes == 2
    assert found.placed == {"full": 4, "half": 6, "quarter": 0}
    assert found.best == {"full": 5, "half": 6, "quarter": 0}
    assert found.more == {"full": 1, "half": 2, "quarter": 4}
    assert found.limit == "full", "the first that lacks room in the list of what still fits: five of six"


# --- what cannot be ------------------------------------------------------------------------------------------------


def test_one_node_can_be_filled_but_not_with_n1() -> None:
    for exclusive, fits in ((True, [1, 2, 4]), (False, [0, 0, 0])):
        found = one(group(EVEN, exclusive=exclusive), SuggestRequest(template="plain", divisors=(1, 2, 4)))
        assert [size.then.fits for size in found.sizes] == fits
    with pytest.raises(RequestError, match="drbd needs two nodes"):
        one(group(EVEN), SuggestRequest(template="drbd"))


def test_without_figures_of_the_nodes_there_is_one_clear_error() -> None:
    with pytest.raises(GpolicyError, match=r"not known for group default: .* show no memory") as caught:
        suggest(read_config_file(CONFIG), SuggestRequest())
    assert caught.value.hint is not None


@pytest.mark.parametrize(
    ("state", "request_", "message"),
    [
        (group(EVEN, EVEN, flags="YY"), SuggestRequest(), "no node is online"),
        (
            group(Hardware(memory=100, kept=0), Hardware(memory=100, kept=0)),
            SuggestRequest(),
            "too small for any instance: the largest node has 99M memory, 127 virtual CPUs, 4T disk for",
        ),
        (group(replace(EVEN, cpus=2, own_cpus=2), exclusive=True), SuggestRequest(), "no memory or no CPUs"),
        (group(EVEN, EVEN, templates="plain"), SuggestRequest(template="drbd"), "does not allow drbd"),
        (group(EVEN, EVEN, exclusive=True), SuggestRequest(template="drbd"), "plain disks only"),
        (group(EVEN, EVEN, exclusive=True), SuggestRequest(divisors=(1, 13)), "no part-13"),
        (group(EVEN, EVEN), SuggestRequest(vcpu_ratio=0.0), "makes no sense"),
        (group(EVEN, EVEN), SuggestRequest(margin=99), "out of range"),
        (group(EVEN, EVEN), SuggestRequest(mix={3: 1}, divisors=(1, 2)), "not among divisors: third"),
    ],
)
def test_impossible_requests_are_refused(state: ClusterState, request_: SuggestRequest, message: str) -> None:
    with pytest.raises(GpolicyError, match=message):
        suggest(state, request_)


def test_other_groups_are_skipped_with_the_reason() -> None:
    report = suggest(read_snapshot(DEMO), SuggestRequest())
    assert [item.group for item in report.groups] == ["dedicated", "default"]
    assert report.passed_over == {"spare": "group spare: drbd needs two nodes, but only one is online"}
    with pytest.raises(RequestError, match="no group 'gold'"):
        suggest(read_snapshot(DEMO), SuggestRequest(), group="gold")


# --- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("divisor", range(1, 65))
def test_a_size_is_found_by_its_name(divisor: int) -> None:
    assert divisor_of(size_name(divisor)) == divisor_of(f"1/{divisor}") == divisor


@pytest.mark.parametrize("text", ["", "fulll", "1/0", "1/65", "1/²", "half,half", "part-", "1/99999999999999999999"])
def test_invalid_sizes_are_refused(text: str) -> None:
    with pytest.raises(RequestError):
        parse_sizes(text)


@pytest.mark.parametrize(
    "text", ["full", "full=", "full=0", "full=-1", "full=1,full=2", "full=1.5", "=3", "full=9999999"]
)
def test_invalid_mixes_are_refused(text: str) -> None:
    with pytest.raises(RequestError):
        parse_mix(text)
