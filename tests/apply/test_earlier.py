"""What the journal of an earlier run allows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.apply.journals import history_for
from gpolicy.errors import RequestError
from tests.apply.test_journal import DONE, END, JOB, STARTED, lines
from tests.plan.planned import cluster, plan_for

PLAN = replace(plan_for(cluster(), "Cluster\nname: cluster.example.org\nmax_running_jobs: 3"), digest="sha256:1")
OTHER = replace(PLAN, digest="sha256:2")


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    file = tmp_path / "plan.journal"
    file.write_bytes(lines(STARTED, JOB, DONE, END))
    return file


@pytest.mark.parametrize(("resume", "rollback"), [(True, False), (False, True)])
def test_a_run_goes_on_from_its_own_journal(journal: Path, *, resume: bool, rollback: bool) -> None:
    history = history_for(PLAN, journal, resume=resume, rollback=rollback)
    assert history is not None
    assert history.ended == "failed"
    with pytest.raises(RequestError, match="is the journal of another plan"):
        history_for(OTHER, journal, resume=resume, rollback=rollback)
    with pytest.raises(RequestError, match=f"nothing to {'resume' if resume else 'roll back'}"):
        history_for(PLAN, journal.with_name("none"), resume=resume, rollback=rollback)


def test_a_first_run_needs_a_journal_of_its_own(journal: Path) -> None:
    assert history_for(PLAN, journal.with_name("none"), resume=False, rollback=False) is None
    with pytest.raises(RequestError, match=r"was applied before \(its last run ended: failed\)") as caught:
        history_for(PLAN, journal, resume=False, rollback=False)
    assert caught.value.hint == "resume continues it, rollback undoes it; or make a fresh plan"
    other = history_for(OTHER, journal, resume=False, rollback=False)
    assert other is not None
    assert other.plan_digest == PLAN.digest
