"""The instance of a placement request, in the form for hail; the disk template where none is named, and unmade disks.

Ganeti checks exclusive storage when an instance is created (cmdlib/instance_create.py: DTS_EXCL_STORAGE); htools does
not.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpolicy.allocator import cluster_data
from gpolicy.allocator.cluster_data import Disk, DiskTemplate, Group, Instance, InstancePolicy, Spec, SpecPair
from gpolicy.allocator.cluster_score import WEIGHTS, Weights
from gpolicy.allocator.merge import DESIRED_PREFIX, EXCLUSION_PREFIX, ClusterData, tags_of
from gpolicy.allocator.policy_check import check_ipolicy
from gpolicy.analysis.allocator_input import charged_space, policy_of
from gpolicy.analysis.binding import Cause
from gpolicy.cluster.state import ClusterState, LiveInstance
from gpolicy.cluster.terms import SpindleFault, VolumeSize, shared_limits, spindle_refusal
from gpolicy.errors import GpolicyError, RequestError, about
from gpolicy.ganeti.amounts import exact_size
from gpolicy.guessing import did_you_mean, did_you_mean_one_of


def enabled_templates(state: ClusterState) -> tuple[DiskTemplate, ...] | None:
    """Return the enabled templates, Ganeti's default first; None if the source does not name them."""
    names = state.cluster.own.get(("enabled_disk_templates",))
    if not isinstance(names, list):
        return None
    return tuple(DiskTemplate(name) for name in names if name in {template.value for template in DiskTemplate})


def wanted_template(name: str, enabled: tuple[DiskTemplate, ...] | None) -> DiskTemplate:
    """Return the template of this name. Raise RequestError if there is none, or it is not enabled."""
    known = {template.value: template for template in DiskTemplate}
    if name not in known:
        hint = did_you_mean_one_of(name, "disk templates", known)
        raise RequestError(f"there is no disk template {name!r}", hint=hint)
    if enabled is not None and known[name] not in enabled:
        names = ", ".join(template.value for template in enabled)
        raise RequestError(f"disk template {name} is not enabled on the cluster", hint=f"enabled are {names}")
    return known[name]


def allowed_templates(
    enabled: tuple[DiskTemplate, ...] | None, policy: InstancePolicy, *, exclusive: bool
) -> list[DiskTemplate]:
    """Return the enabled templates of the policy's list, in its order: hspace counts with the first.

    With `exclusive` storage they are those that Ganeti makes there, if it makes any.
    """
    allowed = [template for template in policy.templates if enabled is None or template in enabled]
    return [DiskTemplate.PLAIN] if exclusive and DiskTemplate.PLAIN in allowed else allowed


_CAUSES = {SpindleFault.TOO_FEW: Cause.TOO_FEW_SPINDLES, SpindleFault.SHARED: Cause.SHARED_STORAGE}


@dataclass(frozen=True, slots=True)
class Unmade:
    """The refusal: its cause, and a sentence about this instance."""

    cause: Cause
    sentence: str


def unmade(
    instance: Instance | LiveInstance, *, exclusive: bool, volume: VolumeSize | None, spindles_count: bool = True
) -> Unmade | None:
    """Return why Ganeti refuses the disks of `instance` on a node, None if it makes them.

    `volume` is how the physical volumes of the node count, None where it is not known. Without `spindles_count` the
    spindles of the disks mean nothing.
    """
    template = DiskTemplate(instance.disk_template) if isinstance(instance, LiveInstance) else instance.template
    if exclusive and template is not DiskTemplate.PLAIN:
        name = template.value
        return Unmade(Cause.ONLY_PLAIN, f"Ganeti makes no {name} instance on nodes with exclusive storage, only plain")
    for disk in instance.disks if spindles_count else ():
        refusal = spindle_refusal(disk.size, disk.spindles, exclusive=exclusive, volume=volume)
        if refusal is not None and refusal.fault in _CAUSES:
            return Unmade(_CAUSES[refusal.fault], str(refusal))
    return None


NEW = "new"
"""The name of an instance that has none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceRequest:
    """The instance to place. Memory in MiB; `wanted_instance` fills in fields that are None.

    Under over-subscription the instance is guaranteed `minimum_memory` and may burst to `memory`; None: the same.
    `template` None: the first of the group's policy that is enabled; with no group given the first of the cluster's
    that a group allows. `diskless` is skipped for a request with disks. `memory`, `vcpus`, `disks`, `spindle_use` None:
    those of the policy's `std` (of `group` if one is given). `group` is a name or UUID; `nodes` the only nodes that may
    be used; `networks` UUIDs, one a network interface. `spindles_given`: the request itself says the spindles of
    `disks`; those of a size of the policy mean nothing without exclusive storage.
    `ignore_ipolicy`: the policy's sizes and disk templates are not held against it (`gnt-instance add
    --ignore-ipolicy`). `weights` are those of the score. `size` is what people call the size that it starts from.
    """

    name: str = NEW
    size: str = ""
    memory: int | None = None
    minimum_memory: int | None = None
    vcpus: int | None = None
    disks: tuple[Disk, ...] | None = None
    spindle_use: int | None = None
    template: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    nodes: tuple[str, ...] | None = None
    networks: tuple[str, ...] = ()
    nic_count: int | None = None
    spindles_given: bool = True
    ignore_ipolicy: bool = False
    weights: Weights = WEIGHTS


def wanted_group(request: PlaceRequest, data: ClusterData) -> Group | None:
    """Return the requested group (by name or UUID), None if none is requested. Raise RequestError if it is unknown.

    A UUID counts as the group's name. (hail itself, given a UUID, uses the dedicated metric even on ordinary nodes.)
    """
    if request.group is None:
        return None
    found = [group for group in data.groups if request.group == group.name]
    found = found or [group for group in data.groups if request.group == group.uuid]
    if not found:
        hint = did_you_mean_one_of(request.group, "groups", [group.name for group in data.groups])
        raise RequestError(f"there is no group {request.group!r}", hint=hint)
    return found[0]


def wanted_instance(request: PlaceRequest, group: Group | None, state: ClusterState, data: ClusterData) -> Instance:
    """Return the requested instance, running; missing values come from `std` of the effective policy.

    Raise RequestError for an impossible request, and GpolicyError if the state lacks needed figures.
    """
    std = (data.policy if group is None else group.policy).std
    template = _pick_template(request, group, state, data)
    disks = _disks(request, std, template, data)
    memory = std.memory if request.memory is None else request.memory
    amounts = {
        "memory": memory,
        "minmem": memory if request.minimum_memory is None else request.minimum_memory,
        "vcpus": std.cpus if request.vcpus is None else request.vcpus,
        "spindle-use": std.spindle_use if request.spindle_use is None else request.spindle_use,
        **{f"disk {number}": disk.size for number, disk in enumerate(disks)},
        **{f"spindles of disk {number}": disk.spindles or 0 for number, disk in enumerate(disks)},
    }
    for what, amount in amounts.items():
        if amount < 0 or (amount == 0 and what in ("memory", "minmem", "vcpus")):
            raise RequestError(f"{what} of the instance is {amount}")
    if amounts["minmem"] > memory:
        raise RequestError(f"minmem {exact_size(amounts['minmem'])} is more than memory {exact_size(memory)}")
    _check_places(request, state)
    made = Instance(
        index=-1,
        name=request.name,
        memory=amounts["memory"],
        disk=charged_space(template, [disk.size for disk in disks]),
        disks=disks,
        vcpus=amounts["vcpus"],
        status=cluster_data.InstanceStatus.RUNNING,
        template=template,
        spindle_use=amounts["spindle-use"],
        tags=request.tags,
        networks=request.networks,
        exclusion_tags=tags_of(EXCLUSION_PREFIX, data.tags, request.tags),
        desired_tags=frozenset(tags_of(DESIRED_PREFIX, data.tags, request.tags)),
        ignores_policy=request.ignore_ipolicy,
    )
    if shared_limits(state, group.name if group else None).oversubscription is None:
        return made
    nodes = [node for node in data.nodes if group is None or node.group == group.index]
    policies = {(data.groups[node.group].policy, node.exclusive) for node in nodes}
    return with_guarantee(made, amounts["minmem"], policies)


def with_guarantee(instance: Instance, least: int, policies: Iterable[tuple[InstancePolicy, bool]]) -> Instance:
    """Return `instance`, which may burst to its memory, guaranteed `least` of it; whole where a policy refuses it.

    Ganeti compares the greatest memory with the policy, so the guaranteed one may be below its bounds. Each policy is
    given with whether storage is exclusive.
    """
    known, made = [*policies], replace(instance, memory=least, maximum_memory=instance.memory)
    if least >= instance.memory or not _fits_policies(instance, known):
        return instance
    return made if _fits_policies(made, known) else replace(made, ignores_policy=True)


def _fits_policies(instance: Instance, policies: Iterable[tuple[InstancePolicy, bool]]) -> bool:
    return all(check_ipolicy(policy, instance, exclusive=exclusive) is None for policy, exclusive in policies)


def _pick_template(request: PlaceRequest, group: Group | None, state: ClusterState, data: ClusterData) -> DiskTemplate:
    if request.template is not None:
        return wanted_template(request.template, enabled_templates(state))
    filled = {node.group for node in data.nodes}
    groups = [item for item in data.groups if item.index in filled] or data.groups  # groups with nodes
    open_groups = [item for item in groups if item.alloc_policy is not cluster_data.AllocPolicy.UNALLOCABLE]
    asked = [group] if group else open_groups or groups
    allowed = [template for item in asked for template in _allowed(request, item.name, state)]
    for template in (*(() if group else data.policy.templates), *allowed):
        if template in allowed:
            return template
    raise RequestError("no enabled disk template is allowed by the policy", hint="name one: template=drbd")


def _allowed(request: PlaceRequest, group: str, state: ClusterState) -> list[DiskTemplate]:
    """Return the templates that `group` has for the disks of the request, in the order of its policy."""
    policy = policy_of(state.groups[group].effective, f"group {group}")
    found = allowed_templates(enabled_templates(state), policy, exclusive=state.is_exclusive(group))
    return [template for template in found if not (request.disks and template is DiskTemplate.DISKLESS)]


def _disks(request: PlaceRequest, std: Spec, template: DiskTemplate, data: ClusterData) -> tuple[Disk, ...]:
    if template is DiskTemplate.DISKLESS:
        if request.disks:
            raise RequestError("an instance with disks is not diskless")
        return ()
    if request.disks is not None:
        return request.disks
    return spec_disks(std, exclusive=any(node.exclusive for node in data.nodes))


def spec_disks(spec: Spec, *, exclusive: bool) -> tuple[Disk, ...]:
    """Return the disks of an instance of size `spec`; under exclusive storage they share its spindles."""
    each, rest = divmod(spec.spindle_use, spec.disk_count) if spec.disk_count else (0, 0)
    spindles = (each + (number < rest) if exclusive else None for number in range(spec.disk_count))
    return tuple(Disk(spec.disk_size, share) for share in spindles)


def spec_of(pair: SpecPair, bound: str, state: ClusterState, group: str) -> Spec:
    """Return the minimum (`bound` min) or the maximum (max) of a pair as a size to place in `group`.

    The maximum has as few disks as the pair allows, and the spindle use of `std` or the nearest that the pair allows
    (under exclusive storage its disks have all spindles): so counts capacity, as hspace does.
    """
    if bound == "min":
        return pair.min
    if state.is_exclusive(group):
        return pair.largest
    std = policy_of(state.groups[group].effective, f"group {group}").std
    use = min(max(std.spindle_use, pair.min.spindle_use), pair.max.spindle_use)
    return replace(pair.largest, spindle_use=use)


def of_pair(request: PlaceRequest, pair: SpecPair, bound: str, state: ClusterState, group: str) -> PlaceRequest:
    """Return `request` with missing values from the minimum or maximum (`bound`) of a pair, and from `group`."""
    least = pair.min.memory if request.minimum_memory is None else request.minimum_memory
    return of_spec(replace(request, minimum_memory=least), spec_of(pair, bound, state, group), state, group)


def of_spec(request: PlaceRequest, spec: Spec, state: ClusterState, group: str | None) -> PlaceRequest:
    """Return `request` with missing values from `spec` and, if given, from `group`.

    The template is then one that the group allows, since the size may be that of another group.
    """
    if request.template is None and group is not None:
        allowed = [template.value for template in _allowed(request, group, state)]
        request = replace(request, template=allowed[0] if allowed else None)
    nodes = [node for node in state.nodes.values() if group in (None, node.group)]
    disks = spec_disks(spec, exclusive=any(state.has_exclusive_storage(node) for node in nodes))
    return replace(
        request,
        spindles_given=request.disks is not None,
        memory=spec.memory if request.memory is None else request.memory,
        vcpus=spec.cpus if request.vcpus is None else request.vcpus,
        disks=disks if request.disks is None and request.template != DiskTemplate.DISKLESS.value else request.disks,
        spindle_use=spec.spindle_use if request.spindle_use is None else request.spindle_use,
        nic_count=spec.nic_count if request.nic_count is None and not request.networks else request.nic_count,
    )


def _check_places(request: PlaceRequest, state: ClusterState) -> None:
    if request.networks and not any(group.networks for group in state.groups.values()):
        hint = "leave the networks out, or read the cluster from hscan text"
        raise GpolicyError(about(state.address, "not known: which networks the groups are connected to"), hint=hint)
    if unknown := [name for name in request.nodes or () if name not in state.nodes]:
        hint = did_you_mean(unknown[0], state.nodes, "name nodes, or the first part of a name that only one node has")
        raise RequestError(f"there is no node {unknown[0]!r}", hint=hint)
