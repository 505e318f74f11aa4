"""The installed hail, asked as Ganeti asks it, and `evacuate`: the same moves, reasons, jobs and states."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.allocator.evacuation import EvacuationMode
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.cluster.sources import read_state
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import GpolicyError
from gpolicy.evacuate.evacuating import find_evacuation
from gpolicy.evacuate.evacuation import EvacuationReport, EvacuationRequest, MovedInstance, RequestToHail
from gpolicy.remedy.saved_remedy import is_move
from gpolicy.what_if.load import elsewhere, failed_over, offline
from gpolicy.what_if.supposing import WhatIf, suppose
from tests.analysis.hail_cases import HSPACE, HTOOLS, document, passed, random_parameters, real_hail, with_parameters
from tests.analysis.hspace_cases import from_text, text_of
from tests.ganeti.real_ganeti import TREES, real_ganeti
from tests.htools.random_clusters import TEMPLATES, random_cluster

pytestmark = [
    pytest.mark.htools,
    pytest.mark.skipif(
        HSPACE is None or not HTOOLS.exists(), reason="Debian's ganeti-htools (hspace, hail) is not installed"
    ),
]
TWO_GROUPS = f"snapshot:{Path(__file__).parents[2] / 'policies' / 'two-groups.snapshot.json'}"


def asked(request: RequestToHail) -> dict[str, object]:
    """Return the request as Ganeti writes it."""
    own = {"evac_mode": request.mode.value} if request.mode else {"target_groups": list(request.targets)}
    return {"type": request.kind, "instances": list(request.instances), **own}


def opcodes(moved: MovedInstance) -> list[dict[str, object]]:
    """Return the job that the commands of a move make, as Ganeti's own client reads them."""
    return [real_ganeti().ask({"argv": argv})["op"]["fields"] for _, argv in moved.steps]


def compare(state: ClusterState, wanted: EvacuationRequest, folder: Path) -> Counter[str]:
    """Hold each request of an evacuation against hail; return what was seen."""
    try:
        report = find_evacuation(state, wanted)
    except GpolicyError:
        return Counter(refused=1)
    seen = Counter(stays=len(report.stays), decisive=len(report.parameters))
    for place, request in enumerate(report.requests, 1):
        drained = {name: replace(state.nodes[name], drained=True) for name in request.drained}
        text = document(replace(state, nodes={**state.nodes, **drained}), asked(request))
        soft = ("--ignore-soft-errors",) if wanted.ignore_soft_errors else ()
        stored = state.cluster.own.get(("default_iallocator_params",))
        given = passed(stored if isinstance(stored, dict) else {})
        answer = real_hail(text, folder, *given, *soft, "-S", str(folder / "saved"))
        assert answer is not None
        moved, failed, jobs = answer["result"]
        ours = [item for item in report.moved if item.request == place]
        assert [[item.instance, item.group, list(item.nodes_after)] for item in ours] == moved
        stays = [item for item in report.stays if item.request == place]
        assert [[item.instance, item.reason] for item in stays] == list(failed)
        assert request.info == answer["info"]
        if TREES:
            for item, job in zip(ours, jobs, strict=True):
                for made, opcode in zip(opcodes(item), job, strict=True):
                    assert {key: value for key, value in opcode.items() if key != "OP_ID"}.items() <= made.items()
        check_candidates(report, place)
        for item in ours:
            check_way_back(item)
        state = elsewhere(state, {item.instance: item.nodes_after for item in ours})
        check_state(state, (folder / "saved.post-ialloc").read_text(), request)
        seen[f"{request.kind} {request.mode and request.mode.value} {bool(moved)}"] += 1
        seen["drained"] += bool(drained)
    return seen


def check_way_back(moved: MovedInstance) -> None:
    """The commands are such that `gpolicy apply` takes, and lead where hail says; those back lead back."""
    assert moved.places[-1] == moved.nodes_after
    for way in (moved, moved.undoing) if moved.back else (moved,):
        assert all(is_move(command.argv or (), moved.instance) for command in way.commands)
    assert bool(moved.back) is not bool(moved.no_way_back)
    if moved.back:
        assert moved.undoing.places == moved.places[::-1]


def check_candidates(report: EvacuationReport, place: int) -> None:
    for item in report.moved:
        if item.request == place and item.candidates:
            first = item.candidates[0]
            assert first.ok
            chosen = (
                item.nodes_after[-len(first.nodes) :] if item.steps[-1][0] == "copy disks" else item.nodes_after[:1]
            )
            assert first.nodes == chosen
    for stay in report.stays:
        assert not any(item.ok for item in stay.candidates or ())
        if stay.reason.startswith("Can't find any good node: "):
            said = "".join(f" Node {item.nodes[0]} failed: {item.htools_reason};" for item in stay.candidates or ())
            assert stay.reason == f"Can't find any good node: {said}"


def check_state(ours: ClusterState, saved: str, request: RequestToHail) -> None:
    """Compare our state after a request with the one that hail writes."""
    try:
        mine, hails = cluster_data(ours), cluster_data(from_text(saved))
    except GpolicyError:  # an instance that is not mirrored has a secondary here, which hail then keeps
        return
    for node, other in zip(mine.nodes, hails.nodes, strict=True):
        if not other.offline:
            assert (node.name, node.free_disk) == (other.name, other.free_disk)
    places = [
        {
            item.name: (data.nodes[item.primary].name, item.secondary if item.template.value == "drbd" else 0)
            for item in data.instances
        }
        for data in (mine, hails)
    ]
    assert places[0] == places[1], request


POLICY = "4096,2,20480,1,1,1|128,1,128,1,1,1;65536,32,1048576,16,8,12|plain,drbd,ext,sharedfile|8.0|64.0"


def roomy_cluster(rng: random.Random) -> str:
    """Return a cluster of two or three groups with room for each other's instances."""
    groups = [f"g{number}|u{number}|{rng.choice(['preferred'] * 3 + ['last_resort'])}||" for number in range(3)]
    homes = [f"u{number % 3}" for number in range(rng.randrange(7, 11))]
    used = [[0, 0] for _ in homes]
    instances = []
    for number in range(rng.randrange(6, 16)):
        template = rng.choice(["drbd", "drbd", "drbd", "ext", "sharedfile", "plain"])
        memory, disk = rng.choice([512, 1024, 2048, 4096]), rng.choice([1024, 10240, 40960])
        primary = rng.randrange(len(homes))
        others = [place for place, home in enumerate(homes) if home == homes[primary] and place != primary]
        pair = [primary, *([rng.choice(others)] if template == "drbd" else [])]
        size = disk + (128 if template == "drbd" else 0)
        used[primary][0] += memory
        for place in pair if template in ("drbd", "plain") else []:
            used[place][1] += size
        names = [f"node{place}" for place in pair] + [""] * (2 - len(pair))
        tags = rng.choice(["", "", "svc:a", "svc:b"])
        instances.append(f"i{number}|{memory}|{size}|1|running|Y|{names[0]}|{names[1]}|{template}|{tags}|1|-|N")
    nodes = [
        f"node{place}|65536|1024|{65536 - 1024 - memory}|1048576|{1048576 - disk}|32|N|{homes[place]}|8||N|0|0|1.0"
        for place, (memory, disk) in enumerate(used)
    ]
    policies = [f"|{POLICY}", *(f"g{number}|{POLICY}" for number in range(3))]
    return text_of(groups, nodes, instances, ["htools:iextags:svc"], policies)


def random_request(rng: random.Random, state: ClusterState) -> EvacuationRequest:
    names, groups = list(state.nodes), list(state.groups)
    if len(groups) > 1 and rng.random() < 0.8:
        targets = tuple(rng.sample(groups, 1)) if rng.random() < 0.3 else ()
        if rng.random() < 0.5:
            return EvacuationRequest(group=rng.choice(groups), targets=targets)
        return EvacuationRequest(nodes=",".join(rng.sample(names, 1)), targets=targets)
    mode = rng.choice([EvacuationMode.ALL, EvacuationMode.ALL, EvacuationMode.PRIMARY, EvacuationMode.SECONDARY])
    nodes = ",".join(rng.sample(names, min(len(names), rng.choice([1, 2, 3]))))
    return EvacuationRequest(nodes=nodes, mode=mode, ignore_soft_errors=rng.random() < 0.2)


def run(seeds: range, folder: Path, *, parameters: bool = False) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        rng = random.Random(seed)  # noqa: S311 (no secrets here)
        template = rng.choice([*TEMPLATES, *["drbd"] * 8])
        try:
            text = roomy_cluster(rng) if seed % 4 == 0 else random_cluster(rng, template, 8).text
            state = from_text(text)
        except GpolicyError:
            continue
        if parameters:
            state = with_parameters(state, random_parameters(rng, state), "kvm")
        seen += compare(state, random_request(rng, state), folder)
    return seen


KINDS = (*(f"node-evacuate {mode.value}" for mode in EvacuationMode), "change-group None")


def test_random_clusters(tmp_path: Path) -> None:
    seen = run(range(500, 650), tmp_path)
    assert min(seen[f"{kind} True"] for kind in KINDS) >= 3, seen
    assert min(seen["drained"], seen["stays"]) >= 5, seen


def test_random_clusters_with_parameters_for_hail(tmp_path: Path) -> None:
    seen = run(range(1000, 1080), tmp_path, parameters=True)
    assert min(seen["change-group None True"], seen["node-evacuate primary-only True"], seen["decisive"]) >= 5, seen


@pytest.mark.full
@pytest.mark.parametrize("parameters", [False, True])
def test_many_random_clusters(tmp_path: Path, *, parameters: bool) -> None:
    assert run(range(10_000, 16_000), tmp_path, parameters=parameters).total() > 3000


@pytest.mark.parametrize("nodes", ["node1", "node2,node3", "node4", "node5,node6", "node*"])
@pytest.mark.parametrize("mode", EvacuationMode)
def test_the_example(nodes: str, mode: EvacuationMode, tmp_path: Path) -> None:
    assert compare(read_state(TWO_GROUPS), EvacuationRequest(nodes=nodes, mode=mode), tmp_path)


def test_lost_nodes_leave_their_instances_on_shared_storage_where_hail_says(tmp_path: Path) -> None:
    moved = 0
    for seed in range(0, 160, 4):
        rng = random.Random(seed)  # noqa: S311 (no secrets here)
        state = from_text(roomy_cluster(rng))
        node = rng.choice(list(state.nodes))
        shared = [
            item.name
            for item in state.instances.values()
            if item.primary_node == node and item.disk_template in ("ext", "sharedfile")
        ]
        failed, _ = failed_over(state, {node})
        request = {"type": "node-evacuate", "instances": shared, "evac_mode": "primary-only"}
        answer = real_hail(document(offline(failed, [node]), request), tmp_path)
        assert answer is not None
        found = suppose(state, WhatIf(lost=(node,)))
        hails = {name: where for name, _, (where,) in answer["result"][0]}
        assert {name: found.instances[name].primary_node for name in shared} == dict.fromkeys(shared, node) | hails
        for name, where in hails.items():
            assert found.instances[name].running
            assert found.nodes[where].resources.memory_free is not None
        moved += len(hails)
    assert moved > 10
