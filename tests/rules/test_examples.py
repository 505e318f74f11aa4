"""Every rule is shown by its own examples: the bad one has just its finding, the good one none."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.checking.catalogue import CATALOGUE, FLEET_RULES, RULES
from gpolicy.cluster.state import ClusterState
from gpolicy.findings import RuleInfo, Severity
from tests.rules.observed_clusters import OBSERVED
from tests.rules.run_rules import check, cluster, codes, with_instance, with_resources

WITHOUT_EXAMPLE = {
    "GP001": "needs a file that cannot be read",
    "GP026": "needs a file with another ending",
    "GP028": "needs a settings file",
    "GP004": "needs a large file",
    "GP138": "needs another release: tests/checking/test_other_release.py",
    "GP209": "needs a long list",
    "GP821": "is found by drift, not by check",
    "GP915": "needs a baseline: tests/checking/test_baseline.py",
    "GP916": "needs a settings file: tests/checking/test_settings.py",
}
STATES: dict[str, ClusterState] = {
    **OBSERVED,
    "GP126": with_instance(cluster({"gold": {}}, {"n1": "gold"}), "n1", template="rbd", hypervisor="xen-pvm"),
    "GP154": with_resources(cluster({"gold": {}}, {"n1": "gold"}), memory_total=64 * 1024, cpu_total=16),
    "GP308": cluster({"gold": {("ipolicy", "disk-templates"): ["drbd", "plain"]}}),
    "GP606": cluster({"gold": {}}, {"node1.example.org": "gold"}),
    "GP701": cluster({"gold": {}}, {"node1.example.org": "gold"}),
    "GP702": cluster({"gold": {}}, {"node1.example.org": "gold", "host1.example.org": "gold"}),
    "GP703": cluster({"gold": {}}, {f"{name}{n}.example.org": "gold" for name in ("node", "host") for n in (1, 2)}),
    "GP704": cluster({"gold": {}, "silver": {}}),
}
MIXED = cluster({"dedicated": {}}, {"n1": "dedicated"}, {"n1": {("ndparams", "exclusive_storage"): False}})
UNIFORM = cluster({"dedicated": {("ndparams", "exclusive_storage"): True}}, {"n1": "dedicated"})
OF_FLEETS = {rule.info.code for rule in FLEET_RULES}  # several policies: tests/rules/fleet/test_fleet.py
WITH_EXAMPLE = [info for info in CATALOGUE if info.code not in {*WITHOUT_EXAMPLE, *OF_FLEETS}]


@pytest.mark.parametrize("info", WITH_EXAMPLE, ids=lambda info: info.name)
def test_the_bad_example_has_this_finding_and_no_other(info: RuleInfo, tmp_path: Path) -> None:
    findings = check(info.bad, tmp_path, state=MIXED if info.code == "GP412" else STATES.get(info.code))
    about = [finding for finding in findings if finding.severity is not Severity.INFO or finding.code == info.code]
    assert set(codes(about)) == {info.code}
    for finding in about:
        assert finding.severity is info.severity
        assert finding.span is not None


@pytest.mark.parametrize("info", WITH_EXAMPLE, ids=lambda info: info.name)
def test_the_good_example_has_nothing_to_fix(info: RuleInfo, tmp_path: Path) -> None:
    findings = check(info.good, tmp_path, state=UNIFORM if info.code == "GP412" else STATES.get(info.code))
    assert info.code not in codes(findings)
    assert [finding for finding in findings if finding.severity is not Severity.INFO] == []


def test_every_rule_has_examples_or_a_reason_not_to() -> None:
    assert {info.code for info in CATALOGUE if not (info.bad and info.good)} == set(WITHOUT_EXAMPLE)


def test_every_rule_that_needs_a_cluster_is_shown_on_one() -> None:
    assert {rule.info.code for rule in RULES if rule.needs_state} == {*STATES, "GP412"}


@pytest.mark.parametrize("info", WITH_EXAMPLE, ids=lambda info: info.name)
def test_without_a_cluster_no_rule_guesses_one(info: RuleInfo, tmp_path: Path) -> None:
    needing = {rule.info.code for rule in RULES if rule.needs_state}
    assert needing.isdisjoint(codes(check(info.bad, tmp_path)))
