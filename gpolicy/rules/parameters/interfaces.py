"""GP1xx: the defaults of instances' network interfaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.in_force import places, together
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import RuleInfo, Severity
from gpolicy.ganeti.parameter import Path
from gpolicy.rules.parameters.values import CLUSTER

_MODE: Final[Path] = ("nicparams", "mode")
_LINK: Final[Path] = ("nicparams", "link")
_VLAN: Final[Path] = ("nicparams", "vlan")


class BridgeMissing(Rule):
    """Bridged interfaces without a bridge."""

    info = RuleInfo(
        code="GP166",
        name="bridge-missing",
        severity=Severity.ERROR,
        summary="Network interfaces are bridged, and their link is empty.",
        rationale="The link names the bridge. Ganeti refuses an empty one in this mode; routed interfaces need none.",
        source="Ganeti 3.0.2, run",
        bad=f'{CLUSTER}nicparams: {{mode: bridged, link: ""}}\n',
        good=f"{CLUSTER}nicparams: {{mode: bridged, link: br0}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, (link, mode) in together(context, _LINK, _MODE):
            if mode.value == "bridged" and not link.value:
                place, related, note = places(context, declared, link, mode)
                message = f"bridged network interfaces need a bridge in link{note}"
                yield self.hit(declared, message, place, hint="write the name of the bridge", related=related)


_MOST_VLAN: Final = 4094


class VlanForm(Rule):
    """A VLAN that no port can be given."""

    info = RuleInfo(
        code="GP167",
        name="vlan-form",
        severity=Severity.WARNING,
        summary="vlan is not in the form in which ports are given their VLANs.",
        rationale="`n` or `.n` is an access port of VLAN n, `:n:m` a trunk of VLANs n and m, `.n:m` both. Ganeti stores"
        " any text; the interface cannot be set up when an instance starts. VLANs are 1 to 4094.",
        source="gnt-instance(8), vlan; Ganeti 3.0.2, run: it stores any text",
        bad=f'{CLUSTER}nicparams: {{mode: openvswitch, vlan: "100,200"}}\n',
        good=f'{CLUSTER}nicparams: {{mode: openvswitch, vlan: ":100:200"}}\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:  # noqa: D102
        for declared, leaf in context.explicit_at(_VLAN):
            text = str(leaf.value)
            numbers = [int(digits) for digits in re.findall("[0-9]{1,9}", text)]
            formed = re.fullmatch(r"\.?[0-9]{1,4}|(\.[0-9]{1,4})?(:[0-9]{1,4})+", text)
            if text and not (formed and all(1 <= number <= _MOST_VLAN for number in numbers)):
                message = f"vlan is {text!r}, which no port can be given"
                hint = 'write "n" for an access port, ":n:m" for a trunk, ".n:m" for both; 1 to 4094'
                yield self.hit(declared, message, leaf.span, hint=hint)


INTERFACE_RULES: Final = (BridgeMissing(), VlanForm())
