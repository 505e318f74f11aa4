"""What other numbers of the policy would give: each claim found again on a cluster whose policy has them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import event, given, settings, strategies as st

from gpolicy.analysis.binding import Cause
from gpolicy.analysis.capacity import CapacityReport, capacity
from gpolicy.analysis.policy_limits import PolicyLimit
from gpolicy.cluster.htools_sources import simulated_state
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.terms import Limits
from gpolicy.ganeti.vocabulary import Path
from tests.laws import examples

PATHS: dict[Cause, Path] = {
    Cause.VCPU_RATIO: ("ipolicy", "vcpu-ratio"),
    Cause.SPINDLE_RATIO: ("ipolicy", "spindle-ratio"),
}


def with_value(state: ClusterState, path: Path, value: float) -> ClusterState:
    """Return the cluster of one group with another value of its policy."""
    own = {**state.cluster.own, path: value}
    groups = {name: replace(item, effective={**item.effective, path: value}) for name, item in state.groups.items()}
    return replace(state, cluster=replace(state.cluster, own=own), groups=groups)


def fits(report: CapacityReport, title: str) -> int:
    (group,) = report.groups
    return group.standard.fits if title == "standard" else group.specs[int(title.split()[1]) - 1].fits


def check_claim(state: ClusterState, found: PolicyLimit) -> None:
    assert fits(capacity(state), found.spec) == found.fits
    path = PATHS[found.cause]
    now = state.cluster.own[path]
    assert isinstance(now, float | int)
    if found.other is None:
        assert fits(capacity(with_value(state, path, now * 1000)), found.spec) == found.fits
        return
    value = found.other.then
    assert isinstance(value, float)
    assert value > now
    assert fits(capacity(with_value(state, path, value)), found.spec) == found.would_fit > found.fits
    assert fits(capacity(with_value(state, path, value * 1000)), found.spec) == found.would_fit


@settings(max_examples=examples(10))
@given(
    st.integers(1, 6), st.integers(64, 2048), st.integers(8, 256), st.integers(1, 64), st.integers(1, 24),
    st.sampled_from([1.0, 2.0, 4.0]), st.sampled_from([1.0, 3.0, 32.0]),
)  # fmt: skip
def test_what_is_claimed_of_a_ratio_is_so(
    nodes: int, disk: int, memory: int, cpus: int, spindles: int, vcpu_ratio: float, spindle_ratio: float
) -> None:
    state = simulated_state(f"p,{nodes},{disk}g,{memory}g,{cpus},{spindles}")
    for cause, value in ((Cause.VCPU_RATIO, vcpu_ratio), (Cause.SPINDLE_RATIO, spindle_ratio)):
        state = with_value(state, PATHS[cause], value)
    report = capacity(state, other_values=True)
    (group,) = report.groups
    bound = [*(item.binding.cause for item in group.specs), group.standard.binding.cause]
    ratios = [item for item in report.policy_limits if item.cause in PATHS]
    assert [item.cause for item in ratios] == [cause for cause in bound if cause in PATHS]
    for item in ratios:
        event("another value helps" if item.other else "no other value helps")
        check_claim(state, item)


def test_hardware_is_no_number_of_the_policy() -> None:
    report = capacity(simulated_state("p,4,1t,4g,64,64"), other_values=True)
    assert {spec.binding.cause for spec in report.groups[0].specs} <= {Cause.MEMORY, Cause.RESERVE, Cause.REDUNDANCY}
    assert report.policy_limits == ()


def test_it_is_counted_on_request_only() -> None:
    state = simulated_state("p,4,4t,256g,8,2")
    assert capacity(state).policy_limits == ()
    (found,) = capacity(state, template="drbd", other_values=True).policy_limits
    assert found.sentence == (
        "group group-01, standard: the limit is a number of the policy: with ipolicy.vcpu-ratio 5 instead of 4, 128 fit"
        " instead of 124; beyond that ipolicy.spindle-ratio is the limit"
    )


def test_a_standard_size_that_no_spec_allows_is_told_by_its_row_alone() -> None:
    state = simulated_state("p,4,4t,64g,8")
    pair = {
        end: {
            "memory-size": 8192, "cpu-count": 2, "disk-size": 8192, "disk-count": 1, "nic-count": 1, "spindle-use": 1,
        }
        for end in ("min", "max")
    }  # fmt: skip
    report = capacity(with_value(state, ("ipolicy", "minmax"), [pair]), other_values=True)  # type: ignore[arg-type]
    assert report.groups[0].standard.binding.cause is Cause.BOUNDS
    assert not [item for item in report.policy_limits if item.spec == "standard"]


@pytest.mark.parametrize(
    ("limits", "cause", "words", "eased"),
    [
        (
            Limits(max_node_failures=2, cpus_after_failure=True), Cause.CPUS_AFTER_FAILURE,
            "cpus_after_failure false instead of true", Limits(max_node_failures=2, cpus_after_failure=False),
        ),
        (
            Limits(max_node_failures=2), Cause.NODE_FAILURES,
            "max_node_failures 1 instead of 2", Limits(max_node_failures=1),
        ),
    ],
)  # fmt: skip
def test_limits_of_the_policy(limits: Limits, cause: Cause, words: str, eased: Limits) -> None:
    state = simulated_state("p,4,4t,256g,8,2" if limits.cpus_after_failure else "p,4,4t,4g,64,64")
    report = capacity(state, limits=limits, other_values=True)
    (found,) = (item for item in report.policy_limits if item.cause is cause and item.spec == "standard")
    under = capacity(state, limits=eased).groups[0]
    assert found.other is not None
    assert (found.other.words, found.would_fit) == (words, under.standard.fits)
