"""GP1xx: hypervisor parameters that Ganeti holds against one another, or against more than a list or a form.

Seen by giving the checks of the hypervisors of Ganeti 3.0.2 all pairs of parameters (gnt-instance(8) says why).
A cluster's defaults are checked as a whole whenever one of them is set, enabled hypervisor or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from gpolicy.checking.context import Context, number
from gpolicy.checking.in_force import in_force, together
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import REFUSED, error_rule, warning_rule
from gpolicy.ganeti.parameter import Path, Value
from gpolicy.ganeti.parameters import PARAMETERS, kvm
from gpolicy.ganeti.releases import release_key
from gpolicy.ganeti.tables.hypervisors import SERIAL_SPEEDS
from gpolicy.ganeti.values import as_word
from gpolicy.policy.promised import promised_nodes
from gpolicy.rules.examples import CLUSTER
from gpolicy.rules.shapes import MoreWithState, WholePolicyRule, contradiction
from gpolicy.rules.shared import default_of

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

_SOURCE: Final = "Ganeti 3.0.2, run: the checks of its hypervisors; gnt-instance(8)"
_MASKS: Final[tuple[Path, ...]] = tuple(
    parameter.path for parameter in PARAMETERS if parameter.path[0] == "hvparams" and parameter.path[2] == "cpu_mask"
)
_LOOPBACK: Final = "127.0.0.1"
_OF_XEN: Final[Path] = ("hvparams", "xen-hvm", "vnc_bind_address")
"""Its form is part of the parameter table."""


@dataclass(frozen=True, slots=True)
class _Contradiction:
    """Values of two parameters that Ganeti does not take together. `since`: the first release that checks it."""

    refused: Callable[[Value, Value], bool]
    message: str
    hint: str
    since: str = "2.15"


_CONTRADICTIONS: Final = {
    ("security_domain", "security_model"): _Contradiction(
        lambda domain, model: bool(domain) and model != "user",
        "security_domain requires security_model user",
        "write security_model: user, or an empty security_domain",
    ),
    ("security_model", "security_domain"): _Contradiction(
        lambda model, domain: model == "user" and not domain,
        "security_model user requires a user name in security_domain",
        "name the user that instances run as",
    ),
    ("disk_aio", "disk_cache"): _Contradiction(
        lambda aio, cache: aio == "native" and cache != "none",
        "disk_aio native requires disk_cache none",
        "write disk_cache: none, or disk_aio: threads",
        since="3.0",
    ),
    ("vnc_x509_verify", "vnc_x509_path"): _Contradiction(
        lambda verify, path: verify is True and not path,
        "vnc_x509_verify requires vnc_x509_path",
        "name the directory of the certificates",
    ),
    ("boot_order", "cdrom_image_path"): _Contradiction(
        lambda order, image: order == "cdrom" and not image,
        "instances are to boot from a CD-ROM, but cdrom_image_path is empty",
        "name an image, or boot from disk",
    ),
    ("root_path", "kernel_path"): _Contradiction(
        lambda root, kernel: bool(kernel) and not root,
        "an external kernel (kernel_path) requires a root device in root_path",
        'name the device, or write kernel_path: "" for the instance\'s own boot loader',
    ),
    ("vnc_bind_address", "spice_bind"): _Contradiction(
        lambda vnc, spice: bool(vnc) and bool(spice),
        "an instance has a VNC or a SPICE console, not both",
        "leave one of vnc_bind_address and spice_bind empty",
    ),
    ("spice_ip_version", "spice_bind"): _Contradiction(
        lambda version, bind: (version, _ip_version(bind)) in {(4, 6), (6, 4)},
        "spice_bind and spice_ip_version have different IP versions",
        "write 4 for an IPv4 address, 6 for an IPv6 one",
    ),
}


_OF_SPICE: Final = {
    (parameter.path[2], "spice_bind"): _Contradiction(
        lambda value, bind: bool(value) and not bind,
        f"{parameter.path[2]} needs spice_bind, which is empty",
        "write the address or interface of the consoles into spice_bind",
    )
    for parameter in PARAMETERS
    if parameter.path[:2] == ("hvparams", "kvm")
    and parameter.path[2].startswith("spice_")
    and parameter.default in ("", 0, False)
    and parameter.path[2] != "spice_bind"
}
"""Parameters of SPICE that Ganeti refuses without an address: those that are empty or off by themselves."""


def _checked(
    context: Context, *tables: Mapping[tuple[str, str], _Contradiction]
) -> Iterator[tuple[Path, Path, _Contradiction]]:
    """Yield what the release refuses of values of KVM, with the two parameters."""
    for (first, second), item in (entry for table in tables for entry in table.items()):
        if release_key(context.version) >= release_key(item.since):
            yield kvm(first), kvm(second), item


class _RefusedTogether(MoreWithState):
    table: ClassVar[Mapping[tuple[str, str], _Contradiction]]

    def check(self, context: Context) -> Iterator[Hit]:
        for first, second, item in _checked(context, self.table):
            for declared, values in together(context, first, second):
                if item.refused(*(value.value for value in values)):
                    yield contradiction(self, context, declared, item.message, item.hint, *values)


class HypervisorContradiction(_RefusedTogether):
    info = error_rule("GP170", "hypervisor-parameters-contradict", REFUSED)(
        summary="Two parameters of KVM contradict each other.",
        rationale="Each parameter is valid alone, but Ganeti refuses a command with both. gpolicy knows values that"
        " the policy leaves out only with `--state`.",
        source=_SOURCE,
        bad=f"{CLUSTER}hvparams:\n  kvm: {{disk_aio: native, disk_cache: writeback}}\n",
        good=f"{CLUSTER}hvparams:\n  kvm: {{disk_aio: native, disk_cache: none}}\n",
    )
    table = _CONTRADICTIONS


class SpiceWithoutBind(_RefusedTogether):
    info = error_rule("GP171", "spice-without-bind", REFUSED)(
        summary="A SPICE parameter is set, but spice_bind is empty.",
        rationale="spice_bind gives instances a SPICE console. Without it Ganeti refuses the other parameters.",
        source=_SOURCE,
        bad=f'{CLUSTER}hvparams:\n  kvm: {{spice_bind: "", spice_use_tls: true}}\n',
        good=f"{CLUSTER}hvparams:\n  kvm: {{spice_bind: 127.0.0.1, spice_use_tls: true}}\n",
    )
    table = _OF_SPICE


class SerialSpeed(MoreWithState):
    info = error_rule("GP172", "serial-speed", REFUSED)(
        summary="serial_speed is not a speed of a serial line.",
        rationale="Ganeti refuses the value if instances have a serial console. Without one it does not read it.",
        source=_SOURCE,
        bad=f"{CLUSTER}hvparams:\n  kvm: {{serial_speed: 9200}}\n",
        good=f"{CLUSTER}hvparams:\n  kvm: {{serial_speed: 9600}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(kvm("serial_speed")):
            console = in_force(context, declared, kvm("serial_console"))
            if number(leaf) not in SERIAL_SPEEDS and not (console and console.value is False):
                message = f"serial_speed is {leaf.value}, which is not the speed of a serial line"
                yield self.hit(declared, message, leaf.span, hint=f"write one of {', '.join(map(str, SERIAL_SPEEDS))}")


class CpuRangeReversed(Rule):
    info = error_rule("GP173", "cpu-range-reversed", REFUSED)(
        summary="A range of CPUs in cpu_mask ends below its start.",
        rationale="Ganeti refuses the range.",
        source=_SOURCE,
        bad=f'{CLUSTER}hvparams:\n  kvm: {{cpu_mask: "3-0"}}\n',
        good=f'{CLUSTER}hvparams:\n  kvm: {{cpu_mask: "0-3"}}\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(*_MASKS):
            for low, high in re.findall(r"(?<![0-9_])([0-9_]++) *+- *+\+?([0-9_]++)", str(leaf.value)):
                if _magnitude(low) > _magnitude(high):
                    message = f"{leaf.dotted}: the range {low}-{high} ends below its start"
                    yield self.hit(declared, message, leaf.span, hint=f"write {high}-{low}")


def _magnitude(digits: str) -> tuple[int, str]:
    """Return what orders whole numbers of any length: Python reads none of thousands of digits."""
    significant = digits.replace("_", "").lstrip("0")
    return len(significant), significant


class BindAddressUnlikely(Rule):
    info = warning_rule("GP174", "bind-address-unlikely")(
        summary="The address of VNC or SPICE consoles is neither an IP address nor the name of an interface, or that of"
        " one node.",
        rationale="Ganeti takes whatever is not an IP address (or, for VNC, an absolute path) for the name of a"
        " network interface, and refuses the command unless every node has it. It looks up no host name and accepts no"
        " port. KVM listens on the address itself, so only the node that has it starts an instance.",
        source=_SOURCE,
        bad=f'{CLUSTER}hvparams:\n  kvm: {{vnc_bind_address: "0.0.0.0:5900"}}\n',
        good=f"{CLUSTER}hvparams:\n  kvm: {{vnc_bind_address: 127.0.0.1}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(kvm("vnc_bind_address"), kvm("spice_bind"), _OF_XEN):
            text = str(leaf.value)
            path = text.startswith("/") and leaf.path[-1] == "vnc_bind_address"
            address = _address(text)
            is_of_one = address is not None and not (address.is_loopback or address.is_unspecified)
            if is_of_one and _node_count(context) != 1 and not context.policy.broken:
                message = f"{leaf.path[-1]} is {text}, which at most one node has: no other starts an instance"
                is_slip = sorted(text) == sorted(_LOOPBACK)
                hint = f"Did you mean `{_LOOPBACK}`?" if is_slip else "write 127.0.0.1, or an interface"
                yield self.hit(declared, message, leaf.span, hint=hint)
            if not text or path or leaf.path == _OF_XEN or _ip_version(text) or _may_be_interface(text):
                continue
            message = f"{leaf.path[-1]} is {text!r}, which is neither an IP address nor an interface"
            yield self.hit(declared, message, leaf.span, hint="write an address (127.0.0.1, ::1) or an interface (lo)")


def _may_be_interface(text: str) -> bool:
    form = re.fullmatch(r"[A-Za-z][\w.@-]{0,14}", text)  # Linux takes 15 letters
    is_host = text == "localhost" or re.fullmatch(r"[0-9.]+|[^.]+(\.[^.]+)+\.[a-z]+", text)
    return form is not None and not is_host


def _node_count(context: Context) -> int | None:
    """Return how many nodes the cluster has; None where nobody knows."""
    if context.state is not None:
        return len(context.state.nodes)
    named = [promised_nodes(group) for group in context.groups]
    return None if not named or None in named else sum(len(nodes or ()) for nodes in named)


def _ip_version(text: Value) -> int | None:
    """Return 4 or 6 for an IP address, None for anything else."""
    address = _address(text)
    return address.version if address is not None else None


def _address(text: Value) -> IPv4Address | IPv6Address | None:
    from ipaddress import ip_address  # noqa: PLC0415 (few policies need it)

    try:
        return ip_address(str(text))
    except ValueError:
        return None


class NeedsAnother(MoreWithState, WholePolicyRule):
    info = warning_rule("GP175", "hypervisor-parameter-needs-another")(
        summary="A parameter of KVM goes only with a value of another one, which the policy does not declare.",
        rationale="With Ganeti's default for the other parameter, Ganeti refuses the command. gpolicy does not know"
        " whether the cluster has another value: with `--state` it does, and GP170 and GP171 report what is refused.",
        source="Ganeti 3.0.2, run: the checks of its hypervisors",
        bad=f"{CLUSTER}hvparams:\n  kvm: {{security_model: user}}\n",
        good=f"{CLUSTER}hvparams:\n  kvm: {{security_model: user, security_domain: kvm}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for first, second, item in _checked(context, _CONTRADICTIONS, _OF_SPICE):
            for declared, leaf in context.explicit_at(first, second):
                other = second if leaf.path == first else first
                if in_force(context, declared, other) is not None:
                    continue
                default = default_of(context, other)
                values = (leaf.value, default) if leaf.path == first else (default, leaf.value)
                if item.refused(*values):
                    shown = "empty" if default == "" else as_word(default)
                    message = f"{leaf.path[-1]} {as_word(leaf.value)} does not go with {other[-1]} {shown}"
                    message += ", which is Ganeti's default"
                    yield self.hit(declared, message, leaf.span, hint=f"declare {other[-1]} as well")
