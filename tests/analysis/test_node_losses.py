from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, FailReason, Instance, Node
from gpolicy.allocator.instance_moves import InstanceMove, MoveKind, apply_move
from gpolicy.allocator.placement import SingleCandidates, try_allocate
from gpolicy.allocator.redundancy import CapacityRules, best_home, can_evacuate, is_redundant
from gpolicy.analysis import node_losses as module
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.capacity import capacity
from gpolicy.analysis.counted_cluster import CountedCluster
from gpolicy.analysis.hail import as_hail_reads
from gpolicy.analysis.loaded_state import group_data
from gpolicy.analysis.losses import SureLosses, lose
from gpolicy.analysis.node_losses import GroupRedundancy, redundancy
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.state_files import read_snapshot
from gpolicy.cluster.terms import GroupTerms, Limits
from gpolicy.errors import GpolicyError, RequestError
from gpolicy.ganeti.vocabulary import Values
from gpolicy.what_if.load import moved
from tests.analysis.hspace_cases import FULL, from_text, recorded_cases, text_of
from tests.htools.random_clusters import TEMPLATES, random_cluster
from tests.impact.changes import redundancy_change


def states() -> list[ClusterState]:
    found = [from_text(FULL), *(from_text(case["data"]) for case in recorded_cases()[::9])]
    for seed in range(60):
        rng = random.Random(seed)  # noqa: S311 (no secrets here)
        try:
            found.append(from_text(random_cluster(rng, rng.choice([*TEMPLATES, "drbd", "plain"]), 7, sound=True).text))
        except GpolicyError:
            continue
    return [state for state in found if not any(lacks_secondary(item) for item in cluster_data(state).instances)]


def lacks_secondary(instance: Instance) -> bool:
    """Return whether htools would end with an error at its fail-over."""
    return instance.template is DiskTemplate.DRBD and instance.secondary == NO_NODE


@pytest.mark.parametrize("cpus", [True, False])
def test_each_verdict_equals_the_law(*, cpus: bool) -> None:
    kept = lost = 0
    limits = Limits(cpus_after_failure=cpus)
    for state in states():
        data = as_hail_reads(state, cluster_data(state))
        for place, found in enumerate(redundancy(state, failures=2, limits=limits)):
            cluster = CountedCluster(group_data(data, place), None).cluster
            names = {node.facts.name: index for index, node in cluster.nodes.items()}
            kept_running = partial(can_evacuate, cluster.nodes, cluster.instances, cpus=cpus)
            single = {(name,) for name, index in names.items() if not kept_running((index,))}
            pairs = {
                (one, other)
                for one, other in combinations(names, 2)
                if (one,) not in single and (other,) not in single and not kept_running((names[one], names[other]))
            }
            if sum(not node.facts.offline for node in cluster.nodes.values()) <= 2:
                # the law skips instances that lose both nodes, also where no node is left
                continue
            assert {loss.nodes for loss in found.not_absorbed} == single | pairs
            for failures in (1, 2):
                law = is_redundant(cluster.nodes, cluster.instances, CapacityRules(failures=failures, cpus=cpus))
                assert law is (found.survives >= failures)
            kept += found.survives
            lost += len(found.not_absorbed)
    assert kept > 20
    assert lost > 20


@pytest.mark.parametrize("cpus", [True, False])
def test_losses_by_the_engine_equal_the_law(monkeypatch: pytest.MonkeyPatch, *, cpus: bool) -> None:
    monkeypatch.setattr(module, "engine_cluster", lambda _nodes, _instances: None)
    limits = Limits(cpus_after_failure=cpus)
    law = [redundancy(state, failures=2, limits=limits) for state in states()]
    monkeypatch.undo()
    assert [redundancy(state, failures=2, limits=limits) for state in states()] == law
    assert sum(len(loss.homeless) for groups in law for group in groups for loss in group.losses) > 100


def test_a_surely_absorbed_set_is_absorbed_by_the_simulation() -> None:
    """Among the residents are mirrored ones, and copies, which want a choice of nodes."""
    sure: Counter[str] = Counter()
    unsure = 0
    for state in [*states(), many_nodes("plain"), many_nodes("drbd"), many_nodes("rbd")]:
        for place in range(len(state.groups)):
            cluster = CountedCluster(group_data(cluster_data(state), place), None).cluster
            told = SureLosses(cluster.nodes, cluster.instances, 2)
            for lost in combinations(cluster.nodes, 2):
                if not told.absorb(lost):
                    unsure += 1
                    continue
                assert not lose(cluster.nodes, cluster.instances, lost, None, cpus=True).homeless
                residents = {number for index in lost for number in cluster.nodes[index].primaries}
                sure.update({cluster.instances[number].template.value for number in residents})
    assert unsure > 50
    assert min(sure["plain"], sure["drbd"], sure["rbd"]) > 50


def lost_by_the_law(nodes: Mapping[int, Node], instances: Mapping[int, Instance], lost: int) -> set[str]:
    """Return which instances of a node, none of them mirrored, find no home: each is placed as htools places it."""
    state = dict(nodes)
    escape = [index for index in nodes if index != lost]
    residents = [instances[number] for number in nodes[lost].primaries]
    homeless = set()
    for item in residents:
        if item.template.movable_foreign:
            home = best_home(state, item, escape)
            if home is None:
                homeless.add(item.name)
            else:
                moved = apply_move(state, InstanceMove(MoveKind.FAILOVER_TO, item, home), force=True)
                assert not isinstance(moved, FailReason)
                state.update(moved.changed)
    copied = [item for item in residents if not item.template.movable_foreign]
    for item in sorted(copied, key=lambda item: -item.memory):
        found = try_allocate(state, item, SingleCandidates(tuple(escape)), force=True).solution
        if found is None:
            homeless.add(item.name)
        else:
            state[found.nodes[0]] = found.changed[0]
    return homeless


@pytest.mark.parametrize("templates", ["drbd,plain,rbd", "drbd,plain"])
def test_the_target_of_one_instance_decides_about_others(templates: str) -> None:
    """The second list of templates forbids what runs there: a move does not ask for it."""
    rng = random.Random(7)  # noqa: S311 (no secrets here)
    found = []
    for _ in range(60):
        nodes, rows = [], []
        for name in "abcdef":
            sizes = [rng.choice([500, 1000, 1500, 2000, 3000]) for _ in range(rng.randint(1, 4))]
            nodes.append(node(name, 12000, free=rng.randint(100, 3500) if sum(sizes) < 8400 else 200))
            for number, size in enumerate(sizes):
                template = rng.choice(["plain", "rbd"])
                rows.append(f"{name}{number}|{size}|1024|1|running|Y|{name}||{template}||1|-|N")
        state = cluster(nodes, rows, drbd=templates)
        loaded_ = CountedCluster(group_data(cluster_data(state), 0), None).cluster
        for lost in loaded_.nodes:
            law = lost_by_the_law(loaded_.nodes, loaded_.instances, lost)
            assert {
                item.instance for item in lose(loaded_.nodes, loaded_.instances, (lost,), None, cpus=True).homeless
            } == law
            found.append(len(law))
    assert found.count(0) > 20
    assert len(found) - found.count(0) > 100


def many_nodes(template: str) -> ClusterState:
    """Return 20 nodes with an instance each, of 2 to 6 GiB; some of the nodes have little memory left."""
    rng = random.Random(14)  # noqa: S311 (no secrets here)
    names = "abcdefghijklmnopqrst"
    nodes, rows = [], []
    for place, name in enumerate(names):
        size = rng.choice([2000, 4000, 6000])
        disk = rng.choice([102400, 102400, 102400, 10240])  # of the last nothing is free
        nodes.append(node(name, disk=disk, free=8192 - size - rng.choice([0, 0, 1500])))
        secondary = names[(place + 1) % len(names)] if template == "drbd" else ""
        rows.append(f"i{name}|{size}|1024|1|running|Y|{name}|{secondary}|{template}||1|-|N")
    return cluster(nodes, rows)


def node(
    name: str, memory: int = 8192, disk: int = 102400, *, free: int | None = None, tags: str = "", cpus: int = 4
) -> str:
    left = memory if free is None else free
    return f"{name}|{memory}|0|{left}|{disk}|{disk - 10240}|{cpus}|N|u|1|{tags}|N|0|0|1.0"


def cluster(
    nodes: list[str],
    instances: list[str],
    *,
    tags: list[str] | None = None,
    ratio: str = "4.0",
    drbd: str = "drbd,plain,rbd",
    least: int = 1024,
) -> ClusterState:
    policy = f"128,1,1024,1,1,1|128,1,{least},1,1,1;8192,8,102400,4,4,4|{drbd}|{ratio}|32.0"
    return from_text(text_of(["g|u|preferred||"], nodes, instances, tags or [], [f"|{policy}", f"g|{policy}"]))


def only(state: ClusterState, failures: int = 1) -> GroupRedundancy:
    return redundancy(state, failures=failures)[0]


def trouble(found: GroupRedundancy) -> dict[tuple[str, ...], list[tuple[str, str, str]]]:
    return {
        loss.nodes: [(item.instance, item.key, item.detail) for item in (*loss.homeless, *loss.strained)]
        for loss in found.losses
    }


def test_a_failover_without_memory() -> None:
    first = "i1|6000|1024|1|running|Y|a|b|drbd||1|-|N"
    second = "i2|6000|1024|1|running|Y|b|c|drbd||1|-|N"
    state = cluster([node("a", free=2192), node("b", free=2192), node("c")], [first, second])
    found = only(state)
    assert trouble(found) == {("a",): [("i1", "memory", "b: 5.9G memory wanted, 2.1G free")]}
    assert (found.survives, found.examined) == (0, 3)
    assert [(item.node, item.reserved, item.free) for item in found.shortages] == [("b", 6000, 2192)]


def test_a_copy_without_room_names_the_missing_resource() -> None:
    big = "i1|7000|1024|1|running|Y|a||plain||1|-|N"
    other = "i2|2000|1024|1|running|Y|b||plain||1|-|N"
    found = only(cluster([node("a", free=1192), node("b", free=6192)], [big, other]))
    assert trouble(found) == {
        ("a",): [("i1", "memory", "6.8G memory wanted, at most 6G free on 1 node")],
        ("b",): [("i2", "memory", "2G memory wanted, at most 1.2G free on 1 node")],
    }


def test_an_instance_outside_the_policy_finds_no_node() -> None:
    row = "i1|64|1024|1|running|Y|a||plain||1|-|N"
    found = only(cluster([node("a", free=8128), node("b")], [row]))
    assert trouble(found)["a",] == [("i1", "ipolicy.minmax", "memory-size 64M (128M to 8G) (size 1 of 1)")]
    template = only(cluster([node("a", free=8064), node("b")], [row.replace("|64|", "|128|")], drbd="drbd"))
    assert trouble(template)["a",][0][1] == "ipolicy.disk-templates"


def test_a_group_of_one_node_has_no_other_target() -> None:
    row = "i1|128|1024|1|running|Y|a||rbd||1|-|N"
    assert trouble(only(cluster([node("a", free=8064)], [row])))["a",][0][1] == "nodes"


def test_no_group_survives_the_loss_of_all_its_nodes() -> None:
    row = "i1|128|1024|1|running|Y|a|b|drbd||1|-|N"
    found = only(cluster([node("a", free=8064), node("b", free=8064)], [row]), failures=2)
    assert (found.survives, trouble(found)) == (1, {("a", "b"): [("i1", "nodes", "no other node in the group")]})
    larger = only(cluster([node("a", free=8064), node("b", free=8064), node("c")], [row]), failures=2)
    offline = only(
        cluster([node("a", free=8064), node("b", free=8064), node("c").replace("|N|u|", "|Y|u|")], [row]), failures=2
    )
    assert offline.survives == 1
    assert larger.survives == 2  # what loses both nodes does not count while others are left


def test_migration_tags_forbid_a_failover() -> None:
    row = "i1|128|1024|1|running|Y|a|b|drbd||1|-|N"
    nodes = [node("a", free=8064, tags="hv:x"), node("b", tags="hv:y")]
    found = only(cluster(nodes, [row], tags=["htools:migration:hv"]))
    assert trouble(found) == {("a",): [("i1", "migration-tags", "a may not migrate to b")]}


def test_breaches_of_limits_are_listed_separately() -> None:
    rows = ["i1|128|1024|4|running|Y|a|b|drbd|svc:x|1|-|N", "i2|128|1024|4|running|Y|b|a|drbd|svc:x|1|-|N"]
    nodes = [node("a", free=8064), node("b", free=8064)]
    state = cluster(nodes, rows, tags=["htools:iextags:svc"], ratio="1.0")
    (found,) = redundancy(state, limits=Limits(cpus_after_failure=False))
    assert found.survives == 1
    assert found.not_absorbed == ()
    assert trouble(found)["a",] == [
        ("i1", "ipolicy.vcpu-ratio", "b: 8 virtual CPUs on 4 CPUs, allowed 1 each"),
        ("i1", "exclusion-tags", "b: has svc:x already"),
    ]
    assert [loss.nodes for loss in found.strained] == [("a",), ("b",)]


def test_cpus_count_after_a_failure() -> None:
    """Two nodes of 9 CPUs, ratio 1, two mirrored instances of 4 CPUs on each: after a loss 8 + 4 > 9 on the other."""
    rows = [f"i{n}|128|1024|4|running|Y|{pair}|drbd||1|-|N" for n, pair in enumerate(["a|b", "a|b", "b|a", "b|a"])]
    state = cluster([node("a", cpus=9, free=7936), node("b", cpus=9, free=7936)], rows, ratio="1.0")
    found = only(state)
    assert (found.survives, found.strained) == (0, ())
    text = "b: 12 virtual CPUs on 9 CPUs, allowed 1 each"
    assert trouble(found)["a",] == [(name, "ipolicy.vcpu-ratio", text) for name in ("i1", "i0")]
    declared = replace(state, terms={"g": GroupTerms(limits=Limits(cpus_after_failure=False))})
    assert (only(declared).survives, len(only(declared).strained)) == (1, 2)
    assert redundancy(declared, limits=Limits(cpus_after_failure=True)) == redundancy(state)
    roomy = cluster([node("a", cpus=16, free=7936), node("b", cpus=16, free=7936)], rows, ratio="1.0")
    assert only(roomy).losses == ()  # 16 of 16


@pytest.mark.parametrize("template", ["plain", "rbd"])
def test_an_instance_that_moves_goes_where_the_cpus_are(template: str) -> None:
    """Ratio 1. The loss of a moves 2 CPUs: b of 4 CPUs has 3 in use, c of 4 CPUs 2, so c takes it though it has less
    memory; the loss of b moves 3 CPUs, and a and c have 2 in use each.
    """
    rows = [
        f"i{name}|{memory}|1024|{cpus}|running|Y|{name}||{template}||1|-|N"
        for name, memory, cpus in (("a", 128, 2), ("b", 128, 3), ("c", 4096, 2))
    ]
    state = cluster([node("a", free=8064), node("b", free=8064), node("c", free=4096)], rows, ratio="1.0")
    text = "3 virtual CPUs wanted, at most 2 left on 2 nodes"
    assert trouble(only(state)) == {("b",): [("ib", "ipolicy.vcpu-ratio", text)]}
    (strained,) = redundancy(state, limits=Limits(cpus_after_failure=False))
    assert strained.not_absorbed == ()


def test_an_instance_without_cpus_breaks_no_ratio() -> None:
    """b is beyond its ratio already; an offline instance takes no CPU, a running one does."""
    rows = ["i1|128|1024|2|{}|Y|a|b|drbd||1|-|N", "i2|128|1024|5|running|Y|b||rbd||1|-|N"]
    nodes = [node("a", cpus=9, free=8064), node("b", free=8064)]
    offline, running = (
        cluster(nodes, [rows[0].format(how), rows[1]], ratio="1.0") for how in ("ADMIN_offline", "running")
    )
    assert trouble(only(offline)) == {}
    assert trouble(only(running)) == {
        ("a",): [("i1", "ipolicy.vcpu-ratio", "b: 7 virtual CPUs on 4 CPUs, allowed 1 each")]
    }


@st.composite
def groups_by_chance(draw: st.DrawFn) -> tuple[list[int], list[tuple[int, int, int, int, str]], str]:
    """Return the CPUs of nodes of 8 GiB, instances (memory, CPUs, primary, secondary, template), and the ratio."""
    cpus = draw(st.lists(st.integers(3, 9), min_size=2, max_size=4))
    places = st.permutations(range(len(cpus)))
    rows = []
    for _ in range(draw(st.integers(1, 6))):
        primary, secondary, *_ = draw(places)
        sizes = draw(st.sampled_from([500, 1300, 2500])), draw(st.integers(1, 4))
        rows.append((*sizes, primary, secondary, draw(st.sampled_from(["drbd", "drbd", "plain", "rbd"]))))
    return cpus, rows, draw(st.sampled_from(["1.0", "1.5", "0.0"]))


@given(chance=groups_by_chance(), cpus=st.booleans())
def test_what_is_absorbed_fits_by_plain_sums(
    chance: tuple[list[int], list[tuple[int, int, int, int, str]], str], *, cpus: bool
) -> None:
    """Every way to spread the instances of lost nodes is tried. Of mirrored ones alone there is just one way, so there
    the verdicts are equal; else one that is absorbed has a way, since the allocator tries one only.
    """
    on_nodes, rows, ratio = chance
    free = [8192 - sum(row[0] for row in rows if row[2] == place) for place in range(len(on_nodes))]
    used = [sum(row[1] for row in rows if row[2] == place) for place in range(len(on_nodes))]
    if min(free) <= 0:
        return

    def fits(lost: tuple[int, ...]) -> bool:
        left = [place for place in range(len(on_nodes)) if place not in lost]
        moving = [row for row in rows if row[2] in lost and not (row[4] == "drbd" and row[3] in lost)]
        if not left:
            return False
        for targets in product(*([row[3]] if row[4] == "drbd" else left for row in moving)):
            memory, more = ([0] * len(on_nodes) for _ in range(2))
            for row, target in zip(moving, targets, strict=True):
                memory[target] += row[0]
                more[target] += row[1]
            enough = all(memory[place] < free[place] or not memory[place] for place in left)
            within = all(
                not more[place] or used[place] + more[place] <= float(ratio) * on_nodes[place] for place in left
            )
            if enough and (within or not cpus):
                return True
        return False

    nodes = [node("abcd"[place], cpus=count, free=free[place]) for place, count in enumerate(on_nodes)]
    lines = [
        f"i{number}|{memory}|64|{count}|running|Y|{'abcd'[one]}|{'abcd'[two] if kind == 'drbd' else ''}|{kind}||1|-|N"
        for number, (memory, count, one, two, kind) in enumerate(rows)
    ]
    state = cluster(nodes, lines, ratio=ratio, least=64)
    (found,) = redundancy(state, failures=2, limits=Limits(cpus_after_failure=cpus))
    law = 0
    for size in (1, 2):
        if law == size - 1 and all(fits(lost) for lost in combinations(range(len(on_nodes)), size)):
            law = size
    if all(row[4] == "drbd" for row in rows):
        assert found.survives == law
    else:
        assert found.survives <= law


def test_only_the_smallest_sets_of_lost_nodes_are_listed() -> None:
    rows = [f"i{n}|3000|1024|1|running|Y|{name}||plain||1|-|N" for n, name in enumerate("abcd")]
    state = cluster([node(name, free=5192) for name in "abcd"], rows)
    found = only(state, failures=3)
    assert found.survives == 2
    assert all(len(loss.nodes) == 3 for loss in found.not_absorbed)
    assert len(found.not_absorbed) == 4


def test_too_many_sets_are_not_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SETS", 20)
    found = only(cluster([node(f"n{n}") for n in range(6)], []), failures=2)
    assert (found.survives, found.examined) == (1, 6)
    assert (
        found.unavailable
        == "losing 2 of 6 nodes at once means 15 more sets of nodes to examine; the limit is 20 in all"
    )
    monkeypatch.setattr(module, "MOST_SETS", 21)
    found = only(cluster([node(f"n{n}") for n in range(6)], []), failures=2)
    assert (found.survives, found.examined, found.unavailable) == (2, 21, None)


def test_too_many_losses_are_not_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """With so few nodes no pair can be judged without simulation."""
    rows = [f"i{n}|3000|1024|1|running|Y|{name}||plain||1|-|N" for n, name in enumerate("abcd")]
    state = cluster([node(name, free=5192) for name in "abcd"], rows)
    monkeypatch.setattr(module, "MOST_SIMULATED", 9)
    found = only(state, failures=2)
    assert (found.survives, found.examined) == (1, 4)
    assert found.unavailable == (
        "losing 2 of 4 nodes at once means 6 more sets of nodes to simulate; the limit is 9 in all"
    )
    monkeypatch.setattr(module, "MOST_SIMULATED", 10)
    found = only(state, failures=2)
    assert (found.survives, found.examined, found.unavailable) == (2, 10, None)


def test_a_set_from_several_groups_is_not_newly_lost() -> None:
    rows = [f"i{n}|3000|1024|1|running|Y|{n}||plain||1|-|N" for n in "abc"]
    two, three = (
        cluster([node(name, free=free) for name in names], rows[: len(names)])
        for names, free in (("ab", 5192), ("abc", 2000))
    )
    grown = redundancy_change(two, three, failures=3).groups[0]
    assert grown.after is not None
    assert [loss.nodes for loss in grown.after.not_absorbed] == [("a",), ("b",), ("c",)]
    assert [loss.nodes for loss in grown.newly_lost] == [("a",), ("b",)]
    roomy = cluster([node(name, 32768, free=29000) for name in "abc"], rows)
    grown = redundancy_change(two, roomy, failures=3).groups[0]
    assert (grown.before, grown.after) != (None, None)
    assert grown.after is not None
    assert [loss.nodes for loss in grown.after.not_absorbed] == [("a", "b", "c")]
    assert grown.newly_lost == ()


def test_new_losses_are_shown_and_equal_groups_examined_once() -> None:
    rows = ["i1|3000|1024|1|running|Y|a||plain||1|-|N", "i2|3000|1024|1|running|Y|b||plain||1|-|N"]
    before = cluster([node("a", free=5192), node("b", free=5192)], rows)
    told: list[str] = []
    same = redundancy_change(before, before, tell=told.append)
    assert same.groups[0].newly_lost == ()
    assert len(told) == 1
    group = before.groups["g"]
    effective: Values = {**group.effective, ("ipolicy", "disk-templates"): ["drbd"]}
    after = replace(before, groups={"g": replace(group, effective=effective)})
    change = redundancy_change(before, after)
    assert [loss.nodes for loss in change.groups[0].newly_lost] == [("a",), ("b",)]
    assert change.score_before == change.score_after
    whole = capacity(before).cluster
    assert whole is not None
    assert change.score_before == whole.score


def test_an_invalid_question_is_refused() -> None:
    with pytest.raises(RequestError, match="it must be 1 or more"):
        redundancy(from_text(FULL), failures=0)
    with pytest.raises(RequestError, match="no group 'x'"):
        redundancy(from_text(FULL), group="x")


def test_a_group_without_nodes_has_nothing_to_lose() -> None:
    found = only(cluster([], []), failures=2)
    assert (found.nodes, found.survives, found.losses) == (0, 2, ())


def test_an_instance_whose_mirror_is_in_another_group_is_not_one_without_a_mirror() -> None:
    state = read_snapshot(Path(__file__).parents[2] / "policies/two-groups.snapshot.json")
    assert {item.group: (item.unmirrored, item.split) for item in redundancy(state)} == {
        "dedicated": (3, 0),
        "default": (2, 0),
        "spare": (0, 0),
    }
    apart = moved(state, "node4.example.org", "spare")
    assert {item.group: (item.unmirrored, item.split) for item in redundancy(apart)} == {
        "dedicated": (3, 0),
        "default": (1, 4),
        "spare": (1, 4),
    }
