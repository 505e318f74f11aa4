"""Groups of nodes to suggest sizes for: written as htools' text, as hscan writes it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from gpolicy.cluster.htools_sources import parse_text
from gpolicy.cluster.state import ClusterState
from gpolicy.ganeti.vocabulary import Values

SPECS = "128,1,1024,1,1,1|128,1,1024,1,1,1;1048576,512,134217728,16,8,12"


@dataclass(frozen=True)
class Hardware:
    """One node (MiB): memory in all, what it keeps for itself, disk, CPUs, physical volumes, CPUs of its own."""

    memory: int = 262144
    kept: int = 1024
    disk: int = 4194304
    cpus: int = 32
    volumes: int = 12
    own_cpus: int = 1


def group(
    *nodes: Hardware,
    exclusive: bool = False,
    templates: str = "plain,drbd",
    ratio: float = 4.0,
    specs: str = SPECS,
    instances: str = "",
    flags: str = "",
    usable: bool = True,
    spindle_ratio: float | None = None,
) -> ClusterState:
    """Return a cluster of one group; `flags` has Y for each node that is offline.

    Under exclusive storage free disk is what Ganeti reports: of each volume, the size less margin and reserve.
    """
    lines = []
    for place, node in enumerate(nodes):
        free = node.memory - node.kept
        disk = int(node.disk // node.volumes // 1.03) * node.volumes if exclusive and usable else node.disk
        flag = flags[place] if place < len(flags) else "N"
        kind = "Y" if exclusive else "N"
        lines.append(
            f"node{place}|{node.memory}|{node.kept}|{free}|{node.disk}|{disk}|{node.cpus}|{flag}|u|{node.volumes}||{kind}"
            f"|{node.volumes if exclusive else 0}|{node.own_cpus}|1.0"
        )
    allowed = (32.0 if exclusive else 320.0) if spindle_ratio is None else spindle_ratio
    policy = f"{specs}|{templates}|{ratio}|{allowed}"
    listed = "\n".join(lines)
    text = f"g|u|preferred||\n\n{listed}\n\n{instances}\n\n|{policy}\ng|{policy}\n"
    return _readable(parse_text(text, where="x", source="text:x"), exclusive=exclusive)


def _readable(state: ClusterState, *, exclusive: bool) -> ClusterState:
    """Return `state` as a source shows it that knows own values: text shows effective ones only."""
    flag: Values = {("ndparams", "exclusive_storage"): True} if exclusive else {}
    groups = {name: replace(found, own={**found.effective, **flag}) for name, found in state.groups.items()}
    groups = {name: replace(found, effective={**found.effective, **flag}) for name, found in groups.items()}
    return replace(state, groups=groups, unreadable=())


@st.composite
def hardware(draw: st.DrawFn) -> Hardware:
    """Return a node between a small board and a large machine, with odd numbers in it."""
    memory = draw(st.sampled_from([4096, 65536, 262144, 1572864]) | st.integers(4000, 2_000_000))
    volumes = draw(st.integers(1, 24))
    volume = draw(st.sampled_from([476416, 1048576, 3814208]) | st.integers(40_000, 8_000_000))
    cpus = draw(st.integers(2, 128) | st.sampled_from([2, 7, 13, 31, 61, 127]))
    own = draw(st.integers(0, min(4, cpus - 1)))
    return Hardware(memory, draw(st.integers(0, memory // 8)), volume * volumes, cpus, volumes, own)
