"""Whether a policy allows an instance, and if not, for what reason.

Source: Ganeti design document "allocation efficiency"/"partitioned Ganeti", and htools' behaviour:
the pairs are tried from the last to the first, and if none accepts, the reason is that of the first pair.
"""

from gpolicy.allocator.cluster_data import DiskTemplate, FailReason, Instance, InstancePolicy, Spec, SpecPair


def check_ipolicy(policy: InstancePolicy, instance: Instance, *, exclusive: bool) -> FailReason | None:
    """Return why `policy` refuses `instance` on a node (with exclusive storage or not), or None."""
    verdict: FailReason | None = None
    if instance.ignores_policy:
        return None
    for pair in reversed(policy.minmax):
        verdict = check_pair(pair, instance, exclusive=exclusive)
        if verdict is None:
            break
    if verdict is None and instance.template not in policy.templates:
        return FailReason.DISK
    return verdict


def check_pair(pair: SpecPair, instance: Instance, *, exclusive: bool) -> FailReason | None:
    """Return why the instance is outside a min/max pair: lower bounds are checked first."""
    below = _check_bound(pair.min, instance, exclusive=exclusive, sign=-1)
    return below if below is not None else _check_bound(pair.max, instance, exclusive=exclusive, sign=1)


def _check_bound(bound: Spec, instance: Instance, *, exclusive: bool, sign: int) -> FailReason | None:
    if (instance.memory - bound.memory) * sign > 0:
        return FailReason.MEM
    if any((disk.size - bound.disk_size) * sign > 0 for disk in instance.disks):
        return FailReason.DISK
    if (instance.vcpus - bound.cpus) * sign > 0:
        return FailReason.CPU
    spindles = instance.total_spindles if exclusive else instance.spindle_use
    if spindles is None or (spindles - bound.spindle_use) * sign > 0:
        return FailReason.SPINDLES
    if instance.template is not DiskTemplate.DISKLESS and (len(instance.disks) - bound.disk_count) * sign > 0:
        return FailReason.DISK_COUNT
    return None
