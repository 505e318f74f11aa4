"""gpolicy's hail and hspace in the place of the real ones, on the real cluster."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.live_cluster import MASTER_ADDRESS, ROOT, LiveCluster, gpolicy

pytestmark = pytest.mark.e2e

NAME = "gpolicy-hail"
INSTANCE = ("-o", "noop", "-B", "memory=1024,vcpus=1", "--no-name-check", "--no-ip-check", "--dry-run", "inst90")
QUERIES = {
    "allocate plain": ("allocate", "-t", "plain", "--disks=2048,1024", "--memory=1024", "-p", "1", "inst90"),
    "allocate drbd": ("allocate", "-t", "drbd", "--disks=4096", "--memory=2048", "-p", "2", "inst90"),
    "allocate what does not fit": ("allocate", "-t", "plain", "--disks=999999999", "--memory=128", "-p", "1", "inst90"),
    "several at once": (
        "multi-allocate",
        "-t",
        "drbd",
        "--disks=1024",
        "--memory=512",
        "-p",
        "1",
        "--count=3",
        "inst9",
    ),
    "relocate": ("relocate", "inst2"),
    "evacuate secondaries": ("node-evacuate", "--evac-mode=secondary-only", "inst2", "inst5"),
    "evacuate all": ("node-evacuate", "--evac-mode=all", "inst2", "inst5"),
    "change group": ("change-group", "--target-groups=other", "inst2"),
}


@pytest.fixture(scope="module")
def allocator(cluster: LiveCluster) -> Iterator[Path]:
    """Our hail among Ganeti's allocators; the directory in which it keeps the requests that it gets."""
    cluster.rewind()
    cluster.ganeti("gnt-group", "add", "other")
    cluster.ganeti("gnt-group", "assign-nodes", "other", "node4", "node5")
    kept = cluster.base / "requests"
    kept.mkdir(exist_ok=True)
    program = cluster.base / "iallocators" / NAME
    program.write_text(
        f'#!/bin/sh\ncp "$1" {kept}/$$.json\nexport PYTHONPATH={ROOT}\n'
        f'exec {sys.executable} -m gpolicy htools hail "$@"\n'
    )
    program.chmod(0o755)
    yield kept
    program.unlink()
    cluster.rewind()


def answers(kept: Path) -> list[tuple[str, str]]:
    """Return what our hail and the real one say to each request that came."""
    given = []
    for file in sorted(kept.iterdir()):
        ours = gpolicy("htools", "hail", file)
        real = subprocess.run(["/usr/lib/ganeti/iallocators/hail", file], capture_output=True, text=True, check=False)
        given.append((ours.out, real.stdout))
        file.unlink()
    return given


@pytest.mark.parametrize("query", QUERIES)
def test_an_allocation_query_gets_the_answer_of_the_real_hail(
    cluster: LiveCluster, allocator: Path, query: str
) -> None:
    mode, *rest = QUERIES[query]
    asked = [
        cluster.ganeti("gnt-debug", "iallocator", "--dir=out", "-I", name, "-o", "noop", "-m", mode, *rest, check=False)
        for name in (NAME, "hail")
    ]
    assert asked[0].stdout == asked[1].stdout, asked[0].stderr
    assert asked[0].returncode == asked[1].returncode
    assert '"success"' in asked[0].stdout.replace("'", '"')
    both = answers(allocator)
    assert both, asked[0]
    for ours, real in both:
        assert ours == real
        assert set(json.loads(ours)) == {"success", "info", "result"}


@pytest.mark.parametrize(
    "disk", [("-t", "plain", "--disk=0:size=1g"), ("-t", "file", "--disk=0:size=2g"), ("-t", "diskless")]
)
def test_an_instance_is_placed_where_the_real_hail_places_it(
    cluster: LiveCluster, allocator: Path, disk: tuple[str, ...]
) -> None:
    """Or nowhere, for the same reason."""
    said = []
    for name in (NAME, "hail"):
        done = cluster.ganeti("gnt-instance", "add", "-I", name, *disk, *INSTANCE, check=False)
        verdict = re.findall(r"(?:Selected nodes|Request failed).*", done.stdout + done.stderr)
        assert len(verdict) == 1, done
        said.append((done.returncode, verdict[0].replace(name, "hail")))
    assert said[0] == said[1]
    given = answers(allocator)
    assert given
    for ours, real in given:
        assert ours == real


def test_a_node_is_evacuated_as_the_real_hail_would(cluster: LiveCluster, allocator: Path) -> None:
    """Ganeti takes the answer and makes a job of it, which fails here: there are no DRBD devices."""
    done = cluster.ganeti("gnt-node", "evacuate", "-f", "-s", "-I", NAME, "node3", check=False)
    given = answers(allocator)
    assert given
    for ours, real in given:
        assert ours == real
        assert json.loads(ours)["success"] is True
        assert "inst2" in ours
    assert "Can't compute" not in done.stderr, done.stderr


@pytest.mark.parametrize("options", [(), ("--disk-template=drbd",), ("--standard-alloc=512,1024,1",), ("-p",)])
def test_hspace_over_rapi_says_what_the_real_one_says(
    cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    source = ("-m", MASTER_ADDRESS)
    monkeypatch.setenv("GPOLICY_RAPI_CA", str(cluster.certificate))
    ours = gpolicy("htools", "hspace", *source, *options)
    real = subprocess.run(["hspace", *source, *options], capture_output=True, text=True, check=False)
    assert ours.code == real.returncode == 0, ours.err + real.stderr
    assert ours.out == real.stdout


def test_hspace_of_a_text_file_that_hscan_collects(cluster: LiveCluster, tmp_path: Path) -> None:
    subprocess.run(["hscan", "-d", tmp_path, MASTER_ADDRESS], check=True, capture_output=True, env={**os.environ})
    (file,) = tmp_path.glob("*.data")
    ours = gpolicy("htools", "hspace", "-t", file)
    real = subprocess.run(["hspace", "-t", file], capture_output=True, text=True, check=True)
    assert ours.out == real.stdout
