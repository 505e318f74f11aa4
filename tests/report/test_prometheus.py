"""Metrics: the exposition format, what stays of earlier runs, and the figures of capacity."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from prometheus_client.parser import text_string_to_metric_families

from gpolicy.analysis.capacity import CapacityReport, capacity
from gpolicy.analysis.health import ClusterHealth, cluster_health
from gpolicy.cluster.sources import read_state
from gpolicy.cluster.state import ClusterState, Snapshot
from gpolicy.cluster.terms import Limits
from gpolicy.provenance import Provenance
from gpolicy.report.capacity_json import capacity_data
from gpolicy.report.prometheus import METRICS, Metric, MetricSet, MetricsRun, Samples, capacity_metrics, exposition

ROOT = Path(__file__).resolve().parents[2]
NOW = 1767225600.5
SMALL = MetricSet("x_", ("target",), {"size_bytes": Metric("Size.", "n")})
HAM, BER = {"target": "ham"}, {"target": "ber"}

Found = dict[str, dict[tuple[str, ...], float]]


def parsed(text: str) -> Found:
    """Return values by metric and labels; each metric stands once, with its help and type."""
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    assert all(family.type == "gauge" and family.documentation for family in families)
    assert text.count("# HELP ") == text.count("# TYPE ") == len(families)
    return {
        family.name: {tuple(sample.labels.values()): sample.value for sample in family.samples} for family in families
    }


def accepted_by_promtool(text: str) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("no promtool (Debian package prometheus)")
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def of_size(*sizes: float) -> Samples:
    return {"size_bytes": [({"n": str(number)}, size) for number, size in enumerate(sizes)]}


def test_a_cluster_that_fails_keeps_its_own_figures_and_hides_no_other() -> None:
    before = exposition(SMALL, [MetricsRun(HAM, of_size(1, 2)), MetricsRun(BER, of_size(3))], now=NOW)
    after = exposition(SMALL, [MetricsRun(HAM, None), MetricsRun(BER, of_size(4))], now=NOW + 60, before=before)
    assert parsed(after) == {
        "x_up": {("ham",): 0, ("ber",): 1},
        "x_last_run_timestamp_seconds": {("ham",): NOW + 60, ("ber",): NOW + 60},
        "x_last_success_timestamp_seconds": {("ham",): NOW, ("ber",): NOW + 60},
        "x_size_bytes": {("ham", "0"): 1, ("ham", "1"): 2, ("ber", "0"): 4},
    }
    accepted_by_promtool(after)
    assert parsed(exposition(SMALL, [MetricsRun(BER, None)], now=NOW, before=after))["x_size_bytes"] == {
        ("ber", "0"): 4
    }


@pytest.mark.parametrize(
    "line", ['x_other{target="ham"} 1', 'x_size_bytes{target="hamm"} 1', 'x_size_bytes{target="ham"} 1 2 # me', "x_up"]
)
def test_of_an_earlier_file_only_our_own_series_of_these_clusters_stay(line: str) -> None:
    text = exposition(SMALL, [MetricsRun(HAM, None)], now=NOW, before=f"{line}\n")
    assert set(parsed(text)) == {"x_up", "x_last_run_timestamp_seconds"}


@given(st.text(), st.floats())
def test_any_label_and_number_is_read_back_and_kept(word: str, number: float) -> None:
    identity = {"target": word}
    text = exposition(SMALL, [MetricsRun(identity, {"size_bytes": [({"n": word}, number)]})], now=NOW)
    for each in (text, exposition(SMALL, [MetricsRun(identity, None)], now=NOW, before=text)):
        (found,) = parsed(each)["x_size_bytes"].items()
        assert found[0] == (word, word)
        assert found[1] == number or (math.isnan(found[1]) and math.isnan(number))


# --- capacity --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def state() -> ClusterState:
    return read_state(f"snapshot:{ROOT / 'policies' / 'two-groups.snapshot.json'}")


@pytest.fixture(scope="module")
def report(state: ClusterState) -> CapacityReport:
    return capacity(state)


def written(report: CapacityReport, health: ClusterHealth, state: ClusterState) -> str:
    made = Provenance("2026-01-01T00:00:00Z")
    return exposition(METRICS["capacity"], [MetricsRun(HAM, capacity_metrics(report, health, state, made))], now=NOW)


def test_the_figures_are_those_of_the_json(state: ClusterState, report: CapacityReport) -> None:
    text = written(report, cluster_health(state), state)
    accepted_by_promtool(text)
    found, data = parsed(text), json.loads(json.dumps(capacity_data(report)))
    groups = {item["group"]: item for item in data["groups"]}
    fits = found["gpolicy_capacity_group_fitting_instances"]
    bound = set(found["gpolicy_capacity_group_binding"])
    for name, item in groups.items():
        pairs = {("pair", spec["name"]): spec for spec in item["specs"]}
        for (kind, spec), what in {**pairs, ("tiered", ""): item["tiered"], ("standard", ""): item["standard"]}.items():
            assert fits["ham", name, item["template"], kind, spec] == what["fits"]
            assert ("ham", name, kind, spec, what["binding"]) in bound
        assert found["gpolicy_capacity_group_score"]["ham", name] == item["score"]
        parts = {
            key[2]: value for key, value in found["gpolicy_capacity_group_score_component"].items() if key[1] == name
        }
        assert parts == {part["name"]: part["product"] for part in item["components"]}
        free = item["stranded"]["free"]
        assert found["gpolicy_capacity_group_free_memory_bytes"]["ham", name] == free["memory"] * 1024**2
    assert found["gpolicy_capacity_cluster_score"]["ham",] == data["cluster"]["score"]
    assert sum(parts.values()) == pytest.approx(item["score"])
    assert found["gpolicy_capacity_info"] == {("ham", "ganeti.example.org", "3.0.2"): 1}
    assert found["gpolicy_capacity_group_violating_instances"] == {
        ("ham", name): float(name == "default") for name in groups
    }
    assert found["gpolicy_capacity_group_fatal_node_losses"]["ham", "default"] == 0
    assert set(found["gpolicy_capacity_cluster_tag_conflicts"].values()) == {0}


def test_each_metric_is_written_and_described(state: ClusterState) -> None:
    limits = Limits(max_node_failures=2)
    report = capacity(state, limits=limits)
    text = written(report, cluster_health(state, limits=limits), state)
    not_there = {"gpolicy_capacity_state_timestamp_seconds"}  # this snapshot has no time
    not_there |= {"gpolicy_capacity_group_days_until_full"}  # nor is there a history
    counted = parsed(text)["gpolicy_capacity_group_hspace_fitting_instances"]
    metrics = METRICS["capacity"]
    assert set(parsed(text)) == {metrics.prefix + name for name in metrics.all} - not_there
    standard = {name: value for (_, name, kind, _), value in counted.items() if kind == "standard"}
    assert standard == {item.group: item.hspace_standard for item in report.groups}


def test_each_series_has_the_labels_that_its_metric_declares(state: ClusterState) -> None:
    limits = Limits(max_node_failures=2)
    found = capacity_metrics(capacity(state, limits=limits), cluster_health(state), state, Provenance())
    for name, samples in found.items():
        for labels, _ in samples:
            assert tuple(labels) == METRICS["capacity"].all[name].labels, name


def test_the_age_of_the_state_is_that_of_the_snapshot(state: ClusterState, report: CapacityReport) -> None:
    health = cluster_health(state)
    taken = replace(state, snapshot=Snapshot(file="x", taken_at="2025-12-31T23:00:00Z"))
    assert parsed(written(report, health, taken))["gpolicy_capacity_state_timestamp_seconds"] == {("ham",): 1767222000}
    live = replace(state, snapshot=None, source="local:")
    assert parsed(written(report, health, live))["gpolicy_capacity_state_timestamp_seconds"] == {("ham",): 1767225600}


def test_free_and_stranded_room_is_in_bytes(state: ClusterState, report: CapacityReport) -> None:
    found = parsed(written(report, cluster_health(state), state))
    for item in report.groups:
        assert item.stranded is not None
        assert item.group is not None
        for word, room in (("free", item.stranded.free), ("stranded", item.stranded.left)):
            prefix = f"gpolicy_capacity_group_{word}"
            assert found[f"{prefix}_memory_bytes"]["ham", item.group] == room.memory * 1024**2
            assert found[f"{prefix}_disk_bytes"]["ham", item.group] == room.disk * 1024**2
