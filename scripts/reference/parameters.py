"""docs/reference/parameters.md: what Ganeti knows of each parameter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from typing import Any

import yaml

from gpolicy.ganeti.parameters import PARAMETERS
from gpolicy.ganeti.releases import VERSIONS
from gpolicy.ganeti.vocabulary import Level, Parameter
from gpolicy.policy.conformance import schema_of
from gpolicy.reference.blocks import (
    Heading,
    PageBlock,
    PageListing,
    PageTable,
    default_words,
    example_value,
    key_type,
    releases,
)
from gpolicy.reference.keys import ITEM, DocumentKey, keys_of, policy_keys
from scripts.reference.policy import key_tables
from scripts.schemas.parameters import effect_sentence

_PER_HYPERVISOR = "HYPERVISOR"


@cache
def _keys() -> dict[tuple[str, ...], DocumentKey]:
    """Return the keys of parameters by their path."""
    return {key.path: key for kind in ("Cluster", "NodeGroup") for key in policy_keys(kind)}


def parameters_page() -> Iterator[PageBlock]:
    """Yield the page."""
    yield Heading("Parameters of Ganeti", 1)
    yield (
        "For authors of policies: every parameter that a policy can declare, with Ganeti's default, when a change takes"
        " effect, and which releases know it. [The policy language](policy.md) has all other keys, and the types."
    )
    yield from parameter_sections()


def parameter_sections() -> Iterator[PageBlock]:
    """Yield a section for each family of parameters; those of the cluster without a family stand in one."""
    yield (
        f"Known releases are {', '.join(VERSIONS)}; where none is named, all of them have the parameter. Ganeti"
        " also takes numbers outside of a sensible range; `gpolicy check` warns of them (GP152). The word `root` marks"
        " values that root on the nodes runs as a program or opens as a file: who may set them, is root."
    )
    alone = [item for item in PARAMETERS if len(item.path) == 1 and Level.CLUSTER in item.levels]
    yield Heading("Parameters of the cluster")
    yield from _section(alone)
    for family, members in groupby((item for item in PARAMETERS if item not in alone), key=lambda item: item.family):
        yield Heading(family)
        if family != "alloc_policy":
            yield _keys()[family,].text
        yield from _family(family, list(members))


def _family(family: str, members: list[Parameter]) -> Iterator[PageBlock]:
    if family == "hvparams":
        for hypervisor, rows in groupby(members, key=lambda item: item.path[1]):
            yield Heading(f"hvparams.{hypervisor}", 3)
            yield from _section(list(rows))
        return
    if family == "hv_state":  # the same for each hypervisor
        members = [item for item in members if item.path[1] == "kvm"]
    yield from _section(members)
    if family == "ipolicy":
        pair = ("ipolicy", "minmax", ITEM)
        keys = list(keys_of("Cluster", schema_of("Cluster"), expand=False))
        yield from key_tables([key for key in keys if key.path[:3] == pair and len(key.path) == 4])
        yield Heading("spec", 3)
        yield from key_tables(list(keys_of("spec", schema_of("Cluster")["definitions"]["spec"], expand=False)))


def _section(members: list[Parameter]) -> Iterator[PageBlock]:
    """Yield what all parameters of a section share, a table of them, and an example with each."""
    levels = _common(_levels(item) for item in members)
    effect = _common(str(item.takes_effect) for item in members)
    shared = [f"Set on: {levels}."] * bool(levels) + [effect_sentence(members[0])] * bool(effect)
    if shared:
        yield " ".join(shared)
    rows = tuple(
        (
            f"`{_shown(item)}`",
            key_type(_keys()[item.path]) + (f", in {item.unit}" if item.unit not in ("", "MiB", "KiB/s") else ""),
            _default(item),
            "" if levels else _levels(item),
            "" if effect else str(item.takes_effect),
            _meaning(item),
        )
        for item in members
    )
    yield PageTable(
        ("key", "type", "default", "set on", "takes effect", "meaning"), rows, tuple(item.name for item in members)
    )
    yield PageListing(_example(members), "yaml")


def _common(words: Iterable[str]) -> str:
    """Return the word that all share, or nothing."""
    found = set(words)
    return found.pop() if len(found) == 1 else ""


def _levels(parameter: Parameter) -> str:
    return ", ".join(level for level in Level if level in parameter.levels)


def _shown(parameter: Parameter) -> str:
    path = parameter.path
    if path[0] == "hv_state":
        return f"{_PER_HYPERVISOR}.{path[2]}"
    if path[0] == "hvparams":
        return path[2]
    return (".".join(path[1:]) or path[0]).replace("*", "VOLUME_GROUP")


def _meaning(parameter: Parameter) -> str:
    known = f" Ganeti {releases(parameter)}." if parameter.since or parameter.until else ""
    sensible = f" Sensible: {parameter.sensible.words} ({parameter.sensible.why})." if parameter.sensible else ""
    return parameter.description + known + sensible + (" `root`" if parameter.reach else "")


def _default(parameter: Parameter) -> str:
    first, _, newer = default_words(parameter).partition(" (")
    return f"`{first}`{f' ({newer}' if newer else ''}" if first else ""


def _example(members: list[Parameter]) -> str:
    """Return YAML with a value for each parameter."""
    values: dict[str, Any] = {}
    for item in members:
        below = values
        for step in item.path[:-1]:
            below = below.setdefault("xenvg" if step == "*" else step, {})
        below[item.path[-1]] = example_value(_key(item))
    text: str = yaml.dump(values, Dumper=_Dumper, default_flow_style=False, sort_keys=False, width=100)
    return text


def _key(parameter: Parameter) -> DocumentKey:
    return _keys()[parameter.path]


class _Dumper(yaml.SafeDumper):
    """Writes lists and the bounds of pairs on one line, and nothing as a reference to something above."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _flow(dumper: yaml.SafeDumper, data: Any) -> yaml.Node:
    flow = not any(isinstance(item, dict) for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flow)


def _mapping(dumper: yaml.SafeDumper, data: Any) -> yaml.Node:
    return dumper.represent_mapping(
        "tag:yaml.org,2002:map", data.items(), flow_style="memory-size" in data and "cpu-count" in data
    )


_Dumper.add_representer(list, _flow)
_Dumper.add_representer(dict, _mapping)
