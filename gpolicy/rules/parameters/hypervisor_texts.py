"""GP157, GP181, GP182 and GP185: words and texts of hypervisor parameters that Ganeti hands on unchecked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, Rule
from gpolicy.findings import warning_rule
from gpolicy.ganeti.parameter import Path
from gpolicy.ganeti.parameters import kvm
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
from gpolicy.policy.misspelt import is_one_slip, surely_meant
from gpolicy.printable import some
from gpolicy.rules.examples import CLUSTER
from gpolicy.rules.parameters.misformed_texts import Form, misformed

_SOURCE: Final = "Ganeti 3.0.2, how it starts instances; gnt-instance(8)"


class CapabilityUnknown(Rule):
    info = warning_rule("GP181", "capability-unknown")(
        summary="migration_caps or drop_capabilities has a word that QEMU or Linux does not know.",
        rationale="Ganeti passes the words on unchecked. With an unknown capability a migration fails, or a container"
        " does not start. The words of migration_caps stand between colons, those of drop_capabilities between commas.",
        source="QEMU 9, migration capabilities; capabilities(7); Ganeti 3.0.2, run",
        bad=f'{CLUSTER}hvparams:\n  kvm: {{migration_caps: "xbzrle,auto-converge"}}\n',
        good=f'{CLUSTER}hvparams:\n  kvm: {{migration_caps: "xbzrle:auto-converge"}}\n',
    )
    _KNOWN: Final = {
        kvm("migration_caps"): (":", QEMU_MIGRATION_CAPABILITIES),
        ("hvparams", "lxc", "drop_capabilities"): (",", LINUX_CAPABILITIES),
    }

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf in context.explicit_at(*self._KNOWN):
            between, known = self._KNOWN[leaf.path]
            words = [word.strip() for word in str(leaf.value).split(between)[:100]] if leaf.value else []
            unknown = [word for word in words if word not in known]
            if unknown:
                hint = did_you_mean(unknown[0], known, f"write known words, with {between!r} between them")
                message = f"{leaf.path[-1]}: there is no capability {some([repr(word) for word in unknown], 5)}"
                yield self.hit(declared, message, leaf.span, hint=hint)


_PCI: Final[dict[Path, Form]] = {
    ("hvparams", "xen-hvm", "pci_pass"): Form(
        r"(([0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7](@[0-9a-fA-F]+)?(,[a-z_]+=[a-z0-9]+)*)?",
        "bus, device and function, such as 01:00.0, with semicolons between devices",
        ";",
    )
}


class PciDevice(Rule):
    info = warning_rule("GP182", "pci-device")(
        summary="pci_pass is not a list of PCI devices.",
        rationale="Xen wants BUS:DEVICE.FUNCTION in hexadecimal digits, as lspci shows it. Ganeti splits the list at"
        " semicolons and checks nothing; with a wrong word no instance starts.",
        source=f"{_SOURCE}; xl.cfg(5), pci",
        bad=f'{CLUSTER}hvparams:\n  xen-hvm: {{pci_pass: "01-00.0"}}\n',
        good=f'{CLUSTER}hvparams:\n  xen-hvm: {{pci_pass: "01:00.0;01:00.1"}}\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf, message, hint in misformed(context, _PCI):
            yield self.hit(declared, message, leaf.span, hint=hint)


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


_OF_LIBVIRT: Final = {"host-passthrough": "host", "host-model": "host", "maximum": "max"}
_SOUND: Final = _Words(SOUND_CARDS, "sound card", between=",")
_NEWEST: Final = 20
"""No machine type of QEMU has a later version."""


_ROOT: Final = Form(
    r"(/dev/((xv|[shv])d[a-z]{1,2}[0-9]{0,3}|(?!(xv|[shv])d|[dhsvx]{2,4}[a-z]?[0-9]*$)([\w.+:-]+/)*[\w.+:-]*\w)"
    r"|[A-Z]+=\S+)?",
    "a device such as /dev/vda1, or UUID=…",
)
_CPU_MODEL: Final = Form(r"((?!\d+\.)[A-Za-z0-9][\w.+-]*(,[+-]?[\w.-]+(=[^,\s]+)?)*,?)?", "a CPU model, such as host")
_MACHINE: Final = Form(r"([A-Za-z][\w.+-]+(,[\w.-]+=[^,\s]*)*,?)?", "a machine type, such as pc-q35-7.2")
_XEN_ROOT: Final = Form(_ROOT.pattern.replace("xv|[shv]", "xv|[sh]", 1), "a disk of Xen, such as /dev/xvda1, or UUID=…")
_ARGUMENTS: Final = Form("(?!(?:.* )?/).*", "parameters of the kernel, such as ro or root=/dev/vda1")
_DISK_PREFIX: Final = Form("(ioemu:)?(xv|[sh])d", "the first letters of the names of disks: xvd, sd or hd")
_TEXT_FORMS: Final[dict[Path, Form]] = {
    kvm("root_path"): _ROOT,
    kvm("kernel_args"): _ARGUMENTS,
    ("hvparams", "xen-pvm", "kernel_args"): _ARGUMENTS,
    kvm("cpu_type"): _CPU_MODEL,
    kvm("machine_version"): _MACHINE,
    ("hvparams", "xen-pvm", "root_path"): _XEN_ROOT,
    ("hvparams", "xen-pvm", "blockdev_prefix"): _DISK_PREFIX,
    ("hvparams", "xen-hvm", "blockdev_prefix"): _DISK_PREFIX,
    ("hvparams", "xen-hvm", "boot_order"): Form(r"(?!.*(.).*\1).*", "each letter once"),
    ("hvparams", "lxc", "devices"): Form(
        r"([abc] ([0-9]+|\*):([0-9]+|\*) [rwm]{1,3})?", "devices such as c 1:3 rw, with commas between them", ","
    ),
    ("hvparams", "lxc", "extra_config"): Form(
        r"([a-z][\w.]*+ *+=.*+)?", "lines KEY=VALUE, with commas between them", ","
    ),
    ("hvparams", "lxc", "extra_cgroups"): Form("[a-z_.]*", "names such as hugetlb, with commas between them", ","),
}


class HypervisorText(Rule):
    info = warning_rule("GP185", "hypervisor-text-form")(
        summary="A text that Ganeti hands on to the hypervisor does not have the form that it needs.",
        rationale="Ganeti stores any text for a root device, a CPU model, a machine type, a prefix of disk names, the"
        " devices and control groups of containers, and letters of a boot order in any number. With another form no"
        " instance starts.",
        source=f"{_SOURCE}; lxc.container.conf(5), xl.cfg(5)",
        bad=f'{CLUSTER}hvparams:\n  lxc: {{devices: "c 1:3"}}\n',
        good=f'{CLUSTER}hvparams:\n  lxc: {{devices: "c 1:3 rw,c 1:5 rw"}}\n',
    )

    def check(self, context: Context) -> Iterator[Hit]:
        for declared, leaf, message, hint in misformed(context, _TEXT_FORMS):
            yield self.hit(declared, message, leaf.span, hint=hint)


class KvmWordMisspelt(Rule):
    info = warning_rule("GP157", "kvm-word-misspelt")(
        summary="A CPU model, machine type, keyboard layout or emulated device is not one of QEMU.",
        rationale="Ganeti stores any text. QEMU refuses an unknown word, and no instance starts. Each release knows"
        " more CPU models and machine types, so of these gpolicy reports only what is one slip away from one that it"
        " knows, the bare name of a family, a word of libvirt, or an impossible version. The other words are fixed"
        " lists.",
        source="qemu-system-x86_64 -cpu help, -machine help; qemu(1), -k, -vga, -usbdevice",
        bad=f"{CLUSTER}hvparams:\n  kvm: {{cpu_type: Haswel}}\n",
        good=f"{CLUSTER}hvparams:\n  kvm: {{cpu_type: Haswell, vga: std}}\n",
    )
    _KNOWN: Final = {
        kvm("cpu_type"): _Words(KVM_CPU_MODELS, "CPU model", are_all=False, ignored=re.compile(r"(,.*|-v[0-9]+)$")),
        kvm("machine_version"): _Words(
            KVM_MACHINES, "machine type", are_all=False, ignored=re.compile(r"(,.*|-[0-9][0-9.]*)$")
        ),
        kvm("keymap"): _Words(KVM_KEYMAPS, "keyboard layout"),
        kvm("vga"): _Words(KVM_GRAPHICS, "graphics card"),
        kvm("soundhw"): _SOUND,
        ("hvparams", "xen-hvm", "soundhw"): _SOUND,
        kvm("usb_devices"): _Words(USB_DEVICES, "USB device", ignored=re.compile(":.*$"), between=","),
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
    if words.what == "machine type" and re.search("440|q-?35", word.lower()) and not written.startswith("pc-"):
        return "" if written == "q35" else "write pc-i440fx or pc-q35, with or without a version: pc-q35-7.2"
    if words.what == "CPU model" and word.startswith(("pc-", "q35")):
        return "it is a machine type: write a CPU model"
    if words.what == "machine type" and word in KVM_CPU_MODELS:
        return "it is a CPU model: write a machine type"
    if not written or word in words.known:
        version = re.match(r"pc-(?:i440fx|q35)-([0-9]+)", written)
        return f"there is no version {version[1]}" if version and int(version[1][:9]) > _NEWEST else ""
    if words.what == "CPU model" and word in _OF_LIBVIRT:
        return f"{word} is a word of libvirt: write {_OF_LIBVIRT[word]}"
    if words.are_all:
        return "" if "/" in word else did_you_mean_one_of(word, f"{words.what}s", words.known)
    family = sorted(name for name in words.known if name.startswith(f"{word}-") and "-v" not in name)
    near = surely_meant(word, words.known) or ("host" if is_one_slip(word, "host") else None)
    if near is None and (family or re.fullmatch(r"pc-.*\.[0-9]+[a-z]+|pc-(i440fx|q35)[0-9.]+", word)):
        return f"write one of {', '.join(family)}" if family else "write a version as QEMU has it, such as 7.2"
    return f"Did you mean `{near}`?" if near is not None else ""
