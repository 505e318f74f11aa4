"""An upgrade of Ganeti as a change: the policy of one release planned against a cluster of the other, and the way back.

`upgraded/config.data` is what Ganeti 3.1's own cfgupgrade made of `full/config.data`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import ROOT, gpolicy

CLUSTERS = ROOT / "tests" / "data" / "clusters"
RELEASES = {"3.0": CLUSTERS / "full" / "config.data", "3.1": CLUSTERS / "upgraded" / "config.data"}
HEAD = 'gpolicy: v1\nkind: Cluster\nname: cluster\nganeti_version: "{}"\nenabled_hypervisors: [fake, {}]\n'


def hvparams(config: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(config.read_text())["cluster"]["hvparams"]
    return found


def plan(text: str, directory: Path, release: str) -> tuple[int, set[str]]:
    """Return the exit code of plan against the cluster of a release, and what it says of releases in its findings."""
    (directory / "policy.yaml").write_text(text)
    done = gpolicy("plan", directory, "--state", f"config:{RELEASES[release]}", "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    found = [f"{item['code']} {item['message']}" for item in json.loads(done.stdout)["findings"]]
    return done.returncode, {item for item in found if "Ganeti 3." in item}


def test_what_an_upgrade_changes_in_the_configuration() -> None:
    old, new = (hvparams(file) for file in RELEASES.values())
    changed = {
        (hypervisor, name): (value, new[hypervisor].get(name))
        for hypervisor, values in old.items()
        for name, value in values.items()
        if new[hypervisor].get(name) != value
    }
    assert changed == {
        ("kvm", "disk_discard"): ("default", "ignore"),
        ("xen-pvm", "xen_cmd"): ("xm", None),
        ("xen-hvm", "xen_cmd"): ("xm", None),
    }
    assert new["kvm"]["vhost_net"] is False


def test_what_moves_on_its_own_is_said(tmp_path: Path) -> None:
    code, found = plan(HEAD.format("3.0", "kvm"), tmp_path, "3.1")
    assert code == 0
    other = "Ganeti 3.1 has another default of hvparams.kvm."
    assert found == {
        "GP743 the cluster has Ganeti 3.1, the policy is for 3.0",
        f"GP138 {other}vhost_net than 3.0: true, not false; the cluster has false",
        f'GP138 {other}disk_discard than 3.0: "ignore", not "default"; the cluster has "ignore"',
    }


def test_what_is_gone_or_refused_stops_the_plan(tmp_path: Path) -> None:
    text = HEAD.format("3.0", "kvm, xen-pvm") + "hvparams:\n  kvm: {vhost_net: false, disk_discard: default}\n"
    code, found = plan(f"{text}  xen-pvm: {{xen_cmd: xl}}\n", tmp_path, "3.1")
    assert code == 1
    assert found == {
        "GP101 Ganeti 3.1 knows no value 'default' of hvparams.kvm.disk_discard: it was removed in 3.1",
        "GP101 Ganeti 3.1 has no hvparams.xen-pvm.xen_cmd: it was removed in 3.1",
    }


def test_what_starts_no_instance_is_said(tmp_path: Path) -> None:
    text = HEAD.format("3.0", "kvm") + "hvparams:\n  kvm: {vhost_net: false, disk_discard: ignore, disk_type: scsi}\n"
    assert plan(text, tmp_path, "3.1") == (
        0,
        {
            "GP743 the cluster has Ganeti 3.1, the policy is for 3.0",
            "GP139 Ganeti 3.1 starts no instance with disk_type scsi: QEMU has no such device",
        },
    )
    assert plan(text.replace('"3.0"', '"3.1"'), tmp_path, "3.0")[1] == {
        "GP743 the cluster has Ganeti 3.0, the policy is for 3.1",
        "GP139 Ganeti 3.0 starts no instance with disk_type scsi: QEMU has no such device",
    }


def test_the_way_back(tmp_path: Path) -> None:
    text = HEAD.format("3.1", "kvm") + "hvparams:\n  kvm: {disk_aio: io_uring, disk_discard: ignore}\n"
    refused = "GP101 Ganeti 3.0 knows no value 'io_uring' of hvparams.kvm.disk_aio: it comes with 3.1"
    assert plan(text, tmp_path, "3.0") == (1, {refused})
    moved = "GP138 Ganeti 3.0 has another default of hvparams.kvm.vhost_net than 3.1: false, not true"
    assert plan(text.replace("io_uring", "threads"), tmp_path, "3.0") == (
        0,
        {"GP743 the cluster has Ganeti 3.0, the policy is for 3.1", f"{moved}; the cluster has false"},
    )


@pytest.mark.parametrize("release", RELEASES)
def test_a_policy_of_the_same_release_hears_nothing_of_it(tmp_path: Path, release: str) -> None:
    assert plan(HEAD.format(release, "kvm"), tmp_path, release) == (0, set())
