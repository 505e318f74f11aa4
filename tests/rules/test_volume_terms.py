"""Rules about which physical volumes are where."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.cluster.state import ClusterObject, ClusterState
from gpolicy.findings import told
from gpolicy.ganeti.vocabulary import Values
from tests.rules.observed_clusters import with_volumes
from tests.rules.policy_texts import CLUSTER, EXCLUSIVE, GROUP, WHOLE_NODES, bounds
from tests.rules.run_rules import check, cluster, codes

OWN: Values = {("volume_group_name",): "xenvg", ("diskparams", "drbd", "metavg"): "xenvg"}
TWO = cluster({"gold": {}, "silver": {}}, {"n1": "gold", "n2": "gold", "n3": "silver"})
"""With volumes /dev/sda, /dev/sdb, … on each node."""


def volumes(exclude: str = "[/dev/sdx]", **groups: str) -> str:
    assigned = ", ".join(f"{name}: {patterns}" for name, patterns in groups.items())
    more = f", volume_groups: {{{assigned}}}" if groups else ""
    return f"physical_volumes: {{exclude: {exclude}{more}}}\n"


def of(found: list[str], code: str) -> list[str]:
    return [item for item in found if item == code]


class TestPatternMatchesNothing:
    def messages(self, text: str, directory: Path, state: ClusterState | None) -> list[str]:
        return [item.message for item in check(text, directory, state=state) if item.code == "GP420"]

    def test_each_pattern_is_looked_for_on_the_nodes_for_which_it_holds(self, tmp_path: Path) -> None:
        state = with_volumes(TWO, 1000, 1000)
        one = replace(state.nodes["n1"], physical_volumes=(state.nodes["n1"].physical_volumes or ())[:1])
        state = replace(state, nodes={**state.nodes, "n1": one, "n2": replace(one, name="n2")})  # sdb is on n3 only
        text = volumes("[/dev/sdb]", ssdvg="['/dev/nvme*']")
        assert self.messages(CLUSTER + text, tmp_path, state) == [
            "/dev/nvme* matches no physical volume of the cluster"
        ]
        assert self.messages(GROUP + text, tmp_path, state) == [
            "/dev/sdb matches no physical volume of group gold",
            "/dev/nvme* matches no physical volume of group gold",
        ]

    def test_nothing_is_said_while_the_volumes_of_a_node_are_not_known(self, tmp_path: Path) -> None:
        state = with_volumes(TWO, 1000)
        silent = replace(state.nodes["n2"], physical_volumes=None)
        assert self.messages(GROUP + volumes(), tmp_path, replace(state, nodes={**state.nodes, "n2": silent})) == []
        assert self.messages(GROUP + volumes(), tmp_path, replace(state, nodes={})) == []


class TestInTwoPlaces:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            (volumes("[/dev/sda3]", ssdvg="[/dev/sda3]"), ["/dev/sda3 is excluded, but also assigned to ssdvg"]),
            (volumes("['/dev/sda*']", ssdvg="[/dev/sda3]"), ["/dev/sda3 is excluded, but also assigned to ssdvg"]),
            (volumes("['/dev/sda*']", ssdvg="['/dev/sda*']"), ["/dev/sda* is excluded, but also assigned to ssdvg"]),
            (volumes("[/dev/sda3]", ssdvg="['/dev/sda*']"), []),
            (volumes(a="[/dev/sdb]", b="['/dev/sd?']"), ["/dev/sdb is assigned to a and to b"]),
            (volumes(a="['/dev/sd?']", b="['/dev/sd[b-d]']"), []),
        ],
    )
    def test_what_is_written(self, text: str, expected: list[str], tmp_path: Path) -> None:
        assert [item.message for item in check(CLUSTER + text, tmp_path) if item.code == "GP421"] == expected

    def test_a_volume_that_two_globs_match_is_found_on_the_cluster(self, tmp_path: Path) -> None:
        text = GROUP + volumes(a="['/dev/sd?']", b="['/dev/sd[b-d]']")
        state = with_volumes(TWO, 1000, 1000, 1000)
        (found,) = [item for item in check(text, tmp_path, state=state) if item.code == "GP421"]
        assert found.message == "/dev/sdb is assigned to a and to b"
        assert "GP421" not in codes(check(text, tmp_path, state=with_volumes(TWO, 1000)))

    def test_a_groups_assignment_meets_the_clusters_exclusion(self, tmp_path: Path) -> None:
        group = f"{GROUP}physical_volumes: {{volume_groups: {{ssdvg: [/dev/sda3]}}}}\n"
        (found,) = [
            item for item in check(f"{CLUSTER}{volumes('[/dev/sda3]')}---\n{group}", tmp_path) if item.code == "GP421"
        ]
        assert (found.message, found.span and found.span.line) == (
            "/dev/sda3 is excluded, but also assigned to ssdvg",
            9,
        )


class TestUnusedGroup:
    TEXT = f"{GROUP}physical_volumes: {{volume_groups: {{ssdvg: [/dev/sda]}}}}\n"

    def has(self, directory: Path, own: Values, text: str = TEXT) -> bool:
        state = replace(with_volumes(TWO, 1000), cluster=ClusterObject(own=own))
        return "GP422" in codes(check(text, directory, state=state))

    def test_a_group_that_nothing_uses(self, tmp_path: Path) -> None:
        assert self.has(tmp_path, OWN)

    @pytest.mark.parametrize(
        "own",
        [
            OWN | {("volume_group_name",): "ssdvg"},
            OWN | {("diskparams", "drbd", "metavg"): "ssdvg"},
            OWN | {("disk_state", "plain", "ssdvg", "disk_total"): 1000},
            {("volume_group_name",): "xenvg"},  # metavg is not known
            {("diskparams", "drbd", "metavg"): "xenvg"},  # nor here the cluster's own
        ],
    )
    def test_used_or_not_known(self, own: Values, tmp_path: Path) -> None:
        assert not self.has(tmp_path, own)

    def test_without_a_cluster_the_policy_must_say_what_it_uses(self, tmp_path: Path) -> None:
        assert "GP422" not in codes(check(self.TEXT, tmp_path))
        declared = f"{CLUSTER}volume_group_name: xenvg\n---\n{self.TEXT}"
        assert "GP422" not in codes(check(declared, tmp_path))
        assert "GP422" not in codes(check(f"{self.TEXT}diskparams:\n  drbd: {{metavg: ssdvg}}\n", tmp_path))


@pytest.mark.parametrize(
    ("cluster_says", "group_says", "found"),
    [
        ("margin: 1%", "reserve: 2%", 0),
        ("margin: 2%", "exclude: [/dev/sda]", 1),
        ("margin: 2%", "margin: 1%", 1),
        ("exclude: [/dev/sda]", "margin: 0%", 1),
        ("margin: 2%", "reserve: 2%", 1),
    ],
)
def test_shares_are_reported_where_they_are_written(
    cluster_says: str, group_says: str, found: int, tmp_path: Path
) -> None:
    text = f"{CLUSTER}physical_volumes: {{{cluster_says}}}\n---\n{GROUP}physical_volumes: {{{group_says}}}\n"
    assert len(of(codes(check(text, tmp_path)), "GP423")) == found


@pytest.mark.parametrize("size", ["50G", "3333M", "900G"])
def test_the_sizes_that_gp402_names_are_taken_as_they_are(size: str, tmp_path: Path) -> None:
    """Another maximum would be rounded up to a multiple of 4 MiB, and so beyond the volume, or be found again."""

    def policy(disk: str) -> str:
        hardware = f"hardware: {{memory: 256G, cpus: 32, pv_count: 12, pv_size: {size}}}\n"
        return EXCLUSIVE + hardware + WHOLE_NODES + "one\n      " + bounds("61G 62G", "7 7", f"1G {disk}", "1 9")

    (found,) = (item for item in told(check(policy(size), tmp_path)) if item.code == "GP402")
    sizes = re.findall(r"[0-9]+[MG]", found.hint or "")
    assert len(sizes) == 2
    for named in sizes:
        again = codes(check(policy(named), tmp_path))
        assert "GP402" not in again
        assert "GP015" not in again, again
