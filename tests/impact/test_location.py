"""Locations, exclusion and migration: small cases by hand, and counts compared with the cluster score."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from gpolicy.allocator.cluster_score import COMPONENTS, component_values, statistics
from gpolicy.allocator.merge import merge
from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.health import (
    DesiredLocationMissing,
    DomainConflict,
    ExclusionConflict,
    ExclusionUnsatisfiable,
    SharedDomain,
    Unmovable,
)
from gpolicy.cluster.state import ClusterState, Identity, LiveInstance, Resources
from gpolicy.ganeti.vocabulary import Values
from gpolicy.impact.impact import Compared, LocationChange
from tests.impact.changes import location_change
from tests.impact.clusters_by_hand import cluster
from tests.strategies import instance

RACKS = "htools:nlocation:rack"
ROOMS = "htools:nlocation:room"
SERVICE = "htools:iextags:service:"
NODES = {"node1": "default", "node2": "default", "node3": "default"}


def tagged(item: LiveInstance, *tags: str) -> LiveInstance:
    return replace(item, tags=frozenset(tags))


def drbd(name: str, primary: str, secondary: str) -> LiveInstance:
    return instance(name, primary, "drbd", (secondary,))


def at(nodes: dict[str, str], *instances: LiveInstance, tags: Iterable[str] = (), **node_tags: str) -> ClusterState:
    """Return a cluster of one group and more; `node1="a b"` are the tags of a node."""
    groups: dict[str, Values] = {group: {} for group in sorted(set(nodes.values()))}
    return cluster({}, groups, nodes, *instances, tags=tags, node_tags={k: v.split() for k, v in node_tags.items()})


class TestSharedDomains:
    def test_each_shared_tag_is_new_remaining_or_gone(self) -> None:
        items = drbd("a", "node1", "node2"), drbd("b", "node2", "node3")
        before = at(NODES, *items, tags=[RACKS, ROOMS], node1="rack:1 room:1", node2="rack:1 room:2", node3="room:2")
        after = at(NODES, *items, tags=[RACKS, ROOMS], node1="rack:1 room:2", node2="rack:1 room:2", node3="rack:3")
        found = location_change(before, after).shared_domains
        assert found == Compared(
            new=(SharedDomain(instance="a", primary_node="node1", secondary_node="node2", tags=("room:2",)),),
            still=(SharedDomain(instance="a", primary_node="node1", secondary_node="node2", tags=("rack:1",)),),
            gone=(SharedDomain(instance="b", primary_node="node2", secondary_node="node3", tags=("room:2",)),),
        )

    def test_the_cluster_tag_needs_a_colon_behind_it_and_makes_the_difference(self) -> None:
        item = drbd("a", "node1", "node2")
        tags = {"node1": "racks:1 rack", "node2": "racks:1 rack"}
        assert location_change(at(NODES, item), at(NODES, item, tags=[RACKS], **tags)) == LocationChange()
        same = {"node1": "rack:1", "node2": "rack:1"}
        before, after = at(NODES, item, **same), at(NODES, item, tags=[RACKS], **same)
        assert len(location_change(before, after).shared_domains.new) == 1


class TestExclusion:
    WEB = tuple(tagged(instance(name, node), "service:web") for name, node in (("a", "node1"), ("b", "node1")))

    def test_instances_with_one_tag_on_one_node(self) -> None:
        found = location_change(at(NODES, *self.WEB), at(NODES, *self.WEB, tags=[SERVICE])).exclusion_conflicts
        assert found.new == (ExclusionConflict(tag="service:web", node="node1", instances=("a", "b")),)

    def test_exclusion_tags_are_compared_as_bare_prefixes(self) -> None:
        change = location_change(at(NODES, *self.WEB), at(NODES, *self.WEB, tags=["htools:iextags:serv"]))
        assert [item.tag for item in change.exclusion_conflicts.new] == ["service:web"]

    def test_instances_in_one_failure_domain(self) -> None:
        items = [tagged(instance(name, node), "service:web") for name, node in (("a", "node1"), ("b", "node2"))]
        before = at(NODES, *items, tags=[SERVICE, RACKS], node1="rack:1", node2="rack:2")
        after = at(NODES, *items, tags=[SERVICE, RACKS], node1="rack:1", node2="rack:1")
        found = location_change(before, after)
        conflict = DomainConflict(tag="service:web", domain="rack:1", nodes=("node1", "node2"), instances=("a", "b"))
        assert found.domain_conflicts == Compared(new=(conflict,))
        assert found.exclusion_conflicts == Compared()

    def test_more_instances_than_nodes_or_than_domains_cannot_be_spread(self) -> None:
        items = [tagged(instance(f"i{number}", "node1"), "service:web") for number in range(3)]
        racks = {"node1": "rack:1", "node2": "rack:1", "node3": ""}
        enough = at(NODES, *items, tags=[SERVICE])
        found = location_change(enough, at(NODES, *items, tags=[SERVICE, RACKS], **racks)).unsatisfiable
        names = tuple(item.name for item in items)
        assert found.new == (
            ExclusionUnsatisfiable(
                tag="service:web", group="default", instances=names, domain_kind="rack", places=("rack:1", "node3")
            ),
        )
        fewer = replace(enough, nodes={**enough.nodes, "node3": replace(enough.nodes["node3"], drained=True)})
        assert location_change(enough, fewer).unsatisfiable.new == (
            ExclusionUnsatisfiable(
                tag="service:web", group="default", instances=names, domain_kind=None, places=("node1", "node2")
            ),
        )

    def test_nodes_that_leave_the_group_leave_too_few(self) -> None:
        items = [tagged(instance(f"i{number}", "node1"), "service:web") for number in range(3)]
        moved = NODES | {"node3": "other"}
        found = location_change(at(NODES, *items, tags=[SERVICE]), at(moved, *items, tags=[SERVICE])).unsatisfiable
        assert [item.places for item in found.new] == [("node1", "node2")]

    def test_a_renamed_group_is_the_same_group(self) -> None:
        items = [tagged(instance(f"i{number}", "node1"), "service:web") for number in range(4)]
        before = at(NODES, *items, tags=[SERVICE])
        groups = {"default": replace(before.groups["default"], identity=Identity(uuid="u"))}
        before = replace(before, groups=groups)
        after = at(dict.fromkeys(NODES, "renamed"), *items, tags=[SERVICE])
        after = replace(after, groups={"renamed": replace(after.groups["renamed"], identity=Identity(uuid="u"))})
        found = location_change(before, after).unsatisfiable
        assert (len(found.still), found.new, found.gone) == (1, (), ())


class TestMigration:
    TAGS = ("htools:migration:hv",)

    def stranded(self, *items: LiveInstance, tags: Iterable[str] = TAGS, **node_tags: str) -> tuple[Unmovable, ...]:
        return location_change(at(NODES, *items), at(NODES, *items, tags=tags, **node_tags)).stranded.new

    def test_a_drbd_instance_needs_its_secondary(self) -> None:
        items = drbd("a", "node1", "node2"), drbd("b", "node1", "node3"), drbd("c", "node2", "node1")
        found = self.stranded(*items, node1="hv:new", node3="hv:new")
        assert found == (Unmovable(instance="a", primary_node="node1", targets=(("node2", ("hv:new",)),)),)

    def test_shared_storage_needs_any_node_of_the_group(self) -> None:
        item = instance("a", "node1", "rbd")
        assert self.stranded(item, node1="hv:new", node3="hv:new") == ()
        missing = ("hv:new",)
        assert self.stranded(item, node1="hv:new")[0].targets == (("node2", missing), ("node3", missing))

    def test_allowed_migrations_count_in_their_direction_only(self) -> None:
        tags = (*self.TAGS, "htools:allowmigration:hv:old::hv:new")
        there, back = drbd("a", "node1", "node2"), drbd("b", "node2", "node1")
        found = self.stranded(there, back, tags=tags, node1="hv:old", node2="hv:new")
        assert [item.instance for item in found] == ["b"]

    @pytest.mark.parametrize("template", ["plain", "file"])
    def test_an_instance_that_never_migrates_is_not_stranded_by_tags(self, template: str) -> None:
        assert self.stranded(instance("a", "node1", template), node1="hv:new") == ()

    def test_without_any_other_node_in_use_tags_are_not_to_blame(self) -> None:
        item = drbd("a", "node1", "node2")
        after = at(NODES, item, tags=self.TAGS, node1="hv:new")
        after = replace(after, nodes={**after.nodes, "node2": replace(after.nodes["node2"], offline=True)})
        assert location_change(at(NODES, item), after).stranded == Compared()


class TestDesiredLocation:
    TAGS = (RACKS, "htools:desiredlocation:rack")

    def test_a_location_that_no_node_of_the_group_has(self) -> None:
        items = [tagged(instance(name, "node1"), f"rack:{name}") for name in ("a", "b", "c")]
        nodes = NODES | {"node3": "other"}
        found = location_change(at(nodes, *items), at(nodes, *items, tags=self.TAGS, node2="rack:a", node3="rack:b"))
        assert found.desired_missing.new == (
            DesiredLocationMissing(instance="b", group="default", tag="rack:b", elsewhere=("node3",)),
            DesiredLocationMissing(instance="c", group="default", tag="rack:c", elsewhere=()),
        )


# --- the counts are those of the cluster score -----------------------------------------------------------------------

MEASURED = Resources(
    memory_total=65536, memory_node=1024, memory_free=32768, disk_total=10**6, disk_free=10**5, cpu_total=8, cpu_node=1
)


def random_state(seed: int) -> ClusterState:
    rnd = random.Random(seed)  # noqa: S311
    nodes = {f"node{number}": rnd.choice(("default", "gold")) for number in range(6)}
    kinds = ("rack:1", "rack:2", "room:1", "room:2", "hv:1", "hv:2", "other:1")
    items = []
    for number in range(12):
        ends = rnd.sample(sorted(nodes), 2)
        mates = [name for name in nodes if nodes[name] == nodes[ends[0]] and name != ends[0]]
        made = drbd(f"i{number}", ends[0], rnd.choice(mates)) if mates and rnd.random() < 0.7 else instance(
            f"i{number}", ends[0], rnd.choice(("plain", "rbd")))  # fmt: skip
        items.append(replace(made, status="running", tags=frozenset(rnd.sample(("s:1", "s:2", "t:1", "rack:1"), 2))))
    families = [RACKS, ROOMS, "htools:iextags:s:", "htools:iextags:t", "htools:migration:hv"]
    families += ["htools:allowmigration:hv:1::hv:2", "htools:desiredlocation:rack"]
    state = at(
        nodes,
        *items,
        tags=rnd.sample(families, rnd.randint(3, 7)),
        **{name: " ".join(rnd.sample(kinds, rnd.randint(0, 4))) for name in nodes},
    )
    return replace(state, nodes={name: replace(node, resources=MEASURED) for name, node in state.nodes.items()})


@pytest.mark.parametrize("seed", range(60))
def test_the_listed_components_add_up_to_the_cluster_score(seed: int) -> None:
    state = random_state(seed)
    values = component_values(statistics(merge(cluster_data(state)).nodes.values()))
    score = dict(zip((component.name for component in COMPONENTS), values, strict=True))
    found = location_change(state, state)
    misses = sum(len(wanted(state, item) - state.nodes[item.primary_node].tags) for item in state.instances.values())
    assert score["location_score"] == sum(len(item.tags) for item in found.shared_domains.still) + misses
    assert score["pri_tags_score"] == sum(len(item.instances) - 1 for item in found.exclusion_conflicts.still)
    assert score["location_exclusion_score"] == sum(len(item.instances) - 1 for item in found.domain_conflicts.still)


def wanted(state: ClusterState, item: LiveInstance) -> set[str]:
    """Return desired locations: racks, where racks are desired and are locations (all generated ones are)."""
    if "htools:desiredlocation:rack" not in state.cluster.tags:
        return set()
    located = RACKS in state.cluster.tags
    return {tag if located else "nowhere" for tag in item.tags if tag.startswith("rack")}


@pytest.mark.parametrize("seed", range(60))
def test_stranded_resources_equal_the_design_document(seed: int) -> None:
    """From the node that it is on, for all migration tags: the target has the tag, or one that may receive it."""
    state = random_state(seed)
    tags, nodes = state.cluster.tags, state.nodes

    def may_move(source: str, target: str) -> bool:
        relevant = {tag for tag in nodes[source].tags if tag.startswith("hv:") and "htools:migration:hv" in tags}
        return all(
            tag in nodes[target].tags
            or any(f"htools:allowmigration:{tag}::{other}" in tags for other in nodes[target].tags)
            for tag in relevant
        )

    stranded = set()
    for item in state.instances.values():
        mates = [name for name in nodes if nodes[name].group == nodes[item.primary_node].group]
        targets = [*item.secondary_nodes] or [name for name in mates if name != item.primary_node]
        if item.disk_template != "plain" and targets:
            stranded |= {item.name} - {item.name for target in targets if may_move(item.primary_node, target)}
    assert {item.instance for item in location_change(state, state).stranded.still} == stranded


def test_the_random_states_show_every_kind_of_fact() -> None:
    found = [location_change(random_state(seed), random_state(seed)) for seed in range(60)]
    for kind in LocationChange.__slots__:
        assert sum(bool(getattr(change, kind).still) for change in found) > 3, kind


def test_the_numbers_count_each_kind_of_fact() -> None:
    compared = Compared(new=("a", "b"), still=("c",))
    change = LocationChange(stranded=compared, shared_domains=Compared(gone=("d",)))  # type: ignore[arg-type]
    assert change.numbers == [(0, 0, 1), (0, 0, 0), (0, 0, 0), (0, 0, 0), (2, 1, 0), (0, 0, 0)]
