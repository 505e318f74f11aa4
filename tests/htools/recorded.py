"""Access to the recorded answers of the real programs."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from pathlib import Path
from typing import Any

from gpolicy import htools

DATA = Path(__file__).parent.parent / "data" / "allocator"
Case = dict[str, Any]


def load_cases(name: str) -> list[Case]:
    """Return the cases of a gzipped JSON-lines file."""
    with gzip.open(DATA / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def unpack(case: Case, folder: Path) -> None:
    """Write a case's input files to `folder` under the names that its arguments use."""
    (folder / f"{case['seed']}.data").write_text(case["data"], encoding="utf-8")
    (folder / f"{case['seed']}.request.json").write_text(case["request"], encoding="utf-8")


def call(*argv: str) -> tuple[int, str, str]:
    """Run one of the programs in this process; return exit code, stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = htools.run(list(argv))
    return code, out.getvalue(), err.getvalue()
