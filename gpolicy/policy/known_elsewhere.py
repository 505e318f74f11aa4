"""Hints for keys that users know from Ganeti but that are unknown in their place."""

from __future__ import annotations

from typing import Final

from gpolicy.policy.source_file import Pointer

_ANYWHERE: Final = {
    "memory-ratio": "no released Ganeti has a memory-ratio: it existed in an unreleased 2.17 only",
    **dict.fromkeys(("mem-size", "mem_size"), "the parameter is called memory-size"),
    "lvm": "Ganeti's code knows the storage type as plain (its manual says lvm)",
    "gluster_storage_dir": "the gluster directory is set when the cluster is made and cannot be changed",
    "vg_name": "the vg_name of the option and of RAPI is stored as volume_group_name",
    "drbd_helper": "the drbd_helper of the option and of RAPI is stored as drbd_usermode_helper",
    **dict.fromkeys(
        ("hidden_os", "blacklisted_os", "os_hvp", "osparams", "osparams_private_cluster"),
        "it belongs to one operating system, not to the policy of the cluster: set it with gnt-os modify",
    ),
    **dict.fromkeys(("max_node_failures", "oversubscription", "cpus_after_failure"), "it belongs in limits"),
    **dict.fromkeys(("min_ispec", "max_ispec"), "sizes are pairs of bounds: ipolicy.minmax"),
    "std_ispec": "the standard instance is ipolicy.std, on the cluster",
    "mem_inst": "Ganeti does not accept mem_inst: it follows from the instances",
    **dict.fromkeys(("minmax", "vcpu-ratio", "spindle-ratio", "disk-templates"), "it belongs in ipolicy"),
}
_IN_KIND: Final = {
    ("NodeGroup", "std"): "std is set at the cluster only; a group has none of its own",
    ("NodeGroup", "hvparams"): "Ganeti has hypervisor parameters on the cluster and on instances, not on groups",
    ("NodeGroup", "beparams"): "Ganeti has backend parameters on the cluster and on instances, not on groups",
    ("NodeGroup", "nicparams"): "Ganeti has interface parameters on the cluster and on instances, not on groups",
    ("NodeGroup", "enabled_disk_templates"): "templates are enabled on the cluster; a group has ipolicy.disk-templates",
    ("NodeGroup", "enabled_hypervisors"): "hypervisors are enabled on the cluster, for all groups",
    ("NodeSet", "hvparams"): "Ganeti has hypervisor parameters on the cluster and on instances, not on nodes",
    ("NodeSet", "ipolicy"): "only the cluster and groups have instance policies",
    ("NodeSet", "diskparams"): "only the cluster and groups have disk parameters",
    ("NodeSet", "exclusive_storage"): "exclusive_storage can be set on the cluster and on groups, not on nodes",
    ("NodeSet", "alloc_policy"): "only groups have an alloc_policy",
    ("Cluster", "alloc_policy"): "only groups have an alloc_policy, and do not inherit it",
    ("Cluster", "nodes"): "nodes are members of groups: NodeGroup has nodes",
}
_BELOW: Final = {("beparams", "memory"): "Ganeti sets minmem and maxmem by it: write these two"}


def known_elsewhere(kind: str, pointer: Pointer, key: str) -> str:
    """Return the right place or name of `key`, unknown in the mapping at `pointer`; empty if there is none."""
    parent = pointer[-1] if pointer else ""
    return _BELOW.get((str(parent), key)) or _IN_KIND.get((kind, key)) or _ANYWHERE.get(key, "")
