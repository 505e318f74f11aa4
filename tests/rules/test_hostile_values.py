"""Values that are made to take long: a rule answers at once or skips them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processor_time import takes_less
from tests.rules.run_rules import check, codes

CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"


@pytest.mark.parametrize(
    "pattern",
    [
        "xenvg/(.+)+!",
        "xenvg/(.*)*!",
        "xenvg/(a|a|.)*!",
        "xenvg/([0-9a-f-]+)+[.]disk1",
        "xenvg/.*.*.*.*.*.*.*.*!",
        "xenvg/" + "(" * 90 + "a" + ")" * 90,
        "xenvg/" + "a?" * 5000 + "a" * 5000,
        "xenvg/(?P<a>.+)(?P=a)+!",
        "xenvg/.{1,9999}.{1,9999}.{1,9999}!",
    ],
    ids=lambda pattern: pattern[:30],
)
def test_patterns(pattern: str, tmp_path: Path) -> None:
    def judge() -> None:
        assert set(codes(check(f"{CLUSTER}reserved_lvs: ['{pattern}']\n", tmp_path))) <= {"GP109", "GP160"}

    assert takes_less(2, judge)


def test_free_strings(tmp_path: Path) -> None:
    long = "--verify-alg=x " * 200_000

    def judge() -> None:
        assert check(f"{CLUSTER}diskparams:\n  drbd: {{net-custom: '{long}'}}\n", tmp_path) == []

    assert takes_less(5, judge)


def test_many_tags_and_nodes(tmp_path: Path) -> None:
    nodes = "".join(f"  - node{number}\n" for number in range(1000))
    tags = "".join(f"  - rack:{number}\n" for number in range(500))
    sets = "".join(
        f"---\ngpolicy: v1\nkind: NodeSet\nname: s{number}\nnodes: [node{number}]\ntags: [rack:1]\n"
        for number in range(300)
    )
    text = "gpolicy: v1\nkind: TagRules\nfailure_domains: [rack]\n"
    text += f"---\ngpolicy: v1\nkind: NodeGroup\nname: g\nnodes:\n{nodes}"
    text += f"---\ngpolicy: v1\nkind: NodeSet\nname: all\ngroups: [g]\ntags:\n{tags}{sets}"

    def judge() -> None:
        assert set(codes(check(text, tmp_path))) == {"GP519", "GP528"}

    assert takes_less(15, judge)


@pytest.mark.parametrize(
    "hardware",
    [
        "memory: 99999999999999999999999T, cpus: 32",
        "memory: 64G, cpus: 32, pv_size: 99999999999999999999999T",
        "memory: 64G, cpus: 32, pv_size: [1T, 99999999999999999999999T]",
    ],
)
def test_a_refused_promised_size_has_one_finding(hardware: str, tmp_path: Path) -> None:
    text = f"gpolicy: v1\nkind: NodeGroup\nname: g\nhardware: {{{hardware}}}\n"
    assert codes(check(text, tmp_path)) == ["GP012"]


def test_long_values_of_hypervisors_and_paths(tmp_path: Path) -> None:
    words = ":".join(f"zz{number}" for number in range(50_000))
    text = f"""{CLUSTER}default_iallocator: "{"a" * 400_000}"
file_storage_dir: "{"/a/.." * 50_000}"
reserved_lvs: ["{"/*" * 50_000}"]
hvparams:
  kvm:
    migration_caps: "{words}"
    kvm_extra: "{"-m x " * 50_000}"
    cpu_mask: "{"1," * 100_000}1"
  xen-hvm: {{pci_pass: "{";".join(["01-0"] * 50_000)}"}}
"""

    def judge() -> None:
        assert {"GP145", "GP160", "GP178", "GP181", "GP182"} <= set(codes(check(text, tmp_path)))

    assert takes_less(5, judge)
