"""The moves of a remedy as steps that `gpolicy apply` carries out: one job for Ganeti each, with its way back.

Their commands are known word by word: their requests to RAPI, and where each leads. The file of a remedy, or of a plan,
is not trusted: its commands must be those that follow from the moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import ClassVar, Final, Self

from gpolicy import __version__
from gpolicy.cluster.assembly import read
from gpolicy.cluster.record import Record, shown
from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.cluster.state_files import TAKEN
from gpolicy.errors import InputError
from gpolicy.ganeti.commands import Command, call
from gpolicy.ganeti.releases import VERSIONS, release_of
from gpolicy.ganeti.vocabulary import Value
from gpolicy.json_values import FROM_ONE, TEXTS, Key, Maybe, OwnFile, Shape, plain
from gpolicy.plan import plan_file
from gpolicy.plan.changes import NODES, words
from gpolicy.plan.effects import ADMIN_STATE, Contents, Effect, Observed, contents, observed_in, relocated
from gpolicy.plan.plan_json import ANSWER_KEY, OBSERVED, TEXT, effect_shape, rapi_shape
from gpolicy.plan.step import Inverse, Procedure, Step, StepWave, planned
from gpolicy.plan.trust import Signers, first_difference
from gpolicy.printable import count

_WITHOUT_TARGET: Final = {"migrate", "failover"}
AS_HAIL: Final = ("--allow-failover", "--ignore-hvversions", "--no-runtime-changes")
"""The options with which hail's evacuation has an instance migrated."""
_WITH_TARGET: Final = {"migrate", "failover", "move", "replace-disks"}


def target_of(argv: Sequence[str]) -> str | None:
    """Return the node that a command names."""
    return argv[argv.index("-n") + 1] if "-n" in argv else None


def command_of(argv: tuple[str, ...]) -> Command:
    """Return a command that moves an instance, and the same as a request to RAPI; that has none for `move`."""
    verb, name, target = argv[1], argv[-1], target_of(argv)
    if verb == "move":
        return Command(argv)
    if verb == "replace-disks":
        body: dict[str, Value] = {"mode": "replace_new_secondary", "remote_node": target}
        return Command(argv, call("POST", ("instances", name, verb), body))
    body = {} if target is None else {"target_node": target}
    if {*AS_HAIL} <= {*argv}:
        body |= {"allow_failover": True, "ignore_hvversions": True, "allow_runtime_changes": False}
    return Command(argv, call("PUT", ("instances", name, verb), body))


def is_move(argv: Sequence[str], instance: str) -> bool:
    """Whether `argv` is, word by word, a command that remedies and evacuations have for moves of `instance`."""
    verb = argv[1] if len(argv) > 1 else ""
    force: CommandWords = () if verb == "replace-disks" else ("-f",)
    force += AS_HAIL if verb == "migrate" and {*AS_HAIL} <= {*argv} else ()
    where = ("-n", argv[-2]) if verb in _WITH_TARGET and len(argv) == 5 + len(force) else ()
    if not where and verb not in _WITHOUT_TARGET:
        return False
    return (*argv,) == ("gnt-instance", verb, *force, *where, instance)


CommandWords = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Supposed:
    """What a remedy was worked out for, and must hold before its first move: the cluster as `file` makes it."""

    file: str
    is_plan: bool
    effects: tuple[Effect, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move of an instance from and to nodes (primary, secondary) by commands of Ganeti, and those that lead back.

    `job_set` is the set that it belongs to, from 1: jobs of a set may run side by side. If nothing undoes the move,
    `no_way_back` says why.
    """

    job_set: int = 0
    instance: str
    nodes_before: CommandWords
    nodes_after: CommandWords
    commands: tuple[Command, ...]
    back: tuple[Command, ...] = ()
    no_way_back: str = ""

    @property
    def places(self) -> list[CommandWords]:
        """The nodes of the instance before and after each command."""
        found = [self.nodes_before]
        for argv in (command.argv or () for command in self.commands):
            target, (primary, *secondary) = target_of(argv), found[-1]
            if target is None:
                found.append((*secondary, primary))
            elif argv[1] == "replace-disks":
                found.append((primary, target))
            else:
                found.append((target, *secondary))
        return found

    def with_way_back(self, nodes: Mapping[str, LiveNode]) -> Self:
        """Return the move with the commands that undo it, or why none does: a node there may hold no instance."""
        left = [name for name in self.nodes_before if name not in self.nodes_after] or self.nodes_before[:1]
        if unusable := [name for name in left if not nodes[name].is_usable]:
            return replace(self, no_way_back=f"nothing moves to {unusable[0]}, which may hold no instance")
        back = []
        for command, (primary, *mirror) in zip(self.commands, self.places, strict=False):
            argv = command.argv or ()
            if place := argv.index("-n") + 1 if "-n" in argv else 0:
                argv = (*argv[:place], mirror[0] if argv[1] == "replace-disks" else primary, *argv[place + 1 :])
            back.append(command_of(argv))
        return replace(self, back=tuple(reversed(back)))

    @property
    def undoing(self) -> Move:
        """The move that leads back."""
        back = replace(self, nodes_before=self.nodes_after, nodes_after=self.nodes_before)
        return replace(back, commands=self.back, back=self.commands, no_way_back="")


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRemedy(Procedure):
    """The moves of a remedy, and what they rest on.

    `supposed` is None if the remedy is for the cluster as it is. `residents` are the instances on each node that a move
    leaves or leads to, as they were when the remedy was worked out.
    """

    noun: ClassVar[str] = "remedy"

    supposed: Supposed | None = None
    residents: Mapping[str, CommandWords] = field(default_factory=dict)
    moves: tuple[Move, ...] = ()

    @property
    def outcome(self) -> tuple[Effect, ...]:
        """From where to where each instance moves in all."""
        found: dict[str, Effect] = {}
        for effect in (effect for step in self.steps for effect in step.command.effects):
            found[effect.object] = replace(found.get(effect.object, effect), after=effect.after)
        return tuple(found.values())

    @property
    def done_words(self) -> str:
        """What is there after the last step, in words."""
        moved = len(self.outcome)
        return f"{count(moved, 'instance')} {'is' if moved == 1 else 'are'} where the remedy puts them"


def save_moves(moves: Sequence[Move], state: ClusterState, supposed: Supposed | None = None) -> SavedRemedy:
    """Return moves that were worked out for the cluster in `state` as `gpolicy apply` carries them out."""
    nodes = nodes_of(moves)
    instances = dict.fromkeys(f"instance/{move.instance}" for move in moves)
    seen = observed_in(state, [*instances, *(f"node/{name}" for name in nodes)])
    return SavedRemedy(
        cluster=state.name,
        cluster_uuid=state.cluster.identity.uuid,
        source=state.source,
        version=release_of(state.software_version) or "",
        observed=seen,
        gaps=state.unreadable,
        steps=steps_of(moves, seen),
        snapshot=state.snapshot,
        supposed=supposed,
        residents=residents_of(contents(state, instances=True), nodes),
        moves=tuple(moves),
    )


def nodes_of(moves: Iterable[Move]) -> list[str]:
    """Return the nodes that moves leave or lead to, also half-way."""
    return list(dict.fromkeys(name for move in moves for place in move.places for name in place))


def residents_of(seen: Contents, nodes: Iterable[str]) -> dict[str, CommandWords]:
    """Return the instances on each of `nodes`, sorted; disks for another node count."""
    moves = (Effect(item, NODES, None, values.get(NODES)) for item, values in seen.items())
    return moved_residents(dict.fromkeys(nodes, ()), moves)


def moved_residents(residents: Mapping[str, CommandWords], done: Iterable[Effect]) -> dict[str, CommandWords]:
    """Return the instances on each node after the moves `done`, in their order."""
    found = {node: set(names) for node, names in residents.items()}
    for effect in done:
        instance, after = effect.object.partition("/")[2], words(effect.after)
        for node in found.keys() & {*words(effect.before), *after}:
            found[node] = found[node] | {instance} if node in after else found[node] - {instance}
    return {node: tuple(sorted(names)) for node, names in found.items()}


def steps_of(moves: Sequence[Move], seen: Mapping[str, Observed]) -> tuple[Step, ...]:
    """Return one step for each command. `seen` tells which instances should run."""
    made: list[Step] = []
    stuck = _stuck(moves)
    for number, move in enumerate(moves):
        up = seen[f"instance/{move.instance}"].values.get(ADMIN_STATE) == "up"
        places = move.places
        for place, command in enumerate(move.commands):
            before, after = places[place : place + 2]
            back = () if number in stuck else (planned(move.back[-1 - place], relocated(move.instance, after, before)),)
            made.append(
                Step(
                    id=str(len(made) + 1),
                    wave=StepWave.MOVES,
                    object=f"instance/{move.instance}",
                    title=f"set {move.job_set}: {_title(command.argv or (), before, after, up=up)}",
                    command=planned(command, relocated(move.instance, before, after)),
                    inverse=Inverse(back, (stuck[number],) if number in stuck and place == 0 else ()),
                )
            )
    return tuple(made)


def _stuck(moves: Sequence[Move]) -> dict[int, str]:
    """Return why moves cannot be undone, by number: nothing undoes them, or a later one of the same instance."""
    found: dict[int, str] = {}
    reasons: dict[str, str] = {}
    for number, move in reversed(list(enumerate(moves))):
        if move.no_way_back:
            reasons[move.instance] = f"{move.instance} stays where it is: {move.no_way_back}"
        if move.instance in reasons:
            found[number] = reasons[move.instance]
    return found


def _title(argv: CommandWords, before: CommandWords, after: CommandWords, *, up: bool) -> str:
    name = argv[-1]
    match argv[1]:
        case "replace-disks":
            return f"mirror {name} on {target_of(argv)} instead of {before[1]}"
        case "migrate":
            return f"migrate {name} from {before[0]} to {after[0]}"
        case "failover":
            return f"fail {name} over from {before[0]} to {after[0]}" + ("; it stops and starts again" if up else "")
    downtime = "; it is down while its disks are copied" if up else ""
    return f"move {name} from {before[0]} to {after[0]}{downtime}"


REMEDY_FILE: Final = OwnFile("gpolicy-remedy", "1.1", "a remedy", exact=True)

_REMAKE: Final = "make it again: gpolicy remedy --state SRC --save FILE"

COMMAND: Final = Shape(Command, "command").with_keys(
    argv=Key(Maybe(TEXTS), lambda command: command.argv), rapi=rapi_shape(body={"type": "object"})
)


def _read_move(written: Record) -> Move:
    instance = written.text("instance")
    ways = {key: tuple(_command(item, instance) for item in written.objects(key)) for key in ("commands", "back")}
    move: Move = read(MOVE, written, no_way_back=written.text_or_none("no_way_back") or "", **ways)
    if wrong := next(_wrong(move), None):
        raise InputError(f"{written.where}: {wrong}", hint=f"the file was changed after it was made: {_REMAKE}")
    return move


MOVE: Final = Shape(Move, reader=_read_move).with_keys(
    "job_set instance nodes_before nodes_after commands back no_way_back",
    job_set=FROM_ONE,
    instance=TEXT,
    commands=COMMAND,
    back=COMMAND,
    no_way_back=Key(str | None, lambda step: step.no_way_back or None),
)
"""A move in a file for `gpolicy apply`."""

SAVED: Final = Shape(SavedRemedy).with_keys(
    "kind gpolicy cluster_uuid ganeti_version observed not_shown residents supposes answer",
    kind=REMEDY_FILE.head["kind"],
    gpolicy=Key(str, lambda _: __version__),
    ganeti_version=Key(str | None, lambda remedy: remedy.version or None),
    observed=OBSERVED,
    not_shown="gaps",
    supposes=Key(Shape(Supposed).with_keys("file is_plan effects", file=TEXT, effects=effect_shape()), "supposed"),
    answer=ANSWER_KEY,
)
"""What apply needs of a remedy beside its moves."""

_REMEDY: Final = Shape(SavedRemedy).with_keys(
    cluster_name=Key(TEXT, "cluster"), source=TEXT, snapshot=TAKEN, steps=Key(MOVE, "moves"), **SAVED.keys
)
"""What is read of a file: also what each report has, and the moves."""


def read_procedure(path: FilePath, signers: Signers | None = None) -> Procedure:
    """Return the plan or the remedy in a file. Raise InputError if it is neither, as `read_plan` does."""
    hint = "make a plan with `gpolicy plan --save FILE`, or a remedy with `gpolicy remedy --save FILE`"
    return plan_file.read_procedure_file(path, signers, procedure_in, hint)


def procedure_in(written: Record) -> Procedure:
    """Return the plan or the remedy in the content of a file."""
    return _remedy(written) if REMEDY_FILE.is_kind_of(written.fields) else plan_file.plan_in(written)


def _remedy(written: Record) -> SavedRemedy:
    version, made_by = written.text("format_version"), written.text("gpolicy")
    if not REMEDY_FILE.reads(version):
        by = f" (gpolicy {shown(made_by)} made it, this is {__version__})"
        raise InputError(f"{written.where}: its format is {shown(version)!r}{by}", hint=_REMAKE)
    if what_if := written.texts("what_if"):
        message = f"{written.where}: it was worked out for a supposed cluster: {shown(', '.join(what_if))}"
        raise InputError(message, hint="make it again, without options that suppose something")
    release = written.text_or_none("ganeti_version") or ""
    if release and release not in VERSIONS:
        raise InputError(f"{written.where}: there is no Ganeti release {shown(release)!r}", hint=_REMAKE)
    found: SavedRemedy = read(_REMEDY, written, version=release)
    if wrong := next(_contradictions(found.moves, found), None):
        raise InputError(f"{written.where}: {wrong}", hint=f"the file was changed after it was made: {_REMAKE}")
    return replace(found, steps=steps_of(found.moves, found.observed))


def _command(written: Record, instance: str) -> Command:
    argv = written.texts("argv")
    if not is_move(argv, instance):
        message = f"{written.where}: {shown(' '.join(argv))} is no command by which a remedy moves {shown(instance)}"
        raise InputError(message, hint=_REMAKE)
    command = command_of(argv)
    if difference := first_difference(written.fields.get("rapi"), plain(command.rapi), "rapi"):
        raise InputError(f"{written.where}: {difference}", hint=_REMAKE)
    return command


def _wrong(move: Move) -> Iterator[str]:
    """Yield why a move does not lead where it says, or its way back not to where it began."""
    for way in (move, move.undoing):
        argvs, nodes = [command.argv or () for command in way.commands], way.nodes_before
        mirrored = any(argv[1] == "replace-disks" or "-n" not in argv for argv in argvs)
        alone = any(argv[1] != "replace-disks" and "-n" in argv for argv in argvs)
        if not 1 <= len(nodes) <= 2 or (mirrored and len(nodes) == 1) or (alone and len(nodes) == 2):
            yield f"its commands are not for an instance on {len(nodes)} nodes"
            return
    places = move.places
    if not move.commands or places[-1] != move.nodes_after or any(len({*place}) < len(place) for place in places):
        yield f"its commands lead to {' and '.join(places[-1])}"
    if bool(move.back) is bool(move.no_way_back) or (move.back and move.undoing.places != places[::-1]):
        yield "its way back does not lead to where it began"


def _contradictions(moves: Sequence[Move], remedy: SavedRemedy) -> Iterator[str]:
    """Yield why no remedy has these moves for the observed objects."""
    here: dict[str, CommandWords] = {}
    instances = [f"instance/{move.instance}" for move in moves]
    nodes = nodes_of(moves)
    expected = {*instances, *(f"node/{name}" for name in nodes)}
    if remedy.observed.keys() != expected or remedy.residents.keys() != {*nodes}:
        yield "`observed` and `residents` are not of the instances that move and of their nodes"
        return
    for name in instances:
        values = remedy.observed[name].values
        if values.keys() != {NODES, ADMIN_STATE} or not isinstance(values[NODES], list):
            yield f"`observed` has no nodes and state of {shown(name)}"
            return
        here.setdefault(name, tuple(words(values[NODES])))
    for name, move in zip(instances, moves, strict=True):
        if here[name] != move.nodes_before:
            start = " and ".join(move.nodes_before)
            yield f"{shown(move.instance)} is on {' and '.join(here[name])} then, not on {start}"
        here[name] = move.places[-1]
