"""Snapshots of many clusters in one directory: `DIR/CLUSTER/TIME.json`, the newest last by name."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Final

from gpolicy.errors import InputError

NAME: Final = re.compile(r"[0-9]{8}T[0-9]{6}Z\.json", re.ASCII)
_TIME: Final = "%Y%m%dT%H%M%SZ.json"


def snapshot_file(directory: Path, cluster: str, taken_at: time.struct_time) -> Path:
    """Return the file for a new snapshot (UTC) of a cluster; make its directory.

    Raise InputError if there is a later one: it would count as the newest, and `prune_snapshots` keep it instead.
    """
    file = directory / cluster / time.strftime(_TIME, taken_at)
    if later := [path for path in snapshots_of(directory, cluster) if path.name > file.name]:
        hint = "correct the clock, or remove the snapshots that a wrong clock has named"
        raise InputError(f"{later[-1]}: is of a time to come, so no new snapshot was written", hint=hint)
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def snapshots_of(directory: Path, cluster: str) -> list[Path]:
    """Return the snapshots of a cluster, the oldest first."""
    try:
        return sorted(path for path in (directory / cluster).iterdir() if NAME.fullmatch(path.name))
    except OSError:
        return []


def newest_snapshot(directory: Path, cluster: str) -> Path:
    """Return the newest snapshot of a cluster. Raise InputError if there is none."""
    found = snapshots_of(directory, cluster)
    if not found:
        hint = f"`gpolicy snapshot --all -o {directory}` writes them"
        raise InputError(f"{directory / cluster}: no snapshot of the cluster {cluster}", hint=hint)
    return found[-1]


def prune_snapshots(directory: Path, cluster: str, keep: int) -> list[Path]:
    """Remove all but the newest `keep` snapshots of a cluster, and return those removed. Other files stay."""
    gone = snapshots_of(directory, cluster)[:-keep]
    for path in gone:
        path.unlink(missing_ok=True)
    return gone
