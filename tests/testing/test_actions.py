"""The actions of tests, and the text of failures."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.analysis.binding import Cause
from gpolicy.ganeti.vocabulary import known_words
from gpolicy.testing import running_tests
from tests.testing.policy_tests import SMALL, outcome, outcomes, problems

TWO_NODES = "on: {simulate: {memory: 20G, cpus: 8, disk: 300G, nodes: 2}}\n"
ONE_NODE = "on: {simulate: {memory: 20G, cpus: 8, disk: 300G, nodes: [{name: a}]}}\n"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        # place
        ("place: {spec: small}\nexpect: {refused: false, group: main, node: node3}", []),
        ("place: {spec: small}\nexpect: {refused: true}", ["refused: expected true, found false"]),
        ("place: {spec: small, group: main}\nexpect: {nodes: [node3]}", []),
        (
            "place: {spec: small}\nexpect: {nodes: [node3, node2]}",
            ["nodes: expected node3, node2, found node3"],
        ),
        ("place: {spec: large, bound: max, memory-size: 65G}\nexpect: {refused: true, because: ipolicy.minmax}", []),
        (
            f"{TWO_NODES}place: {{spec: large, disks: [200G]}}\nexpect: {{refused: false, disk_left: 100G}}",
            [],
        ),
        (
            f"{ONE_NODE}place: {{spec: large, disk-template: drbd}}\nexpect: {{refused: true, because: nodes}}",
            [],
        ),
        (
            "place: {spec: small}\nexpect: {lost_allocations: {small: 1}}",
            ["lost_allocations.small: expected 1, found nothing"],
        ),
        (
            "place: {spec: small}\nexpect: {candidates: {node2: {refused: true}, node3: {because: memory}}}",
            [
                "candidates.node2.refused: expected true, found false",
                "candidates.node3.because: expected memory, found nothing",
            ],
        ),
        # check_instance
        ("check_instance: {spec: small}\nexpect: {refused: false, pair: small}", []),
        ("check_instance: {spec: large, bound: max}\nexpect: {refused: false, pair: large}", []),
        (
            (
                "check_instance: {memory-size: 6G, cpu-count: 3, disks: [20G]}\n"
                "expect: {refused: true, because: [cpu-count, memory-size], pair: small}"
            ),
            [],
        ),
        (
            "check_instance: {memory-size: 6G, cpu-count: 2, disks: [20G, 60G]}\nexpect: {because: cpu-count}",
            ["because: expected cpu-count, found memory-size, disk-size"],
        ),
        ("check_instance: {memory-size: 4G, minmem: 512, disks: [20G]}\nexpect: {refused: true}", []),
        ("check_instance: {disk-template: file}\nexpect: {refused: true, because: [disk-templates]}", []),
        ("check_instance: {disk-template: diskless, disks: []}\nexpect: {because: disk-templates}", []),
        ("check_instance: {spec: small}\nexpect: {pair: large}", ["pair: expected large, found small"]),
        # capacity
        (f"{ONE_NODE}capacity: {{}}\nexpect: {{specs: {{large: 0, small: 0}}, standard: 0}}", []),
        (
            "capacity: {disk-template: drbd}\nexpect: {standard: {at_least: 20, at_most: 21}, tiered: {at_least: 3}}",
            ["standard: expected at least 20 and at most 21, found 48"],
        ),
        (
            (
                "capacity: {group: main, disk-template: drbd}\n"
                "expect: {specs: {large: 6}, tiered: {specs: {large: 1}}, binding: {large: disk, standard: disk}}"
            ),
            [
                "tiered.large: expected 1, found 7",
                "binding.standard: expected disk, found ipolicy.spindle-ratio",
            ],
        ),
    ],
)
def test_actions_and_expectations(body: str, found: list[str], tmp_path: Path) -> None:
    assert problems(outcome(tmp_path, body)) == found


def test_a_failure_names_the_place_of_the_expectation(tmp_path: Path) -> None:
    found = outcome(tmp_path, "place: {spec: small}\nexpect: {refused: false, node: node1}")
    (check,) = found.failures
    text = (tmp_path / "policy.yaml").read_text().splitlines()
    assert (check.span.file, text[check.span.line - 1][check.span.column - 1 :]) == (
        str(tmp_path / "policy.yaml"),
        "node1}",
    )
    assert check.detail.startswith("score ")


def test_a_size_that_is_not_given_is_that_of_the_standard_instance(tmp_path: Path) -> None:
    found = outcome(tmp_path, "place: {memory-size: 3G}\nexpect: {disk_left: 980G}")  # 2 x 500G less the 20G of std
    assert problems(found) == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("on: {simulate: {nodes: 2}}\nplace: {spec: small}\nexpect: {refused: false}", None),
        (
            "on: {simulate: {nodes: 2, memory_node: 65G}}\nplace: {spec: small}\nexpect: {refused: false}",
            "node node-1 keeps more memory for itself than its 65536 MiB",
        ),
        ("place: {spec: tiny}\nexpect: {refused: false}", "there is no size 'tiny'"),
        ("place: {spec: small, group: gold}\nexpect: {refused: false}", "the cluster has no group 'gold'"),
        ("place: {spec: small, disk-template: rbd}\nexpect: {refused: false}", "disk template rbd is not enabled"),
        ("check_instance: {memory-size: 1G, minmem: 2G}\nexpect: {refused: false}", "minmem 2048 is above memory-size"),
        ("capacity: {group: gold}\nexpect: {standard: 1}", "the cluster has no group 'gold'"),
        ("capacity: {disk-template: rbd}\nexpect: {standard: 1}", "disk template rbd is not enabled"),
        (
            "on: {edits: [{node: node9, offline: true}]}\nplace: {spec: small}\nexpect: {refused: false}",
            "the cluster has no node 'node9'",
        ),
        (
            "on: {edits: [{remove_instance: web}]}\nplace: {spec: small}\nexpect: {refused: false}",
            "the cluster has no instance 'web'",
        ),
        (
            (
                "on: {edits: [{add_instance: {name: web, nodes: [node1], memory-size: 65G}}]}\n"
                "place: {spec: small}\nexpect: {refused: false}"
            ),
            "web needs more memory than node node1 has left",
        ),
        (
            (
                "on: {edits: [{add_instance: {name: a, nodes: [node1]}}, {add_instance: {name: a, nodes: [node2]}}]}\n"
                "place: {spec: small}\nexpect: {refused: false}"
            ),
            "the cluster has an instance 'a' already",
        ),
        (
            (
                "on: {edits: [{add_instance: {name: a, nodes: [node1]}}, {remove_node: node1}]}\n"
                "place: {spec: small}\nexpect: {refused: false}"
            ),
            "instance a is on node node1",
        ),
    ],
)
def test_a_test_that_cannot_run_says_why(body: str, error: str | None, tmp_path: Path) -> None:
    found = outcome(tmp_path, body)
    assert found.ok is (error is None)
    assert (found.error or "").startswith(error or "")
    assert found.checks == () or error is None


def test_without_hardware_there_is_no_cluster_to_count_on(tmp_path: Path) -> None:
    policy = SMALL.replace('["node[1-3]"]', '["node*"]')
    found = outcome(tmp_path, "capacity: {}\nexpect: {standard: 1}", policy)
    assert found.error == "no cluster to count on: the groups promise too little"
    assert problems(outcome(tmp_path, "check_instance: {spec: small}\nexpect: {refused: false}", policy)) == []


def test_a_test_that_cannot_run_does_not_stop_the_others(tmp_path: Path) -> None:
    found = outcomes(
        tmp_path,
        "  - name: a\n    place: {spec: tiny}\n    expect: {refused: false}\n"
        "  - name: b\n    place: {spec: small}\n    expect: {refused: false}\n",
    )
    assert [(item.name, item.ok) for item in found] == [("a", False), ("b", True)]


def test_a_count_that_takes_too_long_is_left_out_and_so_is_what_comes_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits = "capacity: {}\n    expect: {standard: {at_least: 1}}"
    one = "place: {spec: small}\n    expect: {refused: false}"
    tests = f"  - name: a\n    {fits}\n  - name: b\n    {one}\n"
    assert [item.ok for item in outcomes(tmp_path, tests)] == [True, True]
    monkeypatch.setattr(running_tests, "_MOST_OF_ONE", 500)
    tiny, other = outcomes(tmp_path, tests)
    assert (tiny.error or "").startswith("counting takes too long, and was given up after ")
    assert other.ok
    monkeypatch.setattr(running_tests, "_MOST_STEPS", 500)
    assert [item.error is None for item in outcomes(tmp_path, tests)] == [False, False]
    assert outcomes(tmp_path, tests)[1].error == "not run: the tests before it took all the time that there is"


MODEL = SMALL.replace(
    "ipolicy:\n", "hv_state:\n  kvm: {mem_node: 12G, mem_hv: 2G, cpu_node: 4}\nipolicy:\n", 1
)  # 50G and 12 CPUs of each node are for instances
PLAIN = "disk-template: plain, max_node_failures: 0"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        # three nodes, 50G less 1 MiB for instances of 2G
        (f"capacity: {{resource_model: true, {PLAIN}}}\nexpect: {{standard: 72, binding: memory}}", []),
        (f"capacity: {{resource_model: true, {PLAIN}}}\nexpect: {{specs: {{large: 9, small: 36}}}}", []),
        (
            f"capacity: {{resource_model: true, {PLAIN}, oversubscription: 1.5}}\nexpect: {{specs: {{large: 12}}}}",
            [],
        ),
        (
            "capacity: {max_node_failures: 1, disk-template: drbd}\nexpect: {standard: 48, tiered: 1}",
            ["tiered: expected 1, found 8"],  # as hspace: 6 large, then 2 small of less memory
        ),
        ("capacity: {without: [reserved_mem_rtotal]}\nexpect: {specs: {large: 6}}", []),
        ("capacity: {weights: {free_mem_cv: 0.5}}\nexpect: {specs: {large: 6}}", []),  # Ganeti's own
        ("capacity: {max_node_failures: 8}\nexpect: {standard: 0}", []),
    ],
)
def test_the_resource_model(body: str, found: list[str], tmp_path: Path) -> None:
    assert problems(outcome(tmp_path, body, MODEL)) == found


def test_the_resource_model_does_not_count_used_quarters(tmp_path: Path) -> None:
    body = "on: {simulate: {nodes: {half-full: 2}}}\ncapacity: {resource_model: true}\nexpect: {standard: 1}"
    assert outcome(tmp_path, body, MODEL).error == (
        "these nodes have used quarters, which the resource model cannot count"
    )


def test_too_many_sets_of_lost_nodes_are_not_tried(tmp_path: Path) -> None:
    body = "on: {simulate: {nodes: 40}}\ncapacity: {max_node_failures: 5}\nexpect: {standard: 1}"
    assert "more than 12 nodes; there are 40" in (outcome(tmp_path, body).error or "")
    body = "on: {simulate: {memory: 4G, nodes: 101}}\ncapacity: {max_node_failures: 2}\nexpect: {standard: 1}"
    assert "at most 100 nodes" in (outcome(tmp_path, body).error or "")
    body = "on: {simulate: {nodes: 200}}\nredundancy: {failures: 8}\nexpect: {survives: true}"
    assert "sets of nodes" in (outcome(tmp_path, body).error or "")


PAIR = "on: {simulate: {memory: 9G, nodes: [{name: a}, {name: b}, {name: c}], instances: ["


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("redundancy: {}\nexpect: {survives: true, failing: []}", []),
        (
            PAIR + "{name: db, nodes: [a, b], memory-size: 4G}, {name: web, nodes: [b], spec: large}]}}\n"
            "redundancy: {}\nexpect: {survives: false, failing: [a]}",
            [],
        ),
        (
            PAIR + "{name: db, nodes: [a, b], memory-size: 4G}, {name: web, nodes: [b], spec: large}]}}\n"
            "redundancy: {group: main}\nexpect: {survives: true, failing: {b: disk}}",
            ["survives: expected true, found false", "failing: expected b (disk), found a (memory)"],
        ),
    ],
)
def test_losing_nodes(body: str, found: list[str], tmp_path: Path) -> None:
    assert problems(outcome(tmp_path, body)) == found


# a has 8 virtual CPUs in use and b 4, of 2 CPUs times 4 each: 12 after either loss
CPUS = "on: {simulate: {memory: 64G, cpus: 2, disk: 1T, nodes: [{name: a}, {name: b}], instances: ["
CPUS += "{name: x, nodes: [a, b], spec: large, count: 2}, {name: y, nodes: [b, a], spec: large}]}}\n"


def test_cpus_count_when_nodes_are_lost(tmp_path: Path) -> None:
    lost = "expect: {failing: {a: ipolicy.vcpu-ratio, b: ipolicy.vcpu-ratio}}"
    kept = "redundancy: {cpus_after_failure: false}\nexpect: {survives: true}"
    assert problems(outcome(tmp_path, f"{CPUS}redundancy: {{}}\n{lost}")) == []
    assert problems(outcome(tmp_path, f"{CPUS}{kept}")) == []
    declared = SMALL.replace("ipolicy:\n", "limits: {cpus_after_failure: false}\nipolicy:\n", 1)
    assert problems(outcome(tmp_path, f"{CPUS}redundancy: {{}}\nexpect: {{survives: true}}", declared)) == []
    again = f"{CPUS}redundancy: {{cpus_after_failure: true}}\n{lost}"
    assert problems(outcome(tmp_path, again, declared)) == []


@pytest.mark.parametrize(
    ("more", "limits", "expected"),
    [
        ("", "max_node_failures: 2", "{standard: 7, binding: max_node_failures}"),  # one node is left with 64G
        ("", "max_node_failures: 2, cpus_after_failure: true", "{standard: 3, binding: cpus_after_failure}"),
        (", max_node_failures: 0", "max_node_failures: 2", "{standard: 9, binding: ipolicy.vcpu-ratio}"),
        (", cpus_after_failure: true", "max_node_failures: 1", "{standard: 6, binding: cpus_after_failure}"),
    ],
)
def test_declared_limits_count_in_tests(more: str, limits: str, expected: str, tmp_path: Path) -> None:
    """Three nodes of 64G, not all of which may be in use, with 15 of 16 CPUs for instances of 8G and 4 CPUs."""
    size = "standard: {memory-size: 8G, cpu-count: 4, disk-size: 100G}, disk-template: plain"
    policy = SMALL.replace("nodes: [", f"limits: {{{limits}}}\nnodes: [", 1).replace("vcpu-ratio: 4", "vcpu-ratio: 1")
    assert problems(outcome(tmp_path, f"capacity: {{{size}{more}}}\nexpect: {expected}", policy)) == []


def test_the_declared_number_of_failures_is_the_default(tmp_path: Path) -> None:
    """Three nodes of 9G with an instance of 4G each: two can be lost one at a time, not both at once (12G on 9G)."""
    body = "on: {simulate: {memory: 9G, cpus: 16, disk: 1T, nodes: [{name: a}, {name: b}, {name: c}], instances: ["
    body += ", ".join(f"{{name: i{node}, nodes: [{node}], memory-size: 4G}}" for node in "abc")
    body += "]}}\nredundancy: {}\n"
    declared = SMALL.replace("nodes: [", "limits: {max_node_failures: 2}\nnodes: [", 1)
    assert problems(outcome(tmp_path, f"{body}expect: {{survives: true}}")) == []
    assert problems(outcome(tmp_path, f"{body}expect: {{failing: [a + b, a + c, b + c]}}", declared)) == []


def test_more_nodes_than_there_are_cannot_be_lost(tmp_path: Path) -> None:
    found = outcome(tmp_path, "redundancy: {failures: 4}\nexpect: {survives: true}")
    assert found.error == "group main has 3 nodes, so 4 cannot be lost"


def test_a_group_whose_figures_are_not_known_cannot_be_asked(tmp_path: Path) -> None:
    without = SMALL.replace('nodes: ["node[1-3]"]\n', "")
    found = outcome(tmp_path, "redundancy: {group: main}\nexpect: {survives: true}", without)
    assert found.error == "group main has no nodes"
    unknown = SMALL.replace("pv_count: 2, pv_size: 500G", "pv_count: 2") + SMALL[SMALL.index("---") :].replace(
        "main", "other"
    ).replace("node[1-3]", "node[4-6]")
    found = outcome(tmp_path, "redundancy: {group: main}\nexpect: {survives: true}", unknown)
    assert found.error == "the promised hardware: not known for group main: node1, node2, node3 show no disk"


def test_the_reasons_that_can_be_expected_are_those_that_are_given() -> None:
    assert {cause.key for cause in Cause} - {"nothing"} == known_words("binding_resources")


DEDICATED = SMALL + "ndparams: {exclusive_storage: true}\n"
"""Three nodes, each with two volumes of 500G, of which Ganeti counts 497087 MiB (485.4G)."""


@pytest.mark.parametrize(
    ("body", "policy", "found"),
    [
        (
            "place: {disks: [{size: 490G, spindles: 1}]}\nexpect: {refused: true, because: too-few-spindles}",
            DEDICATED.replace("disk-size: 50G", "disk-size: 600G"),
            [],
        ),
        (
            "place: {disks: [{size: 485G, spindles: 1}]}\nexpect: {refused: false}",
            DEDICATED.replace("disk-size: 50G", "disk-size: 600G"),
            [],
        ),
        (
            "place: {disks: [{size: 20G, spindles: 1}]}\nexpect: {because: spindles-on-shared-storage}",
            SMALL,
            [],
        ),
        (
            "capacity: {}\nexpect: {specs: {small: 0}, binding: {small: too-few-spindles}}",
            DEDICATED.replace("disk-size: 50G, disk-count: 2", "disk-size: 980G, disk-count: 2"),  # it needs three
            [],
        ),
        (
            "check_instance: {disks: [{size: 490G, spindles: 1}]}\nexpect: {refused: true, because: spindles}",
            DEDICATED.replace("disk-size: 50G", "disk-size: 600G"),
            [],
        ),
        (
            "check_instance: {disks: [{size: 485G, spindles: 1}]}\nexpect: {refused: false}",
            DEDICATED.replace("disk-size: 50G", "disk-size: 600G"),
            [],
        ),
        (
            "check_instance: {disks: [{size: 20G, spindles: 1}]}\nexpect: {refused: true, because: spindles}",
            SMALL,
            [],
        ),
        (
            (
                "on: {edits: [{add_instance: {name: web, nodes: [node1], disks: [{size: 490G, spindles: 1}]}}]}\n"
                "capacity: {}\nexpect: {standard: 1}"
            ),
            DEDICATED,
            ["web on node node1: a disk of 490G on 1 spindle needs 2 physical volumes of 500G"],
        ),
        (
            (
                "on: {edits: [{add_instance: {name: web, nodes: [node1], disks: [{size: 20G, spindles: 1}]}}]}\n"
                "capacity: {}\nexpect: {standard: 1}"
            ),
            SMALL,
            ["web on node node1: a disk of 20G has 1 spindle, but storage is shared"],
        ),
    ],
)
def test_disks_are_held_against_their_spindles(body: str, policy: str, found: list[str], tmp_path: Path) -> None:
    assert problems(outcome(tmp_path, body, policy)) == found


def test_a_simulated_nodes_own_volumes_count(tmp_path: Path) -> None:
    on = "on: {simulate: {nodes: [{name: a, pv_size: 1T, pv_count: 2}]}}\n"
    body = on + "place: {disks: [{size: 490G, spindles: 1}]}\nexpect: {refused: false}"
    assert problems(outcome(tmp_path, body, DEDICATED.replace("disk-size: 50G", "disk-size: 600G"))) == []


def test_a_test_may_ignore_the_policy(tmp_path: Path) -> None:
    asked = "place: {memory-size: 20G, cpu-count: 2, disks: [20G], disk-template: plain"
    assert problems(outcome(tmp_path, f"{asked}}}\nexpect: {{refused: true, because: ipolicy.minmax}}")) == []
    assert (
        problems(outcome(tmp_path, f"{asked}, ignore_ipolicy: true}}\nexpect: {{refused: false, group: main}}")) == []
    )


@pytest.mark.parametrize(
    ("template", "expected"), [("plain", "{refused: false}"), ("drbd", "{refused: true, because: disk-templates}")]
)
def test_ganeti_makes_only_plain_instances_on_exclusive_storage(template: str, expected: str, tmp_path: Path) -> None:
    body = f"check_instance: {{spec: large, disk-template: {template}}}\nexpect: {expected}"
    found = outcome(tmp_path, body, DEDICATED)
    assert problems(found) == []
    assert found.ok
