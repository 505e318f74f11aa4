"""Promised hardware compared with the sizes: exclusive storage, dedicated CPUs and memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.rules.defects.seeding import Base, Document, Seed, at, defect, mib


def _promised(base: Base) -> Iterator[tuple[Document, dict[str, Any], list[Any]]]:
    """Yield groups with promised hardware and the pairs in force there (own, or the cluster's)."""
    own = [document.data.get("ipolicy", {}).get("minmax") for document in base.documents("Cluster")]
    for document in base.documents("NodeGroup"):
        hardware, pairs = document.data.get("hardware"), document.data.get("ipolicy", {}).get("minmax")
        pairs = pairs if isinstance(pairs, list) else next((item for item in own if item), None)
        if hardware and pairs:
            yield document, hardware, pairs


def _exclusive(base: Base) -> Iterator[tuple[Document, dict[str, Any], list[Any]]]:
    for document, hardware, pairs in _promised(base):
        if document.data.get("ndparams", {}).get("exclusive_storage"):
            yield document, hardware, pairs


def _own(document: Document) -> bool:
    return isinstance(document.data.get("ipolicy", {}).get("minmax"), list)


@defect("hardware", "a size that no node of the group holds", "The pair is legal and can never be created.")
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, pairs in _promised(base):
        for index in range(len(pairs)) if _own(document) else ():
            for key, what, factor in (("memory-size", "memory", 1), ("cpu-count", "cpus", 4)):
                if what in hardware:
                    many = mib(hardware[what]) * factor + 4

                    def change(root: dict[str, Any], index: int = index, key: str = key, many: int = many) -> None:
                        for end in ("min", "max"):
                            root["ipolicy"]["minmax"][index][end][key] = many

                    yield document.edit(f"pair {index}: {key} {many} to {many}", change)


@defect("hardware", "the promised memory in the wrong unit", "192 MiB, or 192 TiB: no such node.")
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, _pairs in _promised(base):
        if "memory" in hardware:
            yield document.put(("hardware", "memory"), mib(hardware["memory"]) // 1024)
            yield document.put(("hardware", "memory"), mib(hardware["memory"]) * 1024)


@defect("hardware", "fewer promised CPUs than the largest pair's least", "No node of the group holds the pair.")
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, pairs in _promised(base):
        ratio = document.data.get("ipolicy", {}).get("vcpu-ratio", 4)
        ratio = ratio if isinstance(ratio, int | float) else 4
        needed = max(pair["min"]["cpu-count"] for pair in pairs)
        fewer = int((needed - 1) // ratio)
        if "cpus" in hardware and fewer >= 1:
            yield document.put(("hardware", "cpus"), fewer)


@defect("hardware", "less promised memory than the largest pair's least", "No node of the group holds the pair.")
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, pairs in _promised(base):
        if "memory" in hardware:
            yield document.put(("hardware", "memory"), max(mib(pair["min"]["memory-size"]) for pair in pairs) - 4)


@defect("hardware", "disks larger than what a node has", "No node of the group holds the pair.")
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, pairs in _promised(base):
        if "pv_size" in hardware and "pv_count" in hardware and _own(document):
            whole = mib(hardware["pv_size"]) * hardware["pv_count"]
            for index in range(len(pairs)):

                def change(root: dict[str, Any], index: int = index, whole: int = whole) -> None:
                    for end in ("min", "max"):
                        root["ipolicy"]["minmax"][index][end]["disk-size"] = whole + 1024

                yield document.edit(f"pair {index}: disks of {whole + 1024}", change)


@defect("hardware", "a count of none or less", "Such hardware is not.")
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, _pairs in _promised(base):
        for key in hardware:
            yield document.put(("hardware", key), 0)


@defect(
    "exclusive storage",
    "disks that do not fit on the spindles of their size",
    "Partitioned Ganeti: it is an error to specify too few spindles.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, pairs in _exclusive(base):
        volume = int(mib(hardware["pv_size"]) / 1.03)
        for index, pair in enumerate(pairs):
            most = volume * pair["max"]["spindle-use"]
            yield document.put(("ipolicy", "minmax", index, "max", "disk-size"), most + 1024)


@defect(
    "exclusive storage",
    "sizes reckoned with whole volumes, without margin and reserve",
    "Ganeti takes 1 % and 2 % off: such a disk takes a volume more.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, pairs in _exclusive(base):
        for index, pair in enumerate(pairs):
            whole = mib(hardware["pv_size"]) * pair["max"]["spindle-use"]
            yield document.put(("ipolicy", "minmax", index, "max", "disk-size"), whole)


@defect(
    "exclusive storage",
    "fewer spindles than the disks need",
    "Partitioned Ganeti: it is an error to specify too few spindles.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, _hardware, pairs in _exclusive(base):
        for index, pair in enumerate(pairs):
            if pair["max"]["spindle-use"] > 1 and pair["min"] != {**pair["min"], "spindle-use": 1}:

                def change(root: dict[str, Any], index: int = index) -> None:
                    for end in ("min", "max"):
                        root["ipolicy"]["minmax"][index][end]["spindle-use"] -= 1

                yield document.edit(f"pair {index}: a spindle less", change)


@defect("exclusive storage", "more spindles than a node has", "No node of the group holds the pair.")
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, pairs in _exclusive(base):
        for index in range(len(pairs)):

            def change(root: dict[str, Any], index: int = index, many: int = hardware["pv_count"] + 1) -> None:
                for end in ("min", "max"):
                    root["ipolicy"]["minmax"][index][end]["spindle-use"] = many

            yield document.edit(f"pair {index}: {hardware['pv_count'] + 1} spindles", change)


@defect(
    "exclusive storage",
    "a node promised fewer volumes than the largest pair takes",
    "No node of the group holds the pair.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, _hardware, pairs in _exclusive(base):
        most = max(pair["max"]["spindle-use"] for pair in pairs)
        for count in {most - 1, max(1, most // 2)}:
            yield document.put(("hardware", "pv_count"), count)


@defect(
    "exclusive storage",
    "smaller volumes than the sizes were made for",
    "The disks of a pair need more volumes than its spindles.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, _pairs in _exclusive(base):
        for share in (0.5, 0.9):
            yield document.put(("hardware", "pv_size"), int(mib(hardware["pv_size"]) * share))


@defect("exclusive storage", "the volume size in the wrong unit", "1 MiB or 1024 T: no such volume.")
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, _pairs in _exclusive(base):
        yield document.put(("hardware", "pv_size"), mib(hardware["pv_size"]) // 1024)
        yield document.put(("hardware", "pv_size"), mib(hardware["pv_size"]) * 1024)


@defect(
    "exclusive storage",
    "volumes of unequal size",
    "Partitioned Ganeti: all of a group must have the same, within about 2 %.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, _pairs in _exclusive(base):
        size, count = mib(hardware["pv_size"]), hardware["pv_count"]
        for share in (0.95, 1.1, 2):
            sizes = [size] * (count - 1) + [int(size * share)]
            yield document.put(("hardware", "pv_size"), sizes)


@defect("exclusive storage", "a number of volumes that contradicts the list", "One of the two is wrong.")
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, _pairs in _exclusive(base):
        size, count = mib(hardware["pv_size"]), hardware["pv_count"]
        yield document.put(("hardware", "pv_size"), [size] * (count - 1 if count > 2 else count + 1))


@defect("exclusive storage", "DRBD allowed", "Only plain disks work with exclusive storage.")
def _(base: Base) -> Iterator[Seed]:
    for document, _hardware, _pairs in _exclusive(base):
        yield document.put(("ipolicy", "disk-templates"), ["drbd", "plain"])
        yield document.put(("ipolicy", "disk-templates"), ["drbd"])


@defect(
    "exclusive storage", "templates left to a cluster that has DRBD", "Only plain disks work with exclusive storage."
)
def _(base: Base) -> Iterator[Seed]:
    mirrored = any("drbd" in document.data.get("enabled_disk_templates", ()) for document in base.first("Cluster"))
    for document, _hardware, _pairs in _exclusive(base):
        if mirrored:
            yield document.put(("ipolicy", "disk-templates"), "inherit")


@defect(
    "exclusive storage",
    "exclusive storage switched on where disks are mirrored",
    "Only plain disks work with exclusive storage.",
)
def _(base: Base) -> Iterator[Seed]:
    mirrored = any("drbd" in document.data.get("enabled_disk_templates", ()) for document in base.first("Cluster"))
    for document in base.documents("NodeGroup"):
        allowed = document.data.get("ipolicy", {}).get("disk-templates", "inherit")
        if mirrored and "exclusive_storage" not in document.data.get("ndparams", {}) and allowed != ["plain"]:
            yield document.put(("ndparams", "exclusive_storage"), True)


@defect(
    "exclusive storage",
    "exclusive storage switched off where sizes are made of spindles",
    "Disks then share volumes, and spindle-use is an idle number.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, _hardware, _pairs in _exclusive(base):
        yield document.put(("ndparams", "exclusive_storage"), False)
        yield document.drop(("ndparams", "exclusive_storage"))


@defect(
    "exclusive storage",
    "two disks in a pair whose spindles are for one",
    "disk-size and the bound of spindles are of one disk each: two need twice as many.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, _hardware, pairs in _exclusive(base):
        for index, pair in enumerate(pairs):
            if pair["max"]["spindle-use"] == pair["min"]["spindle-use"] and pair["max"]["disk-count"] == 1:

                def change(root: dict[str, Any], index: int = index) -> None:
                    for end in ("min", "max"):
                        root["ipolicy"]["minmax"][index][end]["disk-count"] = 2

                yield document.edit(f"pair {index}: 2 disks", change)


@defect(
    "dedicated",
    "CPUs of a dedicated group shared",
    "Partitioned Ganeti: vcpu-ratio ties virtual CPUs to real ones; these are no longer anyone's own.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, _hardware, _pairs in _exclusive(base):
        if document.data["ipolicy"].get("vcpu-ratio") == 1:
            yield document.put(("ipolicy", "vcpu-ratio"), 4)
            yield document.put(("ipolicy", "vcpu-ratio"), "inherit")


@defect(
    "dedicated",
    "no CPU left for the node",
    "Partitioned Ganeti: the CPU usage of the hypervisor must be taken into account.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, pairs in _exclusive(base):
        largest = max(range(len(pairs)), key=lambda index: pairs[index]["max"]["cpu-count"])
        if "cpus" in hardware and document.data["ipolicy"].get("vcpu-ratio") == 1:
            yield document.put(("ipolicy", "minmax", largest, "max", "cpu-count"), hardware["cpus"])


@defect(
    "dedicated",
    "no memory left for the node",
    "Partitioned Ganeti: there must be room for the host; nothing is left completely empty.",
)
def _(base: Base) -> Iterator[Seed]:
    for document, hardware, pairs in _exclusive(base):
        largest = max(range(len(pairs)), key=lambda index: mib(pairs[index]["max"]["memory-size"]))
        if "memory" in hardware:
            yield document.put(("ipolicy", "minmax", largest, "max", "memory-size"), hardware["memory"])


@defect(
    "dedicated",
    "halves that are more than a half",
    "A size that is a share of a node must fit as often as that share says.",
)
def _(base: Base) -> Iterator[Seed]:
    parts = {"half": 2, "quarter": 4}
    for document, hardware, pairs in _exclusive(base):
        for index, pair in enumerate(pairs):
            share = parts.get(pair.get("name"))
            if share and at(pair, ("min", "cpu-count")) == at(pair, ("max", "cpu-count")):
                many = hardware["cpus"] // share + 1

                def change(root: dict[str, Any], index: int = index, many: int = many) -> None:
                    for end in ("min", "max"):
                        root["ipolicy"]["minmax"][index][end]["cpu-count"] = many

                yield document.edit(f"{pair['name']}: {many} of {hardware['cpus']} CPUs", change)


@defect("dedicated", "a node that keeps more than it has", "Nothing is left for instances.")
def _(base: Base) -> Iterator[Seed]:
    most = max((mib(hardware["memory"]) for _d, hardware, _p in _promised(base) if "memory" in hardware), default=0)
    cpus = max((hardware["cpus"] for _d, hardware, _p in _promised(base) if "cpus" in hardware), default=0)
    for document in base.first("Cluster"):
        if most and cpus:
            hypervisor = next(iter(document.data.get("enabled_hypervisors", ["kvm"])))
            yield document.put(("hv_state", hypervisor, "mem_node"), most)
            yield document.put(("hv_state", hypervisor, "cpu_node"), cpus)
