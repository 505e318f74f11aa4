"""Exclusive storage as text: volume groups, and shares that Ganeti does not have."""

from __future__ import annotations

from gpolicy.impact.exclusive_storage_change import ExclusiveStorageChange, GroupVolumes
from gpolicy.report.answer import plain_text
from gpolicy.report.impact_sections import exclusive_storage_section
from tests.report.impact_samples import full_impact


def rows(change: ExclusiveStorageChange, title: str) -> list[list[str]]:
    tables = exclusive_storage_section(change).tables
    return [
        [plain_text(cell) for cell in row] for table in tables if table.title.startswith(title) for row in table.rows
    ]


def sample() -> ExclusiveStorageChange:
    change = full_impact().exclusive_storage
    assert isinstance(change, ExclusiveStorageChange)
    return change


def test_volume_groups_are_shown_where_not_all_volumes_are_in_the_clusters_own() -> None:
    assert rows(sample(), "Volumes by volume group") == [
        ["dedicated", "xenvg", "11 to 12", "0 to 3", "1000000M", "1T", "0 to 3073G"],
        ["dedicated", "ssdvg", "0 to 1", "0 to 1", "100G", "100G", "0 to 100G"],
        ["dedicated", "in none: excluded", "1 to 2", "-", "-", "-", "-"],
    ]
    (group, *_) = sample().groups
    alone = GroupVolumes(group="g", known_from=group.known_from, volume_groups=group.volume_groups[:1])
    assert rows(ExclusiveStorageChange(groups=(alone,)), "Volumes by volume group") == []


def test_other_shares_than_ganetis_are_called_a_what_if() -> None:
    assert exclusive_storage_section(sample()).notes[-1] == (
        "group dedicated: counted with a margin of 5 % and a reserve of 2 % of each physical volume: a what-if, since"
        " Ganeti 3 has 1 % and 2 % fixed (PART_MARGIN, PART_RESERVED)"
    )
