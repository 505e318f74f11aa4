"""GP1xx: node parameters (resource model, "Node parameters"; gnt-node(8))."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.in_force import in_force, places, together
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import info_rule, warning_rule
from gpolicy.ganeti.parameter import Path
from gpolicy.rules.examples import CLUSTER, GROUP

HELPER: Final[Path] = ("drbd_usermode_helper",)
_MASTER: Final[Path] = ("master_netdev",)
OVS: Final[Path] = ("ndparams", "ovs")
OVS_NAME: Final[Path] = ("ndparams", "ovs_name")
OVS_LINK: Final[Path] = ("ndparams", "ovs_link")
_OVS_SOURCE: Final = "Ganeti 3.0, gnt-node(8) add, and Open vSwitch support"


class PathNotAbsolute(Rule):
    info = warning_rule("GP140", "path-not-absolute")(
        summary="A program is not an absolute path.",
        rationale="Ganeti runs the out-of-band program without a shell: with a relative path or with arguments every"
        " power command fails. Where drbd is enabled, Ganeti refuses such a DRBD helper (GP305).",
        source="Ganeti 3.0, run: oob_program is stored unchecked",
        bad=f'{GROUP}ndparams: {{oob_program: "ipmi-power --quiet"}}\n',
        good=f"{GROUP}ndparams: {{oob_program: /usr/local/sbin/ipmi-power}}\n",
    )
    _PATHS: Final[tuple[Path, ...]] = (
        ("ndparams", "oob_program"),
        HELPER,
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(*self._PATHS):
            text = str(leaf.value)
            if leaf.path == HELPER and (enabled := context.enabled_templates()) and "drbd" in enabled.values:
                continue  # GP305
            if text and not text.startswith("/"):
                message = f"{leaf.dotted} is {text!r}, which is not an absolute path"
                yield self.hit(declared, message, leaf.span, hint="write the whole path, starting with /")
            elif " " in text:
                message = f"{leaf.dotted} is {text!r}: Ganeti runs it as it is written, without arguments"
                yield self.hit(declared, message, leaf.span, hint="write a script that adds the arguments")


class OvsIncomplete(Rule):
    info = warning_rule("GP142", "ovs-incomplete")(
        summary="Open vSwitch is on, but its bridge has no name or no network interface, or both are the same, or the"
        " interface has the cluster's own address.",
        rationale="When a node is added, Ganeti creates the bridge ovs_name and connects it to the interface ovs_link."
        " Without a name there is no bridge; without a link its instances reach nothing outside the node. An interface"
        " in a bridge has no address of its own, so the master's address on it would be cut off.",
        source=_OVS_SOURCE,
        bad=f'{GROUP}ndparams: {{ovs: true, ovs_name: switch1, ovs_link: ""}}\n',
        good=f"{GROUP}ndparams: {{ovs: true, ovs_name: switch1, ovs_link: eth1}}\n",
    )
    finds_more_with_state = True
    needs_whole_policy = True

    def check(self, context: Context) -> Iterator[Hit]:
        for declared in context.cluster_and_groups:
            switch = in_force(context, declared, OVS)
            if switch is None or switch.value is not True:
                continue
            for path, lack in ((OVS_NAME, "no name"), (OVS_LINK, "no interface: its instances reach only each other")):
                value = in_force(context, declared, path)
                is_own = context.own(declared, path) or context.own(declared, OVS)
                if value is not None and value.value == "" and is_own:
                    place, related, note = places(context, declared, value, switch)
                    message = f"the Open vSwitch bridge has {lack}{note}"
                    yield self.hit(declared, message, place, hint=f"write {path[-1]}", related=related)
            own_switch = context.own(declared, OVS)
            if own_switch is not None and context.state is None and not context.declares(OVS_LINK):
                message = "the Open vSwitch bridge has no interface: ovs_link is not declared"
                yield self.hit(declared, message, own_switch.span, hint="write ovs_link")
        for declared, (name, link) in together(context, OVS_NAME, OVS_LINK):
            if name.value == link.value != "":
                place, related, note = places(context, declared, link, name)
                message = f"the bridge and the interface that it uses are both {name.value}{note}"
                yield self.hit(declared, message, place, hint="name a network interface of the node", related=related)
        for declared, (master, link) in together(context, _MASTER, OVS_LINK):
            switch = in_force(context, declared, OVS)
            if master.value == link.value != "" and switch is not None and switch.value is True:
                place, related, note = places(context, declared, link, master)
                message = f"the bridge takes the interface {link.value}, which has the master's address{note}"
                yield self.hit(declared, message, place, hint="name another interface in one of them", related=related)


class OvsIgnored(Rule):
    info = warning_rule("GP143", "ovs-parameter-ignored")(
        summary="ovs_name or ovs_link is set, but Open vSwitch is off.",
        rationale="Ganeti reads them only when it adds a node, and only if ovs is true.",
        source=_OVS_SOURCE,
        bad=f"{GROUP}ndparams: {{ovs: false, ovs_link: eth1}}\n",
        good=f"{GROUP}ndparams: {{ovs: true, ovs_link: eth1}}\n",
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for declared in context.cluster_and_groups:
            switch = in_force(context, declared, OVS)
            for path, default in ((OVS_NAME, "switch1"), (OVS_LINK, "")):
                leaf = context.own(declared, path)
                if (
                    leaf is not None
                    and switch is not None
                    and switch.value is False
                    and leaf.value not in ("", default)
                ):
                    message = f"{path[-1]} is not used: ovs is false"
                    yield self.hit(declared, message, leaf.span, hint="leave it out, or turn ovs on")


class OvsOnNodeAdd(Rule):
    info = info_rule("GP144", "ovs-on-node-add")(
        summary="Open vSwitch is turned on, but only nodes that are added later get the bridge.",
        rationale="Ganeti creates the bridge while it adds a node, and reads the parameter at no other time. On"
        " existing nodes you have to create the bridge yourself.",
        source=_OVS_SOURCE,
        bad=f"{CLUSTER}ndparams: {{ovs: true, ovs_link: eth1}}\n",
        good=f"{CLUSTER}ndparams: {{ovs: false}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(OVS):
            if leaf.value is True:
                message = "only nodes that are added later get an Open vSwitch bridge"
                yield self.hit(declared, message, leaf.span, hint="create it by hand on existing nodes")
