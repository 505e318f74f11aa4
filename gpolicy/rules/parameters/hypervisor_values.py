"""GP157, GP177 to GP182, GP185, GP186: values of hypervisors that Ganeti stores unchecked, and what comes of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.in_force import in_force
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import Related, RuleInfo, Severity, Span
from gpolicy.ganeti.parameter import Path
from gpolicy.ganeti.parameters import PARAMETERS
from gpolicy.ganeti.releases import release_key
from gpolicy.ganeti.vocabulary import (
    KVM_CPU_MODELS,
    KVM_GRAPHICS,
    KVM_KEYMAPS,
    KVM_MACHINES,
    LINUX_CAPABILITIES,
    QEMU_MIGRATION_CAPABILITIES,
    SOUND_CARDS,
    USB_DEVICES,
)
from gpolicy.guessing import did_you_mean, did_you_mean_one_of
from gpolicy.policy.misspelt import surely_meant
from gpolicy.policy.model import Leaf
from gpolicy.rules.examples import CLUSTER, GROUP, bounds

_SOURCE: Final = "Ganeti 3.0.2, how it starts instances; gnt-instance(8)"


def _kvm(name: str) -> Path:
    return ("hvparams", "kvm", name)


class ConsoleOpen(Rule):
    info = RuleInfo(
        code="GP177",
        name="console-open",
        severity=Severity.WARNING,
        summary="Consoles of instances are open to every network without a password.",
        rationale="VNC or SPICE listens on all addresses of the node, and the file of its password is empty (which is"
        " KVM's default in Ganeti). Whoever reaches the node then sits at the instance's screen and keyboard.",
        source=_SOURCE,
        bad=f"{CLUSTER}hvparams:\n  kvm: {{vnc_bind_address: 0.0.0.0}}\n",
        good=f"{CLUSTER}hvparams:\n  kvm: {{vnc_bind_address: 0.0.0.0, vnc_password_file: /etc/ganeti/vnc-password}}\n",
    )
    finds_more_with_state = True
    _PASSWORDS: Final = {_kvm("vnc_bind_address"): "vnc_password_file", _kvm("spice_bind"): "spice_password_file"}

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(*self._PASSWORDS):
            name = self._PASSWORDS[leaf.path]
            password = in_force(context, declared, _kvm(name))
            if leaf.value in _EVERY_ADDRESS and (password is None or password.value == ""):
                message = f"{leaf.path[-1]} {leaf.value} opens consoles to every network, and {name} is "
                message += "empty" if password is not None else "not declared"
                yield self.hit(declared, message, leaf.span, hint=f"write {name}, or the address 127.0.0.1")


_EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "::", "::0"})  # noqa: S104 (what is warned of)


_OF_KVM: Final = {
    **dict.fromkeys(("m", "smp"), "a backend parameter (maxmem, vcpus)"),
    **dict.fromkeys(("name", "uuid", "pidfile", "daemonize", "monitor", "qmp", "S", "D", "incoming"), "nothing else"),
    "vnc": "vnc_bind_address",
    "spice": "spice_bind",
    "cpu": "cpu_type",
    "boot": "boot_order",
    "k": "keymap",
    **dict.fromkeys(("machine", "M"), "machine_version"),
    **dict.fromkeys(("enable-kvm", "no-kvm", "disable-kvm"), "kvm_flag"),
    "kernel": "kernel_path",
    "initrd": "initrd_path",
    "append": "kernel_args",
    **dict.fromkeys(("mem-path", "mem-prealloc"), "mem_path"),
    "no-acpi": "acpi",
    "no-reboot": "reboot_behavior",
    "serial": "serial_console",
    "vga": "vga",
    "localtime": "use_localtime",
    "chroot": "use_chroot",
    "runas": "security_model",
    "soundhw": "soundhw",
    "cdrom": "cdrom_image_path",
    "fda": "floppy_image_path",
    **dict.fromkeys(("display", "nographic"), "vnc_bind_address or spice_bind"),
}
"""Options of KVM that Ganeti itself writes, and the parameter that it takes them from."""

_KVM_OPTIONS: Final = frozenset(_OF_KVM) | {
    *(
        "accel",
        "action",
        "add-fd",
        "audio",
        "audiodev",
        "blockdev",
        "bios",
        "chardev",
        "compat",
        "cpu",
        "d",
        "debugcon",
    ),
    *("device", "drive", "enable-fips", "fsdev", "full-screen", "fw_cfg", "gdb", "global", "hda", "hdb", "icount"),
    *(
        "iscsi",
        "L",
        "msg",
        "mtdblock",
        "net",
        "netdev",
        "nic",
        "no-hpet",
        "no-fd-bootchk",
        "no-shutdown",
        "no-user-config",
    ),
    *("nodefaults", "numa", "object", "option-rom", "overcommit", "parallel", "pflash", "plugin", "prom-env"),
    *("readconfig", "rtc", "sandbox", "seed", "set", "smbios", "snapshot", "tpmdev", "trace", "usb", "usbdevice"),
    *("virtfs", "watchdog", "watchdog-action", "win2k-hack", "xen-attach", "xen-domid", "acpitable", "balloon"),
}
"""Options of QEMU. Each release knows more, so one is only unknown if it looks like one of these."""


class KvmExtra(Rule):
    info = RuleInfo(
        code="GP178",
        name="kvm-extra",
        severity=Severity.WARNING,
        summary="kvm_extra has an option that Ganeti writes itself, or a misspelt one, or is no list of options.",
        rationale="Ganeti appends kvm_extra to its own command. Up to 3.0 it splits it at each blank: quotes are not"
        " removed, and two blanks make an empty argument. From 3.1 on it splits it as a shell does. KVM gets an option"
        " twice; the later one wins, or KVM refuses to start. Capacity and `gnt-instance info` show the other value.",
        source="Ganeti 3.0.2 and 3.1, how they start instances; gnt-instance(8)",
        bad=f'{CLUSTER}hvparams:\n  kvm: {{kvm_extra: "-m 4096"}}\n',
        good=f'{CLUSTER}hvparams:\n  kvm: {{kvm_extra: "-no-hpet -watchdog i6300esb"}}\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(_kvm("kvm_extra")):
            words, mistake = _split(str(leaf.value), context.version)
            options = [word.lstrip("-") for word in words if word.startswith("-")]
            for option in dict.fromkeys(option for option in options if option in _OF_KVM):
                message = f"kvm_extra has -{option}, which Ganeti writes itself"
                hint = f"Ganeti takes it from {_OF_KVM[option]}: remove -{option}"
                yield self.hit(declared, message, leaf.span, hint=hint)
            for option in dict.fromkeys(options):
                near = None if option in _KVM_OPTIONS else surely_meant(option, _KVM_OPTIONS)
                if near is not None:
                    message = f"kvm_extra has -{option}, which QEMU does not know"
                    yield self.hit(declared, message, leaf.span, hint=f"Did you mean `-{near}`?")
            if words and not words[0].startswith("-"):
                message = f"kvm_extra starts with {words[0]!r}, which is no option"
                yield self.hit(declared, message, leaf.span, hint="write options, such as -no-hpet")
            elif mistake:
                yield self.hit(declared, f"kvm_extra has {mistake}", leaf.span, hint="write words without quotes")


def _split(text: str, version: str) -> tuple[list[str], str]:
    """Return the words that a release of Ganeti makes of kvm_extra, and what is wrong with quotes and blanks."""
    if release_key(version) >= release_key("3.1"):
        try:
            return shlex.split(text), ""
        except ValueError as error:
            return text.split(), f"a quote too few, and Ganeti {version} starts no instance: {error}"
    words = text.split(" ") if text else []
    wrong = "" in words or re.search("[\"']", text)
    return words, "quotes, or blanks beside one another: Ganeti splits it at each blank" if wrong else ""


_MASKS: Final[tuple[Path, ...]] = tuple(
    parameter.path for parameter in PARAMETERS if parameter.path[0] == "hvparams" and parameter.path[2] == "cpu_mask"
)
_MOST_DIGITS: Final = 6


class CpuMaskUnlikely(Rule):
    info = RuleInfo(
        code="GP179",
        name="cpu-mask-unlikely",
        severity=Severity.WARNING,
        summary="cpu_mask names CPUs that no node has, or a single CPU for all instances.",
        rationale="CPUs count from 0. An instance that is to run on a CPU that its node does not have does not start."
        " As a default of the cluster, one CPU is shared by the instances of a whole node.",
        source=_SOURCE,
        bad=f'{CLUSTER}hvparams:\n  kvm: {{cpu_mask: "0-16"}}\n---\n{GROUP}hardware: {{memory: 64G, cpus: 16}}\n',
        good=f'{CLUSTER}hvparams:\n  kvm: {{cpu_mask: "0-15"}}\n---\n{GROUP}hardware: {{memory: 64G, cpus: 16}}\n',
    )
    finds_more_with_state = True

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(*_MASKS):
            numbers = [int(digits) for digits in re.findall(r"[0-9]+", str(leaf.value)) if len(digits) <= _MOST_DIGITS]
            has, span = _cpus_of_largest_node(context)
            if has and numbers and max(numbers) >= has:
                message = f"{leaf.dotted} names CPU {max(numbers)}, but nodes have {has}: 0 to {has - 1}"
                related = (Related(span, "the hardware is promised here"),) if span else ()
                yield self.hit(declared, message, leaf.span, hint=f"write at most {has - 1}", related=related)
            elif re.fullmatch(r" *[0-9]+ *", str(leaf.value)):
                message = f"{leaf.dotted} puts all instances of a node on CPU {str(leaf.value).strip()}"
                yield self.hit(declared, message, leaf.span, hint="write a range of CPUs, such as 0-7, or all")


def _cpus_of_largest_node(context: Context) -> tuple[int, Span | None]:
    """Return the CPUs of the largest node and where they are promised; 0 if a group's are not known."""
    found: list[tuple[int, Span | None]] = []
    for group in context.groups:
        promised = group.hardware.cpus if group.hardware else None
        nodes = [node.resources.cpu_total or 0 for node in context.members.hosts_in(group)]
        if promised is not None:
            found.append((promised.value, promised.span))
        elif nodes and all(nodes):
            found.append((max(nodes), None))
        else:
            return 0, None
    return max(found, key=lambda item: item[0], default=(0, None))


_UP_TO_4: Final = "ipolicy:\n  minmax:\n    - name: small\n      " + bounds("1G 8G", "1 4", "10G 90G")


class KvmTopology(Rule):
    info = RuleInfo(
        code="GP180",
        name="kvm-topology",
        severity=Severity.WARNING,
        summary="No instance of a spec has the CPUs that cpu_sockets, cpu_cores and cpu_threads of KVM make together.",
        rationale="KVM refuses to start an instance whose virtual CPUs are not the product of sockets, cores and"
        " threads; if one of them is not given, they must be a multiple of the product of the others.",
        source=f"{_SOURCE}; qemu(1), -smp",
        bad=f"{CLUSTER}hvparams:\n  kvm: {{cpu_cores: 4, cpu_threads: 2}}\n{_UP_TO_4}",
        good=f"{CLUSTER}hvparams:\n  kvm: {{cpu_cores: 2}}\n{_UP_TO_4}",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        leaves = [leaf for name in ("cpu_sockets", "cpu_cores", "cpu_threads") if (leaf := _given(context, name))]
        product = 1
        for leaf in leaves:
            product *= int(str(leaf.value))
        for declared, pair in context.each_pair() if leaves else ():
            low, high = max(pair.minimum["cpu-count"], 1), pair.maximum["cpu-count"]
            fits = low <= product <= high if len(leaves) == len(_TOPOLOGY) else high // product * product >= low
            if pair.possible and not fits:
                names = " times ".join(leaf.path[-1] for leaf in leaves)
                message = f"{pair.title} has {low} to {high} CPUs: none of them goes with {names}, which is {product}"
                related = (Related(leaves[0].span, "the topology is here"),)
                hint = "leave the topology to KVM (0), or allow such a cpu-count"
                yield self.hit(declared, message, pair.at("max", "cpu-count"), hint=hint, related=related)


_TOPOLOGY: Final = ("cpu_sockets", "cpu_cores", "cpu_threads")


def _given(context: Context, name: str) -> Leaf | None:
    leaf = context.cluster_leaf(_kvm(name))
    return leaf if leaf is not None and leaf.value else None


class CapabilityUnknown(Rule):
    info = RuleInfo(
        code="GP181",
        name="capability-unknown",
        severity=Severity.WARNING,
        summary="migration_caps or drop_capabilities has a word that QEMU or Linux does not know.",
        rationale="Ganeti passes the words on unchecked. With an unknown capability a migration fails, or a container"
        " does not start. The words of migration_caps stand between colons, those of drop_capabilities between commas.",
        source="QEMU 9, migration capabilities; capabilities(7); Ganeti 3.0.2, run",
        bad=f'{CLUSTER}hvparams:\n  kvm: {{migration_caps: "xbzrle,auto-converge"}}\n',
        good=f'{CLUSTER}hvparams:\n  kvm: {{migration_caps: "xbzrle:auto-converge"}}\n',
    )
    _KNOWN: Final = {
        _kvm("migration_caps"): (":", QEMU_MIGRATION_CAPABILITIES),
        ("hvparams", "lxc", "drop_capabilities"): (",", LINUX_CAPABILITIES),
    }

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(*self._KNOWN):
            between, known = self._KNOWN[leaf.path]
            for word in str(leaf.value).split(between)[:100] if leaf.value else ():
                if word.strip() not in known:
                    hint = did_you_mean(word.strip(), known, f"write known words, with {between!r} between them")
                    message = f"{leaf.path[-1]}: there is no capability {word.strip()!r}"
                    yield self.hit(declared, message, leaf.span, hint=hint)


_PCI: Final = re.compile(
    r"([0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7](@[0-9a-fA-F]+)?(,[a-z_]+=[a-z0-9]+)*"
)


class PciDevice(Rule):
    info = RuleInfo(
        code="GP182",
        name="pci-device",
        severity=Severity.WARNING,
        summary="pci_pass is not a list of PCI devices.",
        rationale="Xen wants BUS:DEVICE.FUNCTION in hexadecimal digits, as lspci shows it. Ganeti splits the list at"
        " semicolons and checks nothing; with a wrong word no instance starts.",
        source=f"{_SOURCE}; xl.cfg(5), pci",
        bad=f'{CLUSTER}hvparams:\n  xen-hvm: {{pci_pass: "01-00.0"}}\n',
        good=f'{CLUSTER}hvparams:\n  xen-hvm: {{pci_pass: "01:00.0;01:00.1"}}\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(("hvparams", "xen-hvm", "pci_pass")):
            for word in str(leaf.value).split(";")[:100] if leaf.value else ():
                if not _PCI.fullmatch(word.strip()):
                    hint = "write bus, device and function: 01:00.0"
                    yield self.hit(declared, f"pci_pass has {word!r}, which is no PCI device", leaf.span, hint=hint)


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of QEMU that a parameter takes. `ignored`: what follows a word, such as its version.

    `are_all`: any other word is wrong; otherwise each release knows more. `between`: what separates several words.
    """

    known: frozenset[str]
    what: str
    are_all: bool = True
    ignored: re.Pattern[str] = re.compile("(?!)")
    between: str = ""


_SOUND: Final = _Words(SOUND_CARDS, "sound card", between=",")
_NEWEST: Final = 20
"""No machine type of QEMU has a later version."""


@dataclass(frozen=True, slots=True)
class _Form:
    """What each word of a text looks like, and what separates several words."""

    pattern: str
    wanted: str
    between: str = ""


_ROOT: Final = _Form("(/.+|[A-Z]+=.+)?", "a device such as /dev/vda1, or UUID=…")
_DISK_PREFIX: Final = _Form("(ioemu:)?[a-z]*d", "the first letters of the names of disks: xvd, sd or hd")
_TEXT_FORMS: Final[dict[Path, _Form]] = {
    _kvm("root_path"): _ROOT,
    ("hvparams", "xen-pvm", "root_path"): _ROOT,
    ("hvparams", "xen-pvm", "blockdev_prefix"): _DISK_PREFIX,
    ("hvparams", "xen-hvm", "blockdev_prefix"): _DISK_PREFIX,
    ("hvparams", "xen-hvm", "boot_order"): _Form(r"(?!.*(.).*\1).*", "each letter once"),
    ("hvparams", "lxc", "devices"): _Form(
        r"([abc] ([0-9]+|\*):([0-9]+|\*) [rwm]{1,3})?", "devices such as c 1:3 rw, with commas between them", ","
    ),
    ("hvparams", "lxc", "extra_cgroups"): _Form("[a-z_.]*", "names such as hugetlb, with commas between them", ","),
}


class HypervisorText(Rule):
    info = RuleInfo(
        code="GP185",
        name="hypervisor-text-form",
        severity=Severity.WARNING,
        summary="A text that Ganeti hands on to the hypervisor does not have the form that it needs.",
        rationale="Ganeti stores any text for a root device, a prefix of disk names, the devices and control groups of"
        " containers, and letters of a boot order in any number. With another form no instance starts.",
        source=f"{_SOURCE}; lxc.container.conf(5), xl.cfg(5)",
        bad=f'{CLUSTER}hvparams:\n  lxc: {{devices: "c 1:3"}}\n',
        good=f'{CLUSTER}hvparams:\n  lxc: {{devices: "c 1:3 rw,c 1:5 rw"}}\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(*_TEXT_FORMS):
            form, text = _TEXT_FORMS[leaf.path], str(leaf.value)[:4096]
            words = [word.strip() for word in text.split(form.between)] if form.between else [text]
            wrong = next((word for word in words if not re.fullmatch(form.pattern, word)), None)
            if wrong is not None:
                message = f"{leaf.dotted} cannot be {wrong!r}" if len(words) == 1 else f"{leaf.dotted} has {wrong!r}"
                yield self.hit(declared, message, leaf.span, hint=f"write {form.wanted}")


_RESCUE: Final = re.compile(r"single|emergency|rescue|[1S]|init=/.*sh")


class DefaultOfOneInstance(Rule):
    info = RuleInfo(
        code="GP186",
        name="default-of-one-instance",
        severity=Severity.WARNING,
        summary="A cluster-wide default of KVM or Xen makes sense for a single instance only.",
        rationale="What the policy declares holds for every instance that says nothing else. A kernel argument for"
        " repairs then starts each of them in single-user mode. Without ACPI no instance notices that Ganeti wants to"
        " shut it down: it waits, and then turns the power off.",
        source=_SOURCE,
        bad=f"{CLUSTER}hvparams:\n  kvm: {{kernel_args: ro single}}\n",
        good=f"{CLUSTER}hvparams:\n  kvm: {{kernel_args: ro quiet}}\n",
    )

    def check(self, context: Context) -> Iterator[Hit]:
        hypervisors = ("kvm", "xen-pvm", "xen-hvm")
        paths = [("hvparams", item, name) for item in hypervisors for name in ("kernel_args", "acpi")]
        for declared, leaf in context.explicit_at(*paths):
            words = str(leaf.value).split() if leaf.path[-1] == "kernel_args" else []
            repair = next((word for word in words if _RESCUE.fullmatch(word)), None)
            if repair is not None:
                message = f"{leaf.dotted} has {repair}: every instance starts in single-user mode"
                yield self.hit(declared, message, leaf.span, hint="set it for the instance that needs it")
            elif leaf.value is False:
                message = f"{leaf.dotted} is false: instances do not notice that they are to shut down"
                yield self.hit(
                    declared, message, leaf.span, hint="write true, and set it for the instance that needs it"
                )


class KvmWordMisspelt(Rule):
    info = RuleInfo(
        code="GP157",
        name="kvm-word-misspelt",
        severity=Severity.WARNING,
        summary="A CPU model, machine type, keyboard layout or emulated device is not one of QEMU.",
        rationale="Ganeti stores any text. QEMU refuses an unknown word, and no instance starts. Each release knows"
        " more CPU models and machine types, so of these gpolicy reports only what is one slip away from one that it"
        " knows, the bare name of a family, or an impossible version. The other words are fixed lists.",
        source="qemu-system-x86_64 -cpu help, -machine help; qemu(1), -k, -vga, -usbdevice",
        bad=f"{CLUSTER}hvparams:\n  kvm: {{cpu_type: Haswel}}\n",
        good=f"{CLUSTER}hvparams:\n  kvm: {{cpu_type: Haswell, vga: std}}\n",
    )
    _KNOWN: Final = {
        _kvm("cpu_type"): _Words(KVM_CPU_MODELS, "CPU model", are_all=False, ignored=re.compile(r"(,.*|-v[0-9]+)$")),
        _kvm("machine_version"): _Words(
            KVM_MACHINES, "machine type", are_all=False, ignored=re.compile(r"(,.*|-[0-9][0-9.]*)$")
        ),
        _kvm("keymap"): _Words(KVM_KEYMAPS, "keyboard layout"),
        _kvm("vga"): _Words(KVM_GRAPHICS, "graphics card"),
        _kvm("soundhw"): _SOUND,
        ("hvparams", "xen-hvm", "soundhw"): _SOUND,
        _kvm("usb_devices"): _Words(USB_DEVICES, "USB device", ignored=re.compile(":.*$"), between=","),
    }

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(*self._KNOWN):
            words = self._KNOWN[leaf.path]
            text = str(leaf.value)[:1000]
            for written in text.split(words.between) if words.between else [text]:
                hint = _unlike(written.strip(), words)
                if hint:
                    message = f"{leaf.path[-1]}: QEMU has no {words.what} {written.strip()!r}"
                    yield self.hit(declared, message, leaf.span, hint=hint)


def _unlike(written: str, words: _Words) -> str:
    """Return what to write instead of a word; nothing if it is known, or may be one of a newer release."""
    word = words.ignored.sub("", written)
    if not written or word in words.known:
        version = re.match(r"pc-(?:i440fx|q35)-([0-9]+)", written)
        return f"there is no version {version[1]}" if version and int(version[1][:9]) > _NEWEST else ""
    if words.are_all:
        return "" if "/" in word else did_you_mean_one_of(word, f"{words.what}s", words.known)
    family = sorted(name for name in words.known if name.startswith(f"{word}-") and "-v" not in name)
    near = surely_meant(word, words.known)
    if near is None and (family or re.fullmatch(r"pc-.*\.[0-9]+[a-z]+", word)):
        return f"write one of {', '.join(family)}" if family else "write a version as QEMU has it, such as 7.2"
    return f"Did you mean `{near}`?" if near is not None else ""
