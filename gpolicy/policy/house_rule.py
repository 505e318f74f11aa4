"""House rules: what a team demands of its own policies, as a document of kind Rule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from gpolicy.findings import HOUSE, Severity
from gpolicy.policy.building import Report
from gpolicy.policy.source_file import Located, YamlDocument

SCHEMA: Final = "schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseRule:
    """One house rule: `schema` must hold of the effective values of all objects of `kind`.

    `names` and `tags` are globs that restrict the objects; none: all of them.
    """

    name: Located[str]
    kind: Located[str]
    schema: Any
    severity: Severity
    message: str
    document: YamlDocument
    names: tuple[Located[str], ...] = ()
    tags: tuple[Located[str], ...] = ()

    @property
    def word(self) -> str:
        """Its name in findings, waivers and settings: house/NAME."""
        return f"{HOUSE}{self.name.value}"


def build_house_rule(document: YamlDocument, _: Report) -> Iterator[HouseRule]:
    """Yield the rule of a document that conforms to its schema."""
    root = document.root

    def globs(key: str) -> tuple[Located[str], ...]:
        items = root["for"].get(key, ())
        return tuple(document.located(("for", key, index)) for index in range(len(items)))

    yield HouseRule(
        name=document.located(("name",)),
        kind=document.located(("for", "kind")),
        schema=root[SCHEMA],
        severity=Severity(root.get("severity", Severity.ERROR)),
        message=" ".join(root["message"].split()),
        document=document,
        names=globs("names"),
        tags=globs("tags"),
    )
