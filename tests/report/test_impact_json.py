from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.impact.impact import PARTS, Impact, measure_impact
from gpolicy.plan.sides import Sides, project
from gpolicy.policy.loading import load_policy
from gpolicy.report.impact_json import IMPACT
from gpolicy.resolve.desired import pair_names
from tests.plan.planned import make_plan, plan_text
from tests.report.impact_samples import SCORE, capacity_change, full_impact

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "schemas/output/plan.json").read_text(encoding="utf-8"))
OPEN_PARTS = {"binding", "sizes", "pair", "capacity"}
DEFINITIONS = SCHEMA["definitions"]
VALIDATOR = Draft7Validator({**SCHEMA, **DEFINITIONS["impact"]})


def as_written(impact: Impact) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(json.dumps(IMPACT(impact), allow_nan=False))
    return data


def test_every_kind_of_fact_conforms_to_the_schema() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert [error.message for error in VALIDATOR.iter_errors(as_written(full_impact()))] == []


def test_an_unknown_figure_is_null_with_its_reason() -> None:
    data = as_written(Impact(unavailable={"capacity": "config: has no measured memory"}))
    assert list(VALIDATOR.iter_errors(data)) == []
    assert data["capacity"] is None
    assert data["unavailable"] == {"capacity": "config: has no measured memory"}


def strict(schema: Any) -> Any:
    """Return the schema with no key allowed that it does not describe."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object" and "allOf" not in schema:
        closed.setdefault("additionalProperties", False)
    return closed


def test_no_key_is_without_a_description() -> None:
    """The parts that come from `gpolicy capacity` are put together of several schemas, and tested there."""
    definitions = {name: part if name in OPEN_PARTS else strict(part) for name, part in DEFINITIONS.items()}
    validator = Draft7Validator({"definitions": definitions, "$ref": "#/definitions/impact"})
    assert [error.message for error in validator.iter_errors(as_written(full_impact()))] == []


def test_the_impact_of_the_example_conforms_too() -> None:
    state = read_state(f"snapshot:{ROOT / 'policies/two-groups.snapshot.json'}", SourceOptions())
    policy = load_policy(ROOT / "policies/two-groups")
    plan = make_plan(policy, state)
    after = project(state, plan.changes)
    known = measure_impact(Sides(state, after, pair_names(policy, after)))
    assert known.unavailable == {}
    text = plan_text(plan, IMPACT(known))
    assert [error.message for error in Draft7Validator(SCHEMA).iter_errors(json.loads(text))] == []
    definitions = {name: part if name in OPEN_PARTS else strict(part) for name, part in DEFINITIONS.items()}
    closed = Draft7Validator({"definitions": definitions, "$ref": "#/definitions/impact"})
    assert [error.message for error in closed.iter_errors(json.loads(text)["impact"])] == []


def test_the_sample_leaves_nothing_out() -> None:
    for name in PARTS:
        part = getattr(full_impact(), name)
        for inner in fields(part):
            assert getattr(part, inner.name), f"{name}.{inner.name} is empty in the sample"


def test_figures_that_follow_from_others() -> None:
    data = as_written(full_impact())
    shared = next(group for group in data["capacity"]["groups"] if group["group"] == "shared")
    large = next(row for row in shared["rows"] if row["name"] == "large")
    assert (large["before"]["fits"], large["after"]["fits"], large["delta"]) == (8, 3, 3 - 8)
    assert large["percent"] == pytest.approx(100 * (3 - 8) / 8)
    assert large["before"]["spec"]["memory-size"] == 65536
    assert large["after"]["binding"]["binding"] == "ipolicy.spindle-ratio"
    new = next(row for group in data["capacity"]["groups"] for row in group["rows"] if row["before"] is None)
    assert (new["delta"], new["percent"]) == (None, None)
    dedicated = next(group for group in data["capacity"]["groups"] if group["vectors"])
    assert dedicated["vectors"]["lost"] == [12 - 10]
    breach = data["violations"]["newly"][0]["after"]["breaches"]
    assert [item["beyond"] for item in breach] == [98304 - 65536, 5120 - 10240]
    node = data["resource_model"]["after"]["nodes"][0]
    assert node["oversubscription"] == pytest.approx(228000 / 190000)
    assert data["exclusive_storage"]["instances"][0]["disks"][0]["trouble"] == "not-plain"


def test_a_number_that_is_not_finite_is_null() -> None:
    change = capacity_change()
    assert change.cluster
    assert change.cluster.before
    odd = replace(change.cluster.before, score=replace(SCORE, total=math.nan))
    data = as_written(Impact(capacity=replace(change, cluster=replace(change.cluster, before=odd))))
    assert list(VALIDATOR.iter_errors(data)) == []
    assert data["capacity"]["cluster"]["before"]["score"] is None
