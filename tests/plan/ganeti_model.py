"""A small model of Ganeti's jobs: how they merge and reset values, and what they refuse.

Reference: the opcodes' logical units of Ganeti 3.0.2. A job is an opcode's fields, as RAPI and the real command line
give them. What Ganeti would take although it leaves the cluster broken (a group whose list names a disabled template, a
move of no node at all, a job without a change) is a `BrokenError`: no plan may do that.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from itertools import islice
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from gpolicy.cluster.state import ClusterObject, ClusterState, LiveGroup, LiveNode
from gpolicy.ganeti.commands import RapiCall
from gpolicy.ganeti.parameters import fill, flatten, parameter_at, unflatten
from gpolicy.ganeti.vocabulary import DISK_STATE, HV_STATE, SPEC_PARAMETERS, Level, Value

Tree = dict[str, Any]
_MERGED: Final = ("ndparams", "beparams", "nicparams", "enabled_data_collectors", "data_collector_interval")
_READ_NAMES: Final = {"vg_name": "volume_group_name", "drbd_helper": "drbd_usermode_helper"}
_NOT_VALUES: Final = {"OP_ID", "group_name", "node_name", "force", "auto_promote"}
_LVM: Final = {"plain", "drbd"}


class RefusedError(Exception):
    """Ganeti refuses the job."""


class BrokenError(Exception):
    """Ganeti accepts the job, but no plan should contain it."""


class ModelCluster:
    """A cluster that jobs change."""

    def __init__(self, state: ClusterState) -> None:
        self.state = state
        self.own: Tree = _tree(state.cluster.own)
        self.tags: dict[tuple[str, str | None], set[str]] = {("cluster", None): set(state.cluster.tags)}
        self.groups: dict[str, Tree] = {group.name: _tree(group.own) for group in state.groups.values()}
        self.nodes: dict[str, Tree] = {node.name: _tree(node.own) for node in state.nodes.values()}
        self.home: dict[str, str] = {node.name: node.group for node in state.nodes.values()}
        self.candidates = set(list(self.nodes)[: self.own.get("candidate_pool_size", 10)])
        self.tags |= {("nodegroup", group.name): set(group.tags) for group in state.groups.values()}
        self.tags |= {("node", node.name): set(node.tags) for node in state.nodes.values()}

    def run(self, job: Tree) -> None:
        """Run a job. Raise RefusedError, and change nothing, if Ganeti would refuse it."""
        run = {
            "OP_CLUSTER_SET_PARAMS": self._modify_cluster,
            "OP_GROUP_ADD": self._add_group,
            "OP_GROUP_SET_PARAMS": self._modify_group,
            "OP_GROUP_RENAME": self._rename_group,
            "OP_GROUP_REMOVE": self._remove_group,
            "OP_GROUP_ASSIGN_NODES": self._assign_nodes,
            "OP_NODE_SET_PARAMS": self._modify_node,
            "OP_TAGS_SET": self._add_tags,
            "OP_TAGS_DEL": self._remove_tags,
        }[job["OP_ID"]]
        run(deepcopy(job))
        self._check_whole()

    def as_state(self) -> ClusterState:
        """Return what a new read of the cluster shows."""
        state, own = self.state, flatten(self.own)
        groups = {}
        for name, tree in self.groups.items():
            values = flatten(tree)
            effective = fill(values, own, Level.GROUP)
            groups[name] = LiveGroup(
                name=name, own=values, effective=effective, tags=frozenset(self.tags["nodegroup", name])
            )
        nodes = {
            name: LiveNode(
                name=name,
                group=self.home[name],
                own=flatten(tree),
                tags=frozenset(self.tags["node", name]),
                master_capable=True,
                master_candidate=name in self.candidates,
            )
            for name, tree in self.nodes.items()
        }
        return ClusterState(
            source=state.source,
            name=state.name,
            software_version=state.software_version,
            cluster=ClusterObject(own=own, tags=frozenset(self.tags["cluster", None])),
            groups=groups,
            nodes=nodes,
            instances=state.instances,
            unreadable=state.unreadable,
        )

    # --- values ------------------------------------------------------------------------------------------------------

    def _modify_cluster(self, job: Tree) -> None:
        values, own = _values(job), deepcopy(self.own)
        for name, value in values.items():
            if name == "ipolicy":
                self._cluster_ipolicy(own["ipolicy"], value)
            elif name in ("hv_state", "disk_state"):
                _merge_state(own.setdefault(name, {}), value, defaults=HV_STATE if name == "hv_state" else DISK_STATE)
            elif name in _MERGED:
                own.setdefault(name, {}).update(_without_default(value))
            elif name == "diskparams":
                for template, below in value.items():
                    own[name].setdefault(template, {}).update(_without_default(below))
            elif name == "hvparams":  # here `default` is an ordinary word of some parameters
                for hypervisor, below in value.items():
                    own[name].setdefault(hypervisor, {}).update(below)
            else:
                own[name] = value
        self._check_cluster(own)
        if "candidate_pool_size" in values:  # promotes by the size that is stored so far, and demotes nobody
            others = (name for name in self.nodes if name not in self.candidates)
            self.candidates |= set(islice(others, max(0, self.own["candidate_pool_size"] - len(self.candidates))))
        self.own = own

    @staticmethod
    def _cluster_ipolicy(own: Tree, wanted: Tree) -> None:
        for key, value in wanted.items():
            if value in ("default", ["default"], [], 0):
                raise RefusedError(f"Can't unset ipolicy attribute {key!r} on the cluster")
            if key == "std":
                own["std"] = {**own["std"], **value}
            else:
                own[key] = value

    def _check_cluster(self, own: Tree) -> None:
        enabled, policy = set(own["enabled_disk_templates"]), own["ipolicy"]
        if not enabled or set(policy["disk-templates"]) - enabled:
            raise RefusedError("allowed by the ipolicy, but not enabled on the cluster")
        disabled = set(self.own["enabled_disk_templates"]) - enabled
        if not any(_inside(policy["std"], pair) for pair in policy["minmax"]):
            raise RefusedError("Invalid std specifications")
        for item in self.state.instances.values():
            used = {disk.template for disk in item.disks} or {"diskless"}
            used |= {"plain"} if "drbd" in used else set()
            if used & disabled:
                raise RefusedError(f"Cannot disable disk template, {item.name} uses it")
        if enabled & _LVM and not own["volume_group_name"]:
            raise RefusedError("no volume group although LVM templates are enabled")
        if "drbd" in enabled and not own["drbd_usermode_helper"]:
            raise RefusedError("no drbd helper although drbd is enabled")

    def _add_group(self, job: Tree) -> None:
        name = job["group_name"]
        if name in self.groups:
            raise RefusedError(f"group {name} exists")
        values = {"alloc_policy": "preferred", **_values(job)}
        if "default" in str(values).replace(repr(name), ""):
            raise BrokenError("a new group stores the word default")
        if "std" in values.get("ipolicy", {}):
            raise BrokenError("a group with a standard instance")
        self._check_templates(values)
        self.groups[name], self.tags["nodegroup", name] = values, set()

    def _modify_group(self, job: Tree) -> None:
        group = deepcopy(self.groups[self._known(job["group_name"], self.groups)])
        values = _values(job)
        if not values:
            raise BrokenError("a job that changes nothing")
        for key, value in values.pop("ipolicy", {}).items():
            policy = group.setdefault("ipolicy", {})
            if key == "std":
                raise RefusedError("std cannot appear in group instance specs")
            if value in ("default", ["default"], [], 0):
                policy.pop(key, None)
            else:
                policy[key] = value
        for template, wanted in values.get("diskparams", {}).items():
            if wanted.get("access") == "default":
                raise RefusedError(f"Invalid value of '{template}:access'")
        self._merge_sparse(group, values)
        if "ipolicy" in group:
            self._check_templates(group)
        self.groups[job["group_name"]] = group

    def _modify_node(self, job: Tree) -> None:
        node, values = deepcopy(self.nodes[self._known(job["node_name"], self.nodes)]), _values(job)
        if not values:
            raise RefusedError("Please give at least one of the parameters.")
        if "exclusive_storage" in values.get("ndparams", {}):
            raise RefusedError("global and cannot be customized at node level")
        self._merge_sparse(node, values)
        self.nodes[job["node_name"]] = node

    @staticmethod
    def _merge_sparse(own: Tree, values: Tree) -> None:
        for name, value in values.items():
            if name == "alloc_policy":
                own[name] = value
            elif name in ("hv_state", "disk_state"):
                _merge_state(own.setdefault(name, {}), value, defaults=None)
            elif name == "diskparams":
                for template, below in value.items():
                    _merge_or_reset(own.setdefault(name, {}).setdefault(template, {}), below)
            else:
                _merge_or_reset(own.setdefault(name, {}), value)

    def _check_templates(self, group: Tree) -> None:
        templates = group.get("ipolicy", {}).get("disk-templates")
        if templates is not None and not templates:
            raise RefusedError("Instance policy must contain at least one disk template")
        if set(templates or ()) - set(self.own["enabled_disk_templates"]):
            raise RefusedError("allowed by the ipolicy, but not enabled on the cluster")

    # --- groups and tags ---------------------------------------------------------------------------------------------

    @staticmethod
    def _known(name: str, objects: Mapping[str, Any]) -> str:
        if name not in objects:
            raise RefusedError(f"there is no {name}")
        return name

    def _rename_group(self, job: Tree) -> None:
        old, new = self._known(job["group_name"], self.groups), job["new_name"]
        if new in self.groups:
            raise RefusedError(f"Desired new name {new} clashes")
        self.groups[new], self.tags["nodegroup", new] = self.groups.pop(old), self.tags.pop(("nodegroup", old))
        self.home = {node: new if group == old else group for node, group in self.home.items()}

    def _remove_group(self, job: Tree) -> None:
        name = self._known(job["group_name"], self.groups)
        if name in self.home.values() or len(self.groups) == 1:
            raise RefusedError(f"group {name} is not empty, or the last")
        del self.groups[name], self.tags["nodegroup", name]

    def _assign_nodes(self, job: Tree) -> None:
        target, nodes = self._known(job["group_name"], self.groups), job["nodes"]
        if not nodes:
            raise BrokenError("moves every node of the cluster")
        home = {**self.home, **{self._known(node, self.nodes): target for node in nodes}}
        for item in self.state.instances.values():
            ends = (item.primary_node, *item.secondary_nodes)
            if len({home[end] for end in ends}) > 1 and len({self.home[end] for end in ends}) == 1:
                raise RefusedError(f"{item.name} gets split by this change")
        self.home = home

    def _add_tags(self, job: Tree) -> None:
        self.tags[job["kind"], job.get("name")] |= set(job["tags"])

    def _remove_tags(self, job: Tree) -> None:
        have = self.tags[job["kind"], job.get("name")]
        if set(job["tags"]) - have:
            raise RefusedError("Tag(s) not found")
        have -= set(job["tags"])

    def _check_whole(self) -> None:
        enabled = set(self.own["enabled_disk_templates"])
        for name, group in self.groups.items():
            if set(group.get("ipolicy", {}).get("disk-templates", ())) - enabled:
                raise BrokenError(f"the list of group {name} names a template that is not enabled")


def _tree(values: Mapping[tuple[str, ...], Value]) -> Tree:
    return deepcopy(unflatten(values))


def _values(job: Tree) -> Tree:
    return {_READ_NAMES.get(name, name): value for name, value in job.items() if name not in _NOT_VALUES}


def _without_default(values: Tree) -> Tree:
    if "default" in values.values():
        raise BrokenError("the cluster stores the word default")
    return values


def _merge_or_reset(own: Tree, values: Tree) -> None:
    for key, value in values.items():
        if value == "default":
            own.pop(key, None)
        else:
            own[key] = value


def _merge_state(own: Tree, values: Tree, *, defaults: Mapping[str, Any] | None) -> None:
    """Merge hv_state or disk_state; the cluster's (with `defaults`) is filled with built-in values afterwards."""
    for ident, below in values.items():
        if all(isinstance(item, dict) for item in below.values()):
            _merge_state(own.setdefault(ident, {}), below, defaults=defaults)
            continue
        entry = own.setdefault(ident, {})
        _merge_or_reset(entry, below)
        for name, row in (defaults or {}).items():
            entry.setdefault(name, row[0])


def _inside(std: Tree, pair: Tree) -> bool:
    return all(pair["min"][name] <= std[name] <= pair["max"][name] for name in SPEC_PARAMETERS)


_TAG_KINDS: Final = {"groups": "nodegroup", "nodes": "node"}


def rapi_job(call: RapiCall) -> Tree:
    """Return the opcode's fields that a RAPI request of a plan means."""
    parts = urlsplit(call.path)
    names, body = parts.path.strip("/").split("/")[1:], call.body if isinstance(call.body, dict) else {}
    match call.method, names:
        case "PUT", ["modify"]:
            return {"OP_ID": "OP_CLUSTER_SET_PARAMS", **body}
        case "POST", ["groups"]:
            return {"OP_ID": "OP_GROUP_ADD", **body}
        case "PUT", ["groups", name, ("modify" | "rename" | "assign-nodes") as verb]:
            job = {"modify": "SET_PARAMS", "rename": "RENAME", "assign-nodes": "ASSIGN_NODES"}[verb]
            return {"OP_ID": f"OP_GROUP_{job}", "group_name": name, **body}
        case "DELETE", ["groups", name]:
            return {"OP_ID": "OP_GROUP_REMOVE", "group_name": name}
        case "POST", ["nodes", name, "modify"]:
            return {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": name, **body}
        case ("PUT" | "DELETE") as method, [*place, "tags"]:
            job = {"PUT": "OP_TAGS_SET", "DELETE": "OP_TAGS_DEL"}[method]
            named = {"kind": _TAG_KINDS[place[0]], "name": place[1]} if place else {"kind": "cluster", "name": None}
            return {"OP_ID": job, **named, "tags": parse_qs(parts.query)["tag"]}
    raise AssertionError(f"no request of a plan: {call}")


def tools_job(argv: tuple[str, ...]) -> Tree:
    """Return the opcode's fields of the one command that RAPI has no request for."""
    program, verb, option = argv
    name, _, value = option.partition("=")
    assert (program, verb, name) == ("gnt-cluster", "modify", "--compression-tools")
    assert parameter_at(("compression_tools",)) is not None
    return {"OP_ID": "OP_CLUSTER_SET_PARAMS", "compression_tools": value.split(",")}
