"""Which release of Ganeti a cluster is judged by, and what is said where gpolicy does not know its own."""

from __future__ import annotations

import pytest

from gpolicy.ganeti.releases import release_of, unknown_release

OLDER = "ganeti_version of the policy, or by 3.0"


@pytest.mark.parametrize(
    ("running", "by", "said"),
    [
        ("3.0.2", "3.0", ""),
        ("3.1.0~rc2", "3.1", ""),
        ("2.15", "2.15", ""),
        (None, None, ""),
        ("3.3.0", "3.2", "the cluster runs Ganeti 3.3.0; gpolicy knows up to 3.2 and judges by that"),
        (
            "3.2.0~alpha1",
            "3.2",
            "the cluster runs Ganeti 3.2.0~alpha1; gpolicy knows 3.2 from the source of 3.2.0~alpha1 only",
        ),
        (
            "2.17.1",
            "2.16",
            "the cluster runs Ganeti 2.17.1; gpolicy knows 2.15, 2.16, 3.0, 3.1, 3.2 and judges by 2.16",
        ),
        (
            "2.12.6",
            None,
            f"the cluster runs Ganeti 2.12.6; gpolicy knows 2.15, 2.16, 3.0, 3.1, 3.2 and judges by {OLDER}",
        ),
    ],
)
def test_an_unknown_release_is_named(running: str | None, by: str | None, said: str) -> None:
    assert (release_of(running), unknown_release(running)) == (by, said)
