"""The installed real programs, ours with the compiled engine and ours by the law, on fresh random questions: equal."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.htools.campaign import EACH, Chunk, in_child
from tests.htools.random_requests import BALANCE, FROM_DOCUMENT, KINDS, Case
from tests.htools.three_ways import EQUAL, INSTALLED, compare

pytestmark = [
    pytest.mark.htools,
    pytest.mark.skipif(not INSTALLED, reason="Debian's ganeti-htools (hspace, hail) is not installed"),
]

SLOW = {BALANCE, *FROM_DOCUMENT}
"""Kinds for which the real program takes minutes on 25 nodes."""


def run(kind: str, count: int, most_nodes: int, *, law_every: int = 0, seconds: float = 20.0) -> None:
    """Compare fresh cases, or those from the seed in GPOLICY_SEED on (printed, so that a failure can be repeated)."""
    first = int(os.environ.get("GPOLICY_SEED") or random.SystemRandom().randrange(10**9))
    print(f"GPOLICY_SEED={first}; one case: scripts/campaign --case KIND SEED --most-nodes {most_nodes}")  # noqa: T201
    found = in_child(Chunk(kind, first, count, most_nodes, law_every, seconds))
    print(found.counts)  # noqa: T201
    assert found.differences == []
    assert found.counts.get(EQUAL, 0) > count // (2 if count > 10 else 4)  # large ones are often too slow


def test_a_few_small_clusters() -> None:
    run(EACH, 8 * len(KINDS), 7, law_every=5, seconds=5.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_small_clusters(kind: str) -> None:
    run(kind, 25, 7, law_every=5, seconds=5.0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_middle_sized_clusters(kind: str) -> None:
    run(kind, 3, 13 if kind in SLOW else 25)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["hspace", "allocate", "allocate-secondary"])
def test_large_clusters(kind: str) -> None:
    run(kind, 4, 60)


@pytest.mark.parametrize("ratio", ["1" + "0" * 320, "Infinity", "NaN", "1e400"])
def test_a_ratio_that_nothing_exceeds(ratio: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--simulate=p,3,10g,1g,2,2", "--disk-template=drbd", "--machine-readable", f"--max-cpu={ratio}")
    assert compare(Case("hspace", 0, "hspace", options, ""), 60, law=True) == (EQUAL, "")


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_many_clusters(kind: str) -> None:
    run(kind, 3000, 10, law_every=10)
    run(kind, 100, 20 if kind in SLOW else 60)
