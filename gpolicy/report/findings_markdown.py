"""Findings as Markdown, for a comment on a review: the worst first, each in one list item."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from gpolicy.findings import Finding, Severity
from gpolicy.report.budget import COMMENT_BUDGET
from gpolicy.report.findings_text import summary_line
from gpolicy.report.markdown import Block, Document, code, prose

MARKER: Final = "<!-- gpolicy check -->"


def findings_markdown(
    findings: Iterable[Finding], *, budget: int = COMMENT_BUDGET, fails: Callable[[Finding], bool] | None = None
) -> str:
    """Return findings as Markdown of at most `budget` bytes, marked so that a later run can replace the comment.

    `fails` says which findings make the check fail; errors, if it is not given.
    """
    found = sorted(findings, key=lambda finding: finding.severity.rank)
    bad = any(map(fails or _is_error, found))
    head = (MARKER, "### gpolicy check", "", f"{'❌' if bad else '✅'} **{summary_line(found)}**")
    blocks = [Block(name="", importance=100, head=head)]
    for severity in Severity:
        items = tuple(finding_items(finding for finding in found if finding.severity is severity))
        if items:
            name = "findings" if severity is Severity.INFO else f"{severity}s"
            blocks.append(Block(name=name, importance=10 - severity.rank, head=("",), items=items))
    return Document(blocks).text(budget)


def _is_error(finding: Finding) -> bool:
    return finding.severity is Severity.ERROR


def finding_items(findings: Iterable[Finding]) -> Iterator[str]:
    """Give each finding as an item of a list."""
    for finding in findings:
        place = f" {code(str(finding.span), 160)}" if finding.span else ""
        hint = f" *Hint:* {prose(finding.hint)}" if finding.hint else ""
        yield f"- **{finding.severity}** {finding.code} {prose(finding.name)}{place}: {prose(finding.message)}{hint}"
