"""From files to objects: sizes and rates in Ganeti's units, kinds, names, and kinds of files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from gpolicy.errors import InputError
from gpolicy.findings import Severity
from gpolicy.ganeti.amounts import MEMORY, format_size, parse_size
from gpolicy.ganeti.vocabulary import Level
from gpolicy.policy.kinds import KINDS, Policy
from gpolicy.policy.loading import load_policy
from gpolicy.policy.model import INHERIT
from tests.policy.mutated import DOCUMENTS

CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"


def load(directory: Path, text: str) -> Policy:
    (directory / "policy.yaml").write_text(text, encoding="utf-8")
    return load_policy(directory)


def leaf(policy: Policy, *path: str) -> object:
    assert policy.cluster is not None
    return policy.cluster.leaves[path].value


def codes(policy: Policy) -> list[str]:
    return [finding.code for finding in policy.findings]


# --- sizes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "mib", "rounded"),
    [
        ("128", 128, False),
        ("1G", 1024, False),
        ("1g", 1024, False),
        ("1 GiB", 1024, False),
        ('"1024"', 1024, False),
        ("1.5T", 1572864, False),
        (".5G", 512, False),
        ("0", 0, False),
        ("130", 132, True),
        ("1.3G", 1332, True),
        ("0.1M", 4, True),
        ("1.0000001G", 1028, True),
    ],
)
def test_a_size_is_what_ganeti_would_store(written: str, mib: int, rounded: bool, tmp_path: Path) -> None:
    policy = load(tmp_path, f"{CLUSTER}beparams: {{maxmem: {written}}}\n")
    assert leaf(policy, "beparams", "maxmem") == mib
    assert codes(policy) == (["GP015"] if rounded else [])


@pytest.mark.parametrize("written", ["1K", "1P", "-1", "1GG", "1 2", "true", "[1]", "'1,5G'", "''", ".nan", "9" * 50])
def test_an_invalid_size_is_a_finding_at_its_place(written: str, tmp_path: Path) -> None:
    policy = load(tmp_path, f"{CLUSTER}beparams: {{maxmem: {written}}}\n")
    assert codes(policy) == ["GP012"]
    assert policy.findings[0].span is not None
    assert (policy.findings[0].span.line, policy.findings[0].span.column) == (4, 20)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mib=st.integers(0, MEMORY.most // 4).map(lambda n: n * 4))
def test_every_size_that_a_cluster_can_have_loads_as_itself(tmp_path: Path, mib: int) -> None:
    policy = load(tmp_path, f"{CLUSTER}beparams: {{maxmem: {format_size(mib)}}}\n")
    assert policy.findings == ()
    assert leaf(policy, "beparams", "maxmem") == mib == parse_size(mib)


def test_a_rate_takes_units_of_its_own(tmp_path: Path) -> None:
    policy = load(tmp_path, f"{CLUSTER}diskparams:\n  drbd: {{c-max-rate: 60M, c-min-rate: 250, resync-rate: 1.5m}}\n")
    assert policy.findings == ()
    rates = [leaf(policy, "diskparams", "drbd", name) for name in ("c-max-rate", "c-min-rate", "resync-rate")]
    assert rates == [61440, 250, 1536]


def test_figures_that_no_command_rounds_are_not_rounded(tmp_path: Path) -> None:
    policy = load(tmp_path, f"{CLUSTER}hv_state:\n  kvm: {{mem_node: 4097, cpu_node: 2}}\n")
    assert policy.findings == ()
    assert leaf(policy, "hv_state", "kvm", "mem_node") == 4097


def test_hardware_is_not_rounded(tmp_path: Path) -> None:
    policy = load(tmp_path, f"{GROUP}hardware: {{memory: 4097, pv_size: [1021, 1022.9M]}}\n")
    hardware = policy.groups["gold"].hardware
    assert policy.findings == ()
    assert hardware is not None
    assert hardware.memory is not None
    assert (hardware.memory.value, [size.value for size in hardware.pv_sizes]) == (4097, [1021, 1022])


# --- leaves --------------------------------------------------------------------------------------------------------


def test_the_three_states_of_a_leaf(tmp_path: Path) -> None:
    leaves = load(tmp_path, f"{GROUP}ndparams: {{ssh_port: inherit, spindle_count: 2}}\n").groups["gold"].leaves
    assert leaves["ndparams", "ssh_port"].value is INHERIT
    assert leaves["ndparams", "spindle_count"].value == 2
    assert ("ndparams", "oob_program") not in leaves


@pytest.mark.parametrize(
    "text",
    [
        f"{CLUSTER}ndparams: {{ssh_port: inherit}}\n",
        f"{GROUP}alloc_policy: inherit\n",
        f"{GROUP}ipolicy: {{std: {{memory-size: 1G}}}}\n",
        "gpolicy: v1\nkind: NodeSet\nname: x\nndparams: {exclusive_storage: true}\n",
        f"{GROUP}ipolicy: {{vcpu-ratio: 0}}\n",
        f"{GROUP}ipolicy: {{vcpu-ratio: .nan}}\n",
        f"{GROUP}ipolicy: {{vcpu-ratio: .inf}}\n",
        f"{GROUP}ipolicy: {{minmax: []}}\n",
        f"{GROUP}ipolicy: {{disk-templates: [plain, plain]}}\n",
        f"{GROUP}ipolicy: {{disk-templates: [lvm]}}\n",
        f"{GROUP}ipolicy: {{memory-ratio: 1}}\n",
        f'{CLUSTER}uid_pool: ["20-10"]\n',
        f"{CLUSTER}ganeti_version: 3.0\n",
        f'{GROUP}tags: ["a b"]\n',
        f'{GROUP}nodes: ["n\\x07"]\n',
        f'{GROUP}nodes: ["n\\u202e"]\n',
        'gpolicy: v1\nkind: NodeGroup\nname: "a\\nb"\n',
    ],
)
def test_a_value_that_ganeti_cannot_store_is_an_error(text: str, tmp_path: Path) -> None:
    findings = load(tmp_path, text).findings
    assert findings
    assert {finding.severity for finding in findings} == {Severity.ERROR}


def test_a_pool_of_user_ids_takes_ranges_and_single_ones(tmp_path: Path) -> None:
    policy = load(tmp_path, f'{CLUSTER}uid_pool: [2000, "3000", "1000-1010", "3000000000-4294967295"]\n')
    assert policy.findings == ()
    pool = leaf(policy, "uid_pool")
    assert pool == [[2000, 2000], [3000, 3000], [1000, 1010], [3000000000, 4294967295]]


def test_ratios_are_floats_and_templates_keep_their_order(tmp_path: Path) -> None:
    policy = load(tmp_path, f"{CLUSTER}ipolicy: {{vcpu-ratio: 4, disk-templates: [plain, drbd]}}\n")
    assert type(leaf(policy, "ipolicy", "vcpu-ratio")) is float
    assert leaf(policy, "ipolicy", "disk-templates") == ["plain", "drbd"]


def test_numbers_where_ganeti_wants_words_stay_words(tmp_path: Path) -> None:
    policy = load(tmp_path, f"{CLUSTER}diskparams:\n  drbd: {{disk-barriers: n, protocol: C}}\n")
    assert policy.findings == ()
    assert leaf(policy, "diskparams", "drbd", "disk-barriers") == "n"


# --- tag rules -----------------------------------------------------------------------------------------------------


def test_tag_rules_are_rendered_to_what_htools_reads(tmp_path: Path) -> None:
    text = (
        "gpolicy: v1\nkind: TagRules\nowns: [iextags, {prefix: 'rack:', on: [node]}]\n"
        "exclusion: [service, 'team:', {raw: own}]\nfailure_domains: [rack]\ndesired_location: [rack]\n"
        "migration: {domains: [hv], allow: [{from: 'hv:4', to: 'hv:5'}]}\n"
    )
    policy = load(tmp_path, text)
    assert policy.findings == ()
    assert {tag.value for tag in policy.cluster_tags or ()} == {
        "htools:iextags:service:",
        "htools:iextags:team:",
        "htools:iextags:own",
        "htools:nlocation:rack",
        "htools:desiredlocation:rack:",
        "htools:migration:hv",
        "htools:allowmigration:hv:4::hv:5",
    }
    assert [(owned.prefix, owned.levels) for owned in policy.owned] == [
        ("htools:iextags:", frozenset({Level.CLUSTER})),
        ("rack:", frozenset({Level.NODE})),
    ]


def test_tags_that_nobody_mentions_are_not_managed(tmp_path: Path) -> None:
    assert load(tmp_path, CLUSTER).cluster_tags is None
    assert load(tmp_path, f"{CLUSTER}tags: []\n").cluster_tags == ()


# --- files ---------------------------------------------------------------------------------------------------------


def test_several_files_are_one_policy_in_a_fixed_order(tmp_path: Path) -> None:
    (tmp_path / "groups").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "cluster.yaml").write_text(CLUSTER, encoding="utf-8")
    (tmp_path / "groups" / "gold.yml").write_text(GROUP, encoding="utf-8")
    (tmp_path / "notes.txt").write_text("not a policy", encoding="utf-8")
    (tmp_path / ".hidden" / "x.yaml").write_text("nonsense", encoding="utf-8")
    (tmp_path / ".x.yaml").write_text("nonsense", encoding="utf-8")
    policy = load_policy(tmp_path)
    assert policy.findings == ()
    assert [Path(path).name for path in policy.paths] == ["cluster.yaml", "gold.yml"]
    assert policy.cluster is not None
    assert list(policy.groups) == ["gold"]


def test_two_files_cannot_describe_one_group(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(GROUP, encoding="utf-8")
    policy = load_policy(tmp_path)
    assert codes(policy) == ["GP020"]
    assert policy.findings[0].related[0].span.file.endswith("a.yaml")


@pytest.mark.parametrize("data", [b"\xff\xfe\x00g", b"\x7fELF\x02\x01\x01\x00\x80", b"name: \xc3\x28\n", b"\x00" * 100])
def test_a_file_of_another_sort_is_one_finding(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_bytes(data)
    policy = load_policy(tmp_path)
    assert len(policy.findings) == 1
    assert policy.findings[0].code in ("GP001", "GP002")


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_bytes(b"\xef\xbb\xbf" + GROUP.encode())
    assert load_policy(tmp_path).findings == ()


def test_a_pipe_cannot_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "policy.yaml")
    assert codes(load_policy(tmp_path)) == ["GP001"]


def test_without_files_the_run_ends(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no YAML files"):
        load_policy(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        load_policy(tmp_path / "missing")
    (tmp_path / "groups.YAML").write_text(GROUP, encoding="utf-8")
    with pytest.raises(InputError, match="no YAML files") as raised:
        load_policy(tmp_path)
    assert raised.value.hint is not None
    assert "groups.YAML" in raised.value.hint


@pytest.mark.parametrize(
    ("name", "text", "is_found"),
    [
        *(
            (name, GROUP, True)
            for name in ("a.YAML", "a.yaml.txt", "a.yaml.bak", "a.Yml", "a.yam", "a.txt", "a", "b/a.YML")
        ),
        *((name, GROUP, False) for name in ("a.yaml~", "a.yml.orig", ".a.yaml.swp", ".a.YAML", "a.yaml.j2", "a.py")),
        *((f"policy.yaml{ending}", GROUP, False) for ending in (".bak", ".1", ".txt")),
        ("a.json", json.dumps({"gpolicy": "v1", "kind": "NodeGroup", "name": "gold"}, indent=2), True),
        ("a.json", json.dumps([{"gpolicy": "v1", "kind": "NodeGroup", "name": "gold"}]), True),
        ("a.json", json.dumps({"gpolicy": "1.0.0", "format_version": 3}), False),
        ("a.txt", f"# Racks\n---\n\n{GROUP}", True),
        ("a.txt", f"# Racks\n\nA group:\n{GROUP}", False),
        ("README", "How to write a policy\n", False),
        ("a.YAML", "kind: ConfigMap\napiVersion: v1\n", False),
        ("a.YAML", "\0\1gpolicy: v1", False),
    ],
)
def test_a_file_that_looks_like_a_policy_and_is_not_read(name: str, text: str, is_found: bool, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text, encoding="utf-8")
    policy = load(tmp_path, GROUP)
    assert [(item.code, item.span.file if item.span else "") for item in policy.findings] == (
        [("GP026", str(tmp_path / name))] if is_found else []
    )
    assert load_policy(tmp_path / "policy.yaml").findings == (), "a file that is named stands alone"


@pytest.mark.parametrize("text", ["", "\n", "# a comment\n", "---\n# a comment\n---\n"])
def test_a_policy_without_a_document_declares_nothing(text: str, tmp_path: Path) -> None:
    assert codes(load(tmp_path, text)) == ["GP027"]
    assert codes(load_policy(tmp_path / "policy.yaml")) == ["GP027"]
    (tmp_path / "groups.yaml").write_text(GROUP, encoding="utf-8")
    assert codes(load_policy(tmp_path)) == []


@pytest.mark.parametrize(("written", "meant"), [("two-grops", "two-groups"), ("two-grops/groups", "two-groups")])
def test_a_misspelt_path_gets_a_guess(tmp_path: Path, written: str, meant: str) -> None:
    (tmp_path / "two-groups").mkdir()
    with pytest.raises(InputError, match="no such file") as caught:
        load_policy(tmp_path / written)
    assert caught.value.hint == f"Did you mean `{tmp_path / meant}`?"


@pytest.mark.parametrize(
    "text",
    [
        *("[]\n", "just text\n", "12\n", "gpolicy: v2\nkind: Cluster\nname: x\n", "kind: Cluster\nname: x\n", "a: 1\n"),
        *("gpolicy: v1\nkind: [Cluster]\n", "gpolicy: v1\nkind: {Cluster: x}\n"),
    ],
)
def test_a_file_that_is_not_a_policy_is_reported_once(text: str, tmp_path: Path) -> None:
    assert codes(load(tmp_path, text)) == ["GP010"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_result_of_a_document_is_in_its_field_of_the_policy(kind: str, tmp_path: Path) -> None:
    document = next(item for item in DOCUMENTS if item["kind"] == kind and not item.get("template"))
    policy = load(tmp_path, json.dumps(document).replace("{", "{\n", 1))
    assert Severity.ERROR not in {finding.severity for finding in policy.findings}
    assert getattr(policy, KINDS[kind].field)


def test_empty_documents_are_ignored(tmp_path: Path) -> None:
    assert load(tmp_path, f"---\n---\n{GROUP}---\n# the end\n").findings == ()


def test_one_document_with_mistakes_does_not_hide_the_others(tmp_path: Path) -> None:
    policy = load(tmp_path, f"{CLUSTER}x: 1\n---\n{GROUP}")
    assert codes(policy) == ["GP011"]
    assert list(policy.groups) == ["gold"]
