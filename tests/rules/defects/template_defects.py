"""Disk templates, and the ratios."""

from __future__ import annotations

from collections.abc import Iterator

from tests.rules.defects.seeding import Base, Document, Seed, defect


def _allowing(base: Base) -> Iterator[tuple[Document, list[str]]]:
    for document in base.documents("Cluster", "NodeGroup"):
        allowed = document.data.get("ipolicy", {}).get("disk-templates")
        if isinstance(allowed, list):
            yield document, allowed


@defect(
    "templates",
    "a template no longer enabled that the policy allows",
    "Ganeti: allowed by the ipolicy, but not enabled.",
)
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster"):
        enabled = document.data.get("enabled_disk_templates", [])
        allowed = document.data.get("ipolicy", {}).get("disk-templates", [])
        for template in enabled:
            if template in allowed and len(enabled) > 1:
                yield document.put(("enabled_disk_templates",), [item for item in enabled if item != template])


@defect("templates", "a template allowed that is not enabled", "Ganeti: allowed by the ipolicy, but not enabled.")
def _(base: Base) -> Iterator[Seed]:
    for document, allowed in _allowing(base):
        for template in ("rbd", "sharedfile", "ext", "gluster"):
            yield document.put(("ipolicy", "disk-templates"), [*allowed, template])


@defect("templates", "a template named twice", "Ganeti keeps both; one of them was meant to be another.")
def _(base: Base) -> Iterator[Seed]:
    for document, allowed in _allowing(base):
        yield document.put(("ipolicy", "disk-templates"), [*allowed, allowed[0]])
    for document in base.documents("Cluster"):
        enabled = document.data.get("enabled_disk_templates", [])
        if enabled:
            yield document.put(("enabled_disk_templates",), [*enabled, enabled[-1]])


@defect("templates", "a template enabled and another one written instead", "The allowed one is then not enabled.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster"):
        enabled = document.data.get("enabled_disk_templates", [])
        allowed = document.data.get("ipolicy", {}).get("disk-templates", [])
        for index, template in enumerate(enabled):
            if template in allowed:
                yield document.put(("enabled_disk_templates", index), "file")


@defect(
    "templates", "LVM templates without a volume group", "Ganeti refuses to enable LVM templates where there is none."
)
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        if {"drbd", "plain"} & set(document.data.get("enabled_disk_templates", [])):
            yield document.put(("volume_group_name",), "")


@defect("templates", "DRBD without its helper", "Ganeti refuses to enable DRBD without a helper.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        if "drbd" in document.data.get("enabled_disk_templates", []):
            yield document.put(("drbd_usermode_helper",), "")


@defect("templates", "parameters of a template that is not enabled", "No disk can ever use them (T54).")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        enabled = document.data.get("enabled_disk_templates", [])
        for template, key, value in (("rbd", "pool", "vms"), ("gluster", "host", "store1"), ("drbd", "protocol", "C")):
            if enabled and template not in enabled:
                yield document.put(("diskparams", template, key), value)


@defect("templates", "no template left that takes disks", "Pairs that want disks, and only diskless instances allowed.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster"):
        policy = document.data.get("ipolicy", {})
        if "enabled_disk_templates" in document.data and "minmax" in policy:

            def change(root: dict[str, object]) -> None:
                root["enabled_disk_templates"] = ["diskless"]
                root["ipolicy"]["disk-templates"] = ["diskless"]  # type: ignore[index]

            yield document.edit("only diskless", change)


@defect(
    "ratios",
    "a ratio of 0",
    "Nothing fits; and Ganeti takes 0 for a reset of a group, and refuses it for the cluster (T15).",
)
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for ratio in ("vcpu-ratio", "spindle-ratio"):
            yield document.put(("ipolicy", ratio), 0)


@defect("ratios", "a negative ratio", "Ganeti stores it; nothing fits.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for ratio in ("vcpu-ratio", "spindle-ratio"):
            yield document.put(("ipolicy", ratio), -2)


@defect("ratios", "a vcpu-ratio below 1", "A virtual CPU takes more than a real one: some are never used.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        yield document.put(("ipolicy", "vcpu-ratio"), 0.5)
        yield document.put(("ipolicy", "vcpu-ratio"), 0.25)


@defect("ratios", "a ratio that is no number", "Ganeti accepts nan and inf, and cannot store them (T47).")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for value in (float("nan"), float("inf"), "4:1", "400%"):
            yield document.put(("ipolicy", "vcpu-ratio"), value)


@defect("ratios", "a ratio with two digits too many", "400 virtual CPUs for each real one: the limit is none.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for ratio, value in (("vcpu-ratio", 400), ("spindle-ratio", 3200)):
            if isinstance(document.data.get("ipolicy", {}).get(ratio), int | float):
                yield document.put(("ipolicy", ratio), value)
