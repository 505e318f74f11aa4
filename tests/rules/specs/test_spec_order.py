from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.checking.pairs import MAX_PAIRS
from gpolicy.findings import Severity
from tests.rules.policy_texts import bounds
from tests.rules.run_rules import check, codes

LARGE = bounds("16G 32G", "8 16", "200G 400G")
MEDIUM = bounds("8G 12G", "4 6", "100G 150G")
SMALL = bounds("1G 4G", "1 2", "10G 50G")
MEMORY = bounds("64G 128G", "1 2", "10G 50G")
DISK = bounds("1G 2G", "1 2", "1T 2T")


def group(*pairs: str, flag: str = "") -> str:
    head = f"gpolicy: v1\nkind: NodeGroup\nname: gold\n{flag}ipolicy:\n  minmax:\n"
    return head + "".join(f"    - name: s{number}\n      {pair}" for number, pair in enumerate(pairs))


@pytest.mark.parametrize("pairs", [(LARGE, MEDIUM, SMALL), (LARGE,), (LARGE, SMALL)])
def test_biggest_first_is_sound(pairs: tuple[str, ...], tmp_path: Path) -> None:
    assert check(group(*pairs), tmp_path) == []


@pytest.mark.parametrize("pairs", [(MEMORY, DISK), (DISK, MEMORY)])
def test_incomparable_specs_are_only_noted(pairs: tuple[str, ...], tmp_path: Path) -> None:
    (found,) = check(group(*pairs), tmp_path)
    assert (found.code, found.severity) == ("GP218", Severity.INFO)


@pytest.mark.parametrize(
    ("pairs", "misplaced"),
    [
        ((SMALL, LARGE), ["s1"]),
        ((SMALL, MEDIUM, LARGE), ["s1"]),
        ((LARGE, SMALL, MEDIUM), ["s2"]),
        ((MEDIUM, SMALL, LARGE), ["s2"]),
    ],
)
def test_the_first_spec_behind_a_smaller_one_is_named(
    pairs: tuple[str, ...], misplaced: list[str], tmp_path: Path
) -> None:
    found = check(group(*pairs), tmp_path)
    assert set(codes(found)) == {"GP202"}
    assert [finding.message.split()[1] for finding in found] == misplaced


def test_the_hint_says_how_order_matters(tmp_path: Path) -> None:
    (found,) = check(group(SMALL, LARGE), tmp_path)
    assert found.hint == "write the sizes in the order s1, s0: capacity is counted from the first size on"
    assert found.related[0].span.line == 6


@pytest.mark.parametrize(
    ("pairs", "order"),
    [
        ((SMALL, MEDIUM, LARGE), (2, 1, 0)),
        ((SMALL, LARGE, MEDIUM), (1, 2, 0)),
        ((MEDIUM, LARGE, SMALL), (1, 0, 2)),
        ((LARGE, SMALL, MEDIUM), (0, 2, 1)),
    ],
)
@pytest.mark.parametrize("flag", ["", "ndparams: {exclusive_storage: true}\n"])
def test_the_order_that_is_asked_for_is_sound(
    pairs: tuple[str, ...], order: tuple[int, ...], flag: str, tmp_path: Path
) -> None:
    found = [item for item in check(group(*pairs, flag=flag), tmp_path) if item.severity is not Severity.INFO]
    assert codes(found) == ["GP202"]
    assert f"in the order {', '.join(f's{number}' for number in order)}:" in found[0].hint
    mended = check(group(*(pairs[number] for number in order), flag=flag), tmp_path)
    assert [item for item in mended if item.severity is not Severity.INFO] == []


def test_with_exclusive_storage_the_least_disk_size_orders(tmp_path: Path) -> None:
    exclusive = "ndparams: {exclusive_storage: true}\n"
    assert codes(check(group(DISK, MEMORY, flag=exclusive), tmp_path)) == ["GP411"]
    assert codes(check(group(MEMORY, DISK, flag=exclusive), tmp_path)) == ["GP411", "GP410"]


def test_equal_least_disk_sizes_leave_the_dedicated_order_open(tmp_path: Path) -> None:
    exclusive = "ndparams: {exclusive_storage: true}\n"
    found = check(group(MEMORY, SMALL, flag=exclusive), tmp_path)
    assert [finding.message for finding in found if finding.code == "GP410"] == [
        "size s1 has the same min disk-size as size s0 before it"
    ]


def test_a_list_too_long_to_compare_says_so(tmp_path: Path) -> None:
    sizes = range(MAX_PAIRS + 10, 0, -1)
    pairs = [bounds(f"{n}G {n}G", f"{n} {n}", f"{n}G {n}G") for n in sizes]
    assert check(group(*pairs[: MAX_PAIRS - 1]), tmp_path) == []
    assert codes(check(group(*pairs), tmp_path)) == ["GP209"]
    assert codes(check(group(*pairs, pairs[-1]), tmp_path)) == ["GP209"]


def test_a_digit_too_much_of_a_smaller_size_is_asked(tmp_path: Path) -> None:
    (found,) = check(group(LARGE, SMALL.replace("50G", "500G")), tmp_path)
    assert (found.code, found.hint) == ("GP217", "is 50G meant? Else lower the one, or raise the other")
