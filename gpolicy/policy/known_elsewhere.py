"""Keys that a place does not have, and what becomes of what they mean: for users who know them from Ganeti."""

from __future__ import annotations

from typing import Final

from gpolicy.policy.source_file import Pointer

_OF_GNT_OS: Final = "it belongs to one operating system, not to the policy of the cluster: set it with gnt-os modify"

_ANYWHERE: Final = {
    "memory-ratio": "no released Ganeti has a memory-ratio: it existed in an unreleased 2.17 only",
    "mem-size": "the parameter is called memory-size",
    "mem_size": "the parameter is called memory-size",
    "lvm": "Ganeti's code knows the storage type as plain (its manual says lvm)",
    "gluster_storage_dir": "the gluster directory is set when the cluster is made and cannot be changed",
    "vg_name": "what the option and RAPI call vg_name is stored as volume_group_name",
    "drbd_helper": "what the option and RAPI call drbd_helper is stored as drbd_usermode_helper",
    "hidden_os": _OF_GNT_OS,
    "blacklisted_os": _OF_GNT_OS,
    "os_hvp": _OF_GNT_OS,
    "osparams": _OF_GNT_OS,
    "osparams_private_cluster": _OF_GNT_OS,
    "max_node_failures": "Ganeti has none; a Guards document can ask for it: node_failures",
    "min_ispec": "sizes are pairs of bounds: ipolicy.minmax",
    "max_ispec": "sizes are pairs of bounds: ipolicy.minmax",
    "std_ispec": "the standard instance is ipolicy.std, on the cluster",
    "mem_inst": "Ganeti takes no mem_inst: it follows from the instances",
    "minmax": "it belongs into ipolicy",
    "vcpu-ratio": "it belongs into ipolicy",
    "spindle-ratio": "it belongs into ipolicy",
    "disk-templates": "it belongs into ipolicy",
}
_IN_KIND: Final = {
    ("NodeGroup", "std"): "std is set at the cluster only; a group has none of its own",
    ("NodeGroup", "hvparams"): "Ganeti has hypervisor parameters on the cluster and on instances, not on groups",
    ("NodeGroup", "beparams"): "Ganeti has backend parameters on the cluster and on instances, not on groups",
    ("NodeGroup", "nicparams"): "Ganeti has interface parameters on the cluster and on instances, not on groups",
    ("NodeGroup", "enabled_disk_templates"): "templates are enabled on the cluster; a group has ipolicy.disk-templates",
    ("NodeGroup", "enabled_hypervisors"): "hypervisors are enabled on the cluster, for all groups",
    ("NodeSet", "hvparams"): "Ganeti has hypervisor parameters on the cluster and on instances, not on nodes",
    ("NodeSet", "ipolicy"): "instance policies are of the cluster and of groups",
    ("NodeSet", "diskparams"): "disk parameters are of the cluster and of groups",
    ("NodeSet", "exclusive_storage"): "exclusive_storage can be set on the cluster and on groups, not on nodes",
    ("NodeSet", "alloc_policy"): "alloc_policy is of groups",
    ("Cluster", "alloc_policy"): "alloc_policy is of groups, and not inherited",
    ("Cluster", "nodes"): "nodes are members of groups: NodeGroup has nodes",
}
_BELOW: Final = {("beparams", "memory"): "Ganeti sets minmem and maxmem by it: write these two"}


def known_elsewhere(kind: str, pointer: Pointer, key: str) -> str:
    """Return where `key`, unknown in the mapping at `pointer`, belongs or what it is called; nothing for others."""
    parent = pointer[-1] if pointer else ""
    return _BELOW.get((str(parent), key)) or _IN_KIND.get((kind, key)) or _ANYWHERE.get(key, "")
