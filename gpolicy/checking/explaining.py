"""What a rule means and how to fix its findings: for `gpolicy explain` and for docs/rules.md."""

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

_PAGE_HEAD: Final = """\
# Rules

What `gpolicy check` and `gpolicy plan` find. `gpolicy explain CODE` (or a rule's name) shows one of these on the
terminal. Only an error makes `gpolicy check` fail. Which rules count, how bad each is, and how a finding is accepted or
fixed, is in [check.md](check.md).

This page is made from the rules themselves.
"""


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
    parts += [f"Parameters, in gpolicy.toml:\n\n{textwrap.indent(_settings(info), '    ')}"] if info.parameters else []
    parts += [f"Bad:\n\n{textwrap.indent(info.bad.rstrip(), '    ')}"] if info.bad else []
    parts += [f"Good:\n\n{textwrap.indent(info.good.rstrip(), '    ')}"] if info.good else []
    return "\n\n".join(parts) + "\n"


def list_rules(rules: Iterable[RuleInfo] = CATALOGUE) -> str:
    """Return one line for each rule, by family."""
    rules = list(rules)
    width = max((len(info.name) for info in rules), default=0)
    blocks = []
    for title, members in _families(rules):
        lines = [f"  {info.code}  {info.name:<{width}}  {info.severity:<7}  {info.summary}" for info in members]
        blocks.append("\n".join([title, *lines]))
    return "\n\n".join(blocks) + "\n"


def rules_page(rules: Iterable[RuleInfo] = CATALOGUE) -> str:
    """Return docs/rules.md."""
    sections = [_PAGE_HEAD]
    families = [(title, list(members)) for title, members in _families(list(rules))]
    for title, members in families:
        rows = [f"| [{info.code}](#{_anchor(info)}) | {info.name} | {info.severity} |" for info in members]
        sections.append("\n".join([f"## {title}\n", "| code | name | severity |", "|---|---|---|", *rows, ""]))
        sections += [_section(info) for info in members]
    return "\n".join(sections)


def _families(rules: list[RuleInfo]) -> Iterator[tuple[str, Iterator[RuleInfo]]]:
    for prefix, members in groupby(rules, key=lambda info: info.code[:3]):
        yield FAMILIES.get(prefix, prefix), members


def _section(info: RuleInfo) -> str:
    parts = [
        f"### {info.code} {info.name}\n",
        f"**{info.severity}** · {_markdown(info.summary)}\n",
        f"{_markdown(info.rationale)}\n",
        f"Source: {_markdown(info.source)}.\n",
    ]
    parts += [f"`check --fix`: {_markdown(info.fix)}\n"] if info.fix else []
    parts += [f"Parameters, in gpolicy.toml:\n\n```toml\n{_settings(info)}\n```\n"] if info.parameters else []
    parts += [f"Bad:\n\n```yaml\n{info.bad.rstrip()}\n```\n"] if info.bad else []
    parts += [f"Good:\n\n```yaml\n{info.good.rstrip()}\n```\n"] if info.good else []
    return "\n".join(parts)


def _settings(info: RuleInfo) -> str:
    """Return the parameters of a rule with their defaults, as one would write them into the settings."""
    lines = [f"[rules.{info.name}]"]
    for parameter in info.parameters:
        bounds = f"{parameter.least:g} to {parameter.most:g}"
        lines.append(f"{parameter.name} = {parameter.default:g}  # {parameter.summary.rstrip('.')} ({bounds})")
    return "\n".join(lines)


def _anchor(info: RuleInfo) -> str:
    return f"{info.code} {info.name}".lower().replace(" ", "-")


def _filled(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def _markdown(text: str) -> str:
    """Return prose with what Markdown would read as markup escaped; backquoted words stay as they are."""
    parts = text.split("`")
    for place in range(0, len(parts), 2):
        parts[place] = "".join(f"\\{letter}" if letter in r"\*_<>[]" else letter for letter in parts[place])
    return "`".join(parts)
