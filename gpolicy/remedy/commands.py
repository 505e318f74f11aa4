"""Cures as commands of Ganeti: of moves, and of the nearest size that the policy allows, where it allows none.

Moves are sets of jobs that may run side by side, with what leads back, and what they cost. As a POSIX shell script,
they also lead back: each looks first where its instance is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby

from gpolicy import __version__
from gpolicy.allocator.balancing import Balanced
from gpolicy.allocator.cluster_data import NO_NODE, Disk, DiskTemplate, FailReason, InstanceStatus
from gpolicy.allocator.instance_moves import InstanceMove, Moved, MoveKind
from gpolicy.allocator.node_changes import add_primary, add_secondary, remove_primary, remove_secondary
from gpolicy.analysis.place_report import nearest_within
from gpolicy.analysis.violations import AllowedSizes, ParameterBreach, PolicyViolation, distance, verdict_on
from gpolicy.cluster.state import ClusterState, LiveInstance, describe_source
from gpolicy.data import read_data
from gpolicy.ganeti.amounts import SIZE_STEP_MIB, round_size
from gpolicy.ganeti.commands import Command, call, shell_line
from gpolicy.ganeti.vocabulary import SPEC_SIZES, Value
from gpolicy.htools.hbal_commands import arguments, job_sets, touched_nodes
from gpolicy.plan.changes import MEMBERSHIP, NAME, TAGS
from gpolicy.plan.effects import Effect, effect_words
from gpolicy.printable import count
from gpolicy.remedy.faults import Layout, shortage
from gpolicy.remedy.moving import Movers, MoveTrial
from gpolicy.remedy.saved_remedy import CommandWords, Move, SavedRemedy, command_of
from gpolicy.render.script import name_for_script, script_environment

MOST_AT_ONCE = 4
"""How many jobs a set has at most."""


def sets_of(start: Layout, steps: Sequence[Balanced], movers: Movers) -> list[list[Balanced]]:
    """Return the moves in hbal's job sets, of at most `MOST_AT_ONCE`.

    A set is kept only if N+1 is no worse whichever of its jobs have run: otherwise each of its jobs is a set.
    """
    found: list[list[Balanced]] = []
    layout = start
    for jobs in job_sets(steps, touched_nodes):
        for first in range(0, len(jobs), MOST_AT_ONCE):
            part = jobs[first : first + MOST_AT_ONCE]
            found += [part] if _in_any_order(layout, part, movers) else [[job] for job in part]
            layout = layout.reached(part[-1].nodes, part[-1].instances)
    return found


def _in_any_order(layout: Layout, jobs: Sequence[Balanced], movers: Movers) -> bool:
    """Whether each job of the set is possible and safe after any others of it."""
    reached = {frozenset[int](): layout}
    for number in range(len(jobs)):
        for done in map(frozenset, combinations(range(len(jobs)), number)):
            for place in {*range(len(jobs))} - done:
                here, move = reached[done], jobs[place].move
                item = here.instances[move.instance.index]
                trial = movers.try_move(here, InstanceMove(move.kind, item, move.target))
                if not isinstance(trial, MoveTrial) or not movers.is_safe(here, trial):
                    return False
                reached[done | {place}] = here.after(trial.moved)
    return True


def commands_of(step: Balanced) -> list[Command]:
    """Return the commands of a move, in their order."""
    target = step.nodes[step.move.target].facts.name if step.move.target != NO_NODE else ""
    name = step.instance.name
    if step.move.instance.template is DiskTemplate.PLAIN:
        return [command_of(("gnt-instance", "move", "-f", "-n", target, name))]
    return [command_of(words) for words in arguments(step, name, target)]


def downtime(step: Balanced, state: ClusterState) -> str:
    """Return what a move means for an instance that should run; empty if it keeps running, or does not run."""
    item = step.move.instance
    observed = state.instances[item.name]
    if not item.status.running:
        return ""
    if item.template is DiskTemplate.PLAIN:
        return "is down while its disks are copied"
    if step.move.kind is MoveKind.REPLACE_SECONDARY:
        return ""
    if item.status not in {InstanceStatus.RUNNING, InstanceStatus.ERROR_UP}:
        if observed.admin_state != "up":
            return ""
        there = step.nodes[step.instance.primary].facts.name
        if step.move.kind is MoveKind.REPLACE_PRIMARY:
            return f"is down now; starts on {step.nodes[item.secondary].facts.name}, then stops and starts on {there}"
        return f"is down now, and starts on {there}"
    return "stops and starts again (always_failover)" if observed.always_failover else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """Nodes that are away for a while: moves `out` and commands `first` come before, `last` and moves `back` after."""

    nodes: CommandWords
    out: Sequence[Move]
    back: Sequence[Move]
    first: tuple[CommandWords, ...]
    last: tuple[CommandWords, ...]


def moves_script(remedy: SavedRemedy, again: str = "", absences: Sequence[Absence] = ()) -> str:
    """Return the script that carries moves on the cluster in `state` out in job sets, and undoes them with `--back`.

    It looks first whether what they suppose holds, as far as commands of Ganeti show it in a line. `again` is the
    command that works out other moves. With `absences` it makes their moves, and waits for a person in each.
    """
    moves, supposed = remedy.moves, remedy.supposed
    checks = [(effect, _check(effect)) for effect in (supposed.effects if supposed else ())]
    template = script_environment().get_template("remedy.sh.j2")
    by_set = [list(jobs) for _, jobs in groupby(enumerate(moves), key=lambda item: item[1].job_set)]
    sets = _forward_sets(moves)
    back = [[_way_back(moves[: number + 1]) for number, _ in jobs] for jobs in reversed(by_set)]
    parts = count(len(absences), "wave") if absences else count(len(sets), "set")
    heading = f"Move instances of cluster {remedy.cluster}: {count(len(moves), 'move')}, {parts}"
    waves = [
        {
            "nodes": item.nodes,
            **{way: _forward_sets(moves) for way, moves in (("out", item.out), ("back", item.back))},
            **{when: [*map(shell_line, lines)] for when, lines in (("first", item.first), ("last", item.last))},
        }
        for item in absences
    ]
    return template.render(
        heading=heading,
        version=__version__,
        cluster=name_for_script(remedy.cluster),
        cluster_uuid=remedy.cluster_uuid,
        read_from=describe_source(remedy.source, remedy.snapshot),
        sets=sets,
        back=back,
        waves=waves,
        supposed=supposed,
        checks=[check for _, check in checks if check is not None],
        unchecked=[f"{effect.object} {'.'.join(effect.path)}" for effect, check in checks if check is None],
        lost=[f"{move.instance}: {move.no_way_back}" for move in moves if move.no_way_back and not waves],
        again=again,
    )


def _forward_sets(moves: Sequence[Move]) -> list[list[dict[str, object]]]:
    by_set = groupby(enumerate(moves), key=lambda item: item[1].job_set)
    return [[_forward(moves[number:]) for number, _ in jobs] for _, jobs in by_set]


def _check(effect: Effect) -> dict[str, str] | None:
    """Return how a shell sees that a change (`words`) was made: of tags, groups and their nodes; None for any other.

    The output of the command then has the line (`wanted` is `yes`), or lacks it (`no`).
    """
    level, _, name = effect.object.partition("/")
    there = "yes" if effect.after is not None else "no"
    match effect.path:
        case path if path[:1] == TAGS:
            wanted, line, argv = there, path[1], [f"gnt-{level}", "list-tags", *([name] if name else [])]
        case path if path == NAME:
            wanted, line, argv = there, name, ["gnt-group", "list", "--no-headers", "-o", "name"]
        case path if path == MEMBERSHIP or (level, path) == ("group", ("alloc_policy",)):
            wanted, line, argv = "yes", str(effect.after), [f"gnt-{level}", "list", "--no-headers", "-o", path[0], name]
        case _:
            return None
    return {"words": effect_words(effect), "wanted": wanted, "line": line, "command": shell_line(argv)}


def _forward(moves: Sequence[Move]) -> dict[str, object]:
    """Return the job of the first of `moves`, the others of which come later."""
    first = moves[0]
    own = [move for move in moves if move.instance == first.instance]
    return _job(f"{', '.join(first.nodes_before)} to {', '.join(first.nodes_after)}", own)


def _way_back(moves: Sequence[Move]) -> dict[str, object]:
    """Return the job that undoes the last of `moves`, the others of which came before."""
    last = moves[-1]
    own = [move.undoing for move in reversed(moves) if move.instance == last.instance]
    return _job(f"back to {', '.join(last.nodes_before)}", own, last.no_way_back)


def _job(words: str, moves: Sequence[Move], impossible: str = "") -> dict[str, object]:
    """Return the first of `moves` of an instance as the script has it.

    It says where the instance begins, its commands, each with where the instance is before it (as `gnt-instance list -o
    pnode,snodes` shows it), and where it is when this move is done, or a later one begun.
    """
    first, *others = ([f"{primary}/{','.join(mirror)}" for primary, *mirror in move.places] for move in moves)
    return {
        "title": f"{moves[0].instance}: {words}",
        "instance": moves[0].instance,
        "begins": first[0],
        "ends": dict.fromkeys((first[-1], *(place for places in others for place in places))),
        "lines": [
            (place, shell_line(one.argv or ())) for place, one in zip(first[:-1], moves[0].commands, strict=True)
        ],
        "impossible": impossible,
    }


_BACKEND = {"maxmem": "M", "minmem": "M", "vcpus": "", "spindle_use": ""}
"""The parameters of an instance's size, with their units on the command line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCure:
    """An instance whose size violates the policy: the commands that make it legal, or why none do.

    `violation` names the size that the commands lead to, with its breaches; where none do, the one that
    Ganeti names.
    """

    instance: str
    violation: PolicyViolation
    commands: tuple[Command, ...] = ()
    back: tuple[Command, ...] = ()
    reason: str = ""


def size_cure(
    observed: LiveInstance, violation: PolicyViolation, policy: AllowedSizes, layout: Layout
) -> tuple[SizeCure, Layout]:
    """Return the nearest legal size of an instance that its nodes can hold, and the layout with it."""
    exclusive = violation.exclusive_storage
    reasons: list[tuple[float, str]] = []
    sizes = []
    for number, (pair, name) in enumerate(zip(policy.pairs, policy.names, strict=True), start=1):
        alone = replace(policy, pairs=(pair,), names=(name,))
        found = verdict_on(observed, alone, exclusive=exclusive, memory=observed.maxmem).violation or violation
        far = distance(found.breaches)
        if refused := next(filter(None, (_why_not(breach, exclusive=exclusive) for breach in found.breaches)), None):
            reasons.append((far, refused))
        elif wanted := _changed(observed, found.breaches, *pair):
            sizes.append((far, replace(found, pair=number), wanted))
        else:
            reasons.append((far, "no value within the size is a multiple of 4M"))
    for _, aim, wanted in sorted(sizes, key=lambda item: item[0]):
        after = _with_size(layout, observed, wanted)
        if isinstance(after, Layout):
            commands, back = list(_commands(observed, wanted)), list(_commands(wanted, observed))
            return SizeCure(instance=observed.name, violation=aim, commands=tuple(commands), back=tuple(back)), after
        reasons.append((0, after))
    reason = min(reasons, key=lambda item: item[0])[1] if reasons else "the policy has no size"
    return SizeCure(instance=observed.name, violation=violation, reason=reason), layout


def _why_not(breach: ParameterBreach, *, exclusive: bool) -> str:
    fixed: dict[str, str] = read_data("known_words.toml")["fixed_sizes"]
    if breach.parameter in fixed:
        return fixed[breach.parameter]
    if breach.parameter == "disk-size" and (breach.beyond or 0) > 0:
        return f"disk {breach.disk} is too large, and Ganeti does not shrink disks"
    return fixed["spindles"] if breach.parameter == "spindle-use" and exclusive else ""


def _changed(
    item: LiveInstance, breaches: tuple[ParameterBreach, ...], low: Mapping[str, int], high: Mapping[str, int]
) -> LiveInstance | None:
    """Return the instance with the values within a size that are nearest to its own; None if there are none."""
    new = item
    for breach in breaches:
        name, value = breach.parameter, int(breach.value or 0)
        least, most = low.get(name, value), high.get(name, value)
        nearest = nearest_within(value, least, most, SIZE_STEP_MIB if name in SPEC_SIZES else 1)
        if not least <= nearest <= most:
            return None
        if name == "memory-size":
            lowest = min(round_size(low.get(name, 0)), nearest)
            minmem = nearest if item.minmem == item.maxmem else max(min(item.minmem, nearest), lowest)
            new = replace(new, maxmem=nearest, minmem=minmem)
        elif name == "cpu-count":
            new = replace(new, vcpus=nearest)
        elif name == "spindle-use":
            new = replace(new, spindle_use=nearest)
        elif breach.disk is not None:
            disks = (*new.disks[: breach.disk], replace(new.disks[breach.disk], size=nearest))
            new = replace(new, disks=(*disks, *new.disks[breach.disk + 1 :]))
    return new


def _commands(old: LiveInstance, new: LiveInstance) -> Iterator[Command]:
    names = [name for name in _BACKEND if getattr(new, name) != getattr(old, name)]
    body: dict[str, Value]
    if names:
        words = ",".join(f"{name}={getattr(new, name)}{_BACKEND[name]}" for name in names)
        body = {"beparams": {name: getattr(new, name) for name in names}}
        whole = round_size(new.maxmem) == new.maxmem and round_size(new.minmem) == new.minmem
        argv = ("gnt-instance", "modify", "-B", words, new.name) if whole else None
        yield Command(argv, call("PUT", ("instances", new.name, "modify"), body))
    for number, (was, now) in enumerate(zip(old.disks, new.disks, strict=True)):
        if now.size > was.size:
            body = {"amount": now.size, "absolute": True}
            request = call("POST", ("instances", new.name, "disk", str(number), "grow"), body)
            words_of_disk = (new.name, str(number), f"{now.size}M")
            yield Command(("gnt-instance", "grow-disk", "--absolute", *words_of_disk), request)


def _with_size(layout: Layout, observed: LiveInstance, wanted: LiveInstance) -> Layout | str:
    old = next(item for item in layout.instances.values() if item.name == observed.name)
    grown = sum(disk.size for disk in wanted.disks) - sum(disk.size for disk in observed.disks)
    new = replace(old, memory=wanted.maxmem, vcpus=wanted.vcpus, spindle_use=wanted.spindle_use)
    if grown:
        disks = tuple(Disk(disk.size, disk.spindles) for disk in wanted.disks)
        new = replace(new, disk=old.disk + grown, disks=disks)
    smaller = new.memory <= old.memory and new.vcpus <= old.vcpus and new.spindle_use <= old.spindle_use and not grown
    found = {old.primary: add_primary(remove_primary(layout.nodes[old.primary], old), new, force=smaller)}
    if old.secondary != NO_NODE:
        left = remove_secondary(layout.nodes[old.secondary], old)
        found[old.secondary] = add_secondary(left, new, old.primary, force=smaller)
    changed = {index: node for index, node in found.items() if not isinstance(node, FailReason)}
    if (full := next((index for index in found if index not in changed), None)) is not None:
        return f"{layout.nodes[full].facts.name} cannot hold its next legal size"
    after = layout.after(Moved(changed, new))
    if smaller:
        return after  # no loss takes more room than before
    worse = any(shortage(node) > shortage(layout.nodes[index]) for index, node in changed.items())
    worse = worse or len(after.homeless) > len(layout.homeless)
    return "with its next legal size, the loss of a node could not be absorbed" if worse else after
