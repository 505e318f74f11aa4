"""After a change of a policy, Ganeti's warnings and its verify name the instances that the plan named before."""

from __future__ import annotations

import json
import os
import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpolicy.analysis.violations import ParameterBreach
from gpolicy.ganeti.vocabulary import DEFAULT_MAX, DEFAULT_MIN, Path as ValuePath
from tests.e2e.carried_out import ROUTES, Way, write_policy
from tests.e2e.crowded import crowd
from tests.e2e.given_directly import Real, bounds
from tests.e2e.live_cluster import LiveCluster
from tests.impact.changes import violation_change
from tests.impact.messages import breaches_told, violated
from tests.impact.policy_cases import policy
from tests.impact.transcripts import separate_messages
from tests.strategies import Document, document

pytestmark = pytest.mark.e2e

FEW, MANY, BLOCK = int(os.environ.get("GPOLICY_E2E_CASES", "12")), 40, 20
WARNING = re.compile(r".*After the ipolicy change the following instances violate them: (.*)")
VERIFIED = 6  # every so many cases: it takes as long as they do
TARGETS = ("cluster", "default", "gold")


@dataclass
class Counted:
    """What the cases contained."""

    plans: int = 0
    warned: int = 0
    healed: int = 0
    verified: int = 0
    exclusive: int = 0


def random_change(rnd: random.Random) -> Document:
    """Return a policy of the cluster or one group: its plan is one job. A second one could heal what the first did."""
    target = rnd.choice(TARGETS)
    values: dict[ValuePath, Any] = dict(policy(rnd, sparse=target != "cluster"))
    if target == "cluster":
        (first, *_) = values["ipolicy", "minmax"]
        values |= {("ipolicy", "std", name): amount for name, amount in first["min"].items()}
        return document("Cluster", "cluster", values)
    if rnd.random() < 0.2:
        values = {("ipolicy", "minmax"): "inherit", ("ipolicy", "disk-templates"): "inherit"}
    return document("NodeGroup", target, values)


def warned_of(plan: Path) -> list[str]:
    """Return the instances that Ganeti named in the log of the plan's jobs, as the journal kept it."""
    lines = (plan.parent / f"{plan.stem}.journal.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [event["text"] for line in lines if (event := json.loads(line))["event"] == "step-message"]
    return sorted(name for text in texts if (found := WARNING.fullmatch(text)) for name in found[1].split(", "))


def verified_by_ganeti(cluster: LiveCluster) -> dict[str, list[ParameterBreach]]:
    """Return what `gnt-cluster verify` says of every instance that violates the policy."""
    done = cluster.ganeti("gnt-cluster", "verify", "--error-codes", check=False)
    told: dict[str, list[ParameterBreach]] = {}
    for line in (done.stdout + done.stderr).splitlines():
        _, _, found = line.partition(":EINSTANCEPOLICY:")
        if found:
            _, name, message = found.split(":", 2)
            told[name] = breaches_told(separate_messages(message))
    return told


def one_case(way: Way, directory: Path, number: int, counted: Counted) -> None:
    rnd = random.Random(number)  # noqa: S311 (no secret)
    directory.mkdir()
    file, plan = write_policy(directory / "policy.yaml", [random_change(rnd)]), directory / "plan.json"
    planned = way.plan(file, plan, state=way.cluster.sources["config"])
    if planned.code != 2:  # nothing to change; or what check refuses: overlapping pairs, and such
        return
    made = json.loads(plan.read_text(encoding="utf-8"))
    assert len(made["steps"]) == 1, number
    told = made["impact"]["violations"]
    applied = way.apply(plan)
    assert applied.code == 0, (number, applied.err, applied.out)
    newly = sorted(item["instance"] for item in told["newly"])
    assert warned_of(plan) == newly, number
    assert all(name in applied.out for name in newly)
    counted.plans += 1
    counted.warned += bool(newly)
    counted.healed += bool(told["no_longer"])
    if counted.plans % VERIFIED == 1:
        state = way.cluster.state()
        still = violation_change(state, state).still
        assert {item.instance: violated(item.after) for item in still} == verified_by_ganeti(way.cluster), number
        assert sorted(item.instance for item in still) == sorted(newly + [item["instance"] for item in told["still"]])
        counted.verified += len(still)
        counted.exclusive += sum(item.after.exclusive_storage for item in still if item.after)


def run_cases(cluster: LiveCluster, route: str, directory: Path, first: int, cases: int) -> Counted:
    counted, number = Counted(), first
    crowd(cluster, first, exclusive_storage=True)
    while counted.plans < cases:
        number += 1
        one_case(Way(cluster, route), directory / str(number), number, counted)
    return counted


def first_number(route: str) -> int:
    return (1 + ROUTES.index(route)) * 100_000


@pytest.mark.parametrize("route", ROUTES)
def test_ganeti_warns_of_exactly_those_that_the_plan_named(fresh: LiveCluster, tmp_path: Path, route: str) -> None:
    counted = run_cases(fresh, route, tmp_path, first_number(route), FEW)
    assert min(counted.warned, counted.healed, counted.verified, counted.exclusive) > 0, counted


@pytest.mark.full
@pytest.mark.parametrize("block", range(1, 1 + MANY // BLOCK))
@pytest.mark.parametrize("route", ROUTES)
def test_ganeti_warns_of_exactly_those_that_many_plans_named(
    fresh: LiveCluster, tmp_path: Path, route: str, block: int
) -> None:
    """Each block has other instances."""
    counted = run_cases(fresh, route, tmp_path, first_number(route) + 1000 * block, BLOCK)
    assert min(counted.warned, counted.healed) > 0, counted


def memory(*, least: int = 128, most: int = 1024**2) -> dict[ValuePath, Any]:
    """Return one spec pair that bounds the memory, and hardly anything else."""
    low = {**dict.fromkeys(DEFAULT_MIN, 0), "memory-size": least, "disk-size": 4}
    return {("ipolicy", "minmax"): [{"min": low, "max": {**DEFAULT_MAX, "memory-size": most}}]}


def test_what_ganeti_does_not_warn_of_the_plan_names_all_the_same(fresh: LiveCluster, tmp_path: Path) -> None:
    """A node that moves to a stricter group takes its instances along; a minmem below the policy."""
    crowd(fresh, 1, exclusive_storage=False)
    way = Way(fresh, "local")
    strict = write_policy(tmp_path / "strict.yaml", [document("NodeGroup", "strict", memory(most=256))])
    assert way.carry_out(strict, tmp_path / "strict.json")
    cases = {
        "move": (document("NodeGroup", "strict", nodes=["node4", "node5"]), "newly"),
        "minmem": (document("NodeGroup", "default", memory(least=257)), "minmem_newly"),
    }
    for name, (policy_document, kind) in cases.items():
        plan = tmp_path / f"{name}.json"
        policy_file = write_policy(tmp_path / f"{name}.yaml", [policy_document])
        assert way.plan(policy_file, plan, state=fresh.sources["config"]).code == 2
        told = json.loads(plan.read_text(encoding="utf-8"))["impact"]["violations"]
        silent = {item["instance"] for item in told[kind]}
        assert silent
        applied = way.apply(plan)
        assert applied.code == 0, applied.err
        assert silent.isdisjoint(warned_of(plan))
        assert name == "move" or set(warned_of(plan)) == {item["instance"] for item in told["newly"]}


def test_t27_live_five_things_are_called_spindles(fresh: LiveCluster) -> None:
    """Each has its own place; with exclusive storage the bounds are those of the disks' spindles."""
    crowd(fresh, 7, exclusive_storage=True)
    real = Real(fresh)
    places: dict[tuple[str, ...], ValuePath] = {
        ("--ipolicy-std-specs=spindle-use=2",): ("ipolicy", "std", "spindle-use"),
        ("--ipolicy-spindle-ratio=3",): ("ipolicy", "spindle-ratio"),
        ("--node-parameters=spindle_count=4",): ("ndparams", "spindle_count"),
        ("-B", "spindle_use=5"): ("beparams", "spindle_use"),
    }
    for options, path in places.items():
        before = fresh.state().cluster.own
        real.taken("gnt-cluster", "modify", *options)
        after = fresh.state().cluster.own
        assert {key for key in after if after[key] != before.get(key)} == {path}
    real.taken("gnt-group", "modify", bounds(spindle_use=1, memory_size=1024**2), "gold")
    told = verified_by_ganeti(fresh)
    state = fresh.state()
    for instance in state.instances.values():
        if state.nodes[instance.primary_node].group == "gold":
            counts = [disk.spindles for disk in instance.disks]
            known = [count for count in counts if count is not None]
            wanted = {("spindle-use", sum(known))} if known == counts else {("spindles", None)}
            breaches = told.get(instance.name, [])
            assert {(one.parameter, one.value) for one in breaches if "spindle" in one.parameter} == {
                item for item in wanted if item != ("spindle-use", 1)
            }
