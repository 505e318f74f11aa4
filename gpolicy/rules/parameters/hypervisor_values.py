"""GP172, GP173, GP177 to GP180, GP186 and GP188: values of hypervisor parameters, and what comes of them."""

import math
import re
import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, error, hit, see, warning
from gpolicy.data import read_data
from gpolicy.findings import REFUSED, Span
from gpolicy.ganeti.parameters import PARAMETERS, kvm
from gpolicy.ganeti.tables import SERIAL_SPEEDS
from gpolicy.ganeti.vocabulary import ENABLED_HYPERVISORS, ENABLED_TEMPLATES, Path, known_words
from gpolicy.guessing import surely_meant
from gpolicy.policy.model import Leaf
from gpolicy.printable import count
from gpolicy.rules.shared import forms_of, in_force, of_cluster

_EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "::", "::0"})  # noqa: S104 (what is warned of)
_MASKS: Final[tuple[Path, ...]] = tuple(
    parameter.path for parameter in PARAMETERS if parameter.path[0] == "hvparams" and parameter.path[2] == "cpu_mask"
)
_MOST_DIGITS: Final = 6
_CPU_RANGE: Final = re.compile(rf" *([0-9]{{1,{_MOST_DIGITS}}})(?:-([0-9]{{1,{_MOST_DIGITS}}}))? *")
_ON_IDE: Final = 4
_REAL_DEVICES: Final = frozenset({"scsi-block", "scsi-generic", "scsi-cd"})
_WITH_DEVICES: Final = frozenset({"blockdev", "ext", "diskless"})
_RESCUE: Final = re.compile(r"single|emergency|rescue|[1S]|init=/.*sh")

_PASSWORDS: Final = {kvm("vnc_bind_address"): "vnc_password_file", kvm("spice_bind"): "spice_password_file"}


@warning("GP177", When.MORE_WITH_STATE)
def console_open(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*_PASSWORDS):
        name = _PASSWORDS[leaf.path]
        password = in_force(context, declared, kvm(name))
        if leaf.value in _EVERY_ADDRESS and (password is None or password.value == ""):
            message = f"{leaf.path[-1]} {leaf.value} opens consoles to every network, and {name} is "
            message += "empty" if password is not None else "not declared"
            yield hit(declared, message, leaf.span, f"write 127.0.0.1, or declare {name}")


@warning("GP178")
def kvm_extra(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(kvm("kvm_extra")):
        words, mistake = _split(context, str(leaf.value))
        of_ganeti = read_data("known_words.toml")["kvm_options"]
        known = known_words("other_kvm_options").union(of_ganeti)
        given = {word.lstrip("-"): behind for word, behind in pairwise([*words, ""]) if word.startswith("-")}
        for option, behind in given.items():
            if option in of_ganeti:
                value = "" if behind.startswith("-") else behind
                own = of_ganeti[option].replace("…", value) if value else of_ganeti[option].removesuffix(": …")
                what = f"-{option} {value}".strip()
                whose = f"{own.partition(':')[0]} is for" if own else "Ganeti writes itself"
                message = f"kvm_extra has -{option}, which {whose}"
                hint = f"{'write' if ': ' in own else 'set'} {own} instead, and remove {what}"
                yield hit(declared, message, leaf.span, hint if own else f"remove {what}")
            near = None if option in known else surely_meant(option, known)
            if near is not None:
                message = f"kvm_extra has -{option}, which QEMU does not know"
                yield hit(declared, message, leaf.span, f"Did you mean `-{near}`?")
        if words and not words[0].startswith("-"):
            message = f"kvm_extra starts with {words[0]!r}, which is no option"
            yield hit(declared, message, leaf.span, "write options, such as -no-hpet")
        elif mistake:
            yield hit(declared, f"kvm_extra has {mistake}", leaf.span, "write words without quotes")


def _split(context: Context, text: str) -> tuple[list[str], str]:
    """Return the words that the release of Ganeti makes of kvm_extra, and what is wrong with quotes and blanks."""
    if context.is_since("3.1"):
        try:
            return shlex.split(text), ""
        except ValueError as error:
            return text.split(), f"a quote too few, and Ganeti {context.version} starts no instance: {error}"
    words = text.split(" ") if text else []
    wrong = "" in words or re.search("[\"']", text)
    return words, "quotes, or blanks beside one another: Ganeti splits it at each blank" if wrong else ""


@warning("GP179", When.MORE_WITH_STATE)
def cpu_mask_unlikely(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*_MASKS):
        numbers = [int(part) for part in _parts(leaf) if part.isdigit() and len(part) <= _MOST_DIGITS]
        has, span, group = _fewest_cpus(context)
        related = see(span, "the hardware is promised here")
        if has and numbers and max(numbers) >= has:
            message = f"{leaf.dotted} names CPU {max(numbers)}, but nodes of group {group} have {has}: 0 to {has - 1}"
            fewer = "".join(str(min(int(part), has - 1)) if part.isdigit() else part for part in _parts(leaf))
            yield hit(declared, message, leaf.span, f"write CPUs that there are, such as {fewer}", related)
        elif (masks := str(leaf.value).count(":") + 1) > 1 and (other := _other_cpus(context, masks)):
            message = f"{leaf.dotted} has masks for {masks} virtual CPUs, but instances have {other}"
            yield hit(declared, message, leaf.span, "write one mask for all, such as 0-7")
        elif re.fullmatch(r" *[0-9]+ *", str(leaf.value)):
            message = f"{leaf.dotted} puts all instances of a node on CPU {str(leaf.value).strip()}"
            yield hit(declared, message, leaf.span, "write a range of CPUs, such as 0-7, or all")
        elif masks == 1 and has and 0 < 2 * (named := _cpus_in(str(leaf.value))) < has:
            message = f"{leaf.dotted} puts all instances of a node on {count(named, 'CPU')} of {has} or more"
            yield hit(declared, message, leaf.span, f"write 0-{has - 1}, or all", related)


def _cpus_in(mask: str) -> int:
    """Return how many CPUs a mask names; 0 where it is no list of CPUs and ranges."""
    parts = [_CPU_RANGE.fullmatch(part) for part in mask.split(",")]
    return sum(int(part[2] or part[1]) - int(part[1]) + 1 for part in parts if part) if all(parts) else 0


def _other_cpus(context: Context, count: int) -> str:
    """Return which numbers of virtual CPUs instances have by default, or may have, other than `count`."""
    default = context.cluster_leaf(("beparams", "vcpus"))
    if default is not None and default.number != count:
        return f"{default.value} by default"
    ranges = (pair for declared in context.cluster_and_groups for pair in context.pairs(declared))
    bounds = {pair.bound(end)["cpu-count"] for pair in ranges for end in ("min", "max")}
    return f"{min(bounds)} to {max(bounds)}" if bounds - {count} else ""


def _fewest_cpus(context: Context) -> tuple[int, Span | None, str]:
    """Return the CPUs of the smallest node that is known, where they are promised, and its group; 0 if none is."""
    found: list[tuple[int, Span | None, str]] = []
    for group in context.groups:
        promised = group.hardware.cpus if group.hardware else None
        nodes = [node.resources.cpu_total for node in context.members.hosts_in(group) if node.resources.cpu_total]
        if promised is not None:
            found.append((promised.value, promised.span, group.name))
        elif nodes:
            found.append((min(nodes), None, group.name))
    return min(found, key=lambda item: item[0], default=(0, None, ""))


def _parts(leaf: Leaf) -> list[str]:
    """Return the numbers of a mask, and what is between them."""
    return re.findall(r"[0-9]++|[^0-9]++", str(leaf.value))


@warning("GP180")
def kvm_topology(context: Context) -> Iterator[Hit]:
    given = (context.cluster_leaf(kvm(name)) for name in ("cpu_sockets", "cpu_cores", "cpu_threads"))
    leaves = [leaf for leaf in given if leaf is not None and leaf.value]
    product = math.prod(int(str(leaf.value)) for leaf in leaves)
    for declared, pair in context.each_pair() if leaves else ():
        low, high = max(pair.minimum["cpu-count"], 1), pair.maximum["cpu-count"]
        fits = low <= product <= high if len(leaves) == 3 else high // product * product >= low
        if pair.possible and not fits:
            names = " times ".join(leaf.path[-1] for leaf in leaves)
            cpus = f"{low} to {count(high, 'CPU')}"
            message = f"{pair.title} has {cpus}: none of them goes with {names}, which is {product}"
            hint = "leave the topology to KVM (0), or allow such a cpu-count"
            yield hit(declared, message, pair.at("max", "cpu-count"), hint, see(leaves[0].span, "the topology is here"))


@warning("GP188", When.MORE_WITH_STATE)
def disks_beyond_bus(context: Context) -> Iterator[Hit]:
    leaf, hypervisors = context.cluster_leaf(kvm("disk_type")), of_cluster(context, ENABLED_HYPERVISORS)
    is_alone = hypervisors is not None and tuple(hypervisors.texts) == ("kvm",)
    for declared, pair in context.each_pair() if leaf is not None and leaf.value == "ide" and is_alone else ():
        if leaf is not None and pair.maximum["disk-count"] > _ON_IDE:
            message = f"{pair.title} allows {pair.maximum['disk-count']} disks, but disk_type ide has {_ON_IDE}"
            hint = "lower the maximum, or write disk_type: paravirtual"
            yield hit(declared, message, pair.at("max", "disk-count"), hint, see(leaf.span, "disk_type is here"))


@warning("GP186", When.MORE_WITH_STATE)
def default_of_one_instance(context: Context) -> Iterator[Hit]:
    enabled = of_cluster(context, ENABLED_TEMPLATES)
    for declared, leaf in context.explicit_at(kvm("disk_type")):
        if leaf.value in _REAL_DEVICES and enabled is not None and not _WITH_DEVICES.issuperset(enabled.texts):
            message = f"disk_type {leaf.value} is for real SCSI devices, which the disks of most templates are not"
            yield hit(declared, message, leaf.span, "write scsi-hd or paravirtual")
    for declared, leaf in context.explicit_at(kvm("kvm_flag")):
        if leaf.value == "disabled":
            message = "kvm_flag is disabled: no instance uses the virtualisation of the processors, and all are slow"
            yield hit(declared, message, leaf.span, "write enabled, or leave it out")
    assessed = forms_of(default_of_one_instance.info.code)
    for declared, leaf in context.explicit_at(*assessed) if context.is_since("3.1") else ():
        if bad := assessed[leaf.path].get(str(leaf.value)):
            why, hint = bad
            yield hit(declared, f"{leaf.path[-1]} is {leaf.value}: {why}", leaf.span, hint)
    paths = [("hvparams", item, name) for item in ("kvm", "xen-pvm", "xen-hvm") for name in ("kernel_args", "acpi")]
    for declared, leaf in context.explicit_at(*paths):
        words = str(leaf.value).split() if leaf.path[-1] == "kernel_args" else []
        repair = next((word for word in words if _RESCUE.fullmatch(word)), None)
        if repair is not None:
            message = f"{leaf.dotted} has {repair}: every instance starts in single-user mode"
            yield hit(declared, message, leaf.span, "set it for the instance that needs it")
        elif leaf.value is False:
            message = f"{leaf.dotted} is false: instances do not notice that they are to shut down"
            yield hit(declared, message, leaf.span, "write true, and set it for the instance that needs it")


@error("GP172", When.MORE_WITH_STATE, stays=REFUSED)
def serial_speed(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(kvm("serial_speed")):
        console = in_force(context, declared, kvm("serial_console"))
        if leaf.number not in SERIAL_SPEEDS and not (console and console.value is False):
            message = f"serial_speed is {leaf.value}, which is not the speed of a serial line"
            yield hit(declared, message, leaf.span, f"write one of {', '.join(map(str, SERIAL_SPEEDS))}")


@error("GP173", stays=REFUSED)
def cpu_range_reversed(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*_MASKS):
        for low, high in re.findall(r"(?<![0-9_])([0-9_]++) *+- *+\+?([0-9_]++)", str(leaf.value)):
            if _magnitude(low) > _magnitude(high):
                message = f"{leaf.dotted}: the range {low}-{high} ends below its start"
                yield hit(declared, message, leaf.span, f"write {high}-{low}")


def _magnitude(digits: str) -> tuple[int, str]:
    """Return what orders whole numbers of any length: Python reads none of thousands of digits."""
    significant = digits.replace("_", "").lstrip("0")
    return len(significant), significant
