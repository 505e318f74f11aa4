"""All rules, in the order of their codes. A new rule is registered here, in its family's module."""

from __future__ import annotations

from typing import Final

from gpolicy.checking.rule import Rule
from gpolicy.rules.against_cluster.fit import FIT_RULES
from gpolicy.rules.against_cluster.hardware import EXCLUSIVE_OBSERVED_RULES, OBSERVED_RULES
from gpolicy.rules.against_cluster.moves import MOVE_RULES
from gpolicy.rules.disk_templates.enabled import TEMPLATE_RULES
from gpolicy.rules.disk_templates.in_use import TEMPLATE_USE_RULES
from gpolicy.rules.exclusive_storage.dedicated import DEDICATED_RULES
from gpolicy.rules.exclusive_storage.physical_volumes import EXCLUSIVE_STORAGE_RULES
from gpolicy.rules.exclusive_storage.spindles import SPINDLE_RULES
from gpolicy.rules.groups.bases import BASE_RULES
from gpolicy.rules.groups.homes import HOME_RULES
from gpolicy.rules.groups.node_sets import GROUP_RULES
from gpolicy.rules.groups.patterns import PATTERN_RULES
from gpolicy.rules.guards_and_tests.guards import GUARD_RULES
from gpolicy.rules.guards_and_tests.scenario_disks import SCENARIO_DISK_RULES
from gpolicy.rules.guards_and_tests.scenario_sizes import SCENARIO_SIZE_RULES
from gpolicy.rules.guards_and_tests.scenarios import SCENARIO_RULES
from gpolicy.rules.parameters.cluster import CLUSTER_PARAMETER_RULES
from gpolicy.rules.parameters.cluster_name import CLUSTER_NAME_RULES
from gpolicy.rules.parameters.compression import COMPRESSION_RULES
from gpolicy.rules.parameters.drbd import DRBD_RULES
from gpolicy.rules.parameters.drbd_custom import DRBD_CUSTOM_RULES
from gpolicy.rules.parameters.hypervisors import HYPERVISOR_RULES
from gpolicy.rules.parameters.interfaces import INTERFACE_RULES
from gpolicy.rules.parameters.nodes import NODE_PARAMETER_RULES
from gpolicy.rules.parameters.ratios import RATIO_RULES, SPINDLE_RATIO_RULES
from gpolicy.rules.parameters.states import STATE_RULES
from gpolicy.rules.parameters.storage import STORAGE_RULES
from gpolicy.rules.parameters.values import PARAMETER_RULES
from gpolicy.rules.specs.ceilings import CEILING_RULES
from gpolicy.rules.specs.hardware import HARDWARE_RULES
from gpolicy.rules.specs.overlap import SPEC_RULES
from gpolicy.rules.specs.shape import SPEC_SHAPE_RULES
from gpolicy.rules.specs.standard import STANDARD_RULES
from gpolicy.rules.tags.htools import TAG_RULES
from gpolicy.rules.tags.locations import LOCATION_RULES
from gpolicy.rules.tags.migration import MIGRATION_RULES
from gpolicy.rules.tags.prefixes import TAG_PREFIX_RULES
from gpolicy.rules.tags.spelling import TAG_SPELLING_RULES

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
