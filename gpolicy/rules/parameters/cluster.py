"""GP10x, GP16x and others: parameters that only the cluster has, and the tools that compress moved instances."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import ENABLED_TEMPLATES, Context, number, texts
from gpolicy.checking.pairs import amount, nearest
from gpolicy.checking.rule import Hit, When, error, hit, see, warning
from gpolicy.findings import REFUSED
from gpolicy.ganeti.amounts import exact_size
from gpolicy.ganeti.vocabulary import Path
from gpolicy.guessing import is_one_slip
from gpolicy.policy.edits import fix, replace_value
from gpolicy.policy.kinds import Measure
from gpolicy.policy.model import promised_nodes
from gpolicy.rules.shared import IMAGES, conflict, of_cluster, together

_REPEATED_GROUP: Final = re.compile(r"\)[*+?{]")
"""What makes matching take exponential time: a repeat in a group that is repeated."""
HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*")
_TOOLS: Final = frozenset(
    {
        *("gzip", "gzip-fast", "gzip-slow", "bzip2", "lbzip2", "lz4", "lzop", "pbzip2", "pigz", "xz", "pixz"),
        *("zstd", "zstdmt", "lzip", "plzip", "pxz", "lzma", "brotli"),
    }
)
_DEFAULTS: Final[dict[Path, str]] = {
    ("beparams", "minmem"): "memory-size",
    ("beparams", "maxmem"): "memory-size",
    ("beparams", "vcpus"): "cpu-count",
    ("beparams", "spindle_use"): "spindle-use",
}


@error("GP104", stays=REFUSED)
def image_location(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*IMAGES):
        if not re.match(r"/|(https?|ftps?)://", str(leaf.value)):
            message = f"{leaf.dotted} is neither an absolute path nor an http or ftp URL"
            kept = "an image cannot be removed again: leave the key out"
            yield hit(declared, message, leaf.span, "write the full path or URL" if leaf.value else kept)


@error("GP108", When.MORE_WITH_STATE)
def backend_memory_reversed(context: Context) -> Iterator[Hit]:
    for declared, (low, high) in together(context, ("beparams", "minmem"), ("beparams", "maxmem")):
        if low.number > high.number:
            message = f"minmem {exact_size(int(low.number))} is above maxmem {exact_size(int(high.number))}"
            hint = "correct one; swap the two only if they are exchanged" if low.leaf and high.leaf else "declare both"
            yield conflict(context, declared, message, hint, low, high)


@error("GP109")
def reserved_lvs_pattern(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("reserved_lvs",)):
        for index, pattern in enumerate(texts(leaf)):
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                hint = "the expression must match the whole name vg/lv; escape special characters with a backslash"
                yield hit(declared, f"{pattern!r} is not a regular expression: {error}", leaf.at(index), hint)


@warning("GP160")
def reserved_lvs_reach(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("reserved_lvs",)):
        for index, pattern in enumerate(texts(leaf)):
            what, hint = _reach(pattern, _volume_groups(context, pattern))
            if what:
                yield hit(declared, f"{pattern!r} {what}", leaf.at(index), hint, missing=f"{what} in reserved_lvs")


def _reach(pattern: str, groups: set[str]) -> tuple[str, str]:
    """Return what is wrong with the volumes that an expression matches, and what to write; nothing if it is right."""
    if not re.search(r"[/.\[\]\\*+?(|]", pattern):
        return "matches no volume: it must match the whole name vg/lv", f"write the volume group first: vg/{pattern}"
    if pattern.startswith("/"):
        right = pattern.removeprefix("/dev").removeprefix("/")
        return "matches no volume: the name vg/lv has no slash before it", f"write {right}"
    odd = re.search(r"(?<!\\)[\s,:;@=]|/$|\\[rntfv]", re.sub(r"\[[^][]*\]|\{[^{}]*\}|\(\?.", "", pattern))
    if odd:
        return f"matches no volume: none has {odd[0]!r} there in its name", "write one expression an entry: vg/lv"
    names = "name the volumes that are not Ganeti's, such as vg/(root|swap)"
    if re.search(r"/[*?]", pattern):
        hint = f"write {pattern.replace('/*', '/.*')}" if "/*" in pattern else "write . for any letter"
        hint = names if pattern.endswith("/*") else hint
        return "is a glob: as a regular expression it matches no volume", hint
    if re.fullmatch(r"[\w./+-]++[*]", pattern) and pattern[-2:-1] not in (".", "/", "+"):
        return f"is a glob: as a regular expression it repeats {pattern[-2]!r}", f"write {pattern[:-1]}.*"
    if _lacks_group(pattern, groups):
        return "names no volume group, but must match the whole name vg/lv", f"write the group first: vg/{pattern}"
    if any(_covers(pattern, f"{group}/0a1b2c3d-4e5f-4071-8293-a4b5c6d7e8f9.disk0") for group in groups):
        return "also matches the volumes of instances: lost ones are never reported", names
    return "", ""


def _lacks_group(pattern: str, groups: set[str]) -> bool:
    """Return whether an expression begins with the name of a volume: that of a volume group mostly says vg."""
    name = re.match(r"[\w+-]*", pattern)
    begins = name is not None and any(group.startswith(name[0]) for group in groups)
    return "/" not in pattern and "vg" not in pattern and not begins


def _volume_groups(context: Context, pattern: str) -> set[str]:
    """Return the volume groups of instances that the pattern may be about.

    They are the declared one and that of DRBD's metadata; if the policy declares none, what stands before the slash
    may be it.
    """
    declared, (group, slash, _) = context.cluster_leaf(("volume_group_name",)), pattern.partition("/")
    metadata = {str(leaf.value) for _, leaf in context.explicit_at(("diskparams", "drbd", "metavg"))}
    return {*metadata, str(declared.value) if declared else (group if slash else "") or "xenvg"}


def _covers(pattern: str, volume: str) -> bool:
    """Return whether a pattern matches the name of a volume; False for one that might take for ever to try."""
    if len(pattern) > 200 or _REPEATED_GROUP.search(pattern) or len(re.findall(r"[*+?{]", pattern)) > 3:
        return False
    try:
        return re.fullmatch(pattern, volume) is not None
    except (re.error, OverflowError, RecursionError):
        return False  # GP109


@warning("GP163")
def backend_defaults_outside(context: Context) -> Iterator[Hit]:
    cluster = context.policy.cluster
    pairs = [pair for item in context.cluster_and_groups for pair in context.pairs(item)]
    declared = {path: leaf for path in _DEFAULTS if (leaf := context.cluster_leaf(path)) is not None}
    if cluster is None or not context.pairs(cluster) or not declared or not all(pair.possible for pair in pairs):
        return
    wanted = [(_DEFAULTS[path], int(number(leaf))) for path, leaf in declared.items()]
    if not all(pair.outside(wanted) for pair in pairs):
        return
    pair = nearest(pairs, wanted)
    leaf = next(leaf for leaf, size in zip(declared.values(), wanted, strict=True) if pair.outside([size]))
    size = ", ".join(f"{path[-1]} {amount(*item)}" for path, item in zip(declared, wanted, strict=True))
    message = f"no size allows the default instance ({size}); {pair.misfit(wanted)}"
    yield hit(cluster, message, leaf.span, "choose defaults inside a size: most instances are small", pair.here)


@warning("GP149", When.MORE_WITH_STATE)
def job_limits_reversed(context: Context) -> Iterator[Hit]:
    for declared, (tracked, running) in together(context, ("max_tracked_jobs",), ("max_running_jobs",)):
        if tracked.number < running.number:
            message = f"max_tracked_jobs {tracked.value} is below max_running_jobs {running.value}"
            yield conflict(context, declared, message, f"write {running.value} or more", tracked, running)


@warning("GP164")
def cluster_name_impossible(context: Context) -> Iterator[Hit]:
    cluster = context.policy.cluster
    name = cluster.name if cluster is not None else ""
    is_word = name in ("none", "null", "default", "inherit", "localhost")
    if cluster is not None and (is_word or name != name.lower() or not HOST_NAME.fullmatch(name)):
        is_upper = HOST_NAME.fullmatch(name) and not is_word
        reason = "Ganeti writes it in lower case" if is_upper else "it is not a host name"
        hint = "write the name that `gnt-cluster info` shows"
        yield hit(cluster, f"no cluster can be called {name!r}: {reason}", cluster.span, hint)


@warning("GP192", When.MORE_WITH_STATE)
def candidate_pool_of_one(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("candidate_pool_size",)):
        named = {name for group in context.groups for name in promised_nodes(group) or ()}
        nodes = len(context.state.nodes if context.state else named)
        enabled = of_cluster(context, ENABLED_TEMPLATES)
        several = sum(bool(group.nodes) for group in context.groups) > 1 or (enabled and "drbd" in enabled.texts)
        if number(leaf) == 1 and (nodes > 1 or (not context.state and several)):
            of = f"{nodes} nodes" if nodes > 1 else "several nodes"
            message = f"candidate_pool_size is 1: of {of} only the master has the configuration"
            yield hit(declared, message, leaf.span, "write how many nodes are to have it, such as 10")


@warning("GP193")
def auto_balance_off(context: Context) -> Iterator[Hit]:
    limits = (item.limits.get("max_node_failures") for item in context.cluster_and_groups)
    wanted = [limit.span for limit in limits if limit is not None and limit.value > 0]
    wanted += [guard.span for guard in context.policy.guards if guard.measure is Measure.NODE_FAILURES]
    for declared, leaf in context.explicit_at(("beparams", "auto_balance")) if wanted else ():
        if leaf.value is False:
            message = "auto_balance is off: new instances do not count for the failures that the policy wants survived"
            yield hit(declared, message, leaf.span, "write true, or leave it out", see(wanted[0], "wanted here"))


@error("GP105", stays=REFUSED)
def compression_without_gzip(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("compression_tools",)):
        if "gzip" not in texts(leaf):
            tools, add = ["gzip", *texts(leaf)], None
            if all(re.fullmatch(r"[a-z][a-z0-9-]*", tool) for tool in tools):
                add = fix("add gzip", replace_value(leaf.document, leaf.pointer, f"[{', '.join(tools)}]"))
            yield hit(declared, "compression_tools lacks gzip", leaf.span, "add gzip", fix=add)


@warning("GP187")
def compression_tool_misspelt(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("compression_tools",)):
        for index, tool in enumerate(texts(leaf)):
            near = [known for known in _TOOLS if len(tool) > 2 and is_one_slip(tool, known)]
            if len(near) == 1 and tool not in _TOOLS:
                message = f"{tool} is no usual compression tool"
                yield hit(declared, message, leaf.at(index), f"Did you mean `{near[0]}`?")


@error("GP165", stays=REFUSED)
def compression_tool_name(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("compression_tools",)):
        for index, tool in enumerate(texts(leaf)):
            if tool == "none":
                message = "none means no compression: it is not a tool"
                yield hit(declared, message, leaf.at(index), "leave it out: it can always be chosen")
            elif not re.fullmatch(r"[A-Za-z0-9_-]+", tool):
                message = f"{tool!r} cannot be the name of a compression tool"
                yield hit(declared, message, leaf.at(index), "write the program's name: letters, digits, - and _")
