"""A number with thousands of digits, which Python refuses to read, ends in one line in every place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import GOOD, ROOT, gpolicy

DIGITS = "9" * 5000
SNAPSHOT = f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}"


@pytest.mark.parametrize(
    "arguments",
    [
        ("place", "-s", SNAPSHOT, f"memory={DIGITS}", "vcpus=1", "disk=1G"),
        ("place", "-s", SNAPSHOT, "memory=1G", f"vcpus={DIGITS}", "disk=1G"),
        ("place", "-s", SNAPSHOT, "memory=1G", "vcpus=1", f"disk={DIGITS}x1G"),
        ("capacity", "-s", SNAPSHOT, "--max-node-failures", DIGITS),
        ("capacity", "-s", f"sim:p,{DIGITS},1t,1g,1"),
        ("capacity", "-s", f"sim:p,1,{DIGITS}t,1g,1"),
        ("capacity", "-s", f"rapi://host:{DIGITS}"),
        ("capacity", "-s", f"ssh://host:{DIGITS}"),
        ("suggest", "-s", SNAPSHOT, "--sizes", f"1/00001{DIGITS}"),
        ("suggest", "-s", SNAPSHOT, "--mix", f"half={DIGITS}"),
        ("suggest", "-s", SNAPSHOT, "--pv-size", DIGITS),
    ],
)
def test_in_arguments_of_the_command_line(arguments: tuple[str, ...]) -> None:
    done = gpolicy(*arguments)
    assert done.returncode == 3
    assert len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize(
    "line",
    [
        f"beparams: {{maxmem: {DIGITS}}}",
        f"beparams: {{vcpus: {DIGITS}}}",
        f"ipolicy: {{vcpu-ratio: {DIGITS}}}",
        f"ipolicy: {{vcpu-ratio: 0.{DIGITS}}}",
        f"candidate_pool_size: 0x{DIGITS}",
        f'uid_pool: ["{DIGITS}-{DIGITS}"]',
        f'hvparams: {{kvm: {{cpu_mask: "{DIGITS}-3"}}}}',
    ],
)
def test_in_a_policy(line: str, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(f"{GOOD}{line}\n")
    done = gpolicy("check", tmp_path)
    assert done.returncode == 1
    assert "error GP" in done.stdout


def test_in_the_settings(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(GOOD)
    (tmp_path / "gpolicy.toml").write_text(f"budget = {DIGITS}\n")
    done = gpolicy("check", tmp_path)
    assert done.returncode == 3
    assert done.stderr == f"gpolicy: {tmp_path}/gpolicy.toml: holds a number with thousands of digits\n"
