"""`hspace -m file://DIR`: what the real one prints of documents that Ganeti sent, and refused where it refuses."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from gpolicy.errors import InputError
from gpolicy.ganeti.vocabulary import RAPI_READS
from gpolicy.htools.rapi import parse_rapi, read_rapi
from tests.htools.random_requests import FROM_RAPI, Case
from tests.htools.recorded import DATA, call
from tests.htools.three_ways import EQUAL, INSTALLED, ask_real, compare, write_files

CLUSTERS = DATA.parent / "clusters"
RECORDED = json.loads((DATA / "hspace-from-rapi.json").read_text())
GANETIS = Path("/usr/share/ganeti/testsuite/test/data/htools/rapi")
OPTIONS = ("-p", "--print-instances", "-v", "-v", "-S", "saved")
needs_hspace = [
    pytest.mark.htools,
    pytest.mark.skipif(not INSTALLED, reason="Debian's ganeti-htools (hspace, hail) is not installed"),
]


def answers(cluster: str) -> dict[str, Any]:
    """Return the documents of a recorded cluster."""
    return {name: json.loads((CLUSTERS / cluster / f"rapi-{name}.json").read_text()) for name in RAPI_READS}


def written(folder: Path, documents: dict[str, Any]) -> str:
    """Write documents as files; return their address."""
    for name, value in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return f"file://{folder}"


def case_of(documents: dict[str, Any], seed: int = 0, *options: str) -> Case:
    return Case(FROM_RAPI, seed, "hspace", ("-m", "file://.", "-p", "-l9", *options), "", rapi=documents)


@pytest.mark.parametrize("cluster", RECORDED)
def test_recorded_clusters_as_the_real_hspace_printed_them(
    cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, answers(cluster))
    expected = RECORDED[cluster]
    assert call("hspace", "-m", "file://.", *expected["options"]) == (0, expected["stdout"], expected["stderr"])
    assert Path("saved.tiered").read_text() == expected["saved"]


@pytest.mark.parametrize("cluster", ["exclusive", "volumes"])
def test_a_node_that_ganeti_could_not_measure_is_named_with_the_reason(cluster: str) -> None:
    """The node daemon of Ganeti 3.0 cannot measure nodes with exclusive storage; the real hspace refuses them, too."""
    with pytest.raises(InputError, match=r"node[14]: key 'mtotal': Ganeti cannot measure this node; mark it offline"):
        parse_rapi(answers(cluster), "here")


def changed(kind: str, *path: str, value: Any = ...) -> dict[str, Any]:
    """Return the recorded cluster with one field, of the second object, changed or left out."""
    documents = answers("full")
    below = documents[kind] if kind == "info" else documents[kind][1]
    for key in path[:-1]:
        below = below[key]
    if value is ...:
        del below[path[-1]]
    else:
        below[path[-1]] = value
    return documents


def test_documents_of_older_releases_are_read() -> None:
    """Without fields that later releases added, and without own values of groups: the policies are those in force."""
    documents = answers("full")
    for entry in documents["groups"]:
        for family in ("ipolicy", "diskparams", "ndparams"):
            del entry[f"custom_{family}"]
    for entry in documents["nodes"]:
        del entry["vm_capable"], entry["cnos"]
    for entry in documents["instances"]:
        del entry["disk.spindles"], entry["beparams"]["memory"]
    data, now = parse_rapi(documents, "x"), parse_rapi(answers("full"), "x")
    assert [group.policy for group in data.groups] == [group.policy for group in now.groups]
    assert len({group.policy for group in data.groups}) == 2
    assert {node.node_cpus for node in data.nodes} == {0}
    assert [item.disk for item in data.instances] == [item.disk for item in now.instances]


def test_figures_of_a_node_that_may_hold_no_instances_do_not_count() -> None:
    node = parse_rapi(changed("nodes", "vm_capable", value=False), "x").nodes[1]
    assert (node.offline, node.total_memory, node.node_cpus, node.spindles) == (True, 0.0, 0, 4)


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        ("info", ("master",), "node9"),
        ("nodes", ("group.uuid",), "another"),
        ("instances", ("pnode",), "node9"),
        ("instances", ("pnode",), None),  # a forthcoming instance without a node
        ("instances", ("snodes",), ["node9"]),
        ("instances", ("disk_template",), "mixed"),
        ("instances", ("status",), "asleep"),
    ],
)
def test_what_does_not_fit_is_refused(kind: str, path: tuple[str, ...], value: Any, tmp_path: Path) -> None:
    code, out, err = call("hspace", "-m", written(tmp_path, changed(kind, *path, value=value)))
    assert (code, out) == (1, "")
    assert err.startswith("Error: failed to load data, aborting: ")
    assert len(err.splitlines()) == 1


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    written(tmp_path, {"groups": [], "nodes": []})
    with pytest.raises(InputError, match=r"instances\.json: no such file"):
        read_rapi(f"file://{tmp_path}")


class TestAgainstTheRealProgram:
    pytestmark = needs_hspace

    @pytest.fixture(autouse=True)
    def elsewhere(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize("cluster", ["base", "rich", "full", "exclusive", "volumes"])
    def test_recorded_clusters(self, cluster: str) -> None:
        assert compare(case_of(answers(cluster), 0, "-v", "-v", "-S", "saved"), 20.0, law=False) == (EQUAL, "")

    @pytest.mark.skipif(not GANETIS.exists(), reason="Debian's ganeti-testsuite is not installed")
    @pytest.mark.parametrize("options", [(), ("--disk-template=drbd",), ("--standard-alloc=512,1024,1",)])
    def test_ganetis_own_test_data(self, options: tuple[str, ...]) -> None:
        documents = {name: json.loads((GANETIS / f"{name}.json").read_text()) for name in RAPI_READS}
        assert compare(case_of(documents, 0, *options, "-v", "-S", "saved"), 20.0, law=False) == (EQUAL, "")

    @pytest.mark.parametrize("seed", range(6))
    def test_what_the_real_program_refuses_is_refused(self, seed: int) -> None:
        """What it accepts is refused as well, where Ganeti cannot have sent it, or has the same answer."""
        chance = random.Random(seed)  # noqa: S311 - no secrets here
        refused = 0
        for _ in range(20):
            case = case_of(damaged(answers(chance.choice(["full", "rich"])), chance))
            write_files(case)
            expected = ask_real(case, 2.0)
            if expected is None:
                continue
            code, out, err = call(case.program, *case.arguments)
            assert code == 1 or (code, out) == (expected.code, expected.out), case.rapi
            assert code == 0 or "Error: " in err
            refused += code
        assert refused > 5


READ = {
    "groups": "name uuid alloc_policy ipolicy tags",
    "nodes": "name group.uuid offline drained vm_capable ndparams tags mtotal mnode mfree dtotal dfree ctotal sptotal",
    "instances": "name pnode snodes disk_template disk.sizes disk_usage beparams oper_ram status tags",
    "info": "master tags ipolicy default_hypervisor",
}
ODD: tuple[Any, ...] = (None, True, -1, 0, 1.5, 2**70, "", "x", "node1", [], [None], ["x"], {}, {"min": 1})


def damaged(documents: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """Return documents in which a value that hspace reads is another, or missing."""
    documents = copy.deepcopy(documents)
    kind = chance.choice(list(READ))
    holder: Any = documents[kind] if kind == "info" else chance.choice(documents[kind])
    key: Any = chance.choice(READ[kind].split())
    while isinstance(holder[key], dict | list) and holder[key] and chance.random() < 0.7:
        holder = holder[key]
        key = chance.choice(list(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))
    if chance.random() < 0.3:
        del holder[key]
    else:
        holder[key] = chance.choice(ODD)
    return documents


@pytest.mark.parametrize(("release", "new"), [("3.0.2", False), ("3.1.0~rc2", False), ("3.1.1", True)])
def test_the_release_that_the_cluster_says_decides_of_n1(release: str, *, new: bool) -> None:
    documents = answers("full")
    documents["info"]["software_version"] = release
    assert parse_rapi(documents, "rapi").n1_by_unallocated is new
