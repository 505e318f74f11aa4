"""The words and files of a request to place an instance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpolicy.allocator.cluster_data import Disk
from gpolicy.analysis.size_words import read_words
from gpolicy.analysis.wanted_instance import PlaceRequest
from gpolicy.errors import GpolicyError, RequestError


def test_words_mean_what_ganeti_s_names_mean() -> None:
    words = read_words(
        ["half", "maxmem=4G", "cpus=2", "disk=20G,10G:2", "disk=2x1G", "tags=a,b", "group=g", "spindle-use=3", "nics=2"]
    )
    disks = (Disk(20480), Disk(10240, 2), Disk(1024), Disk(1024))
    assert words.spec == "half"
    assert words.request == PlaceRequest(
        memory=4096, vcpus=2, disks=disks, tags=("a", "b"), group="g", spindle_use=3, nic_count=2
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["memory=4G", "memory=5G"], "memory=5G: memory is given twice"),
        (["memory=4G", "maxmem=4G"], "maxmem=4G: memory is given twice"),
        (["half", "full"], "full: size is given twice"),
        (["memory", "4G"], "4G: size is given twice"),
        (["nodes=n1,n1"], "nodes=n1,n1: node n1 is named twice"),
        (["nodes=n1", "nodes=n2,n1"], "nodes=n2,n1: node n1 is named twice"),
    ],
)
def test_no_key_is_given_twice(words: list[str], message: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_words(words)
    assert caught.value.message == message


def test_a_file_holds_the_same_words(tmp_path: Path) -> None:
    file = tmp_path / "want.yaml"
    file.write_text("memory-size: 4G\ncpu-count: 2\ndisks: [20G, {size: 10G, spindles: 2}]\ndisk-template: plain\n")
    expected = PlaceRequest(memory=4096, vcpus=2, disks=(Disk(20480), Disk(10240, 2)), template="plain")
    assert read_words([str(file)]).request == expected
    assert read_words([str(file), "memory=8G"]).request.memory == 8192


def test_a_request_for_hail_is_read(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    request = {
        "type": "allocate", "name": "web1", "memory": 512, "vcpus": 1, "disks": [{"size": 1024, "mode": "rw"}],
        "disk_space_total": 1152, "disk_template": "drbd", "spindle_use": 1, "tags": ["a"], "nics": [{"mac": "auto"}],
        "required_nodes": 2, "group_name": None, "os": "debian", "hypervisor": "kvm",
    }  # fmt: skip
    file.write_text(json.dumps({"cluster_tags": [], "request": request}))
    assert read_words([str(file)]).request == PlaceRequest(
        name="web1", memory=512, vcpus=1, disks=(Disk(1024),), template="drbd", spindle_use=1, tags=("a",),
        nic_count=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("memory: 4X\n", "want.yaml:1:9: memory=4X: Ganeti knows no unit 'X'"),
        ("vcpus: 1\ncolour: red\n", "want.yaml:2:1: unknown key 'colour'"),
        ("memory: 1G\nmaxmem: 2G\n", "want.yaml:2:1: memory is given twice"),
        ("[1, 2]\n", "a request is one mapping"),
        ("a: [\n", "want.yaml:1:"),
        ('{"request": {"type": "relocate"}}\n', "the request is not to allocate an instance, but 'relocate'"),
        ("disks: [{volume: 1}]\n", "want.yaml:1:8: disks: a disk has a size and spindles, not volume"),
        ("disks: {size: [1]}\n", "want.yaml:1:8"),
        ("tags: [[a]]\n", "not text"),
    ],
)
def test_an_invalid_request_file_is_refused_with_its_place(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "want.yaml"
    file.write_text(content)
    with pytest.raises(GpolicyError) as caught:
        read_words([str(file)])
    assert message in caught.value.message


def test_a_file_that_names_a_node_twice_is_refused_at_its_place(tmp_path: Path) -> None:
    file = tmp_path / "want.yaml"
    file.write_text("memory: 1G\nnodes: [a, b, a]\n")
    with pytest.raises(GpolicyError, match=r"want\.yaml:2:8: nodes: node a is named twice"):
        read_words([str(file)])
