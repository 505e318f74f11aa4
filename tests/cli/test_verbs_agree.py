"""Pairs of verbs that must say the same of one cluster: place, capacity, size, suggest, plan, tests, remedy.

The clusters of the laws have one group: with several, hail itself gives a new instance the number of one that is there.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from gpolicy.analysis.capacity import GroupCapacity, capacity
from gpolicy.analysis.placing import place
from gpolicy.analysis.size_words import read_words
from gpolicy.cluster.state import ClusterState
from gpolicy.cluster.state_files import read_snapshot
from gpolicy.cluster.terms import NO_LIMITS, GroupTerms, Limits, PairNames, limited
from gpolicy.errors import GpolicyError
from gpolicy.ganeti.htools_reading import ALLOCATOR_PARAMETERS
from gpolicy.remedy.remedy import find_remedy
from gpolicy.resolve.desired import pair_names
from gpolicy.suggest.suggesting import suggest
from gpolicy.suggest.suggestion import SuggestRequest
from gpolicy.testing.running_tests import Stages, run_tests
from gpolicy.what_if.sizing import NodeOffer, SizeRequest, find_size
from gpolicy.what_if.supposing import More, WhatIf, read_wanted, suppose
from tests.analysis.hspace_cases import from_text, text_of
from tests.analysis.test_capacity_law import after, limits
from tests.cli.command_line import ROOT, gpolicy
from tests.htools.random_clusters import TEMPLATES, random_cluster
from tests.testing.policy_tests import outcome, policy_of

POLICY = ROOT / "policies" / "two-groups"
SNAPSHOT = ROOT / "policies" / "two-groups.snapshot.json"
MOST = 12
"""Capacities above this are not placed one by one."""

# --- laws -------------------------------------------------------------------------------------------------------------


def with_disk_count(text: str, number: int) -> str:
    """Return the text of a cluster whose spec pairs ask for `number` disks or more."""
    lines = text.split("\n")
    for where, line in enumerate(lines):
        words = line.split("|")
        if len(words) == 6 and ";" in words[2]:
            specs = [spec.split(",") for spec in words[2].split(";")]
            for low, high in zip(specs[::2], specs[1::2], strict=True):
                low[3], high[3] = str(number), str(max(number, int(high[3])))
            lines[where] = "|".join([*words[:2], ";".join(map(",".join, specs)), *words[3:]])
    return "\n".join(lines)


@cache
def counted(seed: int) -> tuple[ClusterState, GroupCapacity] | None:
    """Return a random cluster of one group under random limits, and its capacity; None where nothing counts."""
    rng = random.Random(seed)  # noqa: S311 (no secrets here)
    template = rng.choice([*TEMPLATES, "drbd", "drbd", "plain", "plain", "plain"])
    cluster = random_cluster(rng, template, 5, sound=True)
    words = with_disk_count(cluster.text, rng.choice([0, 1, 1, 2]))
    if cluster.groups > 1 or "|unallocable|" in words:
        return None
    try:
        state = from_text(words)
        state = replace(state, terms={name: GroupTerms(limits=limits(rng)) for name in state.groups})
        report = capacity(state)
    except GpolicyError:
        return None
    (found,) = report.groups
    if report.without_disk:
        return None  # what hail refuses only for what Ganeti tells it of disk is counted all the same
    mixed = len({state.has_exclusive_storage(node) for node in state.nodes.values()}) > 1  # `size` refuses such a group
    return (state, found) if found.template is not None and not mixed else None


@given(st.integers(0, 100_000))
def test_place_size_and_what_if_accept_what_capacity_counts(seed: int) -> None:
    known = counted(seed)
    if known is None:
        return
    state, found = known
    template = found.template.value if found.template else ""
    for number, spec in enumerate(found.specs, start=1):
        words = read_words([f"{number}:max", "group=g0", f"template={template}"])
        here = state
        for placed in range(min(spec.fits, MOST) + 1):
            request = words.on(here, PairNames())
            report = place(here, request)
            assert report.ok is (placed < spec.fits), (seed, number, placed, spec.fits, report.reason)
            if report.ok:
                here = after(here, replace(request, disks=request.disks or ()), report.nodes, placed)
        for wanted in {max(1, spec.fits), spec.fits + 1}:
            more = More(wanted, None, spec=str(number), bound="max")
            assert needs_no_node(state, more) is (wanted <= spec.fits), (seed, number, wanted, spec.fits)
            assert can_be_supposed(state, more) is (wanted <= spec.fits), (seed, number, wanted, spec.fits)


class _MoreNodesError(Exception):
    """More nodes are tried."""


def needs_no_node(state: ClusterState, more: More) -> bool:
    """Return whether `size` needs no node for the instances."""

    def tell(what: str) -> None:
        if not what.startswith("0 "):
            raise _MoreNodesError

    request = SizeRequest(wanted=(more,), kinds=(NodeOffer(next(iter(state.nodes))),))
    try:
        return find_size(state, request, PairNames(), NO_LIMITS, tell).nodes == (0,)
    except _MoreNodesError:
        return False


def can_be_supposed(state: ClusterState, more: More) -> bool:
    """Return whether `--with` accepts the instances."""
    try:
        suppose(state, WhatIf(more=(more,)), PairNames())
    except GpolicyError:
        return False
    return True


@pytest.mark.parametrize("parameters", [{}, {"no-capacity-checks": None}, {"restrict-allocation-to": "node1"}])
@pytest.mark.parametrize("asked", [NO_LIMITS, Limits(max_node_failures=2), Limits(oversubscription=1.5)])
def test_suggest_counts_today_as_capacity_does(parameters: dict[str, Any], asked: Limits) -> None:
    state = read_snapshot(SNAPSHOT)
    own = {**state.cluster.own, ALLOCATOR_PARAMETERS: parameters}
    state = limited(replace(state, cluster=replace(state.cluster, own=own)), asked)
    for found in suggest(state, SuggestRequest()).groups:
        (item,) = capacity(state, group=found.group, template=found.template.value).groups
        assert [one.now.fits for one in found.today] == [spec.fits for spec in item.specs]


@pytest.mark.parametrize(
    "options",
    [(), ("--max-node-failures", "0"), ("--max-node-failures", "2"), ("--cpus-after-failure",), ("--lost", "node1")],
)
def test_plan_shows_after_what_capacity_counts_under_the_policy(options: tuple[str, ...]) -> None:
    words = (str(POLICY), "--state", f"snapshot:{SNAPSHOT}", *options, "--format", "json")
    planned, counted_ = (json.loads(gpolicy(verb, *words).stdout) for verb in ("plan", "capacity"))
    then: dict[tuple[str, str], int] = {}
    for group in planned["impact"]["capacity"]["groups"]:
        for row in (*group["rows"], group["standard"], group["tiered"]):
            then |= {(group["group"], row["name"]): row["after"]["fits"]} if row["after"] else {}
    shown = {(item["group"], spec["name"]): spec["fits"] for item in counted_["groups"] for spec in item["specs"]}
    for name in ("standard", "tiered"):
        shown |= {(item["group"], name): item[name]["fits"] for item in counted_["groups"]}
    assert then == shown


# --- documents --------------------------------------------------------------------------------------------------------

_SIMULATED = """gpolicy: v1
kind: Cluster
name: c.example.org
enabled_disk_templates: [{template}]
enabled_hypervisors: [xen-pvm]
ipolicy:
  disk-templates: [{template}]
  minmax:
    - name: some
      min: {{memory-size: 1G, cpu-count: 1, disk-size: 4G, disk-count: {disks}, nic-count: 1, spindle-use: 1}}
      max: {{memory-size: {memory}G, cpu-count: 2, disk-size: 20G, disk-count: 4, nic-count: 2, spindle-use: 3}}
---
gpolicy: v1
kind: NodeGroup
name: g
nodes: ["n[1-{nodes}]"]
hardware: {{memory: 32G, cpus: 16, pv_count: 1, pv_size: {disk}G}}
limits: {{{limits}}}
---
gpolicy: v1
kind: Test
tests:
"""
_STAGE = '"on": {{simulate: {{nodes: [{names}], instances: [{{name: a, nodes: [n1], memory-size: 4G, minmem: 1G}}]}}}}'


@given(
    st.sampled_from(["plain", "drbd"]),
    st.integers(0, 2),
    st.integers(2, 16),
    st.integers(2, 4),
    st.integers(60, 300),
    st.sampled_from(["max_node_failures: 0", "oversubscription: 1.5", "oversubscription: 2, max_node_failures: 0"]),
)
def test_tests_say_what_the_verbs_say(
    tmp_path_factory: pytest.TempPathFactory,
    template: str,
    disks: int,
    memory: int,
    nodes: int,
    disk: int,
    limits_: str,
) -> None:
    folder = tmp_path_factory.mktemp("policy")
    stage = _STAGE.format(names=", ".join(f"{{name: n{number}}}" for number in range(1, nodes + 1)))
    head = _SIMULATED.format(template=template, disks=disks, memory=memory, nodes=nodes, disk=disk, limits=limits_)
    capacity_test = f"  - {{name: c, {stage}, capacity: {{}}, expect: {{specs: {{some: FITS}}}}}}\n"
    bounds = ("min", "max")
    place_tests = [
        f"  - {{name: {bound}, {stage}, place: {{spec: some, bound: {bound}}}, expect: {{refused: REFUSED}}}}\n"
        for bound in bounds
    ]
    unsaid = capacity_test.replace("FITS", "0") + "".join(place_tests).replace("REFUSED", "true")
    policy = policy_of(folder, head + unsaid)
    scenario = policy.scenarios[0]
    state = Stages(policy).cluster(scenario.stage, scenario.name.value)
    names = pair_names(policy, state)
    (found,) = capacity(state, names=names).groups
    placed = [place(state, read_words([f"some:{bound}"]).on(state, names), names=names) for bound in bounds]
    assert placed[1].ok is (found.specs[0].fits > 0)
    refused = [str(not report.accepted).lower() for report in placed]
    said = [test.replace("REFUSED", word) for test, word in zip(place_tests, refused, strict=True)]
    text = head + capacity_test.replace("FITS", str(found.specs[0].fits)) + "".join(said)
    assert [outcome.ok for outcome in run_tests(policy_of(folder, text))] == [True, True, True]


# --- single differences -----------------------------------------------------------------------------------------------

NODES = [f"n{number}|32768|0|32768|103000|103000|64|N|uuid-g|1||N|0|0|1.0" for number in range(3)]
SIZE = "1024,1,10240,{disks},1,1;4096,1,10240,{disks},2,2"
OVER = {"g": GroupTerms(limits=Limits(oversubscription=2.0, max_node_failures=0))}


def text(
    template: str, disks: int = 1, instances: tuple[str, ...] = (), nodes: list[str] = NODES, tags: tuple[str, ...] = ()
) -> str:
    """Return a cluster of three nodes as text."""
    policies = (f"{owner}|128,1,1024,1,1,1|{SIZE.format(disks=disks)}|{template}|64.0|1000.0" for owner in ("", "g"))
    return text_of(["g|uuid-g|preferred||"], nodes, [*instances], [*tags], [*policies])


@pytest.mark.parametrize(("template", "disks", "fits"), [("drbd", 1, 13), ("drbd", 2, 6), ("plain", 2, 10)])
def test_the_disks_that_the_policy_asks_for_count_with_their_metadata(template: str, disks: int, fits: int) -> None:
    """Each DRBD disk has 128 MiB of metadata: 103000 // (10240 + 128) are 9 for a node, of 27 in all 26 in pairs."""
    (found,) = capacity(from_text(text(template, disks))).groups
    assert (found.specs[0].fits, found.specs[0].pair.largest.disk_count) == (fits, disks)


def test_minmem_is_a_word_of_all_requests_and_may_be_below_the_policy() -> None:
    """Ganeti compares the greatest memory with the policy. Ten disks of 10G fit on a node, and seven times 4G."""
    state = replace(from_text(text("plain")), terms=OVER)
    words = ["memory=4G", "minmem=512M", "vcpus=1", "disk=10G"]
    report = place(state, read_words(words).on(state, PairNames()))
    assert (report.ok, report.instance.memory, report.instance.burst) == (True, 512, 4096)
    for number, fits in ((30, True), (31, False)):
        more = read_wanted(f"{number}x {' '.join(words)}")
        assert needs_no_node(state, more) is fits
        assert can_be_supposed(state, more) is fits
    whole = read_wanted(f"30x {' '.join(word for word in words if 'minmem' not in word)}")
    assert not needs_no_node(state, whole)


def test_interfaces_are_refused_unless_the_policy_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "state.data").write_text(text("plain"))
    words = ("place", "--state", f"text:{tmp_path / 'state.data'}", "memory=2G", "vcpus=1", "disk=10G")
    refused = gpolicy(*words, "nics=3")
    assert (refused.returncode, "Ganeti would refuse it: " in " ".join(refused.stdout.split())) == (1, True)
    for more in (["nics=3", "--ignore-ipolicy"], ["nics=3", "nodes=n1", "--ignore-ipolicy"], ["nics=2"]):
        done = gpolicy(*words, *more)
        assert (done.returncode, "refuse" in done.stdout.splitlines()[1]) == (0, False)
    many = "{memory-size: 2G, nic-count: 3}"
    assert outcome(tmp_path, f"place: {many}\nexpect: {{refused: true, because: ipolicy.minmax}}").ok
    ignoring = "{memory-size: 2G, nic-count: 3, ignore_ipolicy: true}"
    assert outcome(tmp_path, f"place: {ignoring}\nexpect: {{refused: false}}").ok


DECLARED = """gpolicy: v1
kind: Cluster
name: c.example.org
{names}hv_state: {{kvm: {{mem_node: 1G}}{other}}}
---
gpolicy: v1
kind: NodeGroup
name: g
limits: {{{limits}}}
---
gpolicy: v1
kind: NodeSet
name: small
nodes: [n1]
hv_state: {{kvm: {{mem_node: 22G}}}}
"""
NAMES = "enabled_hypervisors: [kvm, xen-pvm]\n"
ON_TWO = tuple(f"i{number}|2048|10368|1|running|Y|n0|n1|drbd||1|1|N" for number in range(5))


@pytest.mark.parametrize(("names", "other"), [("", ""), (NAMES, ", xen-pvm: {mem_node: 2G}")])
def test_all_verbs_agree_on_the_declared_basis_of_a_text(names: str, other: str, tmp_path: Path) -> None:
    """n1 has 32G, of which 22G are declared for itself: the five instances of n0 would need 10G there, and some more.

    With hv_state of one hypervisor that one counts; with more the policy says which is the first.
    """
    (tmp_path / "state.data").write_text(text("drbd", instances=ON_TWO))
    policy = tmp_path / "policy.yaml"
    source = ("--state", f"text:{tmp_path / 'state.data'}", "--policy", policy)

    def said(verb: str, *words: str, limits_: str = "max_node_failures: 1") -> str:
        policy.write_text(DECLARED.format(names=names, other=other, limits=limits_))
        lines = gpolicy(verb, *words, *source).stdout.splitlines()
        return "; ".join(line for line in lines[1:5] if not line.startswith("note"))

    size, declared = ("memory=1G", "vcpus=1", "disk=10G"), "--resource-model"
    assert "basis: mixed; declared: memory and CPUs of n0, n1, n2; all else is measured" in said("capacity", declared)
    assert "takes no new drbd instance" in said("capacity", declared)
    assert "goes nowhere" in said("place", *size, declared)
    assert "cures 1 of 1 fault" in said("remedy", declared)
    assert "n0 cannot be emptied" in said("evacuate", "n0", "--primary-only", declared)
    assert "goes to" in said("place", *size)
    assert "No instance has to move" in said("remedy")
    assert "n0 can be emptied" in said("evacuate", "n0", "--primary-only")
    unprotected = "max_node_failures: 0"
    assert "goes to" in said("place", *size, declared, limits_=unprotected)
    assert "No instance has to move" in said("remedy", declared, limits_=unprotected)


@pytest.mark.parametrize("verb", [("capacity",), ("place", "memory=1G"), ("remedy",), ("evacuate", "n0")])
def test_nothing_declared_is_no_declared_basis(verb: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "state.data").write_text(text("drbd", instances=ON_TWO))
    done = gpolicy(*verb, "--state", f"text:{tmp_path / 'state.data'}", "--resource-model")
    assert (done.returncode, "not known: hv_state and disk_state" in done.stderr) == (3, True)


@pytest.mark.parametrize("verb", ["capacity", "place memory=2G", "suggest", "size", f"plan {POLICY}"])
@pytest.mark.parametrize("number", [0, 8, 9])
def test_options_have_the_range_of_the_limits(verb: str, number: int, tmp_path: Path) -> None:
    (tmp_path / "state.data").write_text(text("drbd", instances=ON_TWO))
    done = gpolicy(*verb.split(), "--state", f"text:{tmp_path / 'state.data'}", "--max-node-failures", str(number))
    assert ("it must be 0 to 8" in done.stderr) is (number == 9)


@pytest.mark.parametrize(("ratio", "new_primary"), [(2.0, "n1"), (1.0, "n2")])
def test_a_remedy_moves_an_instance_where_it_may_burst(ratio: float, new_primary: str) -> None:
    """n1 has promised all of its memory once: with a ratio of 1 an instance goes to n2, which is further away."""
    nodes = [NODES[0], NODES[1].replace("|0|32768", "|0|0"), NODES[2]]
    conflict = [f"a{number}|4096|10368|1|running|Y|n0|n1|drbd|x:a|1|1|N" for number in (1, 2)]
    others = [f"b{number}|4096|1024|1|running|Y|n1|n2|drbd||1|1|N" for number in range(8)]
    state = from_text(text("drbd", instances=(*conflict, *others), nodes=nodes, tags=("htools:iextags:x",)))
    least = {name: replace(instance, minmem=1024) for name, instance in state.instances.items()}
    terms = {"g": GroupTerms(limits=Limits(oversubscription=ratio, max_node_failures=0))}
    state = replace(state, terms=terms, instances=least)
    report = find_remedy(state, PairNames(), rate=60)
    assert [step.nodes_after[0] for step in report.steps] == [new_primary]
    (in_force,) = report.limits
    assert in_force.limits == terms["g"].limits


def test_the_name_of_a_spec_is_that_of_a_group_with_nodes() -> None:
    """Both groups have pair 1, of different sizes; only one of them can take an instance."""
    words = text("plain").replace("g|uuid-g|preferred||", "a|uuid-a|preferred||\ng|uuid-g|preferred||")
    state = from_text(words.rstrip("\n") + "\na|128,1,1024,1,1,1|64,1,64,1,1,1;128,1,128,1,1,1|drbd|4.0|32.0\n")
    request = read_words(["1:max"]).on(state, PairNames())
    assert (request.memory, request.template) == (4096, "plain")


def test_no_line_says_that_requests_are_refused_which_place_accepts(tmp_path: Path) -> None:
    """The cluster's own policy has diskless first, which the group does not allow; `place` takes plain."""
    file = tmp_path / "state.data"
    file.write_text(text("plain").replace("|plain|64.0", "|diskless,plain|64.0", 1))
    assert gpolicy("place", "memory=2G", "vcpus=1", "disk=10G", "--state", f"text:{file}").returncode == 0
    assert "refused" not in gpolicy("capacity", "--state", f"text:{file}").stdout.splitlines()[1]
