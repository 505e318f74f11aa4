"""Fixes of structure: only if there is a single possible meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.guessing import surely_meant
from gpolicy.policy.loading import load_policy
from tests.policy.test_edits import applied

CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c\n"
GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"


def fixed(text: str, directory: Path) -> str | None:
    """Return the text after the fix of its one finding; None if it has no fix."""
    (directory / "p.yaml").write_bytes(text.encode())
    (finding,) = load_policy(directory).findings
    return applied(text, finding.fix.edits) if finding.fix else None


@pytest.mark.parametrize(
    ("text", "wrong", "right"),
    [
        (f"{CLUSTER}ndparams: {{spindel_count: 4}}  # four\n", "spindel", "spindle"),
        (f"{CLUSTER}ndparams:\n  Spindle-Count: 4\n", "Spindle-Count", "spindle_count"),
        (f"{CLUSTER}ipolicy: {{vcpu_ratio: 4}}\n", "vcpu_ratio", "vcpu-ratio"),
        (f"{CLUSTER}ndparam: {{ssh_port: 22}}\n", "ndparam:", "ndparams:"),
        (f"{GROUP}ndparams: {{exclusive_storage: yes}}\n", "yes", "true"),
        (f"{GROUP}ndparams: {{exclusive_storage: 'Off'}}\n", "'Off'", "false"),
        (f"{CLUSTER}ndparams: {{ssh_port: '22'}}\n", "'22'", "22"),
        (f"{CLUSTER}enabled_disk_templates: [plian, drbd]\n", "plian", "plain"),
        (f"{GROUP}alloc_policy: prefered\n", "prefered", "preferred"),
        (f"{GROUP}alloc_policy: Preferred\n", "Preferred", "preferred"),
        (f"{CLUSTER}ganeti_version: 3.0\n", " 3.0", ' "3.0"'),
        (f"{CLUSTER}beparams: {{maxmem: 130}}\n", "130", "132"),
    ],
)
def test_a_word_with_only_one_meaning_is_corrected(text: str, wrong: str, right: str, tmp_path: Path) -> None:
    assert fixed(text, tmp_path) == text.replace(wrong, right)
    assert load_policy(tmp_path).findings != ()
    (tmp_path / "p.yaml").write_text(text.replace(wrong, right), encoding="utf-8")
    assert load_policy(tmp_path).findings == ()


def test_two_slips_of_the_same_word_are_not_corrected(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(f"{GROUP}ipolicy:\n  vcpu_ratio: 3\n  vcpu-ration: 4\n", encoding="utf-8")
    assert [finding.fix for finding in load_policy(tmp_path).findings] == [None, None]
    (tmp_path / "p.yaml").write_text(f"{GROUP}ipolicy:\n  vcpu_ratio: 3\n  spindle_ratio: 4\n", encoding="utf-8")
    assert all(finding.fix for finding in load_policy(tmp_path).findings)


@pytest.mark.parametrize(
    "text",
    [
        f"{CLUSTER}ipolicy: {{memory-ratio: 4}}\n",
        f"{CLUSTER}ndparams: {{nonsense: 4}}\n",
        f"{CLUSTER}ndparams: {{spindel_count: 4, spindle_count: 4}}\n",  # which of the two?
        f"{CLUSTER}ndparams: {{ssh_port: '022'}}\n",
        f"{CLUSTER}ndparams: {{ssh_port: 'x'}}\n",
        f"{CLUSTER}ndparams: {{ssh_port: yes}}\n",
        f"{CLUSTER}enabled_disk_templates: [rdb]\n",  # rbd? drbd?
        f"{GROUP}ndparams: {{exclusive_storage: maybe}}\n",
        f"{GROUP}ipolicy: {{vcpu-ratio: }}\n",  # unmanaged, inherited, or a value that is missing?
        f"{CLUSTER}ganeti_version: 3.10\n",
    ],
)
def test_an_ambiguous_word_is_not_corrected(text: str, tmp_path: Path) -> None:
    assert fixed(text, tmp_path) is None


def test_a_slip_is_one_letter_or_another_case_or_hyphen() -> None:
    known = ["spindle_count", "ssh_port", "drbd", "rbd", "plain", "vcpu-ratio", "spindle-ratio"]
    assert surely_meant("spindle_cont", known) == "spindle_count"
    assert surely_meant("spindle_countt", known) == "spindle_count"
    assert surely_meant("spindel_count", known) == "spindle_count"
    assert surely_meant("SSH-PORT", known) == "ssh_port"
    assert surely_meant("spinde_cout", known) is None
    assert surely_meant("dbrd", known) is None
    assert surely_meant("rbdd", known) is None
    assert surely_meant("rdb", known) is None
    assert surely_meant("a_b", ["a-b", "a_B"]) is None
    assert surely_meant("x" * 10_000, known) is None
    assert surely_meant("", known) is None
