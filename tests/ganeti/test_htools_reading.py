"""What the cluster's parameters make of hail: by a table, by our hail's command line, and by the installed hail."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Final

import pytest

from gpolicy.cluster.sources import read_state
from gpolicy.ganeti.htools_reading import HAIL_OPTIONS, HailParameters, hail_parameters
from gpolicy.ganeti.vocabulary import Value
from gpolicy.htools.program_options import Exit, read_options
from tests.analysis.hail_cases import HSPACE, HTOOLS, document, passed, real_hail

STATE: Final = f"snapshot:{Path(__file__).parents[2] / 'policies' / 'two-groups.snapshot.json'}"
REQUEST: Final = {
    "type": "allocate", "name": "new", "memory": 1024, "vcpus": 1, "disks": [{"size": 1024}], "tags": [], "nics": [],
    "spindle_use": 1, "disk_template": "drbd", "os": "none", "hypervisor": "kvm", "required_nodes": 2,
    "disk_space_total": 1152,
}  # fmt: skip
ANSWERED: Final[list[tuple[dict[str, Value], HailParameters]]] = [
    ({}, HailParameters()),
    ({"no-capacity-checks": None}, HailParameters(capacity_checks=False)),
    ({"no-cap": None}, HailParameters(capacity_checks=False)),
    ({"ignore-soft-errors": None}, HailParameters(ignore_soft_errors=True)),
    ({"restrict-allocation-to": "a,b"}, HailParameters(restriction=frozenset({"a", "b"}))),
    ({"restrict-allocation-to": ""}, HailParameters(restriction=frozenset())),
    ({"static-kvm-node-memory": "0x10"}, HailParameters(static_kvm_node_memory=16)),
    ({"static-kvm-node-memory": " -5"}, HailParameters(static_kvm_node_memory=-5)),
    ({"mond": "no", "mond-xen": None, "verbose": None, "print-nodes": "name"}, HailParameters()),
    ({"mond": None}, HailParameters(monitored=True)),
    ({"ignore-dynu": None, "mond": "yes"}, HailParameters()),
    (
        {"restrict-allocation-to": None, "static-kvm-node-memory": "8"},  # a value is taken from the next one
        HailParameters(restriction=frozenset({"--static-kvm-node-memory=8"})),
    ),
    ({"": None}, HailParameters()),
]
FAILING: Final[list[tuple[dict[str, Value], str]]] = [
    ({"bogus": None}, "unrecognized option `--bogus'"),
    ({"no-capacity-checks": ""}, "option `--no-capacity-checks' doesn't allow an argument"),
    ({"no-capacity-checks": "true"}, "option `--no-capacity-checks' doesn't allow an argument"),
    ({"restrict-allocation-to": None}, "option `--restrict-allocation-to' requires an argument NODE,..."),
    ({"static-kvm-node-memory": "4G"}, "static node memory: leftover characters when parsing '4G': 'G'"),
    ({"static-kvm-node-memory": ""}, "static node memory: cannot parse string ''"),
    ({"mond": ""}, "Invalid choice '', pass one of 'yes' or 'no'"),
    ({"s": None}, "option `--s' is ambiguous; could be one of:"),
    ({"": None, "verbose": None}, "Only one argument is accepted (the input file)"),
    ({"help": None}, "with --help it answers no request"),
    ({"version": None}, "with --version it answers no request"),
    ({"help-completion": None}, "with --help-completion it answers no request"),
]


@pytest.mark.parametrize(("stored", "expected"), ANSWERED)
def test_parameters_with_which_hail_answers(stored: dict[str, Value], expected: HailParameters) -> None:
    assert hail_parameters(stored) == expected


@pytest.mark.parametrize(("stored", "why"), FAILING)
def test_parameters_with_which_hail_fails(stored: dict[str, Value], why: str) -> None:
    assert hail_parameters(stored) == HailParameters(failure=why)


@pytest.mark.parametrize("stored", [{"text-data": "/x"}, {"simulate": "p,1,1,1,1"}])
def test_another_cluster_than_this_one_is_no_answer(stored: dict[str, Value]) -> None:
    assert "it answers for another cluster than this one" in hail_parameters(stored).failure


@pytest.mark.parametrize("value", [True, False, 4096, 1.5, ["a"]])
def test_what_is_no_text_ganeti_cannot_pass(value: Value) -> None:
    stored = {"verbose": None, "x": value}
    assert hail_parameters(stored).failure == "Ganeti cannot pass `x`, whose value is neither a text nor null"


def test_a_source_that_shows_none_knows_of_none() -> None:
    assert hail_parameters(None) == HailParameters()


def test_our_hail_reads_its_command_line_alike() -> None:
    rng = random.Random(7)  # noqa: S311 (no secrets here)
    names = [*(option.long for option in HAIL_OPTIONS), "no", "static", "res", "x"]
    answered = 0
    for _ in range(2000):
        chosen = rng.sample(names, rng.randrange(1, 4))
        stored = {name: rng.choice([None, "", "yes", "5", "a,b", "0o7", "4G"]) for name in chosen}
        ours, found = hail_parameters(stored), read_options("hail", ["file", *passed(stored)])
        if isinstance(found, Exit):
            assert ours.failure
            continue
        options, _ = found
        if not ours.failure:
            assert ours == HailParameters(
                not options.no_capacity_checks,
                options.ignore_soft_errors,
                None if options.restrict_allocation_to is None else frozenset(options.restrict_allocation_to),
                options.static_kvm_node_memory,
                options.mond and not options.ignore_dynu,
            )
            answered += 1
    assert answered > 200


@pytest.mark.htools
@pytest.mark.skipif(
    HSPACE is None or not HTOOLS.exists(), reason="Debian's ganeti-htools (hspace, hail) is not installed"
)
@pytest.mark.parametrize(
    "stored", [stored for stored, _ in (*ANSWERED, *FAILING) if stored.get("mond", "no") not in (None, "yes")]
)
def test_the_installed_hail_answers_or_fails_as_said(
    stored: dict[str, Value], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        answer = real_hail(document(read_state(STATE), dict(REQUEST)), tmp_path, *passed(stored))
    except json.JSONDecodeError:  # a text instead of an answer
        answer = None
    assert (answer is None) is bool(hail_parameters(stored).failure)
