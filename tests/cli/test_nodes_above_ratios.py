"""Nodes above a ratio, from the command line: check, plan, guards, remedy, capacity and explain tell of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.full_nodes import instances, node, text
from tests.cli.command_line import gpolicy

NODES = [node(name, spindles=4) for name in ("n1", "n2", "n3")]
VMS = [line for first, name in enumerate(("n1", "n2", "n3")) for line in instances(12, name, first=12 * first, vcpus=2)]
POLICY = """gpolicy: v1
kind: Cluster
name: r
ipolicy:
  vcpu-ratio: 2
---
gpolicy: v1
kind: Guards
guards:
  - {name: nobody, newly_violating: 2}
"""


@pytest.fixture
def case(tmp_path: Path) -> tuple[Path, str]:
    """Return a policy that allows 16 virtual CPUs on a node, and the state of three with 25 each."""
    (tmp_path / "policy").mkdir()
    (tmp_path / "policy" / "policy.yaml").write_text(POLICY)
    (tmp_path / "r.data").write_text(text(NODES, VMS))
    return tmp_path / "policy", f"text:{tmp_path / 'r.data'}"


def test_a_plan_names_them_and_its_guards_count_them(case: tuple[Path, str]) -> None:
    done = gpolicy("plan", case[0], "--state", case[1], "--details")
    assert "newly violating  3  " in done.stdout
    assert "3 nodes newly violate the policy (n1, n2, n3), more than 2" in done.stdout
    assert "n2    default  25 virtual CPUs in use, 16 allowed: 8 CPUs times vcpu-ratio 2" in done.stdout
    assert "policy-violating nodes: nodes with more virtual CPUs" in done.stdout
    assert done.returncode == 1


def test_check_reports_the_ratio(case: tuple[Path, str]) -> None:
    done = gpolicy("check", case[0], "--state", case[1], "--format", "github")
    (line,) = (line for line in done.stdout.splitlines() if "GP749" in line)
    assert "line=5," in line
    assert "group default would have nodes above its vcpu-ratio: n1 (25 virtual CPUs in use, 16 allowed" in line


def test_remedy_says_why_none_is_cured(case: tuple[Path, str]) -> None:
    done = gpolicy("remedy", case[0], "--state", case[1])
    assert "policy-violating nodes by vcpu-ratio             3                 3" in done.stdout
    assert "75 virtual CPUs are in use, the nodes of its group may have 48 together" in done.stdout


def test_capacity_counts_them_for_prometheus(tmp_path: Path) -> None:
    (tmp_path / "over.data").write_text(text(NODES, VMS, "4|2.75"))
    done = gpolicy("capacity", "--state", f"text:{tmp_path / 'over.data'}", "--format", "prometheus")
    assert 'gpolicy_capacity_group_violating_nodes{target="text:' in done.stdout
    counts = [line.split()[-1] for line in done.stdout.splitlines() if "group_violating_nodes{" in line]
    unknown = [line.split()[-1] for line in done.stdout.splitlines() if "group_undecided_nodes{" in line]
    assert (counts, unknown) == (["3"], ["0"])


def test_explain_knows_what_hbal_says() -> None:
    assert "hbal says how many such nodes there are" in " ".join(
        gpolicy("explain", "policy-violating nodes").stdout.split()
    )
