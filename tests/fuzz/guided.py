"""Feed one target with inputs that reach new code, by atheris (libFuzzer).

`python -m tests.fuzz.guided TARGET SECONDS CORPUS FOUND`.

For long runs by hand: `pip install atheris` first. The damage is that of `mutating.py`, chosen by what it reaches.
Inputs that reach new code are kept in CORPUS, inputs that end in a fault in FOUND; the run goes on behind a fault.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from pathlib import Path

import atheris  # type: ignore[import-untyped]

from tests.fuzz.feeding import fault_of, prepare, tell
from tests.fuzz.mutating import LONGEST, damaged
from tests.fuzz.targets import TARGETS

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)


def main() -> None:
    name, seconds, corpus, found = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
    target = TARGETS[name]
    with atheris.instrument_imports(include=["gpolicy", "yaml"]):
        seeds, words = target.seeds(), target.vocabulary()  # imports most of what is to be instrumented
        with tempfile.TemporaryDirectory() as scratch:
            for data in seeds:
                target.run(data, Path(scratch))
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(data)
    prepare()
    counts = {"inputs": 0, "faults": 0}
    begin, longest, known = time.monotonic(), 0.0, set[str]()
    scratch_directory = tempfile.TemporaryDirectory()

    def one(data: bytes) -> None:
        nonlocal longest
        counts["inputs"] += 1
        start = time.perf_counter()
        fault = fault_of(target, data, Path(scratch_directory.name))
        longest = max(longest, time.perf_counter() - start)
        if fault is not None:
            counts["faults"] += 1
            last = "\n".join(fault.splitlines()[-4:-1])  # where it was: one of a sort is enough
            if last not in known:
                known.add(last)
                (found / f"{name}-{len(known)}").write_bytes(data)
                tell({"target": name, "fault": fault})
        if counts["inputs"] % 1000 == 0 or time.monotonic() - begin > seconds - 2:
            said = {"target": name, **counts, "longest_seconds": round(longest, 2)}
            (found / f"{name}.json").write_text(json.dumps(said) + "\n")

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        if random.Random(seed).random() < 0.1:
            return bytes(atheris.Mutate(data, most))
        return damaged(data, seed, seeds, words)[:most]

    options = [f"-max_total_time={seconds}", "-timeout=120", "-rss_limit_mb=2500", f"-max_len={LONGEST}"]
    atheris.Setup([sys.argv[0], *options, "-print_final_stats=1", str(corpus)], one, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
