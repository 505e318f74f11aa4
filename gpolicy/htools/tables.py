"""Tables of nodes, score components, candidates and placements on stderr (`-p`, `-v`; htools, Node and Cluster)."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from gpolicy.allocator.cluster_data import Instance, Node
from gpolicy.allocator.cluster_score import COMPONENTS, component_values, statistics, total_score
from gpolicy.allocator.ghc_numbers import fixed, shown_float, shown_ints, shown_peers
from gpolicy.allocator.placement import Candidates, SingleCandidates
from gpolicy.htools.backends import node_name

DEFAULT_FIELDS = (
    *("status", "name", "tmem", "nmem", "imem", "xmem", "fmem", "umem", "rmem", "tdsk", "fdsk", "pcpu", "vcpu", "pcnt"),
    *("scnt", "pfmem", "pfdsk", "rcpu", "cload", "mload", "dload", "nload"),
)

Field = tuple[str, bool, Callable[[Node], str]]
"""Heading, whether the column holds numbers (aligned right), and the text of a node."""


def _tags_cell(node: Node) -> str:
    return ",".join(f"{tag}={count}" for tag, count in sorted(node.exclusion_tags.items()))


FIELDS: Mapping[str, Field] = {
    "idx": ("Index", True, lambda node: str(node.index)),
    "name": ("Name", False, lambda node: node.facts.alias),
    "fqdn": ("Name", False, lambda node: node.facts.name),
    "status": ("F", False, lambda node: "-" if node.facts.offline else "*" if node.fails_n1 else " "),
    "tmem": ("t_mem", True, lambda node: fixed(node.facts.total_memory, 0)),
    "nmem": ("n_mem", True, lambda node: str(node.facts.node_memory)),
    "xmem": ("x_mem", True, lambda node: str(node.facts.unaccounted_memory)),
    "fmem": ("f_mem", True, lambda node: str(node.facts.free_memory)),
    "umem": ("u_mem", True, lambda node: str(node.unallocated_memory)),
    "imem": ("i_mem", True, lambda node: str(node.instance_memory)),
    "rmem": ("r_mem", True, lambda node: str(node.reserved_memory)),
    "amem": ("a_mem", True, lambda node: str(node.available_memory)),
    "tdsk": ("t_dsk", True, lambda node: fixed(node.facts.total_disk / 1024, 0)),
    "fdsk": ("f_dsk", True, lambda node: str(node.free_disk // 1024)),
    **dict.fromkeys(("tcpu", "pcpu"), ("pcpu", True, lambda node: fixed(node.facts.total_cpus, 0))),
    **dict.fromkeys(("ucpu", "vcpu"), ("vcpu", True, lambda node: str(node.used_cpus))),
    "pcnt": ("pcnt", True, lambda node: str(len(node.primaries))),
    "scnt": ("scnt", True, lambda node: str(len(node.secondaries))),
    "plist": ("primaries", True, lambda node: shown_ints(node.primaries)),
    "slist": ("secondaries", True, lambda node: shown_ints(node.secondaries)),
    "pfmem": ("p_fmem", True, lambda node: fixed(node.ratio_memory, 4)),
    "pfdsk": ("p_fdsk", True, lambda node: fixed(node.ratio_disk, 4)),
    "rcpu": ("r_cpu", True, lambda node: fixed(node.ratio_cpu, 2)),
    "cload": ("lCpu", True, lambda node: fixed(node.load[0], 3)),
    "mload": ("lMem", True, lambda node: fixed(node.load[1], 3)),
    "dload": ("lDsk", True, lambda node: fixed(node.load[2], 3)),
    "nload": ("lNet", True, lambda node: fixed(node.load[3], 3)),
    "ptags": ("PrimaryTags", False, _tags_cell),
    "peermap": ("PeerMap", False, lambda node: shown_peers(node.peers)),
    "spindle_count": ("NodeSpindles", True, lambda node: str(node.facts.spindles)),
    "hi_spindles": ("MaxSpindles", True, lambda node: shown_float(node.facts.high_spindles)),
    "inst_spindles": ("InstSpindles", True, lambda node: shown_float(node.instance_spindles)),
}
"""The columns of the node table under their names in `-p`."""

_UNKNOWN: Field = ("<unknown field>", False, lambda _node: "<unknown field>")


def aligned(rows: Iterable[Sequence[str]], numeric: Sequence[bool]) -> list[str]:
    """Return lines of padded columns, joined by a blank."""
    table = list(rows)
    widths = [max((len(row[place]) for row in table), default=0) for place in range(len(numeric))]
    forms = [f"{'>' if right else '<'}{width}" for width, right in zip(widths, numeric, strict=True)]
    return [" ".join(map(format, row, forms)) for row in table]


def node_table(nodes: Mapping[int, Node], fields: Sequence[str]) -> str:
    """Return the table of nodes; without `fields` the default columns, with a leading `+` more columns."""
    names = fields or DEFAULT_FIELDS
    if names[0].startswith("+"):
        names = [*DEFAULT_FIELDS, names[0][1:], *names[1:]]
    columns = [FIELDS.get(name, _UNKNOWN) for name in names]
    rows = [[heading for heading, _, _ in columns]]
    rows += [[text(node) for _, _, text in columns] for node in nodes.values()]
    return "".join(f" {line}\n" for line in aligned(rows, [right for _, right, _ in columns]))


def score_table(nodes: Mapping[int, Node], heading: str = "Initial coefficients: overall") -> str:
    """Return the score and its components."""
    stats = statistics(nodes.values())
    values = zip(COMPONENTS, component_values(stats), strict=False)
    rows = [[component.name, fixed(value, 8), f"x{fixed(component.weight, 2)}"] for component, value in values]
    lines = aligned([["Field", "Value", "Weight"], *rows], [False, True, True])
    return f"{heading} {fixed(total_score(stats), 8)}\n" + "".join(f"   {line}\n" for line in lines)


def allocation_map(what: str, placed: Sequence[Instance], nodes: Mapping[int, Node]) -> str:
    """Return the nodes of each placed instance, oldest first."""
    exclusive = any(node.facts.exclusive for node in nodes.values())
    rows = []
    for instance in placed:
        names = (node_name(nodes, instance, index) for index in (instance.primary, instance.secondary))
        total = instance.total_spindles if exclusive else None
        numbers = (instance.memory, instance.disk, instance.vcpus, "" if total is None else total)
        rows.append([instance.name, *names, *map(str, numbers)])
    return f"{what} map\n" + "".join(f" {line}\n" for line in aligned(rows, [False] * 3 + [True] * 4))


def candidates_text(candidates: Candidates) -> str:
    """Return the nodes, or pairs of nodes, that may take an instance."""
    if isinstance(candidates, SingleCandidates):
        return f"Allocatable nodes: Left {shown_ints(candidates.nodes)}\n"
    pairs = ",".join(f"({primary},{shown_ints(others)})" for primary, others in candidates.pairs)
    return f"Allocatable nodes: Right [{pairs}]\n"
