"""Every source refuses numbers that no cluster can have: one line with source, object, field, number and bound."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from gpolicy.cluster import rapi
from gpolicy.cluster.htools_sources import parse_text
from gpolicy.cluster.master import read_master
from gpolicy.cluster.process import Output
from gpolicy.cluster.rapi import read_rapi, read_rapi_configuration
from gpolicy.cluster.rapi_client import Client
from gpolicy.cluster.state import Resources
from gpolicy.cluster.state_files import dump_snapshot, parse_config, parse_snapshot
from gpolicy.cluster.volume_pools import from_master
from gpolicy.errors import InputError
from gpolicy.ganeti.amounts import BOUNDS
from tests.cluster import rapi_server, recorded

HINT = "correct it at its source: computing with such a number would not end"


def changed(tree: Any, place: Sequence[str | int], value: Any) -> Any:
    tree = copy.deepcopy(tree)
    reduce(lambda below, key: below[key], place[:-1], tree)[place[-1]] = value
    return tree


def snapshot() -> Any:
    return json.loads(dump_snapshot(recorded.from_config("full")))


def refused(tree: Any) -> str:
    with pytest.raises(InputError) as caught:
        parse_snapshot(json.dumps(tree).encode(), "file")
    return caught.value.message


def test_the_message_tells_place_name_and_bound() -> None:
    tree = changed(snapshot(), ("nodes", "node1", "resources", "disk_total"), 2**62)
    with pytest.raises(InputError) as caught:
        parse_snapshot(json.dumps(tree).encode(), "file")
    assert caught.value.message == (
        "file: node node1: disk_total is 4611686018427387904 MiB: no cluster has more than 1099511627776 MiB"
    )
    assert caught.value.hint == HINT


@pytest.mark.parametrize("name", Resources.__slots__)
def test_numbers_of_a_node(name: str) -> None:
    bound, place = BOUNDS[name], ("nodes", "node1", "resources", name)
    for number in (bound.least - 1, bound.most + 1, -(2**62), 2**62):
        assert f"node node1: {name} is {number}" in refused(changed(snapshot(), place, number))
    for allowed in (bound.least, bound.most, None):
        state = parse_snapshot(json.dumps(changed(snapshot(), place, allowed)).encode(), "file")
        assert getattr(state.nodes["node1"].resources, name) == allowed


@pytest.mark.parametrize("name", ["memory_free", "disk_free", "spindles_free"])
def test_free_amounts_may_be_below_zero(name: str) -> None:
    tree = changed(snapshot(), ("nodes", "node1", "resources", name), -5)
    assert getattr(parse_snapshot(json.dumps(tree).encode(), "file").nodes["node1"].resources, name) == -5


@pytest.mark.parametrize("name", ["disk", "spindles"])
def test_no_more_is_free_than_there_is(name: str) -> None:
    tree = changed(snapshot(), ("nodes", "node1", "resources", f"{name}_total"), 100)
    for free, good in ((101, True), (102, False)):  # figures are rounded
        tree = changed(tree, ("nodes", "node1", "resources", f"{name}_free"), free)
        if good:
            parse_snapshot(json.dumps(tree).encode(), "file")
        else:
            assert refused(tree) == f"file: node node1: {name}_free is 102, but {name}_total 100"


@pytest.mark.parametrize("name", ["minmem", "maxmem", "vcpus", "spindle_use", "oper_ram", "nic_count"])
def test_numbers_of_an_instance(name: str) -> None:
    for number in (-1, BOUNDS[name].most + 1):
        tree = changed(snapshot(), ("instances", "inst1", name), number)
        assert f"instance inst1: {name} is {number}" in refused(tree)


def test_disks() -> None:
    for place, words in (
        (("disks", 0, "size"), "size of disk 0"),
        (("disks", 0, "spindles"), "spindles of disk 0"),
        (("summed_disk",), "size of all disks"),
    ):
        value = {"size": -1, "template": "plain", "spindles": 1} if place == ("summed_disk",) else -1
        assert f"instance inst1: {words} is -1" in refused(changed(snapshot(), ("instances", "inst1", *place), value))


def test_physical_volumes() -> None:
    volume = {"name": "/dev/sdb", "size": 2**40 + 1, "free": 0, "used": 0, "allocatable": True}
    tree = changed(snapshot(), ("nodes", "node1", "physical_volumes"), [volume])
    assert "node node1: physical volume /dev/sdb: size is 1099511627777 MiB: no cluster has more" in refused(tree)


@pytest.mark.parametrize(
    ("volumes", "words"),
    [
        ([("/dev/sdb", 100, 102)], "physical volume /dev/sdb has 102 MiB free of 100 MiB"),
        ([("/dev/sdb", 100, 0), ("/dev/sdb", 100, 100)], "physical volume /dev/sdb is listed twice"),
        ([("", 100, 0)], "a physical volume has no name"),
    ],
)
def test_volumes_that_no_node_can_have(volumes: list[tuple[str, int, int]], words: str) -> None:
    listed = [
        {"name": name, "size": size, "free": free, "used": 0, "allocatable": True} for name, size, free in volumes
    ]
    assert f"node node1: {words}" in refused(changed(snapshot(), ("nodes", "node1", "physical_volumes"), listed))


@pytest.mark.parametrize(
    ("place", "number", "words"),
    [
        (("cluster", "own", "ipolicy", "vcpu-ratio"), 1e300, "cluster: ipolicy.vcpu-ratio is 1e+300"),
        (("cluster", "own", "ipolicy", "std", "memory-size"), -1, "cluster: ipolicy.std.memory-size is -1 MiB"),
        (
            ("cluster", "own", "ipolicy", "minmax", 0, "max", "cpu-count"),
            30_000_000,
            "cluster: ipolicy.minmax: max of size 1: cpu-count is 30000000: no cluster has more than 100000",
        ),
        (("cluster", "own", "beparams", "minmem"), 2**50, "cluster: beparams.minmem is"),
        (("cluster", "own", "ndparams", "spindle_count"), 2**31, "cluster: ndparams.spindle_count is"),
        (("groups", "default", "own", "ndparams"), {"spindle_count": 2**31}, "group default: ndparams.spindle_count"),
        (("nodes", "node1", "own", "ndparams"), {"cpu_speed": 1e9}, "node node1: ndparams.cpu_speed is 1000000000.0"),
        (
            ("nodes", "node1", "own", "disk_state"),
            {"plain": {"xenvg": {"disk_total": 2**62}}},
            "node node1: disk_state.plain.xenvg.disk_total is",
        ),
        (
            ("nodes", "node1", "own", "hv_state"),
            {"kvm": {"cpu_total": 8193}},
            "node node1: hv_state.kvm.cpu_total is 8193: no cluster has more than 8192",
        ),
    ],
)
def test_numbers_of_parameters(place: tuple[str | int, ...], number: Any, words: str) -> None:
    assert words in refused(changed(snapshot(), place, number))


def test_a_node_may_have_no_spindles_at_all() -> None:
    """Ganeti stores any number; rule GP726 says what comes of it."""
    tree = changed(snapshot(), ("nodes", "node1", "own", "ndparams"), {"spindle_count": -1})
    assert parse_snapshot(json.dumps(tree).encode(), "file").nodes["node1"].own["ndparams", "spindle_count"] == -1


def test_a_ratio_may_be_below_zero() -> None:
    """A real cluster took `--ipolicy-vcpu-ratio=-1`."""
    tree = changed(snapshot(), ("cluster", "own", "ipolicy", "vcpu-ratio"), -1.0)
    assert parse_snapshot(json.dumps(tree).encode(), "file").cluster.own["ipolicy", "vcpu-ratio"] == -1.0


def test_config_data() -> None:
    config = recorded.load("full", "config.data")
    uuid = next(uuid for uuid, record in config["instances"].items() if record["name"] == "inst1")
    tree = changed(config, ("instances", uuid, "beparams"), {"spindle_use": -1})
    with pytest.raises(InputError, match="file: instance inst1: spindle_use is -1: no cluster has less than 0"):
        parse_config(json.dumps(tree).encode(), where="file", source="config:file")


class Answers(Client):
    """A client that gets the recorded answers, one of them changed."""

    __slots__ = ("parts",)
    parts: dict[str, Any]

    def get(self, path: str, *, until: float | None = None) -> Any:  # noqa: ARG002
        return self.parts[path]

    get_if_allowed = get


def answering(part: str, place: Sequence[str | int], number: int) -> Client:
    client = Answers("host", 1, None)
    parts = rapi_server.answers("full")
    parts = {**parts, rapi._NODE_CONFIGURATION: {"data": []}}
    object.__setattr__(client, "parts", {**parts, part: changed(parts[part], place, number)})
    return client


def test_rapi() -> None:
    with pytest.raises(InputError, match=r"rapi://host:1: node node1: disk_total is 4611686018427387904 MiB: no"):
        read_rapi(answering("/2/nodes?bulk=1", (0, "dtotal"), 2**62))
    with pytest.raises(InputError, match=r"instance .*: vcpus is -1"):
        read_rapi(answering("/2/instances?bulk=1", (0, "beparams", "vcpus"), -1))
    with pytest.raises(InputError, match=r"cluster: ndparams.spindle_count is 100001"):
        read_rapi_configuration(answering("/2/info", ("ndparams", "spindle_count"), 100_001))


@dataclass(frozen=True)
class Recorded:
    """A master that answers as a real one did, with one text replaced."""

    old: str = ""
    new: str = ""
    storage: str = ""
    source: str = "local:"

    def config_data(self) -> bytes:
        return recorded.path("full", "config.data").read_bytes()

    def run(self, argv: Sequence[str]) -> Output:
        if argv[1] == "list-storage":
            return Output(0, self.storage.encode(), "")
        text = recorded.path("full", f"{argv[0].removeprefix('gnt-')}-list.txt").read_text()
        return Output(0, text.replace(self.old, self.new).encode() if self.old else text.encode(), "")


@pytest.mark.parametrize("digits", ["4611686018427387904", "9" * 25, "9" * 5000, "-" + "9" * 18])
def test_the_lists_of_a_master(digits: str) -> None:
    with pytest.raises(InputError, match=r"^local: .*node1: (mtotal|memory_total) is (-?[0-9]+…?)( MiB)?: no cluster"):
        read_master(Recorded("|65536|", f"|{digits}|"))


def test_a_list_may_show_less_than_nothing_as_free() -> None:
    line = recorded.path("full", "node-list.txt").read_text().splitlines()[0]
    cells = line.split("|")
    cells[3] = "-7"
    assert read_master(Recorded(line, "|".join(cells))).nodes["node1"].resources.memory_free == -7


def test_the_list_of_physical_volumes() -> None:
    master = Recorded(storage="node1|/dev/sdb|1099511627777|0|0|Y\n")
    with pytest.raises(InputError, match="local:: node node1: physical volume /dev/sdb: size is 1099511627777 MiB"):
        from_master(read_master(master), master)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("|65536|", "|4611686018427387904|", "node .*: memory_total is 4611686018427387904 MiB: no cluster has more"),
        ("|65536|", f"|{'9' * 5000}|", "file:5: column 2: is 9{60}…: no cluster has such an amount"),
        ("|6.0|", "|1e12|", r"ipolicy.vcpu-ratio is 1000000000000.0: no cluster has more than 100000"),
    ],
)
def test_text(old: str, new: str, words: str) -> None:
    text = recorded.path("full", "htools.data").read_text()
    assert old in text
    with pytest.raises(InputError, match=words) as caught:
        parse_text(text.replace(old, new), where="file", source="text:file")
    assert len(caught.value.message) < 200


@pytest.mark.parametrize("digits", ["9" * 5000, "-" + "9" * 4300])
def test_json_with_thousands_of_digits(digits: str, tmp_path: Path) -> None:
    text = json.dumps(changed(snapshot(), ("nodes", "node1", "resources", "disk_total"), 123454321))
    with pytest.raises(InputError, match=r"thousands of digits|too large a number"):
        parse_snapshot(text.replace("123454321", digits).encode(), "file")


def test_a_ratio_that_is_almost_zero() -> None:
    """Divided by it, shares leave the range of floating point numbers."""
    tree = changed(snapshot(), ("groups", "default", "own", "ipolicy"), {"spindle-ratio": 1e-300})
    assert refused(tree).endswith("spindle-ratio is 1e-300: no cluster has so little; the minimum is 0.000010")
