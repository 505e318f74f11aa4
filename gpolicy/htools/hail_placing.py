"""hail's requests for new instances: allocate and multi-allocate."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gpolicy.allocator.cluster_data import Instance
from gpolicy.allocator.merge import DESIRED_PREFIX, EXCLUSION_PREFIX, Cluster, tags_of
from gpolicy.allocator.redundancy import numbered
from gpolicy.allocator.request_options import NotGrantedError, RequestOptions
from gpolicy.allocator.requests import Wanted, allocate, allocate_many
from gpolicy.htools.hail import PREFIX, HailAnswer, HailRequest, names_of, parse_instance
from gpolicy.htools.json_fields import Fields, Json, as_list, as_object, as_text, as_texts
from gpolicy.light_dataclasses import replace


def parse_placing(kind: str, fields: Fields, cluster: Cluster) -> HailRequest:
    """Read a request of the kind "allocate" or "multi-allocate"."""
    if kind == "multi-allocate":
        return _parse_many(fields, cluster)
    name, count = fields.text("name"), fields.whole("required_nodes")
    instance = _new_instance(name, fields.fields, cluster)
    wanted = Wanted(instance, count, fields.optional("group_name", as_text, None))
    restriction = fields.optional("restrict-to-nodes", as_texts, None)

    def shown() -> str:
        from gpolicy.htools.haskell_records import shown_maybe, shown_wanted  # noqa: PLC0415 - only what is needed

        new, details = shown_wanted(wanted, fields.fields)
        return f"Allocate ({new}) ({details}) {shown_maybe(restriction)}"

    return HailRequest((), shown, partial(_allocate, wanted, restriction), (wanted.group_name,))


def _parse_many(fields: Fields, cluster: Cluster) -> HailRequest:
    entries = fields.get("instances", lambda items: [as_object(item) for item in as_list(items)])
    wanted = []
    for entry in entries:
        own = Fields(PREFIX, entry)
        name = own.text("name")
        group_name = fields.optional("group_name", as_text, None)
        count = own.whole("required_nodes")
        wanted.append(Wanted(_new_instance(name, entry, cluster), count, group_name))

    def shown() -> str:
        from gpolicy.htools.haskell_records import shown_wanted  # noqa: PLC0415 - only what is needed

        pairs = (f"({','.join(shown_wanted(item, entry))})" for item, entry in zip(wanted, entries, strict=True))
        return f"MultiAllocate [{','.join(pairs)}]"

    return HailRequest((), shown, partial(_allocate_many, wanted), tuple(item.group_name for item in wanted))


def _allocate(
    wanted: Wanted, restriction: tuple[str, ...] | None, cluster: Cluster, options: RequestOptions
) -> HailAnswer:
    """Choose the nodes. The option that restricts them overrides the request's own restriction."""
    if options.restriction is None and restriction is not None:
        options = replace(options, restriction=frozenset(restriction))
    nodes, instances = cluster.nodes, cluster.instances
    found = allocate(cluster, wanted, options)
    if found.placement is None:
        raise NotGrantedError(", ".join(found.messages))
    number = len(instances)
    # for one group or dedicated nodes, -S writes only the nodes of the chosen group
    narrow = wanted.group_name is not None or found.placement.lost is not None
    after = {index: node for index, node in nodes.items() if not narrow or node.facts.group == found.group}
    after |= {node.index: numbered(node, number) for node in found.placement.changed}
    table = {number: found.placement.instance, **instances}  # -S writes the new instance first
    placed = replace(cluster, nodes=after, instances=table)
    return HailAnswer(", ".join(found.messages), [*names_of(nodes, found.placement.nodes)], placed)


def _allocate_many(wanted: Sequence[Wanted], cluster: Cluster, options: RequestOptions) -> HailAnswer:
    many = allocate_many(cluster, wanted, options)
    info = f"{len(many.failed)} instances failed to allocate and {len(many.placed)} were allocated successfully"
    placed = [[instance.name, names_of(cluster.nodes, where.nodes)] for instance, where in many.placed]
    failed = [[instance.name, text] for instance, text in many.failed]
    return HailAnswer(info, [placed, failed], many.after)


def _new_instance(name: str, values: dict[str, Json], cluster: Cluster) -> Instance:
    instance = parse_instance(-1, name, values)
    return replace(
        instance,
        exclusion_tags=tags_of(EXCLUSION_PREFIX, cluster.tags, instance.tags),
        desired_tags=frozenset(tags_of(DESIRED_PREFIX, cluster.tags, instance.tags)),
    )
