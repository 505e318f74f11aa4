"""An evacuation with the engine is the law's own, with few candidates for the law to try."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gpolicy.allocator import engines
from gpolicy.allocator.cluster_data import NO_NODE, DiskTemplate, Instance
from gpolicy.allocator.engines import EngineCluster, Narrowing, engine_cluster
from gpolicy.allocator.evacuation import Departure, EvacuationMode, evacuate_nodes
from gpolicy.allocator.merge import Cluster
from gpolicy.allocator.native.streams import UnfitError
from tests.allocator.helpers import cluster, instance, node


def _cluster(template: DiskTemplate) -> Cluster:
    """Eight nodes of different sizes; instances on the first three, mirrored ones on the next as well."""
    nodes = [node(place, 16384 + 1024 * place, 204800) for place in range(8)]
    where = [(place % 3, place % 3 + 1 if template is DiskTemplate.DRBD else NO_NODE) for place in range(6)]
    instances = [
        instance(2048, 10240, 1, template, index=number, name=f"i{number}", primary=primary, secondary=secondary)
        for number, (primary, secondary) in enumerate(where)
    ]
    return cluster(nodes, instances)


def _narrowed(where: Cluster, mode: EvacuationMode, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Compare with the law alone, and return how many candidates the law tried of each instance."""
    tried: list[int] = []
    real = Narrowing.narrow

    def narrow(self: Narrowing, asked: Departure) -> Sequence[int]:
        found = real(self, asked)
        tried.append(len(found))
        return found

    monkeypatch.setattr(Narrowing, "narrow", narrow)
    found = evacuate_nodes(where, mode, list(where.instances), force=False)
    counts = list(tried)
    monkeypatch.setattr(engines, "engine_cluster", lambda *_: None)
    assert found == evacuate_nodes(where, mode, list(where.instances), force=False)
    assert all(number > 2 for number in tried[len(counts) :])
    return counts


@pytest.mark.parametrize(
    ("template", "mode", "number"),
    [
        (DiskTemplate.DRBD, EvacuationMode.SECONDARY, 1),
        (DiskTemplate.DRBD, EvacuationMode.ALL, 2),
        (DiskTemplate.RBD, EvacuationMode.PRIMARY, 1),
        (DiskTemplate.RBD, EvacuationMode.ALL, 1),
    ],
)
def test_the_best_move_is_found(
    template: DiskTemplate, mode: EvacuationMode, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _narrowed(_cluster(template), mode, monkeypatch) == [number] * 6


def test_where_no_pair_fits_the_last_one_is_left_for_the_message(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [node(place, 16384 if place < 3 else 1024, 204800) for place in range(6)]
    one = instance(8192, 10240, 1, DiskTemplate.DRBD, index=0, name="i", primary=0, secondary=1)
    assert _narrowed(cluster(nodes, [one]), EvacuationMode.ALL, monkeypatch) == [2]


def test_a_cluster_in_the_engine_says_where_instances_go() -> None:
    where = _cluster(DiskTemplate.DRBD)
    engine = engine_cluster(where.nodes, where.instances)
    assert engine is not None
    assert engine.targets([0]) == {0: 1, 3: 1}
    assert engine.targets([1]) == {1: 2, 4: 2}


@pytest.mark.parametrize("mode", [EvacuationMode.SECONDARY, EvacuationMode.ALL])
@pytest.mark.parametrize("template", [DiskTemplate.DRBD, DiskTemplate.RBD])
def test_an_instance_named_twice_moves_again_by_its_old_record(
    template: DiskTemplate, mode: EvacuationMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    where, twice = _cluster(template), [0, 1, 0, 1]
    found = evacuate_nodes(where, mode, twice, force=False)
    monkeypatch.setattr(engines, "engine_cluster", lambda *_: None)
    assert found == evacuate_nodes(where, mode, twice, force=False)


def test_where_the_engine_cannot_answer_the_law_tries_all(monkeypatch: pytest.MonkeyPatch) -> None:
    where, wanted = _cluster(DiskTemplate.RBD), [0, 1, 2]
    asked: list[int] = []

    def refuse(_engine: EngineCluster, item: Instance, *_: object, **__: object) -> tuple[int, ...]:
        asked.append(item.index)
        raise UnfitError("only the law can answer")

    with monkeypatch.context() as patched:
        patched.setattr(EngineCluster, "move", refuse)
        found = evacuate_nodes(where, EvacuationMode.ALL, wanted, force=False)
    assert asked == [0]  # it is not asked again
    assert found == evacuate_nodes(where, EvacuationMode.ALL, wanted, force=False)
