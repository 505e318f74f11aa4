from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.policy.loading import load_policy


@pytest.mark.parametrize(
    ("document", "hint"),
    [
        ("kind: Cluster\nname: c\nhidden_os: [debian]\n", "gnt-os modify"),
        ("kind: Cluster\nname: c\nblacklisted_os: [debian]\n", "gnt-os modify"),
        ("kind: Cluster\nname: c\nos_hvp: {debian: {kvm: {acpi: true}}}\n", "gnt-os modify"),
        ("kind: Cluster\nname: c\nosparams: {debian: {a: b}}\n", "gnt-os modify"),
        ("kind: Cluster\nname: c\nvg_name: xenvg\n", "volume_group_name"),
        ("kind: Cluster\nname: c\nbeparams: {memory: 4G}\n", "minmem and maxmem"),
        ("kind: Cluster\nname: c\nipolicy: {memory-ratio: 1}\n", "unreleased 2.17"),
        ("kind: Cluster\nname: c\nalloc_policy: preferred\n", "only groups"),
        ("kind: Cluster\nname: c\nvcpu-ratio: 4\n", "in ipolicy"),
        ("kind: NodeGroup\nname: g\nmax_node_failures: 2\n", "in limits"),
        ("kind: Cluster\nname: c\nipolicy: {oversubscription: 1.5}\n", "in limits"),
        ("kind: NodeGroup\nname: g\nhvparams: {kvm: {acpi: true}}\n", "not on groups"),
        ("kind: NodeGroup\nname: g\nipolicy: {std: {cpu-count: 1}}\n", "std is set at the cluster only"),
        ("kind: NodeGroup\nname: g\nenabled_disk_templates: [drbd]\n", "ipolicy.disk-templates"),
        ("kind: NodeSet\nname: s\nnodes: [n]\nndparams: {exclusive_storage: true}\n", "not on nodes"),
        ("kind: NodeSet\nname: s\nnodes: [n]\ndiskparams: {drbd: {protocol: C}}\n", "only the cluster and groups"),
        ("kind: Cluster\nname: c\ndisk_state: {lvm: {xenvg: {disk_total: 1T}}}\n", "as plain"),
        ("kind: NodeGroup\nname: g\nipolicy: {exclusive_storage: true}\n", "it belongs below ndparams"),
    ],
)
def test_a_key_that_belongs_elsewhere_says_so(document: str, hint: str, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(f"gpolicy: v1\n{document}", encoding="utf-8")
    found = load_policy(tmp_path).findings
    assert [finding.code for finding in found] == ["GP011"]
    assert hint in found[0].hint
