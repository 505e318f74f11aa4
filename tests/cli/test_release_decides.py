"""The release of Ganeti decides how nodes are judged for N+1: known from the state, the policy or the environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.cluster.sources import read_state
from gpolicy.ganeti.releases import RELEASE_VARIABLE
from gpolicy.plan.plan_file import read_plan
from gpolicy.plan.sides import planned_sides
from gpolicy.policy.loading import load_policy
from tests.cli.command_line import gpolicy
from tests.htools.recorded import load_cases

MIB = 1024
NODES = "".join(
    f"node{n}|{16 * MIB}|{MIB}|{free}|100000|90000|16|N|uuid-1|1||N|0|0|1.0\n"
    for n, free in ((1, 11 * MIB), (2, 15 * MIB), (3, 15 * MIB))
)
INSTANCES = (
    f"big|{4 * MIB}|1000|1|running|Y|node2|node1|drbd||1|-\nhere|{11 * MIB}|1000|1|running|Y|node1|node3|drbd||1|-\n"
)
"""node1 reports 11G free, of which its instances leave 4G by the records, and must be able to take over 4G."""
POLICY = "|128,1,1024,1,1,1|128,1,256,1,1,1;8192,8,90000,16,8,12|drbd|4.0|32.0\n"
TEXT = f"default|uuid-1|preferred||\n\n{NODES}\n{INSTANCES}\n\n{POLICY}{POLICY.replace('|', 'default|', 1)}"
GUARDS = "---\ngpolicy: v1\nkind: Guards\nguards:\n  - {name: no-shrink, capacity_loss: {at_most: 100%}}\n"
CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"


@pytest.fixture
def source(tmp_path: Path) -> str:
    (tmp_path / "c.data").write_text(TEXT)
    return f"text:{tmp_path}/c.data"


@pytest.fixture
def snapshot(source: str, tmp_path: Path) -> str:
    path = tmp_path / "snapshot.json"
    assert gpolicy("snapshot", "-s", source, "--save", path).returncode == 0
    return f"snapshot:{path}"


def of_release(snapshot: str, release: str | None) -> None:
    path = Path(snapshot.removeprefix("snapshot:"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "software_version": release}))


def judged(source: str, declared: str | None) -> bool:
    """Whether a state under a policy is judged by unallocated memory."""
    text = CLUSTER + (f'ganeti_version: "{declared}"\n' if declared else "")
    path = Path(source.partition(":")[2]).parent / "policy.yaml"
    path.write_text(text)
    state = read_state(source)
    return cluster_data(planned_sides(load_policy(path), state).before).n1_by_unallocated


@pytest.mark.parametrize(
    ("shown", "declared", "new"),
    [
        (None, None, False),
        (None, "3.0", False),
        (None, "3.1.0~rc2", False),
        (None, "3.1.0", True),
        (None, "3.1", True),
        ("3.1", None, True),  # config.data: the newest
        ("3.1", "3.1.0~rc1", False),
        ("3.1", "3.0.2", True),
        ("3.1.0~rc2", "3.1.1", False),
        ("3.1.1", "3.0.2", True),
        ("3.0.2", "3.1.1", False),
        ("3.2.0~alpha1", None, True),
        ("2.16.2", None, False),
        ("unknown", None, False),
    ],
)
def test_the_state_goes_before_the_policy(snapshot: str, shown: str | None, declared: str | None, new: bool) -> None:
    of_release(snapshot, shown)
    assert judged(snapshot, declared) is new


def fails(source: str, *policy: Path, **environ: str) -> bool:
    """Whether `capacity` has a cluster score in which node1 fails N+1 with its two instances."""
    done = gpolicy("capacity", *policy, "-s", source, "-f", "json", env=environ)
    assert done.returncode in (0, 1), done.stderr
    (group,) = (group for group in json.loads(done.stdout)["groups"] if group["group"] == "default")
    return bool(group["score"] > 4)


def test_capacity_follows_state_policy_and_environment(snapshot: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(CLUSTER)
    assert not fails(snapshot, policy)
    assert fails(snapshot, policy, **{RELEASE_VARIABLE: "3.1.1"})
    policy.write_text(CLUSTER + 'ganeti_version: "3.1.1"\n')
    assert fails(snapshot, policy)
    assert fails(snapshot, policy, **{RELEASE_VARIABLE: "3.0"}), "the policy goes before the environment"
    of_release(snapshot, "3.0.2")
    assert not fails(snapshot, policy, **{RELEASE_VARIABLE: "3.1.1"}), "and the state before both"


def test_what_is_assumed_is_said_where_it_counts(snapshot: str, tmp_path: Path) -> None:
    said = "node1 fails N+1 from Ganeti 3.1.0 on, not before; nothing says which release the cluster has, so {} counts"
    assert said.format("3.0") in gpolicy("capacity", "-s", snapshot, "--details").stdout
    assert (
        "from Ganeti 3.1.0 on"
        not in gpolicy("capacity", "-s", snapshot, "--details", env={RELEASE_VARIABLE: "3.0.2"}).stdout
    )
    for release in ("3.0", "3.0.2", "3.1.0~rc2", "3.1.1"):
        of_release(snapshot, release)
        assert "from Ganeti 3.1.0 on" not in gpolicy("capacity", "-s", snapshot, "--details").stdout
    of_release(snapshot, "3.1")
    assert said.format("3.1") in gpolicy("capacity", "-s", snapshot, "--details").stdout


def test_a_plan_shows_what_an_upgrade_does(snapshot: str, tmp_path: Path) -> None:
    of_release(snapshot, "3.0.2")
    policy, kept = tmp_path / "policy.yaml", tmp_path / "plan.json"
    policy.write_text(CLUSTER)
    upgrade = ("plan", "--details", policy, "-s", snapshot, "--allow", "right-cluster", "--ganeti-version")
    done = gpolicy(*upgrade, "3.1.1")
    assert done.returncode == 0, done.stderr
    assert "With Ganeti 3.1.1 after the changes: No changes" in done.stdout
    assert "but worse: nodes that keep too little memory for the instances they are secondary of" in done.stdout
    assert "n1_cnt               0.00000000  2.00000000" in done.stdout
    same = gpolicy(*upgrade, "3.0.9").stdout
    assert "but worse" not in same
    refused = gpolicy(*upgrade, "3.1.1", "--save", kept)
    assert (refused.returncode, kept.exists()) == (3, False)
    assert "the release '3.7'" in gpolicy(*upgrade, "3.7").stderr


def test_the_terms_of_a_kept_plan_have_the_release(snapshot: str, tmp_path: Path) -> None:
    policy, kept = tmp_path / "policy.yaml", tmp_path / "plan.json"
    policy.write_text(CLUSTER + 'ganeti_version: "3.1.1"\nipolicy: {spindle-ratio: 9}\n' + GUARDS)
    assert gpolicy("plan", policy, "-s", snapshot, "--allow", "right-cluster", "--save", kept).returncode != 3
    assert read_plan(kept).terms.release == "3.1.1"
    changed = json.loads(kept.read_text())
    changed["terms"]["release"] = "3.1.1; rm"
    kept.write_text(json.dumps(changed))
    assert "release" in gpolicy("render", kept).stderr


def request_in(folder: Path) -> Path:
    """Write a recorded request, which gets its cluster from elsewhere."""
    request = folder / "request.json"
    request.write_text(load_cases("hspace-hail-score.jsonl.gz")[0]["request"])
    return request


@pytest.mark.parametrize("program", ["hspace", "hbal", "hail"])
def test_the_environment_decides_for_htools(program: str, source: str, tmp_path: Path) -> None:
    file = source.removeprefix("text:")
    arguments = (request_in(tmp_path), "-t", file, "-p") if program == "hail" else ("-t", file, "-p")
    old, new, wrong = (
        gpolicy("htools", program, *arguments, env={RELEASE_VARIABLE: release}) for release in ("3.0", "3.1.1", "3.9")
    )
    assert "*" not in old.stdout + old.stderr
    assert " * node1" in new.stdout + new.stderr
    assert (wrong.returncode, "gpolicy does not know the release '3.9'" in wrong.stderr) == (1, True)


def test_hail_is_of_the_release_on_its_node(source: str, tmp_path: Path) -> None:
    """On a master hail answers as the installed one does: the document does not say which that is."""
    (tmp_path / "var/lib/ganeti").mkdir(parents=True)
    said = tmp_path / "var/lib/ganeti/ssconf_release_version"
    for release, failing in (("3.0.2\n", False), ("3.1.0~rc2\n", False), ("3.1.1\n", True), ("", False)):
        said.write_text(release)
        arguments = ("htools", "hail", request_in(tmp_path), "-t", source.removeprefix("text:"), "-p")
        done = gpolicy(*arguments, env={"GANETI_ROOTDIR": str(tmp_path)})
        assert (" * node1" in done.stderr) is failing
        done = gpolicy(*arguments, env={"GANETI_ROOTDIR": str(tmp_path), RELEASE_VARIABLE: "3.0.2"})
        assert " * node1" not in done.stderr


def test_a_node_without_memory_is_on_both_lists_of_hbal(tmp_path: Path) -> None:
    """Seen of 3.1.1: such a node fails N+1, and as it has NaN, it is not taken off the list of the others."""
    file = tmp_path / "c.data"
    empty = "node4|0|0|0|0|0|0|N|uuid-1|0||N|0|0|1.0\n"
    file.write_text(TEXT.replace(NODES, NODES + empty))
    done = gpolicy("htools", "hbal", "-t", file, "-v", "-v", "-v", "-v", env={RELEASE_VARIABLE: "3.1.1"})
    bad, good = (line for line in done.stdout.splitlines() if line.startswith(("Bad nodes", "N+1 happy")))
    assert '"node4"' in bad
    assert '"node4"' in good


@pytest.mark.parametrize(("declared", "differs"), [("3.1.1", False), ("3.1", False), ("3.1.0", False), ("3.0.2", True)])
def test_a_point_release_is_no_other_release(snapshot: str, tmp_path: Path, declared: str, differs: bool) -> None:
    of_release(snapshot, "3.1.1")
    (tmp_path / "policy.yaml").write_text(f'{CLUSTER}ganeti_version: "{declared}"\n')
    said = gpolicy("check", "-s", snapshot, tmp_path / "policy.yaml").stdout
    assert ("GP743" in said) is differs
