"""docs/reference/output.md: the JSON that gpolicy writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from gpolicy.data import data_directory
from gpolicy.reference.blocks import Heading, PageBlock, PageTable, type_words
from gpolicy.reference.keys import DocumentKey, keys_of
from gpolicy.report.prometheus import METRICS, MetricSet
from scripts.reference.markdown import Link, anchor
from scripts.reference.policy import key_tables

_TITLES = {
    "baseline": "The baseline of gpolicy check",
    "apply": "gpolicy apply --all --format json",
    "journal": "The journal of gpolicy apply",
    "rollout-journal": "The journal of gpolicy apply --all",
    "plan": "gpolicy plan --format json, and the plan file",
}
"""Titles of those that are not simply the JSON form of a verb."""


def output_schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of each output by its name."""
    files = sorted((data_directory("schemas") / "output").glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def output_page() -> Iterator[PageBlock]:
    """Yield the page."""
    schemas = output_schemas()
    yield Heading("JSON output", 1)
    yield (
        "For authors of scripts and dashboards: every key of every JSON that gpolicy writes, and at the end [all"
        " metrics](output.md#metrics-of-gpolicy-capacity). The schemas lie in `schemas/output/`. Readers must ignore"
        " keys that they do not know; [what stays the same](stability.md) says when a `format_version` changes. Sizes"
        " are MiB unless a key says otherwise."
    )
    yield PageTable(
        ("output", "what it is"),
        tuple(
            (Link(_title(name), f"#{anchor(_title(name))}", literal=False), schema["description"].partition(". ")[0])
            for name, schema in schemas.items()
        ),
    )
    for name, schema in schemas.items():
        yield Heading(_title(name))
        yield schema["description"]
        yield from _tables(name, schema)
        for definition in schema.get("definitions", {}):
            if definition_keys(name, schema, definition):
                yield Heading(_subtitle(name, definition), 3)
                if text := schema["definitions"][definition].get("description"):
                    yield text
                yield from _tables(name, schema, definition)
    for verb, metrics in METRICS.items():
        yield Heading(f"Metrics of gpolicy {verb}")
        yield from _metrics(metrics)


def _metrics(metrics: MetricSet) -> Iterator[PageBlock]:
    first, second = metrics.identity
    yield (
        f"All are gauges, and have the label `{first}`; `{second}` where it was asked for. [The guide](../guides/"
        "monitoring.md) says how to use them."
    )
    yield PageTable(
        ("metric", "labels", "meaning"),
        tuple(
            (f"`{metrics.prefix}{name}`", ", ".join(f"`{label}`" for label in metric.labels), metric.help)
            for name, metric in metrics.all.items()
        ),
    )


def _tables(name: str, schema: dict[str, Any], definition: str = "") -> Iterator[PageBlock]:
    def words(other: str) -> str:
        if definition_keys(name, schema, other):
            return f"[{other}](output.md#{anchor(_subtitle(name, other))})"
        return type_words(schema["definitions"][other], words)

    whole = definition_keys(name, schema, definition) if definition else list(keys_of(name, schema, expand=False))
    branches = schema.get("oneOf", ()) if not definition else ()
    events = [branch for branch in branches if "event" in branch.get("properties", {})]
    if not events:
        yield from key_tables(whole, words)
        return
    yield from key_tables(list(keys_of(name, {**schema, "oneOf": []}, expand=False)), words)
    for branch in events:
        event = branch["properties"]["event"]["const"]
        yield Heading(f"event {event}", 3)
        yield branch["description"]
        keys = keys_of(name, {**branch, "definitions": schema["definitions"]}, expand=False)
        yield from key_tables([key for key in keys if key.name != "event"], words)


def definition_keys(name: str, schema: dict[str, Any], definition: str) -> list[DocumentKey]:
    """Return the keys of a definition of a schema."""
    part = {**schema["definitions"][definition], "definitions": schema["definitions"]}
    return list(keys_of(name, part, expand=False))


def _title(name: str) -> str:
    return _TITLES.get(name, f"gpolicy {name} --format json")


def _subtitle(name: str, definition: str) -> str:
    return f"{name}: {definition}"
