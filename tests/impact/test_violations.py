"""Violations of the instance policy: compared with a real cluster's messages, and further cases."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from gpolicy.analysis.violations import ParameterBreach
from gpolicy.cluster.htools_sources import read_text_file
from gpolicy.cluster.state import ClusterState, LiveDisk, LiveInstance
from gpolicy.cluster.terms import PairNames
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.vocabulary import Value, Values
from gpolicy.impact.comparison import InstanceViolation, ViolationChange
from tests.impact.changes import violation_change, violations_of
from tests.impact.clusters_by_hand import cluster
from tests.impact.messages import breaches_told, violated
from tests.impact.transcripts import CLUSTERS, Flat, Recorded, recorded_commands, state_of
from tests.strategies import instance

MINMAX = ("ipolicy", "minmax")
TEMPLATES = ("ipolicy", "disk-templates")
EXCLUSIVE = ("ndparams", "exclusive_storage")
COMMANDS = list(recorded_commands())
LEAST = {"memory-size": 0, "cpu-count": 0, "disk-size": 0, "disk-count": 0, "nic-count": 0, "spindle-use": 0}


def bounds(*pairs: dict[str, tuple[int, int]]) -> Values:
    """Return a policy whose pairs bound what is named, and nothing else."""
    made: list[Value] = []
    for pair in pairs:
        low: dict[str, Value] = {**LEAST, **{name: ends[0] for name, ends in pair.items()}}
        high: dict[str, Value] = {**dict.fromkeys(LEAST, 10**6), **{name: ends[1] for name, ends in pair.items()}}
        made.append({"min": low, "max": high})
    return {MINMAX: made}


def bounds_written(text: str) -> list[dict[str, dict[str, int]]]:
    """Return the pairs that an option of plain MiB and counts names."""
    return [
        {
            key: {name: int(value) for name, value in (item.split("=") for item in spec.split(","))}
            for key, spec in (section.split(":") for section in pair.split("/"))
        }
        for pair in text.split("//")
    ]


def names(found: tuple[InstanceViolation, ...]) -> list[str]:
    return [item.instance for item in found]


class TestRecordedSessions:
    """Hundreds of commands on a real cluster: Ganeti warned about exactly our newly violating instances.

    It judges with the node parameters as they were, and does not warn of moves; `gnt-cluster verify` judges all.
    """

    def test_modify_warns_of_those_that_newly_violate(self) -> None:
        modified = warned = 0
        for command in COMMANDS:
            if command.argv[:2] in (["gnt-cluster", "modify"], ["gnt-group", "modify"]) and command.exit_code == 0:
                after = state_of(self.as_asked(command), node_parameters_of=command.before)
                change = violation_change(state_of(command.before), after)
                assert sorted(names(change.newly)) == command.warned, command.label
                modified, warned = modified + 1, warned + bool(command.warned)
            elif command.argv[0] not in ("gnt-group", "gnt-instance"):
                assert command.warned == []
        assert (modified, warned) == (116, 7)

    @staticmethod
    def as_asked(command: Recorded) -> Flat:
        """Return the cluster after the command; for a dry run, as it would be with the bounds that it names."""
        if "--dry-run" not in command.argv or "--ipolicy-bounds-specs" not in command.argv:
            return command.after
        written = command.argv[command.argv.index("--ipolicy-bounds-specs") + 1]
        place = "/cluster" if command.argv[0] == "gnt-cluster" else f"/nodegroups/{command.argv[-1]}"
        return {**command.after, f"{place}/ipolicy/minmax": json.dumps(bounds_written(written))}

    def test_verify_tells_the_same_of_each_instance(self) -> None:
        checked = 0
        for command in COMMANDS:
            if not command.verified:
                continue
            state = state_of(command.after)
            mine = {item.instance: violated(item.after) for item in violation_change(state, state).still}
            for name, messages in command.verified.items():
                if name in state.instances:
                    assert mine[name] == breaches_told(messages), command.label
                    checked += 1
            if not re.search("head", command.argv[-1]):
                assert mine.keys() == command.verified.keys(), command.label
        assert checked == 18

    def test_moved_nodes_count_though_ganeti_does_not_warn(self) -> None:
        moves = [item for item in COMMANDS if item.argv[:2] == ["gnt-group", "assign-nodes"]]
        newly = {
            move.label: names(violation_change(state_of(move.before), state_of(move.after)).newly) for move in moves
        }
        assert all(move.warned == [] for move in moves)
        assert [found for found in newly.values() if found] == [["inst1", "inst2", "inst3", "inst4"]]


def sized(name: str, node: str, **more: object) -> LiveInstance:
    return replace(instance(name, node), nic_count=1, **more)  # type: ignore[arg-type]


class TestVerdict:
    def of(self, item: LiveInstance, policy: Values, *, exclusive: bool = False) -> list[ParameterBreach]:
        base = cluster({}, {"default": policy}, {"node1": "default"}).groups["default"].effective
        return violated(violations_of(item, base, group="default", exclusive_storage=exclusive).violation)

    def test_an_instance_must_fit_entirely_into_one_pair(self) -> None:
        policy = bounds(
            {"memory-size": (0, 512), "cpu-count": (0, 2)}, {"memory-size": (1024, 2048), "cpu-count": (4, 8)}
        )
        assert self.of(sized("a", "node1", maxmem=512, vcpus=2), policy) == []
        assert self.of(sized("a", "node1", maxmem=1024, vcpus=2), policy) == [
            ParameterBreach(parameter="memory-size", value=1024, minimum=0, maximum=512)
        ]

    @pytest.mark.parametrize(("value", "beyond"), [(511, -1), (512, None), (1024, None), (1025, 1), (4096, 3072)])
    def test_bounds_are_inclusive_and_the_distance_has_a_sign(self, value: int, beyond: int | None) -> None:
        found = self.of(sized("a", "node1", maxmem=value), bounds({"memory-size": (512, 1024)}))
        assert [item.beyond for item in found] == ([] if beyond is None else [beyond])

    def test_each_disk_is_compared_and_named_by_its_number(self) -> None:
        disks = (
            LiveDisk(size=100, template="plain"),
            LiveDisk(size=300, template="plain"),
            LiveDisk(size=500, template="plain"),
        )
        found = self.of(sized("a", "node1", disks=disks), bounds({"disk-size": (200, 400)}))
        assert [(item.disk, item.beyond) for item in found] == [(0, -100), (2, 100)]

    def test_without_disks_the_template_diskless_must_be_allowed_and_the_count_is_free(self) -> None:
        item = replace(instance("a", "node1", "diskless"), nic_count=1)
        policy = bounds({"disk-count": (1, 4)})
        assert self.of(item, policy) == []
        found = self.of(item, policy | {TEMPLATES: ["plain"]})
        assert found == [ParameterBreach(parameter="disk-templates", value="diskless", allowed=("plain",))]

    def test_under_exclusive_storage_the_spindles_of_the_disks_count(self) -> None:
        policy = bounds({"spindle-use": (2, 3)})
        disks = (LiveDisk(size=1, template="plain", spindles=1), LiveDisk(size=1, template="plain", spindles=3))
        item = sized("a", "node1", disks=disks, spindle_use=2)
        assert self.of(item, policy) == []
        assert self.of(item, policy, exclusive=True) == [
            ParameterBreach(parameter="spindle-use", value=4, minimum=2, maximum=3)
        ]
        unknown = replace(item, disks=(disks[0], replace(disks[1], spindles=None)))
        assert self.of(unknown, policy, exclusive=True) == [ParameterBreach(parameter="spindles")]

    def test_ratios_are_never_violated_by_an_instance(self) -> None:
        assert self.of(sized("a", "node1"), {("ipolicy", "vcpu-ratio"): 0.0, ("ipolicy", "spindle-ratio"): 0.0}) == []

    def test_a_group_without_a_policy_is_an_error(self) -> None:
        with pytest.raises(GpolicyError, match="group lost: its instance policy has no `minmax`"):
            violations_of(instance("a", "node1"), {}, group="lost", exclusive_storage=False)


class TestChange:
    SMALL = bounds({"memory-size": (0, 512)})
    LARGE = bounds({"memory-size": (512, 4096)})

    def change(self, *instances: LiveInstance, before: Values, after: Values, **more: object) -> ViolationChange:
        nodes = {"node1": "default", "node2": "default"}
        old, new = (cluster({}, {"default": own}, nodes, *instances) for own in (before, after))
        return violation_change(old, new, **more)  # type: ignore[arg-type]

    def test_each_instance_is_in_one_list(self) -> None:
        found = self.change(
            sized("small", "node1", minmem=128, maxmem=128),
            sized("middle", "node1", minmem=512, maxmem=512),
            sized("large", "node1", minmem=1024, maxmem=1024),
            sized("huge", "node1", minmem=8192, maxmem=8192),
            before=self.SMALL,
            after=self.LARGE,
        )
        assert (names(found.newly), names(found.no_longer), names(found.still)) == (["small"], ["large"], ["huge"])
        assert (found.still[0].before, found.still[0].after) == (
            violations_of(sized("huge", "", maxmem=8192), self.SMALL | {TEMPLATES: ["plain"]}, group="default",
                          exclusive_storage=False).violation,
            violations_of(sized("huge", "", maxmem=8192), self.LARGE | {TEMPLATES: ["plain"]}, group="default",
                          exclusive_storage=False).violation,
        )  # fmt: skip

    def test_a_breach_of_minmem_alone_is_marked(self) -> None:
        """Seen on a real cluster: no warning and nothing in verify, but every gnt-instance modify is refused."""
        found = self.change(sized("a", "node1", minmem=256, maxmem=1024), before={}, after=self.LARGE)
        assert (found.newly, names(found.minmem_newly)) == ((), ["a"])
        after = found.minmem_newly[0].after
        assert violated(after) == [ParameterBreach(parameter="memory-size", value=256, minimum=512, maximum=4096)]

    def test_pairs_have_the_names_of_the_policy_and_before_only_equal_ones(self) -> None:
        pair_names = PairNames(cluster=(), groups={"default": ("large",)})
        item = sized("a", "node1", minmem=9000, maxmem=9000)
        found = self.change(item, before=self.SMALL, after=self.LARGE, names=pair_names).still[0]
        assert found.before is not None
        assert found.after is not None
        assert (found.before.pair_name, found.after.pair_name, found.after.pair) == (None, "large", 1)
        same = self.change(item, before=self.LARGE, after=self.LARGE, names=pair_names).still[0]
        assert same.before is not None
        assert same.before.pair_name == "large"

    def test_turning_exclusive_storage_on_counts_on_any_node_of_the_instance(self) -> None:
        item = replace(instance("a", "node1", "drbd", ("node2",)), nic_count=1)
        nodes = {"node1": "default", "node2": "other"}
        old = cluster({}, {"default": {}, "other": {}}, nodes, item)
        new = cluster({}, {"default": {}, "other": {EXCLUSIVE: True}}, nodes, item)
        found = violation_change(old, new).newly
        assert violated(found[0].after) == [ParameterBreach(parameter="spindles")]
        assert found[0].after is not None
        assert found[0].after.exclusive_storage

    def test_a_node_that_moves_takes_its_instances_under_another_policy(self) -> None:
        item = sized("a", "node1", minmem=1024, maxmem=1024)
        groups = {"default": self.LARGE, "gold": self.SMALL}
        old, new = (cluster({}, groups, {"node1": group}, item) for group in ("default", "gold"))
        found = violation_change(old, new)
        assert found.newly[0].after is not None
        assert (names(found.newly), found.newly[0].after.group) == (["a"], "gold")
        assert names(violation_change(new, old).no_longer) == ["a"]


class TestUnknown:
    """The text format has no network interfaces, and one disk for all of them."""

    def test_an_unreadable_value_makes_a_verdict_unknown_where_the_policy_changes(self) -> None:
        state = read_text_file(CLUSTERS / "full" / "htools.data")
        assert state.instances
        assert violation_change(state, state) == ViolationChange()
        wide = self.with_policy(state, {"memory-size": (0, 10**6)})
        found = violation_change(state, wide)
        assert {item.instance for item in found.unknown} == set(state.instances)
        assert set(found.unknown[0].parameters) <= {"nic-count", "disk-size", "disk-count"}

    def test_a_readable_breach_is_known(self) -> None:
        state = read_text_file(CLUSTERS / "full" / "htools.data")
        tight = self.with_policy(state, {"memory-size": (10**5, 10**6)})
        found = violation_change(tight, tight)
        assert {item.instance for item in found.still} == set(state.instances)
        assert found.unknown == ()

    def test_a_wider_policy_makes_nothing_violate_whatever_is_not_shown(self) -> None:
        state = read_text_file(CLUSTERS / "full" / "htools.data")
        narrow, wide = (self.with_policy(state, {"nic-count": (1, most)}) for most in (2, 8))
        assert violation_change(narrow, wide) == ViolationChange()
        assert {item.instance for item in violation_change(wide, narrow).unknown} == set(state.instances)

    def test_what_is_shown_violates_newly_where_nothing_shown_did(self) -> None:
        state = read_text_file(CLUSTERS / "full" / "htools.data")
        wide, tight = (self.with_policy(state, {"memory-size": (least, 10**6)}) for least in (0, 10**5))
        found = violation_change(wide, tight)
        assert (set(names(found.newly)), found.unknown) == (set(state.instances), ())
        back = violation_change(tight, wide)
        assert (back.no_longer, {item.instance for item in back.unknown}) == ((), set(state.instances))
        assert back.uncertain() == {}

    @staticmethod
    def with_policy(state: ClusterState, pair: dict[str, tuple[int, int]]) -> ClusterState:
        groups = {
            name: replace(group, effective=group.effective | bounds(pair)) for name, group in state.groups.items()
        }
        return replace(state, groups=groups)
