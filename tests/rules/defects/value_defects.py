"""Values of the wrong kind, out of any range, or misspelt."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.rules.defects.seeding import Base, Document, Pointer, Seed, at, defect, keys, leaves, shown, slips, typo

_WORDS = {
    "drbd", "plain", "preferred", "last_resort", "kvm", "three-quarter-full", "quarter-full", "half-full", "empty",
    "memory", "disk", "spindles", "n1-capacity", "ipolicy.vcpu-ratio", "iextags", "nlocation", "migration",
    "allowmigration", "inherit", "cpu-count", "spindle-use", "reserved_mem_rtotal", "Cluster", "NodeGroup", "NodeSet",
    "TagRules", "Guards", "Test", "v1", "3.0", "3.1",
}  # fmt: skip


def _numbers(document: Document) -> Iterator[tuple[Pointer, Any]]:
    """Yield whole numbers and sizes of the objects."""
    for pointer, value in leaves(document.data):
        if isinstance(value, bool) or pointer[0] not in ("ipolicy", "hardware", "diskparams", "ndparams", "hv_state"):
            continue
        if isinstance(value, int) or (isinstance(value, str) and value[:1].isdigit()):
            yield pointer, value


def _objects(base: Base) -> Iterator[Document]:
    yield from base.documents("Cluster", "NodeGroup", "NodeSet")


@defect("values", "a word misspelt", "There is nothing of that name.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents():
        for pointer, value in leaves(document.data):
            if value in _WORDS and pointer[-1] != "name" and len(str(value)) > 2 and "." not in str(value)[:2]:
                yield document.put(pointer, typo(str(value), slips(f"{base.name} {shown(pointer)}")))


@defect("values", "a disk template that is none", "Ganeti: Invalid disk template(s).")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for pointer, value in leaves(document.data):
            if value in ("drbd", "plain"):
                yield document.put(pointer, {"drbd": "drbd8", "plain": "lvm"}[value])


@defect("values", "a word with capital letters", "Ganeti's words are exact.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents():
        for pointer, value in leaves(document.data):
            if value in _WORDS and value.islower() and pointer[-1] != "name":
                yield document.put(pointer, value.upper() if len(value) < 6 else value.capitalize())


@defect(
    "values", "a unit that Ganeti does not read", "Its units are M, G and T; K, P, Ki and decimal commas are refused."
)
def _(base: Base) -> Iterator[Seed]:
    for document in _objects(base):
        for pointer, value in _numbers(document):
            if isinstance(value, str) and value[-1] in "MGT":
                slip = slips(f"{base.name} {shown(pointer)}").choice(["K", "P", "Gi ", "Ki", "b"])
                yield document.put(pointer, value[:-1] + slip)


@defect("values", "a decimal comma, or digits in groups", "No number to any reader.")
def _(base: Base) -> Iterator[Seed]:
    for document in _objects(base):
        for pointer, value in _numbers(document):
            yield document.put(pointer, f"1,5{str(value)[-1]}" if isinstance(value, str) else f"{value},000")


@defect("values", "a negative number", "Ganeti stores it without a word (T47); there is no such amount.")
def _(base: Base) -> Iterator[Seed]:
    for document in _objects(base):
        for pointer, value in _numbers(document):
            yield document.put(pointer, f"-{value}" if isinstance(value, str) else -value or -1)


@defect("values", "a part of a whole", "CPUs, disks and spindles are counted; Ganeti: not a valid integer.")
def _(base: Base) -> Iterator[Seed]:
    for document in _objects(base):
        for pointer, value in _numbers(document):
            if isinstance(value, int) and str(pointer[-1]).endswith(("count", "use", "cpus", "cpu_node")):
                yield document.put(pointer, value + 0.5)


@defect("values", "a number written as a word", "Ganeti: not a valid integer.")
def _(base: Base) -> Iterator[Seed]:
    for document in _objects(base):
        for pointer, value in _numbers(document):
            if isinstance(value, int):
                yield document.put(pointer, "four")


@defect("values", "yes or no for a boolean", "Inside of parameter lists Ganeti takes true and false only (T9).")
def _(base: Base) -> Iterator[Seed]:
    for document in _objects(base):
        for pointer, value in leaves(document.data):
            if isinstance(value, bool):
                yield document.put(pointer, "yes" if value else "no")
                yield document.put(pointer, int(value))


@defect("values", "one value where a list belongs", "Each letter, or nothing at all, would be an item.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents():
        for pointer in keys(document.data):
            value = at(document.data, pointer)
            if isinstance(value, list) and value and isinstance(value[0], str) and "expect" not in pointer:
                yield document.put(pointer, value[0])


@defect("values", "a list where one value belongs", "Ganeti has one value there.")
def _(base: Base) -> Iterator[Seed]:
    for document in _objects(base):
        for pointer, value in leaves(document.data):
            if isinstance(pointer[-1], str) and pointer[-1] not in ("extends", "pv_size"):
                yield document.put(pointer, [value])


@defect("values", "a section that is a word", "A section holds parameters.")
def _(base: Base) -> Iterator[Seed]:
    for document in _objects(base):
        for section in ("ipolicy", "diskparams", "ndparams", "hv_state", "hardware"):
            if section in document.data:
                yield document.put((section,), "default")


@defect("values", "an empty list", "Ganeti needs at least one; for a group it would be a reset.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for pointer in (("enabled_disk_templates",), ("ipolicy", "disk-templates"), ("ipolicy", "minmax")):
            if pointer[-1] in document.data or pointer[-1] in document.data.get(pointer[0], {}):
                yield document.put(pointer, [])


@defect("values", "`default` as a value", "The cluster stores it literally or refuses it, a new group too (T13, T14).")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        yield document.put(("ipolicy", "vcpu-ratio"), "default")
        yield document.put(("diskparams", "drbd", "metavg"), "default")
        yield document.put(("ndparams", "oob_program"), "default")
        yield document.put(("diskparams", "drbd", "c-max-rate"), "default")


@defect("values", "`inherit` at the top", "The cluster has nothing above it to follow.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        yield document.put(("ipolicy", "vcpu-ratio"), "inherit")
        yield document.put(("ipolicy", "minmax"), "inherit")
        yield document.put(("diskparams", "drbd", "resync-rate"), "inherit")


@defect("values", "an unknown release", "Which parameters there are depends on it.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster"):
        for version in ("2.9", "3", "4.0", "v3.0", "3.0.2"):
            yield document.put(("ganeti_version",), version)


@defect("values", "a name that cannot be one", "Ganeti takes no such name.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for name in ("", "-force", 17):
            yield document.put(("name",), name)
