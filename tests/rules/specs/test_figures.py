"""One figure that most specs of a group do not fit is one finding, at the figure; one spec that does not is its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpolicy.findings import Severity
from tests.rules.policy_texts import CLUSTER, GROUP, bounds
from tests.rules.run_rules import check

FULL, HALF = ("16 16", "7000G 7950G", "8 8"), ("8 8", "3500G 3970G", "4 4")
HARDWARE = "hardware: {memory: 128G, cpus: 18, pv_count: 8, pv_size: 1T}\n"
EXCLUSIVE = "ndparams: {exclusive_storage: true}\n"


def policy(
    *,
    kept: str = "mem_node: 4G, cpu_node: 2",
    hardware: str = HARDWARE,
    volumes: str = "reserve: 2%",
    full: str = "120G 120G",
) -> str:
    sizes = zip(("full", "half"), (full, "60G 60G"), (FULL, HALF), strict=True)
    pairs = "".join(f"    - name: {name}\n      {bounds(memory, *others)}" for name, memory, others in sizes)
    return (
        f"{CLUSTER}hv_state:\n  kvm: {{{kept}}}\nphysical_volumes: {{{volumes}}}\n---\n"
        f"{GROUP}{hardware}{EXCLUSIVE}ipolicy:\n  vcpu-ratio: 1\n  disk-templates: [plain]\n  minmax:\n{pairs}"
    )


def serious(text: str, directory: Path) -> list[tuple[str, str]]:
    """Return the code of each finding that is no info, with the text at its place."""
    found = [item for item in check(text, directory) if item.severity is not Severity.INFO]
    lines = text.splitlines()
    return [(item.code, lines[item.span.line - 1][item.span.column - 1 :]) for item in found if item.span]


@pytest.mark.parametrize(
    ("changed", "figure"),
    [
        ({"kept": "mem_node: 40G, cpu_node: 2"}, "40G"),
        ({"kept": "mem_node: 4G, cpu_node: 8"}, "8}"),
        ({"volumes": "reserve: 20%"}, "20%"),
        ({"hardware": HARDWARE.replace("cpus: 18", "cpus: 12")}, "12,"),
        ({"hardware": HARDWARE.replace("pv_count: 8", "pv_count: 6")}, "6,"),
    ],
)
def test_the_figure_that_decides_is_the_finding(changed: dict[str, str], figure: str, tmp_path: Path) -> None:
    assert serious(policy(), tmp_path) == []
    ((code, place),) = serious(policy(**changed), tmp_path)
    assert code == "GP226"
    assert place.startswith(figure)


def test_the_message_counts_the_specs_and_names_the_worst(tmp_path: Path) -> None:
    text = policy(hardware=HARDWARE.replace("pv_count: 8", "pv_count: 6"))
    (found,) = (item for item in check(text, tmp_path) if item.severity is not Severity.INFO)
    assert found.message == (
        "hardware.pv_count is 6: by it 2 of 2 sizes of group gold do not fit the nodes as meant;"
        " size full needs 8 spindles, a node has 6"
    )
    assert found.severity is Severity.ERROR  # as the finding that the smallest instance of full fits nowhere
    assert [item.message.split()[1].rstrip(":") for item in found.consequences] == ["full", "half", "half"]


def test_one_spec_that_is_too_large_is_blamed_itself(tmp_path: Path) -> None:
    assert [code for code, _ in serious(policy(full="125G 125G"), tmp_path)] == ["GP415"]


def test_a_spec_that_does_not_fit_for_another_reason_too_does_not_count(tmp_path: Path) -> None:
    kept = "mem_node: 4G, cpu_node: 8"
    assert "GP226" not in [code for code, _ in serious(policy(kept=kept, full="200G 200G"), tmp_path)]


def test_no_figure_is_blamed_where_two_would_do(tmp_path: Path) -> None:
    kept = "mem_node: 20G, mem_hv: 20G, cpu_node: 2"
    ((code, place),) = serious(policy(kept=kept), tmp_path)
    assert (code, place.split(",")[0]) == ("GP226", "128G")  # then it is the hardware that has too little for all


def test_a_ratio_below_one_is_named_in_the_message_and_is_the_cause(tmp_path: Path) -> None:
    pair = f"    - {bounds('1G 8G', '2 4', '1G 9G')}"
    text = f"{GROUP}hardware: {{memory: 64G, cpus: 16}}\nipolicy:\n  vcpu-ratio: {{}}\n  minmax:\n{pair}"
    (found,) = check(text.replace("{}", "0.1"), tmp_path)
    assert (found.code, found.severity) == ("GP114", Severity.ERROR)
    message = "size 1: cpu-count 2 is more than a node has (1; 16 CPUs times vcpu-ratio 0.1): no instance of it fits"
    assert message in [item.message for item in found.consequences]


def test_reserved_disk_that_leaves_nothing_is_blamed_for_all_sizes(tmp_path: Path) -> None:
    pair = f"    - {bounds('1G 8G', '1 4', '20G 90G')}"
    cluster = f"{CLUSTER}volume_group_name: xenvg\ndisk_state:\n  plain:\n    xenvg: {{disk_reserved: {{}}}}\n---\n"
    text = f"{cluster}{GROUP}hardware: {{pv_count: 2, pv_size: 1T}}\nipolicy:\n  minmax:\n{pair}"
    assert serious(text.replace("{}", "100G"), tmp_path) == []
    assert [code for code, _ in serious(text.replace("{}", "20T"), tmp_path)] == ["GP419"]
