"""The documents of a new policy: values by family, with the comments that help a reader, its first guards, and the
files of a policy to begin with: small, correct, and explained by comments.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os.path import relpath
from typing import Final

from gpolicy.data import data_directory, read_data
from gpolicy.errors import RequestError
from gpolicy.ganeti.parameters import FAMILIES, canonical, default_in, parameter_at, unflatten
from gpolicy.ganeti.releases import DEFAULT_VERSION
from gpolicy.ganeti.vocabulary import Path, Value, Values
from gpolicy.opening import real_path, tree_around
from gpolicy.policy.conformance import whole_schema
from gpolicy.writing import yaml_text
from gpolicy.writing.yaml_text import YamlNode

Comment = Callable[[Path, YamlNode], str]
"""Returns the comment behind a value; empty for none."""

SCHEMA_FILE: Final = ".gpolicy/policy.json"
"""The path of the schema for editors, from the top of a repository or a policy. Hidden: it is no part of the policy."""

_MODELINE: Final = re.compile(r"(?m)^(# (?:yaml-language-server: )?\$schema[=:] ?)[./]*\.gpolicy/policy\.json\n")

_FLOW: Final = frozenset({"hv_state", "disk_state", "enabled_data_collectors", "data_collector_interval"})
_LONGEST_ASIDE: Final = 50


def modelines(schema: str) -> list[str]:
    """Return the lines with the schema for editors: YAML servers read the first, JetBrains the second."""
    return [f"# yaml-language-server: $schema={schema}", f"# $schema: {schema}"]


def head(kind: str, **keys: YamlNode) -> list[str]:
    """Return the first lines of a document."""
    lines = ["gpolicy: v1", f"kind: {kind}"]
    for key, value in keys.items():
        lines += yaml_text.entry(key, value, as_flow=True)
    return lines


def sections(
    values: Mapping[Path, YamlNode], comment: Comment, *, titles: bool, nodes: list[YamlNode] | None = None
) -> list[str]:
    """Return the values by family, separated by empty lines and, with `titles`, each family under a comment.

    `nodes` are the members of a group; they go where `gpolicy fmt` would put them.
    """
    lines: list[str] = []
    known_sections = read_data("sections.toml")["section"]
    known = {family for section in known_sections for family in section["families"]}
    others = tuple(dict.fromkeys(path[0] for path in values if path[0] not in known))
    for section in (*known_sections, {"families": others, "title": "The cluster itself."}):
        families, title = section["families"], section["title"]
        part = [line for family in families for line in _family(family, values, comment)]
        part += yaml_text.entry("nodes", nodes) if families == ["nodes"] and nodes is not None else []
        if part:
            lines += ["", *(yaml_text.comment_lines(title) if title and titles else ()), *part]
    return lines


def _family(family: str, values: Mapping[Path, YamlNode], comment: Comment) -> list[str]:
    own = {path: value for path, value in values.items() if path[0] == family}
    if own and family not in FAMILIES:
        return yaml_text.entry(family, own[family,], comment=comment((family,), own[family,]), as_flow=True)
    first = list(yaml_text.BELOW.get(family, ()))
    ordered = sorted(own, key=lambda path: first.index(path[1]) if path[1] in first else len(first))
    return _mapping((), unflatten({path: own[path] for path in ordered}), 0, comment)


def _mapping(path: Path, tree: Mapping[str, YamlNode], indent: int, comment: Comment) -> list[str]:
    lines: list[str] = []
    for key, node in tree.items():
        here = (*path, key)
        if here == ("ipolicy", "minmax") and isinstance(node, list):
            lines.append(f"{' ' * indent}minmax:  # a size may have a `name:` for guards, tests and reports")
            lines += [line for pair in node for line in yaml_text.block_item(pair, indent=indent + 2)]
            continue
        if parameter_at(here) is not None or not isinstance(node, dict):
            lines += yaml_text.entry(key, node, indent=indent, comment=comment(here, node), as_flow=True)
            continue
        is_short = here[0] in _FLOW and not any(isinstance(below, dict) for below in node.values())
        is_short = is_short or here == ("ipolicy", "std")
        one_line = yaml_text.entry(key, node, indent=indent, as_flow=True) if is_short else []
        whole = [f"{' ' * indent}{yaml_text.scalar(key)}:", *_mapping(here, node, indent + 2, comment)]
        lines += one_line if len(one_line) == 1 else whole
    return lines


def compared_with(reference: Values | None, name: str, same: str = "", *, version: str = DEFAULT_VERSION) -> Comment:
    """Return comments that name the value of `reference` (None: the default) if it differs, or else say `same`."""

    def comment(path: Path, node: YamlNode) -> str:
        parameter = parameter_at(path)
        other: Value = None
        if parameter is not None:
            other = default_in(parameter, version) if reference is None else reference.get(path)
        if parameter is None or other is None:
            return ""
        written = yaml_text.written_value(parameter, canonical(path, other))
        if written == node:
            return same
        shown = "" if isinstance(written, list | dict) else yaml_text.scalar(written)
        return f"{name}: {shown}" if shown and len(shown) <= _LONGEST_ASIDE else ""

    return comment


def schema_text() -> str:
    """Return the schema for editors."""
    return json.dumps(whole_schema(), indent=1) + "\n"


def schema_for(directory: pathlib.Path) -> pathlib.Path:
    """Return the schema for editors of a policy: the nearest one, up to the top of its repository.

    If there is none, return where it belongs: at the top, and without a repository in the policy's directory.
    """
    here = real_path(directory)
    top = tree_around(here) or here
    above = (each / SCHEMA_FILE for each in (here, *here.parents) if each.is_relative_to(top))
    return next((schema for schema in above if schema.is_file()), top / SCHEMA_FILE)


def led_to(schema: pathlib.Path | None, text: str, file: pathlib.Path) -> str:
    """Return the text of a file whose lines for editors lead to a schema, without these lines if there is none."""
    path = "" if schema is None else pathlib.Path(relpath(schema, real_path(file.parent))).as_posix()
    return _MODELINE.sub(lambda line: f"{line[1]}{path}\n" if path else "", text)


def file_text(lines: Iterable[str]) -> str:
    """Return the content of a file."""
    return "\n".join(lines) + "\n"


GUARDS_FILE: Final = "guards.yaml"


@dataclass(frozen=True, slots=True)
class FirstGuard:
    """One guard of a new policy: `measure` is its key with the limit, `comment` what it demands, in words."""

    name: str
    measure: tuple[str, YamlNode]
    comment: str
    group: str | None = None


FIRST_GUARDS: Final = (
    FirstGuard("nothing-newly-violates", ("newly_violating", 0), "No instance may begin to violate the policy."),
    FirstGuard("keep-capacity", ("capacity_loss", {"at_most": "10%"}), "A change may cost a tenth of what fits."),
    FirstGuard("survive-one-node", ("node_failures", 1), "Any one node of a group may fail afterwards."),
)
_ABOUT: Final = (
    "What a change of this policy may cost: a plan that fails a guard is shown, and not applied. These guards are yours"
    " to relax or to remove. `gpolicy explain Guards` lists what a guard can limit."
)


def guards_document(guards: Sequence[FirstGuard], left_out: Iterable[str] = ()) -> str:
    """Return the document of `guards`, with why others are `left_out`; without guards it holds comments only."""
    lines = [*modelines(SCHEMA_FILE), *yaml_text.comment_lines(_ABOUT)]
    reasons = [line for text in left_out for line in yaml_text.comment_lines(f"- {text}", hanging="  ")]
    lines += ["# Left out, since the cluster does not pass it as it is, or was not asked:", *reasons] if reasons else []
    lines += [*head("Guards"), "guards:"] if guards else []
    for number, guard in enumerate(guards):
        if number == 0 or guards[number - 1].comment != guard.comment:
            lines += yaml_text.comment_lines(guard.comment, indent=2)
        group: dict[str, YamlNode] = {} if guard.group is None else {"group": guard.group}
        lines.append(f"  - {yaml_text.flow({'name': guard.name, **group, guard.measure[0]: guard.measure[1]})}")
    return file_text(lines)


def starter_files(name: str) -> dict[str, str]:
    """Return the policy of a cluster called `name`: text by relative path. Raise RequestError for an invalid name."""
    if reason := yaml_text.name_complaint(name, pattern=False):
        raise RequestError(f"{name!r} cannot be the name of a cluster: {reason}")
    templates = data_directory("templates") / "policy"
    cluster, group = ((templates / file).read_text(encoding="utf-8") for file in ("cluster.yaml", "group.yaml"))
    cluster = cluster.replace("name: NAME\n", f"name: {yaml_text.scalar(name)}\n")
    return {
        "cluster.yaml": "\n".join([*modelines(SCHEMA_FILE), cluster]),
        "groups/default.yaml": "\n".join([*modelines(f"../{SCHEMA_FILE}"), group]),
        GUARDS_FILE: guards_document(FIRST_GUARDS),
        SCHEMA_FILE: schema_text(),
    }
