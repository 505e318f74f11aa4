"""One slip is one finding: it stands at the slip, with its cure, and what follows is told with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rules.slips_elsewhere import OTHERS
from tests.rules.slips_in_lists_of_nodes import OF_NODES
from tests.rules.slips_in_sizes import OF_SIZES
from tests.rules.test_slips_between_documents import bad

CURES = OF_SIZES | OF_NODES | OTHERS
"""Policies with one slip: the code of the only finding, the text at its place, its hint, and what follows from it."""


@pytest.mark.parametrize("name", CURES)
def test_a_finding_stands_at_the_slip_with_its_cure(name: str, tmp_path: Path) -> None:
    text, code, place, hint, following = CURES[name]
    (found,) = bad(text, tmp_path)
    assert (found.code, [item.code for item in found.consequences]) == (code, following)
    assert found.span is not None
    written = text.splitlines()[found.span.line - 1][found.span.column - 1 : found.span.end_column - 1]
    assert (written, hint in found.hint) == (place, True), found.hint
    assert "meant? Else" not in found.hint or "meant?" in hint or not hint, found.hint
