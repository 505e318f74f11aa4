"""The kinds of documents. (What makes their schemas is not imported for a name.)"""

from __future__ import annotations

from typing import Final

KINDS: Final = ("Cluster", "NodeGroup", "NodeSet", "TagRules", "Guards", "Test", "Waiver")


def file_name(kind: str) -> str:
    """Return the file of a kind's schema: `NodeGroup` is in `node-group.json`."""
    words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in kind)
    return f"{words.lstrip('-')}.json"
