"""`init`, `adopt`, `snapshot` and `schema`: the verbs that write files."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from gpolicy.cli.checking import read
from gpolicy.cli.pager import write_long
from gpolicy.cli.terminal import complain, working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.printable import as_text, count

if TYPE_CHECKING:
    from gpolicy.cluster.sources import SourceOptions

_MOST_LEFT_OUT = 100  # lines on standard error


def init(directory: Path, name: str) -> int:
    """Write the starter policy."""
    from gpolicy.starter.starter_policy import starter_files  # noqa: PLC0415
    from gpolicy.writing.new_files import write_files  # noqa: PLC0415

    written = write_files(starter_files(name), directory)
    sys.stdout.write(as_text([*(f"wrote {path}" for path in written), f"next: gpolicy check {directory}"]))
    return int(ExitCode.FINE)


def adopt(src: str | None, output: Path, options: SourceOptions) -> int:
    """Write the policy of a cluster; report on standard error what it leaves out."""
    from gpolicy.adopt.adopting import adopt as make  # noqa: PLC0415
    from gpolicy.writing.new_files import write_files  # noqa: PLC0415

    state = read(src, options)
    with working(f"writing the policy of {state.name}"):
        adopted = make(state)
    written = write_files(adopted.files, output)
    sys.stdout.write(as_text(f"wrote {path}" for path in written))
    for left in adopted.left_out[:_MOST_LEFT_OUT]:
        complain(f"left out {left}", None)
    if len(adopted.left_out) > _MOST_LEFT_OUT:
        more = len(adopted.left_out) - _MOST_LEFT_OUT
        complain(f"left out {more} more: comments in the written files name them all", None)
    option = f" --state {quote(src)}" if src else ""
    sys.stdout.write(as_text([f"next: gpolicy plan {quote(str(output))}{option}  (which has no changes yet)"]))
    return int(ExitCode.FINE)


def snapshot(src: str | None, output: Path, options: SourceOptions) -> int:
    """Write a snapshot of a cluster."""
    from gpolicy.cluster.snapshot import write_snapshot  # noqa: PLC0415

    taken_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    state = read(src, options)
    write_snapshot(state, output, taken_at=taken_at)
    kinds = (("group", state.groups), ("node", state.nodes), ("instance", state.instances))
    counts = ", ".join(count(len(objects), kind) for kind, objects in kinds)
    following = f"next: gpolicy plan POLICY --state {quote(f'snapshot:{output}')}"
    sys.stdout.write(as_text([f"wrote {output}: cluster {state.name}, {counts}", following]))
    for note in state.notes:
        complain(note, None)
    return int(ExitCode.FINE)


def schema(kind: str | None, output: Path | None) -> int:
    """Print a schema, or write all of them."""
    from gpolicy.cluster.private_file import write_public  # noqa: PLC0415
    from gpolicy.data import data_directory  # noqa: PLC0415
    from gpolicy.policy.kinds import KINDS  # noqa: PLC0415
    from gpolicy.policy.schema_files import file_name  # noqa: PLC0415

    if kind is not None:
        known = {name.lower(): name for name in KINDS}
        if kind.lower() not in known:
            raise UsageError(f"there is no kind `{kind}`", hint=did_you_mean_one_of(kind, "kinds", KINDS))
        kind = known[kind.lower()]
    directory = data_directory("schemas")
    names = [*(file_name(each) for each in KINDS), "policy.json", "gpolicy-toml.json"]
    if output is None:
        text = (directory / (file_name(kind) if kind else "policy.json")).read_text(encoding="utf-8")
        write_long(json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n")
        return int(ExitCode.FINE)
    output.mkdir(parents=True, exist_ok=True)
    for name in names:
        write_public(output / name, (directory / name).read_bytes())
        sys.stdout.write(as_text([f"wrote {output / name}"]))
    return int(ExitCode.FINE)
