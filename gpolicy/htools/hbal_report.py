"""What hbal prints: the state of the group, the moves, and the tables of instances."""

from __future__ import annotations

from gpolicy.allocator.cluster_score import cluster_score
from gpolicy.allocator.enumerations import NO_NODE, InstanceStatus
from gpolicy.allocator.ghc_numbers import fixed, general
from gpolicy.allocator.instance_moves import MoveKind, is_split
from gpolicy.htools.backends import node_name
from gpolicy.htools.haskell_text import shown_string, shown_strings
from gpolicy.light_dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpolicy.allocator.balancing import Balanced
    from gpolicy.allocator.cluster_data import Instance
    from gpolicy.allocator.merge import Cluster
    from gpolicy.allocator.node import Node
    from gpolicy.htools.program_options import Options


@dataclass(frozen=True, slots=True)
class GroupState:
    """The nodes of one group, and the instances whose primary node is among them."""

    name: str
    nodes: Mapping[int, Node]
    instances: Mapping[int, Instance]
    aliases: Mapping[int, str]


def cluster_head(cluster: Cluster) -> str:
    """Return the lines on the whole cluster of `-v`."""
    from gpolicy.htools.haskell_records import shown  # noqa: PLC0415 - only what is needed

    tags, policy = ",".join(cluster.tags), shown(cluster.policy)
    return f"Loaded cluster tags: {tags}\nLoaded cluster ipolicy: {policy}\n"


def split_instances(cluster: Cluster) -> str:
    """Return the lines on instances with nodes in two groups, which stay where they are."""
    names = [item.name for item in cluster.instances.values() if is_split(item, cluster.nodes)]
    if not names:
        return ""
    lines = "".join(f"  {name}\n" for name in names)
    head = "Found instances belonging to multiple node groups:\n"
    return f"{head}{lines}These instances will not be moved.\n"


def initial_check(group: GroupState, options: Options) -> str:
    """Return the lines on nodes that fail N+1 or break their policy."""
    bad = [node for node in group.nodes.values() if node.fails_n1 and not node.facts.offline]
    good = [node for node in group.nodes.values() if not node.fails_n1 or node.facts.offline or _has_nan(node)]
    concerned = {number for node in bad for number in (*node.primaries, *node.secondaries)}
    violating = [node for node in good if _broken_policy(node)]
    text = ""
    if options.verbosity > 0:
        text = f"Initial check done: {len(bad)} bad nodes, {len(concerned)} bad instances.\n"
    if options.verbosity > 4:
        text += f"Bad nodes: {_names(bad)}\nN+1 happy nodes: {_names(good)}\n"
        status = (f"({shown_string(node.facts.name)},{_broken_policy(node) or 'Ok ()'})" for node in good)
        text += f"Node policy status: [{','.join(status)}]\n"
    if bad:
        text += "Cluster is not N+1 happy, continuing but no guarantee that the cluster will end N+1 happy.\n"
    if violating:
        text += f"The cluster contains {len(violating)} policy-violating nodes.\nContinuing, "
        text += (
            "ignoring soft errors.\n"
            if options.ignore_soft_errors
            else "but the set of moves might be too restricted; consider using the --ignore-soft-errors option.\n"
        )
    return text


def _names(nodes: Iterable[Node]) -> str:
    return shown_strings(node.facts.name for node in nodes)


def _has_nan(node: Node) -> bool:
    """Return whether a node, such as one without memory, is not equal to itself: htools takes it off no list."""
    ratios = (node.ratio_memory, node.ratio_disk, node.ratio_reserved, node.ratio_cpu)
    with_forthcoming = (node.forth_ratio_memory, node.forth_ratio_disk, node.forth_ratio_cpu)
    return any(ratio != ratio for ratio in (*ratios, *with_forthcoming))  # noqa: PLR0124 (NaN)


def _broken_policy(node: Node) -> str:
    if node.exceeds_spindle_ratio:
        return "Bad FailDisk"
    return "Bad FailCPU" if node.exceeds_vcpu_ratio else ""


def score_lines(heading: str, nodes: Mapping[int, Node]) -> str:
    """Return the score with all its components (`-v -v`)."""
    from gpolicy.htools.tables import score_table  # noqa: PLC0415 - only what is needed

    return score_table(nodes, heading)


def well_balanced(score: float, optimum: float, minimum: float) -> str:
    """Return the lines that say why there is nothing to do."""
    return (
        f"Cluster is already well balanced (initial score {general(score)},\n"
        f"optimum score due to N+1 reservations {general(optimum)},\n"
        f"minimum score {general(minimum)}).\n"
        "Nothing to do, exiting\n"
    )


class MoveLines:
    """The lines of moves, in columns as wide as the longest names of the group."""

    def __init__(self, group: GroupState) -> None:
        self._group = group
        self._node_width = 2 * max((len(node.facts.alias) for node in group.nodes.values()), default=0) + 1
        self._instance_width = max(map(len, group.aliases.values()), default=0)

    def line(self, number: int, done: Balanced) -> str:
        """Return the line of move `number`."""
        alias = self._group.aliases[done.instance.index]
        old, new = self._places(done.move.instance), self._places(done.instance)
        return (
            f"  {number:3d}. {alias:{self._instance_width}} {old:{self._node_width}} => {new:{self._node_width}}"
            f" {fixed(done.score, 8):>12} a={self._what(done)}\n"
        )

    def _places(self, instance: Instance) -> str:
        primary, secondary = self._alias(instance.primary), self._alias(instance.secondary)
        return f"{primary}:{secondary}" if secondary else primary

    def _alias(self, index: int) -> str:
        if index == NO_NODE:
            return ""
        return self._group.nodes[index].facts.alias

    def _what(self, done: Balanced) -> str:
        target = self._alias(done.move.target)
        texts = {
            MoveKind.FAILOVER: "f",
            MoveKind.FAILOVER_TO: f"fa:{target}",
            MoveKind.REPLACE_SECONDARY: f"r:{target}",
            MoveKind.REPLACE_AND_FAILOVER: f"r:{target} f",
            MoveKind.REPLACE_PRIMARY: f"f r:{target} f",
            MoveKind.FAILOVER_AND_REPLACE: f"f r:{target}",
        }
        return texts[done.move.kind]


def outcome(group: GroupState, last: Mapping[int, Node], moves: int, options: Options) -> str:
    """Return the lines on what the moves achieve."""
    if not moves:
        text = "No solution found\n"
    elif options.verbosity > 2:
        text = score_lines("Final coefficients:   overall", last)
    else:
        before, after = cluster_score(group.nodes.values()), cluster_score(last.values())
        text = f"Cluster score improved from {fixed(before, 8)} to {fixed(after, 8)}\n"
    return text + (f"Solution length={moves}\n" if options.verbosity > 0 else "")


def resources(label: str, nodes: Mapping[int, Node]) -> str:
    """Return the line with the free memory and disk of all nodes (`-v -v -v`)."""
    memory = sum(node.unallocated_memory for node in nodes.values())
    disk = sum(node.free_disk for node in nodes.values())
    return f"{label:9} mem={memory} disk={disk}\n"


def instance_table(nodes: Mapping[int, Node], instances: Sequence[Instance]) -> str:
    """Return the table of instances (`--print-instances`). Raises InputError for one that is split."""
    from gpolicy.htools.tables import aligned  # noqa: PLC0415 - only what is needed

    rows = [_HEADINGS, *(_instance_row(nodes, instance) for instance in instances)]
    return "".join(f" {line}\n" for line in aligned(rows, [False] * 5 + [True] * 7))


_HEADINGS = ["F", "Name", "Pri_node", "Sec_node", "Auto_bal", "vcpu", "mem", "dsk", "lCpu", "lMem", "lDsk", "lNet"]


def _instance_row(nodes: Mapping[int, Node], instance: Instance) -> list[str]:
    running = instance.status in {InstanceStatus.RUNNING, InstanceStatus.ERROR_UP}
    return [
        "R" if running else " ",
        instance.name,
        node_name(nodes, instance, instance.primary),
        node_name(nodes, instance, instance.secondary),
        "Y" if instance.auto_balance else "N",
        f"{instance.vcpus:3d}",
        f"{instance.memory:5d}",
        f"{instance.disk // 1024:5d}",
        *(f"{fixed(load, 3):>5}" for load in instance.load),
    ]
