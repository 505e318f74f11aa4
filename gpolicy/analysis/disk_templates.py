"""The default disk template of new instances."""

from __future__ import annotations

from typing import Final

from gpolicy.allocator.cluster_data import InstancePolicy
from gpolicy.allocator.enumerations import DiskTemplate
from gpolicy.analysis.unmade import is_made_exclusive
from gpolicy.cluster.state import ClusterState
from gpolicy.errors import UsageError
from gpolicy.guessing import did_you_mean_one_of

_LIKELY: Final = (DiskTemplate.DRBD, DiskTemplate.PLAIN)


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
    """Return the default template under `policy`; with `exclusive` storage one that Ganeti makes there, if any is.

    If the source does not name the enabled ones, DRBD and plain come first: the order of the policy's list has no
    meaning in Ganeti, although hspace takes its first.
    """
    order = (*_LIKELY, *DiskTemplate) if enabled is None else enabled
    allowed = [template for template in order if template in policy.templates]
    made = [template for template in allowed if is_made_exclusive(template)] if exclusive else []
    return next(iter(made or allowed), None)
