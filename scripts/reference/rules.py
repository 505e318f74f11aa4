"""docs/reference/rules.md, from the rules themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.findings import RuleInfo
from gpolicy.reference.blocks import Block, Heading, Link, Paragraph, Table
from gpolicy.reference.rules import families, rule_blocks
from reference.markdown import anchor


def rules_page(rules: Iterable[RuleInfo] = CATALOGUE) -> Iterator[Block]:
    """Yield the index by family, then each rule."""
    by_family = [(title, members) for title, members in families(rules)]
    yield Heading("Rules", 1)
    yield Paragraph(
        "For everybody who has a finding: what each rule of `gpolicy check` means, and how to fix what it finds."
        " `gpolicy explain CODE` shows the same on the terminal. [Check a policy](../guides/check.md) says how to"
        " choose rules and to accept findings."
    )
    yield Table(
        ("family", "rules"),
        tuple(
            (Link(title, f"#{anchor(title)}", literal=False), f"{members[0].code} to {members[-1].code}")
            for title, members in by_family
        ),
    )
    for title, members in by_family:
        yield Heading(title)
        yield Table(("code", "name", "severity"), tuple(_row(info) for info in members))
        for info in members:
            yield Heading(_title(info), 3)
            yield Paragraph(f"Severity: {info.severity}.")
            yield from rule_blocks(info)


def _row(info: RuleInfo) -> tuple[Link | str, ...]:
    return Link(info.code, f"#{anchor(_title(info))}", literal=False), info.name, str(info.severity)


def _title(info: RuleInfo) -> str:
    return f"{info.code} {info.name}"
