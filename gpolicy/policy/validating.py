"""Hold a document against the schema of its kind."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from gpolicy.policy.conformance import Test, compile_schema
from gpolicy.policy.schema_files import KINDS, schema_of

if TYPE_CHECKING:
    from gpolicy.findings import Finding
    from gpolicy.policy.source_file import YamlDocument


@cache
def _test_of(kind: str) -> Test:
    return compile_schema(schema_of(kind))


def conforms(document: YamlDocument) -> bool:
    """Return whether a document has the shape that the schema of its kind describes."""
    root: Any = document.root
    has_head = isinstance(root, dict) and root.get("gpolicy") == "v1" and root.get("kind") in KINDS
    return has_head and _test_of(root["kind"])(root)


def shape_findings(document: YamlDocument) -> list[Finding]:
    """Return what is wrong with the shape of `document`, without what reading the file has found already."""
    if conforms(document):
        return []
    from gpolicy.policy.schema_errors import explained, head_findings  # noqa: PLC0415 (most documents are sound)

    return head_findings(document) or explained(document)
