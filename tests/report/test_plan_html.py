from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from gpolicy.allocator.cluster_data import Spec
from gpolicy.analysis.basis import NodeUse, node_uses
from gpolicy.analysis.binding import Binding, Cause
from gpolicy.analysis.counted_cluster import Fit
from gpolicy.cluster.record import Record
from gpolicy.cluster.sources import SourceOptions, read_state
from gpolicy.cluster.state import ClusterState, LiveNode
from gpolicy.cluster.terms import PairNames
from gpolicy.ganeti.commands import shell_line
from gpolicy.impact.comparison import load_sides
from gpolicy.impact.impact import Impact
from gpolicy.plan.plan import Plan
from gpolicy.plan.sides import Sides, project
from gpolicy.policy.loading import load_policy
from gpolicy.printable import printable
from gpolicy.provenance import Provenance
from gpolicy.report import pictures as drawing
from gpolicy.report.answer import Answer, Picture, Section
from gpolicy.report.answer_file import answer_data, read_answer
from gpolicy.report.capacity_section import bars_of, capacity_section
from gpolicy.report.pictures import Box, GroupPicture, NodePicture, domain_pictures, group_pictures, spec_pictures
from gpolicy.report.plan_answer import plan_answer
from tests.impact.changes import location_change
from tests.laws import examples
from tests.plan.planned import make_plan
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
    return project(before, plan.changes)


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
        '<h2 id="changes"',
        'class="beside"',
        "Sizes as boxes",
        *(f'<h2 id="{key}"' for key in ("impact", "memory", "domains", "steps", "terms")),
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


def test_bars_are_memory_on_one_scale() -> None:
    few, many = (
        Fit(fits, Binding(Cause.MEMORY), Spec(memory, 1, 1, 1, 1, 1)) for fits, memory in ((8, 32768), (48, 128))
    )
    assert bars_of([(many, few), (None, replace(many, fits=0))]) == ((6144 / 262144, 1.0), (None, 0.0))
    run = Fit(3, Binding(Cause.MEMORY), run_memory=524288)
    assert bars_of([(run, few)]) == ((1.0, 0.5),)
    table = capacity_section(capacity_change()).tables[0]
    assert len(table.bars) == len(table.rows) > 10


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
    dots = sum(dot.number for dot in shared.dots)
    assert dots == sum(node.group == "shared" for node in _primaries(after))
    assert [dot.kind for dot in shared.dots].count("newly") == 1
    for tick in shared.x_ticks:
        assert shared.left <= tick[0] <= shared.right


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
        Box(x=x, y=y, width=width, height=height, kind="then", label="n" * letters, bounds=(1, 1, 1, 1))
        for x, y, width, height, letters in spots
    ]
    found = list(drawing._labels(boxes))
    for place, one in enumerate(found):
        assert 22 < one[1] <= 320 - 34
        for other in found[:place]:
            left, right = sorted((one, other))
            assert abs(one[1] - other[1]) > 12.9 or right[0] - left[0] >= len(left[2]) * 6.6 + 6


def uses(state: ClusterState) -> tuple[NodeUse, ...]:
    return node_uses(state, load_sides(Sides(state, state)).before.whole.cluster.nodes.values())


def test_nodes_come_and_go(before: ClusterState, after: ClusterState) -> None:
    groups = {group.name: group for group in group_pictures(uses(before), uses(after), RENAMED)}
    assert list(groups) == ["dedicated", "shared", "spare"]
    shared, spare = groups["shared"], groups["spare"]
    assert shared.renamed_from == "default"
    turns = [
        [(node.name, node.elsewhere, bool(node.before), bool(node.after)) for node in group.nodes if node.changes]
        for group in (shared, spare)
    ]
    assert turns[0] == [("node8.example.org", "spare", False, True)]  # another name of a group is no other use
    assert turns[1] == [("node8.example.org", "shared", True, False)]
    there = [node.after for group in groups.values() for node in group.nodes if node.after]
    assert sum(use.instances for use in there) == len(before.instances)


def test_the_memory_of_a_node_is_what_the_allocator_counts(before: ClusterState) -> None:
    nodes = load_sides(Sides(before, before)).before.whole.cluster.nodes.values()
    for node, use in zip(nodes, node_uses(before, nodes), strict=True):
        assert use.total == node.facts.total_memory
        assert (use.used, use.reserved) == (node.instance_memory, node.reserved_memory)
        assert use.free == node.available_memory
        assert use.own + use.used + use.reserved + use.free - use.short == use.total
    assert any(node.reserved_memory for node in nodes)


def page_of(groups: Iterable[GroupPicture]) -> str:
    section = Section("memory", "Memory", [Picture("nodes", lambda: list(groups))])
    return html_of(Answer(verb="capacity", title="", name="", verdict="", sections=(section,)))


def widths(page: str, kind: str) -> list[float]:
    bars = page[page.index('<td class="memory">') :]
    return [float(width) for width in re.findall(rf'<rect class="{kind}"[^>]* width="([\d.]+)"', bars)]


def test_bars_of_nodes_are_memory_on_one_scale() -> None:
    small = NodeUse("small", "a", total=100, own=10, used=40, reserved=20, instances=1)
    large = replace(small, name="large", group="b", total=400)
    page = page_of(group_pictures((small, large)))
    assert widths(page, "free") == [25.0, 100.0]  # the whole node, below its parts
    assert [widths(page, kind) for kind in ("own", "used", "reserved")] == [[2.5] * 2, [10.0] * 2, [5.0] * 2]
    assert "missing" not in page


def test_a_node_that_keeps_too_little_shows_what_is_missing() -> None:
    use = NodeUse("n", "g", total=100, own=10, used=60, reserved=80, instances=1)
    assert (use.free, use.short) == (0, 50)
    page = page_of(group_pictures((use,)))
    assert widths(page, "reserved") == [pytest.approx(20)]
    assert widths(page, "short") == [pytest.approx(33.33)]
    assert "0 (50M missing)" in page


def test_a_node_without_figures_says_so() -> None:
    page = page_of(group_pictures((NodeUse("n", "g", 0, 0, 0, 0, 2, state="offline"),)))
    assert "not known" in page
    assert "offline" in page


def test_both_sides_are_drawn_where_they_differ_only(before: ClusterState) -> None:
    now = NodeUse("n1", "g", total=100, own=10, used=40, reserved=20, instances=1)
    other = replace(now, name="n2")
    (group,) = group_pictures((now, other), (replace(now, used=60), other, replace(other, name="n3")))
    assert [[use.used for use in node.uses] for node in group.nodes] == [[40, 60], [40], [40]]
    page = page_of([group])
    assert page.count('class="before"') == 1
    assert "40M → 60M" in page
    assert "2 → 3 nodes" in page
    assert ">new</span>" in page.replace("← ", "")


def test_groups_without_changes_are_folded() -> None:
    now = NodeUse("n1", "g", total=100, own=10, used=40, reserved=20, instances=1)
    still = replace(now, name="n2", group="quiet")
    assert (
        "1 group without changes"
        in Page(page_of(group_pictures((now, still), (replace(now, used=41), still)))).summaries
    )
    assert Page(page_of(group_pictures((now, still)))).summaries == []


def test_many_nodes_become_small_boxes() -> None:
    one = NodeUse("n", "g", total=100, own=10, used=40, reserved=20, instances=1)
    crowd = [replace(one, name=f"n{number}") for number in range(17)]
    (group,) = group_pictures(crowd)
    assert [node.name for node in group.nodes[:3]] == ["n0", "n1", "n2"]
    assert "17 nodes as a table" in Page(page_of([group])).summaries
    (few,) = group_pictures(crowd[:16])
    assert Page(page_of([few])).summaries == []


def test_a_node_that_one_size_fills_shows_each_instance() -> None:
    use = NodeUse("half", "g", total=100, own=10, used=60, reserved=30, instances=3, tiled=True)
    page = page_of([GroupPicture(name="n1, n2", nodes=(NodePicture("half", use, use),), rows="size")])
    assert 'class="cut" d="M30.0 0v10M50.0 0v10"' in page


def test_the_page_of_a_stored_answer_is_the_same(plan: Plan, before: ClusterState, after: ClusterState) -> None:
    made = replace(plan, provenance=Provenance("2026-01-01T00:00:00Z", "a" * 40, False, ("ann", "why", "https://x")))
    answer = plan_answer(made, impact=full_impact(), sides=Sides(before, after, PairNames()))
    stored = read_answer(Record("plan.json", json.loads(json.dumps(answer_data(answer)))))
    assert html_of(stored) == html_of(answer)


@pytest.mark.parametrize("link", ["javascript:alert(1)", "", "data:text/html,x"])
def test_who_asks_is_text_and_only_an_address_of_the_web_is_a_link(link: str) -> None:
    for address, is_link in ((link, False), ("https://example.org/<1>", True)):
        asked = ("<b>ann</b>", "<i>more</i> room", address)
        page = html_of(Answer(verb="plan", title="", name="", verdict="", provenance=Provenance(asked=asked)))
        assert "&lt;b&gt;ann&lt;/b&gt;: " in page
        assert "&lt;i&gt;more&lt;/i&gt; room" in page
        assert ('<a href="https://example.org/&lt;1&gt;" rel="noreferrer">' in page) is is_link
        assert "javascript:" not in page


def test_failure_domains_now_and_then(before: ClusterState, after: ClusterState) -> None:
    location = location_change(before, after)
    rack, room = domain_pictures(Sides(before, after), location)
    assert [(kind.name, kind.turn) for kind in (rack, room)] == [("rack", "comes"), ("room", "goes")]
    racks = {domain.tag: domain for domain in rack.domains}
    assert list(racks) == ["rack:a", "rack:b"]
    assert [name for name, _ in racks["rack:a"].nodes] == [f"node{n}.example.org" for n in (1, 2, 5)]
    wanted = sum(
        "rack:a" in after.nodes[item.primary_node].tags & after.nodes[item.secondary_nodes[0]].tags
        for item in after.instances.values()
        if item.secondary_nodes
    )
    assert racks["rack:a"].halves == (0, wanted)
    assert domain_pictures(Sides(before, after), None)[0].domains[0].halves == ()
