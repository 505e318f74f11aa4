"""Cluster states for the laws: own values at every level, within and beyond what is sane, and hostile names."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from gpolicy.cluster.state import ClusterObject, ClusterState, LiveGroup, LiveNode, Unreadable
from gpolicy.ganeti.parameters import canonical, fill, parameters_of
from gpolicy.ganeti.vocabulary import (
    SPEC_PARAMETERS,
    SPEC_SIZES,
    TAG_FAMILIES,
    Level,
    Parameter,
    Path,
    Type,
    Value,
    Values,
)
from gpolicy.plan.diff import TOOL_TAGS

texts: Final = st.one_of(
    st.sampled_from(
        [
            *(
                "",
                "no",
                "NO",
                "y",
                "on",
                "true",
                "null",
                "~",
                "1:30",
                "010",
                "0x1f",
                "1e3",
                ".5",
                "1_000",
                "2024-01-01",
            ),
            *("inherit", "default", "Inherit", "<<", "=", "- a", "? a", "a: b", "a #b", "#a", "&a", "*a", "!a", "%a"),
            *("'", '"', "\\", "a\nb", "\t", " a", "a ", "a:", ":a", "[a", "{a}", "a,b", "|", ">", "@a", "`a`", "---"),
            *("ä", "漢字", "\U0001f40d", "\x7f", "\x85", "\u2028", "\ufeff", "\u200b", "\ud800", "\0", "..", "16G"),
        ]
    ),
    st.text(alphabet="ab.:-#/ '\"{[,&*!|>%@`\n", max_size=12),
    st.text(max_size=12),
)

names: Final = st.one_of(
    st.sampled_from(
        [
            *("default", "Default", "DEFAULT", "a/b", "a-b", "a b", "..", ".hidden", "-rf", "con", "x.yaml", "x", "ü"),
            *("g" * 255, "g" * 256, "gold\nsilver", "no", "010", "inherit", "*", "n[1]", "", "漢字", "\ud800", "~"),
        ]
    ),
    texts,
)
node_names: Final = st.from_regex(r"node[0-9]{1,2}(\.example\.org)?", fullmatch=True) | names

_ENDS: Final = ("", "a", "a:", "a::", "rack", ":", "a::b")
tags: Final = st.one_of(
    st.sampled_from(
        [
            *(
                "rack:a",
                "rack:b",
                "power:1",
                "no",
                "1:30",
                "a:",
                ":",
                "inherit",
                "\n",
                "ä",
                "a b",
                "",
                "x" * 128,
                "x" * 129,
            ),
            *(
                f"{prefix}{end}"
                for prefix in TAG_FAMILIES.values()
                for end in ("", "a", "a:", "a::", "rack", ":", "a::b")
            ),
            *(f"{tool}x" for tool in TOOL_TAGS),
            *("htools:nlocation:" + "n" * 111, "htools:migration:rack", "htools:allowmigration:a:b::c:d", "rack:ä"),
        ]
    ),
    st.text(alphabet="ab:./@", min_size=1, max_size=9),
)

_scalars: Final[st.SearchStrategy[Any]] = st.booleans() | st.integers() | st.floats() | texts
_wild: Final[st.SearchStrategy[Any]] = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2), max_leaves=4
)
_amounts: Final = st.sampled_from([0, 1, 2, 4, 8, 130, 1024, 1048576, 2**40, 2**53, 2**53 + 4, -4])


def _spec() -> st.SearchStrategy[Any]:
    sizes = st.sampled_from([0, 4, 128, 1024, 16384, 1048576]) | _amounts
    return st.fixed_dictionaries({name: sizes if name in SPEC_SIZES else _amounts for name in SPEC_PARAMETERS})


def _fitting(parameter: Parameter) -> st.SearchStrategy[Any]:
    words = st.sampled_from(parameter.choices) if parameter.choices else texts
    least = parameter.minimum or 0
    return {
        Type.SIZE: st.integers(0, 2**41).map(lambda size: size * 4) | st.sampled_from([0, 1024, 2**20, 130]),
        Type.MIB: st.integers(0, 2**41) | st.sampled_from([0, 1024, 130]),
        Type.INT: st.integers(least, 2**31) | st.integers(0, 100).map(lambda rate: rate * 1024),
        Type.FLOAT: st.floats(1e-9, 1e9) | st.integers(-1, 100) | st.sampled_from([0.0, 5e-324, 1e22, 1.5]),
        Type.BOOL: st.booleans(),
        Type.STRING: words,
        Type.CHOICE: words,
        Type.LIST: st.lists(words, max_size=4),
        Type.SET: st.lists(words, max_size=4),
        Type.DICT: st.dictionaries(texts, texts | st.booleans() | st.none(), max_size=3),
        Type.MINMAX: st.lists(st.fixed_dictionaries({"min": _spec(), "max": _spec()}), max_size=3),
        Type.UID_RANGES: st.lists(st.lists(st.integers(0, 2**33), min_size=2, max_size=2), max_size=3),
    }[parameter.type]


_UNKNOWN: Final[list[Path]] = [
    ("ipolicy", "memory-ratio"),
    ("diskparams", "rbd", "shiny"),
    ("ndparams", "a:\nb"),
    ("disk_state", "lvm", "xenvg", "disk_total"),
    ("new_parameter",),
]


@st.composite
def own_values(draw: st.DrawFn, level: Level) -> Values:
    """Return own values as a source might show them: mostly of the right type, some of any, some unknown."""
    values: dict[Path, Value] = {}
    chosen = draw(st.lists(st.sampled_from(parameters_of(level)), unique_by=lambda item: item.path, max_size=8))
    for parameter in chosen:
        path = tuple(draw(names) if key == "*" else key for key in parameter.path)
        wild = draw(st.integers(0, 7)) == 0
        values[path] = canonical(path, draw(_wild if wild else _fitting(parameter)))
    for path in draw(st.lists(st.sampled_from(_UNKNOWN), unique=True, max_size=1)):
        values[path] = draw(_wild)
    if level is not Level.CLUSTER and draw(st.integers(0, 5)) == 0:
        values["ipolicy", "std", "memory-size"] = 128  # RAPI lets a group have what it cannot have
    return values


_GAPS: Final = [
    Unreadable(level=level, prefix=(family,)) for level in Level for family in ("ipolicy", "hv_state", "ndparams")
]


@st.composite
def cluster_states(draw: st.DrawFn) -> ClusterState:
    """Return a state with a few groups and nodes."""
    own = draw(own_values(Level.CLUSTER))
    groups: dict[str, LiveGroup] = {}
    for name in draw(st.lists(names, unique=True, max_size=4)):
        values = draw(own_values(Level.GROUP))
        effective = fill(values, own, Level.GROUP)
        groups[name] = LiveGroup(name=name, own=values, effective=effective, tags=draw(_tag_sets))
    nodes: dict[str, LiveNode] = {}
    if groups:
        shared = draw(st.lists(own_values(Level.NODE), min_size=1, max_size=2))
        for name in draw(st.lists(node_names, unique=True, max_size=6)):
            group = draw(st.sampled_from(sorted(groups)))
            values = draw(st.sampled_from([{}, *shared]))
            nodes[name] = LiveNode(name=name, group=group, own=values, tags=draw(_tag_sets))
    return ClusterState(
        source="config:generated",
        name=draw(names),
        software_version=draw(st.sampled_from([None, "2.15.2", "3.0", "3.0.2", "3.1.0~rc1", "2.9", "4.0.1", "new"])),
        cluster=ClusterObject(own=own, tags=draw(_tag_sets)),
        groups=groups,
        nodes=nodes,
        instances={},
        unreadable=tuple(draw(st.lists(st.sampled_from(_GAPS), unique=True, max_size=2))),
    )


_tag_sets: Final[st.SearchStrategy[frozenset[str]]] = st.frozensets(tags, max_size=5)
