"""What `check` found as an answer, for Markdown and HTML: its text has a form of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpolicy.colour import Tone
from gpolicy.findings import Finding, Severity
from gpolicy.policy.source_file import Files
from gpolicy.report.answer import Answer, Figure, Findings, Section
from gpolicy.report.findings_json import summary
from gpolicy.report.findings_text import TONES, summary_line


def findings_answer(
    findings: Iterable[Finding],
    sources: Files,
    *,
    fails: Callable[[Finding], bool],
    locate: Callable[[str], str] = str,
) -> Answer:
    """Return findings as an answer, the worst first. `fails` says which of them make the check fail."""
    found = tuple(sorted(findings, key=lambda finding: finding.severity.rank))
    return Answer(
        verb="check",
        title="gpolicy check",
        name="",
        verdict=summary_line(found),
        tone=Tone.BAD if any(map(fails, found)) else Tone.GOOD,
        figures=tuple(
            Figure(word, f"{number:,}", tone=TONES[Severity(word)] if number else Tone.GOOD, about="findings")
            for word, number in summary(found).items()
        ),
        sections=(Section("findings", "Findings", (Findings(found, sources, locate),)),),
    )
