"""Limits: which are allowed, what they say, which go before others."""

from __future__ import annotations

import pytest

from gpolicy.cluster.terms import Limits
from gpolicy.errors import RequestError


def test_each_limit_in_words() -> None:
    assert Limits().words == {}
    assert Limits(max_node_failures=2, oversubscription=1.5, cpus_after_failure=True).words == {
        "max_node_failures": "2 nodes of a group may fail at once",
        "oversubscription": "memory may be over-subscribed 1.5 times",
        "cpus_after_failure": "nodes that take over must keep their vcpu-ratio",
    }
    assert Limits(cpus_after_failure=False).words == {
        "cpus_after_failure": "nodes that take over need not keep their vcpu-ratio"
    }


@pytest.mark.parametrize(
    ("limits", "beyond"),
    [
        (Limits(), False),
        (Limits(cpus_after_failure=False), False),
        (Limits(cpus_after_failure=True), True),
        (Limits(max_node_failures=0), True),
        (Limits(oversubscription=1.0), True),
    ],
)
def test_limits_that_htools_does_not_have(limits: Limits, *, beyond: bool) -> None:
    assert limits.beyond_htools is beyond


def test_limits_that_nothing_can_have_are_refused() -> None:
    with pytest.raises(RequestError, match="max-node-failures is -1, it must be 0 to 8"):
        Limits(max_node_failures=-1)
    for ratio in (0, 100.5):
        with pytest.raises(
            RequestError, match=f"over-subscription ratio is {ratio:g}, it must be above 0 and at most 100"
        ):
            Limits(oversubscription=ratio)
    assert Limits(max_node_failures=0, oversubscription=100).oversubscription == 100


def test_own_limits_go_before_others() -> None:
    own, others = Limits(max_node_failures=0), Limits(max_node_failures=2, oversubscription=1.5)
    assert own.over(others) == Limits(max_node_failures=0, oversubscription=1.5)
