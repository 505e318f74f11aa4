"""A policy with impossible numbers is refused, with one finding at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.ganeti.amounts import BOUNDED_FAMILIES, BOUNDS, COUNT, CPUS, DISK, MEMORY, RATIO
from gpolicy.ganeti.parameters import PARAMETERS
from gpolicy.ganeti.vocabulary import SPEC_PARAMETERS, SPEC_SIZES, Parameter, Type
from gpolicy.policy.loading import load_policy
from scripts.schemas.documents import MOST_BASES

CLUSTER = "gpolicy: v1\nkind: Cluster\nname: c.example.org\n"
GROUP = "gpolicy: v1\nkind: NodeGroup\nname: gold\n"
TEST = "gpolicy: v1\nkind: Test\ntests:\n  - name: t\n"
SPEC = {
    "memory-size": "1G",
    "cpu-count": "1",
    "disk-size": "1G",
    "disk-count": "1",
    "nic-count": "1",
    "spindle-use": "1",
}
HUGE = "9" * 5000


def findings(directory: Path, text: str) -> list[tuple[str, str, str]]:
    (directory / "policy.yaml").write_text(text, encoding="utf-8")
    return [(found.code, found.message, found.hint) for found in load_policy(directory).findings]


def pair(name: str, value: str) -> str:
    low, high = (", ".join(f"{key}: {item}" for key, item in spec.items()) for spec in (SPEC, {**SPEC, name: value}))
    return f"{GROUP}ipolicy:\n  minmax:\n    - min: {{{low}}}\n      max: {{{high}}}\n"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("cpu-count", "2000000000", "ipolicy.minmax[1].max.cpu-count is 2000000000, it must be at most 100000"),
        ("cpu-count", "30000000", "ipolicy.minmax[1].max.cpu-count is 30000000, it must be at most 100000"),
        ("spindle-use", "100001", "ipolicy.minmax[1].max.spindle-use is 100001, it must be at most 100000"),
        ("memory-size", "2000000000T", "ipolicy.minmax[1].max.memory-size: no cluster has more than 1024T"),
        ("memory-size", "1073741825", "ipolicy.minmax[1].max.memory-size: no cluster has more than 1024T"),
        ("disk-size", "1048577T", "ipolicy.minmax[1].max.disk-size: no cluster has more than 1048576T"),
    ],
)
def test_a_spec_beyond_any_cluster(name: str, value: str, message: str, tmp_path: Path) -> None:
    hint = "" if name in SPEC_SIZES else "no cluster has more"
    assert findings(tmp_path, pair(name, value)) == [("GP012", message, hint)]


@pytest.mark.parametrize("name", SPEC_PARAMETERS)
def test_the_greatest_possible_spec_is_accepted(name: str, tmp_path: Path) -> None:
    assert findings(tmp_path, pair(name, str(BOUNDS[name].most))) == []


def test_every_parameter_of_the_counts_has_a_bound() -> None:
    for parameter in PARAMETERS:
        number = parameter.type in {Type.INT, Type.SIZE, Type.MIB, Type.FLOAT}
        if parameter.family in BOUNDED_FAMILIES and number and parameter.name != "ndparams.ssh_port":
            assert parameter.maximum == BOUNDS[parameter.path[-1]].most, parameter.name


BOUNDED = [
    parameter
    for parameter in PARAMETERS
    if parameter.maximum is not None and parameter.family in BOUNDED_FAMILIES and "*" not in parameter.path
]


@pytest.mark.parametrize("parameter", BOUNDED, ids=lambda parameter: parameter.name)
def test_a_parameter_beyond_any_cluster(parameter: Parameter, tmp_path: Path) -> None:
    assert parameter.maximum is not None
    start = f"{CLUSTER}{': {'.join(parameter.path[:-1])}: {{{parameter.path[-1]}: "
    for value, codes in ((parameter.maximum + 1, {"GP012"}), (HUGE, {"GP012"}), (parameter.maximum, set())):
        text = f"{start}{value}{'}' * (len(parameter.path) - 1)}\n"
        assert {code for code, _, _ in findings(tmp_path, text)} == codes, text


@pytest.mark.parametrize("value", ["1e-300", "0", "-1", "0.0009"])
def test_a_ratio_that_is_hardly_above_zero(value: str, tmp_path: Path) -> None:
    message = (
        f"ipolicy.vcpu-ratio is {float(value) if 'e' in value or '.' in value else value}, it must be at least 0.001"
    )
    assert findings(tmp_path, f"{GROUP}ipolicy: {{vcpu-ratio: {value}}}\n") == [("GP012", message, "")]


@pytest.mark.parametrize(
    "text",
    [
        f"{GROUP}hardware: {{memory: 2000T}}\n",
        f"{GROUP}hardware: {{cpus: 8193}}\n",
        f"{GROUP}hardware: {{pv_count: 100001}}\n",
        f"{GROUP}hardware: {{pv_size: [1T, 1048577T]}}\n",
        f"{CLUSTER}disk_state: {{plain: {{xenvg: {{disk_total: 1048577T}}}}}}\n",
        f"{TEST}    check_instance: {{memory-size: 2000T}}\n    expect: {{refused: true}}\n",
        f"{TEST}    check_instance: {{cpu-count: 100001}}\n    expect: {{refused: true}}\n",
        f"{TEST}    check_instance: {{disks: [1G, 1048577T]}}\n    expect: {{refused: true}}\n",
        f"{TEST}    check_instance: {{disks: [{{size: 1048577T}}]}}\n    expect: {{refused: true}}\n",
        f"{TEST}    on: {{simulate: {{nodes: 2, memory: 2000T}}}}\n    capacity: {{}}\n    expect: {{tiered: 1}}\n",
        f"{TEST}    on: {{simulate: {{nodes: 2, cpus: 8193}}}}\n    capacity: {{}}\n    expect: {{tiered: 1}}\n",
    ],
)
def test_hardware_and_tests_beyond_any_cluster(text: str, tmp_path: Path) -> None:
    assert [code for code, _, _ in findings(tmp_path, text)] == ["GP012"]


def test_the_page_about_hostile_input_names_the_bounds() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    page = (docs / "how-we-know" / "hostile-input.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("|")]
    for bound in (MEMORY, DISK, CPUS, COUNT, RATIO):
        assert any(f"| {bound.most:,}" in row for row in rows), bound
    assert f"at most {MOST_BASES} others" in page
