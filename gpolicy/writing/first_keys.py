"""The order of keys in documents that are written or formatted: first its identity, then its values, tags last."""

from __future__ import annotations

from typing import Final

TOP_LEVEL: Final = (
    *("gpolicy", "kind", "name", "description", "template", "extends", "renamed_from", "removed", "ganeti_version"),
    *("enabled_disk_templates", "enabled_hypervisors", "alloc_policy", "nodes", "groups", "hardware"),
    *("ndparams", "ipolicy", "diskparams", "hv_state", "disk_state", "beparams", "nicparams", "hvparams"),
    *("enabled_data_collectors", "data_collector_interval"),
)
"""The first keys of every kind. Others follow in the order of the schema."""

LAST: Final = "tags"

BELOW: Final = {
    "ipolicy": ("minmax", "std", "disk-templates", "vcpu-ratio", "spindle-ratio"),
    "hardware": ("memory", "cpus", "pv_count", "pv_size"),
}
"""The first keys inside some of the mappings."""
