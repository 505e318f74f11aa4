"""Suggested sizes: what is left of unlike nodes, and a mix without a limit."""

from __future__ import annotations

from dataclasses import replace

from gpolicy.report.answer import plain_text
from gpolicy.report.suggest_answer import MIX, _stranded, suggest_answer
from gpolicy.suggest.suggesting import suggest
from gpolicy.suggest.suggestion import SuggestRequest
from tests.suggest.groups_of_nodes import Hardware, group

LARGE, SMALL = Hardware(memory=403456, cpus=49, disk=6000000), Hardware(memory=270000, cpus=33, disk=4000000)
REQUEST = SuggestRequest(template="plain", vcpu_ratio=1)


def test_what_unlike_nodes_waste_is_shown_by_kind() -> None:
    state = group(LARGE, LARGE, SMALL, SMALL, SMALL)
    report = suggest(state, REQUEST)
    table = _stranded(report.groups[0])
    assert table.headings == ("nodes", "size", "fill it", "memory", "CPUs", "disk", "wasted")
    assert {"wasted", "memory"} <= table.right
    kinds = dict.fromkeys(plain_text(row[0]) for row in table.rows)
    assert sorted(name for kind in kinds for name in kind.split(", ")) == sorted(state.nodes)
    assert [kind.count(",") + 1 for kind in kinds] == [3, 2]
    tables = [part for section in suggest_answer(report).sections for part in section.tables]
    assert tables


def test_nodes_of_one_kind_need_no_names() -> None:
    table = _stranded(suggest(group(LARGE, LARGE), REQUEST).groups[0])
    assert table.headings[0] == "size"


def test_a_mix_that_nothing_limits_has_no_binding() -> None:
    nodes = group(Hardware(), Hardware(), exclusive=True)
    mix = suggest(nodes, SuggestRequest(mix={1: 1, 2: 1, 4: 2}, divisors=(1, 2, 4))).groups[0].mix
    assert mix is not None
    assert mix.binding is not None
    assert (MIX(mix)["binding"], MIX(mix)["explanation"]) == (mix.binding.cause.key, mix.binding.cause.sentence)
    free = MIX(replace(mix, binding=None))
    assert (free["binding"], free["explanation"]) == (None, None)
