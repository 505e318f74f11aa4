"""Every verb that takes a policy and a state looks first whether they are of one cluster."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.command_line import ROOT, gpolicy

STATE = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"
TEXT = f"text:{ROOT / 'tests' / 'data' / 'clusters' / 'full' / 'htools.data'}"
INSTANCE = ("memory=1G", "vcpus=1", "disk=1G")
FOREIGN = "the policy is for cluster 'other.example.org', the state is of 'ganeti.example.org'"
VERBS: dict[str, list[str]] = {
    "drift": ["drift", "-p", "POLICY"],
    "drift --write": ["drift", "-p", "POLICY", "--write"],
    "adopt": ["adopt", "--save", "POLICY"],
    "capacity": ["capacity", "-p", "POLICY"],
    "capacity --compare": ["capacity", "-p", "POLICY", "--compare", "POLICY/../own"],
    "place": ["place", *INSTANCE, "-p", "POLICY"],
    "suggest": ["suggest", "-p", "POLICY"],
    "size": ["size", "-p", "POLICY"],
    "evacuate": ["evacuate", "node1.example.org", "-p", "POLICY"],
    "remedy": ["remedy", "-p", "POLICY"],
    "test": ["test", "-p", "POLICY"],
    "check": ["check", "-p", "POLICY"],
}


def policy_of(name: str, directory: Path) -> Path:
    """Return a policy that the recorded cluster does not have, of a cluster called `name`."""
    directory.mkdir(parents=True)
    (directory / "cluster.yaml").write_text(
        f"gpolicy: v1\nkind: Cluster\nname: {name}\nipolicy: {{vcpu-ratio: 7}}\n", encoding="utf-8"
    )
    return directory


@pytest.mark.parametrize("verb", VERBS)
def test_a_policy_of_another_cluster_is_refused(verb: str, tmp_path: Path) -> None:
    policy = policy_of("other.example.org", tmp_path / "policy")
    policy_of("ganeti.example.org", tmp_path / "own")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = gpolicy(*(word.replace("POLICY", str(policy)) for word in VERBS[verb]), "-s", STATE)
    assert done.returncode == 1, done.stderr
    assert FOREIGN in done.stdout + done.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("verb", VERBS)
def test_a_policy_of_a_state_without_a_name_is_not_refused(verb: str, tmp_path: Path) -> None:
    policy = policy_of("other.example.org", tmp_path / "policy")
    policy_of("ganeti.example.org", tmp_path / "own")
    words = [word.replace("node1.example.org", "node1") for word in VERBS[verb]]
    done = gpolicy(*(word.replace("POLICY", str(policy)) for word in words), "-s", TEXT)
    assert "GP705" not in done.stdout + done.stderr
    assert "is for cluster" not in done.stdout + done.stderr


def test_the_plan_of_another_cluster_can_be_allowed(tmp_path: Path) -> None:
    policy = policy_of("other.example.org", tmp_path / "policy")
    done = gpolicy("plan", policy, "-s", STATE, "--no-impact", "--details")
    assert (done.returncode, FOREIGN in done.stdout) == (1, True)
    assert "ipolicy.vcpu-ratio: 4 → 7" in done.stdout
    assert gpolicy("plan", policy, "-s", STATE, "--no-impact", "--allow", "right-cluster").returncode == 0


def test_a_snapshot_of_another_cluster_ends_a_test(tmp_path: Path) -> None:
    policy = policy_of("other.example.org", tmp_path / "policy")
    shutil.copy(ROOT / "policies" / "two-groups.snapshot.json", policy / "state.json")
    (policy / "tests.yaml").write_text(
        "gpolicy: v1\nkind: Test\ntests:\n  - name: t\n    on: {snapshot: state.json}\n"
        "    place: {memory-size: 1G}\n    expect: {refused: false}\n",
        encoding="utf-8",
    )
    done = gpolicy("test", policy)
    assert done.returncode == 1
    assert FOREIGN in " ".join(done.stdout.split())


def test_a_state_without_a_name_is_called_by_its_source() -> None:
    for source in (TEXT, "sim:p,4,1t,64g,16"):
        done = gpolicy("capacity", "-s", source)
        assert done.stdout.startswith(f"What fits on cluster {source} ")
        assert json.loads(gpolicy("capacity", "-s", source, "-f", "json").stdout)["cluster_name"] == ""


def test_a_plan_of_a_state_without_a_name_is_for_the_cluster_of_the_policy(tmp_path: Path) -> None:
    policy = policy_of("other.example.org", tmp_path / "policy")
    plan = tmp_path / "plan.json"
    assert gpolicy("plan", policy, "-s", TEXT, "--no-impact", "--save", plan).returncode == 0
    assert json.loads(plan.read_text(encoding="utf-8"))["cluster"] == "other.example.org"
    assert "cluster=other.example.org" in gpolicy("render", plan).stdout
    (policy / "cluster.yaml").unlink()
    (policy / "group.yaml").write_text(
        "gpolicy: v1\nkind: NodeGroup\nname: default\nalloc_policy: last_resort\n", encoding="utf-8"
    )
    assert gpolicy("plan", policy, "-s", TEXT, "--no-impact", "--save", plan).returncode == 0
    done = gpolicy("render", plan)
    assert (done.returncode, done.stdout) == (3, "")
    assert "a script needs to know its cluster" in done.stderr
