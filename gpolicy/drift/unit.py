"""Units of drift: what can only be written into a policy together, and the ways to write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from gpolicy.ganeti.parameter import Path
from gpolicy.ganeti.values import unflatten
from gpolicy.plan.part import Key
from gpolicy.policy.source_file import Pointer, YamlMapping
from gpolicy.writing.draft import DocumentPlace, Draft, UnwritableError, ValuePlace
from gpolicy.writing.value_edits import add_entry
from gpolicy.writing.yaml_text import Node


class How(StrEnum):
    """How the live state was written into the policy."""

    IN_PLACE = "in-place"  # where the policy declares it
    OVERRIDE = "override"  # in the document of the object alone, over what that takes from others


@dataclass(frozen=True, slots=True)
class WayToWrite:
    """One way to write a unit: `write` edits a draft and returns the place of what it wrote.

    `may_change` are the declared values that this changes, by the labels of their documents.
    """

    how: How
    write: Callable[[Draft], ValuePlace]
    may_change: frozenset[Key]


@dataclass(frozen=True, slots=True)
class Unit:
    """Drift that is written together, or not at all.

    The attempts are tried in their order, then the `parts` each for itself. Without either, `reason` says why.
    """

    keys: frozenset[Key]
    attempts: tuple[WayToWrite, ...] = ()
    parts: tuple[Unit, ...] = ()
    reason: str = ""


def add_value(draft: Draft, place: DocumentPlace, path: Path, node: Node) -> Pointer:
    """Add a value to a document that lacks it, with the mappings around it, and return its place."""
    document = draft.document(place)
    depth, found = 0, document.root
    while depth < len(path) and isinstance(found, YamlMapping) and path[depth] in found:
        found = found[path[depth]]
        depth += 1
    if depth == len(path):
        raise UnwritableError(f"{place[0]}: it says {'.'.join(path)} already")
    below = unflatten({path[depth + 1 :]: node}) if depth + 1 < len(path) else node
    draft.edit(place, path[: depth + 1], add_entry(document, path[:depth], path[depth], below))
    return path
