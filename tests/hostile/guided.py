"""Feed one target with inputs that reach new code, by atheris (libFuzzer).

`python -m tests.hostile.guided TARGET SECONDS CORPUS FOUND`, for long runs by hand: `pip install atheris` first.
The damage is that of `damage.py`, chosen by what it reaches. Inputs that reach new code are kept in CORPUS, inputs that
end in a fault in FOUND, one of a sort; the run goes on behind a fault.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-untyped]

from tests.hostile.bounded import answer_of
from tests.hostile.damage import LONGEST, damaged
from tests.hostile.targets import TARGETS

# ruff: noqa: S311 (chance is for finding mistakes here, not for secrets)


def main() -> None:
    name, seconds, corpus, found = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
    target, scratch = TARGETS[name], tempfile.TemporaryDirectory()
    sound, words, known = target.sound(), target.words(), set[str]()
    with atheris.instrument_imports(include=["gpolicy", "yaml"]):
        for data in sound:  # it imports most of what is to be instrumented
            target.run(data, Path(scratch.name))
    for folder in (corpus, found):
        folder.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(sound):
        (corpus / f"sound-{number}").write_bytes(data)

    def feed(data: bytes) -> None:
        fault = answer_of(name, data.decode("latin-1"), Path(scratch.name)).get("fault", "")
        where = "\n".join(fault.splitlines()[-4:-1])
        if fault and where not in known:
            known.add(where)
            (found / f"{name}-{len(known)}").write_bytes(data)
            sys.stdout.write(f"{fault}\n")

    def change(data: bytes, most: int, seed: int) -> bytes:
        if random.Random(seed).random() < 0.1:
            return bytes(atheris.Mutate(data, most))
        return damaged(data, seed, sound, words)[:most]

    limits = [f"-max_total_time={seconds}", "-timeout=120", "-rss_limit_mb=2500", f"-max_len={LONGEST}"]
    atheris.Setup([sys.argv[0], *limits, "-print_final_stats=1", str(corpus)], feed, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
