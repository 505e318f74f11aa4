"""GP111, GP126, GP170, GP171 and GP174 to GP176: parameters that Ganeti does not take together, or one makes useless;
addresses; disks that only KVM can access from userspace.

Seen by giving the checks of the hypervisors of Ganeti 3.0.2 all pairs of parameters (gnt-instance(8) says why). What
each does was read from the commands and files that it starts instances with. A cluster's defaults are checked as a
whole whenever one of them is set, enabled hypervisor or not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, error, hit, see, warning
from gpolicy.data import read_data
from gpolicy.findings import REFUSED
from gpolicy.ganeti.parameters import PARAMETERS, as_word, kvm, parameter_at
from gpolicy.ganeti.vocabulary import DATA_COLLECTORS, ENABLED_HYPERVISORS, Path, Value, is_access
from gpolicy.policy.model import ClusterPolicy, promised_nodes
from gpolicy.printable import listed
from gpolicy.rules.shared import InForce, conflict, default_of, in_force, of_cluster, places, together

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

_LOOPBACK: Final = "127.0.0.1"
_OF_XEN: Final[Path] = ("hvparams", "xen-hvm", "vnc_bind_address")
"""Its form is part of the parameter table."""

_Clashes = Mapping[tuple[Path, Path], "_Clash"]
"""By the two parameters."""


@dataclass(frozen=True, slots=True)
class _Clash:
    """Values of two parameters that Ganeti refuses together, that make one useless or keep instances from starting.

    `by_default`: also if nobody declares the second, whose default is such a value. `unless`: a parameter that makes
    the two useless with this value. `since`: the first release that refuses the two. Without a message both texts
    stand in `templates/hypervisor_pairs.toml`.
    """

    wrong: Callable[[Any, Any], bool]
    message: str = ""
    hint: str = ""
    by_default: bool = False
    unless: tuple[Path, Any] | None = None
    since: str = "2.15"


def _both(hypervisor: str, first: str, second: str) -> tuple[Path, Path]:
    return ("hvparams", hypervisor, first), ("hvparams", hypervisor, second)


_of_kvm, _of_hvm, _of_pvm = (partial(_both, hypervisor) for hypervisor in ("kvm", "xen-hvm", "xen-pvm"))
_with_default: Final = partial(_Clash, by_default=True)

_CONTRADICTIONS: Final[_Clashes] = {
    _of_kvm("security_domain", "security_model"): _Clash(lambda domain, model: bool(domain) and model != "user"),
    _of_kvm("security_model", "security_domain"): _Clash(lambda model, domain: model == "user" and not domain),
    _of_kvm("disk_aio", "disk_cache"): _Clash(lambda aio, cache: aio == "native" and cache != "none", since="3.0"),
    _of_kvm("vnc_x509_verify", "vnc_x509_path"): _Clash(lambda verify, path: verify is True and not path),
    _of_kvm("boot_order", "cdrom_image_path"): _Clash(lambda order, image: order == "cdrom" and not image),
    _of_kvm("root_path", "kernel_path"): _Clash(lambda root, kernel: bool(kernel) and not root),
    _of_kvm("vnc_bind_address", "spice_bind"): _Clash(lambda vnc, spice: bool(vnc) and bool(spice)),
    _of_kvm("spice_ip_version", "spice_bind"): _Clash(
        lambda version, bind: (address := _address_of(bind)) is not None and {version, address.version} == {4, 6}
    ),
}


_OF_SPICE: Final[_Clashes] = {
    (parameter.path, kvm("spice_bind")): _Clash(
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


def _refused_together(context: Context, table: _Clashes) -> Iterator[Hit]:
    for paths, item in table.items():
        for declared, values in together(context, *paths) if context.is_since(item.since) else ():
            if item.wrong(*(value.value for value in values)):
                message, hint = _said(hypervisor_parameters_contradict.info.code, paths, item)
                yield conflict(context, declared, message, _asked_first(context, paths, hint), *values)


def _said(code: str, paths: tuple[Path, Path], item: _Clash) -> tuple[str, str]:
    """Return the message and the hint of a rule about two parameters."""
    name = " ".join(".".join(path).removeprefix("hvparams.") for path in paths)
    said = {} if item.message else read_data("hypervisor_pairs.toml")[code][name]
    return said.get("message", item.message), said.get("hint", item.hint)


def _asked_first(context: Context, paths: tuple[Path, Path], hint: str) -> str:
    """Return a hint about two parameters, after what is meant if a third one explains them."""
    explained = read_data("hypervisor_pairs.toml")["explained"].get(f"{'.'.join(paths[0][1:])} {paths[1][-1]}", {})
    for meant, third in explained.items():
        value = of_cluster(context, tuple(third))
        hint = f"is {meant} meant, since {third[-1]} is set? Else {hint}" if value is not None and value.value else hint
    return hint


@error("GP170", When.MORE_WITH_STATE, stays=REFUSED)
def hypervisor_parameters_contradict(context: Context) -> Iterator[Hit]:
    return _refused_together(context, _CONTRADICTIONS)


@error("GP171", When.MORE_WITH_STATE, stays=REFUSED)
def spice_without_bind(context: Context) -> Iterator[Hit]:
    return _refused_together(context, _OF_SPICE)


def _address_of(text: Value) -> IPv4Address | IPv6Address | None:
    """Return the IP address that a text is; None for anything else."""
    from ipaddress import ip_address  # noqa: PLC0415 (few policies need it)

    try:
        return ip_address(str(text))
    except ValueError:
        return None


@warning("GP174")
def bind_address_unlikely(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(kvm("vnc_bind_address"), kvm("spice_bind"), _OF_XEN):
        text = str(leaf.value)
        path = text.startswith("/") and leaf.path[-1] == "vnc_bind_address"
        address = _address_of(text)
        is_of_one = address is not None and not (address.is_loopback or address.is_unspecified)
        if is_of_one and _node_count(context) != 1 and not context.policy.broken:
            message = f"{leaf.path[-1]} is {text}, which at most one node has: no other starts an instance"
            is_slip = sorted(text) == sorted(_LOOPBACK)
            hint = f"Did you mean `{_LOOPBACK}`?" if is_slip else "write 127.0.0.1, or an interface"
            yield hit(declared, message, leaf.span, hint)
        if not text or path or leaf.path == _OF_XEN or address is not None or _may_be_interface(text):
            continue
        message = f"{leaf.path[-1]} is {text!r}, which is neither an IP address nor an interface"
        yield hit(declared, message, leaf.span, "write an address, such as 127.0.0.1, or an interface, such as lo")


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


@warning("GP175", When.MORE_WITH_STATE | When.WHOLE)
def hypervisor_parameter_needs_another(context: Context) -> Iterator[Hit]:
    for (first, second), item in {**_CONTRADICTIONS, **_OF_SPICE}.items():
        for declared, leaf in context.explicit_at(first, second) if context.is_since(item.since) else ():
            other = second if leaf.path == first else first
            if in_force(context, declared, other) is not None:
                continue
            default = default_of(context, other)
            values = (leaf.value, default) if leaf.path == first else (default, leaf.value)
            if item.wrong(*values):
                shown = "empty" if default == "" else as_word(default)
                message = f"{leaf.path[-1]} {as_word(leaf.value)} does not go with {other[-1]} {shown}"
                message += ", which is Ganeti's default"
                as_well = f"declare {other[-1]} as well"
                yield hit(declared, message, leaf.span, _asked_first(context, (first, second), as_well))


def _ignored(hypervisor: str, names: str, other: str, value: object, hint: str, *, by_default: bool) -> _Clashes:
    """Return mismatches of parameters that are not read while another one has a value."""
    shown = f"{other} is {as_word(value)}" if value != "" else f"{other} is empty"
    return {
        (path, other_path): _Clash(_unread(path, value), f"{path[-1]} is not used: {shown}", hint, by_default)
        for path, other_path in (_both(hypervisor, name, other) for name in names.split())
    }


def _unread(path: Path, value: object) -> Callable[[Any, Any], bool]:
    parameter = parameter_at(path)
    unset = ("", parameter.default if parameter is not None else "")
    return lambda own, other: own not in unset and other == value


_MISMATCHES: Final[_Clashes] = {
    **{
        (("data_collector_interval", name), ("enabled_data_collectors", name)): _Clash(
            lambda _, enabled: enabled is False,
            f"data_collector_interval is not used: the collector {name} is off",
            "leave the interval out, or turn the collector on",
        )
        for name in DATA_COLLECTORS
    },
    **{key: pair for row in read_data("hypervisor_pairs.toml")["ignored"] for key, pair in _ignored(**row).items()},
    _of_pvm("use_bootloader", "bootloader_path"): _with_default(lambda use, path: use is True and path == ""),
    _of_kvm("boot_order", "floppy_image_path"): _with_default(lambda boot, image: boot == "floppy" and image == ""),
    _of_hvm("boot_order", "cdrom_image_path"): _with_default(lambda boot, image: set(boot) == {"d"} and image == ""),
    (("hvparams", "xen-pvm", "xen_cmd"), ("hvparams", "xen-hvm", "xen_cmd")): _Clash(lambda one, other: one != other),
    _of_kvm("boot_order", "kernel_path"): _Clash(lambda order, kernel: order != "disk" and kernel != ""),
    **{
        (kvm(name), kvm("nic_type")): _Clash(lambda value, nic: (value is True or value > 1) and nic != "paravirtual")
        for name in ("vhost_net", "virtio_net_queues")
    },
    _of_kvm("virtio_net_queues", "vnet_hdr"): _Clash(lambda queues, headers: queues > 1 and headers is False),
    _of_kvm("scsi_controller_type", "disk_type"): _Clash(
        lambda controller, disk: controller != "lsi" and not disk.startswith("scsi")
    ),
    _of_kvm("root_path", "disk_type"): _with_default(
        lambda root, disk: disk == "paravirtual" and re.match("/dev/([sh]|xv)d", root) is not None,
        unless=(kvm("kernel_path"), ""),
    ),
    _of_kvm("kernel_args", "serial_console"): _Clash(
        lambda arguments, console: console is False and "console=ttyS" in arguments, unless=(kvm("kernel_path"), "")
    ),
    _of_pvm("root_path", "blockdev_prefix"): _Clash(
        lambda root, prefix: bool(re.match("/dev/[shv]d", root)) and not root.startswith(f"/dev/{prefix}")
    ),
    _of_kvm("cpu_type", "kvm_flag"): _Clash(lambda cpu, flag: cpu.partition(",")[0] == "host" and flag == "disabled"),
    _of_kvm("security_domain", "security_model"): _Clash(lambda domain, model: domain == "root" and model == "user"),
    (("enabled_user_shutdown",), kvm("user_shutdown")): _with_default(
        lambda all_may, may: all_may is True and may is False
    ),
    _of_pvm("root_path", "kernel_args"): _with_default(
        lambda root, arguments: root == "" and "root=" not in arguments,
        unless=(("hvparams", "xen-pvm", "use_bootloader"), True),
    ),
    _of_kvm("kernel_args", "root_path"): _Clash(
        lambda arguments, root: any(word.startswith("root=") and word[5:] != root for word in arguments.split())
    ),
    _of_hvm("nic_type", "vif_type"): _Clash(lambda nic, vif: vif == "vif" and nic not in ("paravirtual", "rtl8139")),
    (kvm("user_shutdown"), ("enabled_user_shutdown",)): _Clash(lambda may, all_may: may is True and all_may is False),
}


@warning("GP176", When.MORE_WITH_STATE)
def hypervisor_parameters_mismatch(context: Context) -> Iterator[Hit]:
    declared, enabled = context.policy.cluster, of_cluster(context, ENABLED_HYPERVISORS)
    leaves = context.leaves(declared) if declared is not None else {}
    used = {path[1] for path in leaves if path[0] == "hvparams"} if enabled is None else {*enabled.texts}
    for paths, item in _MISMATCHES.items():
        if declared is None or not context.declares(*paths):
            continue
        other = in_force(context, declared, item.unless[0]) if item.unless is not None else None
        if other is not None and item.unless is not None and other.value == item.unless[1]:
            continue
        hypervisors = {path[1] for path in paths if path[0] == "hvparams"}
        if item.by_default and used.isdisjoint(hypervisors):
            continue
        first, second = (in_force(context, declared, path) for path in paths)
        shows_them = any(own[0] == "hvparams" for own in context.observed.cluster.own)  # a text of htools does not
        if is_default := second is None and item.by_default and not shows_them:
            second = InForce(paths[1], default_of(context, paths[1]))
        is_own = context.own(declared, paths[0]) is not None or not item.by_default
        if first is not None and second is not None and is_own and item.wrong(first.value, second.value):
            place, related, note = places(context, declared, first, second)
            note = note if not is_default else f", by Ganeti's default of {paths[1][-1]}"
            message, hint = _said(hypervisor_parameters_mismatch.info.code, paths, item)
            gate = f"{hint} for {paths[1][-1]}"
            yield hit(declared, f"{message}{note}", place, _asked_first(context, paths, hint), related, missing=gate)


@warning("GP111", When.MORE_WITH_STATE, unless_declared=(ENABLED_HYPERVISORS,))
def userspace_without_kvm(context: Context) -> Iterator[Hit]:
    hypervisors = of_cluster(context, ENABLED_HYPERVISORS)
    others = [name for name in hypervisors.texts if name != "kvm"] if hypervisors else []
    if hypervisors is None or not others:
        return
    for declared, leaf in context.explicit():
        is_for_all = "kvm" not in hypervisors.texts or isinstance(declared, ClusterPolicy)
        if is_for_all and is_access(leaf.path) and leaf.value == "userspace":
            message = f"{leaf.dotted}: {listed(others, 'or')} cannot access a disk from userspace, only kvm can"
            yield hit(declared, message, leaf.span, "write kernelspace", see(hypervisors.span, "enabled here"))


@error("GP126", When.STATE)
def userspace_of_other_hypervisor(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit():
        if not is_access(leaf.path) or leaf.value != "userspace":
            continue
        instances = [item for item in context.observed.instances.values() if item.hypervisor not in (None, "kvm")]
        if not isinstance(declared, ClusterPolicy):
            homes = context.members.group_of
            instances = [item for item in instances if homes.get(item.primary_node) == declared.name]
        names = [item.name for item in instances if any(disk.template == leaf.path[1] for disk in item.disks)]
        if names:
            shown = f"{names[0]} and {len(names) - 1} more are" if len(names) > 1 else f"{names[0]} is"
            message = f"{leaf.dotted}: {shown} not of KVM, and only KVM can access a disk from userspace"
            yield hit(declared, message, leaf.span, "write kernelspace")
