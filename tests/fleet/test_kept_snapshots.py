"""Snapshots of many clusters in one directory."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpolicy.errors import InputError
from gpolicy.fleet.kept_snapshots import newest_snapshot, prune_snapshots, snapshot_file, snapshots_of


def test_the_newest_counts_and_only_old_ones_go(tmp_path: Path) -> None:
    files = [snapshot_file(tmp_path, "ham", time.gmtime(86_400 * day)) for day in range(5)]
    for file in (*files, tmp_path / "ham" / "mine.json", tmp_path / "ham" / "19700101T000000Z.json.bak"):
        file.touch()
    assert [file.name for file in files][:2] == ["19700101T000000Z.json", "19700102T000000Z.json"]
    assert newest_snapshot(tmp_path, "ham") == files[-1]
    assert prune_snapshots(tmp_path, "ham", 2) == files[:3]
    assert snapshots_of(tmp_path, "ham") == files[3:]
    assert max(path.name for path in (tmp_path / "ham").iterdir()) == "mine.json"
    assert prune_snapshots(tmp_path, "ham", 2) == []


def test_a_snapshot_of_a_time_to_come_is_named_and_none_is_written_that_would_count_as_older(tmp_path: Path) -> None:
    later = snapshot_file(tmp_path, "ham", time.gmtime(2**32))
    later.touch()
    with pytest.raises(InputError, match=r"Z\.json: is of a time to come, so no new snapshot") as caught:
        snapshot_file(tmp_path, "ham", time.gmtime(86_400))
    assert "correct the clock" in (caught.value.hint or "")
    assert snapshot_file(tmp_path, "ham", time.gmtime(2**32)) == later


def test_no_snapshot_is_an_error_that_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no snapshot of the cluster ham") as caught:
        newest_snapshot(tmp_path, "ham")
    assert "gpolicy snapshot --all -o" in (caught.value.hint or "")
