"""One change anywhere in a JSON document, as an attacker with an editor could make in a plan."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 1.0, 2.5, 10**6, 2**53, 2**64, 10**400, 1e300, -0.0, "", " ", "x", "default", "\x00",
    "../x", "a;b", "--force", "1&force=1", "2?x=1", "a\nb", "\u202e", "é", "group/x", "node/x", "cluster", "set",
    "reset", "name", [], {}, [[]], [None], ["x"], {"x": 1}, {"min": {}, "max": {}}, [1, "x"], [[1, 2]],
    {"kvm": {"kvm_path": "/tmp/x"}},
)  # fmt: skip
"""Replacement values."""


def places(document: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the place of every value in a document, the whole document first."""
    yield place
    below = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in below:
        yield from places(value, (*place, key))


def at(document: Any, place: Place) -> Any:
    for key in place:
        document = document[key]
    return document


def mutated(document: Any, rng: random.Random, known: list[Place] | None = None) -> tuple[Any, Place, str]:
    """Return a copy of a document with one change, where that was made, and which."""
    everywhere = known or list(places(document))
    part = rng.choice(list(document))  # each part of the document as often, however long it is
    place = rng.choice([place for place in everywhere[1:] if place[0] == part])
    result = copy.deepcopy(document)
    parent: Any = at(result, place[:-1])
    key: Any = place[-1]
    value = parent[key]
    what = rng.choice(["replace", "remove", "add", "swap", "borrow", "double", "tweak", "nudge"])
    match what:
        case "replace":
            parent[key] = copy.deepcopy(rng.choice(HOSTILE))
        case "remove":
            del parent[key]
        case "add" if isinstance(value, dict):
            new = rng.choice(["x", "force", "hvparams", "more", "allowed", "argv", "keys", *value])
            value[f"{new}2" if new in value else new] = copy.deepcopy(rng.choice(HOSTILE))
        case "add" if isinstance(value, list):
            value.insert(rng.randint(0, len(value)), copy.deepcopy(rng.choice([*HOSTILE, *value])))
        case "swap" if isinstance(parent, list) and len(parent) > 1:
            other = rng.randrange(len(parent))
            parent[key], parent[other] = parent[other], parent[key]
        case "borrow":  # what stands under the same key somewhere else
            alike = [other for other in everywhere[1:] if other[-1] == key and at(document, other) != value]
            parent[key] = copy.deepcopy(at(document, rng.choice(alike or everywhere[1:])))
        case "double" if isinstance(parent, list):
            parent.insert(rng.randint(0, len(parent)), copy.deepcopy(value))
        case "nudge" if isinstance(value, str) and value:
            cut = rng.randrange(len(value))
            parent[key] = value[:cut] + rng.choice("aZ0_ -/&\n\x00é") + value[cut + rng.randint(0, 1) :]
        case _:
            parent[key] = _tweaked(value)
    return result, place, what


def _tweaked(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value}x"
        case list():
            return [*value, *value]
        case dict():
            return {**value, "x": None}
    return "x"
