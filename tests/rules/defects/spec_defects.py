"""Pairs of bounds and the standard instance."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tests.rules.defects.seeding import Base, Document, Seed, defect, mib

_SIZES = ("memory-size", "disk-size")


def _value(spec: dict[str, Any], key: str) -> int:
    return mib(spec[key]) if key in _SIZES else int(spec[key])


def _lists(base: Base) -> Iterator[tuple[Document, list[Any]]]:
    for document in base.documents("Cluster", "NodeGroup"):
        pairs = document.data.get("ipolicy", {}).get("minmax")
        if isinstance(pairs, list):
            yield document, pairs


@defect("specs", "min and max of a parameter exchanged", "No instance lies between; Ganeti refuses it.")
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index, pair in enumerate(pairs):
            for key in pair["min"]:
                if _value(pair["min"], key) != _value(pair["max"], key):
                    place = ("ipolicy", "minmax", index)
                    yield document.swap((*place, "min", key), (*place, "max", key))


@defect("specs", "the min and the max of a pair exchanged", "No instance lies between; Ganeti refuses it.")
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index in range(len(pairs)):
            yield document.swap(("ipolicy", "minmax", index, "min"), ("ipolicy", "minmax", index, "max"))


@defect(
    "specs",
    "a pair pasted a second time",
    "Partitioned Ganeti: specifications should not overlap; the copy does nothing.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index, pair in enumerate(pairs):
            again = {**copy.deepcopy(pair), "name": f"{pair.get('name', 'pair')}-2"}
            yield document.put(("ipolicy", "minmax"), [*pairs[: index + 1], again, *pairs[index + 1 :]])


@defect("specs", "two pairs of one name", "Guards, tests and reports cannot tell them apart.")
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index in range(1, len(pairs)):
            yield document.put(("ipolicy", "minmax", index, "name"), pairs[0]["name"])


@defect(
    "specs", "a smaller pair that reaches into the larger", "Partitioned Ganeti: specifications should not overlap."
)
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index in range(1, len(pairs)):
            larger = {
                key: max(pairs[index]["max"][key], pairs[index - 1]["min"][key], key=mib) for key in pairs[index]["max"]
            }
            yield document.put(("ipolicy", "minmax", index, "max"), larger)


@defect(
    "specs",
    "a larger pair that reaches down over the smaller",
    "Partitioned Ganeti: specifications should not overlap.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index in range(len(pairs) - 1):
            yield document.put(("ipolicy", "minmax", index, "min"), pairs[index + 1]["min"])


@defect(
    "specs", "pairs in the wrong order", "Partitioned Ganeti: the biggest must have the highest priority, for hspace."
)
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index in range(len(pairs) - 1):
            turned = [*pairs]
            turned[index], turned[index + 1] = turned[index + 1], turned[index]
            yield document.put(("ipolicy", "minmax"), turned)
        if len(pairs) > 2:
            yield document.put(("ipolicy", "minmax"), pairs[::-1])


@defect(
    "specs", "a parameter pasted from the neighbouring pair", "Neither pair is the larger one then: no order is right."
)
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index in range(len(pairs) - 1):
            for key in ("memory-size", "cpu-count", "disk-size"):

                def change(root: dict[str, Any], index: int = index, key: str = key) -> None:
                    large, small = root["ipolicy"]["minmax"][index], root["ipolicy"]["minmax"][index + 1]
                    for end in ("min", "max"):
                        large[end][key], small[end][key] = small[end][key], large[end][key]

                if pairs[index]["min"][key] != pairs[index + 1]["min"][key]:
                    yield document.edit(f"{key} of pairs {index} and {index + 1} exchanged", change)


@defect("specs", "a most of 0", "An instance without memory, CPU or disk cannot be; the pair takes none.")
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index, pair in enumerate(pairs):
            for key in ("memory-size", "cpu-count", "disk-size", "disk-count"):

                def change(root: dict[str, Any], index: int = index, key: str = key) -> None:
                    for end in ("min", "max"):
                        root["ipolicy"]["minmax"][index][end][key] = 0

                if pair["max"][key]:
                    yield document.edit(f"pair {index}: {key} 0 to 0", change)


@defect("specs", "a least of 0 memory or CPUs", "No instance can have none: the bound keeps nothing out (T47).")
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index in range(len(pairs)):
            for key in ("memory-size", "cpu-count"):
                yield document.put(("ipolicy", "minmax", index, "min", key), 0)


@defect("specs", "a least above what Ganeti can make", "An instance has at most 16 disks and 8 network interfaces.")
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index in range(len(pairs)):
            for key, number in (("disk-count", 17), ("nic-count", 9)):

                def change(root: dict[str, Any], index: int = index, key: str = key, number: int = number) -> None:
                    for end in ("min", "max"):
                        root["ipolicy"]["minmax"][index][end][key] = number

                yield document.edit(f"pair {index}: {key} {number} to {number}", change)


@defect("specs", "a most above what Ganeti can make", "An instance has at most 16 disks and 8 network interfaces.")
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index in range(len(pairs)):
            yield document.put(("ipolicy", "minmax", index, "max", "disk-count"), 32)
            yield document.put(("ipolicy", "minmax", index, "max", "nic-count"), 16)


@defect(
    "specs", "the unit of a least size forgotten", "16G became 16 MiB: the pair takes what it was meant to keep out."
)
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index, pair in enumerate(pairs):
            for key in _SIZES:
                if str(pair["min"][key])[-1] in "GT":
                    yield document.put(("ipolicy", "minmax", index, "min", key), int(pair["min"][key].rstrip("MGT")))


@defect(
    "specs", "the unit of a most size forgotten", "64G became 64 MiB: the pair takes nothing, or not what was meant."
)
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index, pair in enumerate(pairs):
            for key in _SIZES:
                if str(pair["max"][key])[-1] in "GT":
                    yield document.put(("ipolicy", "minmax", index, "max", key), int(pair["max"][key].rstrip("MGT")))


@defect("specs", "a unit of 1024 times too much", "16G written 16T: no node holds such an instance.")
def _(base: Base) -> Iterator[Seed]:
    greater = {"M": "G", "G": "T"}
    for document, pairs in _lists(base):
        for index, pair in enumerate(pairs):
            for end in ("min", "max"):
                for key in _SIZES:
                    value = pair[end][key]
                    if isinstance(value, str) and value[-1] in greater and mib(value) >= 512:
                        yield document.put(("ipolicy", "minmax", index, end, key), value[:-1] + greater[value[-1]])


@defect(
    "specs",
    "both sizes of a pair in the wrong unit",
    "The pair is 1024 times what was meant, and 1024 times its neighbours.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, pairs in _lists(base):
        for index, _pair in enumerate(pairs):
            for key in _SIZES:
                for factor in (1024, 1 / 1024):

                    def change(
                        root: dict[str, Any], index: int = index, key: str = key, factor: float = factor
                    ) -> None:
                        for end in ("min", "max"):
                            spec = root["ipolicy"]["minmax"][index][end]
                            spec[key] = int(mib(spec[key]) * factor)

                    yield document.edit(f"pair {index}: {key} x {factor:g}", change)


def _standard(base: Base) -> Iterator[tuple[Document, dict[str, Any], list[Any]]]:
    for document in base.documents("Cluster"):
        policy = document.data.get("ipolicy", {})
        if isinstance(policy.get("minmax"), list) and "std" in policy:
            yield document, policy["std"], policy["minmax"]


@defect(
    "specs", "a standard instance outside of all pairs", "Ganeti: Invalid std specifications; it must lie in one pair."
)
def _(base: Base) -> Iterator[Seed]:
    for document, std, pairs in _standard(base):
        for key in std:
            most = max(_value(pair["max"], key) for pair in pairs)
            least = min(_value(pair["min"], key) for pair in pairs)
            yield document.put(("ipolicy", "std", key), most + 4)
            if least > 1:
                yield document.put(("ipolicy", "std", key), least // 2)


@defect("specs", "a standard instance between the pairs", "It lies in the bounds of one pair here, of another there.")
def _(base: Base) -> Iterator[Seed]:
    for document, _std, pairs in _standard(base):
        for larger in pairs[:-1]:
            for key in ("memory-size", "cpu-count", "disk-size"):
                if _value(larger["min"], key) > _value(pairs[-1]["max"], key):
                    yield document.put(("ipolicy", "std", key), larger["min"][key])


@defect("specs", "the unit of the standard instance wrong", "2G written 2: smaller than anything that is allowed.")
def _(base: Base) -> Iterator[Seed]:
    for document, std, _pairs in _standard(base):
        for key in _SIZES:
            if isinstance(std[key], str):
                yield document.put(("ipolicy", "std", key), int(std[key].rstrip("MGT")))
                yield document.put(("ipolicy", "std", key), std[key][:-1] + "T")


@defect(
    "specs", "the pair of the standard instance taken away", "std then lies in no pair, and Ganeti refuses the change."
)
def _(base: Base) -> Iterator[Seed]:
    for document, std, pairs in _standard(base):
        inside = [
            index
            for index, pair in enumerate(pairs)
            if all(_value(pair["min"], key) <= _value(std, key) <= _value(pair["max"], key) for key in std)
        ]
        if len(pairs) > 1 and len(inside) == 1:
            yield document.drop(("ipolicy", "minmax", inside[0]))
