"""Turn changes into steps: one job per object and wave, in an order that Ganeti accepts.

Waves: enable templates with what they need → groups that must drop a template → the cluster → groups (rename, create,
modify, move nodes, remove) → nodes → tags added → tags removed → the candidate pool. No step depends on a later one.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from gpolicy.cluster.state import ClusterState, Unreadable
from gpolicy.errors import RequestError
from gpolicy.ganeti import commands
from gpolicy.ganeti.expressible import RESET, InexpressibleError, Reset
from gpolicy.ganeti.vocabulary import ALLOWED_TEMPLATES, ENABLED_TEMPLATES, Level, Path, Value, Values
from gpolicy.plan.changes import MEMBERSHIP, NAME, TAGS, Change, ChangeAction, Objection, label_of, new_names, words
from gpolicy.plan.effects import Contents, Effect, assigned, is_own_value, moved, tagged, tags_of
from gpolicy.plan.step import Inverse, Step, StepWave, expressible, inverse_by, inverse_of, modify, planned
from gpolicy.printable import some

_Assigned = dict[Path, Value | Reset]
_Back = Inverse | None
_Effects = tuple[Effect, ...]
_Make = Callable[[], commands.Command]

POOL_SIZE: Path = ("candidate_pool_size",)
_MOST_NAMED = 3  # values in the title of a step; the command beside it has them all
_STORAGE: tuple[Path, ...] = (
    ("volume_group_name",),
    ("drbd_usermode_helper",),
    ("file_storage_dir",),
    ("shared_file_storage_dir",),
)
"""Parameters that templates need: set before a template is enabled, emptied (a false value) after it is disabled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBasis:
    """The further input of steps, besides the changes and the Ganeti release. A plan file contains it.

    `objects` are those that the changes touch, as they were read; `gaps` is what the source cannot show; `one_way` are
    the nodes that move and cannot be moved back.
    """

    objects: Contents
    gaps: tuple[Unreadable, ...] = ()
    one_way: frozenset[str] = frozenset()


def make_steps(changes: Iterable[Change], basis: StepBasis, version: str) -> tuple[list[Step], list[Objection]]:
    """Return the steps that make `changes` on the cluster of `basis`, for Ganeti `version`, and what no step can do."""
    maker = _Maker(list(changes), basis, version)
    maker.run()
    ordered = enumerate(sorted(maker.steps, key=lambda step: step.wave), start=1)
    return [replace(step, id=str(number)) for number, step in ordered], maker.impossible


def one_way_nodes(changes: Iterable[Change], state: ClusterState) -> frozenset[str]:
    """Return the nodes that cannot be moved back: the other node of a DRBD pair was in another group before.

    Ganeti does not split a pair again after a move has brought it together.
    """
    pairs = [{item.primary_node, other} for item in state.instances.values() for other in item.secondary_nodes]
    groups = {name: node.group for name, node in state.nodes.items()}
    one_way: set[str] = set()
    for moving in _arriving(changes).values():
        nodes = {change.object_name for change in moving if change.object_name is not None}
        stay = {name for pair in pairs if len({groups.get(end) for end in pair}) > 1 for name in pair & nodes}
        while more := {name for pair in pairs if pair & stay for name in pair & nodes} - stay:
            stay |= more
        one_way |= stay
    return frozenset(one_way)


def _arriving(changes: Iterable[Change]) -> dict[str, list[Change]]:
    """Return the moves by the group that the nodes go to."""
    targets: dict[str, list[Change]] = {}
    for change in changes:
        if change.action is ChangeAction.MOVE:
            targets.setdefault(str(change.after), []).append(change)
    return targets


class _Maker:
    """Makes the steps. `emptied` are groups to be removed that must drop their list of templates before."""

    def __init__(self, changes: list[Change], basis: StepBasis, version: str) -> None:
        self.changes, self.basis, self.version = changes, basis, version
        self.steps: list[Step] = []
        self.impossible: list[Objection] = []
        self.renamed = new_names(changes)
        self.created = {change.object_name or "": None for change in changes if change.action is ChangeAction.CREATE}
        self.removed = [change.object_name or "" for change in changes if change.action is ChangeAction.REMOVE]
        self.emptied: list[str] = []
        self.value_changes: dict[Level, dict[str, list[Change]]] = {level: {} for level in Level}
        for change in changes:
            if change.path not in (NAME, MEMBERSHIP, TAGS):
                self.value_changes[change.level].setdefault(change.object_name or "", []).append(change)
        self.lasting = self._lasting()
        self.taken_names = self._taken_names()

    def run(self) -> None:
        """Make the steps. They are sorted by wave later: only within a wave does the order here count."""
        cluster = self.value_changes[Level.CLUSTER].get("", [])
        gone = {template for change in cluster if change.path == ENABLED_TEMPLATES for template in _gone(change)}
        letting_go = self._groups_letting_go(gone)
        lists = {name: self._group_seen(name).get(ALLOWED_TEMPLATES) for name in self.removed}
        self.emptied = [name for name, templates in lists.items() if gone & set(words(templates))]
        others = [change for change in cluster if change.path != POOL_SIZE]
        self._cluster(others, waits=bool(letting_go or self.emptied))
        for name in letting_go:  # before the renames: under their old names
            old_name = next((old for old, new in self.renamed.items() if new == name), name)
            self._group(old_name, self.value_changes[Level.GROUP][name], StepWave.LET_GO)
        for name in self.emptied:
            before = {ALLOWED_TEMPLATES: self._group_seen(name)[ALLOWED_TEMPLATES]}
            self._modify(Level.GROUP, name, before, {ALLOWED_TEMPLATES: RESET}, StepWave.LET_GO)
        self._renames()
        for name in self.created:
            self._create(name)
        for name, leaves in self.value_changes[Level.GROUP].items():
            if name not in letting_go and name not in self.created:
                self._group(name, leaves, StepWave.GROUPS)
        self._node_moves()
        for name in self.removed:
            make, effect = partial(commands.group_remove, name), Effect(f"group/{name}", NAME, name, None)
            self._step(StepWave.GROUPS, f"group/{name}", f"remove group {name}", make, self._recreate(name), (effect,))
        for name, leaves in self.value_changes[Level.NODE].items():
            before = {change.path: change.before for change in leaves}
            self._modify(Level.NODE, name, before, _assignments(leaves), StepWave.NODES)
        self._tags()
        pool = [change for change in cluster if change.path == POOL_SIZE]
        # alone and last: on 3.0.2 a job that promotes nodes may fail with all its other changes
        self._cluster_step(StepWave.POOL, _assignments(pool), {change.path: change.before for change in pool})

    def _group_seen(self, name: str) -> Values:
        return self.basis.objects[f"group/{name}"]

    def _step(self, wave: StepWave, obj: str, title: str, make: _Make, inverse: Inverse, effects: _Effects) -> None:
        try:
            command = planned(make(), effects)
            self.steps.append(Step(wave=wave, object=obj, title=title, command=command, inverse=inverse))
        except InexpressibleError as error:
            text = f"{obj}: {error.message}" + (f"; {error.hint}" if error.hint else "")
            causes = (change for change in self.changes if change.object == obj and change.path == error.path)
            cause = next(causes, None)
            self.impossible.append(Objection(text, cause.span if cause else None))

    def _modify(
        self, level: Level, name: str | None, before: Values, after: _Assigned, wave: StepWave, inverse: _Back = None
    ) -> None:
        label, called = label_of(level, name), "the cluster" if name is None else f"{level} {name}"
        inverse = inverse or inverse_of(level, name, before, after, self.version)
        make = partial(modify, level, name, after, self.version)
        self._step(wave, label, f"modify {called}: {_paths(after)}", make, inverse, assigned(label, before, after))

    def _groups_letting_go(self, gone: set[str]) -> list[str]:
        """Return the groups whose own list names a template that is to be disabled: they must drop it first.

        Ganeti does not check groups when it disables a template; it cuts their lists later, without a word.
        """
        return [
            name
            for name, leaves in self.value_changes[Level.GROUP].items()
            for change in leaves
            if name not in self.created and change.path == ALLOWED_TEMPLATES and gone & set(words(change.before))
        ]

    def _cluster(self, changes: list[Change], *, waits: bool) -> None:
        """Modify the cluster in one step, or in two when groups must let go of a template in between."""
        before, after = {change.path: change.before for change in changes}, _assignments(changes)
        templates = next((change for change in changes if change.path == ENABLED_TEMPLATES), None)
        enables = templates is not None and bool({*words(templates.after)} - {*words(templates.before)})
        if templates is None or not enables or not waits:
            self._cluster_step(StepWave.ENABLE if enables else StepWave.CLUSTER, after, before)
            return
        both: list[Value] = [*words(templates.after), *_gone(templates)]
        storage: _Assigned = {path: after[path] for path in _STORAGE if after.get(path)}
        rest = {path: value for path, value in after.items() if path not in storage}
        self._cluster_step(StepWave.ENABLE, storage | {ENABLED_TEMPLATES: both}, before)
        self._cluster_step(StepWave.CLUSTER, rest, before | {ENABLED_TEMPLATES: both})

    def _cluster_step(self, wave: StepWave, assignments: _Assigned, before: Values) -> None:
        """Add a step for what one opcode can do, and one for what has a route of its own."""
        routes: dict[commands.Route | None, _Assigned] = {}
        for path, value in assignments.items():
            routes.setdefault(commands.only_route(path, version=self.version), {})[path] = value
        for part in routes.values():
            self._modify(Level.CLUSTER, None, {path: before[path] for path in part}, part, wave)

    def _group(self, name: str, changes: list[Change], wave: StepWave) -> None:
        before = {change.path: change.before for change in changes}
        is_taken = wave is StepWave.LET_GO and name in self.taken_names  # at last another group has this name
        inverse = self._stays_named(name) if is_taken else self._undo_group(name, changes)
        self._modify(Level.GROUP, name, before, _assignments(changes), wave, inverse)

    def _undo_group(self, name: str, changes: list[Change]) -> Inverse:
        """Return the inverse of a group's changes: `access` that was inherited gets the value that it had."""
        before = {change.path: change.before for change in changes}
        sticky = [change.path for change in changes if change.makes_own]
        before |= {path: self.basis.objects["cluster"].get(path) for path in sticky}
        inverse = inverse_of(Level.GROUP, name, before, _assignments(changes), self.version)
        stays = tuple(f"{'.'.join(path)} stays an own value of the group, Ganeti cannot remove it" for path in sticky)
        return replace(inverse, not_restored=(*inverse.not_restored, *stays))

    def _create(self, name: str) -> None:
        values = _assignments(self.value_changes[Level.GROUP].get(name, []))
        make = partial(commands.group_add, name, values, version=self.version)
        exists = Effect(f"group/{name}", NAME, None, name)
        inverse = inverse_by([(partial(commands.group_remove, name), (exists.reversed(),))])
        if name in self.lasting:
            inverse = Inverse((), (f"group {name} stays: it has nodes that stay ({', '.join(self.lasting[name])})",))
        effects = (exists, *assigned(f"group/{name}", {}, values))
        self._step(StepWave.GROUPS, f"group/{name}", f"create group {name}", make, inverse, effects)

    def _lasting(self) -> dict[str, list[str]]:
        """Return the groups that are made and that nodes cannot leave again: Ganeti removes none with nodes in it."""
        homes = {
            target: sorted(name for change in moving if (name := change.object_name or "") in self.basis.one_way)
            for target, moving in _arriving(self.changes).items()
        }
        return {name: homes[name] for name in self.created if homes.get(name)}

    def _taken_names(self) -> set[str]:
        """Return the old names that renamed groups cannot have again, since another group stays under them."""
        names, taken = set(self.lasting), set[str]()
        for old, new in reversed(rename_order(self.renamed)):
            if old in names:
                taken.add(old)
                names.add(new)
        return taken

    def _stays_named(self, old: str) -> Inverse:
        new = self.renamed[old]
        return Inverse((), (f"group {new} stays as it is: another group has its old name {old}",))

    def _renames(self) -> None:
        for old, new in rename_order(self.renamed):
            effect = Effect(f"group/{old}", NAME, old, new)
            inverse = inverse_by([(partial(commands.group_rename, new, old), (effect.reversed(),))])
            if old in self.taken_names:
                inverse = self._stays_named(old)
            make = partial(commands.group_rename, old, new)
            self._step(StepWave.GROUPS, f"group/{new}", f"rename group {old} to {new}", make, inverse, (effect,))

    def _node_moves(self) -> None:
        """Move all nodes that go to one group in one step, so that DRBD pairs are not split in between."""
        for target, arriving in sorted(_arriving(self.changes).items()):
            nodes = sorted(change.object_name or "" for change in arriving)
            title = f"move {', '.join(nodes)} to group {target}"
            make = partial(commands.assign_nodes, target, nodes)
            effects = moved({name: self._source(name) for name in nodes}, target)
            self._step(StepWave.GROUPS, f"group/{target}", title, make, self._move_back(nodes, target), effects)

    def _source(self, node: str) -> str:
        """Return the group that a node is in when it is moved: renames come first."""
        group = str(self.basis.objects[f"node/{node}"][MEMBERSHIP])
        return self.renamed.get(group, group)

    def _move_back(self, nodes: list[str], target: str) -> Inverse:
        """Return what brings nodes back. DRBD pairs that the move brings together stay: Ganeti would not split them."""
        back: dict[str, list[str]] = {}
        for name in nodes:
            if name not in self.basis.one_way:
                back.setdefault(self._source(name), []).append(name)
        inverse = inverse_by(
            (partial(commands.assign_nodes, *item), moved(dict.fromkeys(item[1], target), item[0]))
            for item in sorted(back.items())
        )
        stay = [name for name in nodes if name in self.basis.one_way]
        lost = [f"node {name} stays: going back would split a DRBD pair" for name in stay]
        return replace(inverse, not_restored=(*inverse.not_restored, *lost))

    def _recreate(self, name: str) -> Inverse:
        seen = self._group_seen(name)
        own = {path: value for path, value in seen.items() if is_own_value(path)}
        if name in self.emptied:
            del own[ALLOWED_TEMPLATES]  # its list comes back in a step of its own, when its templates are enabled again
        values, lost = expressible(Level.GROUP, name, own, self.version)
        gaps = {".".join(gap.prefix) or "all own values" for gap in self.basis.gaps if gap.level is Level.GROUP}
        unknown = [f"{gap} of the group, which the source of the state cannot show" for gap in sorted(gaps)]
        label = f"group/{name}"
        make = partial(commands.group_add, name, values, version=self.version)
        back = inverse_by([(make, (Effect(label, NAME, None, name), *assigned(label, {}, values)))])
        tags = tags_of(seen)
        add = (partial(commands.add_tags, Level.GROUP, name, tags), tagged(label, tags, added=True))
        marked = inverse_by([add] if tags else [])
        lost = (*back.not_restored, *lost, *marked.not_restored, *unknown, "networks that were connected to the group")
        return Inverse((*back.commands, *marked.commands), lost)

    def _tags(self) -> None:
        add, remove = commands.add_tags, commands.remove_tags
        for change in self.changes:
            if change.path != TAGS:
                continue
            before, after = set(words(change.before)), set(words(change.after))
            for wave, tags, do, undo, verb in (
                (StepWave.TAGS_ADDED, sorted(after - before), add, remove, "add tags to"),
                (StepWave.TAGS_REMOVED, sorted(before - after), remove, add, "remove tags from"),
            ):
                if tags:
                    undone = partial(undo, change.level, change.object_name, tags)
                    make = partial(do, change.level, change.object_name, tags)
                    effects = tagged(change.object, tags, added=do is add)
                    inverse = inverse_by([(undone, tuple(effect.reversed() for effect in effects))])
                    title = f"{verb} {change.object}: {', '.join(tags)}"
                    self._step(wave, change.object, title, make, inverse, effects)


def _assignments(changes: list[Change]) -> _Assigned:
    return {change.path: RESET if change.action is ChangeAction.RESET else change.after for change in changes}


def _paths(assignments: Mapping[Path, object]) -> str:
    """Return the set values, for a title: each one by name, or their number by family."""
    if len(assignments) <= _MOST_NAMED:
        return ", ".join(".".join(path) for path in assignments)
    families = dict.fromkeys(path[0] for path in assignments)
    return f"{len(assignments)} values of {some(list(families))}"


def _gone(change: Change) -> list[str]:
    return [template for template in words(change.before) if template not in words(change.after)]


def rename_order(renames: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return renames in an order in which each new name is free. Raise RequestError for a circle, which has none."""
    left = dict(renames)
    ordered: list[tuple[str, str]] = []
    while left:
        free = next((old for old, new in left.items() if new not in left), None)
        if free is None:
            hint = "rename one of them to a third name first"
            raise RequestError(f"groups change names in a circle: {', '.join(sorted(left))}", hint=hint)
        ordered.append((free, left.pop(free)))
    return ordered
