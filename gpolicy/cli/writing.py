"""`init`, `adopt`, `snapshot` and `schema`: the verbs that write files."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from gpolicy.cli.output import Report
from gpolicy.cli.pager import write_long
from gpolicy.cli.targets import Target, run
from gpolicy.cli.terminal import complain, working
from gpolicy.errors import ExitCode, InputError, UsageError
from gpolicy.ganeti.releases import unknown_release
from gpolicy.guessing import did_you_mean_one_of
from gpolicy.printable import as_text, count, some
from gpolicy.provenance import FORM
from gpolicy.report.answer import Answer
from gpolicy.report.forms import Display

if TYPE_CHECKING:
    from gpolicy.cli.options import Clusters
    from gpolicy.cluster.state import ClusterState
    from gpolicy.writing.written import NotWritten

_MOST_LEFT_OUT = 100  # lines on standard error


def init(directory: Path, name: str) -> int:
    """Write the starter policy."""
    from gpolicy.starter.starter_policy import starter_files  # noqa: PLC0415
    from gpolicy.writing.new_files import write_files  # noqa: PLC0415

    written = write_files(starter_files(name), directory)
    sys.stdout.write(as_text([*(f"wrote {path}" for path in written), f"next: gpolicy check {directory}"]))
    return int(ExitCode.FINE)


def adopt(asked: Clusters, output: Path) -> int:
    """Write the policies of clusters, or what those lack that are there; report on standard error what is left out."""
    return run(partial(_adopted, output=output, src=asked.state), asked, None, Display(), verb="adopt")


def _adopted(target: Target, output: Path, src: str | None) -> Report:
    from gpolicy.adopt.adopting import adopt as make  # noqa: PLC0415
    from gpolicy.writing.new_files import write_files  # noqa: PLC0415

    state = target.read()
    if unknown := unknown_release(state.software_version):
        complain(unknown, None)
    directory = output / target.name if target.several else output
    if _has_policy(directory):
        return _adopted_new(directory, state)
    with working(f"writing the policy of {state.title}"):
        adopted = make(state)
    written = write_files(adopted.files, directory)
    _say_left_out(adopted.left_out)
    address = target.name or src
    option = f" --state {quote(address)}" if address else ""
    following = f"next: gpolicy plan {quote(str(directory))}{option}  (which has no changes yet)"
    what = f"wrote {count(len(written), 'file')} to {directory}"
    return _written("adopt", [f"wrote {path}" for path in written], what, following)


def _has_policy(directory: Path) -> bool:
    from gpolicy.policy.files import policy_files  # noqa: PLC0415

    try:
        return directory.is_dir() and bool(policy_files(directory))
    except InputError:
        return False


def _adopted_new(directory: Path, state: ClusterState) -> Report:
    """Add to a policy what it lacks of the cluster's groups and nodes."""
    from gpolicy.adopt.adding import adopt_new  # noqa: PLC0415
    from gpolicy.cli.checking import checked_policy, reader_today  # noqa: PLC0415
    from gpolicy.fleet.choosing import other_policies  # noqa: PLC0415
    from gpolicy.writing.replacing import replace_drafted  # noqa: PLC0415

    policy = checked_policy(directory, state).sound()
    with working(f"adding what is new in {state.title}"):
        addition = adopt_new(policy, state, reader_today(), other_policies(directory))
    replace_drafted(policy, addition.texts)
    _say_left_out(addition.left_out)
    lines = [f"wrote {name}" for name in sorted(addition.texts)]
    what = f"added to {directory}: {some(addition.added)}" if addition.added else f"nothing is new for {directory}"
    return _written("adopt", [*lines, what], what, f"next: gpolicy check {quote(str(directory))}")


def _say_left_out(left_out: Sequence[NotWritten]) -> None:
    for left in left_out[:_MOST_LEFT_OUT]:
        complain(f"left out {left}", None)
    if len(left_out) > _MOST_LEFT_OUT:
        more = len(left_out) - _MOST_LEFT_OUT
        complain(f"left out {more} more: comments in the written files name them all", None)


def snapshot(asked: Clusters, output: Path, *, keep: int | None, volumes: bool) -> int:
    """Write snapshots of clusters."""
    work = partial(_snapshot, output=output, keep=keep)
    return run(work, asked, None, Display(), verb="snapshot", volumes=volumes)


def _snapshot(target: Target, output: Path, *, keep: int | None) -> Report:
    from gpolicy.cluster.snapshot import write_snapshot  # noqa: PLC0415
    from gpolicy.fleet.kept_snapshots import prune_snapshots, snapshot_file  # noqa: PLC0415

    if keep is not None and not target.several:
        raise UsageError("--keep is for several clusters", hint="say --all or --label KEY=VALUE as well")
    now = time.gmtime()
    state = target.read()
    path = snapshot_file(output, target.name, now) if target.several else output
    write_snapshot(state, path, taken_at=time.strftime(FORM, now))
    if keep is not None:
        prune_snapshots(output, target.name, keep)
    kinds = (("group", state.groups), ("node", state.nodes), ("instance", state.instances))
    counts = ", ".join(count(len(objects), kind) for kind, objects in kinds)
    for note in state.notes:
        complain(note, None)
    following = f"next: gpolicy plan POLICY --state {quote(f'snapshot:{path}')}"
    what = f"wrote {path}: cluster {state.title}, {counts}"
    return _written("snapshot", [what], what, following)


def _written(verb: str, lines: Sequence[str], what: str, following: str) -> Report:
    """Return a report of files that were written: each with a line for one cluster, or what they are in a table."""
    return Report(
        exit_code=int(ExitCode.FINE),
        answer=lambda: Answer(verb=verb, title=verb, name="", verdict=what),
        own={"text": lambda: as_text(lines)},
        following=(following,),
    )


def schema(kind: str | None, output: Path | None) -> int:
    """Print a schema, or write all of them."""
    from gpolicy.cluster.private_file import write_public  # noqa: PLC0415
    from gpolicy.data import data_directory  # noqa: PLC0415
    from gpolicy.policy.kinds import KINDS  # noqa: PLC0415
    from gpolicy.policy.schema_files import file_name  # noqa: PLC0415
    from gpolicy.policy.schema_kinds import WHOLE, whole_schema  # noqa: PLC0415

    if kind is not None:
        known = {name.lower(): name for name in KINDS}
        if kind.lower() not in known:
            raise UsageError(f"there is no kind `{kind}`", hint=did_you_mean_one_of(kind, "kinds", KINDS))
        kind = known[kind.lower()]

    def text_of(name: str) -> str:
        if name == WHOLE:
            return json.dumps(whole_schema(), indent=2, ensure_ascii=False) + "\n"
        return (data_directory("schemas") / name).read_text(encoding="utf-8")

    if output is None:
        write_long(text_of(file_name(kind) if kind else WHOLE))
        return int(ExitCode.FINE)
    output.mkdir(parents=True, exist_ok=True)
    for name in (*map(file_name, KINDS), WHOLE, "gpolicy-toml.json"):
        write_public(output / name, text_of(name).encode())
        sys.stdout.write(as_text([f"wrote {output / name}"]))
    return int(ExitCode.FINE)
