"""What people read of an effect."""

from __future__ import annotations

import pytest

from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN, Path, Value
from gpolicy.plan.changes import MEMBERSHIP, NAME, NODES, TAGS
from gpolicy.plan.effects import Effect, effect_words, value_words

MINMAX: Path = ("ipolicy", "minmax")


@pytest.mark.parametrize(
    ("path", "before", "after", "words"),
    [
        (NAME, None, "b", "group/a: created"),
        (NAME, "a", None, "group/a: removed"),
        (NAME, "a", "b", 'group/a: renamed to "b"'),
        (MEMBERSHIP, "x", "y", 'group/a: from group "x" to "y"'),
        (NODES, ["n1", "n2"], ["n3"], "group/a: from n1, n2 to n3"),
        ((*TAGS, "ü"), None, True, 'group/a: tag "ü" added'),
        ((*TAGS, "t"), True, None, 'group/a: tag "t" removed'),
        (("ipolicy", "vcpu-ratio"), None, 4.0, "group/a ipolicy.vcpu-ratio: not set → 4"),
        (("ndparams", "ovs_name"), "bü", "x", 'group/a ndparams.ovs_name: "bü" → "x"'),
    ],
)
def test_each_kind_of_leaf(path: Path, before: Value, after: Value, words: str) -> None:
    assert effect_words(Effect("group/a", path, before, after)) == words


def test_spec_pairs_are_shown_by_parameter_and_others_as_they_are() -> None:
    pair: Value = {"min": {**DEFAULT_MIN, "memory-size": 1024}, "max": {**DEFAULT_MAX, "memory-size": 1536}}
    assert "memory-size 1G..1536M, " in value_words(MINMAX, [pair])
    assert value_words(MINMAX, [{"ü": 1}]) == '[{"ü": 1}]'
    odd: Value = {"min": {**DEFAULT_MIN, "memory-size": True}, "max": {**DEFAULT_MAX}}
    assert value_words(MINMAX, [odd]).count("true..") == 1


def test_long_values_are_cut_around_their_difference() -> None:
    path, long = ("ndparams", "ovs_name"), "x" * 4000
    alike = effect_words(Effect("cluster", path, f"{long}1{long}", f"{long}2{long}"))
    around = "x" * 40
    side = "(3,961 characters alike)…" + around + "{}" + around + "…(3,961 characters alike)"
    assert alike == f"cluster ndparams.ovs_name: {side.format(1)} → {side.format(2)}"
    cut = value_words(path, long)
    assert cut.startswith(f'"{"x" * 1999}… (cut: 2 more characters are in the plan; sha256 of all ')
    assert cut.endswith(f'…) …{"x" * 1999}"')
    assert value_words(path, "x" * 3998) == f'"{"x" * 3998}"'
