"""What the reference says of the keys of a policy: each has a description, a type and an example that holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft7Validator

from gpolicy.fleet.named_clusters import named_clusters
from gpolicy.policy.conformance import example_document, schema_of
from gpolicy.policy.kinds import KINDS
from gpolicy.policy.settings_file import settings_file
from gpolicy.policy.yaml_reader import read_yaml
from gpolicy.reference.blocks import example_listing, example_value, flow, type_words
from gpolicy.reference.keys import DocumentKey, all_keys, policy_keys, settings_keys


def _key(home: str, name: str) -> DocumentKey:
    return next(key for key in policy_keys(home) if key.name == name)


def test_every_key_has_a_description_and_a_type() -> None:
    for key in all_keys():
        assert key.text.endswith((".", "…")), key
        assert type_words(key.schema), key


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_a_key_may_stand_there(kind: str) -> None:
    definitions = schema_of(kind)["definitions"]
    for key in policy_keys(kind):
        value = example_value(key)
        below = [other for other in policy_keys(kind) if other.path[: len(key.path)] == key.path and other != key]
        assert value is not None or below, key.name
        if value is not None:
            validator = Draft7Validator({**key.schema, "definitions": definitions})
            assert not list(validator.iter_errors(value)), (key.name, value)
            assert yaml.safe_load(flow(value)) == value
            assert yaml.safe_load(example_listing(key))


def test_the_examples_of_settings_may_stand_there() -> None:
    for key in settings_keys():
        assert example_value(key) is not None or key.name in {"check", "rules", "clusters", "rollout"}, key.name


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_a_kind_is_a_document(kind: str) -> None:
    (document,) = read_yaml(example_document(kind), "example").documents
    assert Draft7Validator(schema_of(kind)).is_valid(document.root)


def test_types_are_named_in_words() -> None:
    assert type_words(_key("NodeGroup", "diskparams.drbd.resync-rate").schema) == "rate"
    assert type_words(_key("NodeGroup", "hardware.pv_size").schema) == "size or list of sizes"
    assert type_words(_key("NodeGroup", "limits.oversubscription").schema) == "number above 0, at most 100"
    assert type_words(_key("Cluster", "uid_pool").schema) == "list of ranges of user IDs"
    assert (
        type_words(_key("Guards", "guards[].capacity_loss.at_most").schema) == "percentage or whole number, 0 or more"
    )


def test_a_key_of_a_condition_names_it() -> None:
    found = {key.condition: key.text for key in policy_keys("Test") if key.name == "tests[].expect.refused"}
    assert found.keys() == {"place", "check_instance"}
    assert len(set(found.values())) == 2


def test_the_examples_of_a_cluster_of_the_settings_are_taken(tmp_path: Path) -> None:
    values = {key.path[-1]: example_value(key) for key in settings_keys() if key.path[0] == "clusters"}
    lines = [f"{name} = {json.dumps(value)}" for name, value in values.items() if isinstance(value, str)]
    (tmp_path / "gpolicy.toml").write_text("\n".join(["[clusters.ham]", *lines, 'labels = {stage = "canary"}']))
    (cluster,) = named_clusters(settings_file(tmp_path)).values()
    assert (cluster.state, cluster.login) == (values["state"], values["credentials"])
