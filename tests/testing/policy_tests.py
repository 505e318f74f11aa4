"""Run tests of policies given as text."""

from __future__ import annotations

from pathlib import Path

from gpolicy.findings import Severity
from gpolicy.policy.kinds import Policy
from gpolicy.policy.loading import load_policy
from gpolicy.testing.outcome import Outcome
from gpolicy.testing.running_tests import run_tests

CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\nenabled_disk_templates: [plain, drbd]\n"
SMALL = """
gpolicy: v1
kind: Cluster
name: c.example.org
enabled_disk_templates: [plain, drbd]
ipolicy:
  disk-templates: [plain, drbd]
  vcpu-ratio: 4
  spindle-ratio: 32
  minmax:
    - name: large
      min: {memory-size: 8G, cpu-count: 4, disk-size: 100G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 16G, cpu-count: 8, disk-size: 200G, disk-count: 2, nic-count: 2, spindle-use: 2}
    - name: small
      min: {memory-size: 1G, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 4G, cpu-count: 2, disk-size: 50G, disk-count: 2, nic-count: 2, spindle-use: 2}
  std: {memory-size: 2G, cpu-count: 1, disk-size: 20G, disk-count: 1, nic-count: 1, spindle-use: 1}
---
gpolicy: v1
kind: NodeGroup
name: main
nodes: ["node[1-3]"]
hardware: {memory: 64G, cpus: 16, pv_count: 2, pv_size: 500G}
"""
"""A cluster with one group of three nodes and two sizes."""


def policy_of(directory: Path, text: str) -> Policy:
    """Return the policy `policy.yaml` with this text in `directory`; nothing in it may be an error."""
    (directory / "policy.yaml").write_text(text, encoding="utf-8")
    policy = load_policy(directory)
    assert [finding.message for finding in policy.findings if finding.severity is Severity.ERROR] == []
    return policy


def with_tests(tests: str, policy: str = SMALL) -> str:
    """Return a policy and its tests: `tests` are the items of the list, each beginning with `- name:`."""
    return f"{policy}---\ngpolicy: v1\nkind: Test\ntests:\n{tests}"


def outcomes(directory: Path, tests: str, policy: str = SMALL) -> list[Outcome]:
    """Return the outcomes of `tests`."""
    return run_tests(policy_of(directory, with_tests(tests, policy)))


def outcome(directory: Path, body: str, policy: str = SMALL) -> Outcome:
    """Return what came of one test, given without its name as lines that begin at column 1."""
    lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
    (found,) = outcomes(directory, f"  - name: t\n{lines}", policy)
    return found


def problems(found: Outcome) -> list[str]:
    """Return the failed expectations in words, or why the test could not run."""
    if found.error is not None:
        return [found.error]
    return [f"{check.title}: expected {check.expected}, found {check.found}" for check in found.failures]
