"""GP157, GP181, GP182, GP185 and GP191: words and texts that Ganeti hands on unchecked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gpolicy.checking.context import Context, texts
from gpolicy.checking.rule import Hit, hit, warning
from gpolicy.findings import Span
from gpolicy.ganeti.parameters import PARAMETERS, kvm
from gpolicy.ganeti.vocabulary import Path, Reach, Type, known_words
from gpolicy.guessing import did_you_mean, did_you_mean_one_of, is_one_slip, surely_meant
from gpolicy.printable import some
from gpolicy.rules.shared import Form, misformed

_PCI: Final[dict[Path, Form]] = {
    ("hvparams", "xen-hvm", "pci_pass"): Form(
        r"(([0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[01][0-9a-fA-F]\.[0-7](@[0-9a-fA-F]+)?(,[a-z_]+=[a-z0-9]+)*)?",
        "bus, device and function, such as 01:00.0, with semicolons between devices",
        ";",
    )
}
_OF_LIBVIRT: Final = {"host-passthrough": "host", "host-model": "host", "maximum": "max"}
_NEWEST: Final = 20
"""No machine type of QEMU has a later version."""
_ROOT: Final = Form(
    r"(/dev/((xv|[shv])d[a-z]{1,2}[0-9]{0,3}|(?!(xv|[shv])d|[dhsvx]{2,4}[a-z]?[0-9]*$)([\w.+:-]+/)*[\w.+:-]*\w)"
    r"|[A-Z]+=\S+)?",
    "a device such as /dev/vda1, or UUID=…",
)
_XEN_ROOT: Final = Form(_ROOT.pattern.replace("xv|[shv]", "xv|[sh]", 1), "a disk of Xen, such as /dev/xvda1, or UUID=…")
_ARGUMENTS: Final = Form("(?!(?:.* )?/).*", "parameters of the kernel, such as ro or root=/dev/vda1")
_DISK_PREFIX: Final = Form("(ioemu:)?(xv|[sh])d", "the first letters of the names of disks: xvd, sd or hd")
_TEXT_FORMS: Final[dict[Path, Form]] = {
    kvm("root_path"): _ROOT,
    kvm("kernel_args"): _ARGUMENTS,
    ("hvparams", "xen-pvm", "kernel_args"): _ARGUMENTS,
    kvm("cpu_type"): Form(r"((?!\d+\.)[A-Za-z0-9][\w.+-]*(,[+-]?[\w.-]+(=[^,\s]+)?)*,?)?", "a model such as host,+vmx"),
    kvm("machine_version"): Form(r"([A-Za-z][\w.+-]+(,[\w.-]+=[^,\s]*)*,?)?", "a machine type, such as pc-i440fx-7.2"),
    ("hvparams", "xen-pvm", "root_path"): _XEN_ROOT,
    ("hvparams", "xen-pvm", "blockdev_prefix"): _DISK_PREFIX,
    ("hvparams", "xen-hvm", "blockdev_prefix"): _DISK_PREFIX,
    ("hvparams", "xen-hvm", "boot_order"): Form(r"(?!.*(.).*\1).*", "each letter once"),
    ("hvparams", "lxc", "devices"): Form(
        r"([abc] ([0-9]+|\*):([0-9]+|\*) [rwm]{1,3})?", "devices such as c 1:3 rw, with commas between them", ","
    ),
    ("hvparams", "lxc", "extra_config"): Form(r"([a-z][\w.]*+ *+=.*+)?", "lines KEY=VALUE, commas between them", ","),
    ("hvparams", "lxc", "extra_cgroups"): Form("[a-z_.]*", "names such as hugetlb, with commas between them", ","),
}
_NOTHING: Final = frozenset(
    {"none", "null", "nil", "undef", "undefined", "unset", "empty", "n/a", "na", "no", "off", "false", "~", "-", '""'}
    | {"*", "todo", "tbd", "fixme", "changeme", "default", "inherit"}
)
_TEXTS: Final = tuple(
    parameter.path for parameter in PARAMETERS if parameter.type in (Type.STRING, Type.LIST, Type.SET)
)
_WITH_FORM: Final[frozenset[Path]] = frozenset(
    path
    for path in _TEXTS
    if path[-1]
    in (
        *("keymap", "vga", "soundhw", "usb_devices", "migration_caps", "root_path", "blockdev_prefix", "devices"),
        *("drop_capabilities", "mac_prefix", "compression_tools", "vlan", "enabled_disk_templates", "reserved_lvs"),
        *("enabled_hypervisors", "disk-templates"),
    )
) | {
    parameter.path
    for parameter in PARAMETERS
    if parameter.form or (parameter.reach in (Reach.FILE, Reach.PROGRAM) and parameter.path[-1] != "default_iallocator")
}
"""Texts that a rule of their own holds against a form or a list, in which there is no word for nothing."""
_OPEN: Final = frozenset(parameter.path for parameter in PARAMETERS if parameter.reach is Reach.ARGUMENTS) | frozenset(
    path for path in _TEXTS if path[-1] in ("kernel_args", "cpuid", "disk-custom", "net-custom", "reserved_lvs")
)
"""Texts of several words."""
_WITH_COLON: Final = frozenset({kvm("vnc_bind_address"), kvm("spice_bind"), ("diskparams", "gluster", "host")})
"""IPv6 addresses (GP131 and GP174)."""
_WORDS_BESIDE: Final = {
    (*parameter.path[:-1], word): parameter.path[-1]
    for parameter in PARAMETERS
    for word in parameter.choices
    if len(parameter.path) > 1 and word and parameter.type is Type.CHOICE
}
"""The words that parameters of the same table take, by their place: nobody means them in a text."""


_CAPABILITIES: Final = {
    kvm("migration_caps"): (":", "qemu_migration_capabilities"),
    ("hvparams", "lxc", "drop_capabilities"): (",", "linux_capabilities"),
}


@warning("GP181")
def capability_unknown(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*_CAPABILITIES):
        between, known = _CAPABILITIES[leaf.path][0], known_words(_CAPABILITIES[leaf.path][1])
        words = [word.strip() for word in str(leaf.value).split(between)[:100]] if leaf.value else []
        unknown = [word for word in words if word not in known]
        if unknown:
            hint = did_you_mean(unknown[0], known, f"write known words, with {between!r} between them")
            separated = re.sub("[ ,;:]+", between, str(leaf.value))
            hint = f"Did you mean `{separated}`?" if known.issuperset(separated.split(between)) else hint
            message = f"{leaf.path[-1]}: there is no capability {some([repr(word) for word in unknown], 5)}"
            yield hit(declared, message, leaf.span, hint)


@warning("GP182")
def pci_device(context: Context) -> Iterator[Hit]:
    return misformed(context, _PCI)


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of QEMU that a parameter takes. `ignored`: what follows a word, such as its version.

    `are_all`: any other word is wrong; otherwise each release knows more. `between`: what separates several words.
    """

    known: str
    what: str
    are_all: bool = True
    ignored: re.Pattern[str] = re.compile("(?!)")
    between: str = ""


_SOUND: Final = _Words("sound_cards", "sound card", between=",")


@warning("GP185")
def hypervisor_text_form(context: Context) -> Iterator[Hit]:
    return misformed(context, _TEXT_FORMS)


_WORDS: Final = {
    kvm("cpu_type"): _Words("kvm_cpu_models", "CPU model", are_all=False, ignored=re.compile(r"(,.*|-v[0-9]+)$")),
    kvm("machine_version"): _Words(
        "kvm_machines", "machine type", are_all=False, ignored=re.compile(r"(,.*|-[0-9][0-9.]*)$")
    ),
    kvm("keymap"): _Words("kvm_keymaps", "keyboard layout"),
    kvm("vga"): _Words("kvm_graphics", "graphics card"),
    kvm("soundhw"): _SOUND,
    ("hvparams", "xen-hvm", "soundhw"): _SOUND,
    kvm("usb_devices"): _Words("usb_devices", "USB device", ignored=re.compile(":.*$"), between=","),
}


@warning("GP157")
def kvm_word_misspelt(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*_WORDS):
        words = _WORDS[leaf.path]
        text = str(leaf.value)[:1000]
        for written in text.split(words.between) if words.between else [text]:
            hint = _unlike(written.strip(), words)
            if hint:
                yield hit(declared, f"{leaf.path[-1]}: QEMU has no {words.what} {written.strip()!r}", leaf.span, hint)


def _unlike(written: str, words: _Words) -> str:
    """Return what to write instead of a word; nothing if it is known, or may be one of a newer release."""
    word = words.ignored.sub("", written)
    if words.what == "machine type" and re.search("440|q-?35", word.lower()) and not written.startswith("pc-"):
        return "" if written == "q35" else "write a type such as pc-i440fx-7.2"
    if words.what == "CPU model" and word.startswith(("pc-", "q35")):
        return "it is a machine type: write a CPU model"
    if words.what == "machine type" and word in known_words("kvm_cpu_models"):
        return "it is a CPU model: write a machine type"
    if not written or word in known_words(words.known):
        version = re.match(r"pc-(?:i440fx|q35)-([0-9]+)", written)
        return f"there is no version {version[1]}" if version and int(version[1][:9]) > _NEWEST else ""
    if words.what == "CPU model" and word in _OF_LIBVIRT:
        return f"{word} is a word of libvirt: write {_OF_LIBVIRT[word]}"
    if words.are_all:
        return "" if "/" in word else did_you_mean_one_of(word, f"{words.what}s", known_words(words.known))
    family = sorted(name for name in known_words(words.known) if name.startswith(f"{word}-") and "-v" not in name)
    near = surely_meant(word, known_words(words.known)) or ("host" if is_one_slip(word, "host") else None)
    if near is None and (family or re.fullmatch(r"pc-.*\.[0-9]+[a-z]+|pc-(i440fx|q35)[0-9.]+", word)):
        return f"write one of {', '.join(family)}" if family else "write a type such as pc-i440fx-7.2"
    return f"Did you mean `{near}`?" if near is not None else ""


@warning("GP191", explains=1)
def text_slip(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*_TEXTS):
        words = [(str(leaf.value), leaf.span)]
        if not isinstance(leaf.value, str):
            words = [(text, leaf.at(index)) for index, text in enumerate(texts(leaf))]
        for text, span in words:
            if text.lower() in _NOTHING and leaf.path not in _WITH_FORM:
                message = f"{leaf.dotted} is {text!r}, which Ganeti takes for a name or a word"
                yield hit(declared, message, span, 'write "" for nothing, or leave the key out')
            elif (other := _WORDS_BESIDE.get((*leaf.path[:-1], text))) and leaf.path not in _WITH_FORM:
                message = f"{leaf.dotted} is {text!r}, a word of {other}"
                yield hit(declared, message, span, "correct the one that was copied")
            elif leaf.path not in _OPEN:
                meant = text if leaf.path in _WITH_COLON else text.removesuffix(":")
                yield from _ends(declared.label, leaf.dotted, meant, text, span)
    for tag in context.tags:
        if tag.suffix.rstrip(":").lower() in _NOTHING or tag.text.lower() in _NOTHING:
            yield hit(tag.label, f"the tag is {tag.text!r}: no tag means nothing", tag.span, "leave it out")
        else:
            bare = tag.text.rstrip(":/=.-")  # with what no tag ends on purpose
            meant = bare if ":" in bare and not tag.text.startswith("htools") else tag.text
            if tag.typed and tag.text.endswith(tuple(f"{mark}:" for mark in "/=.-")):
                meant = f"{bare}:"
            yield from _ends(tag.label, "the tag", meant, tag.text, tag.span)
    for what, label, name, span in _names(context):
        yield from _ends(label, f"the name of the {what}", name, name, span)


def _ends(label: str, title: str, meant: str, text: str, span: Span) -> Iterator[Hit]:
    behind = re.match(r"[\s,;]*", meant[::-1])  # from the end, so that one pass is enough
    core = meant[: len(meant) - (behind.end() if behind else 0)].lstrip()
    if core and core != text:
        yield hit(label, f"{title} is {text!r}: what stands around {core!r} belongs to it", span, f"write {core}")


def _names(context: Context) -> Iterator[tuple[str, str, str, Span]]:
    """Yield the names that people choose: what each is of, its label, it itself and its place."""
    for nodes in context.policy.node_sets:
        yield "node set", nodes.label, nodes.name, nodes.document.value_span(("name",))
    for guard in context.policy.guards:
        yield "guard", f"guard/{guard.name.value}", guard.name.value, guard.name.span
    for scenario in context.policy.scenarios:
        yield "test", f"test/{scenario.name.value}", scenario.name.value, scenario.name.span
    for declared, pair in context.each_pair():
        if pair.name:
            yield "spec", declared.label, pair.name, pair.span
