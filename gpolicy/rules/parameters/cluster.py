"""GP10x, GP16x, GP18x and others: parameters that only the cluster has, the tools that compress moved instances, and
the network of the cluster, of its nodes and of its instances; parameters of nodes.
"""

import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.pairs import amount, nearest
from gpolicy.checking.rule import Hit, Same, When, error, hit, information, see, warning
from gpolicy.findings import REFUSED, Role
from gpolicy.ganeti.amounts import exact_size
from gpolicy.ganeti.releases import release_key
from gpolicy.ganeti.vocabulary import ENABLED_HYPERVISORS, ENABLED_TEMPLATES, Path, known_words
from gpolicy.guessing import did_you_mean_one_of, is_one_slip
from gpolicy.policy.edits import fix, replace_value
from gpolicy.policy.kinds import Measure
from gpolicy.policy.model import promised_nodes
from gpolicy.rules.shared import HELPER, IMAGES, MOST_BITS, conflict, in_force, of_cluster, together

_REPEATED_GROUP: Final = re.compile(r"\)[*+?{]")
"""What makes matching take exponential time: a repeat in a group that is repeated."""
HOST_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*")
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


@error("GP108", When.MORE_WITH_STATE, explains=100, role=Role.ALSO_RELATED)
def backend_memory_reversed(context: Context) -> Iterator[Hit]:
    for declared, (low, high) in together(context, ("beparams", "minmem"), ("beparams", "maxmem")):
        if low.number > high.number:
            message = f"minmem {exact_size(int(low.number))} is above maxmem {exact_size(int(high.number))}"
            hint = "correct one; swap the two only if they are exchanged" if low.leaf and high.leaf else "declare both"
            yield conflict(context, declared, message, hint, low, high)


@error("GP109")
def reserved_lvs_pattern(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("reserved_lvs",)):
        for index, pattern in enumerate(leaf.texts):
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                hint = "the expression must match the whole name vg/lv; escape special characters with a backslash"
                yield hit(declared, f"{pattern!r} is not a regular expression: {error}", leaf.at(index), hint)


@warning("GP160")
def reserved_lvs_reach(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("reserved_lvs",)):
        for index, pattern in enumerate(leaf.texts):
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


@warning("GP163", better=((Same.LABEL, ("GP205",)),))
def backend_defaults_outside(context: Context) -> Iterator[Hit]:
    cluster = context.policy.cluster
    pairs = [pair for item in context.cluster_and_groups for pair in context.pairs(item)]
    declared = {path: leaf for path in _DEFAULTS if (leaf := context.cluster_leaf(path)) is not None}
    if cluster is None or not context.pairs(cluster) or not declared or not all(pair.possible for pair in pairs):
        return
    wanted = [(_DEFAULTS[path], int(leaf.number)) for path, leaf in declared.items()]
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
    of_one = (item for item in context.explicit_at(("candidate_pool_size",)) if item[1].number == 1)
    for declared, leaf in of_one:
        named = {name for group in context.groups for name in promised_nodes(group) or ()}
        nodes = len(context.state.nodes if context.state else named)
        enabled = of_cluster(context, ENABLED_TEMPLATES)
        several = sum(bool(group.nodes) for group in context.groups) > 1 or (enabled and "drbd" in enabled.texts)
        if nodes > 1 or (not context.state and several):
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
        if "gzip" not in leaf.texts:
            tools, add = ["gzip", *leaf.texts], None
            if all(re.fullmatch(r"[a-z][a-z0-9-]*", tool) for tool in tools):
                add = fix("add gzip", replace_value(leaf.document, leaf.pointer, f"[{', '.join(tools)}]"))
            yield hit(declared, "compression_tools lacks gzip", leaf.span, "add gzip", fix=add)


@warning("GP187")
def compression_tool_misspelt(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("compression_tools",)):
        for index, tool in enumerate(leaf.texts):
            near = [known for known in known_words("compression_tools") if len(tool) > 2 and is_one_slip(tool, known)]
            if len(near) == 1 and tool not in known_words("compression_tools"):
                message = f"{tool} is no usual compression tool"
                yield hit(declared, message, leaf.at(index), f"Did you mean `{near[0]}`?")


@error("GP165", stays=REFUSED)
def compression_tool_name(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("compression_tools",)):
        for index, tool in enumerate(leaf.texts):
            if tool == "none":
                message = "none means no compression: it is not a tool"
                yield hit(declared, message, leaf.at(index), "leave it out: it can always be chosen")
            elif not re.fullmatch(r"[A-Za-z0-9_-]+", tool):
                message = f"{tool!r} cannot be the name of a compression tool"
                yield hit(declared, message, leaf.at(index), "write the program's name: letters, digits, - and _")


_MODE: Final[Path] = ("nicparams", "mode")
_LINK: Final[Path] = ("nicparams", "link")
_VLAN: Final[Path] = ("nicparams", "vlan")
_BRIDGE_NAME: Final = re.compile(r"(xen-?|vir)?br([0-9]+|[-_.]\w+)|bridge\w*|ovsbr\w*|vmbr[0-9]+")
_CARD: Final = re.compile(r"(eth|bond|team)[0-9]+|en[ops][0-9][0-9a-z]*|enx[0-9a-f]{12}")
"""Names of network cards, and of several cards as one: not of bridges."""
_MOST_BYTES: Final = 15
OVS_NAME: Final[Path] = ("ndparams", "ovs_name")
OVS_LINK: Final[Path] = ("ndparams", "ovs_link")
_MASTER: Final[Path] = ("master_netdev",)
OVS: Final[Path] = ("ndparams", "ovs")


@error("GP161")
def mac_prefix_multicast(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("mac_prefix",)):
        first = re.match(r"[0-9a-f]{2}(?=:)", str(leaf.value))
        if first and int(first[0], 16) & 1:
            message = f"addresses that start with {first[0]} are multicast: no interface can have one"
            yield hit(declared, message, leaf.span, "write an even first octet, such as aa:00:00")


@error("GP162", stays=REFUSED)
def netmask_range(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("master_netmask",)):
        if leaf.number > MOST_BITS:
            message = f"master_netmask is {leaf.value}: no address has so many bits"
            yield hit(declared, message, leaf.span, "write the prefix length, such as 24")


@error("GP166", When.MORE_WITH_STATE, stays=REFUSED)
def bridge_missing(context: Context) -> Iterator[Hit]:
    for declared, (link, mode) in together(context, _LINK, _MODE):
        if mode.value == "bridged" and not link.value:
            message = "bridged network interfaces need a bridge in link"
            yield conflict(context, declared, message, "write the name of the bridge", link, mode)


@warning("GP167")
def vlan_form(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(_VLAN):
        text = str(leaf.value)
        numbers = [int(digits) for digits in re.findall("[0-9]{1,9}", text)]
        formed = re.fullmatch(r"\.?[0-9]{1,4}|(\.[0-9]{1,4})?(:[0-9]{1,4})+", text)
        if text and not (formed and all(1 <= number <= 4094 for number in numbers)):
            hint = 'write "100" for an access port, or write ":100:200" for a trunk, or write ".100:200" for both'
            yield hit(declared, f"vlan is {text!r}, which is not a VLAN setting", leaf.span, hint)


@warning("GP168", When.MORE_WITH_STATE)
def vlan_ignored(context: Context) -> Iterator[Hit]:
    for declared, (vlan, mode) in together(context, _VLAN, _MODE):
        bridges_vlans = release_key(context.version) >= release_key("3.0")  # since then Ganeti gives them to a bridge
        is_read = mode.value == "openvswitch" or (mode.value == "bridged" and bridges_vlans)
        if vlan.value and not is_read:
            message = f"vlan {vlan.value} has no effect with mode {mode.value}"
            hint = "write mode: openvswitch, or a bridge of that VLAN as link"
            yield conflict(context, declared, message, hint, vlan, mode)


@warning("GP169", When.MORE_WITH_STATE)
def routed_bridge(context: Context) -> Iterator[Hit]:
    for declared, (mode, link) in together(context, _MODE, _LINK):
        text = str(link.value)
        is_table = re.fullmatch(r"[0-9]{1,10}|[A-Za-z_][\w.-]*", text) and not _BRIDGE_NAME.fullmatch(text)
        if mode.value == "routed" and text and not (is_table and not _CARD.fullmatch(text)):
            message = f"link {link.value} is no routing table, but mode routed wants one"
            yield conflict(context, declared, message, "write the table, or mode: bridged", link, mode)


def _card_meant(name: str) -> str:
    """Return what to write instead of a name that is almost one of a network card; nothing if it is none."""
    parts = re.fullmatch(r"([A-Za-z]+)([0-9]*)", name)
    stem, number = (parts[1], parts[2]) if parts else ("", "")
    if not number:
        return "write its number as well" if stem in ("bond", "eno", "ens", "eth") else ""
    if stem.isupper() and stem.lower() in ("bond", "br", "eth"):
        return f"Did you mean `{name.lower()}`?"
    if stem != "bond" and set(stem) <= set("bond") and is_one_slip(stem, "bond"):
        return f"Did you mean `bond{number[:4]}`?"
    is_slip = stem != "eth" and set(stem.lower()) <= set("eth") and is_one_slip(stem, "eth")
    is_eth = is_slip or (stem == "eth" and number[0] == "0" and len(number) > 1)
    return f"Did you mean `eth{int(number[:4])}`?" if is_eth else ""


@warning("GP183")
def interface_name(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("master_netdev",), OVS_NAME, OVS_LINK, _LINK):
        name = str(leaf.value)
        mode = context.effective(declared, _MODE) if leaf.path == _LINK else None
        if mode is not None and mode.value == "routed":
            continue  # a routing table
        if len(name.encode()) > _MOST_BYTES:
            reason, hint = f"Linux allows {_MOST_BYTES} bytes", "write the name that `ip link` shows"
        elif re.search(r"[/:,\s]", name) or name in (".", ".."):
            reason = "it is one name, without slash, colon, comma or blank"
            hint = f"write {re.split('[:/, ]', name.removeprefix('/dev/'))[0] or 'the name alone'}"
        elif name and not re.match(r"\w[\w.+@-]*$", name):
            reason, hint = "no interface has such a name", "write the name that `ip link` shows"
        elif meant := _card_meant(name):
            reason, hint = "Linux gives no card such a name", meant
        elif name == "lo":
            reason, hint = "nothing outside of a node reaches its loopback", "write the interface of the network"
        else:
            continue
        yield hit(declared, f"{leaf.dotted} cannot be {name!r}: {reason}", leaf.span, hint)


@warning("GP184", When.MORE_WITH_STATE)
def link_is_card(context: Context) -> Iterator[Hit]:
    hypervisors = of_cluster(context, ENABLED_HYPERVISORS)
    no_xen = hypervisors is not None and not any(name.startswith("xen") for name in hypervisors.texts)
    for declared, (link, mode) in together(context, _LINK, _MODE):
        is_table = str(link.value).isdecimal()
        is_card = no_xen and _CARD.fullmatch(str(link.value))
        if mode.value == "bridged" and (is_table or is_card):
            what = "routing table" if is_table else "network card"
            message = f"link {link.value} is a {what}, but mode bridged wants a bridge"
            yield conflict(context, declared, message, "write the bridge, such as br0", link, mode)


@warning("GP190", When.MORE_WITH_STATE | When.WHOLE)
def link_is_no_switch(context: Context) -> Iterator[Hit]:
    switches = sorted({str(leaf.value) for _, leaf in context.explicit_at(OVS_NAME)})
    for declared, (link, mode) in together(context, _LINK, _MODE):
        if mode.value == "openvswitch" and switches and link.value and link.value not in switches:
            message = f"no node has the Open vSwitch bridge {link.value}, by ovs_name"
            hint = did_you_mean_one_of(str(link.value), "bridges", switches)
            yield conflict(context, declared, message, hint, link, mode)


@warning("GP140")
def path_not_absolute(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(("ndparams", "oob_program"), HELPER):
        text = str(leaf.value)
        if leaf.path == HELPER and (enabled := of_cluster(context, ENABLED_TEMPLATES)) and "drbd" in enabled.texts:
            continue  # GP305
        if text and not text.startswith("/"):
            message = f"{leaf.dotted} is {text!r}, which is not an absolute path"
            yield hit(declared, message, leaf.span, "write the whole path, starting with /")
        elif " " in text:
            message = f"{leaf.dotted} is {text!r}: Ganeti runs it as it is written, without arguments"
            yield hit(declared, message, leaf.span, "write a script that adds the arguments")


@warning("GP142", When.MORE_WITH_STATE | When.WHOLE)
def ovs_incomplete(context: Context) -> Iterator[Hit]:
    for declared in context.cluster_and_groups:
        switch = in_force(context, declared, OVS)
        if switch is None or switch.value is not True:
            continue
        for path, lack in ((OVS_NAME, "no name"), (OVS_LINK, "no interface: its instances reach only each other")):
            value = in_force(context, declared, path)
            is_own = context.own(declared, path) or context.own(declared, OVS)
            if value is not None and value.value == "" and is_own:
                message = f"the Open vSwitch bridge has {lack}"
                yield conflict(context, declared, message, f"write {path[-1]}", value, switch)
        own_switch = context.own(declared, OVS)
        if own_switch is not None and context.state is None and not context.declares(OVS_LINK):
            message = "the Open vSwitch bridge has no interface: ovs_link is not declared"
            yield hit(declared, message, own_switch.span, "declare ovs_link")
    for declared, (name, link) in together(context, OVS_NAME, OVS_LINK):
        if name.value == link.value != "":
            message = f"the bridge and the interface that it uses are both {name.value}"
            yield conflict(context, declared, message, "name a network interface of the node", link, name)
    for declared, (master, link) in together(context, _MASTER, OVS_LINK):
        switch = in_force(context, declared, OVS)
        if master.value == link.value != "" and switch is not None and switch.value is True:
            message = f"the bridge takes the interface {link.value}, which has the master's address"
            yield conflict(context, declared, message, "name another interface in one of them", link, master)


@warning("GP143", When.MORE_WITH_STATE)
def ovs_parameter_ignored(context: Context) -> Iterator[Hit]:
    for declared in context.cluster_and_groups:
        switch = in_force(context, declared, OVS)
        is_off = switch is not None and switch.value is False
        for path, default in ((OVS_NAME, "switch1"), (OVS_LINK, "")) if is_off else ():
            leaf = context.own(declared, path)
            if leaf is not None and leaf.value not in ("", default):
                message, switch_of = f"{path[-1]} is not used: ovs is false", f"ovs of {declared.label}"
                yield hit(declared, message, leaf.span, "leave it out, or turn ovs on", missing=switch_of)


@information("GP144")
def ovs_on_node_add(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(OVS):
        if leaf.value is True:
            message = "only nodes that are added later get an Open vSwitch bridge"
            yield hit(declared, message, leaf.span, "create it by hand on existing nodes")
