"""A policy checked for another release of Ganeti than it was written for: what an upgrade, or the way back, means."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.checking.settings_tables import Overrides, settings_of_each
from gpolicy.errors import RequestError
from gpolicy.findings import told
from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes
from tests.rules.run_rules import TODAY, cluster

HEAD = 'gpolicy: v1\nkind: Cluster\nname: c.example.org\nganeti_version: "{}"\nenabled_hypervisors: [{}]\n'
OTHERS = {"GP743"}  # says that the releases differ


def found(text: str, directory: Path, *, asked: str | None = None, observed: str | None = None) -> set[tuple[str, str]]:
    """Return the codes and messages of what check finds, less what it finds without another release."""
    (directory / "policy.yaml").write_text(text, encoding="utf-8")
    policy = load_policy(directory)
    settings = settings_of_each([directory], Overrides(ganeti_version=asked, isolated=True))[0]
    state = None if observed is None else replace(cluster({"default": {}}), software_version=observed)
    plain = find_mistakes(policy, today=TODAY)
    findings = find_mistakes(policy, state=state, today=TODAY, settings=settings)
    return {(item.code, item.message) for item in told(findings) if item not in plain and item.code not in OTHERS}


MOVED = {
    ("GP138", 'Ganeti 3.1 has another default of hvparams.kvm.disk_discard than 3.0: "ignore", not "default"'),
    ("GP138", "Ganeti 3.1 has another default of hvparams.kvm.vhost_net than 3.0: true, not false"),
}


@pytest.mark.parametrize("how", [{"asked": "3.1"}, {"observed": "3.1.0~rc2"}])
def test_an_upgrade(tmp_path: Path, how: dict[str, str]) -> None:
    assert found(HEAD.format("3.0", "kvm"), tmp_path, **how) == MOVED
    text = HEAD.format("3.0", "kvm, xen-pvm") + "hvparams:\n  kvm: {vhost_net: false, disk_discard: default}\n"
    assert found(f"{text}  xen-pvm: {{xen_cmd: xm}}\n", tmp_path, **how) == {
        ("GP101", "Ganeti 3.1 knows no value 'default' of hvparams.kvm.disk_discard: it was removed in 3.1"),
        ("GP101", "Ganeti 3.1 has no hvparams.xen-pvm.xen_cmd: it was removed in 3.1"),
    }
    assert found(HEAD.format("3.0", "xen-pvm"), tmp_path, **how) == set()  # KVM is no matter there
    text = HEAD.format("3.0", "kvm") + "hvparams:\n  kvm: {vhost_net: false, disk_discard: ignore, disk_type: sd}\n"
    assert found(text, tmp_path, **how) == {
        ("GP139", "Ganeti 3.1 starts no instance with disk_type sd: QEMU has no such device")
    }


@pytest.mark.parametrize("how", [{"asked": "3.0"}, {"observed": "3.0.2"}])
def test_the_way_back(tmp_path: Path, how: dict[str, str]) -> None:
    text = HEAD.format("3.1", "kvm") + "hvparams:\n  kvm: {disk_aio: io_uring, disk_discard: ignore}\n"
    assert found(text, tmp_path, **how) == {
        ("GP101", "Ganeti 3.0 knows no value 'io_uring' of hvparams.kvm.disk_aio: it comes with 3.1"),
        ("GP138", "Ganeti 3.0 has another default of hvparams.kvm.vhost_net than 3.1: false, not true"),
    }


def test_the_same_release_says_nothing(tmp_path: Path) -> None:
    text = HEAD.format("3.0", "kvm") + "hvparams:\n  kvm: {disk_discard: default}\n"
    assert found(text, tmp_path, asked="3.0") == set()
    assert found(text, tmp_path, observed="3.0.2") == set()
    assert found(text, tmp_path, asked="3.0", observed="3.1.0") == set()  # what was asked for goes before


def test_defaults_of_a_policy_that_names_no_release_are_not_compared(tmp_path: Path) -> None:
    text = "gpolicy: v1\nkind: Cluster\nname: c.example.org\nenabled_hypervisors: [kvm]\n"
    assert found(text, tmp_path, observed="3.1.0") == set()
    assert found(text, tmp_path, asked="3.1") == set()
    assert {
        code for code, _ in found(f"{text}hvparams:\n  kvm: {{disk_discard: default}}\n", tmp_path, asked="3.1")
    } == {"GP101"}


def test_unknown_releases_are_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"ganeti_version: gpolicy does not know the release '3.7'"):
        settings_of_each([tmp_path], Overrides(ganeti_version="3.7", isolated=True))
