"""Overlap, containment and identity of specs, compared with counting the sizes one by one."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings, strategies as st

from gpolicy.checking.pairs import Pair, describe_region
from gpolicy.findings import Severity, told
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS
from gpolicy.policy.model import Leaf
from gpolicy.policy.source_file import SourceFile, YamlDocument
from tests.rules.policy_texts import group_with, spec
from tests.rules.run_rules import check, cluster
from tests.rules.test_slips_with_cluster import WIDE, with_sizes

Box = tuple[tuple[int, int], ...]
"""Lowest and highest value in each of the six dimensions."""

INTERVALS = st.tuples(st.integers(0, 2), st.integers(0, 2)).map(lambda ends: (min(ends), max(ends)))
BOXES: st.SearchStrategy[Box] = st.tuples(*[INTERVALS] * len(SPEC_PARAMETERS))
NAMES = tuple(SPEC_PARAMETERS)
LEAF = Leaf(("ipolicy", "minmax"), [], YamlDocument(SourceFile("f", ""), {}, (1, 1, 1, 1)), ("ipolicy", "minmax"))


def pair(box: Box) -> Pair:
    low = {name: ends[0] for name, ends in zip(NAMES, box, strict=True)}
    high = {name: ends[1] for name, ends in zip(NAMES, box, strict=True)}
    return Pair(LEAF, 0, None, low, high)


def sizes(box: Box) -> set[tuple[int, ...]]:
    """Return every size in the box: the brute-force truth."""
    return set(itertools.product(*(range(low, high + 1) for low, high in box)))


@given(BOXES, BOXES)
@example(((0, 1),) * 6, ((1, 2),) * 6)
@example(((0, 0),) * 6, ((0, 0),) * 6)
def test_the_overlap_is_the_intersection(one: Box, two: Box) -> None:
    common = sizes(one) & sizes(two)
    region = pair(one).overlap(pair(two))
    assert (region is not None) == bool(common)
    if region is not None:
        assert sizes(tuple(region[name] for name in NAMES)) == common


@given(BOXES, BOXES)
def test_containment_is_of_all_sizes(one: Box, two: Box) -> None:
    assert pair(one).contains(pair(two)) == (sizes(one) >= sizes(two))
    assert pair(one).same_as(pair(two)) == (sizes(one) == sizes(two))


@given(BOXES, BOXES)
def test_overlap_has_no_direction(one: Box, two: Box) -> None:
    assert pair(one).overlap(pair(two)) == pair(two).overlap(pair(one))


def policy(boxes: list[Box]) -> str:
    def spec(box: Box, end: int) -> dict[str, int]:
        scale = {name: 4 if name in ("memory-size", "disk-size") else 1 for name in NAMES}
        return {name: ends[end] * scale[name] for name, ends in zip(NAMES, box, strict=True)}

    pairs = [{"name": f"s{n}", "min": spec(box, 0), "max": spec(box, 1)} for n, box in enumerate(boxes)]
    return yaml.safe_dump(
        {"gpolicy": "v1", "kind": "NodeGroup", "name": "gold", "ipolicy": {"minmax": pairs}}, sort_keys=False
    )


def span(one: tuple[int, int], two: tuple[int, int]) -> range:
    return range(max(one[0], two[0]), min(one[1], two[1]) + 1)


def meets(one: tuple[int, int], two: tuple[int, int]) -> bool:
    return one[1] == two[0] or two[1] == one[0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(boxes=st.lists(BOXES, min_size=2, max_size=4))
def test_at_most_one_rule_reports_two_specs(tmp_path: Path, boxes: list[Box]) -> None:
    found = [*told(check(policy(boxes), tmp_path))]
    expected = {"GP201": 0, "GP203": 0, "GP204": 0, "GP229": 0}
    for one, two in itertools.combinations(boxes, 2):
        a, b = sizes(one), sizes(two)
        if a == b:
            expected["GP204"] += 1
        elif a <= b or b <= a:
            expected["GP203"] += 1
        elif a & b:
            differing = [(x, y) for x, y in zip(one, two, strict=True) if x != y]
            main = [(x, y) for x, y in zip(one[:3], two[:3], strict=True) if x != y]
            touching = all(len(span(*pair)) == 1 and meets(*pair) for pair in main or differing)
            expected["GP229" if touching else "GP201"] += 1
    assert {code: sum(finding.code == code for finding in found) for code in expected} == expected


def test_the_overlap_is_named_in_every_dimension(tmp_path: Path) -> None:
    box_one: Box = ((4096, 16384), (1, 8), (0, 3), (1, 1), (1, 2), (0, 4))
    box_two: Box = ((1024, 8192), (1, 4), (2, 4), (1, 1), (0, 4), (2, 9))
    overlap = next(f for f in check(policy([box_one, box_two]), tmp_path) if f.code == "GP201")
    assert overlap.message == (
        "size s1 overlaps size s0: both allow memory-size 16G to 32G, cpu-count 1 to 4, disk-size 8M to 12M,"
        " disk-count 1, nic-count 1 to 2, spindle-use 2 to 4"
    )
    assert overlap.span is not None
    assert overlap.related[0].message == "size s0 is here"
    assert overlap.related[0].span < overlap.span


@pytest.mark.parametrize(
    ("small", "code", "cure"),
    [
        ("memory-size: 18G, cpu-count: 4", "GP201", "end size small below memory-size 16G, or begin size large above"),
        ("memory-size: 16G, cpu-count: 4", "GP229", "end size small below memory-size 16G, or begin size large above"),
    ],
)
def test_what_parts_two_sizes_is_named(small: str, code: str, cure: str, tmp_path: Path) -> None:
    sizes = spec("large", "16G 64G", "4 16", "90G 1T") + spec("small", "1G 2G", "1 2", "10G 90G")
    text = group_with(sizes.replace("memory-size: 2G, cpu-count: 2", small))
    (found,) = [item for item in check(text, tmp_path) if item.code == code]
    assert found.hint.startswith(cure)
    mended = small.replace("18G", "15G").replace("16G", "15G").join(text.rsplit(small, 1))
    assert code not in [item.code for item in check(mended, tmp_path)]


LARGE = "72G 128G", "12 24", "700G 2T"
MEDIUM = "32G 64G", "4 12", "100G 1000G"


@pytest.mark.parametrize(
    ("large", "medium", "number", "hint"),
    [
        ("27G 128G", MEDIUM[0], "27G", "is memory-size 72G meant? Else begin size large above memory-size 64G"),
        (LARGE[0], "32G 640G", "640G", "is memory-size 64G meant? Else end size medium below memory-size 72G"),
        (LARGE[0], "32G 65536G", "64T", "is memory-size 64G meant? Else end size medium below memory-size 72G"),
        ("31G 128G", MEDIUM[0], "", "begin size large above memory-size 64G"),
        ("60G 128G", MEDIUM[0], "", "end size medium below memory-size 60G, or begin size large above memory-size 64G"),
    ],
)
def test_a_slip_of_a_digit_that_makes_sizes_overlap_is_asked(
    large: str, medium: str, number: str, hint: str, tmp_path: Path
) -> None:
    text = group_with(spec("large", large, *LARGE[1:]), spec("medium", medium, *MEDIUM[1:]))
    (overlap,) = [item for item in told(check(text, tmp_path)) if item.code == "GP201"]
    assert overlap.hint == hint
    assert overlap.span is not None
    line = text.splitlines()[overlap.span.line - 1]
    assert number in ("", "64T") or line[overlap.span.column - 1 :].startswith(number)


def test_no_cure_of_an_overlap_refuses_instances_that_are_there(tmp_path: Path) -> None:
    state = with_sizes(cluster({"gold": WIDE}, {"n1": "gold"}), (62 * 1024, 90 * 1024))
    text = group_with(spec("large", "60G 128G", "8 24", "95G 2T"), spec("medium", "32G 64G", "1 12", "10G 100G"))
    assert next(item for item in told(check(text, tmp_path)) if item.code == "GP201").hint.startswith("end size medium")
    found = next(item for item in told(check(text, tmp_path, state=state)) if item.code == "GP201")
    assert found.hint == "begin size large above memory-size 64G"


def test_a_maximum_beyond_the_nodes_explains_an_overlap(tmp_path: Path) -> None:
    sizes = spec("large", *LARGE), spec("medium", "32G 640G", *MEDIUM[1:])
    hardware = "hardware: {memory: 256G, cpus: 32}\n"
    found = [item for item in check(group_with(*sizes) + hardware, tmp_path) if item.severity is not Severity.INFO]
    assert [(item.code, [below.code for below in item.consequences]) for item in found] == [("GP212", ["GP201"])]
    assert found[0].hint.startswith("is memory-size 64G meant?")
    sizes = spec("large", "60G 280G", *LARGE[1:]), spec("medium", *MEDIUM)  # that of the larger one explains nothing
    found = [item for item in check(group_with(*sizes) + hardware, tmp_path) if item.severity is not Severity.INFO]
    assert sorted(item.code for item in found) == ["GP201", "GP212"]


def test_a_region_of_one_size_is_named_by_that_size() -> None:
    assert describe_region({"cpu-count": (4, 4), "memory-size": (1024, 2048)}) == "cpu-count 4, memory-size 1G to 2G"
