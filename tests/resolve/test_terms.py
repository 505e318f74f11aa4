"""What a policy says of resources: of groups that stay, of values that are written, of hardware in part."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.cluster.terms import GroupTerms, Limits, Promise, VolumeTerms
from gpolicy.findings import Located, Span
from gpolicy.policy.model import Hardware
from gpolicy.resolve.desired import promise_of, resolve, terms_of
from tests.resolve.test_desired import group_document, policy_of, state_of

HEAD = "kind: Cluster\nname: cluster.example.org"


def test_a_group_that_is_to_go_has_no_terms(tmp_path: Path) -> None:
    gone = group_document("spare", "removed: true")
    policy = policy_of(tmp_path, group_document("old", "limits: {max_node_failures: 2}"), gone)
    terms = terms_of(policy, resolve(policy, state_of()))
    assert terms.groups == {"old": GroupTerms(limits=Limits(max_node_failures=2))}


def test_a_value_that_is_inherited_declares_nothing(tmp_path: Path) -> None:
    own = "hv_state: {kvm: {mem_total: 64G, mem_node: inherit}}\nndparams: {spindle_count: 2}"
    policy = policy_of(tmp_path, HEAD, group_document("old", own))
    terms = terms_of(policy, resolve(policy, state_of()))
    assert terms.values == {"group/old": {("hv_state", "kvm", "mem_total"): 65536}}


def test_shares_are_per_cent(tmp_path: Path) -> None:
    volumes = 'physical_volumes: {margin: 2.5 %, reserve: "10%", volume_groups: {meta: [/dev/a, /dev/b]}}'
    policy = policy_of(tmp_path, f"{HEAD}\n{volumes}", group_document("old"))
    terms = terms_of(policy, resolve(policy, state_of()))
    expected = VolumeTerms(margin=0.025, reserve=0.1, volume_groups={"meta": ("/dev/a", "/dev/b")})
    assert terms.groups["old"].volumes == terms.others.volumes == expected


@pytest.mark.parametrize(
    ("sizes", "count", "volumes"),
    [
        ((), 4, None),
        ((100,), None, None),
        ((100,), 3, (100, 100, 100)),
        ((100,), 5000, (100,) * 1000),
        ((100, 200), None, (100, 200)),
        ((100, 200), 2, (100, 200)),
        ((100, 200), 3, None),
    ],
)
def test_volumes_are_promised_where_number_and_sizes_are_known(
    sizes: tuple[int, ...], count: int | None, volumes: tuple[int, ...] | None
) -> None:
    place = Span("f", 1, 1, 1, 2)
    hardware = Hardware(
        span=place,
        cpus=Located(8, place),
        pv_sizes=tuple(Located(size, place) for size in sizes),
        pv_count=None if count is None else Located(count, place),
    )
    assert promise_of(hardware) == Promise(memory=None, cpus=8, volumes=volumes)
