from __future__ import annotations

import base64
import hashlib
import math
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpolicy.analysis.spec_pairs import PairNames
from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.ganeti.commands import shell_line
from gpolicy.impact.comparison import Sides
from gpolicy.impact.impact import Impact
from gpolicy.plan.plan import Plan, make_plan
from gpolicy.plan.projection import projected
from gpolicy.policy.loading import load_policy
from gpolicy.printable import printable
from gpolicy.report import pictures as drawing
from gpolicy.report.capacity_section import capacity_section
from gpolicy.report.pictures import MOST_ROWS, Box, domain_pictures, group_pictures, spec_pictures
from gpolicy.report.plan_answer import plan_answer
from tests.impact.changes import location_change
from tests.laws import examples
from tests.report.impact_samples import capacity_change, full_impact
from tests.report.plan_samples import HOSTILE, empty_plan, full_plan, hostile
from tests.report.rendered import Page, html_of


def plan_html(
    plan: Plan,
    *,
    impact: Impact | None = None,
    before: ClusterState | None = None,
    after: ClusterState | None = None,
    names: PairNames | None = None,
) -> str:
    sides = Sides(before, after, names or PairNames()) if before and after else None
    return html_of(plan_answer(plan, impact=impact, sides=sides))


ROOT = Path(__file__).resolve().parents[2]
RENAMED = {"shared": "default"}


@pytest.fixture(scope="module")
def before() -> ClusterState:
    return read_state(f"snapshot:{ROOT / 'policies/two-groups.snapshot.json'}", SourceOptions())


@pytest.fixture(scope="module")
def plan(before: ClusterState) -> Plan:
    return make_plan(load_policy(ROOT / "policies/two-groups"), before)


@pytest.fixture(scope="module")
def after(before: ClusterState, plan: Plan) -> ClusterState:
    return projected(before, plan.changes)


@pytest.fixture(scope="module")
def html(plan: Plan, before: ClusterState, after: ClusterState) -> str:
    return plan_html(plan, impact=full_impact(), before=before, after=after)


def test_the_page_loads_nothing_and_allows_its_own_style_and_script_only(html: str) -> None:
    page = Page(html)
    assert not {"iframe", "img", "link", "object", "form", "base"} & page.elements
    assert not {"src", "xlink:href", "onload", "onclick", "style"} & {key for _, key in page.attributes}
    assert not [key for _, key in page.attributes if key.startswith("on")]
    style, script = (
        base64.b64encode(hashlib.sha256(re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL)[0].encode()).digest())
        for tag in ("style", "script")
    )
    policy = f"default-src 'none'; style-src 'sha256-{style.decode()}'; script-src 'sha256-{script.decode()}';"
    assert f"{policy} base-uri 'none'; form-action 'none'" in page.values
    assert not re.search(r"url\(|@import|expression\(", html)
    assert not re.search(r"https?://", html)
    links = re.findall(r'href="([^"]*)"', html)
    assert {link[:1] for link in links} == {"#"}
    assert {link[1:] for link in links} <= set(page.ids)


def test_verdict_and_figures_then_changes_costs_pictures_and_steps(html: str) -> None:
    figures = re.findall(r'<span class="name">(.*?)</span> <span class="value">(.*?)</span>', html)
    assert [name for name, _ in figures] == [
        "changes", "newly violating", "capacity", "node failures", "location conflicts", "guards",
    ]  # fmt: skip
    order = [
        'class="verdict',
        'class="figures"',
        *(f'<h2 id="{key}"' for key in ("changes", "impact", "specs", "steps", "terms")),
    ]
    places = [html.index(mark) for mark in order]
    assert places == sorted(places)


def test_commands_are_whole(plan: Plan, html: str) -> None:
    shown = [unescape(text) for text in re.findall(r'<div class="command"><pre><code>(.*?)</code>', html, re.DOTALL)]
    assert shown == [shell_line(step.command.argv) for step in plan.steps if step.command.argv]
    assert max(map(len, shown)) > 400


def test_the_page_can_be_read_aloud(html: str) -> None:
    page = Page(html)
    assert 'lang="en"' in html
    assert len(page.ids) == len(set(page.ids))
    for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        assert "<title>" in svg or 'aria-hidden="true"' in svg or 'aria-hidden="true"' in _list_of(html, svg)
    assert all('scope="col"' in head for head in re.findall(r"<th .*?>|<th>", html))
    assert all(len({len(row) for row in table}) == 1 for table in page.tables)
    for named in re.findall(r'aria-labelledby="(\w+)"', html):
        assert named in page.ids


def _list_of(html: str, part: str) -> str:
    """Return the start of the list that `part` is in."""
    return html[: html.index(part)].rpartition("<ul")[2].partition(">")[0]


def test_the_same_figures_as_everywhere(html: str) -> None:
    table = next(table for table in Page(html).tables if table[0][-1].endswith("on one scale"))
    large = next(row for row in table if row[1].startswith("large") and row[3] == "8")
    assert large[3:8] == ["8", "3", "-5", "-62 %", "ipolicy.spindle-ratio (was memory)"]


def test_bars_are_on_one_scale() -> None:
    table = capacity_section(capacity_change()).tables[0]
    sides = [[int(cell) if cell.isdigit() else None for cell in map(str, row[3:5])] for row in table.rows]
    most = max(number for side in sides for number in side if number is not None)
    assert len(table.bars) == len(sides) > 10
    for bar, (now, then) in zip(table.bars, sides, strict=True):
        assert bar.now == (None if now is None else pytest.approx(now / most))
        assert bar.then == (None if then is None else pytest.approx(then / most))


def test_hostile_names_are_text() -> None:
    wild = plan_html(full_plan(hostile), impact=full_impact(hostile))
    calm = plan_html(full_plan(), impact=full_impact())
    page = Page(wild)
    assert page.elements == Page(calm).elements
    assert page.attributes == Page(calm).attributes
    assert page.comments == []
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", wild)
    for name in HOSTILE:
        page = Page(plan_html(full_plan(lambda base, name=name: base + name)))  # type: ignore[misc]
        shown = " ".join(" ".join(" ".join(row) for row in table) for table in page.tables)
        assert printable(name)[:100] in shown


def test_a_plan_without_changes_is_the_verdict(before: ClusterState) -> None:
    page = Page(plan_html(empty_plan(), impact=full_impact(), before=before, after=before))
    assert "No changes: the cluster is what the policy declares" in page.prose
    assert page.tables == []
    assert "svg" not in page.elements


def test_specs_are_boxes_on_logarithmic_axes(before: ClusterState, after: ClusterState) -> None:
    names = PairNames(groups={"dedicated": ("full", "half", "quarter")})
    pictures = spec_pictures(Sides(before, after, names), RENAMED, {"web1.example.org": "newly"})
    assert [picture.groups for picture in pictures] == [("dedicated",), ("shared", "spare")]
    dedicated, shared = pictures
    assert [(box.kind, box.label) for box in dedicated.boxes] == [
        ("now", ""),
        ("then", "full"),
        ("then", "half"),
        ("then", "quarter"),
    ]
    then = {box.label: box for box in shared.boxes if box.kind == "then"}
    large, small = then["size 1"], then["size 2"]
    per_doubling = large.width / math.log2(64 / 16)
    assert small.width == pytest.approx(per_doubling * math.log2(12 / 1), abs=0.2)
    assert large.height / math.log2(1024 / 100) == pytest.approx(small.height / math.log2(90 / 10), abs=0.2)
    assert large.x - (small.x + small.width) == pytest.approx(per_doubling * math.log2(16 / 12), abs=0.2)
    assert small.y > large.y + large.height - 0.1
    dots = sum(int(dot.title.split()[0]) for dot in shared.dots)
    assert dots == sum(node.group == "shared" for node in _primaries(after))
    assert [dot.kind for dot in shared.dots].count("newly") == 1
    for tick in shared.x_ticks:
        assert shared.left <= tick.at <= shared.right


def _primaries(state: ClusterState) -> list[LiveNode]:
    return [state.nodes[item.primary_node] for item in state.instances.values() if item.disks]


def test_groups_whose_pairs_stay_have_no_picture(before: ClusterState) -> None:
    assert spec_pictures(Sides(before, before), {}, {}) == []


def test_pairs_have_their_names_where_capacity_is_not_known(before: ClusterState, after: ClusterState) -> None:
    names = PairNames(groups={"dedicated": ("full", "half", "quarter"), "spare": ("big", "little")})
    page = plan_html(full_plan(), before=before, after=after, names=names)
    for name in ("full", "half", "quarter", "big", "little"):
        assert f">{name}</text>" in page
    assert ">size 1</text>" not in page
    assert ">size 1</text>" in plan_html(full_plan(), before=before, after=after)


LENGTHS = tuple(st.floats(low, high) for low, high in ((52, 500), (22, 270), (5, 60), (5, 40)))


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(*LENGTHS, st.integers(1, 24)), max_size=8))
def test_labels_never_touch(spots: list[tuple[float, float, float, float, int]]) -> None:
    boxes = [
        Box(x=x, y=y, width=width, height=height, kind="then", label="n" * letters, title="")
        for x, y, width, height, letters in spots
    ]
    found = list(drawing._labels(boxes))
    for place, one in enumerate(found):
        assert 22 < one.y <= 320 - 34
        for other in found[:place]:
            apart = abs(one.y - other.y) > 12.9
            left, right = sorted((one, other), key=lambda label: label.x)
            assert apart or right.x - left.x >= len(left.text) * 6.6 + 6


def test_nodes_come_and_go(before: ClusterState, after: ClusterState) -> None:
    groups = {group.name: group for group in group_pictures(Sides(before, after), RENAMED)}
    assert list(groups) == ["dedicated", "shared", "spare"]
    shared, spare = groups["shared"], groups["spare"]
    assert (shared.renamed_from, shared.before, shared.after) == ("default", 4, 5)
    assert [(node.name, node.moved, node.gone) for node in shared.moved] == [("node8.example.org", "spare", False)]
    assert [(node.name, node.moved, node.gone) for node in spare.nodes] == [("node8.example.org", "shared", True)]
    node = shared.nodes[0]
    there = before.nodes["node1.example.org"].resources
    assert node.memory is not None
    assert there.memory_total is not None
    assert there.memory_free is not None
    assert (node.memory.used, node.memory.total) == (there.memory_total - there.memory_free, there.memory_total)
    assert node.memory.share == pytest.approx(1 - there.memory_free / there.memory_total)
    assert sum(node.instances for group in groups.values() for node in group.nodes if not node.gone) == len(
        before.instances
    )
    assert not shared.compact
    assert MOST_ROWS > 5


def test_many_nodes_become_small_boxes(before: ClusterState) -> None:
    one = before.nodes["node1.example.org"]
    nodes = {f"n{number}": replace(one, name=f"n{number}") for number in range(MOST_ROWS + 1)}
    crowd = replace(before, nodes=nodes)
    group = next(group for group in group_pictures(Sides(crowd, crowd), {}) if group.nodes)
    assert group.compact
    assert [node.name for node in group.nodes[:3]] == ["n0", "n1", "n2"]
    page = Page(plan_html(full_plan(), before=crowd, after=crowd))
    assert f"{MOST_ROWS + 1} nodes as a table" in page.summaries


def test_failure_domains_now_and_then(before: ClusterState, after: ClusterState) -> None:
    location = location_change(before, after)
    rack, room = domain_pictures(Sides(before, after), location)
    assert [(kind.name, kind.turn) for kind in (rack, room)] == [("rack", "comes"), ("room", "goes")]
    racks = {domain.tag: domain for domain in rack.domains}
    assert list(racks) == ["rack:a", "rack:b"]
    assert [node.name for node in racks["rack:a"].nodes] == [f"node{n}.example.org" for n in (1, 2, 5)]
    wanted = sum(
        "rack:a" in after.nodes[item.primary_node].tags & after.nodes[item.secondary_nodes[0]].tags
        for item in after.instances.values()
        if item.secondary_nodes
    )
    assert (racks["rack:a"].halves_now, racks["rack:a"].halves_then) == (0, wanted)
    assert domain_pictures(Sides(before, after), None)[0].domains[0].halves_then is None
