"""The files in schemas/ follow the table of parameters, and fast conformance agrees with jsonschema."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from jsonschema import Draft7Validator
from referencing import Registry
from referencing.jsonschema import DRAFT7

from gpolicy.policy.conformance import compile_schema, conforms, file_name, schema_of, whole_schema
from gpolicy.policy.kinds import KIND_NAMES, KINDS, LEVELS, Policy
from gpolicy.policy.schema_errors import shape_findings
from scripts.reference.output_schemas import attribute_texts
from scripts.schemas.documents import OWN_KEYS, schemas
from tests.laws import examples
from tests.policy.mutated import DOCUMENTS, mutations

SCHEMAS = schemas()


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_schema_is_a_draft_7_schema(name: str) -> None:
    Draft7Validator.check_schema(SCHEMAS[name])
    assert SCHEMAS[name]["$schema"] == "http://json-schema.org/draft-07/schema#"


def undescribed(schema: Any, path: str = "") -> list[str]:
    """Return the properties without a description, wherever they stand."""
    if isinstance(schema, list):
        return [item for n, below in enumerate(schema) for item in undescribed(below, f"{path}[{n}]")]
    if not isinstance(schema, dict):
        return []
    result = []
    for key, below in schema.items():
        if key == "properties":  # its keys are names, one of which may be "properties"
            result += [f"{path}.{name}" for name, leaf in below.items() if not described(leaf)]
            result += [item for name, leaf in below.items() for item in undescribed(leaf, f"{path}.{name}")]
        else:
            result += undescribed(below, f"{path}.{key}")
    return result


def described(leaf: Any) -> bool:
    return "description" in leaf or "$ref" in leaf or set(leaf) == {"const"}


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_every_key_is_described_for_the_editor(kind: str) -> None:
    assert undescribed(SCHEMAS[file_name(kind)]) == []


def test_the_declaration_of_a_kind_is_complete() -> None:
    """Its field in `Policy` says what it is for, and has a default; the schemas say what its keys are."""
    empty = Policy(paths=())
    assert {kind: bool(getattr(empty, item.field)) for kind, item in KINDS.items()} == dict.fromkeys(KINDS, False)
    assert [kind for kind, item in KINDS.items() if not attribute_texts(Policy).get(item.field)] == []
    assert OWN_KEYS.keys() == KINDS.keys()
    assert len(set(LEVELS.values())) == len(LEVELS)


# --- conformance ---------------------------------------------------------------------------------------------------


FAST = {kind: compile_schema(schema_of(kind)) for kind in KIND_NAMES}
FILES = Registry[Any]().with_resources((name, DRAFT7.create_resource(schema)) for name, schema in SCHEMAS.items())
BY_REFERENCE = Draft7Validator(SCHEMAS["policy.json"], registry=FILES)
SLOW = {kind: Draft7Validator(schema_of(kind)) for kind in KIND_NAMES}


@settings(max_examples=examples(100))
@given(mutations())
def test_fast_conformance_is_what_jsonschema_says(document: Any) -> None:
    kind = str(document.get("kind")) if isinstance(document, dict) else ""
    assume(kind in KIND_NAMES)
    assert FAST[kind](document) == SLOW[kind].is_valid(document) == BY_REFERENCE.is_valid(document)


def test_the_examples_conform_both_ways_and_to_the_schema_of_all_kinds() -> None:
    whole = Draft7Validator(whole_schema())
    for document in DOCUMENTS:
        kind = document["kind"]
        ways = (FAST[kind](document), *(valid.is_valid(document) for valid in (SLOW[kind], whole, BY_REFERENCE)))
        assert ways == (True,) * 4, document


@settings(max_examples=examples(50))
@example(next(item for item in DOCUMENTS if item["kind"] == "Rule") | {"schema": {"properties": None}})
@given(mutations())
def test_a_document_that_does_not_conform_has_a_finding(document: Any) -> None:
    from gpolicy.policy.source_file import SourceFile, YamlDocument

    read = YamlDocument(SourceFile("f", ""), document, (1, 1, 1, 1))
    found = [] if conforms(read) else shape_findings(read)
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind in KIND_NAMES and document.get("gpolicy") == "v1":
        assert bool(found) == (not FAST[kind](document))
    else:
        assert [finding.code for finding in found] == ["GP010"]


def test_an_unknown_schema_keyword_is_an_error() -> None:
    with pytest.raises(AttributeError):
        compile_schema({"type": "object", "patternProperties": {}})


@pytest.mark.parametrize(
    ("schema", "value", "conforms"),
    [
        ({"const": 1}, True, False),
        ({"enum": [0]}, False, False),
        ({"enum": [1]}, 1.0, True),
        ({"type": "integer"}, 1.0, True),
        ({"type": "integer"}, True, False),
        ({"type": "number"}, False, False),
        ({"uniqueItems": True}, [1, True], True),
        ({"uniqueItems": True}, [1, 1.0], False),
        ({"uniqueItems": True}, [{"a": 1}, {"a": 1}], False),
        ({"uniqueItems": True}, [[1], [True]], True),
        ({"const": [True]}, [1], False),
        ({"minimum": 1}, "a", True),
        ({"exclusiveMinimum": 0}, 0, False),
        ({"exclusiveMinimum": 0}, float("nan"), True),
    ],
)
def test_the_corners_of_json_equality(schema: dict[str, Any], value: Any, conforms: bool) -> None:
    assert compile_schema(schema)(value) is conforms
    assert Draft7Validator(schema).is_valid(value) is conforms


def test_editors_say_what_a_prefix_may_have() -> None:
    prefix = SCHEMAS["tag-rules.json"]["properties"]["failure_domains"]["items"]
    assert "@ - only" in prefix["patternErrorMessage"]
    assert ": @" not in prefix["patternErrorMessage"]
