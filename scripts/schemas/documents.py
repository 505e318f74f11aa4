"""The JSON Schemas of the policy kinds, made from the table of parameters.

The files in `schemas/` are this module's output (a test compares them). Draft-07, since that is what editors'
YAML servers validate; every key carries a description, so that an editor completes and explains it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gpolicy.ganeti.releases import POINT_RELEASE, VERSIONS
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, SPEC_SIZES, Level
from gpolicy.policy.conformance import WHOLE, Schema, file_name
from gpolicy.policy.kinds import KINDS, Measure, Policy
from scripts.reference.output_schemas import attribute_texts
from scripts.schemas.editing import for_editors
from scripts.schemas.parameters import (
    NAME,
    SIZE,
    TAG,
    amount_of,
    closed,
    count_of,
    described,
    flag,
    list_of,
    name_of,
    parameter_properties,
    size_of,
    term_properties,
    text_like,
    whole,
)
from scripts.schemas.rules import rule_properties, tag_rule_properties, value_schema
from scripts.schemas.scenarios import MOST_TESTS, existing_instance, simulated_group, test_items

MOST_BASES: Final = 100
"""The greatest number of direct bases of a document: all of them are compared."""

DRAFT: Final = "http://json-schema.org/draft-07/schema#"
_VERSION_KEY: Final[Schema] = {"const": "v1", "description": "The version of the policy language. Always v1."}


@dataclass(frozen=True, slots=True)
class _OwnKeys:
    """The keys of a kind of document below `kind:`, and the `body` that editors offer there."""

    properties: Callable[[], Schema]
    body: str
    required: tuple[str, ...] = ()


def schemas() -> dict[str, Schema]:
    """Return all schemas by file name: one per kind, and `policy.json` of any document, which refers to the others."""
    by_kind = {kind: _document(kind) for kind in KINDS}
    files = {file_name(kind): schema for kind, schema in by_kind.items()} | {WHOLE: _any_kind()}
    return {name: for_editors(schema) for name, schema in files.items()}


def _any_kind() -> Schema:
    """Return the schema of a document of any kind."""
    rules: list[Schema] = []
    for kind in KINDS:
        condition = {"properties": {"kind": {"const": kind}}, "required": ["kind"]}
        rules.append({"if": condition, "then": {"$ref": file_name(kind)}})
    whole = [
        {"label": kind, "description": _description(kind), "bodyText": f"{_head(kind)}{OWN_KEYS[kind].body}"}
        for kind in KINDS
    ]
    rules.append({"if": {"required": ["kind"]}, "else": {"defaultSnippets": whole}})
    return {
        "$schema": DRAFT,
        "title": "gpolicy: a document of a Ganeti policy",
        "type": "object",
        "properties": {
            "gpolicy": _VERSION_KEY,
            "kind": {
                "enum": list(KINDS),
                "enumDescriptions": list(map(_description, KINDS)),
                "description": "What this document describes.",
            },
        },
        "required": ["gpolicy", "kind"],
        "allOf": rules,
    }


def _description(kind: str) -> str:
    """Return what the docstring of the field that declares a kind says."""
    return attribute_texts(Policy)[KINDS[kind].field]


def _head(kind: str) -> str:
    return f"gpolicy: v1\nkind: {kind}\n"


def _document(kind: str) -> Schema:
    of = OWN_KEYS[kind]
    schema: Schema = {
        "$schema": DRAFT,
        "title": f"gpolicy {kind}",
        "description": _description(kind),
        "type": "object",
        "properties": {
            "gpolicy": _VERSION_KEY,
            "kind": {"const": kind, "description": _description(kind)},
            "description": {"type": "string", "description": "For people; gpolicy does not read it."},
            **of.properties(),
        },
        "required": ["gpolicy", "kind", *of.required],
        "additionalProperties": False,
        "definitions": {},
    }
    known, used, text = _definitions(), schema["definitions"], str(schema)
    while named := [name for name in known if name not in used and f"definitions/{name}'" in text]:
        used.update((name, known[name]) for name in named)
        text = str(used)  # a definition may use another
    return schema


def _definitions() -> Schema:
    return {
        "spec": closed(
            {name: amount_of(name, ", MiB" if name in SPEC_SIZES else "") for name in SPEC_PARAMETERS},
            "All six parameters of one bound.",
            required=SPEC_PARAMETERS,
        ),
        "simulatedGroup": simulated_group(),
        "existingInstance": existing_instance(),
        "valueSchema": value_schema(),
    }


def _tags(of: str) -> Schema:
    return list_of(
        TAG,
        f"Tags that {of} is to have. Others are left alone, except under prefixes that a TagRules document owns.",
        unique=True,
    )


def _object(kind: str, name: str) -> Schema:
    """Return the first keys of a document about an object, whose name has this description."""
    base = name_of(f"Name of another {kind} of this policy, or a relative path: file.yaml#NAME.")
    bases = list_of(base, least=1, most=MOST_BASES)
    text = f"{kind} document(s) to take values from; own values win, later bases win over earlier ones."
    return {
        "name": name_of(name),
        "template": flag(f"True: only a base for `extends`, not a {kind} of its own."),
        "extends": {"anyOf": [NAME, bases], "description": text},
    }


def _cluster() -> Schema:
    return {
        **_object("Cluster", "The cluster's name, as `gnt-cluster info` shows it."),
        "ganeti_version": {
            "anyOf": [{"enum": list(VERSIONS)}, {"type": "string", "pattern": POINT_RELEASE}],
            "description": "Release of Ganeti, in quotes; it decides which parameters exist, and how nodes are"
            " judged for N+1 where the cluster does not say which it runs (from 3.1.0 on otherwise than before)."
            ' "3.1" means the newest of 3.1. Default: 3.0.'
            " gpolicy was tried on clusters of 3.0 and 3.1; what it says of 2.15 and 2.16 was only read in their"
            " sources.",
        },
        **parameter_properties(Level.CLUSTER),
        **term_properties("each group that does not declare its own"),
        "tags": _tags("the cluster"),
    }


def _node_group() -> Schema:
    return {
        **_object("NodeGroup", "The group's name."),
        "renamed_from": name_of("The old name of the group. Ganeti renames the group, which keeps its nodes."),
        "removed": {"const": True, "description": "Remove this group. It must be empty by then."},
        **parameter_properties(Level.GROUP),
        "nodes": list_of(NAME, "Nodes that belong in this group: names or globs (node*.example.org).", unique=True),
        "hardware": closed(
            {
                "memory": size_of("Memory of a node."),
                "cpus": count_of("cpus", "Logical CPUs of a node.", least=1),
                "pv_size": {
                    "anyOf": [*SIZE["anyOf"], list_of(SIZE, least=1)],
                    "description": "Size of each physical volume, or the list of sizes where they differ.",
                },
                "pv_count": count_of("pv_count", "Physical volumes (spindles) of a node.", least=1),
            },
            "What each node of the group has. Promised here, checked against the sizes, and against the cluster where"
            " its state is known.",
        ),
        **term_properties("the group"),
        "tags": _tags("the group"),
    }


def _node_set() -> Schema:
    return {
        **_object("NodeSet", "Name of this set, for people."),
        "nodes": list_of(NAME, "Nodes in this set: names or globs (node*.example.org).", unique=True),
        "groups": list_of(NAME, "Groups whose nodes are in this set.", unique=True),
        **parameter_properties(Level.NODE),
        "tags": _tags("each node of the set"),
    }


def _guards() -> Schema:
    percent = text_like("percentage")
    return {
        "name": name_of("Name of these guards, for people."),
        "guards": {
            "type": "array",
            "minItems": 1,
            "description": "Each guard has a name and one measure.",
            "items": {
                "type": "object",
                "properties": {
                    "name": name_of("Name of the guard; overridden by this name."),
                    "group": name_of("Only this group (default: each group)."),
                    "spec": name_of("Only this named size (default: each)."),
                    "at_least": whole("Least number of instances of the size that must still fit."),
                    "capacity_loss": closed(
                        {
                            "at_most": {
                                "anyOf": [percent, {"type": "integer", "minimum": 0}],
                                "description": "Greatest loss: a share (5%) or a number of instances.",
                            }
                        },
                        "How much capacity a change may cost: how many fit of each size at its largest, and of today's"
                        " size where the change sets another. Standard and tiered instances do not count.",
                        required=("at_most",),
                    ),
                    "newly_violating": whole(
                        "Most instances and nodes that may newly violate the policy: instances that it does not allow,"
                        " and nodes above vcpu-ratio or spindle-ratio."
                    ),
                    "node_failures": whole(
                        "Node failures that the group must survive; nodes that take over must keep"
                        " their vcpu-ratio, unless cpus_after_failure of the group's limits is false."
                    ),
                    "max_changes": whole("Most changes that one plan may make."),
                },
                "required": ["name"],
                "oneOf": [{"required": [str(measure)]} for measure in Measure],
                "additionalProperties": False,
            },
        },
    }


def _test() -> Schema:
    return {
        "name": name_of("Name of these tests, for people."),
        "tests": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST_TESTS,
            "items": test_items(),
            "description": "Each test has a name, what is done, and what is expected.",
        },
    }


def _waiver() -> Schema:
    text = {"type": "string"}
    properties: Schema = {
        "rule": described(text, "Code or name of the rule (GP201, spec-overlap, house/NAME)."),
        "where": described(
            text,
            "What the finding is about: cluster, group/NAME, node-set/NAME, guard/NAME, test/NAME or a file name; for"
            " the rule drift also node/NAME, and one value as OBJECT:PATH (group/gold:ipolicy.vcpu-ratio). Globs are"
            " allowed.",
        ),
        "reason": {**text, "minLength": 1, "description": "Why it is accepted."},
        "until": {**text, **text_like("day"), "description": "Last day of the waiver, YYYY-MM-DD."},
    }
    return {
        "waivers": {
            "type": "array",
            "minItems": 1,
            "description": "Each waiver silences one rule in one place.",
            "items": closed(properties, required=properties),
        },
    }


OWN_KEYS: Final = {
    "Cluster": _OwnKeys(
        _cluster,
        'name: ${1:cluster.example.org}\nganeti_version: "${2:3.0}"\nenabled_disk_templates: [${3:drbd, plain}]\n',
        required=("name",),
    ),
    "NodeGroup": _OwnKeys(
        _node_group,
        "name: ${1:default}\nalloc_policy: ${2:preferred}\n",
        required=("name",),
    ),
    "NodeSet": _OwnKeys(
        _node_set,
        'name: ${1:workers}\nnodes: ["${2:node*.example.org}"]\n',
        required=("name",),
    ),
    "TagRules": _OwnKeys(
        tag_rule_properties,
        "owns: [${1:iextags}]\nexclusion: [${2:service}]\n",
    ),
    "Guards": _OwnKeys(
        _guards,
        "guards:\n  - name: ${1:no-shrink}\n    capacity_loss: {at_most: ${2:10%}}\n",
        required=("guards",),
    ),
    "Test": _OwnKeys(
        _test,
        "tests:\n  - name: ${1:one more fits}\n    place: {spec: ${2:medium}}\n    expect: {refused: ${3:false}}\n",
        required=("tests",),
    ),
    "Rule": _OwnKeys(
        rule_properties,
        'name: ${1:dedicated-cpus}\nfor: {kind: ${2:NodeGroup}, names: ["${3:gold*}"]}\nschema:\n  properties:\n'
        "    ${4:ipolicy.vcpu-ratio}: {maximum: ${5:1}}\nmessage: ${6:gold is sold with dedicated CPUs}\n",
        required=("name", "for", "schema", "message"),
    ),
    "Waiver": _OwnKeys(
        _waiver,
        "waivers:\n  - rule: ${1:spec-overlap}\n    where: ${2:group/default}\n    reason: ${3:why}\n"
        "    until: ${4:YYYY-MM-DD}\n",
        required=("waivers",),
    ),
}
