"""Assignments for the laws: over the whole table of parameters, with hostile text."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from gpolicy.ganeti.expressible import RESET, Assignments, Reset
from gpolicy.ganeti.parameters import PARAMETERS, known_in, parameters_of
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, SPEC_SIZES, Level, Parameter, Path, Type, Value
from tests.ganeti.real_ganeti import RELEASE
from tests.strategies import formed

VERSION: Final = RELEASE

hostile_texts: Final = st.one_of(
    st.sampled_from(
        [
            *("default", "DEFAULT", "None", "none", "true", "no", "0", "no_pool", "-pool", "-", "--", "--force", "-f"),
            *(
                "a,b",
                "a\\,b",
                "a\\",
                "\\",
                "\\\\",
                "a\\\\,",
                ",",
                ",,",
                "a=b",
                "=",
                "a:b",
                ":",
                "a/b",
                "//",
                "a b",
                " ",
            ),
            *(
                "'",
                '"',
                "$(reboot)",
                "`reboot`",
                "${IFS}",
                "*",
                "~",
                "#",
                "!",
                "%",
                "&",
                ";",
                "|",
                ">",
            ),
        ]
    ),
    st.text(alphabet=",\\=:/-_ '\"$nodefault0", max_size=12),
    st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=12),
)
"""Text that means something to some parser on the way, and is printable ASCII, which is all that Ganeti survives."""

broken_texts: Final = st.one_of(
    hostile_texts, st.sampled_from(["", "\n", "a\nb", "\0", "\x1b[0m", "\x7f", "\ud800", "é", "漢字", "\U0001f40d"])
)

object_names: Final = st.one_of(
    st.sampled_from(["default", "g1", "-g", "--", "--force", "a b", "a/b", "..", "a?b", "a%20b", "$(x)", "'"]),
    hostile_texts.filter(bool),
)

tags: Final = st.text(alphabet="abcXYZ019_.+*/:@-", min_size=1, max_size=128)


WIDE_PAIR: Final[dict[str, Value]] = {
    "min": dict.fromkeys(SPEC_PARAMETERS, 0),
    "max": dict.fromkeys(SPEC_PARAMETERS, 2**45),
}
"""A pair that holds every std that these strategies make."""


def _pairs(*, sane: bool) -> st.SearchStrategy[Any]:
    def spec(low: int, high: int) -> st.SearchStrategy[Any]:
        return st.fixed_dictionaries(
            {
                name: st.integers(low, high).map(lambda size: size * 4)
                if name in SPEC_SIZES
                else st.integers(low, high)
                for name in SPEC_PARAMETERS
            }
        )

    pair = st.fixed_dictionaries({"min": spec(0, 100), "max": spec(100, 2**30)})
    if not sane:
        return st.lists(pair, min_size=1, max_size=4)
    return st.lists(pair, max_size=3).map(lambda pairs: [WIDE_PAIR, *pairs])


_UID_RANGES: Final = st.lists(
    st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)).map(lambda ends: [min(ends), max(ends)]), max_size=4
)
_SPECIAL: Final[dict[Path, st.SearchStrategy[Any]]] = {
    ("mac_prefix",): st.from_regex(r"[0-9a-f]{2}:[0-9a-f]{2}:[0-9a-f]{2}", fullmatch=True),
    ("install_image",): hostile_texts.map("/{}".format),
    ("zeroing_image",): hostile_texts.map("http://{}".format),
    ("master_netmask",): st.integers(1, 32),
    ("ipolicy", "minmax"): _pairs(sane=False),
    ("compression_tools",): st.lists(st.sampled_from(["gzip-fast", "lzop", "zstd"]), unique=True).map(
        lambda tools: sorted(["gzip", *tools])
    ),
    ("uid_pool",): _UID_RANGES.map(sorted),
}
_SANE: Final[dict[Path, st.SearchStrategy[Any]]] = {
    ("ipolicy", "minmax"): _pairs(sane=True),
    ("volume_group_name",): hostile_texts.filter(bool),
    ("drbd_usermode_helper",): hostile_texts.filter(bool),
    ("nicparams", "link"): hostile_texts.filter(bool),
    ("nicparams", "mode"): st.sampled_from(["bridged", "routed"]),
    ("nicparams", "vlan"): st.just(""),
}


def value_for(parameter: Parameter, level: Level, *, sane: bool) -> st.SearchStrategy[Any]:
    """Return values that Ganeti can hold; `sane` ones also pass the checks of the master (on an idle cluster)."""
    if sane and parameter.path in _SANE:
        return _SANE[parameter.path]
    if parameter.path in _SPECIAL:
        return _SPECIAL[parameter.path]
    if parameter.choices:
        return _choices(parameter, sane=sane)
    if parameter.numbers:
        return st.sampled_from(parameter.numbers)
    if parameter.form:
        return formed(parameter)
    return _of_type(parameter, level)


def _choices(parameter: Parameter, *, sane: bool) -> st.SearchStrategy[Any]:
    choice = st.sampled_from(parameter.choices)
    match parameter.type:
        case Type.CHOICE:
            return choice
        case Type.SET:
            return st.lists(choice, min_size=1, unique=True).map(sorted)
    return st.permutations(parameter.choices) if sane else st.lists(choice, min_size=1)


def _of_type(parameter: Parameter, level: Level) -> st.SearchStrategy[Any]:
    least = parameter.minimum if parameter.minimum is not None else -(2**31)
    most = 2**31 if parameter.maximum is None else parameter.maximum
    match parameter.type:
        case Type.STRING:
            wanted = hostile_texts.filter(lambda text: level is Level.CLUSTER or text != "default")
            return wanted | st.just("") if parameter.can_be_empty else wanted.filter(bool)
        case Type.DICT:
            names = hostile_texts.filter(lambda text: bool(text) and "=" not in text)
            return st.dictionaries(names, hostile_texts | st.none(), max_size=4)
    return {
        Type.SIZE: st.integers(0, (parameter.maximum or 2**42) // 4).map(lambda size: size * 4),
        Type.INT: st.integers(least, most),
        Type.MIB: st.integers(least, most),
        Type.FLOAT: st.floats(allow_nan=False, allow_infinity=False).filter(bool),
        Type.BOOL: st.booleans(),
        Type.LIST: st.lists(hostile_texts.filter(bool), max_size=4),
    }[parameter.type]


def _resettable(parameter: Parameter, level: Level) -> bool:
    if level is Level.CLUSTER:
        return parameter.family in {"hv_state", "disk_state"}
    return parameter.path != ("alloc_policy",) and parameter.path[-1] != "access"


VOLUME_GROUPS: Final = st.sampled_from(["xenvg", "vg-2", "-vg", "no_vg", "default", "a,b", "a\\", "a=b", "v g"])


@st.composite
def assignments(
    draw: st.DrawFn,
    level: Level,
    *,
    resets: bool = True,
    sane: bool = False,
    least: int = 1,
) -> Assignments:
    """Return assignments that Ganeti can express at `level`, by both routes."""
    one_route = {"compression_tools", "data_collector_interval"}
    known = [item for item in parameters_of(level) if known_in(item, VERSION) and item.family not in one_route]
    chosen = draw(st.lists(st.sampled_from(known), unique_by=lambda item: item.path, min_size=least, max_size=12))
    values: dict[Path, Value | Reset] = {}
    for parameter in chosen:
        path = tuple(draw(VOLUME_GROUPS) if key == "*" else key for key in parameter.path)
        if resets and _resettable(parameter, level) and draw(st.integers(0, 3)) == 0:
            values[path] = RESET
        else:
            values[path] = draw(value_for(parameter, level, sane=sane))
    return values


_scalars: Final = st.none() | st.booleans() | st.integers() | st.floats() | broken_texts
wild_values: Final[st.SearchStrategy[Any]] = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(broken_texts, inner, max_size=3),
    max_leaves=5,
)
"""Whatever JSON and Python can put there, fit or not."""

_NEAR: Final[dict[Type, st.SearchStrategy[Any]]] = {
    Type.STRING: st.sampled_from(["default", ""]) | broken_texts,
    Type.CHOICE: broken_texts,
    Type.INT: st.integers() | st.integers(-2, 2),
    Type.MIB: st.integers() | st.integers(-2, 2),
    Type.SIZE: st.integers(-5, 9) | st.integers(),
    Type.FLOAT: st.floats() | st.sampled_from([0, 0.0, -0.0, 1, 5e-324]),
    Type.LIST: st.lists(broken_texts | st.sampled_from(["plain", "kvm"]), max_size=3),
    Type.SET: st.lists(broken_texts | st.sampled_from(["plain", "drbd", "gzip"]), max_size=3),
    Type.DICT: st.dictionaries(broken_texts, broken_texts | st.booleans() | st.none(), max_size=3),
    Type.UID_RANGES: st.lists(st.lists(st.integers(-1, 2**33), min_size=1, max_size=3), max_size=3),
}


@st.composite
def wild_assignments(draw: st.DrawFn, level: Level) -> Assignments:
    """Return assignments of any value, most of the right type, to any parameter, most of this level."""
    families: dict[str, list[Parameter]] = {}
    for parameter in parameters_of(level):
        families.setdefault(parameter.family, []).append(parameter)
    # By family first: most parameters are of hypervisors and their state, where little can go wrong.
    mine = st.sampled_from(sorted(families)).flatmap(lambda family: st.sampled_from(families[family]))
    every = st.sampled_from(PARAMETERS)
    values: dict[Path, Value | Reset] = {}
    for _ in range(draw(st.integers(1, 3))):
        parameter = draw(every if draw(st.integers(0, 9)) == 0 else mine)
        path = tuple(draw(VOLUME_GROUPS | broken_texts) if key == "*" else key for key in parameter.path)
        near = _NEAR.get(parameter.type, st.booleans())
        fit = (
            st.just(RESET) if parameter.family == "data_collector_interval" else value_for(parameter, level, sane=False)
        )
        values[path] = draw(st.one_of(fit, near, near, st.just(RESET), wild_values))
    return values
