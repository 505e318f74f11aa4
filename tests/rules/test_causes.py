"""One mistake makes one finding: what only follows from it is not reported."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from gpolicy.checking.consequences import one_for_each_missing
from gpolicy.findings import Severity
from gpolicy.forecast.bridge import FORECAST
from gpolicy.policy.loading import load_policy
from tests.mistakes import find_mistakes
from tests.rules.policy_texts import bounds
from tests.rules.run_rules import TODAY, check

CLUSTER: Final = 'gpolicy: v1\nkind: Cluster\nname: c.example.org\nganeti_version: "3.0"\n'
GROUP: Final = "---\ngpolicy: v1\nkind: NodeGroup\nname: g\n"
TESTS: Final = "---\ngpolicy: v1\nkind: Test\ntests:\n  - name: t\n    "
SPECS: Final = (
    "ipolicy:\n  std: {memory-size: 2G, cpu-count: 1, disk-size: 20G, disk-count: 1, nic-count: 1, spindle-use: 1}\n"
)
HARDWARE: Final = "hardware: {memory: 64G, cpus: 16, pv_count: 2, pv_size: 500G}\n"
SET: Final = "---\ngpolicy: v1\nkind: NodeSet\nname: {0}\nnodes: [{0}]\n"
RULES: Final = "---\ngpolicy: v1\nkind: TagRules\n"

GUARDS: Final = "---\ngpolicy: v1\nkind: Guards\nguards:\n"
_MIGRATION: Final = (
    f"{CLUSTER}{RULES}migration: {{{{domains: [cpu], allow: [{{{{from: '{{}}', to: '{{}}'}}}}]}}}}\n"
    f"{GROUP}nodes: [n1, n2, n3]\n{SET.format('n1')}tags: ['cpu:old']\n"
    f"{SET.format('n2')}tags: ['cpu:new']\n{SET.format('n3')}tags: ['cpu:new']\n"
)
CLOSED: Final = (
    f"{CLUSTER}ipolicy:\n  minmax:\n    - name: a\n      {bounds('8G 16G', '4 8', '50G 90G')}"
    f"    - name: b\n      {bounds('1G 4G', '1 3', '10G 40G')}"
    f"{GROUP.replace('name: g', 'name: h')}{GROUP}alloc_policy: unallocable\n{GUARDS}"
    "  - {name: a, group: g, spec: a, at_least: 4}\n  - {name: b, group: g, spec: b, at_least: 5}\n"
)
_MIN_FIRST: Final = bounds("1G 4G", "1 4", "10G 40G")
EXCHANGED: Final = _MIN_FIRST.replace("min:", "?").replace("max:", "min:").replace("?", "max:")

CASES: Final = {
    "a list that replaces the inherited one": (
        (
            f"{CLUSTER}{SPECS}  minmax:\n    - name: a\n      {bounds('1G 4G', '1 4', '10G 40G')}"
            f"{GROUP}ipolicy:\n  minmax:\n    - name: b\n      {bounds('8G 16G', '4 8', '50G 90G')}"
            "---\ngpolicy: v1\nkind: Guards\nguards:\n  - {name: room, group: g, spec: a, at_least: 1}\n"
        ),
        ["GP216"],
    ),
    "a name of a size that is copied": (
        (
            f"{CLUSTER}{GROUP}ipolicy:\n  minmax:\n    - name: b\n      {bounds('8G 16G', '4 8', '50G 90G')}"
            f"    - name: b\n      {bounds('1G 4G', '1 3', '10G 40G')}"
            "---\ngpolicy: v1\nkind: Guards\nguards:\n  - {name: room, group: g, spec: a, at_least: 1}\n"
        ),
        ["GP208"],
    ),
    "a unit of memory that makes sizes overlap": (
        (
            f"{CLUSTER}ipolicy:\n  minmax:\n    - name: a\n      {bounds('8G 16G', '4 8', '50G 90G')}"
            f"    - name: b\n      {bounds('1G 4T', '1 4', '10G 50G')}"
        ),
        ["GP224"],
    ),
    "a group that sets what it does not allow": (
        (
            f"{CLUSTER}enabled_disk_templates: [drbd, plain]\ndiskparams: {{drbd: {{c-max-rate: 90M}}}}\n"
            f"{GROUP}ipolicy: {{disk-templates: [plain]}}\ndiskparams: {{drbd: {{c-max-rate: 80M}}}}\n"
        ),
        ["GP307"],
    ),
    "a total of CPUs that is not known": (
        f"{CLUSTER}hv_state: {{kvm: {{cpu_total: 0}}}}\n{GROUP}nodes: [n1]\n{HARDWARE}",
        [],
    ),
    "a rate without its unit, below the minimum": (
        f"{CLUSTER}diskparams: {{drbd: {{dynamic-resync: true, c-min-rate: 4M, c-max-rate: 100}}}}\n",
        ["GP121"],
    ),
    "a pattern with a slip": (
        (
            f'{CLUSTER}{GROUP}nodes: ["n[1-4.example.org"]\n{HARDWARE}'
            f"{SET.format('n1.example.org')}ndparams: {{spindle_count: 2}}\n"
            f"{TESTS}redundancy: {{group: g}}\n    expect: {{survives: true}}\n"
        ),
        ["GP612"],
    ),
    "memory without a unit": (
        (
            f"{CLUSTER}{GROUP}nodes: [n1, n2]\n{HARDWARE.replace('64G', '640')}"
            f"{TESTS}redundancy: {{group: g}}\n    expect: {{survives: false}}\n"
        ),
        ["GP222"],
    ),
    "a spindle count of zero": (
        (
            f"{CLUSTER}ndparams: {{spindle_count: 0}}\nipolicy:\n  spindle-ratio: 8\n  minmax:\n    - name: a\n"
            f"      {bounds('1G 4G', '1 4', '10G 40G')}"
        ),
        ["GP107"],
    ),
    "min and max exchanged": (
        f"{CLUSTER}beparams: {{maxmem: 2G}}\n{SPECS}  minmax:\n    - {EXCHANGED}",
        ["GP206"],
    ),
    "a domain misspelt": (
        (
            f"{CLUSTER}{RULES}failure_domains: [racks]\ndesired_location: [rack]\n"
            f'{SET.format("n1")}tags: ["rack:a"]\n{SET.format("n2")}tags: ["rack:b"]\n'
        ),
        ["GP517"],
    ),
    "a tag of the cluster on a group": (
        f'{CLUSTER}{GROUP}tags: ["htools:iextags:service"]\n{RULES}exclusion: [service]\n',
        ["GP509"],
    ),
    "exclusive storage without plain": (
        f"{CLUSTER}ipolicy: {{disk-templates: [rbd]}}\n{GROUP}ndparams: {{exclusive_storage: true}}\n",
        ["GP408"],
    ),
    "exclusive storage beside drbd": (
        (
            f"{CLUSTER}{GROUP}{HARDWARE}ndparams: {{exclusive_storage: true, spindle_count: 4}}\nipolicy:\n"
            f"  vcpu-ratio: 4\n  disk-templates: [drbd, plain]\n  minmax:\n"
            f"    - {bounds('1G 4G', '1 4', '10G 40G', '1 2')}"
        ),
        ["GP407"],
    ),
    "exclusive storage off": (
        (
            f"{CLUSTER}{GROUP}{HARDWARE}ndparams: {{exclusive_storage: false}}\nipolicy:\n  disk-templates: [plain]\n"
            f"  minmax:\n    - {bounds('1G 4G', '1 4', '10G 40G', '2 2')}"
            f"{TESTS}check_instance: {{group: g, memory-size: 2G, cpu-count: 1, disks: [{{size: 20G, spindles: 2}}]}}\n"
            "    expect: {refused: false}\n"
        ),
        ["GP414"],
    ),
    "exclusive storage of nodes": (
        (
            f"{CLUSTER}{GROUP}nodes: [n1]\n{HARDWARE}ipolicy:\n  disk-templates: [plain]\n"
            f"  minmax:\n    - {bounds('1G 4G', '1 4', '10G 40G', '2 2')}"
            f"{SET.format('n1')}ndparams: {{exclusive_storage: true}}\n"
        ),
        ["GP011"],
    ),
    "a share of more than all": (
        f"{CLUSTER}---\ngpolicy: v1\nkind: Guards\nguards:\n  - {{name: a, capacity_loss: {{at_most: 150%}}}}\n",
        ["GP012"],
    ),
    "a pool of users with a slip": (
        f'{CLUSTER}uid_pool: ["20099-20000", 20200]\nhvparams: {{kvm: {{security_model: pool}}}}\n',
        ["GP012"],
    ),
    "a hypervisor in three places": (
        (
            f"{CLUSTER}enabled_hypervisors: [kvm]\nhv_state: {{lxc: {{mem_node: 1G}}}}\n"
            f"{GROUP}hv_state: {{lxc: {{mem_total: 64G}}}}\n"
        ),
        ["GP112"],
    ),
    "a range of user IDs that ends before it begins": (
        f'{CLUSTER}hvparams:\n  kvm: {{security_model: pool}}\nuid_pool: ["2000-1000"]\n',
        ["GP012"],
    ),
    "an interface with a letter beyond ASCII": (
        f'{CLUSTER}{GROUP}ndparams: {{ovs: true, ovs_name: switch1, ovs_link: "et\u00e91"}}\n',
        ["GP016"],
    ),
    "a domain with a letter beyond ASCII": (
        f'{CLUSTER}hvparams:\n  kvm: {{security_model: user, security_domain: "caf\u00e9"}}\n',
        ["GP016"],
    ),
    "two actions": (
        f"{CLUSTER}{TESTS}place: {{spec: a}}\n    capacity: {{}}\n    expect: {{refused: true, standard: 4}}\n",
        ["GP012"],
    ),
    "a required key misspelt": (f"{CLUSTER}{GROUP.replace('name:', 'nmae:')}", ["GP011"]),
    "the line between documents lost": (CLUSTER + GROUP.removeprefix("---\n"), ["GP003"]),
    "a migration to a tag that no node has": (f"{_MIGRATION.format('cpu:old', 'cpu:newer')}", ["GP517"]),
    "a migration from the tag that it leads to": (f"{_MIGRATION.format('cpu:new', 'cpu:new')}", ["GP516"]),
    "a test that counts with a template that is not allowed": (
        (
            f"{CLUSTER}enabled_disk_templates: [drbd, plain]\n{GROUP}nodes: [n1, n2]\n{HARDWARE}"
            f"ipolicy:\n  disk-templates: [plain]\n  minmax:\n    - name: a\n      {bounds('1G 4G', '1 4', '10G 40G')}"
            f"{TESTS}capacity: {{group: g, disk-template: drbd}}\n    expect: {{specs: {{a: {{at_least: 1}}}}}}\n"
        ),
        ["GP817"],
    ),
    "a tag by hand that TagRules makes": (
        f'{CLUSTER}tags: ["htools:iextags:service"]\n{RULES}exclusion: [service]\n',
        ["GP506"],
    ),
    "exclusive storage for the cluster in place of a group": (
        (
            f"{CLUSTER}ndparams: {{exclusive_storage: true}}\nipolicy: {{disk-templates: [drbd, plain]}}\n"
            f"{GROUP}ipolicy: {{disk-templates: [plain]}}\n{GROUP.replace('name: g', 'name: h')}"
        ),
        ["GP407"],
    ),
    "a group that a test needs and that cannot be read": (
        (
            f"{CLUSTER}enabled_disk_templates: [drbd, plain]\n{GROUP}ipolicy: {{disk-templates: [drdb]}}\n"
            f"{GROUP.replace('name: g', 'name: h')}ipolicy: {{disk-templates: [plain]}}\n"
            f"{TESTS}place: {{memory-size: 2G, cpu-count: 2, disks: [10G], disk-template: drbd}}\n"
            "    expect: {refused: false}\n"
        ),
        ["GP012"],
    ),
    "two guards of a group that is closed": (CLOSED, ["GP805", "GP805"]),
    "the dash of an item lost": (
        (
            f"{CLUSTER}{SPECS}  minmax:\n    - name: a\n      {bounds('8G 16G', '4 8', '40G 90G')}"
            f"      name: b\n      {bounds('1G 4G', '1 2', '10G 30G')}"
        ),
        ["GP003"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_cause_alone_is_reported(case: str, tmp_path: Path) -> None:
    text, codes = CASES[case]
    found = check(text, tmp_path)
    assert [finding.code for finding in found if finding.severity is not Severity.INFO] == codes


_HALVES: Final = "".join(
    f"    - name: {name}\n      {bounds(memory, '1 4', disk, spindles)}"
    for name, memory, disk, spindles in (("a", "8G 9G", "2000G 3976G", "4 4"), ("b", "4G 5G", "900G 1988G", "2 2"))
)
_DISKS: Final = "hardware: {memory: 64G, cpus: 16, pv_count: 4, pv_size: 1T}\nndparams: {exclusive_storage: true}\n"


@pytest.mark.parametrize(
    ("text", "code", "following"),
    [
        (
            f"{GROUP}{_DISKS.replace('1T', '931G')}ipolicy:\n  minmax:\n{_HALVES}",
            "GP226",
            {"GP402", "GP403", "GP212"},
        ),
        (
            f"{GROUP}{_DISKS.replace('true', 'false')}ipolicy:\n  minmax:\n{_HALVES}",
            "GP414",
            {"GP219"},
        ),
        (f"{GROUP}{_DISKS}ipolicy:\n  disk-templates: [drbd, plain]\n", "GP407", {"GP303", "GP301"}),
    ],
)
def test_remarks_of_the_same_cause_stand_below_it(text: str, code: str, following: set[str], tmp_path: Path) -> None:
    cluster = f"{CLUSTER}enabled_disk_templates: [plain]\n{SPECS}  disk-templates: [plain]\n"
    found = check(f"{cluster}{text}", tmp_path)
    (cause,) = [item for item in found if item.code == code]
    assert following <= {item.code for item in cause.consequences}
    assert following.isdisjoint(item.code for item in found)


def test_the_list_that_lacks_a_template_is_the_cause_and_not_the_test_that_uses_it(tmp_path: Path) -> None:
    test = "check_instance: {memory-size: 2G, cpu-count: 2, disks: [10G], disk-template: plain}"
    text = (
        f"{TESTS[4:]}{test}\n    expect: {{refused: false}}\n---\n"
        f"{CLUSTER}enabled_disk_templates: [plain, drbd]\nipolicy: {{disk-templates: [drbd]}}\n"
    )
    found = check(text, tmp_path)
    assert {"GP302", "GP817"} <= {finding.code for finding in found}
    (said,) = [finding for finding in one_for_each_missing(found) if finding.severity is Severity.WARNING]
    assert said.code == "GP302"
    assert [item.code for item in said.consequences] == ["GP817", "GP306"]


@pytest.mark.parametrize(
    ("base", "code"),
    [
        ("gpolicy: v1\nkind: [Cluster\nname: fleet\n", "GP002"),
        ("gpolicy: v1\nkind: Clsuter\nname: fleet\n", "GP010"),
        ("gpolicy: v1\nkind: Cluster\nnmae: fleet\n", "GP011"),
        ("gpolicy: v1\nkind: Cluster\nname: 7\n", "GP012"),
        (f"{CLUSTER}template: true\nx: [\n---\ngpolicy: v1\nkind: Cluster\nname: fleet\n", "GP002"),
    ],
)
def test_what_extends_a_broken_base_is_not_to_blame(base: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(base, encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(f"{CLUSTER}extends: base.yaml#fleet\n", encoding="utf-8")
    assert [finding.code for finding in find_mistakes(load_policy(tmp_path), today=TODAY, forecast=FORECAST)] == [code]


def test_a_base_that_is_nowhere_is_reported_beside_a_broken_object_of_another_name(tmp_path: Path) -> None:
    base = f"{CLUSTER}x: 1\n"
    (tmp_path / "base.yaml").write_text(base, encoding="utf-8")
    (tmp_path / "policy.yaml").write_text(f"{CLUSTER.replace('c.', 'd.')}extends: base.yaml#flet\n", encoding="utf-8")
    assert [finding.code for finding in find_mistakes(load_policy(tmp_path), today=TODAY, forecast=FORECAST)] == [
        "GP011",
        "GP021",
    ]


@pytest.mark.parametrize(
    ("volumes", "disk", "code", "hint"),
    [
        ("pv_count: 4, pv_size: 1T", "2T 2T", "GP404", "allow a disk-size of 1988G, or allow spindle-use 3 in min and"),
        ("pv_count: 4, pv_size: 4T", "1900G 1980G", "GP402", "is pv_size, which is of each volume, 1T? Else write"),
    ],
)
def test_what_the_disks_of_a_size_lack_is_asked(volumes: str, disk: str, code: str, hint: str, tmp_path: Path) -> None:
    hardware = f"ndparams: {{exclusive_storage: true}}\nhardware: {{{volumes}}}\n"
    text = f"{GROUP[4:]}{hardware}ipolicy:\n  minmax:\n    - {bounds('1G 4G', '1 4', disk, '2 2')}"
    (found,) = [item for item in check(text, tmp_path) if item.code == code]
    assert found.hint.startswith(hint)


def test_a_cause_asks_for_what_is_meant(tmp_path: Path) -> None:
    for case, hint in (
        ("a tag by hand that TagRules makes", "TagRules makes this tag, with its colon: remove it"),
        (
            "exclusive storage for the cluster in place of a group",
            "is it meant for group g only, which allows only plain? Then write it there",
        ),
        ("a migration from the tag that it leads to", "write the tag of the other nodes on one side: cpu:old"),
        ("a test that counts with a template that is not allowed", "is plain meant? Else allow drbd there"),
    ):
        (found,) = [item for item in check(CASES[case][0], tmp_path) if item.code == CASES[case][1][0]]
        assert found.hint == hint


@pytest.mark.parametrize(
    ("nodes", "hint"),
    [
        ("help1.c.org, help2.c.org, help2.c.org", "remove one of them, or is help3.c.org meant?"),
        ("node09, node08, node09", "remove one of them, or is node10 meant?"),
        ("n1, n2, n3, n2", "remove one of them"),
        ("alpha, beta, beta", "remove one of them"),
        ("n2, n2", "remove one of them"),
    ],
)
def test_a_node_that_is_named_twice_may_be_the_next_one(nodes: str, hint: str, tmp_path: Path) -> None:
    (found,) = check(f"{GROUP[4:]}nodes: [{nodes}]\n", tmp_path)
    assert (found.code, found.hint) == ("GP012", hint)


def test_a_closed_group_is_one_mistake_whatever_the_number_of_its_guards(tmp_path: Path) -> None:
    (found,) = one_for_each_missing(check(CLOSED, tmp_path))
    assert (found.code, [item.code for item in found.consequences]) == ("GP805", ["GP805"])
    assert found.span is not None
    assert CLOSED.splitlines()[found.span.line - 1] == "alloc_policy: unallocable"


def test_a_guard_that_is_almost_one_of_the_base_is_taken_for_it(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(
        f"{CLUSTER}template: true\n{GUARDS}  - {{name: keep-capacity, capacity_loss: {{at_most: 15%}}}}\n",
        encoding="utf-8",
    )
    member = tmp_path / "town"
    member.mkdir()
    for name, limit, hint in (
        ("keep-capacty", "30%", "Did you mean `keep-capacity`? A guard of the same name replaces that of the base"),
        ("keep-capacty", "10%", "Did you mean `keep-capacity`? A guard of the same name replaces that of the base"),
        ("no-more-than-this", "30%", "correct what it measures, or remove the guard"),
    ):
        own = f"{CLUSTER.replace('c.', 'd.')}extends: ../base.yaml#c.example.org\n"
        text = f"{own}{GUARDS}  - {{name: {name}, capacity_loss: {{at_most: {limit}}}}}\n"
        (member / "policy.yaml").write_text(text, encoding="utf-8")
        (found,) = find_mistakes(load_policy(member), today=TODAY, forecast=FORECAST)
        assert (found.code, found.hint) == ("GP807", hint)
        assert Path(found.places[0].span.file).parent == tmp_path
        assert found.span is not None
        assert Path(found.span.file).parent == member


def test_an_overlap_is_told_where_what_explains_it_is_accepted(tmp_path: Path) -> None:
    text, _ = CASES["a unit of memory that makes sizes overlap"]
    waiver = (
        "---\ngpolicy: v1\nkind: Waiver\nwaivers:\n  - {rule: GP224, where: cluster, until: '2027-01-31', reason: x}\n"
    )
    assert [item.code for item in check(f"{text}{waiver}", tmp_path)] == ["GP201"]


def test_a_base_that_is_no_template_is_blamed_itself(tmp_path: Path) -> None:
    group = GROUP.removeprefix("---\n")
    (tmp_path / "base.yaml").write_text(CLUSTER.replace("c.example.org", "standard"), encoding="utf-8")
    for town in ("fra", "sto"):
        (tmp_path / town).mkdir()
        text = f"{CLUSTER.replace('c.', f'{town}.')}extends: ../base.yaml#standard\n---\n{group}"
        (tmp_path / town / "cluster.yaml").write_text(text, encoding="utf-8")
    (found,) = find_mistakes(load_policy(tmp_path), today=TODAY, forecast=FORECAST)
    assert (found.code, found.span and Path(found.span.file).name) == ("GP024", "base.yaml")
    assert "'fra.example.org', 'sto.example.org' extend it" in found.message


def test_two_clusters_that_extend_nothing_of_one_another_are_two(tmp_path: Path) -> None:
    (found,) = check(f"{CLUSTER}---\n{CLUSTER.replace('c.', 'd.')}", tmp_path)
    assert found.message == "a second cluster, 'd.example.org', in one policy"


def test_a_base_of_another_kind_is_named(tmp_path: Path) -> None:
    (found,) = check(f"{CLUSTER}{GROUP}extends: c.example.org\n", tmp_path)
    assert found.message == "there is no NodeGroup 'c.example.org' to extend, but a Cluster of this name"


def test_of_two_values_the_one_beside_the_base_is_to_blame(tmp_path: Path) -> None:
    base = f"{CLUSTER.replace('c.example.org', 'base')}template: true\ndiskparams: {{drbd: {{c-min-rate: 8M}}}}\n"
    (tmp_path / "base.yaml").write_text(base, encoding="utf-8")
    own = f"{CLUSTER}extends: base.yaml#base\ndiskparams: {{drbd: {{c-max-rate: 4M}}}}\n"
    found = [item for item in check(own, tmp_path) if item.code == "GP121"]
    assert [item.span and Path(item.span.file).name for item in found] == ["policy.yaml"]


def test_the_same_pattern_and_the_same_directory_are_named_once(tmp_path: Path) -> None:
    paths = f"{CLUSTER}file_storage_dir: /srv/x\nshared_file_storage_dir: /srv/x\n"
    nodes = 'nodes: ["n[1-4]"]\n'
    found = check(f"{paths}{GROUP}{nodes}{GROUP.replace('name: g', 'name: h')}{nodes}", tmp_path)
    messages = {item.code: item.message for item in found}
    assert messages["GP146"] == "file_storage_dir and shared_file_storage_dir are both /srv/x"
    assert messages["GP611"] == "n[1-4] is also a pattern of group g"
