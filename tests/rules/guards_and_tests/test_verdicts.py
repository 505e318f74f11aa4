"""Tests and guards whose verdict is known without a cluster."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpolicy.findings import told
from gpolicy.testing.running_tests import MOST_TESTS
from tests.rules.policy_texts import bounds
from tests.rules.run_rules import check, codes

HEAD = "gpolicy: v1\nkind: "
GROUP = (
    f"{HEAD}NodeGroup\nname: gold\nnodes: [n1, n2]\n"
    "hardware: {memory: 256G, cpus: 32, pv_count: 4, pv_size: 1T}\nipolicy:\n  vcpu-ratio: 4\n"
    "  disk-templates: [drbd]\n  minmax:\n    - name: large\n      " + bounds("16G 64G", "4 16", "100G 1T")
)
OFF = '"on": {{edits: [{{node: {}, offline: true}}, {{node: {}, offline: true}}]}}'
ONE = "{group: gold, memory-size: 16G, cpu-count: 4, disks: [100G], disk-template: drbd}"


def policy_of(*entries: str) -> str:
    return f"{GROUP}---\n{HEAD}Test\ntests:\n" + "".join(f"  - {{name: t{n}, {e}}}\n" for n, e in enumerate(entries))


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        (f"check_instance: {ONE}, expect: {{refused: false}}", ""),
        (f"check_instance: {ONE}, expect: {{refused: true}}", "the test fails: refused is false"),
        (f"check_instance: {ONE}, expect: {{refused: false, pair: large}}", ""),
        ("place: {spec: large}, expect: {refused: false}", ""),
        ("place: {spec: large, cpu-count: 17}, expect: {refused: false}", "the test fails: refused is true"),
        ("place: {spec: large}, expect: {nodes: [n1]}", "the test fails: nodes is"),
        ("capacity: {}, expect: {specs: {large: {at_least: 600}}}", "the test fails: specs.large is"),
        ("redundancy: {failures: 3}, expect: {survives: false}", "the test cannot run: group gold has 2 nodes"),
        (
            '"on": {edits: [{remove_instance: web}]}, place: {spec: large}, expect: {refused: false}',
            "the test cannot run: the cluster has no instance 'web'",
        ),
    ],
)
def test_a_test_that_fails(entry: str, wanted: str, tmp_path: Path) -> None:
    found = check(policy_of(entry), tmp_path)
    assert codes(found) == ["GP819"] * bool(wanted)
    assert not wanted or found[0].message.startswith(wanted)


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        ("capacity: {}, expect: {standard: {at_least: 0}}", "standard is at least 0 in any case"),
        ("capacity: {}, expect: {standard: {at_least: 0, at_most: 999}}", ""),
        (
            f"{OFF.format('n1', 'n1')}, place: {{spec: large}}, expect: {{refused: true}}",
            "this edit leaves the cluster of the test as it was",
        ),
        (
            f"{OFF.format('n1', 'n2')}, place: {{spec: large}}, expect: {{refused: true}}",
            "",
        ),
        (
            '"on": {edits: [{node: n1, drained: false}]}, place: {spec: large}, expect: {refused: false}',
            "this edit leaves the cluster of the test as it was",
        ),
    ],
)
def test_a_test_that_shows_nothing(entry: str, wanted: str, tmp_path: Path) -> None:
    assert [item.message for item in check(policy_of(entry), tmp_path) if item.code != "GP815"] == [wanted] * bool(
        wanted
    )


def test_the_same_test_twice(tmp_path: Path) -> None:
    entry = f"check_instance: {ONE}, expect: {{refused: false}}"
    assert codes(check(policy_of(entry, entry), tmp_path)) == ["GP820"]
    assert check(policy_of(entry, entry.replace("16G", "17G")), tmp_path) == []


def test_many_and_large_tests_take_no_time(tmp_path: Path) -> None:
    """Of many tests the first are run, and none whose instances are too many to count."""
    huge = '"on": {simulate: {group: gold, nodes: 20, memory: 60T, cpus: 999, disk: 60T}}, capacity: {},'
    entries = [f"{huge} expect: {{standard: {number}}}" for number in range(50)]
    failing = [f"check_instance: {ONE.replace('16G', f'{65 + n}G')}, expect: {{refused: false}}" for n in range(300)]
    start = time.process_time()
    assert codes(told(check(policy_of(*entries, *failing), tmp_path))) == ["GP819"] * MOST_TESTS
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("guard", "wanted"),
    [
        ("at_least: 40", ["GP805"]),
        ("at_least: 4", []),
        ("spec: large, at_least: 40", ["GP805"]),
        ("node_failures: 2", ["GP805"]),
        ("node_failures: 1", []),
        ("max_changes: 1000000", ["GP806"]),
        ("newly_violating: 100000", ["GP806"]),
        ("capacity_loss: {at_most: 100000}", ["GP806"]),
        ("max_changes: 500", []),
    ],
)
def test_guards_of_all_groups(guard: str, wanted: list[str], tmp_path: Path) -> None:
    assert codes(check(f"{GROUP}---\n{HEAD}Guards\nguards:\n  - {{name: room, {guard}}}\n", tmp_path)) == wanted


@pytest.mark.parametrize("where", ["cluster", "group"])
@pytest.mark.parametrize(("most", "wanted"), [(12, []), (13, ["GP805"])])
def test_memory_that_may_be_over_subscribed_is_in_a_guard(
    where: str, most: int, wanted: list[str], tmp_path: Path
) -> None:
    limits = "limits: {oversubscription: 1.5}\n"
    group = GROUP + (limits if where == "group" else f"---\n{HEAD}Cluster\nname: c.example.org\n{limits}")
    text = f"{group}---\n{HEAD}Guards\nguards:\n  - {{name: room, at_least: {most}}}\n"
    assert codes(check(text, tmp_path)) == wanted
