"""GP145 to GP148 and GP159: files and directories of the nodes that a policy names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import normpath
from typing import Final, cast

from gpolicy.checking.context import Context
from gpolicy.checking.rule import Hit, When, error, hit, warning
from gpolicy.ganeti.htools_reading import ALLOCATOR_PARAMETERS, HAIL_OPTIONS, Takes, hail_parameters
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.vocabulary import Path, Reach, known_words
from gpolicy.guessing import did_you_mean_one_of, is_one_slip, name_meant, surely_meant
from gpolicy.policy.model import Leaf
from gpolicy.rules.shared import FILES, conflict, of_cluster, together

_FILE: Final[Path] = ("file_storage_dir",)
_SHARED: Final[Path] = ("shared_file_storage_dir",)
FORBIDDEN: Final = (
    *("/boot", "/dev", "/etc", "/home", "/proc", "/root", "/sys"),
    *(f"{top}/{name}" for top in ("", "/usr", "/usr/local") for name in ("bin", "lib", "lib32", "lib64", "sbin")),
)
"""Where Ganeti keeps no disks (checked against its own list)."""
_OF_GANETI: Final = ("/var/lib/ganeti", "/var/log/ganeti", "/run/ganeti", "/var/run/ganeti", "/usr/share/ganeti")
_OPEN: Final = ("/tmp", "/var/tmp", "/dev/shm", "/home")  # noqa: S108 (what is warned of)
_DIRECTORIES: Final = frozenset({"file_storage_dir", "shared_file_storage_dir", "mem_path", "vnc_x509_path"})
_KNOWN_DIRECTORIES: Final = frozenset(
    {"/", "/etc/ganeti", "/media", "/mnt", "/opt", "/run", "/srv", "/usr", "/usr/lib/ganeti", "/usr/lib/xen"}
    | {"/usr/local", "/usr/share", "/var", "/var/lib", "/var/lib/ganeti", *FORBIDDEN, *_OPEN}
)
_OTHER_PROGRAMS: Final[dict[str, tuple[re.Pattern[str], str]]] = {
    "kvm_path": (re.compile("qemu-(?!system-|kvm)|(virsh|xl|xm|kvm-ok)$"), "starts no instance"),
    "oob_program": (
        re.compile("(ipmitool|ipmipower|ipmiutil|ssh|wakeonlan|etherwake)$"),
        "does not speak Ganeti's protocol for such programs",
    ),
}
"""By parameter: how names of programs begin that do something else, and what they do not do."""
_USUAL: Final = {
    parent: frozenset(names.split())
    for parent, names in {
        "": "bin boot dev etc home lib lib32 lib64 media mnt opt proc root run sbin srv sys tmp usr var",
        "/usr": "bin games include lib lib32 lib64 libexec local sbin share src",
        "/usr/local": "bin etc lib libexec sbin share src",
        "/var": "cache lib local lock log mail opt run spool tmp",
    }.items()
}
"""What usually stands in the first directories of a path."""
_OWN_WORDS: Final = frozenset({"gnt", "lab", "ops"})
"""Directories of people's own that are one letter away from a usual one."""
_WORDS: Final = ("ganeti", "hugepages", "images")
"""Directories of usual names."""
_FOR_ANYTHING: Final = frozenset({"/bin/true", "/usr/bin/true"})
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
            message = f"{one} and {other} are not two separate directories"
            if one == other:
                message = f"{_FILE[0]} and {_SHARED[0]} are both {one}"
            yield conflict(context, declared, message, "write a directory of its own for each", shared, local)


@warning("GP147")
def path_unsafe(context: Context) -> Iterator[Hit]:
    for declared, leaf in context.explicit_at(*FILES):
        text = str(leaf.value) if isinstance(leaf.value, str) else ""
        scheme = text.partition("://")[0] if "://" in text else ""
        top = _below(normpath(text), _OPEN) if text.startswith("/") and leaf.path[-1] != "mem_path" else None
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
        twin = first.setdefault(text, leaf) if text.startswith("/") and text not in _FOR_ANYTHING else leaf
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
    parts = text.split("/")
    for place, part in enumerate(parts[1:3], 1):
        known = _USUAL.get("/".join(parts[:place]), frozenset())
        if not known or part in known or part in _OWN_WORDS or re.search("[0-9]", part):
            continue
        near = sorted(word for word in known if is_one_slip(part, word))
        if len(parts) > place + 1 and near:
            return "/".join([*parts[:place], near[0], *parts[place + 1 :]])
        glued = next((word for word in sorted(known, key=len, reverse=True) if part.startswith(word)), "")
        if place == 1 and len(parts) == 2 and glued and path[-1] not in _DIRECTORIES:
            return f"/{glued}/{part.removeprefix(glued)}"
    meant = {part: word for part in parts if part not in (*_WORDS, "image") and (word := surely_meant(part, _WORDS))}
    return "/".join(meant.get(part, part) for part in parts) if meant else ""


def _unlikely(path: Path, text: str) -> tuple[str, str]:
    """Return why a path is not one of what the parameter is for, and what to write; nothing if it may be."""
    name = path[-1]
    if re.search(r"[,;: ]/", text) and "://" not in text:
        return "it is one path, not several", f"write {re.split('[,;: ]', text)[0]}"
    if meant := _mistyped(path, text.rstrip(" ,;:")):
        return "most likely it is mistyped", f"Did you mean `{meant}`?"
    if name in _DIRECTORIES:
        top = _below(normpath(text), ("/proc", "/sys", *_OPEN[:2])) if name == "mem_path" else None
        if normpath(text) == "/" and name in ("mem_path", "vnc_x509_path"):
            return "it is the directory of everything", "name the directory itself"
        if name.endswith("_dir") and " " in text.strip():
            return "Ganeti splits lists of such paths at blanks", "write a path without blanks"
        return (f"{top} is not in memory", "write a mount point such as /dev/hugepages") if top else ("", "")
    parameter = parameter_at(path)
    is_program = parameter is not None and parameter.reach is Reach.PROGRAM
    program = text.rpartition("/")[2]
    if text.endswith("/") or normpath(text) in _KNOWN_DIRECTORIES or program in ("bin", "sbin"):
        return "it is a directory", f"name a {'program' if is_program else 'file'} in it"
    if name in ("kernel_path", "initrd_path") and _below(normpath(text), ("/dev",)):
        return "it is a device", "name the file of the guest's kernel or initrd"
    if text in {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}:
        return "nothing useful can be read from it", "name a file, or leave it out"
    if is_program and " -" in text and name not in ("oob_program", "drbd_usermode_helper"):  # GP140
        return "Ganeti runs it as it is written, without arguments", "write a script that adds the arguments"
    if is_program and program in {"false", "nologin"}:
        return "it always fails", "write a program that succeeds, such as /bin/true, or leave it out"
    pattern, lacks = _OTHER_PROGRAMS.get(name, (None, ""))
    if pattern is not None and pattern.match(program):
        return f"{program} {lacks}", f"name {'the emulator' if name == 'kvm_path' else 'a script that speaks it'}"
    return "", ""


@warning("GP148", When.MORE_WITH_STATE)
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
