"""hail's requests for new instances: allocate and multi-allocate."""

from __future__ import annotations

from gpolicy.allocator.group_choice import Wanted
from gpolicy.allocator.merge import Cluster, desired_tags, exclusion_tags
from gpolicy.allocator.redundancy import settled
from gpolicy.allocator.request_options import RequestError
from gpolicy.allocator.requests import allocate, allocate_many
from gpolicy.htools.hail_requests import PREFIX, HailAnswer, names_of
from gpolicy.htools.iallocator import parse_instance
from gpolicy.htools.json_fields import Fields, as_list, as_object, as_text, as_texts
from gpolicy.light_dataclasses import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.request_options import RequestOptions
    from gpolicy.htools.hail_requests import HailRequest
    from gpolicy.htools.json_fields import Json


@dataclass(frozen=True, slots=True)
class AllocateRequest:
    """Place one new instance."""

    wanted: Wanted
    restriction: tuple[str, ...] | None
    existing: tuple[int, ...] = ()

    @property
    def group_names(self) -> tuple[str | None, ...]:
        """The group that the new instance asks for."""
        return (self.wanted.group_name,)

    def shown(self, document: Mapping[str, Json]) -> str:
        """Return it as Haskell shows it."""
        from gpolicy.htools import haskell_records as records  # noqa: PLC0415 - only what is needed
        from gpolicy.htools.haskell_text import shown_strings  # noqa: PLC0415 - only what is needed

        wanted, restriction = self.wanted, records.shown_maybe(self.restriction, shown_strings)
        instance = records.shown_instance(wanted.instance, wanted.instance.name, document)
        return f"Allocate ({instance}) ({records.shown_details(wanted.count, wanted.group_name)}) {restriction}"

    def answer(self, cluster: Cluster, options: RequestOptions) -> HailAnswer:
        """Choose the nodes. The option that restricts them overrides the request's own restriction."""
        if options.restriction is None and self.restriction is not None:
            options = replace(options, restriction=frozenset(self.restriction))
        nodes, instances = cluster.nodes, cluster.instances
        found = allocate(cluster.groups, nodes, instances, self.wanted, options)
        if found.placement is None:
            raise RequestError(", ".join(found.messages))
        number = len(instances)
        # for one group or dedicated nodes, -S writes only the nodes of the chosen group
        narrow = self.wanted.group_name is not None or found.placement.lost is not None
        after = {index: node for index, node in nodes.items() if not narrow or node.facts.group == found.group}
        return HailAnswer(
            ", ".join(found.messages),
            list(names_of(nodes, found.placement.nodes)),
            {**after, **{node.index: settled(node, number) for node in found.placement.changed}},
            {number: found.placement.instance, **instances},  # -S writes the new instance first
        )


@dataclass(frozen=True, slots=True)
class MultiAllocateRequest:
    """Place several new instances."""

    wanted: tuple[Wanted, ...]
    existing: tuple[int, ...] = ()

    @property
    def group_names(self) -> tuple[str | None, ...]:
        """The group that each new instance asks for."""
        return tuple(wanted.group_name for wanted in self.wanted)

    def shown(self, document: Mapping[str, Json]) -> str:
        """Return it as Haskell shows it."""
        from gpolicy.htools import haskell_records as records  # noqa: PLC0415 - only what is needed

        pairs = (
            f"({records.shown_instance(wanted.instance, wanted.instance.name, entry)},"
            f"{records.shown_details(wanted.count, wanted.group_name)})"
            for wanted, entry in zip(self.wanted, document["instances"], strict=True)
        )
        return f"MultiAllocate [{','.join(pairs)}]"

    def answer(self, cluster: Cluster, options: RequestOptions) -> HailAnswer:
        """Choose the nodes of each instance."""
        nodes = cluster.nodes
        many = allocate_many(cluster.groups, nodes, cluster.instances, self.wanted, options)
        info = f"{len(many.failed)} instances failed to allocate and {len(many.placed)} were allocated successfully"
        placed = [[instance.name, names_of(nodes, where.nodes)] for instance, where in many.placed]
        failed = [[instance.name, text] for instance, text in many.failed]
        return HailAnswer(info, [placed, failed], many.nodes, many.instances)


def parse_placing(kind: str, fields: Fields, cluster: Cluster) -> HailRequest:
    """Read a request of the kind "allocate" or "multi-allocate"."""
    if kind == "multi-allocate":
        return MultiAllocateRequest(_read_many(fields, cluster))
    name = fields.text("name")
    count = fields.whole("required_nodes")
    instance = _new_instance(name, fields.fields, cluster)
    group_name = fields.optional("group_name", as_text, None)
    restriction = fields.optional("restrict-to-nodes", as_texts, None)
    return AllocateRequest(Wanted(instance, count, group_name), restriction)


def _read_many(fields: Fields, cluster: Cluster) -> tuple[Wanted, ...]:
    entries = fields.get("instances", lambda items: [as_object(item) for item in as_list(items)])
    wanted = []
    for entry in entries:
        own = Fields(PREFIX, entry)
        name = own.text("name")
        group_name = fields.optional("group_name", as_text, None)
        count = own.whole("required_nodes")
        wanted.append(Wanted(_new_instance(name, entry, cluster), count, group_name))
    return tuple(wanted)


def _new_instance(name: str, values: dict[str, Json], cluster: Cluster) -> Instance:
    instance = parse_instance(-1, name, values)
    return replace(
        instance,
        exclusion_tags=exclusion_tags(cluster.tags, instance.tags),
        desired_tags=desired_tags(cluster.tags, instance.tags),
    )
