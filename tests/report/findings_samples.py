"""Findings for the reports: some by hand, and any at all for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from gpolicy.checking.catalogue import CATALOGUE
from gpolicy.findings import Edit, Finding, Fix, Related, Severity, Span

PLACE = Span("policies/gold.yaml", 3, 7, 3, 11)
OVERLAP = Finding(
    "GP201",
    "spec-overlap",
    Severity.ERROR,
    "small overlaps large",
    PLACE,
    "move a bound",
    (Related(Span("policies/silver.yaml", 1, 2, 1, 5), "large is here"),),
    Fix("lower the bound", (Edit(Span("policies/gold.yaml", 3, 9, 3, 11), "12G"),)),
)
WITHOUT_PLACE = Finding("GP601", "last-group", Severity.INFO, "nothing to point at")

_NUMBERS = st.integers(1, 10**6)
_TEXT = st.text(max_size=30)
FILES = st.sampled_from(["a.yaml", "b/ä c.yaml", "c:d%.yaml", "bytes\udcff.yaml"])
SPANS = st.builds(Span, FILES, _NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS)
FIXES = st.builds(Fix, _TEXT, st.lists(st.builds(Edit, SPANS, _TEXT), min_size=1, max_size=3).map(tuple))
FINDINGS = st.builds(
    lambda info, severity, message, span, hint, related, fix: Finding(
        info.code, info.name, severity, message, span, hint, related, fix
    ),
    st.sampled_from(CATALOGUE),
    st.sampled_from(Severity),
    st.text(min_size=1, max_size=30),
    st.none() | SPANS,
    _TEXT,
    st.lists(st.builds(Related, SPANS, _TEXT), max_size=3).map(tuple),
    st.none() | FIXES,
)
"""Any finding of any existing rule."""
