"""All rules, in the order of their codes. A new rule is registered here, in its family's module."""

from __future__ import annotations

from typing import Final

from gpolicy.rules.bases import BASE_RULES
from gpolicy.rules.ceilings import CEILING_RULES
from gpolicy.rules.cluster_fit import FIT_RULES
from gpolicy.rules.cluster_name import CLUSTER_NAME_RULES
from gpolicy.rules.cluster_parameters import CLUSTER_PARAMETER_RULES
from gpolicy.rules.compression import COMPRESSION_RULES
from gpolicy.rules.dedicated import DEDICATED_RULES
from gpolicy.rules.drbd import DRBD_RULES
from gpolicy.rules.drbd_custom import DRBD_CUSTOM_RULES
from gpolicy.rules.exclusive_storage import EXCLUSIVE_STORAGE_RULES
from gpolicy.rules.groups import GROUP_RULES
from gpolicy.rules.guards import GUARD_RULES
from gpolicy.rules.hardware import HARDWARE_RULES
from gpolicy.rules.homes import HOME_RULES
from gpolicy.rules.hypervisor_parameters import HYPERVISOR_RULES
from gpolicy.rules.interfaces import INTERFACE_RULES
from gpolicy.rules.location_tags import LOCATION_RULES
from gpolicy.rules.migration_tags import MIGRATION_RULES
from gpolicy.rules.moves import MOVE_RULES
from gpolicy.rules.node_parameters import NODE_PARAMETER_RULES
from gpolicy.rules.node_patterns import PATTERN_RULES
from gpolicy.rules.observed_hardware import EXCLUSIVE_OBSERVED_RULES, OBSERVED_RULES
from gpolicy.rules.parameters import PARAMETER_RULES
from gpolicy.rules.ratios import RATIO_RULES, SPINDLE_RATIO_RULES
from gpolicy.rules.rule import Rule
from gpolicy.rules.scenario_disks import SCENARIO_DISK_RULES
from gpolicy.rules.scenario_sizes import SCENARIO_SIZE_RULES
from gpolicy.rules.scenarios import SCENARIO_RULES
from gpolicy.rules.spec_shape import SPEC_SHAPE_RULES
from gpolicy.rules.specs import SPEC_RULES
from gpolicy.rules.spindles import SPINDLE_RULES
from gpolicy.rules.standard import STANDARD_RULES
from gpolicy.rules.states import STATE_RULES
from gpolicy.rules.storage_parameters import STORAGE_RULES
from gpolicy.rules.tag_prefixes import TAG_PREFIX_RULES
from gpolicy.rules.tag_spelling import TAG_SPELLING_RULES
from gpolicy.rules.tags import TAG_RULES
from gpolicy.rules.template_use import TEMPLATE_USE_RULES
from gpolicy.rules.templates import TEMPLATE_RULES

RULES: Final[tuple[Rule, ...]] = (
    *PARAMETER_RULES,
    *CLUSTER_PARAMETER_RULES,
    *COMPRESSION_RULES,
    *INTERFACE_RULES,
    *CLUSTER_NAME_RULES,
    *HYPERVISOR_RULES,
    *STORAGE_RULES,
    *NODE_PARAMETER_RULES,
    *STATE_RULES,
    *RATIO_RULES,
    *DRBD_RULES,
    *DRBD_CUSTOM_RULES,
    *SPEC_RULES,
    *SPEC_SHAPE_RULES,
    *STANDARD_RULES,
    *HARDWARE_RULES,
    *CEILING_RULES,
    *SPINDLE_RATIO_RULES,
    *TEMPLATE_RULES,
    *TEMPLATE_USE_RULES,
    *EXCLUSIVE_STORAGE_RULES,
    *SPINDLE_RULES,
    *DEDICATED_RULES,
    *EXCLUSIVE_OBSERVED_RULES,
    *TAG_RULES,
    *TAG_PREFIX_RULES,
    *MIGRATION_RULES,
    *LOCATION_RULES,
    *TAG_SPELLING_RULES,
    *GROUP_RULES,
    *HOME_RULES,
    *PATTERN_RULES,
    *BASE_RULES,
    *FIT_RULES,
    *MOVE_RULES,
    *OBSERVED_RULES,
    *GUARD_RULES,
    *SCENARIO_RULES,
    *SCENARIO_SIZE_RULES,
    *SCENARIO_DISK_RULES,
)
"""Families by range of codes: GP1xx parameters, GP2xx specs, GP3xx disk templates, GP4xx exclusive storage, GP5xx
tags, GP6xx groups, nodes and node sets, GP7xx the policy on a cluster, GP8xx
guards and tests. GP0xx (structure) and GP9xx (waivers) are found
elsewhere."""
