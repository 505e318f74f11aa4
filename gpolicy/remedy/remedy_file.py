"""Read the file of a remedy, or of a plan. Neither is trusted: commands must be those that follow from the moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Final

from gpolicy import __version__
from gpolicy.cluster.record import Record, shown
from gpolicy.cluster.unreadable import read_gap
from gpolicy.errors import InputError
from gpolicy.ganeti.releases import VERSIONS
from gpolicy.json_shape import Key, Shape
from gpolicy.json_values import plain
from gpolicy.plan.change import NODES, words
from gpolicy.plan.effects import ADMIN_STATE, Effect
from gpolicy.plan.plan_file import (
    check_text,
    checked_object,
    plan_in,
    read_effect,
    read_observed,
    read_procedure_file,
    read_snapshot,
)
from gpolicy.plan.plan_json import OBSERVED, effect_shape
from gpolicy.plan.rebuilding import first_difference
from gpolicy.plan.signature import Signers
from gpolicy.plan.step import Procedure
from gpolicy.remedy.saved_remedy import SavedMove, SavedRemedy, Supposed, Words, command_of, is_move, nodes_of, steps_of

KIND: Final = "gpolicy-remedy"
FORMAT_VERSION: Final = "1.1"

_REMAKE: Final = "make it again: gpolicy remedy --state SRC -o FILE"


_SUPPOSES: Final = Shape(
    "",
    Supposed,
    file="The plan file, or the policy.",
    is_plan="Whether it is a plan file.",
    effects=Key("What it makes of the cluster, leaf by leaf.", effect_shape(Key("cluster, group/NAME or node/NAME."))),
)
SAVED: Final = Shape(
    "",
    SavedRemedy,
    kind=Key(f"Always {KIND}.", {"const": KIND}, lambda _: KIND),
    gpolicy=Key("Version of gpolicy.", str, lambda _: __version__),
    cluster_uuid="UUID of the cluster, null where the source does not show it.",
    ganeti_version=Key("The Ganeti release of the cluster.", str | None, lambda remedy: remedy.version or None),
    observed=Key(
        "The instances that move and the nodes that they leave or go to, as they were read: apply compares them.",
        OBSERVED,
    ),
    not_shown=Key("Values that the source does not show.", of="gaps"),
    residents="The instances on each of the nodes.",
    supposes=Key(
        "What must hold before the first move; null for a remedy for the cluster as it is.", _SUPPOSES, "supposed"
    ),
)
"""What apply needs of a remedy beside its moves."""


def read_procedure(path: FilePath, signers: Signers | None = None) -> Procedure:
    """Return the plan or the remedy in a file. Raise InputError if it is neither, as `read_plan` does."""
    hint = "make a plan with `gpolicy plan -o FILE`, or a remedy with `gpolicy remedy -o FILE`"
    return read_procedure_file(path, signers, _procedure, hint)


def _procedure(written: Record) -> Procedure:
    return _remedy(written) if written.fields.get("kind") == KIND else plan_in(written)


def _remedy(written: Record) -> SavedRemedy:
    version, made_by = written.text("format_version"), written.text("gpolicy")
    if version != FORMAT_VERSION:
        by = f" (gpolicy {shown(made_by)} made it, this is {__version__})"
        raise InputError(f"{written.where}: its format is {shown(version)!r}{by}", hint=_REMAKE)
    if what_if := written.texts("what_if"):
        message = f"{written.where}: it was worked out for a supposed cluster: {shown(', '.join(what_if))}"
        raise InputError(message, hint="make it again, without options that suppose something")
    release = written.text_or_none("ganeti_version") or ""
    if release and release not in VERSIONS:
        raise InputError(f"{written.where}: there is no Ganeti release {shown(release)!r}", hint=_REMAKE)
    moves = [_move(item) for item in written.objects("steps")]
    observed = {name: read_observed(item) for name, item in written.records("observed")}
    residents = written.record("residents")
    found = SavedRemedy(
        cluster=check_text(written, "cluster_name"),
        cluster_uuid=written.text_or_none("cluster_uuid"),
        source=check_text(written, "source"),
        version=release,
        observed=observed,
        gaps=tuple(map(read_gap, written.objects("not_shown"))),
        snapshot=read_snapshot(written),
        supposed=_supposed(written),
        residents={name: residents.texts(name) for name in residents.fields},
    )
    if wrong := next(_contradictions(moves, found), None):
        raise InputError(f"{written.where}: {wrong}", hint=f"the file was changed after it was made: {_REMAKE}")
    return replace(found, steps=steps_of(moves, observed))


def _move(written: Record) -> SavedMove:
    """Return a move whose commands are those that its words say."""
    instance = check_text(written, "instance")
    commands, back = (tuple(_words(item, instance) for item in written.objects(key)) for key in ("commands", "back"))
    move = SavedMove(
        job_set=written.whole("job_set"),
        instance=instance,
        nodes=written.texts("nodes_before"),
        commands=commands,
        back=back,
        no_way_back=written.text_or_none("no_way_back") or "",
    )
    if wrong := next(_wrong(move, written.texts("nodes_after")), None):
        raise InputError(f"{written.where}: {wrong}", hint=f"the file was changed after it was made: {_REMAKE}")
    return move


def _words(written: Record, instance: str) -> Words:
    argv = written.texts("argv")
    if not is_move(argv, instance):
        message = f"{written.where}: {shown(' '.join(argv))} is no command by which a remedy moves {shown(instance)}"
        raise InputError(message, hint=_REMAKE)
    if difference := first_difference(written.fields.get("rapi"), plain(command_of(argv).rapi), "rapi"):
        raise InputError(f"{written.where}: {difference}", hint=_REMAKE)
    return argv


def _wrong(move: SavedMove, nodes_after: Sequence[str]) -> Iterator[str]:
    """Yield why a move does not lead where it says, or its way back not to where it began."""
    for nodes, commands in ((move.nodes, move.commands), (tuple(nodes_after), move.back)):
        mirrored = any(argv[1] == "replace-disks" or "-n" not in argv for argv in commands)
        alone = any(argv[1] != "replace-disks" and "-n" in argv for argv in commands)
        if not 1 <= len(nodes) <= 2 or (mirrored and len(nodes) == 1) or (alone and len(nodes) == 2):
            yield f"its commands are not for an instance on {len(nodes)} nodes"
            return
    places = move.places
    if not move.commands or places[-1] != tuple(nodes_after) or any(len({*place}) < len(place) for place in places):
        yield f"its commands lead to {' and '.join(places[-1])}"
    back = SavedMove(
        job_set=move.job_set, instance=move.instance, nodes=places[-1], commands=move.back, back=(), no_way_back=""
    )
    if bool(move.back) is bool(move.no_way_back) or (move.back and back.places != places[::-1]):
        yield "its way back does not lead to where it began"


def _contradictions(moves: Sequence[SavedMove], remedy: SavedRemedy) -> Iterator[str]:
    """Yield why no remedy has these moves for the observed objects."""
    here: dict[str, Words] = {}
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
        if here[name] != move.nodes:
            yield f"{shown(move.instance)} is on {' and '.join(here[name])} then, not on {' and '.join(move.nodes)}"
        here[name] = move.places[-1]


def _supposed(written: Record) -> Supposed | None:
    if written.fields.get("supposes") is None:
        return None
    supposes = written.record("supposes")
    effects: list[Effect] = []
    for item in supposes.objects("effects"):
        effect = read_effect(item)
        checked_object(effect.object, item.where)
        effects.append(effect)
    return Supposed(check_text(supposes, "file"), supposes.flag("is_plan"), tuple(effects))
