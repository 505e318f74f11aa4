"""Feed one target with damaged inputs: `feeding.py TARGET INPUTS FIRST-SEED DIRECTORY`, in a process of its own.

The process may take 2 GiB of memory and each input a few seconds; what breaks that, or ends in anything but findings
or one of gpolicy's own errors, is written to DIRECTORY/TARGET-SEED and told on standard output, one JSON a line.
The last line counts.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

from tests.fuzz.mutating import damaged
from tests.fuzz.patience import TooSlow, within
from tests.fuzz.targets import TARGETS, Target

MEMORY = 2 * 1024**3  # bytes of address space
_MOST_FAULTS = 20


def main() -> int:
    name, inputs, first, directory = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    target = TARGETS[name]
    seeds, words = target.seeds(), target.vocabulary()
    prepare()
    faults, longest = 0, 0.0
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for seed in range(first, first + inputs):
            data = damaged(seeds[seed % len(seeds)], seed, seeds, words)
            begin = time.perf_counter()
            fault = fault_of(target, data, Path(scratch))
            longest = max(longest, time.perf_counter() - begin)
            if fault is not None:
                faults += 1
                (directory / f"{name}-{seed}").write_bytes(data)
                tell({"target": name, "seed": seed, "fault": fault})
                if faults >= _MOST_FAULTS:
                    break
    peak = most_memory() // 1024
    done = seed - first + 1 if inputs else 0
    tell({"target": name, "inputs": done, "faults": faults, "longest_seconds": round(longest, 2), "peak_MiB": peak})
    return int(bool(faults))


def most_memory() -> int:
    """Return the most KiB that this process has held. (ru_maxrss counts what held them before it began as well.)"""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0])


def prepare() -> None:
    """Bound this process: memory, and no core files."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def fault_of(target: Target, data: bytes, scratch: Path) -> str | None:
    """Run `target` on `data`; return what went wrong, None if nothing did."""
    try:
        with within(target.seconds):
            target.run(data, scratch)
    except (Exception, TooSlow, SystemExit) as error:  # noqa: BLE001 (whatever it is, it is a fault)
        frames = traceback.format_exception(error, limit=-6)
        return "".join(frames)[-2500:]
    return None


def tell(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
