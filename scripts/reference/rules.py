"""docs/reference/rules.md, from the rules themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import ndiff
from typing import Final

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.findings import RuleInfo, Severity
from gpolicy.reference.blocks import Heading, PageBlock, PageListing, PageTable
from gpolicy.reference.explaining import families, settings_text, state_need
from scripts.reference.markdown import Link, anchor

_SEVERITIES: Final = {
    Severity.ERROR: (
        (
            "Ganeti, htools or gpolicy refuses it, or it breaks what runs; or it cannot be meant: two values exclude"
            " each other, a name occurs twice, or is the name of nothing (a group, spec, node, base, file or rule)."
        ),
        "No plan is made. Findings of a rule that stays cannot be accepted.",
    ),
    Severity.WARNING: (
        (
            "Ganeti accepts it. Most likely it is not what you mean, it never works, or it harms later. Also a tag or a"
            " pattern that nothing matches: the cluster may have what the policy does not show. A comment is never an"
            " error."
        ),
        "A plan is made, and shows it.",
    ),
    Severity.INFO: (
        "It is what you write, and often on purpose; but it has no effect, or one that is easily overlooked.",
        "A plan is made.",
    ),
}


def rules_page(rules: Iterable[RuleInfo] = CATALOGUE) -> Iterator[PageBlock]:
    """Yield what severities mean and the families, then each family with its rules."""
    known = list(rules)
    by_family = list(families(known))
    yield Heading("Rules", 1)
    yield (
        "For everybody who has a finding: what each rule of `gpolicy check` means, and how to fix what it finds."
        " In the examples, `-` marks what the rule finds, and `+` what it does not; `gpolicy explain CODE` shows whole"
        " policies. [Check a policy](../guides/check.md) says how to choose rules, to accept findings, and to change"
        " severities."
    )
    yield PageTable(
        ("family", "rules"),
        tuple(
            (Link(title, f"#{anchor(title)}", literal=False), f"{members[0].code} to {members[-1].code}")
            for title, members in by_family
        ),
    )
    yield Heading("Severities")
    yield PageTable(
        ("severity", "rules", "consequence", "meaning"),
        tuple(
            (str(severity), str(sum(info.severity is severity for info in known)), consequence, meaning)
            for severity, (meaning, consequence) in _SEVERITIES.items()
        ),
    )
    for title, members in by_family:
        yield Heading(title)
        yield PageTable(("code", "severity", "finding"), tuple(_row(info) for info in members))
        for info in members:
            yield Heading(_title(info), 3)
            yield from _blocks(info)


def _row(info: RuleInfo) -> tuple[str, ...]:
    return Link(info.code, f"#{anchor(_title(info))}", literal=False), _severity(info), info.text.summary


def _severity(info: RuleInfo) -> str:
    return f"{info.severity}, stays" if info.stays else str(info.severity)


def _title(info: RuleInfo) -> str:
    return f"{info.code} {info.name}"


def _blocks(info: RuleInfo) -> Iterator[PageBlock]:
    text = info.text
    fix = f" `check --fix`: {text.fix}" if text.fix else ""
    need = state_need(info)
    yield f"{text.rationale}{f' {need}' if need else ''}{fix}"
    if info.parameters:
        yield PageListing(settings_text(info), "toml")
    if text.bad and text.good:
        yield PageListing(_difference(text.bad, text.good), "diff")


def _difference(bad: str, good: str) -> str:
    """Return the lines in which two policies differ; the whole bad one if the rule needs a cluster to find it."""
    lines = [line for line in ndiff(bad.splitlines(), good.splitlines()) if not line.startswith("?")]
    changed = [line for line in lines if line[0] in "+-"]
    return "\n".join(changed) if changed else "\n".join(f"  {line}" for line in bad.splitlines())
