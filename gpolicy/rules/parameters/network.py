"""GP16x, GP18x and others: the network of the cluster, of its nodes and of its instances; parameters of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import ENABLED_HYPERVISORS, ENABLED_TEMPLATES, Context, number
from gpolicy.checking.rule import Hit, When, error, hit, information, warning
from gpolicy.findings import REFUSED
from gpolicy.ganeti.vocabulary import Path
from gpolicy.guessing import did_you_mean_one_of, is_one_slip
from gpolicy.rules.shared import HELPER, MOST_BITS, conflict, in_force, of_cluster, together

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
_PATHS: Final[tuple[Path, ...]] = (("ndparams", "oob_program"), HELPER)


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
        if number(leaf) > MOST_BITS:
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
        if vlan.value and mode.value != "openvswitch":
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
    for declared, leaf in context.explicit_at(*_PATHS):
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
