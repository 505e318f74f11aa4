"""Clusters that Ganeti could hold, and policies for them as YAML text.

A policy is generated for a state: it names the state's groups and nodes, and most of its plans are safe. Documents
are written as JSON, which is YAML.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import strategies as st

from gpolicy.cluster.state import ClusterObject, ClusterState, Identity, LiveDisk, LiveGroup, LiveInstance, LiveNode
from gpolicy.ganeti.parameters import canonical, fill, known_in, parameters_of
from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN, SPEC_SIZES, Level, Parameter, Path, Type, Value, Values

VERSION: Final = "3.0"
TEMPLATES: Final = ("plain", "drbd", "file", "rbd", "diskless", "ext")
PLAIN_NAMES: Final = ("default", "gold", "silver", "bronze", "g-1", "g_2.x")
HOSTILE_NAMES: Final = ("default", "-g", "--", "a b", "o'neil", "$(x)", '"', "a/b", "\\", "*", ";", "#")
OWNED: Final = "team:"
ENABLED: Path = ("enabled_disk_templates",)
ALLOWED: Path = ("ipolicy", "disk-templates")
_TAGS: Final = ("rack:a", "rack:b", "team:x", "team:y", "htools:iextags:s:", "htools:iextags:t:", "htools:standby:auto")

tag_sets: Final = st.frozensets(st.sampled_from(_TAGS), max_size=4)
words: Final = st.one_of(
    st.sampled_from(["a,b", "a\\", "\\,", "a=b", "a:b", "x y", "$(x)", "'", '"', "-x", "no_x", "true", "0", "/a"]),
    st.text(alphabet="ab,\\=:/- '\"$", min_size=1, max_size=8).map(lambda text: f"w{text}"),
)


# --- values ----------------------------------------------------------------------------------------------------------


def spec_pairs() -> st.SearchStrategy[list[Value]]:
    """Return spec pairs that hold the standard instance of every generated cluster."""

    def pair(extra: int) -> Value:
        high = {name: value + (4 * extra if name in SPEC_SIZES else extra) for name, value in DEFAULT_MAX.items()}
        return {"min": {**DEFAULT_MIN}, "max": {**high}}

    return st.lists(st.integers(0, 9).map(pair), min_size=1, max_size=3)


def written(parameter: Parameter, level: Level) -> st.SearchStrategy[Any]:
    """Return values as a policy has them, that Ganeti can hold in this parameter at this level."""
    path = parameter.path
    texts = words if level is Level.CLUSTER else words.filter(lambda text: text != "default")
    special: dict[Path, st.SearchStrategy[Any]] = {
        ("mac_prefix",): st.sampled_from(["aa:00:00", "52:54:00"]),
        ("install_image",): words.map("/{}".format),
        ("zeroing_image",): words.map("http://{}".format),
        ("master_netmask",): st.integers(1, 32),
        ("compression_tools",): st.sampled_from([["gzip"], ["gzip", "lzop"], ["zstd", "gzip"]]),
        ("ipolicy", "minmax"): spec_pairs(),
        ("nicparams", "link"): texts,  # bridged interfaces need one
    }
    if path in special:
        return special[path]
    if path[:2] == ("ipolicy", "std"):
        low, high = DEFAULT_MIN[path[2]], DEFAULT_MAX[path[2]]
        return st.integers(low, min(high, low + 200))
    if parameter.form:
        return formed(parameter)
    if parameter.choices:
        one = st.sampled_from(parameter.choices)
        return one if parameter.type is Type.CHOICE else st.lists(one, min_size=1, max_size=3, unique=True)
    by_type: dict[Type, st.SearchStrategy[Any]] = {
        Type.SIZE: st.integers(0, 4096) | st.sampled_from(["0.5G", "130M", "1T", "1.3g"]),
        Type.MIB: st.integers(0, 4096),
        Type.INT: st.integers(parameter.minimum or 0, 10000 if parameter.maximum is None else parameter.maximum),
        Type.FLOAT: st.sampled_from([0.5, 1, 4, 4.0, 1.25, 1e3]),
        Type.BOOL: st.booleans(),
        Type.STRING: texts | st.just("") if parameter.can_be_empty else texts,
        Type.LIST: st.lists(words, max_size=3, unique=True),
        Type.DICT: st.dictionaries(st.sampled_from(["a", "no_b", "-c"]), words | st.none(), max_size=2),
        Type.UID_RANGES: st.lists(st.sampled_from(["5-6", "1-2", "7", "100-200"]), max_size=3, unique=True),
    }
    return by_type[parameter.type]


_PRINTABLE: Final = st.characters(min_codepoint=32, max_codepoint=126)


def formed(parameter: Parameter) -> st.SearchStrategy[str]:
    """Return texts of the form that a parameter must have; no range of CPUs, which could go down."""
    texts = st.from_regex(parameter.form, fullmatch=True, alphabet=_PRINTABLE)
    return texts.filter(lambda text: "-" not in text) if parameter.path[-1] == "cpu_mask" else texts


def read(parameter: Parameter, value: Any) -> Value:
    """Return the stored value of a written one: an oracle of its own, for the values that are generated here."""
    path = parameter.path
    if parameter.type is Type.SIZE:
        factor = {"M": 1, "G": 1024, "T": 1024**2}
        mib = float(value[:-1]) * factor[value[-1].upper()] if isinstance(value, str) else value
        return int(-(-mib // 4) * 4)
    if parameter.type is Type.UID_RANGES:
        ranges = [[int(end) for end in text.split("-")] for text in value]
        return canonical(path, [[item[0], item[-1]] for item in ranges])
    return canonical(path, value)


def as_written(path: Path, value: Value) -> Any:
    """Return a stored value as a policy has it."""
    if path == ("uid_pool",) and isinstance(value, list):
        return [f"{item[0]}-{item[1]}" for item in value if isinstance(item, list)]
    return value


_DEPENDENT: Final = (
    *("security_", "disk_aio", "vnc_x509_verify", "boot_order", "root_path", "spice_", "serial_speed"),
)
"""How hypervisor parameters begin that Ganeti takes with some values of others only."""


def settable(level: Level) -> list[Parameter]:
    """Return the parameters that the generated policies set: not those with rules of their own, or RAPI only."""
    without = {"enabled_disk_templates", "volume_group_name", "drbd_usermode_helper", "data_collector_interval"}
    without |= {"file_storage_dir", "shared_file_storage_dir"}
    hypervisors = {"hvparams": {"kvm"}, "hv_state": {"kvm", "xen-pvm"}}
    return [
        item
        for item in parameters_of(level)
        if known_in(item, VERSION)
        and item.family not in without
        and item.path != ALLOWED
        and not (item.family == "hvparams" and item.path[2].startswith(_DEPENDENT))
        and (item.family not in hypervisors or item.path[1] in hypervisors[item.family])
    ]


_PARAMETERS: Final = {level: settable(level) for level in Level}


def _concrete(path: Path) -> Path:
    return tuple("xenvg" if key == "*" else key for key in path)


@st.composite
def leaves(draw: st.DrawFn, level: Level, *, most: int = 6) -> dict[Path, Any]:
    """Return written values by path."""
    chosen = draw(st.lists(st.sampled_from(_PARAMETERS[level]), unique_by=lambda item: item.path, max_size=most))
    return {_concrete(item.path): draw(written(item, level)) for item in chosen}


# --- states ----------------------------------------------------------------------------------------------------------


def _stored(values: Mapping[Path, Any], level: Level) -> Values:
    by_path = {_concrete(item.path): item for item in _PARAMETERS[level]}
    return {path: read(by_path[path], value) for path, value in values.items()}


def _subset(of: list[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(of), min_size=1, unique=True)


def base_cluster(enabled: list[str]) -> Values:
    """Return own values of a cluster as Ganeti has them after init: each parameter at its default."""
    own: Values = {
        item.path: item.default
        for item in parameters_of(Level.CLUSTER)
        if known_in(item, VERSION) and "*" not in item.path and item.default is not None and item.family != "hv_state"
    }
    own |= {item.path: item.default for item in parameters_of(Level.CLUSTER) if item.path[:2] == ("hv_state", "kvm")}
    own[("master_netdev",)], own[("master_netmask",)] = "eth0", 32
    own[("file_storage_dir",)], own[("shared_file_storage_dir",)] = "/srv/f", ""
    own |= {("ipolicy", "minmax"): [{"min": {**DEFAULT_MIN}, "max": {**DEFAULT_MAX}}]}
    own |= {("ipolicy", "std", name): value for name, value in DEFAULT_MIN.items()}
    own |= {ENABLED: [*enabled], ALLOWED: [*sorted(enabled)]}
    return {path: canonical(path, value) for path, value in own.items()}


@st.composite
def cluster_states(draw: st.DrawFn, names: tuple[str, ...] = PLAIN_NAMES) -> ClusterState:
    """Return a cluster that Ganeti could have: a few groups, nodes, instances and DRBD pairs, tags."""
    enabled = draw(_subset(list(TEMPLATES)))
    own = base_cluster(enabled)
    own |= _stored(draw(leaves(Level.CLUSTER)), Level.CLUSTER)
    own[ALLOWED] = [*draw(_subset(enabled))]
    if not {"plain", "drbd"} & set(enabled):
        own["volume_group_name",] = draw(st.sampled_from(["", "xenvg"]))
    if "drbd" not in enabled:
        own["drbd_usermode_helper",] = draw(st.sampled_from(["", "/bin/true"]))
    groups: dict[str, LiveGroup] = {}
    for name in draw(st.lists(st.sampled_from(names), unique=True, min_size=1, max_size=4)):
        values: Values = {("alloc_policy",): "preferred"}
        values |= _stored(draw(leaves(Level.GROUP)), Level.GROUP)
        if draw(st.booleans()):
            values[ALLOWED] = [*draw(_subset(enabled))]
        groups[name] = LiveGroup(name=name, own=values, effective=fill(values, own, Level.GROUP), tags=draw(tag_sets))
    nodes: dict[str, LiveNode] = {}
    for number in range(draw(st.integers(0, 6))):
        name, group = f"node{number}", draw(st.sampled_from(sorted(groups)))
        values = _stored(draw(leaves(Level.NODE, most=2)), Level.NODE)
        nodes[name] = LiveNode(
            name=name, group=group, own=values, tags=draw(tag_sets), identity=Identity(serial_no=number)
        )
    return ClusterState(
        source="config:generated",
        name="cluster.example.org",
        software_version="3.0.2",
        cluster=ClusterObject(own=own, tags=draw(tag_sets), identity=Identity(serial_no=7)),
        groups=groups,
        nodes=nodes,
        instances=draw(_instances(enabled, nodes)),
    )


@st.composite
def _instances(draw: st.DrawFn, enabled: list[str], nodes: dict[str, LiveNode]) -> dict[str, LiveInstance]:
    found: dict[str, LiveInstance] = {}
    for number in range(draw(st.integers(0, 4)) if nodes else 0):
        node = nodes[draw(st.sampled_from(sorted(nodes)))]
        template = draw(st.sampled_from(enabled))
        others = [other.name for other in nodes.values() if other.group == node.group and other is not node]
        if template == "drbd" and not (others and "plain" in enabled):
            continue  # the volumes below DRBD disks are plain ones
        found[f"inst{number}"] = instance(
            f"inst{number}", node.name, template, (draw(st.sampled_from(others)),) if template == "drbd" else ()
        )
    return found


def instance(name: str, node: str, template: str = "plain", secondaries: tuple[str, ...] = ()) -> LiveInstance:
    """Return an instance with one disk, or none if it is diskless."""
    return LiveInstance(
        name=name,
        primary_node=node,
        secondary_nodes=secondaries,
        disk_template=template,
        disks=() if template == "diskless" else (LiveDisk(size=1024, template=template),),
        minmem=128,
        maxmem=128,
        vcpus=1,
        spindle_use=1,
    )


# --- policies --------------------------------------------------------------------------------------------------------

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class GeneratedPolicy:
    """A policy as documents and as text."""

    documents: list[Document] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The file that holds the policy."""
        return yaml_text(self.documents)

    def of(self, kind: str) -> list[Document]:
        """Return the documents of a kind."""
        return [document for document in self.documents if document["kind"] == kind]


def yaml_text(documents: list[Document]) -> str:
    """Return documents as one YAML file."""
    return "\n---\n".join(json.dumps(document, ensure_ascii=False, indent=1) for document in documents) + "\n"


def document(kind: str, name: str | None, values: Mapping[Path, Any] | None = None, **more: Any) -> Document:
    """Return a document with its values nested by Ganeti's names."""
    made: Document = {"gpolicy": "v1", "kind": kind, **({} if name is None else {"name": name}), **more}
    for path, value in (values or {}).items():
        below = made
        for key in path[:-1]:
            below = below.setdefault(key, {})
        below[path[-1]] = value
    return made


def adopted(state: ClusterState, *, inherit: bool = False) -> GeneratedPolicy:
    """Return the policy that declares all that a cluster has; with `inherit` also what it has not.

    The word `default` is no value of a policy, although it is one of some hypervisor parameters.
    """

    def own(values: Values) -> dict[Path, Any]:
        return {path: as_written(path, value) for path, value in values.items() if value != "default"}

    def absent(level: Level, values: Values) -> dict[Path, Any]:
        free = [item for item in _PARAMETERS[level] if item.family != "alloc_policy"] if inherit else []
        return {path: "inherit" for item in free if (path := _concrete(item.path)) not in values}

    documents = [document("Cluster", state.name, own(state.cluster.own), tags=sorted(state.cluster.tags))]
    for group in state.groups.values():
        members = [node.name for node in state.nodes_of(group.name)]
        values = own(group.own) | absent(Level.GROUP, group.own)
        documents.append(document("NodeGroup", group.name, values, tags=sorted(group.tags), nodes=members))
    for node in state.nodes.values():
        values = own(node.own) | absent(Level.NODE, node.own)
        documents.append(document("NodeSet", node.name, values, tags=sorted(node.tags), nodes=[node.name]))
    return GeneratedPolicy(documents)


@st.composite
def policies(draw: st.DrawFn, state: ClusterState, names: tuple[str, ...] = PLAIN_NAMES) -> GeneratedPolicy:
    """Return a policy for `state`: changes, renames, moves, new and removed groups, templates, tags."""
    documents: list[Document] = []
    enabled = draw(st.none() | _subset(list(TEMPLATES)))
    after = enabled or [str(item) for item in _list(state.cluster.own[ENABLED])]
    documents.append(draw(_cluster_document(state, enabled)))
    homes = draw(_homes(state))
    free = [name for name in names if name not in state.groups]
    for group in state.groups.values():
        members = [name for name, home in homes.items() if home == group.name]
        moved = sorted(name for name in members if state.nodes[name].group != group.name)
        if not members and len(state.groups) > 1 and group.name != min(state.groups) and draw(st.booleans()):
            documents.append(document("NodeGroup", group.name, removed=True))
            continue
        renamed = {"renamed_from": group.name} if free and draw(st.integers(0, 3)) == 0 else {}
        name = free.pop() if renamed else group.name
        values = draw(_group_values(group.own, after, forced=enabled is not None))
        more: dict[str, Any] = {"nodes": moved} if moved else {}
        documents.append(document("NodeGroup", name, values, **renamed, **more, **draw(_tags())))
    if draw(st.booleans()) and free:
        documents.append(document("NodeGroup", free.pop(), draw(_group_values({}, after, forced=False))))
    targets = sorted(state.nodes)
    if targets:
        chosen = draw(st.lists(st.sampled_from(targets), min_size=1, unique=True))
        documents.append(
            document("NodeSet", "some", draw(_own_or_inherit(Level.NODE)), nodes=sorted(chosen), **draw(_tags()))
        )
        documents.append(document("NodeSet", "all", draw(_own_or_inherit(Level.NODE)), nodes=["node*"]))
    if draw(st.booleans()):
        owns = ["iextags", {"prefix": OWNED, "on": ["cluster", "group", "node"]}]
        documents.append(
            document("TagRules", None, owns=owns, exclusion=draw(st.sampled_from([[], ["s"], ["t", "u"]])))
        )
    return GeneratedPolicy(documents)


def _list(value: Value) -> list[Value]:
    return value if isinstance(value, list) else []


@st.composite
def _cluster_document(draw: st.DrawFn, state: ClusterState, enabled: list[str] | None) -> Document:
    values = draw(leaves(Level.CLUSTER))
    if enabled is not None:
        values[ENABLED] = enabled
        values[ALLOWED] = [*draw(_subset(enabled))]
        lvm = bool({"plain", "drbd"} & set(enabled))
        values["volume_group_name",] = "xenvg" if lvm else draw(st.sampled_from(["", "vg2"]))
        values["drbd_usermode_helper",] = "/bin/true" if "drbd" in enabled else draw(st.sampled_from(["", "/bin/x"]))
    return document("Cluster", state.name, values, **draw(_tags()))


@st.composite
def _tags(draw: st.DrawFn) -> dict[str, Any]:
    return {"tags": sorted(draw(tag_sets))} if draw(st.booleans()) else {}


@st.composite
def _own_or_inherit(draw: st.DrawFn, level: Level) -> dict[Path, Any]:
    values = draw(leaves(level, most=4))
    for path in values:
        if path[0] != "alloc_policy" and path != ("ipolicy", "std") and draw(st.integers(0, 3)) == 0:
            values[path] = "inherit"
    return values


@st.composite
def _group_values(draw: st.DrawFn, own: Values, enabled: list[str], *, forced: bool) -> dict[Path, Any]:
    values = draw(_own_or_inherit(Level.GROUP))
    for path in [path for path in own if path not in {ALLOWED, ("alloc_policy",)}]:
        if draw(st.integers(0, 3)) == 0:
            values[path] = "inherit"
    stale = forced and ALLOWED in own and bool(set(map(str, _list(own[ALLOWED]))) - set(enabled))
    if stale or draw(st.booleans()):
        values[ALLOWED] = draw(st.just("inherit") | _subset(enabled))
    return values


@st.composite
def _homes(draw: st.DrawFn, state: ClusterState) -> dict[str, str]:
    """Return the group that each node is to be in; nodes that share an instance go together."""
    homes: dict[str, str] = {}
    for name in state.nodes:
        if name in homes:
            continue
        together = {name}
        while (
            more := {
                end
                for item in state.instances.values()
                if together & (ends := {item.primary_node, *item.secondary_nodes})
                for end in ends
            }
            - together
        ):
            together |= more
        home = draw(st.sampled_from(sorted(state.groups))) if draw(st.booleans()) else state.nodes[name].group
        homes |= dict.fromkeys(together, home)
    return homes
