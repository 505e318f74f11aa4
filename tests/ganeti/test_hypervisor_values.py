"""Check refuses the values of hypervisor parameters that Ganeti refuses, and no others."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from functools import cache
from typing import Any, Final

import pytest
from hypothesis import given, strategies as st

from gpolicy.adopt.soundness import policy_of
from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.checking.settings import DEFAULT
from gpolicy.findings import Finding, Severity
from gpolicy.ganeti.parameters import default_in
from gpolicy.policy.conformance import Test, compile_schema, schema_of
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
from tests.mistakes import find_mistakes

ERRORS_ONLY: Final = replace(
    DEFAULT, ignored=frozenset(info.code for info in CATALOGUE if info.severity is not Severity.ERROR)
)
"""Settings with which check takes half the time."""


@cache
def conforms() -> Test:
    return compile_schema(schema_of("Cluster"))


@cache
def defaults_of(hypervisor: str, release: str) -> Values:
    return {name: default_in(KNOWN[of, name], release) for of, name in parameters(release) if of == hypervisor}


def cluster(release: str, hypervisor: str, values: Values) -> dict[str, Any]:
    """Return a policy that declares all parameters of a hypervisor: Ganeti's defaults, and `values`."""
    head = {"gpolicy": "v1", "kind": "Cluster", "name": "c.example.org", "ganeti_version": release}
    return {**head, "hvparams": {hypervisor: {**defaults_of(hypervisor, release), **values}}}


def errors(document: dict[str, Any]) -> list[Finding]:
    policy = policy_of({"policy.yaml": json.dumps(document)})
    found = find_mistakes(policy, today=date(2026, 6, 15), settings=ERRORS_ONLY)
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
    judged = {path[1] for path, known in KNOWN.items() if known.since or known.until}
    judged |= RULED if release == RELEASES[-1] else set()  # the rules about the others do not look at the release
    taken = asked if ANSWERS[release]["taken"][name] == ALL else ANSWERS[release]["taken"][name]
    refused = [
        value
        for place, value in enumerate(conforming)
        if (parameter in judged or value not in taken or place % 20 == 0)
        and errors(cluster(release, hypervisor, {parameter: value}))
    ]
    assert [value for value in conforming if value not in refused] == [*taken]


@pytest.mark.parametrize("release", RELEASES)
def test_every_parameter_was_asked_about(release: str) -> None:
    asked = {f"{hypervisor}.{name}" for hypervisor, name in parameters(release)}
    assert set(ANSWERS[release]["taken"]) == asked


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 7])
def test_two_values_together(release: str, every: int) -> None:
    asked = list(pairs())[::every]
    refused = [(hypervisor, values) for hypervisor, values in asked if not takes(release, hypervisor, values)]
    by_master = [[hypervisor, values] for hypervisor, values in refused if not both_consoles(values)]
    assert by_master == [pair for pair in ANSWERS[release]["refused_pairs"] if (pair[0], pair[1]) in asked]


@pytest.mark.parametrize("release", RELEASES)
def test_both_consoles_are_refused(release: str) -> None:
    """By each node, not by the master."""
    assert not takes(release, "kvm", {"vnc_bind_address": "127.0.0.1", "spice_bind": "127.0.0.1"})


def both_consoles(values: Values) -> bool:
    return bool(values.get("vnc_bind_address") and values.get("spice_bind"))


class TestGaneti:
    pytestmark = needs_ganeti

    def test_the_recorded_answers_match(self) -> None:
        assert ask() == ANSWERS[RELEASE]

    @given(st.fixed_dictionaries({name: st.sampled_from(values) for name, values in TOGETHER["kvm"].items()}))
    def test_many_values_together(self, values: Values) -> None:
        if not both_consoles(values):
            assert takes(RELEASE, "kvm", values) == real_ganeti().takes("kvm", values)

    @given(st.data())
    def test_a_few_values_together(self, data: st.DataObject) -> None:
        known = TOGETHER["kvm"]
        names = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True, min_size=1, max_size=6))
        values = {name: data.draw(st.sampled_from(known[name])) for name in names}
        if not both_consoles(values):
            assert takes(RELEASE, "kvm", values) == real_ganeti().takes("kvm", values)
