from __future__ import annotations

import re
from dataclasses import replace

from gpolicy.analysis.binding import Binding, Cause
from gpolicy.impact.capacity_change import GroupCapacityChange
from gpolicy.impact.comparison import ViolationChange
from gpolicy.impact.impact import PARTS, Impact, LocationChange, ResourceModelChange
from gpolicy.printable import terminal_text
from gpolicy.report.answer import Answer, Section, Table, plain_text, with_content
from gpolicy.report.capacity_section import capacity_section, changed_groups
from gpolicy.report.impact_sections import (
    exclusive_storage_section,
    impact_section,
    location_section,
    resource_model_section,
)
from tests.report.impact_samples import capacity_change, full_impact, location, remedy_change, resource_model
from tests.report.rendered import text_of


def text(impact: Impact, *, colour: bool = False) -> str:
    answer = Answer(verb="plan", title="", name="", verdict="", sections=(impact_section(impact),))
    return text_of(answer, colour=colour).lstrip("\n").removesuffix("\n")


MOST_ROWS = Table(title="", of="", headings=(), rows=()).most


def expected(item: GroupCapacityChange) -> list[list[str]]:
    """Return now, then, difference and share of each row of a group, computed the slow way."""
    found = []
    for change in (*item.rows, item.tiered, item.standard):
        sides = [(change.before, change.after)]
        if change.old_size_after is not None:
            sides.append((change.before, change.old_size_after))
        for now, then in sides:
            shown = [str(fit.fits) if fit else "-" for fit in (now, then)]
            if now is None or then is None:
                found.append([*shown, "new" if now is None else "gone", "-"])
                continue
            if then is change.after and change.resized:
                found.append([*shown, "-", "-"])  # of different sizes
                continue
            delta = then.fits - now.fits
            sign = "+" if delta > 0 else ""
            share = "-"
            if now.fits:
                exact = delta * 100 / now.fits
                share = "0 %" if not delta else f"{sign}{exact:.1f} %" if abs(exact) < 10 else f"{sign}{exact:.0f} %"
            found.append([*shown, f"{sign}{delta}", share])
    return found


def test_the_figures_of_the_capacity_table_are_those_of_the_impact() -> None:
    change = capacity_change()
    table, *others = capacity_section(change).tables
    (quiet,) = (other for other in others if other.title == "No change in what fits")
    first = table.headings.index("today")
    rows = [[plain_text(cell) for cell in row] for row in (*table.rows, *quiet.rows)]
    changed = [item for item in (*change.groups, change.cluster) if item and item.group not in ("spare", "fresh")]
    wanted = [cells for item in changed for cells in expected(item)]
    assert sorted(row[first : first + 4] for row in rows) == sorted(wanted)
    assert all(
        row[first] == row[first + 1] or {row[first], row[first + 1]} == {"0", "-"} for row in map(list, quiet.rows)
    )
    shown = [[plain_text(cell) for cell in row] for row in table.shown_rows]
    assert [row[0] for row in shown if row[0]] == ["dedicated", "shared", "(cluster)"]
    lines = text(full_impact()).splitlines()
    assert lines[0] == "What it costs"
    assert lines[1].startswith(
        "  Capacity: not known for group remote: no measured memory; standard instances on the cluster 68 → 50 (-18,"
    )
    assert lines[2].split() == ["group", "size", "at", "its", "largest", "today", "after", "Δ", "%", "bound", "by"]
    for line, row in zip(lines[3:], shown, strict=False):
        assert " ".join(line.split()) == " ".join(" ".join(row).split())


def test_unchanged_groups_are_one_line() -> None:
    shown = text(Impact(violations=ViolationChange(), location=LocationChange(), unavailable={"capacity": "no memory"}))
    assert shown.splitlines()[:8] == [
        "What it costs",
        "  Violations: no instance and no node begins or ceases to violate the policy",
        "  Location and migration: no conflict",
        "  Capacity: not known: no memory",
        "  Node failures: not known: not computed",
        "  Remedy: not known: not computed",
        "  Exclusive storage: not known: not computed",
        "  Resource model: not known: not computed",
    ]


def test_a_group_without_a_change_is_no_row() -> None:
    lines = text(full_impact()).splitlines()
    assert "    unchanged: spare (standard 20)" in lines
    assert "    no size fits at its largest, neither today nor after: fresh (too few online nodes)" in lines


def test_a_new_spec_of_which_none_fits_is_a_row() -> None:
    sample = capacity_change()
    (fresh,) = [item for item in sample.groups if item.group == "fresh"]
    new = fresh.rows[0]
    assert new.before is None
    assert new.after is not None
    assert not new.after.fits
    row = replace(new, after=replace(new.after, binding=Binding(Cause.MEMORY)))
    told = replace(sample, groups=(replace(fresh, before=fresh.after, rows=(row,)),), cluster=None)
    shown = capacity_section(told).tables[0].rows[0]
    assert [plain_text(cell) for cell in shown[1:6]] == ["small", "12G · 3 CPU · 90G", "-", "0", "new"]


def test_no_heading_is_without_content() -> None:
    empty, full = (Section(key=key, title=key, summary=key) for key in ("", "full"))
    outer = Section(key="outer", title="outer", sections=(empty, full))
    assert [item.sections for item in with_content((outer, replace(outer, sections=(empty,))))] == [(full,)]


def test_a_text_defines_no_word_that_stands_in_a_folded_table_only() -> None:
    sample = full_impact().capacity
    assert sample is not None
    change = replace(sample, groups=tuple(item for item in sample.groups if item.group == "dedicated"), cluster=None)
    shown = text(Impact(capacity=change))
    quiet = next(table for table in capacity_section(change).tables if table.title == "No change in what fits")
    assert {"standard", "tiered"} & {row[1] for row in quiet.rows}
    legend = next(block for block in shown.split("\n\n") if "bound by: " in block)
    page = shown.partition(legend)[0]
    words = [line.partition(": ")[0] for line in legend.splitlines()]
    assert "bound by" in words
    assert [word for word in words if word.lower() not in page.lower()] == []


def test_a_removed_size_tells_how_many_of_its_instances_still_fit() -> None:
    shown = text(full_impact())
    assert re.search(r"· old size +32G · 8 CPU · 1T +8 +0 +-8 +-100 % +ipolicy.minmax \(was memory\)", shown)


def test_breaches_have_their_amounts() -> None:
    shown = text(full_impact())
    assert "memory-size 96G is 32G above 64G; disk-size of disk 1 5G is 5G below 10G" in shown
    assert "disk template file is not allowed (drbd, plain)" in shown


def test_long_tables_are_cut_and_say_so() -> None:
    sample = full_impact().violations
    assert sample is not None
    many = tuple(sample.newly[:1]) * (MOST_ROWS + 5)
    shown = text(Impact(violations=ViolationChange(newly=many)))
    assert shown.count("web ") == MOST_ROWS
    assert "and 5 more instances, all in --format json" in shown


def test_nothing_from_outside_reaches_the_terminal_raw() -> None:
    shown = text(full_impact(lambda name: f"\x1b[2J{name}\u202e\n"), colour=False)
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", shown)
    assert len(shown.splitlines()) == len(text(full_impact()).splitlines())


def test_colour_is_only_paint() -> None:
    painted = terminal_text(text(full_impact(), colour=True))
    assert "\x1b[31m" in painted
    assert re.sub("\x1b\\[[0-9]+m", "", painted) == text(full_impact())


def test_every_part_of_an_impact_has_a_title() -> None:
    shown = text(Impact())
    assert shown.count("not known") == len(PARTS)


def test_a_plan_says_where_it_looks_for_no_moves() -> None:
    change = replace(remedy_change(), cured=0, cured_old=0, moves=0, searched=False, exhaustive=False)
    said = text(Impact(remedy=change))
    assert "3 new faults; a plan looks for no moves in more than 1,000 nodes" in said
    assert "after the remedy" not in said
    assert "the search of a plan" not in said
    found = replace(change, searched=True)
    assert "the search of a plan found no moves" in text(Impact(remedy=found))


def test_one_fact_of_each_kind_is_counted() -> None:
    sample = location().shared_domains
    section = location_section(LocationChange(shared_domains=replace(sample, gone=())))
    words = section.summary.partition(": ")[2]
    assert words == "1 new, 1 as before"


def test_places_of_exclusion_that_cannot_hold() -> None:
    tables = location_section(location()).tables
    cells = [plain_text(cell) for table in tables for row in table.rows for cell in row]
    assert [cell for cell in cells if "rack:a" in cell and "1 " in cell] == ["1 rack: rack:a"]
    assert "1 node: node8" in cells


def test_only_nodes_of_which_both_models_differ_are_rows() -> None:
    model = resource_model().after
    node = model.nodes[0]
    assert node.measured is not None
    alike = replace(node, node="alike", configured=node.measured)
    unmeasured = replace(node, node="dark", measured=None)
    section = resource_model_section(ResourceModelChange(model, replace(model, nodes=(node, alike, unmeasured))))
    (table,) = (table for table in section.tables if table.title.startswith("Free memory"))
    assert [plain_text(row[0]) for row in table.rows] == ["node1"]
    assert section.summary.startswith("3 nodes with declared values that differ from reported ones; ")


def test_disks_in_trouble_say_what_they_need() -> None:
    change = full_impact().exclusive_storage
    assert change is not None
    (table,) = (table for table in exclusive_storage_section(change).tables if table.title == "Disks in trouble")
    words = [plain_text(row[-1]) for row in table.rows]
    assert [text.endswith(" (needs 4, has 2)") for text in words] == [False, True, False]
    assert not any("needs" in text for text in (words[0], words[2]))


def test_one_row_that_differs_makes_a_changed_group() -> None:
    sample = capacity_change()
    (spare,) = (item for item in sample.groups if item.group == "spare")
    assert spare.tiered.after is not None
    fewer = replace(spare, tiered=replace(spare.tiered, after=replace(spare.tiered.after, fits=1)))
    assert changed_groups(replace(sample, groups=(spare, fewer), cluster=None)) == [fewer]
