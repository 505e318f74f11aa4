"""The installed real programs and ours, on fresh random clusters: no difference."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from .random_clusters import TEMPLATES, hail_request, hspace_options, random_cluster
from .recorded import call

HSPACE = shutil.which("hspace")
HTOOLS = Path(HSPACE).resolve() if HSPACE else Path("htools")
TIMEOUT = 20
"""Seconds that the real program may take; slower cases are counted and left out."""

pytestmark = [
    pytest.mark.htools,
    pytest.mark.skipif(
        HSPACE is None or not HTOOLS.exists(), reason="Debian's ganeti-htools (hspace, hail) is not installed"
    ),
]


def real(program: str, arguments: list[str], folder: Path) -> tuple[int, str, str] | None:
    """Run the real program; None if it takes too long."""
    environment = {**os.environ, "HTOOLS": program, "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            [str(HTOOLS), *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    return done.returncode, done.stdout, done.stderr


def placed(folder: Path, name: str) -> list[str]:
    """Return the rows of the placed instances, and of all nodes, of a saved state."""
    path = folder / name
    if not path.exists():
        return []
    sections = path.read_text().split("\n\n")
    path.unlink()
    return sections[1].splitlines() + sections[2].splitlines()


def compare(seed: int, folder: Path, most_nodes: int) -> str | None:
    """Compare one case; return what differs, None if nothing does, "slow" if the real one is too slow."""
    for old in folder.glob("saved.*"):
        old.unlink()
    rng = random.Random(seed)  # noqa: S311 - no secrets here
    template = rng.choice([*TEMPLATES, "drbd", "drbd", "drbd", "plain", "plain"])
    cluster = random_cluster(rng, template, most_nodes)
    (folder / "c.data").write_text(cluster.text)
    arguments = ["-t", "c.data", *hspace_options(rng, template), "-S", "saved"]
    if rng.random() < 0.9:
        arguments.append("--machine-readable")
    expected = real("hspace", arguments, folder)
    if expected is None:
        return "slow"
    rows = [placed(folder, f"saved.{kind}") for kind in ("tiered", "standard")]
    code, out, err = call("hspace", *arguments)
    if (code, out) != expected[:2]:
        return f"hspace {arguments}: exit {code}, expected {expected[0]}: {_first(out, expected[1])}"
    if code == 0 and err != expected[2]:
        return f"hspace {arguments}: stderr: {_first(err, expected[2])}"
    if [placed(folder, f"saved.{kind}") for kind in ("tiered", "standard")] != rows:
        return f"hspace {arguments}: saved states differ"
    request, options = hail_request(rng, template, cluster)
    (folder / "r.json").write_text(request)
    arguments = ["-t", "c.data", *options, "r.json"]
    expected = real("hail", arguments, folder)
    if expected is None:
        return "slow"
    if "IntMap" in expected[2]:
        return None if call("hail", *arguments)[0] == 1 else "hail: the original dies, ours does not"
    code, out, err = call("hail", *arguments)
    if (code, out) != expected[:2]:
        return f"hail {arguments}: {out!r}, expected {expected[1]!r} {expected[2]!r} {err!r}"
    return None


def _first(ours: str, theirs: str) -> str:
    pairs = zip(ours.splitlines(), theirs.splitlines(), strict=False)
    return next((f"{a!r} instead of {b!r}" for a, b in pairs if a != b), "one is longer")


def run_many(first: int, count: int, folder: Path, most_nodes: int) -> None:
    slow = 0
    for seed in range(first, first + count):
        difference = compare(seed, folder, most_nodes)
        if difference == "slow":
            slow += 1
        else:
            assert difference is None, f"seed {seed}: {difference}"
    print(f"{count} cases from seed {first}, {slow} of them too slow for the real program")  # noqa: T201


def fresh_seed() -> int:
    """Return a new seed, or the one in GPOLICY_SEED; it is printed so that a failure can be repeated."""
    seed = int(os.environ.get("GPOLICY_SEED") or random.SystemRandom().randrange(10**9))
    print(f"GPOLICY_SEED={seed}")  # noqa: T201
    return seed


def test_small_random_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_many(fresh_seed(), 150, tmp_path, 8)


def test_middle_sized_random_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_many(fresh_seed(), 15, tmp_path, 25)


def test_large_random_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_many(fresh_seed(), 8, tmp_path, 60)


@pytest.mark.full
def test_many_random_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_many(fresh_seed(), 3000, tmp_path, 10)
    run_many(fresh_seed(), 100, tmp_path, 60)
