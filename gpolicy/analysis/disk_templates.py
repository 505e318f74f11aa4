"""The disk template that is counted and placed where none is named."""

from __future__ import annotations

from gpolicy.allocator.cluster_data import InstancePolicy
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.analysis.unmade import is_made_exclusive
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import UsageError
from gpolicy.guessing import did_you_mean_one_of


def enabled_templates(state: ClusterState) -> tuple[DiskTemplate, ...] | None:
    """Return the enabled templates, Ganeti's default first; None if the source does not name them."""
    names = state.cluster.own.get(("enabled_disk_templates",))
    if not isinstance(names, list):
        return None
    return tuple(DiskTemplate(name) for name in names if name in {template.value for template in DiskTemplate})


def wanted_template(name: str, enabled: tuple[DiskTemplate, ...] | None) -> DiskTemplate:
    """Return the template of this name. Raise UsageError if there is none, or it is not enabled."""
    known = {template.value: template for template in DiskTemplate}
    if name not in known:
        hint = did_you_mean_one_of(name, "disk templates", known)
        raise UsageError(f"there is no disk template {name!r}", hint=hint)
    if enabled is not None and known[name] not in enabled:
        names = ", ".join(template.value for template in enabled)
        raise UsageError(f"disk template {name} is not enabled on the cluster", hint=f"enabled are {names}")
    return known[name]


def first_allowed(
    enabled: tuple[DiskTemplate, ...] | None, policy: InstancePolicy, *, exclusive: bool
) -> DiskTemplate | None:
    """Return the first of `allowed_templates`, which hspace counts with; None if there is none."""
    return next(iter(allowed_templates(enabled, policy, exclusive=exclusive)), None)


def allowed_templates(
    enabled: tuple[DiskTemplate, ...] | None, policy: InstancePolicy, *, exclusive: bool
) -> list[DiskTemplate]:
    """Return the enabled templates of the policy's list, in its order.

    With `exclusive` storage they are those that Ganeti makes there, if it makes any.
    """
    allowed = [template for template in policy.templates if enabled is None or template in enabled]
    made = [template for template in allowed if is_made_exclusive(template)] if exclusive else []
    return made or allowed
