"""docs/rules.md, generated from the rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.checking.explaining import families, settings_text
from gpolicy.findings import RuleInfo

_PAGE_HEAD: Final = """\
# Rules

What `gpolicy check` and `gpolicy plan` find. `gpolicy explain CODE` (or a rule's name) shows one of these on the
terminal. Only an error makes `gpolicy check` fail. Which rules count, how bad each is, and how a finding is accepted or
fixed, is in [check.md](check.md).

This page is made from the rules themselves.
"""


def rules_page(rules: Iterable[RuleInfo] = CATALOGUE) -> str:
    """Return docs/rules.md."""
    sections = [_PAGE_HEAD]
    for title, group in families(list(rules)):
        members = list(group)
        rows = [f"| [{info.code}](#{_anchor(info)}) | {info.name} | {info.severity} |" for info in members]
        sections.append("\n".join([f"## {title}\n", "| code | name | severity |", "|---|---|---|", *rows, ""]))
        sections += [_section(info) for info in members]
    return "\n".join(sections)


def _section(info: RuleInfo) -> str:
    parts = [
        f"### {info.code} {info.name}\n",
        f"**{info.severity}** · {_markdown(info.summary)}\n",
        f"{_markdown(info.rationale)}\n",
        f"Source: {_markdown(info.source)}.\n",
    ]
    parts += [f"`check --fix`: {_markdown(info.fix)}\n"] if info.fix else []
    parts += [f"Parameters, in gpolicy.toml:\n\n```toml\n{settings_text(info)}\n```\n"] if info.parameters else []
    parts += [f"Bad:\n\n```yaml\n{info.bad.rstrip()}\n```\n"] if info.bad else []
    parts += [f"Good:\n\n```yaml\n{info.good.rstrip()}\n```\n"] if info.good else []
    return "\n".join(parts)


def _anchor(info: RuleInfo) -> str:
    return f"{info.code} {info.name}".lower().replace(" ", "-")


def _markdown(text: str) -> str:
    """Return prose with what Markdown would read as markup escaped; backquoted words stay as they are."""
    parts = text.split("`")
    for place in range(0, len(parts), 2):
        parts[place] = "".join(f"\\{letter}" if letter in r"\*_<>[]" else letter for letter in parts[place])
    return "`".join(parts)
