"""Errors name their subject."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.analysis.capacity import capacity
from gpolicy.cluster.sources import read_state
from gpolicy.errors import GpolicyError, about
from gpolicy.suggest.suggesting import suggest
from gpolicy.suggest.suggestion import SuggestRequest


@pytest.mark.parametrize(
    ("where", "shown"),
    [("local:", "local: gone"), ("snapshot:a.json", "snapshot:a.json: gone"), ("ssh://m:22", "ssh://m:22: gone")],
)
def test_a_source_that_ends_in_a_colon_gets_no_second_one(where: str, shown: str) -> None:
    assert about(where, "gone") == shown


def test_what_a_cluster_read_on_its_master_does_not_show_is_said_with_one_colon() -> None:
    recorded = Path(__file__).parent / "data/clusters/full/config.data"
    state = replace(read_state(f"config:{recorded}"), source="local:")
    for asked in (lambda: capacity(state), lambda: suggest(state, SuggestRequest())):
        with pytest.raises(GpolicyError, match=r"^local: not known for group default: node1, .* show no memory"):
            asked()
