"""The jobs of a run in their order, and how a plan or remedy stands against the cluster.

Jobs are the steps of a plan or remedy, or what undoes them. Before a run, what it touches must be as it was when the
plan was made; after it, a new look decides about success, not exit codes. What to do with a job that a run before has
begun, the journal and a new look say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpolicy.apply.journals import Fate, StepAttempt
from gpolicy.cluster.state import HIDDEN_BY_RAPI, ClusterState, Identity, Unreadable
from gpolicy.cluster.state_files import state_digest
from gpolicy.ganeti.commands import Route
from gpolicy.ganeti.parameters import parameter_at
from gpolicy.ganeti.vocabulary import Path, Value
from gpolicy.plan.changes import NAME, TAGS
from gpolicy.plan.effects import (
    Contents,
    Effect,
    Progress,
    carried_out,
    contents,
    identities,
    is_own_value,
    progress_of,
    shown_by,
    value_at,
)
from gpolicy.plan.plan import Plan
from gpolicy.plan.step import PlannedCommand, Procedure, ways_back
from gpolicy.plan.steps import POOL_SIZE


@dataclass(frozen=True, slots=True)
class ClusterIdentity:
    """The cluster of a run. Every look must find this one; an unknown UUID is not compared."""

    name: str
    uuid: str | None

    def other(self, state: ClusterState) -> str:
        """Return in words which other cluster `state` is of; nothing if it is of this one."""
        uuid = state.cluster.identity.uuid
        if state.name != self.name:
            return f"another cluster answers: {state.name} instead of {self.name or 'one that nothing names'}"
        if None in (uuid, self.uuid) or uuid == self.uuid:
            return ""
        return f"another cluster with the name {self.name} answers: its UUID is {uuid} instead of {self.uuid}"


@dataclass(frozen=True, slots=True)
class Sight:
    """One look at the cluster: leaves and identities of its objects, and what the look cannot show.

    `lacking_candidates` is how many nodes the candidate pool could have more, where that is known.
    """

    contents: Contents
    identities: Mapping[str, Identity]
    gaps: tuple[Unreadable, ...]
    lacking_candidates: int = 0

    @classmethod
    def of(cls, state: ClusterState, *, instances: bool = False) -> Sight:
        """Return what `state` shows; of `instances` only if the steps move some."""
        size = state.cluster.own.get(POOL_SIZE)  # Ganeti stores it always
        able = [node for node in state.nodes.values() if node.master_capable and not node.offline and not node.drained]
        wanted = min(size, len(able)) if isinstance(size, int) else 0
        lacking = max(0, wanted - sum(node.master_candidate is not False for node in able))
        return cls(contents(state, instances=instances), identities(state), state.unreadable, lacking)

    def shows(self, name: str, path: Path) -> bool:
        """Return whether the look shows this leaf."""
        return shown_by(self.gaps, name, path)

    def serials(self) -> dict[str, int]:
        """Return the serial numbers that the look shows."""
        return {name: item.serial_no for name, item in self.identities.items() if item.serial_no is not None}


@dataclass(frozen=True, slots=True)
class LeafDifference:
    """A leaf that is not what it should be. An empty path is the object itself; `serial_no`, `uuid` are no leaves."""

    object: str
    path: Path
    expected: Value
    found: Value


def compare_plan(
    procedure: Procedure, sight: Sight, done: Sequence[Effect], serials: Mapping[str, int]
) -> tuple[list[LeafDifference], list[str]]:
    """Return how the objects that `procedure` touches differ from what it saw, after its effects `done`.

    Return also, in words, what could not be compared or does not matter.
    `serials` are numbers that were seen after our own steps. They count only where a value that the plan touches
    cannot be read: Ganeti raises them on writes that change nothing, too.
    """
    before = {name: serials.get(name, item.identity.serial_no) for name, item in procedure.observed.items()}
    found, notes = by_serial((effect for step in procedure.steps for effect in step.command.effects), sight, before)
    return [*compare_objects(procedure, sight, done), *found], notes


def compare_objects(procedure: Procedure, sight: Sight, done: Sequence[Effect]) -> list[LeafDifference]:
    """Return, leaf by leaf, how objects that `procedure` touches differ from what it saw, after its effects `done`."""
    expected = carried_out(done, {name: dict(item.values) for name, item in procedure.observed.items()})
    found = compare_contents(expected, expected, sight.contents, (*procedure.gaps, *sight.gaps), done)
    renamed = {effect.object for effect in done if effect.path == NAME}
    names = (effect.after for step in procedure.steps for effect in step.command.effects if effect.path == NAME)
    made = {f"group/{name}": None for name in names if name is not None}
    there = [
        name for name in made if name in sight.contents and name not in expected and name not in procedure.observed
    ]
    return [*found, *map(appeared, there), *_other_objects(procedure, sight, renamed)]


def compare_contents(
    names: Iterable[str], expected: Contents, found: Contents, gaps: Sequence[Unreadable], done: Sequence[Effect]
) -> list[LeafDifference]:
    """Return how objects differ, after the effects `done`; of one that is missing on one side, only that."""
    differences: list[LeafDifference] = []
    for name in names:
        old, new = expected.get(name), found.get(name)
        if old is None or new is None:
            differences.append(gone(name) if new is None else appeared(name))
            continue
        for path in dict.fromkeys((*old, *new)):
            item = LeafDifference(name, path, old.get(path), new.get(path))
            if item.expected != item.found and shown_by(gaps, name, path) and not filled_in(item, done):
                differences.append(item)
    return differences


def gone(name: str) -> LeafDifference:
    """Return the difference of an object that is missing."""
    return LeafDifference(name, (), "there", "not there")


def appeared(name: str) -> LeafDifference:
    """Return the difference of an object that should not be there."""
    return LeafDifference(name, (), "not there", "there")


def filled_in(difference: LeafDifference, effects: Iterable[Effect]) -> bool:
    """Return whether Ganeti filled a leaf in beside one that `effects` set.

    The cluster's entries of hv_state and disk_state are stored whole, with defaults for what nobody has set.
    """
    path = difference.path
    if difference.object != "cluster" or path[:1] not in (("hv_state",), ("disk_state",)):
        return False
    parameter = parameter_at(path)
    if difference.expected is not None or parameter is None or difference.found != parameter.default:
        return False
    return any(effect.object == "cluster" and effect.path[:-1] == path[:-1] for effect in effects)


def path_text(path: Path) -> str:
    """Return a path as plans write it; a tag is named behind its key."""
    return f"tags {path[1]}" if path[:1] == TAGS and len(path) > 1 else ".".join(path)


def _other_objects(procedure: Procedure, sight: Sight, renamed: set[str]) -> list[LeafDifference]:
    """Return objects that have the name of one that the procedure saw, and are another."""
    return [
        LeafDifference(name, ("uuid",), item.identity.uuid, sight.identities[name].uuid)
        for name, item in procedure.observed.items()
        if name in sight.identities
        and name not in renamed
        and None not in (item.identity.uuid, sight.identities[name].uuid)
        and item.identity.uuid != sight.identities[name].uuid
    ]


def by_serial(
    effects: Iterable[Effect], sight: Sight, before: Mapping[str, int | None]
) -> tuple[list[LeafDifference], list[str]]:
    """Return the objects of `effects` whose serial number has to stand for values that cannot be read, and differs.

    Own values are what a source may not show. `before` are the numbers to compare with. Return also, in words, what
    could not be compared or is unchanged.
    """
    hidden: dict[str, list[Path]] = {}
    for effect in effects:
        if is_own_value(effect.path) and not sight.shows(effect.object, effect.path):
            hidden.setdefault(effect.object, []).append(effect.path)
    found: list[LeafDifference] = []
    notes: list[str] = []
    for name, paths in hidden.items():
        if name not in before:
            continue
        what = ", ".join(path_text(path) for path in paths[:3]) + (" and others" if len(paths) > 3 else "")
        seen, now = before[name], sight.serials().get(name)
        if seen is None or now is None:
            notes.append(f"{name}: neither {what} nor a serial number can be read this way; assumed to be unchanged")
        elif seen != now:
            found.append(LeafDifference(name, ("serial_no",), seen, now))
        else:
            notes.append(f"{name}: {what} cannot be read this way; its serial number is unchanged")
    return found, notes


def note_other_changes(plan: Plan, state: ClusterState) -> str | None:
    """Return a note when the cluster has changed in what the plan does not touch, or when nobody can tell."""
    gaps = set(state.unreadable)
    if gaps <= set(plan.gaps):
        same = state_digest(state, besides=plan.gaps) == plan.state_digest
    elif gaps <= {*plan.gaps, *HIDDEN_BY_RAPI} and plan.state_digest_rapi is not None:
        same = state_digest(state, besides=(*plan.gaps, *HIDDEN_BY_RAPI)) == plan.state_digest_rapi
    else:
        return "whether anything else has changed in the cluster cannot be seen this way"
    return None if same else "the cluster has changed since the plan was made, but nothing that the plan touches"


@dataclass(frozen=True, slots=True)
class FinalLook:
    """The values that are not as planned, and those that this connection does not show."""

    differences: tuple[LeafDifference, ...]
    unseen: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether nothing that can be seen differs."""
        return not self.differences


def judge_outcome(effects: Iterable[Effect], sight: Sight) -> FinalLook:
    """Compare what all steps were to change with a new look."""
    differences: list[LeafDifference] = []
    unseen: list[str] = []
    for effect in effects:
        name = effect.object
        if not sight.shows(name, effect.path):
            unseen.append(f"{name} {path_text(effect.path)}")
        elif effect.path == NAME:
            if effect.after is not None and f"group/{effect.after}" not in sight.contents:
                differences.append(gone(f"group/{effect.after}"))
            if effect.before is not None and name in sight.contents:
                differences.append(appeared(name))
        elif name not in sight.contents:
            differences.append(gone(name))
        elif (value := value_at(effect, sight.contents)) != effect.after:
            differences.append(LeafDifference(name, effect.path, effect.after, value))
    return FinalLook(tuple(differences), tuple(unseen))


def judge_restored(procedure: Procedure, sight: Sight, effects: Sequence[Effect]) -> FinalLook:
    """Compare the objects of what was rolled back with what they were; `effects` are those of both ways.

    Values that no command can restore are left out; the steps name them.
    """
    hidden = (effect for effect in effects if not sight.shows(effect.object, effect.path))
    unseen = dict.fromkeys(f"{effect.object} {path_text(effect.path)}" for effect in hidden)
    return FinalLook(tuple(compare_objects(procedure, sight, effects)), tuple(unseen))


_ONCE = frozenset({"add", "rename", "remove", "remove-tags"})


@dataclass(frozen=True, slots=True)
class Task:
    """One job: `key` names it in the journal, `step` is its step in the plan."""

    key: str
    step: str
    title: str
    command: PlannedCommand

    @property
    def repeatable(self) -> bool:
        """Whether a second run of the job gives the same result: Ganeti refuses to create a group twice, and a second
        migration leads back."""
        argv, rapi = self.command.argv, self.command.rapi
        if argv is not None:
            return argv[0] != "gnt-instance" and argv[1] not in _ONCE
        sets = rapi is not None and (rapi.method == "PUT" or rapi.path.endswith("/modify"))
        return rapi is not None and sets and "/rename" not in rapi.path

    def carried_by(self, route: Route) -> bool:
        """Return whether the command can go this way."""
        return (self.command.argv if route is Route.ARGV else self.command.rapi) is not None


def forward(procedure: Procedure) -> list[Task]:
    """Return the tasks that carry `procedure` out."""
    return [Task(step.id, step.id, step.title, step.command) for step in procedure.steps]


def backward(procedure: Procedure, steps: Collection[str]) -> list[Task]:
    """Return the tasks that undo those of `steps`."""
    return [
        Task(f"{step.id}-undo-{number}", step.id, f"undo step {step.id}: {step.title}", command)
        for step in ways_back(procedure.steps)
        if step.id in steps
        for number, command in enumerate(step.inverse.commands, start=1)
    ]


def left_of(tasks: Iterable[Task], attempts: Mapping[str, StepAttempt]) -> list[Task]:
    """Return the tasks that the journal does not know to be done; `attempts` are by the task's key."""
    return [task for task in tasks if task.key not in attempts or attempts[task.key].fate is not Fate.DONE]


def is_done(task: Task, sight: Sight, *, succeeded: bool = False) -> bool:
    """Return whether a step is done: a look misses none of its effects, and shows some of those that change a leaf.

    Of a step whose job has `succeeded`, the look need not show any.
    """
    effects = task.command.effects
    return not effects_missing(effects, sight) and (succeeded or seen_progress(effects, sight) is not None)


def may_run(task: Task, sight: Sight) -> bool:
    """Return whether a step that is not done, and has no running job, may run: it is harmless, or has not begun."""
    return task.repeatable or seen_progress(task.command.effects, sight) is Progress.NOT_BEGUN


def seen_progress(effects: Iterable[Effect], sight: Sight) -> Progress | None:
    """Return how many of the effects that the look can show are there; None if it can show none of them."""
    shown = [effect for effect in effects if effect.before != effect.after and sight.shows(effect.object, effect.path)]
    return progress_of(shown, sight.contents) if shown else None


def effects_there(effects: Sequence[Effect], sight: Sight) -> list[Effect]:
    """Return those of `effects` that are there already: the part of a step that Ganeti accepted.

    One that cannot be seen counts as there, unless those that can be seen show that the step has not begun.
    """
    begun = seen_progress(effects, sight) is not Progress.NOT_BEGUN

    def is_there(effect: Effect) -> bool:
        shown = sight.shows(effect.object, effect.path)
        return value_at(effect, sight.contents) == effect.after if shown else begun

    return list(filter(is_there, effects))


def effects_missing(effects: Sequence[Effect], sight: Sight) -> list[Effect]:
    """Return those of `effects` that are not there."""
    there = effects_there(effects, sight)
    return [effect for effect in effects if effect not in there]
