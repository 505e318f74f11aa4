"""GP1xx: hv_state and disk_state, the resources that the resource model keeps in the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import ENABLED_HYPERVISORS, Context, name_of, number, texts
from gpolicy.checking.pairs import amount
from gpolicy.checking.rule import Hit, When, hit, information, see, warning
from gpolicy.findings import Related, RuleParameter
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.vocabulary import Path
from gpolicy.policy.model import INHERIT, Declared, Hardware, Leaf
from gpolicy.policy.source_file import Located
from gpolicy.rules.node_limits import volume_group
from gpolicy.rules.shared import declared_for, groups_where, of_cluster, promised_disk

_STATE_HINT: Final = "keep it for gpolicy's own counts and guards, or leave it out: the cluster then keeps what it has"
_LEAST_SHARE: Final = 0.5
_LEAST_OF_DISK: Final = 0.1
"""A total below this share of what there is must be a mistake. A volume group may have fewer of the disks."""
_PARTS: Final = {
    "mem_total": ("mem_node", "mem_hv"),
    "cpu_total": ("cpu_node",),
    "disk_total": ("disk_reserved", "disk_overhead"),
}
_MEASURED: Final = {"mem_total": "memory_total", "cpu_total": "cpu_total", "disk_total": "disk_total"}


@warning("GP112", When.MORE_WITH_STATE, unless_declared=(ENABLED_HYPERVISORS,))
def hypervisor_not_enabled(context: Context) -> Iterator[Hit]:
    enabled = of_cluster(context, ENABLED_HYPERVISORS)
    if enabled is None:
        return
    seen: set[tuple[str, str]] = set()
    for declared in context.policy.objects:
        leaves = [leaf for leaf in reversed(context.leaves(declared).values()) if _is_of_hypervisor(leaf)]
        for (family, hypervisor), leaf in {leaf.path[:2]: leaf for leaf in leaves}.items():
            if hypervisor not in enabled.texts and (family, hypervisor) not in seen:
                seen.add((family, hypervisor))
                related = see(enabled.span, "enabled here")
                source = "the policy" if enabled.leaf else "the cluster"
                message = f"{family} describes {hypervisor}, which {source} does not enable"
                span = leaf.document.key_span(leaf.pointer[:2])
                hint = f"correct the name, or leave it out: {', '.join(enabled.texts)} is enabled"
                yield hit(declared, message, span, hint, related, missing=f"enabled {hypervisor}")


def _is_of_hypervisor(leaf: Leaf) -> bool:
    parameter = parameter_at(leaf.path) if leaf.path[0] == "hvparams" else None
    is_default = parameter is not None and leaf.value == parameter.default
    return leaf.path[0] in ("hv_state", "hvparams") and leaf.value is not INHERIT and not is_default


@warning("GP155")
def fake_hypervisor(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(ENABLED_HYPERVISORS):
        words = texts(leaf)
        if "fake" in words and len(words) > 1:
            message = "an instance of the hypervisor fake counts as running, but nothing runs"
            yield hit(declared, message, leaf.at(words.index("fake")), "remove fake")


@information("GP113", When.ASKED)
def state_without_effect(context: Context) -> Iterator[Hit]:
    for declared in context.policy.objects:
        own = context.leaves(declared).values()
        for family in ("hv_state", "disk_state"):
            leaf = next((leaf for leaf in own if leaf.path[0] == family), None)
            if leaf is not None:
                message = f"{family} has no effect in Ganeti; only gpolicy counts with it"
                yield hit(declared, message, leaf.document.key_span(leaf.pointer[:1]), _STATE_HINT)


@information("GP150", When.MORE_WITH_STATE)
def state_not_counted(context: Context) -> Iterator[Hit]:
    hypervisors = of_cluster(context, ENABLED_HYPERVISORS)
    group = volume_group(context)
    for declared in context.policy.objects:
        for prefix, leaf in _records(context, declared).items():
            span = leaf.document.key_span(leaf.pointer[: len(prefix)])
            if prefix[0] == "hv_state" and hypervisors is not None and prefix[1] in hypervisors.texts[1:]:
                message = f"the figures of {prefix[1]} are ignored: capacity counts those of"
                message += f" {hypervisors.texts[0]} only"
                yield hit(declared, message, span)
            if prefix[0] == "disk_state" and group and prefix[2] != group:
                message = f"the figures of {prefix[2]} are ignored: capacity counts the volume group {group} only"
                yield hit(declared, message, span)


def _records(context: Context, declared: Declared) -> dict[Path, Leaf]:
    """Return the hypervisors and volume groups that an object describes, each with one of its leaves."""
    leaves = [leaf for leaf in context.leaves(declared).values() if leaf.value is not INHERIT]
    return {leaf.path[:-1]: leaf for leaf in reversed(leaves) if leaf.path[0] in ("hv_state", "disk_state")}


@warning("GP151")
def state_beyond_total(context: Context) -> Iterator[Hit]:
    for declared in context.policy.objects:
        for prefix in _records(context, declared):
            for total_name, names in _PARTS.items():
                total = context.effective(declared, (*prefix, total_name))
                parts = [leaf for name in names if (leaf := context.effective(declared, (*prefix, name)))]
                kept = sum(number(leaf) for leaf in parts)
                own = [leaf for leaf in (*parts, total) if leaf and context.own(declared, leaf.path)]
                if total is None or not number(total) or not parts or kept < number(total) or not own:
                    continue
                what = " and ".join(leaf.path[-1] for leaf in parts)
                verb = "leave" if len(parts) > 1 else "leaves"
                sizes = [_shown(total_name, size) for size in (kept, number(total))]
                message = f"{what} ({sizes[0]}) {verb} nothing of {total_name} ({sizes[1]})"
                others = [leaf for leaf in (*parts, total) if leaf is not own[0]]
                related = tuple(Related(leaf.span, f"{leaf.path[-1]} is here") for leaf in others)
                yield hit(declared, message, own[0].span, "correct one of them", related)


@warning("GP153", When.MORE_WITH_STATE, explains=8)
def state_beyond_hardware(context: Context) -> Iterator[Hit]:
    own_group = volume_group(context)
    for declared in context.policy.objects:
        records = _records(context, declared)
        groups = {prefix[2] for prefix in records if prefix[0] == "disk_state"}
        promised = {own_group} if own_group or len(groups) > 1 else groups  # whose volumes the hardware has
        for prefix in records:
            if prefix[0] == "disk_state" and prefix[2] not in promised:
                continue
            for name in ("mem_total", "cpu_total", "disk_total"):
                leaf = context.own(declared, (*prefix, name))
                if leaf is not None:
                    yield from _compared(context, declared, leaf, name)


def _compared(context: Context, declared: Declared, leaf: Leaf, name: str) -> Iterator[Hit]:
    for group in groups_where(context, declared, leaf):
        promised = _promised(group.hardware)[name] if group.hardware else None
        has = promised.value if promised else 0
        least = has * (_LEAST_OF_DISK if name == "disk_total" else _LEAST_SHARE)
        much, little = number(leaf) > has, 0 < number(leaf) < least  # 0: not known
        sizes = [_shown(name, number(leaf)), _shown(name, has)]
        exchanged = sizes[0] != sizes[1] and sorted(sizes[0]) == sorted(sizes[1])
        if promised and has and (much or little or exchanged):
            only = "only " if little else ""
            message = f"{leaf.dotted} is {only}{sizes[0]}, but the promised hardware of {name_of(group)} is {sizes[1]}"
            hint = "its digits are exchanged in one of them" if exchanged else "correct the one that is wrong"
            yield hit(declared, message, leaf.span, hint, see(promised.span, "promised here"))
            return


def _shown(name: str, value: float) -> str:
    return str(int(value)) if name == "cpu_total" else amount("memory-size", int(value))


def _promised(hardware: Hardware) -> dict[str, Located[int] | None]:
    """Return what a node is promised to have, by the names of hv_state and disk_state."""
    return {"mem_total": hardware.memory, "cpu_total": hardware.cpus, "disk_total": promised_disk(hardware)}


@warning(
    "GP154",
    When.STATE,
    parameters=(RuleParameter("share", 1.1, "Report a figure above this factor of what the node reports."),),
)
def state_beyond_node(context: Context, share: float) -> Iterator[Hit]:
    own_group = volume_group(context)
    for path in sorted({leaf.path for _, leaf in context.explicit() if leaf.path[-1] in _MEASURED}):
        if path[0] == "disk_state" and path[2] != own_group:
            continue
        reported: set[int] = set()
        nodes = context.observed.nodes.values()
        measured = [(getattr(node.resources, _MEASURED[path[-1]]) or 0, node.name) for node in nodes]
        for has, name in sorted(measured):
            leaf = declared_for(context, name, path)
            if leaf is None or not has or id(leaf) in reported:
                continue
            if number(leaf) > has * share or (number(leaf) < has * _LEAST_SHARE and number(leaf) > 0):
                reported.add(id(leaf))
                only = "only " if number(leaf) < has else ""
                shown = [_shown(path[-1], value) for value in (number(leaf), has)]
                message = f"{leaf.dotted} is {only}{shown[0]}, but node {name} reports {shown[1]}"
                hint = "correct the figure, or declare it for fewer nodes"
                owner = next(item for item in context.policy.objects if item.leaves.get(leaf.path) is leaf)
                yield hit(owner, message, leaf.span, hint)
