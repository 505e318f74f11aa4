"""Slips that show only beside another document, or beside the cluster; and their neighbours that are meant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpolicy.checking.consequences import one_for_each_missing
from gpolicy.cluster.state import ClusterState
from gpolicy.findings import Finding, Severity
from gpolicy.policy.loading import load_policy
from tests.rules.policy_texts import bounds
from tests.rules.run_rules import check, cluster, with_instance

CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
GOLD = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
SILVER = "---\ngpolicy: v1\nkind: NodeGroup\nname: silver\n"
RULES = 'gpolicy: v1\nkind: TagRules\nowns: [iextags, {{prefix: "{}:", "on": [node]}}]\nfailure_domains: [rack]\n---\n'
RACK = 'gpolicy: v1\nkind: NodeSet\nname: a\nnodes: [n1]\ntags: ["rack:a"]\n---\n'
IN_ZONES = "".join(
    f'---\ngpolicy: v1\nkind: NodeSet\nname: zone {number}\ngroups: [{group}]\ntags: ["zone:{number}"]\n'
    for number, group in ((1, "{}"), (2, "gold"))
)
ZONES = "---\ngpolicy: v1\nkind: TagRules\nfailure_domains: [zone]\n"
TEST = (
    "---\ngpolicy: v1\nkind: Test\ntests:\n  - name: t\n    place: {group: gold, memory-size: 1G}\n"
    "    expect: {refused: false}\n"
)
LARGE = f"ipolicy:\n  vcpu-ratio: 4\n  minmax:\n    - name: large\n      {bounds('8G 16G', '2 4', '10G 90G')}"
GUARD = "---\ngpolicy: v1\nkind: Guards\nguards:\n  - {{name: small, capacity_loss: {{at_most: {}}}}}\n"


def bad(text: str, directory: Path, state: ClusterState | None = None) -> list[Finding]:
    found = one_for_each_missing(check(text, directory, state=state))
    return [item for item in found if item.severity is not Severity.INFO]


SLIPS = {
    "the tags of a domain are not owned": (
        RULES.format("row") + RACK + GOLD,
        "no tag starts with `row:`, and the tags rack:… of a domain are not owned",
        RULES.format("rack") + RACK + GOLD,
    ),
    "only the directory of a disabled template": (
        f"{CLUSTER}enabled_disk_templates: [sharedfile]\nfile_storage_dir: /srv/ganeti/files\n",
        "file is not enabled, so file_storage_dir has no effect, and sharedfile has no directory",
        f"{CLUSTER}enabled_disk_templates: [sharedfile]\nshared_file_storage_dir: /srv/ganeti/files\n",
    ),
    "one group in two zones": (
        GOLD + 'nodes: ["a*"]\n' + SILVER + 'nodes: ["b*"]\n' + IN_ZONES.format("gold") + ZONES,
        "nodes of group gold are in zone:1 and zone:2 at once",
        GOLD + 'nodes: ["a*"]\n' + SILVER + 'nodes: ["b*"]\n' + IN_ZONES.format("silver") + ZONES,
    ),
    "a regular expression in a list of globs": (
        GOLD + 'nodes: ["a2.*.example.org"]\n' + SILVER + 'nodes: ["a1*.example.org", "b*.example.org"]\n',
        "a2.*.example.org is in another domain than other nodes, example.org",
        GOLD + 'nodes: ["a2*.example.org"]\n' + SILVER + 'nodes: ["a1*.example.org", "b*.example.org"]\n',
    ),
    "a mask of CPUs that one group lacks": (
        CLUSTER
        + 'hvparams:\n  kvm: {cpu_mask: "0-31"}\n---\n'
        + GOLD
        + "hardware: {memory: 64G, cpus: 32}\n"
        + SILVER
        + "hardware: {memory: 64G, cpus: 16}\n",
        "hvparams.kvm.cpu_mask names CPU 31, but nodes of group silver have 16: 0 to 15",
        CLUSTER
        + 'hvparams:\n  kvm: {cpu_mask: "0-15"}\n---\n'
        + GOLD
        + "hardware: {memory: 64G, cpus: 32}\n"
        + SILVER
        + "hardware: {memory: 64G, cpus: 16}\n",
    ),
    "a loss that no plan can reach": (
        GOLD + "nodes: [n1, n2]\nhardware: {memory: 64G, cpus: 16}\n" + LARGE + GUARD.format("15"),
        "guard small allows a loss of 15 instances, but only 8 of size large fit in group gold",
        GOLD + "nodes: [n1, n2]\nhardware: {memory: 64G, cpus: 16}\n" + LARGE + GUARD.format("2"),
    ),
    "ssh on a port before 22": (
        f"{CLUSTER}ndparams: {{ssh_port: 6}}\n",
        "ndparams.ssh_port is 6, a port of services of the system that are older than ssh",
        f"{CLUSTER}ndparams: {{ssh_port: 222}}\n",
    ),
    "a pattern does not tell the nodes": (
        GOLD + 'nodes: ["*"]\nhardware: {memory: 64G, cpus: 16, pv_count: 2, pv_size: 1T}\n' + TEST,
        "no cluster to run on: * does not tell how many nodes there are",
        GOLD + "nodes: [n1]\nhardware: {memory: 64G, cpus: 16, pv_count: 2, pv_size: 1T}\n",
    ),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_one_finding_and_its_neighbour_none(name: str, tmp_path: Path) -> None:
    wrong, message, right = SLIPS[name]
    assert message in [item.message for item in bad(wrong, tmp_path)]
    assert message not in [item.message for item in bad(right, tmp_path)]


LIVE = cluster({"metal": {}, "spare": {}}, {"n1": "metal", "n2": "metal", "n3": "spare"})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{GOLD}nodes: [n1, n2]\n", ["the cluster has no group gold, which takes all nodes of metal"]),
        (f"{GOLD}nodes: [n1, n2]\nrenamed_from: metal\n", []),
        (f"{GOLD}nodes: [n1]\n", []),
        (f"{GOLD}nodes: [n1, n2, n3]\n", []),
        (f"{GOLD}nodes: [n1, n2]\n{SILVER.replace('silver', 'metal')}removed: true\n", []),
    ],
)
def test_a_new_group_that_takes_all_nodes_of_another_is_a_rename(text: str, found: list[str], tmp_path: Path) -> None:
    messages = [item.message for item in bad(text, tmp_path, LIVE) if item.code == "GP728"]
    assert messages == found


def test_an_exclusion_that_replaces_one_in_use_is_found(tmp_path: Path) -> None:
    state = with_instance(LIVE, "n1", template="plain", hypervisor="kvm")
    tagged = {name: replace(item, tags=frozenset({"service:web"})) for name, item in state.instances.items()}
    now = replace(state.cluster, tags=frozenset({"htools:iextags:service:"}))
    state = replace(state, instances=tagged, cluster=now)
    rules = "gpolicy: v1\nkind: TagRules\nowns: [iextags]\nexclusion: [{}]\n"
    (found,) = bad(rules.format("tenant"), tmp_path, state)
    assert found.message == "no instance has a tag tenant:…, but some have service:…, which the cluster has now"
    assert bad(rules.format("service, tenant"), tmp_path, state) == []


def test_keys_without_the_key_above_them_are_one_finding(tmp_path: Path) -> None:
    (found,) = bad(f"{CLUSTER}hvparams:\n  acpi: true\n  kernel_path: /boot/k\n  keymap: de\n", tmp_path)
    assert (found.hint, len(found.consequences)) == ("it belongs below kvm or xen-hvm", 2)
    both = bad(f"{CLUSTER}hvparams:\n  acpi: true\n  kvn: {{}}\n", tmp_path)
    assert len(both) == 2, "another slip is another finding"


def test_specs_that_all_exceed_a_node_are_one_finding(tmp_path: Path) -> None:
    pair = "memory-size: {}, cpu-count: 1, disk-size: 1G, disk-count: 1, nic-count: 1, spindle-use: 1"
    pairs = "".join(
        f"    - {{name: {name}, min: {{{pair.format(low)}}}, max: {{{pair.format(high)}}}}}\n"
        for name, low, high in (("large", "16G", "32G"), ("small", "8G", "12G"))
    )
    text = f"{GOLD}hardware: {{memory: {{}}, cpus: 8}}\nipolicy:\n  minmax:\n{pairs}"
    few = [item.code for item in bad(text.replace("{}", "4G"), tmp_path)]
    assert few == ["GP226"]
    (found,) = bad(text.replace("{}", "10G"), tmp_path)
    assert (found.code, found.severity, found.span and found.span.line) == ("GP226", Severity.ERROR, 4)
    assert "size large: memory-size 16G is more than a node has (10G)" in found.message


def test_a_copied_file_is_one_finding(tmp_path: Path) -> None:
    guards = "gpolicy: v1\nkind: Guards\nguards:\n  - {name: a, max_changes: 3}\n  - {name: b, newly_violating: 0}\n"
    (tmp_path / "copy.yaml").write_text(guards, encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(guards, encoding="utf-8")
    (found,) = bad(guards, tmp_path)
    assert (found.code, len(found.related), len(found.consequences)) == ("GP803", 1, 1)
    assert load_policy(tmp_path).guards
    (tmp_path / "copy.yaml").unlink()
    twice = guards + "  - {name: a, max_changes: 2}\n  - {name: b, newly_violating: 1}\n"
    assert [item.code for item in bad(twice, tmp_path) if item.code == "GP803"] == ["GP803", "GP803"]


def test_a_waiver_with_exchanged_digits_in_its_year(tmp_path: Path) -> None:
    waiver = "---\ngpolicy: v1\nkind: Waiver\nwaivers:\n  - {rule: drift, where: group/gold, reason: so, until: %s}\n"
    text = f"{GOLD}ndparams: {{ssh_port: 2222}}\n{waiver}"
    (found,) = bad(text % '"2072-03-31"', tmp_path)
    assert (found.code, found.hint) == ("GP822", "Did you mean `2027-03-31`?")
    assert bad(text % '"2027-03-31"', tmp_path) == bad(text % '"2099-12-31"', tmp_path) == []
