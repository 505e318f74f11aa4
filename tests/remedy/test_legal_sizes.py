"""The nearest legal size: which spec pair, which values, and what no command changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpolicy.analysis.violations import PolicyJudge
from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.vocabulary import Values
from gpolicy.remedy.commands import SizeCure
from tests.remedy.broken_clusters import remedied

SNAPSHOT = Path(__file__).resolve().parents[2] / "policies/two-groups.snapshot.json"
LOW = {"memory-size": 128, "cpu-count": 1, "disk-size": 1024, "disk-count": 1, "nic-count": 0, "spindle-use": 1}
HIGH = {"memory-size": 65536, "cpu-count": 8, "disk-size": 1048576, "disk-count": 16, "nic-count": 8, "spindle-use": 12}
Pair = dict[str, Any]


def pair(low: dict[str, int], high: dict[str, int]) -> Pair:
    return {"min": LOW | low, "max": HIGH | high}


SMALL = pair({}, {"memory-size": 4096})


def under(*pairs: Pair) -> ClusterState:
    """Return the example's cluster with other spec pairs for the group of its DRBD instances."""
    state = read_state(f"snapshot:{SNAPSHOT}", SourceOptions())
    group = state.groups["default"]
    effective: Values = {**group.effective, ("ipolicy", "minmax"): list(pairs)}
    return replace(state, groups={**state.groups, "default": replace(group, effective=effective)})


def cure_of(name: str, *pairs: Pair) -> SizeCure:
    return next(item for item in remedied(under(*pairs)).sizes if item.instance.startswith(name))


def lines(cure: SizeCure) -> list[str]:
    return [" ".join(command.argv[1:-1]) for command in cure.commands if command.argv]


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ((pair({}, {"memory-size": 8192}),), ["modify -B maxmem=8192M,minmem=8192M"]),
        ((pair({}, {"memory-size": 8190}),), ["modify -B maxmem=8188M,minmem=8188M"]),
        ((pair({"memory-size": 16383}, {}),), ["modify -B maxmem=16384M,minmem=16384M"]),
        ((pair({}, {"cpu-count": 2}),), ["modify -B vcpus=2"]),
        ((pair({"spindle-use": 3}, {}),), ["modify -B spindle_use=3"]),
        (
            (pair({}, {"memory-size": 4096}), pair({}, {"memory-size": 12288})),
            ["modify -B maxmem=12288M,minmem=12288M"],
        ),
        (
            (pair({}, {"memory-size": 12288, "cpu-count": 1}), pair({}, {"memory-size": 4096})),
            ["modify -B maxmem=4096M,minmem=4096M"],
        ),
    ],
)
def test_the_nearest_legal_size(pairs: tuple[Pair, ...], said: list[str]) -> None:
    cure = cure_of("build1", *pairs)
    assert lines(cure) == said
    assert not cure.reason
    assert [command.argv[1] for command in cure.back if command.argv] == ["modify"]


def test_the_pair_that_is_named_is_the_one_that_the_commands_lead_to() -> None:
    """Of both, the second breaks more bounds and is nearer; without a command for the nearest, the next one counts."""
    near = pair({"memory-size": 17 * 1024}, {"memory-size": 64 * 1024, "cpu-count": 3})
    for pairs, named in (((SMALL, near), 2), ((pair({}, {"disk-size": 50 * 1024}), SMALL), 2)):
        cure = cure_of("build1", *pairs)
        assert cure.commands
        assert cure.violation.pair == named
    state = under(SMALL, near)
    judge = PolicyJudge(state, {})
    item = next(item for item in state.instances.values() if item.name.startswith("build1"))
    found = judge.verdict(item).violation
    assert found is not None
    assert found.pair == 1  # as Ganeti names it: the fewest breaches


def test_a_disk_that_is_too_small_grows_and_does_not_shrink_again() -> None:
    cure = cure_of("build1", pair({"disk-size": 80 * 1024}, {}))
    assert cure.commands[0].argv == ("gnt-instance", "grow-disk", "--absolute", "build1.example.org", "0", "81920M")
    assert cure.back == ()


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ((pair({}, {"disk-size": 2048}),), "disk 0 is too large, and Ganeti does not shrink disks"),
        ((pair({"disk-count": 5}, {}),), "it would need another number of disks"),
        ((pair({"nic-count": 5}, {}),), "it would need another number of network interfaces"),
        ((pair({"memory-size": 65536 * 8}, {"memory-size": 65536 * 9}),), "cannot hold its next legal size"),
        ((pair({"memory-size": 15001}, {"memory-size": 15003}),), "no value within the size is a multiple of 4M"),
    ],
)
def test_what_no_command_cures(pairs: tuple[Pair, ...], reason: str) -> None:
    cure = cure_of("build1", *pairs)
    assert cure.commands == ()
    assert reason in cure.reason
