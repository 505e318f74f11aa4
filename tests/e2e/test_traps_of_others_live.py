"""Ganeti's traps that need somebody else: another job, another cluster, another release, another program."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpolicy.ganeti.vocabulary import Path as ValuePath
from tests.e2e.carried_out import ROUTES, Way, write_policy
from tests.e2e.given_directly import Real
from tests.e2e.live_cluster import LiveCluster, entered, gpolicy, gpolicy_process
from tests.strategies import document

pytestmark = pytest.mark.e2e

SECONDS = 120
NEW_INSTANCE = ("-o", "noop", "--no-name-check", "--no-ip-check", "--no-start", "-B", "memory=128")


def wait_for(what: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not what():
        assert time.monotonic() < until
        time.sleep(0.1)


# --- another job ---------------------------------------------------------------------------------------------------


@contextmanager
def held_up(cluster: LiveCluster) -> Iterator[Path]:
    """A job that holds the lock of inst3 as long as the yielded file exists: it reinstalls the OS."""
    hold, program = cluster.base / "srv" / "hold", cluster.base / "srv/ganeti/os/noop/create"
    before = program.read_text()
    hold.touch()
    program.write_text("#!/bin/sh\nwhile [ -e /srv/hold ]; do sleep 0.1; done\n")
    cluster.ganeti("gnt-instance", "shutdown", "inst3")
    try:
        with subprocess.Popen(
            ["gnt-instance", "reinstall", "-f", "inst3"],
            env=cluster.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        ):  # fmt: skip
            try:
                yield hold
            finally:
                hold.unlink(missing_ok=True)
    finally:
        program.write_text(before)


MOST_TRIES = 6
"""A job that waits for locks begins anew from time to time (first after five seconds) and then sees what has come."""


@pytest.mark.parametrize("route", ROUTES)
def test_t41_live_a_refusal_because_locks_moved_is_tried_again(fresh: LiveCluster, tmp_path: Path, route: str) -> None:
    """While the change of a group waits for the lock of an instance, the group gets another instance."""
    way = Way(fresh, route)
    for number in range(1, MOST_TRIES + 1):
        wanted: dict[ValuePath, Any] = {("ipolicy", "vcpu-ratio"): 2 + number}
        policy = write_policy(tmp_path / "policy.yaml", [document("NodeGroup", "default", wanted)])
        plan = tmp_path / f"plan{number}.json"
        assert way.plan(policy, plan, state=fresh.sources["config"]).code == 2
        with held_up(fresh) as hold:
            wait_for(lambda: "exclusive" in locks(fresh, "instance/inst3"))
            with gpolicy_process("apply", plan, "--to", way.address, "--yes", *way.trust) as process:
                wait_for(lambda: "shared:" in locks(fresh, "instance/inst3"))
                new = ("gnt-instance", "add", "--submit", "-t", "diskless", "-n", "node5", *NEW_INSTANCE)
                fresh.ganeti(*new, f"inst9{number}")
                wait_for(lambda name=f"inst9{number}": has_instance(fresh, name))  # type: ignore[misc]
                hold.unlink()  # at once: the job may begin anew at any time, and then it has seen the instance
                out, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, out + err
        way.expect_nothing_left(policy)
        if "changed since locks were acquired" in out:
            break
    assert "changed since locks were acquired" in out
    assert "this is temporary, trying again" in out
    events = [json.loads(line) for line in plan.with_suffix(".journal.jsonl").read_text().splitlines()]
    assert [event["event"] for event in events if event["event"] in {"step-failed", "step-done"}] == [
        "step-failed", "step-done",
    ]  # fmt: skip


def has_instance(cluster: LiveCluster, name: str) -> bool:
    """Return whether the configuration has an instance."""
    return any(item["name"] == name for item in cluster.config()["instances"].values())


def locks(cluster: LiveCluster, name: str) -> str:
    """Return who has a lock, and who waits for it."""
    told = cluster.ganeti("gnt-debug", "locks", "-o", "name,mode,pending").stdout
    return next((line for line in told.splitlines() if line.startswith(f"{name} ")), "")


@pytest.mark.parametrize("way_out", ["--resume", "--rollback"])
@pytest.mark.parametrize("route", ROUTES)
def test_t57_live_a_step_that_was_accepted_in_part_is_told_and_can_go_on_or_back(
    fresh: LiveCluster, tmp_path: Path, route: str, way_out: str
) -> None:
    """Ganeti stores the enabled templates, and then cannot move the master's address."""
    way, before = Way(fresh, route), fresh.config()["cluster"]
    script = fresh.root("node1") / "etc/ganeti/scripts/master-ip-setup"
    fresh.ganeti("gnt-cluster", "modify", "--use-external-mip-script=yes")
    turned = before["enabled_disk_templates"][::-1]
    wanted: dict[ValuePath, Any] = {("enabled_disk_templates",): turned, ("master_netdev",): "xen-br0"}
    policy = write_policy(tmp_path / "policy.yaml", [document("Cluster", "cluster", wanted)])
    plan = tmp_path / "plan.json"
    assert way.plan(policy, plan, state=fresh.sources["config"]).code == 2
    works = script.read_text()
    script.write_text("#!/bin/sh\nexit 1\n")
    try:
        applied = way.apply(plan)
    finally:
        script.write_text(works)
    assert applied.code == 1, applied.out + applied.err
    stored = fresh.config()["cluster"]
    assert (stored["enabled_disk_templates"], stored["master_netdev"]) == (turned, before["master_netdev"])
    assert "cluster master_netdev: expected xen-br0, found lo" in applied.err
    failed = next(
        event
        for line in (tmp_path / "plan.journal.jsonl").read_text().splitlines()
        if (event := json.loads(line))["event"] == "step-failed"
    )
    assert (failed["done"], failed["missing"]) == (["cluster enabled_disk_templates"], ["cluster master_netdev"])
    further = way.apply(plan, way_out)
    assert further.code == 0, further.out + further.err
    if way_out == "--resume":
        way.expect_nothing_left(policy)
    else:
        assert fresh.config()["cluster"]["enabled_disk_templates"] == before["enabled_disk_templates"]


# --- another cluster, another release ------------------------------------------------------------------------------


@pytest.fixture
def other(cluster: LiveCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveCluster]:
    """A cluster of one node whose volume group is not xenvg."""
    monkeypatch.setenv("RGN_NODES", "1")
    monkeypatch.setenv("RGN_VG", "fast")
    live = LiveCluster(cluster.base.with_name(f"{cluster.base.name}-other"), Path(f"{cluster.handles}-other"))
    try:
        live.rgn("up")
        with entered(live):
            yield live
    finally:
        live.rgn("down")


def test_t30_live_the_metadata_group_is_that_of_the_init(other: LiveCluster, tmp_path: Path) -> None:
    metavg = ("diskparams", "drbd", "metavg")
    assert other.state().cluster.own[metavg] == "fast"
    adopted = tmp_path / "adopted"
    assert gpolicy("adopt", "--state", "local:", "--save", adopted).code == 0
    assert Way(other, "local").plan(adopted).code == 0
    policy = write_policy(
        tmp_path / "policy.yaml", [document("Cluster", "cluster", {("diskparams", "drbd", "resync-rate"): 9})]
    )
    assert Way(other, "local").carry_out(policy, tmp_path / "plan.json")
    assert other.state().cluster.own[metavg] == "fast"


@pytest.mark.parametrize("route", ROUTES)
def test_t53_live_a_parameter_of_a_newer_release_is_left_alone(fresh: LiveCluster, tmp_path: Path, route: str) -> None:
    """3.0.2 itself stores disk parameters that it does not know, for instance those of 3.1."""
    config = json.loads(fresh.kept.read_bytes())
    config["cluster"]["diskparams"]["rbd"]["of-later"] = "kept"
    file = fresh.base / "later.config.data"
    file.write_text(json.dumps(config))
    fresh.rgn("rewind", file)
    adopted = tmp_path / "adopted"
    assert gpolicy("adopt", "--state", "local:", "--save", adopted).code == 0
    way, first = Way(fresh, route), ("diskparams", "rbd", "pool")
    assert way.plan(adopted, state="local:").code == 0
    policy = write_policy(
        tmp_path / "policy.yaml",
        [document("Cluster", "cluster", {first: "p"}), document("NodeGroup", "default", {first: "q"})],
    )
    assert way.carry_out(policy, tmp_path / "plan.json")
    assert fresh.config()["cluster"]["diskparams"]["rbd"] == {"access": "kernelspace", "of-later": "kept", "pool": "p"}
    back = way.apply(tmp_path / "plan.json", "--rollback")
    assert back.code == 0, back.err
    assert fresh.config()["cluster"]["diskparams"]["rbd"] == config["cluster"]["diskparams"]["rbd"]


# --- another program -----------------------------------------------------------------------------------------------


def test_t44_live_what_info_says_is_not_what_is_stored(fresh: LiveCluster) -> None:
    """Read as the YAML that it looks like, the prefix of addresses is a number."""
    real = Real(fresh)
    real.taken("gnt-cluster", "modify", "--mac-prefix=52:54:00")
    told = found(yaml.safe_load(real.taken("gnt-cluster", "info")), "mac prefix")
    assert told == 52 * 3600 + 54 * 60
    for source in fresh.sources:
        assert fresh.state(source).cluster.own["mac_prefix",] == "52:54:00"


def found(value: Any, name: str) -> Any:
    """Return the value of the first key `name` in what info says."""
    below = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    for key, item in below:
        inner = item if key == name else found(item, name)
        if inner is not None:
            return inner
    return None


def test_t46_live_exclusion_matches_by_bare_prefix(fresh: LiveCluster) -> None:
    """The real hail keeps `service-a` apart for `service`, and not for `service:`."""
    real = Real(fresh)
    for name in ("inst1", "inst2", "inst3", "inst5"):
        real.taken("gnt-instance", "add-tags", name, "service-a")
    question = (
        "gnt-debug", "iallocator", "--dir=out", "-I", "hail", "-o", "noop", "-m", "allocate", "-t", "plain",
        "--disks=1024", "--memory=512", "-p", "1", "--tags=service-a", "inst90",
    )  # fmt: skip
    said = []
    for prefix in ("service", "service:"):
        real.taken("gnt-cluster", "add-tags", f"htools:iextags:{prefix}")
        said.append("FailTags: 4" in real.taken(*question))
        real.taken("gnt-cluster", "remove-tags", f"htools:iextags:{prefix}")
    assert said == [True, False]
