"""The form in which a value that drifted is written, and spec pairs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN, Value, Values
from tests.drift.test_comparing import RATIO
from tests.drift.written import (
    files_of,
    gold,
    one_file,
    pair,
    pairs_text,
    reasons,
    spec,
    write,
)
from tests.plan.planned import cluster

# --- the form of a value ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "before", "found", "after"),
    [
        (RATIO, "2", 4.0, "4"),
        (RATIO, "2   # as agreed", 2.5, "2.5   # as agreed"),
        (RATIO, "inherit", 4.0, "4"),
        (RATIO, "4", None, "inherit"),
        (("ndparams", "ssh_port"), '"inherit"', 2222, "2222"),
        (("ndparams", "ovs_name"), "'br0'", "br1", "'br1'"),
        (("ndparams", "ovs_name"), "br0", "12", '"12"'),
        (("ndparams", "exclusive_storage"), "false", True, "true"),
        (("diskparams", "drbd", "resync-rate"), "60M", 30720, "30M"),
        (("diskparams", "rbd", "access"), "inherit", "userspace", "userspace"),
        (("alloc_policy",), "last_resort", "preferred", "preferred"),
        (("ipolicy", "disk-templates"), "[plain, drbd]", ["drbd"], "[drbd]"),
        (("ipolicy", "disk-templates"), "[plain]", ["drbd", "plain"], "[drbd, plain]"),
        (("ipolicy", "disk-templates"), "[plain, drbd]", ["drbd", "plain"], "[drbd, plain]"),
        (("ipolicy", "disk-templates"), "[plain]  # x", ["drbd"], "[drbd]  # x"),
    ],
)
def test_a_value_keeps_the_form_that_it_has(
    tmp_path: Path, path: tuple[str, ...], before: str, found: Value, after: str
) -> None:
    lines = [f"{'  ' * depth}{key}:" for depth, key in enumerate(path)]
    text = "gpolicy: v1\nkind: NodeGroup  # a comment\nname: gold\n" + "\n".join(lines) + " {}\n# the end\n"
    own: Values = {} if found is None else {path: found}
    assert one_file(tmp_path, text.format(before), gold(own)) == text.format(after)


@pytest.mark.parametrize(
    ("before", "mib", "after"),
    [
        ("4G", 8192, "8G"),
        ("4096", 8192, "8192"),
        ("4096M", 8192, "8192M"),
        ("'4 GiB'", 8192, "'8 GiB'"),
        ("4g", 8192, "8g"),
        ("1T", 524288, "512G"),
        ("4096", 512, "512M"),
        ("1.5G", 2048, "2G"),
    ],
)
def test_a_size_keeps_its_unit(tmp_path: Path, before: str, mib: int, after: str) -> None:
    text = (
        f"gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  minmax:\n    - name: one\n"
        f"      min: {spec('128M', DEFAULT_MIN)}\n      max: {spec('{}', DEFAULT_MAX)}  # the largest\n"
    )
    state = gold({("ipolicy", "minmax"): [pair(128, mib)]})
    assert one_file(tmp_path, text.replace("{}", before), state) == text.replace("{}", after)


def test_line_ends_and_a_last_line_without_one_stay(tmp_path: Path) -> None:
    text = "gpolicy: v1\r\nkind: NodeGroup\r\nname: gold\r\nextends: base\r\n---\r\n{}"
    base = "gpolicy: v1\r\nkind: NodeGroup\r\nname: base\r\ntemplate: true\r\nipolicy: {vcpu-ratio: 2}"
    other = "\r\n---\r\ngpolicy: v1\r\nkind: NodeGroup\r\nname: silver\r\nextends: base"
    state = cluster(groups={"gold": {RATIO: 2.0}, "silver": {RATIO: 4.0}})
    after = one_file(tmp_path, text.replace("{}", base + other), state)
    assert after == text.replace("{}", base + other) + "\r\nipolicy:\r\n  vcpu-ratio: 4"


# --- spec pairs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "found", "after"),
    [
        (
            [("s", "1G", "2G"), ("l", "4G", "8G")],
            [(1024, 2048), (4096, 16384)],
            [("s", "1G", "2G"), ("l", "4G", "16G")],
        ),
        ([("", "1G", "2G"), ("", "4G", "8G")], [(4096, 8192)], [("", "4G", "8G")]),
        ([("l", "4G", "8G")], [(4096, 8192), (1024, 2048)], [("l", "4G", "8G"), ("", "1G", "2G")]),
        ([("s", "1G", "2G"), ("l", "4G", "8G")], [(1024, 2048)], [("s", "1G", "2G")]),
    ],
)
def test_pairs_keep_their_names_and_order(
    tmp_path: Path, before: list[tuple[str, str, str]], found: list[tuple[int, int]], after: list[tuple[str, str, str]]
) -> None:
    state = gold({("ipolicy", "minmax"): [pair(*item) for item in found]})
    assert one_file(tmp_path, pairs_text(*before), state) == pairs_text(*after)


def test_own_pairs_in_place_of_inherited_ones_and_back(tmp_path: Path) -> None:
    inherited = "gpolicy: v1\nkind: NodeGroup\nname: gold\nipolicy:\n  minmax: inherit\n  vcpu-ratio: inherit\n"
    own = pairs_text(("", "1G", "2G")) + "  vcpu-ratio: inherit\n"
    assert one_file(tmp_path, inherited, gold({("ipolicy", "minmax"): [pair(1024, 2048)]})) == own
    assert one_file(tmp_path, own, gold({})) == inherited


@pytest.mark.parametrize(
    ("before", "found"),
    [
        ([("s", "1G", "2G"), ("l", "4G", "8G")], [(4096, 8192), (1024, 2048)]),
        ([("s", "1G", "2G"), ("l", "4G", "8G")], [(1024, 8192)]),
    ],
)
def test_it_is_not_guessed_which_named_pair_became_which(
    tmp_path: Path, before: list[tuple[str, str, str]], found: list[tuple[int, int]]
) -> None:
    files_of(tmp_path, {"policy.yaml": pairs_text(*before)})
    wrote = write(tmp_path, gold({("ipolicy", "minmax"): [pair(*item) for item in found]}))
    assert wrote.texts == {}
    assert re.search("named|nobody can tell", reasons(wrote)["group/gold:ipolicy.minmax"])


def test_a_pair_that_a_guard_names_is_not_removed(tmp_path: Path) -> None:
    text = pairs_text(("s", "1G", "2G"), ("l", "4G", "8G"))
    guards = "gpolicy: v1\nkind: Guards\nguards:\n  - {name: g, at_least: 1, group: gold, spec: l}\n"
    files_of(tmp_path, {"policy.yaml": text, "guards.yaml": guards})
    wrote = write(tmp_path, gold({("ipolicy", "minmax"): [pair(1024, 2048)]}))
    assert wrote.texts == {}
    assert "check would find" in reasons(wrote)["group/gold:ipolicy.minmax"]
