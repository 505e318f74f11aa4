"""docs/reference/policy.md: the kinds of documents with their keys, and gpolicy.toml."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.ganeti.parameters import FAMILIES
from gpolicy.ganeti.vocabulary import CPUS_PER_VCPU, FORMS, PATH
from gpolicy.policy.conformance import example_document, schema_of
from gpolicy.policy.kinds import KINDS
from gpolicy.reference.blocks import (
    WORD_LISTS,
    Heading,
    Named,
    PageBlock,
    PageListing,
    PageTable,
    example_value,
    flow,
    kind_summary,
    type_words,
)
from gpolicy.reference.keys import NAME, SETTINGS, DocumentKey, keys_of, policy_keys, settings_keys
from scripts.reference.markdown import Link, anchor

_OWN_SECTION = 3
"""So many keys below a key get a table of their own."""

_MOST_ALIKE = 12
"""Rows that only their key tells apart, and that all are shown."""

PARAMETER_FAMILIES = FAMILIES | {"alloc_policy"}
"""Parameters with a section of their own."""

_TYPES = (
    ("size", "`4G`, `512`, `1.5T`", "MiB as a number, or a number with M, G or T (powers of 1024)."),
    ("rate", "`60M`, `61440`", "KiB/s as a number, or a number with K, M or G."),
    ("percentage", "`5%`", "A number and a percent sign, as text."),
    ("day", "`2027-12-31`", "Year, month and day."),
    ("name", "`gold`", "Text of at most 255 characters."),
    ("tag", "`rack:r1`", "At most 128 letters, digits and . _ + * / : @ -"),
    ("range of user IDs", '`"1000-1010"`, `2000`', "First and last ID as text, or one ID."),
    ("path", "`/boot/vmlinuz`", f"{FORMS[PATH][0].upper()}{FORMS[PATH][1:].partition(' (')[0]}."),
    ("CPU mask", "`0-3,8`", f"{FORMS[CPUS_PER_VCPU][0].upper()}{FORMS[CPUS_PER_VCPU][1:]}."),
    *(
        (name, f"`{words[0]}`", f"One of {', '.join(f'`{word}`' for word in words)}.")
        for words, name in WORD_LISTS.items()
    ),
)
"""The types that have a name: examples, and how a value is written."""

_HEAD_KEYS = ("gpolicy", "kind", "description")


def policy_page() -> Iterator[PageBlock]:
    """Yield the page."""
    yield Heading("The policy language", 1)
    yield (
        "For authors of policies: every kind of document and every key. [Parameters of Ganeti](parameters.md) has the"
        " keys that Ganeti itself knows. `gpolicy explain KEY` shows the same on the terminal, and editors"
        " complete keys by the schemas ([editors](../guides/editors.md))."
    )
    yield from language()
    for kind in KINDS:
        yield Heading(kind)
        yield from kind_section(kind)
    yield Heading(SETTINGS)
    yield from settings_section()


def language() -> Iterator[PageBlock]:
    """Yield what is true of all kinds."""
    yield PageTable(("kind", "meaning"), tuple((Link(kind, f"#{anchor(kind)}"), kind_summary(kind)) for kind in KINDS))
    yield (
        "A policy is a directory of YAML files, or one file. A file holds any number of documents with lines `---`"
        " between them. All files below the directory count, except hidden ones. Every document begins with these keys:"
    )
    head = [key for key in policy_keys("Cluster") if key.name in _HEAD_KEYS]
    texts = {"kind": "What the document describes: one of the kinds above."}
    yield PageTable(
        ("key", "required", "meaning"),
        tuple((f"`{key.name}`", "yes" if key.required else "", texts.get(key.name, key.text)) for key in head),
    )
    yield (
        "A parameter that no document declares is not managed: gpolicy never touches it. On a group or a node set,"
        " `inherit` instead of a value removes the object's own value, so that the one of the level above applies."
    )
    yield PageTable(("type", "examples", "how to write it"), _TYPES)


def kind_section(kind: str) -> Iterator[PageBlock]:
    """Yield what there is to say of a kind below its title."""
    yield kind_summary(kind)
    yield PageListing(example_document(kind), "yaml")
    schema = schema_of(kind)
    keys = list(keys_of(kind, schema, expand=False))
    parameters = dict.fromkeys(key.path[0] for key in keys if key.parameter)
    own = [key for key in keys if key.path[0] not in parameters and key.name not in _HEAD_KEYS]
    below = {"limits", "physical_volumes"} if kind == "NodeGroup" else set()
    yield from key_tables([key for key in own if not (len(key.path) > 1 and key.path[0] in below)])
    if below:
        yield "The keys of `limits` and `physical_volumes` are those of a [Cluster](policy.md#cluster)."
    if parameters:
        families = [f"[`{name}`](parameters.md#{name})" for name in parameters if name in PARAMETER_FAMILIES]
        alone = ["[those of the cluster alone](parameters.md#parameters-of-the-cluster)"] * (kind == "Cluster")
        yield f"Parameters of Ganeti: {', '.join([*alone, *families])}."
    for name in _used(own, schema):
        yield Heading(name, 3)
        yield from key_tables(list(keys_of(name, {**schema["definitions"][name], "definitions": {}}, expand=False)))


def _used(keys: Iterable[DocumentKey], schema: dict[str, dict[str, dict[str, object]]]) -> list[str]:
    """Return the definitions with keys of their own that `keys`, or one of these, refer to."""
    text = str([key.schema for key in keys])
    found = [name for name in schema["definitions"] if f"definitions/{name}'" in text]
    more = [
        name
        for name in schema["definitions"]
        if f"definitions/{name}'" in str([schema["definitions"][one] for one in found])
    ]
    return [name for name in dict.fromkeys([*found, *more]) if "properties" in schema["definitions"][name]]


def settings_section() -> Iterator[PageBlock]:
    """Yield what there is to say of gpolicy.toml."""
    yield (
        "Settings of `gpolicy check` for everybody who works on the policy. The same tables may stand in"
        " pyproject.toml, below `tool.gpolicy`. [Check a policy](../guides/check.md) has examples."
    )
    yield from key_tables(list(settings_keys()))
    yield "Parameters of rules, in a table `[rules.NAME]`:"
    yield PageTable(
        ("rule", "parameter", "default", "from", "to", "meaning"),
        tuple(
            (
                Link(info.name, f"rules.md#{info.code.lower()}-{info.name}"),
                *(f"`{item.name}`", f"{item.default:g}", f"{item.least:g}", f"{item.most:,.10g}"),
                info.text.parameters[item.name],
            )
            for info in CATALOGUE
            for item in info.parameters
        ),
    )


def key_tables(keys: list[DocumentKey], words: Named | None = None) -> Iterator[PageBlock]:
    """Yield tables of keys: one for the first level, and one for each key with many below it.

    `words` names the definitions of another schema than a policy's, whose keys need no examples.
    """
    parents: dict[tuple[str, ...], int] = {}
    for key in keys:
        parents[key.path[:-1]] = parents.get(key.path[:-1], 0) + 1
    sections = {path for path, count in parents.items() if count >= _OWN_SECTION or not path}
    members: dict[tuple[str, ...], list[DocumentKey]] = {}
    for key in keys:
        home = max(
            (path for path in sections if key.path[: len(path)] == path and path != key.path), key=len, default=()
        )
        members.setdefault(home, []).append(key)
    shown: dict[tuple[tuple[str, ...], ...], str] = {}
    for home, group in members.items():
        rows = _collapsed(tuple(_row(key, len(home), words) for key in group))
        name = group[0].name.removesuffix(group[0].path[-1]).rstrip(".").replace(NAME, "NAME")
        if rows in shown:
            yield f"Keys of `{name}`: those of `{shown[rows]}`."
            continue
        shown[rows] = name
        if home:
            yield f"Keys of `{name}`:"
        yield PageTable(("key", "type", "required", "example", "meaning"), rows)


def _collapsed(rows: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """Return one row in place of many that only their key tells apart."""
    same = {(*row[1:-1], row[-1].replace(row[0].strip("`"), "NAME")) for row in rows}
    return (("`NAME`", *same.pop()),) if len(rows) > _MOST_ALIKE and len(same) == 1 else rows


def _row(key: DocumentKey, depth: int, words: Named | None) -> tuple[str, ...]:
    name = ".".join(key.path[depth:]).replace(".[]", "[]").replace(f".{NAME}", ".NAME")
    value = None if words else example_value(key)
    example = "" if value is None else flow(value)
    text = f"With `{key.condition}`: {key.text[0].lower()}{key.text[1:]}" if key.condition else key.text
    required = "yes" if key.required else ""
    return f"`{name}`", type_words(key.schema, words or named), required, f"`{example}`" * bool(example), text


def named(definition: str) -> str:
    """Return the words for a definition of a schema: a link to where its keys are."""
    plain = {"size": "size", "rule": "rule", "ignorable": "rule"}
    page = "parameters" if definition == "spec" else "policy"
    return plain.get(definition) or f"[{definition}]({page}.md#{anchor(definition)})"
