"""The verbs that move instances: remedy, evacuate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from math import ceil
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

import gpolicy
from gpolicy.cli import options
from gpolicy.cli.output import Report, check_no_file_is_lost, report_under
from gpolicy.cli.targets import Target, run
from gpolicy.cli.terminal import working
from gpolicy.errors import ExitCode, UsageError
from gpolicy.opening import write_private, write_program

if TYPE_CHECKING:
    from gpolicy.cluster.state import ClusterState
    from gpolicy.evacuate.evacuation import EvacuationRequest, WavesReport
    from gpolicy.remedy.saved_remedy import Move, SavedRemedy
    from gpolicy.report.answer import Answer
    from gpolicy.use_cases.questions import OpenedCluster

verbs = typer.Typer()

Rate = Annotated[str, typer.Option("--rate", metavar="SIZE")]
Script = Annotated[Path | None, typer.Option("--script", metavar="FILE")]
Save = Annotated[Path | None, typer.Option("--save", metavar="FILE")]


@verbs.command("remedy")
def remedy(  # noqa: PLR0913 (one parameter an option)
    path: Annotated[Path | None, typer.Argument(..., metavar="[PATH]")] = None,
    policy: options.PolicyOption = None,
    *,
    clusters: options.Clusters,
    suppositions: options.Suppositions,
    want: Annotated[str | None, typer.Option("--want", metavar="WORDS")] = None,
    rate: Rate = "60M",
    seconds: options.Seconds = 60.0,
    script: Script = None,
    save: Save = None,
    shown: options.Shown,
    resource_model: options.ResourceModelOption = False,
) -> int:
    """Find the moves that cure a cluster, and say what nothing cures.

    It looks for instances on nodes that may hold none, conflicts of tags, misfits of exclusive storage and missing N+1
    redundancy, and moves as few instances and as little disk as it can, each step allowed by hbal's rules. With --want
    it finds the moves that make room for wanted instances instead.
    """
    from gpolicy.report.remedy_answer import remedy_answer, remedy_data  # noqa: PLC0415

    outputs = shown.outputs("remedy")
    given, what_if, mib = options.policy_path(path, policy), suppositions.read(), _rate(rate)
    again = ("remedy",) if want is None else ("remedy", "--want", want)
    files = _MoveFiles(shown.saved("remedy", save), script, given, supposing=what_if is not None, again=again)
    plan = given if given is not None and given.suffix == ".json" else None

    def work(target: Target) -> Report:
        here = files.of(target)
        state = target.read()
        cluster = gpolicy.open_cluster(
            state,
            target.check_given_policy(state) if plan is None else gpolicy.read_plan(plan),
            what_if=what_if,
            resource_model=resource_model,
            plan_file=plan or Path(),
            working=working,
        )
        report = gpolicy.find_remedy(cluster, rate=mib, want=want, stop=gpolicy.after(seconds), working=working)
        saved = cache(lambda: _saved(report.steps, state, cluster.state, here.given))
        answer = remedy_answer(report)
        slowest = max((step.seconds for step in report.steps), default=0)
        code = ExitCode.FINDINGS if report.room and not report.room.enough else ExitCode.FINE
        found = report_under(here.given, lambda: answer, lambda: remedy_data(report, saved()), code)
        return replace(found, following=here.write(saved, partial(remedy_data, report), answer, slowest))

    return run(work, clusters, None if plan else given, outputs, verb="remedy")


@verbs.command("evacuate")
def evacuate(  # noqa: PLR0913 (one parameter an option)
    nodes: Annotated[str | None, typer.Argument(..., metavar="[NODE,...]")] = None,
    *,
    in_turn: Annotated[bool, typer.Option("--in-turn")] = False,
    primary_only: Annotated[bool, typer.Option("--primary-only")] = False,
    secondary_only: Annotated[bool, typer.Option("--secondary-only")] = False,
    group: Annotated[str | None, typer.Option("--group", "-g", metavar="NAME")] = None,
    to: Annotated[list[str] | None, typer.Option("--to", metavar="GROUP")] = None,
    ignore_soft_errors: Annotated[bool, typer.Option("--ignore-soft-errors")] = False,
    rate: Rate = "60M",
    script: Script = None,
    save: Save = None,
    policy: options.PolicyOption = None,
    clusters: options.Clusters,
    suppositions: options.Suppositions,
    seconds: options.Seconds = 60.0,
    shown: options.Shown,
    resource_model: options.ResourceModelOption = False,
    every: Annotated[bool, typer.Option("--all-candidates", "-a")] = False,
) -> int:
    """Show what moves where to empty nodes or a group, and what stays.

    The answer is that of hail's own evacuation, with every candidate and the commands. With --in-turn it is the order
    in which nodes, or all of them, are rebooted or upgraded so that nothing stops. Exit code 1 when an instance stays,
    or must be shut down, or Ganeti would refuse what hail accepts.
    """
    from gpolicy.allocator.evacuation import EvacuationMode  # noqa: PLC0415
    from gpolicy.report.evacuate_answer import EVACUATE_DOCUMENT, evacuate_answer, saved_evacuation  # noqa: PLC0415

    outputs, what_if = shown.outputs("evacuate", every=every), suppositions.read()
    if nodes is not None and group is not None:
        raise UsageError("NODE and --group exclude one another", hint="name either nodes or a group that is emptied")
    if in_turn and (primary_only or secondary_only or to):
        hint = "leave out --primary-only, --secondary-only and --to"
        raise UsageError("--in-turn: what runs on the nodes leaves them, and comes back", hint=hint)
    if nodes is None and group is None and not in_turn:
        raise UsageError("what is to be emptied?", hint="name nodes (node1,node2), or a group: --group NAME")
    if primary_only and secondary_only:
        raise UsageError("--primary-only and --secondary-only exclude one another", hint="leave out both: all move")
    if (primary_only or secondary_only or ignore_soft_errors) and (group is not None or to):
        hint = "leave out --primary-only, --secondary-only and --ignore-soft-errors"
        raise UsageError("an instance changes its group with all of its nodes, within their limits", hint=hint)
    mode = EvacuationMode.PRIMARY if primary_only else EvacuationMode.SECONDARY
    request = gpolicy.EvacuationRequest(
        nodes=nodes,
        group=group,
        targets=tuple(to or ()),
        mode=mode if primary_only or secondary_only else EvacuationMode.ALL,
        ignore_soft_errors=ignore_soft_errors,
        rate=_rate(rate),
    )
    again = ["--group", group] if group else [nodes or ""]
    again = again if not in_turn else ["--in-turn", *filter(None, again)]
    again += [f"--{request.mode.value}"] if request.mode is not EvacuationMode.ALL else []
    files = _MoveFiles(
        shown.saved("evacuate", save), script, policy, supposing=what_if is not None, again=("evacuate", *again)
    )

    def work(target: Target) -> Report:
        here = files.of(target)
        state = target.read()
        cluster = gpolicy.open_cluster(
            state, target.check_given_policy(state), what_if=what_if, resource_model=resource_model, working=working
        )
        if in_turn:
            return _in_turn(cluster, state, request, here, seconds)
        report = gpolicy.find_evacuation(cluster, request, stop=gpolicy.after(seconds), working=working)
        saved = cache(lambda: _saved(report.moved, state, cluster.state, here.given))
        answer = evacuate_answer(report, is_kept=bool(here.save or here.script))
        slowest = max((item.copied for item in report.moved), default=0) / request.rate
        code = ExitCode.FINDINGS if report.stays or report.objections else ExitCode.FINE
        found = report_under(here.given, lambda: answer, lambda: EVACUATE_DOCUMENT.data(report), code)
        return replace(found, following=here.write(saved, partial(saved_evacuation, report), answer, slowest))

    return run(work, clusters, policy, outputs, verb="evacuate")


def _in_turn(
    cluster: OpenedCluster, state: ClusterState, request: EvacuationRequest, files: _MoveFiles, seconds: float
) -> Report:
    """Return in which waves nodes go, and write the moves of each."""
    from gpolicy.report.waves_answer import WAVES_DOCUMENT, waves_answer  # noqa: PLC0415

    report = gpolicy.find_waves(cluster, request, stop=gpolicy.after(seconds), working=working)
    answer = waves_answer(report, is_kept=bool(files.save or files.script))
    code = ExitCode.FINDINGS if report.halted else ExitCode.FINE
    found = report_under(files.given, lambda: answer, lambda: WAVES_DOCUMENT.data(report), code)
    return replace(found, following=files.write_waves(report, state, answer))


@dataclass(frozen=True, slots=True)
class _MoveFiles:
    """The files to write moves to: for `gpolicy apply`, and a script. `given` is the policy or plan they are for.

    `again` are the words of gpolicy that ask again.
    """

    save: Path | None
    script: Path | None
    given: Path | None
    supposing: bool = False
    again: tuple[str, ...] = ("remedy",)

    def __post_init__(self) -> None:
        for option, file in (("--script", self.script), ("--save", self.save)):
            if file is not None and self.supposing:
                message = f"{option} is for the cluster as it is, not for a supposed one"
                raise UsageError(message, hint=f"leave {option} out")

    def of(self, target: Target) -> _MoveFiles:
        """Return the files of one cluster."""
        given = self.given if self.given and self.given.suffix == ".json" else target.given_policy
        found = replace(self, save=target.output(self.save), script=target.output(self.script, ".sh"), given=given)
        check_no_file_is_lost(given, found.save, found.script)
        return found

    def write(
        self,
        saved: Callable[[], SavedRemedy],
        data: Callable[[SavedRemedy], dict[str, Any]],
        answer: Answer,
        slowest: float,
    ) -> tuple[str, ...]:
        """Write the moves to the files; return what to do with them. The slowest job takes `slowest` seconds.

        `saved` makes the moves as `gpolicy apply` needs them, `data` makes JSON's own types of these.
        """
        from gpolicy.report.answer import under  # noqa: PLC0415
        from gpolicy.report.answer_file import kept_text  # noqa: PLC0415

        following: list[str] = []
        is_plan = self.given is not None and self.given.suffix == ".json"
        when = f" once {'the plan is applied' if is_plan else 'the policy holds'}" if self.given else ""
        if self.save is not None:
            write_private(self.save, kept_text(data(saved()), under(answer, self.given)).encode())
            file, hours = quote(str(self.save)), ceil(slowest * 2 / 3600)
            patience = f" --job-timeout {hours * 3600}" if hours > 1 else ""  # twice the slowest, where it is long
            following.append(f"wrote {self.save}: gpolicy show {file} shows it again")
            if saved().steps:
                following.append(f"next{when}: gpolicy apply {file} --to DST{patience}")
        if self.script is not None:
            following.append(f"{self._write_script(self.script, saved())}{when}")
        return tuple(following)

    def _write_script(self, script: Path, saved: SavedRemedy, report: WavesReport | None = None) -> str:
        """Write the script of moves; return what to do with it."""
        from gpolicy.remedy.commands import moves_script  # noqa: PLC0415

        again = join(("gpolicy", *self.again, "--state", "local:"))
        write_program(script, moves_script(saved, again, report.waves if report else ()).encode())
        return f"wrote {script}: read it, and run it on the master of the cluster"

    def write_waves(self, report: WavesReport, state: ClusterState, answer: Answer) -> tuple[str, ...]:
        """Write the moves of each wave: to two files of a directory, in place of older ones, and all as a script."""
        from gpolicy.remedy.saved_remedy import save_moves  # noqa: PLC0415
        from gpolicy.report.answer_file import kept_text  # noqa: PLC0415
        from gpolicy.report.evacuate_answer import saved_evacuation  # noqa: PLC0415

        following: list[str] = []
        for file in self.save.glob("wave-*.json") if self.save is not None else ():
            file.unlink()  # of an earlier search, which may have had more waves
        for number, wave in enumerate(report.waves, 1) if self.save is not None else ():
            parts = ["gnt-cluster master-failover on another node"] if report.master in wave.nodes else []
            for way, moves, before in (("out", wave.out, wave.before), ("back", wave.back, wave.cleared)):
                if moves and self.save is not None:
                    self.save.mkdir(parents=True, exist_ok=True)
                    file = self.save / f"wave-{number}-{way}.json"
                    data = saved_evacuation(report, _saved(moves, state, before, self.given))
                    write_private(file, kept_text(data, answer).encode())
                    parts.append(f"gpolicy apply {quote(str(file))} --to DST")
                if way == "out":
                    parts += [*map(join, wave.first), f"reboot {' '.join(wave.nodes)}", *map(join, wave.last)]
            following.append(f"wave {number}: {'; '.join(parts)}")
        if self.script is not None and report.waves:
            saved = save_moves([move for wave in report.waves for move in wave.moves], report.waves[0].before)
            following.append(self._write_script(self.script, saved, report))
        return tuple(following)


def _saved(moves: Sequence[Move], state: ClusterState, observed: ClusterState, given: Path | None) -> SavedRemedy:
    """Return moves for the cluster `observed`: what must hold before them is what a plan or policy makes of `state`."""
    from gpolicy.plan.effects import contents, effects_between  # noqa: PLC0415
    from gpolicy.remedy.saved_remedy import Supposed, save_moves  # noqa: PLC0415

    effects = () if given is None else tuple(effects_between(contents(state), contents(observed)))
    supposed = Supposed(str(given), given.suffix == ".json", effects) if given and effects else None
    return save_moves(moves, observed, supposed)


def _rate(text: str) -> int:
    rate = options.size_of("--rate", text)
    if rate < 1:
        raise UsageError(f"--rate {text!r}: at least 1M a second", hint="Ganeti's own rate of DRBD is 60M")
    return rate
