"""Parameters of disks, nodes, states, instances and the cluster as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from tests.rules.defects.seeding import Base, Document, Seed, defect, mib


def _disks(base: Base) -> Iterator[Document]:
    """Yield the objects that may have DRBD's parameters: the cluster, and groups that can have DRBD."""
    enabled = {
        template for item in base.documents("Cluster") for template in item.data.get("enabled_disk_templates", ["drbd"])
    }
    for document in base.documents("Cluster", "NodeGroup"):
        if "drbd" in enabled and not document.data.get("ndparams", {}).get("exclusive_storage"):
            yield document


@defect(
    "drbd",
    "barriers that DRBD does not know",
    "b, f and d are to be disabled, or n; Ganeti finds out when a disk is assembled.",
)
def _(base: Base) -> Iterator[Seed]:
    for document in _disks(base):
        for word in ("x", "no", "nb", "none", "bx", "B"):
            yield document.put(("diskparams", "drbd", "disk-barriers"), word)


@defect("drbd", "a protocol that is none", "A, B or C; Ganeti does not check.")
def _(base: Base) -> Iterator[Seed]:
    for document in _disks(base):
        for word in ("Z", "c", "D", "", "sync"):
            yield document.put(("diskparams", "drbd", "protocol"), word)


@defect("drbd", "a least resync rate above the most", "The controller has no rate to choose from.")
def _(base: Base) -> Iterator[Seed]:
    for document in _disks(base):
        yield document.edit(
            "c-min-rate above c-max-rate",
            lambda root: (
                root.setdefault("diskparams", {})
                .setdefault("drbd", {})
                .update({"c-min-rate": 81920, "c-max-rate": 40960})
            ),
        )


@defect("drbd", "a resync rate in the wrong unit", "60M became 60 KiB/s: a resync takes for ever.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for key, value in document.data.get("diskparams", {}).get("drbd", {}).items():
            if key in ("c-max-rate", "c-min-rate", "resync-rate"):
                yield document.put(("diskparams", "drbd", key), int(str(value).rstrip("MG")))
                yield document.put(("diskparams", "drbd", key), f"{str(value).rstrip('MG')}G")


@defect(
    "drbd",
    "the dynamic controller on and its plan at 0",
    "c-plan-ahead 0 turns the controller off (resource model; #1229).",
)
def _(base: Base) -> Iterator[Seed]:
    for document in _disks(base):
        yield document.edit(
            "dynamic-resync with c-plan-ahead 0",
            lambda root: (
                root.setdefault("diskparams", {})
                .setdefault("drbd", {})
                .update({"dynamic-resync": True, "c-plan-ahead": 0})
            ),
        )


@defect("drbd", "numbers for a controller that is off", "The c-* parameters are read with dynamic-resync only.")
def _(base: Base) -> Iterator[Seed]:
    for document in _disks(base):
        yield document.edit(
            "c-* with dynamic-resync off",
            lambda root: (
                root.setdefault("diskparams", {})
                .setdefault("drbd", {})
                .update({"dynamic-resync": False, "c-max-rate": "60M"})
            ),
        )


@defect("drbd", "a static rate beside the dynamic controller", "resync-rate is not read with dynamic-resync.")
def _(base: Base) -> Iterator[Seed]:
    for document in _disks(base):
        yield document.edit(
            "resync-rate with dynamic-resync",
            lambda root: (
                root.setdefault("diskparams", {})
                .setdefault("drbd", {})
                .update({"dynamic-resync": True, "resync-rate": "60M"})
            ),
        )


@defect(
    "drbd",
    "a rate or number of stripes of 0 or less",
    "Nothing is ever resynchronised; LVM makes no volume of 0 stripes.",
)
def _(base: Base) -> Iterator[Seed]:
    for document in _disks(base):
        for key, value in (
            ("resync-rate", 0),
            ("data-stripes", 0),
            ("meta-stripes", -1),
            ("c-max-rate", 0),
            ("c-plan-ahead", -1),
        ):
            yield document.put(("diskparams", "drbd", key), value)
        yield document.put(("diskparams", "plain", "stripes"), 0)


@defect("drbd", "custom options that contradict the parameters", "drbdsetup is given the same option twice.")
def _(base: Base) -> Iterator[Seed]:
    for document in _disks(base):
        yield document.edit(
            "net-custom with another protocol",
            lambda root: (
                root.setdefault("diskparams", {})
                .setdefault("drbd", {})
                .update({"protocol": "C", "net-custom": "--protocol=A"})
            ),
        )
        yield document.edit(
            "disk-custom with another rate",
            lambda root: (
                root.setdefault("diskparams", {})
                .setdefault("drbd", {})
                .update({"resync-rate": "60M", "disk-custom": "--resync-rate=100M"})
            ),
        )


@defect("disks", "an access mode that is none", "Ganeti: Invalid value of access; kernelspace or userspace.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for template in ("rbd", "ext", "gluster"):
            yield document.put(("diskparams", template, "access"), "kernel")


@defect("disks", "a port that is none", "Ports are 1 to 65535.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for port in (0, 70000, -1):
            yield document.put(("diskparams", "gluster", "port"), port)


@defect(
    "nodes",
    "a number of spindles or a speed of 0 or less",
    "htools divides by it, or nothing fits; Ganeti checks no range.",
)
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeSet"):
        yield document.put(("ndparams", "spindle_count"), 0)
        yield document.put(("ndparams", "spindle_count"), -2)
        yield document.put(("ndparams", "cpu_speed"), 0)
        yield document.put(("ndparams", "cpu_speed"), -1.0)


@defect("nodes", "an SSH port that is none", "Ganeti would not reach the nodes any more.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):
        for port in (0, 70000):
            yield document.put(("ndparams", "ssh_port"), port)


@defect("nodes", "a helper program without its whole path", "Ganeti runs it from nowhere in particular.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup", "NodeSet"):
        yield document.put(("ndparams", "oob_program"), "oob-helper")


@defect("nodes", "a switch without Open vSwitch", "ovs_name and ovs_link are read with ovs only.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster", "NodeGroup"):

        def change(root: dict[str, dict[str, object]]) -> None:
            root.setdefault("ndparams", {}).update(ovs=False, ovs_name="br0", ovs_link="eth1")

        yield document.edit("ovs off, with a switch", change)


@defect("states", "a hypervisor that is none, or not enabled", "Ganeti refuses it, or nothing will ever use it.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        yield document.put(("hv_state",), {"qemu": {"mem_node": 4096}})
        yield document.put(("hv_state",), {"KVM": {"mem_node": 4096}})
        yield document.edit(
            "xen-pvm, enabled is kvm",
            lambda root: root.update(enabled_hypervisors=["kvm"], hv_state={"xen-pvm": {"mem_node": 4096}}),
        )


@defect("states", "disk_state under lvm", "The manual says lvm; Ganeti takes plain only (T19).")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        yield document.put(("disk_state",), {"lvm": {"xenvg": {"disk_reserved": 1024}}})


@defect("states", "more disk reserved than there is", "Nothing is left for instances.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        state = {"disk_total": "100G", "disk_reserved": "200G"}
        yield document.put(("disk_state",), {"plain": {"xenvg": state}})


@defect(
    "states",
    "memory that is kept, in the wrong unit",
    "6G became 6 MiB, or 6 T: no host runs in it, or nothing else does.",
)
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster"):
        for hypervisor, state in document.data.get("hv_state", {}).items():
            for key in ("mem_node", "mem_hv"):
                if key in state:
                    yield document.put(("hv_state", hypervisor, key), mib(state[key]) // 1024)
                    yield document.put(("hv_state", hypervisor, key), mib(state[key]) * 1024)


@defect(
    "instances",
    "backend parameters that contradict each other",
    "More least than most memory; the cluster takes it (reference 1.7).",
)
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        yield document.put(("beparams",), {"minmem": "4G", "maxmem": "2G"})
        yield document.put(("beparams",), {"vcpus": 0})
        yield document.put(("beparams",), {"spindle_use": -1})


@defect("cluster", "a candidate pool of none", "At least 1; the type of the opcode.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.documents("Cluster"):
        yield document.put(("candidate_pool_size",), 0)
        yield document.put(("candidate_pool_size",), "ten")


@defect("cluster", "no jobs at once", "At least 1; the type of the opcode.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        yield document.put(("max_running_jobs",), 0)
        yield document.put(("max_tracked_jobs",), -1)


@defect("cluster", "a reserved volume that is no regular expression", "It breaks cluster verify later.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        for pattern in ("xenvg/(root", "*", "xenvg/[a-"):
            yield document.put(("reserved_lvs",), [pattern])


@defect(
    "cluster",
    "an image without its whole path",
    "Ganeti: an absolute path or a URL; the check comes after other changes were saved (T57).",
)
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        for key in ("install_image", "zeroing_image"):
            yield document.put((key,), "images/zero.img")
            yield document.put((key,), "")


@defect("cluster", "a prefix that no MAC address has", "Three bytes in hexadecimal.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        for prefix in ("aa:00", "aa:00:0g", "aa-00-00", "01:00:00"):
            yield document.put(("mac_prefix",), prefix)


@defect("cluster", "compression without gzip", "gzip is mandatory (reference 1.8).")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        yield document.put(("compression_tools",), ["lzop"])


@defect("cluster", "a hypervisor twice, none, or unknown", "Ganeti: unknown, or the list is meaningless.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        for value in ([], ["kvm", "kvm"], ["qemu"], ["KVM"]):
            yield document.put(("enabled_hypervisors",), value)


@defect("cluster", "a parameter of a hypervisor that has none such", "Ganeti: unknown parameter.")
def _(base: Base) -> Iterator[Seed]:
    for document in base.first("Cluster"):
        yield document.put(("hvparams",), {"kvm": {"kernel-path": "/vmlinuz"}})
        yield document.put(("hvparams",), {"kvm": {"xen_cmd": "xl"}})
        yield document.put(("hvparams",), {"xen-pvm": {"vnc_bind_address": "0.0.0.0"}})  # noqa: S104
