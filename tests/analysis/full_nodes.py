"""Text states of nodes with so many instances: around the limits of vcpu-ratio and spindle-ratio."""

from __future__ import annotations

from gpolicy.cluster.state import ClusterState
from tests.analysis.hspace_cases import from_text, text_of

SPECS = "128,1,1024,1,1,1|128,0,1024,1,0,0;32768,8,1048576,16,8,12|drbd,plain,file,diskless,rbd"


def node(
    name: str, *, cpus: int = 8, own_cpus: int = 1, spindles: int = 1, role: str = "N", exclusive: str = "N"
) -> str:
    return f"{name}|131072|1024|130048|4194304|4194304|{cpus}|{role}|u|{spindles}||{exclusive}|0|{own_cpus}|1.0"


def instances(
    number: int,
    nodes: str = "n1",
    *,
    first: int = 0,
    vcpus: int = 1,
    use: int = 1,
    template: str = "plain",
    status: str = "running",
    balanced: str = "Y",
) -> list[str]:
    primary, _, secondary = nodes.partition(":")
    return [
        f"vm{place}|128|1024|{vcpus}|{status}|{balanced}|{primary}|{secondary}|{template}||{use}|-|N"
        for place in range(first, first + number)
    ]


def text(nodes: list[str], vms: list[str], ratios: str = "4|32") -> str:
    """Return the text of a group; `ratios` are its vcpu-ratio and its spindle-ratio."""
    return text_of(["default|u|preferred||"], nodes, vms, [], [f"|{SPECS}|{ratios}", f"default|{SPECS}|{ratios}"])


def state(nodes: list[str], vms: list[str], ratios: str = "4|32") -> ClusterState:
    return from_text(text(nodes, vms, ratios))
