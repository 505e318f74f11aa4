"""Check refuses the values of hypervisor parameters that Ganeti refuses, and no others."""

from __future__ import annotations

import json
import os
from datetime import date
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpolicy.adopt.soundness import policy_of
from gpolicy.checking.checking import check_policy
from gpolicy.findings import Finding, Severity
from gpolicy.ganeti.parameters import default_in
from gpolicy.policy.conformance import Test, compile_schema
from gpolicy.policy.schema_files import schema_of
from tests.ganeti.hypervisor_questions import (
    ALL,
    KNOWN,
    RELEASES,
    TOGETHER,
    Values,
    alone,
    ask,
    pairs,
    parameters,
    recorded,
)
from tests.ganeti.real_ganeti import RELEASE, needs_ganeti, real_ganeti

EXAMPLES = int(os.environ.get("GPOLICY_LAW_EXAMPLES", "50"))


@cache
def conforms() -> Test:
    return compile_schema(schema_of("Cluster"))


def cluster(release: str, hypervisor: str, values: Values) -> dict[str, Any]:
    """Return a policy that declares all parameters of a hypervisor: Ganeti's defaults, and `values`."""
    defaults = {name: default_in(KNOWN[of, name], release) for of, name in parameters(release) if of == hypervisor}
    head = {"gpolicy": "v1", "kind": "Cluster", "name": "c.example.org", "ganeti_version": release}
    return {**head, "hvparams": {hypervisor: {**defaults, **values}}}


def errors(document: dict[str, Any]) -> list[Finding]:
    found = check_policy(policy_of({"policy.yaml": json.dumps(document)}), today=date(2026, 6, 15))
    return [finding for finding in found if finding.severity is Severity.ERROR]


def takes(release: str, hypervisor: str, values: Values) -> bool:
    """Return whether check has no error: the schema's answer first, since the rules see sound values only."""
    document = cluster(release, hypervisor, values)
    return conforms()(document) and not errors(document)


ANSWERS = {release: recorded(release) for release in RELEASES}
RULED = {name for values in TOGETHER.values() for name in values}


@pytest.mark.parametrize(
    ("release", "name"), [(release, name) for release in RELEASES for name in ANSWERS[release]["taken"]]
)
def test_a_value_alone(release: str, name: str) -> None:
    hypervisor, parameter = name.split(".")
    asked = alone(hypervisor, parameter)
    conforming = [value for value in asked if conforms()(cluster(release, hypervisor, {parameter: value}))]
    by_release = {path[1] for path, known in KNOWN.items() if known.since or known.until}
    seen_by_rules = (
        conforming if parameter in RULED | by_release else conforming[::20]
    )  # the others are no matter of any rule
    refused = [value for value in seen_by_rules if errors(cluster(release, hypervisor, {parameter: value}))]
    answer = ANSWERS[release]["taken"][name]
    assert [value for value in conforming if value not in refused] == ([*asked] if answer == ALL else answer)


@pytest.mark.parametrize("release", RELEASES)
def test_every_parameter_was_asked_about(release: str) -> None:
    asked = {f"{hypervisor}.{name}" for hypervisor, name in parameters(release)}
    assert set(ANSWERS[release]["taken"]) == asked


@pytest.mark.parametrize("release", RELEASES)
def test_two_values_together(release: str) -> None:
    refused = [(hypervisor, values) for hypervisor, values in pairs() if not takes(release, hypervisor, values)]
    by_master = [[hypervisor, values] for hypervisor, values in refused if not both_consoles(values)]
    assert by_master == ANSWERS[release]["refused_pairs"]
    assert len(by_master) < len(refused)  # both consoles are refused by each node


def both_consoles(values: Values) -> bool:
    return bool(values.get("vnc_bind_address") and values.get("spice_bind"))


class TestGaneti:
    pytestmark = needs_ganeti

    def test_the_recorded_answers_match(self) -> None:
        assert ask() == ANSWERS[RELEASE]

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(st.fixed_dictionaries({name: st.sampled_from(values) for name, values in TOGETHER["kvm"].items()}))
    def test_many_values_together(self, values: Values) -> None:
        if not both_consoles(values):
            assert takes(RELEASE, "kvm", values) == real_ganeti().takes("kvm", values)

    @settings(max_examples=EXAMPLES, deadline=None)
    @given(st.data())
    def test_a_few_values_together(self, data: st.DataObject) -> None:
        known = TOGETHER["kvm"]
        names = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True, min_size=1, max_size=6))
        values = {name: data.draw(st.sampled_from(known[name])) for name in names}
        if not both_consoles(values):
            assert takes(RELEASE, "kvm", values) == real_ganeti().takes("kvm", values)
