"""GP145 to GP148, GP157, GP159, GP181 and others: files and directories of the nodes that a policy names; words and
texts that Ganeti hands on unchecked.
"""

import re
from collections.abc import Iterator
from posixpath import normpath
from typing import Any, Final, cast

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, error, hit, warning
from gpolicy.data import read_data
from gpolicy.findings import Role, Span
from gpolicy.ganeti.htools_reading import ALLOCATOR_PARAMETERS, HAIL_OPTIONS, Takes, hail_parameters
from gpolicy.ganeti.parameters import PARAMETERS, kvm, parameter_at
from gpolicy.ganeti.vocabulary import Path, Reach, Type, known_words
from gpolicy.guessing import did_you_mean, did_you_mean_one_of, is_one_slip, name_meant, surely_meant
from gpolicy.policy.model import Leaf
from gpolicy.printable import some
from gpolicy.rules.shared import FILES, conflict, forms_of, misformed, of_cluster, together

_FILE: Final[Path] = ("file_storage_dir",)
_SHARED: Final[Path] = ("shared_file_storage_dir",)
FORBIDDEN: Final = (
    *("/boot", "/dev", "/etc", "/home", "/proc", "/root", "/sys"),
    *(f"{top}/{name}" for top in ("", "/usr", "/usr/local") for name in ("bin", "lib", "lib32", "lib64", "sbin")),
)
"""Where Ganeti keeps no disks (checked against its own list)."""
_OF_GANETI: Final = ("/var/lib/ganeti", "/var/log/ganeti", "/run/ganeti", "/var/run/ganeti", "/usr/share/ganeti")
_OPEN_FOLDERS: Final = ("/tmp", "/var/tmp", "/dev/shm", "/home")  # noqa: S108 (what is warned of)
_DIRECTORIES: Final = frozenset({"file_storage_dir", "shared_file_storage_dir", "mem_path", "vnc_x509_path"})
_ALLOCATOR: Final[Path] = ("default_iallocator",)
_TAKES: Final = {option.long: option.takes for option in HAIL_OPTIONS}


def _below(path: str, tops: tuple[str, ...]) -> str | None:
    """Return which of `tops` a path is, or lies below."""
    return next((top for top in tops if path == top or path.startswith(f"{top}/")), None)


@error("GP145")
def storage_directory_forbidden(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(_FILE, _SHARED):
        path = re.sub("^//", "/", normpath(str(leaf.value or "/unset")))
        top = "/" if path == "/" else _below(path, (*FORBIDDEN, *_OF_GANETI))
        where = f"in {top}" if top else "" if path.startswith("/") else "below a path that is not absolute"
        if where:
            message = f"{leaf.dotted} is {leaf.value}: Ganeti keeps no disks {where}"
            is_usable = not top and ".." not in path and not _below(f"/{path}", (*FORBIDDEN, *_OF_GANETI))
            right = f"/{path}" if is_usable else "a directory such as /srv/ganeti/file-storage"
            yield hit(declared, message, leaf.span, f"write {right}")


@warning("GP146", When.MORE_WITH_STATE)
def storage_directories_same(context: Context) -> Iterator[Hit]:
    for declared, (local, shared) in together(context, _FILE, _SHARED):
        one, other = (normpath(str(item.value)) if item.value else "" for item in (local, shared))
        if one and other and (_below(one, (other,)) or _below(other, (one,))):
            both = f"{_FILE[0]} and {_SHARED[0]} are both {one}"
            message = both if one == other else f"{one} and {other} are not two separate directories"
            yield conflict(context, declared, message, "write a directory of its own for each", shared, local)


@warning("GP147")
def path_unsafe(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*FILES):
        text = str(leaf.value) if isinstance(leaf.value, str) else ""
        scheme = text.partition("://")[0] if "://" in text else ""
        top = _below(normpath(text), _OPEN_FOLDERS) if text.startswith("/") and leaf.path[-1] != "mem_path" else None
        reason = ""
        if top is not None and not (top == "/home" and leaf.path in (_FILE, _SHARED)):  # GP145
            reason, hint = f"users can write to {top}", "write a path that only root can write to"
        elif scheme in ("http", "ftp", "tftp"):
            reason, hint = f"what comes by {scheme} can be changed on its way", "use https, or a file on the nodes"
        elif text.startswith("/") and ".." in text.split("/"):
            reason, hint = f"it leads to {normpath(text)}", f"write {normpath(text)}"
        if reason:
            yield hit(declared, f"{leaf.dotted} is {text!r}: {reason}", leaf.span, hint)


@warning("GP159")
def path_unlikely(context: Context) -> Iterator[Hit]:
    first: dict[str, Leaf] = {}
    for declared, leaf in context.explicit_at(*FILES):
        text = leaf.value if isinstance(leaf.value, str) else ""
        may_be_copied = text.startswith("/") and text not in ("/bin/true", "/usr/bin/true")
        twin = first.setdefault(text, leaf) if may_be_copied else leaf
        reason, hint = _unlikely(leaf.path, text) if text.startswith("/") else ("", "")
        if re.fullmatch("[a-z]+:/*", text):
            reason, hint = "it names no server and no file", "write the whole URL"
        both = {leaf.path[-1], twin.path[-1]}  # that of one hypervisor and of another may be the same
        are_passwords = all(name.endswith("_password_file") for name in both)
        if not reason and len(both) > 1 and not are_passwords and not both <= _DIRECTORIES:  # GP146
            reason, hint = f"{twin.dotted} is the same", "correct the one that was copied"
        if reason:
            yield hit(declared, f"{leaf.dotted} is {text!r}: {reason}", leaf.span, hint)


def _mistyped(path: Path, text: str) -> str:
    """Return the path that is most likely meant by one that is a slip away from it; nothing if it may be right."""
    parameter = parameter_at(path)
    default = parameter.default if parameter is not None else None
    if isinstance(default, str) and text != default and len(default) > 1 and name_meant(text, [default]):
        return default
    parts, said = text.split("/"), read_data("forms.toml")[path_unlikely.info.code]
    for place, part in enumerate(parts[1:3], 1):
        known = said["usual"].get("/".join(parts[:place]), [])
        if not known or part in known or part in said["own"] or re.search("[0-9]", part):
            continue
        near = sorted(word for word in known if is_one_slip(part, word))
        if len(parts) > place + 1 and near:
            return "/".join([*parts[:place], near[0], *parts[place + 1 :]])
        glued = next((word for word in sorted(known, key=len, reverse=True) if part.startswith(word)), "")
        if place == 1 and len(parts) == 2 and glued and path[-1] not in _DIRECTORIES:
            return f"/{glued}/{part.removeprefix(glued)}"
    known = said["folders"]
    meant = [part if part in (*known, "image") else surely_meant(part, known) or part for part in parts]
    return "/".join(meant) if meant != parts else ""


def _unlikely(path: Path, text: str) -> tuple[str, str]:
    """Return why a path is not one of what the parameter is for, and what to write; nothing if it may be."""
    name = path[-1]
    if re.search(r"[,;: ]/", text) and "://" not in text:
        return "it is one path, not several", f"write {re.split('[,;: ]', text)[0]}"
    if meant := _mistyped(path, text.rstrip(" ,;:")):
        return "most likely it is mistyped", f"Did you mean `{meant}`?"
    if name in _DIRECTORIES:
        top = _below(normpath(text), ("/proc", "/sys", *_OPEN_FOLDERS[:2])) if name == "mem_path" else None
        if normpath(text) == "/" and name in ("mem_path", "vnc_x509_path"):
            return "it is the directory of everything", "name the directory itself"
        if name.endswith("_dir") and " " in text.strip():
            return "Ganeti splits lists of such paths at blanks", "write a path without blanks"
        return (f"{top} is not in memory", "write a mount point such as /dev/hugepages") if top else ("", "")
    parameter, said = parameter_at(path), read_data("forms.toml")[path_unlikely.info.code]
    is_program = parameter is not None and parameter.reach is Reach.PROGRAM
    program = text.rpartition("/")[2]
    if text.endswith("/") or normpath(text) in (*said["directories"], *FORBIDDEN) or program in ("bin", "sbin"):
        return "it is a directory", f"name a {'program' if is_program else 'file'} in it"
    if name in ("kernel_path", "initrd_path") and _below(normpath(text), ("/dev",)):
        return "it is a device", "name the file of the guest's kernel or initrd"
    if text in {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}:
        return "nothing useful can be read from it", "name a file, or leave it out"
    if is_program and " -" in text and name not in ("oob_program", "drbd_usermode_helper"):  # GP140
        return "Ganeti runs it as it is written, without arguments", "write a script that adds the arguments"
    if is_program and program in {"false", "nologin"}:
        return "it always fails", "write a program that succeeds, such as /bin/true, or leave it out"
    other = said["programs"].get(name)
    if other is not None and re.match(other["pattern"], program):
        wanted = "the emulator" if name == "kvm_path" else "a script that speaks it"
        return f"{program} {other['lacks']}", f"name {wanted}"
    return "", ""


@warning("GP148", When.MORE_WITH_STATE, role=Role.DECIDES)
def allocator_unlikely(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(_ALLOCATOR):
        name, message, hint = str(leaf.value), "", "write hail"
        if "/" in name:
            message = f"default_iallocator is {name!r}: Ganeti looks for a name, not for a path"
            hint = f"write {name.rpartition('/')[2] or 'hail'}"
        elif len(name) > 2 and not name[-1].isdigit() and is_one_slip(name, "hail"):
            message, hint = f"there is no allocator {name!r}", "Did you mean `hail`?"
        elif re.search(r"[\s,;:]\w", name):
            message = f"default_iallocator is {name!r}: it is one name"
        elif re.fullmatch("(br|xenbr|vmbr|bond|eth|en[ops]|vlan)[0-9][0-9.a-z]*", name):
            message = f"default_iallocator is {name!r}, which is the name of a network interface"
        elif name in known_words("htools_programs"):
            message = f"default_iallocator is {name}, a program of htools that is no allocator"
        if message:
            yield hit(declared, message, leaf.span, hint)
    parameters, allocator = context.cluster_leaf(ALLOCATOR_PARAMETERS), of_cluster(context, _ALLOCATOR)
    if parameters is None or allocator is None or allocator.value not in ("hail", ""):
        return
    for name, value in sorted(cast(dict[str, str | None], parameters.value).items()):
        if failure := hail_parameters({name: value}).failure:
            yield hit("cluster", f"hail refuses every request: {failure}", parameters.at(name), _hail_hint(name, value))


def _hail_hint(name: str, value: str | None) -> str:
    """Return what to write in place of a parameter that hail does not take."""
    if name not in _TAKES:
        hint = did_you_mean_one_of(name.lstrip("-"), "options", _TAKES)
        near = next((word for word in _TAKES if f"`{word}`" in hint and _TAKES[word] is Takes.NOTHING), None)
        return f"write `{near}: null`" if near and value is not None else hint
    if _TAKES[name] is Takes.NOTHING and value is not None:
        return "leave it out" if value == "false" else f"write `{name}: null`, which Ganeti passes without a value"
    return "write its value as a text" if _TAKES[name] is Takes.REQUIRED and value is None else ""


_OF_LIBVIRT: Final = {"host-passthrough": "host", "host-model": "host", "maximum": "max"}
_NEWEST: Final = 20
"""No machine type of QEMU has a later version."""
_TEXTS: Final = tuple(
    parameter.path for parameter in PARAMETERS if parameter.type in (Type.STRING, Type.LIST, Type.SET)
)
_WITH_FORM: Final = {parameter.path for parameter in PARAMETERS if parameter.form} | ({*FILES} - {_ALLOCATOR})
"""Texts that a rule of their own holds against a form, in which there is no word for nothing."""
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


@warning("GP181")
def capability_unknown(context: Context) -> Iterator[Hit]:
    forms = forms_of(capability_unknown.info.code)
    for declared, leaf in context.explicit_at(*forms):
        between, known = forms[leaf.path]["between"], known_words(forms[leaf.path]["known"])
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
    return misformed(context, pci_device.info.code)


@warning("GP185")
def hypervisor_text_form(context: Context) -> Iterator[Hit]:
    return misformed(context, hypervisor_text_form.info.code)


@warning("GP157")
def kvm_word_misspelt(context: Context) -> Iterator[Hit]:
    forms = forms_of(kvm_word_misspelt.info.code)
    for declared, leaf in context.explicit_at(*forms):
        form, text = forms[leaf.path], str(leaf.value)[:1000]
        for written in map(str.strip, text.split(form["between"]) if "between" in form else [text]):
            if hint := _unlike(written, form):
                yield hit(declared, f"{leaf.path[-1]}: QEMU has no {form['what']} {written!r}", leaf.span, hint)


def _unlike(written: str, form: dict[str, Any]) -> str:
    """Return what to write instead of a word; nothing if it is known, or may be one of a newer release."""
    what, known = form["what"], known_words(form["known"])
    word = re.sub(form.get("ignored", "$"), "", written)
    if what == "machine type" and re.search("440|q-?35", word.lower()) and not written.startswith("pc-"):
        return "" if written == "q35" else "write a type such as pc-i440fx-7.2"
    if what == "CPU model" and word.startswith(("pc-", "q35")):
        return "it is a machine type: write a CPU model"
    if what == "machine type" and word in known_words("kvm_cpu_models"):
        return "it is a CPU model: write a machine type"
    if not written or word in known:
        version = re.match(r"pc-(?:i440fx|q35)-([0-9]+)", written)
        return f"there is no version {version[1]}" if version and int(version[1][:9]) > _NEWEST else ""
    if what == "CPU model" and word in _OF_LIBVIRT:
        return f"{word} is a word of libvirt: write {_OF_LIBVIRT[word]}"
    if "newer" not in form:
        return "" if "/" in word else did_you_mean_one_of(word, f"{what}s", known)
    family = sorted(name for name in known if name.startswith(f"{word}-") and "-v" not in name)
    near = surely_meant(word, known) or ("host" if is_one_slip(word, "host") else None)
    if near is None and (family or re.fullmatch(r"pc-.*\.[0-9]+[a-z]+|pc-(i440fx|q35)[0-9.]+", word)):
        return f"write one of {', '.join(family)}" if family else "write a type such as pc-i440fx-7.2"
    return f"Did you mean `{near}`?" if near is not None else ""


@warning("GP191", explains=1)
def text_slip(context: Context) -> Iterator[Hit]:
    said = read_data("forms.toml")[text_slip.info.code]
    for declared, leaf in context.explicit_at(*_TEXTS):
        has_form = leaf.path in _WITH_FORM or leaf.path[-1] in said["with_form"]
        words = [(str(leaf.value), leaf.span)]
        if not isinstance(leaf.value, str):
            words = [(text, leaf.at(index)) for index, text in enumerate(leaf.texts)]
        for text, span in words:
            if text.lower() in said["nothing"] and not has_form:
                message = f"{leaf.dotted} is {text!r}, which Ganeti takes for a name or a word"
                yield hit(declared, message, span, 'write "" for nothing, or leave the key out')
            elif (other := _WORDS_BESIDE.get((*leaf.path[:-1], text))) and not has_form:
                message = f"{leaf.dotted} is {text!r}, a word of {other}"
                yield hit(declared, message, span, "correct the one that was copied")
            elif leaf.path not in _OPEN:
                meant = text if leaf.path in _WITH_COLON else text.removesuffix(":")
                yield from _ends(declared.label, leaf.dotted, meant, text, span)
    for tag in context.tags:
        if not {tag.suffix.rstrip(":").lower(), tag.text.lower()}.isdisjoint(said["nothing"]):
            yield hit(tag.label, f"the tag is {tag.text!r}: no tag means nothing", tag.span, "leave it out")
        else:
            bare = tag.text.rstrip(":/=.-")  # with what no tag ends on purpose
            meant = bare if ":" in bare and not tag.text.startswith("htools") else tag.text
            if tag.typed and tag.text.endswith(tuple(f"{mark}:" for mark in "/=.-")):
                meant = f"{bare}:"
            yield from _ends(tag.label, "the tag", meant, tag.text, tag.span)
    for what, label, name, span in _chosen_names(context):
        yield from _ends(label, f"the name of the {what}", name, name, span)


def _ends(label: str, title: str, meant: str, text: str, span: Span) -> Iterator[Hit]:
    behind = re.match(r"[\s,;]*", meant[::-1])  # from the end, so that one pass is enough
    core = meant[: len(meant) - (behind.end() if behind else 0)].lstrip()
    if core and core != text:
        yield hit(label, f"{title} is {text!r}: what stands around {core!r} belongs to it", span, f"write {core}")


def _chosen_names(context: Context) -> Iterator[tuple[str, str, str, Span]]:
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


@warning("GP131")
def storage_name(context: Context) -> Iterator[Hit]:
    return misformed(context, storage_name.info.code)
