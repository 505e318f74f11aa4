"""The JSON Schemas of the kinds of documents, from the package's data."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from gpolicy.data import data_directory
from gpolicy.policy.schema_sharing import with_own_shapes


def file_name(kind: str) -> str:
    """Return the file of a kind's schema: `NodeGroup` is in `node-group.json`."""
    words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in kind)
    return f"{words.lstrip('-')}.json"


@cache
def schema_of(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of a kind of document."""
    text = (data_directory("schemas") / file_name(kind)).read_text(encoding="utf-8")
    return with_own_shapes(json.loads(text))
