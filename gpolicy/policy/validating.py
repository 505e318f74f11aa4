"""Hold a document against the schema of its kind."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from gpolicy.policy.conformance import Test, compile_schema
from gpolicy.policy.kinds import KINDS
from gpolicy.policy.schema_files import schema_of

if TYPE_CHECKING:
    from gpolicy.findings import Finding
    from gpolicy.policy.source_file import YamlDocument


@cache
def _conforms(kind: str) -> Test:
    return compile_schema(schema_of(kind))


def validate(document: YamlDocument) -> list[Finding]:
    """Return what is wrong with the shape of `document`; nothing if it conforms to the schema of its kind."""
    root: Any = document.root
    has_head = isinstance(root, dict) and root.get("gpolicy") == "v1" and root.get("kind") in KINDS
    if has_head and _conforms(root["kind"])(root):
        return []
    from gpolicy.policy.schema_errors import explained, head_findings  # noqa: PLC0415 (most documents are sound)

    return head_findings(document) or explained(document)
