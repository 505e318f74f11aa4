"""What stderr says with `-v`, `-v -v`, `-v -v -v` and `-p` is what the real programs say."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from .random_clusters import TEMPLATES, hail_request, hspace_options, random_cluster
from .recorded import Case, call, load_cases, unpack
from .test_live_differential import HSPACE, HTOOLS, fresh_seed, real

if TYPE_CHECKING:
    from pathlib import Path

CASES = {
    (name, case["seed"]): case
    for name in ("hspace-hail-score.jsonl.gz", "evacuation.jsonl.gz")
    for case in load_cases(name)
}


@pytest.mark.parametrize(
    "recorded", load_cases("verbose.jsonl.gz"), ids=lambda recorded: f"{recorded['program']}-{recorded['seed']}"
)
def test_stderr_is_the_recorded_one(recorded: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unpack(CASES[recorded["cases"], recorded["seed"]], tmp_path)
    monkeypatch.chdir(tmp_path)
    code, _, err = call(recorded["program"], *recorded["args"])
    assert (code, err) == (recorded["code"], recorded["stderr"])


@pytest.mark.htools
@pytest.mark.skipif(HSPACE is None or not HTOOLS.exists(), reason="Debian's ganeti-htools is not installed")
def test_stderr_on_random_clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = fresh_seed()
    for seed in range(first, first + 40):
        rng = random.Random(seed)  # noqa: S311 - no secrets here
        template = rng.choice(TEMPLATES)
        cluster = random_cluster(rng, template, 6)
        request, options = hail_request(rng, template, cluster)
        (tmp_path / "c.data").write_text(cluster.text)
        (tmp_path / "r.json").write_text(request)
        verbose = ["-v"] * rng.randrange(4)
        table = rng.choice([[], ["-p"], ["-pname,rmem,scnt"]])  # of hail it leaves nodes out on a dedicated cluster
        commands = {
            "hspace": ["-t", "c.data", *hspace_options(rng, template), *verbose, *table, "-l", "3"],
            "hail": [*rng.choice([[], ["-t", "c.data"]]), *options, *verbose, "r.json"],
        }
        for program, arguments in commands.items():
            expected = real(program, arguments, tmp_path)
            if expected is None or "IntMap" in expected[2] or "Prelude" in expected[2]:
                continue  # too slow, or the original dies
            assert call(program, *arguments) == expected, f"seed {seed}: {program} {arguments}"
