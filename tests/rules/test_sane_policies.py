"""What is unusual and sane gives no error and no warning: a false alarm would teach people to ignore check."""

from __future__ import annotations

import re
from pathlib import Path
from string import Template
from typing import Final

import pytest

from gpolicy.checking.checking import check_policy
from gpolicy.findings import Finding, Severity
from gpolicy.policy.loading import load_policy
from tests.rules.run_rules import TODAY

_SIZES: Final = """\
  minmax:
    - name: large
      min: {memory-size: 16G, cpu-count: 4, disk-size: 100G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 64G, cpu-count: 16, disk-size: 1T, disk-count: 8, nic-count: 8, spindle-use: 8}
    - name: small
      min: {memory-size: 1G, cpu-count: 1, disk-size: 10G, disk-count: 1, nic-count: 1, spindle-use: 1}
      max: {memory-size: 12G, cpu-count: 3, disk-size: 90G, disk-count: 4, nic-count: 4, spindle-use: 2}
  std: {memory-size: 4G, cpu-count: 2, disk-size: 40G, disk-count: 1, nic-count: 1, spindle-use: 1}"""
_CLUSTER: Final = f"""\
kind: Cluster
name: a.example.org
ganeti_version: "3.0"
enabled_disk_templates: [drbd, plain]
ipolicy:
{_SIZES}
  disk-templates: [drbd, plain]
  vcpu-ratio: 4"""
_GROUP: Final = """\
---
kind: NodeGroup
name: default
nodes: ["node[1-4].example.org"]
hardware: {memory: 192G, cpus: 48, pv_count: 4, pv_size: 2T}"""


def _policies() -> dict[str, str]:
    text = Path(__file__).with_name("sane_policies.txt").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    for part in text.split("\n#= ")[1:]:
        head, _, body = part.partition("\n")
        whole = Template(body).substitute(cluster=_CLUSTER, group=_GROUP, sizes=_SIZES)
        found[head.partition(":")[0]] = re.sub("^kind:", "gpolicy: v1\nkind:", whole, flags=re.MULTILINE)
    return found


SANE: Final = _policies()


def _serious(path: Path, text: str) -> list[Finding]:
    path.write_bytes(text.encode())
    found = check_policy(load_policy(path), today=TODAY)
    return [finding for finding in found if finding.severity is not Severity.INFO]


def test_there_are_sane_policies() -> None:
    assert len(SANE) >= 60


@pytest.mark.parametrize("name", SANE)
def test_sane(name: str, tmp_path: Path) -> None:
    assert _serious(tmp_path / "policy.yaml", SANE[name]) == []


FORMS: Final = {
    "lines of another system": lambda text: text.replace("\n", "\r\n"),
    "no end of the last line": lambda text: text.rstrip("\n"),
    "an explicit end": lambda text: text + "...\n",
    "comments around": lambda text: "# first\n" + text.replace("\n", "  # why\n", 3) + "# last\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_sane_in_any_form(form: str, tmp_path: Path) -> None:
    assert _serious(tmp_path / "policy.yaml", FORMS[form](SANE["ssh-port"])) == []


@pytest.mark.parametrize("name", sorted(SANE.keys() - {"document-end"}))
def test_one_broken_document_is_one_mistake(name: str, tmp_path: Path) -> None:
    """A document that cannot be read says nothing: no rule may take what it says for missing."""
    parts = re.split("(?m)^---\n", SANE[name])
    for place, part in enumerate(parts):
        if "kind:" in part and "kind: Waiver" not in part:
            broken = [*parts[:place], f"{part.rstrip()}\nno_such_key: 1\n", *parts[place + 1 :]]
            found = _serious(tmp_path / f"{place}.yaml", "---\n".join(broken))
            assert [finding.code for finding in found] == ["GP011"]
