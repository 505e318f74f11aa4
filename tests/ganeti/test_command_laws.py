"""Laws of the commands, judged by Ganeti's own parsers, RAPI handlers and logical units."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from gpolicy.ganeti.commands import (
    Command,
    add_tags,
    assign_nodes,
    cluster_modify,
    group_add,
    group_remove,
    group_rename,
    object_modify,
    remove_tags,
)
from gpolicy.ganeti.expressible import Assignments, InexpressibleError, Reset
from gpolicy.ganeti.parameters import canonical, parameter_at
from gpolicy.ganeti.vocabulary import DISK_STATE, HV_STATE, Level, Path, Value, Values
from tests.ganeti.assignment_strategies import VERSION, WIDE_PAIR, assignments, object_names, tags, wild_assignments
from tests.ganeti.real_ganeti import RefusedError, needs_ganeti, real_ganeti, values_of
from tests.laws import examples

pytestmark = needs_ganeti

law = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def modify(level: Level, wanted: Assignments) -> Command:
    if level is Level.CLUSTER:
        return cluster_modify(wanted, version=VERSION)
    return object_modify(level, "obj1", wanted)


def as_written(wanted: Assignments) -> Values:
    """What the opcode must hold: the values themselves, and the word `default` where there is a reset."""
    return {
        path: (["default"] if path[-1] == "disk-templates" else "default")
        if isinstance(value, Reset)
        else canonical(path, value)
        for path, value in wanted.items()
    }


@pytest.mark.parametrize("level", list(Level))
@law
@given(data=st.data())
def test_parsed_by_ganeti_the_values_are_the_same(level: Level, data: st.DataObject) -> None:
    wanted = data.draw(assignments(level))
    command = modify(level, wanted)
    by_argv = real_ganeti().parse(command.argv)
    by_rapi = real_ganeti().receive(command.rapi)
    assert values_of(by_argv) == as_written(wanted)
    assert by_argv == by_rapi


@law
@given(name=object_names, wanted=assignments(Level.GROUP, resets=False, least=0))
def test_a_new_group_gets_its_name_and_values(name: str, wanted: Assignments) -> None:
    command = group_add(name, wanted)
    by_argv = real_ganeti().parse(command.argv)
    assert by_argv["group_name"] == name
    assert values_of(by_argv) == as_written(wanted)
    assert by_argv == real_ganeti().receive(command.rapi)


@law
@given(name=object_names, wanted=assignments(Level.NODE))
def test_any_name_reaches_ganeti(name: str, wanted: Assignments) -> None:
    for command in (
        object_modify(Level.GROUP, name, wanted),
        object_modify(Level.NODE, name, wanted),
        group_remove(name),
    ):
        fields = real_ganeti().parse(command.argv)
        assert name in {fields.get("group_name"), fields.get("node_name")}
        if command.rapi is not None:
            assert real_ganeti().receive(command.rapi) == fields


@law
@given(old=object_names, new=object_names, nodes=st.lists(object_names, min_size=1, max_size=4))
def test_renames_and_moves_name_the_same_objects_by_both_routes(old: str, new: str, nodes: list[str]) -> None:
    rename, move = group_rename(old, new), assign_nodes(old, nodes)
    renamed, moved = real_ganeti().parse(rename.argv), real_ganeti().parse(move.argv)
    assert (renamed["group_name"], renamed["new_name"]) == (old, new)
    assert (moved["group_name"], moved["nodes"], moved["force"]) == (old, nodes, False)
    for command, fields in ((rename, renamed), (move, moved)):
        if command.rapi is not None:
            assert real_ganeti().receive(command.rapi) == fields


@law
@given(level=st.sampled_from(list(Level)), name=object_names, wanted=st.sets(tags, min_size=1, max_size=8))
def test_tags_come_through(level: Level, name: str, wanted: set[str]) -> None:
    for make in (add_tags, remove_tags):
        command = make(level, None if level is Level.CLUSTER else name, wanted)
        fields = real_ganeti().parse(command.argv)
        assert set(fields["tags"]) == wanted
        assert fields.get("name") == (None if level is Level.CLUSTER else name)
        if command.rapi is not None:
            assert real_ganeti().receive(command.rapi) == fields


def after(before: Values, wanted: Assignments, level: Level) -> Values:
    """What the object must hold afterwards."""
    values = dict(before)
    if level is Level.CLUSTER:
        _fill_states(values, wanted)
    for path, value in wanted.items():
        if not isinstance(value, Reset):
            values[path] = canonical(path, value)
        elif level is Level.CLUSTER:
            parameter = parameter_at(path)
            assert parameter is not None
            values[path] = parameter.default
        else:
            values.pop(path, None)
    return values


def _fill_states(values: Values, wanted: Assignments) -> None:
    """Fill every entry of a state that is touched with the built-in values, as the cluster's job does."""
    for state, parameters in (("hv_state", HV_STATE), ("disk_state", DISK_STATE)):
        if any(path[0] == state for path in wanted):
            for entry in {path[:-1] for path in (*values, *wanted) if path[0] == state}:
                for name, (default, _) in parameters.items():
                    values.setdefault((*entry, name), default)


def plain(wanted: Assignments) -> dict[Path, Value]:
    return {path: canonical(path, value) for path, value in wanted.items() if not isinstance(value, Reset)}


def at_start(data: st.DataObject, level: Level) -> dict[Path, Value]:
    """What the object holds before: own values of any kind; for the cluster a few families, the rest is built in."""
    own = plain(data.draw(assignments(level, resets=False, sane=True, least=0)))
    if level is Level.CLUSTER:
        kept = {"ndparams", "reserved_lvs", "hv_state", "disk_state"}
        own = {path: value for path, value in own.items() if path[0] in kept}
        own["ipolicy", "minmax"] = [WIDE_PAIR]
    return own


@pytest.mark.parametrize("level", list(Level))
@law
@given(data=st.data())
def test_ganeti_stores_the_wanted_own_values(level: Level, data: st.DataObject) -> None:
    own = at_start(data, level)
    wanted = data.draw(assignments(level, sane=True))
    command = modify(level, wanted)
    assert command.argv is not None
    assert command.rapi is not None
    for form in (command.argv, command.rapi):
        before, stored = real_ganeti().store(form, own)
        assert stored == after(before, wanted, level)


@law
@given(wanted=assignments(Level.GROUP, resets=False, sane=True, least=0))
def test_a_new_group_stores_what_is_wanted(wanted: Assignments) -> None:
    command = group_add("g", wanted)
    assert command.argv is not None
    assert command.rapi is not None
    for form in (command.argv, command.rapi):
        _, stored = real_ganeti().store(form, {})
        assert stored == {("alloc_policy",): "preferred"} | plain(wanted)


@pytest.mark.parametrize("level", list(Level))
@settings(law, max_examples=examples(50))
@given(data=st.data())
def test_ganeti_never_stores_anything_else(level: Level, data: st.DataObject) -> None:
    """A value is refused by us, refused by Ganeti, or stored exactly."""
    wanted = data.draw(wild_assignments(level))
    try:
        command = modify(level, wanted)
    except InexpressibleError:
        return
    for form in (command.argv, command.rapi):
        if form is None:
            continue
        try:
            before, stored = real_ganeti().store(form, {})
        except RefusedError:
            continue
        assert stored == after(before, wanted, level)
