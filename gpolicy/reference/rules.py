"""What there is to say of a rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from gpolicy.checking.catalogue import FAMILIES, RULES
from gpolicy.findings import RuleInfo
from gpolicy.reference.blocks import Block, PageListing, Paragraph


def rule_blocks(info: RuleInfo) -> Iterator[Block]:
    """Yield what there is to say of a rule below its title."""
    yield Paragraph(info.summary)
    yield Paragraph(info.rationale)
    if need := state_need(info):
        yield Paragraph(need)
    if info.source != "gpolicy":
        yield Paragraph(f"Source: {info.source}.")
    if info.fix:
        yield Paragraph(f"`check --fix`: {info.fix}")
    if info.parameters:
        yield Paragraph("Parameters, in gpolicy.toml:")
        yield PageListing(settings_text(info), "toml")
    for title, example in (("Bad:", info.bad), ("Good:", info.good)):
        if example:
            yield Paragraph(title)
            yield PageListing(example, "yaml")


def state_need(info: RuleInfo) -> str:
    """Return what a rule has of a cluster's state; nothing where it needs none."""
    return _STATE_NEEDS.get(info.code, "")


_STATE_NEEDS: Final = {
    rule.info.code: "It runs only with a cluster's state (`--state SRC`)."
    if rule.needs_state
    else "With a cluster's state (`--state SRC`) it finds more."
    for rule in RULES
    if rule.needs_state or rule.finds_more_with_state
}


def families(rules: Iterable[RuleInfo]) -> Iterator[tuple[str, list[RuleInfo]]]:
    """Yield the title of each family, and its rules."""
    for prefix, members in groupby(rules, key=lambda info: info.code[:3]):
        yield FAMILIES.get(prefix, prefix), list(members)


def settings_text(info: RuleInfo) -> str:
    """Return the parameters of a rule with their defaults, as one would write them into the settings."""
    lines = [f"[rules.{info.name}]"]
    for parameter in info.parameters:
        bounds = f"{parameter.least:g} to {parameter.most:g}"
        lines.append(f"{parameter.name} = {parameter.default:g}  # {parameter.summary.rstrip('.')} ({bounds})")
    return "\n".join(lines)
