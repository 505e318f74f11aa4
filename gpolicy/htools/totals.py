"""Cluster-wide sums of resources, as hspace reports them (memory and disk in MiB)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpolicy.allocator.ghc_numbers import divide, truncate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpolicy.allocator.node import Node


class Totals(NamedTuple):
    """Sums over all nodes, offline ones included; `largest_*` are maxima over the nodes."""

    free_memory: int
    available_memory: int
    free_disk: int
    available_disk: int
    free_spindles: int
    largest_memory: int
    largest_disk: int
    instance_memory: int
    instance_disk: int
    instance_spindles: int
    instance_cpus: int
    total_memory: float
    total_disk: float
    total_spindles: float
    total_cpus: float
    virtual_cpus: int
    normalised_cpus: float
    overhead_memory: int
    instances: int


def cluster_totals(nodes: Mapping[int, Node]) -> Totals:
    """Add up `nodes`, doubles in index order."""
    everything = list(nodes.values())
    total_memory = total_disk = total_spindles = total_cpus = normalised = 0.0
    for node in everything:
        facts = node.facts
        total_memory += facts.total_memory
        total_disk += facts.total_disk
        total_spindles += float(facts.spindles)
        total_cpus += facts.total_cpus
        normalised += divide(float(node.used_cpus), facts.vcpu_ratio)
    return Totals(
        free_memory=sum(node.unallocated_memory for node in everything),
        available_memory=sum(node.available_memory for node in everything),
        free_disk=sum(node.free_disk for node in everything),
        available_disk=sum(node.available_disk for node in everything),
        free_spindles=sum(node.free_spindles for node in everything),
        largest_memory=max((node.available_memory for node in everything), default=0),
        largest_disk=max((node.available_disk for node in everything), default=0),
        instance_memory=sum(node.instance_memory for node in everything),
        instance_disk=sum(truncate(node.facts.total_disk) - node.free_disk for node in everything),
        instance_spindles=sum(node.facts.spindles - node.free_spindles for node in everything),
        instance_cpus=sum(node.used_cpus for node in everything),
        total_memory=total_memory,
        total_disk=total_disk,
        total_spindles=total_spindles,
        total_cpus=total_cpus,
        virtual_cpus=sum(node.facts.high_cpus for node in everything),
        normalised_cpus=normalised,
        overhead_memory=sum(node.facts.unaccounted_memory + node.facts.node_memory for node in everything),
        instances=sum(len(node.primaries) for node in everything),
    )
