"""The installed hspace on each group alone and on the whole cluster: the same numbers."""

from __future__ import annotations

import shutil
import subprocess
from itertools import permutations
from pathlib import Path

import pytest

from gpolicy.analysis.allocator_input import cluster_data
from gpolicy.analysis.capacity import GroupCapacity, capacity
from gpolicy.analysis.counted_cluster import HspaceCluster
from gpolicy.analysis.loaded_state import group_data, load_state
from tests.analysis.hspace_cases import FULL, from_text, hspace_keys, hspace_text, recorded_cases, tiered

HSPACE = shutil.which("hspace")
TIMEOUT = 20  # seconds: on a few clusters hspace takes minutes

pytestmark = [
    pytest.mark.htools,
    pytest.mark.skipif(HSPACE is None, reason="Debian's ganeti-htools (hspace) is not installed"),
]


def ask(file: Path, *options: str) -> dict[str, str] | None:
    """Return what hspace says of the cluster in `file`, None where it refuses or takes too long."""
    assert HSPACE is not None
    try:
        done = subprocess.run(
            [HSPACE, "-t", str(file), "--machine-readable", *options],
            capture_output=True, text=True, timeout=TIMEOUT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    return hspace_keys(done.stdout.splitlines()) if done.returncode == 0 else None


def compare(item: GroupCapacity, hspace: HspaceCluster, file: Path) -> int:
    """Compare hspace's numbers of `item`, and why `hspace` places no more, with what hspace says of the cluster in
    `file`; return the number of answers."""
    assert item.template is not None
    template = f"--disk-template={item.template.value}"
    keys = ask(file, template)
    if keys is None:
        assert item.hspace_standard == 0
        return 0
    assert item.score.shown == keys["HTS_INI_SCORE"]
    assert str(item.hspace_standard) == keys["HTS_ALLOC_INSTANCES"]
    assert tiered(item) == keys["HTS_TSPEC"]
    answers = 1
    for spec in item.specs:
        size = spec.pair.max
        wanted = f"--standard-alloc={size.disk_size},{size.memory},{size.cpus},{size.spindle_use}"
        keys = ask(file, template, wanted, f"--spindle-use={spec.spindle_use}")
        if keys is None:
            continue
        assert str(spec.hspace) == keys["HTS_ALLOC_INSTANCES"]
        binding = hspace.standard(size, spec.spindle_use).binding
        if binding.reason:
            assert binding.reason.upper() == keys["HTS_ALLOC_FAIL_REASON"]
        for reason, count in binding.failures:
            assert str(count) == keys[f"HTS_ALLOC_{reason.upper()}_CNT"]
        answers += 1
    return answers


@pytest.mark.parametrize("order", list(permutations(["diskless", "drbd", "plain"])))
def test_the_first_template_of_the_policy_is_counted(order: tuple[str, ...], tmp_path: Path) -> None:
    """The cluster's list counts for the whole cluster, the group's own list for the group."""
    file, own = tmp_path / "cluster.data", order[::-1]
    nodes = "".join(f"n{number}|32768|0|32768|400000|400000|16|N|u|1\n" for number in range(3))
    specs = "1024,1,10240,1,1,1|128,1,1024,1,1,1;8192,8,102400,16,8,12"

    def text_with(cluster: tuple[str, ...]) -> str:
        lists = "".join(f"{name}|{specs}|{','.join(given)}|64.0|64.0\n" for name, given in (("", cluster), ("g", own)))
        return f"g|u|preferred||\n\n{nodes}\n\n\n{lists}"

    report = capacity(from_text(text_with(order)))
    for item, first in ((report.cluster, order), (report.groups[0], own)):
        file.write_text(text_with(first))
        keys = ask(file)
        assert keys is not None
        assert item is not None
        assert item.template is not None
        assert item.template.value == first[0] == keys["HTS_SPEC_DISK_TEMPLATE"]
        assert str(item.hspace_standard) == keys["HTS_ALLOC_INSTANCES"]
        assert str(sum(run.count for run in item.hspace_tiered)) == keys["HTS_TRL_INST_CNT"]


@pytest.mark.parametrize("part", [pytest.param(slice(0, 200, 40)), pytest.param(slice(200), marks=pytest.mark.full)])
def test_every_number_equals_hspace(part: slice, tmp_path: Path) -> None:
    file = tmp_path / "cluster.data"
    whole = [FULL] if part.step is None else []  # hspace takes long for it
    texts = [*whole, *(case["data"] for case in recorded_cases()[part])]
    answers = 0
    for text in texts:
        state = from_text(text)
        data = cluster_data(state)
        report, loaded = capacity(state), load_state(state)
        assert report.cluster is not None
        for item, index in [*((item, place) for place, item in enumerate(data.groups)), (None, -1)]:
            found = report.cluster if item is None else next(g for g in report.groups if g.group == item.name)
            if found.template is not None:
                file.write_text(hspace_text(data if item is None else group_data(data, index)))
                counted = loaded.whole if item is None else loaded.groups[item.name]
                answers += compare(found, counted.as_hspace, file)
    assert answers > 2 * len(texts)
