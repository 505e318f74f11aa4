"""Hypervisor parameters compared with those of the cluster, and hints for wrong ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpolicy.cluster.state import ClusterObject, ClusterState
from gpolicy.data import read_data
from gpolicy.ganeti.vocabulary import Values
from gpolicy.rules.parameters import hypervisors
from tests.rules.run_rules import check, cluster, codes

HEAD = "gpolicy: v1\nkind: Cluster\nname: c.example.org\nhvparams:\n  kvm: "


def with_kvm(**values: Any) -> ClusterState:
    own: Values = {("hvparams", "kvm", name): value for name, value in values.items()}
    return replace(cluster({"default": {}}), cluster=ClusterObject(own=own))


@pytest.mark.parametrize(
    ("declared", "observed", "expected"),
    [
        ("{disk_aio: native}", {"disk_cache": "writeback"}, ["GP170"]),
        ("{disk_aio: native}", {"disk_cache": "none"}, []),
        ("{disk_cache: writeback}", {"disk_aio": "native"}, ["GP170"]),
        ("{disk_aio: native, disk_cache: none}", {"disk_cache": "writeback"}, []),
        ("{security_model: user}", {"security_domain": ""}, ["GP170"]),
        ("{security_model: user}", {"security_domain": "kvm"}, []),
        ("{spice_use_tls: true}", {"spice_bind": ""}, ["GP171"]),
        ("{spice_use_tls: true}", {"spice_bind": "lo"}, []),
        ('{spice_bind: ""}', {"spice_ip_version": 4}, ["GP171"]),
        ("{acpi: true}", {"disk_aio": "native", "disk_cache": "writeback"}, []),  # nobody declares either
        ("{serial_speed: 1}", {"serial_console": True}, ["GP172"]),
        ("{serial_speed: 1}", {"serial_console": False}, ["GP176"]),
    ],
)
def test_values_of_the_cluster_count(
    declared: str, observed: dict[str, Any], expected: list[str], tmp_path: Path
) -> None:
    assert codes(check(f"{HEAD}{declared}\n", tmp_path, state=with_kvm(**observed))) == expected


def test_values_of_the_cluster_are_shown(tmp_path: Path) -> None:
    [found] = check(f"{HEAD}{{disk_aio: native}}\n", tmp_path, state=with_kvm(disk_cache="writeback"))
    assert "disk_cache is what the cluster has now" in found.message


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("{disk_cache: writebak}", "Did you mean `writeback`?"),
        ("{disk_type: virtio}", "Ganeti's word for it is paravirtual"),
        ("{kernel_path: boot/vmlinuz}", "write the whole path, starting with /"),
        ("{mem_path: /dev//hugepages/}", "write /dev/hugepages"),
        ('{spice_ip_version: "4"}', "write the number without quotes"),
    ],
)
def test_misspelt_words_get_hints(written: str, hint: str, tmp_path: Path) -> None:
    [found] = check(f"{HEAD}{written}\n", tmp_path)
    assert (found.code, found.hint) == ("GP012", hint)


def test_an_older_release_does_not_check_how_disks_are_read(tmp_path: Path) -> None:
    text = f"{HEAD}{{disk_aio: native, disk_cache: writeback}}\n"
    assert codes(check(text, tmp_path)) == ["GP170"]
    assert codes(check(text.replace("hvparams", 'ganeti_version: "2.16"\nhvparams'), tmp_path)) == []


@pytest.mark.parametrize(("version", "expected"), [("3.0", ["GP101"]), ("3.1", [])])
def test_a_word_of_a_later_release(version: str, expected: list[str], tmp_path: Path) -> None:
    text = f"{HEAD}{{disk_aio: io_uring}}\n".replace("hvparams", f'ganeti_version: "{version}"\nhvparams')
    assert codes(check(text, tmp_path)) == expected


def test_every_pair_of_parameters_has_its_texts_and_no_text_is_left_over() -> None:
    texts = read_data("hypervisor_pairs.toml")
    tables = {"GP170": hypervisors._CONTRADICTIONS, "GP176": hypervisors._MISMATCHES}
    for code, table in tables.items():
        said = [hypervisors._said(code, paths, item) for paths, item in table.items()]
        assert all(message and hint for message, hint in said)
        assert sum(item.message == "" for item in table.values()) == len(texts[code])
