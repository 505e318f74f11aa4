"""What a rule means and how to fix its findings: the text of `gpolicy explain`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

from gpolicy.checking.catalogue import CATALOGUE, FAMILIES, find_rule
from gpolicy.checking.selection import is_family, rules_named
from gpolicy.errors import UsageError
from gpolicy.findings import RuleInfo

WIDTH: Final = 100
"""Columns of the text that `explain` fills."""


def explain(word: str | None) -> str:
    """Return what there is to say about the rule that a word names, or the list of its family; None: of all rules."""
    if word is None:
        return list_rules()
    info, hint = find_rule(word)
    if info is not None:
        return explain_rule(info)
    family = rules_named(word)[0] if is_family(word) else ()
    if not family:
        raise UsageError(f"there is no rule {word!r}", hint=hint)
    return list_rules(family)


def explain_rule(info: RuleInfo) -> str:
    """Return what there is to say about one rule, as text."""
    parts = [
        f"{info.code} {info.name} ({info.severity})",
        _filled(info.summary),
        _filled(info.rationale),
        _filled(f"Source: {info.source}."),
    ]
    parts += [_filled(f"check --fix: {info.fix}")] if info.fix else []
    parts += (
        [f"Parameters, in gpolicy.toml:\n\n{textwrap.indent(settings_text(info), '    ')}"] if info.parameters else []
    )
    parts += [f"Bad:\n\n{textwrap.indent(info.bad.rstrip(), '    ')}"] if info.bad else []
    parts += [f"Good:\n\n{textwrap.indent(info.good.rstrip(), '    ')}"] if info.good else []
    return "\n\n".join(parts) + "\n"


def list_rules(rules: Iterable[RuleInfo] = CATALOGUE) -> str:
    """Return one line for each rule, by family."""
    rules = list(rules)
    width = max((len(info.name) for info in rules), default=0)
    blocks = []
    for title, members in families(rules):
        lines = [f"  {info.code}  {info.name:<{width}}  {info.severity:<7}  {info.summary}" for info in members]
        blocks.append("\n".join([title, *lines]))
    return "\n\n".join(blocks) + "\n"


def families(rules: list[RuleInfo]) -> Iterator[tuple[str, Iterator[RuleInfo]]]:
    """Yield the rules of each family under its title."""
    for prefix, members in groupby(rules, key=lambda info: info.code[:3]):
        yield FAMILIES.get(prefix, prefix), members


def settings_text(info: RuleInfo) -> str:
    """Return the parameters of a rule with their defaults, as one would write them into the settings."""
    lines = [f"[rules.{info.name}]"]
    for parameter in info.parameters:
        bounds = f"{parameter.least:g} to {parameter.most:g}"
        lines.append(f"{parameter.name} = {parameter.default:g}  # {parameter.summary.rstrip('.')} ({bounds})")
    return "\n".join(lines)


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
