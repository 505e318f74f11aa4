"""Which of several values that contradict one another is the slip: one finding, at that value, with what is meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.rules.policy_texts import CLUSTER, LARGE, SMALL, spec
from tests.rules.test_slips_between_documents import bad

STD = "  std: {memory-size: 4G, cpu-count: 2, disk-size: 40G, disk-count: 1, nic-count: 1, spindle-use: 1}\n"
SHARED = f"{CLUSTER}ipolicy:\n{STD}  minmax:\n{LARGE}{SMALL}"
BELOW = (
    SHARED.replace("10G", "5G")
    .replace("12G", "7G")
    .replace("16G", "8G")
    .replace("4, disk-size: 100G", "2, disk-size: 20G")
)
PARTS = f"{CLUSTER}ipolicy:\n  minmax:\n" + "".join(
    spec(*part)
    for part in (
        ("full", "248G 249G", "30 30", "11000G 11930G", "12 12"),
        ("half", "124G 124G", "15 15", "5000G 5965G", "6 6"),
        ("quarter", "61G 62G", "7 7", "2000G 2982G", "3 3"),
    )
)

SLIPS: dict[str, tuple[str, str, str, str, str]] = {
    "a maximum that lost a digit": (SHARED, "memory-size: [64G]", "4G", "GP206", "is 64G meant?"),
    "a maximum that lost a zero": (SHARED, "disk-size: [90G]", "9G", "GP206", "max 9G is far from the other sizes"),
    "a maximum in another unit": (SHARED, "disk-size: [90G]", "90M", "GP206", "is 90G meant?"),
    "digits of a maximum": (PARTS, "cpu-count: [30], disk-size: 11930G", "03", "GP206", "is 30 meant?"),
    "digits of a minimum": (PARTS, "memory-size: [248G]", "428G", "GP206", "is 248G meant?"),
    "a digit too many in a minimum": (PARTS, "memory-size: [61G]", "610G", "GP206", "is 61G meant?"),
    "a part that lost a digit": (PARTS, "disk-size: [5965G]", "965G", "GP206", "is 5965G meant?"),
    "a minimum in another unit": (SHARED, "cpu-count: 1, disk-size: [10G]", "10M", "GP152", "write 10G, if 10 GiB"),
    "volumes of a whole node": (PARTS, "spindle-use: [12]}\n    - name: half", "2", "GP206", "is 12 meant?"),
    "a std in another unit": (SHARED, "std: {memory-size: [4G]", "4T", "GP205", "is 4G meant?"),
    "a std that lost a zero": (SHARED, "cpu-count: 2, disk-size: [40G]", "4G", "GP205", "is 40G meant?"),
    "a maximum below std": (BELOW, "disk-size: [90G]", "9G", "GP205", "max 9G is far from the other sizes: is 90G"),
    "a minimum above std": (BELOW, "cpu-count: 1, disk-size: [5G]", "50G", "GP205", "is 5G meant?"),
}
"""A sane policy; which of its values, in brackets, is changed into which; the code; and a part of the hint."""


@pytest.mark.parametrize("name", SLIPS)
def test_the_finding_is_at_the_slip(name: str, tmp_path: Path) -> None:
    sane, marked, slip, code, hint = SLIPS[name]
    before, value, after = re.split(r"[\[\]]", marked)
    start, rest = sane.split(f"{before}{value}{after}")
    start += before
    (found,) = bad(f"{start}{slip}{after}{rest}", tmp_path)
    place = start.count("\n") + 1, len(start) - start.rfind("\n")
    assert found.span is not None
    assert (found.code, (found.span.line, found.span.column), hint in found.hint) == (code, place, True), found


@pytest.mark.parametrize("sane", [SHARED, BELOW, PARTS])
def test_the_policies_are_sane(sane: str, tmp_path: Path) -> None:
    assert bad(sane, tmp_path) == []


def test_an_order_of_dedicated_sizes_that_follows_from_a_slip_is_no_finding_of_its_own(tmp_path: Path) -> None:
    dedicated = f"{PARTS}  disk-templates: [plain]\nndparams: {{exclusive_storage: true}}\n"
    assert bad(dedicated, tmp_path) == []
    (found,) = bad(dedicated.replace("disk-size: 5000G", "disk-size: 5000"), tmp_path)
    assert (found.code, [item.code for item in found.consequences]) == ("GP230", ["GP410"])


def test_a_maximum_above_that_of_two_larger_sizes_is_one_finding(tmp_path: Path) -> None:
    tiny = spec("tiny", "256M 512M", "1 1", "5G 9T")
    (found,) = bad(f"{SHARED}{tiny}", tmp_path)
    assert (found.code, [item.code for item in found.consequences]) == ("GP217", ["GP217"])


@pytest.mark.parametrize(("old", "new", "line"), [("cpu-count: 16", "cpu-count: 2", 9), ("90G", "9T", 12)])
def test_of_two_sizes_that_contradict_each_other_the_odd_one_is_reported(
    old: str, new: str, line: int, tmp_path: Path
) -> None:
    sane = SHARED.replace("cpu-count: 4", "cpu-count: 2")
    (found,) = bad(sane.replace(old, new), tmp_path)
    assert found.span is not None
    assert (found.code, found.span.line) == ("GP217", line)


def test_a_number_with_a_zero_before_it_that_makes_no_sense_is_one_finding(tmp_path: Path) -> None:
    text = f"{CLUSTER}diskparams:\n  drbd: {{dynamic-resync: true, c-plan-ahead: 02}}\n"
    assert [item.code for item in bad(text, tmp_path)] == ["GP152"]
