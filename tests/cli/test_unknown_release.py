"""A cluster of a release that gpolicy does not know: every verb says so, and adopt writes no other one in silence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command_line import ROOT, gpolicy

SAID = "the cluster runs Ganeti 3.3.0; gpolicy knows up to 3.2 and judges by that"
VERBS: dict[str, list[str]] = {
    "check": ["check", "-p", "POLICY"],
    "plan": ["plan", "-p", "POLICY", "--no-impact"],
    "drift": ["drift", "-p", "POLICY"],
    "capacity": ["capacity"],
    "place": ["place", "memory=1G", "vcpus=1", "disk=1G"],
    "suggest": ["suggest"],
    "size": ["size", "-g", "default"],
    "evacuate": ["evacuate", "node1.example.org"],
    "remedy": ["remedy"],
}


@pytest.fixture(name="state")
def newer(tmp_path: Path) -> str:
    data = json.loads((ROOT / "policies" / "two-groups.snapshot.json").read_text(encoding="utf-8"))
    (tmp_path / "state.json").write_text(json.dumps({**data, "software_version": "3.3.0"}), encoding="utf-8")
    return f"snapshot:{tmp_path / 'state.json'}"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_says_so(verb: str, state: str, tmp_path: Path) -> None:
    done = gpolicy("adopt", "--save", tmp_path / "policy", "-s", state)
    assert (done.returncode, SAID in done.stderr) == (0, True)
    done = gpolicy(*(word.replace("POLICY", str(tmp_path / "policy")) for word in VERBS[verb]), "-s", state)
    assert SAID in " ".join(done.stdout.split())
    if verb == "plan":
        assert done.stdout.startswith("Plan for cluster ganeti.example.org (Ganeti 3.3.0, judged by 3.2)\n")


def test_adopt_says_what_it_writes(state: str, tmp_path: Path) -> None:
    assert gpolicy("adopt", "--save", tmp_path / "policy", "-s", state).returncode == 0
    text = (tmp_path / "policy" / "cluster.yaml").read_text(encoding="utf-8")
    assert f'# T{SAID[1:]}.\nganeti_version: "3.2"\n' in text


def test_a_minor_release_is_taken_for_its_release() -> None:
    by_minor, by_release = (
        gpolicy("check", ROOT / "policies" / "two-groups", "--ganeti-version", version) for version in ("3.1.1", "3.1")
    )
    assert by_release.stdout
    assert (by_minor.returncode, by_minor.stdout) == (by_release.returncode, by_release.stdout)


def test_a_cluster_of_3_2_keeps_what_only_3_2_has(tmp_path: Path) -> None:
    config = json.loads((ROOT / "tests" / "data" / "clusters" / "rich" / "config.data").read_text(encoding="utf-8"))
    config["version"] = 3020000
    cluster = config["cluster"]
    cluster["diskparams"]["rbd"]["user-id"] = "ganeti"
    cluster["nicparams"]["default"]["mode"] = "ext"
    cluster["hvparams"]["kvm"] |= {"virtio_net_queues": 32, "scsi_controller_type": "dc390"}
    (tmp_path / "config.data").write_text(json.dumps(config), encoding="utf-8")
    state, policy = f"config:{tmp_path / 'config.data'}", tmp_path / "policy"
    assert gpolicy("adopt", "--save", policy, "-s", state).returncode == 0
    text = (policy / "cluster.yaml").read_text(encoding="utf-8")
    for line in ("user-id: ganeti", "mode: ext", "virtio_net_queues: 32", "scsi_controller_type: dc390"):
        assert f"  {line}  # Ganeti's default" in text
    planned = gpolicy("plan", "-p", policy, "-s", state, "--no-impact")
    assert "\nNo changes: " in planned.stdout
    assert "gpolicy knows 3.2 from the source of 3.2.0~alpha1 only" in planned.stdout
    older = gpolicy("check", policy, "--ganeti-version", "3.1").stdout
    assert older.count("it comes with 3.2") == 3
    assert "hvparams.kvm.virtio_net_queues: it is above 8" in older
